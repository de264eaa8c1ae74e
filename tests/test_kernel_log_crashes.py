"""Crashes and complaints: every era's form, what only looks like one, and what other projects say of their logs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import kernel_log
from parsers.kernel_log import oops
from parsers.shapes import Capture, Parsed

FIELD = Path(__file__).resolve().parents[2] / "shared" / "field-data"
SYZKALLER = FIELD / "kernel-logs" / "syzkaller" / "report"

TITLES = {
    "KASAN": "kasan", "KFENCE": "kfence", "KMSAN": "kmsan", "KCSAN": "kcsan", "UBSAN": "ubsan",
    "general protection fault": "gpf", "BUG: unable to handle": "oops", "Unhandled fault": "oops",
    "divide error": "oops", "PANIC: double fault": "oops", "kernel panic": "panic", "kernel BUG": "bug",
    "BUG: bad usercopy": "bug", "BUG: corrupted list": "list_corruption", "BUG: Bad": "bad_page",
    "BUG: scheduling while atomic": "atomic", "BUG: sleeping function": "atomic", "BUG: using": "atomic",
    "BUG: spinlock": "spinlock", "BUG: stack guard": "stack_overflow", "WARNING in": "warning",
    "WARNING: refcount": "warning", "WARNING: kmalloc": "warning", "WARNING: ODEBUG": "warning",
    "WARNING: locking bug": "warning", "WARNING: proc registration": "warning", "BUG: soft lockup": "soft_lockup",
    "INFO: task hung": "hung_task", "INFO: rcu detected": "rcu_stall",
}  # fmt: skip
"""How syzkaller's titles of the classes we read begin, and our kind. Left out are those of the lock validator (possible
deadlock, inconsistent lock state, suspicious RCU usage, held locks), which only kernels built for testing print, and
those of other programs and systems (SYZFAIL, go runtime error, trusty, memory leak as printed by a tool)."""

DIFFER = {
    "528": "`[ BUG: Invalid wait context ]` is a report of the lock validator, of kind other here",
    "621": "a stack of user space; the WARNING stands without a prefix in a log whose lines have one",
}
"""Logs in which we read another kind than the title says, each with the reason."""

LKP = {
    "calltrace-008": ("oops", "lkp's list has `Oops:`, and `BUG: kernel NULL pointer` (5.2) under another name"),
    "dmesg-011": ("oops", "as calltrace-008"),
    "dmesg-004": ("oops", "lkp counts `kernel BUG at` and `invalid opcode` under names of their own"),
    "71": ("panic", "lkp counts the line `---[ end Kernel panic` too"),
}
"""lkp's logs whose counts differ, in which kind and why."""
LKP_KINDS = {"oops": "oops", "panic": "panic", "soft_lockup": "soft_lockup", "hung_task": "hung_task",
             "wq_lockup": "workqueue_lockup", "oom": "oom_invoked", "rcu_stall": "rcu_stall",
             "alloc_fail": "alloc_failure"}  # fmt: skip


def parsed(text: str | bytes) -> Parsed:
    """Return what is read from a log."""
    raw = text.encode() if isinstance(text, str) else text
    return kernel_log.parse(Capture("log", 1, "", [raw]))


def stamped(*lines: str) -> str:
    """Return a log of these messages, a millisecond apart."""
    return "".join(f"[{100 + place / 1000:12.6f}] {line}\n" for place, line in enumerate(lines))


def rows(table: str, *lines: str) -> list[dict[str, Any]]:
    """Return the rows of a table that these messages give."""
    return parsed(stamped(*lines)).rows.get(table, [])


def syzkaller_logs() -> list[tuple[str, str, bytes]]:
    """Return (name, title, log) of each of syzkaller's logs; the title is empty where it has none."""
    found = []
    for path in sorted(SYZKALLER.iterdir()) if SYZKALLER.is_dir() else ():
        text = path.read_bytes()
        head, _, body = text.partition(b"\n\n")
        title = re.match(rb"TITLE: (.*)", head)
        if not re.match(rb"TITLE|ALT|TYPE|FRAME|CORRUPTED|SUPPRESSED|EXECUTOR|START|END", text):
            body = text
        found.append((path.name, title[1].decode() if title else "", body.split(b"\nREPORT:\n")[0]))
    return found


@pytest.mark.skipif(not SYZKALLER.is_dir(), reason="syzkaller's logs are not beside the checkout")
def test_syzkaller_titles() -> None:
    """Of the logs whose title names a class we read, at least 95 % hold that kind; every other one is listed."""
    agree, differ = [], {}
    for name, title, body in syzkaller_logs():
        kind = next((kind for prefix, kind in TITLES.items() if title.startswith(prefix)), None)
        if kind is None:
            continue
        tables = parsed(body).rows
        kinds = {row["kind"] for table in ("oops", "kernel_event") for row in tables.get(table, [])}
        if kind in kinds:
            agree.append(name)
        else:
            differ[name] = (title, kind, sorted(kinds))
    assert differ.keys() == DIFFER.keys(), differ
    assert len(agree) >= 250
    assert len(agree) >= 0.95 * (len(agree) + len(differ))


