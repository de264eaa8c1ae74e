"""Rows of evidence as they are shown: each excerpt with its line numbers, neighbouring rows in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from analyzer import clocks
from analyzer.findings import Evidence, Finding
from analyzer.report.visible import excerpt_lines, one_line
from parsers.shapes import MAX_EXCERPT_LINES


@dataclass(slots=True)
class Exhibit:
    """One piece of evidence on the page."""

    anchor: str
    row: Evidence
    """The first row of the piece."""
    when: str
    """When the row happened, as far as known."""
    lines: list[tuple[int, str]]
    """Line number and text."""
    rows: int = 1
    runs: list[tuple[int, int]] = field(default_factory=list)
    """First and last line of each run of neighbouring lines."""

    @property
    def label(self) -> str:
        """Return `member:line`, `member:5–18` or `member:7, 10, 15`."""
        if self.rows == 1:
            return f"{one_line(self.row.member, 160)}:{self.row.line}"
        spans = [f"{first}–{last}" if last > first else f"{first}" for first, last in self.runs]
        more = f" and {len(spans) - 4} more" if len(spans) > 4 else ""
        return f"{one_line(self.row.member, 160)}:{', '.join(spans[:4])}{more}"


def exhibits(finding: Finding, anchor: str, most: int = MAX_EXCERPT_LINES) -> list[Exhibit]:
    """Return the evidence of a finding, at most `most` lines a piece, neighbouring rows of a list in one."""
    shown: list[Exhibit] = []
    for row in finding.evidence:
        if shown and _joins(shown[-1], row, most):
            _join(shown[-1], row)
        else:
            lines = excerpt_lines(row.text, row.line, most)
            here = f"{anchor}-{len(shown) + 1}"
            shown.append(Exhibit(here, row, _when(row), lines, runs=[(lines[0][0], lines[-1][0])]))
    return shown


def shown_rows(shown: Sequence[Exhibit]) -> int:
    """Return how many rows of evidence these pieces hold."""
    return sum(piece.rows for piece in shown)


def _joins(piece: Exhibit, row: Evidence, most: int) -> bool:
    """Return whether a row continues a piece: one line further down in the same list, with no time of its own."""
    last = piece.row
    return (
        (row.member, row.table, row.selection, row.host) == (last.member, last.table, last.selection, last.host)
        and not (row.at or last.at)
        and row.uptime_s is None
        and last.uptime_s is None
        and "\n" not in row.text
        and len(piece.lines) == piece.rows < most
        and row.line > piece.lines[-1][0]
    )


def _join(piece: Exhibit, row: Evidence) -> None:
    """Add a row of one line to a piece."""
    piece.lines += excerpt_lines(row.text, row.line)
    piece.rows += 1
    first, last = piece.runs[-1]
    if row.line == last + 1:
        piece.runs[-1] = (first, row.line)
    else:
        piece.runs.append((row.line, row.line))


def _when(row: Evidence) -> str:
    """Return the time of a row: by wall clock, else by uptime, else nothing."""
    if row.at:
        return clocks.shown(row.at).replace("T", " ").replace("Z", " UTC")
    return f"{row.uptime_s:,.6f}".rstrip("0").rstrip(".") + " s after boot" if row.uptime_s is not None else ""
