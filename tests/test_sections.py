"""A member is cut into sections at its prompts and where captures begin, at any chunk size, in bounded memory."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.sections import command_of_name, cut, prompt_of_line

TRANSCRIPT = b"""We looked at the clock first.

root@db42:~# grep . /sys/devices/system/clocksource/clocksource0/*_clocksource
/sys/devices/system/clocksource/clocksource0/available_clocksource:tsc hpet acpi_pm
/sys/devices/system/clocksource/clocksource0/current_clocksource:tsc
root@db42:~# uptime
 10:12:41 up 42 days,  1:02,  1 user,  load average: 0.31, 0.40, 0.38

And then at what the kernel said:

[ 4923.462841] INFO: rcu_sched self-detected stall on CPU
[ 4923.462843]  13-...: (2 GPs behind) idle=ea7/140000000000001/0 softirq=1/2 fqs=4198
[ 4923.462845]   (t=8403 jiffies g=110722 c=110721 q=6440)

$ sudo /usr/share/bcc/tools/funccount -T -i 1 \\
    mod_timer
Tracing 1 functions for "mod_timer"... Hit Ctrl-C to end.
00:33:36
FUNC                                    COUNT
mod_timer                               60482
"""


def sections_of(text: bytes, size: int = 1 << 20, address: str = "notes.txt") -> list[tuple[str, str, str, int, bytes]]:
    """Return (parser, command, host, first line, bytes) of each section, the text handed over in pieces of `size`."""
    found = []
    for section in cut(address, (text[i : i + size] for i in range(0, len(text), size))):
        capture = section.capture
        parser = section.parser.__name__.removeprefix("parsers.") if section.parser else ""
        found.append((parser, capture.command, capture.host, capture.first_line, b"".join(capture.chunks)))
    return found


def test_transcript_with_prose() -> None:
    """Prompts and beginnings of captures cut; the command, the host of the prompt and the line number are kept."""
    found = [section[:4] for section in sections_of(TRANSCRIPT)]
    assert found == [
        ("", "", "", 1),
        ("clocksource", "grep . /sys/devices/system/clocksource/clocksource0/*_clocksource", "db42", 4),
        ("", "uptime", "db42", 7),
        ("kernel_log", "", "", 11),
        ("funccount", "sudo /usr/share/bcc/tools/funccount -T -i 1  mod_timer", "", 17),
    ]


@given(st.integers(1, len(TRANSCRIPT)))
def test_chunk_size_changes_nothing(size: int) -> None:
    """The same sections come of any chunk size."""
    assert sections_of(TRANSCRIPT, size) == sections_of(TRANSCRIPT)


@given(st.binary(max_size=2000))
def test_no_byte_is_read_twice(text: bytes) -> None:
    """Whatever the bytes, the sections hold each line at most once and in order."""
    place = 0
    for _, _, _, _, content in sections_of(text):
        place = text.index(content, place) + len(content)


def test_login_prompt_of_a_serial_console() -> None:
    """A kernel message printed behind an open login prompt begins the log: the message is in it."""
    text = b"""\ndb42 login: [  709.689951] INFO: rcu_sched detected stalls on CPUs/tasks:
[  709.695737] 	(detected by 0, t=125002 jiffies, g=6134, c=6133, q=11)
"""
    assert [section[0::4] for section in sections_of(text)] == [("kernel_log", text)]


def test_prompt_deep_in_a_log() -> None:
    """A prompt after megabytes of one log still ends it."""
    line = b"[ 4923.462841] usb 1-1: new high-speed USB device number 4 using xhci_hcd\n"
    found = sections_of(line * 30_000 + b"$ uptime\n up 42 days\n")
    assert [section[1:4] for section in found] == [("", "", 1), ("uptime", "", 30_002)]
    assert found[0][4] == line * 30_000


def test_endless_line_stays_in_bounded_memory() -> None:
    """300 MB without a newline cost no more than a few pieces."""

    def chunks() -> Iterator[bytes]:
        for _ in range(300):
            yield b"x" * (1 << 20)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for section in cut("endless", chunks()):
        for _ in section.capture.lines():
            pass
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"$ sudo ethtool -k vlan10\n", ("sudo ethtool -k vlan10", "")),
        (b"# ./funclatency -u do_sendfile\n", ("./funclatency -u do_sendfile", "")),
        (b"# ethtool -k eth0\n", ("ethtool -k eth0", "")),
        (b"[root@db42 ~]# dmesg\n", ("dmesg", "db42")),
        (b"root@db42:/var/log# cat kern.log\n", ("cat kern.log", "db42")),
        (b"alice@web07:~$ uptime\n", ("uptime", "web07")),
        (b"# captured on    : Sat Nov 21 01:25:44 2026\n", None),
        (b"# ========\n", None),
        (b"# What we saw\n", None),
        (b"$\n", None),
        (b"  tcp_push_one\n", None),
        (b"[ 4923.462841] INFO: rcu_sched self-detected stall on CPU\n", None),
    ],
)
def test_prompt(line: bytes, expected: tuple[str, str] | None) -> None:
    """A prompt names its command and host; comments, headings and captures are no prompts."""
    assert prompt_of_line(line) == expected


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("sos/sos_commands/networking/ethtool_-k_bond0.104_bond0", "ethtool -k bond0.104_bond0"),
        ("sos_commands/networking/ip_-s_-d_link", "ip -s -d link"),
        ("sos_commands/kernel/dmesg", "dmesg"),
        ("sos_commands/logs/journalctl_--no-pager", "journalctl --no-pager"),
        ("host.tar.xz!host/proc/net/vlan/config", "cat /proc/net/vlan/config"),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        ("current_clocksource", "cat /sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ("var/log/kern.log", ""),
        ("notes.txt", ""),
        ("ethtool-k-vlan10.diff", ""),
    ],
)
def test_command_of_name(name: str, command: str) -> None:
    """A member's name stands for the command that printed it where a collector wrote it so."""
    assert command_of_name(name) == command