@pytest.mark.skipif(not SYZKALLER.is_dir(), reason="syzkaller's logs are not beside the checkout")
def test_syzkaller_logs_without_title_hold_no_stall() -> None:
    """What syzkaller finds nothing in holds no stall, lockup or hung task either."""
    for name, title, body in syzkaller_logs():
        if not title:
            tables = parsed(body).rows
            assert not any(tables.get(table) for table in ("rcu_stall", "soft_lockup", "hung_task")), name


def lkp_expectations() -> list[tuple[str, dict[str, int]]]:
    """Return (path below the field data, {lkp's kind: count}) of lkp's logs that state such counts."""
    sources = FIELD / "SOURCES.tsv"
    found = []
    for line in sources.read_text().splitlines() if sources.is_file() else ():
        cells = line.split("\t")
        counts = {kind: int(n) for kind, n in re.findall(r"\b(\w+)=(\d+)", cells[-1]) if kind in LKP_KINDS}
        if "/lkp/" in cells[0] and counts:
            found.append((cells[0], counts))
    return found


@pytest.mark.skipif(not (FIELD / "SOURCES.tsv").is_file(), reason="lkp's logs are not beside the checkout")
def test_lkp_counts() -> None:
    """lkp's counts of heads are reproduced, but for those listed with their reason."""
    differ = set()
    for path, counts in lkp_expectations():
        events = Counter(row["kind"] for row in parsed((FIELD / path).read_bytes()).rows.get("kernel_event", []))
        ours = {kind: events[name] for kind, name in LKP_KINDS.items() if events[name]}
        for kind in LKP_KINDS:
            if ours.get(kind, 0) != counts.get(kind, 0):
                differ.add((path.rpartition("/")[2], kind))
    assert differ == {(name, kind) for name, (kind, _) in LKP.items()}


