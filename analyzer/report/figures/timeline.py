"""The timeline: one swim lane for each kind of event, instants as diamonds, lengths as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from analyzer.case import Case
from analyzer.findings import SEVERITIES
from analyzer.report.figures.axis import Axis, axis
from analyzer.report.figures.shapes import Figure, Record, duration, number, place, plural, records, stamp, words

WIDTH, LEFT, RIGHT = 960, 196, 60
LANE, TOP = 28, 8
ROW, MAX_BESIDE = 17, 6
"""Height of a row of bars within a lane, and how many rows a lane may have; further bars share the last."""
NEAR = 7.0
"""Instants closer than this many pixels are drawn as one diamond with their number."""
MAX_LANES = 24
LONGEST = 30 * 86_400.0
"""The longest bar by wall clock, in seconds."""
MAX_ROWS = 200
"""Rows of the data table; the rest is in the tables of the analysis."""


class Mark(NamedTuple):
    """One diamond or bar."""

    x: float
    y: float
    """Below the top of its lane: bars that overlap stand below each other."""
    width: float
    """0 for an instant."""
    severity: str
    events: int
    title: str


class Lane(NamedTuple):
    """One kind of event."""

    label: str
    y: float
    height: float
    marks: Sequence[Mark]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The drawing, in a viewBox of `width` x `height`."""

    lanes: Sequence[Lane]
    ticks: Sequence[tuple[float, str]]
    breaks: Sequence[tuple[float, str]]
    """Where an empty stretch of the axis was left out, and how long it is."""
    width: float
    height: float
    left: float


class Happened(NamedTuple):
    """One event with its clock reading in seconds."""

    kind: str
    severity: str
    seconds: float
    lasted: float
    """How long the bar is; never longer than the host was up."""
    length: str
    """How long it lasted, in words; empty for an instant."""
    where: str
    text: str


def figures(case: Case) -> list[Figure]:
    """Return the timelines: one by wall clock, one by uptime for what has no other clock."""
    lengths = _lengths(case)
    rows = records(case, "kernel_event", "kind", "severity", "text", "at", "uptime_s")
    rows += [
        row | {"kind": "messages_lost", "severity": "medium", "text": f"{number(row['lost'])} lost ({row['kind']})"}
        for row in records(case, "log_loss", "kind", "lost", "at", "uptime_s")
    ]
    wall = [_happened(row, lengths, row["at"].timestamp()) for row in rows if row["at"] is not None]
    up = [_happened(row, lengths, row["uptime_s"]) for row in rows if row["at"] is None and row["uptime_s"] is not None]
    made = []
    if wall:
        made.append(_figure("timeline-wall", "By wall clock (UTC)", wall, wall_clock=True))
    if up:
        made.append(_figure("timeline-uptime", "By seconds since boot", up, wall_clock=False))
    return made


def _lengths(case: Case) -> dict[tuple[str, int], tuple[float, str]]:
    """Return how long the thing reported at (member, line) had lasted by then, in seconds and in words."""
    known: dict[tuple[str, int], tuple[float, str]] = {}
    for table, column, unit, least in (
        ("alloc_stall", "duration_ms", 1000, ""),
        ("rcu_stall", "duration_min_s", 1, "at least "),
        ("rcu_stall", "duration_s", 1, ""),
        ("hung_task", "duration_s", 1, ""),
    ):
        for row in records(case, table, column):
            if row[column] is not None:
                seconds = float(row[column]) / unit
                known[(row["member"], row["line"])] = seconds, f"{least}{duration(seconds)}"
    return known


def _happened(row: Record, lengths: dict[tuple[str, int], tuple[float, str]], seconds: float) -> Happened:
    """Return the event of a row."""
    severity = row["severity"] if row["severity"] in SEVERITIES else "info"
    lasted, length = lengths.get((row["member"], row["line"]), (0.0, ""))
    drawn = min(lasted, LONGEST if row["uptime_s"] is None else row["uptime_s"])  # a garbled number is not drawn
    return Happened(str(row["kind"]), severity, float(seconds), drawn, length, place(row), str(row["text"] or ""))


