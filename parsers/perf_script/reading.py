"""Reading `perf script` text: chunks of plain event lines at once, everything else line by line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from parsers.perf_script.event import (
    FAST,
    JOINED,
    LOST,
    META,
    PADDED,
    PLAIN,
    SOURCE,
    TRACE_ONLY,
    UNTIMED,
    symbol,
    text,
)
from parsers.perf_script.record import read_record
from parsers.shapes import MAX_LINE, Capture, Gap, Row, excerpt, integer

CHUNK = 4 << 20
"""Bytes that are read at a time: 25,000 timer lines, some 15 MB of Python objects."""
MAX_GROUPS = 100_000
"""Rows kept for each table; what comes after is counted in a gap."""
MAX_DAMAGE = 20
"""Damaged lines that are named one by one."""


@dataclass(slots=True)
class Sum:
    """What is known of all events that share a head, an event and a timer function."""

    line: int
    shown: str
    events: int = 0
    period: int | None = None
    first_s: float | None = None
    last_s: float | None = None

    def add(self, events: int, first: bytes | None, last: bytes | None, period: int | None) -> None:
        """Add events; the times are those printed."""
        self.events += events
        if period is not None:
            self.period = (self.period or 0) + period
        if first is not None and last is not None:
            start, end = float(first), float(last)
            self.first_s = start if self.first_s is None else min(self.first_s, start)
            self.last_s = end if self.last_s is None else max(self.last_s, end)

    def merge(self, other: Sum) -> None:
        """Add another sum."""
        self.events += other.events
        if other.period is not None:
            self.period = (self.period or 0) + other.period
        starts = [each.first_s for each in (self, other) if each.first_s is not None]
        ends = [each.last_s for each in (self, other) if each.last_s is not None]
        self.first_s, self.last_s = min(starts, default=None), max(ends, default=None)


Key = tuple[bytes, bytes, bytes]
"""Head (everything before the time), event, timer function."""
Chain = tuple[bytes, bytes, tuple[str, ...]]
"""Head, event, frames."""


@dataclass(slots=True)
class Reading:
    """Everything read so far."""

    capture: Capture
    number: int
    sums: dict[Key, Sum] = field(default_factory=dict)
    chains: dict[Chain, Sum] = field(default_factory=dict)
    records: list[Row] = field(default_factory=list)
    losses: list[Row] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)
    symbols: dict[bytes, str] = field(default_factory=dict)
    fragment: bytes | None = None
    """A short line that may be the first half of a comm with a newline in it."""
    event: tuple[bytes, bytes] | None = None
    """Head and event of the sample whose frames are being read."""
    lines: list[bytes] = field(default_factory=list)
    """Its lines."""
    start: int = 0
    """The number of the first of them."""
    frames: list[str] = field(default_factory=list)
    timed: bool = False
    """A line with a time was read."""
    damaged: int = 0
    beyond: int = 0
    """Events whose group was not kept."""

    def sum_of(self, key: Key, number: int, shown: bytes) -> Sum | None:
        """Return the sum an event belongs to, None once there are too many."""
        made = self.sums.get(key)
        if made is None and len(self.sums) < MAX_GROUPS:
            made = self.sums[key] = Sum(number, _shown([shown]))
        return made


def read(capture: Capture) -> Reading:
    """Return everything a capture holds, summed up."""
    reading = Reading(capture, capture.first_line)
    for block in _blocks(reading):
        if not _read_plain_lines(reading, block):
            for raw in block.split(b"\n")[:-1]:
                _read_line(reading, raw)
                reading.number += 1
    if reading.frames:  # perf ends every chain with a blank line
        what = "the capture ends inside this call chain: the sample is counted, its stack is not"
        reading.gaps.append(Gap(capture.member, reading.start, what))
    return reading


def _blocks(reading: Reading) -> Iterator[bytes]:
    """Yield the capture in blocks of whole lines; a last line without newline becomes a gap: it may be cut."""
    rest = b""
    for given in reading.capture.chunks:
        for at in range(0, len(given), CHUNK):
            piece = given[at : at + CHUNK]
            end = piece.rfind(b"\n") + 1
            if not end:
                rest += piece[: max(0, MAX_LINE + 1 - len(rest))]
                continue
            yield rest + piece[:end] if rest else piece[:end]
            rest = piece[end:][: MAX_LINE + 1]
    if rest.strip():
        reading.gaps.append(
            Gap(reading.capture.member, reading.number, "the capture ends inside this line: not counted")
        )


def _read_plain_lines(reading: Reading, block: bytes) -> bool:
    """Read a block in which every line is an event without chain, which is what a tracepoint dump is made of.

    Counting, and finding the first and last line of each key, is left to zip, Counter and dict, whose loops are in
    C: a loop over the lines in Python takes more than twice as long. False if some line is anything else.
    """
    found = FAST.findall(block)
    if len(found) != block.count(b"\n"):
        return False
    _flush(reading)
    reading.fragment, reading.timed = None, True
    heads, times, periods, events, functions = zip(*found, strict=True)
    keys: list[Key] = list(zip(heads, events, functions, strict=True))
    last = dict(zip(keys, times, strict=True))
    weights: Counter[Key] = Counter()
    if any(periods):
        for key, period in zip(keys, periods, strict=True):
            weights[key] += integer(period or b"0")
    if not last.keys() <= reading.sums.keys():
        _meet(reading, block, keys, times)
    for key, many in Counter(keys).items():
        if made := reading.sums.get(key):
            made.add(many, last[key], last[key], weights.get(key))
        else:
            reading.beyond += many
    reading.number += len(keys)
    return True


def _meet(reading: Reading, block: bytes, keys: list[Key], times: tuple[bytes, ...]) -> None:
    """Make a sum for each key that is new, with its first line; perf script prints in order of time."""
    lines = block.split(b"\n")
    first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    for key, index in sorted(first.items(), key=lambda item: item[1]):
        if key not in reading.sums and (made := reading.sum_of(key, reading.number + index, lines[index])):
            made.add(0, times[index], times[index], None)


def _read_line(reading: Reading, raw: bytes) -> None:
    """Read any one line: an event, a frame, a blank, the header block, perf's own messages, or none of these."""
    if len(raw) > MAX_LINE:
        reading.capture.cut_lines.append(reading.number)
        raw = raw[:MAX_LINE]
    # A frame begins with a tab. Where tabs became blanks, a line is a frame only if it is no event of `a b` or `12 3`.
    if raw[:1] == b"\t" and reading.event and _read_frame(reading, raw):
        return
    fragment, reading.fragment = reading.fragment, None
    found, lines = None, [raw]
    if fragment is not None:
        joined = fragment + b"\n" + raw
        found, lines = PADDED.match(joined) or (None if raw[:1] == b" " else JOINED.match(joined)), [fragment, raw]
    if not found:
        found, lines = PADDED.match(raw) or PLAIN.match(raw), [raw]
    if found:
        _add(reading, found, lines)
    elif not raw.strip():
        _flush(reading)
    elif not (raw[:1] == b" " and reading.event and _read_frame(reading, raw)):
        _read_other(reading, raw)


