"""From a member to its sections: a pasted transcript is cut at its prompts, a text where a capture begins.

A log or a dump that one parser claims as a whole is handed on as it streams in. A text with prompts, or with captures
between prose, is cut line by line: at each prompt, at each `==> file <==`, and where a line begins a capture of
another parser than the one that claims what came before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType

from analyzer import sniff
from parsers.kernel_log import scan
from parsers.newlines import newlines
from parsers.shapes import Capture

PIECE = 1 << 20
"""Longest piece handed on at once, so that a file of one endless line stays in bounded memory."""

TOOLS = frozenset(
    re.findall(
        r"\S+",
        """argdist biolatency bpftool bpftrace cat cpudist curl date df diff dmesg ethtool free funccount funclatency
        grep head hostname hostnamectl ifconfig iostat ip journalctl ls lscpu lsmod lspci mpstat netstat nstat numactl
        perf pidstat profile ps runqlat sar sort ss ssh stackcount strace sudo sysctl tail tcpdump timeout top trace
        uname uptime vmstat zcat zgrep""",
    )
)
"""After a bare `# ` only these (or a path) are taken for a command: perf headers, Markdown headings and shell
comments begin with `# ` too."""

PROMPT = re.compile(
    rb"(?:\[?(?P<user>[\w.-]+)@(?P<host>[\w.-]+)[^$#\n]{0,80}|\([\w.-]+\) ?|(?:ba|z)?sh-[\d.]+)?"
    rb"(?P<sign>[$#]) +(?P<command>[\w./\[(\"'~-].*)"
)
FILE_MARK = re.compile(rb"==> (\S.*) <==\r?\n?$")
BANNER_LINES = 2
"""A command whose capture nobody claims yet may print this many lines before it begins (`Tracing …`)."""
MAX_COMMAND = 4_000
"""Characters of a command that are kept; what is longer was not typed."""
FENCE = re.compile(rb"(?:```|~~~)")
TRACING = re.compile(rb"(?:Tracing|Sampling) \S.*(?:Ctrl-C|Hit )")
"""bcc's first line: whichever tool printed it, a capture begins here."""
IN_CHUNK = (b"\n$ ", b"\n[root@", b"\nroot@", b"\n==> ")
"""What may begin a prompt or a file mark: looked for in one pass in the bulk of a log that one parser claims."""

KERNEL_FILE = re.compile(r"(?:^|/)((?:proc|sys|etc)/\S+)$")
CLOCKSOURCE_FILE = re.compile(r"(?:^|/)((?:current|available)_clocksource)(?:\.txt)?$")
SOS_COMMAND = re.compile(
    r"(?:^|/)(dmesg|ethtool|ip|journalctl|lscpu|lspci|netstat|nstat|ss|sysctl|uname|hostname|date|uptime)"
    r"((?:_-{1,2}[A-Za-z0-9=-]+)*)(?:_(\S+?))?(?:\.txt)?$"
)


@dataclass(slots=True)
class Section:
    """One section of a member, ready to be parsed."""

    parser: ModuleType | None
    """None when no parser claims it."""
    capture: Capture
    from_prompt: bool
    """Its command was read from a prompt or a file mark in the text, not made from the member's name."""
    pieces: _Pieces

    def drain(self) -> tuple[int, int]:
        """Pass over what the parser left unread; return the section's bytes and newlines."""
        for _ in self.pieces:
            pass
        return self.pieces.bytes, self.pieces.newlines

    @property
    def whole(self) -> bool:
        """Whether the section is its whole member; ask after `drain`."""
        return self.capture.first_line == 1 and self.pieces.at_end


def cut(address: str, chunks: Iterable[bytes]) -> Iterator[Section]:
    """Yield the sections of a member in their order; each must be consumed before the next is asked for.

    What a parser leaves unread of its section is passed over. Sections without any text are not yielded.
    """
    stream = _Stream(chunks)
    command, host, from_prompt = command_of_name(address), "", False
    while not stream.ended():
        first_line = stream.line
        head, ended = _head(stream, command)
        if head.strip():
            parser = sniff.parser_for(command, head)
            pieces = _Pieces(head, stream, ended, parser)
            section = Section(parser, Capture(address, first_line, command, pieces, host), from_prompt, pieces)
            yield section
            section.drain()
        boundary = _next_command(stream)
        if boundary is not None or head.strip():
            command, host = boundary or ("", "")
            from_prompt = bool(command)


def command_of_name(address: str) -> str:
    """Return the command a member's name stands for, `ethtool -k eth0` for sos's `ethtool_-k_eth0`, else empty."""
    name = address.rpartition("!")[2]
    if file := CLOCKSOURCE_FILE.search(name):
        return f"cat /sys/devices/system/clocksource/clocksource0/{file[1]}"
    if file := KERNEL_FILE.search(name):
        return f"cat /{file[1]}"
    if command := SOS_COMMAND.search(name):
        tool, options, rest = command.groups()
        # sos joins words with `_`; in what follows the options `_` may stand for any other sign and stays.
        return " ".join([tool, *options.split("_")[1:], *([rest] if rest else [])])
    return ""


def prompt_of_line(line: bytes) -> tuple[str, str] | None:
    """Return (command, host) when the line is a prompt with a command, else None."""
    found = PROMPT.match(line)
    if not found:
        return None
    command = found["command"].decode("utf-8", "backslashreplace").strip()
    host = (found["host"] or b"").decode("utf-8", "backslashreplace")
    if found["sign"] == b"#" and not host:
        word = command.split()[0].rpartition("/")
        if not (word[1] or word[2] in TOOLS):
            return None
    return command, host


