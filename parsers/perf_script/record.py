"""What `perf record` prints at its end, on the terminal it shares with the rest of a pipeline.

    [ perf record: Woken up 54 times to write data ]
    [ perf record: Captured and wrote 17.778 MB perf.data (173520 samples) ]

Format: perf, builtin-record.c. `(~7748 samples)`, in perf before 3.19, is an estimate from the file's size.
"""

from __future__ import annotations

import re

from parsers.command import Stage, stages
from parsers.shapes import Gap, Row, excerpt, integer

WOKEN = re.compile(r"\[ perf record: Woken up (\d+) times to write data \]")
CAPTURED = re.compile(
    r"\[ perf record: Captured and wrote (\d{1,15}(?:\.\d{1,15})?) MB [^(]*(?:\((~?)(\d+) samples\))?"
)


def read_record(number: int, line: str, command: str, records: list[Row]) -> bool:
    """Add what perf record says in a line to `records`, rows of `perf_record`; False if it says nothing."""
    if found := WOKEN.search(line):
        records.append({"line": number, "excerpt": excerpt([line]), "woken": integer(found[1]), "command": command})
        return True
    found = CAPTURED.search(line)
    if not found:
        return False
    if not records or "megabytes" in records[-1]:
        records.append({"line": number, "excerpt": excerpt([line]), "command": command})
    elif records[-1]["line"] == number - 1:
        records[-1]["excerpt"] += "\n" + excerpt([line])
    records[-1]["megabytes"] = float(found[1])
    if found[3] and not found[2]:
        records[-1]["samples"] = integer(found[3])
    return True


def sample_faults(member: str, records: list[Row], counted: int) -> list[Gap]:
    """Return a gap where the only recording's own count differs from what was counted."""
    if len(records) != 1 or records[0].get("samples") in (None, counted):
        return []
    own = records[0]["samples"]
    return [Gap(member, records[0]["line"], f"perf record counted {own} samples, the capture holds {counted}")]


def recording(command: str) -> tuple[float | None, int | None]:
    """Return how many seconds a recording lasted (`-- sleep 10`) and the process it traced (-p), where told."""
    stage = next((each for each in stages(command) if each.tool == "perf"), None)
    if stage is None:
        return None, None
    pid = Stage("perf", stage.words[: stage.words.index("--")] if "--" in stage.words else stage.words).number(
        "p", "pid"
    )
    slept = re.search(r"(?:^|[ /])sleep (\d{1,15}(?:\.\d{1,15})?)(?= |$)", " ".join(stage.words))
    return float(slept[1]) if slept else None, int(pid) if pid else None
