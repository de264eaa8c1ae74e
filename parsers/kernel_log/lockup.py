"""CPUs and tasks that are stuck: soft and hard lockups, hung tasks, stuck workqueues, Linux 2.6.32 to 7.2.

    watchdog: BUG: soft lockup - CPU#1 stuck for 134s! [syz-executor4:4588]
    NMI watchdog: Watchdog detected hard LOCKUP on cpu 3
    INFO: task kworker/u4:6:10032 blocked for more than 143 seconds.
    BUG: workqueue lockup - pool cpus=2 node=0 flags=0x0 nice=0 stuck for 31s!

Tables `soft_lockup`, `hard_lockup`, `hung_task`, `workqueue_lockup`, `csd_lock`: one row per report. The first gives
cpu 1, duration_s 134, comm syz-executor4, pid 4588.

The text comes from kernel/watchdog.c and watchdog_hld.c, kernel/hung_task.c, kernel/workqueue.c, kernel/smp.c and, for
powerpc, arch/powerpc/kernel/watchdog.c. The watchdog's prefix is absent up to 3.16, `NMI watchdog: ` up to 4.12,
`watchdog: ` since 4.14. `INFO: NMI handler … took too long to run` is a slow handler and not read here.
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
            "lock": Column(
                "str", "mutex, semaphore or rw-semaphore: what it waits for, where the kernel says (since 6.15)"
            ),
            "blocker": Column("str", "comm:pid of the task that holds the lock, where the kernel knows"),
        },
    ),
    "csd_lock": Table(
        "one report of a CPU that does not answer a call from another CPU",
        {
            "incident": _INCIDENT,
            "cpu": Column("Int64", "the CPU that does not answer"),
            "detected_by": Column("Int64", "the CPU that waits"),
            "duration_ms": Column("Int64", "for how long it has waited"),
            "function": Column("str", "what it was asked to run"),
            "number": Column("Int64", "the kernel's number for the wait, `(#1)`, shared by its reports"),
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
    b"ard LOCKUP",
    b"blocked for more than ",
    b"blocked in I/O wait for more than ",
    b"Future hung task reports are suppressed",
    b"BUG: workqueue lockup - pool",
    b"non-responsive CSD lock",
)

_SOFT = re.compile(r"BUG: soft lockup - CPU#(\d{1,18}) stuck for (\d{1,18})s! \[(.*):(\d{1,18})\]")
_HARD = re.compile(
    r"Watchdog detected hard LOCKUP on cpu (?P<cpu>\d{1,18})"
    r"|CPU (?P<self>\d{1,18}) self-detected hard LOCKUP "
    r"|CPU (?P<by>\d{1,18}) detected hard LOCKUP on other CPUs (?P<others>[\d,-]+)"
    r"|Watchdog CPU:(?P<old>\d{1,18}) Hard LOCKUP"  # powerpc, 4.13 and 4.14
)
_HUNG = re.compile(r"INFO: task (.{1,31}):(\d{1,18}) blocked (?:in I/O wait )?for more than (\d{1,18}) seconds")
_BLOCKER = re.compile(
    r"INFO: task .*:(?P<pid>\d{1,18})(?: is| <\w+>)? blocked on an? (?P<lock>[\w-]+)"
    r"(?:,| likely (?:last )?(?:owned|held) by task (?P<owner>.+:\d{1,18})(?P<stop>\.|$| <))"
)
_POOL = re.compile(
    r"BUG: workqueue lockup - pool(?: \d{1,18}:)?(?: cpus=(?P<cpus>[\d,-]+))?(?: node=(?P<node>-?\d{1,18}))?"
    r"(?: flags=(?P<flags>0x[0-9a-f]+))?(?: nice=(?P<nice>-?\d{1,18}))? .*?stuck for (?P<time>\d{1,18})s!"
)
_CSD = re.compile(
    r"csd: (?:Detected|Continued) non-responsive CSD lock \(#(?P<number>\d{1,18})\) on CPU#(?P<by>\d{1,18}), "
    r"waiting (?P<ns>\d{1,18}) ns(?: for CPU#(?P<cpu>-?\d{1,18}) (?P<function>[A-Za-z_][\w.$]*)?)?"
)
_CPU_RANGE = re.compile(r"(?<![\d-])(\d{1,5})(?:-(\d{1,5}))?(?![\d-])")

BLOCKER_LINES = 80
"""The lock's owner is named right after the complaint, or below the task's trace (debug_show_blocker(), 6.15)."""


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield what block[0] reports; a report cut before its numbers is told as damage."""
    text = block[0].text
    if "suppressed" in text and "hung task reports" in text:
        what = "the kernel stopped reporting hung tasks here: their number is a floor"
        yield Loss(what, "ratelimit", of="hung_task")
        return
    events = [*_soft(text), *_hard(text), *_hung(text, block), *_workqueue(text), *_csd(text)]
    if not events and any(word in text for word in ("BUG: soft lockup", "etected hard LOCKUP ", "INFO: task ")):
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
    stuck = cpu_list(found["others"]) if found["others"] else (int(found["cpu"] or found["self"] or found["old"]),)
    for cpu in stuck:
        row: Row = {"cpu": cpu}
        if found["by"]:
            row["detected_by"] = int(found["by"])
        yield Event("hard_lockup", "critical", "hard_lockup", row, ("hard_lockup", cpu))


def _hung(text: str, block: Block) -> Iterator[Event]:
    """Yield a hung task, with the lock it waits for and its owner (printed since 6.15)."""
    found = _HUNG.search(text)
    if not found:
        return
    row: Row = {"comm": found[1], "pid": int(found[2]), "duration_s": int(found[3])}
    for place, message in enumerate(block[1 : BLOCKER_LINES + 1], 2):
        if _HUNG.search(message.text):
            break
        blocker = _BLOCKER.search(message.text)
        if blocker and int(blocker["pid"]) == row["pid"]:
            row["lock"] = blocker["lock"]
            if blocker["owner"] and (blocker["stop"] or len(block[: place + 1]) > place):
                row["blocker"] = blocker["owner"]
            break
    level = "high" if row["duration_s"] >= 600 else "medium"
    yield Event("hung_task", level, "hung_task", row, ("hung_task", row["comm"], row["pid"]))


def _workqueue(text: str) -> Iterator[Event]:
    """Yield a stuck worker pool."""
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


def _csd(text: str) -> Iterator[Event]:
    """Yield a CPU that does not answer a cross-CPU call (kernel/smp.c, since 5.10)."""
    if found := _CSD.search(text):
        row: Row = {"detected_by": int(found["by"]), "duration_ms": int(found["ns"]) // 1_000_000}
        row["number"] = int(found["number"])
        if found["cpu"] and int(found["cpu"]) >= 0:
            row["cpu"] = int(found["cpu"])
        if found["function"]:
            row["function"] = found["function"]
        level = "critical" if row["duration_ms"] >= 60_000 else "high"
        yield Event("csd_lock", level, "csd_lock", row, ("csd_lock", row["number"]))


def cpu_list(text: str) -> tuple[int, ...]:
    """Return the CPUs of a list as the kernel prints it (%*pbl): `0-2,5` is (0, 1, 2, 5)."""
    cpus: list[int] = []
    for first, last in _CPU_RANGE.findall(text):
        # 8192 is the largest NR_CPUS: a garbled range must not fill the memory.
        if int(last or first) < 8192:
            cpus += range(int(first), int(last or first) + 1)
    return tuple(cpus)
