"""README, docs and help say what is true: every command, function, filter, table and path they name exists."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import analyzer
from analyzer import cases, rules, ruleschema, tables
from analyzer.language import quantity, question, sentence

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
LANGUAGE = (ROOT / "docs" / "rules.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("samples/*.md")])


def table_after(text: str, heading: str) -> list[str]:
    """Return the first cells of the table under a heading, backquotes taken off."""
    part = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([\w-]+)", part, re.M)


def commands() -> list[list[str]]:
    """Return every `postmortem …` the README's console blocks show, without its comment."""
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", README, re.S))
    lines = re.findall(r"^\$ (?:\w+ \| )?(postmortem .*?)(?:\s{2,}.*)?$", blocks, re.M)
    return [shlex.split(line, comments=True)[1:] for line in lines]


def test_first_screen_is_real_output() -> None:
    """The README's first block is a command and the beginning of what it really prints."""
    block = re.search(r"```console\n\$ postmortem (\S+)\n(.*?)…\n```", README, re.S)
    assert block
    done = subprocess.run(
        [sys.executable, "-m", "analyzer.cli", block[1]], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.startswith(block[2])
    assert README.index("What it cannot see") < 3500


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_readme_commands_exist(arguments: list[str]) -> None:
    """Each command of the README is understood: its verb and options are in the help."""
    verb = arguments[:2] if arguments[0] == "rules" else arguments[:1]
    known = {"analyze", "inventory", "tables", "explain", "version", "rules", "--help"}
    if verb[0] not in known:
        return  # a bare bundle
    help_text = subprocess.run(
        [sys.executable, "-m", "analyzer.cli", *verb, *([] if verb == ["--help"] else ["--help"])],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    ).stdout
    for option in (word for word in arguments if re.fullmatch(r"--?[a-z][a-z-]*", word)):
        assert option in help_text


def test_readme_names_every_command() -> None:
    """Every verb of the command line is in the README."""
    for verb in ("analyze", "inventory", "tables", "explain", "rules", "version"):
        assert f"postmortem {verb}" in README


def test_readme_python_runs() -> None:
    """The README's Python does what its comments say."""
    case = analyzer.open(ROOT / "samples/cloudflare-vlan-offload/incident")
    assert case.candidates[0].finding.rule == "vlan-offload-missing"
    assert len(case.tables["alloc_stall"]) == 2
    assert 'analyzer.open("samples/cloudflare-vlan-offload/incident")' in README


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_paths_and_links_exist(document: Path) -> None:
    """What a document links to, or names as a path of this repository, is there."""
    text = document.read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (document.parent / target).exists(), target
    for target in re.findall(r"`((?:parsers|analyzer|rules|samples|tests|templates|docs|setup)/[\w./-]+)`", text):
        assert (ROOT / target).exists() or (ROOT / f"{target}.py").exists(), target


def test_modules_named_in_architecture_exist() -> None:
    """The floors of ARCHITECTURE.md name every module of `analyzer`, and only those."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    floors = text.split("## The floors")[1].split("## The life")[0]
    named = set(re.findall(r"`(?:\w+/)*([a-z_]+)/?`", floors))
    modules = {path.stem for path in (ROOT / "analyzer").rglob("*.py")} - {"__init__"}
    modules -= {path.stem for path in (ROOT / "analyzer/report/figures").glob("*.py")}
    folders = {path.parent.name for path in (ROOT / "analyzer").rglob("__init__.py")} - {"analyzer"}
    assert (modules | folders) - named == set()
    assert named - modules - folders == {"__init__", "analyzer", "shapes"}


def test_language_reference_is_complete() -> None:
    """docs/rules.md lists every field, function, filter and unit, and none that does not exist."""
    assert table_after(LANGUAGE, "Fields") == list(ruleschema.RuleModel.model_fields)
    assert table_after(LANGUAGE, "Functions") == list(question.FUNCTIONS)
    assert table_after(LANGUAGE, "Sentences") == list(sentence.FILTERS)
    for function in question.FUNCTIONS.values():
        assert function.about in LANGUAGE
    for about in sentence.FILTERS.values():
        assert about in LANGUAGE
    assert re.findall(r"`([a-zA-Z%]+)`", LANGUAGE.split("Units: ")[1].split("\n\n")[0]) == list(quantity.WRITABLE)


def test_the_reference_rule_works(tmp_path: Path) -> None:
    """The rule and the cases of docs/rules.md can be copied as they are."""
    rule, case_file = (
        next(block for block in re.findall(r"```yaml\n(.*?)```", LANGUAGE, re.S) if block.startswith(start))
        for start in ("id: my-stall", "- name: one-long-stall")
    )
    (tmp_path / "my-stall.yaml").write_text(rule)
    (tmp_path / "my-stall.cases.yaml").write_text(case_file)
    book = rules.load([tmp_path])
    results = cases.run([book["my-stall"]])
    assert [(result.case, result.failures) for result in results] == [
        ("one-long-stall", []),
        ("short-stall", []),
        ("nothing-captured", []),
    ]
    assert cases.lacking(book["my-stall"]) == []


def test_published_rule_schema_is_current() -> None:
    """rules.schema.json is what `postmortem rules schema` prints."""
    assert json.loads((ROOT / "rules.schema.json").read_text()) == rules.schema()


def test_sample_readme_names_every_sample() -> None:
    """samples/README.md has a row for each sample."""
    text = (ROOT / "samples" / "README.md").read_text()
    for folder in (ROOT / "samples").iterdir():
        if folder.is_dir():
            assert f"`{folder.name}/`" in text or folder.name.startswith("healthy-")


def test_every_rule_file_says_what_it_must() -> None:
    """A rule has advice, a capture, what it misses or looks like, and sources."""
    for path in sorted((ROOT / "rules").rglob("*.yaml")):
        if not path.name.endswith(".cases.yaml"):
            rule = yaml.safe_load(path.read_text())
            assert rule["advice"], path
            assert rule["capture"], path
            assert rule["sources"], path
            assert rule["misses"] or rule["looks_like"], path


def test_tables_are_described() -> None:
    """Each table and column has a sentence."""
    for name, table in tables.declared().items():
        assert table.row, name
        assert all(tables.captures()[name]), name
        for column_name, column in table.columns.items():
            assert column.about, f"{name}.{column_name}"
