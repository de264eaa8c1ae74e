"""The line with which the kernel introduces a stack dump: which task ran where, on which kernel.

    CPU: 16 PID: 13099 Comm: ntpd Tainted: G           O    4.9.43-cloudflare-2017.8.4 #1

Printed by dump_stack_print_info() (lib/dump_stack.c, earlier kernel/printk/printk.c) and, up to 3.9, as
`Pid: 511, comm: kmemleak Not tainted 2.6.31 #2`. `UID:` came by 6.12;
`Kdump: loaded` tells that a crash kernel is in place; RHEL writes
`-` for the taint flags it keeps for itself.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE = re.compile(
    r"(?:CPU: (?P<cpu>\d{1,18}) (?:UID: \d{1,18} )?PID: |Pid: )(?P<pid>\d{1,18}),? [Cc]omm: (?P<comm>.{1,20}?)\s{1,40}"
    r"(?:Kdump: loaded )?(?:(?P<clean>Not tainted)|Tainted: (?P<tainted>[A-Z -]{1,80}?))\s{1,40}(?P<kernel>\d\S*)(?=\s)"
)


class Running(NamedTuple):
    """The task that was running when the stack was dumped."""

    cpu: int | None
    """None up to Linux 3.9, which does not print it."""
    pid: int
    comm: str
    tainted: str
    """The taint letters with one blank between (`G O`), or `Not tainted`."""
    kernel: str
    """The release, as `uname -r` prints it."""


def running(text: str) -> Running | None:
    """Return the task, its CPU and the kernel that a line of `text` names, or None for any other line."""
    found = _LINE.search(text) if "omm: " in text else None  # most lines hold none, and `in` is faster
    if not found:
        return None
    cpu = found["cpu"]
    tainted = found["clean"] or " ".join(re.findall("[A-Z]+", found["tainted"]))
    return Running(int(cpu) if cpu else None, int(found["pid"]), found["comm"], tainted, found["kernel"])
