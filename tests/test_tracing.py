"""Tracing output is printed by the tools' own rules and read back; totals are recounted another way."""

from __future__ import annotations

import ast
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers import bcc_histogram, funccount, perf_script, stackcount, uniq_counts
from parsers.shapes import Capture, Parsed

FIELD = Path(__file__).parents[2] / "shared" / "field-data"
CLOUDFLARE = FIELD / "cloudflare-stretch"
needs_field_data = pytest.mark.skipif(not FIELD.exists(), reason="the field data are not beside the checkout")


def capture(text: str | bytes, command: str = "", size: int = 1 << 20) -> Capture:
    """Return a capture handed out in chunks of `size` bytes."""
    data = text.encode() if isinstance(text, str) else text
    return Capture("m", 1, command, [data[at : at + size] for at in range(0, len(data), size)])


def field_capture(path: Path) -> Capture:
    """Return a capture of the field data, its prompt taken off."""
    text = path.read_bytes()
    if not text.startswith(b"$ "):
        return capture(text)
    prompt, _, rest = text.partition(b"\n")
    return capture(rest, prompt[2:].decode())


def log2_histogram(counts: list[int], unit: str) -> str:
    """Print counts of slots 1, 2 … as bcc's table.py does: the last slot that is not 0 ends the histogram."""
    while counts and not counts[-1]:
        counts = counts[:-1]
    if not counts:
        return ""
    wide = len(counts) > 32
    bar, largest = (20 if wide else 40), max(counts)
    lines = [f"{'':15}{unit:<29} : count     distribution" if wide else f"{'':5}{unit:<19} : count     distribution"]
    for slot, count in enumerate(counts, 1):
        low, high = (1 << slot) >> 1, (1 << slot) - 1
        low = 0 if low == 1 else low
        stars = "*" * (bar * count // largest)
        edges = f"{low:20d} -> {high:<20d}" if wide else f"{low:10d} -> {high:<10d}"
        lines.append(f"{edges} : {count:<8d} |{stars:<{bar}}|")
    return "\n".join(lines) + "\n"


COUNTS = st.lists(st.integers(0, 10**9) | st.integers(0, 20), min_size=1, max_size=60)


class TestHistograms:
    """Every bucket printed is read back, in all shapes."""

    @given(COUNTS, st.sampled_from(["usecs", "msecs", "ns per byte", "$latency/1000"]), st.booleans())
    def test_log2_reads_back(self, counts: list[int], unit: str, blanks: bool) -> None:
        """Bounds, counts and unit are those printed, and no bar contradicts its count."""
        text = "Tracing block device I/O... Hit Ctrl-C to end.\n" + "\n" * blanks + log2_histogram(counts, unit)
        parsed = bcc_histogram.parse(capture(text))
        rows = parsed.rows["histogram"]
        printed = counts[: max((at + 1 for at, n in enumerate(counts) if n), default=0)]
        assert [row["events"] for row in rows] == printed
        assert [row["low"] for row in rows] == [0 if at == 0 else 2**at for at in range(len(rows))]
        assert [row["high"] for row in rows] == [2 ** (at + 1) - 1 for at in range(len(rows))]
        assert {row["unit"] for row in rows} <= {unit}
        assert parsed.gaps == []

    @given(st.lists(COUNTS, min_size=1, max_size=4), st.lists(st.sampled_from(["sda", "xvdb", "nvme0n1"]), unique=True))
    def test_sections_and_intervals_read_back(self, series: list[list[int]], disks: list[str]) -> None:
        """Each interval's sections keep their key, and the intervals are numbered by their clocks."""
        expected, text = Counter[tuple[int, str, str]](), ""
        for number, counts in enumerate(series):
            text += f"\n12:00:{number:02d}\n"
            for disk in disks:
                text += f"\nBucket disk = b'{disk}'\n" + log2_histogram(counts, "usecs")
                expected[number, f"12:00:{number:02d}", disk] += sum(counts)
        found = Counter[tuple[int, str, str]]()
        for row in bcc_histogram.parse(capture(text)).rows["histogram"]:
            found[row["interval"], row["clock"], row["key"]] += row["events"]
        assert +found == +expected

    @given(COUNTS.filter(lambda counts: len([n for n in counts if n > 99]) > 2), st.data())
    def test_a_mistyped_count_is_seen(self, counts: list[int], data: st.DataObject) -> None:
        """A count that lost its last two digits contradicts its bar, unless it is the largest or the bar too short."""
        smaller = [at for at, n in enumerate(counts) if 99 < n < max(counts)]
        if not smaller:
            return
        at = data.draw(st.sampled_from(smaller))
        width = 40 if max(i for i, n in enumerate(counts) if n) < 32 else 20
        if width * counts[at] // max(counts) == width * (counts[at] // 100) // max(counts):
            return
        text = log2_histogram(counts, "usecs").split("\n")
        text[at + 1] = text[at + 1].replace(f" : {counts[at]} ", f" : {counts[at] // 100} ", 1)
        text[at + 1] = re.sub(r" : (\d+)\s+\|", lambda m: f" : {m[1]:<8} |", text[at + 1])
        assert bcc_histogram.parse(capture("\n".join(text))).gaps

    def test_linear_and_cut_rows(self) -> None:
        """A linear row is a value; a row whose bar is missing is a gap, not a bucket."""
        text = (
            "     runqlen       : count     distribution\n"
            f"        0          : 7        |{'*' * 40}|\n"
            "        1          : 3        |*****************"
        )
        parsed = bcc_histogram.parse(capture(text))
        assert [(row["low"], row["high"], row["events"]) for row in parsed.rows["histogram"]] == [(0, 0, 7), (1, 1, 3)]
        parsed = bcc_histogram.parse(capture(text[: text.rindex("|")]))
        assert [row["events"] for row in parsed.rows["histogram"]] == [7]
        assert len(parsed.gaps) == 1

    @needs_field_data
    @pytest.mark.parametrize("path", sorted((FIELD / "traces" / "bcc").glob("*.txt")), ids=lambda path: path.stem)
    def test_example_files_are_counted_whole(self, path: Path) -> None:
        """For every histogram of the example files the events are those of a plain recount, and no bar lies."""
        text = path.read_text()
        head = r"^.*: count +distribution\n((?:[ \t]*\d+ +(?:-> \d+ +)?: \d+ +\|.*\n)+)"
        expected = [
            (text.count("\n", 0, found.start(1)) + 1, sum(int(n) for n in re.findall(r": (\d+) +\|", found[1])))
            for found in re.finditer(head, text, re.MULTILINE)
        ]
        parsed = bcc_histogram.parse(capture(text))
        by_line = {row["line"]: row["events"] for row in parsed.rows["histogram"] if not row["excerpt"].startswith("{")}
        starts = [line for line, _ in expected] + [10**9]
        found = [
            (start, sum(n for line, n in by_line.items() if start <= line < end)) for start, end in pairwise(starts)
        ]
        assert found == expected
        assert not [gap for gap in parsed.gaps if "bar" in gap.what]

    @needs_field_data
    @pytest.mark.parametrize(("side", "events"), [("jessie", 998), ("stretch", 855)])
    def test_cloudflare_sums(self, side: str, events: int) -> None:
        """The field report's two histograms hold 998 and 855 calls of do_sendfile."""
        rows = bcc_histogram.parse(field_capture(CLOUDFLARE / side / "funclatency-do_sendfile.txt")).rows["histogram"]
        assert sum(row["events"] for row in rows) == events
        assert {(row["tool"], row["metric"], row["unit"]) for row in rows} == {("funclatency", "do_sendfile", "usecs")}


SYMBOL = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.]{0,20}", fullmatch=True)
STACKS = st.lists(
    st.tuples(st.lists(SYMBOL, min_size=1, max_size=12), st.integers(1, 10**7), st.integers(1, 99999)),
    min_size=1,
    max_size=8,
)


