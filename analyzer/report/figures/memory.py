"""Mem-Info as bars: free memory by zone beside its watermark, free blocks by order."""

from __future__ import annotations

from itertools import groupby

from analyzer.case import Case
from analyzer.report.figures.shapes import Figure, Record, bars, number, place, plural, records

MAX_CHARTS = 4
PAGE_KB = 4
"""The size of a page of order 0 on x86 and most others; only the bar lengths depend on it, never a conclusion."""


def zones(case: Case) -> list[Figure]:
    """Return one figure for each Mem-Info dump: free memory of each zone against its `min` watermark."""
    rows = [
        row
        for row in records(case, "meminfo_zone", "node", "zone", "free_kb", "min_kb")
        if row["free_kb"] is not None and row["zone"]
    ]
    dumps = [list(group) for _, group in groupby(rows, key=lambda row: row["member"])]
    return [_zones(f"zones-{index}", dump) for index, dump in enumerate(dumps[:MAX_CHARTS], 1)]


def _zones(anchor: str, rows: list[Record]) -> Figure:
    """Return the figure of the first dump of a member, the zones in their order."""
    seen: dict[str, Record] = {}
    for row in rows:
        seen.setdefault(_zone(row), row)
    items = []
    for name, row in seen.items():
        items.append(
            (f"{name} free", float(row["free_kb"]), f"{number(row['free_kb'])} kB", "strong" if _low(row) else "plain")
        )
        if row["min_kb"] is not None:
            items.append((f"{name} min", float(row["min_kb"]), f"{number(row['min_kb'])} kB", "faint"))
    low = [name for name, row in seen.items() if _low(row)]
    caption = (
        f"{', '.join(low)} below the min watermark."
        if low
        else f"Of the {plural(len(seen), 'zone')} printed none is below its min watermark."
    )
    table = [[_zone(row), number(row["free_kb"]), number(row["min_kb"]), place(row)] for row in rows[:60]]
    more = len(rows) - len(seen)
    left_out = f"{plural(more, 'zone line')} of later dumps in the table only" if more else ""
    head = ("node, zone", "free, kB", "min, kB", "where")
    return Figure(anchor, "bars", "Free memory by zone", caption, bars(items), head, table, place(rows[0]), left_out)


def _zone(row: Record) -> str:
    return f"Node {row['node']} {row['zone']}"


def _low(row: Record) -> bool:
    """Return whether the zone has less free memory than its `min` watermark."""
    return row["min_kb"] is not None and row["free_kb"] < row["min_kb"]


def orders(case: Case) -> list[Figure]:
    """Return one figure for each buddy list: free memory by order."""
    rows = [
        row
        for row in records(case, "buddy", "node", "zone", "order", "blocks", "block_kb")
        if row["blocks"] is not None
    ]
    lists = [
        list(group)
        for _, group in groupby(rows, key=lambda row: (row["member"], row["line"], row["node"], row["zone"]))
    ]
    drawn = [_orders(f"buddy-{index}", group) for index, group in enumerate(lists[:MAX_CHARTS], 1)]
    if len(lists) > MAX_CHARTS:
        more = plural(len(lists) - MAX_CHARTS, "more buddy list")
        drawn[-1] = _orders(f"buddy-{MAX_CHARTS}", lists[MAX_CHARTS - 1], f"{more} in the analysis")
    return drawn


def _orders(anchor: str, rows: list[Record], left_out: str = "") -> Figure:
    """Return the figure of one buddy list."""
    sizes = {
        int(row["order"]): int(row["blocks"]) * int(row["block_kb"] or PAGE_KB * 2 ** int(row["order"])) for row in rows
    }
    total = sum(sizes.values())
    items = [
        (f"order {row['order']}", float(sizes[int(row["order"])]), f"{number(row['blocks'])} blocks", "plain")
        for row in rows
    ]
    free = [int(row["order"]) for row in rows if row["blocks"]]
    caption = (
        f"{number(total)} kB free; blocks are free up to order {max(free)}"
        + (", order 0 among them." if 0 in free else ", but none of order 0.")
        if free
        else "No free block of any order."
    )
    table = [[f"{row['order']}", number(row["blocks"]), number(sizes[int(row["order"])]), place(row)] for row in rows]
    title = f"Free blocks by order, {_zone(rows[0])}"
    head = ("order", "blocks", "kB", "where")
    return Figure(
        anchor, "bars", title, caption, bars(items, unit="bar length: kB"), head, table, place(rows[0]), left_out
    )
