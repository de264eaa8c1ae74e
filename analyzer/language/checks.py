"""Do the types and units of an expression fit? Decided when a rule is read, before any bundle is."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from analyzer.language import pattern, quantity
from analyzer.language.expression import Amount, Binary, ExpressionError, Listing, Literal, Name, Node, Regex, Unary
from analyzer.language.grammar import COMPARISONS
from parsers.shapes import Column


class Type(NamedTuple):
    """What a part of an expression is."""

    kind: str
    """number, text, flag (a true/false column), time, list, or truth (a condition)."""
    unit: str = ""
    """Of a number: the unit its values are in, empty for a plain one."""


Leaf = Callable[[Node], tuple[Node, Type]]
"""Checks a name or a call, which mean one thing in `where` and another in `when`."""

_KINDS = {"str": "text", "Int64": "number", "Float64": "number", "boolean": "flag", "object": "list"}


def of_column(name: str, column: Column) -> Type:
    """Return the type of a declared column."""
    kind = _KINDS.get(column.dtype, "time")
    return Type(kind, quantity.of_column(name) if kind == "number" else "")


def truth(node: Node, leaf: Leaf) -> Node:
    """Return a checked condition: every quantity a plain number in the unit of what it is compared with."""
    checked, kind = typed(node, leaf)
    if kind.kind == "flag":
        return Binary(node.place, "==", checked, Literal(node.place, True))
    if kind.kind != "truth":
        raise ExpressionError(
            f"a condition should stand here, not a {kind.kind}", node.place, "Compare it with something."
        )
    return checked


def typed(node: Node, leaf: Leaf) -> tuple[Node, Type]:
    """Return the checked node and its type; raises ExpressionError where they do not fit."""
    match node:
        case Literal(value=value):
            return node, Type("flag" if isinstance(value, bool) else "text" if isinstance(value, str) else "number")
        case Amount():
            return node, Type("number", node.quantity.unit)
        case Unary(sign="not"):
            return Unary(node.place, "not", truth(node.operand, leaf)), Type("truth")
        case Unary(sign="-"):
            operand, kind = _number(node.operand, leaf)
            return Unary(node.place, "-", _plain(operand)), kind
        case Unary():
            if not isinstance(node.operand, Name):
                raise ExpressionError("only a column can be missing", node.operand.place)
            return Unary(node.place, node.sign, typed(node.operand, leaf)[0]), Type("truth")
        case Binary():
            return _binary(node, leaf)
        case _:
            return leaf(node)


def _binary(node: Binary, leaf: Leaf) -> tuple[Node, Type]:
    sign = node.sign
    if sign in ("and", "or"):
        return Binary(node.place, sign, truth(node.left, leaf), truth(node.right, leaf)), Type("truth")
    if sign in COMPARISONS:
        return _comparison(node, leaf), Type("truth")
    if sign in ("in", "not in"):
        return _membership(node, leaf), Type("truth")
    if sign.startswith("has"):
        return _has(node, leaf), Type("truth")
    if sign == "matches":
        return _matches(node, leaf), Type("truth")
    if sign == "of":
        return _share(node, leaf)
    return _arithmetic(node, leaf)


def _number(node: Node, leaf: Leaf) -> tuple[Node, Type]:
    checked, kind = typed(node, leaf)
    if kind.kind != "number":
        raise ExpressionError(f"a number should stand here, not a {kind.kind}", node.place)
    return checked, kind


def _plain(node: Node) -> Node:
    """Return an amount as a plain number in its own unit; anything else as it is."""
    if isinstance(node, Amount):
        return Literal(node.place, quantity.number(node.quantity.amount))
    return node


def _arithmetic(node: Binary, leaf: Leaf) -> tuple[Node, Type]:
    left, of_left = typed(node.left, leaf)
    if of_left.kind == "time" and node.sign == "-":
        right, of_right = typed(node.right, leaf)
        if of_right.kind != "time":
            raise ExpressionError(f"a time should stand here, not a {of_right.kind}", node.right.place)
        # Instants are held in nanoseconds.
        nanoseconds = Binary(node.place, "-", left, right)
        return Binary(node.place, "/", nanoseconds, Literal(node.place, 10**9)), Type("number", "s")
    if of_left.kind != "number":
        raise ExpressionError(f"a number should stand here, not a {of_left.kind}", node.left.place)
    right, of_right = _number(node.right, leaf)
    if node.sign in "+-":
        left, right, unit = _aligned(left, of_left, right, of_right, node.place)
        return Binary(node.place, node.sign, left, right), Type("number", unit)
    if node.sign == "*":
        if of_left.unit and of_right.unit:
            raise ExpressionError(f"{of_left.unit} times {of_right.unit} means nothing here", node.place)
        return Binary(node.place, "*", _plain(left), _plain(right)), Type("number", of_left.unit or of_right.unit)
    if of_right.unit and quantity.same_dimension(of_left.unit, of_right.unit):
        left, right, _ = _aligned(left, of_left, right, of_right, node.place)
        return Binary(node.place, "/", left, right), Type("number")
    return Binary(node.place, "/", _plain(left), _plain(right)), Type("number", "" if of_right.unit else of_left.unit)


def _share(node: Binary, leaf: Leaf) -> tuple[Node, Type]:
    """Check `80% of X`: X times 0.8, in X's unit."""
    assert isinstance(node.left, Amount)
    if node.left.quantity.unit != "%":
        raise ExpressionError("only a percentage can be taken of something", node.left.place, "Write `80% of …`.")
    right, kind = _number(node.right, leaf)
    ratio = Literal(node.left.place, float(node.left.quantity.amount / 100))
    return Binary(node.place, "*", ratio, _plain(right)), kind


