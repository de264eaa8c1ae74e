"""Every era's form of RCU stalls, allocation stalls and failures, Mem-Info, OOM kills and lockups gives its row."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import kernel_log
from parsers.kernel_log import alloc, lockup, meminfo, oom, rcu
from parsers.kernel_log.dump_stack import Running, running
from parsers.kernel_log.message import MAX_AHEAD, Event, Loss, Message
from parsers.shapes import MAX_LINE, Capture

FIELD = Path(__file__).resolve().parents[2] / "shared" / "field-data"
FAMILIES = (rcu, alloc, meminfo, oom, lockup)


def messages(text: str) -> list[Message]:
    """Return the messages of a text without prefixes; a leading `[  12.5] ` of a line is its stamp."""
    found = []
    for number, raw in enumerate(text.split("\n"), 1):
        stamp = re.match(r"\[([\d.]+)\] ", raw)
        text_after = raw[stamp.end() :] if stamp else raw
        found.append(Message(number, text_after, raw, float(stamp[1]) if stamp else None))
    return found


def read(family: ModuleType, text: str) -> list[Event | Loss]:
    """Return what a family reads from a text: one call for each line that holds one of its literals."""
    log, found = messages(text), []
    for index, message in enumerate(log):
        if any(literal.decode() in message.text for literal in family.LITERALS):
            found += list(family.read(log[index : index + 1 + MAX_AHEAD]))
    return found


def rows(family: ModuleType, text: str, table: str) -> list[dict[str, Any]]:
    """Return the rows of one table in their order."""
    found = []
    for event in read(family, text):
        if isinstance(event, Event):
            found += [row for name, row in [(event.table, event.row), *event.more] if name == table]
    return found


def losses(family: ModuleType, text: str) -> list[str]:
    """Return the sentences of what is lost."""
    return [loss.what for loss in read(family, text) if isinstance(loss, Loss)]


def assert_holds(row: dict[str, Any], expected: dict[str, Any]) -> None:
    """Check the columns named in `expected`; None means the column must be missing."""
    assert {name: row.get(name) for name in expected} == expected


def whole_numbers(row: dict[str, Any], text: str) -> dict[str, Any]:
    """Return a cut line's columns without the one whose last digits the cut may have taken."""
    return {name: value for name, value in row.items() if not text.endswith(str(value))}