def _read_frame(reading: Reading, raw: bytes) -> bool:
    """Read a frame of the event above; False for a line that is none."""
    if raw not in reading.symbols:
        made = "" if SOURCE.fullmatch(raw) and len(reading.lines) > 1 else symbol(raw)
        if made is None:
            return False
        if len(reading.symbols) > MAX_GROUPS:
            reading.symbols.clear()
        reading.symbols[raw] = made
    reading.lines.append(raw)
    reading.frames.append(reading.symbols[raw])
    return True


def _read_other(reading: Reading, raw: bytes) -> None:
    """Read a line that is no event with a time."""
    number, member = reading.number, reading.capture.member
    if found := LOST.search(raw):
        events = integer(found[1] or found[2])
        reading.losses.append({"line": number, "excerpt": _shown([raw]), "kind": "perf", "lost": events})
        reading.gaps.append(Gap(member, number, f"perf lost {events} {'events' if found[1] else 'chunks'}"))
    elif found := TRACE_ONLY.match(raw):
        if made := reading.sum_of((b"", b"timer:timer_start", found["function"]), number, raw):
            made.add(1, None, None, None)
    elif raw.startswith((b"#", b"[ perf record")):
        line = text(raw).rstrip("\r")
        if meta := META.match(line):
            reading.meta[meta[1]] = meta[2]
        read_record(number, line, reading.capture.command, reading.records)
    elif (untimed := UNTIMED.match(raw)) and not reading.timed:
        _add(reading, untimed, [raw])
    elif len(raw.strip()) <= 15 and b"PERF_RECORD_" not in raw:
        reading.fragment = raw.removesuffix(b"\r")
    elif re.search(rb"[ \t]\d+\.\d{6,9}:[ \t]", raw) and b"PERF_RECORD_" not in raw:
        reading.damaged += 1
        if reading.damaged <= MAX_DAMAGE:
            reading.gaps.append(Gap(member, number, f"a damaged event: {text(raw).strip()[:80]}"))


def _add(reading: Reading, found: re.Match[bytes], lines: list[bytes]) -> None:
    """Count one event and get ready for its frames."""
    _flush(reading)
    groups = found.groupdict()
    key = (found["head"], found["event"], groups.get("function") or b"")
    reading.start = reading.number - len(lines) + 1
    made = reading.sum_of(key, reading.start, b"\n".join(lines))
    reading.event, reading.lines = key[:2], lines
    if made is None:
        reading.beyond += 1
        return
    time = groups.get("time")
    reading.timed = reading.timed or time is not None
    made.add(1, time, time, integer(found["period"]) if found["period"] else None)


def _flush(reading: Reading) -> None:
    """Count the stack that has been read, if the last event had one."""
    frames = tuple(frame for frame in reading.frames if frame)
    if reading.event and frames:
        key = (*reading.event, frames)
        made = reading.chains.get(key)
        if made is None and len(reading.chains) < MAX_GROUPS:
            made = reading.chains[key] = Sum(reading.start, _shown(reading.lines))
        if made:
            made.events += 1
        else:
            reading.beyond += 1
    reading.event, reading.lines, reading.frames = None, [], []


def _shown(lines: list[bytes]) -> str:
    """Return an excerpt of raw lines."""
    return excerpt(line.rstrip("\r") for line in text(b"\n".join(lines)).split("\n"))
