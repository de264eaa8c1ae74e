"""The Mem-Info dump: what memory looked like when an allocation stalled or failed, Linux 2.6.32 to 7.2.

    Mem-Info:
    active_anon:3936889 inactive_anon:371971 isolated_anon:0
     active_file:25778474 inactive_file:1214478 isolated_file:2208
    Node 0 active_anon:8333016kB … pages_scanned:15744 all_unreclaimable? no
    Node 0 DMA free:15900kB min:100kB low:124kB high:148kB active_anon:0kB …
    Node 0 Normal: 15336*4kB (UMEH) 4584*8kB (MEH) 2119*16kB (UME) … = 236080kB
    27531091 total pagecache pages
    Free swap  = 0kB
    33524975 pages RAM

Tables: `meminfo_zone`, a row per zone line and per node line (zone missing); `buddy`, a row per block size of a buddy
list; `meminfo_total`, a row per number of the totals and the trailer.

Printed by show_mem() and show_free_areas() (mm/page_alloc.c, mm/show_mem.c since 6.5, lib/show_mem.c for the trailer).
Fields come and go every few releases and the totals change their order, so numbers are read by name, never by
position. Up to 4.4 the pieces of a line are separate printks, later ones KERN_CONT: when CPUs dump at once they
interleave, so a line counts only if it parses to its end, and a buddy list only if its sum is the printed one.
Each line is read on its own: a dump that lost its head or its middle still yields what is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.message import Block, Event, Loss, Message
from parsers.shapes import Column, Row, Table

_DUMP = Column("Int64", "id of the dump: the line number of its `pages RAM` line, or of the last line that is left")
_NODE = Column("Int64", "NUMA node, where it is printed")
_ZONE = Column("str", "DMA, DMA32, Normal, HighMem, Movable or Device")

KB_FIELDS = (
    "free", "min", "low", "high", "active_anon", "inactive_anon", "active_file", "inactive_file", "unevictable",
    "writepending", "present", "managed", "mlocked", "dirty", "writeback", "slab_reclaimable", "slab_unreclaimable",
)  # fmt: skip
"""Names printed as `name:NUMBERkB`, which become columns `name_kb`."""

TABLES = {
    "meminfo_zone": Table(
        "one zone, or one node as a whole, in one Mem-Info dump",
        {
            "dump": _DUMP,
            "node": _NODE,
            "zone": Column("str", _ZONE.about + "; missing for the node as a whole"),
            **{f"{name}_kb": Column("Int64", f"`{name}`, as printed") for name in KB_FIELDS},
            "pages_scanned": Column("Int64", "pages scanned since the last free, up to 4.9"),
            "all_unreclaimable": Column("boolean", "reclaim has given up on it"),
        },
    ),
    "buddy": Table(
        "one block size of one buddy list",
        {
            "dump": _DUMP,
            "node": _NODE,
            "zone": _ZONE,
            "order": Column("Int64", "2^order pages per block"),
            "block_kb": Column("Int64", "size of a block"),
            "blocks": Column("Int64", "free blocks of that size"),
            "migrate_types": Column("object", "tuple of the migrate types that have one: U M E H C I (since 3.10)"),
        },
    ),
    "meminfo_total": Table(
        "one number of a dump's totals or trailer",
        {
            "dump": _DUMP,
            "name": Column("str", "the kernel's words: `slab_unreclaimable`, `pages RAM`, `Free swap`"),
            "value": Column("Int64", "the number, in `unit`"),
            "unit": Column("str", "pages, kB or lookups"),
        },
    ),
}

LITERALS = (
    b"Mem-Info:",
    b" isolated_anon:",
    b"kB inactive_anon:",
    b"kB min:",
    b"*4kB ",
    b"*64kB ",  # kernels with 16 or 64 KB pages print no 4 KB blocks
    b" total pagecache pages",
    b" pages in swap cache",
    b"Swap cache stats: add ",
    b"Free swap  = ",
    b"Total swap = ",
    b" pages RAM",
)

TOTAL_LINES = 12
"""The totals are at most this many lines (7.2 has nine)."""

MAX_FOREIGN = 12
"""Lines of other origin after which the lines that follow are another dump, when the end of this one is lost."""

_LEAD = r"(?:#011|\s)*"
_PLACE = r"(?:Node (?P<node>\d{1,18}) )?(?P<zone>DMA32|DMA|Normal|HighMem|Movable|Device)"
_PAIR = r"[A-Za-z_]+(?:\([a-z]+\))?: ?\d{1,18}(?:kB)?"
_END = r"(?: all_unreclaimable\? (?P<unreclaimable>yes|no))?\s*"
_ZONE_LINE = re.compile(rf"{_LEAD}{_PLACE} (?P<pairs>free:\d{{1,18}}kB(?:\s+{_PAIR})*){_END}")
_NODE_LINE = re.compile(rf"{_LEAD}Node (?P<node>\d{{1,18}}) (?P<pairs>active_anon:\d{{1,18}}kB(?:\s+{_PAIR})*){_END}")
_CLIPPED = re.compile(r" (?:[A-Za-z_()]+: )?\S*>$")  # `journalctl` and `less -S` end a line with `>` at the edge
_BUDDY_LINE = re.compile(
    rf"{_LEAD}{_PLACE}: (?P<list>(?:\d{{1,18}}\*\d{{1,18}}kB(?: \([A-Z]+\))? )+)= (?P<sum>\d{{1,18}})kB\s*"
)
_TOTALS_LINE = re.compile(rf"{_LEAD}{_PAIR}(?:\s+{_PAIR})*\s*")
_TRAILER_LINE = re.compile(
    rf"{_LEAD}(?:(?P<pages>\d{{1,18}}) (?P<name>total pagecache pages|pages [A-Za-z/ -]{{1,40}}?)"
    r"|Swap cache stats: add (?P<add>\d{1,18}), delete (?P<delete>\d{1,18})"
    r"(?:, find (?P<find>\d{1,18})/(?P<of>\d{1,18}))?"
    r"|(?P<swap>(?:Free|Total) swap)\s+= (?P<kb>\d{1,18})kB)\s*"
)
_NUMBER = re.compile(r"([A-Za-z_]+(?:\([a-z]+\))?): ?(\d{1,18})(kB)?")
_BLOCKS = re.compile(r"(\d{1,18})\*(\d{1,18})kB(?: \(([A-Z]+)\))?")
_OF_A_DUMP = re.compile(
    rf"{_LEAD}(?:{_PLACE}(?: free)?:|Node \d{{1,18}} "
    r"|lowmem_reserve\[\]:|\d{1,18} (?:total )?page|Swap cache|\S+ swap )"
)

_AFTER_RAM = ("HighMem", "reserved", "hwpoisoned", "shared", "MovableOnly")
"""What a `N pages …` line after `pages RAM` speaks of."""


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield the rows of the line block[0]; a line of a dump that does not parse to its end is told as damage.

    Totals and what follows `pages RAM` have no line of their own that is recognisable, and are read with the first.
    """
    first = block[0]
    if "Mem-Info:" in first.text:
        yield _event(block, first, "", [])
        return
    found = list(_rows(block))
    rows = [row for row in found if not isinstance(row, Loss)]
    if rows:
        yield _event(block, first, rows[0][0], rows)
    if rows or _OF_A_DUMP.match(first.text) or len(_BLOCKS.findall(first.text)) > 1:
        yield from (loss for loss in found if isinstance(loss, Loss))


