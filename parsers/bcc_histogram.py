"""Histograms of the bcc tools (funclatency, biolatency, runqlat, argdist -H …) and of libbpf-tools.

    $ sudo /usr/share/bcc/tools/funclatency -uTi 1 do_sendfile
    Tracing 1 functions for "do_sendfile"... Hit Ctrl-C to end.

    23:27:25
         usecs               : count     distribution
             0 -> 1          : 9        |                                        |
             2 -> 3          : 47       |****                                    |

Table: `histogram`. Format: bcc, src/python/bcc/table.py (`_print_log2_hist`, `_print_linear_hist`) and
libbpf-tools/trace_helpers.c. Known shapes: 32 bit (bar of 40), 64 bit (bar of 20), the one of 2015 (bar of 38), linear
(one value a row), libbpf's, and the Python dictionaries of `-j`. A section line `KEY = VALUE` names the histogram
below it. A bar is exactly floor(width * count / largest) stars, so each row carries its own checksum.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import pyparsing as pp

from parsers.bcc import CLOCK, TRACING, lost, pattern_of
from parsers.command import Stage, command_of, stages
from parsers.shapes import INTERRUPT_ECHO, Capture, Column, Gap, Parsed, Row, Table, excerpt, integer

TABLES = {
    "histogram": Table(
        "one bucket of one histogram",
        {
            "tool": Column("str", "the tool that printed it, missing where the capture does not tell"),
            "metric": Column("str", "what was measured: the traced function, or the tool's own words"),
            "key": Column("str", "value of the section line above the histogram, missing if there is none"),
            "key_name": Column("str", "name of that section: disk, pid, Function, flags …"),
            "clock": Column("str", "HH:MM:SS printed before the block, local time of the host"),
            "interval": Column("Int64", "number of the interval in the capture, from 0"),
            "unit": Column("str", "unit of low and high: usecs, msecs, nsecs …, or the tool's label"),
            "low": Column("Int64", "smallest value of the bucket"),
            "high": Column("Int64", "largest value of the bucket, inclusive; of a linear row the value itself"),
            "events": Column("Int64", "values counted in the bucket"),
            "cumulative": Column("boolean", "each interval repeats the running totals (argdist -c): never add up"),
        },
    )
}
CAPTURES = dict.fromkeys(TABLES, ("a latency histogram", "funclatency -uTi 1 FUNCTION"))

_HEADER = r"[ \t]*+(?P<unit>[^\s:|][^\n:|]{0,80}?)?[ \t]*+: count[ \t]+distribution[ \t]*\r?"
_ROW = (
    r"[ \t]*(?P<low>-?\d+)(?:[ \t]*->[ \t]*(?P<high>-?\d+))?[ \t]*:[ \t]*(?P<events>\d+)[ \t]*"
    r"\|(?P<bar>[*+ ]*+)(?P<end>\|?)[ \t]*"
)
HEADER = re.compile(rf"^{_HEADER}$")
ROWISH = re.compile(r"^[ \t]*-?\d+[ \t]*(?:->|:)")
SECTION = re.compile(r"^(?P<name>\S[^=\n]{0,40}?) = (?P<value>\S.*?)\s*$")
TWO_KEYS = re.compile(r"^(?P<value>.*?)[ \t]+(?P<name2>\w+) = (?P<value2>.*)$")
FOOTER = re.compile(r"^avg = (?P<avg>-?\d+) (?P<unit>\S+), total: (?P<total>-?\d+) \S+, count: (?P<count>\d+)\s*$")
JSON_ROW = re.compile(r"^\{'ts': '[^']*', 'val_type': ")
BEGINS = re.compile(
    rb"^(?:(?:Tracing|Sampling) [^\n]*\n)?(?:\^C)?(?:[ \t\r]*\n){0,3}(?:\[?\d\d:\d\d:\d\d\]?:?[ \t\r]*\n)?"
    rb"(?:[ \t\r]*\n){0,3}(?:[^\n=]{1,40} = [^\n]*\n)?(?:"
    + _HEADER.replace("?P<unit>", "").encode()
    + rb"\n[ \t]*-?\d+[ \t]*(?:->|:)|\{'ts': '[^'\n]*', 'val_type': )",
    re.MULTILINE,
)
HISTOGRAM_TOOLS = re.compile(
    r"func(?:latency|interval)|bio(?:latency|pattern)|bitesize|runq(?:lat|len)|cpudist|cpufreq|wqlat|argdist"
    r"|(?:ext4|xfs|btrfs|zfs|nfs|fs)dist|(?:hard|soft)irqs|tcp(?:rtt|synbl)|dbstat"
)
MAX_BUCKETS = 4096
"""A log2 histogram has at most 64 rows, a linear one some hundred; more under one header is not a histogram."""
SECONDS = {"nsecs": 1, "ns": 1, "usecs": 1_000, "us": 1_000, "msecs": 1_000_000, "ms": 1_000_000, "secs": 10**9}
"""Nanoseconds in a unit, to tell a footer that names the wrong one."""


@dataclass(slots=True)
class _Histogram:
    """A header, its rows, and what stood above it."""

    metric: str | None
    name: str | None
    key: str | None
    clock: str | None
    interval: int
    unit: str
    argdist: bool
    rows: list[Row] = field(default_factory=list)

    def own(self) -> Row:
        """Return the columns its buckets share."""
        return {
            "metric": self.metric, "key": self.key, "key_name": self.name, "clock": self.clock,
            "interval": self.interval, "unit": self.unit,
        }  # fmt: skip


@dataclass(slots=True)
class _Above:
    """What was read since the last histogram and belongs to the next one."""

    metric: str | None = None
    name: str | None = None
    key: str | None = None
    clock: str | None = None
    interval: int = -1
    label: str | None = None
    argdist: bool = False
    seen: set[tuple[str | None, ...]] = field(default_factory=set)

    def tick(self, clock: str, bracketed: bool) -> None:
        """A time stamp opens an interval, be it an empty one."""
        self.interval, self.clock, self.name, self.key = self.interval + 1, clock, None, None
        self.argdist, self.label = self.argdist or bracketed, None
        self.seen = set()

    def start(self, metric: str | None) -> None:
        """A tool was attached: what an earlier run in the same text left behind is over."""
        self.metric, self.name, self.key, self.label = metric or self.metric, None, None, None
        if self.interval >= 0:
            self.clock, self.interval, self.seen = None, self.interval + 1, set()

    def open(self, unit: str) -> _Histogram:
        """Return the histogram whose header was met; without clocks, a key that comes again opens an interval."""
        metric = (self.label if self.argdist else None) or self.metric
        mark = (metric, self.name, self.key, unit)
        if self.interval < 0 or (mark in self.seen and not self.clock):
            self.interval, self.seen = self.interval + 1, set()
        self.seen.add(mark)
        made = _Histogram(metric, self.name, self.key, self.clock, self.interval, unit, self.argdist)
        self.name = self.key = self.label = None
        return made


def sniff(head: str) -> bool | None:
    """Return whether a head holds a histogram's header and a row, or a tool that prints them has been attached."""
    lines = [INTERRUPT_ECHO.sub("", line.rstrip("\r")) for line in head.split("\n")]
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if JSON_ROW.match(line) or (HEADER.match(line) and ROWISH.match(after)):
            return True
    if not any(HISTOGRAM_TOOLS.fullmatch(stage.tool) for stage in stages(command_of(head))):
        return False
    return any(TRACING.match(line) for line in lines) or (None if len(lines) < 4 else False)