class TestStackcount:
    """Stacks are read back in all the forms the options give them."""

    @given(STACKS, st.booleans(), st.booleans(), st.booleans(), st.booleans())
    def test_reads_back(self, stacks: list, comms: bool, verbose: bool, offsets: bool, blanks: bool) -> None:
        """Frames, comm, pid and count are those printed, with and without addresses, offsets and blank lines."""
        stacks = sorted(stacks, key=lambda each: each[1])
        text = 'Tracing 1 functions for "x"... Hit Ctrl-C to end.\n' + "^C\n" * blanks
        for frames, events, pid in stacks:
            for depth, frame in enumerate(frames):
                text += "  " + (f"{0xFFFFFFFF81000000 + depth:<16x} " if verbose else "")
                text += frame + (f"+0x{depth:x}" if offsets else "") + "\n"
            text += f"    a b [{pid}]\n" * comms + f"    {events}\n" + "\n" * blanks
        command = "stackcount" + " -P" * comms + " -v" * verbose + " -s" * offsets + " x"
        parsed = stackcount.parse(capture(text, command))
        found = [(row["frames"], row["events"], row["pid"]) for row in parsed.rows["stack"]]
        assert found == [(tuple(frames), events, pid if comms else None) for frames, events, pid in stacks]
        assert parsed.gaps == []

    @given(STACKS)
    def test_folded_equals_multiline(self, stacks: list) -> None:
        """A folded line holds the same stack, root first."""
        text = "".join(f";{';'.join(reversed(frames))} {events}\n" for frames, events, _ in stacks)
        rows = stackcount.parse(capture(text, "stackcount -f 'x*'")).rows["stack"]
        assert [(row["frames"], row["events"]) for row in rows] == [(tuple(f), n) for f, n, _ in stacks]

    def test_prose_ends_the_capture(self) -> None:
        """What follows the stacks in a pasted report is not read as frames."""
        text = "  a\n  b\n    5\n\nThe stack above is ours:\n  c\n    7\n"
        assert len(stackcount.parse(capture(text)).rows["stack"]) == 1

    @needs_field_data
    def test_cloudflare_totals(self) -> None:
        """735,405 tcp_push_one calls on stretch, 735,110 of them through sock_no_sendpage; 4,951 on jessie."""
        paths = [CLOUDFLARE / side / "stackcount-tcp_push_one.txt" for side in ("stretch", "jessie")]
        stretch, jessie = (stackcount.parse(field_capture(path)).rows["stack"] for path in paths)
        assert [row["events"] for row in stretch] == [123, 172, 735110]
        assert sum(row["events"] for row in stretch) == 735405
        assert [row["events"] for row in stretch if "sock_no_sendpage" in row["frames"]] == [735110]
        assert [row["events"] for row in jessie] == [1, 4950]


