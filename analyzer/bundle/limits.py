"""What one walk through a bundle may cost, what it has cost so far, and the gaps it met."""

from __future__ import annotations

import re
from dataclasses import dataclass

from parsers.shapes import Gap

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

MAX_NOTES = 1_000
"""Gaps kept of one walk, and of one capture: a crafted zip can refuse ten thousand entries, and nobody reads the
thousandth sentence."""

MAX_NAME = 1_000
"""Characters of a member's name that are shown. A path on Linux ends at 4,096 bytes, real ones in bundles at 250."""

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line and paragraph separators, direction overrides, lone surrogates."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a walk stops. What lies beyond a limit becomes a gap; the analysis goes on with what was read."""

    depth: int = 5
    """Archives inside one another. A collection of sosreports is a tar of tar.xz (2), a ticket's attachment may wrap
    it in a zip (3) and the logs inside are gzipped (4); an archive that contains itself never ends."""
    levels: int = 200
    """Directories inside one another. The walk needs a frame of Python's stack for each; /sys in a sosreport has 20."""
    members: int = 100_000
    """Members handed out. Large sosreports have some 30,000 files."""
    entries: int = 1_000_000
    """Names looked at, links and directories included: a sosreport's /sys has several links for each file."""
    member_bytes: int = 4 * GIB
    """Bytes of one member. The longest perf script text and journals met are below 2 GiB."""
    total_bytes: int = 64 * GIB
    """Bytes read or decompressed, all levels together: bounds the time (xz gives 100 MB/s, so eleven minutes)."""
    ratio: int = 1_000
    """Decompressed to compressed bytes. Logs that repeat one line reach 100 to 300 in xz and zstd; deflate cannot
    exceed 1,032, while a bomb in xz or bzip2 reaches 7,000 to 1,000,000."""
    ratio_free_bytes: int = 64 * MIB
    """Output below which the ratio is not looked at: a small log of one repeated line is no bomb."""
    header_bytes: int = 1 * MIB
    """A pax or GNU long-name header of a tar, which has to be held in memory. Genuine ones are below 10 KiB."""
    directory_bytes: int = 32 * MIB
    """The directory at the end of a zip: 300,000 entries with names of 60 characters."""
    spool_bytes: int = 2 * GIB
    """A zip inside another archive has to be read out of order, so it is kept aside (in memory up to 8 MiB, then in
    an unnamed temporary file) up to this size."""


class Ledger:
    """The account of one walk: bytes spent, entries met, gaps noted."""

    def __init__(self, limits: Limits, notes: list[Gap]) -> None:
        self.limits = limits
        self._notes = notes
        self._noted = 0
        self._last = 0
        self._spent = 0
        self._entries = 0
        self._members = 0
        self.exhausted = False

    def note(self, address: str, what: str) -> None:
        """Keep a gap; from MAX_NOTES on, the last one only counts."""
        self._noted += 1
        if self._noted < MAX_NOTES:
            self._notes.append(Gap(address, 0, what))
            return
        more = self._noted - MAX_NOTES + 1
        gap = Gap(address, 0, f"{more:,} more parts of the bundle could not be read; the last: {what}")
        if self._noted == MAX_NOTES:
            self._last = len(self._notes)
            self._notes.append(gap)
        else:
            self._notes[self._last] = gap

    def spend(self, size: int, address: str) -> bool:
        """Return whether `size` more bytes may be read; the first refusal is noted and ends the walk."""
        self._spent += size
        if self._spent > self.limits.total_bytes:
            self._exhaust(address, f"the limit of {amount(self.limits.total_bytes)} in all was reached")
        return not self.exhausted

    def enter(self, address: str) -> bool:
        """Return whether one more name may be looked at."""
        self._entries += 1
        if self._entries > self.limits.entries:
            self._exhaust(address, f"the limit of {self.limits.entries:,} names was reached")
        return not self.exhausted

    def admit(self, address: str) -> bool:
        """Return whether one more member may be handed out."""
        self._members += 1
        if self._members > self.limits.members:
            self._exhaust(address, f"the limit of {self.limits.members:,} members was reached")
        return not self.exhausted

    def _exhaust(self, address: str, why: str) -> None:
        if not self.exhausted:
            self.note(address, f"{why}: from here on nothing was read")
        self.exhausted = True


def amount(size: int) -> str:
    """Return a size as people say it: `4 GiB`, `1 MiB`, `512 bytes`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit:,} {name}"
    return f"{size:,} bytes"


def shown(name: str) -> str:
    """Return a member's name fit to be shown: what could move a cursor or break an encoder is backslash-escaped."""

    def escaped(found: re.Match[str]) -> str:
        code = ord(found[0])
        if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8, as surrogateescape decodes it
            code -= 0xDC00
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    clipped = name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"
    return UNSAFE.sub(escaped, clipped)
