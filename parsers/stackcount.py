"""bcc's stackcount: which stacks led to a function, and how often.

    $ sudo /usr/share/bcc/tools/stackcount -i 10 tcp_push_one
    Tracing 1 functions for "tcp_push_one"... Hit Ctrl-C to end.

      tcp_push_one
      inet_sendmsg
      sock_sendmsg
        172

Table: `stack`. Format: bcc, tools/stackcount.py, 2016 to now: frames leaf first behind two blanks; then, behind four,
`--` between kernel and user frames (-d), `comm [pid]` (-P) and the count. -v prints the address before the symbol, -s
the offset behind it, -T the time, -f one line `comm;root;…;leaf N` instead. Stacks stand in ascending order of counts
within an interval. A count without frames is a stack that bpf could not store: its events are lost, not shallow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from parsers.bcc import CLOCK, NOTICES, TRACING, lost, pattern_of
from parsers.command import Stage, command_of, stage_of
from parsers.shapes import INTERRUPT_ECHO, Capture, Column, Gap, Parsed, Row, Table, excerpt, integer

TABLES = {
    "stack": Table(
        "one counted stack",
        {
            "tool": Column("str", "stackcount, or `perf script`"),
            "traced": Column("str", "the traced function, tracepoint or event; with a wildcard the stack's leaf"),
            "comm": Column("str", "the process's name, where printed"),
            "pid": Column("Int64", "its process id, where printed"),
            "interval": Column("Int64", "number of the interval in the capture, from 0"),
            "interval_s": Column("Float64", "length of an interval by -i, else of the run by -D; missing if neither"),
            "clock": Column("str", "HH:MM:SS printed before the interval, local time of the host"),
            "frames": Column("object", "tuple of symbol names, leaf first, without offsets and addresses"),
            "events": Column("Int64", "how often this stack was seen: calls or samples, never a period"),
        },
    )
}
CAPTURES = dict.fromkeys(TABLES, ("counted kernel stacks", "stackcount -i 10 FUNCTION"))

FRAME = re.compile(r"^[ \t]+(?P<frame>\S.*?)[ \t]*$")
COUNT = re.compile(r"^[ \t]+(?P<events>\d+)[ \t]*$")
DELIMITER = re.compile(r"^[ \t]+--[ \t]*$")
COMM = re.compile(r"^[ \t]+(?P<comm>\S.*?|) ?\[(?P<pid>\d+)\][ \t]*$")
FOLDED = re.compile(r"^(?P<comm>[^;\n]*);(?P<frames>\S.*) (?P<events>\d+)[ \t]*$")
ADDRESS = re.compile(r"^(?:0x)?[0-9a-f]{6,16}[ \t]+(?=\S)")
LONG_ADDRESS = re.compile(r"^(?:0x)?[0-9a-f]{12,16}[ \t]+(?=\S)")
OFFSET = re.compile(r"\+0x[0-9a-f]+(?=$| \[)")
# 2016 to 2017 builds print `sym0x1f`, without the plus.
BARE_OFFSET = re.compile(r"0x[0-9a-f]+$")

BEGINS = re.compile(
    rb"^(?:Tracing \d+ functions for [^\n]*\n(?:[ \t\r]*\n|\^C\r?\n|\d\d:\d\d:\d\d[ \t\r]*\n){0,4}"
    rb"(?![^\n]*: count[ \t]+distribution)(?=[ \t]+\S| *;)"
    rb"|(?:  [A-Za-z_][\w.]*\r?\n){3,200}    \d+\r?$)",
    re.MULTILINE,
)
_WHOLE_STACK = re.compile(
    r"^(?:[ \t]++(?!\d+[ \t\r]*$)\S[^\n]*\n){1,200}[ \t]+\d+[ \t\r]*$",
    re.MULTILINE,
)
_TRACED = re.compile(r"^Tracing \d+ functions for ", re.MULTILINE)


def sniff(head: str) -> bool | None:
    """Return whether a head holds stackcount's command and its first line, or that line and a stack.

    The stacks of profile and offcputime are deeper indented and have a `-   comm (pid)` line; funccount and
    funclatency begin with the same line but print columns.
    """
    command = command_of(head)
    if command and not stage_of(command, ("stackcount",)):
        return False
    if re.search(r"^FUNC[ \t]+COUNT|: count[ \t]+distribution|^[ \t]+-[ \t]+\S.* \(\d+\)", head, re.MULTILINE):
        return False
    if command:
        return bool(_TRACED.search(head) or _WHOLE_STACK.search(head)) or (None if head.count("\n") < 3 else False)
    if found := _TRACED.search(head):
        return bool(_WHOLE_STACK.search(head, found.end()))
    return bool(BEGINS.match(head.lstrip("\r\n").encode()))


@dataclass(slots=True)
class _Reading:
    """Where in the capture we are, and the stack that is being read."""

    capture: Capture
    stage: Stage | None
    parsed: Parsed
    traced: str | None
    interval: int = 0
    clock: str | None = None
    last_events: int = 0
    blanks: int = 0
    comm: str | None = None
    pid: int | None = None
    frames: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    first_line: int = 0
    symbols: dict[str, str] = field(default_factory=dict)

    def tick(self, clock: str | None) -> None:
        """Open the next interval, unless the capture has no stack yet."""
        if self.clock or self.last_events:
            self.interval += 1
        self.clock, self.last_events, self.blanks = clock, 0, 0

    def show(self, number: int, raw: str) -> None:
        """Note a line of the stack that is being read."""
        self.first_line = self.first_line or number
        self.shown.append(raw)
        self.blanks = 0

    def forget(self) -> None:
        """Begin the next stack."""
        self.comm, self.pid, self.first_line = None, None, 0
        self.frames, self.shown = [], []

    def symbol(self, frame: str) -> str:
        """Return a frame without address and offset."""
        if (known := self.symbols.get(frame)) is not None:
            return known
        addresses = ADDRESS if self.stage and self.stage.flag("v", "verbose") else LONG_ADDRESS
        symbol = OFFSET.sub("", addresses.sub("", frame))
        if self.stage and self.stage.flag("s", "offset"):
            symbol = BARE_OFFSET.sub("", symbol) or symbol
        self.symbols[frame] = symbol
        return symbol


def parse(capture: Capture) -> Parsed:
    """Return `stack` rows, and `log_loss` where bpf lost stacks; a cut last line and a cut stack become gaps.

    Without a clock, a new interval is told by two blank lines or by a count that falls: within an interval counts
    rise. Prose or a prompt ends the capture.
    """
    stage = stage_of(capture.command, ("stackcount",))
    operands = stage.operands("piDc") if stage else []
    reading = _Reading(capture, stage, Parsed({"stack": []}), operands[-1] if operands else None)
    folded = bool(stage and stage.flag("f", "folded"))
    for number, raw in capture.whole_lines():
        line = INTERRUPT_ECHO.sub("", raw)
        if _beside(reading, number, line):
            continue
        if not (_read_folded(reading, number, raw, line) if folded else _read_line(reading, number, raw, line)):
            if reading.last_events or reading.frames:
                break
            reading.forget()
    if reading.frames:
        what = "the capture ends before the count of this stack: not counted"
        reading.parsed.gaps.append(Gap(capture.member, reading.first_line, what))
    reading.parsed.gaps += capture.gaps()
    return reading.parsed


def _beside(reading: _Reading, number: int, line: str) -> bool:
    """Return whether a line is none of a stack's: blank, a time, the tool's own, a loss marker."""
    if not line.strip():
        reading.blanks += 1
    elif found := CLOCK.match(line):
        reading.tick(found[1])
    elif found := TRACING.match(line):
        if found["pattern"]:
            reading.traced = pattern_of(found["pattern"])
    elif loss := lost(reading.capture.member, number, line):
        reading.parsed.gaps.append(loss[0])
        reading.parsed.rows.setdefault("log_loss", []).append(loss[1])
    else:
        return bool(NOTICES.match(line))
    return True


def _read_line(reading: _Reading, number: int, raw: str, line: str) -> bool:
    """Read one line of a multi-line stack; False for a line that is none, such as prose."""
    if reading.blanks >= 2 and not reading.shown and not reading.clock and _timed(reading):
        reading.tick(None)
    if found := COUNT.match(line):
        reading.show(number, raw)
        _count(reading, number, integer(found["events"]))
    elif DELIMITER.match(line):
        reading.show(number, raw)
    elif found := COMM.match(line):
        reading.show(number, raw)
        reading.comm, reading.pid = found["comm"], integer(found["pid"])
    elif found := FRAME.match(line):
        reading.show(number, raw)
        reading.frames.append(reading.symbol(found["frame"]))
    else:
        return False
    return True


def _read_folded(reading: _Reading, number: int, raw: str, line: str) -> bool:
    """Read a line of -f: root first, `-` between the kernel's and the user's frames, comm first (empty without -P)."""
    found = FOLDED.match(line)
    if not found:
        return False
    reading.show(number, raw)
    reading.comm = found["comm"] or None
    frames = [frame for frame in found["frames"].split(";") if frame not in ("-", "")]
    reading.frames = [reading.symbol(frame) for frame in reversed(frames)]
    _count(reading, number, integer(found["events"]))
    return True


def _timed(reading: _Reading) -> bool:
    """Return whether the run can have several intervals."""
    return reading.stage is None or reading.stage.value("i", "interval") is not None


def _count(reading: _Reading, number: int, events: int) -> None:
    """End a stack with its count: a row, or a loss where the stack has no frames."""
    if events < reading.last_events and not reading.clock and _timed(reading):
        reading.tick(None)
    reading.last_events = max(events, 1)
    row: Row = {"line": reading.first_line, "excerpt": excerpt(reading.shown)}
    if reading.frames:
        stage = reading.stage
        length = (stage.number("i", "interval") or stage.number("D", "duration")) if stage else None
        row |= {"tool": "stackcount", "traced": _traced(reading), "comm": reading.comm, "pid": reading.pid}
        row |= {"interval": reading.interval, "interval_s": length, "clock": reading.clock}
        reading.parsed.rows["stack"].append(row | {"frames": tuple(reading.frames), "events": events})
    else:
        reading.parsed.rows.setdefault("log_loss", []).append(row | {"kind": "bcc", "lost": events})
        what = f"{events} events have no stack: bpf could not store it"
        reading.parsed.gaps.append(Gap(reading.capture.member, number, what))
    reading.forget()


def _traced(reading: _Reading) -> str | None:
    """Return the traced name of the stack: the pattern, or the leaf where the pattern stands for many."""
    many = reading.traced is None or re.search(r"[*?]", reading.traced)
    regex = reading.stage is not None and reading.stage.flag("r", "regexp")
    return reading.frames[0] if many or regex else reading.traced
