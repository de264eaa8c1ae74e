"""Every sample incident is judged as its expect.yaml says; every healthy one stays silent."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml

import analyzer
from analyzer.findings import SEVERITIES

SAMPLES = Path(__file__).parent.parent / "samples"
EXPECTATIONS = {
    path.parent / side: want
    for path in sorted(SAMPLES.glob("*/expect.yaml"))
    for side, want in yaml.safe_load(path.read_text()).items()
}
"""Each bundle folder of a sample, and what its expect.yaml says of it."""

each_sample = pytest.mark.parametrize("folder", EXPECTATIONS, ids=lambda path: str(path.relative_to(SAMPLES)))


@cache
def analysis(folder: Path) -> analyzer.Analysis:
    """Return the analysis of a sample, once."""
    return analyzer.open(folder)


@each_sample
def test_sample_is_judged_as_expected(folder: Path) -> None:
    """Candidates in their order, the chain, the words of the report, the evidence lines and the gaps."""
    want, got = EXPECTATIONS[folder], analysis(folder)
    rules = {finding.rule for finding in got.findings}
    candidates = [candidate.finding.rule for candidate in got.candidates]
    assert want["about"]
    assert candidates[: len(want["candidates"])] == want["candidates"]
    assert want["candidates"] or not candidates
    assert not set(want.get("absent", [])) & rules
    assert set(want.get("not_judged", [])) <= {missing.rule for missing in got.not_judged}
    worst = SEVERITIES.index(want.get("worst", "critical"))
    assert [f.rule for f in got.findings if SEVERITIES.index(f.severity) > worst] == []
    if "confidence" in want:
        assert got.candidates[0].confidence == want["confidence"]
    if "explains" in want:
        assert {edge.symptom for edge in got.candidates[0].chain} == set(want["explains"])


@each_sample
def test_sample_report_says_what_it_must(folder: Path) -> None:
    """The facts a reader needs are in the text report, and each claimed line is in the evidence."""
    want, got = EXPECTATIONS[folder], analysis(folder)
    words = " ".join(got.report("text").decode().split())
    assert [text for text in want.get("text", []) if text not in words] == []
    evidence = {f"{item.member}:{item.line}" for finding in got.findings for item in finding.evidence}
    assert set(want.get("evidence", [])) <= evidence
    gaps = " ".join(gap.what for gap in got.gaps)
    assert [str(gap) for gap in want.get("gaps", []) if str(gap) not in gaps] == []


@each_sample
def test_every_evidence_line_is_in_the_bundle(folder: Path) -> None:
    """An evidence text stands in its member at its line, letter for letter."""
    for finding in analysis(folder).findings:
        for item in finding.evidence:
            lines = (folder / item.member).read_text(errors="backslashreplace").split("\n")
            for offset, text in enumerate(item.text.split("\n")):
                if text != "…":
                    assert lines[item.line - 1 + offset].rstrip("\r").startswith(text.rstrip("…"))


def test_healthy_samples_exist() -> None:
    """At least three healthy hosts keep the rules honest."""
    assert len([folder for folder in EXPECTATIONS if folder.parent.name.startswith("healthy-")]) >= 3


def test_pasted_into_one_file(tmp_path: Path) -> None:
    """The same captures in one text, with prose between them, name the same leading cause."""
    incident = SAMPLES / "cloudflare-vlan-offload" / "incident"
    prose = "Then we looked at the next thing, and what we saw there surprised us a little more than we like to say.\n"
    order = [
        "dmesg-rcu-self-detected.txt",
        "kern-rcu-detected.log",
        "dmesg-meminfo-stall.txt",
        "dmesg-stall-networkd.txt",
        "kern-reclaim.log",
        "funclatency-do_sendfile.txt",
        "funccount-timers.txt",
        "perf-script-timer-counts.txt",
        "tcp-send-counts.txt",
        "stackcount-tcp_push_one.txt",
        "ethtool-k-vlan10.diff",
        "ethtool-K-tx-on.txt",
    ]
    assert sorted(order) == sorted(path.name for path in incident.iterdir())
    text = "".join(f"\n{prose}\n{(incident / name).read_text().rstrip()}\n" for name in order)
    page = tmp_path / "blog.txt"
    page.write_text("A story of a distribution upgrade\n\n" + text + "\nThat was all.\n")
    pasted, apart = analyzer.open(page), analysis(incident)
    assert [c.finding.rule for c in pasted.candidates][:1] == ["vlan-offload-missing"]
    assert {f.rule: f.text for f in pasted.findings} == {f.rule: f.text for f in apart.findings}
