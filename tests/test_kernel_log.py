"""The kernel log reader: chunks, big logs, caps and arbitrary text."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers import kernel_log
from parsers.kernel_log import ledger, reader
from parsers.kernel_log.ahead import Ahead
from parsers.kernel_log.message import MAX_AHEAD, Message
from parsers.kernel_log.scan import needles, scanner
from parsers.shapes import MAX_LINE, Capture, Parsed

CORPUS = Path(__file__).parent / "corpus/kernel_log"
LITERALS = [literal for family in kernel_log._FAMILIES for literal in family.LITERALS]


def parse(*chunks: bytes) -> Parsed:
    """Return what the parser makes of these chunks."""
    return kernel_log.parse(Capture("m", 1, "", list(chunks)))


@pytest.mark.parametrize("name", ["torn-lines-and-nuls.log", "two-boots-one-file.log", "vinted-tsc-warp.log"])
def test_chunk_boundaries_change_nothing(name: str) -> None:
    """Cut into two chunks at every offset, and into single bytes, a log gives identical rows."""
    text = (CORPUS / name).read_bytes()
    whole = parse(text)
    assert any(whole.rows.values())
    for cut in range(len(text)):
        assert parse(text[:cut], text[cut:]) == whole
    assert parse(*(text[place : place + 1] for place in range(len(text)))) == whole


def test_windows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log much larger than the window gives the rows that one window would."""
    text = b"".join(generated(400, random.Random(5)))
    monkeypatch.setattr(reader, "AHEAD_BYTES", 4096)
    monkeypatch.setattr(reader, "PIECE", 1 << 30)
    whole = parse(text)
    for piece in (8192, 9001, 16384):
        monkeypatch.setattr(reader, "PIECE", piece)
        assert parse(*(text[place : place + 777] for place in range(0, len(text), 777))) == whole


def generated(blocks: int, choice: random.Random) -> Iterator[bytes]:
    """Yield the lines of a log: blocks of ordinary lines, each ending with a message that counts."""
    uptime = 1000.0
    for block in range(blocks):
        for place in range(23):
            uptime += 0.01
            yield b"[%12.6f] usb 1-%d: new high-speed USB device number %d using xhci_hcd\n" % (uptime, place, block)
        kind = choice.randrange(3)
        if kind == 0:
            yield b"[%12.6f] net_ratelimit: %d callbacks suppressed\n" % (uptime, block + 1)
        elif kind == 1:
            yield b"[%12.6f] clocksource: Switched to clocksource hpet\n" % uptime
        else:
            yield b"[%12.6f] Call Trace:\n[%12.6f]  dump_stack+0x4d/0x65\n[%12.6f]  ? warn_alloc+0x1/0x2 [m]\n" % (
                uptime,
                uptime,
                uptime,
            )


def test_generated_log_is_counted_exactly() -> None:
    """Rows and their line numbers are those found by walking the lines."""
    text = b"".join(generated(3000, random.Random(23)))
    assert len(text) > 4 * reader.PIECE
    parsed = parse(*(text[place : place + 65521] for place in range(0, len(text), 65521)))
    lines = text.split(b"\n")
    found = {
        name: [number for number, line in enumerate(lines, 1) if mark in line]
        for name, mark in (("clock_event", b"Switched to"), ("stack_frame", b"+0x"), ("trace", b"Call Trace:"))
    }
    assert [row["line"] for row in parsed.rows["clock_event"]] == found["clock_event"]
    assert [row["line"] for row in parsed.rows["stack_frame"]] == found["stack_frame"]
    events = Counter(row["kind"] for row in parsed.rows["kernel_event"])
    assert events == {"clocksource_switch": len(found["clock_event"]), "call_trace": len(found["trace"])}
    lost = sum(int(line.split()[-3]) for line in lines if line.endswith(b" callbacks suppressed"))
    assert sum(row["lost"] for row in parsed.rows["log_loss"]) == lost
    assert sum(row["markers"] for row in parsed.rows["log_loss"]) == text.count(b"callbacks suppressed")


