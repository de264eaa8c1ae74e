"""The rule language: what is printed parses to the same tree, and `where` does what a loop over rows would do."""

from __future__ import annotations

import re
from dataclasses import fields
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer import tables
from analyzer.language import grammar, quantity, selection
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
    Unary,
    show,
)
from analyzer.language.quantity import Quantity
from parsers.shapes import COMMON, Column, Table

STALL = Table(
    "a stall",
    {
        **COMMON,
        "duration_ms": Column("Int64", ""),
        "wait_s": Column("Float64", ""),
        "cpus": Column("Int64", ""),
        "free_kb": Column("Int64", ""),
        "comm": Column("str", ""),
        "fixed": Column("boolean", ""),
        "frames": Column("object", ""),
    },
)
SHAPES = {"stall": selection.of_table("stall", STALL)}


def where(condition: str) -> Node:
    checked, _ = selection.checked(grammar.parse_selection(f"stall where {condition}"), SHAPES)
    assert checked.where is not None
    return checked.where


def lines_of(condition: str, rows: list[dict[str, Any]]) -> list[int]:
    checked, _ = selection.checked(grammar.parse_selection(f"stall where {condition}"), SHAPES)
    numbered = [{"line": place, **row} for place, row in enumerate(rows, 1)]
    found = selection.rows(checked, {"stall": tables.framed(STALL, numbered)})
    return [int(line) for line in found["line"]]


# --- trees as text -------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["a", "long", "duration_ms", "all", "any", "of", "missing", "x1"])
NAMES = st.lists(WORDS, min_size=1, max_size=3).map(lambda parts: Name(0, tuple(parts)))
NUMBERS = st.integers(0, 2**63 - 1) | st.floats(0, 1e15, allow_nan=False).filter(
    lambda value: value > 1e-4 or not value
)
LITERALS = (NUMBERS | st.text(max_size=6) | st.booleans()).map(lambda value: Literal(0, value))
AMOUNTS = st.builds(
    lambda number, unit: Amount(0, Quantity(Fraction(number), unit, f"{number}{unit}")),
    st.integers(0, 10**6),
    st.sampled_from(quantity.WRITABLE),
)
LISTS = st.lists(LITERALS | AMOUNTS, min_size=1, max_size=3).map(lambda items: Listing(0, tuple(items)))
REGEXES = (
    st.sampled_from(["a+", r"\d\/x", "^b|c$", "[/]"])
    .filter(lambda text: text != "[/]")
    .map(lambda text: Regex(0, text))
)


def larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    signs = ["or", "and", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "has"]
    return st.one_of(
        st.builds(lambda sign, left, right: Binary(0, sign, left, right), st.sampled_from(signs), inner, inner),
        st.builds(
            lambda sign, left, right: Binary(0, sign, left, right),
            st.sampled_from(["in", "not in", "has any", "has all"]),
            inner,
            LISTS,
        ),
        st.builds(lambda left, right: Binary(0, "matches", left, right), inner, REGEXES),
        st.builds(lambda left, right: Binary(0, "of", left, right), AMOUNTS, inner),
        st.builds(lambda node: Unary(0, "not", node), inner),
        st.builds(lambda node: Unary(0, "-", node), NAMES),
        st.builds(lambda sign, node: Unary(0, sign, node), st.sampled_from(["is missing", "is not missing"]), inner),
        st.builds(lambda name, args: Call(0, name, tuple(args)), WORDS, st.lists(inner, max_size=3)),
    )


TREES = st.recursive(NAMES | LITERALS | AMOUNTS, larger, max_leaves=12)


@given(TREES)
def test_what_is_printed_parses_to_the_same_tree(tree: Node) -> None:
    assert grammar.parse(show(tree)) == tree


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a or b and not c == 1", "a or (b and (not (c == 1)))"),
        ("a - b - c", "(a - b) - c"),
        ("a + b * c", "a + (b * c)"),
        ("80% of b * 2", "(80% of b) * 2"),
        ("not a in [1] and b", "(not (a in [1])) and b"),
    ],
)
def test_tighter_operators_bind_first(text: str, same: str) -> None:
    assert grammar.parse(text) == grammar.parse(same)


