"""bcc's funccount: how often each function, tracepoint or probe was called, per interval.

    $ sudo /usr/share/bcc/tools/funccount -T -i 1 tcp_push_one
    Tracing 1 functions for "tcp_push_one"... Hit Ctrl-C to end.

    03:37:14
    FUNC                                    COUNT
    tcp_push_one                              496

Table: `func_count`. Format: bcc, tools/funccount.py: `%-36s %8s` since 2016, `ADDR FUNC COUNT` before (2015). A
function that was not called is not printed, so absent means 0; each block counts from zero. The other bcc parsers
take from here what all bcc tools share: the command line, the `Tracing …` line, the clock and the loss markers.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from parsers.shapes import INTERRUPT_ECHO, Capture, Column, Gap, Parsed, Row, Table, excerpt

TABLES = {
    "func_count": Table(
        "one counted name in one interval; a name that is absent was not called",
        {
            "tool": Column("str", "the tool that counted: funccount"),
            "traced": Column("str", "the pattern that was traced, as given"),
            "function": Column("str", "the counted function, tracepoint or probe"),
            "events": Column("Int64", "calls in this interval"),
            "interval": Column("Int64", "number of the interval in the capture, from 0"),
            "clock": Column("str", "HH:MM:SS printed before the interval, local time of the host"),
            "interval_s": Column("Float64", "length of an interval by -i, else of the run by -d; missing if neither"),
            "partial": Column("boolean", "the interval was cut short by Ctrl-C, so its rate is too low"),
        },
    )
}

_HEADER = r"(?:ADDR[ \t]+)?FUNC[ \t]+COUNT[ \t]*"
HEADER = re.compile(rf"^{_HEADER}$")
BEGINS = re.compile(
    rb"^(?:Tracing (?:\d+ functions for \"|\.\.\.)[^\n]*\n(?:[ \t\r]*\n|\^C\r?\n)*)?"
    rb"(?:\d\d:\d\d:\d\d[ \t\r]*\n)?(?:\^C)?" + _HEADER.encode() + rb"\r?$",
    re.MULTILINE,
)

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

ROW = re.compile(r"^(?P<name>\S+|\S.{0,400}?(?=[ \t]{2,})|\S.{0,300}[(<:].{0,100}?)[ \t]+(?P<events>\d+)[ \t]*$")
"""A name may hold blanks (C++): then it is told from prose by its padding or its punctuation."""
ADDRESS = re.compile(r"^[0-9a-f]{8,16}[ \t]+(?=\S)")


@dataclass(frozen=True, slots=True)
class Stage:
    """One command of a pipeline."""

    tool: str
    """Its name without path, `.py`, or Debian's `-bpfcc`."""
    words: list[str]
    """Its arguments."""

    def flag(self, letter: str, name: str = "") -> bool:
        """Return whether an option without value is given, alone or among others (`-uTi`)."""
        return any(word == f"--{name}" or re.fullmatch(rf"-[A-Za-z]*{letter}[A-Za-z]*", word) for word in self.words)

    def value(self, letter: str, name: str = "") -> str | None:
        """Return an option's value: `-i 1`, `-i1`, `-uTi 1`, `--interval 1` or `--interval=1`."""
        for word, after in zip(self.words, [*self.words[1:], ""], strict=True):
            if found := re.fullmatch(rf"-[A-Za-z]*?{letter}(\d.*)?|--{name or letter}(?:=(.*))?", word):
                return found[1] or found[2] or after or None
        return None

    def number(self, letter: str, name: str = "") -> float | None:
        """Return an option's value where it is a number."""
        value = self.value(letter, name)
        return float(value) if value and re.fullmatch(r"\d+(?:\.\d+)?", value) else None

    def operands(self, valued: str) -> list[str]:
        """Return the words that are neither options nor the value of an option whose letter is in `valued`."""
        before = ["", *self.words]
        return [
            word
            for previous, word in zip(before, self.words, strict=False)
            if not word.startswith("-") and not re.fullmatch(rf"-[A-Za-z]*[{valued}]|--[a-z-]+", previous)
        ]


_BEFORE_TOOL = {"sudo", "time", "nice", "ionice", "stdbuf", "timeout", "env", "taskset", "exec"}


