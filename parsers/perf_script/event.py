"""The grammar of one line of `perf script`, in bytes: a comm need not be UTF-8.

perf's builtin-script.c prints comm (`%16s` when no chain follows, else `%s`), tid (`%5d`) or pid/tid (`%5d/%-5d`),
`[%03d]` cpu, misc letters, time with 6 or 9 decimals, period, event and payload. The first 16 bytes of a padded line
are the comm whatever they hold: blanks, colons, digits, even a newline. Leading blanks of a comm cannot be told from
the padding and are dropped.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from parsers.shapes import integer

_MISC = rb"(?:[KUHGgMESp]{1,6}[ \t]++)?"
_TID = rb"(?:(?P<pid>-?\d++)/)?(?P<tid>-?\d++)[ \t]++(?:\[(?P<cpu>\d{3,9})\][ \t]++)?" + _MISC
_EVENT = (
    rb"(?P<time>\d{1,12}\.(?:\d{9}|\d{6})):[ \t]++(?:(?P<period>\d++)[ \t]++)?"
    rb"(?!PERF_RECORD_)(?P<event>[^\s:]\S*?):(?=[ \t\r]|$)"
)
_TIMER = rb"(?:[ \t]+timer=\S+ function=(?P<function>\S*))?"
_PADDED = rb"(?P<head>(?P<comm> (?s:.){15})[ \t]++" + _TID + rb")"
_PLAIN = rb"(?P<head>(?P<comm>[^\n]{0,80}?)[ \t]++" + _TID + rb")"
# Unpadded, a comm with a newline in it: only tried when a short odd line came before.
_JOINED = rb"(?P<head>(?P<comm>[^\n]{1,14}\n[^\n]{0,14}?)[ \t]++" + _TID + rb")"
PADDED = re.compile(_PADDED + _EVENT + _TIMER)
PLAIN = re.compile(_PLAIN + _EVENT + _TIMER)
JOINED = re.compile(_JOINED + _EVENT + _TIMER)
PADDED_HEAD = re.compile(_PADDED + rb"$")
PLAIN_HEAD = re.compile(_PLAIN + rb"$")
JOINED_HEAD = re.compile(_JOINED + rb"$")
# Samples without a time (perf record without -T): only with a chain below, where nothing else stands on the line.
UNTIMED = re.compile(_PLAIN + rb"(?:(?P<period>\d++)[ \t]++)?(?P<event>[a-z][^\s:]*(?::[^\s:]+)*):[ \t\r]*$")
# Every line of a chunk is tried with this at once: see `reading._read_plain_lines`.
FAST = re.compile(
    rb"^( [^\n]{15} ++(?:-?\d++/)?-?\d++ ++(?:\[\d++\] ++)?(?:[KUHGgMESp]++ ++)?)"
    rb"(\d{1,12}\.\d{6}(?:\d{3})?): ++(?:(\d++) ++)?(?!PERF_RECORD_)([^\s:]++(?::[^\s:]++)*): ++"
    rb"(?:timer=\S++ function=(\S*+))?[^\n]*+\n",  # eating the rest is faster than searching it for a line start
    re.MULTILINE,
)
TRACE_ONLY = re.compile(rb"timer=0x\S+ function=(?P<function>\S+) expires=\d+ \[timeout=")
FRAME = re.compile(rb"[ \t]+[0-9a-f]{1,16} (?P<body>\S.*)")
OFFSET = re.compile(rb"\+0x[0-9a-f]+(?: \(.*\))?$")
# srcline (-F +srcline): `  tcp.c:1234` under the frame it belongs to.
SOURCE = re.compile(rb"  \S+:\d+\r?")
LOST = re.compile(rb"PERF_RECORD_LOST(?:_SAMPLES)?\b.*?\blost (\d+)|Processed \d+ events and lost (\d+) chunks")
META = re.compile(r"^# (hostname|cmdline|sample duration) +?: +(.*?) *$")
_FIRST = (
    _PLAIN + rb"(?:" + _EVENT + rb"|\d{1,12}\.\d{6,9}: PERF_RECORD_)",
    UNTIMED.pattern.removesuffix(b"$") + rb"\n[ \t]+[0-9a-f]{1,16} \S[^\n]* \(",
    TRACE_ONLY.pattern,
)
BEGINS = re.compile(
    rb"^(?:# ========\r?\n# captured on|" + re.sub(rb"\?P<\w+>", b"", rb"|".join(_FIRST)) + rb")", re.MULTILINE
)


class Who(NamedTuple):
    """Who an event line names."""

    comm: str | None
    pid: int | None
    """Missing where only the thread's id was printed, which is the default."""
    tid: int | None
    cpu: int | None


def who(head: bytes) -> Who:
    """Return who a head names. Without padding, what the width of `%5d` leaves of the blanks is the comm's own."""
    if found := PADDED_HEAD.match(head):
        comm = found["comm"]
    elif found := JOINED_HEAD.match(head) or PLAIN_HEAD.match(head):
        name = "pid" if found["pid"] else "tid"
        before = head[: found.start(name)]
        width = 1 + max(0, 5 - len(found[name]))
        comm = before[:-width] if before.endswith(b" " * width) else found["comm"]
    else:
        return Who(None, None, None, None)
    pid, tid, cpu = (integer(found[each]) if found[each] else None for each in ("pid", "tid", "cpu"))
    return Who(text(comm.lstrip()), pid, tid, cpu)


def symbol(raw: bytes) -> str | None:
    """Return the symbol of a frame line without offset and object, None for any other line."""
    found = FRAME.match(raw.rstrip(b"\r"))
    if not found:
        return None
    body: bytes = found["body"]
    if offset := OFFSET.search(body):
        return text(body[: offset.start()])
    opener = max(body.find(each) for each in (b" (/", b" ([", b" (inlined)"))
    return text(body[:opener] if opener > 0 else body.rpartition(b" (")[0] or body)


def text(raw: bytes) -> str:
    """Return bytes as text; what is no UTF-8 is shown as \\xNN."""
    return raw.decode("utf-8", "backslashreplace")
