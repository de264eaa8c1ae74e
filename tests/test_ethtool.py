"""ethtool -k, -K and diffs of them, against counts taken another way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import ethtool, ethtool_diff
from parsers.shapes import Capture

FIELD = Path(__file__).parent.parent.parent / "shared" / "field-data"
CORPUS = Path(__file__).parent / "corpus"
BUNDLE = FIELD / "bundles/hotsos_sosreport/sos_commands/networking"
NAMES = [name for name, _ in ethtool.GROUPS] + ["tx-tcp-segmentation", "rx-gro-hw", "tx-udp_tnl-segmentation", "l2-fwd"]


def capture(text: str, command: str = "") -> Capture:
    """Return a capture of a text."""
    return Capture("m", 1, command, [text.encode()])


def own(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without where they stand."""
    return [{k: v for k, v in row.items() if k not in ("line", "excerpt", "host")} for row in rows]


features = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["on", "off"]), st.sampled_from(["", "fixed", "on", "off"])),
    min_size=1,
)


@given(features, st.sampled_from(["\t", "       ", "        ", ""]), st.sampled_from(["\n", "\r\n"]))
def test_what_ethtool_prints_is_read_back(shown: list[tuple[str, str, str]], indent: str, end: str) -> None:
    """Each feature printed comes back with its state, fixed and requested, on its line."""
    suffixes = {"": "", "fixed": " [fixed]", "on": " [requested on]", "off": " [requested off]"}
    lines = [f"{indent}{name}: {state}{suffixes[suffix]}" for name, state, suffix in shown]
    parsed = ethtool.parse(capture(end.join(["Features for eth0:", *lines, ""])))
    assert parsed.gaps == []
    read = [
        (row["line"], row["feature"], row["state"], "fixed" if row["fixed"] else row["requested"] or "")
        for row in parsed.rows["offload"]
    ]
    assert read == [(place, *feature) for place, feature in enumerate(shown, 2)]


@given(st.text(max_size=300))
def test_any_text_is_survived(text: str) -> None:
    """No text raises."""
    for parser in (ethtool, ethtool_diff):
        parser.sniff(text)
        parser.parse(capture(text))
        parser.parse(capture(text, "diff <(ssh a ethtool -k x) <(ethtool -k y"))


@pytest.mark.parametrize(("device", "fixed"), [("eth0", 50), ("lo", 48)])
def test_json_gives_the_same_rows(device: str, fixed: int) -> None:
    """Text and --json of one device agree in every column."""
    folder = FIELD / "traces/own"
    if not folder.is_dir():
        pytest.skip("field data are not here")
    text = (folder / f"ethtool_-k_{device}.txt").read_text()
    plain = ethtool.parse(capture(text)).rows["offload"]
    other = ethtool.parse(capture((folder / f"ethtool_--json_-k_{device}.json").read_text())).rows["offload"]
    assert own(plain) == own(other)
    assert len(plain) == 63
    assert sum(row["fixed"] for row in plain) == fixed == text.count("[fixed]")


def test_sosreport_is_read_whole() -> None:
    """Every ethtool -k file of a real sosreport: as many rows as lines with a colon and a state."""
    files = sorted(BUNDLE.glob("ethtool_-k_*"))
    if not files:
        pytest.skip("field data are not here")
    for path in files:
        text = path.read_text()
        assert ethtool.sniff(text)
        parsed = ethtool.parse(capture(text))
        rows = parsed.rows["offload"]
        assert parsed.gaps == []
        assert len(rows) == text.count(": on") + text.count(": off")
        assert sum(row["fixed"] for row in rows) == text.count("[fixed]")
        assert {row["device"] for row in rows} == {path.name.removeprefix("ethtool_-k_")}
    for path in set(BUNDLE.glob("ethtool_*")) - set(files):
        assert not ethtool.sniff(path.read_text())


def test_diff_is_what_patch_would_make_of_it() -> None:
    """Each side's rows are those of the state that the diff's lines spell."""
    text = (CORPUS / "ethtool_diff/vlan10-jessie-has-it-off.txt").read_text()
    prompt, _, diff = text.partition("\n")
    rows = ethtool_diff.parse(capture(diff, prompt[2:])).rows["offload"]
    hunk = diff.split("\n")[3:]
    for side, label, sign in (("first", "jessie", "-"), ("second", "stretch", "+")):
        state = "\n".join(line[1:] for line in hunk if line[:1] in (" ", sign)) + "\n"
        expected = own(ethtool.parse(capture(state)).rows["offload"])
        found = own([row for row in rows if row["diff_side"] == side])
        assert {row["side_label"] for row in found} == {label}
        keys = ("device", "feature", "group", "is_group", "state", "fixed", "requested")
        assert [[row[k] for k in keys] for row in found] == [[row[k] for k in keys] for row in expected]


def test_other_diffs_are_not_ours() -> None:
    """A diff of stacks is no diff of ethtool, and a diff of ethtool no state."""
    stacks = "--- a\n+++ b\n@@ -1,2 +1,3 @@\n tcp_push_one\n+inet_sendmsg\n tcp_sendpage\n"
    assert not ethtool_diff.sniff(stacks)
    config = "--- a\n+++ b\n@@ -1 +1 @@\n-firewall: on\n+firewall: off\n"
    assert not ethtool_diff.sniff(config)
    assert not ethtool.sniff((CORPUS / "ethtool_diff/named-files-cut-hunk.txt").read_text())


@pytest.mark.parametrize(
    ("command", "labels"),
    [
        ("diff -u <(ssh -p 22 -i key me@a.example sudo ethtool -k x) <(ssh b 'ethtool -k x')", ("a.example", "b")),
        ("diff -u <(ethtool -k eth0) <(ethtool -k vlan10)", (None, None)),
        ("diff -u before after", (None, None)),
    ],
)
def test_labels_come_from_the_command_only(command: str, labels: tuple[str | None, str | None]) -> None:
    """ssh's host names a side; /dev/fd/63 names nothing."""
    diff = "--- /dev/fd/63\t2017\n+++ /dev/fd/62\t2017\n@@ -1 +1 @@\n-rx-checksumming: on\n+rx-checksumming: off\n"
    rows = ethtool_diff.parse(capture(diff, command)).rows["offload"]
    assert tuple(row["side_label"] for row in rows) == labels
