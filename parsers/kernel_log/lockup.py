"""CPUs and tasks that are stuck: soft and hard lockups, hung tasks, stuck workqueues, Linux 2.6.32 to 7.2.

    watchdog: BUG: soft lockup - CPU#1 stuck for 134s! [syz-executor4:4588]
    NMI watchdog: Watchdog detected hard LOCKUP on cpu 3
    INFO: task kworker/u4:6:10032 blocked for more than 143 seconds.
    BUG: workqueue lockup - pool cpus=2 node=0 flags=0x0 nice=0 stuck for 31s!

Tables `soft_lockup`, `hard_lockup`, `hung_task`, `workqueue_lockup`: one row per report. The first gives cpu 1,
duration_s 134, comm syz-executor4, pid 4588.

The text comes from kernel/watchdog.c and watchdog_hld.c, kernel/hung_task.c, kernel/workqueue.c and, for powerpc,
arch/powerpc/kernel/watchdog.c. The watchdog's prefix is absent up to 3.16, `NMI watchdog: ` up to 4.12, `watchdog: `
since 4.14. `INFO: NMI handler … took too long to run` is a slow handler and not read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.message import Block, Event, Loss
from parsers.shapes import Column, Row, Table

_INCIDENT = Column("str", "id shared by the reports of one stuck CPU or task")
_COMM = Column("str", "name of the task")
_PID = Column("Int64", "its pid")

TABLES = {
    "soft_lockup": Table(
        "one report of a CPU that did not schedule",
        {
            "incident": _INCIDENT,
            "cpu": Column("Int64", "the CPU"),
            "duration_s": Column("Int64", "for how long, in whole seconds"),
            "comm": _COMM,
            "pid": _PID,
        },
    ),
    "hard_lockup": Table(
        "one CPU reported as not taking interrupts",
        {
            "incident": _INCIDENT,
            "cpu": Column("Int64", "the CPU that is stuck"),
            "detected_by": Column("Int64", "the CPU that noticed, where it was another one and is named"),
        },
    ),
    "hung_task": Table(
        "one report of a task in uninterruptible sleep",
        {
            "incident": _INCIDENT,
            "comm": _COMM,
            "pid": _PID,
            "duration_s": Column("Int64", "it was blocked for more than this many seconds"),
            "blocker": Column("str", "comm:pid of the task that holds the lock, where the kernel knows"),
        },
    ),
    "workqueue_lockup": Table(
        "one report of a worker pool that makes no progress",
        {
            "incident": _INCIDENT,
            "cpus": Column("object", "tuple of the pool's CPUs"),
            "node": Column("Int64", "its NUMA node"),
            "flags": Column("str", "its flags, hexadecimal"),
            "nice": Column("Int64", "its nice level"),
            "duration_s": Column("Int64", "for how long it made no progress"),
        },
    ),
}

LITERALS = (
    b"BUG: soft lockup - CPU#",
    b"etected hard LOCKUP ",
    b"blocked for more than ",
    b"blocked in I/O wait for more than ",
    b"Future hung task reports are suppressed",
    b"BUG: workqueue lockup - pool",
    b" hogged CPU for >",
    b"Detected non-responsive CSD lock",
)

_SOFT = re.compile(r"BUG: soft lockup - CPU#(\d{1,18}) stuck for (\d{1,18})s! \[(.*):(\d{1,18})\]")
_HARD = re.compile(
    r"Watchdog detected hard LOCKUP on cpu (?P<cpu>\d{1,18})"
    r"|CPU (?P<self>\d{1,18}) self-detected hard LOCKUP "
    r"|CPU (?P<by>\d{1,18}) detected hard LOCKUP on other CPUs (?P<others>[\d,-]+)"
)
_HUNG = re.compile(r"INFO: task (.{1,31}):(\d{1,18}) blocked (?:in I/O wait )?for more than (\d{1,18}) seconds")
_BLOCKER = re.compile(r"INFO: task .*:(\d{1,18})(?: is)? blocked on an? .*? (?:owned|held) by task (.+:\d{1,18})\.")
_POOL = re.compile(
    r"BUG: workqueue lockup - pool(?: \d{1,18}:)?(?: cpus=(?P<cpus>[\d,-]+))?(?: node=(?P<node>-?\d{1,18}))?"
    r"(?: flags=(?P<flags>0x[0-9a-f]+))?(?: nice=(?P<nice>-?\d{1,18}))? .*?stuck for (?P<time>\d{1,18})s!"
)
_HOGGED = re.compile(r"workqueue: \S+ hogged CPU for >\d{1,18}us \d{1,18} times")
_CSD = re.compile(r"csd: Detected non-responsive CSD lock \(#\d{1,18}\) on CPU#(\d{1,18}), waiting (\d{1,18}) ns")
_CPU_RANGE = re.compile(r"(?<![\d-])(\d{1,5})(?:-(\d{1,5}))?(?![\d-])")

BLOCKER_LINES = 4
"""The lock's owner is named right after the complaint and its `Tainted:` and `echo 0 >` lines."""


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield what block[0] reports; a report cut before its numbers is told as damage."""
    text = block[0].text
    if "suppressed" in text and "hung task reports" in text:
        yield Loss("the kernel stopped reporting hung tasks here: their number is a floor", "ratelimit")
        return
    events = [*_soft(text), *_hard(text), *_hung(text, block), *_workqueue(text), *_csd(text)]
    if not events and any(word in text for word in ("BUG: soft lockup", "hard LOCKUP", "INFO: task ")):
        yield Loss("this line reports a lockup or a hung task, but it is cut or garbled")
    yield from events


def _soft(text: str) -> Iterator[Event]:
    """Yield a soft lockup; the watchdog repeats it every 20 s while the same task holds the CPU."""
    for cpu, seconds, comm, pid in _SOFT.findall(text):
        row = {"cpu": int(cpu), "duration_s": int(seconds), "comm": comm, "pid": int(pid)}
        level = "critical" if row["duration_s"] >= 60 else "high"
        yield Event("soft_lockup", level, "soft_lockup", row, ("soft_lockup", cpu, comm, pid))


def _hard(text: str) -> Iterator[Event]:
    """Yield a hard lockup for each CPU named as stuck."""
    found = _HARD.search(text)
    if not found:
        return
    stuck = cpu_list(found["others"]) if found["others"] else (int(found["cpu"] or found["self"]),)
    for cpu in stuck:
        row: Row = {"cpu": cpu}
        if found["by"]:
            row["detected_by"] = int(found["by"])
        yield Event("hard_lockup", "critical", "hard_lockup", row, ("hard_lockup", cpu))


def _hung(text: str, block: Block) -> Iterator[Event]:
    """Yield a hung task, with the owner of the lock it waits for (printed by 7.2)."""
    found = _HUNG.search(text)
    if not found:
        return
    row: Row = {"comm": found[1], "pid": int(found[2]), "duration_s": int(found[3])}
    for message in block[1 : BLOCKER_LINES + 1]:
        blocker = _BLOCKER.search(message.text)
        if blocker and int(blocker[1]) == row["pid"]:
            row["blocker"] = blocker[2]
    level = "high" if row["duration_s"] >= 600 else "medium"
    yield Event("hung_task", level, "hung_task", row, ("hung_task", row["comm"], row["pid"]))


def _workqueue(text: str) -> Iterator[Event]:
    """Yield a stuck worker pool, or a work item the kernel calls a CPU hog."""
    if found := _POOL.search(text):
        row: Row = {"duration_s": int(found["time"])}
        if found["cpus"]:
            row["cpus"] = cpu_list(found["cpus"])
        row |= {name: int(found[name]) for name in ("node", "nice") if found[name]}
        if found["flags"]:
            row["flags"] = found["flags"]
        level = "critical" if row["duration_s"] >= 60 else "high"
        key = ("workqueue_lockup", found["cpus"], found["node"], found["flags"], found["nice"])
        yield Event("workqueue_lockup", level, "workqueue_lockup", row, key)
    elif hog := _HOGGED.search(text):
        yield Event("workqueue_hog", "low", repeat_of=("workqueue_hog", hog[0].split()[1]))


def _csd(text: str) -> Iterator[Event]:
    """Yield a CPU that does not answer a cross-CPU call (kernel/smp.c, since 5.10)."""
    if found := _CSD.search(text):
        yield Event("csd_lock", "high", row={"cpu": int(found[1])}, repeat_of=("csd_lock", found[1]))


def cpu_list(text: str) -> tuple[int, ...]:
    """Return the CPUs of a list as the kernel prints it (%*pbl): `0-2,5` is (0, 1, 2, 5)."""
    cpus: list[int] = []
    for first, last in _CPU_RANGE.findall(text):
        # 8192 is the largest NR_CPUS: a garbled range must not fill the memory.
        if int(last or first) < 8192:
            cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)
