"""The causal chain of a candidate as a drawing: boxes from cause to symptom, left to right."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from analyzer.findings import Edge, Finding
from analyzer.report.visible import one_line

BOX_WIDTH, BOX_GAP = 168, 44
ROW_GAP = 22
LINE = 17
"""Height of a line of text in a box, at 13 px."""
CHARS, BOLD_CHARS = 21, 18
"""Characters that fit a line of a box, and of the candidate's, which is bold."""


PASSING = 8.0
"""Height of the slot of an arrow that passes a layer."""

Slot = str | tuple[str, str, int]
"""What stands in a column: a finding, or an arrow that passes, by its ends and the layer."""


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
    """Drawn dashed: an indirect edge, or one whose times should have been compared and could not."""
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
    lines = {rule: _title_lines(findings[rule], BOLD_CHARS if rule == root.rule else CHARS) for rule in layers}
    heights: dict[Slot, float] = {rule: LINE * len(lines[rule]) + 36 for rule in layers}
    columns: list[list[Slot]] = [[] for _ in range(max(layers.values()) + 1)]
    for rule, layer in layers.items():
        columns[layer].append(rule)
    for edge in edges:  # an arrow that passes a layer gets a slot there, so that it runs between the boxes
        for layer in range(layers[edge.cause] + 1, layers[edge.symptom]):
            columns[layer].append((edge.cause, edge.symptom, layer))
            heights[(edge.cause, edge.symptom, layer)] = PASSING
    middle, height = _placed(columns, heights, edges)
    boxes = {
        rule: Box(
            rule,
            lines[rule],
            findings[rule].severity,
            layer * (BOX_WIDTH + BOX_GAP) + 2.0,
            middle[rule] - heights[rule] / 2,
            heights[rule],
            rule == root.rule,
        )
        for rule, layer in layers.items()
    }
    arrows = []
    for edge in edges:
        passed = [middle[(edge.cause, edge.symptom, at)] for at in range(layers[edge.cause] + 1, layers[edge.symptom])]
        arrows.append(_arrow(boxes[edge.cause], boxes[edge.symptom], edge, passed))
    width = len(columns) * (BOX_WIDTH + BOX_GAP) - BOX_GAP + 4
    return Causes(list(boxes.values()), arrows, width, height + 4, _spoken(edges, findings))


def _placed(
    columns: list[list[Slot]], heights: Mapping[Slot, float], edges: Sequence[Edge]
) -> tuple[dict[Slot, float], float]:
    """Return the middle of every slot, columns centred, and the height of the highest."""
    tall = [sum(heights[slot] for slot in column) + ROW_GAP * (len(column) - 1) for column in columns]
    height = max(tall)
    middle: dict[Slot, float] = {}
    for column, own in zip(columns, tall, strict=True):
        column.sort(key=lambda slot: _above(slot, edges, middle))
        y = (height - own) / 2 + 2
        for slot in column:
            middle[slot] = y + heights[slot] / 2
            y += heights[slot] + ROW_GAP
    return middle, height


def _above(slot: Slot, edges: Sequence[Edge], middle: Mapping[Slot, float]) -> float:
    """Return where a slot wants to stand: level with what leads to it."""
    causes = [slot[0]] if isinstance(slot, tuple) else [edge.cause for edge in edges if edge.symptom == slot]
    known = [middle[cause] for cause in causes if cause in middle]
    return sum(known) / len(known) if known else 0.0


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


def _arrow(cause: Box, symptom: Box, edge: Edge, passed: Sequence[float]) -> Arrow:
    """Return the arrow from the right side of one box to the left side of another, through the slots it passes."""
    x, y = cause.x + BOX_WIDTH, cause.y + cause.height / 2
    path = f"M{x:g},{y:g}"
    half = BOX_GAP / 2
    for level in passed:
        path += f" C{x + half:g},{y:g} {x + half:g},{level:g} {x + BOX_GAP:g},{level:g} h{BOX_WIDTH}"
        x, y = x + BOX_GAP + BOX_WIDTH, level
    x2, y2 = symptom.x - 3, symptom.y + symptom.height / 2
    path += f" C{x + half:g},{y:g} {x2 - half:g},{y2:g} {x2 - 6:g},{y2:g}"
    broken = edge.weak or edge.timing == "not timed"
    return Arrow(path, edge.cause, edge.symptom, one_line(edge.because, 300), broken, (x2, y2))


def _spoken(edges: Sequence[Edge], findings: Mapping[str, Finding]) -> str:
    """Return the edges as sentences."""
    return "; ".join(
        f"{one_line(findings[edge.cause].title, 120)} leads to {one_line(findings[edge.symptom].title, 120)}"
        for edge in edges
    )