RCU_FORMS = {
    "2.6.31 self, slash": (
        "INFO: RCU detected CPU 3 stall (t=1234/3000 jiffies)",
        {"form": "self", "flavour": None, "cpus": (3,), "t_jiffies": 1234, "cpu": 3},
    ),
    "2.6.32 others": (
        "INFO: RCU detected CPU stalls: 1 3 (detected by 0, t=2504 jiffies)",
        {"form": "detected", "cpus": (1, 3), "detected_by": 0, "t_jiffies": 2504},
    ),
    "2.6.32 self": (
        "INFO: RCU detected CPU 5 stall (t=10000 jiffies)",
        {"form": "self", "cpus": (5,), "t_jiffies": 10000, "duration_min_s": 10.0},
    ),
    "2.6.37 others": (
        "INFO: rcu_bh_state detected stalls on CPUs/tasks: { 2 P77 9} (detected by 1, t=2504 jiffies)",
        {"form": "detected", "flavour": "rcu_bh", "cpus": (2, 9), "tasks": ("P77",), "detected_by": 1},
    ),
    "2.6.37 self": (
        "INFO: rcu_sched_state detected stall on CPU 4 (t=15000 jiffies)",
        {"form": "self", "flavour": "rcu_sched", "cpus": (4,), "t_jiffies": 15000},
    ),
    "3.3 self": (
        "INFO: rcu_sched self-detected stall on CPU { 2}  (t=18000 jiffies)",
        {"form": "self", "cpus": (2,), "t_jiffies": 18000, "g": None},
    ),
    "3.10 without stall info": (
        "INFO: rcu_sched detected stalls on CPUs/tasks: { 1 3} (detected by 7, t=60002 jiffies, g=211, c=210, q=9)",
        {"cpus": (1, 3), "detected_by": 7, "t_jiffies": 60002, "g": 211, "c": 210, "q": 9},
    ),
    "3.8 self": (
        "INFO: rcu_sched self-detected stall on CPU { 6}  (t=15000 jiffies g=2124 c=2123 q=72503)",
        {"form": "self", "cpus": (6,), "g": 2124, "c": 2123, "q": 72503},
    ),
    "3.10 with stall info": (
        "INFO: rcu_preempt detected stalls on CPUs/tasks:\n"
        "\t11: (1 GPs behind) idle=a3f/140000000000001/0 softirq=12/13 last_accelerate: 1/2\n"
        "\t(detected by 4, t=21002 jiffies, g=17, c=16, q=3)",
        {"flavour": "rcu_preempt", "cpus": (11,), "cpu": 11, "detected_by": 4, "t_jiffies": 21002, "c": 16},
    ),
    "4.9 others with tasks": (
        "INFO: rcu_preempt detected stalls on CPUs/tasks:\n"
        "\tTasks blocked on level-1 rcu_node (CPUs 0-15): P4711 P12\n"
        "\t3-...: (17 ticks this GP) idle=a3f/140000000000001/0 softirq=12/13 fqs=365 \n"
        "\t(detected by 4, t=21002 jiffies, g=-300, c=-301, q=3)",
        {"cpus": (3,), "tasks": ("P4711", "P12"), "g": -300, "c": -301},
    ),
    "4.9 self": (
        "INFO: rcu_sched self-detected stall on CPU\n"
        "\t13-...: (2 GPs behind) idle=ea7/140000000000001/0 softirq=1/2 fqs=4198\n"
        "\t (t=8404 jiffies g=101 c=100 q=6440)",
        {"form": "self", "cpus": (13,), "t_jiffies": 8404, "g": 101, "c": 100, "q": 6440, "detected_by": None},
    ),
    "4.15 four flags, spaces for tabs": (
        "INFO: rcu_sched self-detected stall on CPU\n"
        "        2-....: (5999 ticks this GP) idle=1e2/140000000000001/0 softirq=8/8 fqs=1480 \n"
        "         (t=6000 jiffies g=7 c=6 q=1)",
        {"cpus": (2,), "t_jiffies": 6000, "g": 7},
    ),
    "4.19 rcu: prefix": (
        "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:\n"
        "rcu: \t2-...!: (0 ticks this GP) idle=1e2/1/0x4000000000000000 softirq=8/8 fqs=0 \n"
        "rcu: \t(detected by 0, t=60002 jiffies, g=9001, q=88)\n"
        "rcu: rcu_sched kthread starved for 59990 jiffies! g9001 f0x0 RCU_GP_WAIT_FQS(5) ->state=0x402 ->cpu=2",
        {"cpus": (2,), "g": 9001, "c": None, "gp_kthread_starved_jiffies": 59990, "duration_min_s": 60.002},
    ),
    "5.10 pr_cont without prefix, false positive": (
        "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:\n"
        "rcu: \t6-...!: (2 GPs behind) idle=0/0/0x0 softirq=1/2 fqs=0  (false positive?)\n"
        "\t(detected by 5, t=15002 jiffies, g=401, q=2)",
        {"cpus": (6,), "detected_by": 5, "t_jiffies": 15002, "g": 401, "q": 2},
    ),
    "6.1 rcuc and ncpus": (
        "rcu: INFO: rcu_preempt self-detected stall on CPU\n"
        "rcu: \t4-...!: (1 GPs behind) idle=9874/1/0x40 softirq=0/0 fqs=20 rcuc=21071 jiffies(starved)\n"
        "\t(t=21035 jiffies g=938281 q=40787 ncpus=6)",
        {"cpus": (4,), "t_jiffies": 21035, "q": 40787},
    ),
    "6.5 interrupt counts": (
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n"
        "rcu: \tTasks blocked on level-0 rcu_node (CPUs 0-7): P612/1:b..l\n"
        "rcu: \t1-....: (5249 ticks this GP) idle=51e4/1/0x4000000000000000 softirq=309/309 fqs=2563\n"
        "rcu: \t         hardirqs   softirqs   csw/system\n"
        "rcu: \t number:     2624          0            0\n"
        "rcu: \tcputime:       12          0        10490   ==> 10500(ms)\n"
        "rcu: \t(detected by 3, t=5252 jiffies, g=-319, q=608 ncpus=8)",
        {"cpus": (1,), "tasks": ("P612",), "detected_by": 3, "t_jiffies": 5252, "g": -319, "q": 608},
    ),
    "expedited, 4.9": (
        "INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 11-...D P901 } 31660 jiffies s: 28553 root: 0x2/.",
        {"form": "expedited", "cpus": (11,), "tasks": ("P901",), "t_jiffies": 31660, "g": None},
    ),
    "expedited, braces on three lines": (
        "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: {\n"
        "usb 1-1: new device\n 0-....\n } 3076 jiffies s: 5117 root: 0x1/.",
        {"form": "expedited", "flavour": "rcu_preempt", "cpus": (0,), "t_jiffies": 3076},
    ),
    "3.x braces torn": (
        "INFO: rcu_sched self-detected stall on CPU {\n 7}  (t=15001 jiffies g=5 c=4 q=3)",
        {"form": "self", "cpus": (7,), "t_jiffies": 15001, "g": 5},
    ),
    "tasks": (
        "INFO: rcu_tasks detected stalls on tasks:\n"
        "000000005bf2a2dd: .. nvcsw: 86/86 holdout: 1 idle_cpu: -1/0\n"
        "task:test_progs      state:R  running task     stack:    0 pid:   87 ppid:    85 flags:0x00004000",
        {"form": "tasks", "flavour": "rcu_tasks", "tasks": ("P87",), "t_jiffies": None, "cpus": ()},
    ),
    "suppressed for a CSD lock": (
        "rcu: INFO: rcu_sched detected stall, but suppressed full report due to a stuck CSD-lock.",
        {"form": "detected", "flavour": "rcu_sched", "cpus": ()},
    ),
    "mailed as quoted-printable": (
        "rcu: INFO: rcu_preempt self-detected stall on CPU\nrcu:   3-....: (5594 ticks this GP)\n"
        "idle=3D75a/1/0x4000000000000002 softirq=3D2787/2789 fqs=3D2625\n"
        "       (t=3D5253 jiffies g=3D4205 q=3D12)",
        {"cpus": (3,), "t_jiffies": 5253, "g": 4205, "q": 12},
    ),
    "the task of the stalled CPU": (
        "INFO: rcu_sched detected stalls on CPUs/tasks:\n"
        "\t26-...: (1881 ticks this GP) idle=76f/140000000000000/0 softirq=8/8 fqs=365\n"
        "\t(detected by 0, t=2103 jiffies, g=12, c=11, q=262)\n"
        "Task dump for CPU 26:\njava            R  running task    13488  1714   1513 0x00080188",
        {"cpu": 26, "comm": "java", "pid": 1714},
    ),
}


@pytest.mark.parametrize(("text", "expected"), RCU_FORMS.values(), ids=RCU_FORMS)
def test_rcu_stall_of_every_era(text: str, expected: dict[str, Any]) -> None:
    """One report, one row, whatever the form, and nothing is told as lost."""
    (row,) = rows(rcu, text, "rcu_stall")
    assert_holds(row, expected)
    assert losses(rcu, text) == []


@pytest.mark.parametrize(("text", "expected"), RCU_FORMS.values(), ids=RCU_FORMS)
def test_rcu_stall_cut_anywhere_invents_nothing(text: str, expected: dict[str, Any]) -> None:
    """A report cut at any character never raises and every number it gives is one of the whole report's."""
    (whole,) = rows(rcu, text, "rcu_stall")
    for cut in range(len(text)):
        for row in rows(rcu, text[:cut], "rcu_stall"):
            for name, value in row.items():
                if name == "form" or value == whole.get(name):
                    continue
                assert name in ("cpus", "tasks", "cpu"), f"cut at {cut}: {name}={value}"
                assert name == "cpu" or set(value) <= set(whole[name]), f"cut at {cut}: {name}={value}"


