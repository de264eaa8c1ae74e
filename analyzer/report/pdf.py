"""The page as a PDF: tagged for screen readers (PDF/UA-1), the JSON report attached, nothing fetched from anywhere.

Written by WeasyPrint. The same verdict gives the same bytes: no clock is read, the attachment carries the time of the
evidence itself.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import sys
from collections.abc import Mapping
from typing import Any

from analyzer.errors import AnalyzerError
from analyzer.findings import Verdict
from analyzer.report import json_report, page
from parsers.kernel_log.message import YEARLESS

VARIANT = "pdf/ua-1"
LIBRARIES = "apt-get install libpangoft2-1.0-0 libharfbuzz-subset0"
UNDATED = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
"""The attachment's time where no evidence has one: a constant, so that a second run gives the same bytes."""


def render(verdict: Verdict) -> bytes:
    """Return the PDF; raises AnalyzerError where WeasyPrint or the libraries below it are not installed."""
    weasyprint = _weasyprint()
    fetcher = _no_fetch()
    when = _time(verdict)
    attachment = weasyprint.Attachment(
        string=json_report.render(verdict),
        name="report.json",
        description="This report for programs (postmortem/1)",
        created=when,
        modified=when,
        relationship="Data",
        url_fetcher=fetcher,
    )
    document = weasyprint.HTML(string=page.render(verdict, pdf=True), base_url=None, url_fetcher=fetcher)
    written: bytes = document.write_pdf(pdf_variant=VARIANT, attachments=[attachment])
    return written


def _weasyprint() -> Any:
    """Return the module, imported only now.

    Without Pango the import raises OSError, not ImportError, and prints a banner on standard output, where a report
    may be expected.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            import weasyprint  # type: ignore[import-untyped]
    except (ImportError, OSError) as error:
        first = str(error).strip().partition("\n")[0]
        raise AnalyzerError(
            "the PDF report needs libraries that are not installed",
            why=first or type(error).__name__,
            cure=f"On Debian and Ubuntu: `{LIBRARIES}`. The HTML report needs none of them and prints as well",
        ) from error
    logging.getLogger("weasyprint").setLevel(logging.ERROR)
    return weasyprint


def _no_fetch() -> Any:
    """Return a fetcher that refuses every address: the default one would read file:// and put it into the PDF."""
    from weasyprint.urls import URLFetcher  # type: ignore[import-untyped]

    class NoFetch(URLFetcher):  # type: ignore[misc]
        """Refuses everything."""

        def fetch(self, url: str, headers: Mapping[str, str] | None = None) -> Any:
            """Raise ValueError: a report has all it needs in itself."""
            raise ValueError(f"a report fetches nothing: {url[:100]}")

    return NoFetch(allowed_protocols=(), allow_redirects=False)


def _time(verdict: Verdict) -> datetime.datetime:
    """Return the latest time any evidence names, or UNDATED."""
    stamps = [
        row.at for finding in verdict.findings for row in finding.evidence if row.at[:5] not in ("", f"{YEARLESS}-")
    ]
    for stamp in sorted(stamps, reverse=True):
        with contextlib.suppress(ValueError):
            when = datetime.datetime.fromisoformat(stamp)
            return when if when.tzinfo else when.replace(tzinfo=datetime.UTC)
    return UNDATED
