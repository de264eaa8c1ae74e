"""Line prefixes: what stands before a kernel message, taken apart.

    [  103.985562][   C16] INFO: …                  printk, with its caller since 5.1 (CONFIG_PRINTK_CALLER)
    Aug 14 06:12:04 db42 kernel: [    3.856449] …   syslog and `journalctl`, with or without printk's own stamp

Two layers: what carried the message (syslog, journal, netconsole, logcat, a mail's `> `), then what printk put
there itself (level, time, caller, a loss marker glued to the front). Formats: `printk_time` and `print_prefix` in
kernel/printk/printk.c, RFC 3164, RFC 5424, `dmesg(1)`, `journalctl(1)` `-o`, Documentation/ABI/testing/dev-kmsg.
A line of another service is no message; journald's own account of lost messages is one.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from parsers.kernel_log import stamps
from parsers.kernel_log.message import Message

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][AB0]|\x1b[=>78]")
QUOTES = re.compile(r"(?:(?:>|&gt;)[ \t]?)+")
CLOCK = r"(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?"
HOST = r"([\w.:%@-]+)"
IDENT = r"([^\s:\[\]]{1,64}(?: [^\s:\[\]]{1,32})?)(?:\[(\d+)\])?:"
"""A syslog tag with its optional pid; some daemons have one blank in it."""

SYSLOG = re.compile(rf"(?:<\d{{1,3}}>)?([A-Z][a-z]{{2}}) {{1,2}}(\d{{1,2}}) {CLOCK} {HOST} (?:{IDENT})?")
COMMONEST = re.compile(
    rf"([A-Z][a-z]{{2}}) {{1,2}}(\d{{1,2}}) (\d\d:\d\d:\d\d) {HOST} kernel: "
    r"\[ *(\d{1,9}\.\d{6})\] ([^\x00\x1b&#\r\[*]+)"
)
"""A kernel message in rsyslog's classic form, with nothing in it that asks for a second look."""
SYSLOG_YEAR = re.compile(rf"(?:<\d{{1,3}}>)?([A-Z][a-z]{{2}}) {{1,2}}(\d{{1,2}}) (\d{{4}}) {CLOCK} {HOST} {IDENT}")
ISO_STAMP = re.compile(
    r"(?:<\d{1,3}>(?:1 )?)?(?P<day>[A-Z][a-z]{2} )?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:([.,])(\d{1,9}))?"
    r" ?((?(day)[A-Z]{3,4}(?= )|Z)|[+-]\d\d:?\d\d)?(?: |$)"
)
UNIX_STAMP = re.compile(r"(\d{9,10})\.(\d{3,9}) ")
CARRIED = re.compile(rf"{HOST} (?:\[?[a-z0-9]+\.[a-z]+\]? )?{IDENT}")
RFC5424_REST = re.compile(r'(\S+) (\S+) (\S+) (\S+) (?:-|(?:\[(?:[^\]"]|"(?:\\.|[^"\\])*")*\])+) ?')
RECEIVER = re.compile(r"(?:(?:std(?:out|err) [FP]|[\d.]+:\d+|[\w.-]+) )?(?=(?:<\d+>)?\[ *\d+\.\d+\])")
"""Between a receiver's stamp and printk's own: netconsole's sender, a container log's stream, or nothing."""

LOGCAT = re.compile(r"(\d\d)-(\d\d) (\d\d:\d\d:\d\d)\.(\d+) +\d+ +\d+ [VDIWEF] ([^:]+?) *: ")
KMSG = re.compile(r"(?:\d+\.\d[\w.+~-]*,)?(\d{1,3}),(\d{1,20}),(\d{1,17}),([c+-])((?:,[\w-]+=[^,;]*)*);")
KMSG_CALLER = re.compile(r",caller=([TC]\d+)")
KMSG_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
CTIME = re.compile(r"\[([A-Z][a-z]{2}) ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})(?: <[^>]*>)?\] ?")
DECODED = re.compile(
    r"(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d) *:"
    r"(?:emerg|alert|crit|err|warn|notice|info|debug) *: "
)
LEVEL = re.compile(r"<\d{1,3}>")
PRINTK = re.compile(r"\[ *(\d{1,11}\.\d{3,9})(?: *<[^>]{0,20}>| {2,})?\] ?")
CALLER = re.compile(r"\[ *([TC]\d{1,9})\] ?")
ANDROID = re.compile(r"\[\d+: {1,}[^\]]{1,24}: *\d+\] ")
MONOTONIC = re.compile(rf"{HOST} (kernel|[^\s:\[\]]{{1,64}}\[\d+\]|systemd[\w-]*): ")
DROPPED = re.compile(r"\*\* \d+ printk messages dropped \*\* ?")
REPEATED = re.compile(r"message repeated (\d{1,9}) times: \[ ?(.*)\]$")
OCTAL = re.compile(r"#(0[0-3][0-7])")
TORN = re.compile(r"(?:.{0,80}login: |\[ {0,2}(?:OK|FAILED|DEPEND) {0,2}\].{0,160}?|kernel: ?)(?=\[ *\d+\.\d{6}\])")
"""What a serial console writes before a message on the same line: a login prompt, a line of init, bare `kernel:`."""