@pytest.mark.parametrize(
    "text",
    [
        "INFO: Stall ended before state dump start",
        "rcu: INFO: Stall ended during stack backtracing.",
        "INFO: NMI handler (perf_event_nmi_handler) took too long to run: 3.123 msecs",
        "rcu: RCU grace-period kthread stack dump:",
    ],
)
def test_what_is_no_stall(text: str) -> None:
    """Lines that sound like a stall but report none."""
    assert [event for family in FAMILIES for event in read(family, text)] == []


def test_rcu_repeats_are_one_incident() -> None:
    """Reports of one grace period share a key whoever printed them; another grace period has another."""
    report = "INFO: rcu_sched self-detected stall on CPU {{ 2}}  (t={} jiffies g={} c=1 q=3)"
    other = "INFO: rcu_sched detected stalls on CPUs/tasks: { 2} (detected by 0, t=15003 jiffies, g=9, c=1, q=3)"
    text = "\n".join([report.format(15000, 9), other, report.format(60003, 9), report.format(15000, 10)])
    keys = [event.repeat_of for event in read(rcu, text) if isinstance(event, Event)]
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_android_expedited_limit_is_no_incident() -> None:
    """20 ms are noise; a minute is critical."""
    text = "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: {{ 1-.... }} {} jiffies s: 97 root: 0x2/."
    levels = [e.severity for t in (6, 21000, 60000) for e in read(rcu, text.format(t)) if isinstance(e, Event)]
    assert levels == ["info", "high", "critical"]


def test_starved_kthread_is_an_event_of_its_own() -> None:
    """Where the report's head is lost, the starved kthread is still told."""
    (event,) = read(rcu, "rcu_sched kthread starved for 15002 jiffies! g12 c11 f0x0 RCU_GP_WAIT_FQS(3) ->state=0x0")
    assert isinstance(event, Event)
    assert (event.kind, event.table) == ("rcu_kthread_starved", "")


@given(
    cpus=st.lists(st.integers(0, 511), min_size=1, max_size=20, unique=True),
    numbers=st.tuples(*[st.integers(0, 2**31 - 1)] * 3),
    g=st.integers(-400, 2**40),
    era=st.sampled_from([(3, "", "\t", True), (4, "rcu: ", "rcu: \t", False), (4, "rcu: ", "\t", False)]),
    own=st.booleans(),
)
def test_rcu_stall_printed_and_read_back(
    cpus: list[int], numbers: tuple[int, int, int], g: int, era: tuple[int, str, str, bool], own: bool
) -> None:
    """What tree_stall.h prints is read back, number for number."""
    (by, t, q), (flags, head, lead, has_c) = numbers, era
    c = f" c={g - 1}," if has_c else ""
    first = "self-detected stall on CPU" if own else "detected stalls on CPUs/tasks:"
    body = [f"{head}\t{cpu}-{'.' * flags}: ({cpu} ticks this GP) idle=0a1/1/0 softirq=1/2 fqs=3 " for cpu in cpus]
    last = (
        f"(t={t} jiffies g={g}{c.rstrip(',')} q={q})" if own else f"(detected by {by}, t={t} jiffies, g={g},{c} q={q})"
    )
    text = "\n".join([f"{head}INFO: rcu_sched {first}", *body, lead + last])
    (row,) = rows(rcu, text, "rcu_stall")
    assert_holds(
        row,
        {
            "form": "self" if own else "detected",
            "cpus": tuple(cpus),
            "t_jiffies": t,
            "g": g,
            "q": q,
            "c": g - 1 if has_c else None,
            "detected_by": None if own else by,
        },
    )


@pytest.mark.parametrize(
    ("stamps", "hz"),
    [
        ([(120024.1, 60000), (120203.7, 240003)], 1000),
        ([(100.0, 5250), (163.0, 21003)], 250),
        ([(100.0, 2100), (163.0, 8403)], 100),
        ([(100.0, 2100)], None),
        ([(100.0, 2100), (100.2, 8403)], None),
        ([(100.0, 5000), (200.0, 25000)], None),
    ],
)
def test_tick_rate_from_two_reports(stamps: list[tuple[float, int]], hz: int | None) -> None:
    """d(jiffies)/d(seconds), rounded to a rate that can be configured, or nothing."""
    assert rcu.infer_hz(rcu.Stamp(*stamp) for stamp in stamps) == hz


def test_tick_rate_holds_for_the_boot() -> None:
    """Two reports of one stall give the tick rate, and with it the durations of that boot, not of another."""
    stalls = [
        {"boot": 0, "incident": "a", "uptime_s": 100.0, "t_jiffies": 5250},
        {"boot": 0, "incident": "a", "uptime_s": 163.0, "t_jiffies": 21003},
        {"boot": 0, "incident": "b", "uptime_s": 500.0, "t_jiffies": 1000},
        {"boot": 1, "incident": "c", "uptime_s": 500.0, "t_jiffies": 1000},
    ]
    rcu.settle({"rcu_stall": stalls})
    assert [row.get("hz") for row in stalls] == [250, 250, 250, None]
    assert [row.get("duration_s") for row in stalls] == [21.0, 84.012, 4.0, None]


