"""RCU stall reports, as Linux 2.6.31 to 7.2 print them.

    INFO: rcu_sched detected stalls on CPUs/tasks:
            26-...: (1881 ticks this GP) idle=76f/140000000000000/0 softirq=8/8 fqs=365
            (detected by 0, t=2102 jiffies, g=1837293, c=1837292, q=262)
    Task dump for CPU 26:
    java            R  running task    13488  1714   1513 0x00080188

Table `rcu_stall`, one row per report: flavour rcu_sched, form detected, cpus (26,), detected_by 0, t_jiffies 2102,
g 1837293, c 1837292, q 262, comm java, pid 1714.

The text comes from kernel/rcutree.c (2.6.31), kernel/rcu/tree.c and tree_plugin.h (3.13), tree_stall.h (5.2),
tree_exp.h (expedited) and tasks.h, update.c (RCU tasks). Up to 3.19, and without CONFIG_RCU_CPU_STALL_INFO, CPUs and
tasks stand in braces on the header line: `{ 1 3 P42} (detected by 0, t=60002 jiffies, g=1, c=0, q=7)`. The prefix
`rcu: ` came with 4.19, but not for pieces printed with pr_cont; `c=` went with 4.18; `ncpus=` came with 6.1.

The length of a stall is printed in jiffies and the tick rate is not: `infer_hz` takes it from two reports of one
stall, `settle` fills it in. Until then `duration_min_s` holds the floor, and severity goes by that floor.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from parsers.kernel_log.dump_stack import running
from parsers.kernel_log.message import Block, Event, Loss
from parsers.shapes import Column, Row, Table

TABLES = {
    "rcu_stall": Table(
        "one RCU stall report",
        {
            "incident": Column("str", "id shared by the reports of one stall"),
            "flavour": Column("str", "rcu_sched, rcu_preempt, rcu_bh, rcu_tasks …; missing before 2.6.37"),
            "form": Column("str", "self, detected (by another CPU), expedited or tasks"),
            "cpus": Column("object", "tuple of the stalled CPUs"),
            "tasks": Column("object", 'tuple of the blocking tasks, as printed: "P123"'),
            "cpu": Column("Int64", "the stalled CPU, where there is just one"),
            "pid": Column("Int64", "the task running on a stalled CPU, where the report dumps it"),
            "comm": Column("str", "name of that task"),
            "detected_by": Column("Int64", "the CPU that noticed"),
            "t_jiffies": Column("Int64", "age of the grace period when the report was printed"),
            "hz": Column("Int64", "jiffies per second, inferred from two reports of one stall; else missing"),
            "duration_s": Column("Float64", "t_jiffies / hz, where hz is known"),
            "duration_min_s": Column("Float64", "t_jiffies / 1000: the stall was at least this long"),
            "g": Column("Int64", "number of the grace period; negative in the first minutes of a boot"),
            "c": Column("Int64", "number of the last completed grace period"),
            "q": Column("Int64", "callbacks queued on all CPUs"),
            "gp_kthread_starved_jiffies": Column("Int64", "how long the grace-period kthread had not run"),
        },
    )
}

LITERALS = (
    b"INFO: RCU detected CPU",
    b"detected stalls on CPUs/tasks:",
    b"self-detected stall on CPU",
    b" detected stall on CPU ",
    b" detected expedited stalls on CPUs/tasks:",
    b" detected stalls on tasks:",
    b" detected stalls? (Late IPI?)",
    b" detected stall, but suppressed full report",
    b" kthread starved for ",
    b" grace period number ",
)

HIGHEST_HZ = 1000
"""No distribution configures a faster tick, so jiffies / 1000 never overstates a duration."""

TICK_RATES = (100, 250, 300, 1000)
"""The choices of CONFIG_HZ (kernel/Kconfig.hz)."""

MIN_ELAPSED_S = 30
"""Stamps may be whole seconds (syslog): over 30 s they are 3 % wrong at worst. Repeats follow after three times the
stall timeout, 63 s or more by default."""

MAX_FOREIGN = 25
"""Lines of other origin tolerated inside one report before its summary counts as lost. Pieces of a report are
printed back to back; what comes between is one interleaved message or the head of one interleaved trace."""

# `>` is a quoted mail, `#011` a TAB as rsyslog writes it; bounded, so that a line of blanks costs no time.
_LEAD = r"(?:#011|[\s>]){0,64}(?:rcu:)?(?:#011|\s){0,64}"
_IS = r"=(?:3D)?"  # `=3D` is what quoted-printable makes of `=`; D is no decimal digit, so this is unambiguous

_HEADER = re.compile(
    r"INFO: (?:"
    r"(?P<flavour>rcu\w*?)(?:_state)? (?:"
    r"(?P<detected>detected stalls on CPUs/tasks:)|(?P<own>self-detected stall on CPU)"
    r"|detected stall on CPU (?P<own_cpu>\d{1,18})|(?P<expedited>detected expedited stalls on CPUs/tasks:)"
    r"|(?P<tasks>detected stalls on tasks:|detected stalls\? \(Late IPI\?\))|(?P<short>detected stall, but suppressed))"
    r"|RCU detected CPU (?:(?P<old_cpu>\d{1,18}) stall|(?P<old>stalls:)))"
)
_PER_CPU = re.compile(_LEAD + r"(\d{1,18})(?:-[\w.!?]{3,4})?: \(\d{1,18} (?:ticks this GP|GPs behind)\)")
_PER_CPU_REST = re.compile(_LEAD + r"(?:idle=|hardirqs +softirqs|number: |cputime: )")
_BLOCKED_TASKS = re.compile(_LEAD + r"Tasks blocked on level-\d{1,18} rcu_node \(CPUs \d{1,18}-\d{1,18}\):(.*)")
_HOLDOUT = re.compile(r"\S+: \S\S nvcsw: ")
_PIECE = re.compile(r"\d{1,18}(?:-[\w.!?]{3,4})?|P\d{1,18}\S*|rcu:|>|#011")
_MEMBER = re.compile(r"(?<!\S)(?:(P\d{1,18})|(\d{1,18})(?:-[\w.!?]{3,4})?)(?=\s)")
_SUMMARY = re.compile(
    rf"\((?:detected by (\d{{1,18}}), )?t{_IS}(\d{{1,18}})(?:/\d{{1,18}})? jiffies(?=[\s,)])([^)]*\)?)"
)
_COUNTER = re.compile(rf"\b([gcq]){_IS}(-?\d{{1,18}})(?=[\s,)])")
_EXPEDITED = re.compile(r"\}\s*(\d{1,18}) jiffies s: (\d{1,18})(?=\s|$)")
_STARVED = re.compile(r"(rcu\w*) kthread starved for (\d{1,18}) jiffies!(?: g(-?\d{1,18}))?")
_TASK_DUMP = re.compile(r"Task dump for CPU (\d{1,18}):")
_TASK_ROW = re.compile(  # sched_show_task(): fixed columns up to 5.9, `task:` … `pid:` since 5.10
    r"(?:task:)?(?P<comm>\S.{0,14}?)\s+(?:state:)?[A-Z]\s+.*?"
    r"(?:pid:\s*(?P<named>\d{1,18})(?=\s)|\s(?P<pid>\d{1,18})\s+\d{1,18}\s+0x)"
)
_TASKS_AGE = re.compile(r"(rcu_tasks\w*): .*?grace period (?:number )?(\d{1,18}) .*?is (\d{1,18}) jiffies old")

FORMS = ("detected", "expedited", "tasks")


@dataclass(slots=True)
class _Report:
    """What was understood of one report."""

    form: str
    flavour: str | None
    cpus: list[int] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    values: Row = field(default_factory=dict)
    sequence: int | None = None
    lines: int = 1
    """Messages from the header to the last one understood."""


class Stamp(NamedTuple):
    """One report of a stall: how old the grace period was, and when that was said."""

    seconds: float
    jiffies: int


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield the stall report that begins at block[0]; a report whose summary is lost is told as damage, too."""
    text = block[0].text
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, end in zip(headers, ends, strict=False):
        report = _report(header, text[header.end() : end], block)
        if not report.values and report.form not in ("tasks", "short"):
            yield Loss("the summary of this RCU stall report is missing: its duration is not known")
        yield _event(report, block)
    if not headers:
        yield from _other(text)


