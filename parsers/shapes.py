"""The small shapes every parser shares: what it is given, what it gives back, how a table is declared.

A parser module is found by listing the folder `parsers/`; there is no registry. It offers

    TABLES   {name: Table}: the tables it is the home of (another parser may fill them too)
    CAPTURES {table: (what to ask for, the command that captures it)} for each of them
    BEGINS   a compiled bytes regex matching the first line of its capture wherever it stands in a text, or None
    sniff(head: str) -> bool | None      True: mine, False: not mine, None: show me more
    parse(capture: Capture) -> Parsed    rows and gaps; never raises on damaged input

`head` starts with a line `$ COMMAND` whenever the command is known, be it from a prompt in the text or from the
member's name (`sos_commands/networking/ethtool_-k_eth0`); `Capture.lines()` never contains that line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Row = dict[str, Any]
"""One row of a table: column name to value. A column left out is a missing value."""

MAX_LINE = 16_384
"""Longest line a text parser is handed, in characters: what is longer is cut and reported as a gap. The longest
genuine line met in captures is a Mem-Info node line of 700; a perf line with a mangled C++ name reaches 4,000."""

MAX_DIGITS = 40
"""Most digits of a number that is read as written; 2^64 has 20."""
BEYOND: int = 10**MAX_DIGITS

MAX_EXCERPT_LINES = 40
MAX_EXCERPT_CHARS = 500
"""An excerpt shows at most this many lines, each of at most this many characters."""


class Column(NamedTuple):
    """One column of a table."""

    dtype: str
    """pandas dtype: "str", "Int64", "Float64", "boolean", "datetime64[ns, UTC]", or "object" for tuples."""
    about: str
    """What it holds, with its unit where the name does not say it."""


@dataclass(frozen=True, slots=True)
class Table:
    """The declaration of a table: what one row is, and its own columns beyond the common ones."""

    row: str
    columns: dict[str, Column]


COMMON: dict[str, Column] = {
    "member": Column("str", "the file inside the bundle; nested archives are joined by `!`"),
    "line": Column("Int64", "where the row begins, 1-based, lines split on \\n only, as `sed -n` counts"),
    "excerpt": Column("str", "the row as written: the member's lines from `line` on, verbatim up to the clip"),
    "host": Column("str", "the host the row speaks of, where the capture names it"),
    "boot": Column("Int64", "which boot within the member, from 0"),
    "at": Column("datetime64[ns, UTC]", "wall-clock time in UTC, NaT where unknown"),
    "uptime_s": Column("Float64", "seconds since that boot"),
    "side": Column("str", "`baseline` or `incident` when two bundles are compared, else missing"),
}
"""The columns every table has, in this order, before its own."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Evidence known to be lost or unreadable."""

    member: str
    line: int
    """1-based; 0 when the whole member is meant."""
    what: str
    """One sentence: what is missing."""


@dataclass(slots=True)
class Capture:
    """One section of one member, in one format, read once from its start."""

    member: str
    first_line: int
    """The member's line number of the capture's first line (the one after the prompt, where there is one)."""
    command: str
    """The command that printed it, as far as known, else empty."""
    chunks: Iterable[bytes]
    """The bytes, in pieces that may end anywhere."""
    host: str = ""
    """The host the prompt names (`root@db42:~# …`), else empty."""
    cut_lines: list[int] = field(default_factory=list)
    """Filled while reading: numbers of the lines longer than MAX_LINE, which were handed on clipped."""
    open_end: bool = False
    """Filled while reading: the last line has no newline, so it may have lost its last digits."""
    unended: tuple[int, str] | None = None
    """Filled by `whole_lines`: the last line, held back because it has no newline."""

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield (line number, text) without the newline, CR stripped, undecodable bytes as \\xNN."""
        number = self.first_line
        for raw in split_lines(self._watched()):
            if len(raw) > MAX_LINE:
                self.cut_lines.append(number)
                raw = raw[:MAX_LINE]
            yield number, raw.removesuffix(b"\r").decode("utf-8", "backslashreplace")
            number += 1

    def whole_lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines that end in a newline: of a cut capture, the last one may lack its last digits."""
        held: tuple[int, str] | None = None
        for each in self.lines():
            if held is not None:
                yield held
            held = each
        if held is not None and not self.open_end:
            yield held
        elif held is not None and held[1].strip():
            self.unended = held

    def gaps(self) -> list[Gap]:
        """Return a gap for every line handed on clipped, and for one held back; ask after the last line was read."""
        gaps = [
            Gap(self.member, number, f"line is longer than {MAX_LINE} characters, the rest was not read")
            for number in self.cut_lines
        ]
        if self.unended is not None:
            gaps.append(Gap(self.member, self.unended[0], "the capture ends inside this line: not counted"))
        return gaps

    def _watched(self) -> Iterator[bytes]:
        for chunk in self.chunks:
            if chunk:
                self.open_end = not chunk.endswith(b"\n")
            yield chunk


@dataclass(slots=True)
class Parsed:
    """What a parser gives back for one capture."""

    rows: dict[str, list[Row]]
    """Table name to rows. A table named here is *present*, even with no rows: this capture could have filled it."""
    gaps: list[Gap] = field(default_factory=list)


def integer(digits: str | bytes) -> int:
    """Return a whole number; one of more digits than any counter has comes back as BEYOND, which fits no column.

    The case gives such a number as missing, with a gap. int() raises from 4,300 digits on, and is slow before.
    """
    if len(digits) <= MAX_DIGITS:
        return int(digits)
    return -BEYOND if digits[:1] in ("-", b"-") else BEYOND


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a byte stream without their newline; a last line without newline is yielded too.

    A line is held back only up to a little over MAX_LINE bytes: the rest of a longer one is passed over, so that
    a file of one endless line costs no memory.
    """
    rest = b""
    for chunk in chunks:
        first, newline, more = chunk.partition(b"\n")
        if len(rest) <= MAX_LINE:
            rest += first if len(first) <= MAX_LINE else first[: MAX_LINE + 1]
        if not newline:
            continue
        yield rest
        lines = more.split(b"\n")
        rest = lines.pop()
        yield from lines
    if rest:
        yield rest


def excerpt(lines: Iterable[str]) -> str:
    """Return lines joined for the `excerpt` column, clipped to MAX_EXCERPT_LINES and MAX_EXCERPT_CHARS each."""
    kept: list[str] = []
    for line in lines:
        if len(kept) == MAX_EXCERPT_LINES:
            kept.append("…")
            break
        kept.append(line if len(line) <= MAX_EXCERPT_CHARS else line[: MAX_EXCERPT_CHARS - 1] + "…")
    return "\n".join(kept)


INTERRUPT_ECHO = re.compile(r"^\^C")
"""The terminal's echo of Ctrl-C, glued to whatever the tool prints next: strip it once per line."""