STALL_FORMS = {
    "4.9": (
        "kworker/1:2: page allocation stalls for 100003ms, order:0, mode:0x2400000(GFP_NOIO)",
        {"comm": "kworker/1:2", "duration_ms": 100003, "order": 0, "gfp_mask": "0x2400000", "gfp_flags": ("GFP_NOIO",)},
    ),
    "4.12 nodemask": (
        "DOM Worker: page allocation stalls for 10646ms, order:1, mode:0x14280ca(GFP_HIGHUSER_MOVABLE|__GFP_ZERO), "
        "nodemask=(null)",
        {
            "comm": "DOM Worker",
            "order": 1,
            "gfp_flags": ("GFP_HIGHUSER_MOVABLE", "__GFP_ZERO"),
            "nodemask": "(null)",
        },
    ),
    "4.12 nodemask of two nodes": (
        "a: page allocation stalls for 10001ms, order:0, mode:0x1(__GFP_DMA), nodemask=0-1",
        {"comm": "a", "nodemask": "0-1"},
    ),
    "7.2 seconds": (
        "tar: page allocation stall for 23 secs: order:3, mode:0xcc0(GFP_KERNEL) nodemask=0-1,cpuset=/",
        {"comm": "tar", "duration_ms": 23000, "order": 3, "gfp_mask": "0xcc0", "nodemask": "0-1"},
    ),
    "patched comm(pid)": (
        "systemd(1): page allocation stalls for 32088ms, order:0 mode:0x24201ca(GFP_HIGHUSER_MOVABLE|__GFP_COLD)",
        {"comm": "systemd", "pid": 1, "duration_ms": 32088, "order": 0, "gfp_mask": "0x24201ca"},
    ),
    "patched with blanks": (
        "Binder:1: page allocation stalls for 12000 ms, order: 2",
        {"comm": "Binder:1", "duration_ms": 12000, "order": 2, "gfp_mask": None},
    ),
}


@pytest.mark.parametrize(("text", "expected"), STALL_FORMS.values(), ids=STALL_FORMS)
def test_allocation_stall_of_every_era(text: str, expected: dict[str, Any]) -> None:
    """One print, one row."""
    (row,) = rows(alloc, text, "alloc_stall")
    assert_holds(row, expected)
    for cut in range(len(text)):
        for part in rows(alloc, text[:cut], "alloc_stall"):
            assert whole_numbers(part, text[:cut]).items() <= row.items()


def test_allocation_stall_takes_the_kernel_from_its_own_stack_dump() -> None:
    """Another task's `CPU:` line between does not count."""
    text = """\
ntpd: page allocation stalls for 20001ms, order:0, mode:0x24000c0(GFP_KERNEL)
CPU: 3 PID: 7 Comm: sshd Tainted: G        W       4.9.1 #1
CPU: 16 PID: 13099 Comm: ntpd Tainted: G           O    4.9.43-own #1"""
    (row,) = rows(alloc, text, "alloc_stall")
    assert_holds(row, {"pid": 13099, "cpu": 16, "tainted": "G O", "kernel": "4.9.43-own"})


def test_prints_of_one_stuck_allocation_are_one_incident() -> None:
    """The start wanders a little; another task, or the same one stuck again, is another incident."""
    text = """\
[334.317] a.out: page allocation stalls for 20116ms, order:0, mode:0x1(__GFP_DMA)
[374.275] a.out: page allocation stalls for 60080ms, order:0, mode:0x1(__GFP_DMA)
[374.280] b.out: page allocation stalls for 60080ms, order:0, mode:0x1(__GFP_DMA)
[404.298] a.out: page allocation stalls for 10046ms, order:0, mode:0x1(__GFP_DMA)"""
    keys = [event.repeat_of for event in read(alloc, text) if isinstance(event, Event)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


FAILURE_FORMS = {
    "2.6.32": ("swapper: page allocation failure. order:1, mode:0x20", "swapper", 1, "0x20", None),
    "3.2": ("kswapd0: page allocation failure: order:5, mode:0x4020", "kswapd0", 5, "0x4020", None),
    "4.9": (
        "X: page allocation failure: order:0, mode:0x40a20(GFP_ATOMIC|__GFP_COMP)",
        "X",
        0,
        "0x40a20",
        "GFP_ATOMIC",
    ),
    "5.0": (
        "kworker/u4:4: page allocation failure: order:2, mode:0x40a20(GFP_ATOMIC|__GFP_COMP), "
        "nodemask=(null),cpuset=/,mems_allowed=0-1",
        "kworker/u4:4",
        2,
        "0x40a20",
        "GFP_ATOMIC",
    ),
}


@pytest.mark.parametrize(("text", "comm", "order", "mask", "flag"), FAILURE_FORMS.values(), ids=FAILURE_FORMS)
def test_allocation_failure_of_every_era(text: str, comm: str, order: int, mask: str, flag: str | None) -> None:
    """One failure, one row."""
    (row,) = rows(alloc, text, "alloc_failure")
    assert_holds(row, {"comm": comm, "order": order, "gfp_mask": mask})
    assert (row.get("gfp_flags") or (None,))[0] == flag


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "CPU: 0 PID: 10356 Comm: a.out Tainted: G        W       4.9.0+ #102",
            Running(0, 10356, "a.out", "G W", "4.9.0+"),
        ),
        (
            "CPU: 4 UID: 1000 PID: 1067 Comm: dirty log Not tainted 6.13.0-rc3 #814",
            Running(4, 1067, "dirty log", "Not tainted", "6.13.0-rc3"),
        ),
        (
            "CPU: 1 PID: 9 Comm: x Kdump: loaded Tainted: P           OE    --------- -  - 4.18.0-147.el8 #1",
            Running(1, 9, "x", "P OE", "4.18.0-147.el8"),
        ),
        (
            "Pid: 511, comm: kmemleak Not tainted 2.6.31-rc2 #2",
            Running(None, 511, "kmemleak", "Not tainted", "2.6.31-rc2"),
        ),
        ("CPU: 2 PID: 17", None),
    ],
)
def test_line_that_introduces_a_stack_dump(text: str, expected: Running | None) -> None:
    """Which task ran where."""
    assert running(text) == expected


DUMP = """\
Mem-Info:
active_anon:110 inactive_anon:71 isolated_anon:0
 active_file:25 inactive_file:12 isolated_file:2
 free:202928 free_pcp:3085 free_cma:0
Node 0 active_anon:440kB inactive_anon:284kB shmem_thp: 0kB pages_scanned:15744 all_unreclaimable? yes
Node 0 DMA32 free:15900kB boost:0kB min:100kB low:124kB high:148kB present:15996kB managed:15900kB mlocked:0kB
lowmem_reserve[]: 0 0 0
Node 0 DMA32: 3*4kB (UMEH) 4*8kB (MEH) 0*16kB = 44kB
Node 0 hugepages_total=0 hugepages_free=0 hugepages_surp=0 hugepages_size=2048kB
159096 total pagecache pages
955 pages in swap cache
Swap cache stats: add 267105, delete 266150, find 100036/132538
Free swap  = 1836400kB
Total swap = 1949692kB
513612 pages RAM
0 pages HighMem/MovableOnly
12989 pages reserved"""


