"""Read a support bundle, find known failure signatures, work out which caused which, and report it.

    import analyzer

    case = analyzer.open("bundle.tar.xz")
    case.tables["alloc_stall"]      # a pandas DataFrame; `analyzer.tables.declared()` describes every table
    case.candidates[0].finding.rule
    case.report("html")             # bytes; also "pdf", "json", "text"

The command line is a thin user of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from analyzer.release import version

if TYPE_CHECKING:
    import pandas as pd

    from analyzer.bundle.limits import Limits
    from analyzer.case import InventoryEntry
    from analyzer.findings import Candidate, Finding, NotJudged, Verdict
    from parsers.shapes import Gap

__all__ = ["Analysis", "open", "version"]


class Analysis:
    """One bundle, read and judged: its tables, findings, candidates in their order, and reports of them."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables some capture of the bundle could have filled, perhaps empty."""
        return self.verdict.case.tables

    @property
    def findings(self) -> list[Finding]:
        """The rules that fired, worst first."""
        return self.verdict.findings

    @property
    def candidates(self) -> list[Candidate]:
        """The findings put forward as root cause, the leading one first."""
        return self.verdict.candidates

    @property
    def not_judged(self) -> list[NotJudged]:
        """The rules the bundle held no capture for, with what to capture."""
        return self.verdict.not_judged

    @property
    def gaps(self) -> list[Gap]:
        """Evidence known to be lost or unreadable."""
        return self.verdict.case.gaps

    @property
    def inventory(self) -> list[InventoryEntry]:
        """What each section of the bundle was taken for."""
        return self.verdict.case.inventory

    def report(self, format: str = "text") -> bytes:
        """Return the report as bytes; raises AnalyzerError for an unknown format, or PDF without its libraries."""
        from analyzer.report.formats import render

        return render(self.verdict, format)


def open(
    bundle: str | Path,
    *,
    rules: Sequence[str | Path] = (),
    only: Sequence[str] = (),
    limits: Limits | None = None,
    stdin: BinaryIO | None = None,
    progress: Callable[[str], None] = lambda member: None,
) -> Analysis:
    """Return the analysis of a bundle: a directory, a file, an archive, or `-` for `stdin`.

    `rules` are folders of further rules, `only` restricts judging to these rule ids. Damaged evidence becomes a gap;
    raises AnalyzerError when the bundle or a rule cannot be read.
    """
    from analyzer import case, judge, ranking
    from analyzer import rules as rulebook
    from analyzer.errors import AnalyzerError
    from analyzer.suggest import did_you_mean

    if not str(bundle):
        raise AnalyzerError("the bundle's name is empty", cure="Is a variable of your script not set?")
    book = rulebook.load([Path(folder) for folder in rules])
    for rule in only:
        if rule not in book:
            raise AnalyzerError(f"there is no rule {rule!r}", cure=did_you_mean(rule, book))
    path = None if str(bundle) == "-" else Path(bundle)
    read = case.read(path, limits=limits, stdin=stdin, progress=progress)
    findings, not_judged, not_found = judge.judge(read, book, only=only or None)
    return Analysis(ranking.rank(read, findings, not_judged, not_found))
