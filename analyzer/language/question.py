"""Questions about whole selections, checked when a rule is read: `max(long.duration_ms) >= 60s`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeGuard

from analyzer.language import checks
from analyzer.language.checks import Type
from analyzer.language.expression import Amount, Binary, Call, ExpressionError, Literal, Name, Node, Unary
from analyzer.language.quantity import UNITS
from analyzer.language.selection import Shape
from analyzer.suggest import did_you_mean


class Function(NamedTuple):
    """One function of the language."""

    takes: tuple[str, ...]
    """What each argument is: selection, column, number column, time column, number or span."""
    about: str
    """What it gives, for the reference."""


FUNCTIONS = {
    "exists": Function(("selection",), "whether there are rows; unknown when a table is absent"),
    "found": Function(("selection",), "whether there are rows; no when a table is absent"),
    "count": Function(("selection",), "how many rows"),
    "sum": Function(("number column",), "the sum of a column, 0 without rows"),
    "min": Function(("column",), "the least number or the first instant"),
    "max": Function(("column",), "the greatest number or the last instant"),
    "median": Function(("number column",), "the middle number"),
    "distinct": Function(("column",), "how many different values"),
    "share": Function(
        ("selection or number column", "selection or number column"),
        "the rows, or the sum of the column, of the first as a part of the second's",
    ),
    "ratio": Function(("number", "number"), "the first divided by the second"),
    "within": Function(
        ("time column", "time column", "span"),
        "whether some row of the one is no further than the span from some row of the other, before or after",
    ),
}
"""Every function there is."""

WHOLE = ("rows", "incidents")
"""What may follow a selection's name besides a column: how many rows, how many distinct incidents."""


def checked(node: Node, shapes: Mapping[str, Shape]) -> Node:
    """Return a checked condition over selections; raises ExpressionError."""
    return checks.truth(node, lambda part: _leaf(part, shapes))


def checked_value(node: Node, shapes: Mapping[str, Shape]) -> tuple[Node, Type]:
    """Return a checked expression of any type, and its type; a bare column (as in a sentence) is allowed."""
    if is_column(node):
        return _column(node, shapes)
    return checks.typed(node, lambda part: _leaf(part, shapes))


def is_column(node: Node) -> TypeGuard[Name]:
    """Return whether an expression is a bare column, many values and not one."""
    return isinstance(node, Name) and len(node.parts) > 1 and node.parts[1:] not in [(word,) for word in WHOLE]


def used(node: Node, *, but: str = "") -> Iterator[str]:
    """Yield the selections and tables that a checked expression asks about, in their order.

    What only the function `but` asks about is left out.
    """
    match node:
        case Call(function=function) if function == but:
            return
        case Name(parts=parts):
            yield parts[0]
        case Unary(operand=operand):
            yield from used(operand, but=but)
        case Binary(left=left, right=right):
            yield from used(left, but=but)
            yield from used(right, but=but)
        case Call(args=args):
            for arg in args:
                yield from used(arg, but=but)


def _leaf(node: Node, shapes: Mapping[str, Shape]) -> tuple[Node, Type]:
    if isinstance(node, Call):
        return _call(node, shapes)
    if not isinstance(node, Name):
        raise ExpressionError("a list cannot stand here", node.place)
    if len(node.parts) == 2 and node.parts[1] in WHOLE:
        _shape(node, shapes)
        return node, Type("number")
    if len(node.parts) == 1:
        _shape(node, shapes)
        cure = f"Ask exists({node.text}), count({node.text}) or max({node.text}.…)."
        raise ExpressionError(f"{node.text} is a selection of rows", node.place, cure)
    _column(node, shapes)
    cure = f"Ask for max({node.text}), or select rows with a `let … where`."
    raise ExpressionError(f"{node.text} is a column of many rows", node.place, cure)


def _shape(name: Name, shapes: Mapping[str, Shape]) -> Shape:
    if name.parts[0] not in shapes:
        why = f"no table or selection is called {name.parts[0]}"
        raise ExpressionError(why, name.place, did_you_mean(name.parts[0], shapes))
    return shapes[name.parts[0]]


def _column(name: Name, shapes: Mapping[str, Shape]) -> tuple[Name, Type]:
    """Return (selection, column) and the column's type."""
    shape, key = _shape(name, shapes), ".".join(name.parts[1:])
    if key not in shape.columns:
        place = name.place + len(name.parts[0]) + 1
        raise ExpressionError(
            f"{name.parts[0]} has no column {key}", place, did_you_mean(key, [*shape.columns, *WHOLE])
        )
    return Name(name.place, (name.parts[0], key)), shape.columns[key]


def _call(call: Call, shapes: Mapping[str, Shape]) -> tuple[Node, Type]:
    if call.function not in FUNCTIONS:
        raise ExpressionError(
            f"no function is called {call.function}", call.place, did_you_mean(call.function, FUNCTIONS)
        )
    wanted = FUNCTIONS[call.function].takes
    if len(call.args) != len(wanted):
        raise ExpressionError(f"{call.function} takes {len(wanted)}: ({', '.join(wanted)})", call.place)
    if call.function == "ratio":
        return checks.typed(Binary(call.place, "/", *call.args), lambda part: _leaf(part, shapes))
    given = [_argument(arg, want, shapes) for arg, want in zip(call.args, wanted, strict=True)]
    node = Call(call.place, call.function, tuple(arg for arg, _ in given))
    kinds = [kind for _, kind in given]
    if call.function in ("exists", "found", "within"):
        return node, Type("truth")
    if call.function in ("min", "max") and kinds[0].kind not in ("number", "time"):
        why = f"a {kinds[0].kind} has no {'least' if call.function == 'min' else 'greatest'}"
        raise ExpressionError(why, call.args[0].place, "Take a column of numbers or times.")
    if call.function == "share" and kinds[0] != kinds[1]:
        raise ExpressionError("a share needs two selections, or two columns in one unit", call.place)
    if call.function in ("sum", "min", "max", "median"):
        return node, kinds[0]
    return node, Type("number")


def _argument(node: Node, wanted: str, shapes: Mapping[str, Shape]) -> tuple[Node, Type]:
    """Check one argument against what FUNCTIONS says of it."""
    if wanted == "span":
        if not isinstance(node, Amount) or UNITS[node.quantity.unit][0] != "time":
            raise ExpressionError("a span of time should stand here", node.place, "Write `15min`, `30s`, `2h` ….")
        return Literal(node.place, int(node.quantity.amount * UNITS[node.quantity.unit][1])), Type("number", "ns")
    if not isinstance(node, Name):
        raise ExpressionError(f"a {wanted} should stand here", node.place)
    if len(node.parts) == 1:
        _shape(node, shapes)
        if not wanted.startswith("selection"):
            raise ExpressionError(
                f"a column should stand here, not all of {node.text}", node.place, f"Write {node.text}.COLUMN."
            )
        return node, Type("selection")
    if wanted == "selection":
        raise ExpressionError("a selection should stand here, not a column", node.place, f"Write {node.parts[0]}.")
    column, kind = _column(node, shapes)
    if "number" in wanted and kind.kind != "number":
        raise ExpressionError(f"a column of numbers should stand here; {node.text} is a {kind.kind}", node.place)
    if wanted == "time column" and not (kind.kind == "time" and node.parts[-1] == "at"):
        raise ExpressionError("within compares the columns `at`", node.place, f"Write {node.parts[0]}.at.")
    return column, kind
