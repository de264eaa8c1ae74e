# ruff: noqa: E501 -- lines of captures are quoted whole
"""A verdict to render without reading a bundle: the Kafka node of the published Cloudflare account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pandas as pd

from analyzer.case import Case, InventoryEntry
from analyzer.findings import Candidate, Edge, Evidence, Finding, NotJudged, Step, Verdict
from parsers.shapes import COMMON, Gap

DMESG, KERN, RECLAIM = "dmesg-meminfo-stall.txt", "kern-rcu-detected.log", "kern-reclaim.log"
STACKS, TIMERS, SWITCHED = "stackcount-tcp_push_one.txt", "perf-script-timer-counts.txt", "ethtool-K-tx-on.txt"
AT = pd.Timestamp("2017-08-15 21:51:35", tz="UTC")

WRITE = ("tcp_push_one", "inet_sendmsg", "sock_sendmsg", "sock_write_iter")
COPIED = (
    *("tcp_push_one", "inet_sendmsg", "sock_sendmsg", "kernel_sendmsg", "sock_no_sendpage", "tcp_sendpage"),
    *("inet_sendpage", "kernel_sendpage", "sock_sendpage", "pipe_to_sendpage", "__splice_from_pipe"),
    *("splice_from_pipe", "generic_splice_sendpage", "direct_splice_actor", "splice_direct_to_actor"),
    *("do_splice_direct", "do_sendfile", "sys_sendfile64", "do_syscall_64", "return_from_SYSCALL_64"),
)
FRAMES = [
    (
        14,
        (*WRITE, "do_iter_readv_writev", "do_readv_writev", "vfs_writev", "do_writev", "SyS_writev", *COPIED[-2:]),
        123,
    ),
    (24, (*WRITE, "__vfs_write", "vfs_write", "SyS_write", *COPIED[-2:]), 172),
    (25, COPIED, 735_110),
]
BUCKETS = [1, 20, 46, 56, 65, 75, 75, 258, 144, 24, 27, 28, 35, 1]


def cloudflare() -> Verdict:
    """Return the verdict of the Cloudflare incident: a chain of five findings, two gaps, one rule not judged."""
    edges = [
        _edge(
            "vlan-offload-missing",
            "sock-no-sendpage",
            "tcp_sendpage() falls back to copying when the route lacks offloads",
        ),
        _edge("sock-no-sendpage", "tcp-timer-storm", "every page-sized send arms tcp_write_timer again"),
        _edge("sock-no-sendpage", "page-alloc-stall", "each page is copied into freshly allocated socket buffers"),
        _edge("page-alloc-stall", "rcu-stall", "printing Mem-Info for every stall holds the console lock", "timed"),
    ]
    found = _findings()
    for finding in found:
        finding.explains = [edge for edge in edges if edge.cause == finding.rule]
    lead = next(finding for finding in found if finding.rule == "vlan-offload-missing")
    candidate = Candidate(
        lead,
        "likely",
        ["It explains “sendfile falls back to copying, page by page”, “CPUs stalled RCU” and 2 more."],
        ["3 of 4 links of its chain could not be timed: the captures share no clock."],
        [f"{RECLAIM}:1: journald missed 17,171 kernel messages", f"{DMESG}:11: 9 printk messages dropped"],
        lead.capture,
        edges,
    )
    return Verdict(_case(), found, [candidate], [_not_judged()], ["tsc-warp", "tsc-missing", "tsc-unstable"])


def healthy() -> Verdict:
    """Return the verdict of a bundle in which nothing was found."""
    case = Case("healthy/", {"clocksource": _frame([{"member": "clocksource.txt", "line": 2, "current": "tsc"}])})
    return Verdict(case, [], [], [_not_judged()], ["tsc-warp", "tsc-missing"])


def hostile(text: str, verdict: Verdict | None = None) -> Verdict:
    """Return a verdict that carries `text` in every string a bundle could have brought in."""
    return _poisoned(verdict or cloudflare(), text)  # type: ignore[no-any-return]


def _poisoned(value: Any, text: str) -> Any:
    """Return a copy with `text` appended to every string, but for the closed words of our own."""
    if isinstance(value, pd.DataFrame):
        return value.map(lambda cell: cell + text if isinstance(cell, str) else cell)
    if is_dataclass(value) and not isinstance(value, type):
        ours = {"rule", "cause", "symptom", "severity", "confidence", "timing", "first_at"}
        changed = {f.name: _poisoned(getattr(value, f.name), text) for f in fields(value) if f.name not in ours}
        return replace(value, **changed)
    if isinstance(value, dict):
        return {key: _poisoned(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_poisoned(item, text) for item in value]
    return value + text if isinstance(value, str) else value


def _findings() -> list[Finding]:
    """Return the five findings of the chain, worst first."""
    rcu = Finding(
        "rcu-stall",
        "CPUs stalled RCU",
        "critical",
        "2 RCU stalls (detected, self): CPUs 26, 13 passed no quiescent state for 2,102 and 8,403 jiffies.",
        [
            _evidence("real", "rcu_stall", KERN, 1, "Aug 15 21:51:35 myhost kernel: INFO: rcu_sched detected stalls on CPUs/tasks:\n"
                      "Aug 15 21:51:35 myhost kernel:         26-...: (1881 ticks this GP) idle=76f/140000000000000/0 softirq=8/8 fqs=365\n"
                      "Aug 15 21:51:35 myhost kernel:         (detected by 0, t=2102 jiffies, g=1837293, c=1837292, q=262)",
                      host="myhost", at="2017-08-15T21:51:35Z"),
            _evidence("real", "rcu_stall", "dmesg-rcu-self-detected.txt", 3, "[ 4923.462841] INFO: rcu_sched self-detected stall on CPU\n"
                      "[ 4923.462843]  13-...: (2 GPs behind) idle=ea7/140000000000001/0 softirq=1/2 fqs=4198\n"
                      "[ 4923.462845]   (t=8403 jiffies g=110722 c=110721 q=6440)", uptime_s=4923.462841),
        ],
        2,
        specific=False,
    )  # fmt: skip
    stall = Finding(
        "page-alloc-stall",
        "Page allocations stalled",
        "critical",
        "2 allocations of ntpd, systemd-network waited 272,380 ms and 287,000 ms for memory, the longest 287 s; "
        "2 of 2 reports asked for a single page (order 0).",
        [
            _evidence("long", "alloc_stall", DMESG, 23,
                      "[78972.620129] ntpd: page allocation stalls for 272380ms, order:0, mode:0x24000c0(GFP_KERNEL)", uptime_s=78972.620129),
            _evidence("long", "alloc_stall", "dmesg-stall-networkd.txt", 1,
                      "[78991.546088] systemd-network: page allocation stalls for 287000ms, order:0, mode:0x24200ca(GFP_HIGHUSER_MOVABLE)",
                      uptime_s=78991.546088),
        ],
        2,
        mechanism="__alloc_pages_slowpath() retries reclaim and says so every 10 s.",
    )  # fmt: skip
    offload = Finding(
        "vlan-offload-missing",
        "VLAN device lacks the transmit offloads of its parent",
        "high",
        "Scatter-gather or transmit checksum offload was, until it was switched on, missing on vlan10 although the "
        "hardware below has it: TCP sent through it cannot hand pages to the NIC.",
        [
            _evidence("turned_on", "offload_change", SWITCHED, 4, "        tx-checksum-ip-generic: on"),
            _evidence("turned_on", "offload_change", SWITCHED, 3, "tx-checksumming: on"),
        ],
        11,
        mechanism="A socket takes its capabilities from its route's device when the connection is made.",
        advice=[
            Step("Turn scatter-gather and transmit checksums on for the VLAN device; TSO and GSO follow.",
                 "ethtool -K vlan10 sg on tx on", "a driver bug in VLAN checksums would show as corrupt packets",
                 "ethtool -k says tx-scatter-gather on, tx-checksumming on"),
            Step("Restart the process whose connections are slow: offload is fixed when a connection is made.",
                 "systemctl restart SERVICE", "its clients reconnect", "stackcount tcp_push_one shows no sock_no_sendpage any more"),
        ],
        capture=[Step("features of the VLAN, the bond and the NICs below it", "for d in $(ls /sys/class/net); do ethtool -k $d; done")],
        looks_like=["tx-checksum-fcoe-crc or tx-checksum-sctp differing between two hosts: TCP uses neither."],
        sources=["net/ipv4/tcp.c, tcp_sendpage(), until 6.4"],
    )  # fmt: skip
    fallback = Finding(
        "sock-no-sendpage",
        "sendfile falls back to copying, page by page",
        "high",
        "735,110 of 735,405 counted tcp_push_one stacks (99.96 %) go through sock_no_sendpage.",
        [_evidence("fallback", "stack", STACKS, 25, "\n".join(f"  {frame}" for frame in COPIED) + "\n    735110")],
        1,
    )
    storm = Finding(
        "tcp-timer-storm",
        "TCP write timers armed at a storm's rate",
        "medium",
        "tcp_write_timer was armed 1,983,978 times in 10 s, 198,397.8 times a second; it is 99.77 % of all timers.",
        [_evidence("write", "timer", TIMERS, 14, "1983978 tcp_write_timer")],
        1,
        specific=False,
    )
    return [rcu, stall, offload, fallback, storm]


def _case() -> Case:
    """Return the case: the tables the figures are drawn from, gaps, inventory, facts."""
    events = [
        _row(KERN, 1, "INFO: rcu_sched detected stalls on CPUs/tasks:", kind="rcu_stall", severity="high", at=AT),
        _row(DMESG, 23, "page allocation stalls for 272380ms", kind="alloc_stall", severity="critical", uptime_s=78972.62),
        _row("dmesg-stall-networkd.txt", 1, "page allocation stalls for 287000ms", kind="alloc_stall", severity="critical", uptime_s=78991.5),
        _row(DMESG, 1, "Mem-Info:", kind="meminfo", severity="info", uptime_s=78972.5),
    ]  # fmt: skip
    tables = {
        "kernel_event": _frame(events),
        "alloc_stall": _frame(
            [_row(DMESG, 23, duration_ms=272_380), _row("dmesg-stall-networkd.txt", 1, duration_ms=287_000)]
        ),
        "rcu_stall": _frame([_row(KERN, 1, duration_s=8.408)]),
        "log_loss": _frame([_row(RECLAIM, 1, kind="journald", lost=17_171, at=AT + pd.Timedelta("3h23m16s")),
                            _row(DMESG, 11, kind="printk", lost=9, uptime_s=78972.506716)]),
        "stack": _frame([_row(STACKS, line - len(frames), tool="stackcount", traced="tcp_push_one", frames=frames, events=events)
                         for line, frames, events in FRAMES]),
        "timer": _frame([_row(TIMERS, line, function=name, events=events) for line, name, events in
                         ((12, "tcp_delack_timer", 4622), (14, "tcp_write_timer", 1_983_978), (8, "garp_join_timer", 18))]),
        "histogram": _frame([_row("funclatency-do_sendfile.txt", 5 + power, tool="funclatency", metric="do_sendfile", key="",
                                  clock="23:27:28", unit="usecs", low=2**power if power else 0, high=2 ** (power + 1) - 1,
                                  events=events, cumulative=False) for power, events in enumerate(BUCKETS)]),
        "func_count": _frame([_row("funccount-timers.txt", 5 + 3 * i, tool="funccount", function="mod_timer", events=events,
                                   interval_s=1.0, partial=False) for i, events in enumerate((149_068, 155_994, 160_688))]),
        "meminfo_zone": _frame([_row(DMESG, 10, node=0, zone="DMA", free_kb=15_900, min_kb=100)]),
        "buddy": _frame([_row(DMESG, 12, node=1, zone="Normal", order=order, blocks=blocks) for order, blocks in
                         enumerate((31740, 3879, 873, 353, 286, 62, 28, 20, 15, 7, 12))]),
        "offload": _frame([_row(f"ethtool-k-{device}.txt", 4 + i, device=device, feature=feature, state=state, fixed=False)
                           for device, sg in (("bond0", "on"), ("eth2", "on"), ("vlan10", "off"))
                           for i, (feature, state) in enumerate((("tx-checksumming", sg), ("tx-scatter-gather", sg),
                                                                 ("generic-receive-offload", "on")))]),
        "clocksource": _frame([_row("clocksource.txt", 2, current="tsc", available=("tsc", "hpet", "acpi_pm"))]),
    }  # fmt: skip
    gaps = [
        Gap(RECLAIM, 1, "journald missed 17,171 kernel messages"),
        Gap(DMESG, 11, "9 printk messages dropped"),
    ]
    inventory = [
        InventoryEntry(DMESG, "", "", "kernel_log", 14, 3653),
        InventoryEntry(STACKS, "lines 2-45", "stackcount -i 10 tcp_push_one", "stackcount", 3, 840),
        InventoryEntry("notes.pdf", "", "", "", 0, 20_480, "binary"),
    ]
    facts = {
        "hosts": ["myhost"],
        "kernels": ["4.9.43-cloudflare-2017.8.4"],
        "hardware": ["Quanta Computer Inc D51B-2U (dual 1G LoM)/S2B-MB (dual 1G LoM), BIOS S2B_3A21 10/01/2015"],
    }
    return Case("samples/cloudflare-vlan-offload/incident", tables, gaps, inventory, facts)


def _not_judged() -> NotJudged:
    return NotJudged(
        "connection-head-of-line",
        "Requests wait behind another on the same connection",
        ["no capture of system calls, packets or sockets is in the bundle"],
        [Step("the client's system calls, ten seconds of them", "strace -f -tt -T -yy -e trace=network -p PID -o client.strace")],
        ["busy_period"],
    )  # fmt: skip


def _edge(cause: str, symptom: str, because: str, timing: Any = "not timed") -> Edge:
    return Edge(cause, symptom, because, timing)


def _evidence(selection: str, table: str, member: str, line: int, text: str, **known: Any) -> Evidence:
    return Evidence(selection, table, member, line, text, **known)


def _row(member: str, line: int, text: str = "", **columns: Any) -> dict[str, Any]:
    return {"member": member, "line": line, "text": text, "excerpt": text, **columns}


def _frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return rows as a table with every common column."""
    frame = pd.DataFrame(list(rows))
    return frame.reindex(columns=list(dict.fromkeys([*COMMON, *frame.columns])))