INDENTED = re.compile(r"[ \t]+(?:<\d{1,3}>)?\[ *\d{1,11}\.\d{6}\]")
"""A log pasted into a ticket or a page is often indented as a whole."""

JOURNALD_LOSS = re.compile(r"Missed \d+ kernel messages|Suppressed \d+ messages from ")
LAST_REPEATED = re.compile(r"last message repeated (\d{1,9}) times")


class Carried(NamedTuple):
    """A line without what carried it."""

    rest: str
    """printk's own prefix and the message."""
    ident: str = ""
    """The syslog tag, `kernel` for kernel messages; empty where the form has none."""
    host: str = ""
    at: int | None = None
    uptime_s: float | None = None
    caller: str = ""
    kernel_form: bool = False
    """The form is one that only kernel messages are written in (`dmesg -T`, /dev/kmsg)."""


class Stamped(NamedTuple):
    """A message without printk's own prefix."""

    text: str
    uptime_s: float | None
    caller: str
    at: int | None
    marked: bool
    """Whether printk's prefix (a stamp, or a caller) was there at all."""


def clean(raw: str) -> str:
    """Return a line without terminal colours, NULs, a mail's quote signs and HTML's escapes."""
    if "\x1b" in raw:
        raw = ANSI.sub("", raw)
    if "\0" in raw:
        raw = raw.replace("\0", "")
    if raw[:1] == ">" or raw[:4] == "&gt;":
        raw = QUOTES.sub("", raw, count=1)
    if "&" in raw and ("&lt;" in raw or "&gt;" in raw):
        raw = html.unescape(raw)
    return raw.rstrip("\r")


def message(number: int, raw: str, *, bare: bool = False) -> Message | None:
    """Return the kernel message of a line, None for a line of another service or of none.

    With `bare`, a line without any prefix is a message too: the log of `journalctl -o cat`, or printk without time.
    """
    return commonest(number, raw) or _message(number, raw, bare)


def commonest(number: int, raw: str) -> Message | None:
    """Return the message of a line in the form that large logs have, ×3 as fast; None for any other line."""
    if found := COMMONEST.fullmatch(raw):
        month, day, clock, host, uptime, text = found.groups()
        return Message(number, text, raw, float(uptime), stamps.yearless(month, day, clock), host)
    return None


def _message(number: int, raw: str, bare: bool) -> Message | None:
    """Return the message of a line of any form."""
    carried = carrier(clean(raw))
    if carried.ident and carried.ident != "kernel":
        journald = carried.ident.startswith("systemd-journal") and JOURNALD_LOSS.match(carried.rest)
        if not journald and not LAST_REPEATED.match(carried.rest):
            return None
        return Message(number, carried.rest, raw, None, carried.at, carried.host)
    rest = carried.rest
    if carried.ident and (repeat := REPEATED.match(rest)):
        rest = repeat[2]
    stamped = printk(rest)
    if not (carried.ident or carried.kernel_form or stamped.marked or bare):
        return None
    text, host = stamped.text, carried.host
    if not carried.ident and stamped.uptime_s is not None and (mono := MONOTONIC.match(text)):
        # `journalctl -o short-monotonic` looks like printk, with a host and a tag after the stamp.
        text, host = text[mono.end() :], mono[1]
        if mono[2] != "kernel" and not (mono[2].startswith("systemd-journal") and JOURNALD_LOSS.match(text)):
            return None
    uptime = stamped.uptime_s if stamped.uptime_s is not None else carried.uptime_s
    at = carried.at if carried.at is not None else stamped.at
    return Message(number, text, raw, uptime, at, host, stamped.caller or carried.caller)


def repeats(raw: str) -> int:
    """Return how many further times a line says its message was seen (rsyslog, `$RepeatedMsgReduction`)."""
    found = re.search(r"message repeated (\d{1,9}) times: \[", raw)
    return max(int(found[1]) - 1, 0) if found else 0


def last_repeated(text: str) -> int:
    """Return how often syslogd says the message before was repeated, 0 for any other text."""
    found = LAST_REPEATED.match(text)
    return int(found[1]) if found else 0