def parse(capture: Capture) -> Parsed:
    """Return `histogram` rows; units are the header's.

    Gaps: a row that is cut, a count that its bar contradicts (the row is kept), a histogram whose largest row is
    missing, a footer that does not fit the buckets above it, and loss markers.
    """
    stage = next((each for each in stages(capture.command) if HISTOGRAM_TOOLS.fullmatch(each.tool)), None)
    parsed = Parsed({"histogram": []})
    histograms = list(_histograms(capture, stage, parsed))
    argdist = (stage and stage.tool == "argdist") or any(each.argdist for each in histograms)
    cumulative = bool(argdist and (stage.flag("c", "cumulative") if stage else _never_falls(histograms)))
    tool = stage.tool if stage else "argdist" if argdist else None
    for histogram in histograms:
        own = histogram.own() | {"tool": tool, "cumulative": cumulative}
        parsed.rows["histogram"] += [row | own for row in histogram.rows]
    return parsed


def _histograms(capture: Capture, stage: Stage | None, parsed: Parsed) -> Iterator[_Histogram]:
    """Yield the histograms of a capture; gaps go to `parsed`. Prose after the last one is passed over."""
    above, since_footer, block = _Above(metric=_metric(stage)), list[_Histogram](), list[tuple[int, str]]()
    above.argdist = bool(stage and stage.tool == "argdist")
    for number, raw in _with_closed_end(capture):
        line = INTERRUPT_ECHO.sub("", raw)
        if block and ROWISH.match(line) and len(block) < MAX_BUCKETS:
            block.append((number, raw))
            continue
        if block:
            since_footer.append(_read_block(capture.member, block, above, parsed))
            yield since_footer[-1]
            block = []
        if HEADER.match(line):
            block = [(number, raw)]
        elif found := FOOTER.match(line):
            parsed.gaps += [Gap(capture.member, number, what) for what in _footer_faults(found, since_footer)]
            since_footer = []
        elif JSON_ROW.match(line):
            yield from _read_dictionary(capture.member, number, raw, above, parsed)
        elif loss := lost(capture.member, number, line):
            parsed.gaps.append(loss[0])
            parsed.rows.setdefault("log_loss", []).append(loss[1])
        elif not _look_above(line, above):
            since_footer = []
    if block:
        yield _read_block(capture.member, block, above, parsed)
    parsed.gaps += capture.gaps()


