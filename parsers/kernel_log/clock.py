"""The clocks of a host: TSC checks, warps, calibration, the clocksource watchdog and every switch.

    Apr 15 18:22:57 srv kernel: TSC synchronization [CPU#0 -> CPU#8]:
    Apr 15 18:22:57 srv kernel: Measured 120 cycles TSC warp between CPUs, turning off TSC clock.

One line is one row of `clock_event`; a watchdog report, which since 4.4 takes four or five lines, is one too. Formats:
arch/x86/kernel/tsc_sync.c and tsc.c, kernel/time/clocksource.c and timekeeping.c, kernel/sched/clock.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from parsers.kernel_log.message import Aside, Block, Event
from parsers.shapes import Column, Row, Table

TABLES = {
    "clock_event": Table(
        "a message about a clock",
        {
            "kind": Column(
                "str",
                "tsc_sync_check, tsc_warp, tsc_unstable, tsc_adjust, watchdog_skew, watchdog_late, calibration, "
                "calibration_failed, clocksource_switch or sched_clock_unstable",
            ),
            "from_source": Column("str", "the clock spoken of, or the one switched away from: tsc, hpet, …"),
            "to_source": Column("str", "the clocksource switched to"),
            "watchdog": Column("str", "the clock it was compared with"),
            "reason": Column("str", "why, in the kernel's words"),
            "cycles": Column("Int64", "TSC cycles of a warp or an adjustment"),
            "skew_ns": Column("Int64", "how far the clock ran ahead (or behind, negative) within the interval"),
            "interval_ns": Column("Int64", "time between two checks by the watchdog's own count, 0.5 s by design"),
            "cpus": Column("object", "tuple of the CPUs named"),
            "mhz": Column("Float64", "calibrated frequency"),
            "incident": Column("str", "as in kernel_event"),
        },
    )
}

LITERALS = (
    b"TSC synchronization [CPU#",
    b"TSC warp",
    b"TSC ADJUST ",
    b"Marking TSC unstable",
    b" unstable (delta = ",
    b"Marking clocksource ",
    b"Long readout interval",
    b"clock-skew test skipped",
    b"TSC found unstable after boot",
    b"sched_clock: Marking unstable",
    b"Switching to clocksource ",
    b"Switched to clocksource ",
    b" clocksource has been installed",
    b"TSC calibration",
    b"Unable to calibrate against PIT",
    b"No reference (HPET/PMTIMER) available",
    b"PIT calibration deviates from",
    b" MHz processor",
    b" MHz TSC",
    b"TSC clocksource calibration",
    b"TSC freq calibrated by",
)

Found = re.Match[str]
BY_DESIGN = ("boot parameter", "running on Hyper-V", "cyrix", "TSC halt")
"""Reasons for an unstable TSC that are a choice or a property of the processor, not a fault."""


def _sync(found: Found, block: Block) -> tuple[str, str, Row, int]:
    return "tsc_sync_check", "info", {"from_source": "tsc", "cpus": (int(found[1]), int(found[2]))}, 1


def _warp(found: Found, block: Block) -> tuple[str, str, Row, int]:
    return "tsc_warp", "high", {"from_source": "tsc", "cycles": int(found[1])}, 1


def _random_warp(found: Found, block: Block) -> tuple[str, str, Row, int]:
    return "tsc_warp", "high", {"from_source": "tsc", "reason": found[0]}, 1


def _compensated(found: Found, block: Block) -> tuple[str, str, Row, int]:
    row: Row = {"from_source": "tsc", "reason": "compensate", "cycles": int(found[2]), "cpus": (int(found[1]),)}
    return "tsc_adjust", "info", row, 1


def _restored(found: Found, block: Block) -> tuple[str, str, Row, int]:
    row: Row = {"from_source": "tsc", "reason": "differs", "cpus": (int(found[1]),)}
    row["cycles"] = int(found[3]) - int(found[2])
    return "tsc_adjust", "low", row, 1


def _unstable(found: Found, block: Block) -> tuple[str, str, Row, int]:
    reason = found[1].strip().removesuffix(".")
    severity = "info" if reason.startswith(BY_DESIGN) else "medium"
    return "tsc_unstable", severity, {"from_source": "tsc", "reason": reason}, 1


def _after_boot(found: Found, block: Block) -> tuple[str, str, Row, int]:
    return "tsc_unstable", "medium", {"from_source": "tsc", "reason": "found unstable after boot"}, 1


def _delta(found: Found, block: Block) -> tuple[str, str, Row, int]:
    row: Row = {"from_source": found[1], "skew_ns": int(found[2]), "reason": "unstable"}
    return "watchdog_skew", "medium", row, 1


DETAIL = re.compile(
    r"(?:clocksource: +)?'(?P<name>[\w-]+)' (?P<what>wd|cs)(?:_nsec: (?P<nsec>-?\d{1,18}))?"
    r"(?: (?:wd|cs))?_now: [0-9a-f]+"
)
SKEWED = re.compile(
    r"(?:clocksource: +)?(?:Clocksource )?'(?P<name>[\w-]+)' skewed (?P<skew>-?\d{1,18}) ns \(-?\d+ ms\) over watchdog "
    r"'(?P<watchdog>[\w-]+)' interval of (?P<interval>\d+) ns"
)
CURRENT = re.compile(r"(?:clocksource: +)?'[\w-]+' (?:\(not '[\w-]+'\) )?is (?:not )?current clocksource")
REWRITTEN = re.compile(
    r"(?:clocksource: +)?(?P<what>Watchdog|Clocksource) +(?P<name>[\w-]+) interval: +(?P<nsec>-?\d{1,18})ns"
)


def _skew(found: Found, block: Block) -> tuple[str, str, Row, int]:
    """Read the report of 4.4 and later with the lines after it: names, nanoseconds from 5.14, the skew from 6.5."""
    row: Row = {"from_source": found["name"], "reason": (found["why"] or "").strip(" :")}
    if found["cpu"]:
        row["cpus"] = (int(found["cpu"]),)
    intervals: dict[str, int] = {}
    lines = 1
    for message in block[1:8]:
        text = message.text
        if detail := DETAIL.match(text):
            if detail["what"] == "wd":
                row["watchdog"] = detail["name"]
            if detail["nsec"]:
                intervals[detail["what"]] = int(detail["nsec"])
        elif skewed := SKEWED.match(text):
            row["skew_ns"] = int(skewed["skew"])
        elif newer := REWRITTEN.match(text):
            if newer["what"] == "Watchdog":
                row["watchdog"] = newer["name"]
            intervals["wd" if newer["what"] == "Watchdog" else "cs"] = int(newer["nsec"])
        elif not CURRENT.match(text):
            break
        lines += 1
    if "wd" in intervals:
        row["interval_ns"] = intervals["wd"]
        if "cs" in intervals:
            row.setdefault("skew_ns", intervals["cs"] - intervals["wd"])
    return "watchdog_skew", "medium", row, lines


def _late(found: Found, block: Block) -> tuple[str, str, Row, int]:
    row: Row = {"reason": found[0].strip()}
    if intervals := re.search(r"cs_nsec: (-?\d{1,18}) wd_nsec: (-?\d{1,18})(?!\d)", block[0].text):
        row["interval_ns"], row["skew_ns"] = int(intervals[2]), int(intervals[1]) - int(intervals[2])
    return "watchdog_late", "info", row, 1


def _sched(found: Found, block: Block) -> tuple[str, str, Row, int]:
    return "sched_clock_unstable", "low", {"from_source": "sched_clock"}, 1


def _switch(found: Found, block: Block) -> tuple[str, str, Row, int]:
    return "clocksource_switch", "info", {"to_source": found[1]}, 1


def _failed(found: Found, block: Block) -> tuple[str, str, Row, int]:
    return "calibration_failed", "low", {"from_source": "tsc", "reason": found[1].rstrip(". ")}, 1


def _calibrated(found: Found, block: Block) -> tuple[str, str, Row, int]:
    row: Row = {"from_source": "tsc", "reason": found["how"]}
    if found["mhz"]:
        row["mhz"] = float(found["mhz"])
    return "calibration", "info", row, 1


TSC = r"(?:tsc: |TSC: )?"
FORMS: tuple[tuple[re.Pattern[str], Callable[[Found, Block], tuple[str, str, Row, int]]], ...] = (
    # 6.5 prints the second CPU as %u; `checking` is printed at every boot up to 2.6.32.
    (re.compile(r"(?:checking )?TSC synchronization \[CPU#(\d{1,9}) -> CPU#(\d{1,9})\]:"), _sync),
    (re.compile(r"Measured (\d{1,18}) cycles TSC warp between CPUs"), _warp),
    (re.compile(r"TSC warped randomly between CPUs"), _random_warp),
    (re.compile(r"TSC ADJUST compensate: CPU(\d{1,9}) observed (-?\d{1,18}) warp"), _compensated),
    (re.compile(r"TSC ADJUST differs: CPU(\d{1,9}) (-?\d{1,18}) -->? ?(-?\d{1,18})"), _restored),
    # Up to 2.6.24 `due to: reason.`, `tsc: ` from 3.10.
    (re.compile(TSC + r"Marking TSC unstable due to:? (.{1,200})"), _unstable),
    (re.compile(r"TSC found unstable after boot"), _after_boot),
    (re.compile(r"Clocksource ([\w-]+) unstable \(delta = (-?\d{1,19}) ns\)"), _delta),
    (
        re.compile(
            r"(?:clocksource: )?timekeeping watchdog(?: on CPU(?P<cpu>\d{1,9}))?: Marking clocksource "
            r"'(?P<name>[\w-]+)' as unstable because (?P<why>the skew is too large):"
        ),
        _skew,
    ),
    (
        re.compile(
            r"(?:clocksource: )?(?:timekeeping watchdog on CPU(?P<cpu>\d{1,9}): .{0,160}?)?[Mm]arking (?:clocksource )?"
            r"'?(?P<name>[\w-]+)'?(?: as)? unstable(?: due to (?P<why>.{1,120}))?"
        ),
        _skew,
    ),
    (re.compile(r".{0,80}(?:Long readout interval, skipping watchdog check|clock-skew test skipped)"), _late),
    (re.compile(r"sched_clock: Marking unstable \("), _sched),
    (re.compile(r"(?:clocksource: )?Switch(?:ing|ed) to clocksource ([\w-]+)"), _switch),
    (re.compile(r"Time: ([\w-]+) clocksource has been installed"), _switch),
    (re.compile(TSC + r"(Fast TSC calibration failed)"), _failed),
    (re.compile(TSC + r"(Unable to calibrate against PIT)"), _failed),
    (re.compile(TSC + r"(No reference \(HPET/PMTIMER\) available)"), _failed),
    (re.compile(TSC + r"((?:Warning: )?PIT calibration deviates from .{1,80})"), _failed),
    (re.compile(TSC + r"(?:Warning: )?(TSC freq calibrated by .{1,120})"), _failed),
    (re.compile(TSC + r"(?P<how>Fast TSC calibration) using (?P<mhz>)PIT"), _calibrated),
    (re.compile(TSC + r"(?P<how>Detected) (?P<mhz>\d{1,9}\.\d{1,6}) MHz (?:processor|TSC)"), _calibrated),
    (
        re.compile(TSC + r"(?P<how>Refined) TSC clocksource calibration: (?P<mhz>\d{1,9}\.\d{1,6}) MHz"),
        _calibrated,
    ),
)


def read(block: Block) -> Iterator[Event | Aside]:
    """Yield the clock event of the anchor line; a synchronization line also tells its CPUs to a warp after it."""
    text = block[0].text.lstrip()
    for pattern, shape in FORMS:
        if found := pattern.match(text):
            kind, severity, row, lines = shape(found, block)
            row["kind"] = kind
            asks = "tsc_sync" if kind == "tsc_warp" else ""
            yield Event(kind, severity, "clock_event", row, lines=lines, asks=asks)
            if kind == "tsc_sync_check":
                yield Aside("tsc_sync", {"cpus": row["cpus"]})
            return
