"""The grammar of the rule language: text to trees.

    SELECTION  := SOURCE ("join" SOURCE "on" EXPRESSION)* ["where" EXPRESSION]
    SOURCE     := NAME ["as" ALIAS]
    EXPRESSION := CONDITION (("and" | "or") CONDITION)*          `and` binds tighter
    CONDITION  := "not"* SUM [COMPARISON]                        never two
    COMPARISON := ("==" | "!=" | "<=" | ">=" | "<" | ">") SUM | "is" ["not"] "missing" | "matches" /REGEX/
                | "has" SUM | "has" ("any" | "all") LIST | ["not"] "in" LIST
    LIST       := "[" TERM ("," TERM)* "]"                       literals only
    SUM        := TERM (("*" | "/" | "+" | "-") TERM)*           `*` and `/` bind tighter
    TERM       := ("-" | NUMBER UNIT "of")* OPERAND              80% of sum(all.events)
    OPERAND    := NAME | NAME "(" [EXPRESSION ("," EXPRESSION)*] ")" | NUMBER [UNIT] | "TEXT" | 'TEXT'
                | "true" | "false" | "(" EXPRESSION ")"

An expression is the same tree in `where` (one row) and in `when` (whole selections); which names and functions it may
use is decided where it is checked. There is nothing else: no attributes, no indexing, no assignment, no loops.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from analyzer.language.expression import (
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
from analyzer.language.quantity import WRITABLE, Quantity
from analyzer.suggest import did_you_mean

if TYPE_CHECKING:
    import pyparsing as pp

MAX_TEXT = 10_000
"""Longest expression, in characters."""
MAX_NESTING = 15
"""Most brackets open at once: each takes pyparsing up to 42 frames of Python's stack, which holds 1,000."""
MAX_OPERATORS = 100
"""Most operators and brackets in one expression, so that no tree is too deep for those who walk it."""
MAX_NUMBER = 2**63 - 1
"""The largest whole number a column can hold."""

RESERVED = frozenset(["and", "or", "not", "in", "has", "matches", "is", "true", "false", "where", "join", "as", "on"])
"""Words that are never a name by themselves; after a dot any word is a column."""

COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")

_WORD = r"[A-Za-z_]\w*+"
_NAME = rf"(?P<name>(?>{_WORD}(?:\.{_WORD})*))"
_FREE = rf"(?!(?:{'|'.join(sorted(RESERVED))})(?![\w.]))"
_NUMBER = r"(?P<digits>\d[\d_]*+(?:\.\d++)?)(?:[eE](?P<exponent>[+-]?\d++))?"
_UNIT = r"(?P<unit>[A-Za-zµ]++|%)"
_OF = r"of(?![\w.])"
_TEXT = r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
_REGEX = r"/(?P<regex>(?:[^/\\\n]|\\.)+)/"
_WEIGHTY = re.compile(rf"{_TEXT}|\bmatches\s*{_REGEX}|(?P<sign>[()*/+-]|\b(?:and|or|not|of)\b)", re.A)
_SHOWN = re.compile(rf"{_NAME}|{_NUMBER}{_UNIT}?|{_TEXT}|[=!<>]=|.", re.A | re.S)
_ESCAPED = {"n": "\n", "t": "\t"}

_VALUE = "a name, a number or a text"
_ONCE = "no second comparison"
_END = "nothing more"


def parse(text: str) -> Node:
    """Return the tree of an expression; raises ExpressionError."""
    return _read(text, 0)  # type: ignore[no-any-return]


def parse_selection(text: str) -> Selection:
    """Return the tree of a selection; raises ExpressionError."""
    return _read(text, 1)  # type: ignore[no-any-return]