def _with_closed_end(capture: Capture) -> Iterator[tuple[int, str]]:
    """Yield whole lines, and the last one too if it is a row: its bar tells whether anything of it is missing."""
    yield from capture.whole_lines()
    if capture.unended and ROWISH.match(capture.unended[1]):
        yield capture.unended
        capture.unended = None


def _metric(stage: Stage | None) -> str | None:
    """Return what the command says is measured: the operand of the tools that take a function."""
    if stage is None or stage.tool not in ("funclatency", "funcinterval"):
        return None
    operands = stage.operands("pidDlLa")
    return operands[0] if operands else None


def _look_above(line: str, above: _Above) -> bool:
    """Note a time stamp, a section line, or the tool's own line; False for any other, which cancels a section."""
    if not line.strip():
        return True
    if found := CLOCK.match(line):
        above.tick(found[1], line.startswith("["))
    elif found := TRACING.match(line):
        above.start(pattern_of(found["pattern"]) if found["pattern"] else found["what"])
    elif (found := SECTION.match(line)) and not (above.argdist and "(" in found["name"]):
        name, value = found["name"], found["value"]
        if second := TWO_KEYS.match(value):  # libbpf's biolatency: `disk = sda\tflags = Read`
            above.name = f"{name} {second['name2']}"
            above.key = f"{_plain(second['value'])} {_plain(second['value2'])}"
        else:
            above.name, above.key = name, _plain(value)
    else:
        above.name = above.key = None
        above.label = line.strip()
        return False
    return True


def _plain(value: str) -> str:
    """Return a section's value without Python's quoting, a long's L, `[AVG 170]` or ` [pid]`."""
    value = re.sub(r" \[(?:AVG )?\d+\]$", "", value.strip())
    value = re.sub(r"^b?(['\"])(.*)\1$", r"\2", value)
    return re.sub(r"^(\d+)L$", r"\1", value)


@cache
def _grammar() -> pp.ParserElement:
    """Return the grammar of a block: each of its results is one line, the header's first."""
    eol = r"(?:\n|$)"
    header = pp.Regex(_HEADER + eol).set_parse_action(lambda found: found["unit"] or "")
    row = pp.Regex(_ROW + eol, as_match=True)
    damaged = pp.Regex(r"[^\n]+" + eol).set_parse_action(lambda: [None])
    block: pp.ParserElement = header + (row | damaged)[...]
    return block.leave_whitespace().parse_with_tabs()


def _read_block(member: str, block: list[tuple[int, str]], above: _Above, parsed: Parsed) -> _Histogram:
    """Return the histogram of a header and the lines under it that look like rows."""
    text = "\n".join(INTERRUPT_ECHO.sub("", raw) for _, raw in block)
    unit, *found = _grammar().parse_string(text)
    histogram = above.open(str(unit))
    bars = list[tuple[int, int, str]]()
    for (number, raw), match in zip(block[1:], found, strict=True):
        if match is None:
            parsed.gaps.append(Gap(member, number, f"a bucket is cut or damaged: {raw.strip()[:80]}"))
            continue
        low, events = integer(match["low"]), integer(match["events"])
        high = integer(match["high"]) if match["high"] else low
        row: Row = {"line": number, "excerpt": excerpt([raw]), "low": low, "high": high, "events": events}
        histogram.rows.append(row)
        bars.append((number, events, match["bar"] if match["end"] else ""))
    parsed.gaps += [Gap(member, number, what) for number, what in _bar_faults(block[0][0], bars)]
    return histogram


