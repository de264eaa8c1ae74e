"""The clocksource in use and those the kernel offers, from sysfs.

    $ grep . /sys/devices/system/clocksource/clocksource0/*_clocksource
    /sys/devices/system/clocksource/clocksource0/available_clocksource:tsc hpet acpi_pm
    /sys/devices/system/clocksource/clocksource0/current_clocksource:tsc

Table: `clocksource`, a row for each capture: both columns where it shows both files, else one.
Format: kernel/time/clocksource.c (`current_clocksource_show`, `available_clocksource_show`: names joined by a blank,
a blank at the end). Names are compared whole: `tsc-early` is not `tsc`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from parsers.shapes import Capture, Column, Gap, Parsed, Row, Table, excerpt

TABLES = {
    "clocksource": Table(
        "the clocksource of a host, as far as one capture shows it",
        {
            "current": Column("str", "the clocksource in use"),
            "available": Column("object", "tuple of the names the kernel offers, best first"),
        },
    )
}
CAPTURES = dict.fromkeys(
    TABLES, ("the clocksource files", "grep . /sys/devices/system/clocksource/clocksource0/*_clocksource")
)
BEGINS = re.compile(rb"\S*/(?:current|available)_clocksource\s*[:=]\s*[a-z]")

FILE = re.compile(r"(?P<which>current|available)_clocksource\b")
NAMED_LINE = re.compile(r"\S*?(?P<which>current|available)_clocksource\s*[:=]\s*(?P<value>\S.*)?$")
FILE_MARK = re.compile(r"==> \S*?(?P<which>current|available)_clocksource <==$")
VALUE = re.compile(r"[a-z][\w.-]*(?: [a-z][\w.-]*)*\s*$")
GLOB = re.compile(r"clocksource0?/?\S*\*")
KNOWN = (
    "tsc", "tsc-early", "hpet", "acpi_pm", "kvm-clock", "xen", "jiffies", "refined-jiffies", "pit",
    "hyperv_clocksource_tsc_page", "hyperv_clocksource_msr", "arch_sys_counter", "timebase", "tod",
)  # fmt: skip
"""Names that are believed in a last line without line end; any other may be the beginning of a longer one."""


@dataclass(slots=True)
class _Draft:
    """A row while its lines go by."""

    row: Row = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)


def sniff(head: str) -> bool | None:
    """Return whether this shows a clocksource file: by the command, or by the file's name in front of the value."""
    first = head.partition("\n")[0]
    if first.startswith("$ "):
        return bool(FILE.search(first) or GLOB.search(first)) and "echo" not in first.split()[:3]
    first = next((line for line in head.split("\n", 5) if line.strip()), "")
    return bool(NAMED_LINE.match(first) or FILE_MARK.match(first))


def parse(capture: Capture) -> Parsed:
    """Return the `clocksource` rows of a capture.

    What one host shows of both files makes one row; a file shown again begins another. Lines that are no names (an
    error of cat), an empty file, and a last line that may be cut become gaps. Never raises.
    """
    every = list(capture.lines())
    lines = [(number, text) for number, text in every if text.strip()]
    gaps = capture.gaps()
    expected = _files_of(capture.command)
    drafts = [_Draft()]
    marked: list[str] = []
    for number, text in lines:
        if mark := FILE_MARK.match(text):
            marked = [mark["which"]]
            continue
        named = NAMED_LINE.match(text)
        which = named["which"] if named else next(iter(marked or expected), "")
        value = (named["value"] or "") if named else text
        if not which or not VALUE.match(value):
            gaps.append(Gap(capture.member, number, f"shows no clocksource: `{text.strip()[:100]}`"))
            continue
        if not named and not marked:
            expected.pop(0)
        names = value.split()
        if (number, text) == lines[-1] and capture.open_end and names[-1] not in KNOWN:
            gaps.append(Gap(capture.member, number, f"cut: `{names[-1]}` may be the beginning of a name"))
            continue
        if which in drafts[-1].row:
            drafts.append(_Draft())
        drafts[-1].row[which] = names[0] if which == "current" else tuple(names)
        drafts[-1].numbers.append(number)
    if not lines:
        gaps.append(Gap(capture.member, capture.first_line, "the clocksource file is empty"))
    rows = [_row(capture, draft, every) for draft in drafts if draft.row]
    return Parsed({"clocksource": rows} if rows else {}, gaps)


def _files_of(command: str) -> list[str]:
    """Return which file each line of `cat`'s output is, in order."""
    names = [found["which"] for found in FILE.finditer(command)]
    if not names and GLOB.search(command):
        return ["available", "current"]  # the shell sorts what `*` finds
    return names


def _row(capture: Capture, draft: _Draft, lines: list[tuple[int, str]]) -> Row:
    """Return a row; its excerpt runs from the first to the last line that made it."""
    text = excerpt(text for number, text in lines if draft.numbers[0] <= number <= draft.numbers[-1])
    return draft.row | {"line": draft.numbers[0], "excerpt": text, "host": capture.host or None}
