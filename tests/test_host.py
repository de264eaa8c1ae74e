"""Facts about a host, against real files read another way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import host
from parsers.shapes import Capture

BUNDLE = Path(__file__).parent.parent.parent / "shared/field-data/bundles/hotsos_sosreport"


def facts(text: str, command: str) -> set[tuple[str, str]]:
    """Return the facts a capture states."""
    rows = host.parse(Capture("m", 1, command, [text.encode()])).rows.get("host_fact", [])
    return {(row["name"], row["value"]) for row in rows}


def test_sosreport() -> None:
    """cpuinfo, lscpu, uname and hostnamectl of one host agree with each other."""
    if not BUNDLE.is_dir():
        pytest.skip("field data are not here")
    cpuinfo = (BUNDLE / "proc/cpuinfo").read_text()
    found = facts(cpuinfo, "cat /proc/cpuinfo")
    assert ("cpus", str(len(re.findall(r"(?m)^processor", cpuinfo)))) in found
    lscpu = facts((BUNDLE / "sos_commands/processor/lscpu").read_text(), "lscpu")
    shared = {fact for fact in found if fact[0] in ("cpu_model", "cpus", "cpu_flags_tsc")}
    assert len(shared) == 3
    assert shared <= lscpu
    uname = facts((BUNDLE / "uname").read_text(), "uname -a")
    hostnamectl = facts((BUNDLE / "sos_commands/host/hostnamectl_status").read_text(), "")
    names = {fact for fact in uname if fact[0] in ("hostname", "kernel")}
    assert len(names) == 2
    assert names <= hostnamectl


def test_a_cut_name_is_no_name() -> None:
    """A last line without line end is believed only where it is visibly whole."""
    assert facts("db4", "hostname") == set()
    assert facts("db42\n", "hostname") == {("hostname", "db42")}
    assert facts("Linux db42 4.9.0-3-am", "uname -a") == set()
    assert ("machine", "x86_64") in facts("Linux db42 4.9.0-3-amd64 #1 SMP Debian x86_64 GNU/Linux", "uname -a")


def test_logs_are_not_facts() -> None:
    """A kernel log that begins with the kernel's version is a log."""
    assert not host.sniff("[    0.000000] Linux version 4.9.0-3-amd64 (debian) #1 SMP\n")
    assert not host.sniff("Linux version 4.9.0-3-amd64 (debian) #1 SMP\nCommand line: ro\n")
    assert not host.sniff("$ grep date log\nWed Aug 16 21:21:12 2017\n")


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    """No text raises."""
    for command in ("", "uname -a", "cat /proc/cpuinfo", "date", "cat /etc/os-release"):
        host.sniff(f"$ {command}\n{text}")
        facts(text, command)