class _Stream:
    """A byte stream read by lines or by chunks, with its current line number."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._pending, self._at = b"", 0
        """What was fetched, and how much of it was taken: to cut a MiB anew for each line would cost hours."""
        self._marks: list[int] | None = None
        """Where the marks in what is pending begin, the last first; None until somebody asks."""
        self.line = 1
        self.at_line_start = True

    def _fetched(self, pending: bytes) -> None:
        self._pending, self._at, self._marks = pending, 0, None

    def ended(self) -> bool:
        """Return whether nothing is left, fetching the next chunk when needed."""
        while self._at >= len(self._pending):
            chunk = next(self._chunks, None)
            if chunk is None:
                return True
            self._fetched(chunk)
        return False

    def peek_line(self) -> bytes:
        """Return the next line with its newline, or the first PIECE bytes of a longer one; empty at the end."""
        if self.ended():
            return b""
        end = self._pending.find(b"\n", self._at)
        while end < 0 and len(self._pending) - self._at < PIECE:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            searched = len(self._pending) - self._at
            self._fetched(self._pending[self._at :] + chunk)
            end = self._pending.find(b"\n", searched)
        end = min(end + 1 if end >= 0 else len(self._pending), self._at + PIECE)
        return self._pending[self._at : end]

    def take(self, size: int) -> bytes:
        """Return the next `size` pending bytes and move on."""
        taken = self._pending[self._at : self._at + size]
        self._at += len(taken)
        self.line += newlines(taken, 0, len(taken))
        self.at_line_start = taken.endswith(b"\n")
        return taken

    def take_bulk(self) -> bytes:
        """Return whole pending lines up to the next possible boundary, at least one; call after `peek_line`."""
        if self._marks is None:
            self._marks = scan.finder(IN_CHUNK)(self._pending)[::-1]
        while self._marks and self._marks[-1] < self._at:
            self._marks.pop()
        if self._marks:
            return self.take(self._marks[-1] + 1 - self._at)
        # A line whose end has not arrived yet waits for the next chunk: a mark may straddle the two.
        return self.take((self._pending.rfind(b"\n", self._at) + 1 or len(self._pending)) - self._at)


def _is_boundary(line: bytes) -> bool:
    """Return whether a line is a prompt, a file mark or a Markdown fence."""
    if line[:1] in b"$#[(`~=bsz" or b"@" in line[:80]:
        return bool(FILE_MARK.match(line) or FENCE.match(line) or prompt_of_line(line))
    return False


def _head(stream: _Stream, command: str) -> tuple[bytes, bool]:
    """Take a section's first lines, up to HEAD_BYTES; return them and whether the section ends there.

    The section ends before a prompt, a file mark or a fence, and before a line that begins a capture of another
    parser than the one that claims what was taken so far; it does not end after a command's banner.
    """
    head = b""
    begun: ModuleType | None = None
    while len(head) < sniff.HEAD_BYTES and (line := stream.peek_line()):
        if stream.at_line_start:
            if _is_boundary(line):
                return head, True
            if TRACING.match(line) and head.strip() and not (command and head.count(b"\n") <= BANNER_LINES):
                return head, True
            starts = sniff.begun_by(line)
            if starts is not None and starts is not begun:
                if head.strip():
                    owner = sniff.parser_for(command, head)
                    told = bool(command or TRACING.match(head))
                    banner = told and head.count(b"\n") <= BANNER_LINES and b"\n\n" not in head
                    if owner is not starts and (owner is not None or not banner):
                        return head, True
                begun = starts
        head += stream.take(len(line))
    return head, stream.ended()


class _Pieces:
    """A section's bytes, once: its head, then in bulk until a prompt or another parser's beginning follows."""

    def __init__(self, head: bytes, stream: _Stream, ended: bool, parser: ModuleType | None) -> None:
        self._head, self._stream, self._ended, self._parser = head, stream, ended, parser
        self._first_line = stream.line - head.count(b"\n")
        self.bytes = 0

    def __iter__(self) -> _Pieces:
        return self

    def __next__(self) -> bytes:
        piece = self._head or self._following()
        self._head = b""
        self.bytes += len(piece)
        return piece

    @property
    def newlines(self) -> int:
        """Newlines of what was handed on so far."""
        return self._stream.line - self._first_line

    @property
    def at_end(self) -> bool:
        """Whether the member ends where the section does."""
        return self._stream.ended()

    def _following(self) -> bytes:
        """Return the next piece; raises StopIteration where the section ends."""
        if self._ended or not (line := self._stream.peek_line()):
            raise StopIteration
        if self._stream.at_line_start and (
            _is_boundary(line) or (self._parser is None and sniff.begun_by(line) is not None)
        ):
            self._ended = True
            raise StopIteration
        return self._stream.take(len(line)) if self._parser is None else self._stream.take_bulk()


def _next_command(stream: _Stream) -> tuple[str, str] | None:
    """Take the boundary line the stream stands at; return the command and host it names, None where none stands."""
    line = stream.peek_line()
    if not line or not stream.at_line_start or not _is_boundary(line):
        return None
    stream.take(len(line))
    if mark := FILE_MARK.match(line):
        return f"cat {mark[1].decode('utf-8', 'backslashreplace')}", ""
    prompt = prompt_of_line(line)
    if prompt is None:
        return "", ""
    command, host = prompt
    while command.endswith("\\") and len(command) < MAX_COMMAND and (line := stream.peek_line()):
        command = command[:-1] + " " + stream.take(len(line)).decode("utf-8", "backslashreplace").strip()
    return command[:MAX_COMMAND], host
