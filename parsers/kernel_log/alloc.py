"""Page allocations that stall or fail, as Linux 2.6.32 to 7.2 print them.

    ntpd: page allocation stalls for 272380ms, order:0, mode:0x24000c0(GFP_KERNEL)
    CPU: 16 PID: 13099 Comm: ntpd Tainted: G           O    4.9.43-cloudflare-2017.8.4 #1
    swapper/3: page allocation failure: order:2, mode:0x20(GFP_ATOMIC), nodemask=(null)

Table `alloc_stall`, one row per print: comm ntpd, duration_ms 272380, order 0, gfp_mask 0x24000c0, gfp_flags
("GFP_KERNEL",), and from the second line pid 13099, cpu 16, tainted "G O", kernel 4.9.43-cloudflare-2017.8.4.
Table `alloc_failure`, one row per failure.

The text comes from warn_alloc() and __alloc_pages_slowpath() in mm/page_alloc.c. Stalls: since 4.9, nodemask since
4.12, gone in 4.15, back in 7.2 as `page allocation stall for 12 secs`. Failures: `failure. order:` up to el6, flag
names since 4.9, nodemask since 4.12, cpuset on the same line since 5.0. Behaviour is read off the text.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator

from parsers.kernel_log.dump_stack import Running, running
from parsers.kernel_log.message import Block, Event, Loss, Message
from parsers.shapes import Column, Row, Table

_REQUEST = {
    "incident": Column("str", "id shared by the prints of one allocation"),
    "comm": Column("str", "name of the task that allocates"),
    "pid": Column("Int64", "its pid, where the line or the stack dump after it gives one"),
    "cpu": Column("Int64", "the CPU it ran on, from the stack dump"),
    "order": Column("Int64", "2^order pages in one piece were wanted"),
    "gfp_mask": Column("str", "the allocation flags, hexadecimal, as printed"),
    "gfp_flags": Column("object", "tuple of the flags' names; missing before 4.9"),
    "nodemask": Column("str", "NUMA nodes allowed, as printed: (null) or 0-1"),
    "tainted": Column("str", "taint letters of the kernel, or `Not tainted`"),
    "kernel": Column("str", "the kernel's release"),
}

TABLES = {
    "alloc_stall": Table(
        "one print of a page allocation that has not succeeded yet",
        {**_REQUEST, "duration_ms": Column("Int64", "how long it had been waiting when this was printed")},
    ),
    "alloc_failure": Table(
        "one page allocation that failed",
        {**_REQUEST, "dump": Column("Int64", "the Mem-Info dump printed for it, as in meminfo_zone and buddy")},
    ),
}

LITERALS = (
    b": page allocation stalls for ",
    b": page allocation stall for ",
    b": page allocation failure",
    b"vmalloc: allocation failure",
    b"vmalloc error: size ",
    b"Unable to allocate memory on ",
)

START_TOLERANCE_S = 10
"""Prints whose start (stamp minus duration) falls into one such interval are prints of one stuck allocation. The first
print comes after 10 s of waiting, so one task cannot begin two stalls within 10 s; the start that is computed wanders
by 60 ms between prints on a busy 4.9 guest, and by 1 s where the stamp is syslog's."""

DUMP_LINES = 200
"""How far below a failure its Mem-Info begins: the trace stands between, and what other CPUs print."""

CLOSE_LINES = 40
"""How far below a stall its `CPU: … PID: …` line is looked for: it is the next line of the same task."""

