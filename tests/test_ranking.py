"""Candidates are put in order by comparisons with reasons."""

from __future__ import annotations

import pytest

from analyzer.case import Case
from analyzer.findings import Edge, Evidence, Finding
from analyzer.ranking import rank
from parsers.shapes import Gap


def finding(rule: str, severity: str = "high", *, explains: tuple[str, ...] = (), **fields: object) -> Finding:
    """Return a finding that explains the rules named."""
    edges = [Edge(rule, symptom, f"{rule} brings {symptom}", "timed") for symptom in explains]
    evidence = [Evidence("let", "table", f"{rule}.log", 1, "line")]
    made = Finding(rule, rule.title(), severity, f"{rule} was found.", evidence, 1, explains=edges)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def ranked(*findings: Finding, gaps: tuple[Gap, ...] = ()) -> list[str]:
    """Return the candidates' rules in order."""
    verdict = rank(Case("bundle", {}, list(gaps)), list(findings), [], [])
    return [candidate.finding.rule for candidate in verdict.candidates]


def test_what_is_explained_is_no_candidate() -> None:
    """Only the head of a chain is put forward, and its chain reaches to the end, nearest first."""
    found = (finding("a", explains=("b",)), finding("b", explains=("c",)), finding("c"))
    verdict = rank(Case("bundle", {}), list(found), [], [])
    assert [c.finding.rule for c in verdict.candidates] == ["a"]
    assert [(e.cause, e.symptom) for e in verdict.candidates[0].chain] == [("a", "b"), ("b", "c")]


def test_weakly_explained_stays_a_candidate() -> None:
    """A weak edge does not take a finding out of the list."""
    a, b = finding("a"), finding("b")
    a.explains = [Edge("a", "b", "perhaps", "untested", weak=True)]
    assert set(ranked(a, b)) == {"a", "b"}


def test_info_is_never_a_candidate() -> None:
    """What is merely worth knowing causes nothing."""
    assert ranked(finding("a", "info")) == []


def test_a_ring_keeps_its_members() -> None:
    """Findings that explain each other do not vanish."""
    assert ranked(finding("a", explains=("b",)), finding("b", explains=("a",))) == ["a", "b"]


@pytest.mark.parametrize(
    ("better", "worse", "reason"),
    [
        (finding("z"), finding("a", refuted="the log says no"), "refuted"),
        (finding("z"), finding("a", direct=False), "indirect"),
        (finding("z", explains=("x", "y")), finding("a", explains=("x",)), "explains"),
        (finding("z", explains=("y",)), finding("a", explains=("x",)), "worse than what"),
        (finding("z", first_at="2026-01-01T00:00:00Z"), finding("a", first_at="2026-01-02T00:00:00Z"), "seen first"),
        (finding("z"), finding("a", specific=False), "specific"),
        (finding("z", "critical"), finding("a", "high"), "itself worse"),
        (finding("a"), finding("z"), "order of their names"),
    ],
)
def test_each_comparison_decides_and_says_so(better: Finding, worse: Finding, reason: str) -> None:
    """Each question, where those before it tell nothing, decides the order and is printed as the reason."""
    symptoms = [finding("x", "low"), finding("y", "critical")]
    kept = [s for s in symptoms if any(e.symptom == s.rule for f in (better, worse) for e in f.explains)]
    verdict = rank(Case("bundle", {}), [worse, better, *kept], [], [])
    assert [c.finding.rule for c in verdict.candidates] == [better.rule, worse.rule]
    assert reason in " ".join(verdict.candidates[0].reasons)


def test_a_refuted_cause_explains_nothing() -> None:
    """What a refuted finding would explain becomes a candidate itself, before it."""
    assert ranked(finding("a", explains=("b",), refuted="no"), finding("b", "low")) == ["b", "a"]


def test_confidence_is_lowered_by_what_speaks_against() -> None:
    """Two captures and nothing against: confirmed; something against: likely; indirect: possible, or less."""

    def confidence(**fields: object) -> str:
        made = finding("a", **fields)
        made.evidence.append(Evidence("let", "table", "other.log", 1, "line"))
        return rank(Case("bundle", {}), [made], [], []).candidates[0].confidence

    assert confidence() == "confirmed"
    assert confidence(against=["the labels contradict it"]) == "likely"
    assert confidence(direct=False) == "possible"
    assert confidence(direct=False, against=["the labels contradict it"]) == "hypothesis"
    assert confidence(refuted="no") == "hypothesis"


def test_gaps_weaken_only_what_they_touch() -> None:
    """A gap is told with a candidate when it lies in a member its evidence comes from."""
    gaps = [Gap("a.log", 3, "9 lines lost"), Gap("z.log", 1, "cut")]
    verdict = rank(Case("bundle", {}, gaps), [finding("a")], [], [])
    assert verdict.candidates[0].gaps == ["a.log:3: 9 lines lost"]
