"""The report in all its forms: what a reader must find, and what a hostile bundle must not be able to do."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from analyzer.errors import AnalyzerError
from analyzer.findings import Evidence, Finding, Verdict
from analyzer.report import formats as report
from analyzer.report import story
from analyzer.report.exhibit import exhibits
from analyzer.report.figures import measured, timelines
from analyzer.report.figures.axis import axis
from analyzer.report.page import templates
from analyzer.report.terminal import WIDTH, inventory_lines, render_text
from analyzer.report.visible import visible
from tests.report_fixture import cloudflare, healthy, hostile

VOID = {"meta", "link", "br", "hr", "img", "input", "col", "base", "wbr"}
SCHEMA = json.loads(Path(__file__).parent.parent.joinpath("docs/report.schema.json").read_text())
SNAPSHOTS = Path(__file__).parent / "reports"

ATTACK = (
    "</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)>{{7*7}}{% raw %}"
    " javascript:alert(4) \x1b[2J\x1b]0;owned\x07\x00\x9b31m \u202egpj.exe \udc80\ud800 file:///etc/passwd"
)


class Page(HTMLParser):
    """The page as a browser sees it: tags, ids, links, text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag; SVG shapes that close themselves arrive at handle_startendtag."""
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that closes itself."""
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        """Check that tags close in the order they were opened."""
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text.append(data)

    def values(self, name: str) -> list[str]:
        """Return the values of an attribute."""
        return [value for _, attribute, value in self.attributes if attribute == name]


def _html(verdict: Verdict) -> str:
    return report.render(verdict, "html").decode("utf-8")


@pytest.mark.parametrize("verdict", [cloudflare(), healthy(), hostile(ATTACK)], ids=["incident", "healthy", "hostile"])
def test_page_is_well_formed(verdict: Verdict) -> None:
    """Every tag closes, every id is unique, every link inside the page arrives, nothing points outside."""
    html = _html(verdict)
    page = Page(html)
    assert page.open == []
    ids = Counter(page.values("id"))
    assert [name for name, times in ids.items() if times > 1] == []
    for link in page.values("href"):
        assert link.startswith("#")
        assert link[1:] in ids
    for reference in [*page.values("aria-labelledby"), *page.values("aria-describedby")]:
        assert reference in ids
    assert page.values("src") == page.values("action") == page.values("style") == []
    for style in re.findall(r"<style[^>]*>(.*?)</style>", html, re.S):
        assert "url(" not in style
        assert "@import" not in style


def test_policy_allows_exactly_the_inline_parts() -> None:
    """The hashes of the policy are those of the script and styles on the page, computed from the page itself."""
    import base64
    import hashlib

    html = _html(cloudflare())
    policy = next(v for v in Page(html).values("content") if v.startswith("default-src"))
    parts = re.findall(r"<(?:style|script)[^>]*>(.*?)</(?:style|script)>", html, re.S)
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" for part in parts}
    assert set(re.findall(r"'sha256-[^']+'", policy)) == hashes
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_first_screen_answers_in_order() -> None:
    """Headline, how sure, what happened, what to do, what to ask for come before everything else."""
    text = " ".join(" ".join(Page(_html(cloudflare())).text).split())
    order = [
        "VLAN device lacks the transmit offloads of its parent",
        "likely",
        "What happened",
        "ethtool -K vlan10 sg on tx on",
        "Restart the process",
        "Ask for next",
        "Candidate causes",
        "Not judged",
        "How to read this",
    ]
    main = text[text.index("Incident report samples") :]
    places = [main.index(words) for words in order]
    assert places == sorted(places)


def test_every_evidence_row_is_shown_with_its_lines() -> None:
    """Each row's first line stands on the page beside its number."""
    html = _html(cloudflare())
    for finding in cloudflare().findings:
        for row in finding.evidence:
            first = row.text.split("\n")[0]
            escaped = first.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            assert f'<span class="line" data-n="{row.line}">{escaped}' in html


def test_hostile_values_stay_text_on_the_page() -> None:
    """Whatever a bundle holds, the page gets no element, no attribute and no raw control sign from it."""
    plain, attacked = Page(_html(cloudflare())), Page(_html(hostile(ATTACK)))
    html = _html(hostile(ATTACK))
    assert attacked.tags["script"] == plain.tags["script"] == 1
    assert attacked.tags["img"] == 0
    assert not [name for _, name, _ in attacked.attributes if name.startswith("on")]
    assert "{{7*7}}" in html
    assert "49{%" not in html
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", html)
    assert "\\x1b[2J" in html
    assert "\\u202egpj.exe" in html


def test_hostile_values_stay_text_on_the_terminal() -> None:
    """No escape sequence, bell, C1 control or direction override reaches the terminal, not even from a command."""
    for text in (render_text(hostile(ATTACK)), "\n".join(inventory_lines(hostile(ATTACK).case))):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
        text.encode("utf-8")


