"""The network devices of a host and what they stand on: VLAN over bond over physical device.

    $ ip -d link
    7: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default
        link/ether 00:25:90:aa:bb:01 brd ff:ff:ff:ff:ff:ff promiscuity 0
        bond mode active-backup active_slave eth2 miimon 100
    8: vlan10@bond0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default
        link/ether 00:25:90:aa:bb:01 brd ff:ff:ff:ff:ff:ff promiscuity 0
        vlan protocol 802.1Q id 10 <REORDER_HDR>

Table: `link`, a row for each device and each lower device it names. Also read: `ip link`, `ip addr`, `ip -o link`,
`ip -br link`, /proc/net/vlan/config, /proc/net/vlan/DEV, /proc/net/bonding/DEV.
Format: iproute2's ip/ipaddress.c (`print_linkinfo`), iplink_*.c for the detail line; net/8021q/vlanproc.c;
drivers/net/bonding/bond_procfs.c.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from parsers.shapes import Capture, Column, Gap, Parsed, Row, Table, excerpt, integer

TABLES = {
    "link": Table(
        "one network device, with one of the devices below it",
        {
            "device": Column("str", "the device"),
            "kind": Column("str", "vlan, bond, bridge, veth, loopback, physical, other; missing where not shown"),
            "lower": Column("str", "the device it stands on; missing for none, or one in another namespace"),
            "vlan_id": Column("Int64", "the VLAN's number"),
            "master": Column("str", "the bond or bridge it is part of"),
            "mac": Column("str", "hardware address"),
            "mtu": Column("Int64", "largest packet in bytes"),
            "state": Column("str", "operational state as printed: UP, DOWN, UNKNOWN …; up or down from /proc"),
            "source": Column("str", "ip link, proc vlan, proc bonding, or name"),
        },
    )
}
CAPTURES = dict.fromkeys(TABLES, ("which device stands on which", "ip -d link"))
BEGINS = re.compile(
    rb"\d+: [^\s:]+: <[A-Z_,0-9-]*> mtu \d|VLAN Dev name\s+\||Ethernet Channel Bonding Driver: v"
    rb"|\S+\s+VID: \d+\s+REORDER"
)

HEADER = re.compile(
    r"\d+: (?P<device>[^\s:@]+)(?:@(?P<below>[^\s:]+))?: <(?P<flags>[A-Z_,0-9-]*)> mtu (?P<mtu>\d+)(?P<rest> .*)"
)
BRIEF = re.compile(
    r"(?P<device>[^\s@]+)(?:@(?P<below>\S+))?\s+(?P<state>[A-Z]+)\s+(?P<mac>[0-9a-f]{2}(?::[0-9a-f]{2}){5})"
    r"\s+<(?P<flags>[A-Z_,0-9-]*)>"
)
ADDRESS = re.compile(r"link/(?P<type>\S+)(?: (?P<mac>[0-9a-f]{2}(?::[0-9a-f]{2}){5})(?=\s|$))?")
MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
BOND_STATES = ("up", "down", "going down", "going back")
VLAN_DETAIL = re.compile(r"vlan (?:protocol \S+ )?id (?P<id>\d+)(?=\s|$)")
VLAN_CONFIG = re.compile(r"(?P<device>\S+)\s*\|\s*(?P<id>\d+)\s*\|\s*(?P<lower>\S+)\s*$")
VLAN_FILE = re.compile(r"(?P<device>\S+)\s+VID: (?P<id>\d+)\s")
COMMAND = re.compile(
    r"(?:^|[\s/'\"])ip(?:\s+-\S+)*\s+(?:l|li|lin|link|a|ad|add|addr|addre|addres|address)(?=\s|$|['\"|;])"
    r"|/proc/net/(?:vlan|bonding)/"
)
BOND_FILE = re.compile(r"/proc/net/bonding/([^\s'\"*]+)")

DETAILS = {"vlan": "vlan", "bond": "bond", "bridge": "bridge", "veth": "veth"}
"""First word of the detail line to kind. Other words (`vxlan`, `tun`, `openvswitch` …) make `other`."""
NOT_DETAILS = (
    "link/", "inet", "RX:", "TX:", "RX ", "TX ", "valid_lft", "altname", "alias", "vf ", "promiscuity", "bridge_slave",
    "bond_slave", "openvswitch_slave", "addrgenmode", "team_slave", "vrf_slave", "ovs_slave", "qdisc", "prog/",
    "parentbus",
)  # fmt: skip
"""What the lines under a device may begin with beside its kind's detail line."""
NAMED_VLAN = re.compile(r"vlan\.?(\d{1,4})$|(?P<below>.+)\.(\d{1,4})$")


