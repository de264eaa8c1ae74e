"""Real captures that nobody tuned a parser to, where they are beside the checkout: facts told about them come out.

They belong to other projects and are only read here. What `SOURCES.tsv` says of a file was counted by its collectors
with patterns of their own; the counts below are greps of this test, independent of the parsers.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import analyzer
from analyzer.case import Case, read_texts
from analyzer.findings import SEVERITIES

FIELD = Path(__file__).parent.parent.parent / "shared" / "field-data"
LOGS = FIELD / "kernel-logs"

pytestmark = pytest.mark.skipif(not FIELD.is_dir(), reason="field data are not here")

GREPS = {
    "rcu_stall": rb"INFO: (?:rcu\w* (?:self-)?detected (?:expedited )?stalls?\b|RCU detected CPU)",
    "soft_lockup": rb"BUG: soft lockup - CPU#",
    "hung_task": rb"INFO: task .{1,40}:\d+ blocked (?:for|in I/O wait for) more than",
    "alloc_stall": rb"page allocation stalls? for ",
    "alloc_failure": rb"page allocation failure[:.]",
    "tsc_warp": rb"cycles TSC warp between CPUs",
    "oom_kill": rb"[Kk]illed process \d+",
}
"""What one message of a kind looks like."""
NAMES_IN_SOURCES = ("rcu_stall", "soft_lockup", "hung_task", "tsc_warp", "tsc_unstable")
"""Kinds that SOURCES.tsv counts under the name of ours."""
OTHER_CALLERS = {"02_printk_caller.txt"}
"""The template of this form gave each line a caller at random: the one about the kthread is of another context."""


def log_of(path: Path) -> bytes:
    """Return a file's log: syzkaller's files have expectations in front, and some the report again behind `REPORT:`."""
    text = path.read_bytes()
    if path.is_relative_to(LOGS / "syzkaller"):
        text = re.sub(rb"\A(?:(?:TITLE|TYPE|ALT|PANICKED|CORRUPTED|FRAME|EXECUTOR): .*\n)+", _emptied, text)
        text = text.partition(b"\nREPORT:")[0]
    return text


def _emptied(found: re.Match[bytes]) -> bytes:
    """Return as many empty lines, so that line numbers stay."""
    return b"\n" * found[0].count(b"\n")


def files(folder: str) -> list[Path]:
    """Return every file below a folder of the kernel logs."""
    return sorted(path for path in (LOGS / folder).rglob("*") if path.is_file())


@cache
def read(path: Path) -> Case:
    """Return the case of one log, once."""
    return read_texts({path.name: log_of(path).decode("utf-8", "surrogateescape")})


@cache
def sources() -> dict[str, str]:
    """Return what SOURCES.tsv says of each file."""
    rows = [line.split("\t") for line in (FIELD / "SOURCES.tsv").read_text().splitlines()[1:]]
    return {row[0]: row[5] for row in rows if len(row) > 5}


def events(case: Case, kind: str) -> int:
    """Return how many messages of a kind were seen, those that a row stands for included."""
    table = case.tables.get("kernel_event", pd.DataFrame({"kind": [], "repeats": []}))
    mine = table[table["kind"] == kind]
    return len(mine) + int(mine["repeats"].fillna(0).sum())


def above_info(path: Path) -> list[str]:
    """Return the rules that fired on a bundle with more than an info."""
    return [f"{path}: {f.rule}: {f.text}" for f in analyzer.open(path).findings if SEVERITIES.index(f.severity) > 0]


@pytest.mark.parametrize("kind", GREPS)
def test_counts_equal_a_grep(kind: str) -> None:
    """Over all logs, as many messages of a kind as a pattern that knows nothing of prefixes or eras finds."""
    pattern = re.compile(GREPS[kind])
    found = {}
    for path in [each for folder in ("excerpts", "syzkaller", "lkp", "logspec") for each in files(folder)]:
        name = str(path.relative_to(FIELD))
        wanted = len(pattern.findall(log_of(path)))
        if wanted or "kernel_event" in read(path).tables:
            got = events(read(path), kind)
            if got != wanted:
                found[name] = (got, wanted)
    assert found == {}


@pytest.mark.parametrize("kind", NAMES_IN_SOURCES)
def test_what_the_collectors_saw_is_seen(kind: str) -> None:
    """Each log in which its collectors counted a kind of message shows one to us."""
    told = [FIELD / name for name, about in sources().items() if re.search(rf"\b{kind}=[1-9]", about)]
    assert told
    missed = [str(path.relative_to(FIELD)) for path in told if not events(read(path), kind)]
    assert missed == []


def test_every_prefix_form_tells_the_same_incident() -> None:
    """One report behind every prefix a log line can have: the same stall, once, whatever stands in front."""
    seen = {}
    for path in files("prefix_forms"):
        table = read(path).tables["rcu_stall"]
        row = table.iloc[0]
        own = (row["form"], row["flavour"], row["cpus"], row["tasks"])
        starved = None if pd.isna(row["gp_kthread_starved_jiffies"]) else int(row["gp_kthread_starved_jiffies"])
        seen[path.name] = (len(table), *own, *([starved] if path.name not in OTHER_CALLERS else []))
    stalls = {told[:5] for told in seen.values()}
    assert len(seen) > 30
    assert len(stalls) == 1, seen
    assert {told[5] for told in seen.values() if len(told) > 5} == {10002}


def healthy() -> list[Path]:
    """Return the logs of which SOURCES.tsv tells nothing but that they are a boot, or no crash."""
    return [FIELD / name for name, about in sources().items() if about.strip() in ("a real boot log", "NO-CRASH")]


def test_healthy_logs_are_silent() -> None:
    """No log without an incident gives a finding that anybody would be woken for."""
    assert len(healthy()) >= 10
    assert [found for path in healthy() for found in above_info(path)] == []


def test_healthy_sosreport_is_silent() -> None:
    """A whole sosreport of a guest with bridges, veths and a tap without checksums: nothing above an info."""
    assert above_info(FIELD / "bundles" / "hotsos_sosreport") == []


def test_other_tools_logs_are_silent() -> None:
    """Logs of user space and of other systems are no incidents of the kernel."""
    assert [found for folder in ("lnav", "util-linux") for found in above_info(LOGS / folder)] == []


def test_other_tools_captures_are_silent() -> None:
    """The examples of the tracing tools' own manuals show no incident."""
    assert [found for name in ("traces", "hol") for found in above_info(FIELD / name)] == []


@pytest.mark.parametrize(
    ("name", "rule", "severity"),
    [
        # A guest reads kvm-clock, with which its TSC was compared.
        ("clocksource_kvmclock_guest.log", "tsc-unstable", "info"),
        # 224 CPUs, second 1.5 of the boot: refined-jiffies had lost ticks.
        ("clocksource_skew_224cpu_refined_jiffies_fp.log", "tsc-unstable", "low"),
        # The kernel did switch to hpet, whoever was right.
        ("clocksource_skew_5.5_server_hpet_wrap.log", "tsc-unstable", "high"),
        # Four waits of 10 to 14 s, none of a minute.
        ("alloc_stall_4.9.13_laptop_rfc3164.log", "page-alloc-stall", "medium"),
        ("alloc_stall_4.9_oom_dropped_inline.log", "page-alloc-stall", "critical"),
    ],
)
def test_severity_of_a_known_log(name: str, rule: str, severity: str) -> None:
    """Logs whose story is known are graded as an engineer would."""
    found = {finding.rule: finding.severity for finding in analyzer.open(LOGS / "excerpts" / name).findings}
    assert found[rule] == severity
