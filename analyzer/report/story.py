"""The verdict in sentences, the same ones on the page, in the PDF and on the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from analyzer import tables
from analyzer.findings import SEVERITIES, Finding, NotJudged, Verdict
from analyzer.report.figures.shapes import duration, plural, stamp
from analyzer.report.visible import one_line
from parsers.kernel_log.message import YEARLESS

TITLES = 4
"""How many symptoms the story names beside the worst."""


@dataclass(frozen=True, slots=True)
class Story:
    """What the first screen says before any detail."""

    headline: str
    happened: list[str]
    """Sentences: what was seen and what it leads back to."""
    host: str
    kernel: str
    hardware: str
    span: str


def tell(verdict: Verdict) -> Story:
    """Return the story of a verdict."""
    facts = verdict.case.facts
    headline = verdict.candidates[0].finding.title if verdict.candidates else _nothing(verdict)
    return Story(
        one_line(headline, 200),
        _happened(verdict),
        _listed(facts.get("hosts", [])),
        _listed(facts.get("kernels", [])),
        _listed(facts.get("hardware", [])),
        span(verdict),
    )


def title(verdict: Verdict) -> str:
    """Return the title of the document."""
    host = _listed(verdict.case.facts.get("hosts", []))
    where = host or one_line(verdict.case.bundle.rstrip("/").rpartition("/")[2] or verdict.case.bundle, 80)
    return f"Incident report: {tell(verdict).headline} ({where})"


def role(finding: Finding, verdict: Verdict) -> str:
    """Return what part a finding plays: a candidate, a consequence of one, or on its own."""
    for place, candidate in enumerate(verdict.candidates, 1):
        if candidate.finding.rule == finding.rule:
            return f"candidate {place}"
    causes = [edge.cause for other in verdict.findings for edge in other.explains if edge.symptom == finding.rule]
    if causes:
        return "follows from " + ", ".join(dict.fromkeys(causes))
    return "context" if finding.severity == "info" else "on its own"


def _nothing(verdict: Verdict) -> str:
    """Return the headline of a bundle without a candidate."""
    return "No known failure signature found" if not verdict.findings else "Nothing found that could be a cause"


def _happened(verdict: Verdict) -> list[str]:
    """Return what happened, in two or three sentences made from the findings."""
    if not verdict.candidates:
        return _nothing_happened(verdict)
    lead = verdict.candidates[0]
    known = {finding.rule: finding for finding in verdict.findings}
    reached = list(dict.fromkeys(edge.symptom for edge in lead.chain if edge.symptom in known))
    symptoms = sorted((known[rule] for rule in reached), key=lambda f: -SEVERITIES.index(f.severity))
    sentences = []
    if symptoms:
        worst = symptoms[0]
        sentences.append(f"{one_line(worst.title, 200)}: {_sentence(worst.text)}")
        also = [f"“{one_line(finding.title, 120)}”" for finding in symptoms[1 : 1 + TITLES]]
        if len(symptoms) > 1 + TITLES:
            also.append(plural(len(symptoms) - 1 - TITLES, "milder finding"))
        if also:
            verb = "goes" if len(also) == 1 else "go"
            sentences.append(f"With it {verb} {_and(also)}.")
        sentences.append(f"{'All of this' if also else 'It'} leads back to “{one_line(lead.finding.title, 200)}”.")
    else:
        others = len(verdict.findings) - 1
        sentences.append(_sentence(lead.finding.mechanism or lead.finding.text))
        sentences.append(
            f"It explains none of the {plural(others, 'other finding')}." if others else "It is the only finding."
        )
    apart = [
        f for f in verdict.findings if f.rule not in {lead.finding.rule, *reached} and SEVERITIES.index(f.severity) > 1
    ]
    if apart:
        verb = "is" if len(apart) == 1 else "are"
        sentences.append(f"{plural(len(apart), 'further finding')} of some weight {verb} not explained by it.")
    return sentences


def _nothing_happened(verdict: Verdict) -> list[str]:
    """Return what can honestly be said of a bundle in which no cause was found."""
    judged, silent = len(verdict.findings) + len(verdict.not_found), len(verdict.not_judged)
    if not judged:
        parts = len(verdict.case.inventory)
        holds = f"none of its {plural(parts, 'part')} is in a format that is read here" if parts else "it is empty"
        return [f"Nothing in this bundle could be judged: {holds}. Below stands what to capture."]
    sentences = [f"{plural(judged, 'signature')} could be judged on this bundle, and none of them points to a cause."]
    if silent == 1:
        sentences.append("1 signature could not be judged: the capture it needs is not in the bundle.")
    elif silent:
        sentences.append(f"{silent} signatures could not be judged: the captures they need are not in the bundle.")
    if verdict.case.gaps:
        limits = "limits" if len(verdict.case.gaps) == 1 else "limit"
        sentences.append(f"{plural(len(verdict.case.gaps), 'gap')} in the evidence {limits} what this can mean.")
    sentences.append("Nothing found is not the same as nothing wrong.")
    return sentences


def span(verdict: Verdict) -> str:
    """Return the time the evidence spans, by wall clock where known, else by uptime."""
    frame = verdict.case.tables.get("kernel_event")
    stamps: list[pd.Timestamp] = []
    uptimes: list[float] = []
    if frame is not None and not frame.empty:
        stamps = [stamp for stamp in frame.get("at", pd.Series(dtype=object)).tolist() if not pd.isna(stamp)]
        uptimes = [float(up) for up in frame.get("uptime_s", pd.Series(dtype=object)).tolist() if not pd.isna(up)]
    if stamps:
        first, last = min(stamps), max(stamps)
        form = "%H:%M:%S" if first.date() == last.date() else "%Y-%m-%d %H:%M:%S"
        until = f" – {stamp(last, form)}" if first != last else ""
        unknown = ", the year is not in the log" if first.year == YEARLESS else ""
        return f"{stamp(first)}{until} UTC{unknown}"
    if uptimes:
        return f"{duration(min(uptimes))} to {duration(max(uptimes))} after boot"
    return ""


def _listed(values: Sequence[str]) -> str:
    """Return up to three values, and how many more there are."""
    shown = ", ".join(one_line(value, 100) for value in values[:3])
    return f"{shown} and {len(values) - 3} more" if len(values) > 3 else shown


def _sentence(text: str) -> str:
    """Return the text ending in a full stop."""
    line = one_line(text)
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def _and(parts: Sequence[str]) -> str:
    """Return the parts as one list with `and` before the last."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