def sniff(head: str) -> bool | None:
    """Return whether this shows network devices: by the command, or by the first lines."""
    first, _, rest = head.partition("\n")
    if first.startswith("$ "):
        if re.search(r"\b(?:diff|ethtool)\b", first):
            return False
        if COMMAND.search(first):
            return True
        head = rest
    lines = [line for line in head.split("\n", 20) if line.strip()][:3]
    return any(BEGINS.match(line.encode("utf-8", "replace")) for line in lines)


def parse(capture: Capture) -> Parsed:
    """Return the `link` rows of a capture.

    A device whose first line is cut, and lines of /proc files that cannot be read, become gaps. `link` is present
    only when a device was shown (`ip -o addr` shows none). Never raises.
    """
    lines = list(capture.lines())
    gaps = capture.gaps()
    rows: list[Row] = []
    bond = found[1] if (found := BOND_FILE.search(capture.command)) else None
    final = max((number for number, text in lines if text.strip()), default=0)
    for part in _blocks(lines):
        number, text = part[0]
        last = part[-1][0] >= final
        cut = part[-1][0] == lines[-1][0] and capture.open_end
        if HEADER.match(text):
            if row := _ip_row(part, "-d" in capture.command, last, cut):
                rows.append(row | _common(capture, part))
            else:
                gaps.append(Gap(capture.member, number, "the line of a device is cut"))
        elif brief := BRIEF.match(text):
            rows.append(_brief_row(brief) | _common(capture, part))
        elif text.startswith("Ethernet Channel Bonding Driver"):
            rows += [row | _common(capture, lines_of) for row, lines_of in _bond_rows(part, bond, cut, gaps, capture)]
        elif vlan := VLAN_FILE.match(text):
            lower = next((line.split()[1] for _, line in part if re.match(r"Device: \S", line)), None)
            if lower and not (cut and part[-1][1].startswith("Device")):
                row = {"device": vlan["device"], "kind": "vlan", "vlan_id": integer(vlan["id"]), "lower": lower}
                rows.append(row | {"source": "proc vlan"} | _common(capture, part))
            else:
                gaps.append(Gap(capture.member, number, "the VLAN's file is cut before `Device:`"))
        elif (config := VLAN_CONFIG.match(text)) and not cut:
            row = {"device": config["device"], "kind": "vlan", "vlan_id": integer(config["id"])}
            rows.append(row | {"lower": config["lower"], "source": "proc vlan"} | _common(capture, part))
        elif cut or re.match(r"(?:cat|ip|sudo|Cannot|Device|RTNETLINK)\b.*[:\"]", text):
            gaps.append(Gap(capture.member, number, f"shows no device: `{text.strip()[:100]}`"))
    return Parsed({"link": rows} if rows else {}, gaps)


