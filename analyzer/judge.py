"""Rules against a case: what was found, what was not, and what could not be judged."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from analyzer.case import Case
from analyzer.findings import SEVERITIES, Edge, Evidence, Finding, NotJudged, Step, Timing
from analyzer.language import condition, measure, question, selection, sentence
from analyzer.language.expression import Node
from analyzer.language.measure import View
from analyzer.rules import Advice, Explanation, Rule

if TYPE_CHECKING:
    import pandas as pd

MAX_EVIDENCE = 50
"""Most rows of evidence kept of one selection; `Finding.evidence_rows` has the true number."""


def judge(
    case: Case, rules: Mapping[str, Rule], only: Collection[str] | None = None
) -> tuple[list[Finding], list[NotJudged], list[str]]:
    """Return the findings (worst first, then by id), the rules not judged, and the ids of those judged and not found.

    `only` restricts the judging to these ids. A rule is not judged when its condition is unknown, or when it does not
    hold and a table it needs is not present.
    """
    fired: list[tuple[Rule, Finding, View]] = []
    not_judged: list[NotJudged] = []
    not_found: list[str] = []
    for rule in rules.values():
        if only is not None and rule.id not in only:
            continue
        view = View(case.tables, rule.selections, rule.shapes)
        reasons = _verdict(rule, view)
        if reasons is None:
            fired.append((rule, _finding(rule, view), view))
        elif reasons:
            steps = [_step(step, view) for step in rule.capture]
            not_judged.append(NotJudged(rule.id, rule.title, reasons, steps, _absent(rule, view)))
        else:
            not_found.append(rule.id)
    present = {rule.id for rule, _, _ in fired}
    for rule, finding, view in fired:
        finding.explains = list(_edges(rule, view, present))
    findings = [finding for _, finding, _ in fired]
    findings.sort(key=lambda finding: (-SEVERITIES.index(finding.severity), finding.rule))
    return findings, not_judged, not_found


def _verdict(rule: Rule, view: View) -> list[str] | None:
    """Return None when the rule fires, else why it could not be judged: no reason means it was, and did not fire."""
    held = measure.truth(rule.when, view)
    if held:
        return None
    reasons = [
        f"no capture in the bundle could have filled `{name}` ({rule.about[name]})" for name in _absent(rule, view)
    ]
    if held is None and view.too_many_pairs:
        reasons.append(f"a join of this rule would look at more than {selection.MAX_PAIRS:,} pairs of rows")
    if held is None and not reasons:
        reasons = ["the rows it would compare in time have no clock in common"]
    return reasons


def _absent(rule: Rule, view: View) -> list[str]:
    """Return the tables that a rule which does not fire would have to see, and that the case does not have."""
    asked = rule.tables(question.used(rule.when, but="found")) if measure.truth(rule.when, view) is None else []
    return sorted({*rule.needs, *asked} - view.tables.keys())


def _finding(rule: Rule, view: View) -> Finding:
    severity = next((severity for when, severity in rule.grade if _holds(when, view)), rule.severity)
    evidence, rows, first_at = _evidence(rule, view)
    against = [objection for objection in rule.against if _holds(objection.when, view)]
    refuted = [sentence.fill(objection.because, view) for objection in against if objection.refutes]
    return Finding(
        rule=rule.id,
        title=rule.title,
        severity=severity,
        text=sentence.fill(rule.finding, view),
        evidence=evidence,
        evidence_rows=rows,
        against=[sentence.fill(objection.because, view) for objection in against if not objection.refutes],
        refuted=" ".join(refuted),
        direct=rule.indirect is None or not _holds(rule.indirect, view),
        specific=rule.specific,
        mechanism=sentence.fill(rule.mechanism, view),
        first_at=first_at,
        advice=[_step(step, view) for step in rule.advice],
        capture=[_step(step, view) for step in rule.capture],
        looks_like=rule.looks_like,
        misses=rule.misses,
        sources=rule.sources,
    )


def _holds(when: Node, view: View) -> bool:
    """Return whether a condition holds for sure."""
    return measure.truth(when, view) is True


def _step(step: Advice, view: View) -> Step:
    command = sentence.fill(step.command, view, command=True)
    return Step(sentence.fill(step.do, view), command, step.risk, step.check)


def _edges(rule: Rule, view: View, present: Collection[str]) -> Iterator[Edge]:
    """Yield the rule's edges to symptoms that were found too, where their tests hold."""
    for edge in rule.explains:
        if edge.symptom not in present:
            continue
        view.compared_clocks = view.without_clocks = False
        view.untimed_holds = True
        held = edge.when is None or _holds(edge.when, view)
        view.untimed_holds = False
        if held:
            because = sentence.fill(edge.because, view)
            yield Edge(rule.id, edge.symptom, because, _timing(edge, view), edge.weak)


def _timing(edge: Explanation, view: View) -> Timing:
    if edge.when is None:
        return "untested"
    if view.compared_clocks:
        return "timed"
    return "not timed" if view.without_clocks else "tested"


def _evidence(rule: Rule, view: View) -> tuple[list[Evidence], int, str]:
    """Return the kept rows of evidence, how many rows there are, and when the earliest was (ISO, or empty).

    Evidence is the rows of each selection that `when` and `finding` speak of, the narrowest first: the slow calls
    before all calls. A row that two selections share counts once, for the first.
    """
    spoken_of = dict.fromkeys([*question.used(rule.when), *rule.finding.used()])
    written = {name: place for place, name in enumerate(rule.selections)}

    def width(name: str) -> tuple[int, int]:
        frame = view.frame(name)
        return 0 if frame is None else len(frame), written.get(name, len(written))

    kept: list[Evidence] = []
    seen: set[tuple[Any, ...]] = set()
    earliest: int | None = None
    for name in sorted(spoken_of, key=width):
        frame = view.frame(name)
        taken = 0
        for prefix, table in rule.shapes[name].sides if frame is not None and len(frame) else ():
            assert frame is not None
            columns = _columns(frame, prefix)
            at, known = columns["at"]
            if known.any():
                first = int(at[known].min())
                earliest = first if earliest is None else min(earliest, first)
            places = zip(*(columns[key][0].tolist() for key in ("member", "line", "excerpt")), strict=True)
            for row, place in enumerate(places):
                if place in seen:
                    continue
                seen.add(place)
                if taken < MAX_EVIDENCE:
                    taken += 1
                    kept.append(_row(name, table, columns, row))
    return kept, len(seen), "" if earliest is None else sentence.instant(earliest)


def _columns(frame: pd.DataFrame, prefix: str) -> dict[str, tuple[Any, Any]]:
    """Return (values, where there is one) of the common columns of one side of a selection."""
    found = {}
    for name in ("member", "line", "excerpt", "host", "at", "uptime_s", "boot"):
        cells = condition.of_series(frame[f"{prefix}{name}"])
        found[name] = (cells.values, ~cells.missing)
    return found


def _row(name: str, table: str, columns: dict[str, tuple[Any, Any]], row: int) -> Evidence:
    def cell(column: str) -> Any:
        values, known = columns[column]
        return (
            values[row].item() if known[row] and hasattr(values[row], "item") else values[row] if known[row] else None
        )

    at = cell("at")
    return Evidence(
        selection=name,
        table=table,
        member=cell("member") or "",
        line=cell("line") or 0,
        text=cell("excerpt") or "",
        host=cell("host") or "",
        at="" if at is None else sentence.instant(at),
        uptime_s=cell("uptime_s"),
        boot=cell("boot"),
    )
