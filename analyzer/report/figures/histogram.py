"""Latency and size histograms of bcc and bpftrace as bars."""

from __future__ import annotations

from itertools import groupby

from analyzer.case import Case
from analyzer.report.figures.shapes import Figure, Record, bars, number, place, plural, records, share

MAX_CHARTS = 8
MAX_BUCKETS = 40


def figures(case: Case) -> list[Figure]:
    """Return one figure for each histogram, in the order of the bundle, at most MAX_CHARTS."""
    columns = ("tool", "metric", "key", "clock", "interval", "unit", "low", "high", "events", "cumulative")
    rows = [row for row in records(case, "histogram", *columns) if row["events"] is not None]
    drawn: list[Figure] = []
    charts = [list(group) for _, group in groupby(rows, key=_chart)]
    for number_, buckets in enumerate(charts[:MAX_CHARTS]):
        last = number_ == MAX_CHARTS - 1 and len(charts) > MAX_CHARTS
        left_out = f"{plural(len(charts) - MAX_CHARTS, 'more histogram')} in the analysis" if last else ""
        drawn.append(_figure(f"histogram-{number_ + 1}", buckets, left_out))
    return drawn


def _chart(row: Record) -> tuple[object, ...]:
    """Return what the buckets of one printed histogram have in common."""
    return (row["member"], row["tool"], row["metric"], row["key"], row["clock"], row["interval"], row["unit"])


def _figure(anchor: str, buckets: list[Record], left_out: str) -> Figure:
    """Return the figure of one histogram."""
    total = sum(bucket["events"] for bucket in buckets)
    mode = max(buckets, key=lambda bucket: bucket["events"])
    shown = buckets[:MAX_BUCKETS]
    unit = str(mode["unit"] or "")
    items = [
        (_range(row), float(row["events"]), number(row["events"]), "strong" if row is mode else "plain")
        for row in shown
    ]
    name = " ".join(str(mode[part]) for part in ("tool", "metric", "key") if mode[part])
    when = f" at {mode['clock']}" if mode["clock"] else ""
    caption = "Nothing was counted."
    if total:
        part = share(mode["events"], total)
        caption = f"Most often {_range(mode)} {unit}: {number(mode['events'])} of {number(total)}, {part}."
    caption += " The counts add up from one interval to the next." if mode["cumulative"] else ""
    rows = [[_range(row), number(row["events"]), share(row["events"], total), place(row)] for row in shown]
    head = (unit or "bucket", "events", "share", "where")
    return Figure(
        anchor, "bars", name + when, caption, bars(items, unit=unit), head, rows, f"{place(buckets[0])}", left_out
    )


def _range(row: Record) -> str:
    """Return the bounds of a bucket as the tools write them."""
    if row["high"] is None or row["low"] == row["high"]:
        return number(row["low"])
    return f"{number(row['low'])} – {number(row['high'])}"
