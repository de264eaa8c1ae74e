"""The first tier: which lines of a log hold any literal of any family, looked for in raw bytes.

Two engines give the same line starts. `automaton` finds all literals in one pass with Hyperscan, at 4,200 MB/s for 164
literals; `searches` is plain Python, for machines without it: `bytes.find` once for each needle, the fastest of what
Python itself offers (some 45 MB/s; one `re` alternation 7 to 9).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

Scan = Callable[[bytes, int, int], list[int]]
"""(text, start, stop) to the starts of the lines in text[start:stop] that hold a literal, in order. `start` is the
start of a line and `stop` the end of one."""

SHARED = 9
"""Length of the pieces that may stand for several literals: shorter ones (`kernel: `) are in every other line."""

COMMON = (b"kernel", b" process", b"memory ", b"ocation ", b"clocksource", b"ilesystem")
"""What is too frequent in ordinary logs to be looked for in place of the longer literals that hold it."""

BLOCK = 1 << 22
"""Bytes given to Hyperscan at once: it takes lengths modulo 2^32, and stops at nothing in between."""

SHORT = b"\xff\xfe\xfd"
"""A literal no text holds (no UTF-8 has these bytes). With one of three bytes in the set, Hyperscan compiles another
matcher, ×1.2 to ×1.4 as fast on logs; four bytes, or any number of long literals to pad the set, gained nothing."""

TAIL = 3
"""Hyperscan first looks at the last bytes of its literals: how rare these are decides how fast it is. So each literal
is cut where they are rare, and the rest compared at each hit (×1.5 on a log of few hits)."""

LEAST = 8
"""A literal is cut to no less than this: shorter ones are hit too often."""

PADDED = 64
"""Sets of 2 to 48 literals are slow: with impossible ones to this number they are ×1.2 to ×1.7 as fast."""

FREQUENT = b" e0toa1ns2ri3cdlm4u5p:678.9f_-=/[]g"
"""The bytes that logs are made of, the most frequent first."""


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
    """Return the fastest scan for these literals that this machine has; made once in a process, for any thread."""
    return automaton(literals) or searches(literals)


def windows(literals: Iterable[bytes]) -> dict[bytes, tuple[bytes, ...]]:
    """Return the beginning of each literal to look for, with what may follow it, one for each literal."""
    worth = {byte: len(FREQUENT) - place for place, byte in enumerate(FREQUENT)}
    beginnings: dict[bytes, tuple[bytes, ...]] = {}
    for literal in sorted(set(literals)):
        ends = range(min(LEAST, len(literal)), len(literal) + 1)
        end = min(ends, key=lambda end: (sum(worth.get(byte, 0) for byte in literal[end - TAIL : end]), -end))
        beginnings[literal[:end]] = (*beginnings.get(literal[:end], ()), literal[end:])
    return beginnings


def automaton(literals: tuple[bytes, ...]) -> Scan | None:
    """Return the scan by Hyperscan; None where it is not installed or the processor is none it runs on.

    No literal may hold a newline, or a NUL, at which Hyperscan takes it to end.
    """
    beginnings = windows(literals)
    passes = _passes((*beginnings, SHORT))
    if passes is None:
        return None
    rests = [*beginnings.values(), ()]

    def scan(text: bytes, start: int, stop: int) -> list[int]:
        lines: list[int] = []
        passed = start  # where the last line found ends
        for found in passes(text, start, stop):
            for end, number in found:
                if end > passed and text.startswith(rests[number], end, stop):
                    lines.append(text.rfind(b"\n", start, end) + 1 or start)
                    passed = text.find(b"\n", end, stop)
                    if passed < 0:
                        return lines
        return lines

    return scan


@cache
def finder(words: tuple[bytes, ...]) -> Callable[[bytes], list[int]]:
    """Return what finds where any of the words begins in a text, in order; no word may hold another's beginning."""
    passes = _passes((*words, *(b"impossible %d \xff" % number for number in range(PADDED - len(words)))))
    if passes is None:
        pattern = re.compile(b"|".join(map(re.escape, words)))
        return lambda text: [found.start() for found in pattern.finditer(text)]

    def find(text: bytes) -> list[int]:
        found = (one for each in passes(text, 0, len(text)) for one in each)
        return sorted({end - len(words[number]) for end, number in found if number < len(words)})

    return find


Passes = Callable[[bytes, int, int], Iterator[list[tuple[int, int]]]]
"""(text, start, stop) to what was found, block by block: (where it ends, the number of the word), in order; what
lies where two blocks meet may come twice."""


def _passes(words: tuple[bytes, ...]) -> Passes | None:
    """Return what finds every place of these words with Hyperscan, for any thread; None where that cannot be."""
    try:
        import hyperscan  # 15 ms: only when a log is read
    except ImportError:
        return None
    overlap = max(map(len, words)) - 1
    database: Any = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)  # its types know no memoryview
    numbers = list(range(len(words)))
    try:
        database.compile(expressions=list(words), ids=numbers, elements=len(words), flags=0, literal=True)
    except hyperscan.error:
        return None

    class Own(threading.local):
        """Hyperscan's working memory, which two scans at the same time must not share."""

        def __init__(self) -> None:
            self.scratch = hyperscan.Scratch(database)

    own = Own()

    def passes(text: bytes, start: int, stop: int) -> Iterator[list[tuple[int, int]]]:
        view = memoryview(text)
        for block in range(start, stop, BLOCK):
            begin = max(start, block - overlap)  # a word may straddle two blocks
            found: list[tuple[int, int]] = []

            def note(number: int, _start: int, end: int, _flags: int, before: int, found: Any = found) -> None:
                found.append((before + end, number))

            database.scan(view[begin : min(block + BLOCK, stop)], note, context=begin, scratch=own.scratch)
            found.sort()
            yield found

    return passes


def searches(literals: tuple[bytes, ...]) -> Scan:
    """Return the scan by `bytes.find`.

    Literals that share a rare enough piece are looked for by that piece, and a line found by it is kept only when it
    holds one of the literals themselves.
    """
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
                if certain or _holds(text, line, end, stands_for):
                    found.add(line)
                place = text.find(needle, end, stop)
        return sorted(found)

    return scan


def _holds(text: bytes, start: int, stop: int, literals: tuple[bytes, ...]) -> bool:
    """Return whether text[start:stop] holds one of the literals."""
    return any(text.find(literal, start, stop) >= 0 for literal in literals)
