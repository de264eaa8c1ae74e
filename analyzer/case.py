"""From a bundle to a case: every capture read, rows gathered into pandas tables, gaps and facts beside them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from parsers.shapes import Gap


@dataclass(frozen=True, slots=True)
class InventoryEntry:
    """One section of one member: what it was taken for and what came of it."""

    member: str
    section: str
    """`lines 12-40`, or empty for a whole member."""
    capture: str
    """The command that printed it, where known."""
    parser: str
    """The parser that read it; empty when nothing recognised it."""
    rows: int
    bytes: int
    note: str = ""
    """Why it was not read, where it was not: `not recognised`, `empty`, `binary`, …"""


@dataclass(slots=True)
class Case:
    """All tables, gaps and facts of one analysis."""

    bundle: str
    """The bundle's path as given."""
    tables: dict[str, pd.DataFrame]
    """The *present* tables, perhaps empty; a table that is not here had no capture that could have filled it."""
    gaps: list[Gap] = field(default_factory=list)
    inventory: list[InventoryEntry] = field(default_factory=list)
    facts: dict[str, list[str]] = field(default_factory=dict)
    """`hosts`, `kernels`, `hardware`, `cpus`, `first_at`, `last_at`: each a list of distinct values."""