def test_a_join_names_its_sides() -> None:
    text = "offload as up join offload as low on low.device == up.lower where up.state == 'off'"
    assert show(grammar.parse_selection(text)).startswith(
        "offload as up join offload as low on (low.device) == (up.lower)"
    )
    assert grammar.parse_selection(show(grammar.parse_selection(text))) == grammar.parse_selection(text)


def outcome(text: str) -> ExpressionError | None:
    try:
        grammar.parse(text)
    except ExpressionError as error:
        return error
    return None


@given(st.text(alphabet="ab1 .,()[]<>=!+-*/\"'%\\\n{}|§", max_size=40))
def test_any_text_parses_or_says_where_it_does_not(text: str) -> None:
    error = outcome(text)
    assert error is None or 0 <= error.place <= len(text)


@pytest.mark.parametrize(
    "text",
    ["(" * 10_000, "not " * 10_000 + "a", "-" * 10_000 + "1", "f(" * 60 + ")" * 60, "a" + " + a" * 10_000, "[" * 99],
)
def test_deep_or_long_expressions_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        grammar.parse(text)


@pytest.mark.parametrize(
    "deep",
    ["cpus == 1" + " + 1" * 900, "not " * 900 + "fixed", "fixed" + " and fixed" * 900, "cpus == " + "- " * 900 + "1"],
)
def test_what_is_too_deep_to_walk_is_refused_where_it_gets_too_deep(deep: str) -> None:
    with pytest.raises(ExpressionError, match="it has more than 100 operators") as caught:
        where(deep)
    assert caught.value.cure == "Split it over several `let` selections."
    assert 100 < caught.value.place < len(deep)


