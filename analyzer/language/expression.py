"""Expressions of the rule language as trees, and the trees as text."""

from __future__ import annotations

from dataclasses import dataclass, field

from analyzer.language.quantity import Quantity


class ExpressionError(ValueError):
    """Text that is not an expression, or one that makes no sense; `place` counts characters from its start."""

    def __init__(self, why: str, place: int, cure: str = "") -> None:
        super().__init__(why)
        self.place, self.cure = place, cure


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression; where it stands in the text does not count when two are compared."""

    place: int = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number, a text, or true or false."""

    value: int | float | str | bool


@dataclass(frozen=True, slots=True)
class Amount(Node):
    """A number with a unit."""

    quantity: Quantity


@dataclass(frozen=True, slots=True)
class Regex(Node):
    """The pattern after `matches`."""

    source: str


@dataclass(frozen=True, slots=True)
class Listing(Node):
    """`[…]` after `in` and `has`: literals only."""

    items: tuple[Literal | Amount, ...]


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name, perhaps dotted: `duration_ms`, `long.duration_ms`, `gap.up.device`."""

    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The name as written."""
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function with its arguments."""

    function: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`not`, `-`, `is missing` or `is not missing`."""

    sign: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Two operands and what stands between them; `of` takes a share: `80% of sum(all.events)`."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Source(Node):
    """A table or an earlier selection, and what it is called here."""

    name: str
    alias: str


@dataclass(frozen=True, slots=True)
class Selection(Node):
    """Rows of one source, or of several joined, that a condition lets through."""

    source: Source
    joins: tuple[tuple[Source, Node], ...]
    where: Node | None


_SHOWN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def show(node: Node) -> str:
    """Return a tree as text that parses to the same tree."""
    match node:
        case Literal(value=bool() as flag):
            return str(flag).lower()
        case Literal(value=str() as text):
            return '"' + "".join(_SHOWN.get(char, char) for char in text) + '"'
        case Literal(value=number):
            return repr(number)
        case Amount(quantity=quantity):
            return quantity.written
        case Regex(source=source):
            return f"/{source}/"
        case Listing(items=items):
            return f"[{', '.join(map(show, items))}]"
        case Name():
            return node.text
        case Call(function=function, args=args):
            return f"{function}({', '.join(map(show, args))})"
        case Unary(sign=sign, operand=operand):
            if sign.startswith("is "):
                return f"({show(operand)}) {sign}"
            return f"{sign} ({show(operand)})"
        case Binary(sign="of", left=left, right=right):
            return f"{show(left)} of ({show(right)})"
        case Binary(sign="in" | "not in" | "has any" | "has all" | "matches" as sign, left=left, right=right):
            return f"({show(left)}) {sign} {show(right)}"
        case Binary(sign=sign, left=left, right=right):
            return f"({show(left)}) {sign} ({show(right)})"
        case Selection(source=source, joins=joins, where=where):
            joined = "".join(f" join {show(other)} on {show(on)}" for other, on in joins)
            return show(source) + joined + (f" where {show(where)}" if where else "")
        case Source(name=name, alias=alias):
            return name if alias == name else f"{name} as {alias}"
    raise TypeError(type(node))
