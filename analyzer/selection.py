"""Selections: which rows of which tables, decided without ever handing a rule's text to pandas.

A cell that is missing makes every comparison with it false, `!=` included; `not (…)` of that comparison is then true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from analyzer import checks, pattern
from analyzer.checks import Type
from analyzer.expression import (
    Binary,
    Call,
    ExpressionError,
    Listing,
    Literal,
    Name,
    Node,
    Regex,
    Selection,
    Source,
    Unary,
)
from analyzer.suggest import did_you_mean
from parsers.shapes import Table

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    Bools = np.ndarray[Any, np.dtype[np.bool_]]

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
    if selection.joins:
        frame = frame.add_prefix(f"{selection.source.alias}.")
    for source, on in selection.joins:
        frame = _joined(frame, frames[source.name].add_prefix(f"{source.alias}."), on)
    if selection.where is not None:
        frame = frame.loc[holds(selection.where, frame)]
    return frame.reset_index(drop=True)


def _joined(left: pd.DataFrame, right: pd.DataFrame, on: Node) -> pd.DataFrame:
    """Return the pairs of rows that the condition lets through, found through the columns it says are equal."""
    import pandas as pd

    equal, others = _equalities(on, left, right)
    places: dict[Any, list[int]] = {}
    for place, key in enumerate(_keys(right, [name for _, name in equal])):
        if key is not None:
            places.setdefault(key, []).append(place)
    lefts: list[int] = []
    rights: list[int] = []
    for place, key in enumerate(_keys(left, [name for name, _ in equal])):
        found = places.get(key, ()) if key is not None else ()
        if len(lefts) + len(found) > MAX_PAIRS:
            raise TooManyPairs
        lefts += [place] * len(found)
        rights += found
    pairs = [left.iloc[lefts].reset_index(drop=True), right.iloc[rights].reset_index(drop=True)]
    frame = pd.concat(pairs, axis=1)
    for condition in others:
        frame = frame.loc[holds(condition, frame)].reset_index(drop=True)
    return frame


def _equalities(on: Node, left: pd.DataFrame, right: pd.DataFrame) -> tuple[list[tuple[str, str]], list[Node]]:
    """Split a condition at its `and`s into (left column, right column) pairs to be equal, and the rest."""
    if isinstance(on, Binary) and on.sign == "and":
        one, other = _equalities(on.left, left, right), _equalities(on.right, left, right)
        return one[0] + other[0], one[1] + other[1]
    if isinstance(on, Binary) and on.sign == "==" and isinstance(on.left, Name) and isinstance(on.right, Name):
        one_name, other_name = on.left.text, on.right.text
        if one_name in left.columns and other_name in right.columns:
            return [(one_name, other_name)], []
        if other_name in left.columns and one_name in right.columns:
            return [(other_name, one_name)], []
    return [], [on]


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


class Cells(NamedTuple):
    """The value of a part of a condition in each row."""

    values: Any
    """A numpy array; what stands in the missing places has the right type and no meaning."""
    missing: Bools


def cells(node: Node, frame: pd.DataFrame) -> Cells:
    """Return a number, text, flag, time (ns since the epoch) or list for each row."""
    import numpy as np

    match node:
        case Name():
            return of_series(frame[node.text])
        case Literal(value=value):
            array = np.full(len(frame), value, dtype=object if isinstance(value, str) else None)
            return Cells(array, np.zeros(len(frame), dtype=bool))
        case Unary(operand=operand):
            return _calculated("-", cells(Literal(node.place, 0), frame), cells(operand, frame))
        case Binary():
            return _calculated(node.sign, cells(node.left, frame), cells(node.right, frame))
    raise TypeError(type(node))


def _calculated(sign: str, left: Cells, right: Cells) -> Cells:
    import numpy as np

    missing = left.missing | right.missing
    one, other = left.values, right.values
    # Instants in nanoseconds need whole numbers, which floats hold exactly to 2**53 only; but those wrap at 2**63.
    if sign == "*" or max(_largest(one), _largest(other)) > 2**61:
        one, other = one.astype(float), other.astype(float)
    if sign in "+-":
        return Cells(one + other if sign == "+" else one - other, missing)
    if sign == "*":
        return Cells(one * other, missing)
    missing = missing | (other == 0)
    return Cells(one / np.where(other == 0, 1, other), missing)


def _largest(numbers: Any) -> float:
    return max(float(numbers.max()), -float(numbers.min())) if len(numbers) else 0.0


def of_series(series: pd.Series[Any]) -> Cells:
    """Return a column's cells."""
    import numpy as np

    missing = series.isna().to_numpy(dtype=bool)
    kind = str(series.dtype)
    if kind.startswith("datetime64"):
        return Cells(series.astype("int64").to_numpy(), missing)
    if kind in ("Int64", "boolean"):
        blank, dtype = (0, "int64") if kind == "Int64" else (False, "bool")
        return Cells(series.to_numpy(dtype=dtype, na_value=blank), missing)
    if kind == "Float64":
        values = series.to_numpy(dtype="float64", na_value=np.nan)
        missing = missing | np.isnan(values)
        return Cells(np.where(missing, 0.0, values), missing)
    values = series.to_numpy(dtype=object, copy=True)
    if missing.any():
        values[missing] = "" if kind != "object" else None
    return Cells(values, missing)


