"""From findings to candidate causes in their order, by comparisons with reasons.

There is no score. A candidate is a finding that no other finding explains, or explains only weakly. Two candidates are
compared by these questions in turn, and the first that tells them apart decides and is printed:

    1. refuted by the bundle          < not refuted
    2. indirect evidence              < direct evidence
    3. explains fewer findings        < explains more; as many but milder < worse
    4. follows what both explain      < precedes it
    5. generic signature              < specific signature
    6. milder itself                  < worse itself

Confidence is a word with a definition (`CONFIDENCE`), lowered by what speaks against the candidate, never a number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key

from analyzer.case import Case
from analyzer.findings import SEVERITIES, Candidate, Confidence, Edge, Finding, NotJudged, Verdict

CONFIDENCE: dict[Confidence, str] = {
    "confirmed": "Direct evidence from at least two captures, and nothing in the bundle speaks against the cause.",
    "likely": "Direct evidence, but only one capture shows it, or something in the bundle speaks against it.",
    "possible": "Indirect evidence, or a generic signature that many causes share.",
    "hypothesis": "Nothing shows it directly and something speaks against it, or the bundle refutes it.",
}


def rank(case: Case, findings: list[Finding], not_judged: list[NotJudged], not_found: list[str]) -> Verdict:
    """Return the verdict: candidates in order, each with reasons, chain, confidence and what would settle it."""
    present = {finding.rule: finding for finding in findings}
    edges = [edge for finding in findings for edge in finding.explains if edge.symptom in present]
    put_forward = [present[rule] for rule in sorted(_candidates(present, edges))]
    chains = {finding.rule: chain(finding.rule, edges) for finding in put_forward}

    def compared(a: Finding, b: Finding) -> int:
        return _compared(a, b, chains, present)[0]

    ordered = sorted(put_forward, key=cmp_to_key(compared), reverse=True)
    candidates = [
        _candidate(case, finding, ordered[place + 1 : place + 2], chains, present)
        for place, finding in enumerate(ordered)
    ]
    return Verdict(case, findings, candidates, not_judged, not_found)


def chain(rule: str, edges: list[Edge]) -> list[Edge]:
    """Return every edge reachable from a rule, nearest first, each once."""
    reached, frontier, found = {rule}, [rule], list[Edge]()
    while frontier:
        following = [edge for edge in edges if edge.cause in frontier and edge not in found]
        found += following
        frontier = list(dict.fromkeys(edge.symptom for edge in following if edge.symptom not in reached))
        reached.update(frontier)
    return found


def _candidates(present: dict[str, Finding], edges: list[Edge]) -> set[str]:
    """Return the rules worth putting forward: above `info`, and not strongly explained by another finding.

    Findings that explain each other in a ring would all vanish: there the ones nothing outside explains stay.
    """
    strong = [
        edge for edge in edges if not edge.weak and not present[edge.cause].refuted and edge.cause != edge.symptom
    ]
    below = {rule: {edge.symptom for edge in chain(rule, strong)} for rule in present}
    return {
        rule
        for rule, finding in present.items()
        if finding.severity != "info"
        and not any(rule in below[other] and other not in below[rule] for other in present if other != rule)
    }


Comparison = Callable[[Finding, Finding, dict[str, list[Edge]], dict[str, Finding]], tuple[int, str]]
"""Positive when the first is the better candidate, with the reason; zero when the question does not tell."""


def _by_refutation(
    a: Finding, b: Finding, chains: dict[str, list[Edge]], present: dict[str, Finding]
) -> tuple[int, str]:
    return bool(b.refuted) - bool(a.refuted), "nothing in the bundle refutes it, while {other} is refuted"


def _by_directness(
    a: Finding, b: Finding, chains: dict[str, list[Edge]], present: dict[str, Finding]
) -> tuple[int, str]:
    return a.direct - b.direct, "its evidence is direct, that of {other} indirect"


def _by_reach(a: Finding, b: Finding, chains: dict[str, list[Edge]], present: dict[str, Finding]) -> tuple[int, str]:
    mine, theirs = (explained(chains[finding.rule], finding.rule) for finding in (a, b))
    if len(mine) != len(theirs):
        number = f"{len(mine)} of the other findings" if len(theirs) else _names(mine, present)
        return len(mine) - len(theirs), f"it explains {number}, {{other}} explains {len(theirs) or 'none'}"
    worst_mine, worst_theirs = (_severities(rules, present) for rules in (mine, theirs))
    return (worst_mine > worst_theirs) - (
        worst_mine < worst_theirs
    ), "what it explains is worse than what {other} explains"


def _by_time(a: Finding, b: Finding, chains: dict[str, list[Edge]], present: dict[str, Finding]) -> tuple[int, str]:
    if not (a.first_at and b.first_at):
        return 0, ""
    return (a.first_at < b.first_at) - (a.first_at > b.first_at), "it was seen first, before {other}"


def _by_specificity(
    a: Finding, b: Finding, chains: dict[str, list[Edge]], present: dict[str, Finding]
) -> tuple[int, str]:
    return a.specific - b.specific, "its signature is specific, that of {other} is shared by many causes"


def _by_severity(a: Finding, b: Finding, chains: dict[str, list[Edge]], present: dict[str, Finding]) -> tuple[int, str]:
    mine, theirs = SEVERITIES.index(a.severity), SEVERITIES.index(b.severity)
    return mine - theirs, f"it is itself worse: {a.severity} against {b.severity} for {{other}}"


COMPARISONS: tuple[Comparison, ...] = (
    _by_refutation,
    _by_directness,
    _by_reach,
    _by_time,
    _by_specificity,
    _by_severity,
)


def _compared(a: Finding, b: Finding, chains: dict[str, list[Edge]], present: dict[str, Finding]) -> tuple[int, str]:
    """Return the first comparison that tells two candidates apart; by id, without a reason, when none does."""
    for comparison in COMPARISONS:
        order, reason = comparison(a, b, chains, present)
        if order:
            return order, reason
    return (a.rule < b.rule) - (
        a.rule > b.rule
    ), "nothing tells it from {other}: they stand in the order of their names"


def explained(edges: list[Edge], rule: str) -> list[str]:
    """Return the findings a chain explains, nearest first, without the cause itself."""
    return [symptom for symptom in dict.fromkeys(edge.symptom for edge in edges) if symptom != rule]


def _severities(rules: list[str], present: dict[str, Finding]) -> list[int]:
    return sorted((SEVERITIES.index(present[rule].severity) for rule in rules), reverse=True)


def _names(rules: list[str], present: dict[str, Finding]) -> str:
    titles = [f"“{present[rule].title}”" for rule in rules]
    return titles[0] if len(titles) == 1 else ", ".join(titles[:-1]) + " and " + titles[-1]


def _candidate(
    case: Case,
    finding: Finding,
    following: list[Finding],
    chains: dict[str, list[Edge]],
    present: dict[str, Finding],
) -> Candidate:
    """Return one candidate with everything the report says about why it stands where it stands."""
    symptoms = explained(chains[finding.rule], finding.rule)
    reasons = []
    if symptoms:
        reasons.append(f"It explains {_names(symptoms, present)}.")
    for other in following:
        _, reason = _compared(finding, other, chains, present)
        reasons.append(f"It stands before “{other.title}”: " + reason.format(other="that one") + ".")
    against = list(finding.against)
    if finding.refuted:
        against.insert(0, f"The bundle refutes it: {finding.refuted}")
    links = chains[finding.rule]
    if untimed := sum(edge.timing == "not timed" for edge in links):
        against.append(f"{untimed} of {len(links)} links of its chain could not be timed: the captures share no clock.")
    members = {evidence.member for evidence in finding.evidence}
    if len(members) == 1 and finding.direct and finding.specific:
        against.append(f"Only one capture shows it: {next(iter(members))}.")
    touched = members | {evidence.member for rule in symptoms for evidence in present[rule].evidence}
    return Candidate(
        finding,
        _confidence(finding, len(members)),
        reasons,
        against,
        [
            f"{gap.member}:{gap.line}: {gap.what}" if gap.line else f"{gap.member}: {gap.what}"
            for gap in case.gaps
            if gap.member in touched
        ],
        finding.capture,
        chains[finding.rule],
    )


def _confidence(finding: Finding, captures: int) -> Confidence:
    """Return the word CONFIDENCE defines for this finding."""
    if finding.refuted or (not finding.direct and finding.against):
        return "hypothesis"
    if not finding.direct or not finding.specific:
        return "possible"
    return "confirmed" if captures >= 2 and not finding.against else "likely"
