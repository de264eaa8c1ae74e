"""Kernel logs that are not one message a line, or whose lines lean on the ones before: read message by message.

    {"_TRANSPORT":"kernel","MESSAGE":"INFO: …","__REALTIME_TIMESTAMP":"1502691124856449",…}      journalctl -o json
    [Nov21 00:42] hpet0: 3 comparators, 64-bit 100.000000 MHz counter                             dmesg -e, -H
    [  +0.009099] clocksource: Switched to clocksource kvm-clock

Also journalctl's json-pretty, json-sse, export and verbose, `dmesg -J`, `dmesg --color`, netconsole's fragments and
pstore, whose parts are numbered backwards. Formats: systemd's docs/JOURNAL_EXPORT_FORMATS.md, dmesg(1),
Documentation/networking/netconsole.rst, fs/pstore/platform.c.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator

from parsers.kernel_log import prefix, stamps
from parsers.kernel_log.message import Message
from parsers.shapes import Row

Lines = Iterable[tuple[int, str]]
Reading = Callable[[Lines], Iterator[Message]]

FIELD = re.compile(r'\s*"(\w+)" ?: *(.*?),?\s*$')
VERBOSE = re.compile(r"[A-Z][a-z]{2} (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\.(\d+) (\S+) \[s=[0-9a-f]+;")
MINUTE = re.compile(r"\[([A-Z][a-z]{2}) ?(\d{1,2}) (\d\d:\d\d)\] ?")
RELATIVE = re.compile(r"\[ *\+(\d{1,9})\.(\d{1,9})\] ?")
FRAGMENT = re.compile(r",ncfrag=(\d{1,6})/(\d{1,6})")
PART = re.compile(r"(?:Oops|Panic|Emergency|Unknown|Reboot|Halt|Poweroff|Shutdown)#\d+ Part(\d{1,6})$")
PSTORE_LINES = 100_000
"""More lines than any pstore holds (firmware gives it kilobytes): beyond them parts stay in the file's order."""


def reading(head: str) -> Reading | None:
    """Return how to read a log that begins so, None for one whose lines stand alone."""
    lines = [line for line in head.split("\n")[:400] if line.strip()]
    first = lines[0] if lines else ""
    if first.startswith("data: {") or (first.startswith("{") and len(first.rstrip()) > 1):
        return json_lines if '"MESSAGE"' in head or '"_TRANSPORT"' in head else None
    if first.startswith("{"):
        return json_fields if '"dmesg"' in head or '"MESSAGE"' in head else None
    if first.startswith(("__CURSOR=", "__REALTIME_TIMESTAMP=")):
        return export
    if VERBOSE.match(first):
        return verbose
    if any(PART.match(line.rstrip()) for line in lines):
        return pstore
    if any(",ncfrag=" in line for line in lines):
        return fragments
    if any(MINUTE.match(_undecoded(line)) or RELATIVE.match(_undecoded(line)) for line in lines):
        return relative
    return coloured if first.startswith("\x1b[") and head.count("\x1b[") > 2 * len(lines) else None


def _journal(fields: Row, number: int, raw: str) -> Iterator[Message]:
    """Yield the message of one journal entry, nothing for one of another service."""
    text, ident = _text(fields.get("MESSAGE")), str(fields.get("SYSLOG_IDENTIFIER", ""))
    kernel = fields.get("_TRANSPORT", "kernel" if ident == "kernel" else "") == "kernel"
    if text is None or not (kernel or (ident == "systemd-journald" and prefix.JOURNALD_LOSS.match(text))):
        return
    at = _microseconds(fields.get("_SOURCE_REALTIME_TIMESTAMP") or fields.get("__REALTIME_TIMESTAMP"))
    uptime = _microseconds(fields.get("_SOURCE_MONOTONIC_TIMESTAMP") or fields.get("__MONOTONIC_TIMESTAMP"))
    host = str(fields.get("_HOSTNAME", ""))
    for line in text.split("\n"):
        yield Message(number, line, raw, None if uptime is None else uptime / 1e9, at, host)


def _microseconds(value: object) -> int | None:
    """Return a stamp in microseconds as nanoseconds."""
    text = str(value)
    return int(text) * 1000 if text.isascii() and text.isdigit() and len(text) < 18 else None


def _text(value: object) -> str | None:
    """Return a MESSAGE: a string, or the list of its bytes where it holds what JSON or a terminal cannot."""
    if isinstance(value, list):
        numbers = [number for number in value if isinstance(number, int) and 0 <= number < 256]
        return prefix.clean(bytes(numbers).decode("utf-8", "backslashreplace"))
    return prefix.clean(value) if isinstance(value, str) else None


def json_lines(lines: Lines) -> Iterator[Message]:
    """Read `journalctl -o json` and `json-sse`: one object a line."""
    for number, raw in lines:
        try:
            fields = json.loads(raw.removeprefix("data: "))
        except (ValueError, RecursionError):
            continue
        if isinstance(fields, dict):
            yield from _journal(fields, number, raw)