def test_mem_info_dump() -> None:
    """Every number of the dump, each under its name, all in one dump."""
    node, zone = rows(meminfo, DUMP, "meminfo_zone")
    assert_holds(
        node,
        {
            "node": 0,
            "zone": None,
            "active_anon_kb": 440,
            "pages_scanned": 15744,
            "all_unreclaimable": True,
        },
    )
    assert_holds(zone, {"zone": "DMA32", "free_kb": 15900, "min_kb": 100, "managed_kb": 15900, "mlocked_kb": 0})
    assert "all_unreclaimable" not in zone
    blocks = rows(meminfo, DUMP, "buddy")
    assert [(row["order"], row["block_kb"], row["blocks"], row.get("migrate_types")) for row in blocks] == [
        (0, 4, 3, ("U", "M", "E", "H")),
        (1, 8, 4, ("M", "E", "H")),
        (2, 16, 0, None),
    ]
    totals = {row["name"]: (row["value"], row["unit"]) for row in rows(meminfo, DUMP, "meminfo_total")}
    assert totals["active_file"] == (25, "pages")
    assert totals["free_cma"] == (0, "pages")
    assert totals["Swap cache find total"] == (132538, "lookups")
    assert totals["Free swap"] == (1836400, "kB")
    assert totals["pages reserved"] == (12989, "pages")
    assert len(totals) == 9 + 2 + 4 + 2 + 3
    every = [row for table in meminfo.TABLES for row in rows(meminfo, DUMP, table)]
    assert {row["dump"] for row in every} == {15}
    assert losses(meminfo, DUMP) == []


def test_mem_info_without_head_and_two_in_a_row() -> None:
    """A dump that lost its head keeps its rest; the dump after it is another."""
    lines = DUMP.split("\n")
    text = "\n".join([*lines[5:], *lines])
    assert {row["dump"] for row in rows(meminfo, text, "buddy")} == {10, 27}
    assert len(rows(meminfo, text, "meminfo_zone")) == 3


@pytest.mark.parametrize("cut", range(len(DUMP)))
def test_mem_info_cut_anywhere_invents_nothing(cut: int) -> None:
    """Every row of a cut dump is a row of the whole one, perhaps with columns missing."""
    for table in meminfo.TABLES:
        whole = rows(meminfo, DUMP, table)
        for row, full in zip(rows(meminfo, DUMP[:cut], table), whole, strict=False):
            for name in set(row) - {"dump"}:
                # A plain number at the cut may have lost digits that nothing after it would show.
                assert row[name] == full[name] or DUMP[:cut].endswith(str(row[name]))


@pytest.mark.parametrize(
    ("text", "node", "zone"),
    [
        ("Normal free:1884kB min:1920kB low:2400kB high:2880kB present:9kB all_unreclaimable? no", None, "Normal"),
        (
            "Node 1 DMA free:7kB min:1kB low:2kB high:3kB isolated(anon):0kB pages_scanned:0 all_unreclaimable? yes",
            1,
            "DMA",
        ),
        ("HighMem free:7kB min:1kB low:2kB high:3kB unstable:0kB bounce:0kB", None, "HighMem"),
    ],
)
def test_zone_lines_with_and_without_node(text: str, node: int | None, zone: str) -> None:
    """32-bit kernels without NUMA print no node."""
    (row,) = rows(meminfo, text, "meminfo_zone")
    assert_holds(row, {"node": node, "zone": zone})


@pytest.mark.parametrize("edge", ["bounce:0kB lo>", "bounce:0kB>", "shmem_thp: 0kB>", "shmem_thp: >", "high:148>"])
def test_line_clipped_by_a_pager_keeps_its_whole_numbers(edge: str) -> None:
    """What stands before the edge is sound, the rest is told as missing."""
    text = f"Node 0 DMA free:15908kB min:268kB low:332kB {edge}"
    (row,) = rows(meminfo, text, "meminfo_zone")
    assert_holds(row, {"free_kb": 15908, "min_kb": 268, "low_kb": 332, "high_kb": None})
    assert len(losses(meminfo, text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Node 0 Normal: 70*4kB  0(UME)  0116*64kB 1*8kB = 9kB",
        "Node 0 Normal: 3*4kB (U) 4*8kB (M) = 45kB",
        "Node 0 Normal: 3*4kB (U) 4*16kB (M) = 76kB",
        "Node 0 Normal: 3*4kB (U) 4*8kB (M",
        "Node 0 Normal free:1884kB min:1920kB low:24Node 1 DMA free:7kB min:1kB",
    ],
)
def test_interleaved_lines_are_damage(text: str) -> None:
    """What does not parse to its end, or does not add up, gives no number."""
    assert len(losses(meminfo, text)) == 1
    assert not any(rows(meminfo, text, table) for table in meminfo.TABLES)


@given(
    counts=st.lists(st.integers(0, 2**24), min_size=6, max_size=14),
    page_kb=st.sampled_from([4, 16, 64]),
    types=st.lists(st.sampled_from("UMEHCI"), min_size=1, max_size=4, unique=True),
    node=st.one_of(st.none(), st.integers(0, 31)),
    wrong=st.integers(0, 3),
)
def test_buddy_list_printed_and_read_back(
    counts: list[int], page_kb: int, types: list[str], node: int | None, wrong: int
) -> None:
    """What show_free_areas() prints is read back; a sum that is off by anything discards the list."""
    sizes = [page_kb << order for order in range(len(counts))]
    total = sum(n * size for n, size in zip(counts, sizes, strict=True))
    pieces = [f"{n}*{size}kB {'(' + ''.join(types) + ') ' if n else ''}" for n, size in zip(counts, sizes, strict=True)]
    text = f"{f'Node {node} ' if node is not None else ''}Normal: {''.join(pieces)}= {total + wrong}kB"
    found = rows(meminfo, text, "buddy")
    if wrong:
        assert found == []
        assert len(losses(meminfo, text)) == 1
        return
    assert [row["blocks"] for row in found] == counts
    assert sum(row["blocks"] << row["order"] for row in found) * page_kb == total
    assert all(row.get("node") == node for row in found)
    assert all(row.get("migrate_types") == (tuple(types) if row["blocks"] else None) for row in found)


