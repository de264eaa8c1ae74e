"""A unified diff of two `ethtool -k`: both states, as far as the hunks show them.

    $ diff -rup <(ssh jessie sudo ethtool -k vlan10) <(ssh stretch sudo ethtool -k vlan10)
    --- /dev/fd/63  2017-08-16 21:21:12.000000000 -0700
    +++ /dev/fd/62  2017-08-16 21:21:12.000000000 -0700
    @@ -1,21 +1,21 @@
     Features for vlan10:
    -scatter-gather: off
    -       tx-scatter-gather: off
    +scatter-gather: on
    +       tx-scatter-gather: on

Table: `offload` (see `parsers.ethtool`), a row for each side of each shown line, `line` being that of the diff.
Which side is which is said by the command only: `/dev/fd/63` names nothing, and the story told around a diff may have
it the wrong way round. Format: POSIX diff, "Diff -u Output Format".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from parsers.ethtool import COMMAND, FEATURE, HEADER, LEGACY, PROSE, feature_of
from parsers.shapes import Capture, Gap, Parsed, Row, Table, excerpt, integer

TABLES: dict[str, Table] = {}
BEGINS = None

HUNK = re.compile(r"@@ -\d+(?:,(?P<first>\d+))? \+\d+(?:,(?P<second>\d+))? @@")
FILE = re.compile(r"(?:---|\+\+\+) (?P<name>[^\t]+?)(?:\t.*|\s+\d{4}-\d\d-\d\d \d\d:.*)?$")
NAMELESS = re.compile(r"/dev/(?:fd/\d+|stdin)$|/proc/\S+/fd/|/tmp/zsh|-$")
"""File names of process substitutions and pipes: they say nothing."""
SUBSTITUTION = re.compile(r"[<=]\(([^()]*)\)")
SSH = re.compile(
    r"\bssh\s+(?:-[BbcDEeFIiJLlmOopQRSWw]\s*\S+\s+|-[46AaCfGgKkMNnqsTtVvXxYy]+\s+)*(?:[^\s@]+@)?(?P<host>[\w.:-]+)"
)
SIDES = ("first", "second")
MAX_LINES = 50_000
"""Most lines of a diff that are read: one device has some 60, and each line can be two rows."""
HEAD_LINES = 80


@dataclass(slots=True)
class _Side:
    """What is known of one side while its lines go by."""

    device: str | None
    label: str | None
    host: str | None
    due: int = 0
    """Lines the current hunk still owes."""


def sniff(head: str) -> bool | None:
    """Return whether this is a unified diff with feature lines in it, or one whose command compares `ethtool -k`."""
    lines = head.split("\n", HEAD_LINES)[:HEAD_LINES]
    if lines[0].startswith("$ ") and COMMAND.search(lines[0]):
        return bool(re.search(r"\bdiff\b", lines[0]))
    hunk = next((index for index, line in enumerate(lines) if HUNK.match(line)), None)
    if hunk is None:
        return None if lines[0].startswith("--- ") and len(lines) < 3 else False
    names = [found["name"] for line in lines[hunk:] if (found := FEATURE.match(line[1:]))]
    return any(name in LEGACY or name.startswith(("tx-", "rx-")) for name in names)


def parse(capture: Capture) -> Parsed:
    """Return the `offload` rows of both sides, in the order of the diff; a context line gives one for each side.

    Lines in a hunk that show no feature, and hunks that end early, become gaps. Never raises.
    """
    first, second = sides = _sides(capture.command)
    rows: list[Row] = []
    gaps: list[Gap] = []
    number = capture.first_line
    in_hunk = False
    for number, text in capture.lines():
        if number >= capture.first_line + MAX_LINES:
            gaps.append(Gap(capture.member, number, f"longer than {MAX_LINES:,} lines: the rest was not read"))
            break
        if hunk := HUNK.match(text):
            gaps += _early_end(capture.member, number, sides)
            in_hunk, first.due, second.due = True, integer(hunk["first"] or "1"), integer(hunk["second"] or "1")
        elif text.startswith(("--- ", "+++ ")) and not (in_hunk and first.due + second.due):
            side = first if text[0] == "-" else second
            side.label = side.label or _file_label(text)
            in_hunk = False
        elif in_hunk and text.strip() and not text.startswith("\\"):
            # Pasting may eat the blank in front of a context line: what has no sign is context.
            meant = {"-": (first,), "+": (second,)}.get(text[0], sides)
            bare = text[1:] if text[0] in " +-" else text
            complete = first.due <= 0 and second.due <= 0
            if (complete or PROSE.match(text)) and not (feature_of(bare) or HEADER.match(bare)):
                in_hunk = False  # the hunk has all its lines: what follows was written by somebody else
                continue
            for side in meant:
                side.due -= 1
            if header := HEADER.match(bare):
                for side in meant:
                    side.device = header[1]
            elif feature := feature_of(bare):
                rows += [
                    {
                        "line": number, "excerpt": excerpt([text]),
                        "device": side.device, **feature.row(), "source": "diff",
                        "diff_side": SIDES[sides.index(side)], "side_label": side.label, "host": side.host,
                    }
                    for side in meant
                ]  # fmt: skip
            else:
                gaps.append(Gap(capture.member, number, f"not a feature: `{bare.strip()[:100]}`"))
    gaps += _early_end(capture.member, number, sides)
    if capture.open_end:
        for row in rows[-2:]:
            if row["line"] == number and "[" not in row["excerpt"]:
                row["fixed"] = None  # `[fixed]` may have been cut off
    return Parsed({"offload": rows}, gaps + capture.gaps())


def _sides(command: str) -> tuple[_Side, _Side]:
    """Return both sides as the command names them: their devices, and the hosts that `ssh` went to."""
    devices = [found["device"] for found in COMMAND.finditer(command)] or [None]
    hosts = [found["host"] if (found := SSH.search(part)) else None for part in SUBSTITUTION.findall(command)]
    if len(hosts) != 2:
        hosts = [None, None]
    return _Side(devices[0], hosts[0], hosts[0]), _Side(devices[-1], hosts[1], hosts[1])


def _file_label(text: str) -> str | None:
    """Return the file name of a `---` or `+++` line where it says something."""
    found = FILE.match(text)
    return found["name"] if found and not NAMELESS.search(found["name"]) else None


def _early_end(member: str, number: int, sides: tuple[_Side, _Side]) -> list[Gap]:
    """Return a gap when the hunk before owes lines."""
    due = max(side.due for side in sides)
    for side in sides:
        side.due = 0
    return [Gap(member, number, f"a hunk of the diff ends {due} lines early")] if due > 0 else []