def _event(block: Block, first: Message, table: str, rows: list[tuple[str, Row]]) -> Event:
    """Return the event of one line: its first row is the event's own, the others stand beside it."""
    dump = _dump(block)
    for _, row in rows:
        row["dump"] = dump
    own = rows[0][1] if rows else {}
    lines = 1 + max((row["line"] for _, row in rows if "line" in row), default=first.number) - first.number
    return Event("mem_info", "info", table, own, ("mem_info", dump), lines, rows[1:])


def _rows(block: Block) -> Iterator[tuple[str, Row] | Loss]:
    """Yield (table, row) for what block[0] prints, or one Loss."""
    text = block[0].text
    whole = _CLIPPED.sub("", text)
    if "kB min:" in text or "kB inactive_anon:" in text:
        if whole != text:
            yield Loss("a pager clipped this Mem-Info line (`>`), the numbers after its edge are not there")
        if " free:" in whole and "kB min:" in whole:
            yield _zone(_ZONE_LINE.fullmatch(whole), "zone")
        else:
            yield _zone(_NODE_LINE.fullmatch(whole), "node")
    elif "*4kB " in text or "*64kB " in text:
        yield from _buddy(_BUDDY_LINE.fullmatch(text))
    elif " isolated_anon:" in text:
        yield from _totals(block)
    else:
        yield from _trailer(block)


