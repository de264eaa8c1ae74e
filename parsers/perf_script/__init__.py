"""`perf script`: one event a line, with or without call chains, summed up.

     python3  5484 [001]  2815.309417: timer:timer_start: timer=0xffff8881d75f8db8 function=tcp_delack_timer expires=…
     python3  5484 [001]  2815.309424: timer:timer_start: timer=0xffff8881d75f8450 function=tcp_write_timer expires=…

Tables: `perf_sample` (every event), `timer` (timer:timer_start by timer function), `perf_record` (what perf record said
of itself), and `stack` where call chains are printed. Format: perf's builtin-script.c, 4.9 to 6.x, see `event`; the
payload of the timer events is the kernel's, include/trace/events/timer.h: `timer=%p function=%ps expires=%lu …`.
"""

from __future__ import annotations

import re
from collections import Counter

from parsers.command import command_of, stages
from parsers.perf_script.event import BEGINS, text, who
from parsers.perf_script.reading import MAX_DAMAGE, MAX_GROUPS, Reading, Sum, read
from parsers.perf_script.record import recording, sample_faults
from parsers.shapes import Capture, Column, Gap, Parsed, Row, Table

__all__ = ["BEGINS", "CAPTURES", "TABLES", "parse", "sniff"]

_WHO = {
    "event": Column("str", "the event, e.g. timer:timer_start"),
    "comm": Column("str", "name of the thread, missing where the capture does not tell"),
    "pid": Column("Int64", "process id; missing where only the thread's id was printed, which is perf's default"),
}
_TIMES = {
    "events": Column("Int64", "how many"),
    "first_s": Column("Float64", "time stamp of the first, seconds since boot or since the first event"),
    "last_s": Column("Float64", "time stamp of the last"),
}
TABLES = {
    "perf_sample": Table(
        "the samples of one event in one thread",
        _WHO
        | {
            "tid": Column("Int64", "thread id"),
            "cpu": Column("Int64", "the CPU, missing where there were several"),
            "period": Column("Int64", "sum of the printed periods, missing where none were printed"),
        }
        | _TIMES,
    ),
    "timer": Table(
        "the starts of timers with one timer function, by one process where the capture tells it",
        {
            "source": Column("str", "`perf script`, or `uniq -c` of it"),
            "function": Column("str", "the timer function, e.g. tcp_write_timer"),
            "function_events": Column("Int64", "starts with this function in the whole capture, by any process"),
            "duration_s": Column("Float64", "length of the recording: `-- sleep N`, perf's header, else last - first"),
            "traced_pid": Column("Int64", "the process that was traced, by -p"),
        }
        | _WHO
        | _TIMES,
    ),
    "perf_record": Table(
        "what perf record printed at its end",
        {
            "samples": Column("Int64", "perf's own count of samples"),
            "megabytes": Column("Float64", "size of perf.data, MB"),
            "woken": Column("Int64", "how often perf record woke up to write"),
            "command": Column("str", "the command it belongs to"),
        },
    ),
}
CAPTURES = dict.fromkeys(TABLES, ("a trace by perf", "perf record -e timer:timer_start -a -- sleep 10 && perf script"))


def sniff(head: str) -> bool | None:
    """Return whether a head holds perf script's header block or an event line; `… | uniq -c` is uniq_counts'."""
    stages_ = stages(command_of(head))
    if any(stage.tool == "uniq" for stage in stages_):
        return False
    if BEGINS.search(head.encode("utf-8", "replace")):
        return True
    script = any(stage.tool == "perf" and stage.words[:1] == ["script"] for stage in stages_)
    return None if script and head.count("\n") < 4 else False


def parse(capture: Capture) -> Parsed:
    """Return `perf_sample` rows, and `timer`, `stack`, `perf_record` and `log_loss` rows where there are such lines.

    Gaps: events lost by perf, damaged event lines, a cut last line, more than MAX_GROUPS threads or stacks, and a
    number of samples that differs from perf record's own.
    """
    reading = read(capture)
    parsed = Parsed({"perf_sample": _sample_rows(reading)}, reading.gaps + capture.gaps())
    commands = capture.command + reading.meta.get("cmdline", "")
    if "timer_start" in commands or any(event == b"timer:timer_start" for _, event, _ in reading.sums):
        parsed.rows["timer"] = _timer_rows(reading)
    if reading.chains:
        parsed.rows["stack"] = _stack_rows(reading)
    if reading.losses:
        parsed.rows["log_loss"] = reading.losses
    if reading.records:
        parsed.rows["perf_record"] = reading.records
        total = sum(each.events for each in reading.sums.values())
        parsed.gaps += sample_faults(capture.member, reading.records, total + reading.beyond)
    if host := reading.meta.get("hostname"):
        for row in (row for rows in parsed.rows.values() for row in rows):
            row["host"] = host
    parsed.gaps += [Gap(capture.member, 0, what) for what in _uncounted(reading)]
    return parsed