@pytest.mark.parametrize("inner", ["(", "f(", "1 or f(1, 1 == 1 + ", "1 or 1 == 1 + f(1, not not "])
def test_the_deepest_nesting_allowed_is_read(inner: str) -> None:
    brackets = grammar.MAX_NESTING
    operators = sum(inner.count(word) for word in ("or", "+", "not", "("))
    depth = min(brackets, grammar.MAX_OPERATORS // operators)
    assert grammar.parse(inner * depth + "1" + ")" * depth)


def test_a_long_list_is_no_deep_expression() -> None:
    names = ", ".join(['"(a or b)"'] * 500)
    assert grammar.parse(f"symbol in [{names}]") == Binary(
        0, "in", Name(0, ("symbol",)), Listing(0, (Literal(0, "(a or b)"),) * 500)
    )


@pytest.mark.parametrize(
    ("text", "why", "place", "cure"),
    [
        ("", "unexpected the end: a name, a number or a text should stand here", 0, ""),
        ("a == ", "unexpected the end: a name, a number or a text should stand here", 5, ""),
        ("a and or b", "unexpected 'or': this word has a meaning of its own and is no name", 6, ""),
        ("a b", "unexpected 'b': nothing more was expected here", 2, ""),
        ("a = 1", "unexpected '=': nothing more was expected here", 2, "Write == to compare."),
        ("a == 'x", "this text is never closed", 5, "End it with '."),
        ("f(a, (b + 1)", "unexpected the end: ) should stand here", 12, ""),
        ("(a < b) and 1 < c < 3", "unexpected '<': comparisons cannot be chained", 18, "Join them with `and`."),
        ("a is not 1", "unexpected '1': missing should stand here", 9, ""),
        ("a not b", "unexpected 'b': in should stand here", 6, ""),
        ("a in 1", "unexpected '1': [ should stand here", 5, ""),
        ("a in []", "unexpected ']': a name, a number or a text should stand here", 6, ""),
        ("a in [1, b]", "a list holds only texts and numbers", 9, ""),
        ("a in [1", "unexpected the end: ] should stand here", 7, ""),
        ("a has ['b']", "unexpected '[': a list should say how", 6, "Write `in […]`, `has any […]` or `has all […]`."),
        ("a matches 'b'", "unexpected \"'b'\": a /pattern/ should stand here", 10, ""),
        ("a > 5mins", "no such unit: mins", 4, "Did you mean min?"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_its_cure(text: str, why: str, place: int, cure: str) -> None:
    error = outcome(text)
    assert error is not None
    assert (str(error), error.place, error.cure) == (why, place, cure)


@pytest.mark.parametrize(
    ("text", "why", "place"),
    [
        ("", "unexpected the end: the name of a table or selection should stand here", 0),
        ("a.b", "unexpected 'a.b': the name of a table or selection should stand here", 0),
        ("a as where b", "unexpected 'where': a short name should stand here", 5),
        ("a join b where c", "unexpected 'where': on should stand here", 9),
        ("a where", "unexpected the end: a name, a number or a text should stand here", 7),
        ("a b == 1", "unexpected 'b': nothing more was expected here", 2),
    ],
)
def test_a_mistake_in_a_selection_is_named_with_its_place(text: str, why: str, place: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        grammar.parse_selection(text)
    assert (str(caught.value), caught.value.place) == (why, place)


def places(node: object) -> list[int]:
    """Return where a tree and everything in it begins, top down."""
    if isinstance(node, tuple):
        return [place for inner in node for place in places(inner)]
    if not isinstance(node, Node):
        return []
    return [node.place, *places(tuple(getattr(node, one.name) for one in fields(node)))]


def test_everything_knows_where_it_begins() -> None:
    text = " not  a.b >=  -  1 and  80% of f( x ) not in [ 2s ]"
    begins = ["and", "not", ">=", "a.b", "-", "not in", "80% of", "80%", "f(", "x", "[", "2s"]
    assert places(grammar.parse(text)) == [text.index(word) for word in begins]


@pytest.mark.parametrize(
    "text", ["1e999999999", "9" * 5000, "9223372036854775808", "1e99999999999999s", "1" + "0" * 41 + "s"]
)
def test_numbers_no_column_can_hold_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="out of range"):
        grammar.parse(text)


# --- types and units -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "why", "place"),
    [
        ("duration_ms >= 4KiB", "KiB is a size, but a time in ms stands beside it", 15),
        ("cpus >= 60s", "60s stands beside a number whose name states no unit", 8),
        ("duration_msec == 1", "no column duration_msec", 0),
        ("comm >= 'a'", "a text has no order", 5),
        ("comm == 1", "a text is compared with a number", 5),
        ("frames == 'a'", "a list is not compared as a whole", 7),
        ("duration_ms", "a condition should stand here, not a number", 0),
        ("duration_ms + free_kb > 1", "KiB is a size", 14),
        ("wait_s * wait_s > 1", "s times s means nothing", 7),
        ("comm matches /(/", "the pattern is not understood: this ( is never closed", 14),
        ("count(stall) > 1", "looks at whole selections", 0),
        ("cpus in ['a']", "a number should stand here, not a text", 9),
        ("cpus has 1", "holds nothing", 0),
        ("comm has 60s", "a text should stand here", 9),
        ("fixed > true", "has no order", 6),
        ("1 is missing", "only a column can be missing", 0),
    ],
)
def test_what_does_not_fit_is_an_error_at_its_place(condition: str, why: str, place: int) -> None:
    with pytest.raises(ExpressionError, match=re.escape(why)) as caught:
        where(condition)
    assert caught.value.place - len("stall where ") == place


def test_an_unknown_column_is_answered_with_the_nearest() -> None:
    with pytest.raises(ExpressionError) as caught:
        where("duratoin_ms > 1")
    assert caught.value.cure == "Did you mean duration_ms?"


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_quantity_is_converted_into_the_column_s_unit(milliseconds: int, seconds: int) -> None:
    found = lines_of(f"duration_ms >= {seconds}s", [{"duration_ms": milliseconds}])
    assert found == ([1] if milliseconds >= 1000 * seconds else [])


@pytest.mark.parametrize(
    ("condition", "row", "holds"),
    [
        ("duration_ms >= 60s", {"duration_ms": 60_000}, True),
        ("duration_ms >= 60s", {"duration_ms": 59_999}, False),
        ("60s <= duration_ms", {"duration_ms": 60_000}, True),
        ("duration_ms == wait_s", {"duration_ms": 1500, "wait_s": 1.5}, True),
        ("wait_s == duration_ms", {"duration_ms": 1500, "wait_s": 1.5}, True),
        ("duration_ms in [1s, 2s]", {"duration_ms": 2000}, True),
        ("free_kb < 4MiB", {"free_kb": 4095}, True),
        ("free_kb < 4MiB", {"free_kb": 4096}, False),
        ("duration_ms / wait_s >= 50%", {"duration_ms": 500, "wait_s": 1.0}, True),
        ("duration_ms / wait_s >= 51%", {"duration_ms": 500, "wait_s": 1.0}, False),
        ("cpus == 9007199254740993", {"cpus": 9007199254740993}, True),
        ("cpus == 9007199254740992", {"cpus": 9007199254740993}, False),
        ("fixed", {"fixed": True}, True),
        ("not fixed", {"fixed": None}, True),
        ("comm != 'a'", {"comm": None}, False),
        ("not (comm == 'a')", {"comm": None}, True),
        ("frames has 'tcp_push'", {"frames": ("tcp_push_one",)}, False),
        ("frames has 'tcp_push'", {"frames": ("tcp_push", "x")}, True),
        ("comm has 'push'", {"comm": "tcp_push_one"}, True),
        ("comm matches /^tcp_\\w+$/", {"comm": "tcp_push_one"}, True),
    ],
)
def test_conditions_on_one_row(condition: str, row: dict[str, Any], holds: bool) -> None:
    assert lines_of(condition, [row]) == ([1] if holds else [])


def test_instants_are_subtracted_without_loss() -> None:
    rows = [{"at": 1_477_000_000_000_000_000}, {"at": 1_477_000_000_000_000_000 + 60 * 10**9}, {}]
    pair, _ = selection.checked(
        grammar.parse_selection("stall as a join stall as b on a.member == b.member where b.at - a.at == 60s"), SHAPES
    )
    frame = tables.framed(STALL, [{"member": "m", **row} for row in rows])
    assert len(selection.rows(pair, {"stall": frame})) == 1


# --- an independent evaluator --------------------------------------------------------------------------------------

CELLS = {
    "duration_ms": st.none() | st.integers(-5, 5).map(lambda number: number * 500),
    "wait_s": st.none() | st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]),
    "cpus": st.none() | st.integers(0, 3),
    "comm": st.none() | st.sampled_from(["", "a", "ab", "ba", "kswapd0"]),
    "fixed": st.none() | st.booleans(),
    "frames": st.none() | st.lists(st.sampled_from(["a", "ab", "b"]), max_size=3).map(tuple),
}
ROWS = st.lists(st.fixed_dictionaries(CELLS), max_size=6)
MILLISECONDS = st.sampled_from(
    ["duration_ms", "0s", "1s", "500ms", "-duration_ms", "duration_ms + 1s", "2 * duration_ms"]
)
SECONDS = st.sampled_from(["wait_s", "1s", "wait_s * 2", "wait_s - 500ms", "wait_s / cpus"])
PLAIN = st.sampled_from(["cpus", "1", "cpus + 1", "cpus * cpus", "wait_s / wait_s", "3 / cpus"])
COMPARE = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
ATOMS = st.one_of(
    *(st.tuples(side, COMPARE, side).map(" ".join) for side in (MILLISECONDS, SECONDS, PLAIN)),
    st.sampled_from(
        [
            "comm == 'a'",
            "comm != 'ab'",
            "comm in ['a', 'ba']",
            "comm not in ['a', 'ba']",
            "comm has 'a'",
            "comm has any ['b', 'k']",
            "comm matches /^a|0$/",
            "frames has 'a'",
            "frames has any ['ab', 'zz']",
            "frames has all ['a', 'b']",
            "comm is missing",
            "frames is not missing",
            "fixed",
            "fixed == false",
            "cpus in [1, 2]",
            "duration_ms not in [1s, 500ms]",
        ]
    ),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda parts: f"({' '.join(parts)})"),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=5,
)


