"""Network devices, against counts taken another way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers import links
from parsers.shapes import Capture

NETWORKING = Path(__file__).parent.parent.parent / "shared/field-data/bundles/hotsos_sosreport/sos_commands/networking"
CORPUS = Path(__file__).parent / "corpus/links"


def test_sosreport_devices() -> None:
    """Every numbered line of a real `ip -s -d link` is a row, with its master and address."""
    path = NETWORKING / "ip_-s_-d_link"
    if not path.exists():
        pytest.skip("field data are not here")
    text = path.read_text()
    parsed = links.parse(Capture("m", 1, "ip -s -d link", [text.encode()]))
    rows = parsed.rows["link"]
    assert parsed.gaps == []
    assert [row["device"] for row in rows] == re.findall(r"(?m)^\d+: ([^:@]+)[:@]", text)
    assert [row["mac"] for row in rows] == re.findall(r"link/\w+ (\S+)", text)
    assert sum(row["master"] is not None for row in rows) == len(re.findall(r" master \S+ state", text))
    assert sum(row["kind"] == "veth" for row in rows) == len(re.findall(r"(?m)^\d+: veth", text))
    assert sum(row["kind"] == "physical" for row in rows) == len(re.findall(r"(?m)^\d+: ens", text))


def test_no_device_and_no_vlan_is_invented_at_any_cut() -> None:
    """Cut after each byte, the rows' names, VLANs and lower devices are among those of the whole capture."""
    keys = ("device", "vlan_id", "lower", "master", "mac", "kind", "state")
    for path in sorted(CORPUS.glob("*.txt")):
        prompt, _, body = path.read_bytes().partition(b"\n")
        command = prompt[2:].decode()

        def rows(text: bytes, command: str = command) -> list[dict[str, object]]:
            return links.parse(Capture("m", 2, command, [text])).rows.get("link", [])

        whole = {row["device"]: row for row in rows(body)}
        for cut in range(len(body)):
            for row in rows(body[:cut]):
                assert all(row.get(key) in (None, whole[row["device"]].get(key)) for key in keys), cut


def test_other_ip_commands_are_not_ours() -> None:
    """Neighbours, routes and rules are no devices."""
    for command in ("ip -s -s neigh show", "ip route", "ip rule list", "ip maddr", "ethtool -i eth0"):
        assert not links.sniff(f"$ {command}\n192.0.2.1 dev eth0 lladdr 02:00:5e:00:00:01 REACHABLE\n")
    for command in ("ip a", "ip -d link show dev vlan10", "/sbin/ip -o addr", "ssh h 'ip -d link'", "ip -br l"):
        assert links.sniff(f"$ {command}\n1: lo: <LOOPBACK>\n")


@given(st.text(max_size=300))
def test_any_text_is_survived(text: str) -> None:
    """No text raises."""
    for command in ("", "ip -d link", "cat /proc/net/bonding/bond0"):
        for start in ("", "1: lo: <UP> mtu 9 ", "v  VID: 1 REORDER\n", "Ethernet Channel Bonding Driver: v\n"):
            links.parse(Capture("m", 1, command, [(start + text).encode()]))
