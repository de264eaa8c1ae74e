"""One real stall in every form a kernel log is carried in leads to the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parsers import kernel_log
from parsers.kernel_log import prefix
from parsers.kernel_log.message import YEARLESS
from parsers.shapes import Capture, Parsed

FORMS = Path(__file__).parents[2] / "shared/field-data/kernel-logs/prefix_forms"
FILES = sorted(FORMS.glob("*")) if FORMS.is_dir() else []

CUT_SHORT = {
    "02_printk_caller.txt": "callers were dealt out at random in this form, so that no block is whole",
}
"""Forms whose own making leaves less than all of the stall's 50 frames to one reader."""


def read(path: Path) -> Parsed:
    """Return what the parser makes of one form."""
    return kernel_log.parse(Capture(path.name, 1, "", [path.read_bytes()]))


@pytest.mark.skipif(not FILES, reason="the captures of field-data are not beside this checkout")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_form_tells_the_same_stall(path: Path) -> None:
    """One stall, its starved kthread's trace, a switch to kvm-clock; claimed by the parser."""
    assert kernel_log.sniff(path.read_bytes()[:65536].decode("utf-8", "backslashreplace"))
    rows = read(path).rows
    assert [row["flavour"] for row in rows["rcu_stall"]] == ["rcu_sched"]
    assert [row["to_source"] for row in rows["clock_event"]] == ["kvm-clock"]
    if path.name not in CUT_SHORT:
        # pstore's file has the newest part first, so that rows in the file's order are not in the trace's.
        frames = sorted(rows["stack_frame"], key=lambda frame: frame["uptime_s"] or 0.0)
        assert [frame["symbol"] for frame in frames] == frames_of_plain()
    assert "boot" not in rows


def frames_of_plain() -> list[Any]:
    """Return the frames of the plainest form, read from its text without the parser."""
    lines = (FORMS / "01_printk_raw.txt").read_text().split("\n")
    return [line.rpartition(" ")[2].partition("+0x")[0] for line in lines if "+0x" in line and "[<" in line]


