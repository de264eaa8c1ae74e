"""NVMe controllers that do not answer, as Linux 3.10 to 7.2 print them.

    nvme nvme0: I/O 978 QID 3 timeout, aborting
    nvme nvme0: I/O tag 12 (100c) opcode 0x2 (Read) QID 3 timeout, reset controller
    nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10
    nvme nvme0: Device not ready; aborting reset, CSTS=0x1
    nvme nvme0: Disabling device after reset failure: -19

Rows of `io_error` (see `block`) with driver nvme: kinds nvme_timeout (the command is aborted), nvme_reset (the
controller is reset after a timeout), nvme_polled (it was done, only the interrupt was missing), nvme_abort (the answer
to an abort), nvme_down (CSTS says the controller failed or is gone), nvme_dead (given up), nvme_error (an error of one
command). The second gives operation "Read", status "reset controller".

The text comes from nvme_timeout(), nvme_warn_reset(), nvme_reset_work() in drivers/nvme/host/pci.c and from core.c.
Up to 4.3 the PCI address stands for the controller; the operation is told since 6.0 in brackets, with tag, command id
and opcode since 6.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.message import Block, Event, Loss
from parsers.shapes import Row, Table

TABLES: dict[str, Table] = {}

LITERALS = (
    b" timeout, aborting",
    b" timeout, reset controller",
    b" timeout, disable controller",
    b" timeout, completion polled",
    b": Abort status: 0x",
    b"controller is down; will reset: CSTS=0x",
    b"Device not ready; aborting ",
    b"after reset failure",
    b"Removing after probe failure",
    b"Removing after failed reset",
    b" (sct 0x",
)

_WHO = r"nvme (?P<device>nvme\d{1,6}(?:c\d{1,6})?|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]): "
_TIMEOUT = re.compile(
    _WHO + r"I/O (?:tag )?\d{1,9}(?: \([0-9a-f]{1,8}\))?(?: opcode 0x[0-9a-f]{1,4})?"
    r"(?: \((?P<operation>[\w /-]{1,40})\))? (?:QID|queue) \d{1,6} timeout, "
    r"(?P<what>aborting|reset controller|disable controller|completion polled)"
)
_ABORT = re.compile(_WHO + r"Abort status: (?P<what>0x[0-9a-f]{1,8})$")
_DOWN = re.compile(
    _WHO
    + r"controller is down; will reset: (?P<what>CSTS=0x[0-9a-f]{1,8}, PCI_STATUS(?:=0x[0-9a-f]{1,8}$| read failed))"
)
_DEAD = re.compile(
    _WHO
    + r"(?P<what>Device not ready; aborting (?:reset|initiali[sz]ation|shutdown)|Disabling device after reset failure"
    r"|Removing after probe failure|Removing after failed reset)"
)
# `nvme0n1: Write(0x1) @ LBA 2048, 8 blocks, Internal Error (sct 0x0 / sc 0x6) DNR`, since 5.16
_ERROR = re.compile(
    r"(?P<device>nvme\d{1,6}(?:c\d{1,6})?n?\d{0,6}): (?P<operation>[\w ]{1,40})\(0x[0-9a-f]{1,4}\)"
    r"(?: @ LBA \d{1,19}, \d{1,9} blocks)?, (?P<what>[^()]{1,60}) \(sct 0x[0-9a-f]{1,4} / sc 0x[0-9a-f]{1,4}\)"
)
KINDS = {
    "aborting": ("nvme_timeout", "medium"),
    "reset controller": ("nvme_reset", "high"),
    "disable controller": ("nvme_reset", "high"),
    "completion polled": ("nvme_polled", "medium"),
}


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield what block[0] says of a controller; a line cut inside its state is told as damage."""
    text, ended = block[0].text.strip(), block[0].ended
    if found := _TIMEOUT.search(text):
        kind, level = KINDS[found["what"]]
        yield _event(kind, level, found)
    elif (found := _ABORT.search(text)) and ended:
        yield _event("nvme_abort", "low", found)
    elif found := _DOWN.search(text):
        if ended or found["what"].endswith("failed"):
            yield _event("nvme_down", "critical", found)
        else:
            yield Loss("the capture ends inside this line: the controller is down, its state may be cut off")
    elif found := _DEAD.search(text):
        yield _event("nvme_dead", "critical", found)
    elif found := _ERROR.search(text):
        yield _event("nvme_error", "medium", found)


def _event(kind: str, level: str, found: re.Match[str]) -> Event:
    """Return the event; messages of one kind about one controller are one incident."""
    row: Row = {"kind": kind, "device": found["device"], "driver": "nvme", "status": found["what"].strip()}
    if operation := found.groupdict().get("operation"):
        row["operation"] = operation.strip()
    return Event(f"io_{kind}" if kind == "nvme_error" else kind, level, "io_error", row, (kind, row["device"]))
