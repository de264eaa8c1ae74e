"""The figures of a report: each a picture with its conclusion and its data, drawn from the tables of a case."""

from __future__ import annotations

from analyzer.findings import Verdict
from analyzer.report.figures import counts, histogram, hosts, memory, stacks, timeline
from analyzer.report.figures.shapes import Figure


def timelines(verdict: Verdict) -> list[Figure]:
    """Return the timelines."""
    return timeline.figures(verdict.case)


def measured(verdict: Verdict) -> list[Figure]:
    """Return every other figure, in the order of the report."""
    case = verdict.case
    about_stacks = [f.text for f in verdict.findings if any(row.table == "stack" for row in f.evidence)]
    return [
        *hosts.offloads(case),
        *stacks.figures(case, about_stacks),
        *histogram.figures(case),
        *counts.functions(case),
        *counts.timers(case),
        *memory.zones(case),
        *memory.orders(case),
        *hosts.clocksources(case),
    ]
