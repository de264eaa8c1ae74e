"""What a rule asks of whole selections: `exists(long) and max(long.duration_ms) >= 60s`.

Three answers: yes, no, and unknown (None), which is what every question about a table gives that is not in the case.
The least, the greatest or a ratio of no rows is nothing, and no comparison with nothing holds. A rule that can do
without a table asks `found(b)`, which is no where `exists(b)` is unknown.
"""

from __future__ import annotations

import enum
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from analyzer import tables
from analyzer.language import condition, selection, within
from analyzer.language.expression import Amount, Binary, Call, Listing, Literal, Name, Node, Selection, Unary
from analyzer.language.quantity import number
from analyzer.language.selection import Shape

if TYPE_CHECKING:
    import pandas as pd


class Absent(enum.Enum):
    """Why there is no value."""

    NOTHING = "none"
    """The tables are present, and no row has one."""
    UNKNOWN = "unknown"
    """A table is not present."""


Value = int | float | str | list[Any] | Absent


@dataclass(slots=True)
class View:
    """A case as one rule sees it: its tables and the rule's selections, worked out when first asked for."""

    tables: Mapping[str, pd.DataFrame]
    selections: Mapping[str, Selection]
    shapes: Mapping[str, Shape]
    """Of the selections and of every declared table."""
    compared_clocks: bool = False
    """Whether a `within` compared clocks since this was last set to False."""
    without_clocks: bool = False
    """Whether a `within` found no clock in common since this was last set to False."""
    untimed_holds: bool = False
    """Whether a `within` without a clock in common holds (an edge) or is unknown (a finding)."""
    too_many_pairs: set[str] = field(default_factory=set)
    """Selections given up because their joins look at more than selection.MAX_PAIRS pairs: unknown."""
    _frames: dict[str, pd.DataFrame | None] = field(default_factory=dict)

    def frame(self, name: str) -> pd.DataFrame | None:
        """Return the rows of a selection or table; None when a table it needs is absent or its join too large."""
        if name not in self.selections:
            return self.tables.get(name)
        if name not in self._frames:
            try:
                self._frames[name] = self._selected(self.selections[name])
            except selection.TooManyPairs:
                self.too_many_pairs.add(name)
                self._frames[name] = None
        return self._frames[name]

    def _selected(self, chosen: Selection) -> pd.DataFrame | None:
        first = self.frame(chosen.source.name)
        if first is None:
            return None
        frames = {chosen.source.name: first}
        for source, _ in chosen.joins:
            frame = self.frame(source.name)
            if frame is None:
                # Nothing joined with anything is nothing, whatever the absent table would have held.
                if source.name in self.selections or selection.leaves_any(chosen, first):
                    return None
                frame = tables.frame(source.name, [])
            frames[source.name] = frame
        return selection.rows(chosen, frames)


def truth(node: Node, view: View) -> bool | None:
    """Return whether a checked condition holds in a case; None when that is unknown."""
    match node:
        case Unary(sign="not"):
            inner = truth(node.operand, view)
            return None if inner is None else not inner
        case Binary(sign="and" | "or" as sign):
            # Kleene: a side that settles it does so whatever the other is.
            settling = sign == "or"
            left = truth(node.left, view)
            if left is settling:
                return settling
            right = truth(node.right, view)
            if right is settling:
                return settling
            return None if left is None or right is None else not settling
        case Binary(sign="in" | "not in" as sign, right=Listing(items=items)):
            found = value(node.left, view)
            if isinstance(found, Absent):
                return None if found is Absent.UNKNOWN else False
            return (found in [item.value for item in items if isinstance(item, Literal)]) is (sign == "in")
        case Binary():
            return _compared(node.sign, value(node.left, view), value(node.right, view))
        case Call(function="exists", args=args):
            frame = _frame(args[0], view)
            return None if frame is None else len(frame) > 0
        case Call(function="found", args=args):
            frame = _frame(args[0], view)
            return frame is not None and len(frame) > 0
        case Call(function="within"):
            return _within(node, view)
    raise TypeError(type(node))


