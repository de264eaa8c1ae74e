"""From a bundle to a case: every capture read, rows gathered into pandas tables, gaps and facts beside them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

from analyzer import pasted, sniff, tables
from analyzer.bundle.limits import MAX_NOTES, Limits
from analyzer.bundle.walk import Member, members
from analyzer.sections import Section, command_of_name, cut
from parsers.shapes import Capture, Gap, Parsed, Row

if TYPE_CHECKING:
    import pandas as pd

OWN_IDS = {"incident": None, "event": "stack_frame"}
"""Columns whose values are unique within one capture only, and the table where that is so (None: everywhere they
appear); a case with several captures tells them apart."""

BINARY_SHARE = 0.1
"""A member is binary when more than this share of its first bytes are control characters other than white space:
kernel logs with runs of NULs after a crash stay far below, compressed or compiled data is near 0.3."""


@dataclass(frozen=True, slots=True)
class InventoryEntry:
    """One section of one member: what it was taken for and what came of it."""

    member: str
    section: str
    """`lines 12-40`, or empty for a whole member."""
    capture: str
    """The command that printed it, where known."""
    parser: str
    """The parser that read it; empty when nothing recognised it."""
    rows: int
    bytes: int
    note: str = ""
    """Why it was not read, where it was not: `not recognised`, `empty`, `binary`."""


@dataclass(slots=True)
class Case:
    """All tables, gaps and facts of one analysis."""

    bundle: str
    """The bundle's path as given."""
    tables: dict[str, pd.DataFrame]
    """The *present* tables, perhaps empty; a table that is not here had no capture that could have filled it."""
    gaps: list[Gap] = field(default_factory=list)
    inventory: list[InventoryEntry] = field(default_factory=list)
    facts: dict[str, list[str]] = field(default_factory=dict)
    """`hosts`, `kernels`, `hardware`, `cpus`: each a list of distinct values in the order met."""


def read(
    bundle: Path | None,
    *,
    limits: Limits | None = None,
    stdin: BinaryIO | None = None,
    progress: Callable[[str], None] = lambda member: None,
) -> Case:
    """Return the case of a bundle: a directory, a file, an archive, or (None) what `stdin` gives.

    `progress` is called with each member's address. What cannot be read becomes a gap; raises AnalyzerError only when
    the bundle itself is not there or cannot be opened.
    """
    gaps: list[Gap] = []
    found = members(bundle, gaps, limits or Limits(), stdin)
    case = _gather(found, gaps, progress)
    case.bundle = str(bundle) if bundle else "-"
    return case


def read_texts(files: Mapping[str, str]) -> Case:
    """Return the case of a bundle given as member name to text, as the cases beside rules give it."""
    texts = ((name, text.encode("utf-8", "surrogateescape")) for name, text in files.items())
    return _gather((Member(name, len(raw), iter([raw]), None) for name, raw in texts), [], lambda member: None)


def _gather(found: Iterable[Member], gaps: list[Gap], progress: Callable[[str], None]) -> Case:
    """Read every member and build the case."""
    from analyzer.clocks import settle_years
    from analyzer.copies import drop_copies

    rows: dict[str, list[Row]] = {}
    inventory: list[InventoryEntry] = []
    captures = 0
    for member in found:
        progress(member.address)
        for entry, new, lost in _read_member(member):
            inventory.append(entry)
            gaps += lost
            captures += 1
            for table, table_rows in new.items():
                rows.setdefault(table, []).extend(_told_apart(table, table_rows, captures))
    gaps += settle_years(rows)
    copies = drop_copies(rows, gaps)
    inventory = [
        replace(entry, note=f"{copies[entry.member]} rows are copies of another log's")
        if entry.parser == "kernel_log" and copies[entry.member]
        else entry
        for entry in inventory
    ]
    case = Case("", {name: _framed(name, new, gaps) for name, new in rows.items()}, gaps, inventory)
    case.facts = facts(case)
    return case


def _framed(name: str, rows: list[Row], gaps: list[Gap]) -> pd.DataFrame:
    """Return rows as a table; what its columns cannot hold becomes missing and a gap."""
    try:
        return tables.frame(name, rows)
    except tables.MISFIT:  # looking at every value beforehand would cost every honest bundle
        gaps += tables.drop_unfit(name, rows)
        return tables.frame(name, rows)


Reading = tuple[InventoryEntry, dict[str, list[Row]], list[Gap]]
"""What one section gave: its line in the inventory, its rows by table, its gaps."""


def _read_member(member: Member) -> Iterator[Reading]:
    """Yield what each section of a member gave; prose between captures is passed over without a word."""
    chunks, note = _looked_at(member.chunks)
    told = False
    if not note:
        text, chunks = pasted.text_of(chunks)
        freed = pasted.plain(text) if text is not None else None
        changed = freed is not None and freed != text
        for section in cut(member.address, iter([freed]) if freed is not None and changed else chunks):
            if section.parser is not None or section.from_prompt:
                told = True
                reading = _read_section(section)
                if text is not None and changed:
                    _shown_as_written(reading, text)
                yield reading
    if not told:
        command = "" if note else command_of_name(member.address)
        yield (
            InventoryEntry(member.address, "", command, "", 0, member.size or 0, note or "not recognised"),
            {},
            [],
        )


