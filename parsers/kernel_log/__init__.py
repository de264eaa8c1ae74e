"""The kernel log, however it was carried: dmesg, syslog, the journal, netconsole, pstore, a serial console, a mail.

    [78972.620129] ntpd: page allocation stalls for 272380ms, order:0, mode:0x24000c0(GFP_KERNEL)
    Aug 16 01:14:51 myhost systemd-journald[13812]: Missed 17171 kernel messages
    Apr 15 18:22:57 srv kernel: Measured 120 cycles TSC warp between CPUs, turning off TSC clock.

Every recognised message is a row of `kernel_event`; what its family understands of it is a row of that family's own
table (`rcu_stall`, `alloc_stall`, `clock_event`, `boot`, `log_loss`, `stack_frame`, …), with the same `incident` where
the table has that column. All of them are present once one kernel message was read, `boot` only where the log shows
a boot from its beginning: a ring buffer that starts later cannot refute what is printed at boot.

Read in two tiers. `scan` finds the lines that hold any literal of any family in the raw bytes; `reader` takes the
prefixes off around them (`prefix`, `stamps`; `records` where a message is not a line) and asks the families. A family
is a module of this folder with LITERALS and `read`, see `message`. `ledger` names incidents and keeps counts exact:
of one incident the first 200 messages, the longest and the last have rows, of one kind 5,000; what lies between is in
the last row's `repeats`.

Where the formats are defined: kernel/printk/printk.c, Documentation/ABI/testing/dev-kmsg, dmesg(1), journalctl(1),
RFC 3164, RFC 5424, and for each message the file its family's docstring names.
"""

from __future__ import annotations

from parsers.kernel_log import beginning, ledger, reader
from parsers.shapes import Capture, Parsed, Table

BEGINS = beginning.BEGINS
_FAMILIES = reader.families(__name__)
TABLES: dict[str, Table] = ledger.TABLES | {
    name: table for family in _FAMILIES for name, table in family.TABLES.items()
}
CAPTURES = dict.fromkeys(TABLES, ("a kernel log", "journalctl -k -o short-precise")) | {
    "boot": ("a kernel log that reaches back to the boot", "journalctl -k -b -o short-precise")
}
_LITERALS = tuple(literal.decode() for family in _FAMILIES for literal in family.LITERALS)


def sniff(head: str) -> bool | None:
    """Return whether a text is a kernel log, or a syslog or journal in which kernel messages stand."""
    return beginning.sniff(head, _LITERALS)


def parse(capture: Capture) -> Parsed:
    """Return rows and gaps of a kernel log; never raises on damaged text.

    Times are UTC; a stamp without zone is taken for UTC, one without a year stands in the year 1904. Loss markers,
    call traces without frames and overlong lines become gaps. Nothing is present where no kernel message was met.
    """
    return reader.Reader(capture, TABLES, _FAMILIES).read()
