"""Write a kernel log to measure with: `generate.py KIND MEGABYTES FILE`, the same bytes every time.

    sparse   one recognised message in 2,000 lines, as in the log of a host with a few bad hours
    dense    one in five, as in the log of a host that reports nothing else any more
    clean    none

Lines are rsyslog's with printk's stamp, about 100 bytes each. What is ordinary is what such logs are full of: firewall
and audit lines, links and disks coming and going.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

EVERY = {"sparse": 2_000, "dense": 5, "clean": 0}
"""Of how many lines one is a recognised message; 0 for none at all."""
BLOCK_LINES = 10_000
PER_SECOND = 50
"""Lines in one second of the log."""
MONTH_SECONDS = 28 * 86_400
"""When the dates begin again: a log of 1 GB is some 55 hours long at this pace."""

ORDINARY = (
    "IPv4: martian source 192.0.2.{a} from 198.51.100.{b}, on dev eth0",
    "usb 1-{c}: new high-speed USB device number {a} using xhci_hcd",
    'audit: type=1400 audit(1502691124.{b}:{n}): apparmor="ALLOWED" operation="open" profile="mysqld" pid={n}',
    "FW-DROP IN=eth0 OUT= MAC=52:54:00:12:34:56 SRC=203.0.113.{a} DST=192.0.2.{b} LEN=60 TTL=52 PROTO=TCP DPT={n}",
    "device veth{n} entered promiscuous mode",
    "br0: port {c}(veth{n}) entered forwarding state",
    "EXT4-fs (sd{l}1): mounted filesystem with ordered data mode. Opts: (null)",
    "sd {c}:0:0:0: [sd{l}] Write cache: enabled, read cache: enabled, doesn't support DPO or FUA",
    "docker0: port {c}(veth{n}) entered disabled state",
    "input: AT Translated Set 2 keyboard as /devices/platform/i8042/serio0/input/input{n}",
    "FW-ACCEPT IN=eth1 OUT=eth0 SRC=198.51.100.{b} DST=203.0.113.{a} LEN=1500 TTL=64 PROTO=UDP SPT={n} DPT=443",
    "IPv6: ADDRCONF(NETDEV_UP): veth{n}: link is not ready",
)
HITS = (
    "INFO: rcu_sched self-detected stall on CPU",
    "INFO: rcu_sched detected stalls on CPUs/tasks:",
    "watchdog: BUG: soft lockup - CPU#{c} stuck for {s}s! [java:{n}]",
    "INFO: task jbd2/sd{l}1-8:{n} blocked for more than 120 seconds.",
    "java: page allocation stalls for {n}ms, order:0, mode:0x24000c0(GFP_KERNEL)",
    "nginx: page allocation failure: order:{c}, mode:0x4020(GFP_ATOMIC|__GFP_COMP)",
    "java invoked oom-killer: gfp_mask=0x14000c0(GFP_KERNEL), nodemask=(null), order=0, oom_score_adj=0",
    "Killed process {n} (java) total-vm:8000{a}kB, anon-rss:6000{b}kB, file-rss:0kB, shmem-rss:0kB",
    "clocksource: timekeeping watchdog on CPU{c}: Marking clocksource 'tsc' as unstable because the skew is too large:",
    "clocksource: Switched to clocksource hpet",
    "net_ratelimit: {n} callbacks suppressed",
    "Measured {n} cycles TSC warp between CPUs, turning off TSC clock.",
)


def lines(kind: str, seed: int = 1) -> Iterator[str]:
    """Yield the lines of an endless log."""
    choice = random.Random(seed)
    every = EVERY[kind]
    number = 0
    while True:
        second = number // PER_SECOND
        of_month = second % MONTH_SECONDS
        day, rest = of_month // 86_400, of_month % 86_400
        clock = (
            f"Aug {1 + day:2d} {rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d} db42 kernel: [{second + 90000}."
        )
        for place in range(PER_SECOND):
            number += 1
            known = every and number % every == 0
            a, b, c = choice.randrange(1, 255), choice.randrange(100, 255), choice.randrange(8)
            texts = HITS if known else ORDINARY
            text = texts[(a * 31 + b * 7 + c) % len(texts)]
            words = text.format(a=a, b=b, c=c, n=1000 + a * b % 50_000, s=22 + c, l="abcdefgh"[c])
            yield f"{clock}{place * 20_000 + a:06d}] {words}\n"


def write(kind: str, size: int, file: Path) -> None:
    """Write at least `size` bytes of whole lines."""
    written = 0
    with file.open("wb") as out:
        source = lines(kind)
        while written < size:
            block = "".join(next(source) for _ in range(BLOCK_LINES)).encode()
            out.write(block)
            written += len(block)


def main() -> None:
    """Read the arguments and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=sorted(EVERY))
    parser.add_argument("megabytes", type=float, help="of 1,000,000 bytes")
    parser.add_argument("file", type=Path)
    asked = parser.parse_args()
    write(asked.kind, int(asked.megabytes * 1_000_000), asked.file)


if __name__ == "__main__":
    main()