def test_hostile_values_stay_text_in_json() -> None:
    """The document is plain ASCII and gives back every sign, also lone surrogates."""
    written = report.render(hostile(ATTACK), "json")
    assert written.isascii()
    assert b"\x1b" not in written
    document = json.loads(written)
    assert document["findings"][0]["finding"].endswith(ATTACK)


def test_json_follows_its_published_schema() -> None:
    """Both documents validate, and every key they use is described."""
    for verdict in (cloudflare(), healthy()):
        _validate(json.loads(report.render(verdict, "json")), SCHEMA, "$")


def _validate(value: Any, schema: dict[str, Any], where: str) -> None:
    """Check a value against the part of JSON Schema that the published file uses."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if "const" in schema:
        assert value == schema["const"], where
    if "enum" in schema:
        assert value in schema["enum"], where
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}
    allowed = schema.get("type", [])
    allowed = [allowed] if isinstance(allowed, str) else allowed
    if allowed:
        assert any(value is None if kind == "null" else isinstance(value, kinds[kind]) for kind in allowed), where
    if isinstance(value, dict):
        known = schema.get("properties", {})
        assert set(schema.get("required", [])) <= set(value), where
        rest = schema.get("additionalProperties")
        for key, item in value.items():
            assert key in known or rest, f"{where}.{key} is not described"
            _validate(item, known.get(key) or rest, f"{where}.{key}")
    for index, item in enumerate(value if isinstance(value, list) else []):
        _validate(item, schema["items"], f"{where}[{index}]")


def test_missing_uptime_is_null() -> None:
    """NaN has no place in JSON."""
    verdict = cloudflare()
    row = Evidence("s", "t", "m", 1, "x", uptime_s=float("nan"))
    verdict.findings[0].evidence.append(row)
    assert json.loads(report.render(verdict, "json"))["findings"][0]["evidence"][-1]["uptime_s"] is None


@pytest.mark.parametrize("name", ["incident", "healthy"])
def test_text_report(name: str, update: bool) -> None:
    """The text report is what was last looked at."""
    text = render_text(cloudflare() if name == "incident" else healthy())
    path = SNAPSHOTS / f"{name}.txt"
    expected = path.read_text() if path.exists() else ""
    if update and text != expected:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == expected


def test_text_fits_the_terminal() -> None:
    """No line but a command is wider than 100 columns, and colour changes no word."""
    plain = render_text(cloudflare())
    assert [line for line in plain.splitlines() if len(line) > WIDTH and "$ " not in line] == []
    assert re.sub(r"\x1b\[[0-9;]*m", "", render_text(cloudflare(), colour=True)) == plain
    assert "\x1b" not in plain


def test_nothing_found_is_said_with_what_was_not_judged() -> None:
    """An empty verdict claims no health."""
    for text in (render_text(healthy()), " ".join(Page(_html(healthy())).text)):
        assert "No known failure signature found" in text
        assert "Requests wait behind another" in text or "connection-head-of-line" in text
        assert "not the same as nothing wrong" in " ".join(text.split())


def test_unknown_format_names_the_known() -> None:
    """A misspelt format is an error with the cure."""
    with pytest.raises(AnalyzerError, match="Did you mean 'html'"):
        report.render(healthy(), "htlm")


def test_figures_state_their_conclusion() -> None:
    """Captions carry the numbers of the field, recomputed here from the fixture's own."""
    captions = {figure.anchor: figure.caption for figure in [*timelines(cloudflare()), *measured(cloudflare())]}
    assert f"{735_110 / 735_405:.2%}".replace("%", " %") == "99.96 %"
    assert captions["stacks-1"].startswith("99.96 % of 735,405 stacks pass through sock_no_sendpage.")
    assert captions["histogram-1"] == "Most often 128 – 255 usecs: 258 of 855, 30.2 %."
    assert captions["offload-differs"] == "2 features differ between bond0, eth2, vlan10."
    assert "287 s" in captions["timeline-uptime"]
    assert "mod_timer was called most: 155,250 calls a second, mean of 3 intervals" in captions["functions"]


def test_every_drawing_has_a_name_and_a_table() -> None:
    """Each figure has a caption; each SVG with role img has a title; each chart has its data as a table."""
    html = _html(cloudflare())
    figures = re.findall(r"<figure.*?</figure>", html, re.S)
    assert len(figures) > 10
    for figure in figures:
        assert "<figcaption>" in figure
        for drawing in re.findall(r"<svg[^>]*role=\"img\".*?</svg>", figure, re.S):
            assert re.search(r'aria-labelledby="([^"]+)".*?<title id="\1">[^<]+</title>', drawing, re.S)
            assert "<table>" in figure or 'class="links"' in figure


def test_colours_have_contrast() -> None:
    """Text colours reach 4.5:1 on both papers, light and dark (WCAG 2.2, 1.4.3)."""
    for name in ("report.css", "dark.css"):
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", (templates() / name).read_text()))
        for ink in ("ink", "quiet", "link", "critical", "high", "medium", "low", "info"):
            for paper in ("paper", "tint"):
                assert _contrast(colours[ink], colours[paper]) >= 4.5, (name, ink, paper)