def _uncounted(reading: Reading) -> list[str]:
    """Return what was seen and is in no row."""
    said = []
    if reading.damaged > MAX_DAMAGE:
        said.append(f"{reading.damaged - MAX_DAMAGE} more lines are damaged events")
    if reading.beyond:
        said.append(f"{reading.beyond} events belong to threads or stacks beyond the first {MAX_GROUPS}: not listed")
    return said


def _sample_rows(reading: Reading) -> list[Row]:
    """Return a row for each event and thread; its CPU only where it ran on one."""
    made: dict[tuple[object, ...], Sum] = {}
    cpus: dict[tuple[object, ...], set[int | None]] = {}
    for (head, event, _), each in reading.sums.items():
        name = who(head)
        key = (text(event), name.comm, name.pid, name.tid)
        made.setdefault(key, Sum(each.line, each.shown)).merge(each)
        cpus.setdefault(key, set()).add(name.cpu)
    return [
        _row(each, ("event", "comm", "pid", "tid"), key)
        | {"period": each.period, "cpu": next(iter(cpus[key])) if len(cpus[key]) == 1 else None}
        for key, each in made.items()
    ]


def _timer_rows(reading: Reading) -> list[Row]:
    """Return a row for each timer function and process that started such timers."""
    made: dict[tuple[object, ...], Sum] = {}
    for (head, event, function), each in reading.sums.items():
        if event == b"timer:timer_start" and function:
            name = who(head)
            key = (text(event), text(function), name.comm, name.pid)
            made.setdefault(key, Sum(each.line, each.shown)).merge(each)
    totals = Counter[object]()
    for own, each in made.items():
        totals[own[1]] += each.events
    shared = {"source": "perf script", "duration_s": _duration_s(reading), "traced_pid": _traced_pid(reading)}
    return [
        _row(each, ("event", "function", "comm", "pid"), own) | {"function_events": totals[own[1]]} | shared
        for own, each in made.items()
    ]


def _stack_rows(reading: Reading) -> list[Row]:
    """Return a row for each event, process and call chain."""
    made: dict[tuple[object, ...], Sum] = {}
    for (head, event, frames), each in reading.chains.items():
        name = who(head)
        key: tuple[object, ...] = (text(event), name.comm, name.pid, frames)
        made.setdefault(key, Sum(each.line, each.shown)).merge(each)
    rows = []
    for own, each in made.items():
        row = _row(each, ("traced", "comm", "pid", "frames"), own) | {"tool": "perf script", "interval": 0}
        rows.append({name: value for name, value in row.items() if name not in ("first_s", "last_s")})
    return rows


def _row(each: Sum, names: tuple[str, ...], key: tuple[object, ...]) -> Row:
    """Return the columns that every kind of row has."""
    row: Row = {"line": each.line, "excerpt": each.shown, "events": each.events}
    return row | {"first_s": each.first_s, "last_s": each.last_s} | dict(zip(names, key, strict=True))


def _duration_s(reading: Reading) -> float | None:
    """Return how long the recording lasted: by the command, by perf's header, else from first to last event."""
    told = recording(reading.capture.command)[0] or recording(reading.meta.get("cmdline", ""))[0]
    if told is None and (
        span := re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?) ms", reading.meta.get("sample duration", ""))
    ):
        told = float(span[1]) / 1000
    starts = [each.first_s for each in reading.sums.values() if each.first_s is not None]
    ends = [each.last_s for each in reading.sums.values() if each.last_s is not None]
    return told if told is not None or not starts else round(max(ends) - min(starts), 9)


def _traced_pid(reading: Reading) -> int | None:
    """Return the process perf record was told to trace."""
    return recording(reading.capture.command)[1] or recording(reading.meta.get("cmdline", ""))[1]
