"""What a mail, a page or a wiki put around a pasted text, taken off again: quoting, indentation, HTML's escapes.

Line for line: line 7 of what comes out is line 7 of the member, so that every row still points to its place, and
`shown` gives the place's own words back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from analyzer import sniff
from analyzer.sections import prompt_of_line
from parsers.shapes import excerpt

MAX_BYTES = 1 << 20
"""Longest member looked at: what people paste is far smaller, and a log of gigabytes is no mail."""

_MAIL = re.compile(rb"(?:> ?)+")
_BLOCK = re.compile(rb"(?: {4}|\t)")
_ESCAPE = re.compile(rb"&(lt|gt|quot|amp|#39|#x27|nbsp);")
_ESCAPED = {b"lt": b"<", b"gt": b">", b"quot": b'"', b"amp": b"&", b"#39": b"'", b"#x27": b"'", b"nbsp": b" "}


def text_of(chunks: Iterator[bytes]) -> tuple[bytes | None, Iterator[bytes]]:
    """Return the whole text of a short member, None for a longer one; and its chunks, none lost."""
    taken: list[bytes] = []
    size = 0
    for chunk in chunks:
        taken.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            return None, chain(taken, chunks)
    return b"".join(taken), iter(taken)


def plain(text: bytes) -> bytes:
    """Return the text without what was put around it; the text itself where nothing was.

    A run of lines is quoted or indented when a prompt or a capture begins in it once the quoting is gone, and did not
    before: Mem-Info and stacks are indented by themselves. A block of code follows an empty line, as Markdown has it,
    and its first line has no further indent, as the heads of histograms have.
    """
    lines = text.split(b"\n")
    if any(mark in text for mark in (b"&lt;", b"&gt;", b"&quot;")):
        lines = [_ESCAPE.sub(lambda found: _ESCAPED[found[1]], line) for line in lines]
    for begin, end in _runs(lines, _MAIL):
        freed = [_MAIL.sub(b"", line, count=1) for line in lines[begin:end]]
        if any(_begins(line) for line in freed):
            lines[begin:end] = freed
    for begin, end in _runs(lines, _BLOCK):
        freed = [_BLOCK.sub(b"", line, count=1) for line in lines[begin:end]]
        after_blank = begin == 0 or not lines[begin - 1].strip()
        if after_blank and not freed[0][:1].isspace() and _begins(freed[0]):
            lines[begin:end] = freed
    return b"\n".join(lines)


def shown(lines: list[str], first: int, like: str) -> str:
    """Return the excerpt of as many of the member's own lines, from line `first` on, as `like` has."""
    length = like.count("\n") + (0 if like.endswith("\n…") else 1)
    return excerpt(lines[first - 1 : first - 1 + length]) + ("\n…" if like.endswith("\n…") else "")


def _runs(lines: list[bytes], lead: re.Pattern[bytes]) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each run of lines with this lead; empty lines do not end a run, nor begin one."""
    begin = end = -1
    for place, line in enumerate(lines):
        if lead.match(line):
            begin, end = (place if begin < 0 else begin), place + 1
        elif line.strip() and begin >= 0:
            yield begin, end
            begin = -1
    if begin >= 0:
        yield begin, end


def _begins(line: bytes) -> bool:
    """Return whether a line is a prompt, or begins a capture."""
    return prompt_of_line(line) is not None or sniff.begun_by(line + b"\n") is not None