HEADS = {
    "BUG: unable to handle kernel paging request at ffff88002bde1e40": (
        "oops", "unable to handle kernel paging request",
    ),
    "BUG: unable to handle page fault for address: ffffc9001652fa68": ("oops", "unable to handle page fault"),
    "BUG: kernel NULL pointer dereference, address: 0000000000000008": ("oops", "kernel NULL pointer dereference"),
    "BUG: Unable to handle kernel data access on read at 0xc00a00000000": (
        "oops", "Unable to handle kernel data access",
    ),
    "Internal error: : 81b [#1] SMP ARM": ("oops", "Internal error"),
    "Unable to handle kernel paging request for data at address 0x00000010": (
        "oops", "Unable to handle kernel paging request",
    ),
    "Unable to handle kernel pointer dereference in virtual kernel address space": (
        "oops", "Unable to handle kernel pointer dereference",
    ),
    "Unable to handle kernel access to user memory without uaccess routines at virtual address 000000000cc6b0d0": (
        "oops", "Unable to handle kernel access to user memory without uaccess routines",
    ),
    "CPU 1 Unable to handle kernel paging request at virtual address 00000044, epc == 80123456, ra == 80123400": (
        "oops", "Unable to handle kernel paging request",
    ),
    "Unhandled fault: page domain fault (0x81b) at 0x00001044": ("oops", "Unhandled fault: page domain fault"),
    "Internal error: Oops: 96000004 [#1] PREEMPT SMP": ("oops", "Internal error: Oops"),
    "Internal error: Oops - BUG: 0 [#1] PREEMPT SMP ARM": ("bug", "Internal error: Oops - BUG"),
    "Oops [#1]": ("oops", "Oops"),
    "Oops[#1]:": ("oops", "Oops"),
    "Kernel bug detected[#1]:": ("oops", "Kernel bug detected"),
    "Oops: Kernel access of bad area, sig: 11 [#3]": ("oops", "Kernel access of bad area"),
    "Oops: 0004 ilc:2 [#1] SMP": ("oops", "Oops"),
    "illegal operation: 0001 ilc:1 [#1] SMP": ("oops", "illegal operation"),
    "divide error: 0000 [#1] SMP KASAN": ("oops", "divide error"),
    "Oops: divide error: 0000 [#1] PREEMPT SMP": ("oops", "divide error"),
    "general protection fault: 0000 [#1] SMP": ("gpf", "general protection fault"),
    "general protection fault, maybe for address 0x10: 0000 [#1] PREEMPT SMP": ("gpf", "general protection fault"),
    "kernel BUG at mm/filemap.c:1498!": ("bug", "kernel BUG"),
    "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009": (
        "panic", "Attempted to kill init! exitcode=0x00000009",
    ),
    "PANIC: double fault, error_code: 0x0": ("oops", "double fault"),
    "WARNING: at mm/slab.c:12 kmem_cache_free+0x10/0x20()": ("warning", "WARN()"),
    "WARNING: CPU: 3 PID: 9 at mm/slab.c:12 kmem_cache_free+0x10/0x20": ("warning", "WARN()"),
    "WARNING: CPU: 3 PID: 9 at 0xffffffff81000000": (None, None),
    "WARNING: [order > 10] mm/page_alloc.c:12 at alloc+0x10/0x20, CPU#3: a b/9": ("warning", "WARN()"),
    "UBSAN: Undefined behaviour in fs/frobfs/super.c:12:8": ("ubsan", "Undefined behaviour"),
    "BUG: KCSAN: data-race in frob_a / frob_b": ("kcsan", "data-race"),
    "BUG: stack guard page was hit at ffffc9001a6e7fe8 (stack is ffffc9001a6e8000..ffffc9001a6effff)": (
        "stack_overflow", "stack guard page was hit at …(stack is …..…)",
    ),
    "BUG: sleeping function called from invalid context at mm/slab.h:420": (
        "atomic", "sleeping function called from invalid context at mm/slab.h:420",
    ),
}  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
def test_head_of_every_era(head: str) -> None:
    """The first line alone tells kind and reason."""
    kind, reason = HEADS[head]
    found = rows("oops", head)
    assert [row["kind"] for row in found] == ([kind] if kind else [])
    if kind and kind != "stack_overflow":
        assert found[0]["reason"] == reason


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: systemd-networkd is not running, output might be incomplete",
        "INFO: lockdep is turned off.",
        "INFO: Stall ended before state dump start",
        "systemd[1]: WARNING: CPU: 3 PID: 9 at mm/slab.c:12 kmem_cache_free+0x10/0x20",
        "---[ end Kernel panic - not syncing: Fatal exception",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [a:1]",
        "BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck for 31s!",
        "BUG: MAX_LOCKDEP_KEYS too low!",
        "frobd[4242]: segfault at 48 ip 00005581aa1032c0 sp 00007ffd2c1d9e40 error 4 in frobd[5581aa100000+9000]",
        "traps: frobd[4243] general protection fault ip:7f81aa1032c0 sp:7ffd2c1d9e40 error:0",
        "app: list corruption suspected in ticket [#41]",
        "pcieport 0000:00:1c.0: slot [#2] SMP",
        "ticket: 12345 [#41] was closed",
    ],
)
def test_what_only_looks_like_a_crash(line: str) -> None:
    """Words of programs, ends of reports and other families' heads are no crash."""
    assert rows("oops", line) == []


def crash(number: int, cpu: int, function: str = "frob_a") -> list[str]:
    """Return the lines of one numbered crash."""
    return [
        "BUG: kernel NULL pointer dereference, address: 0000000000000008",
        f"Oops: 0000 [#{number}] SMP",
        f"CPU: {cpu} PID: 7 Comm: frobd Not tainted 5.10.0 #1",
        f"RIP: 0010:{function}+0x1/0x2 [frob]",
        "RIP: 0033:0x7f31c0d2a001",
        "---[ end trace 0000000000000000 ]---",
    ]


def test_panic_is_one_incident_with_its_crash() -> None:
    """The panic takes the incident of the last crash before it, in every table, traces included."""
    tables = parsed(stamped(*crash(1, 2), *crash(2, 4, "frob_b"), "Kernel panic - not syncing: Fatal exception")).rows
    first, second, panic = tables["oops"]
    assert (first["number"], second["number"]) == (1, 2)
    assert first["incident"] != second["incident"] == panic["incident"]
    assert (second["function"], second["module"], second["cpu"]) == ("frob_b", "frob", 4)
    assert [row["incident"] for row in tables["kernel_event"]].count(panic["incident"]) == 3


def test_panic_of_another_cpu_stands_by_itself() -> None:
    """A panic that names another CPU than the crash before it is not its end."""
    own = ["Kernel panic - not syncing: Fatal exception", "CPU: 5 PID: 1 Comm: init Not tainted 5.10.0 #1"]
    found = rows("oops", *crash(1, 2), *own)
    assert found[0]["incident"] != found[1]["incident"]


