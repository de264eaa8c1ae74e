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
from functools import cache

import pyparsing as pp

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
_NUMBER = r"\d{1,18}"
_PLACE = rf"(?:Node (?P<node>{_NUMBER}) )?(?P<zone>DMA32|DMA|Normal|HighMem|Movable|Device)"
_PAIR = rf"[A-Za-z_]+(?:\([a-z]+\))?: ?{_NUMBER}(?:kB)?"
_PAIRS = re.compile(rf"([A-Za-z_]+(?:\([a-z]+\))?): ?({_NUMBER})(kB)?")
_BLOCKS = re.compile(rf"({_NUMBER})\*({_NUMBER})kB(?: \(([A-Z]+)\))?")
_CLIPPED = re.compile(r" (?:[A-Za-z_()]+: )?\S*>$")  # `journalctl` and `less -S` end a line with `>` at the edge
_OF_A_DUMP = re.compile(
    rf"{_LEAD}(?:{_PLACE}(?: free)?:|Node {_NUMBER} "
    rf"|lowmem_reserve\[\]:|{_NUMBER} (?:total )?page|Swap cache|\S+ swap )"
)

_AFTER_RAM = ("HighMem", "reserved", "hwpoisoned", "shared", "MovableOnly")
"""What a `N pages …` line after `pages RAM` speaks of."""

_DAMAGED = {
    "zone": "this Mem-Info zone line is cut or interleaved with another, its numbers are not used",
    "node": "this Mem-Info node line is cut or interleaved with another, its numbers are not used",
    "buddy": "this buddy list is cut, interleaved with another or does not add up: it is not used",
    "totals": "the totals of this Mem-Info are cut or garbled",
    "trailer": "this Mem-Info line is cut or garbled",
}
"""What is told of a line of a kind that is not that to its end."""


@cache
def _grammar() -> dict[str, pp.ParserElement]:
    """Return the grammar of each kind of line, which gives its rows as (table, row).

    A part is one Regex, whatever repeats in it found by its action: token by token a dump takes 25 times as long.
    """

    def part(pattern: str) -> pp.ParserElement:
        return pp.Regex(pattern, as_match=True).leave_whitespace()

    def columns(first: str) -> pp.ParserElement:
        return part(rf" {first}:{_NUMBER}kB(?:\s+{_PAIR})*").set_parse_action(_columns)

    end = r"\s*$"
    place = part(_LEAD + _PLACE).set_parse_action(_place)
    node = part(rf"{_LEAD}Node (?P<node>{_NUMBER})").set_parse_action(_place)
    given_up = part(rf"(?: all_unreclaimable\? (?P<answer>yes|no))?{end}").set_parse_action(_given_up)
    blocks = part(rf": (?:{_BLOCKS.pattern} )+")
    total = part(rf"= (?P<sum>{_NUMBER})kB{end}")
    totals = part(rf"{_LEAD}{_PAIR}(?:\s+{_PAIR})*{end}")
    pages = part(rf"{_LEAD}(?P<value>{_NUMBER}) (?P<name>total pagecache pages|pages [A-Za-z/ -]{{1,40}}?){end}")
    swap = part(rf"{_LEAD}(?P<name>(?:Free|Total) swap)\s+= (?P<value>{_NUMBER})kB{end}")
    swap_cache = part(
        rf"{_LEAD}Swap cache stats: add (?P<add>{_NUMBER}), delete (?P<delete>{_NUMBER})"
        rf"(?:, find (?P<find>{_NUMBER})/(?P<find_total>{_NUMBER}))?{end}"
    )
    lines = {
        "zone": (place + columns("free") + given_up).set_parse_action(_zone),
        "node": (node + columns("active_anon") + given_up).set_parse_action(_zone),
        "buddy": (place + blocks + total).set_parse_action(_buddy),
        "totals": totals.set_parse_action(_totals),
        "trailer": pages.set_parse_action(_pages)
        | swap.set_parse_action(_swap)
        | swap_cache.set_parse_action(_swap_cache),
    }
    return {kind: line.parse_with_tabs() for kind, line in lines.items()}


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield the rows of the line block[0]; a line of a dump that does not parse to its end is told as damage.

    Totals and what follows `pages RAM` have no line of their own that is recognisable, and are read with the first.
    """
    first = block[0]
    if "Mem-Info:" in first.text:
        yield _event(block, first, "", [])
        return
    kind = _kind(first.text)
    whole = _CLIPPED.sub("", first.text) if kind in ("zone", "node") else first.text
    rows = _rows(kind, whole)
    if rows and kind in ("totals", "trailer"):
        rows += _below(block, kind, rows)
    if rows:
        yield _event(block, first, rows[0][0], rows)
    if rows or _OF_A_DUMP.match(first.text) or len(_BLOCKS.findall(first.text)) > 1:
        if whole != first.text:
            yield Loss("a pager clipped this Mem-Info line (`>`), the numbers after its edge are not there")
        if not rows:
            yield Loss(_DAMAGED[kind])


def _kind(text: str) -> str:
    """Return which kind of line a text with one of the literals must be."""
    if "kB min:" in text or "kB inactive_anon:" in text:
        return "zone" if " free:" in text and "kB min:" in text else "node"
    if "*4kB " in text or "*64kB " in text:
        return "buddy"
    return "totals" if " isolated_anon:" in text else "trailer"


def _rows(kind: str, text: str) -> list[tuple[str, Row]]:
    """Return the rows of one line; none when it is not of this kind to its end."""
    try:
        return list(_grammar()[kind].parse_string(text))
    except pp.ParseException:
        return []


def _below(block: Block, kind: str, rows: list[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
    """Yield the rows of the lines that no literal finds: more totals, indented, and page counts after `pages RAM`."""
    if kind == "trailer" and rows[0][1]["name"] != "pages RAM":
        return
    for message in block[1 : TOTAL_LINES if kind == "totals" else 8]:
        more = _rows(kind, message.text) if kind == "trailer" or message.text[:1].isspace() else []
        if not more or (kind == "trailer" and not more[0][1]["name"].endswith(_AFTER_RAM)):
            return
        yield from ((table, {"line": message.number, **row}) for table, row in more)


def _event(block: Block, first: Message, table: str, rows: list[tuple[str, Row]]) -> Event:
    """Return the event of one line: its first row is the event's own, the others stand beside it."""
    dump = _dump(block)
    for _, row in rows:
        row["dump"] = dump
    own = rows[0][1] if rows else {}
    lines = 1 + max((row["line"] for _, row in rows if "line" in row), default=first.number) - first.number
    return Event("mem_info", "info", table, own, ("mem_info", dump), lines, rows[1:])