def _shown_as_written(reading: Reading, text: bytes) -> None:
    """Give the rows of a text that was quoted or indented the lines of the member itself."""
    lines = [line.removesuffix("\r") for line in text.decode("utf-8", "backslashreplace").split("\n")]
    for rows in reading[1].values():
        for row in rows:
            if row.get("excerpt") and row.get("line"):
                row["excerpt"] = pasted.shown(lines, row["line"], row["excerpt"])


def _read_section(section: Section) -> Reading:
    """Parse one section; what a parser leaves unread is passed over when the next section is asked for."""
    capture, parser = section.capture, section.parser
    parsed = _parsed(parser, capture) if parser is not None else Parsed({})
    size, newlines = section.drain()
    for rows in parsed.rows.values():
        for row in rows:
            row.setdefault("member", capture.member)
            if capture.host and not row.get("host"):
                row["host"] = capture.host
    entry = InventoryEntry(
        capture.member,
        "" if section.whole else f"lines {capture.first_line}-{capture.first_line + max(newlines - 1, 0)}",
        capture.command,
        sniff.name_of(parser) if parser else "",
        sum(len(rows) for rows in parsed.rows.values()),
        size,
        "" if parser else "not recognised",
    )
    return entry, parsed.rows, _bounded(parsed.gaps)


def _bounded(gaps: list[Gap]) -> list[Gap]:
    """Return the first gaps of a capture and, where there are more than MAX_NOTES, one that counts the others."""
    if len(gaps) <= MAX_NOTES:
        return gaps
    more = f"{len(gaps) - MAX_NOTES:,} more gaps in this capture; the last: {gaps[-1].what}"
    return [*gaps[:MAX_NOTES], Gap(gaps[-1].member, gaps[-1].line, more)]


def _parsed(parser: ModuleType, capture: Capture) -> Parsed:
    """Return what the parser makes of a capture; a defect of ours costs this one capture and is told as a gap."""
    try:
        found: Parsed = parser.parse(capture)
    except Exception as error:
        if os.environ.get("POSTMORTEM_DEBUG"):
            raise
        name = f"{sniff.name_of(parser)}: {type(error).__name__}"
        what = f"a bug of ours ({name}): this capture was not read; POSTMORTEM_DEBUG=1 shows where"
        return Parsed({}, [Gap(capture.member, capture.first_line, what)])
    return found


def _looked_at(chunks: Iterator[bytes]) -> tuple[Iterator[bytes], str]:
    """Return the chunks, none lost, and `empty` or `binary` when the first bytes say so."""
    first = next((chunk for chunk in chunks if chunk), b"")
    if not first:
        return iter(()), "empty"
    head = first[:8192]
    controls = len(head) - len(head.translate(None, bytes(set(range(32)) - set(b"\t\n\r\f\x1b\0"))))
    binary = controls > BINARY_SHARE * len(head) or head.count(0) > 0.5 * len(head)
    return chain([first], chunks), "binary" if binary else ""


def _told_apart(table: str, rows: list[Row], capture: int) -> list[Row]:
    """Return the rows with the ids that are unique within their capture made unique within the case."""
    own = [column for column, only in OWN_IDS.items() if only in (None, table)]
    for row in rows:
        for column in own:
            if row.get(column) is not None:
                row[column] = f"{capture}:{row[column]}"
    return rows


def facts(case: Case) -> dict[str, list[str]]:
    """Return what the tables say of the host: `hosts`, `kernels`, `hardware`, `cpus`, each distinct, in order met."""

    def distinct(*sources: tuple[str, str]) -> list[str]:
        values: dict[str, None] = {}
        for table, column in sources:
            if table in case.tables and column in case.tables[table]:
                values |= dict.fromkeys(str(v) for v in case.tables[table][column].dropna() if str(v))
        return list(values)

    def named(name: str) -> list[str]:
        if "host_fact" not in case.tables:
            return []
        table = case.tables["host_fact"]
        return [str(value) for value in table.loc[table["name"] == name, "value"].dropna()]

    kernels = distinct(("boot", "kernel"), ("alloc_stall", "kernel"), ("alloc_failure", "kernel"))
    return {
        "hosts": list(dict.fromkeys(distinct(("kernel_event", "host"), ("boot", "host")) + named("hostname"))),
        "kernels": list(dict.fromkeys(kernels + named("kernel"))),
        "hardware": distinct(("boot", "hardware")),
        "cpus": list(dict.fromkeys(distinct(("boot", "cpu_model")) + named("cpu_model"))),
    }