def _bar_faults(header: int, bars: list[tuple[int, int, str]]) -> Iterator[tuple[int, str]]:
    """Yield (line, what) where stars and counts disagree; a row is (line, count, bar or "" where it was cut).

    With the full width the largest count of the block is known from any row that reaches it: when none does, the
    row with the largest count is missing.
    """
    rows = [(number, events, bar.count("*"), "+" in bar) for number, events, bar in bars if bar]
    width = max((len(bar) for _, _, bar in bars), default=0)
    if width not in (20, 38, 40) or not any(events for _, events, _, _ in rows):
        return  # blanks were squeezed: a bar has no known full width
    full = {events for _, events, stars, plus in rows if stars + plus >= width}
    if not full:
        yield header, "no bucket has a full bar: the largest bucket of this histogram is missing"
        return

    def wrong(largest: int) -> list[tuple[int, int, int, bool]]:
        return [r for r in rows if not r[3] and (r[1] > largest or r[2] != width * r[1] // max(largest, 1))]

    best = min(sorted(full), key=lambda largest: len(wrong(largest)))
    faults = wrong(best)
    if len(rows) > 3 and len(faults) > len(rows) // 2:
        peak = next(number for number, events, _, _ in rows if events == best)
        yield peak, f"the count {best} contradicts the bars of the other buckets"
        return
    for number, events, stars, _ in faults:
        yield number, f"the count {events} and its bar of {stars} stars contradict each other"


def _footer_faults(footer: re.Match[str], histograms: list[_Histogram]) -> Iterator[str]:
    """Yield how `avg = … total: … count: …` contradicts the buckets since the last footer (all sections of -F).

    The first version of the footer printed `nsecs` whatever the unit was (funclatency, 2020): the unit is the
    header's, and only a total that does not fit it is a fault.
    """
    if not histograms:
        return
    rows = [row for histogram in histograms for row in histogram.rows]
    counted, total = sum(row["events"] for row in rows), integer(footer["total"])
    if counted != integer(footer["count"]):
        yield f"the footer counts {footer['count']} events, the buckets hold {counted}"
        return
    low = sum(row["low"] * row["events"] for row in rows)
    high = sum((row["high"] + 1) * row["events"] for row in rows)
    unit = histograms[-1].unit
    if low <= total <= high:
        return
    scale = SECONDS.get(footer["unit"], 1) / SECONDS.get(unit, 1)
    if footer["unit"] != unit and low <= total * scale <= high:
        yield f"the footer's total is in {footer['unit']}, the histogram in {unit}"
    else:
        yield f"the footer's total of {total} lies outside the {low} to {high} {unit} the buckets allow"


def _read_dictionary(member: str, number: int, raw: str, above: _Above, parsed: Parsed) -> Iterator[_Histogram]:
    """Yield the histogram of one line of `-j`: a Python dictionary, not JSON."""
    try:
        made = ast.literal_eval(INTERRUPT_ECHO.sub("", raw))
        buckets = [(int(e["interval-start"]), int(e["interval-end"]), int(e["count"])) for e in made["data"]]
        clock, unit = str(made["ts"]).rpartition(" ")[2], str(made["val_type"])
    except (ValueError, SyntaxError, KeyError, TypeError, OverflowError, RecursionError, MemoryError):
        parsed.gaps.append(Gap(member, number, "a -j histogram is cut or damaged"))
        return
    if clock != above.clock:
        above.tick(clock, bracketed=False)
    keys = {str(k): v for k, v in made.items() if k not in ("ts", "val_type", "data")}
    above.name = " ".join(keys) or None
    above.key = " ".join(
        v.decode("utf-8", "backslashreplace") if isinstance(v, bytes) else str(v) for v in keys.values()
    )
    above.key = above.key or None
    histogram = above.open(unit)
    shown = excerpt([raw])
    histogram.rows = [
        {"line": number, "excerpt": shown, "low": low, "high": high, "events": events} for low, high, events in buckets
    ]
    yield histogram


def _never_falls(histograms: list[_Histogram]) -> bool:
    """Return whether no bucket ever falls over three or more intervals: then they are running totals."""
    totals: dict[tuple[str | None, str | None, str], list[dict[int, int]]] = {}
    for each in histograms:
        counts = {row["low"]: row["events"] for row in each.rows}
        totals.setdefault((each.metric, each.key, each.unit), []).append(counts)
    return all(
        len(series) >= 3
        and all(after.get(low, 0) >= n for before, after in pairwise(series) for low, n in before.items())
        for series in totals.values()
    ) and bool(totals)
