"""Requests to block devices that failed, as the block layer, its buffers and SCSI tell it, Linux 2.6.32 to 7.2.

    end_request: I/O error, dev sdb, sector 73401344
    blk_update_request: critical medium error, dev sdb, sector 73401344 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0
    Buffer I/O error on dev sdb1, logical block 9175040, async page read
    sd 2:0:0:0: [sdb] tag#7 Sense Key : Medium Error [current]
    sd 2:0:0:0: [sdb] tag#7 Add. Sense: Unrecovered read error

Table `io_error`, one row per message: the second gives kind request, device sdb, sector 73401344, operation READ,
status "critical medium"; the last two are one row of kind sense, status "Medium Error: Unrecovered read error". What
nvme and file systems say of their devices (`nvme`, `filesystem`) is in this table too.

The text comes from block/blk-core.c or blk-mq.c (`end_request` up to 3.18, `blk_update_request` up to 4.12 and again
5.4 to 5.15, `print_req_error` between, no function since 5.16; the operation since 5.1), fs/buffer.c (`on device` up
to 3.18) and drivers/scsi/scsi_logging.c, constants.c (without `tag#` up to 3.17).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.message import Block, Event, Loss
from parsers.shapes import Column, Row, Table

TABLES = {
    "io_error": Table(
        "one message of a block device, its controller or a file system on it about I/O that failed",
        {
            "incident": Column("str", "id shared by the messages of one kind about one device"),
            "kind": Column(
                "str",
                "request (the block layer gave it up), buffer, lost_write, sense (what the disk answered), transport "
                "(SCSI without an answer); nvme_timeout, nvme_abort, nvme_reset, nvme_down, nvme_dead, nvme_error, "
                "nvme_polled (only the interrupt was missing); filesystem_error, filesystem_shutdown, read_only, "
                "journal_abort, shutdown_request (asked for by somebody)",
            ),
            "device": Column("str", "sdb, dm-3, nvme0n1; the controller nvme0 where that is meant"),
            "driver": Column("str", "who says it: block, buffer, sd and other SCSI drivers, nvme, ext4, xfs, btrfs, …"),
            "sector": Column("Int64", "the first sector of the request, in units of 512 bytes"),
            "operation": Column("str", "READ, WRITE, DISCARD, FLUSH, …, where the line says it"),
            "status": Column("str", "what went wrong, in the kernel's words: I/O, critical medium, Medium Error: …"),
        },
    )
}

LITERALS = (
    b" error, dev ",
    b"Buffer I/O error on dev",
    b"due to I/O error on ",
    b"Sense Key : ",
    b"Result: hostbyte=",
)

SENSE_LINES = 4
"""`Add. Sense` is the next line of the same command; another disk's may stand between."""

HARMLESS = (
    "operation not supported",
    "reservation conflict",
    "critical nexus",
    "nonblocking retry",
    "dm internal retry",
)
"""Answers that are part of normal work: a discard the device has not, a cluster's fencing, a retry."""

