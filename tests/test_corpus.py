"""Every capture in tests/corpus is read as its .expect.json says, whole, cut and with CRLF."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import parsers
from parsers.shapes import Capture, Parsed

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(path for path in CORPUS.glob("*/*") if path.suffix in (".txt", ".log") and path.is_file())
PARSERS = [
    importlib.import_module(f"parsers.{module.name}")
    for module in pkgutil.iter_modules(parsers.__path__)
    if hasattr(importlib.import_module(f"parsers.{module.name}"), "sniff")
]
CUTS = 40
"""How many places each capture is cut at: enough to meet every line of the smaller ones."""


def capture_of(text: bytes, member: str = "capture") -> Capture:
    """Return the capture in a corpus text: its first line is the prompt where it starts with `$ `."""
    if text.startswith(b"$ "):
        prompt, _, rest = text.partition(b"\n")
        return Capture(member, 2, prompt[2:].decode().rstrip("\r"), [rest])
    return Capture(member, 1, "", [text])


def parser_of(path: Path) -> ModuleType:
    """Return the parser a corpus folder is named for."""
    return importlib.import_module(f"parsers.{path.parent.name}")


def plain(value: Any) -> Any:
    """Return a cell as JSON would give it back."""
    return json.loads(json.dumps(value))


def rows_of(parsed: Parsed) -> dict[str, list[dict[str, Any]]]:
    """Return the rows without what every row repeats (member) or what only repeats the file (excerpt)."""
    return {
        table: [
            {k: plain(v) for k, v in row.items() if k not in ("member", "excerpt") and v is not None} for row in rows
        ]
        for table, rows in parsed.rows.items()
        if rows
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_capture_is_read_as_expected(path: Path, update: bool) -> None:
    """Rows and gaps are those of the expected file."""
    parsed = parser_of(path).parse(capture_of(path.read_bytes()))
    expected_path = path.with_suffix(".expect.json")
    expected = json.loads(expected_path.read_text()) if expected_path.exists() else {"about": ""}
    found = {
        "about": expected["about"],
        "tables": rows_of(parsed),
        "gaps": [[gap.line, gap.what] for gap in parsed.gaps],
    }
    if update and found != expected:
        expected_path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    assert expected["about"], f"{expected_path.name} has no `about` line of origin"
    assert found == expected


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_rows_are_declared(path: Path) -> None:
    """Every table and column a parser fills is declared in some parser's TABLES, and its line exists."""
    declared = {name: table for parser in PARSERS for name, table in parser.TABLES.items()}
    text = path.read_bytes()
    for table, rows in parser_of(path).parse(capture_of(text)).rows.items():
        assert table in declared
        for row in rows:
            unknown = set(row) - set(declared[table].columns) - {"line", "excerpt", "host", "boot", "at", "uptime_s"}
            assert not unknown, f"{table}: undeclared {unknown}"
            assert 1 <= row["line"] <= text.count(b"\n") + 1
            first = text.split(b"\n")[row["line"] - 1].decode("utf-8", "backslashreplace").rstrip("\r")
            assert row["excerpt"].split("\n")[0].rstrip("…") in first


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_crlf_changes_nothing(path: Path) -> None:
    """The same capture with CRLF line ends gives the same rows."""
    parser, text = parser_of(path), path.read_bytes()
    crlf = text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert rows_of(parser.parse(capture_of(crlf))) == rows_of(parser.parse(capture_of(text)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_cut_capture_invents_nothing(path: Path) -> None:
    """A capture cut anywhere never raises, and its numbers are never larger than the whole capture's rows."""
    parser, text = parser_of(path), path.read_bytes()
    whole = rows_of(parser.parse(capture_of(text)))
    first = text.index(b"\n") + 1 if text.startswith(b"$ ") else 0
    for cut in range(first, len(text), max(1, (len(text) - first) // CUTS)):
        for table, rows in rows_of(parser.parse(capture_of(text[:cut]))).items():
            assert len(rows) <= len(whole.get(table, [])), f"cut at byte {cut}: {table} has more rows"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_only_its_own_parser_claims_it(path: Path) -> None:
    """Two parsers claiming one capture is a defect; its own must."""
    head = path.read_bytes()[:65536].decode("utf-8", "backslashreplace")
    claims = {parser.__name__ for parser in PARSERS if parser.sniff(head)}
    assert claims == {parser_of(path).__name__}


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.__name__)
def test_empty_capture(parser: ModuleType) -> None:
    """An empty file is nobody's, and parsing it all the same gives no rows."""
    assert not parser.sniff("")
    assert rows_of(parser.parse(Capture("empty", 1, "", []))) == {}
