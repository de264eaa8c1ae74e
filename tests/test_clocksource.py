"""The clocksource files of sysfs and the facts about a host: whole words, empty files, cuts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import clocksource
from parsers.shapes import Capture, Parsed

FOLDER = "/sys/devices/system/clocksource/clocksource0"
BUNDLE = Path(__file__).parent.parent.parent / "shared/field-data/bundles/hotsos_sosreport"


def read(text: str, command: str = f"cat {FOLDER}/current_clocksource") -> Parsed:
    """Return what the text of a capture gives."""
    return clocksource.parse(Capture("m", 1, command, [text.encode()]))


@pytest.mark.parametrize("name", ["tsc", "tsc-early", "hyperv_clocksource_tsc_page", "a_name_of_the_future"])
def test_names_are_compared_whole(name: str) -> None:
    """A name is what stands there, no more and no less."""
    assert read(name + "\n").rows["clocksource"][0]["current"] == name


def test_an_empty_file_is_a_gap() -> None:
    """An empty file says nothing: no row, no table, a gap."""
    for text in ("", "\n", "  \n"):
        parsed = read(text)
        assert parsed.rows == {}
        assert len(parsed.gaps) == 1


def test_a_cut_name_is_no_name() -> None:
    """`kvm-c` at the end of a file without newline may be the beginning of a name."""
    assert read("kvm-c").rows == {}
    assert read("kvm-clock").rows["clocksource"][0]["current"] == "kvm-clock"


def test_two_hosts_in_one_capture() -> None:
    """A file shown again begins a row of its own."""
    text = f"{FOLDER}/current_clocksource:tsc\n{FOLDER}/current_clocksource:hpet\n"
    assert [row["current"] for row in read(text, "").rows["clocksource"]] == ["tsc", "hpet"]


def test_sosreport() -> None:
    """The files of a real sosreport."""
    folder = BUNDLE / FOLDER[1:]
    if not folder.is_dir():
        pytest.skip("field data are not here")
    for name in ("current", "available"):
        text = (folder / f"{name}_clocksource").read_text()
        row = read(text, f"cat {FOLDER}/{name}_clocksource").rows["clocksource"][0]
        assert row[name] == (text.strip() if name == "current" else tuple(text.split()))


@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    """No text raises."""
    for command in ("", f"grep . {FOLDER}/*", f"cat {FOLDER}/available_clocksource"):
        clocksource.sniff(f"$ {command}\n{text}")
        read(text, command)
