"""bcc's funccount: how often each function, tracepoint or probe was called, per interval.

    $ sudo /usr/share/bcc/tools/funccount -T -i 1 tcp_push_one
    Tracing 1 functions for "tcp_push_one"... Hit Ctrl-C to end.

    03:37:14
    FUNC                                    COUNT
    tcp_push_one                              496

Table: `func_count`. Format: bcc, tools/funccount.py: `%-36s %8s` since 2016, `ADDR FUNC COUNT` before (2015). A
function that was not called is not printed, so absent means 0; each block counts from zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from parsers.bcc import CLOCK, NOTICES, TRACING, lost, pattern_of
from parsers.command import command_of, stage_of
from parsers.shapes import INTERRUPT_ECHO, Capture, Column, Gap, Parsed, Row, Table, excerpt, integer

TABLES = {
    "func_count": Table(
        "one counted name in one interval; a name that is absent was not called",
        {
            "tool": Column("str", "the tool that counted: funccount"),
            "traced": Column("str", "the pattern that was traced, as given"),
            "function": Column("str", "the counted function, tracepoint or probe"),
            "events": Column("Int64", "calls in this interval"),
            "interval": Column("Int64", "number of the interval in the capture, from 0"),
            "clock": Column("str", "HH:MM:SS printed before the interval, local time of the host"),
            "interval_s": Column("Float64", "length of an interval by -i, else of the run by -d; missing if neither"),
            "partial": Column("boolean", "the interval was cut short by Ctrl-C, so its rate is too low"),
        },
    )
}
CAPTURES = dict.fromkeys(TABLES, ("call counts", "funccount -T -i 1 FUNCTION"))

_HEADER = r"(?:ADDR[ \t]+)?FUNC[ \t]+COUNT[ \t]*"
HEADER = re.compile(rf"^{_HEADER}$")
BEGINS = re.compile(
    rb"^(?:Tracing (?:\d+ functions for \"|\.\.\.)[^\n]*\n(?:[ \t\r]*\n|\^C\r?\n)*)?"
    rb"(?:\d\d:\d\d:\d\d[ \t\r]*\n)?(?:\^C)?" + _HEADER.encode() + rb"\r?$",
    re.MULTILINE,
)

ROW = re.compile(r"^(?P<name>\S+|\S.{0,400}?(?=[ \t]{2,})|\S.{0,300}[(<:].{0,100}?)[ \t]+(?P<events>\d+)[ \t]*$")
"""A name may hold blanks (C++): then it is told from prose by its padding or its punctuation."""
ADDRESS = re.compile(r"^[0-9a-f]{8,16}[ \t]+(?=\S)")


@dataclass(slots=True)
class _Block:
    """What stands under one header."""

    interval: int
    clock: str | None
    interrupted: bool
    rows: list[Row] = field(default_factory=list)


def sniff(head: str) -> bool | None:
    """Return whether a head holds funccount's header, or its command and the line it prints when attached."""
    if any(HEADER.match(INTERRUPT_ECHO.sub("", line).rstrip("\r")) for line in head.split("\n")):
        return True
    if not stage_of(command_of(head), ("funccount",)):
        return False
    return "\nTracing" in head or (None if head.count("\n") < 2 else False)


def parse(capture: Capture) -> Parsed:
    """Return `func_count` rows. A row without a count, a loss marker and a cut last line become gaps.

    `partial` is true only for an interval that Ctrl-C ended early: its block follows a `^C` of a run with -i, or its
    clock comes sooner than -i says. The first interval starts when the probes are attached, so it is whole.
    """
    stage = stage_of(capture.command, ("funccount",))
    operands = stage.operands("pidDcT") if stage else []
    traced = operands[-1] if operands else None
    interval_s = stage.number("i", "interval") or stage.number("d", "duration") if stage else None
    blocks = list[_Block]()
    parsed = Parsed({"func_count": []})
    for tracing in _read(capture, blocks, parsed):
        traced = tracing
    timed = bool(stage and stage.number("i", "interval"))
    for before, block in zip([None, *blocks], blocks, strict=False):
        partial = timed and (block.interrupted or _early(before, block, interval_s or 0))
        for row in block.rows:
            own: Row = {"tool": "funccount", "traced": traced, "interval_s": interval_s, "partial": partial}
            parsed.rows["func_count"].append(row | own | {"interval": block.interval, "clock": block.clock})
    parsed.gaps += capture.gaps()
    return parsed


def _read(capture: Capture, blocks: list[_Block], parsed: Parsed) -> Iterator[str]:
    """Fill `blocks` until a line that cannot belong to a run of funccount; yield the traced pattern when told."""
    clock, interrupted, inside, width = None, False, False, 0
    for number, raw in capture.whole_lines():
        line = INTERRUPT_ECHO.sub("", raw)
        interrupted = interrupted or line != raw
        if found := CLOCK.match(line):
            clock, inside = found[1], False
        elif HEADER.match(line):
            blocks.append(_Block(len(blocks), clock, interrupted))
            clock, inside, width = None, True, len(line.rstrip())
        elif loss := lost(capture.member, number, line):
            parsed.gaps.append(loss[0])
            parsed.rows.setdefault("log_loss", []).append(loss[1])
        elif (found := TRACING.match(line)) and not blocks:
            if found["pattern"]:
                yield pattern_of(found["pattern"])
        elif not line.strip() or NOTICES.match(line):
            inside = inside and bool(line.strip()) and not line.startswith("Detaching")
        elif (inside or len(line.rstrip()) == width) and (found := ROW.match(line)):
            row: Row = {"line": number, "excerpt": excerpt([raw]), "function": ADDRESS.sub("", found["name"])}
            blocks[-1].rows.append(row | {"events": integer(found["events"])})
        elif inside and len(line.split()) <= 2:
            parsed.gaps.append(Gap(capture.member, number, f"a row without a count: {line.strip()[:80]}"))
        elif blocks:
            return


def _early(before: _Block | None, block: _Block, interval_s: float) -> bool:
    """Return whether a block's clock follows the one before sooner than the interval, which clocks show to 1 s."""
    if not (before and before.clock and block.clock):
        return False
    try:
        start, end = (datetime.strptime(each, "%H:%M:%S") for each in (before.clock, block.clock))
    except ValueError:  # 99:99:99 in a damaged capture
        return False
    return (end - start).seconds < interval_s - 1