def _compared(sign: str, left: Value, right: Value) -> bool | None:
    if Absent.UNKNOWN in (left, right):
        return None
    if isinstance(left, Absent) or isinstance(right, Absent):
        return False
    one: Any = left
    other: Any = right
    match sign:
        case "==":
            return bool(one == other)
        case "!=":
            return bool(one != other)
        case "<":
            return bool(one < other)
        case "<=":
            return bool(one <= other)
        case ">":
            return bool(one > other)
        case _:
            return bool(one >= other)


def _frame(node: Node, view: View) -> pd.DataFrame | None:
    assert isinstance(node, Name)
    return view.frame(node.parts[0])


def _within(call: Call, view: View) -> bool | None:
    one, other, span = call.args
    assert isinstance(one, Name)
    assert isinstance(other, Name)
    assert isinstance(span, Literal)
    left, right = _frame(one, view), _frame(other, view)
    if left is None or right is None:
        return None
    if left.empty or right.empty:
        return False
    prefixes = [name.parts[1].removesuffix("at") for name in (one, other)]
    near = within.near(within.clocks(left, prefixes[0]), within.clocks(right, prefixes[1]), int(span.value))
    if near is None:
        view.without_clocks = True
        return True if view.untimed_holds else None
    view.compared_clocks = True
    return near


def value(node: Node, view: View) -> Value:
    """Return the value of a checked expression in a case; a bare column gives its distinct values in order."""
    match node:
        case Literal(value=known):
            return known
        case Amount(quantity=quantity):
            return number(quantity.amount)
        case Unary(operand=operand):
            inner: Any = value(operand, view)
            return inner if isinstance(inner, Absent) else number_of(-inner)
        case Binary(sign=sign):
            return _calculated(sign, value(node.left, view), value(node.right, view))
        case Call(function="share", args=args):
            amounts = [_amount(arg, view) for arg in args]
            return _calculated("/", *amounts)
        case Call(function=function, args=args):
            frame = _frame(args[0], view)
            return Absent.UNKNOWN if frame is None else _aggregate(function, args[0], frame)
        case Name(parts=(_, ("rows" | "incidents") as asked)):
            frame = _frame(node, view)
            return Absent.UNKNOWN if frame is None else _incidents(frame) if asked == "incidents" else len(frame)
        case Name(parts=(_, column)):
            frame = _frame(node, view)
            return Absent.UNKNOWN if frame is None else _distinct(frame[column])
    raise TypeError(type(node))


def _calculated(sign: str, left: Any, right: Any) -> Value:
    if isinstance(left, Absent) or isinstance(right, Absent):
        return Absent.UNKNOWN if Absent.UNKNOWN in (left, right) else Absent.NOTHING
    match sign:
        case "+":
            return number_of(left + right)
        case "-":
            return number_of(left - right)
        case "*":
            return number_of(left * right)
        case _:
            return Absent.NOTHING if right == 0 else number_of(left / right)


def number_of(found: Any) -> int | float:
    """Return a Python number for a numpy one."""
    plain: int | float = found.item() if hasattr(found, "item") else found
    return plain


def _amount(node: Node, view: View) -> Value:
    frame = _frame(node, view)
    if frame is None:
        return Absent.UNKNOWN
    assert isinstance(node, Name)
    return len(frame) if len(node.parts) == 1 else _aggregate("sum", node, frame)


def _aggregate(function: str, node: Node, frame: pd.DataFrame) -> Value:
    assert isinstance(node, Name)
    if function == "count":
        return len(frame)
    cells = condition.of_series(frame[node.parts[1]])
    there: list[Any] = cells.values[~cells.missing].tolist()
    if function == "distinct":
        return len(set(there))
    if function == "sum":
        total: int | float = sum(there)  # Python's integers do not overflow
        return total
    if not there:
        return Absent.NOTHING
    if function == "median":
        return number_of(statistics.median(there))
    return number_of(min(there) if function == "min" else max(there))


def _incidents(frame: pd.DataFrame) -> int:
    """Return the number of distinct incidents; a row without one counts for itself."""
    if "incident" not in frame:
        return len(frame)
    return int(frame["incident"].nunique() + frame["incident"].isna().sum())


def _distinct(series: pd.Series[Any]) -> list[Any]:
    """Return the distinct values of a column in the order of their first row; those of lists one by one."""
    cells = condition.of_series(series)
    there = cells.values[~cells.missing].tolist()
    flat = [item for value in there for item in (value if isinstance(value, tuple) else (value,))]
    return list(dict.fromkeys(flat))
