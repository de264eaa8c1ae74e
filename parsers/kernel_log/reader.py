"""The second tier: around every line that the scan found, prefixes are taken off and the families are asked.

The log passes through a window of about PIECE bytes. A family sees the line and what follows it within AHEAD_LINES
lines and AHEAD_BYTES bytes, measured from the line itself, so that rows never depend on where chunks end.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from types import ModuleType

from parsers.kernel_log import prefix, records
from parsers.kernel_log.ahead import Ahead
from parsers.kernel_log.boot import Boots
from parsers.kernel_log.ledger import Ledger
from parsers.kernel_log.message import Aside, Event, Message
from parsers.kernel_log.scan import scanner
from parsers.newlines import newlines
from parsers.shapes import MAX_LINE, Capture, Gap, Parsed, Table

PIECE = 1 << 18
"""Bytes taken at once: with no more than this they stay in the processor's cache (1,850 MB/s; 990 with a mebibyte)."""
HEAD_BYTES = 65_536
"""What is looked at to tell how a log is written: with prefixes or bare, a message a line or records."""
AHEAD_BYTES = 1 << 18
AHEAD_LINES = 640
"""Lines of other hosts, callers and services may stand between those of one report."""
MAX_KNOWN = 4 * AHEAD_LINES
"""Lines kept taken apart: in a dense log each is looked ahead at from many others."""
MAX_CLIPPED = 20
"""Clipped lines told one by one; the rest is told as a number."""

BOOT_MARKS = (b"-- Reboot --", b"-- Boot ")
KERNEL_MARKS = (b" kernel: ", b"kernel: ", b" kernel - ")


@cache
def families(package: str) -> tuple[ModuleType, ...]:
    """Return the message families: the package's modules that have LITERALS and `read`, by name."""
    path = importlib.import_module(package).__path__
    names = sorted(module.name for module in pkgutil.iter_modules(path))
    modules = (importlib.import_module(f"{package}.{name}") for name in names)
    return tuple(module for module in modules if hasattr(module, "LITERALS") and hasattr(module, "read"))


