"""The report as text for a terminal: the verdict first, 100 columns, colour only when asked for.

Nothing from the bundle can drive the terminal: every control sign is an escape before it is written. Colour repeats
what the words say already.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analyzer.case import Case
from analyzer.findings import Candidate, Edge, Evidence, Finding, Step, Verdict
from analyzer.ranking import CONFIDENCE
from analyzer.report import story
from analyzer.report.figures.shapes import plural
from analyzer.report.visible import one_line, visible

WIDTH = 100
EVIDENCE = 3
"""Rows of evidence shown for a finding."""
GAPS = 12

_INK = {"critical": "1;31", "high": "31", "medium": "33", "low": "36", "info": "2", "head": "1", "quiet": "2"}


@dataclass(frozen=True, slots=True)
class Pen:
    """Writes words in colour, or not."""

    colour: bool

    def __call__(self, text: str, ink: str) -> str:
        """Return the text in the ink."""
        return f"\x1b[{_INK[ink]}m{text}\x1b[0m" if self.colour and ink in _INK else text


def render_text(verdict: Verdict, *, colour: bool = False) -> str:
    """Return the report, ending in a newline."""
    pen = Pen(colour)
    lines = [
        *_head(verdict, pen),
        *_candidates(verdict, pen),
        *_others(verdict, pen),
        *_not_judged(verdict, pen),
        *_gaps(verdict, pen),
        *_foot(verdict, pen),
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def inventory_lines(case: Case) -> list[str]:
    """Return the inventory of a bundle as lines: what each part was taken for, and what is known to be missing."""
    lines = [f"{'rows':>8}  {'read as':<16} part"]
    for entry in case.inventory:
        part = f"{entry.member}, {entry.section}" if entry.section else entry.member
        told = f"  ($ {one_line(entry.capture, 80)})" if entry.capture else ""
        taken = entry.parser or f"- {entry.note or 'not recognised'}"
        lines.append(f"{entry.rows if entry.parser else '':>8}  {visible(taken):<16} {one_line(part, 200)}{told}")
    read = sum(1 for entry in case.inventory if entry.parser)
    lines += ["", f"{plural(len(case.inventory), 'part')}, {read} read, {plural(len(case.gaps), 'gap')}"]
    return lines + [f"  {_where(gap.member, gap.line)}  {one_line(gap.what)}" for gap in case.gaps]


def _head(verdict: Verdict, pen: Pen) -> Iterator[str]:
    """Yield the verdict: what, how sure, on which host."""
    told = story.tell(verdict)
    yield from (pen(line, "head") for line in textwrap.wrap(told.headline, WIDTH))
    if verdict.candidates:
        lead = verdict.candidates[0]
        yield f"{lead.confidence} · {pen(lead.finding.severity, lead.finding.severity)} · {lead.finding.rule}"
    facts = [fact for fact in (told.host, told.kernel, told.span) if fact]
    if facts:
        yield from (pen(line, "quiet") for line in _wrapped(" · ".join(facts)))
    yield ""
    yield from _wrapped(" ".join(told.happened))


def _candidates(verdict: Verdict, pen: Pen) -> Iterator[str]:
    """Yield the candidates: the first in full, the others with their reasons."""
    findings = {finding.rule: finding for finding in verdict.findings}
    for place, candidate in enumerate(verdict.candidates, 1):
        finding = candidate.finding
        yield from _heading(f"{place}. {one_line(finding.title, 90)}" if len(verdict.candidates) > 1 else "Cause", pen)
        yield from _wrapped(finding.text, "  ")
        yield from _evidence(finding, pen)
        yield from _chain(candidate.chain, findings, pen)
        yield from _sure(candidate, pen)
        if place == 1:
            yield from _steps("Do now", finding.advice, pen)
            yield from _steps("Ask for next", candidate.settle, pen)


def _chain(chain: Sequence[Edge], findings: dict[str, Finding], pen: Pen) -> Iterator[str]:
    """Yield each edge of the chain."""
    if not chain:
        return
    yield ""
    yield f"  {pen('Leads to', 'head')}"
    for edge in chain:
        symptom = findings.get(edge.symptom)
        severity = symptom.severity if symptom else "info"
        title = one_line(symptom.title, 70) if symptom else edge.symptom
        timing = {
            "timed": "the times fit",
            "tested": "borne out by other lines",
            "not timed": "no common clock",
            "untested": "not tested",
        }[edge.timing]
        yield f"  {edge.cause} ──▶ {edge.symptom}  {pen(f'[{severity}] {title}', severity)}"
        remarks = f"{timing}, indirect" if edge.weak else timing
        yield from _wrapped(f"because {edge.because} ({remarks})", "      ")


def _sure(candidate: Candidate, pen: Pen) -> Iterator[str]:
    """Yield how sure the candidate is, and why not surer."""
    yield ""
    yield f"  {pen('How sure', 'head')}: {candidate.confidence}"
    yield from _wrapped(CONFIDENCE[candidate.confidence], "  ")
    for reason in candidate.reasons:
        yield from _wrapped(reason, "  + ", "    ")
    for reason in candidate.against:
        yield from _wrapped(reason, "  - ", "    ")
    for gap in candidate.gaps[:GAPS]:
        yield from _wrapped(f"gap: {gap}", "  - ", "    ")
    if len(candidate.gaps) > GAPS:
        yield f"  - {len(candidate.gaps) - GAPS} more gaps"


def _steps(title: str, steps: Sequence[Step], pen: Pen) -> Iterator[str]:
    """Yield steps of advice or captures."""
    if not steps:
        return
    yield ""
    yield f"  {pen(title, 'head')}"
    for place, step in enumerate(steps, 1):
        yield from _wrapped(step.do, f"  {place}. ", "     ")
        for line in visible(step.command).splitlines():
            yield f"       $ {line}"  # never wrapped: it is there to be copied
        if step.risk:
            yield from _wrapped(f"risk: {step.risk}", "     ")
        if step.check:
            yield from _wrapped(f"it worked when: {step.check}", "     ")


def _others(verdict: Verdict, pen: Pen) -> Iterator[str]:
    """Yield the findings that are no candidates."""
    candidates = {candidate.finding.rule for candidate in verdict.candidates}
    others = [finding for finding in verdict.findings if finding.rule not in candidates]
    if not others:
        return
    yield from _heading("Other findings", pen)
    for place, finding in enumerate(others):
        if place:
            yield ""
        chip = pen(f"[{finding.severity}]", finding.severity)
        yield f"  {chip} {pen(one_line(finding.title, 80), 'head')}  {pen(finding.rule, 'quiet')}"
        yield from _wrapped(finding.text, "    ")
        yield from _evidence(finding, pen)


def _evidence(finding: Finding, pen: Pen) -> Iterator[str]:
    """Yield the first rows of evidence, each with the first line of its excerpt."""
    for row in finding.evidence[:EVIDENCE]:
        yield f"    {_where(row.member, row.line)}"
        yield f"      {pen(_first_line(row), 'quiet')}"
    if finding.evidence_rows > EVIDENCE:
        yield f"    and {finding.evidence_rows - min(EVIDENCE, len(finding.evidence)):,} more"


def _first_line(row: Evidence) -> str:
    """Return the first line of an excerpt that says anything."""
    first = next((line for line in row.text.split("\n") if line.strip()), "")
    return one_line(first, WIDTH - 6)


def _not_judged(verdict: Verdict, pen: Pen) -> Iterator[str]:
    """Yield the rules that could not be judged, and what to capture."""
    if not verdict.not_judged:
        return
    yield from _heading("Not judged: what the bundle does not hold, and how to capture it", pen)
    for ask in story.asks(verdict):
        yield from _wrapped(f"{ask.what}: {', '.join(rule.rule for rule in ask.rules)}", "  ", "    ")
        for command in ask.commands:
            for line in visible(command).splitlines():
                yield f"      $ {line}"


def _gaps(verdict: Verdict, pen: Pen) -> Iterator[str]:
    """Yield the gaps."""
    gaps = verdict.case.gaps
    if not gaps:
        return
    yield from _heading("Gaps: evidence known to be lost or unreadable", pen)
    for gap in gaps[:GAPS]:
        yield from _wrapped(f"{_where(gap.member, gap.line)}  {gap.what}", "  ", "    ")
    if len(gaps) > GAPS:
        yield f"  and {len(gaps) - GAPS:,} more"


def _foot(verdict: Verdict, pen: Pen) -> Iterator[str]:
    """Yield what was read and what stayed silent."""
    case = verdict.case
    read = sum(1 for entry in case.inventory if entry.parser)
    yield ""
    parts = plural(len(case.inventory), "part")
    text = f"{case.bundle}: {read} of {parts} read; {len(verdict.not_found)} rules judged and not found"
    yield from (pen(line, "quiet") for line in _wrapped(text))


def _heading(text: str, pen: Pen) -> list[str]:
    return ["", pen(text, "head"), pen("─" * min(len(text), WIDTH), "quiet")]


def _wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """Return the text in lines of at most WIDTH columns; what has no blank in it is not broken."""
    indent = first if rest is None else rest
    flat = " ".join(visible(text).split())
    options = {"break_long_words": True, "break_on_hyphens": False}
    return textwrap.wrap(flat, WIDTH, initial_indent=first, subsequent_indent=indent, **options) or [first]  # type: ignore[arg-type]


def _where(member: str, line: int) -> str:
    """Return `member:line`, or the member where no line is known."""
    return f"{one_line(member, 200)}:{line}" if line else one_line(member, 200)