def _figure(anchor: str, title: str, events: list[Happened], *, wall_clock: bool) -> Figure:
    """Return the timeline of events that share a clock."""
    events.sort(key=lambda event: (event.seconds, event.where))
    along = axis([(event.seconds - event.lasted, event.seconds) for event in events], LEFT, WIDTH - RIGHT)
    kinds: dict[str, list[Happened]] = {}
    for event in sorted(events, key=lambda event: event.seconds - event.lasted):
        kinds.setdefault(event.kind, []).append(event)
    lanes: list[Lane] = []
    y = float(TOP)
    for kind, found in list(kinds.items())[:MAX_LANES]:
        marks = _marks(found, along, wall_clock)
        lanes.append(Lane(words(kind), y, LANE + max(mark.y for mark in marks), marks))
        y += lanes[-1].height
    ticks = [(x, _tick(at, step, along.span, wall_clock)) for x, at, step in along.ticks()]
    breaks = [(x, f"{duration(left_out)} without events") for x, left_out in along.breaks()]
    chart = Timeline(lanes, ticks, breaks, WIDTH, y + 30, LEFT)
    rows = [
        [
            _clock(e.seconds, wall_clock),
            words(e.kind),
            e.severity,
            e.length,
            e.text,
            e.where,
        ]
        for e in events[:MAX_ROWS]
    ]
    left_out = [f"{plural(len(kinds) - MAX_LANES, 'kind')} not drawn"] if len(kinds) > MAX_LANES else []
    left_out += [f"{len(events) - MAX_ROWS:,} later events not in the table"] if len(events) > MAX_ROWS else []
    head = ("when" if wall_clock else "uptime", "kind", "severity", "lasted", "message", "where")
    return Figure(
        anchor, "timeline", title, _caption(events, wall_clock, breaks), chart, head, rows, left_out="; ".join(left_out)
    )


def _marks(events: list[Happened], along: Axis, wall_clock: bool) -> list[Mark]:
    """Return the marks of one lane; instants that would overlap become one, bars go below each other."""
    marks: list[Mark] = []
    ends: list[float] = []  # where the last bar of each row of this lane ends
    for event in events:
        x = along.x(event.seconds - event.lasted)
        title = f"{_clock(event.seconds, wall_clock)}: {event.text} ({event.where})"
        if event.lasted:
            width = max(along.x(event.seconds) - x, 3.0)
            row = next((row for row, taken in enumerate(ends) if taken + NEAR < x), len(ends))
            row = min(row, MAX_BESIDE - 1)
            ends[row : row + 1] = [x + width]
            title = f"lasted {event.length} until {title}"
            marks.append(Mark(x, row * ROW, width, event.severity, 1, title))
        elif marks and not marks[-1].width and x - marks[-1].x < NEAR:
            last = marks[-1]
            worst = max(last.severity, event.severity, key=SEVERITIES.index)
            marks[-1] = last._replace(severity=worst, events=last.events + 1)
        else:
            marks.append(Mark(x, 0, 0, event.severity, 1, title))
    return marks


def _tick(at: float, step: float, span: float, wall_clock: bool) -> str:
    """Return the label of a tick."""
    if not wall_clock:
        return f"{at:,.0f} s"
    form = "%Y-%m-%d" if step >= 86400 else "%H:%M:%S" if step < 60 else "%H:%M"
    return stamp(pd.Timestamp(at, unit="s"), form if span < 86400 or step >= 86400 else f"%m-%d {form}")


def _clock(seconds: float, wall_clock: bool) -> str:
    """Return a clock reading as written in tables."""
    return stamp(pd.Timestamp(seconds, unit="s")) if wall_clock else f"{seconds:,.3f} s"


def _caption(events: list[Happened], wall_clock: bool, breaks: Sequence[tuple[float, str]]) -> str:
    """Return what the timeline shows: the first event, the longest, the span."""
    first = min(events, key=lambda event: event.seconds - event.lasted)
    longest = max(events, key=lambda event: event.lasted)
    span = events[-1].seconds - events[0].seconds
    parts = [f"{words(first.kind)} begins first"] if len({event.kind for event in events}) > 1 else [words(first.kind)]
    if longest.lasted:
        parts.append(f"the longest wait reported is {longest.length} ({words(longest.kind)}, {longest.where})")
    parts.append(f"{plural(len(events), 'event')} within {duration(span)}" if span else plural(len(events), "event"))
    members = {event.where.rpartition(":")[0] for event in events}
    caption = "; ".join(parts) + "."
    if breaks:
        caption += f" The axis leaves out {' and '.join(label for _, label in breaks)} (//)."
    if not wall_clock and len(members) > 1:
        caption += f" The {len(members)} members share this axis, though they may be of different boots."
    return caption
