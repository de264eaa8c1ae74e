"""What a host is: its name, kernel, processor, distribution, and whether it is virtual.

    $ uname -a
    Linux db42 4.9.0-3-amd64 #1 SMP Debian 4.9.30-2+deb9u3 (2017-08-06) x86_64 GNU/Linux

Table: `host_fact`, a row for each fact. Also read: `lscpu`, `hostnamectl`, `lsb_release -a`, `hostname`, `date`,
/proc/cpuinfo, /proc/version, /proc/cmdline, /etc/os-release, /etc/lsb-release, /etc/hostname.
Format: uname(1), arch/x86/kernel/cpu/proc.c (`show_cpuinfo`), util-linux lscpu, os-release(5), hostnamectl(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from parsers.shapes import Capture, Column, Gap, Parsed, Row, Table, excerpt

TABLES = {
    "host_fact": Table(
        "one fact about a host",
        {
            "name": Column(
                "str",
                "hostname, kernel, machine, cpu_model, cpu_flags_tsc, cpus, os, hypervisor, virtual, date, cmdline",
            ),
            "value": Column("str", "as printed; cpu_flags_tsc: the flags about the TSC; cpus: how many"),
        },
    )
}
CAPTURES = dict.fromkeys(TABLES, ("what the host is", "uname -a; cat /etc/os-release; lscpu"))
BEGINS = re.compile(rb"Linux \S+ \d\S* #\d.* GNU/Linux\s*$|Architecture: +\S+\s*$|processor\s+: 0\s*$")

Fact = tuple[str, str]

TSC_FLAGS = ("tsc", "constant_tsc", "nonstop_tsc", "tsc_known_freq", "tsc_reliable", "rdtscp")
"""Flags that say whether the TSC can be the clocksource; tsc_adjust and tsc_deadline_timer are other matters."""

UNAME = re.compile(
    r"Linux (?P<hostname>\S+) (?P<kernel>\d\S*)(?: #\d.*? (?P<machine>x86_64|aarch64|i[3-6]86|ppc64(?:le)?|s390x|"
    r"armv\w+|riscv64)(?: .*)?)?$"
)
WHOLE_UNAME = re.compile(r"Linux .* (?:GNU/Linux|x86_64|aarch64)\s*$")
VERSION = re.compile(r"Linux version (?P<kernel>\S+) \(")
ASSIGNED = re.compile(r"(?P<key>[A-Z_]+)=(?P<quote>[\"']?)(?P<value>.*)(?P=quote)\s*$")
DATE = re.compile(r"(?:[A-Z][a-z]{2},? .*\d\d:\d\d:\d\d.*\d{4}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d).*$")
HOSTNAME = re.compile(r"[A-Za-z0-9][\w.-]*$")

KEYS = {
    "model name": "cpu_model", "Model name": "cpu_model", "Architecture": "machine", "CPU(s)": "cpus",
    "Hypervisor vendor": "hypervisor", "Virtualization type": "virtual", "Static hostname": "hostname",
    "Operating System": "os", "Description": "os", "Universal time": "date",
}  # fmt: skip
"""`key: value` lines of /proc/cpuinfo, lscpu, hostnamectl, lsb_release and timedatectl to facts."""
ASSIGNMENTS = {"PRETTY_NAME": "os", "DISTRIB_DESCRIPTION": "os"}

KIND_OF_COMMAND = (
    ("uname", re.compile(r"\buname\b")),
    ("keys", re.compile(r"\b(?:lscpu|hostnamectl|lsb_release|timedatectl)\b|/proc/cpuinfo")),
    ("assigned", re.compile(r"/etc/(?:os|lsb)-release")),
    ("version", re.compile(r"/proc/version\b")),
    ("cmdline", re.compile(r"/proc/cmdline\b")),
    ("hostname", re.compile(r"^\$ (?:sudo )?(?:/\S*/)?hostname(?: -\w+)*\s*$|/etc/hostname\b")),
    ("date", re.compile(r"^\$ (?:sudo )?(?:/\S*/)?date(?: .*)?$")),
)
OPENINGS = (
    ("uname", re.compile(r"Linux \S+ \d\S* #\d.* GNU/Linux\s*$")),
    (
        "keys",
        re.compile(
            r"Architecture: +\S|processor\s+: 0|\s*Static hostname: \S|Distributor ID:\s"
            r"|Description:\s.*(?:Linux|Ubuntu|release)"
        ),
    ),
    ("assigned", re.compile(r"(?:PRETTY_NAME|NAME|DISTRIB_\w+)=")),
)
"""What a capture without known command begins with; the rest is told by the command only."""


def sniff(head: str) -> bool | None:
    """Return whether this states facts about a host: by the command, or by the first line."""
    return bool(_kind(head))


def parse(capture: Capture) -> Parsed:
    """Return the `host_fact` rows of a capture, each fact once, where it stands first.

    Lines that state none of the facts are passed over; a capture that states none at all becomes a gap. Never raises.
    """
    rows: list[Row] = []
    gaps: list[Gap] = []
    seen: set[Fact] = set()
    read: Callable[[str], Iterator[Fact]] | None = None
    processors: Row | None = None
    number = capture.first_line
    lines = list(capture.lines())
    kind = ""
    for number, text in lines:
        if read is None:
            kind = _kind(f"$ {capture.command}\n{text}") or _kind(text) or "keys"
            read = READERS[kind]
        if number == lines[-1][0] and capture.open_end and not (kind == "uname" and WHOLE_UNAME.match(text)):
            gaps.append(Gap(capture.member, number, "the last line has no end, it may be cut: not read"))
            processors = None
            break
        common = {"line": number, "host": capture.host or None}
        common["excerpt"] = excerpt([text])
        if re.match(r"processor\s*: \d", text):
            # /proc/cpuinfo states no number: its blocks are counted.
            if processors is None:
                processors = {"name": "cpus", "value": "0", **common}
            processors["value"] = str(int(processors["value"]) + 1)
        for fact in read(text):
            if fact not in seen and not (fact[0] == "cpus" and any(name == "cpus" for name, _ in seen)):
                seen.add(fact)
                rows.append({"name": fact[0], "value": fact[1], **common})
    rows += [processors] if processors else []
    if not rows and not gaps:
        gaps.append(Gap(capture.member, number, "states nothing known about the host"))
    return Parsed({"host_fact": rows} if rows else {}, gaps + capture.gaps())


def _kind(head: str) -> str:
    """Return which of READERS understands a capture, empty for none."""
    first, _, rest = head.partition("\n")
    if first.startswith("$ "):
        if re.search(r"\bdiff\b", first):
            return ""
        kind = next((kind for kind, pattern in KIND_OF_COMMAND if pattern.search(first)), "")
        if kind:
            # sos writes timedatectl to a file named `date`.
            return "keys" if kind == "date" and "Local time:" in rest[:200] else kind
        head = rest
    opening = next((line for line in head.split("\n", 5) if line.strip()), "")
    return next((kind for kind, pattern in OPENINGS if pattern.match(opening)), "")


def _uname(text: str) -> Iterator[Fact]:
    if found := UNAME.match(text.strip()):
        yield from ((name, value) for name, value in found.groupdict().items() if value)


def _version(text: str) -> Iterator[Fact]:
    if found := VERSION.match(text):
        yield "kernel", found["kernel"]


def _keys(text: str) -> Iterator[Fact]:
    key, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not value:
        return
    if key in KEYS:
        yield KEYS[key], value
    elif key == "Kernel" and value.startswith("Linux "):
        yield "kernel", value.removeprefix("Linux ")
    elif key == "Virtualization" and value.islower():
        # hostnamectl names the hypervisor, lscpu the processor's own ability (`VT-x`).
        yield "hypervisor", value
        yield "virtual", "yes"
    elif key in ("flags", "Flags"):
        flags = value.split()
        if tsc := [flag for flag in TSC_FLAGS if flag in flags]:
            yield "cpu_flags_tsc", " ".join(tsc)
        if "hypervisor" in flags:
            yield "virtual", "yes"


def _assigned(text: str) -> Iterator[Fact]:
    found = ASSIGNED.match(text)
    if found and found["key"] in ASSIGNMENTS:
        yield ASSIGNMENTS[found["key"]], found["value"]


def _cmdline(text: str) -> Iterator[Fact]:
    if text.strip():
        yield "cmdline", text.strip()


def _hostname(text: str) -> Iterator[Fact]:
    if HOSTNAME.match(text.strip()):
        yield "hostname", text.strip()


def _date(text: str) -> Iterator[Fact]:
    if DATE.match(text.strip()):
        yield "date", text.strip()


READERS: dict[str, Callable[[str], Iterator[Fact]]] = {
    "uname": _uname, "version": _version, "keys": _keys, "assigned": _assigned, "cmdline": _cmdline,
    "hostname": _hostname, "date": _date,
}  # fmt: skip
