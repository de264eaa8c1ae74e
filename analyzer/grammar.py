"""The grammar of the rule language: text to trees.

    SELECTION := NAME ["as" ALIAS] ("join" NAME ["as" ALIAS] "on" EXPRESSION)* ["where" EXPRESSION]

An expression is the same tree in `where` (one row) and in `when` (whole selections); which names and functions it may
use is decided where it is checked. From loosest to tightest: `or`, `and`, `not`, one comparison, `+ -`, `* /`, `-`.
There is nothing else: no attributes, no indexing, no assignment, no loops.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, NoReturn, TypeVar

from analyzer.expression import (
    Amount,
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
from analyzer.quantity import WRITABLE, Quantity
from analyzer.suggest import did_you_mean

_T = TypeVar("_T")

MAX_NESTING = 50
MAX_TEXT = 10_000
"""Longest expression, in characters."""
MAX_TOKENS = 2_000
MAX_NUMBER = 2**63 - 1
"""The largest whole number a column can hold."""

RESERVED = frozenset(["and", "or", "not", "in", "has", "matches", "is", "true", "false", "where", "join", "as", "on"])
"""Words that are never a name by themselves; after a dot any word is a column."""

COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")


def parse(text: str) -> Node:
    """Return the tree of an expression; raises ExpressionError."""
    return _whole(text, _Parser.expression)


def parse_selection(text: str) -> Selection:
    """Return the tree of a selection; raises ExpressionError."""
    return _whole(text, _Parser.selection)


class _Token(NamedTuple):
    kind: str
    """name, number, string, sign, regex or end."""
    text: str
    place: int


_TOKEN = r"""(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
|(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?(?:[A-Za-zµ]+|%)?)
|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
|(?P<sign>==|!=|<=|>=|[<>+\-*/()\[\],])"""
_REGEX = r"/(?P<regex>(?:[^/\\\n]|\\.)+)/"
_NUMBER = re.compile(r"(\d[\d_]*(?:\.\d+)?)(?:[eE]([+-]?\d+))?(.*)", re.S)
_ESCAPED = {"n": "\n", "t": "\t"}


@cache
def _scanner() -> Any:
    """Return the grammar of tokens: after the word `matches`, and only there, a / begins a pattern."""
    import pyparsing as pp  # 60 ms: only when a rule is read

    token = pp.Regex(_TOKEN, flags=re.X | re.A, as_match=True)
    pattern = pp.Regex(r"(?P<name>matches)\b", as_match=True) + pp.Regex(_REGEX, as_match=True)
    return ((pattern | token)[...] + pp.StringEnd()).parse_with_tabs()


def _tokens(text: str) -> list[_Token]:
    import pyparsing as pp

    if len(text) > MAX_TEXT:
        raise ExpressionError(f"it is longer than {MAX_TEXT:,} characters", MAX_TEXT)
    try:
        found = _scanner().parse_string(text)
    except pp.ParseException as error:
        place = error.loc + len(text[error.loc :]) - len(text[error.loc :].lstrip())
        rest = text[place : place + 1]
        if rest in ('"', "'"):
            raise ExpressionError("this text is never closed", place, f"End it with {rest}.") from None
        raise ExpressionError(f"unexpected {rest or 'end'!r}", place) from None
    if len(found) > MAX_TOKENS:
        raise ExpressionError(f"it has more than {MAX_TOKENS:,} words", found[MAX_TOKENS].start())
    tokens = [_Token(match.lastgroup, match[match.lastgroup], match.start()) for match in found]
    return [*tokens, _Token("end", "", len(text))]


def _whole(text: str, rule: Callable[[_Parser], _T]) -> _T:
    """Return what `rule` reads from the whole text."""
    parser = _Parser(_tokens(text))
    tree = rule(parser)
    if parser.now.kind != "end":
        parser.fail("nothing more was expected here")
    return tree


class _Parser:
    """Precedence climbing over the tokens of one text."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._index, self._depth = tokens, 0, 0

    @property
    def now(self) -> _Token:
        return self._tokens[self._index]

    def fail(self, why: str, cure: str = "") -> NoReturn:
        shown = f"{self.now.text!r}: " if self.now.kind != "end" else "the end: "
        raise ExpressionError(f"unexpected {shown}{why}", self.now.place, cure)

    def _take(self, *texts: str) -> _Token | None:
        """Return the token and move on when it is one of these words or signs."""
        token = self.now
        if token.kind in ("name", "sign") and token.text in texts:
            self._index += 1
            return token
        return None

    def _need(self, text: str) -> _Token:
        return self._take(text) or self.fail(f"{text} should stand here")

    def selection(self) -> Selection:
        place, source = self.now.place, self._source()
        joins = []
        while self._take("join"):
            other = self._source()
            self._need("on")
            joins.append((other, self.expression()))
        where = self.expression() if self._take("where") else None
        return Selection(place, source, tuple(joins), where)

    def _source(self) -> Source:
        token = self._word("the name of a table or selection")
        alias = self._word("a short name").text if self._take("as") else token.text
        return Source(token.place, token.text, alias)

    def _word(self, what: str) -> _Token:
        token = self.now
        if token.kind != "name" or "." in token.text or token.text in RESERVED:
            self.fail(f"{what} should stand here")
        self._index += 1
        return token

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_NESTING:
            self.fail(f"it is nested more than {MAX_NESTING} deep", "Split it over several `let` selections.")
        left = self._and()
        while token := self._take("or"):
            left = Binary(token.place, "or", left, self._and())
        self._depth -= 1
        return left

    def _and(self) -> Node:
        left = self._not()
        while token := self._take("and"):
            left = Binary(token.place, "and", left, self._not())
        return left

    def _not(self) -> Node:
        signs = []
        while token := self._take("not"):
            signs.append(token)
        node = self._comparison()
        for token in reversed(signs):
            node = Unary(token.place, "not", node)
        return node

    def _comparison(self) -> Node:
        left = self._sum()
        token = self.now
        if self._take(*COMPARISONS):
            right: Node = self._sum()
            sign = token.text
        elif self._take("is"):
            negated = self._take("not")
            self._need("missing")
            return Unary(token.place, "is not missing" if negated else "is missing", left)
        elif self._take("matches"):
            sign, right = "matches", self._regex()
        elif self._take("has"):
            sign, right = self._has()
        elif self._take("in"):
            sign, right = "in", self._listing()
        elif token.text == "not" and token.kind == "name":
            self._index += 1
            self._need("in")
            sign, right = "not in", self._listing()
        else:
            return left
        if self.now.kind == "sign" and self.now.text in COMPARISONS:
            self.fail("comparisons cannot be chained", "Join them with `and`.")
        return Binary(token.place, sign, left, right)

    def _regex(self) -> Regex:
        token = self.now
        if token.kind != "regex":
            self.fail("a /pattern/ should stand here")
        self._index += 1
        return Regex(token.place, token.text)

    def _has(self) -> tuple[str, Node]:
        following = self._tokens[self._index + 1 : self._index + 2]
        if following and following[0].text == "[" and (word := self._take("any", "all")):
            return f"has {word.text}", self._listing()
        if self.now.text == "[":
            self.fail("a list should say how", "Write `has any […]` or `has all […]`.")
        return "has", self._sum()

    def _listing(self) -> Listing:
        place = self._need("[").place
        items: list[Literal | Amount] = []
        while not items or self._take(","):
            item = self._unary()
            if not isinstance(item, Literal | Amount):
                raise ExpressionError("a list holds only texts and numbers", item.place)
            items.append(item)
        self._need("]")
        return Listing(place, tuple(items))

    def _sum(self) -> Node:
        left = self._product()
        while token := self._take("+", "-"):
            left = Binary(token.place, token.text, left, self._product())
        return left

    def _product(self) -> Node:
        left = self._unary()
        while token := self._take("*", "/"):
            left = Binary(token.place, token.text, left, self._unary())
        return left

    def _unary(self) -> Node:
        if token := self._take("-"):
            self._depth += 1
            if self._depth > MAX_NESTING:
                self.fail(f"it is nested more than {MAX_NESTING} deep")
            operand = self._unary()
            self._depth -= 1
            if isinstance(operand, Literal) and isinstance(operand.value, int | float):
                return Literal(token.place, -operand.value)
            return Unary(token.place, "-", operand)
        return self._primary()

    def _primary(self) -> Node:
        token = self.now
        if self._take("("):
            node = self.expression()
            self._need(")")
            return node
        if token.kind == "number":
            self._index += 1
            node = _number(token)
            if isinstance(node, Amount) and self._take("of"):
                return Binary(token.place, "of", node, self._unary())
            return node
        if token.kind == "string":
            self._index += 1
            return Literal(token.place, re.sub(r"\\(.)", _unescaped, token.text[1:-1], flags=re.S))
        if token.kind != "name":
            self.fail("a name, a number or a text should stand here")
        if self._take("true", "false"):
            return Literal(token.place, token.text == "true")
        return self._named(token)

    def _named(self, token: _Token) -> Node:
        if token.text in RESERVED:
            self.fail("this word has a meaning of its own and is no name")
        self._index += 1
        if not self._take("("):
            return Name(token.place, tuple(token.text.split(".")))
        args: list[Node] = []
        if not self._take(")"):
            args.append(self.expression())
            while self._take(","):
                args.append(self.expression())
            self._need(")")
        return Call(token.place, token.text, tuple(args))


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[1], match[1])


def _number(token: _Token) -> Literal | Amount:
    """Return a number, or an amount when a unit follows."""
    found = _NUMBER.fullmatch(token.text)
    assert found is not None
    digits, exponent, unit = found[1].replace("_", ""), int(found[2] or 0) if len(found[2] or "") < 5 else 99, found[3]
    if len(digits) > 40 or abs(exponent) > 30:
        raise ExpressionError("this number is out of range", token.place)
    value = Fraction(digits) * Fraction(10) ** exponent
    if abs(value) > MAX_NUMBER:
        raise ExpressionError("this number is out of range", token.place)
    if not unit:
        whole = "." not in digits and exponent >= 0
        return Literal(token.place, int(value) if whole else float(value))
    unit = unit.replace("µ", "u")
    if unit not in WRITABLE:
        raise ExpressionError(f"no such unit: {unit}", token.place, did_you_mean(unit, WRITABLE))
    return Amount(token.place, Quantity(value, unit, token.text))