class Reader:
    """One capture being read: its scan, its boots and its ledger."""

    def __init__(self, capture: Capture, tables: Mapping[str, Table], asked: tuple[ModuleType, ...]) -> None:
        self._capture = capture
        self._ledger = Ledger(capture.member, tables)
        self._boots = Boots()
        self._asked = [(family, tuple(word.decode() for word in family.LITERALS)) for family in asked]
        self._scan = scanner((*(word for family in asked for word in family.LITERALS), *BOOT_MARKS))
        self._bare = False
        self._kernel = False
        self._line = capture.first_line
        self._place = 0
        """Where in the text at hand the line `_line` begins."""
        self._clipped: list[int] = []
        self._known: dict[int, tuple[Message | None, int]] = {}
        """Line numbers to what was taken apart: (message, length of the line)."""

    def read(self) -> Parsed:
        """Return rows and gaps of the whole capture; no table is present where no kernel message was met."""
        head, chunks = _head(self._capture.chunks)
        text = head.decode("utf-8", "backslashreplace")
        reading = records.reading(text)
        if reading:
            self._read_records(reading, chunks)
        else:
            self._bare = not any(_has_prefix(line) for line in text.split("\n"))
            self._read_lines(chunks)
        return self._parsed()

    def _parsed(self) -> Parsed:
        """Return what was read, every table of the package present but `boot`, which a boot must have shown."""
        self._boots.end(max(self._line - 1, self._capture.first_line))
        self._ledger.close()
        for family, _ in self._asked:
            if settle := getattr(family, "settle", None):
                settle(self._ledger.rows)
        gaps = self._ledger.gaps
        for number in self._clipped[:MAX_CLIPPED]:
            gaps.append(
                Gap(self._capture.member, number, f"line is longer than {MAX_LINE} bytes, the rest was not read")
            )
        if len(self._clipped) > MAX_CLIPPED:
            more = len(self._clipped) - MAX_CLIPPED
            what = f"{more} further lines are longer than {MAX_LINE} bytes, their rest was not read"
            gaps.append(Gap(self._capture.member, self._clipped[MAX_CLIPPED], what))
        if not (self._kernel or self._ledger.rows):
            return Parsed({}, gaps)
        present = [name for name in self._ledger.tables if name != "boot" or self._boots.rows]
        return Parsed({name: self._ledger.rows.get(name, []) for name in present}, gaps)

    def _read_lines(self, chunks: Iterable[bytes]) -> None:
        """Read a log of one message a line.

        Each piece is scanned as it comes. Only from a line that was found on is text kept, until all that its family
        may look at is there.
        """
        text, waiting = b"", list[int]()
        for whole in _pieces(chunks):
            piece, clipped = _clip(whole)
            found = self._scan(piece, 0, len(piece))
            keep = waiting[0] if waiting else len(text)
            line = self._line_at(text, keep)
            if clipped:
                before = line + newlines(text, keep, len(text))
                self._clipped += (before + passed for passed in clipped)
            held = len(text) - keep
            waiting = [*(start - keep for start in waiting), *(held + start for start in found)]
            text, self._place = text[keep:] + piece if held else piece, 0
            self._look_for_kernel(text)
            waiting = self._anchors(text, waiting, len(text) - AHEAD_BYTES)
        self._anchors(text, waiting, len(text))
        self._line_at(text, len(text))
        self._line += not text.endswith(b"\n")

    def _line_at(self, text: bytes, place: int) -> int:
        """Return the number of the line that begins at `place`, no earlier in the text than the one asked last."""
        self._line += newlines(text, self._place, place)
        self._place = place
        return self._line

    def _look_for_kernel(self, text: bytes) -> None:
        """Note whether a kernel message was met at all, and let the boots begin with the first."""
        if self._kernel:
            return
        if self._boots.hosts or self._bare:
            self._kernel = True
            return
        start, number = 0, self._line
        marked = any(mark in text for mark in KERNEL_MARKS)
        for _ in range(len(text) if marked else AHEAD_LINES):
            if start >= len(text):
                return
            end = _line_end(text, start)
            if message := prefix.message(number, _decoded(text[start:end])):
                self._boots.number(message)
                self._kernel = True
                return
            start, number = end + 1, number + 1

    def _anchors(self, text: bytes, starts: list[int], last: int) -> list[int]:
        """Ask the families about the lines that begin at these places, up to `last`; return the places left."""
        for count, start in enumerate(starts):
            if start > last:
                return starts[count:]
            number = self._line_at(text, start)
            if text.startswith(BOOT_MARKS, start):
                self._boots.reboot(number)
                continue
            message, _ = self._known.get(number) or self._take_apart(text, start, number)
            if message is not None:
                self._anchor(message, self._following(text, start, number, message))
        return []

    def _following(self, text: bytes, start: int, number: int, first: Message) -> Iterator[Message]:
        """Yield the messages after the line at `start`."""
        limit, before, size = start + AHEAD_BYTES, first, len(text)
        place = _line_end(text, start) + 1
        for after in range(number + 1, number + 1 + AHEAD_LINES):
            if place >= size:
                return
            message, length = self._known.get(after) or self._take_apart(text, place, after)
            end = place + length
            if end > limit:
                return
            if message is None and text[place : place + 12].isspace():
                message = _continued(before, after, _decoded(text[place:end]))
            if message is not None:
                yield message
                before = message
            place = end + 1

    def _take_apart(self, text: bytes, place: int, number: int) -> tuple[Message | None, int]:
        """Return the message of a line and the line's length, and keep them for whoever looks at it again."""
        end = _line_end(text, place)
        message = prefix.message(number, _decoded(text[place:end]), bare=self._bare)
        if message is not None and end == len(text):
            message = message._replace(ended=False)
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[number] = message, end - place
        return message, end - place

    def _read_records(self, reading: records.Reading, chunks: Iterable[bytes]) -> None:
        """Read a log message by message."""
        capture = Capture(self._capture.member, self._capture.first_line, "", chunks)

        def lines() -> Iterator[tuple[int, str]]:
            for number, line in capture.lines():
                self._line = number + 1
                yield number, line

        waiting: list[Message] = []
        for message in reading(lines()):
            waiting.append(message)
            if len(waiting) >= 8 * AHEAD_LINES:
                self._batch(waiting, len(waiting) - AHEAD_LINES)
                del waiting[: len(waiting) - AHEAD_LINES]
        self._batch(waiting, len(waiting))
        self._clipped = capture.cut_lines

    def _batch(self, messages: list[Message], stop: int) -> None:
        """Ask the families about those of the first `stop` messages that the scan finds."""
        if not messages:
            return
        if not self._boots.hosts:
            self._boots.number(messages[0])
            self._kernel = True
        text = b"\n".join(_haystack(message).encode("utf-8", "replace") for message in messages[:stop]) + b"\n"
        counted = place = 0
        for start in self._scan(text, 0, len(text)):
            place += text.count(b"\n", counted, start)
            counted = start
            self._anchor(messages[place], iter(messages[place + 1 : place + 1 + AHEAD_LINES]))

    def _anchor(self, message: Message, following: Iterator[Message]) -> None:
        """Let each family whose literal the line holds read the block, and book what it finds."""
        if not message.host and self._capture.host:
            message = message._replace(host=self._capture.host)
            following = (one._replace(host=one.host or message.host) for one in following)
        hay = _haystack(message)
        block = Ahead(message, following)
        boot = self._boots.number(message, begins=message.text.startswith("Linux version "))
        for family, words in self._asked:
            for word in words:
                if word in hay:
                    break
            else:  # a generator for any() takes three times as long, for each family and each hit
                continue
            for found in family.read(block):
                if isinstance(found, Event):
                    self._event(found, block, boot)
                elif isinstance(found, Aside):
                    if found.about == "boot":
                        self._boots.tell(message.host, found.facts)
                    else:
                        self._ledger.aside(found, message)
                else:
                    self._ledger.loss(found, message, boot)

    def _event(self, event: Event, block: Ahead, boot: int) -> None:
        """Book one event, with how often syslog says it was repeated."""
        repeats = prefix.repeats(block[0].raw) if "message repeated " in block[0].raw else 0
        if following := block[1:2]:
            repeats += prefix.last_repeated(following[0].text)
        self._ledger.add(event, block, boot, repeats)
        if event.kind == "boot":
            row = self._ledger.rows["boot"][-1]
            if row["line"] == block[0].number:  # else past the cap of its kind
                self._boots.begun(block[0], row)
        elif event.kind == "clocksource_switch":
            self._boots.tell(block[0].host, {"final_clocksource": event.row["to_source"]})