def json_fields(lines: Lines) -> Iterator[Message]:
    """Read `journalctl -o json-pretty` and `dmesg -J`: one field a line."""
    fields: Row = {}
    place: tuple[int, str] | None = None
    for number, raw in lines:
        if field := FIELD.match(raw):
            try:
                fields[field[1]] = json.loads(field[2])
            except (ValueError, RecursionError):
                continue
            if field[1] in ("MESSAGE", "msg"):
                place = number, raw
        elif raw.lstrip().startswith("}"):
            if place:
                yield from _ring(fields, *place) if "msg" in fields else _journal(fields, *place)
            fields, place = {}, None


def _ring(fields: Row, number: int, raw: str) -> Iterator[Message]:
    """Yield the message of one record of `dmesg -J`; an old one appends the rest of the buffer to each."""
    uptime, caller = fields.get("time"), fields.get("caller", "")
    seconds = float(uptime) if isinstance(uptime, int | float) else None
    for place, line in enumerate((_text(fields["msg"]) or "").split("\n")):
        if place and prefix.LEVEL.match(line):
            return
        yield Message(number, line, raw, seconds, None, "", caller if isinstance(caller, str) else "")


def export(lines: Lines) -> Iterator[Message]:
    """Read `journalctl -o export`: KEY=value lines, an empty line after each entry."""
    fields: Row = {}
    place = (0, "")
    binary = ""
    for number, raw in lines:
        if binary:
            # A value that is not plain text follows its name's line, after its length in 8 bytes.
            fields[binary] = raw[8:] if "\0" in raw[:8] else raw
            place, binary = ((number, raw) if binary == "MESSAGE" else place), ""
        elif not raw:
            yield from _journal(fields, *place)
            fields = {}
        else:
            name, equals, value = raw.partition("=")
            if equals:
                fields[name] = value
                place = (number, raw) if name == "MESSAGE" else place
            elif re.fullmatch(r"[A-Z0-9_]{1,64}", name):
                binary = name
    yield from _journal(fields, *place)


def verbose(lines: Lines) -> Iterator[Message]:
    """Read `journalctl -o verbose`: a line with the time, then the fields, indented."""
    fields: Row = {}
    place = (0, "")
    for number, raw in lines:
        if found := VERBOSE.match(raw):
            yield from _journal(fields, *place)
            at = stamps.iso(found[1], found[2], found[3], found[4])
            fields = {} if at is None else {"__REALTIME_TIMESTAMP": str(at // 1000)}
        elif raw.startswith("    "):
            name, equals, value = raw[4:].partition("=")
            if equals and name.isupper():
                fields.setdefault(name, value)
                place = (number, raw) if name == "MESSAGE" else place
    yield from _journal(fields, *place)


def _undecoded(line: str) -> str:
    """Return a line of `dmesg -x` without facility and level, and without colours."""
    line = prefix.clean(line)
    found = prefix.DECODED.match(line)
    return line[found.end() :] if found else line


def relative(lines: Lines) -> Iterator[Message]:
    """Read `dmesg -e` and `-H`: a minute without year now and then, between them what passed since the line before.

    The minute's seconds are not printed, so that a time is right to a minute only.
    """
    at: int | None = None
    for number, raw in lines:
        line = _undecoded(raw)
        if found := MINUTE.match(line):
            at = stamps.yearless(found[1], found[2], found[3] + ":00")
        elif found := RELATIVE.match(line):
            passed = int(found[1]) * stamps.SECOND + stamps.fraction(found[2])
            at = None if at is None else at + passed
        else:
            continue
        inner = prefix.printk(line[found.end() :])
        yield Message(number, inner.text, raw, inner.uptime_s, at, "", inner.caller)


def fragments(lines: Lines) -> Iterator[Message]:
    """Read extended netconsole, joining what was sent in pieces (`ncfrag=<offset>/<length>`)."""
    begun: Message | None = None
    for number, raw in lines:
        message = prefix.message(number, raw)
        if message is None:
            continue
        piece = FRAGMENT.search(raw[: raw.find(";") + 1])
        if piece and begun and piece[1] != "0":
            begun = begun._replace(text=begun.text + message.text)
            continue
        if begun:
            yield begun
        begun = message if piece else None
        if not piece:
            yield message
    if begun:
        yield begun


def pstore(lines: Lines) -> Iterator[Message]:
    """Read a dump from pstore in the order it was logged: by its stamps, else the highest part first."""
    parts: list[tuple[int, list[Message]]] = []
    kept = 0
    for number, raw in lines:
        if found := PART.match(raw.rstrip()):
            parts.append((int(found[1]), []))
        elif message := prefix.message(number, raw, bare=bool(parts)):
            parts = parts or [(0, [])]
            parts[-1][1].append(message)
            kept += 1
        if kept >= PSTORE_LINES:
            for _, messages in parts:
                yield from messages
            parts, kept = [], 0
    for _, messages in sorted(parts, key=_when):
        yield from messages


def _when(part: tuple[int, list[Message]]) -> tuple[float, int]:
    """Return where a part stands in time: firmware numbers parts from the newest, but does not always keep to it."""
    return next((one.uptime_s for one in part[1] if one.uptime_s is not None), 0.0), -part[0]


def coloured(lines: Lines) -> Iterator[Message]:
    """Read `dmesg --color`, whose colour codes stand inside the messages."""
    for number, raw in lines:
        if message := prefix.message(number, raw):
            yield message