def _report(header: re.Match[str], rest: str, block: Block) -> _Report:
    """Return what the header and the lines after it say."""
    form = next((name for name in (*FORMS, "short") if header[name]), "self")
    form = "detected" if header["old"] else form
    report = _Report(form, header["flavour"])
    own = header["own_cpu"] or header["old_cpu"]
    if own:
        report.cpus.append(int(own))
    rest = _whole_braces(rest, block, report)
    if header["old"]:
        _members(rest.partition("(")[0], report)
    elif "{" in rest:
        _members(rest[rest.index("{") + 1 :].replace("}", " }").partition("}")[0], report)
    if not _summary(rest, report) and form in ("self", "detected") and not own:
        _body(block, report)
    if form == "tasks":
        _holdouts(block, report)
    return report


def _whole_braces(rest: str, block: Block, report: _Report) -> str:
    """Return the header's text with the pieces up to the closing brace: pr_cont pieces arrive as lines of their own."""
    if "{" not in rest or "}" in rest:
        return rest
    foreign = 0
    for index, message in enumerate(block[1:], 1):
        if _HEADER.search(message.text) or foreign > MAX_FOREIGN:
            break
        if not all(map(_PIECE.fullmatch, message.text.partition("}")[0].split())):
            foreign += 1
            continue
        rest += " " + message.text
        if "}" in message.text:
            report.lines = index + 1
            return rest
    return rest