def totals(parsed: Parsed, table: str, column: str) -> Counter[str]:
    """Return the events of a table by one column."""
    found: Counter[str] = Counter()
    for row in parsed.rows.get(table, []):
        found[row[column]] += row["events"]
    return found


class TestPerfScript:
    """Samples are counted as a plain text search counts them, whatever a comm holds."""

    @needs_field_data
    @pytest.mark.parametrize(
        ("name", "starts", "writes"),
        [
            ("nasty-timers", 178, 117), ("nasty-timers-header", 178, 117), ("nasty-timers-ns-pidtid", 178, 117),
            ("nasty-timers-misc", 34, 20), ("nasty-timers-reltime", 27, 16), ("nasty-timers-trace-only", 27, 16),
            ("nasty-default-g", 180, 119), ("nasty-no-callchain", 180, 119), ("real-timers-6.18", 2223, 1102),
            ("real-timers-g-6.18", 1111, 549),
        ],
    )  # fmt: skip
    def test_timer_starts_of_real_captures(self, name: str, starts: int, writes: int) -> None:
        """Counts by timer function equal those found by searching the text."""
        text = (FIELD / "traces" / "own" / f"{name}.txt").read_bytes()
        expected = Counter(found.decode() for found in re.findall(rb"timer=0x\S+ function=(\w+) expires", text))
        found = totals(perf_script.parse(capture(text, size=7919)), "timer", "function")
        assert found == expected
        assert (sum(found.values()), found["tcp_write_timer"]) == (starts, writes)

    @needs_field_data
    @pytest.mark.parametrize("name", ["nasty-timers", "nasty-default-g", "nasty-no-callchain"])
    def test_comms_are_exact(self, name: str) -> None:
        """Comms with blanks, colons, digits, tabs, a newline, no UTF-8 or nothing at all come out as they were set."""
        rows = perf_script.parse(capture((FIELD / "traces" / "own" / f"{name}.txt").read_bytes())).rows["perf_sample"]
        nasty = {
            "",
            "12 34/56 7.5:",
            "12345",
            "CPU 0/KVM",
            "a\nb",
            "a\tb",
            "a b",
            "java [001]",
            "ev: f=1 [2]",
            "trail ",
        }
        comms = {row["comm"] for row in rows}
        assert nasty | {"\\xe9\\xff", "(sd-pam)", "x:y: z", "timer:timer_st", "lead"} <= comms
        assert not [comm for comm in comms if re.search(r"\d{4}", comm) and comm != "12345"]

    @given(
        st.lists(
            st.tuples(
                st.from_regex(rb"[!-~][ -~]{0,13}[!-~]", fullmatch=True).filter(lambda comm: b"\n" not in comm),
                st.integers(1, 4194304), st.integers(0, 255), st.sampled_from(["tcp_write_timer", "commit_timeout"]),
            ), min_size=1, max_size=20,
        ),
        st.integers(1, 200),
    )  # fmt: skip
    def test_plain_lines_read_back(self, events: list, size: int) -> None:
        """Any printable comm, thread and CPU is read back, in chunks of any size."""
        text = b"".join(
            comm.rjust(16)
            + f" {tid:5d} [{cpu:03d}] {at + 5.0:12.6f}: timer:timer_start: timer=0xffff function={name} "
            f"expires=4295596057 [timeout=10] cpu={cpu} idx=26 flags=\n".encode()
            for at, (comm, tid, cpu, name) in enumerate(events)
        )
        parsed = perf_script.parse(capture(text, size=size))
        expected = Counter((comm.decode(), tid) for comm, tid, _, _ in events)
        assert {(row["comm"], row["tid"]): row["events"] for row in parsed.rows["perf_sample"]} == expected
        assert totals(parsed, "timer", "function") == Counter(name for *_, name in events)
        assert min(row["first_s"] for row in parsed.rows["perf_sample"]) == 5.0
        assert max(row["last_s"] for row in parsed.rows["perf_sample"]) == len(events) + 4.0

    @needs_field_data
    def test_every_stack_is_counted(self) -> None:
        """With call chains, stacks add up to the samples."""
        parsed = perf_script.parse(capture((FIELD / "traces" / "own" / "real-timers-g-6.18.txt").read_bytes()))
        assert totals(parsed, "stack", "traced") == {"timer:timer_start": 1111}
        assert all("tcp_sendmsg" in row["frames"] for row in parsed.rows["stack"])


