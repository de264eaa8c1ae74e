"""Text from strangers made safe to show: what a terminal would obey or a reader could not see becomes an escape.

A log may hold ESC sequences that drive a terminal, NULs, lone surrogates, and Unicode's direction overrides, which
make a line read as something else than it is ("Trojan Source", CVE-2021-42574). All of them are shown as the escape
a programmer would write (`\\x1b`, `\\u202e`), never dropped: they are evidence too.
"""

from __future__ import annotations

import re

from parsers.shapes import MAX_EXCERPT_CHARS, MAX_EXCERPT_LINES

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1 (0x9b alone is a CSI to some terminals)
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"  # soft hyphen, joiners and fillers without a glyph
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"  # zero width, line and direction marks
    "\ud800-\udfff"  # lone surrogates: they have no UTF-8
    "\U000e0000-\U000e0fff]"  # tags and variation selectors
)


def _escape(match: re.Match[str]) -> str:
    """Return the escape of one character."""
    code = ord(match[0])
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible(text: str) -> str:
    """Return the text with everything unseen or obeyed by terminals as an escape; tab and newline stay."""
    return _UNSEEN.sub(_escape, text)


def one_line(text: str, limit: int = MAX_EXCERPT_CHARS) -> str:
    """Return the text as one visible line of at most `limit` characters."""
    return clip(visible(" ".join(text.split())), limit)


def clip(text: str, limit: int) -> str:
    """Return the text, its end replaced by an ellipsis where it is longer than `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def excerpt_lines(text: str, first: int, limit: int = MAX_EXCERPT_LINES) -> list[tuple[int, str]]:
    """Return (line number, visible text) for each line of an excerpt that begins at line `first`."""
    lines = text.split("\n")[:limit]
    return [(first + index, clip(visible(line), MAX_EXCERPT_CHARS)) for index, line in enumerate(lines)]
