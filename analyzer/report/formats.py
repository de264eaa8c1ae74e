"""A verdict as a report in one of the formats."""

from __future__ import annotations

import difflib

from analyzer.errors import AnalyzerError
from analyzer.findings import Verdict

FORMATS = ("html", "pdf", "json", "text")


def render(verdict: Verdict, format: str) -> bytes:
    """Return the report as bytes; text and HTML are UTF-8.

    Raises AnalyzerError for an unknown format, and for `pdf` where its libraries are not installed.
    """
    # Each format pulls in its own libraries (Jinja2, WeasyPrint): only the one asked for is paid.
    if format == "html":
        from analyzer.report import page

        return page.render(verdict).encode("utf-8")
    if format == "pdf":
        from analyzer.report import pdf

        return pdf.render(verdict)
    if format == "json":
        from analyzer.report import json_report

        return json_report.render(verdict)
    if format == "text":
        from analyzer.report import terminal

        return terminal.render_text(verdict).encode("utf-8")
    near = difflib.get_close_matches(format, FORMATS, 1)
    cure = f"Did you mean {near[0]!r}?" if near else f"Formats are {', '.join(FORMATS)}"
    raise AnalyzerError(f"there is no report format {format!r}", cure=cure)