def _members(text: str, report: _Report) -> None:
    """Add the CPUs and tasks of a list: ` 1-...D 4 P123 `. One that ends with the text may have been cut short."""
    for task, cpu in _MEMBER.findall(text):
        if task:
            report.tasks.append(task)
        else:
            report.cpus.append(int(cpu))


def _summary(text: str, report: _Report) -> bool:
    """Take the numbers of a summary from `text`; say whether it held one. A number cut short is not taken."""
    if expedited := _EXPEDITED.search(text):
        report.values["t_jiffies"] = int(expedited[1])
        report.sequence = int(expedited[2])
        return True
    found = _SUMMARY.search(text)
    if not found:
        return False
    if found[1]:
        report.values["detected_by"] = int(found[1])
    report.values["t_jiffies"] = int(found[2])
    report.values |= {name: int(number) for name, number in _COUNTER.findall(found[3])}
    return True


def _body(block: Block, report: _Report) -> None:
    """Read the lines per CPU, the blocked tasks and the summary that follow a header."""
    foreign = 0
    for index, message in enumerate(block[1:], 1):
        text = message.text
        if _summary(text, report):
            report.lines = index + 1
            return
        if per_cpu := _PER_CPU.match(text):
            report.cpus.append(int(per_cpu[1]))
        elif blocked := _BLOCKED_TASKS.match(text):
            # A number that ends the log may have been cut short; each task's number is followed by a blank or slash.
            ended = " " if index + 1 < len(block) else ""
            report.tasks += re.findall(r"P\d{1,18}(?=[\s/])", blocked[1] + ended)
        elif _HEADER.search(text) or foreign == MAX_FOREIGN:
            return
        elif not _PER_CPU_REST.match(text):
            foreign += 1
            continue
        report.lines = index + 1


def _holdouts(block: Block, report: _Report) -> None:
    """Read the tasks a Tasks-RCU stall waits for: a `nvcsw:` line each, with sched_show_task() after it."""
    for index, message in enumerate(block[1:], 1):
        if _HEADER.search(message.text):
            return
        if _HOLDOUT.match(message.text):
            report.lines = index + 1
            row = _TASK_ROW.match(block[index + 1].text) if index + 1 < len(block) else None
            if row:
                report.tasks.append(f"P{row['named'] or row['pid']}")
                report.lines = index + 2


def _event(report: _Report, block: Block) -> Event:
    """Return the event of a report, with its task and the starvation of the grace-period kthread."""
    flavour, jiffies = report.flavour, report.values.get("t_jiffies")
    cpus, tasks = tuple(report.cpus), tuple(report.tasks)
    form = "detected" if report.form == "short" else report.form
    row: Row = {"form": form, "cpus": cpus, "tasks": tasks, **report.values}
    if flavour:
        row["flavour"] = flavour
    if len(cpus) == 1:
        row["cpu"] = cpus[0]
    if jiffies is not None:
        row["duration_min_s"] = jiffies / HIGHEST_HZ
    row |= _task(block, cpus) if form != "tasks" else {}
    starved = _starved(block, flavour, row.get("g"))
    if starved is not None:
        row["gp_kthread_starved_jiffies"] = starved
    # Self-detected and detected reports of one grace period are one stall, hence no `form` for those two.
    kind = form if form in ("expedited", "tasks") else ""
    key = ("rcu_stall", flavour, kind, cpus, tasks, row.get("g"), report.sequence)
    return Event("rcu_stall", severity(jiffies), "rcu_stall", row, key, report.lines)


