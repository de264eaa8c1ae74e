"""What passes between the reader of a kernel log and its message families.

A family is a module of this folder. It owns its literals, its grammar and its tables:

    TABLES    {name: Table}
    LITERALS  tuple of bytes: a line that holds none of them is never an anchor of this family
    settle(rows) -> None   optional: joins what only the whole capture shows, in place (a tick rate, a kill's context)
    read(block: Block) -> Iterator[Event | Loss | Aside]

`read` is called once for each line that holds one of the family's literals; `block[0]` is that line and
`block[1:]` are the messages after it, prefix stripped, of the same host and (where the kernel prints it) the same
caller. A family reads ahead as far as it understands; reading ahead consumes nothing, so that an anchor inside
another's block (Mem-Info inside an allocation stall) is still read in its own right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from parsers.shapes import Row

YEARLESS = 1904
"""A stamp that gives no year (RFC 3164) is placed in this leap year; the case moves it into the year that the
rest of the bundle shows; where nothing does it stays there, and reports show it without a year."""


class Message(NamedTuple):
    """One line of a kernel log, its prefix taken apart."""

    number: int
    """Line number in the member."""
    text: str
    """The message: level, time stamps, host, `kernel:` and caller removed; its own leading blanks kept."""
    raw: str
    """The line as it stands in the member."""
    uptime_s: float | None = None
    at: int | None = None
    """Nanoseconds since the epoch, UTC; in the year YEARLESS where the stamp gives none."""
    host: str = ""
    caller: str = ""
    """`T12` (task) or `C3` (CPU), printed with CONFIG_PRINTK_CALLER since 5.1."""
    ended: bool = True
    """Whether a newline ends the line; without one a capture's last line may lack its last digits."""


Block = Sequence[Message]
"""The anchor line and up to MAX_AHEAD messages after it."""

MAX_AHEAD = 160
"""How far a family may read ahead, in messages. A Mem-Info dump of 8 nodes is 90 lines, a stall with the traces of
two CPUs some 120."""


@dataclass(slots=True)
class Event:
    """A recognised kernel message: always a row of `kernel_event`, and of `table` where the family has one."""

    kind: str
    """`kernel_event.kind`, e.g. "rcu_stall"."""
    severity: str
    """info, low, medium, high or critical: by what the line itself says (duration, consequence)."""
    table: str = ""
    row: Row = field(default_factory=dict)
    """The family table's own columns. `cpu`, `pid` and `comm` found here are copied to `kernel_event`."""
    repeat_of: tuple[object, ...] | None = None
    """Reports of one stuck thing share this key and become one incident; None: an incident of its own."""
    lines: int = 1
    """How many messages of the block, from the anchor on, make the excerpt."""
    more: list[tuple[str, Row]] = field(default_factory=list)
    """Further rows of other tables (zone lines, stack frames): (table, row); a row may set its own `line`."""
    asks: str = ""
    """The `about` of an Aside whose facts this event takes over, where one stands shortly before it."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Something is known to be lost or damaged at this place: becomes a gap, and a row of `log_loss` with `lost`."""

    what: str
    kind: str = ""
    """journald, printk, ratelimit, …; empty for damage, which makes only a gap."""
    lost: int | None = None
    source: str = ""
    """Whose messages were lost, where the line names it."""
    of: str = ""
    """The kind of event whose count this makes a floor, where the source shows it: hung_task, alloc_stall, …"""


@dataclass(frozen=True, slots=True)
class Aside:
    """What a line tells about the lines after it without being an event: the task a trace is of, the machine."""

    about: str
    """What it speaks of: "task", "tsc_sync"; "boot" for facts of the boot it stands in."""
    facts: Row
    """Columns to values; an event that asks takes over those it has not itself."""
