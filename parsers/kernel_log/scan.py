"""The first tier: which lines of a log hold any literal of any family, looked for in raw bytes.

`bytes.find` once for each literal was the fastest of what plain Python offers (some 43 MB/s for 93 literals, one `re`
alternation 7 to 9), so that the cost is the number of *different* needles. Literals that share a rare enough piece are
looked for by that piece, and a line found by it is kept only when it holds one of the literals themselves: a modest
gain, 49 MB/s. An engine that finds all literals in one pass
can take this module's place: it has to give the same line starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

Scan = Callable[[bytes, int, int], list[int]]
"""(text, start, stop) to the starts of the lines in text[start:stop] that hold a literal, in order. `start` is the
start of a line and `stop` the end of one."""

SHARED = 9
"""Length of the pieces that may stand for several literals: shorter ones (`kernel: `) are in every other line."""

COMMON = (b"kernel", b" process", b"memory ", b"ocation ", b"clocksource")
"""What is too frequent in ordinary logs to be looked for in place of the longer literals that hold it."""


def needles(literals: Iterable[bytes]) -> list[tuple[bytes, tuple[bytes, ...]]]:
    """Return (needle, the literals it stands for): a greedy cover of all literals by shared pieces."""
    left = sorted(set(literals))
    cover: list[tuple[bytes, tuple[bytes, ...]]] = []
    while left:
        holders: dict[bytes, set[bytes]] = {}
        for literal in left:
            for start in range(len(literal) - SHARED + 1):
                piece = literal[start : start + SHARED]
                if not any(common in piece for common in COMMON):
                    holders.setdefault(piece, set()).add(literal)
        best = max(holders, key=lambda piece: (len(holders[piece]), piece), default=b"")
        if not best or len(holders[best]) == 1:
            break
        cover.append((best, tuple(sorted(holders[best]))))
        left = [literal for literal in left if literal not in holders[best]]
    return cover + [(literal, (literal,)) for literal in left]


@cache
def scanner(literals: tuple[bytes, ...]) -> Scan:
    """Return the scan for these literals."""
    cover = needles(literals)

    def scan(text: bytes, start: int, stop: int) -> list[int]:
        found: set[int] = set()
        for needle, stands_for in cover:
            certain = needle in stands_for
            place = text.find(needle, start, stop)
            while place >= 0:
                line = text.rfind(b"\n", start, place) + 1 or start
                end = text.find(b"\n", place, stop)
                if end < 0:
                    end = stop
                if certain or any(text.find(literal, line, end) >= 0 for literal in stands_for):
                    found.add(line)
                place = text.find(needle, end, stop)
        return sorted(found)

    return scan
