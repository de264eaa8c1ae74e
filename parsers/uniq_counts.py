"""`… | sort | uniq -c`: how often each line came out of a pipeline.

    $ trace -p 3416 'tcp_sendmsg "%d", arg3' -T -M 100000 | awk '{ print $NF }' | sort | uniq -c | sort -n | tail
       2181 38
      19052 44
      64504 4096

Table: `value_count`; of a `perf script` of timer:timer_start, `timer` and `perf_record` instead. Format: GNU
coreutils, src/uniq.c: `%7d` and the line. What the lines mean stands in the command only: the traced function and its
argument (bcc's trace), the limit on events (-M), and whether `tail` or `head` kept a part of the list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from parsers.bcc import lost
from parsers.command import Stage, command_of, stages
from parsers.perf_script.record import read_record, recording, sample_faults
from parsers.shapes import INTERRUPT_ECHO, Capture, Column, Gap, Parsed, Row, Table, excerpt, integer

TABLES = {
    "value_count": Table(
        "one value and how often it was seen",
        {
            "tool": Column("str", "the first tool of the pipeline: trace, awk …"),
            "command": Column("str", "the whole pipeline, missing where it is not known"),
            "function": Column("str", "the traced function (bcc's trace)"),
            "argument": Column("str", "what was printed of it, as given: a format and its arguments"),
            "value": Column("str", "the counted line"),
            "number": Column("Float64", "the value, where it is a number"),
            "events": Column("Int64", "how often it was seen"),
            "truncated": Column("boolean", "tail or head kept a part of the list: an absent value is not 0"),
            "limit": Column("Int64", "trace stopped after so many events (-M): counts are shares, not rates"),
        },
    )
}
CAPTURES = {
    "value_count": (
        "counted arguments of a function",
        "trace -M 100000 'FUNCTION \"%d\", arg3' | awk '{print $NF}' | sort | uniq -c",
    )
}

ROW = re.compile(r"^[ \t]*(?P<events>\d+)[ \t](?P<value>.*?)[ \t]*$")
GNU_ROW = re.compile(r"^(?:(?=[ \d]{6}\d \S) *\d{1,7}|\d{8,12}) \S")
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$")
PROBE = re.compile(
    r"^(?:[prtu]:(?:[^:\s]*:)?)?(?P<function>[\w.:$@*]+)(?:\(.*?\))?\s*(?:\(.*?\)\s*)?(?P<argument>\".*)?$"
)
BEGINS = re.compile(rb"^(?:\[ perf record: [^\n]*\n)?(?:(?=[ \d]{6}\d \S) *\d{1,7} \S[^\n]*\n){3}", re.MULTILINE)
MIN_ROWS = 3
"""Without the command, this many lines of GNU's width make a list of counts."""


@dataclass(frozen=True, slots=True)
class _Pipeline:
    """What the command says about the counts."""

    stages: list[Stage]
    uniq: int
    """Which stage is `uniq -c`, -1 if none."""

    @property
    def truncated(self) -> bool:
        """Return whether a part of the list was kept."""
        return any(stage.tool in ("tail", "head") for stage in self.stages[self.uniq + 1 :])

    @property
    def timers(self) -> bool:
        """Return whether a perf script of timer starts is counted by function."""
        words = [word for stage in self.stages[: self.uniq] for word in stage.words]
        script = any(stage.tool == "perf" and "script" in stage.words[:2] for stage in self.stages[: self.uniq])
        return script and any("timer_start" in word or "function=" in word for word in words)


def _pipeline(command: str) -> _Pipeline:
    made = stages(command)
    uniq = (at for at, stage in enumerate(made) if stage.tool == "uniq" and stage.flag("c", "count"))
    return _Pipeline(made, next(uniq, -1))


def sniff(head: str) -> bool | None:
    """Return whether the command counts with `uniq -c`, or without a command, all lines are unmistakably counts."""
    if command := command_of(head):
        return _pipeline(command).uniq >= 0
    lines = [line.rstrip("\r") for line in head.split("\n")[:-1]]
    found = [GNU_ROW.match(line) for line in lines if line.strip() and "[ perf record: " not in line]
    if len(found) < MIN_ROWS or not all(found):
        return False
    values = [line.split(None, 1)[1] for line in lines if GNU_ROW.match(line)]
    # `wc -l` prints columns too, but ends in a total; a value comes once, unless uniq was given unsorted lines.
    return len(set(values)) == len(values) and values[-1] != "total"


def parse(capture: Capture) -> Parsed:
    """Return `value_count` rows, or `timer` and `perf_record` rows where the command counts timer starts.

    Gaps: a cut last line, a row without a count, loss markers, and a sum that differs from perf record's own count.
    The first line that cannot belong ends the capture.
    """
    pipeline = _pipeline(capture.command)
    records, rows, losses, gaps = list[Row](), list[Row](), list[Row](), list[Gap]()
    for number, raw in capture.whole_lines():
        line = INTERRUPT_ECHO.sub("", raw)
        if loss := lost(capture.member, number, line):
            gaps.append(loss[0])
            losses.append(loss[1])
        elif found := ROW.match(line):
            shown = {"line": number, "excerpt": excerpt([raw])}
            rows.append(shown | {"value": found["value"], "events": integer(found["events"])})
        elif read_record(number, raw, capture.command, records) or not line.strip():
            continue
        elif rows and not re.match(r"[ \t]{2,}\S", line):
            break
        elif rows:
            gaps.append(Gap(capture.member, number, f"a row without a count: {line.strip()[:80]}"))
    gaps += capture.gaps()
    if pipeline.timers:
        tables = {"timer": [_timer(row, capture.command) for row in rows]}
        if not pipeline.truncated:
            gaps += sample_faults(capture.member, records, sum(row["events"] for row in rows))
    else:
        shared = _shared(pipeline, capture.command)
        tables = {"value_count": [row | shared | _number(row["value"]) for row in rows]}
    extra = {"perf_record": records, "log_loss": losses}
    return Parsed(tables | {name: found for name, found in extra.items() if found}, gaps)


def _timer(row: Row, command: str) -> Row:
    """Return a row of `timer`."""
    duration_s, pid = recording(command)
    own = {"source": "uniq -c", "event": "timer:timer_start", "function": row["value"], "events": row["events"]}
    own["function_events"] = row["events"]
    return {"line": row["line"], "excerpt": row["excerpt"]} | own | {"duration_s": duration_s, "traced_pid": pid}


def _number(value: str) -> Row:
    """Return the `number` column, where the value is one."""
    return {"number": float(value)} if NUMBER.match(value) else {}


def _shared(pipeline: _Pipeline, command: str) -> Row:
    """Return the columns that come from the command."""
    if not pipeline.stages:
        return {}
    first = pipeline.stages[0]
    row: Row = {"tool": first.tool, "command": command, "truncated": pipeline.truncated}
    if first.tool != "trace":
        return row
    if (limit := first.number("M", "max-events")) is not None:
        row["limit"] = int(limit)
    probes = first.operands("pLcMbAfnsI")
    if probes and (found := PROBE.match(probes[0])):
        row |= {"function": found["function"], "argument": found["argument"]}
    return row