def holds(node: Node, frame: pd.DataFrame) -> Bools:
    """Return for each row whether a checked condition holds."""
    match node:
        case Binary(sign="and"):
            return holds(node.left, frame) & holds(node.right, frame)
        case Binary(sign="or"):
            return holds(node.left, frame) | holds(node.right, frame)
        case Unary(sign="not"):
            return ~holds(node.operand, frame)
        case Unary(sign="is missing"):
            return cells(node.operand, frame).missing
        case Unary():
            return ~cells(node.operand, frame).missing
        case Binary(sign="in" | "not in" as sign, left=left, right=Listing(items=items)):
            return _among(cells(left, frame), {_value(item) for item in items}, sign == "in")
        case Binary(sign=sign, left=left, right=Listing(items=items)):
            return _holding(cells(left, frame), [_value(item) for item in items], sign == "has any")
        case Binary(sign="has"):
            return _has(cells(node.left, frame), cells(node.right, frame))
        case Binary(sign="matches", left=left, right=Regex(source=source)):
            return _matching(cells(left, frame), pattern.compiled(source))
        case Binary(sign=sign):
            left_cells, right_cells = cells(node.left, frame), cells(node.right, frame)
            there = ~(left_cells.missing | right_cells.missing)
            found: Bools = there & _compared(sign, left_cells.values, right_cells.values)
            return found
    raise TypeError(type(node))


def _compared(sign: str, left: Any, right: Any) -> Any:
    compared = {
        "==": lambda: left == right,
        "!=": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }
    return compared[sign]().astype(bool)


def _value(item: Node) -> Any:
    assert isinstance(item, Literal)
    return item.value


def _bools(values: list[bool], missing: Bools) -> Bools:
    import numpy as np

    found: Bools = np.array(values, dtype=bool) & ~missing
    return found


def _among(cells: Cells, items: set[Any], wanted: bool) -> Bools:
    return _bools([(value in items) is wanted for value in cells.values.tolist()], cells.missing)


def _has(cells: Cells, sought: Cells) -> Bools:
    pairs = zip(cells.values.tolist(), sought.values.tolist(), strict=True)
    found = [value is not None and item in value for value, item in pairs]
    return _bools(found, cells.missing | sought.missing)


def _holding(cells: Cells, items: list[Any], any_of: bool) -> Bools:
    test = any if any_of else all
    found = [value is not None and test(item in value for item in items) for value in cells.values.tolist()]
    return _bools(found, cells.missing)


def _matching(cells: Cells, sought: pattern.Pattern) -> Bools:
    known: dict[str, bool] = {}
    for text, missing in zip(cells.values.tolist(), cells.missing.tolist(), strict=True):
        if not missing and text not in known:
            known[text] = sought.search(text)
    return _bools([known.get(text, False) for text in cells.values.tolist()], cells.missing)