class Missing(Exception):
    """A cell has no value."""


def row_value(node: Node, row: dict[str, Any]) -> Any:
    """Return what a part of an unchecked expression is in one row, times in seconds."""
    match node:
        case Literal(value=value):
            return value
        case Amount(quantity=quantity):
            return quantity.amount * {"s": 1, "ms": Fraction(1, 1000)}[quantity.unit]
        case Name(parts=(name,)):
            if row[name] is None:
                raise Missing
            if isinstance(row[name], int | float):
                return Fraction(row[name]) / (1000 if name == "duration_ms" else 1)
            return row[name]
        case Unary(sign="-", operand=operand):
            return -row_value(operand, row)
        case Binary(sign=sign, left=left, right=right):
            one, other = row_value(left, row), row_value(right, row)
            if sign == "/" and other == 0:
                raise Missing
            return {
                "+": one + other,
                "-": one - other,
                "*": one * other,
                "/": other and Fraction(one) / Fraction(other),
            }[sign]
    raise TypeError(type(node))


def row_holds(node: Node, row: dict[str, Any]) -> bool:
    """Return whether an unchecked condition holds in one row."""
    match node:
        case Binary(sign="and", left=left, right=right):
            return row_holds(left, row) and row_holds(right, row)
        case Binary(sign="or", left=left, right=right):
            return row_holds(left, row) or row_holds(right, row)
        case Unary(sign="not", operand=operand):
            return not row_holds(operand, row)
        case Unary(sign="is missing", operand=Name(parts=(name,))):
            return row[name] is None
        case Unary(sign="is not missing", operand=Name(parts=(name,))):
            return row[name] is not None
        case Name(parts=(name,)):
            return row[name] is True
    assert isinstance(node, Binary)
    try:
        left = row_value(node.left, row)
        if isinstance(node.right, Regex):
            return re.search(node.right.source, left) is not None
        if isinstance(node.right, Listing):
            items = [row_value(item, row) for item in node.right.items]
            return {
                "in": left in items,
                "not in": left not in items,
                "has any": any(item in left for item in items) if "has" in node.sign else None,
                "has all": all(item in left for item in items) if "has" in node.sign else None,
            }[node.sign] is True
        right = row_value(node.right, row)
    except Missing:
        return False
    if node.sign == "has":
        return right in left
    return (
        {"==": left == right, "!=": left != right}.get(node.sign)
        or (
            node.sign in ("<", "<=", ">", ">=")
            and {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[node.sign]
        )
        or False
    )


@settings(max_examples=200)
@given(CONDITIONS, ROWS)
def test_where_agrees_with_a_loop_over_the_rows(condition: str, rows: list[dict[str, Any]]) -> None:
    tree = grammar.parse(condition)
    assert lines_of(condition, rows) == [place for place, row in enumerate(rows, 1) if row_holds(tree, row)]


@given(ROWS, ROWS)
def test_a_join_finds_the_pairs_that_two_loops_find(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    on = "a.comm == b.comm and a.cpus <= b.cpus and b.cpus == a.cpus"
    text = f"one as a join other as b on {on} where a.fixed == b.fixed"
    shape = SHAPES["stall"]
    checked, _ = selection.checked(grammar.parse_selection(text), {"one": shape, "other": shape})
    frames = {
        name: tables.framed(STALL, [{"line": place, **row} for place, row in enumerate(rows)])
        for name, rows in (("one", left), ("other", right))
    }
    found = selection.rows(checked, frames)
    keys = ("comm", "cpus", "fixed")
    expected = [
        (i, j)
        for i, one in enumerate(left)
        for j, other in enumerate(right)
        if all(one[key] is not None and one[key] == other[key] for key in keys)
    ]
    assert sorted(zip(found["a.line"].tolist(), found["b.line"].tolist(), strict=True)) == expected


@given(ROWS, ROWS, ROWS)
def test_conditions_on_one_side_of_three_join_like_loops(
    one: list[dict[str, Any]], two: list[dict[str, Any]], three: list[dict[str, Any]]
) -> None:
    text = (
        "one as a join two as b on b.cpus == a.cpus join three as c on c.comm == b.comm and a.cpus >= c.cpus "
        "where a.fixed == true and b.wait_s <= c.wait_s and (a.comm == 'a' or c.comm == 'ab') and not (c.cpus == 1)"
    )
    checked, _ = selection.checked(
        grammar.parse_selection(text), dict.fromkeys(("one", "two", "three"), SHAPES["stall"])
    )
    given = {"one": one, "two": two, "three": three}
    frames = {
        name: tables.framed(STALL, [{"line": place, **row} for place, row in enumerate(rows)])
        for name, rows in given.items()
    }
    found = selection.rows(checked, frames)
    expected = [
        (i, j, k)
        for i, a in enumerate(one)
        for j, b in enumerate(two)
        for k, c in enumerate(three)
        if a["cpus"] is not None and a["cpus"] == b["cpus"]
        if c["comm"] is not None and c["comm"] == b["comm"] and c["cpus"] is not None and a["cpus"] >= c["cpus"]
        if a["fixed"] and None not in (b["wait_s"], c["wait_s"]) and b["wait_s"] <= c["wait_s"]
        if (a["comm"] == "a" or c["comm"] == "ab") and c["cpus"] != 1
    ]
    columns = (found[f"{side}.line"].tolist() for side in "abc")
    assert sorted(zip(*columns, strict=True)) == expected


def test_joining_joins_is_bounded() -> None:
    known, source = dict(SHAPES), "stall"
    for depth in range(3):
        text = f"{source} as a join {source} as b on a.{'a.' * depth}comm == b.{'a.' * depth}comm"
        source = f"j{depth}"
        _, known[source] = selection.checked(grammar.parse_selection(text), known)
    with pytest.raises(ExpressionError, match="joins more than 8 tables"):
        selection.checked(grammar.parse_selection("j2 as a join j2 as b on a.a.a.a.comm == b.a.a.a.comm"), known)


def test_a_join_of_too_many_pairs_stops() -> None:
    frame = tables.framed(STALL, [{"comm": "a", "line": place} for place in range(1001)])
    checked, _ = selection.checked(grammar.parse_selection("stall as a join stall as b on a.comm == b.comm"), SHAPES)
    with pytest.raises(selection.TooManyPairs):
        selection.rows(checked, {"stall": frame})


@pytest.mark.parametrize(
    "text", ["@pd.io.common.os.system('id')", "comm.to_csv('/tmp/x') == 1", "__import__", "comm[0]", "`a`"]
)
def test_what_pandas_would_run_is_no_expression(text: str) -> None:
    with pytest.raises(ExpressionError):
        where(text)


def test_what_pandas_would_run_is_a_mere_text_between_quotes() -> None:
    text = "@pd.io.common.os.system('touch /tmp/x')"
    assert lines_of(f'comm == "{text}"', [{"comm": text}, {"comm": "a"}]) == [1]


def test_an_empty_table_keeps_its_types() -> None:
    frame = tables.framed(STALL, [])
    assert isinstance(frame, pd.DataFrame)
    assert {name: str(frame[name].dtype) for name in STALL.columns} == {
        name: column.dtype for name, column in STALL.columns.items()
    }


# --- quantities for people -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (272_380, "ms", "4 min 32 s"),
        (287_000, "ms", "4 min 47 s"),
        (299_999, "ms", "4 min 59 s"),
        (300_000, "ms", "5 min"),
        (7_500, "s", "2 h 5 min"),
        (850, "ms", "850 ms"),
        (4.7, "s", "4.7 s"),
        (0, "s", "0 ns"),
        (90_061, "s", "1 d 1 h"),
        (59.9999, "s", "60 s"),
    ],
)
def test_durations_read_naturally(value: float, unit: str, shown: str) -> None:
    assert quantity.duration(value, unit) == shown


def test_a_share_is_never_rounded_to_all_or_nothing() -> None:
    assert quantity.percent(735_110 / 735_405) == "99.96 %"
    assert quantity.percent(1) == "100 %"
    assert quantity.percent(0.999999) == "more than 99.99 %"
    assert quantity.percent(0.000001) == "less than 0.01 %"
    assert quantity.percent(0) == "0 %"
    assert quantity.percent(0.8) == "80 %"
