"""The report as one HTML page: what its template is given, and how everything from the bundle is made safe.

No value from a bundle is ever trusted. Autoescape is on in every template; before that, `visible` turns what a reader
could not see into an escape; only the macros of our own templates make Markup. The page's Content-Security-Policy
allows our one script and our style sheets by their hash and nothing else, so that even a hole could load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from analyzer import release
from analyzer.case import Case, InventoryEntry
from analyzer.findings import Verdict
from analyzer.ranking import CONFIDENCE
from analyzer.report import figures, story
from analyzer.report.exhibit import exhibits, shown_rows
from analyzer.report.figures import causes
from analyzer.report.figures.shapes import number, plural
from analyzer.report.visible import clip, visible
from parsers.shapes import MAX_EXCERPT_LINES

MAX_EVIDENCE, MAX_PDF_EVIDENCE = 60, 8
"""Pieces of evidence of one finding on the page and in the PDF; the JSON has the others."""
PDF_LINES = 24
"""Lines of one piece of evidence in the PDF."""
PDF_TABLE_ROWS = 16
"""A data table is printed in the PDF when it has no more rows than this."""
MAX_LIST, MAX_PDF_LIST = 2_000, 50
"""Rows of gaps and of the inventory on the page and in the PDF; the JSON has all."""
MAX_VALUE = 4_000
"""Longest single value written to the page, in characters; WeasyPrint's time grows with the square of a line."""

STYLES = ("report.css", "print.css")
SCREEN_STYLES = {"screen.css": "screen", "dark.css": "screen and (prefers-color-scheme: dark)"}
"""Kept from the PDF: WeasyPrint knows neither `sticky` nor colour schemes."""


def templates() -> Path:
    """Return the folder of templates: inside the installed package, else beside the checkout's `analyzer`."""
    inside = Path(str(files("analyzer"))) / "templates"
    return inside if inside.is_dir() else Path(__file__).resolve().parents[2] / "templates"


def render(verdict: Verdict, *, pdf: bool = False) -> str:
    """Return the page; with `pdf` the form WeasyPrint prints: everything unfolded, long lists cut and counted."""
    environment = _environment()
    source = environment.loader.get_source  # type: ignore[union-attr]
    style = "\n".join(source(environment, name)[0] for name in STYLES)
    screen = {} if pdf else {name: source(environment, name)[0] for name in SCREEN_STYLES}
    script = "" if pdf else source(environment, "report.js")[0]
    page = environment.get_template("report.html.j2").render(
        _view(verdict, pdf),
        style=Markup(style),
        screen=[(SCREEN_STYLES[name], Markup(text)) for name, text in screen.items()],
        script=Markup(script),
        policy=_policy([style, *screen.values()], script),
    )
    return page.lstrip().encode("utf-8", "backslashreplace").decode("utf-8")


def _environment() -> Environment:
    """Return the template environment: everything escaped, nothing undefined passes silently."""
    environment = Environment(
        loader=FileSystemLoader(templates()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters["number"] = number
    environment.filters["clip"] = clip
    environment.filters["plural"] = plural
    environment.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    environment.filters["prose"] = _prose
    environment.tests["numeric"] = lambda value: re.fullmatch(r"[\d,.]+( %| s| kB)?|–", value) is not None
    environment.filters["compact"] = lambda value: f"{value:.1f}".removesuffix(".0")
    return environment


def _finalize(value: Any) -> Any:
    """Return a value as it may be written: strings visible and bounded, our own markup as it is."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(clip(value, MAX_VALUE))
    return value


def _prose(text: str) -> Markup:
    """Return a sentence of a rule, what it has in `backticks` as code; everything in it escaped."""
    parts = visible(clip(text, MAX_VALUE)).split("`")
    if len(parts) % 2 == 0:  # a lone backtick is only a sign
        return escape("`".join(parts))
    marked = (f"<code>{escape(part)}</code>" if at % 2 else escape(part) for at, part in enumerate(parts))
    return Markup("").join(Markup(part) for part in marked)


def _policy(styles: Sequence[str], script: str) -> str:
    """Return the Content-Security-Policy: nothing but what the page itself holds."""
    style_hashes = " ".join(_hash(style) for style in styles)
    script_rule = f"script-src {_hash(script)}; " if script else ""
    return f"default-src 'none'; style-src {style_hashes}; {script_rule}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    """Return the hash under which the policy allows an inline element."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _view(verdict: Verdict, pdf: bool) -> Mapping[str, Any]:
    """Return all the template is given."""
    findings = {finding.rule: finding for finding in verdict.findings}
    anchors = _anchors([*findings, *(rule.rule for rule in verdict.not_judged)])
    most, lines = (MAX_PDF_EVIDENCE, PDF_LINES) if pdf else (MAX_EVIDENCE, MAX_EXCERPT_LINES)
    shown = {rule: exhibits(finding, anchors[rule], lines)[:most] for rule, finding in findings.items()}
    candidates = {candidate.finding.rule for candidate in verdict.candidates}
    return {
        "pdf": pdf,
        "table_rows": PDF_TABLE_ROWS,
        "version": release.version(),
        "case": verdict.case,
        "title": story.title(verdict),
        "story": story.tell(verdict),
        "lead": verdict.candidates[0] if verdict.candidates else None,
        "verdict": verdict,
        "findings": findings,
        "others": [finding for finding in verdict.findings if finding.rule not in candidates],
        "roles": {rule: story.role(finding, verdict) for rule, finding in findings.items()},
        "anchors": anchors,
        "shown": shown,
        "shown_rows": {rule: shown_rows(pieces) for rule, pieces in shown.items()},
        "chains": {c.finding.rule: causes.draw(c.finding, c.chain, findings) for c in verdict.candidates if c.chain},
        "timelines": figures.timelines(verdict),
        "measured": figures.measured(verdict),
        **_lists(verdict.case, MAX_PDF_LIST if pdf else MAX_LIST),
        "confidence_means": CONFIDENCE,
        "asks": story.asks(verdict),
    }


def _lists(case: Case, most: int) -> dict[str, Any]:
    """Return the rows of the long tables at the end: gaps, inventory, tables; at most so many of each."""
    read = [entry for entry in case.inventory if entry.parser]
    other = [entry for entry in case.inventory if not entry.parser]
    return {
        "gaps": [[f"{gap.member}:{gap.line}" if gap.line else gap.member, gap.what] for gap in case.gaps[:most]],
        "parts_read": len(read),
        "parts_unread": len(other),
        "read": [[_part(entry), entry.parser, number(entry.rows), entry.capture] for entry in read[:most]],
        "unread": [
            [_part(entry), entry.note or "not recognised", number(entry.bytes), entry.capture] for entry in other[:most]
        ],
        "tables": [[name, number(len(frame))] for name, frame in sorted(case.tables.items())],
    }


def _part(entry: InventoryEntry) -> str:
    """Return the member, and the section where it is only a part."""
    return f"{entry.member}, {entry.section}" if entry.section else entry.member


def _anchors(rules: Sequence[str]) -> dict[str, str]:
    """Return an id for each rule: its own name where that makes one, else a number."""
    anchors: dict[str, str] = {}
    for index, rule in enumerate(rules):
        plain = re.fullmatch(r"[a-z][a-z0-9-]{0,60}", rule)
        anchors.setdefault(rule, f"rule-{rule}" if plain else f"rule-{index}")
    return anchors