class Ask(NamedTuple):
    """What one capture more would let the rules judge."""

    what: str
    """What to ask for, in words: `a kernel log that reaches back to the boot`."""
    rules: list[NotJudged]
    commands: list[str]


ASKED_COMMANDS = 3
"""Most commands shown for one thing to ask for; the rules' own chapters have them all."""


def asks(verdict: Verdict) -> list[Ask]:
    """Return the rules not judged, gathered by what would have to be captured for them, most rules first."""
    known = tables.captures()
    by_what: dict[str, list[NotJudged]] = {}
    for rule in verdict.not_judged:
        words = dict.fromkeys(known[table][0] for table in rule.tables if table in known)
        # “a kernel log that reaches back to the boot” asks for “a kernel log” already.
        asked = [word for word in words if not any(other.startswith(f"{word} ") for other in words)]
        by_what.setdefault(", and ".join(asked) or "more than this bundle holds", []).append(rule)
    return [
        Ask(what, rules, _commands(rules))
        for what, rules in sorted(by_what.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _commands(rules: list[NotJudged]) -> list[str]:
    """Return what to type: the general command where it is complete, else those of the rules."""
    known = tables.captures()
    general = dict.fromkeys(known[table][1] for rule in rules for table in rule.tables if table in known)
    if len(general) == 1 and not re.search(r"\b[A-Z]{3,}\b", "".join(general)):
        return list(general)
    own = dict.fromkeys(step.command for rule in rules for step in rule.capture[:1] if step.command)
    return list(own)[:ASKED_COMMANDS]