KILL_FORMS = {
    "2.6.32": ("Killed process 1234 (my app)", {"pid": 1234, "comm": "my app", "total_vm_kb": None}),
    "2.6.36": (
        "Killed process 12 (a) vsz:40kB, anon-rss:30kB, file-rss:20kB",
        {"total_vm_kb": 40, "anon_rss_kb": 30, "file_rss_kb": 20},
    ),
    "el6": (
        "Killed process 12, UID 48, (httpd) total-vm:40kB, anon-rss:30kB, file-rss:20kB",
        {"pid": 12, "uid": 48, "comm": "httpd", "file_rss_kb": 20},
    ),
    "4.9": (
        "Killed process 9485 (a.out) total-vm:4168kB, anon-rss:84kB, file-rss:0kB, shmem-rss:7kB",
        {"total_vm_kb": 4168, "shmem_rss_kb": 7, "constraint": None},
    ),
    "el7": (
        "Killed process 12 (x), UID 27, total-vm:40kB, anon-rss:30kB, file-rss:20kB, shmem-rss:0kB",
        {"uid": 27, "total_vm_kb": 40},
    ),
    "el8": (
        "Out of memory: Killed process 12 ((sd-pam)) total-vm:40kB, anon-rss:30kB, file-rss:20kB, shmem-rss:0kB",
        {"comm": "(sd-pam)", "constraint": "global"},
    ),
    "5.4": (
        "Memory cgroup out of memory: Killed process 12 (x) total-vm:40kB, anon-rss:30kB, file-rss:20kB, "
        "shmem-rss:0kB, UID:1000 pgtables:72kB oom_score_adj:-997",
        {"uid": 1000, "oom_score_adj": -997, "constraint": "memcg", "total_vm_kb": 40},
    ),
}


@pytest.mark.parametrize(("text", "expected"), KILL_FORMS.values(), ids=KILL_FORMS)
def test_oom_kill_of_every_era(text: str, expected: dict[str, Any]) -> None:
    """One kill, one row, and the reaper's word for it."""
    (row,) = rows(oom, text, "oom_kill")
    assert_holds(row, expected)
    assert "reaped" not in row
    reaper = f"\nfoo\noom_reaper: reaped process {row['pid']} ({row['comm']}), now anon-rss:0kB, file-rss:0kB"
    (row,) = rows(oom, text + reaper, "oom_kill")
    assert row["reaped"] is True
    for cut in range(len(text)):
        for part in rows(oom, text[:cut], "oom_kill"):
            assert whole_numbers(part, text[:cut]).items() <= row.items()


INVOKED_FORMS = {
    "2.6.32": ("sshd invoked oom-killer: gfp_mask=0x201da, order=0, oom_adj=0", 0, "0x201da", None),
    "el6": ("sshd invoked oom-killer: gfp_mask=0x201da, order=0, oom_adj=0, oom_score_adj=0", 0, "0x201da", None),
    "4.9": (
        "a b invoked oom-killer: gfp_mask=0x26042c0(GFP_KERNEL|__GFP_COMP), nodemask=0, order=2, oom_score_adj=1000",
        2,
        "0x26042c0",
        ("GFP_KERNEL", "__GFP_COMP"),
    ),
    "5.0": ("x invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=1, oom_score_adj=0", 1, "0xcc0", ("GFP_KERNEL",)),
}


@pytest.mark.parametrize(("text", "order", "mask", "flags"), INVOKED_FORMS.values(), ids=INVOKED_FORMS)
def test_oom_invocation_of_every_era(text: str, order: int, mask: str, flags: tuple[str, ...] | None) -> None:
    """Who asked for what."""
    (row,) = rows(oom, text, "oom_context")
    invoked_by = text.partition(" invoked")[0]
    assert_holds(row, {"invoked_by": invoked_by, "order": order, "gfp_mask": mask, "gfp_flags": flags})


def test_oom_kill_joined_with_its_context() -> None:
    """`settle` gives a kill what the lines before it say, and not what an earlier kill's lines say."""
    text = """\
first invoked oom-killer: gfp_mask=0x1(__GFP_DMA), order=3, oom_score_adj=0
Task in /lxc/a killed as a result of limit of /lxc
Memory cgroup out of memory: Kill process 5 (v) score 9 or sacrifice child
Killed process 5 (v) total-vm:1kB, anon-rss:1kB, file-rss:0kB
idle invoked oom-killer: gfp_mask=0x2(__GFP_HIGHMEM), order=1, oom_score_adj=0
second invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/,task=w,pid=6,uid=7
Out of memory: Killed process 6 (w) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB
Killed process 8 (z) total-vm:1kB, anon-rss:1kB, file-rss:0kB"""
    found: dict[str, list[dict[str, Any]]] = {"oom_kill": [], "oom_context": []}
    log = messages(text)
    for index, message in enumerate(log):
        for event in oom.read(log[index:]):
            assert isinstance(event, Event)
            found[event.table].append({"line": message.number, **event.row})
    oom.settle(found)
    first, second, third = found["oom_kill"]
    assert_holds(first, {"invoked_by": "first", "order": 3, "constraint": "memcg", "memcg": "/lxc", "pid": 5})
    assert_holds(second, {"invoked_by": "second", "order": 0, "constraint": "global", "memcg": None, "uid": 7})
    assert_holds(third, {"invoked_by": None, "constraint": None, "pid": 8})