def _clip(piece: bytes) -> tuple[bytes, list[int]]:
    """Return whole lines, the overlong ones cut to MAX_LINE bytes, and how many lines stand before each of those."""
    start = copied = 0
    kept: list[bytes] = []
    clipped: list[int] = []
    while start < len(piece):
        last = piece.rfind(b"\n", start, start + MAX_LINE + 1)
        if last >= 0:
            start = last + 1
            continue
        end = _line_end(piece, start)
        if end - start > MAX_LINE:
            clipped.append(piece.count(b"\n", 0, start))
            kept.append(piece[copied : start + MAX_LINE])
            copied = end
        start = end + 1
    return b"".join([*kept, piece[copied:]]) if kept else piece, clipped


def _head(chunks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first HEAD_BYTES and all chunks from the start."""
    left = iter(chunks)
    taken: list[bytes] = []
    size = 0
    for chunk in left:
        taken.append(chunk)
        size += len(chunk)
        if size >= HEAD_BYTES:
            break
    return b"".join(taken)[:HEAD_BYTES], chain(taken, left)


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes as whole lines, about PIECE at a time; of an endless line no more than its start."""
    pending = bytearray()
    endless = False
    for chunk in chunks:
        if endless:
            end = chunk.find(b"\n")
            if end < 0:
                continue
            chunk, endless = chunk[end:], False
        if not pending and 2 * len(chunk) >= PIECE and chunk.endswith(b"\n"):
            yield chunk  # as the bulk of a log comes: it is not copied
            continue
        pending += chunk
        if len(pending) < PIECE:
            continue
        cut = pending.rfind(b"\n") + 1
        if cut:
            yield bytes(memoryview(pending)[:cut])
            del pending[:cut]
        else:
            del pending[MAX_LINE + 1 :]
            endless = True
    if pending:
        yield bytes(pending)


def _has_prefix(line: str) -> bool:
    """Return whether something stands in front of the line's message, be it the kernel's or a service's."""
    return prefix.message(0, line) is not None or bool(prefix.carrier(prefix.clean(line)).ident)


def _line_end(text: bytes, start: int) -> int:
    """Return where the line that holds `start` ends."""
    end = text.find(b"\n", start)
    return end if end >= 0 else len(text)


def _decoded(line: bytes) -> str:
    """Return a line as text, its CR gone."""
    return line.removesuffix(b"\r").decode("utf-8", "backslashreplace")


def _continued(before: Message, number: int, raw: str) -> Message | None:
    """Return a further line of one printk of several lines, which dmesg and journalctl indent by the prefix's width."""
    width = len(prefix.clean(before.raw)) - len(before.text)
    if raw.strip() and not raw[:width].strip():
        return before._replace(number=number, text=raw[width:], raw=raw)
    return None


def _haystack(message: Message) -> str:
    """Return where to look for literals: the message, and the loss marker that was taken off with its prefix."""
    return message.text if "** " not in message.raw else f"{message.raw} {message.text}".replace("\n", " ")