def test_repeats_stay_exact_beyond_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """One incident of 331 reports keeps some rows; rows and repeats add up, the longest and the last are there."""
    monkeypatch.setattr(ledger, "KEPT_PER_INCIDENT", 7)
    lines = [
        f"[{1000 + 20 * place}.000000] watchdog: BUG: soft lockup - CPU#3 stuck for {stuck}s! [java:4711]"
        for place, stuck in enumerate([22] * 100 + [907] + [22] * 230)
    ]
    parsed = parse("\n".join(lines).encode())
    events = [row for row in parsed.rows["kernel_event"] if row["kind"] == "soft_lockup"]
    assert len({row["incident"] for row in events}) == 1
    assert len(events) + sum(row["repeats"] for row in events) == 331
    assert len(events) == 9
    assert events[-1]["line"] == 331
    assert max(row["duration_s"] for row in parsed.rows["soft_lockup"]) == 907


def test_kinds_without_end_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Incidents beyond the cap of their kind are counted together, and a gap tells so."""
    monkeypatch.setattr(ledger, "KEPT_PER_KIND", 10)
    parsed = parse(b"".join(b"[ 10.%06d] clocksource: Switched to clocksource tsc\n" % place for place in range(53)))
    events = parsed.rows["kernel_event"]
    assert len(events) + sum(row["repeats"] for row in events) == 53
    assert len(events) == 11
    assert [gap.what for gap in parsed.gaps] == [
        "43 further clocksource_switch messages are counted, but not told apart"
    ]


def test_syslog_repeats_count() -> None:
    """`message repeated` and `last message repeated` are further messages of the one before."""
    text = (
        b"Aug 14 06:00:00 db42 kernel: [ 10.000000] clocksource: Switched to clocksource tsc\n"
        b"Aug 14 06:00:01 db42 kernel: message repeated 3 times: [ clocksource: Switched to clocksource hpet]\n"
        b"Aug 14 06:00:02 db42 last message repeated 4 times\n"
    )
    events = parse(text).rows["kernel_event"]
    assert [(row["line"], row["repeats"]) for row in events] == [(1, 0), (2, 6)]


def test_prose_between_kernel_lines_is_no_message() -> None:
    """Once lines with prefixes were seen, a line without is no message."""
    text = (
        b"[ 10.000000] usb 1-1: new device\nCall Trace:\n dump_stack+0x1/0x2\n"
        b"INFO: rcu_sched self-detected stall on CPU\n[ 11.000000] usb 1-1: gone\n"
    )
    assert not any(parse(text).rows.values())


def test_trace_names_the_report_it_belongs_to() -> None:
    """A trace near a stall is of that stall, one far from it or after a loss is of none."""
    stall = b"[ 10.000000] ntpd: page allocation stalls for 272380ms, order:0, mode:0x24000c0(GFP_KERNEL)\n"
    trace = b"[ 10.000001] Call Trace:\n[ 10.000002]  [<ffffffff81162f14>] warn_alloc+0x124/0x150\n"
    other = b"[ 10.000001] eth0: link is up\n"
    loss = b"[ 10.000001] ** 9 printk messages dropped **\n"
    for between, report in ((b"", "alloc_stall"), (other * 60, "alloc_stall"), (other * 70, None), (loss, None)):
        (frame,) = parse(stall + between + trace).rows["stack_frame"]
        assert frame["report"] == report
        assert (frame["incident"] == "alloc_stall-1") == (report is not None)


def test_header_without_frames_is_a_gap() -> None:
    """A trace whose frames never come is damage, not a drop."""
    parsed = parse(b"[ 10.000000] Call Trace:\n" + b"[ 10.000001] eth0: link is up\n" * 20)
    assert [gap.line for gap in parsed.gaps] == [1]
    assert not parsed.rows["stack_frame"]


def test_services_alone_make_nothing_present() -> None:
    """A syslog without any kernel message is claimed, but cannot answer a question about the kernel."""
    text = b"".join(
        b"Aug 14 06:00:%02d db42 sshd[811]: Accepted publickey for deploy\n" % second for second in range(60)
    )
    assert kernel_log.sniff(text.decode())
    assert parse(text).rows == {}
    assert set(parse(text + b"Aug 14 06:01:00 db42 kernel: eth0: up\n").rows) == set(kernel_log.TABLES) - {"boot"}


def test_overlong_lines_are_clipped_and_told() -> None:
    """A line beyond the limit is cut, whatever chunks it comes in; lines after it keep their numbers."""
    switch = b"[ 10.000000] clocksource: Switched to clocksource tsc\n"
    text = switch + b"[ 11.000000] " + b"x" * (3 * reader.PIECE) + b"\n" + switch
    for size in (len(text), 65_536):
        parsed = parse(*(text[place : place + size] for place in range(0, len(text), size)))
        assert [row["line"] for row in parsed.rows["clock_event"]] == [1, 3]
        assert [gap.line for gap in parsed.gaps] == [2]
        assert str(MAX_LINE) in parsed.gaps[0].what


def test_scan_finds_what_a_walk_finds() -> None:
    """The shared needles give exactly the lines that hold a literal."""
    stands_for = [literal for _, some in needles(LITERALS) for literal in some]
    assert sorted(stands_for) == sorted(set(LITERALS))
    lines = [b"a line of " + literal + b" and more" for literal in LITERALS]
    lines += [literal[:-1] for literal in LITERALS] + [b"kernel: memory process", b""]
    random.Random(7).shuffle(lines)
    text = b"\n".join(lines)
    starts, place = [], 0
    for line in lines:
        if any(literal in line for literal in LITERALS):
            starts.append(place)
        place += len(line) + 1
    assert scanner(tuple(LITERALS))(text, 0, len(text)) == starts


PIECES = st.sampled_from(
    [
        *LITERALS,
        b"[  1.000001] ",
        b"Aug 14 06:00:00 h kernel: ",
        b"\n",
        b"\r\n",
        b"\0",
        b"Call Trace:",
        b" f+0x1/0x2 [m]",
        b"{",
        b'"}',
    ]
)


@pytest.mark.parametrize(
    "piece", [b"5f", b" ", b"[ ", b"> ", b"<IRQ> ", b"x login: ", b"[  OK  ] ", b"Call Trace: ", b"a."]
)
def test_hostile_lines_take_no_time(piece: bytes) -> None:
    """A line as long as the limit, made of what a pattern may stumble over, is read like any other."""
    evil = piece * (MAX_LINE // len(piece) - 20)
    text = b"[ 10.000000] Call Trace:\n" + b"[ 10.000001] " + evil + b"Call Trace:\n" + evil + b"\n"
    kernel_log.sniff(text.decode())
    parsed = parse(text)
    assert not parsed.rows["stack_frame"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(PIECES, st.binary(max_size=20)), max_size=60).map(b"".join))
def test_any_text_is_read(text: bytes) -> None:
    """No text raises, neither when claimed nor when read, and every row stands in a line there is."""
    kernel_log.sniff(text.decode("utf-8", "backslashreplace"))
    parsed = parse(text)
    for rows in parsed.rows.values():
        assert all(1 <= row["line"] <= text.count(b"\n") + 1 for row in rows)


@given(st.integers(0, 200), st.slices(170), st.integers(-3, 170))
def test_a_block_is_a_list_read_late(size: int, part: slice, index: int) -> None:
    """Any slice and any message of a block is that of a list, and reading stops where the looking does."""
    taken: list[int] = []

    def following() -> Iterator[Message]:
        for number in range(1, size):
            taken.append(number)
            yield Message(number, str(number), "")

    whole = [Message(0, "0", ""), *(Message(number, str(number), "") for number in range(1, size))][: MAX_AHEAD + 1]
    block = Ahead(whole[0], following())
    if 0 <= index < len(whole):
        assert block[index] == whole[index]
        assert len(taken) == index
        assert next(iter(block[index:])) == whole[index]
        assert len(taken) == index
    assert list(block[part]) == whole[part]
    assert len(block[part]) == len(whole[part])
    assert list(block) == whole
