"""ethtool's offload features: the state of a device (`-k`) and what a change did (`-K`).

    $ sudo ethtool -k vlan10
    Features for vlan10:
    rx-checksumming: off [fixed]
    tx-checksumming: off
            tx-checksum-ip-generic: off
    tcp-segmentation-offload: off
            tx-tcp-segmentation: off [requested on]

    $ sudo ethtool -K vlan10 tx on
    Actual changes:
    tx-checksumming: on
            tx-checksum-ip-generic: on

Tables: `offload`, a row for each feature line; `offload_change`, a row for each line under `Actual changes:`.
Format: ethtool's features.c (`dump_one_feature`, `off_flag_def` for the groups; `Offload parameters for` and names
with spaces up to 2.6.38), netlink/features.c for `--json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from parsers.shapes import INTERRUPT_ECHO, Capture, Column, Gap, Parsed, Row, Table, excerpt

FEATURE_COLUMNS = {
    "device": Column("str", "the network device"),
    "feature": Column("str", "the feature as printed; the blanks of old spellings as `-`"),
    "group": Column("str", "the legacy name it belongs to; a legacy name's own, missing for features of no group"),
    "is_group": Column("boolean", "a line computed from several features: it can be on while one of them is off"),
}
TABLES = {
    "offload": Table(
        "one feature of one device, as `ethtool -k` shows it",
        {
            **FEATURE_COLUMNS,
            "state": Column("str", "on or off"),
            "fixed": Column("boolean", "the driver does not allow to change it; missing where the line was cut"),
            "requested": Column("str", "on or off where that was asked for and is not so, else missing"),
            "source": Column("str", "-k, or diff for one side of a comparison"),
            "diff_side": Column("str", "first or second side of a diff, else missing"),
            "side_label": Column("str", "what the diff's command or file names call that side, else missing"),
        },
    ),
    "offload_change": Table(
        "one feature that a call of `ethtool -K` changed",
        {
            **FEATURE_COLUMNS,
            "state": Column("str", "on or off: the new state"),
            "requested": Column("str", "on or off where that was asked for and is not so, else missing"),
            "command": Column("str", "the command that made the change, where known"),
        },
    ),
}
CAPTURES = {
    "offload": ("the features of every device", "for d in $(ls /sys/class/net); do ethtool -k $d; done"),
    "offload_change": ("the answers of `ethtool -K`", "ethtool -K DEVICE FEATURE on"),
}
BEGINS = re.compile(rb"(?:Features|Offload parameters) for \S+:\s*$|Actual changes:\s*$")

HEADER = re.compile(r"\s*(?:Features|Offload parameters) for (\S+):\s*$")
CHANGES = re.compile(r"\s*Actual changes:\s*$")
FEATURE = re.compile(
    r"\s*(?P<name>[a-z0-9][a-z0-9_.-]*(?: [a-z]+)*): (?P<state>on|off)"
    r"(?: \[(?:(?P<fixed>fixed)|requested (?P<requested>on|off))\])?\s*$"
)
JSON_ITEM = re.compile(
    r'"ifname"\s*:\s*"(?P<device>[^"]+)"|"(?P<name>[^"]+)"\s*:\s*\{\s*"active"\s*:\s*(?P<active>true|false)\s*,'
    r'\s*"fixed"\s*:\s*(?P<fixed>true|false|null)\s*,\s*"requested"\s*:\s*(?P<requested>true|false|null)\s*\}'
)
COMMAND = re.compile(
    r"\bethtool['\"]?\s+(?:(?:--json|-j|--debug\s+\d+)\s+)*"
    r"(?P<option>-k|-K|--show-offload|--show-features|--offload|--features)(?:\s+['\"]?(?P<device>[^\s'\")|;&]+))?"
)
"""In a prompt, behind sudo or ssh, inside quotes or `<(…)`."""
CHANGING = ("-K", "--offload", "--features")

GROUPS = (
    ("tx-checksumming", re.compile(r"tx-checksum-")),
    ("scatter-gather", re.compile(r"tx-scatter-gather")),
    ("tcp-segmentation-offload", re.compile(r"tx-tcp.*-segmentation$")),
    ("rx-checksumming", re.compile(r"rx-checksum$")),
    ("udp-fragmentation-offload", re.compile(r"tx-udp-fragmentation$")),
    ("generic-segmentation-offload", re.compile(r"tx-generic-segmentation$")),
    ("generic-receive-offload", re.compile(r"rx-gro$")),
    ("large-receive-offload", re.compile(r"rx-lro$")),
    ("rx-vlan-offload", re.compile(r"rx-vlan-hw-parse$")),
    ("tx-vlan-offload", re.compile(r"tx-vlan-hw-insert$")),
    ("ntuple-filters", re.compile(r"rx-ntuple-filter$")),
    ("receive-hashing", re.compile(r"rx-hashing$")),
)
"""Legacy names and their features (`off_flag_def`). Those of one feature are printed under the legacy name."""
COMPUTED = ("tx-checksumming", "scatter-gather", "tcp-segmentation-offload")
"""The legacy names of several features. Told by name, not by the lines that follow: those may be cut off."""
LEGACY = frozenset(name for name, _ in GROUPS)

PROSE = re.compile(r"(?!Cannot )[A-Z][\w'’-]*(?:,? [\w'’\"`(-][^\s:]*){4,}[.!?…]$")
"""A sentence of somebody's: five words and more, ended like one. ethtool's own begin with Cannot."""

HEAD_LINES = 12
"""Where a capture begins: errors of old drivers may stand before the header (`Cannot get device … settings`)."""
MAX_TEXT = 8 << 20
"""Characters of a capture that are looked at: a device is 2,000, in JSON 7,000."""
LINE_COST = 40
"""A line counts as so many characters more: a million empty ones take memory too."""


class Feature(NamedTuple):
    """One feature line."""

    name: str
    state: str
    fixed: bool
    requested: str | None

    def row(self) -> Row:
        """Return the columns a feature line fills by itself."""
        group = self.name if self.name in LEGACY else None
        group = group or next((name for name, child in GROUPS if child.match(self.name)), None)
        # With a suffix it is the one feature of its group that this kernel has, printed under the group's name.
        computed = self.name in COMPUTED and not self.fixed and self.requested is None
        return {
            "feature": self.name, "group": group, "is_group": computed, "state": self.state,
            "fixed": self.fixed, "requested": self.requested,
        }  # fmt: skip


def sniff(head: str) -> bool | None:
    """Return whether this is the output of `ethtool -k` or `-K`: by its command, or its first lines."""
    first, _, rest = head.partition("\n")
    if first.startswith("$ "):
        if COMMAND.search(first):
            return not re.search(r"\bdiff\b", first)
        head = rest
    lines = [line for line in head.split("\n", 4 * HEAD_LINES) if line.strip()][:HEAD_LINES]
    if any(line.startswith(("--- ", "+++ ", "@@ ")) for line in lines):
        return False
    if any(HEADER.match(line) or CHANGES.match(line) for line in lines):
        return True
    if '"ifname"' in head[:1000] and '"active"' in head[:4000]:
        return "checksumming" in head[:4000]
    named = [found["name"] in LEGACY for line in lines if (found := FEATURE.match(line))]
    return sum(named) >= 2


def parse(capture: Capture) -> Parsed:
    """Return `offload` rows of a `-k` capture, `offload_change` rows of a `-K` answer.

    Lines that are no feature (errors of the tool, a cut line) become gaps. A capture without any feature line makes
    no table present: it could not have shown one. Never raises.
    """
    called = COMMAND.search(capture.command)
    device = called["device"] if called else None
    changing = bool(called and called["option"] in CHANGING)
    lines, more = _clipped(capture.lines())
    gaps = capture.gaps()
    if more:
        gaps.append(Gap(capture.member, more, "longer than any list of features: from here on nothing was read"))
    if any('"ifname"' in text or '"active"' in text for _, text in lines[:HEAD_LINES]):
        rows = list(_json_rows(capture, lines, device, gaps))
        return Parsed({"offload": rows} if rows else {}, gaps)
    tables: dict[str, list[Row]] = {}
    old = over = False
    for number, raw in lines:
        text = INTERRUPT_ECHO.sub("", raw)
        # ethtool prints no empty line: what follows one after features, and is neither, was written by somebody else.
        over = over or (bool(tables) and (not text.strip() or bool(PROSE.match(text))))
        if header := HEADER.match(text):
            device, changing, old, over = header[1], False, "Offload" in text, False
        elif CHANGES.match(text):
            changing, over = True, False
            tables.setdefault("offload_change", [])
        elif feature := feature_of(text):
            row = {"device": device, **feature.row()} | {"line": number, "excerpt": excerpt([raw])}
            if old:
                row["is_group"] = False
            if number == lines[-1][0] and capture.open_end and "[" not in text:
                row["fixed"] = None
            table = "offload_change" if changing else "offload"
            tables.setdefault(table, []).append(_of_table(row, changing, capture))
        elif text.strip() and not over:
            gaps.append(Gap(capture.member, number, f"not a feature: `{text.strip()[:100]}`"))
    return Parsed(tables, gaps)


def feature_of(text: str) -> Feature | None:
    """Return the feature a line shows, None when it shows none."""
    found = FEATURE.match(text)
    if not found:
        return None
    return Feature(found["name"].replace(" ", "-"), found["state"], bool(found["fixed"]), found["requested"])


def _of_table(row: Row, changing: bool, capture: Capture) -> Row:
    """Complete a row for its table."""
    if not changing:
        return {**row, "host": capture.host or None, "source": "-k"}
    del row["fixed"]
    command = capture.command or None
    return {**row, "host": capture.host or None, "command": command}


def _clipped(lines: Iterator[tuple[int, str]]) -> tuple[list[tuple[int, str]], int]:
    """Return the lines up to MAX_TEXT, and the number of the first one left out, 0 for none."""
    kept: list[tuple[int, str]] = []
    left = MAX_TEXT
    for number, text in lines:
        left -= len(text) + LINE_COST
        if left < 0:
            return kept, number
        kept.append((number, text))
    return kept, 0


def _json_rows(capture: Capture, lines: list[tuple[int, str]], device: str | None, gaps: list[Gap]) -> Iterator[Row]:
    """Yield the rows of `ethtool --json -k`, read item by item so that a cut capture keeps its whole items."""
    whole = "\n".join(text for _, text in lines)
    place, index = 0, 0
    for item in JSON_ITEM.finditer(whole):
        index += whole.count("\n", place, item.start())
        place = item.start()
        if item["device"]:
            device = item["device"]
            continue
        active, asked = ("on" if item[name] == "true" else "off" for name in ("active", "requested"))
        fixed = item["fixed"] == "true"
        wanted = asked if item["requested"] != "null" and not fixed and asked != active else None
        through = item[0].count("\n") + 1
        row = {"device": device, **Feature(item["name"], active, fixed, wanted).row(), "line": lines[index][0]}
        row["excerpt"] = excerpt(text for _, text in lines[index : index + through])
        yield _of_table(row, False, capture)
    if not whole.rstrip().endswith("]"):
        gaps.append(Gap(capture.member, lines[-1][0], "the JSON is cut: features may be missing"))
