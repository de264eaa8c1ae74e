"""Time stamps in front of kernel messages: each form to nanoseconds since the epoch, UTC.

A stamp without a zone (syslog, `dmesg -T`, netconsole receivers) is local time of a place the log does not name: it
is read as UTC. One without a year is put into the year YEARLESS.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from parsers.kernel_log.message import YEARLESS

SECOND = 1_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
MONTHS = {name: number for number, name in enumerate(_NAMES.split(), start=1)}

ZONE_HOURS = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3,
    "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8,
    "PDT": -7,
}  # fmt: skip
"""Zone abbreviations that `journalctl -o short-full` prints, where they mean one place; others are read as UTC."""


@lru_cache(maxsize=4096)
def calendar(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    """Return a civil time taken as UTC, None for one that no calendar has; a leap second is the second after.

    Nanoseconds in 64 bits end in 2262: what lies beyond is damage, as is what lies before there were clocks in logs.
    """
    if not 1900 <= year < 2262:
        return None
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds + (second == 60)) * SECOND


def fraction(digits: str | None) -> int:
    """Return the nanoseconds of a fraction's digits: `856449` is 856,449,000."""
    return int(digits[:9].ljust(9, "0")) if digits else 0


def yearless(month: str, day: str, clock: str, digits: str | None = None) -> int | None:
    """Return `Aug`, `14`, `06:12:04` and a fraction's digits in the year YEARLESS (RFC 3164 4.1.2)."""
    return named(str(YEARLESS), month, day, clock, digits)


def named(year: str, month: str, day: str, clock: str, digits: str | None = None) -> int | None:
    """Return a stamp whose month is a name, or a number as logcat prints it."""
    at = _second(year, month, day, clock)
    return at + fraction(digits) if digits and at is not None else at


@lru_cache(maxsize=4096)
def _second(year: str, month: str, day: str, clock: str) -> int | None:
    """Return a stamp's whole second: neighbours in a log share it."""
    number = MONTHS.get(month) or (int(month) if month.isdigit() else 0)
    hour, minute, second = clock.split(":")
    return calendar(int(year), number, int(day), int(hour), int(minute), int(second))


def iso(date: str, clock: str, digits: str | None, zone: str | None) -> int | None:
    """Return `2017-08-14`, `06:12:04`, a fraction's digits and a zone (`Z`, `+0200`, `+02:00`, `CEST`, none)."""
    year, month, day = date.split("-")
    at = named(year, month, day, clock, digits)
    if at is None or not zone:
        return at
    if zone[0] in "+-":
        numbers = zone[1:].replace(":", "").ljust(4, "0")
        shift = int(numbers[:2]) * 3600 + int(numbers[2:4]) * 60
        return at - (shift if zone[0] == "+" else -shift) * SECOND
    return at - ZONE_HOURS.get(zone, 0) * 3600 * SECOND
