"""Is this text a kernel log? Told from its first lines: their prefixes, or what the kernel says in them."""

from __future__ import annotations

import re

from parsers.kernel_log import prefix, records

LOOKED_AT = 400
"""Lines with text that are looked at."""
FEW = 3
"""A log without any prefix must look like the kernel's in so many lines."""

_DATE = (
    rb"(?:<\d{1,3}>(?:1 )?)?(?:[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d(?:\.\d+)?|\d{9,10}\.\d{6}"
    rb"|(?:[A-Z][a-z]{2} )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*(?: [A-Z]{3,4})?) "
)
_STAMP = (
    rb"(?:<\d{1,3}>)?(?:\*\* \d+ printk messages dropped \*\* ?)?"
    rb"\[ *\d{1,11}\.\d{6}(?: *<[^>\n]{0,20}>| +)?\][ \t\[\r\n]"
)

BEGINS = re.compile(
    rb"(?:> ?){0,4}[ \t]{0,8}(?:\x1b\[[\d;]*m)*(?:"
    + rb"|".join(
        (
            _STAMP,
            rb"(?:[\w.-]{1,64} )?login: " + _STAMP,  # a serial console, its prompt still open
            rb"<\d{1,3}>\[ *[TC]\d+\] |\[ {2,}[TC]\d+\] ",
            rb"\*\* \d+ printk messages dropped \*\*",
            _DATE + rb"[\w.:%@-]+ (?:\[?[a-z0-9]+\.[a-z]+\]? )?kernel(?:\[\d+\])?: ",
            _DATE + rb"[\w.:%@-]+ systemd-journald(?:\[\d+\])?: (?:Missed \d+ kernel messages|Suppressed \d+ messages)",
            _DATE + rb"[\w.:%@-]+ kernel - ",
            _DATE + rb"(?:[\d.]+:\d+ |std(?:out|err) [FP] )?(?:<\d{1,3}>)?\[ *\d{1,11}\.\d{6}\] ",
            rb"kernel: \[ *\d{1,11}\.\d{6}\] ",
            rb"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?: <[^>\n]{0,20}>)?\] ",
            rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{6}[+-]\d\d:\d\d ",
            rb"\[[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d\] |\[ *\+\d+\.\d{6}\] ",
            rb"(?:kern|user|daemon) *:(?:emerg|alert|crit|err|warn|notice|info|debug) *: ?(?:\x1b\[[\d;]*m)*\[",
            rb"(?:\d+\.\d[\w.+~-]*,)?\d{1,3},\d+,\d+,[c+-](?:,[\w-]+=[^,;\n]*)*;",
            rb"(?:Oops|Panic)#\d+ Part\d+\r?\n",
            rb"\d\d-\d\d \d\d:\d\d:\d\d\.\d+ +\d+ +\d+ [VDIWEF] KERNEL *: ",
        )
    )
    + rb")"
)
"""A line that begins a kernel log wherever it stands in a text."""

_TAG = r"[\w.:%@-]+ [\w./()@-]{1,64}"
SERVICE = re.compile(
    rf"(?:<\d{{1,3}}>)?(?:[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? {_TAG}(?:\[\d+\])?: "
    r"|(?:[A-Z][a-z]{2} )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)? ?(?:Z|[+-]\d\d:?\d\d|[A-Z]{3,4}) "
    rf"{_TAG}\[\d+\]: |\d{{9,10}}\.\d{{6}} {_TAG}\[\d+\]: )"
)
"""A line of another service in the same syslog or journal: kernel lines stand between such."""

KERNELISH = re.compile(
    r"\s{0,8}(?:[A-Za-z][\w./-]{1,20}(?: [\w.:-]{1,20})?:\s+\S"
    r"|\s*\(?\[<[0-9a-f]{8,16}>\]|\s+(?:\? )?[\w.]+\+0x[0-9a-f]+/0x"
    r"|Call [Tt]race:|CPU: \d+ |Pid: \d|RIP: |\s*</?[A-Z]{3,4}>|\s+(?:rcu: )?[\t ]*\d+-|[\t ]+\(|[0-9a-f ]{33,}$"
    r"|Node \d|\[ cut here|Measured \d+ cycles|Linux version|Command line|[A-Z][\w ]{2,40}$)"
)
RING = re.compile(r"(?:sudo )?(?:\S*/)?(?:dmesg\b|journalctl\b.*(?: -k\b| --dmesg\b| -[a-z]*k\b|_TRANSPORT=kernel))")


def sniff(head: str, literals: tuple[str, ...]) -> bool:
    """Return whether a text is a kernel log, or a syslog or journal that holds one.

    `head` may start with a line `$ COMMAND`. `literals` are the families': a log without any prefix must hold one.
    """
    command = ""
    if head.startswith("$ "):
        first, _, head = head.partition("\n")
        command = first[2:].strip()
    lines = [line for line in head.split("\n") if line.strip(" \t\r\0") and not line.startswith("-- ")][:LOOKED_AT]
    if not lines:
        return False
    if records.reading(head) in (records.json_lines, records.json_fields, records.export, records.verbose):
        return True
    begun = sum(1 for line in lines if BEGINS.match(line.encode("utf-8", "replace") + b"\n"))
    service = sum(1 for line in lines if SERVICE.match(prefix.clean(line)))
    if BEGINS.match(lines[0].encode("utf-8", "replace") + b"\n") or 2 * (begun + service) >= len(lines):
        return True
    if command.split("|")[0] and RING.match(command) and begun:
        return True
    kernelish = sum(1 for line in lines if KERNELISH.match(prefix.clean(line)))
    known = any(literal in head for literal in literals)
    if RING.match(command):
        return known or 2 * kernelish >= len(lines)
    return known and kernelish >= FEW and 5 * kernelish >= 3 * len(lines)