def stages(command: str) -> list[Stage]:
    """Return the commands of a shell line, split at `|`, `&&` and `;` outside quotes; never raises."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # a quote was never closed: the line is cut
        words = command.split()
    pipeline: list[list[str]] = [[]]
    for word in words:
        if word and not word.strip("|&;"):
            pipeline.append([])
        else:
            pipeline[-1].append(word)
    return [_stage(each) for each in pipeline if each]


def _stage(words: list[str]) -> Stage:
    """Return a command without what only wraps it: `sudo -u x`, `VAR=1`, `timeout 10`, `python3`."""
    at, wrapped = 0, False
    while at < len(words) - 1:
        name = words[at].rsplit("/", 1)[-1]
        if name in _BEFORE_TOOL or re.fullmatch(r"python[\d.]*", name):
            wrapped = True
        elif not re.match(r"\w+=", name) and not (wrapped and re.match(r"-|\d+[smh]?$", name)):
            break
        at += 1
    name = words[at].rsplit("/", 1)[-1]
    return Stage(name.removesuffix(".py").removesuffix("-bpfcc"), words[at + 1 :])


def command_of(head: str) -> str:
    """Return the command in the `$ COMMAND` line a head may begin with, else an empty string."""
    return head.partition("\n")[0][2:].strip() if head.startswith("$ ") else ""


def stage_of(command: str, tools: Iterable[str]) -> Stage | None:
    """Return the first stage that runs one of the tools."""
    return next((stage for stage in stages(command) if stage.tool in tools), None)


def pattern_of(text: str) -> str:
    """Return a traced pattern without the `b'…'` that some Python 3 builds print around it."""
    found = re.fullmatch(r"b?'(.*)'", text)
    return found[1] if found else text


class WholeLines:
    """The lines of a capture that end in a newline: of a cut file, the last one may lack its last digits."""

    def __init__(self, capture: Capture) -> None:
        self.cut: tuple[int, str] | None = None
        """The last line when it has no newline; known once the others were read."""
        self._last = b""
        self._capture = replace(capture, chunks=self._watched(capture.chunks))

    def _watched(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._last = chunk[-1:] or self._last
            yield chunk

    def __iter__(self) -> Iterator[tuple[int, str]]:
        held: tuple[int, str] | None = None
        for each in self._capture.lines():
            if held is not None:
                yield held
            held = each
        if held is not None and self._last == b"\n":
            yield held
        elif held is not None and held[1].strip():
            self.cut = held

    def gaps(self) -> list[Gap]:
        """Return a gap for the cut last line, and those for lines longer than a line may be."""
        gaps = self._capture.gaps()
        if self.cut:
            gaps.append(Gap(self._capture.member, self.cut[0], "the capture ends inside this line: not counted"))
        return gaps


def lost(member: str, number: int, line: str) -> tuple[Gap, Row] | None:
    """Return the gap and the `log_loss` row of a loss marker, None for any other line."""
    found = LOSS.match(line)
    if not found:
        return None
    row: Row = {"line": number, "excerpt": excerpt([line]), "kind": "bcc"}
    if events := found[1] or found[2]:
        row["lost"] = int(events)
    return Gap(member, number, f"the tool lost events: {line.strip()}"), row


@dataclass(slots=True)
class _Block:
    """What stands under one header."""

    interval: int
    clock: str | None
    interrupted: bool
    rows: list[Row] = field(default_factory=list)


def sniff(head: str) -> bool | None:
    """Return whether a head holds funccount's header, or its command and the line it prints when attached."""
    if any(HEADER.match(INTERRUPT_ECHO.sub("", line).rstrip("\r")) for line in head.split("\n")):
        return True
    if not stage_of(command_of(head), ("funccount",)):
        return False
    return "\nTracing" in head or (None if head.count("\n") < 2 else False)


def parse(capture: Capture) -> Parsed:
    """Return `func_count` rows. A row without a count, a loss marker and a cut last line become gaps.

    `partial` is true only for an interval that Ctrl-C ended early: its block follows a `^C` of a run with -i, or its
    clock comes sooner than -i says. The first interval starts when the probes are attached, so it is whole.
    """
    stage = stage_of(capture.command, ("funccount",))
    operands = stage.operands("pidDcT") if stage else []
    traced = operands[-1] if operands else None
    interval_s = stage.number("i", "interval") or stage.number("d", "duration") if stage else None
    lines, blocks = WholeLines(capture), list[_Block]()
    parsed = Parsed({"func_count": []})
    for tracing in _read(capture.member, lines, blocks, parsed):
        traced = tracing
    timed = bool(stage and stage.number("i", "interval"))
    for before, block in zip([None, *blocks], blocks, strict=False):
        partial = timed and (block.interrupted or _early(before, block, interval_s or 0))
        for row in block.rows:
            own: Row = {"tool": "funccount", "traced": traced, "interval_s": interval_s, "partial": partial}
            parsed.rows["func_count"].append(row | own | {"interval": block.interval, "clock": block.clock})
    parsed.gaps += lines.gaps()
    return parsed


def _read(member: str, lines: WholeLines, blocks: list[_Block], parsed: Parsed) -> Iterator[str]:
    """Fill `blocks` until a line that cannot belong to a run of funccount; yield the traced pattern when told."""
    clock, interrupted, inside, width = None, False, False, 0
    for number, raw in lines:
        line = INTERRUPT_ECHO.sub("", raw)
        interrupted = interrupted or line != raw
        if found := CLOCK.match(line):
            clock, inside = found[1], False
        elif HEADER.match(line):
            blocks.append(_Block(len(blocks), clock, interrupted))
            clock, inside, width = None, True, len(line.rstrip())
        elif loss := lost(member, number, line):
            parsed.gaps.append(loss[0])
            parsed.rows.setdefault("log_loss", []).append(loss[1])
        elif (found := TRACING.match(line)) and not blocks:
            if found["pattern"]:
                yield pattern_of(found["pattern"])
        elif not line.strip() or NOTICES.match(line):
            inside = inside and bool(line.strip()) and not line.startswith("Detaching")
        elif (inside or len(line.rstrip()) == width) and (found := ROW.match(line)):
            row: Row = {"line": number, "excerpt": excerpt([raw]), "function": ADDRESS.sub("", found["name"])}
            blocks[-1].rows.append(row | {"events": int(found["events"])})
        elif inside and len(line.split()) <= 2:
            parsed.gaps.append(Gap(member, number, f"a row without a count: {line.strip()[:80]}"))
        elif blocks:
            return


def _early(before: _Block | None, block: _Block, interval_s: float) -> bool:
    """Return whether a block's clock follows the one before sooner than the interval, which clocks show to 1 s."""
    if not (before and before.clock and block.clock):
        return False
    try:
        start, end = (datetime.strptime(each, "%H:%M:%S") for each in (before.clock, block.clock))
    except ValueError:  # 99:99:99 in a damaged capture
        return False
    return (end - start).seconds < interval_s - 1