NS = 1_000_000_000
AUGUST_14_2017 = 1_502_690_400 * NS  # 06:00:00 UTC
AUGUST_14_YEARLESS = -2_063_296_800 * NS
STAMPS: list[tuple[str, float | None, int | None, str]] = [
    ("[  103.985562] ", 103.985562, None, ""),
    ("[  103.985562][   C16] ", 103.985562, None, ""),
    ("<4>[  103.985562] ", 103.985562, None, ""),
    ("[    C7] ", None, None, ""),
    ("** 9 printk messages dropped ** [  103.985562] ", 103.985562, None, ""),
    ("[  103.985562 <   0.009099>] ", 103.985562, None, ""),
    ("[    3.856449                ] db42 kernel: ", 3.856449, None, "db42"),
    ("[    3.856449] db42 kernel: ", 3.856449, None, "db42"),
    ("kern  :warn  : [    3.856449] ", 3.856449, None, ""),
    ("kern  :warn  : [Mon Aug 14 06:00:00 2017] ", None, AUGUST_14_2017, ""),
    ("[Mon Aug 14 06:00:00 2017] ", None, AUGUST_14_2017, ""),
    ("2017-08-14T06:00:00,856449+00:00 ", None, AUGUST_14_2017 + 856_449_000, ""),
    ("Aug 14 06:00:00 db42 kernel: ", None, AUGUST_14_YEARLESS, "db42"),
    ("<3>Aug 14 06:00:00 db42 kernel: [    3.856449] ", 3.856449, AUGUST_14_YEARLESS, "db42"),
    ("2017-08-14T08:00:00.5+02:00 db42 kernel: ", None, AUGUST_14_2017 + NS // 2, "db42"),
    ("2017-08-14T06:00:00+00:00 db42 [kern.warning] kernel: [    3.856449] ", 3.856449, AUGUST_14_2017, "db42"),
    ("2017-08-14T01:00:00-0500 db42 kernel: ", None, AUGUST_14_2017, "db42"),
    ("Mon 2017-08-14 06:00:00 UTC db42 kernel: ", None, AUGUST_14_2017, "db42"),
    ("Mon 2017-08-14 08:00:00 CEST db42 kernel: ", None, AUGUST_14_2017, "db42"),
    ("1502690400.856449 db42 kernel: ", None, AUGUST_14_2017 + 856_449_000, "db42"),
    ("<3>1 2017-08-14T06:00:00Z db42 kernel - - - [    3.856449] ", 3.856449, AUGUST_14_2017, "db42"),
    ("2017-08-14 06:00:00 192.0.2.10:6666 [    3.856449] ", 3.856449, AUGUST_14_2017, ""),
    ("2017-08-14T06:00:00.000Z stderr F [    3.856449] ", 3.856449, AUGUST_14_2017, ""),
    ("6,812,3856449,-;", 3.856449, None, ""),
    ("6.4.0,6,812,3856449,-,caller=T1;", 3.856449, None, ""),
    ("08-14 06:00:00.000     0     0 W KERNEL  : [    3.856449] ", 3.856449, AUGUST_14_YEARLESS, ""),
    ("db42 login: [    3.856449] ", 3.856449, None, ""),
    ("> > [    3.856449] ", 3.856449, None, ""),
    ("&gt; [    3.856449] ", 3.856449, None, ""),
    ("    [    3.856449] ", 3.856449, None, ""),
    ("\x1b[32m[    3.856449] \x1b[0m", 3.856449, None, ""),
    ("\0\0\0[    3.856449] ", 3.856449, None, ""),
    ("kernel: [    3.856449] ", 3.856449, None, ""),
]


@pytest.mark.parametrize(("lead", "uptime", "at", "host"), STAMPS, ids=[stamp[0] for stamp in STAMPS])
def test_prefix_is_taken_apart(lead: str, uptime: float | None, at: int | None, host: str) -> None:
    """Text with its own blanks, uptime, time and host come out of every prefix."""
    message = prefix.message(7, lead + "  two blanks: kept [1]")
    assert message is not None
    assert message.text == "  two blanks: kept [1]"
    assert (message.uptime_s, message.at, message.host) == (uptime, at, host)
    assert message.number == 7


@pytest.mark.parametrize(
    "line",
    [
        "",
        "The kernel said INFO: rcu_sched self-detected stall on CPU and we rebooted.",
        "2017-08-14 06:00:00,123 INFO org.example.Main: Call Trace:",
        "2017/08/14 06:00:00 [error] 31#31: *1 upstream timed out",
        "[ perf record: Woken up 1 times to write data ]",
        "redis-server  2119 [003] 12345.678901: timer:timer_start: timer=0xffff",
        "     4 -> 7          : 12       |****        |",
        "scatter-gather: off",
    ],
)
def test_other_lines_are_no_messages(line: str) -> None:
    """Prose, applications' logs and other tools' output are passed over, and begin no kernel log."""
    assert prefix.message(1, line) is None
    assert not kernel_log.sniff(line)
    assert not kernel_log.BEGINS.match(line.encode())


@pytest.mark.parametrize(
    "line",
    [
        "Aug 14 06:00:00 db42 sshd[811]: INFO: rcu_sched self-detected stall on CPU",
        "[  103.985562] db42 systemd[1]: Started Journal Service.",
        "1502690400.856449 db42 app[9]: Call Trace:",
        "30,812,3856449,-;systemd[1]: Started Journal Service.",
    ],
)
def test_other_services_are_passed_over(line: str) -> None:
    """A syslog and a journal hold the lines of services too; what they quote is not the kernel's word."""
    assert prefix.message(1, line) is None


def test_journald_tells_its_losses() -> None:
    """journald's account of lost kernel messages is a message of the log."""
    message = prefix.message(1, "Aug 16 01:14:51 myhost systemd-journald[13812]: Missed 17171 kernel messages")
    assert message is not None
    assert message.text == "Missed 17171 kernel messages"


def test_yearless_is_a_leap_year() -> None:
    """29 February has a place in the year that stands for none."""
    assert YEARLESS % 4 == 0
    message = prefix.message(1, "Feb 29 06:00:00 db42 kernel: x")
    assert message is not None
    assert message.at is not None


def test_the_commonest_form_is_read_as_any_other() -> None:
    """The short way through the classic form gives what the long way gives, on every corpus line put into it too."""
    taken = 0
    for path in sorted((Path(__file__).parent / "corpus/kernel_log").iterdir()):
        for line in path.read_text("utf-8", "backslashreplace").split("\n"):
            for form in (
                line,
                f"Aug  4 06:12:04 db42 kernel: [    3.856449] {line}",
                f"Feb 30 24:00:00 a:b kernel: {line}",
            ):
                if short := prefix.commonest(7, form):
                    assert short == prefix._message(7, form, False)
                    taken += 1
    assert taken > 500
