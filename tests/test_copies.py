"""A message that several logs of one bundle hold is counted once; a log that repeats a line means it."""

from __future__ import annotations

import pytest

from analyzer.case import read_texts

OOM = "Out of memory: Killed process {pid} (java) total-vm:4168kB, anon-rss:84kB, file-rss:0kB, shmem-rss:0kB"
DMESG = "".join(f"[{100 + i}.574882] {OOM.format(pid=9485 + i)}\n" for i in range(3))
KERN_LOG = "".join(
    f"Aug 14 06:12:{4 + i:02} db42 kernel: [{100 + i}.574882] {OOM.format(pid=9485 + i)}\n" for i in range(3)
)
JOURNAL = "".join(f"Aug 14 06:12:{4 + i:02} db42 kernel: {OOM.format(pid=9485 + i)}\n" for i in range(3))


@pytest.mark.parametrize(
    "files",
    [
        {"dmesg": DMESG},
        {"dmesg": DMESG, "kern.log": KERN_LOG},
        {"journal": JOURNAL, "kern.log": KERN_LOG},
        {"a/syslog": KERN_LOG, "b/kern.log": KERN_LOG, "dmesg": DMESG, "journal": JOURNAL},
    ],
)
def test_copies_are_counted_once(files: dict[str, str]) -> None:
    """Three kills are three kills, however many logs hold them and whichever clocks those know."""
    case = read_texts(files)
    assert list(case.tables["oom_kill"]["pid"]) == [9485, 9486, 9487]
    assert len(case.tables["kernel_event"]) == 3


def test_the_copy_with_both_clocks_is_kept() -> None:
    """The rows that stay are those that know the most about when."""
    case = read_texts({"dmesg": DMESG, "kern.log": KERN_LOG, "journal": JOURNAL})
    assert set(case.tables["oom_kill"]["member"]) == {"kern.log"}


def test_repeats_within_a_log_are_kept() -> None:
    """The same line twice in one log is two messages, and two copies of it in another are dropped together."""
    case = read_texts({"kern.log": KERN_LOG + KERN_LOG, "journal": JOURNAL + JOURNAL})
    assert len(case.tables["oom_kill"]) == 6


def test_a_log_that_holds_more_keeps_what_only_it_has() -> None:
    """A ring buffer that lost its beginning does not take away what the file still has."""
    case = read_texts({"dmesg": DMESG.split("\n", 1)[1], "kern.log": KERN_LOG})
    assert len(case.tables["oom_kill"]) == 3


def test_other_times_are_other_messages() -> None:
    """The same text an hour later is another message."""
    later = JOURNAL.replace(" 06:", " 07:")
    assert len(read_texts({"kern.log": JOURNAL, "journal": later}).tables["oom_kill"]) == 6


def test_gaps_of_copies_are_told_once() -> None:
    """A loss marker in two logs is one gap."""
    lost = "Aug 16 01:14:51 myhost systemd-journald[13812]: Missed 17171 kernel messages\n"
    case = read_texts({"syslog": JOURNAL + lost, "kern.log": JOURNAL + lost})
    assert [gap.what for gap in case.gaps if "17171" in gap.what] == ["journald missed 17171 kernel messages"]