@cache
def _grammar() -> tuple[pp.ParserElement, pp.ParserElement]:
    """Return what reads an expression and what reads a selection: the grammar above, from its last line to its first.

    A token takes the blanks behind it along, so that the place of everything is where it begins. Without a parse
    action of its own it yields its match, which knows its word and place. After `-` there is no other way to read on.
    """
    import pyparsing as pp  # 60 ms: only when a rule is read

    def token(pattern: str, name: str = "") -> pp.ParserElement:
        element = pp.Regex(rf"(?:{pattern})\s*", flags=re.A, as_match=True).leave_whitespace()
        return element.set_name(name) if name else element

    def word(*words: str) -> pp.ParserElement:
        choice = "|".join(re.escape(word) + (r"(?![\w.])" if word.isalpha() else "") for word in words)
        return token(f"(?P<word>{choice})", " or ".join(words))

    def mark(text: str) -> pp.ParserElement:
        return word(text).suppress()

    def several(element: pp.ParserElement) -> pp.ParserElement:
        listed: pp.ParserElement = element + (mark(",") - element)[...]
        return listed

    def chain(operand: pp.ParserElement, *levels: str) -> pp.ParserElement:
        signs = [level.split() for level in levels]
        chained: pp.ParserElement = operand + (word(*" ".join(levels).split()) - operand)[...]
        return chained.set_parse_action(lambda found: _folded(found, signs) if len(found) > 1 else None)

    expression = pp.Forward()
    name = token(rf"{_FREE}{_NAME}(?!\s*\()").set_parse_action(_name)
    arguments = (mark(")") | several(expression) - mark(")")).set_name(_VALUE)
    call = (token(rf"{_FREE}{_NAME}\s*\(") - arguments).set_parse_action(_call)
    number = token(rf"{_NUMBER}(?:{_UNIT}(?!\s*{_OF})|(?![A-Za-zµ%]))").set_parse_action(_alone)
    text = token(_TEXT).set_parse_action(_text)
    truth = word("true", "false").set_parse_action(lambda place, found: Literal(place, found[0]["word"] == "true"))
    operand = name | call | number | text | truth | mark("(") - expression - mark(")")
    prefix = token(rf"-|{_NUMBER}{_UNIT}\s*{_OF}")
    term = (operand | (prefix[1, ...] - operand.set_name(_VALUE)).set_parse_action(_prefixed)).set_name(_VALUE)
    total = chain(term, "* /", "+ -")

    listing = mark("[") - several(term.copy().add_parse_action(_item)) - mark("]")
    listing.set_parse_action(lambda place, found: Listing(place, tuple(found)))
    regex = token(_REGEX, "a /pattern/").set_parse_action(lambda place, found: Regex(place, found[0]["regex"]))
    comparison = (
        word(*COMPARISONS) - total
        | word("is") - pp.Opt(word("not")) - word("missing")
        | word("matches") - regex
        | token(r"(?P<word>has\s+(?:any|all))\s*(?=\[)") - listing
        | word("has") - total
        | word("not") - word("in") - listing
        | word("in") - listing
    )
    begins = token(r"(?=[=!]=|[<>]|(?:is|matches|has|not|in)(?![\w.]))(?P<word>)")  # one look instead of seven
    once = token(f"(?!{'|'.join(COMPARISONS)})(?P<word>)", _ONCE)
    compared = (total + pp.Opt(begins + comparison - once)).set_parse_action(_compared)
    negated = (word("not")[1, ...] - compared).set_parse_action(_negated)
    expression <<= chain((compared | negated).set_name(_VALUE), "and", "or")

    source = token(rf"{_FREE}(?P<name>{_WORD})(?!\.)", "the name of a table or selection")
    alias = mark("as") - source.copy().set_name("a short name")
    named = (source + pp.Opt(alias)).set_parse_action(_source)
    join = mark("join") - named - mark("on") - expression
    selection = (named + join[...] + pp.Opt(mark("where") - expression)).set_parse_action(_selection)

    blanks, end = token("").suppress(), pp.StringEnd().set_name(_END)
    return (blanks + expression + end).parse_with_tabs(), (blanks + selection + end).parse_with_tabs()


def _read(text: str, kind: int) -> Any:
    """Return the tree of a whole text, which is an expression (0) or a selection (1)."""
    import pyparsing as pp

    _weigh(text)
    try:
        return _grammar()[kind].parse_string(text)[0]
    except pp.ParseBaseException as error:
        raise _mistake(text, error.loc, error.msg.removeprefix("Expected ")) from None


def _weigh(text: str) -> None:
    """Raise ExpressionError for a text that would take too much to read, or make a tree too deep to walk."""
    if len(text) > MAX_TEXT:
        raise ExpressionError(f"it is longer than {MAX_TEXT:,} characters", MAX_TEXT)
    depth = operators = 0
    for found in _WEIGHTY.finditer(text):
        depth += (found["sign"] == "(") - (found["sign"] == ")")
        operators += found["sign"] not in (None, ")")
        if depth > MAX_NESTING or operators > MAX_OPERATORS:
            deep, many = f"is nested more than {MAX_NESTING} deep", f"has more than {MAX_OPERATORS} operators"
            why = f"it {deep if depth > MAX_NESTING else many}"
            raise ExpressionError(why, found.start(), "Split it over several `let` selections.")