@pytest.mark.parametrize(
    ("table", "report", "reason"),
    [
        ("soft_lockup", "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [a:1]", "softlockup: hung tasks"),
        ("hung_task", "INFO: task a:1 blocked for more than 120 seconds.", "hung_task: blocked tasks"),
        ("hard_lockup", "NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", "Hard LOCKUP"),
    ],
)
def test_panic_that_a_watchdog_called(table: str, report: str, reason: str) -> None:
    """A panic on a lockup is one incident with the lockup."""
    tables = parsed(stamped(report, f"Kernel panic - not syncing: {reason}")).rows
    assert tables["oops"][0]["incident"] == tables[table][0]["incident"]


def test_callers_keep_two_crashes_apart() -> None:
    """Two CPUs that crash at once, line by line in turn, are told apart by their callers."""
    text = ""
    for place, (one, other) in enumerate(zip(crash(1, 2), crash(2, 4, "frob_b"), strict=True)):
        text += f"[  100.{place:06d}][    C2] {one}\n[  100.{place:06d}][    C4] {other}\n"
    found = parsed(text).rows["oops"]
    assert [(row["number"], row["cpu"], row["function"]) for row in found] == [(1, 2, "frob_a"), (2, 4, "frob_b")]


def test_torn_head_is_told() -> None:
    """A head that another message was printed into counts, and is told as damage."""
    read = parsed("[  153.613861] BUG: unable to handle kernel [  153.615435] frob: deprecated option used\n")
    assert [row["kind"] for row in read.rows["oops"]] == ["oops"]
    assert [gap.line for gap in read.gaps] == [1]


@given(
    cpu=st.integers(0, 8191),
    pid=st.integers(0, 4194304),
    comm=st.from_regex(r"[a-z][a-z0-9/:_-]{0,14}", fullmatch=True),
    file=st.from_regex(r"[a-z]{1,8}/[a-z_]{1,12}\.[ch]", fullmatch=True),
    line=st.integers(1, 99999),
    function=st.from_regex(r"[a-z_][a-z0-9_]{0,30}", fullmatch=True),
    module=st.none() | st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True),
)
def test_a_printed_warning_reads_back(
    cpu: int, pid: int, comm: str, file: str, line: int, function: str, module: str | None
) -> None:
    """WARN() as each era prints it gives back the place, the function and, where printed, CPU, pid and task."""
    own = f" [{module}]" if module else ""
    place: dict[str, object] = {"file": f"{file}:{line}", "function": function, "module": module}
    eras: dict[str, dict[str, object]] = {
        f"WARNING: at {file}:{line} {function}+0x1a/0x90{own}()": place,
        f"WARNING: CPU: {cpu} PID: {pid} at {file}:{line} {function}+0x1a/0x90{own}": place | {"cpu": cpu, "pid": pid},
        f"WARNING: {file}:{line} at {function}+0x1a/0x90{own}, CPU#{cpu}: {comm}/{pid}": place
        | {"cpu": cpu, "pid": pid, "comm": comm},
    }
    for text, expected in eras.items():
        (row,) = rows("oops", text)
        assert {name: row.get(name) for name in expected} == expected


def test_floors_are_kept_by_what_they_are_of() -> None:
    """Suppressed reports are summed by the kind they are of; a limit of no known report names none."""
    lines = ["oom_kill_process: 12 callbacks suppressed", "oom_kill_process: 5 callbacks suppressed",
             "warn_alloc: 85 callbacks suppressed", "net_ratelimit: 3 callbacks suppressed",
             "Future hung task reports are suppressed, see sysctl kernel.hung_task_warnings"]  # fmt: skip
    lost: Counter[str | None] = Counter()
    for row in rows("log_loss", *lines):
        lost[row["of"]] += row["lost"] or 0
    assert lost == {"oom_kill": 17, "alloc_failure": 85, None: 3, "hung_task": 0}
    stall = "frobd: page allocation stalls for 12000ms, order:0, mode:0x24000c0(GFP_KERNEL)"
    assert {row["of"] for row in rows("log_loss", stall, lines[2])} == {"alloc_stall"}


def test_number_is_of_a_boot() -> None:
    """Each boot counts its crashes from 1: two boots' first crashes are two incidents."""
    boot = "Linux version 5.10.0 (a@b) (gcc) #1 SMP"
    text = "".join(f"[    {n}.000000] {line}\n" for n, line in enumerate([boot, *crash(1, 0)])) * 2
    found = parsed(text).rows["oops"]
    assert [row["number"] for row in found] == [1, 1]
    assert len({row["incident"] for row in found}) == 2


def test_every_literal_can_be_met() -> None:
    """Each literal of the family stands in some head above, or in the capture of corrupted memory."""
    corpus = Path(__file__).parent / "corpus" / "kernel_log"
    text = "\n".join(HEADS) + "".join((corpus / f"{name}.txt").read_text() for name in ("memory-corruption",))
    missing = [literal for literal in oops.LITERALS if literal.decode() not in text]
    assert missing == [b"list_del corruption", b"list_add double add"]