def _zone(found: re.Match[str] | None, what: str) -> tuple[str, Row] | Loss:
    """Return the row of a zone line or a node line."""
    if not found:
        return Loss(f"this Mem-Info {what} line is cut or interleaved with another, its numbers are not used")
    row: Row = {"node": int(found["node"])} if found["node"] else {}
    if what == "zone":
        row["zone"] = found["zone"]
    for name, number, unit in _NUMBER.findall(found["pairs"]):
        if name in KB_FIELDS and unit:
            row[f"{name}_kb"] = int(number)
        elif name == "pages_scanned":
            row["pages_scanned"] = int(number)
        elif name in KB_FIELDS:
            return Loss(f"this Mem-Info {what} line is cut within a number, its numbers are not used")
    if found["unreclaimable"]:
        row["all_unreclaimable"] = found["unreclaimable"] == "yes"
    return "meminfo_zone", row


def _buddy(found: re.Match[str] | None) -> Iterator[tuple[str, Row] | Loss]:
    """Yield a row per block size, or a Loss unless the list is whole and adds up to the printed sum."""
    blocks = [(int(n), int(size), types) for n, size, types in _BLOCKS.findall(found["list"])] if found else []
    doubling = all(size == blocks[0][1] << order for order, (_, size, _) in enumerate(blocks))
    if not found or not doubling or sum(n * size for n, size, _ in blocks) != int(found["sum"]):
        yield Loss("this buddy list is cut, interleaved with another or does not add up: it is not used")
        return
    for order, (n, size, types) in enumerate(blocks):
        row: Row = {"zone": found["zone"], "order": order, "block_kb": size, "blocks": n}
        if found["node"]:
            row["node"] = int(found["node"])
        if types:
            row["migrate_types"] = tuple(types)
        yield "buddy", row


def _totals(block: Block) -> Iterator[tuple[str, Row] | Loss]:
    """Yield a row per number of the totals: one printk of several lines, the later ones indented."""
    for index, message in enumerate(block[:TOTAL_LINES]):
        text = message.text
        if not _TOTALS_LINE.fullmatch(text) or (index and not text[:1].isspace()):
            if not index:
                yield Loss("the totals of this Mem-Info are cut or garbled")
            return
        for name, number, unit in _NUMBER.findall(text):
            row: Row = {"name": name, "value": int(number), "unit": unit or "pages"}
            yield "meminfo_total", row if not index else {"line": message.number, **row}


def _trailer(block: Block) -> Iterator[tuple[str, Row] | Loss]:
    """Yield the rows of a trailer line; `pages RAM` takes along the page counts after it, which no literal finds."""
    found = _TRAILER_LINE.fullmatch(block[0].text)
    if not found:
        yield Loss("this Mem-Info line is cut or garbled")
        return
    yield from (("meminfo_total", row) for row in _trailer_rows(found))
    if found["name"] != "pages RAM":
        return
    for message in block[1:8]:
        after = _TRAILER_LINE.fullmatch(message.text)
        if not after or not after["name"] or not after["name"].endswith(_AFTER_RAM):
            return
        yield from (("meminfo_total", {"line": message.number, **row}) for row in _trailer_rows(after))


def _trailer_rows(found: re.Match[str]) -> Iterator[Row]:
    """Yield the row, or rows, of one trailer line."""
    if found["name"]:
        yield {"name": found["name"], "value": int(found["pages"]), "unit": "pages"}
    elif found["swap"]:
        yield {"name": found["swap"], "value": int(found["kb"]), "unit": "kB"}
    else:
        yield {"name": "Swap cache add", "value": int(found["add"]), "unit": "pages"}
        yield {"name": "Swap cache delete", "value": int(found["delete"]), "unit": "pages"}
        if found["find"]:
            yield {"name": "Swap cache find", "value": int(found["find"]), "unit": "lookups"}
            yield {"name": "Swap cache find total", "value": int(found["of"]), "unit": "lookups"}


def _dump(block: Block) -> int:
    """Return the id of the dump that block[0] belongs to.

    A line can look ahead only, so a dump is known by its end: its `pages RAM` line, printed in every era.
    """
    last, foreign = block[0].number, 0
    for index, message in enumerate(block):
        text = message.text
        if "pages RAM" in text:
            return message.number
        if index and "Mem-Info:" in text:
            break
        if _OF_A_DUMP.match(text):
            last, foreign = message.number, 0
        else:
            foreign += 1
            if foreign > MAX_FOREIGN and last != block[0].number:
                break
    return last
