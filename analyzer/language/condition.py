"""Conditions on rows, worked out column by column and without ever handing a rule's text to pandas.

A cell that is missing makes every comparison with it false, `!=` included; `not (…)` of that comparison is then true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from analyzer.language import pattern
from analyzer.language.expression import Binary, Listing, Literal, Name, Node, Regex, Unary

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    Bools = np.ndarray[Any, np.dtype[np.bool_]]


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
