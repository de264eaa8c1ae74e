"""Patterns agree with `re` wherever both understand them, and never hang."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.language.pattern import MAX_PATTERN, Pattern, PatternError

ATOMS = st.sampled_from(
    ["a", "b", r"\d", r"\w", r"\s", r"\W", ".", "[ab]", "[^a]", "[a-c_]", r"\.", "-", r"[\d.]", "_"]
)
EDGES = st.sampled_from(["^", "$", r"\b", r"\B"])
QUANTIFIERS = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "+?"])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.tuples(st.sampled_from(["(", "(?:"]), inner).map(lambda parts: f"{parts[0]}{parts[1]})")
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda ways: f"(?:{'|'.join(ways)})"),
        group,
        st.tuples(group, QUANTIFIERS).map("".join),
        st.tuples(ATOMS, QUANTIFIERS).map("".join),
    )


PATTERNS = st.recursive(ATOMS | EDGES, larger, max_leaves=6)
TEXTS = st.text(alphabet="ab_c1. -\né", max_size=10)


@settings(max_examples=400)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=4))
def test_it_finds_what_re_finds(source: str, texts: list[str]) -> None:
    pattern = Pattern(source)
    for text in texts:
        # `re` takes \B for false in an empty text before Python 3.14.
        if text or r"\B" not in source:
            assert pattern.search(text) is (re.search(source, text, re.M | re.A) is not None), text


@pytest.mark.parametrize(
    "source", ["(a+)+b", "(a|a)*b", "(a|aa)+$b", "a*a*a*a*a*a*b", "(.*)*x", "((a*)*)*b", "(a?){50}a{50}c", "(a|b|ab)*c"]
)
def test_patterns_that_make_re_hang_end_at_once(source: str) -> None:
    assert Pattern(source).search("a" * 20_000) is False


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("a)", 1),
        ("(a", 0),
        ("[a", 0),
        ("*a", 0),
        ("a{2,1}", 1),
        ("a{5000}", 1),
        ("(?=a)", 0),
        (r"(a)\1", 3),
        ("[b-a]", 3),
        ("^*", 1),
        ("a" * (MAX_PATTERN + 1), MAX_PATTERN),
        ("(" * 100, 50),
        ("(a{100}){100}", 0),
        ("\\", 1),
    ],
)
def test_what_is_not_understood_is_refused_at_its_place(source: str, place: int) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern(source)
    assert caught.value.place == place


def outcome(source: str) -> PatternError | None:
    try:
        Pattern(source).search("ab01")
    except PatternError as error:
        return error
    return None


@given(st.text(alphabet="ab()[]{}|*+?^$\\-,0123.", max_size=20))
def test_any_text_is_a_pattern_or_refused(source: str) -> None:
    error = outcome(source)
    assert error is None or 0 <= error.place <= len(source)


def test_a_forgotten_table_does_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyzer.language.pattern.MAX_STEPS", 3)
    pattern = Pattern("b.{3}c")
    assert pattern.search("abbaabcbaabcacb") is (re.search("b.{3}c", "abbaabcbaabcacb") is not None)
    assert pattern.search("b" + "x" * 50 + "b123c")
    assert not pattern.search("ab" * 50)
