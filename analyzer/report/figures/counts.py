"""Counted functions and timers as bars."""

from __future__ import annotations

from itertools import groupby

from analyzer.case import Case
from analyzer.report.figures.shapes import Figure, Record, bars, number, place, plural, records, share
from analyzer.report.visible import one_line

MAX_BARS = 14


def functions(case: Case) -> list[Figure]:
    """Return one figure for the rates of all counted functions; whole intervals only."""
    rows = [
        row
        for row in records(case, "func_count", "function", "events", "interval_s", "partial")
        if row["events"] is not None
    ]
    if not rows:
        return []
    by_name = {name: list(group) for name, group in groupby(sorted(rows, key=_member_and_name), key=_member_and_name)}
    counted = sorted(((_rate(group), group) for group in by_name.values()), key=lambda pair: -pair[0])
    timed = any(row["interval_s"] for row in rows)
    unit = "calls a second" if timed else "calls"
    items = [(str(group[0]["function"]), rate, number(round(rate)), "plain") for rate, group in counted[:MAX_BARS]]
    rate, group = counted[0]
    caption = f"{one_line(str(group[0]['function']), 60)} was called most: {number(round(rate))} {unit}"
    if len(group) > 1:
        events = [row["events"] for row in group]
        caption += f", mean of {len(group)} intervals between {number(min(events))} and {number(max(events))}"
    table = [
        [
            str(row["function"]),
            number(row["events"]),
            number(row["interval_s"]),
            "cut" if row["partial"] else "",
            place(row),
        ]
        for _, group in counted[:MAX_BARS]
        for row in group[:40]
    ]
    left_out = f"{plural(len(counted) - MAX_BARS, 'more function')} counted" if len(counted) > MAX_BARS else ""
    head = ("function", "calls", "interval, s", "", "where")
    return [
        Figure(
            "functions", "bars", "Counted functions", caption + ".", bars(items, unit=unit), head, table, "", left_out
        )
    ]


def _member_and_name(row: Record) -> tuple[str, str]:
    return str(row["member"]), str(row["function"])


def _rate(group: list[Record]) -> float:
    """Return the mean of the whole intervals, per second where their length is known."""
    whole = [row for row in group if not row["partial"]] or group
    rates = [row["events"] / (row["interval_s"] or 1) for row in whole]
    return float(sum(rates) / len(rates))


def timers(case: Case) -> list[Figure]:
    """Return one figure for each member that counts timers by function."""
    drawn = []
    rows = [row for row in records(case, "timer", "function", "comm", "pid", "events") if row["events"] is not None]
    for index, (member, group) in enumerate(groupby(rows, key=lambda row: str(row["member"])), 1):
        found = sorted(group, key=lambda row: -row["events"])
        total = sum(row["events"] for row in found)
        items = [(_timer(row), float(row["events"]), number(row["events"]), "plain") for row in found[:MAX_BARS]]
        top = found[0]
        part = share(top["events"], total)
        caption = f"{one_line(str(top['function']), 60)} makes {part} of the {number(total)} timer events counted."
        table = [[_timer(row), number(row["events"]), share(row["events"], total), place(row)] for row in found[:60]]
        left_out = f"{plural(len(found) - MAX_BARS, 'rarer timer')} not drawn" if len(found) > MAX_BARS else ""
        head = ("timer function", "events", "share", "where")
        drawn.append(Figure(f"timers-{index}", "bars", "Timers", caption, bars(items), head, table, member, left_out))
    return drawn


def _timer(row: Record) -> str:
    """Return the timer's function, with who set it where that is known."""
    return f"{row['function']} ({row['comm']})" if row["comm"] else str(row["function"])
