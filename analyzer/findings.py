"""The shapes of a verdict: evidence, findings, what was not judged, candidates in their order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from analyzer.case import Case

SEVERITIES = ("info", "low", "medium", "high", "critical")
"""From mildest to worst; `SEVERITIES.index` orders them."""

Timing = Literal["timed", "tested", "not timed", "untested"]
"""How an edge was tested: by comparing clocks; by other evidence; by a comparison of times for which no clock was in
common; or not at all, because the rule gives no test."""

Confidence = Literal["confirmed", "likely", "possible", "hypothesis"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One row of one selection of a rule that fired."""

    selection: str
    """The rule's `let` name."""
    table: str
    member: str
    line: int
    text: str
    """The lines of the member from `line` on, verbatim up to the excerpt's clip."""
    host: str = ""
    at: str = ""
    """ISO 8601 UTC, empty where unknown."""
    uptime_s: float | None = None
    boot: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of advice, or one capture to take."""

    do: str
    """What to do, a sentence."""
    command: str = ""
    risk: str = ""
    check: str = ""
    """How to see that it worked."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One finding can have caused another, and the test for it held."""

    cause: str
    symptom: str
    because: str
    timing: Timing
    weak: bool = False
    """The rule marks this edge as an indirect explanation."""


@dataclass(slots=True)
class Finding:
    """A rule that fired, with its evidence."""

    rule: str
    title: str
    severity: str
    text: str
    """The rule's `finding` sentence, filled in."""
    evidence: list[Evidence]
    """At most MAX_EVIDENCE rows, selections in their order; `evidence_rows` has the true number."""
    evidence_rows: int
    explains: list[Edge] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    """What the rule's `against` tests found in the bundle that speaks against it."""
    refuted: str = ""
    """Why the bundle refutes it as a *cause*, else empty."""
    direct: bool = True
    """False when the rule calls its own evidence indirect."""
    specific: bool = True
    """False for a generic signature, which many causes share."""
    mechanism: str = ""
    first_at: str = ""
    """ISO 8601 UTC of the earliest evidence, empty where unknown."""
    advice: list[Step] = field(default_factory=list)
    capture: list[Step] = field(default_factory=list)
    looks_like: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A rule for which the bundle held no capture that could have answered it."""

    rule: str
    title: str
    missing: list[str]
    """Sentences: what was not in the bundle."""
    capture: list[Step]
    tables: list[str] = field(default_factory=list)
    """The absent tables that kept it from being judged."""


@dataclass(slots=True)
class Candidate:
    """A finding put forward as root cause."""

    finding: Finding
    confidence: Confidence
    reasons: list[str]
    """Why it stands where it stands: one sentence for each comparison with the next, and what it explains."""
    against: list[str]
    gaps: list[str]
    """The gaps that weaken it, as sentences with member:line."""
    settle: list[Step]
    """The captures that would settle it."""
    chain: list[Edge]
    """Every edge reachable from it, nearest first."""


@dataclass(slots=True)
class Verdict:
    """Everything a report is made from."""

    case: Case
    findings: list[Finding]
    """Worst first."""
    candidates: list[Candidate]
    """In order; empty when nothing above `info` was found."""
    not_judged: list[NotJudged]
    not_found: list[str]
    """Ids of the rules that were judged and did not fire."""
