"""One kernel message, several copies: bundles hold the same log as dmesg, kern.log, syslog and journal.

Counts must be of messages, not of copies. A row of a later member that says the same as a row of an earlier one, at the
same uptime or in the same second of the same host's clock, is a copy and is dropped, together with the gap it made.
Within one member nothing is ever dropped: a log that repeats a line means it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from parsers import kernel_log
from parsers.shapes import COMMON, Gap, Row

OWN_IDS = frozenset({"incident", "event", "dump", "first_line", "last_line", *COMMON})
"""What differs between two copies of one message, and the stamps, which are compared by themselves."""

SECOND_NS = 1_000_000_000

Key = tuple[Hashable, ...]


def drop_copies(rows: dict[str, list[Row]], gaps: list[Gap]) -> Counter[str]:
    """Drop the copies among the rows of kernel logs, and their gaps, in place; return how many by member."""
    dropped: Counter[str] = Counter()
    order = _members_by_worth(rows)
    copies: set[tuple[str, int]] = set()
    if len(order) > 1:
        for table in kernel_log.TABLES.keys() & rows.keys():
            kept = _without_copies(rows[table], order)
            gone = {id(row) for row in rows[table]} - {id(row) for row in kept}
            for row in rows[table]:
                if id(row) in gone:
                    dropped[row["member"]] += 1
                    copies.add((row["member"], row["line"]))
            rows[table] = kept
    gaps[:] = [gap for gap in gaps if (gap.member, gap.line) not in copies]
    return dropped


def _members_by_worth(rows: dict[str, list[Row]]) -> dict[str, int]:
    """Return the members with kernel rows, best first: those that know both clocks, then those that hold more."""
    size: Counter[str] = Counter()
    clocks: Counter[str] = Counter()
    for row in rows.get("kernel_event", []):
        size[row["member"]] += 1
        clocks[row["member"]] += (row.get("at") is not None) + (row.get("uptime_s") is not None)
    best = sorted(size, key=lambda member: (-clocks[member] / size[member], -size[member], member))
    return {member: place for place, member in enumerate(best)}


def _without_copies(rows: list[Row], order: dict[str, int]) -> list[Row]:
    """Return the rows of one table, the copies left out, in the order they came."""
    by_member: dict[str, list[Row]] = {}
    for row in rows:
        by_member.setdefault(row["member"], []).append(row)
    seen: Counter[Key] = Counter()
    """How often the members looked at so far hold each content at each stamp."""
    copies: set[int] = set()
    for member in sorted(by_member, key=lambda member: order.get(member, len(order))):
        matched: Counter[Key] = Counter()
        new: Counter[Key] = Counter()
        for row in by_member[member]:
            key = next((key for key in _keys(row, slack=1) if seen[key] > matched[key]), None)
            if key is None:
                new.update(_keys(row))
            else:
                matched[key] += 1
                copies.add(id(row))
        seen += new
    return [row for row in rows if id(row) not in copies]


def _keys(row: Row, slack: int = 0) -> Iterator[Key]:
    """Yield what two copies of one message share: the content with the uptime, and with the second of the day.

    `slack` seconds to either side are yielded too: two daemons may stamp one message a moment apart. A row without any
    clock has no copies.
    """
    content = tuple(sorted((name, repr(value)) for name, value in row.items() if name not in OWN_IDS))
    if row.get("uptime_s") is not None:
        yield ("uptime", round(row["uptime_s"], 6), content)
    if row.get("at") is not None:
        for second in sorted(range(-slack, slack + 1), key=abs):
            yield ("second", row["at"] // SECOND_NS + second, row.get("host") or "", content)
