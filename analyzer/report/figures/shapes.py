"""What every figure is made of, and how its numbers and words are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import pandas as pd

from analyzer.case import Case
from analyzer.report.visible import clip, visible
from parsers.kernel_log.message import YEARLESS

Record = dict[str, Any]
"""One row of a table; a missing value is None."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One picture with its conclusion and its data."""

    anchor: str
    kind: str
    """The macro of `charts.svg.j2` that draws it; empty where the data table is the picture."""
    title: str
    caption: str
    """One sentence: what it shows, not what it is."""
    chart: object
    """The geometry, as that macro wants it."""
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    """The data table: what the picture is drawn from, already written out."""
    source: str = ""
    """The member (and line) the data comes from."""
    left_out: str = ""
    """What was not drawn, a sentence."""
    strong: frozenset[tuple[int, int]] = frozenset()
    """(row, column) of the cells of the data table that stand out."""

    def widths(self) -> list[int]:
        """Return the share of each column of the data table, in per cent, by what stands in it."""
        longest = [
            max([7, len(name) + 2, *(min(len(row[at]), 34) for row in self.rows[:200])]) + 3
            for at, name in enumerate(self.head)
        ]
        return [round(100 * length / sum(longest)) for length in longest]


class Bar(NamedTuple):
    """One horizontal bar."""

    label: str
    value: str
    share: float
    """Its length, 0 to 1."""
    y: float
    tone: str = "plain"
    """plain, strong or faint."""
    low: float = 0.0
    high: float = 0.0
    """Where both are given: a whisker from `low` to `high`, in shares."""


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart: geometry in pixels of its own viewBox."""

    bars: Sequence[Bar]
    width: int
    label_width: float
    height: float
    step: int = 22
    unit: str = ""
    gaps: Sequence[float] = field(default_factory=list)
    """Heights at which a thin rule separates groups."""


CHAR = 6.6
"""Mean advance of a character at 12 px in the system sans-serif faces, in pixels; wide enough for DejaVu Sans."""

VALUE_WIDTH = 130


def bars(items: Sequence[tuple[str, float, str, str]], width: int = 640, unit: str = "") -> Bars:
    """Return a bar chart of (label, number, number as written, tone)."""
    longest = max((value for _, value, _, _ in items), default=0) or 1
    labels = [clip(visible(label), 40) for label, _, _, _ in items]
    label_width = min(290.0, max((len(label) for label in labels), default=0) * CHAR + 14)
    drawn = [
        Bar(label, written, max(value, 0) / longest, index * 22.0, tone)
        for index, (label, (_, value, written, tone)) in enumerate(zip(labels, items, strict=True))
    ]
    return Bars(drawn, width, label_width, len(drawn) * 22.0 + 4, unit=unit)


def records(case: Case, table: str, *columns: str) -> list[Record]:
    """Return the rows of a table, with these columns and where they stand; empty where the table is not there."""
    frame = case.tables.get(table)
    if frame is None or frame.empty:
        return []
    wanted = frame.reindex(columns=["member", "line", *columns])
    return [{str(name): _known(value) for name, value in row.items()} for row in wanted.to_dict("records")]


def _known(value: Any) -> Any:
    """Return the value, or None for any of pandas' ways to say that there is none."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value):
        return None
    return value


def place(row: Record) -> str:
    """Return `member:line` of a row."""
    return f"{row['member']}:{row['line']}"


def number(value: float | int | None, digits: int = 0) -> str:
    """Return a number with thousands separated by commas, `–` where it is missing."""
    if value is None:
        return "–"
    return f"{value:,.{digits}f}" if digits or value != int(value) else f"{int(value):,}"


def share(part: float, whole: float) -> str:
    """Return a share in per cent, never rounded up to 100 nor down to 0."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    if 99.99 < percent < 100:
        return "over 99.99 %"
    if 0 < percent < 0.01:
        return "under 0.01 %"
    digits = 2 if percent > 99 or percent < 1 else 1
    return f"{percent:.{digits}f} %" if 0 < percent < 100 else f"{percent:.0f} %"


def duration(seconds: float) -> str:
    """Return a length of time in the unit that reads best."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 600:
        return f"{seconds:,.1f} s".replace(".0 s", " s")
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def stamp(at: datetime, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time of day; without the year where the log gives none and the year is only a stand-in."""
    return at.strftime(form.replace("%Y-", "") if at.year == YEARLESS else form)


def plural(count: int, one: str, many: str = "") -> str:
    """Return `1 thing`, `2 things`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


WRITTEN = {
    **{name: name.upper() for name in ("rcu", "oom", "tsc", "hpet", "cpu", "nmi", "io", "mce", "nfs", "tcp")},
    "alloc": "page allocation",
    "netdev": "network device",
    "mem": "memory",
}
"""How parts of a kind's name are written out."""


def words(name: str) -> str:
    """Return a kind as words: `rcu_stall` as `RCU stall`."""
    text = " ".join(WRITTEN.get(part, part) for part in name.replace("_", " ").split())
    return text[:1].upper() + text[1:]
