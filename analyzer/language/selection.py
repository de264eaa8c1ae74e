"""Selections: rows of one table, or of several side by side, that a condition lets through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analyzer.language import checks
from analyzer.language.checks import Type
from analyzer.language.condition import cells, holds
from analyzer.language.expression import (
    Binary,
    Call,
    ExpressionError,
    Name,
    Node,
    Selection,
    Source,
    Unary,
)
from analyzer.suggest import did_you_mean
from parsers.shapes import Table

if TYPE_CHECKING:
    import pandas as pd

MAX_SIDES = 8
"""Most tables whose rows stand side by side in one selection: joining joins doubles their number each time."""
MAX_PAIRS = 1_000_000
"""Most pairs of rows a join may look at."""


class TooManyPairs(Exception):
    """A join would look at more than MAX_PAIRS pairs."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the rows of a selection look like."""

    columns: dict[str, Type]
    """By the name they are addressed with: `duration_ms`, or `up.device` after a join."""
    tables: frozenset[str]
    """The tables the rows come from, all of which must be present."""
    sides: tuple[tuple[str, str], ...]
    """(prefix, table): one for each table whose rows stand side by side; the prefix is empty without a join."""


def of_table(name: str, table: Table) -> Shape:
    """Return the shape of a declared table."""
    columns = {column: checks.of_column(column, about) for column, about in table.columns.items()}
    return Shape(columns, frozenset([name]), (("", name),))


def checked(selection: Selection, known: Mapping[str, Shape]) -> tuple[Selection, Shape]:
    """Return the selection with its conditions checked, and its shape; raises ExpressionError."""
    first = _shape_of(selection.source, known)
    if not selection.joins:
        where = _condition(selection.where, first, selection.source.alias)
        return Selection(selection.place, selection.source, (), where), first
    whole = _prefixed(first, selection.source.alias)
    joins = []
    for source, on in selection.joins:
        shape = _prefixed(_shape_of(source, known), source.alias)
        if shape.columns.keys() & whole.columns.keys():
            raise ExpressionError(f"two sides are called {source.alias}", source.place, "Name them with `as`.")
        whole = Shape({**whole.columns, **shape.columns}, whole.tables | shape.tables, (*whole.sides, *shape.sides))
        if len(whole.sides) > MAX_SIDES:
            raise ExpressionError(f"it joins more than {MAX_SIDES} tables", source.place)
        condition = _condition(on, whole, "")
        assert condition is not None
        joins.append((source, condition))
    return Selection(selection.place, selection.source, tuple(joins), _condition(selection.where, whole, "")), whole


def _shape_of(source: Source, known: Mapping[str, Shape]) -> Shape:
    if source.name not in known:
        raise ExpressionError(
            f"no table or selection is called {source.name}", source.place, did_you_mean(source.name, known)
        )
    return known[source.name]


def _prefixed(shape: Shape, alias: str) -> Shape:
    columns = {f"{alias}.{name}": kind for name, kind in shape.columns.items()}
    return Shape(columns, shape.tables, tuple((f"{alias}.{prefix}", table) for prefix, table in shape.sides))


def _condition(node: Node | None, shape: Shape, alias: str) -> Node | None:
    if node is None:
        return None

    def leaf(part: Node) -> tuple[Node, Type]:
        if isinstance(part, Call):
            raise ExpressionError(
                f"{part.function}(…) looks at whole selections", part.place, "Functions belong into `when`."
            )
        assert isinstance(part, Name)
        key = part.text.removeprefix(f"{alias}.") if alias else part.text
        if key not in shape.columns:
            raise ExpressionError(f"no column {part.text} here", part.place, did_you_mean(key, shape.columns))
        return Name(part.place, (key,)), shape.columns[key]

    return checks.truth(node, leaf)