class TestCounts:
    """Counts of funccount and uniq -c."""

    @needs_field_data
    @pytest.mark.parametrize(("side", "samples"), [("jessie", 173520), ("stretch", 1988650)])
    def test_timer_sums_equal_perfs_own(self, side: str, samples: int) -> None:
        """The sums by timer function are perf record's own numbers of samples, so there is no gap."""
        parsed = uniq_counts.parse(field_capture(CLOUDFLARE / side / "perf-script-timer-counts.txt"))
        assert sum(row["events"] for row in parsed.rows["timer"]) == samples
        assert [row["samples"] for row in parsed.rows["perf_record"]] == [samples]
        assert {row["duration_s"] for row in parsed.rows["timer"]} == {10.0}
        assert parsed.gaps == []

    @settings(max_examples=50)
    @given(st.dictionaries(SYMBOL, st.integers(1, 10**9), min_size=1, max_size=10), st.integers(1, 3), st.booleans())
    def test_funccount_reads_back(self, counts: dict[str, int], intervals: int, blanks: bool) -> None:
        """Each interval has the counts printed under its header."""
        ordered = sorted(counts.items(), key=lambda item: item[1])
        block = "\n" * blanks + f"{'FUNC':<36} {'COUNT':>8}\n" + "".join(f"{f:<36} {n:>8}\n" for f, n in ordered)
        text = 'Tracing 9 functions for "x*"... Hit Ctrl-C to end.\n' + block * intervals + "Detaching...\n"
        rows = funccount.parse(capture(text, "funccount -i 1 'x*'")).rows["func_count"]
        assert [(row["interval"], row["function"], row["events"]) for row in rows] == [
            (number, *item) for number in range(intervals) for item in ordered
        ]

    def test_damage_never_raises(self) -> None:
        """Any bytes at all give rows or gaps."""
        junk = bytes(range(256)) * 3 + b"\n" + b"  [ ] -> : |\n" * 5 + b"FUNC COUNT\n\xff 5\n" + b" " * 20000 + b"\n9\n"
        for parser in (bcc_histogram, stackcount, funccount, perf_script, uniq_counts):
            for size in (1, 7, 4096):
                parser.parse(capture(junk, "x | uniq -c", size))


def test_no_group_is_repeated_possessively() -> None:
    """`(…)*+` matches wrongly before CPython 3.11.5 where the group can backtrack; Debian 12 has 3.11.2."""
    sources = [
        path for folder in ("parsers", "analyzer") for path in (Path(__file__).parent.parent / folder).rglob("*.py")
    ]
    strings = (
        (path, node.value if isinstance(node.value, str) else node.value.decode("latin-1"))
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )
    found = [(path.name, text) for path, text in strings if re.search(r"\)(?:[*+?]|\{\d*,?\d*\})\+", text)]
    assert [each for each in found if "\n\n" not in each[1]] == []
