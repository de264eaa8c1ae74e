"""File systems that stop because of errors, as ext3, ext4, xfs and btrfs print it, Linux 2.6.32 to 7.2.

    EXT4-fs error (device sdb1): ext4_find_entry:1463: inode #2: comm ls: reading directory lblock 0
    Aborting journal on device sdb1-8.
    EXT4-fs (sdb1): Remounting filesystem read-only
    XFS (dm-3): Metadata I/O Error (0x1) detected at xfs_trans_read_buf_map+0x1fe [xfs] (…).  Shutting down filesystem.
    BTRFS info (device dm-0 state EA): forced readonly

Rows of `io_error` (see `block`): kinds filesystem_error, journal_abort, read_only, filesystem_shutdown, and
shutdown_request where somebody asked for it. The third gives device sdb1, driver ext4, kind read_only.

The text comes from fs/ext4/super.c (the device in the last line since 2.6.33), fs/jbd2/journal.c, fs/xfs/xfs_fsops.c
(reason and place since 5.15) and fs/btrfs/super.c, messages.c (`state` since 5.18). A mount with `-o remount,ro` prints
`re-mounted` and is not meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.message import Block, Event, Loss
from parsers.shapes import Row, Table

TABLES: dict[str, Table] = {}

LITERALS = (
    b"-fs error (device ",
    b"emounting filesystem read-only",
    b"Aborting journal on device ",
    b"hutting down filesystem",
    b"User initiated shutdown received",
    b"shut down requested (",
    b"etadata I/O error",
    b"etadata corruption detected",
    b": log I/O error ",
    b"forced readonly",
    b"BTRFS: error (device ",
    b"BTRFS error (device ",
)

_WHERE = re.compile(
    r"(?P<fs>EXT[234]|XFS|BTRFS)[^(]{0,30}\((?:device )?(?P<device>[\w!/.:-]{1,64})(?: state \w{1,12})?\)"
    r"|Filesystem \"(?P<quoted>[\w!/.:-]{1,64})\""  # xfs up to 2.6.36
)
_FLAGS = re.compile(r"\((0x[0-9a-f]{1,8})\)")
FORCE_UMOUNT = 0x4
"""SHUTDOWN_FORCE_UMOUNT, fs/xfs/xfs_mount.h: an ioctl asked for it, and nothing failed."""

_EXT = r"EXT[234]-fs error \(device [^)]{1,64}\):? (?P<what>\S.*)"
_REMOUNT = r"(?:EXT[234]-fs.{0,60}: )?(?:error: )?(?P<what>[Rr]emounting filesystem read-only)"
_ABORT = r"(?P<what>Aborting journal) on device (?P<journal>[\w!/.:-]{1,64})\.$"
_ASKED = r".{1,80}: (?P<what>User initiated shutdown received|shut down requested)(?!.{0,4}Shutting)"
_XFS = r"(?:XFS \([^)]{1,64}\)|Filesystem \"[^\"]{1,64}\"): "
_SHUTDOWN = _XFS + r"(?P<what>.{1,300}?)\.? +Shutting down filesystem"
_METADATA = _XFS + r"(?P<what>(?:[Mm]etadata (?:I/O error|corruption detected)|log I/O error).*)"
_FORCED = r"BTRFS.{1,100}: (?P<what>forced readonly)|btrfs is (?P<old>forced readonly)"
_BTRFS = r"BTRFS:? error \(device [^)]{1,80}\)(?: in|:) (?P<what>\S.*)"

FORMS = (
    ("filesystem_error", "medium", re.compile(_EXT)),
    ("read_only", "high", re.compile(_REMOUNT)),
    ("journal_abort", "high", re.compile(_ABORT)),
    ("shutdown_request", "info", re.compile(_ASKED)),
    ("filesystem_shutdown", "critical", re.compile(_SHUTDOWN)),
    ("filesystem_error", "medium", re.compile(_METADATA)),
    ("read_only", "high", re.compile(_FORCED)),
    ("filesystem_error", "medium", re.compile(_BTRFS)),
)


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield what block[0] says of a file system."""
    text, ended = block[0].text.strip(), block[0].ended
    for kind, level, pattern in FORMS:
        if found := pattern.match(text):
            whole = ended or found.end() < len(text) or found["what"] is None or kind != "filesystem_error"
            yield _event(kind, level, text, found, whole)
            if not whole:
                yield Loss("the capture ends inside this line: what failed in the file system may be cut off")
            return


def _event(kind: str, level: str, text: str, found: re.Match[str], whole: bool) -> Event:
    """Return the event; messages of one kind about one file system are one incident."""
    groups = found.groupdict()
    status = groups["what"] or groups["old"]
    if kind == "filesystem_shutdown":
        flags = _FLAGS.search(status)
        if "User initiated" in status or (flags and int(flags[1], 16) & FORCE_UMOUNT):
            kind, level = "shutdown_request", "info"
        status = re.sub(r" ?[Dd]etected(?: at .*)?$", "", status)
    row: Row = {"kind": kind}
    if journal := groups.get("journal"):
        row |= {"device": journal, "driver": "jbd2"}
    elif where := _WHERE.match(text):
        row["device"] = where["device"] or where["quoted"]
        row["driver"] = (where["fs"] or "XFS").lower()
    if whole:
        row["status"] = status[:200]
    return Event(f"io_{kind}", level, "io_error", row, ("io", kind, row.get("device")))
