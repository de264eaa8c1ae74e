"""Boots in a kernel log: where each begins, on what machine and kernel, and which clocksource it ended on.

    [    0.000000] Linux version 4.9.0-3-amd64 (debian-kernel@lists.debian.org) (gcc version 6.3.0 …) #1 SMP …
    [    0.000000] Command line: BOOT_IMAGE=/boot/vmlinuz-4.9.0-3-amd64 root=UUID=… ro quiet

Table `boot` has a row for each boot whose beginning the log shows; a ring buffer that starts later has none, and then
the table is not present at all. Formats: init/main.c, arch/x86/kernel/setup.c, drivers/firmware/dmi_scan.c,
arch/x86/kernel/cpu/hypervisor.c; `-- Boot … --` and `-- Reboot --` are journalctl's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from parsers.kernel_log.message import Aside, Block, Event, Message
from parsers.kernel_log.stamps import SECOND
from parsers.shapes import Column, Row, Table

TABLES = {
    "boot": Table(
        "a boot whose beginning the log shows",
        {
            "kernel": Column("str", "release, as `uname -r` prints it"),
            "cmdline": Column("str", "the kernel's command line"),
            "hardware": Column("str", "maker, model and firmware as DMI names them, or the device tree's model"),
            "cpu_model": Column("str", "the boot processor's name"),
            "hypervisor": Column("str", "the hypervisor it runs on, where the kernel found one"),
            "first_line": Column("Int64", "first line of the boot in the member"),
            "last_line": Column("Int64", "last line of the boot in the member"),
            "final_clocksource": Column("str", "what the last clocksource switch of this boot chose"),
        },
    )
}

LITERALS = (
    b"Linux version ",
    b"ommand line: ",
    b"DMI: ",
    b"achine model: ",
    b"CPU0: ",
    b"Hypervisor detected: ",
    b"paravirtualized kernel on ",
)

KERNEL = re.compile(r"Linux version (\S{1,200})")
FACTS = (
    ("cmdline", re.compile(r"(?:Kernel command|Command) line: ?(.{1,4096})")),
    ("hardware", re.compile(r"(?:DMI: |OF: fdt: ?|Machine model: |fdt: )(?:Machine model: )?(.{3,300})")),
    ("cpu_model", re.compile(r"(?:smpboot: )?(?:\.\d+: )?CPU0: (.{3,160})")),
    ("hypervisor", re.compile(r"Hypervisor detected: (.{1,80})")),
    ("hypervisor", re.compile(r"Booting paravirtualized kernel on (?!bare hardware)(.{1,80})")),
)
CPU_STEPPING = re.compile(r"\s+(?:\(family: .*|\(fam: .*|stepping .*)$")

NEAR_ZERO_S = 300.0
FALL_S = 60.0
"""Uptime that falls by this much, and to near zero or while the clock on the wall went on, is another boot. Less is
two CPUs printing out of turn."""
HEADING_LINES = 16
"""Kernels up to 3.x print a few lines (`Initializing cgroup subsys …`) before `Linux version`."""


def read(block: Block) -> Iterator[Event | Aside]:
    """Yield the boot a line begins, or the fact it tells about the boot it stands in."""
    text = block[0].text
    if found := KERNEL.match(text):
        yield Event("boot", "info", "boot", {"kernel": found[1]})
        return
    for name, pattern in FACTS:
        if (told := pattern.match(text)) and not (name == "cpu_model" and "hermal" in told[1]):
            value = CPU_STEPPING.sub("", told[1]).strip() if name == "cpu_model" else told[1].strip()
            yield Aside("boot", {name: value})


@dataclass(slots=True)
class Uptime:
    """How far the current boot of one host was followed."""

    number: int = 0
    first_line: int = 0
    """Line of the first message met in this boot."""
    uptime_s: float | None = None
    at: int | None = None
    row: Row | None = None
    """The boot's row, once `Linux version` was met."""


@dataclass(slots=True)
class Boots:
    """The boots of each host in a capture, followed line by line."""

    hosts: dict[str, Uptime] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def number(self, message: Message, *, begins: bool = False) -> int:
        """Return the boot a message belongs to; `begins` when it is the kernel's first, `Linux version`."""
        state = self.hosts.get(message.host)
        if state is None:
            state = self.hosts[message.host] = Uptime(0, message.number)
        elif _fell(state, message) or (begins and not _heading(state, message)):
            self._next(state, message)
        if message.uptime_s is not None:
            state.uptime_s = message.uptime_s
        if message.at is not None:
            state.at = message.at
        return state.number

    def _next(self, state: Uptime, message: Message) -> None:
        """Begin the host's next boot at this message."""
        if state.row:
            state.row["last_line"] = message.number - 1
        state.number, state.first_line, state.row = state.number + 1, message.number, None
        state.uptime_s = state.at = None

    def reboot(self, number: int) -> None:
        """Begin another boot on every host at a line where journalctl says so, unless nothing came before it."""
        for host, state in self.hosts.items():
            self._next(state, Message(number, "", "", None, None, host))

    def begun(self, message: Message, row: Row) -> None:
        """Take the row of a boot that begins with this message."""
        state = self.hosts[message.host]
        row["first_line"] = min(state.first_line, message.number)
        state.row = row
        self.rows.append(row)

    def tell(self, host: str, facts: Row) -> None:
        """Add facts to the current boot of a host: the first that names a column stands, the last clocksource."""
        state = self.hosts.get(host)
        if state and state.row is not None:
            for name, value in facts.items():
                if name == "final_clocksource" or name not in state.row:
                    state.row[name] = value

    def end(self, last_line: int) -> None:
        """Close the last boot of every host at the capture's last line."""
        for state in self.hosts.values():
            if state.row:
                state.row["last_line"] = last_line


def _fell(state: Uptime, message: Message) -> bool:
    """Return whether the uptime says that the host was booted since the message before."""
    if message.uptime_s is None or state.uptime_s is None or message.uptime_s > state.uptime_s - FALL_S:
        return False
    later = state.at is not None and message.at is not None and message.at > state.at + SECOND
    return later or message.uptime_s < NEAR_ZERO_S


def _heading(state: Uptime, message: Message) -> bool:
    """Return whether the boot that `Linux version` announces is the one already being followed."""
    if state.row is not None or message.number - state.first_line > HEADING_LINES:
        return False
    return state.uptime_s is None or state.uptime_s < 1.0
