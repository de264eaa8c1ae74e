"""The command line as a script sees it: exit codes, streams, errors of one paragraph, no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
INCIDENT = ROOT / "samples" / "cloudflare-vlan-offload" / "incident"
HEALTHY = sorted(path for path in (ROOT / "samples").glob("healthy-*/bundle"))
HEAVY = ("pandas", "numpy", "weasyprint", "pyparsing", "pydantic", "jinja2", "yaml")


def run(*arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "analyzer.cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "POSTMORTEM_DEBUG": ""},
        check=False,
    )


def one_paragraph(text: bytes) -> bool:
    """Return whether an error reads as one paragraph of ours."""
    told = text.decode()
    return told.startswith("postmortem: ") and "Traceback" not in told and "\n\n" not in told.strip()


def test_bare_bundle_prints_the_text_report() -> None:
    """`postmortem BUNDLE` is the text report on standard output, nothing on standard error."""
    done = run(INCIDENT)
    assert done.returncode == 0
    assert "VLAN device lacks" in done.stdout.decode().split("\n")[0]
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout


def test_standard_input_is_a_bundle() -> None:
    """`-` reads a capture, or an archive, from standard input."""
    done = run("analyze", "-", stdin=(INCIDENT / "stackcount-tcp_push_one.txt").read_bytes())
    assert done.returncode == 0
    assert "735,110 of 735,405" in " ".join(done.stdout.decode().split())


def test_formats_by_suffix(tmp_path: Path) -> None:
    """The suffix of -o decides the format; several -f share the stem."""
    assert run("analyze", INCIDENT, "-o", tmp_path / "r.html").returncode == 0
    assert (tmp_path / "r.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert run("analyze", INCIDENT, "-o", tmp_path / "two", "-f", "json", "-f", "text").returncode == 0
    assert json.loads((tmp_path / "two.json").read_bytes())["schema"] == "postmortem/1"
    assert (tmp_path / "two.txt").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"r.html", "two.json", "two.txt"}


def test_json_to_standard_output() -> None:
    """`-o - -f json` prints JSON and nothing else."""
    done = run("analyze", INCIDENT, "-o", "-", "-f", "json")
    assert json.loads(done.stdout)["candidates"][0]["rule"] == "vlan-offload-missing"


def test_several_bundles_into_a_folder(tmp_path: Path) -> None:
    """Several bundles with -o FOLDER/ give a report each."""
    done = run("analyze", INCIDENT, INCIDENT.parent / "baseline", "-o", f"{tmp_path}/reports/", "-f", "json")
    assert done.returncode == 0
    assert {path.name for path in (tmp_path / "reports").iterdir()} == {"incident.json", "baseline.json"}


def test_one_unreadable_bundle_of_several(tmp_path: Path) -> None:
    """The others still get their reports; the run exits 2 and names the one."""
    done = run("analyze", "/no/such/bundle", INCIDENT, "-o", f"{tmp_path}/reports/", "-f", "json")
    assert done.returncode == 2
    assert "/no/such/bundle" in done.stderr.decode()
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["incident.json"]


@pytest.mark.parametrize(("level", "code"), [("low", 1), ("high", 1), ("critical", 1), ("", 0)])
def test_fail_on(level: str, code: int) -> None:
    """--fail-on makes findings at or above it exit 1."""
    assert run("analyze", INCIDENT, *(["--fail-on", level] if level else [])).returncode == code


@pytest.mark.parametrize("bundle", HEALTHY, ids=lambda path: path.parent.name)
def test_healthy_hosts_do_not_fail(bundle: Path) -> None:
    """A healthy host exits 0 under --fail-on low."""
    assert run("analyze", bundle, "--fail-on", "low").returncode == 0


def test_strict_tells_gaps() -> None:
    """--strict exits 4 when evidence is missing, 0 when none is."""
    assert run("analyze", INCIDENT, "--strict").returncode == 4
    assert run("analyze", HEALTHY[0], "--strict").returncode == 0


def test_only_and_min_severity() -> None:
    """--only judges one rule; --min-severity leaves milder findings out."""
    report = json.loads(run("analyze", INCIDENT, "--only", "rcu-stall", "-o", "-", "-f", "json").stdout)
    assert [finding["rule"] for finding in report["findings"]] == ["rcu-stall"]
    report = json.loads(run("analyze", INCIDENT, "--min-severity", "critical", "-o", "-", "-f", "json").stdout)
    assert {finding["severity"] for finding in report["findings"]} == {"critical"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/no/such/bundle"], "/no/such/bundle"),
        (["analyze", INCIDENT, "-f", "docx", "-o", "x"], "docx"),
        (["analyze", INCIDENT, "-f", "json"], "-o FILE"),
        (["analyze", INCIDENT, "-o", "/no/such/folder/r.html"], "/no/such/folder"),
        (["analyze", INCIDENT, "-o", "report.docx"], "docx"),
        (["analyze", INCIDENT, "--fail-on", "awful"], "awful"),
        (["analyze", INCIDENT, "--only", "rcu-stal"], "Did you mean rcu-stall?"),
        (["explain", "page-aloc-stall"], "Did you mean page-alloc-stall?"),
        (["tables", INCIDENT, "alloc_stal"], "Did you mean alloc_stall?"),
        (["analyze", INCIDENT, "--rules", "/no/such/rules"], "/no/such/rules"),
    ],
)
def test_wrong_use_is_one_clear_paragraph(arguments: list[str | Path], said: str) -> None:
    """Wrong use exits 2 and says what, where, and what to do."""
    done = run(*arguments)
    assert done.returncode == 2
    assert one_paragraph(done.stderr)
    assert said in done.stderr.decode()


def test_a_rule_with_a_typo(tmp_path: Path) -> None:
    """A broken rule names its file, line, column, cause and cure, all mistakes at once."""
    rule = (ROOT / "rules" / "memory" / "page-alloc-stall.yaml").read_text()
    (tmp_path / "my-stall.yaml").write_text(
        rule.replace("id: page-alloc-stall", "id: my-stall").replace("duration_ms >= 60s", "duraton_ms >= 60s", 1)
    )
    done = run("analyze", INCIDENT, "--rules", tmp_path)
    line = next(
        n for n, text in enumerate((tmp_path / "my-stall.yaml").read_text().split("\n"), 1) if "duraton" in text
    )
    assert done.returncode == 2
    assert one_paragraph(done.stderr)
    assert f"my-stall.yaml:{line}:" in done.stderr.decode()
    assert "duration_ms" in done.stderr.decode()


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02\x03" * 4000, os.urandom(8192), b"hello\n"])
def test_nothing_to_read_is_no_error(tmp_path: Path, content: bytes) -> None:
    """An empty, binary or foreign file is analyzed to `nothing recognised`, not to an error."""
    (tmp_path / "file").write_bytes(content)
    for bundle in (tmp_path / "file", tmp_path):
        done = run(bundle)
        assert done.returncode == 0
        assert b"Traceback" not in done.stderr


def test_empty_folder(tmp_path: Path) -> None:
    """An empty bundle is told to be empty."""
    done = run(tmp_path)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr + done.stdout


def test_cut_archive_is_a_gap(tmp_path: Path) -> None:
    """A tar.xz cut in the middle gives the report of what is whole, and tells the cut."""
    whole = tmp_path / "bundle.tar.xz"
    with tarfile.open(whole, "w:xz") as archive:
        archive.add(INCIDENT, arcname="host")
        for number in range(20):
            (tmp_path / "noise").write_bytes(os.urandom(50_000))
            archive.add(tmp_path / "noise", arcname=f"host/z{number}.bin")
    cut = tmp_path / "cut.tar.xz"
    cut.write_bytes(whole.read_bytes()[:500_000])
    done = run("analyze", cut, "-o", "-", "-f", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert any("cut" in gap["what"] or "end" in gap["what"] for gap in report["gaps"])
    assert run("analyze", cut, "--strict").returncode == 4


def test_pipe_closed_early() -> None:
    """`postmortem … | head -1` ends quietly."""
    done = subprocess.run(
        f"{sys.executable} -m analyzer.cli {INCIDENT} | head -1",
        shell=True, capture_output=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.stderr == b""


def test_help_imports_nothing_heavy() -> None:
    """--help answers without pandas, pyparsing, pydantic or weasyprint."""
    code = (
        "import sys; sys.argv = ['postmortem', '--help']\n"
        "from analyzer.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True)
    assert done.stderr.decode().strip() == "[]"
    assert b"bundle.tar.xz" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [["rules", "list"], ["rules", "show", "rcu-stall"], ["rules", "schema"], ["explain", "rcu-stall"], ["tables"],
     ["tables", INCIDENT], ["tables", INCIDENT, "stack"], ["tables", INCIDENT, "stack", "-f", "csv"],
     ["tables", INCIDENT, "stack", "-f", "jsonl"], ["inventory", INCIDENT], ["version"], ["--version"], ["-h"]],
)  # fmt: skip
def test_every_command_prints_something(arguments: list[str | Path]) -> None:
    """Each command answers on standard output and exits 0."""
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.strip()


def test_every_help_has_an_example() -> None:
    """Each command's help shows how it is typed."""
    for command in (
        ["analyze"],
        ["inventory"],
        ["tables"],
        ["explain"],
        *(["rules", verb] for verb in ("list", "show", "check", "test", "schema")),
    ):
        assert "postmortem " + " ".join(command) in run(*command, "--help").stdout.decode()
