"""The report for programs: one JSON document, its shape published in `docs/report.schema.json`.

Stable under `"schema": "postmortem/1"`: keys may be added, none changes its meaning. The text is plain ASCII, so that
no control sign, direction override or lone surrogate of the evidence reaches a terminal; JSON's own escapes keep them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from analyzer import clocks, release
from analyzer.findings import Candidate, Edge, Evidence, Finding, Step, Verdict

SCHEMA = "postmortem/1"


def render(verdict: Verdict) -> bytes:
    """Return the report as JSON, ASCII, ending in a newline."""
    return (json.dumps(document(verdict), indent=1, allow_nan=False) + "\n").encode("ascii")


def document(verdict: Verdict) -> dict[str, Any]:
    """Return the report as plain lists and dicts, in the order in which they are written."""
    case = verdict.case
    return {
        "schema": SCHEMA,
        "tool": {"name": "postmortem", "version": release.version()},
        "bundle": case.bundle,
        "facts": {name: list(values) for name, values in sorted(case.facts.items())},
        "candidates": [_candidate(candidate) for candidate in verdict.candidates],
        "findings": [_finding(finding) for finding in verdict.findings],
        "not_judged": [
            {
                "rule": rule.rule,
                "title": rule.title,
                "missing": list(rule.missing),
                "tables": list(rule.tables),
                "capture": _steps(rule.capture),
            }
            for rule in verdict.not_judged
        ],
        "not_found": list(verdict.not_found),
        "gaps": [{"member": gap.member, "line": gap.line, "what": gap.what} for gap in case.gaps],
        "inventory": [
            {
                "member": entry.member,
                "section": entry.section,
                "capture": entry.capture,
                "parser": entry.parser,
                "rows": entry.rows,
                "bytes": entry.bytes,
                "note": entry.note,
            }
            for entry in case.inventory
        ],
        "tables": {name: len(frame) for name, frame in sorted(case.tables.items())},
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    """Return one candidate; its finding is among the findings, under the same rule."""
    return {
        "rule": candidate.finding.rule,
        "confidence": candidate.confidence,
        "reasons": list(candidate.reasons),
        "against": list(candidate.against),
        "gaps": list(candidate.gaps),
        "settle": _steps(candidate.settle),
        "chain": [_edge(edge) for edge in candidate.chain],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    """Return one finding with its evidence."""
    return {
        "rule": finding.rule,
        "title": finding.title,
        "severity": finding.severity,
        "finding": finding.text,
        "first_at": clocks.shown(finding.first_at) or None,
        "evidence": [_evidence(row) for row in finding.evidence],
        "evidence_rows": finding.evidence_rows,
        "explains": [_edge(edge) for edge in finding.explains],
        "against": list(finding.against),
        "refuted": finding.refuted or None,
        "direct": finding.direct,
        "specific": finding.specific,
        "mechanism": finding.mechanism or None,
        "advice": _steps(finding.advice),
        "capture": _steps(finding.capture),
        "looks_like": list(finding.looks_like),
        "misses": list(finding.misses),
        "sources": list(finding.sources),
    }


def _evidence(row: Evidence) -> dict[str, Any]:
    """Return one row of evidence; what is not known is null."""
    uptime = row.uptime_s
    return {
        "member": row.member,
        "line": int(row.line),
        "text": row.text,
        "selection": row.selection,
        "table": row.table,
        "host": row.host or None,
        "boot": None if row.boot is None else int(row.boot),
        "at": clocks.shown(row.at) or None,
        "uptime_s": float(uptime) if uptime is not None and uptime == uptime else None,
    }


def _edge(edge: Edge) -> dict[str, Any]:
    """Return one edge of the causal graph."""
    return {
        "cause": edge.cause,
        "symptom": edge.symptom,
        "because": edge.because,
        "timing": edge.timing,
        "weak": edge.weak,
    }


def _steps(steps: Sequence[Step]) -> list[dict[str, str]]:
    """Return steps of advice or captures to take."""
    return [{"do": step.do, "command": step.command, "risk": step.risk, "check": step.check} for step in steps]