_COMM = r"(?:^[\s>]*|\] )(?P<comm>\S.{0,31}?)(?:\((?P<pid>\d{1,18})\))?: page allocation "
# A number counts once what follows it is there; only the vendors' `order: 0` ends its line, as does a bare mask.
_ORDER = r"[.:,]* ?order: ?(?P<order>\d{1,18})(?:(?=[,\s])|(?<=: \d)$)"
_FLAGS = r"\((?P<flags>[^()]*)\)"
_NODES = r"(?:,? ?nodemask=(?P<nodemask>\(null\)|[\d,-]+(?=,cpuset|\s|$)))?"
_STALL = re.compile(
    rf"{_COMM}stalls? for (?P<time>\d{{1,18}}) ?(?P<unit>ms|secs)(?=[,:])"
    rf"(?:{_ORDER}(?:,? ?mode: ?(?P<mask>0x[0-9a-fA-F]+){_FLAGS}{_NODES})?)?"
)
_FAILURE = re.compile(
    rf"{_COMM}failure(?=[.:] )(?:{_ORDER}(?:, ?mode:(?P<mask>0x[0-9a-fA-F]+)(?:{_FLAGS}|(?=,)|$){_NODES})?)?"
)
_OTHER = re.compile(r"(?P<vmalloc>vmalloc: allocation failure|vmalloc error: size )|Unable to allocate memory on ")


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield the stall or failure that block[0] reports; a line that is cut before its number is told as damage."""
    text = block[0].text
    if stall := _STALL.search(text):
        yield _stall(stall, block)
    elif failure := _FAILURE.search(text):
        yield _failure(failure, block)
    elif ": page allocation" in text:
        yield Loss("this line reports a page allocation, but it is cut or garbled")
    elif other := _OTHER.search(text):
        kind = "vmalloc_failure" if other["vmalloc"] else "slab_alloc_failure"
        yield Event(kind, "medium", repeat_of=(kind, text))


def _stall(found: re.Match[str], block: Block) -> Event:
    """Return the event of one stall print."""
    row = _request(found)
    row["duration_ms"] = int(found["time"]) * (1 if found["unit"] == "ms" else 1000)
    lines = _dumped(row, block)
    return Event(
        "alloc_stall", _severity(row["duration_ms"]), "alloc_stall", row, _same_stall(row, found, block[0]), lines
    )


def _failure(found: re.Match[str], block: Block) -> Event:
    """Return the event of one failure; equal requests of one task are one incident, a retry in a loop."""
    row = _request(found)
    lines = _dumped(row, block)
    # Beyond PAGE_ALLOC_COSTLY_ORDER (3) callers are expected to fall back (include/linux/mmzone.h).
    level = "low" if row.get("order", 0) > 3 else "medium"
    key = ("alloc_failure", row["comm"], row.get("order"), row.get("gfp_mask"))
    return Event("alloc_failure", level, "alloc_failure", row, key, lines)


def _request(found: re.Match[str]) -> Row:
    """Return the columns that both kinds of line print."""
    row: Row = {"comm": found["comm"]}
    if found["pid"]:
        row["pid"] = int(found["pid"])
    if found["order"]:
        row["order"] = int(found["order"])
    if found["mask"]:
        row["gfp_mask"] = found["mask"]
    if found["flags"] is not None:
        row["gfp_flags"] = tuple(flag for flag in found["flags"].split("|") if flag)
    if found["nodemask"]:
        row["nodemask"] = found["nodemask"]
    return row


def _dumped(row: Row, block: Block) -> int:
    """Add what the stack dump of the same task says; return how many messages the row then spans."""
    for index, message in enumerate(block[1 : CLOSE_LINES + 1], 1):
        text = message.text
        again = ": page allocation " in text and (_STALL.search(text) or _FAILURE.search(text))
        if again and again["comm"] == row["comm"]:
            break
        found = running(text)
        if found and found.comm == row["comm"] and row.get("pid", found.pid) == found.pid:
            _add(row, found)
            return index + 1 if index <= 3 else 1
    return 1


def _add(row: Row, found: Running) -> None:
    """Add the task's CPU, pid and kernel."""
    row |= {"pid": found.pid, "tainted": found.tainted, "kernel": found.kernel}
    if found.cpu is not None:
        row["cpu"] = found.cpu


def _same_stall(row: Row, found: re.Match[str], message: Message) -> tuple[object, ...] | None:
    """Return the key that the prints of one stuck allocation share, None where the log has no clock.

    The pid counts only where the line itself prints it: the stack dump is ratelimited and often absent.
    """
    stamp = message.uptime_s if message.uptime_s is not None else message.at and message.at / 1e9
    if stamp is None:
        return None
    start = round((stamp - row["duration_ms"] / 1000) / START_TOLERANCE_S)
    return ("alloc_stall", row["comm"], found["pid"], row.get("order"), row.get("gfp_mask"), start)


def _severity(duration_ms: int) -> str:
    """Return how bad a wait is; nothing shorter than 10 s is ever printed."""
    return "critical" if duration_ms >= 60_000 else "high" if duration_ms >= 30_000 else "medium"


def settle(rows: dict[str, list[Row]]) -> None:
    """Give each `alloc_failure` row of one capture the dump below it, in place; of two, the nearer has it."""
    tables = (rows.get("meminfo_zone", []), rows.get("buddy", []))
    dumps = sorted((row["line"], row["dump"], row.get("host") or "") for table in tables for row in table)
    failures = sorted(rows.get("alloc_failure", []), key=lambda row: int(row["line"]))
    for place, row in enumerate(failures):
        until = row["line"] + DUMP_LINES
        if place + 1 < len(failures):
            until = min(until, failures[place + 1]["line"])
        for line, dump, host in dumps[bisect.bisect(dumps, (row["line"], 0, "")) :]:
            if line > until:
                break
            if host == (row.get("host") or ""):
                row["dump"] = dump
                break