def _mistake(text: str, place: int, expected: str) -> ExpressionError:
    """Return what to say of a text that cannot be read on at a place."""
    found = _SHOWN.match(text, place)
    if not found:
        return ExpressionError(f"unexpected the end: {expected} should stand here", len(text))
    shown, why, cure = found[0], f"{expected} should stand here", ""
    if shown in ('"', "'"):
        return ExpressionError("this text is never closed", place, f"End it with {shown}.")
    if expected == _END:
        why, cure = "nothing more was expected here", "Write == to compare." if shown == "=" else ""
    elif expected == _ONCE:
        why, cure = "comparisons cannot be chained", "Join them with `and`."
    elif expected == _VALUE and shown in RESERVED:
        why = "this word has a meaning of its own and is no name"
    elif expected == _VALUE and shown == "[":
        why, cure = "a list should say how", "Write `in […]`, `has any […]` or `has all […]`."
    return ExpressionError(f"unexpected {shown!r}: {why}", place, cure)


def _folded(found: pp.ParseResults, levels: list[list[str]]) -> Any:
    """Return operands and the signs between them as one tree: level by level, each from the left."""
    parts: list[Any] = list(found)
    for level in levels:
        rest = parts[:1]
        for sign, right in zip(parts[1::2], parts[2::2], strict=True):
            if sign["word"] in level:
                rest[-1] = Binary(sign.start(), sign["word"], rest[-1], right)
            else:
                rest += [sign, right]
        parts = rest
    return parts[0]


def _compared(found: pp.ParseResults) -> Node:
    """Return a sum and what it is compared with."""
    left, *right = (part for part in found if isinstance(part, Node))
    signs = [part for part in found if isinstance(part, re.Match) and part["word"]]
    if not signs:
        return left
    place, sign = signs[0].start(), " ".join(" ".join(match["word"] for match in signs).split())
    return Binary(place, sign, left, *right) if right else Unary(place, sign, left)


def _negated(found: pp.ParseResults) -> Node:
    """Return a condition with each `not` before it."""
    node: Node = found[-1]
    for match in found[-2::-1]:
        node = Unary(match.start(), "not", node)
    return node


def _prefixed(found: pp.ParseResults) -> Node:
    """Return an operand with each sign and share before it; a number takes its sign in."""
    node: Node = found[-1]
    for match in found[-2::-1]:
        if match["digits"]:
            node = Binary(match.start(), "of", _number(match), node)
        elif isinstance(node, Literal) and not isinstance(node.value, str | bool):
            node = Literal(match.start(), -node.value)
        else:
            node = Unary(match.start(), "-", node)
    return node


def _number(match: re.Match[str]) -> Literal | Amount:
    """Return a number, or an amount when a unit follows."""
    place, digits, exponent = match.start(), match["digits"].replace("_", ""), match["exponent"] or "0"
    power = int(exponent) if len(exponent) < 5 else 99
    if len(digits) > 40 or abs(power) > 30:
        raise ExpressionError("this number is out of range", place)
    value = Fraction(digits) * Fraction(10) ** power
    if abs(value) > MAX_NUMBER:
        raise ExpressionError("this number is out of range", place)
    if not match["unit"]:
        whole = "." not in digits and power >= 0
        return Literal(place, int(value) if whole else float(value))
    unit = match["unit"].replace("µ", "u")
    if unit not in WRITABLE:
        raise ExpressionError(f"no such unit: {unit}", place, did_you_mean(unit, WRITABLE))
    return Amount(place, Quantity(value, unit, match.string[place : match.end("unit")]))


def _alone(found: pp.ParseResults) -> Literal | Amount:
    return _number(found[0])


def _name(place: int, found: pp.ParseResults) -> Name:
    return Name(place, tuple(found[0]["name"].split(".")))


def _call(place: int, found: pp.ParseResults) -> Call:
    return Call(place, found[0]["name"], tuple(found[1:]))


def _text(place: int, found: pp.ParseResults) -> Literal:
    written = found[0][0].rstrip()[1:-1]
    return Literal(place, re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), written, flags=re.S))


def _item(found: pp.ParseResults) -> None:
    if not isinstance(found[0], Literal | Amount):
        raise ExpressionError("a list holds only texts and numbers", found[0].place)


def _source(place: int, found: pp.ParseResults) -> Source:
    return Source(place, found[0]["name"], found[-1]["name"])


def _selection(place: int, found: pp.ParseResults) -> Selection:
    source, *rest = found
    joins = tuple(zip(rest[0::2], rest[1::2], strict=False))
    return Selection(place, source, joins, rest[-1] if len(rest) % 2 else None)
