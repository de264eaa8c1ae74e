"""The whole product under attack: bundles and rules from strangers, made here by code, none stored."""

from __future__ import annotations

import itertools
import re
from functools import cache
from pathlib import Path

import pytest

from analyzer import case, judge, rules
from analyzer.case import Case
from analyzer.rules import Rule

CORPUS = Path(__file__).parent / "corpus"
CAPTURES = sorted(path for path in CORPUS.glob("*/*") if path.suffix in (".txt", ".log"))
FIGURE = re.compile(r"\d+(?:\.\d+)?")
FIGURES = ("9" * 400, "9" * 5000, "9223372036854775808", "-7", "nan", "1e999", "\u0661")
"""Too long for int(), beyond Int64, negative, no number, infinite, and a digit that is not ASCII."""


@pytest.fixture(autouse=True)
def defects_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of a parser raises here, where users get a gap."""
    monkeypatch.setenv("POSTMORTEM_DEBUG", "1")


@cache
def book() -> dict[str, Rule]:
    """Return the shipped rules."""
    return rules.load([])


def judged(files: dict[str, str]) -> Case:
    """Return the case of the files, after every shipped rule was judged on it."""
    found = case.read_texts(files)
    judge.judge(found, book())
    return found


def absurd(path: Path, figure: str, some: int) -> str:
    """Return a capture with every so many-th number replaced."""
    counter = itertools.count()
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    return FIGURE.sub(lambda found: found[0] if next(counter) % some else figure, text)


# Numbers and dates


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure[:4]}-{len(figure)}")
def test_no_number_ends_the_analysis(figure: str) -> None:
    """All captures with all their numbers absurd, and with every third of them, are read and judged."""
    for some in (1, 3):
        judged({f"{path.parent.name}/{path.name}": absurd(path, figure, some) for path in CAPTURES})


def test_a_number_beyond_its_column_is_a_gap() -> None:
    """The value is missing, the row stays, the loss is told with its line."""
    found = case.read_texts({"f.txt": f"FUNC    COUNT\ntcp_push_one    {'9' * 400}\ntcp_sendmsg    7\n"})
    counts = found.tables["func_count"]
    assert counts["function"].tolist() == ["tcp_push_one", "tcp_sendmsg"]
    assert counts["events"].isna().tolist() == [True, False]
    assert [(gap.member, gap.line) for gap in found.gaps] == [("f.txt", 2)]
    assert "events" in found.gaps[0].what


def test_a_defect_of_a_parser_costs_one_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other captures are read, and the gap says whose fault it is."""
    from parsers import funccount

    def fails(capture: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setenv("POSTMORTEM_DEBUG", "")
    monkeypatch.setattr(funccount, "parse", fails)
    found = case.read_texts({"a": "FUNC    COUNT\nf    7\n", "b": "Features for eth0:\ntx-checksumming: on\n"})
    assert ["a bug of ours" in gap.what for gap in found.gaps] == [True]
    assert len(found.tables["offload"]) == 1
