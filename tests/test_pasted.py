"""However a text was pasted (quoted, indented, escaped, in any order), the same causes come out, and no new gap."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import analyzer
from analyzer import pasted
from analyzer.findings import Verdict

SAMPLE = Path(__file__).parent.parent / "samples" / "cloudflare-vlan-offload"
PROSE = "Then we looked at the next thing, and what we saw there surprised us a little more than we like to say.\n"
INCIDENT = [path.read_text().rstrip() for path in sorted((SAMPLE / "incident").iterdir())]
BASELINE = [path.read_text().rstrip() for path in sorted((SAMPLE / "baseline").iterdir())]


def page(captures: list[str], before: str = "", after: str = "") -> str:
    """Return the captures with a sentence in front of each."""
    return "".join(f"\n{PROSE}\n{before}{capture}\n{after}" for capture in captures)


def indented(captures: list[str]) -> str:
    """Return the captures as Markdown's blocks of code by four spaces."""
    return page(["\n".join(f"    {line}" for line in capture.split("\n")) for capture in captures])


PLAIN = page(INCIDENT)
FORMS = {
    "prose-between": PLAIN,
    "no-prose": "\n".join(INCIDENT) + "\n",
    "prose-right-behind": "".join(f"{capture}\n{PROSE}" for capture in INCIDENT),
    "fences": page(INCIDENT, "```\n", "```\n"),
    "fences-with-a-language": page(INCIDENT, "```console\n", "```\n" + PROSE),
    "reverse-order": page(INCIDENT[::-1]),
    "quoted-mail": "".join(f"> {line}\n" for line in PLAIN.split("\n")),
    "quoted-twice": "".join(f">> {line}".rstrip() + "\n" for line in PLAIN.split("\n")),
    "quoted-below-an-answer": "See below.\n\n" + "".join(f"> {line}".rstrip() + "\n" for line in PLAIN.split("\n")),
    "four-spaces": indented(INCIDENT),
    "html": f"<pre>\n{html.escape(PLAIN)}</pre>\n",
    "crlf": PLAIN.replace("\n", "\r\n"),
    "root-prompt": PLAIN.replace("\n$ ", "\n[root@h ~]# "),
    "user-prompt": PLAIN.replace("\n$ ", "\nuser@h:~$ "),
    "both-hosts": page(BASELINE + INCIDENT),
    "no-final-newline": page([*INCIDENT, PROSE.strip()]).rstrip(),
}
KNOWN_GAPS = re.compile(r"printk dropped 9 |journald missed 17171 |stamps give no year")
"""What is lost in these captures, whatever the form."""


@cache
def apart() -> analyzer.Analysis:
    """Return the analysis of the incident's own files."""
    return analyzer.open(SAMPLE / "incident")


def analysis(folder: Path, text: str) -> analyzer.Analysis:
    """Return the analysis of one pasted text."""
    path = folder / "page.txt"
    path.write_bytes(text.encode())
    return analyzer.open(path)


def words(verdict: Verdict) -> dict[str, list[str]]:
    """Return each finding's words, sorted: lists follow the order of the captures."""
    return {finding.rule: sorted(re.findall(r"[^\s,.;()]+", finding.text)) for finding in verdict.findings}


@pytest.mark.parametrize("form", FORMS)
def test_form_changes_nothing(form: str, tmp_path: Path) -> None:
    """The same findings, the same leading cause, no gap that the captures do not have themselves."""
    got = analysis(tmp_path, FORMS[form])
    assert [candidate.finding.rule for candidate in got.candidates] == ["vlan-offload-missing"]
    assert {finding.rule for finding in got.findings} == {finding.rule for finding in apart().findings}
    assert [gap for gap in got.gaps if not KNOWN_GAPS.search(gap.what)] == []
    if form != "both-hosts":  # there shares speak of the captures of both
        assert words(got.verdict) == words(apart().verdict)


@pytest.mark.parametrize("form", FORMS)
def test_evidence_is_shown_as_written(form: str, tmp_path: Path) -> None:
    """Each piece of evidence stands in the pasted text at its line, with whatever was put around it."""
    lines = FORMS[form].split("\n")
    for finding in analysis(tmp_path, FORMS[form]).findings:
        for item in finding.evidence:
            for offset, text in enumerate(item.text.split("\n")):
                if text != "…":
                    assert lines[item.line - 1 + offset].startswith(text.rstrip("…"))


def test_without_prompts_what_only_commands_tell_is_missing(tmp_path: Path) -> None:
    """Without its command a list of counts says nothing of what was counted, nor `ethtool -K` of which device."""
    text = "\n".join(line for line in PLAIN.split("\n") if not line.startswith("$ "))
    got = analysis(tmp_path, text)
    assert got.candidates[0].finding.rule == "vlan-offload-missing"
    lost = {finding.rule for finding in apart().findings} - {finding.rule for finding in got.findings}
    assert lost == {"page-at-a-time-sends", "tcp-timer-storm"}


@given(st.text(alphabet=" >\t$#abc&lt;\n[.]0123456789:", max_size=300))
def test_line_numbers_stay(text: str) -> None:
    """Taking quoting off never adds or removes a line."""
    assert pasted.plain(text.encode()).count(b"\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "> a line somebody wrote\n> and another\n",
        "3c3\n< net.ipv4.tcp_sack = 1\n---\n> net.ipv4.tcp_sack = 0\n",
        "Call Trace:\n    [<ffffffff814eecb5>] ? vt_console_print+0x295/0x3c0\n",
        "Tracing...\n\n     usecs               : count     distribution\n         0 -> 1          : 9        |**|\n",
        "  tcp_push_one\n  inet_sendmsg\n    172\n",
        "a & b &amp; c\n",
    ],
)
def test_what_is_no_quoting_stays(text: str) -> None:
    """A sign or a blank that belongs to the capture is not taken off."""
    assert pasted.plain(text.encode()) == text.encode()
