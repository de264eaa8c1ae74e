"""The causal chain of a candidate as a drawing: boxes from cause to symptom, left to right."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from analyzer.findings import Edge, Finding
from analyzer.visible import one_line

BOX_WIDTH, BOX_GAP = 168, 44
ROW_GAP = 22
LINE = 17
"""Height of a line of text in a box, at 13 px."""
CHARS, BOLD_CHARS = 22, 18
"""Characters that fit a line of a box, and of the candidate's, which is bold."""


class Box(NamedTuple):
    """One finding of the chain."""

    rule: str
    lines: Sequence[str]
    severity: str
    x: float
    y: float
    height: float
    first: bool
    """The candidate itself."""


class Arrow(NamedTuple):
    """One edge of the chain."""

    path: str
    cause: str
    symptom: str
    because: str
    broken: bool
    """Drawn dashed: a weak edge, or one whose times could not be compared."""
    tip: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Causes:
    """The drawing: boxes and arrows in a viewBox of `width` x `height`."""

    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    width: float
    height: float
    spoken: str
    """The drawing in words, for those who do not see it."""


def draw(root: Finding, chain: Sequence[Edge], findings: Mapping[str, Finding]) -> Causes:
    """Return the drawing of the chain that begins at `root`."""
    edges = [edge for edge in chain if edge.symptom in findings and edge.cause in findings]
    layers = _layers(root.rule, edges)
    columns: dict[int, list[str]] = {}
    for rule, layer in layers.items():
        columns.setdefault(layer, []).append(rule)
    lines = {rule: _title_lines(findings[rule], BOLD_CHARS if rule == root.rule else CHARS) for rule in layers}
    heights = {rule: LINE * len(lines[rule]) + 36 for rule in layers}
    column_height = {at: sum(heights[r] for r in rules) + ROW_GAP * (len(rules) - 1) for at, rules in columns.items()}
    height = max(column_height.values())
    boxes: dict[str, Box] = {}
    for at, rules in columns.items():
        y = (height - column_height[at]) / 2 + 2
        for rule in rules:
            x = at * (BOX_WIDTH + BOX_GAP) + 2.0
            boxes[rule] = Box(rule, lines[rule], findings[rule].severity, x, y, heights[rule], rule == root.rule)
            y += heights[rule] + ROW_GAP
    arrows = [_arrow(boxes[edge.cause], boxes[edge.symptom], edge) for edge in edges]
    width = len(columns) * (BOX_WIDTH + BOX_GAP) - BOX_GAP + 4
    return Causes(list(boxes.values()), arrows, width, height + 4, _spoken(edges, findings))


def _title_lines(finding: Finding, room: int) -> list[str]:
    """Return the title in lines that fit a box, at most four."""
    lines = textwrap.wrap(one_line(finding.title, 120), room) or [finding.rule]
    return lines if len(lines) <= 4 else [*lines[:3], lines[3][: room - 1] + "…"]


def _layers(root: str, edges: Sequence[Edge]) -> dict[str, int]:
    """Return for each rule the length of the longest way to it from the root; a cycle is walked once."""
    layers = {root: 0}
    for _ in range(len(edges)):  # no way without a cycle has more steps than there are edges
        moved = False
        for edge in edges:
            if edge.cause in layers and edge.symptom != root:
                deeper = layers[edge.cause] + 1
                if layers.get(edge.symptom, -1) < deeper <= len(edges):
                    layers[edge.symptom] = deeper
                    moved = True
        if not moved:
            break
    for edge in edges:  # an edge the root does not reach still wants its boxes
        layers.setdefault(edge.cause, 0)
        layers.setdefault(edge.symptom, layers[edge.cause] + 1)
    used = sorted(set(layers.values()))
    return {rule: used.index(layer) for rule, layer in layers.items()}


def _arrow(cause: Box, symptom: Box, edge: Edge) -> Arrow:
    """Return the arrow from the right side of one box to the left side of another."""
    x1, y1 = cause.x + BOX_WIDTH, cause.y + cause.height / 2
    x2, y2 = symptom.x - 3, symptom.y + symptom.height / 2
    bend = max(18.0, (x2 - x1) / 2)
    path = f"M{x1:g},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2 - 6:g},{y2:g}"
    broken = edge.weak or edge.timing != "timed"
    return Arrow(path, edge.cause, edge.symptom, one_line(edge.because, 300), broken, (x2, y2))


def _spoken(edges: Sequence[Edge], findings: Mapping[str, Finding]) -> str:
    """Return the edges as sentences."""
    return "; ".join(
        f"{one_line(findings[edge.cause].title, 120)} leads to {one_line(findings[edge.symptom].title, 120)}"
        for edge in edges
    )