def severity(jiffies: int | None) -> str:
    """Return the severity of a stall that is known to be at least jiffies/1000 seconds long.

    Android reports expedited grace periods from 20 ms on: `6 jiffies` is no incident.
    """
    if jiffies is None:
        return "medium"
    seconds = jiffies / HIGHEST_HZ
    return "info" if seconds < 1 else "medium" if seconds < 10 else "high" if seconds < 60 else "critical"


def _task(block: Block, cpus: tuple[int, ...]) -> Row:
    """Return pid and comm of the task dumped for the first stalled CPU, or nothing."""
    for message, after in zip(block[1:], itertools.chain(block[2:], [None]), strict=False):
        if _HEADER.search(message.text):
            break
        if found := running(message.text):
            if found.cpu is None or found.cpu in cpus:
                return {"pid": found.pid, "comm": found.comm}
        elif (dump := _TASK_DUMP.search(message.text)) and int(dump[1]) in cpus and after:
            task = _TASK_ROW.match(after.text)
            return {"pid": int(task["named"] or task["pid"]), "comm": task["comm"]} if task else {}
    return {}


def _starved(block: Block, flavour: str | None, g: int | None) -> int | None:
    """Return how long the grace-period kthread starved; the kernel says so after the stacks, within the report."""
    for message in block[1:]:
        if _HEADER.search(message.text):
            break
        if (found := _STARVED.search(message.text)) and (flavour is None or found[1] == flavour):
            return int(found[2]) if g is None or not found[3] or int(found[3]) == g else None
    return None


def _other(text: str) -> Iterator[Event]:
    """Yield the events of lines that are no stall report but speak of the same trouble."""
    if starved := _STARVED.search(text):
        key = ("rcu_kthread_starved", starved[1], starved[3])
        yield Event("rcu_kthread_starved", severity(int(starved[2])), repeat_of=key)
    elif old := _TASKS_AGE.search(text):
        # Only long-running tasks hold up Tasks-RCU; the kernel says so from 10 s on (tasks.h, since 6.1).
        yield Event("rcu_tasks_slow", "low", repeat_of=("rcu_tasks_slow", old[1], old[2]))


def infer_hz(stamps: Iterable[Stamp]) -> int | None:
    """Return the tick rate that two reports of one stall show, or None when they show none.

    The grace period ages by HZ jiffies a second, so d(jiffies)/d(seconds) is HZ, whatever it was when first reported.
    The nearest configurable rate counts when it is within 3 %; reports closer than MIN_ELAPSED_S are no measure.
    """
    ordered = sorted(stamps)
    for early, late in itertools.pairwise(ordered):
        elapsed, ticks = late.seconds - early.seconds, late.jiffies - early.jiffies
        for rate in TICK_RATES if elapsed >= MIN_ELAPSED_S and ticks > 0 else ():
            if abs(ticks / elapsed - rate) <= 0.03 * rate:
                return rate
    return None


def settle(rows: dict[str, list[Row]]) -> None:
    """Fill `hz` and `duration_s` into the `rcu_stall` rows of one capture, in place.

    Reports of one incident give the tick rate of their boot; it then holds for every stall of that boot and host.
    """
    stalls = rows.get("rcu_stall", [])
    by_incident: dict[tuple[object, ...], list[Stamp]] = {}
    for row in stalls:
        seconds = row.get("uptime_s")
        if seconds is None and row.get("at") is not None:
            seconds = row["at"] / 1e9
        if seconds is not None and row.get("t_jiffies") is not None and row.get("incident") is not None:
            by_incident.setdefault((*_boot(row), row["incident"]), []).append(Stamp(seconds, row["t_jiffies"]))
    rates = {key[:2]: rate for key, stamps in by_incident.items() if (rate := infer_hz(stamps))}
    for row in stalls:
        rate = rates.get(_boot(row))
        if rate and row.get("t_jiffies") is not None:
            row["hz"], row["duration_s"] = rate, row["t_jiffies"] / rate


def _boot(row: Row) -> tuple[object, object]:
    """Return what a tick rate is constant for."""
    return row.get("host"), row.get("boot")