def _comparison(node: Binary, leaf: Leaf) -> Node:
    left, of_left = typed(node.left, leaf)
    right, of_right = typed(node.right, leaf)
    if "list" in (of_left.kind, of_right.kind):
        raise ExpressionError("a list is not compared as a whole", node.place, "Ask with `has` for what it holds.")
    if of_left.kind != of_right.kind:
        raise ExpressionError(f"a {of_left.kind} is compared with a {of_right.kind}", node.place)
    if of_left.kind == "number":
        left, right, _ = _aligned(left, of_left, right, of_right, node.place)
    elif of_left.kind == "truth":
        raise ExpressionError("conditions are not compared", node.place, "Join them with `and`, `or`, `not`.")
    elif node.sign not in ("==", "!=") and of_left.kind != "time":
        raise ExpressionError(f"a {of_left.kind} has no order", node.place, "Use `==`, `!=`, `in` or `matches`.")
    return Binary(node.place, node.sign, left, right)


def _aligned(left: Node, of_left: Type, right: Node, of_right: Type, place: int) -> tuple[Node, Node, str]:
    """Return two numbers in one unit, and that unit: that of the side that is not an amount, else of the left."""
    if isinstance(left, Amount) and not isinstance(right, Amount):
        return _into(left, of_left.unit, of_right.unit, place), right, of_right.unit
    if isinstance(right, Amount) and not isinstance(left, Amount):
        return left, _into(right, of_right.unit, of_left.unit, place), of_left.unit
    if isinstance(right, Literal) or (isinstance(left, Literal) and not of_left.unit):
        return _plain(left), _plain(right), of_left.unit or of_right.unit
    return _plain(left), _into(right, of_right.unit, of_left.unit, place), of_left.unit


def _into(node: Node, unit: str, into: str, place: int) -> Node:
    """Return a number converted into a unit."""
    try:
        if isinstance(node, Amount):
            return Literal(node.place, quantity.converted(node.quantity, into))
        if unit == into:
            return node
        if not (unit and into):
            raise quantity.UnitError(f"a number in {unit or into} stands beside one without a unit", "give both a unit")
        size = quantity.factor(unit, into)
    except quantity.UnitError as error:
        raise ExpressionError(str(error), node.place, error.cure[0].upper() + error.cure[1:] + ".") from None
    if size.numerator == 1:
        return Binary(place, "/", node, Literal(place, quantity.number(Fraction(size.denominator))))
    return Binary(place, "*", node, Literal(place, quantity.number(size)))


def _membership(node: Binary, leaf: Leaf) -> Node:
    left, kind = typed(node.left, leaf)
    if kind.kind not in ("number", "text"):
        cure = "Use `has any […]`." if kind.kind == "list" else ""
        raise ExpressionError(f"a {kind.kind} is never `in` a list", node.left.place, cure)
    return Binary(node.place, node.sign, _plain(left), _items(node.right, kind))


def _items(node: Node, kind: Type) -> Listing:
    assert isinstance(node, Listing)
    items: list[Literal | Amount] = []
    for item in node.items:
        checked = _into(item, item.quantity.unit, kind.unit, item.place) if isinstance(item, Amount) else item
        assert isinstance(checked, Literal)
        found = typed(checked, _no_leaf)[1].kind
        if found != kind.kind:
            raise ExpressionError(f"a {kind.kind} should stand here, not a {found}", item.place)
        items.append(checked)
    return Listing(node.place, tuple(items))


def _has(node: Binary, leaf: Leaf) -> Node:
    left, kind = typed(node.left, leaf)
    if kind.kind not in ("list", "text"):
        raise ExpressionError(f"a {kind.kind} holds nothing to ask for with `has`", node.left.place)
    if isinstance(node.right, Listing):
        right: Node = node.right
        if any(isinstance(item, Amount) for item in node.right.items):
            raise ExpressionError("quantities are not looked for in lists", node.right.place)
        if kind.kind == "text":
            _items(node.right, kind)
        return Binary(node.place, node.sign, left, right)
    right, sought = typed(node.right, leaf)
    if sought.kind != "text" and not (kind.kind == "list" and sought.kind == "number"):
        raise ExpressionError(f"a text should stand here, not a {sought.kind}", node.right.place)
    return Binary(node.place, node.sign, left, _plain(right))


def _matches(node: Binary, leaf: Leaf) -> Node:
    left, kind = typed(node.left, leaf)
    if kind.kind != "text":
        cure = "Use `has` for a list." if kind.kind == "list" else ""
        raise ExpressionError(f"a pattern is matched against a text, not a {kind.kind}", node.left.place, cure)
    assert isinstance(node.right, Regex)
    try:
        pattern.compiled(node.right.source)
    except pattern.PatternError as error:
        raise ExpressionError(f"the pattern is not understood: {error}", node.right.place + 1 + error.place) from None
    return Binary(node.place, "matches", left, node.right)


def _no_leaf(node: Node) -> tuple[Node, Type]:
    raise TypeError(type(node))