def test_lone_reaper_is_an_event_without_a_kill() -> None:
    """The kill itself was not logged: evidence, but no row."""
    (event,) = read(oom, "oom_reaper: reaped process 26861 (logfwdr), now anon-rss:8kB, file-rss:0kB, shmem-rss:0kB")
    assert isinstance(event, Event)
    assert (event.kind, event.table, event.row["pid"]) == ("oom_reaper", "", 26861)


TASK_TABLES = {
    "2.6.32": ("[ pid ]   uid  tgid total_vm      rss cpu oom_adj name", "0   12  4100   77 3   0 my app"),
    "3.10": (
        "[ pid ]   uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name",
        "0 12 4100 77 9 0 -17 my app",
    ),
    "4.19": (
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
        "0 12 4100 77 8 0 -17 my app",
    ),
    "6.8": (
        "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",  # noqa: E501
        "0 12 4100 77 70 7 0 8192 0 -17 my app",
    ),
}


@pytest.mark.parametrize(("header", "row"), TASK_TABLES.values(), ids=TASK_TABLES)
def test_oom_task_table_is_read_by_its_header(header: str, row: str) -> None:
    """Columns moved four times; the header names them."""
    text = f"{header}\n[   12] {row}\n[  345] {row}\nOut of memory: more"
    found = rows(oom, text, "oom_task")
    assert [(task["line"], task["pid"]) for task in found] == [(2, 12), (3, 345)]
    adjusted = -17 if "oom_score_adj" in header else None
    for task in found:
        assert_holds(
            task, {"uid": 0, "total_vm_pages": 4100, "rss_pages": 77, "oom_score_adj": adjusted, "comm": "my app"}
        )


def test_oom_task_table_longer_than_the_block_is_told() -> None:
    """A table is not cut silently."""
    text = "\n".join(["[ pid ]   uid  tgid total_vm      rss cpu oom_adj name", *["[   12] 0 12 41 7 3 0 x"] * 300])
    assert len(rows(oom, text, "oom_task")) == MAX_AHEAD
    assert len(losses(oom, text)) == 1


LOCKUPS = {
    "2.6.32 soft": (
        "BUG: soft lockup - CPU#3 stuck for 61s! [kworker/0:13:3571]",
        "soft_lockup",
        {"cpu": 3, "duration_s": 61, "comm": "kworker/0:13", "pid": 3571},
    ),
    "4.9 soft": (
        "NMI watchdog: BUG: soft lockup - CPU#12 stuck for 22s! [java:1]",
        "soft_lockup",
        {"cpu": 12, "duration_s": 22, "comm": "java", "pid": 1},
    ),
    "5.x soft": (
        "watchdog: BUG: soft lockup - CPU#0 stuck for 134s! [syz:4588]",
        "soft_lockup",
        {"cpu": 0, "duration_s": 134},
    ),
    "3.2 hard": ("Watchdog detected hard LOCKUP on cpu 5", "hard_lockup", {"cpu": 5}),
    "4.9 hard": ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 15", "hard_lockup", {"cpu": 15}),
    "7.2 hard": ("watchdog: CPU2: Watchdog detected hard LOCKUP on cpu 6", "hard_lockup", {"cpu": 6}),
    "powerpc hard": (
        "watchdog: CPU 9 detected hard LOCKUP on other CPUs 4",
        "hard_lockup",
        {"cpu": 4, "detected_by": 9},
    ),
    "hung": (
        "INFO: task kworker/u4:6:10032 blocked for more than 143 seconds.",
        "hung_task",
        {"comm": "kworker/u4:6", "pid": 10032, "duration_s": 143, "blocker": None},
    ),
    "7.2 hung": (
        "INFO: task a:11 blocked in I/O wait for more than 120 seconds.\n      Tainted: G W 7.2 #1\n"
        '"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.\n'
        "INFO: task a:11 is blocked on a mutex likely owned by task b c:22.",
        "hung_task",
        {"comm": "a", "pid": 11, "duration_s": 120, "blocker": "b c:22"},
    ),
    "workqueue": (
        "BUG: workqueue lockup - pool cpus=2-3 node=0 flags=0x4 nice=-20 stuck for 31s!",
        "workqueue_lockup",
        {"cpus": (2, 3), "node": 0, "flags": "0x4", "nice": -20, "duration_s": 31},
    ),
}


@pytest.mark.parametrize(("text", "table", "expected"), LOCKUPS.values(), ids=LOCKUPS)
def test_lockup_of_every_era(text: str, table: str, expected: dict[str, Any]) -> None:
    """One report, one row."""
    (row,) = rows(lockup, text, table)
    assert_holds(row, expected)
    assert losses(lockup, text) == []


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-2,5", (0, 1, 2, 5)), ("7", (7,)), ("1-2-3", ()), ("9" * 5000, ()), ("0-99999", ()), ("", ()), ("3-1", ())],
)
def test_cpu_list(text: str, cpus: tuple[int, ...]) -> None:
    """Ranges as %*pbl prints them; what is garbled names no CPU."""
    assert lockup.cpu_list(text) == cpus


def test_hung_tasks_no_longer_reported_are_a_loss() -> None:
    """From here on their number is a floor."""
    (loss,) = read(lockup, "Future hung task reports are suppressed, see sysctl kernel.hung_task_warnings")
    assert isinstance(loss, Loss)
    assert loss.kind == "ratelimit"


@given(text=st.text(max_size=80), family=st.sampled_from(FAMILIES), index=st.integers(0, 20))
def test_any_text_around_a_literal_never_raises(text: str, family: ModuleType, index: int) -> None:
    """Hostile text gives events, losses or nothing; columns are declared."""
    literal = family.LITERALS[index % len(family.LITERALS)].decode()
    for found in read(family, f"{text}{literal}{text}\n{text}"):
        if isinstance(found, Event):
            for table, row in [(found.table, found.row), *found.more]:
                allowed = {*family.TABLES[table].columns, "line"} if table else {"cpu", "pid", "comm"}
                assert set(row) <= allowed