# blk_errors[]: `critical medium`, `I/O`, `recoverable transport`, `critical space allocation`, …
_REQUEST = re.compile(
    r"(?:(?:end_request|blk_update_request|print_req_error|blk_print_req_error): )?"
    r"(?P<status>I/O|timeout|[a-z][a-z/ ]{3,40}) error, dev (?P<device>[\w!/.:-]{1,64}), sector "
    r"(?P<sector>\d{1,20})(?: op 0x[0-9a-f]{1,8}:\((?P<operation>\w{1,20})\))?"
)
_BUFFER = re.compile(
    r"Buffer I/O error on dev(?:ice)? (?P<device>[\w!/.:-]{1,64}), logical block (?P<block>\d{1,20})"
    r"(?:, (?P<what>(?:async|lost (?:a?sync)) page (?P<operation>read|write)))?"
)
_LOST = re.compile(r"lost page write due to I/O error on (?P<device>[\w!/.:-]{1,64})$")
_SCSI = (
    r"(?P<driver>[a-z]\w{1,15}) \d{1,5}:\d{1,5}:\d{1,5}:\d{1,20}: (?:\[(?P<device>[\w-]{1,32})\] ?)?(?:tag#\d{1,6} )?"
)
_SENSE = re.compile(_SCSI + r"(?:CDB[^:]{0,20}: .{0,80})?Sense Key : (?P<key>[A-Z0-9][\w /-]{2,30}?) \[")
_MORE = re.compile(r".{1,90}Add\. Sense: (?P<what>\S.{0,120}?)\s*$")
_RESULT = re.compile(
    _SCSI + r".{0,40}Result: hostbyte=(?P<host>DID_\w{2,30}|0x[0-9a-f]{2}) driverbyte=(?P<by>\w{4,20})(?=\s|$)"
)
_ANSWERED = ("DID_OK", "0x00")
"""The command reached the disk: its answer is the sense data of the next lines."""


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield what block[0] says failed; a line cut before its device is told as damage."""
    text, ended = block[0].text.strip(), block[0].ended
    if found := _REQUEST.search(text):
        yield from _request(found, ended)
    elif found := _BUFFER.search(text):
        yield from _buffer(found, ended)
    elif "lost page write" in text and (found := _LOST.search(text)) and ended:
        row = {"driver": "buffer", "operation": "WRITE", "status": "lost page write"}
        yield _event("lost_write", "high", {"device": found["device"], **row})
    elif found := _SENSE.match(text):
        yield _sense(found, block)
    elif found := _RESULT.match(text):
        if found["host"] not in _ANSWERED:
            row = {"driver": found["driver"], "status": found["host"]}
            yield _event("transport", "medium", row | ({"device": found["device"]} if found["device"] else {}))
    elif re.search(r" error, dev |Buffer I/O error|lost page write", text):
        yield Loss("this line reports an I/O error, but it is cut or garbled")


def _request(found: re.Match[str], ended: bool) -> Iterator[Event | Loss]:
    """Yield a request that the block layer gave up."""
    row: Row = {"device": found["device"], "driver": "block", "status": found["status"].strip()}
    if found["operation"]:
        row["operation"] = found["operation"]
    level = "low" if row["status"] in HARMLESS else "high" if row["status"] == "critical medium" else "medium"
    yield from _placed("request", level, row, found, ended)


def _placed(kind: str, level: str, row: Row, found: re.Match[str], ended: bool) -> Iterator[Event | Loss]:
    """Yield an event with its sector, which may end the line: without a newline it may lack digits."""
    whole = ended or found.end("sector") < len(found.string)
    if whole and int(found["sector"]) < 1 << 63:  # (sector_t)-1 where the request has no place
        row["sector"] = int(found["sector"])
    yield _event(kind, level, row)
    if not ended and "operation" not in row:
        yield Loss("the capture ends inside this line: its sector or its operation may be cut")


def _buffer(found: re.Match[str], ended: bool) -> Iterator[Event | Loss]:
    """Yield a buffer that could not be read or written; its block is counted in the file system's own size."""
    row: Row = {"device": found["device"], "driver": "buffer", "status": found["what"] or "I/O"}
    if found["operation"]:
        row["operation"] = found["operation"].upper()
    yield _event("buffer", "high" if "lost" in row["status"] else "medium", row)
    if not ended and not found["what"]:
        yield Loss("the capture ends inside this line: what was lost may be cut off")


def _sense(found: re.Match[str], block: Block) -> Event:
    """Return what the disk answered, with the additional sense that follows."""
    row: Row = {"driver": found["driver"], "status": found["key"].strip()}
    if found["device"]:
        row["device"] = found["device"]
    who = block[0].text.strip().split(" Sense Key", 1)[0]
    lines = 1
    for index, message in enumerate(block[1 : SENSE_LINES + 1], 1):
        text = message.text.strip()
        if text.startswith(who) and (more := _MORE.match(text)) and message.ended:
            row["status"], lines = f"{row['status']}: {more['what']}", index + 1
            break
        if text.startswith(who) and "Sense Key" in text:
            break
    failing = row["status"].startswith(("Medium Error", "Hardware Error"))
    return _event("sense", "high" if failing else "low", row, lines)


def _event(kind: str, level: str, row: Row, lines: int = 1) -> Event:
    """Return an event; the messages of one kind about one device are one incident."""
    return Event(f"io_{kind}", level, "io_error", {"kind": kind, **row}, ("io", kind, row.get("device")), lines)