def carrier(line: str) -> Carried:
    """Return a cleaned line without what carried it."""
    first = line[:1]
    if first in " \t" and INDENTED.match(line):
        line = line.lstrip(" \t")
        first = line[:1]
    if first.isdigit():
        return _digits(line)
    if first == "<":
        return _iso(line) or _syslog(line) or Carried(line)
    if first == "[":
        if found := CTIME.match(line):
            at = stamps.named(found[5], found[2], found[3], found[4])
            return Carried(line[found.end() :], at=at, kernel_form=True)
        torn = TORN.match(line)
        return Carried(line[torn.end() :] if torn else line)
    if first.isalpha():
        if found := DECODED.match(line):
            inner = carrier(line[found.end() :])
            return inner._replace(kernel_form=True)
        if line.startswith("kernel: "):
            return Carried(line[8:], "kernel")
        carried = _syslog(line) or _iso(line)
        if carried:
            return carried
        torn = TORN.match(line)
        return Carried(line[torn.end() :] if torn else line)
    return Carried(line)


def _syslog(line: str) -> Carried | None:
    """Take off an RFC 3164 header, in the classic form or with a year."""
    if found := SYSLOG.match(line):
        month, day, clock, digits, host, ident, _ = found.groups()
        rest = line[found.end() :]
        if ident is None and not LAST_REPEATED.match(rest):
            return None
        at = stamps.yearless(month, day, clock, digits)
    elif found := SYSLOG_YEAR.match(line):
        month, day, year, clock, digits, host, ident, _ = found.groups()
        rest, at = line[found.end() :], stamps.named(year, month, day, clock, digits)
    else:
        return None
    return Carried(_unescaped(rest), ident or "syslogd", host, at)


def _unescaped(rest: str) -> str:
    """Drop the blank after the tag, and undo rsyslog's `#011` for a tab and its like."""
    rest = rest.removeprefix(" ")
    return OCTAL.sub(lambda found: chr(int(found[1], 8)), rest) if "#0" in rest else rest


def _digits(line: str) -> Carried:
    """Take off a prefix that begins with a digit: a date, seconds since the epoch, a record of /dev/kmsg."""
    if found := KMSG.match(line):
        caller = KMSG_CALLER.search(found[5])
        text = KMSG_ESCAPE.sub(lambda hit: chr(int(hit[1], 16)), line[found.end() :])
        uptime = int(found[3]) / 1e6
        ident = "kernel" if int(found[1]) >> 3 == 0 else "user"  # facility 0: from the kernel itself
        return Carried(text, ident, "", None, uptime, caller[1] if caller else "", True)
    if found := LOGCAT.match(line):
        month, day, clock, digits, tag = found.groups()
        ident = "kernel" if tag.lower() == "kernel" else tag
        return Carried(line[found.end() :], ident, "", stamps.yearless(month, day, clock, digits))
    if found := UNIX_STAMP.match(line):
        at = int(found[1]) * stamps.SECOND + stamps.fraction(found[2])
        return _tagged(line[found.end() :], at) or Carried(line)
    return _iso(line) or Carried(line)


def _iso(line: str) -> Carried | None:
    """Take off a prefix with an ISO date: rsyslog, journalctl, RFC 5424, `dmesg --time-format iso`, receivers."""
    found = ISO_STAMP.match(line)
    if not found:
        return None
    date, clock, mark, digits, zone = found.groups()[1:]
    at, rest = stamps.iso(date, clock, digits, zone), line[found.end() :]
    if mark == "," and zone and zone[0] in "+-":  # only dmesg writes a comma and a zone, and only kernel messages
        return Carried(rest, at=at, kernel_form=True)
    if ">1 " in found[0] and (header := RFC5424_REST.match(rest)):
        return Carried(_unescaped(rest[header.end() :]), header[2], header[1], at)
    if between := RECEIVER.match(rest):
        return Carried(rest[between.end() :], at=at)
    return _tagged(rest, at)


def _tagged(rest: str, at: int | None) -> Carried | None:
    """Take off `host tag[pid]: ` after a stamp."""
    if found := CARRIED.match(rest):
        return Carried(_unescaped(rest[found.end() :]), found[2], found[1], at)
    return None


def printk(rest: str) -> Stamped:
    """Take off what printk wrote itself: level, loss marker, time stamp, caller."""
    uptime, caller, at, marked = None, "", None, False
    if rest[:1] == "<" and (level := LEVEL.match(rest)):
        rest, marked = rest[level.end() :], True
    if rest[:2] == "**" and (dropped := DROPPED.match(rest)):
        marked = True
        rest = rest[dropped.end() :] or rest
    if rest[:1] == "[":
        if stamp := PRINTK.match(rest):
            uptime, rest, marked = float(stamp[1]), rest[stamp.end() :], True
        elif stamp := CTIME.match(rest):
            at = stamps.named(stamp[5], stamp[2], stamp[3], stamp[4])
            rest, marked = rest[stamp.end() :], True
        if rest[:1] == "[" and (found := CALLER.match(rest)):
            caller, rest, marked = found[1], rest[found.end() :], True
        if rest[:1] == "[" and (found := ANDROID.match(rest)):
            rest = rest[found.end() :]
        if rest[:2] == "**" and (dropped := DROPPED.match(rest)) and dropped.end() < len(rest):
            rest = rest[dropped.end() :]
    return Stamped(rest, uptime, caller, at, marked)