def rows(selection: Selection, frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of a checked selection; raises TooManyPairs. `frames` holds every source it names."""
    frame = frames[selection.source.name]
    if not selection.joins:
        if selection.where is not None:
            frame = frame.loc[holds(selection.where, frame)]
        return frame.reset_index(drop=True)
    # What `where` says of one side alone is asked before pairing, the rest as soon as its columns are there.
    waiting = _parts(selection.where)
    frame, waiting = _filtered(frame.add_prefix(f"{selection.source.alias}."), waiting)
    for source, on in selection.joins:
        right, waiting = _filtered(frames[source.name].add_prefix(f"{source.alias}."), waiting)
        known = {*frame.columns, *right.columns}
        now = [part for part in waiting if _names(part) <= known]
        frame = _joined(frame, right, [*_parts(on), *now])
        waiting = [part for part in waiting if part not in now]
    return frame


def leaves_any(selection: Selection, first: pd.DataFrame) -> bool:
    """Return whether any row of the first source passes what `where` says of that source alone."""
    frame, _ = _filtered(first.add_prefix(f"{selection.source.alias}."), _parts(selection.where))
    return len(frame) > 0


def _parts(node: Node | None) -> list[Node]:
    """Return the conditions that `and` holds together."""
    if isinstance(node, Binary) and node.sign == "and":
        return _parts(node.left) + _parts(node.right)
    return [node] if node is not None else []


def _names(node: Node) -> set[str]:
    """Return the columns that a checked condition looks at."""
    match node:
        case Name():
            return {node.text}
        case Unary(operand=operand):
            return _names(operand)
        case Binary(left=left, right=right):
            return _names(left) | _names(right)
    return set()


def _filtered(frame: pd.DataFrame, conditions: list[Node]) -> tuple[pd.DataFrame, list[Node]]:
    """Return the rows that pass those conditions that look at this frame alone, and the other conditions."""
    own = [condition for condition in conditions if _names(condition) <= {*frame.columns}]
    for condition in own:
        frame = frame.loc[holds(condition, frame)]
    return frame, [condition for condition in conditions if condition not in own]


def _joined(left: pd.DataFrame, right: pd.DataFrame, conditions: list[Node]) -> pd.DataFrame:
    """Return the pairs of rows that all conditions let through, found through the columns they say are equal."""
    import numpy as np
    import pandas as pd

    equal, others = _equalities(conditions, left, right)
    lefts, rights = (np.array(places, dtype=int) for places in _pairs(left, right, equal))
    for condition in others:
        # Only the columns it looks at: a million pairs of whole rows would take gigabytes.
        names = _names(condition)
        sides = (
            side[[name for name in side.columns if name in names]].iloc[places].reset_index(drop=True)
            for side, places in ((left, lefts), (right, rights))
        )
        kept = holds(condition, pd.concat(sides, axis=1))
        lefts, rights = lefts[kept], rights[kept]
    return pd.concat([left.iloc[lefts].reset_index(drop=True), right.iloc[rights].reset_index(drop=True)], axis=1)


def _pairs(left: pd.DataFrame, right: pd.DataFrame, equal: list[tuple[str, str]]) -> tuple[list[int], list[int]]:
    """Return the places of the rows whose columns are equal, left and right; raises TooManyPairs."""
    places: dict[Any, list[int]] = {}
    for place, key in enumerate(_keys(right, [name for _, name in equal])):
        if key is not None:
            places.setdefault(key, []).append(place)
    lefts: list[int] = []
    rights: list[int] = []
    for place, key in enumerate(_keys(left, [name for name, _ in equal])):
        found = places.get(key, []) if key is not None else []
        if len(lefts) + len(found) > MAX_PAIRS:
            raise TooManyPairs
        lefts += [place] * len(found)
        rights += found
    return lefts, rights


def _equalities(
    conditions: list[Node], left: pd.DataFrame, right: pd.DataFrame
) -> tuple[list[tuple[str, str]], list[Node]]:
    """Split conditions into (left column, right column) pairs to be equal, and the rest."""
    equal: list[tuple[str, str]] = []
    others: list[Node] = []
    for condition in conditions:
        if isinstance(condition, Binary) and condition.sign == "==":
            one, other = (part.text if isinstance(part, Name) else "" for part in (condition.left, condition.right))
            if one in left.columns and other in right.columns:
                equal.append((one, other))
                continue
            if other in left.columns and one in right.columns:
                equal.append((other, one))
                continue
        others.append(condition)
    return equal, others


def _keys(frame: pd.DataFrame, names: list[str]) -> list[Any]:
    """Return each row's key, None where a part of it is missing."""
    if not names:
        return [()] * len(frame)
    columns = [cells(Name(0, (name,)), frame) for name in names]
    present = ~columns[0].missing
    for column in columns[1:]:
        present &= ~column.missing
    parts = zip(*(column.values.tolist() for column in columns), strict=True)
    return [key if there else None for key, there in zip(parts, present.tolist(), strict=True)]