def _blocks(lines: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Yield the lines of each device: its first line and those that tell more of it."""
    block: list[tuple[int, str]] = []
    whole_file = False
    for number, text in lines:
        if not text.strip():
            if whole_file and block:
                block.append((number, text))
            continue
        starts = re.match(r"\d+: |Ethernet Channel Bonding|\S+\s+VID: \d", text)
        whole_file = bool(starts and not text[0].isdigit()) or (whole_file and not starts)
        if block and (starts or not (whole_file or HEADER.match(block[0][1]))):
            yield block
            block = []
        block.append((number, text))
    if block:
        yield block


def _common(capture: Capture, part: list[tuple[int, str]]) -> Row:
    """Return the columns every row has."""
    while not part[-1][1].strip():
        part = part[:-1]
    text = excerpt(line for _, line in part)
    return {"line": part[0][0], "excerpt": text, "host": capture.host or None}


def _ip_row(part: list[tuple[int, str]], detailed: bool, last: bool, cut: bool) -> Row | None:
    """Return the row of one device of `ip link`, None when its first line is cut."""
    # `-o` joins the lines of a device by a backslash.
    texts = [piece.strip() for _, line in part for piece in line.split("\\")]
    if cut:
        texts.pop()
    header = HEADER.match(texts[0] + " ") if texts else None
    if header is None:
        return None
    words = header["rest"].split()
    told = dict(itertools.pairwise(words))
    address = next((found for text in texts if (found := ADDRESS.match(text))), None)
    detailed = detailed or any("promiscuity" in text for text in texts)
    # What follows the detail line shows that none was cut off; so does another device.
    whole = not last or (not cut and any("addrgenmode" in text or text.startswith("RX") for text in texts))
    kind = _kind(texts[1:], address["type"] if address else "", header["flags"], header["device"])
    if kind is None and detailed and address and address["type"] in ("ether", "infiniband") and whole:
        kind = "physical"  # -d prints a detail line for every kind of device that is made by software
    vlan = next((integer(found["id"]) for text in texts if (found := VLAN_DETAIL.match(text))), None)
    below = header["below"]
    lower = None if kind == "veth" or below == "NONE" or re.match(r"if\d+$", below or "") else below
    if kind is None and lower and (named := NAMED_VLAN.match(header["device"])):
        kind, vlan = "vlan", integer(named[1] or named[3])
    return {
        "device": header["device"], "kind": kind, "lower": lower, "vlan_id": vlan, "master": told.get("master"),
        "mac": address["mac"] if address else None, "mtu": integer(header["mtu"]), "state": told.get("state"),
        "source": "ip link",
    }  # fmt: skip


def _kind(texts: list[str], address_type: str, flags: str, device: str) -> str | None:
    """Return what kind of device the lines under its first one and its flags show."""
    if address_type == "loopback" or "LOOPBACK" in flags.split(","):
        return "loopback"
    for text in texts:
        if re.match(r"[a-z]", text) and not text.startswith(NOT_DETAILS):
            return DETAILS.get(text.split()[0], "other")
    if "MASTER" in flags.split(","):
        return "bond"
    return "veth" if device.startswith("veth") else None


def _brief_row(brief: re.Match[str]) -> Row:
    """Return the row of one line of `ip -br link`."""
    below = brief["below"]
    kind = _kind([], "", brief["flags"], brief["device"])
    lower = None if kind == "veth" or below == "NONE" or re.match(r"if\d+$", below or "") else below
    vlan = None
    if kind is None and lower and (named := NAMED_VLAN.match(brief["device"])):
        kind, vlan = "vlan", integer(named[1] or named[3])
    return {
        "device": brief["device"], "kind": kind, "lower": lower, "vlan_id": vlan, "mac": brief["mac"],
        "state": brief["state"], "source": "ip link",
    }  # fmt: skip


def _bond_rows(
    part: list[tuple[int, str]], bond: str | None, cut: bool, gaps: list[Gap], capture: Capture
) -> Iterator[tuple[Row, list[tuple[int, str]]]]:
    """Yield the row of a bond and of each of its slaves, with their lines, from /proc/net/bonding/BOND."""
    starts = [i for i, (_, text) in enumerate(part) if i == 0 or text.startswith("Slave Interface:")]
    if bond is None:
        gaps.append(Gap(capture.member, part[0][0], "which bond this is, only the file's name says: not known"))
    for begin, end in zip(starts, [*starts[1:], len(part)], strict=True):
        lines = part[begin:end]
        if begin and (not lines[0][1].partition(":")[2].strip() or (cut and begin == len(part) - 1)):
            gaps.append(Gap(capture.member, part[begin][0], "the name of a slave is cut"))
            continue
        told = {key: value.strip() for _, text in lines for key, colon, value in [text.partition(": ")] if colon}
        state = told.get("MII Status") if told.get("MII Status") in BOND_STATES else None
        address = told.get("Permanent HW addr", "")
        if begin == 0:
            if bond:
                yield {"device": bond, "kind": "bond", "state": state, "source": "proc bonding"}, lines
            continue
        yield {
            "device": lines[0][1].partition(":")[2].strip(), "master": bond, "state": state,
            "mac": address if MAC.fullmatch(address) else None, "source": "proc bonding",
        }, lines  # fmt: skip
