"""What the kernel holds back because it took too long: real-time tasks, perf sampling, work items, slow interrupts.

    sched: RT throttling activated
    perf: interrupt took too long (2503 > 2500), lowering kernel.perf_event_max_sample_rate to 79750
    workqueue: output_poll_execute hogged CPU for >10000us 8 times, consider switching to WQ_UNBOUND
    hrtimer: interrupt took 48213 ns
    clocksource: timekeeping watchdog on CPU3: wd-tsc-wd excessive read-back delay of 1250000ns vs. limit of 125000ns, …

Table `throttle`, one row per message. From kernel/sched/rt.c (`for rt_rq … (cpu 2)` with the candidates below in some
4.x kernels), kernel/events/core.c (`perf samples too long` up to 3.15, `perf interrupt` up to 4.4), kernel/workqueue.c
(6.5), kernel/time/hrtimer.c, kernel/time/clocksource.c (6.1) and arch/x86/kernel/nmi.c. A boot prints RT throttling and
the first slow interrupt once only; perf lowers its own rate and goes on, which is no fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.message import Block, Event
from parsers.shapes import Column, Row, Table

TABLES = {
    "throttle": Table(
        "one message about something that took too long and was held back",
        {
            "kind": Column("str", "rt_throttling, perf_slow, workqueue_hog, hrtimer_slow, nmi_slow or clock_read_slow"),
            "cpu": Column("Int64", "the CPU, where it is named"),
            "took_ns": Column("Int64", "how long it took; for work items, longer than this"),
            "allowed_ns": Column("Int64", "how long it may take, where printed"),
            "function": Column("str", "the work item, handler or clock"),
            "times": Column("Int64", "how often so far: work items only, printed when it doubles"),
            "rate": Column("Int64", "perf samples per second from now on"),
            "incident": Column("str", "shared by what concerns the same function"),
        },
    )
}

LITERALS = (
    b"RT throttling activated",
    b" took too long",
    b"perf samples too long",
    b" hogged CPU for >",
    b"hrtimer: interrupt took ",
    b"excessive read-back delay",
)

_RT = re.compile(
    r"(?:\[sched_delayed\] )?sched: RT throttling activated(?: for rt_rq \S{1,40} \(cpu (?P<cpu>\d{1,6})\))?"
)
_PERF = re.compile(
    r"perf(?::? interrupt took| samples) too long \((?P<took>\d{1,18}) > (?P<allowed>\d{1,18})\)"
    r"(?:, lowering kernel\.perf_event_max_sample_rate to (?P<rate>\d{1,18})(?=\D|$))?"
)
_HOG = re.compile(
    r"workqueue: (?P<function>\S{1,128})(?: \[\S+\])? hogged CPU for >(?P<took>\d{1,18})us (?P<times>\d{1,18}) times"
)
_HRTIMER = re.compile(r"hrtimer: interrupt took (?P<took>\d{1,18}) ns")
_NMI = re.compile(
    r"INFO: NMI handler \((?P<function>[\w.]{1,128})(?:\+\S+)?\) took too long to run: "
    r"(?P<ms>\d{1,9})\.(?P<us>\d{3}) msecs"
)
_READ = re.compile(
    r"(?:clocksource: )?(?:timekeeping watchdog on CPU(?P<cpu>\d{1,6}): )?(?:\S+ )?wd-(?P<function>[\w-]+)-wd "
    r"excessive read-back delay of (?P<took>\d{1,18})ns vs\. limit of (?P<allowed>\d{1,18})ns"
)


def read(block: Block) -> Iterator[Event]:
    """Yield what block[0] says was held back, or took longer than it should."""
    text = block[0].text
    if throttled := _RT.match(text):
        row: Row = {"kind": "rt_throttling"}
        if throttled["cpu"]:
            row["cpu"] = int(throttled["cpu"])
        # Real-time tasks took 95 % of a CPU for a second and are now stopped for the rest of it, sched(7).
        yield _event(row, "medium")
    elif perf := _PERF.match(text):
        row = {"kind": "perf_slow", "took_ns": int(perf["took"]), "allowed_ns": int(perf["allowed"])}
        yield _event(row | ({"rate": int(perf["rate"])} if perf["rate"] else {}), "info")
    elif hog := _HOG.match(text):
        row = {"kind": "workqueue_hog", "function": hog["function"], "times": int(hog["times"])}
        yield _event(row | {"took_ns": int(hog["took"]) * 1000}, "low")
    elif slow := _HRTIMER.match(text):
        yield _event({"kind": "hrtimer_slow", "took_ns": int(slow["took"])}, "info")
    elif handler := _NMI.match(text):
        took = int(handler["ms"]) * 1_000_000 + int(handler["us"]) * 1000
        yield _event({"kind": "nmi_slow", "function": handler["function"], "took_ns": took}, "info")
    elif late := _READ.match(text):
        row = {"kind": "clock_read_slow", "function": late["function"], "took_ns": int(late["took"])}
        row["allowed_ns"] = int(late["allowed"])
        yield _event(row | ({"cpu": int(late["cpu"])} if late["cpu"] else {}), "medium")


def _event(row: Row, severity: str) -> Event:
    """Return the event; what concerns the same function is one incident."""
    return Event(row["kind"], severity, "throttle", row, (row["kind"], row.get("function")))
