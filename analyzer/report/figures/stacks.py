"""Counted stacks as an icicle: each frame as wide as its share, below the frame that called it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from analyzer.case import Case
from analyzer.report.figures.shapes import Figure, Record, number, place, plural, records, share
from analyzer.report.visible import clip, one_line, visible

WIDTH, ROW = 960.0, 21.0
MIN_SHARE = 0.002
"""A narrower frame is not drawn: 2 pixels of 960."""
MAX_DEPTH = 48
MAX_CHARTS = 4
CHAR = 6.7
"""Advance of a character at 11 px monospace."""


class Cell(NamedTuple):
    """One frame at one place of the tree."""

    x: float
    y: float
    width: float
    label: str
    title: str
    marked: bool
    """A finding names this function."""


@dataclass(frozen=True, slots=True)
class Icicle:
    """The drawing, in a viewBox of `width` x `height`."""

    cells: Sequence[Cell]
    width: float
    height: float


@dataclass(slots=True)
class _Frame:
    """A node of the tree of frames."""

    events: int = 0
    below: dict[str, _Frame] = field(default_factory=dict)


def figures(case: Case, sentences: Iterable[str]) -> list[Figure]:
    """Return one figure for each capture of counted stacks; functions named in `sentences` stand out."""
    named = set(re.findall(r"[a-z_][a-z0-9_]{4,}", " ".join(sentences)))
    rows = [
        row for row in records(case, "stack", "tool", "traced", "frames", "events") if row["events"] and row["frames"]
    ]
    groups = [list(group) for _, group in groupby(rows, key=lambda row: (row["member"], row["tool"], row["traced"]))]
    drawn = [_figure(f"stacks-{index}", group, named) for index, group in enumerate(groups[:MAX_CHARTS], 1)]
    return [figure for figure in drawn if figure.rows]


def _figure(anchor: str, rows: list[Record], named: set[str]) -> Figure:
    """Return the icicle of the stacks of one capture."""
    total = sum(row["events"] for row in rows)
    same_leaf = len({row["frames"][0] for row in rows}) == 1
    tree = _Frame()
    for row in rows:
        frames = row["frames"] if same_leaf else tuple(reversed(row["frames"]))
        _add(tree, [str(frame) for frame in frames[:MAX_DEPTH]], row["events"])
    telling = {name for name in named if 0 < _passing(rows, name) < total}
    cells: list[Cell] = []
    hidden = _cells(tree, cells, 0.0, 0, WIDTH / total, total, telling)
    height = max((cell.y for cell in cells), default=0) + ROW + 2
    traced = str(rows[0]["traced"] or "")
    title = f"Stacks of {one_line(traced, 60)}" if traced else "Stacks"
    top = sorted(rows, key=lambda row: -row["events"])
    table = [
        [
            number(row["events"]),
            share(row["events"], total),
            " ← ".join(visible(str(f)) for f in row["frames"][:40]),
            place(row),
        ]
        for row in top[:20]
    ]
    left_out = [f"{plural(hidden, 'frame')} narrower than {MIN_SHARE:.1%} not drawn"] if hidden else []
    left_out += [f"{plural(len(rows) - 20, 'rarer stack')} not in the table"] if len(rows) > 20 else []
    caption = _caption(rows, total, top[0], telling) + (
        " Read downwards: each frame was called by the one below it."
        if same_leaf
        else " Read downwards: each frame calls the one below it."
    )
    head = ("events", "share", "stack, innermost first", "where")
    return Figure(
        anchor, "icicle", title, caption, Icicle(cells, WIDTH, height), head, table, place(rows[0]), "; ".join(left_out)
    )


def _add(tree: _Frame, frames: Sequence[str], events: int) -> None:
    """Add one stack to the tree."""
    node = tree
    for frame in frames:
        node = node.below.setdefault(frame, _Frame())
        node.events += events


def _cells(tree: _Frame, cells: list[Cell], x: float, depth: int, scale: float, total: int, named: set[str]) -> int:
    """Append the cells below a node, widest first; return how many were too narrow."""
    hidden = 0
    for name, node in sorted(tree.below.items(), key=lambda item: (-item[1].events, item[0])):
        width = node.events * scale
        if node.events < MIN_SHARE * total:
            hidden += 1
        else:
            shown = visible(name)
            room = int((width - 8) / CHAR)
            label = clip(shown, room) if room >= 3 else ""
            title = f"{shown}: {number(node.events)} of {number(total)} ({share(node.events, total)})"
            cells.append(Cell(x, depth * ROW, width, label, title, name in named))
            hidden += _cells(node, cells, x, depth + 1, scale, total, named)
        x += width
    return hidden


def _passing(rows: list[Record], name: str) -> int:
    """Return how many stacks have a frame of this name."""
    return sum(row["events"] for row in rows if name in row["frames"])


def _caption(rows: list[Record], total: int, top: Record, telling: set[str]) -> str:
    """Return what the stacks show: the share of the function that a finding names, else the commonest stack."""
    if telling:
        name = max(sorted(telling), key=lambda name: _passing(rows, name))
        return f"{share(_passing(rows, name), total)} of {number(total)} stacks pass through {name}."
    return f"{number(total)} stacks counted, {share(top['events'], total)} of them the same."
