"""What all bcc tools print around their data: the line when attached, the clock, and the words for lost events.

Format: bcc, tools/*.py and src/python/bcc/perf_buffer; libbpf-tools print the same with small differences.
"""

from __future__ import annotations

import re

from parsers.shapes import Gap, Row, excerpt, integer

CLOCK = re.compile(r"^\[?(\d\d:\d\d:\d\d)\]?:?\s*$")
"""A time stamp on a line of its own (-T); argdist prints it in brackets, ext4dist with a colon."""

TRACING = re.compile(
    r"^(?:Tracing|Sampling|Measuring)(?: [\w ]+ for \"(?P<pattern>[^\"]*)\"| ?(?P<what>[^\".]*?)) ?"
    r"\.+ +(?:Hit )?Ctrl[-+]C to (?:end|exit|quit)"
)
"""The line a bcc tool prints once it is attached."""

NOTICES = re.compile(r"^(?:Detaching\.{3}|Exiting trace of .*|\.{3}|\[(?:\.{3}|…)\])\s*$")
"""Lines of a run that are neither data nor prose: end marks, and elisions made by whoever pasted it."""

LOSS = re.compile(
    r"^(?:Possibly lost|Lost) (\d+) (?:samples|events)"
    r"|^WARNING: (\d+) stack traces? (?:lost and )?could not be displayed"
    r"|^WARNING: hash table full"
)
"""bcc's own words for lost events: perf_reader.c, and the tools' warnings about full maps."""


def pattern_of(text: str) -> str:
    """Return a traced pattern without the `b'…'` that some Python 3 builds print around it."""
    found = re.fullmatch(r"b?'(.*)'", text)
    return found[1] if found else text


def lost(member: str, number: int, line: str) -> tuple[Gap, Row] | None:
    """Return the gap and the `log_loss` row of a loss marker, None for any other line."""
    found = LOSS.match(line)
    if not found:
        return None
    row: Row = {"line": number, "excerpt": excerpt([line]), "kind": "bcc"}
    if events := found[1] or found[2]:
        row["lost"] = integer(events)
    return Gap(member, number, f"the tool lost events: {line.strip()}"), row
