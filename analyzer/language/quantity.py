"""Quantities with their units: `60s` against a column whose name says milliseconds."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

_TIME = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_SIZE = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_RATE = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}

UNITS: dict[str, tuple[str, Fraction]] = {
    **{unit: ("time", Fraction(size)) for unit, size in _TIME.items()},
    **{unit: ("size", Fraction(size)) for unit, size in _SIZE.items()},
    **{unit: ("frequency", Fraction(size)) for unit, size in _RATE.items()},
    "%": ("ratio", Fraction(1, 100)),
    "jiffies": ("jiffies", Fraction(1)),
}
"""Unit to (dimension, size in the dimension's base unit). A jiffy is a dimension of its own: how long it lasts
depends on the kernel's CONFIG_HZ."""

SUFFIXES = {
    "ns": "ns",
    "us": "us",
    "ms": "ms",
    "s": "s",
    "min": "min",
    "bytes": "B",
    "kb": "KiB",  # the kernel's kB is 1,024 bytes: fs/proc/meminfo.c shifts pages by PAGE_SHIFT - 10
    "mb": "MiB",
    "hz": "Hz",
    "khz": "kHz",
    "mhz": "MHz",
    "ghz": "GHz",
    "percent": "%",
    "pct": "%",
    "jiffies": "jiffies",
}
"""The last word of a column's name to the unit its values are in."""

WRITABLE = [unit for unit in UNITS if unit != "jiffies"]
"""The units a rule may write after a number."""


class Quantity(NamedTuple):
    """A number with its unit, as written in a rule."""

    amount: Fraction
    unit: str
    written: str
    """As in the rule: `60s`."""


class UnitError(ValueError):
    """Units that do not fit; the message is the cause, `cure` what to write instead."""

    def __init__(self, why: str, cure: str) -> None:
        super().__init__(why)
        self.cure = cure


def of_column(column: str) -> str:
    """Return the unit that a column's name states, `ms` for `duration_ms`; empty where it states none."""
    return SUFFIXES.get(column.rpartition("_")[2], "") if "_" in column else ""


def factor(unit: str, into: str) -> Fraction:
    """Return what turns a number in `unit` into one in `into`; raises UnitError for another dimension."""
    (dimension, size), (other, target) = UNITS[unit], UNITS[into]
    if dimension != other:
        fitting = ", ".join(name for name in WRITABLE if UNITS[name][0] == other)
        cure = f"write a {other} ({fitting})" if fitting else "write a plain number"
        raise UnitError(f"{unit} is a {dimension}, but a {other} in {into} stands beside it", cure)
    return size / target


def converted(quantity: Quantity, into: str) -> int | float:
    """Return the quantity as a number in the unit `into`; a percentage beside a plain number is a ratio."""
    if not into:
        if quantity.unit != "%":
            raise UnitError(
                f"{quantity.written} stands beside a number whose name states no unit", "write a plain number"
            )
        return number(quantity.amount / 100)
    return number(quantity.amount * factor(quantity.unit, into))


def number(value: Fraction) -> int | float:
    """Return a fraction as an int where it is one, else as a float."""
    return value.numerator if value.denominator == 1 else float(value)


def exact(value: float, unit: str) -> str:
    """Return a number as it was measured, with thousands separators and its unit: `272,380 ms`."""
    shown = {"KiB": "kB", "B": "bytes"}.get(unit, unit)
    return f"{plain(value)} {shown}".rstrip()


def plain(value: float) -> str:
    """Return a number with thousands separators, `735,110`; one with decimals is cut to three digits."""
    if isinstance(value, int) or (math.isfinite(value) and value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.1f}" if 100 <= abs(value) < 1e15 else f"{value:.3g}"


def percent(value: float) -> str:
    """Return a ratio as a percentage with two decimals: `99.96 %`; never rounded up to 100 % nor down to 0 %."""
    hundredfold = value * 100
    if 99.99 < hundredfold < 99.995 or not 99.99 < hundredfold < 100:
        if 0 < hundredfold < 0.01:
            return "less than 0.01 %"
        return f"{hundredfold:,.2f}".rstrip("0").rstrip(".") + " %"
    return "more than 99.99 %"


def duration(value: float, unit: str) -> str:
    """Return a time for people, truncated so that nothing reads longer than it was: `4 min 32 s` for 272,380 ms."""
    nanoseconds = int(Fraction(value) * UNITS[unit][1]) if math.isfinite(value) else 0
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if left < 60 * 10**9:
        fitting = next((name for name in ("s", "ms", "us") if left >= _TIME[name]), "ns")
        return f"{sign}{left / _TIME[fitting]:.3g} {fitting}"
    parts = []
    for name in ("d", "h", "min", "s"):
        whole, left = divmod(left, _TIME[name])
        parts.append((whole, name))
    first = next(place for place, (whole, _) in enumerate(parts) if whole)
    return sign + " ".join(f"{whole:,} {name}" for whole, name in parts[first : first + 2] if whole)


def same_dimension(one: str, other: str) -> bool:
    """Return whether two units measure the same thing."""
    return bool(one and other) and UNITS[one][0] == UNITS[other][0]