EXCERPTS = FIELD / "kernel-logs" / "excerpts"
SOURCES = FIELD / "SOURCES.tsv"
COUNTED = {"rcu_stall": "rcu_stall", "alloc_stall": "alloc_stall", "oom_kill": "oom_kill", "rcu_exp": "rcu_stall"}
"""What the sources file counts, and the table that must have as many rows."""


def excerpts() -> dict[str, dict[str, int]]:
    """Return the captures of the field whose facts the sources file tells: name to table to number of rows."""
    facts: dict[str, dict[str, int]] = {}
    for line in SOURCES.read_text().split("\n") if SOURCES.exists() else []:
        path, _, rest = line.partition("\t")
        if path.startswith("kernel-logs/excerpts/"):
            told = re.findall(r"\b(\w+)=(\d+)", rest.split("\t")[-1])
            facts[path.rsplit("/", 1)[1]] = {COUNTED[name]: int(n) for name, n in told if name in COUNTED}
    return {name: told for name, told in facts.items() if told}


def parsed(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a whole file."""
    return kernel_log.parse(Capture(path.name, 1, "", [path.read_bytes()])).rows


@pytest.mark.skipif(not SOURCES.exists(), reason="the field captures are not beside the checkout")
@pytest.mark.parametrize(("name", "told"), excerpts().items(), ids=excerpts())
def test_field_excerpts_have_the_reports_their_source_tells(name: str, told: dict[str, int]) -> None:
    """As many rows as somebody else counted, each stall with its length or its tasks."""
    found = parsed(EXCERPTS / name)
    assert {table: len(found.get(table, [])) for table in told} == told
    for row in found.get("rcu_stall", []):
        assert row.get("t_jiffies") or row["tasks"]
        assert row["cpus"] or row["tasks"]


@pytest.mark.skipif(
    not (FIELD / "cloudflare-stretch").exists(), reason="the field captures are not beside the checkout"
)
@pytest.mark.parametrize(
    ("name", "table", "expected"),
    [
        (
            "kern-rcu-detected.log",
            "rcu_stall",
            {
                "form": "detected",
                "cpus": (26,),
                "detected_by": 0,
                "t_jiffies": 2102,
                "g": 1837293,
                "c": 1837292,
                "q": 262,
                "comm": "java",
            },
        ),
        (
            "dmesg-rcu-self-detected.txt",
            "rcu_stall",
            {"form": "self", "cpus": (13,), "t_jiffies": 8403, "g": 110722, "detected_by": None},
        ),
        (
            "dmesg-meminfo-stall.txt",
            "alloc_stall",
            {
                "comm": "ntpd",
                "pid": 13099,
                "duration_ms": 272380,
                "order": 0,
                "gfp_mask": "0x24000c0",
                "kernel": "4.9.43-cloudflare-2017.8.4",
            },
        ),
        ("dmesg-stall-networkd.txt", "alloc_stall", {"comm": "systemd-network", "duration_ms": 287000, "order": 0}),
    ],
)
def test_cloudflare_captures(name: str, table: str, expected: dict[str, Any]) -> None:
    """The figures the incident was told by."""
    (row,) = parsed(FIELD / "cloudflare-stretch" / "stretch" / name)[table]
    assert_holds(row, expected)


@pytest.mark.skipif(
    not (FIELD / "cloudflare-stretch").exists(), reason="the field captures are not beside the checkout"
)
def test_cloudflare_dump_keeps_what_the_lost_middle_left() -> None:
    """Nine messages were dropped inline; both buddy lists after them add up, all in the dump before the stall."""
    found = parsed(FIELD / "cloudflare-stretch" / "stretch" / "dmesg-meminfo-stall.txt")
    for node, total in ((0, 236080), (1, 305752)):
        assert sum(row["blocks"] * row["block_kb"] for row in found["buddy"] if row["node"] == node) == total
    assert [(row["node"], row.get("zone")) for row in found["meminfo_zone"]] == [(0, None), (1, None), (0, "DMA")]
    assert len({row["dump"] for table in meminfo.TABLES for row in found[table]}) == 1


def test_tick_rate_of_a_whole_capture() -> None:
    """Two reports 63 s and 15,753 jiffies apart: 250 Hz, for the other stalls of that boot as well."""
    stalls = parsed(Path(__file__).parent / "corpus" / "kernel_log" / "rcu-one-stall-four-reports.txt")["rcu_stall"]
    rcu.settle({"rcu_stall": stalls})
    assert [row["hz"] for row in stalls] == [250] * 4
    assert [row["duration_s"] for row in stalls] == [21.0, 84.012, 21.008, 0.024]


@pytest.mark.parametrize("filler", [" ", "1", "1 ", "a:1 ", "( ", "Tainted: ", ">", "1*4kB ", "P1"])
def test_hostile_lines_cost_no_time(filler: str) -> None:
    """The longest line a reader hands on, filled with what the grammars repeat, behind every literal."""
    long = filler * (MAX_LINE // len(filler) - 10)
    for family in FAMILIES:
        for literal in family.LITERALS:
            read(family, f"{literal.decode()}{long}x\n{long}x\n{{{long}x")


@pytest.mark.parametrize("digits", [19, 5000])
def test_numbers_too_long_for_a_column_are_not_taken(digits: int) -> None:
    """Every number of every form grown beyond 64 bits: nothing raises, nothing that long comes out."""
    forms = [*RCU_FORMS.values(), *STALL_FORMS.values(), *KILL_FORMS.values(), *INVOKED_FORMS.values()]
    texts = [form[0] for form in forms] + [form[0] for form in (*LOCKUPS.values(), *FAILURE_FORMS.values())]
    for text in [*texts, DUMP]:
        grown = re.sub(r"(?<![\da-fx])\d+", lambda number: number[0].rjust(digits, "9"), text)
        for family in FAMILIES:
            for event in read(family, grown):
                if isinstance(event, Event):
                    for row in [event.row, *(row for _, row in event.more)]:
                        assert all(abs(value) < 2**63 for value in row.values() if isinstance(value, int))