def test_drawings_use_the_inks_of_the_page() -> None:
    """Fills of text in the drawings reach 4.5:1 on white, bars 3:1."""
    drawn = (templates() / "charts.svg.j2").read_text()
    for ink in re.findall(r"<text[^>]*fill=\"(#[0-9a-f]{6})\"", drawn):
        assert _contrast(ink, "#ffffff") >= 4.5
    for ink in re.findall(r'"(?:critical|high|medium|low|info)": "(#[0-9a-f]{6})"', drawn):
        assert _contrast(ink, "#ffffff") >= 4.5


def _contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours as WCAG defines it."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_rows_of_one_list_become_one_exhibit() -> None:
    """Neighbouring rows join, with the lines they stand on; a row with a time of its own stands alone."""
    rows = [Evidence("s", "histogram", "f.txt", line, f"row {line}") for line in (5, 6, 7, 9)]
    rows.append(Evidence("s", "histogram", "f.txt", 12, "row 12", uptime_s=1.5))
    shown = exhibits(Finding("r", "t", "low", "x", rows, 5), "rule-r")
    assert [(piece.label, piece.rows) for piece in shown] == [("f.txt:5–7, 9", 4), ("f.txt:12", 1)]
    assert [number for number, _ in shown[0].lines] == [5, 6, 7, 9]


def test_axis_leaves_out_empty_hours() -> None:
    """Times keep their order along the axis, and a long empty stretch takes no room."""
    along = axis([(0.0, 10.0), (5.0, 20.0), (80_000.0, 80_300.0)], 0.0, 800.0)
    places = [along.x(at) for at in (0, 5, 10, 20, 80_000, 80_150, 80_300)]
    assert places == sorted(places)
    assert places[0] >= 0
    assert places[-1] <= 800
    assert [round(left_out) for _, left_out in along.breaks()] == [79_980]
    assert axis([(7.0, 7.0)], 0.0, 800.0).breaks() == []


def test_a_garbled_length_draws_nothing_absurd() -> None:
    """A stall of more years than there are is told, and its bar ends where the host's uptime does."""
    verdict = cloudflare()
    verdict.case.tables["alloc_stall"]["duration_ms"] = 10**20
    assert "days" in timelines(verdict)[1].caption
    assert Page(_html(verdict)).open == []


def test_unseen_signs_become_escapes() -> None:
    """Only tab and newline pass; letters of any script stay as they are."""
    assert visible("a\tb\n日本 ünï") == "a\tb\n日本 ünï"
    assert visible("\x1b[0m\u202e\x9b\udcff\u200b\r") == "\\x1b[0m\\u202e\\x9b\\udcff\\u200b\\x0d"


def test_story_names_worst_symptom_and_cause() -> None:
    """The sentences lead from the worst finding back to the candidate."""
    told = story.tell(cloudflare())
    assert told.headline == "VLAN device lacks the transmit offloads of its parent"
    assert told.happened[0].startswith("Page allocations stalled: 2 allocations of ntpd")
    assert told.happened[-1] == "All of this leads back to “VLAN device lacks the transmit offloads of its parent”."
    assert told.span == "2017-08-15 21:51:35 UTC"


@pytest.fixture(scope="module")
def pdf() -> bytes:
    """Return the PDF of the incident; skip where Pango is not installed."""
    try:
        return report.render(cloudflare(), "pdf")
    except AnalyzerError as error:
        pytest.skip(str(error))


def _without_figures(verdict: Verdict) -> Verdict:
    """Return the verdict without the tables figures are drawn from, which take most of the time."""
    verdict.case.tables = {}
    return verdict


def test_pdf_is_the_same_twice(pdf: bytes) -> None:
    """No clock and no random number goes into the PDF."""
    once, again = (report.render(_without_figures(cloudflare()), "pdf") for _ in range(2))
    assert once == again


def test_pdf_structure(pdf: bytes) -> None:
    """Language, title, tags, bookmarks and the attached JSON are there."""
    pikepdf = pytest.importorskip("pikepdf")
    with pikepdf.open(io.BytesIO(pdf)) as document:
        assert str(document.Root.Lang) == "en"
        assert document.Root.MarkInfo.Marked
        assert str(document.docinfo["/Title"]).startswith("Incident report: VLAN device")
        with document.open_outline() as outline:
            names = [item.title for item in outline.root]
        assert "Timeline" in names
        assert "How to read this" in names
        attached = document.attachments["report.json"].get_file().read_bytes()
    assert attached == report.render(cloudflare(), "json")


def test_pdf_of_a_hostile_bundle(pdf: bytes) -> None:
    """It is written, fetches nothing and holds no file of this host."""
    pikepdf = pytest.importorskip("pikepdf")
    attack = ATTACK + '<link rel="attachment" href="file:///etc/hostname"><img src="http://127.0.0.1:9/x">'
    with pikepdf.open(io.BytesIO(report.render(_without_figures(hostile(attack)), "pdf"))) as document:
        assert list(document.attachments) == ["report.json"]