def _place(found: pp.ParseResults) -> Row:
    """Return the columns node and zone, as far as they are printed."""
    printed = found[0].groupdict()
    return {name: int(value) if name == "node" else value for name, value in printed.items() if value}


def _columns(text: str, place: int, found: pp.ParseResults) -> Row:
    """Return the columns of a zone's or node's numbers; one of kB without its unit is a number that was cut."""
    row: Row = {}
    for name, number, unit in _PAIRS.findall(found[0][0]):
        if name in KB_FIELDS:
            if not unit:
                raise pp.ParseException(text, place, f"{name} is cut")
            row[f"{name}_kb"] = int(number)
        elif name == "pages_scanned":
            row[name] = int(number)
    return row


def _given_up(found: pp.ParseResults) -> Row:
    return {"all_unreclaimable": found[0]["answer"] == "yes"} if found[0]["answer"] else {}


def _zone(found: pp.ParseResults) -> list[tuple[str, Row]]:
    """Return the row that the parts of a zone line or node line make together."""
    return [("meminfo_zone", {name: value for part in found for name, value in part.items()})]


def _buddy(text: str, place: int, found: pp.ParseResults) -> list[tuple[str, Row]]:
    """Return a row per block size, if each doubles the one before and their sum is the printed one."""
    at, listed, total = found
    blocks = [(int(n), int(size), types) for n, size, types in _BLOCKS.findall(listed[0])]
    doubling = all(size == blocks[0][1] << order for order, (_, size, _) in enumerate(blocks))
    if not doubling or sum(n * size for n, size, _ in blocks) != int(total["sum"]):
        raise pp.ParseException(text, place, "the list does not add up")
    rows = []
    for order, (n, size, types) in enumerate(blocks):
        row = {**at, "order": order, "block_kb": size, "blocks": n}
        rows.append(("buddy", row | ({"migrate_types": tuple(types)} if types else {})))
    return rows


def _totals(found: pp.ParseResults) -> list[tuple[str, Row]]:
    return [_total(name, number, unit or "pages") for name, number, unit in _PAIRS.findall(found[0][0])]


def _pages(found: pp.ParseResults) -> list[tuple[str, Row]]:
    return [_total(found[0]["name"], found[0]["value"], "pages")]


def _swap(found: pp.ParseResults) -> list[tuple[str, Row]]:
    return [_total(found[0]["name"], found[0]["value"], "kB")]


def _swap_cache(found: pp.ParseResults) -> list[tuple[str, Row]]:
    units = {"add": "pages", "delete": "pages", "find": "lookups", "find_total": "lookups"}
    printed = ((name, value) for name, value in found[0].groupdict().items() if value)
    return [_total(f"Swap cache {name.replace('_', ' ')}", value, units[name]) for name, value in printed]


def _total(name: str, value: str, unit: str) -> tuple[str, Row]:
    return "meminfo_total", {"name": name, "value": int(value), "unit": unit}


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
