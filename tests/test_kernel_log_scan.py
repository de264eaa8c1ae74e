"""The two engines that look for literals: they find the same lines, and those that walking the lines finds."""

from __future__ import annotations

import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.sections import IN_CHUNK
from parsers import kernel_log
from parsers.kernel_log import reader, scan
from parsers.shapes import Capture

CORPUS = Path(__file__).parent / "corpus"
LITERALS = (*(literal for family in kernel_log._FAMILIES for literal in family.LITERALS), *reader.BOOT_MARKS)
FEW = (b"abcab", b"cab", b"b", b"detected x", b"y detected ", b"\xc3\xa4\xff")


def walked(literals: tuple[bytes, ...], text: bytes, start: int, stop: int) -> list[int]:
    """Return the starts of the lines that hold a literal, by looking at every line."""
    starts = []
    for line in text[start:stop].split(b"\n"):
        if any(literal in line for literal in literals):
            starts.append(start)
        start += len(line) + 1
    return starts


def engines(literals: tuple[bytes, ...]) -> list[scan.Scan]:
    """Return both engines; a machine without Hyperscan tests its own only."""
    pytest.importorskip("hyperscan")
    automaton = scan.automaton(literals)
    assert automaton is not None
    return [automaton, scan.searches(literals)]


@pytest.mark.parametrize("path", sorted(CORPUS.glob("kernel_log/*.*")), ids=lambda path: path.name)
def test_captures(path: Path) -> None:
    """In every capture both find the lines that hold a literal."""
    text = path.read_bytes()
    expected = walked(LITERALS, text, 0, len(text))
    for engine in engines(LITERALS):
        assert engine(text, 0, len(text)) == expected


def test_literals_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A literal is found wherever the edge of a block falls in it, and once."""
    monkeypatch.setattr(scan, "BLOCK", 256)
    automaton, plain = engines(LITERALS)
    for literal in LITERALS:
        for cut in range(-1, len(literal) + 2):
            text = b"[    1.000000] first\n" + b"x" * (256 - 21 - cut) + literal + b" and on\nnext line\n"
            expected = walked(LITERALS, text, 0, len(text))
            assert expected == [21]
            assert automaton(text, 0, len(text)) == plain(text, 0, len(text)) == expected


@pytest.mark.parametrize("block", [16, 61, 256, 1 << 22])
def test_planted_literals(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In random text with literals planted anywhere, whole and torn, both find the same lines in any part of it."""
    monkeypatch.setattr(scan, "BLOCK", block)
    both = engines(LITERALS)
    choice = random.Random(block)
    for _ in range(60):
        pieces = []
        for _ in range(choice.randrange(1, 60)):
            literal = choice.choice(LITERALS)
            noise = choice.randbytes(choice.randrange(20)).replace(b"\n", b"") + choice.choice(
                [b"", b"\n", b"\0", b"\r\n"]
            )
            pieces += [noise, literal[choice.choice([0, 0, 1]) :], literal[: choice.randrange(len(literal))]]
        text = b"".join(pieces)
        edges = [0, *(place + 1 for place, byte in enumerate(text) if byte == 10), len(text)]
        for start, stop in [(0, len(text)), *(sorted(choice.choices(edges, k=2)) for _ in range(5))]:
            expected = walked(LITERALS, text, start, stop)
            assert [engine(text, start, stop) for engine in both] == [expected, expected]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([b"a", b"b", b"c", b"cab", b" detected ", b"x", b"y", b"\n", b"\xc3\xa4", b"\xff"])))
def test_any_text(pieces: list[bytes]) -> None:
    """Literals within and across each other, shared pieces, bytes that are no text."""
    text = b"".join(pieces)
    expected = walked(FEW, text, 0, len(text))
    assert [engine(text, 0, len(text)) for engine in engines(FEW)] == [expected, expected]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*IN_CHUNK, b"\n", b"$ ", b"[root@", b"=", b" ", b"\xff", b"log"])).map(b"".join))
def test_finders(text: bytes) -> None:
    """The marks of sections are found where `re` finds them, with Hyperscan and without."""
    expected = sorted({found.start() for mark in IN_CHUNK for found in re.finditer(re.escape(mark), text)})
    assert scan.finder(IN_CHUNK)(text) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "hyperscan", None)
        assert scan.finder.__wrapped__(IN_CHUNK)(text) == expected


def test_the_impossible_literal_is_no_hit() -> None:
    """What is in the set only to choose the faster matcher finds nothing."""
    text = b"one\n" + scan.SHORT + b"\n" + scan.SHORT + LITERALS[0] + b"\n"
    assert engines(LITERALS)[0](text, 0, len(text)) == [8]


def test_threads_share_a_scan() -> None:
    """Many threads may scan at the same time."""
    automaton, plain = engines(LITERALS)
    texts = [(b"x" * 50_000 + literal + b"\n") * 40 for literal in LITERALS[:24]]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: automaton(text, 0, len(text)), texts))
    assert found == [plain(text, 0, len(text)) for text in texts]


def test_rows_without_hyperscan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Hyperscan is not installed, every capture gives the same rows and gaps."""
    files = sorted(CORPUS.glob("kernel_log/*.txt")) + sorted(CORPUS.glob("kernel_log/*.log"))

    def parsed() -> list[object]:
        scan.scanner.cache_clear()
        return [kernel_log.parse(Capture("m", 1, "", [path.read_bytes()])) for path in files]

    with_it = parsed()
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    assert scan.automaton(LITERALS) is None
    assert parsed() == with_it
    scan.scanner.cache_clear()


def test_literals_fit_both_engines() -> None:
    """Hyperscan takes a literal to end at a NUL; lines are looked for by literals within one line."""
    assert not any(b"\0" in literal or b"\n" in literal or not literal for literal in LITERALS)
