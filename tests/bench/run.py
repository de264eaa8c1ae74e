"""Measure the analysis beside grep: `run.py FILE …`, each figure of a pair taken in the same run.

Prints, for each file, CPU seconds (user and system, start-up included), MB/s of text, the ratio to `rg -c` and the
peak of resident memory. What is not installed is left out. Figures differ by machine and load: ratios are what counts.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from parsers import kernel_log

READ = "import sys; from pathlib import Path; from analyzer import case; case.read(Path(sys.argv[1]))"
"""The bundle read to its tables: no rules, no report."""
MEGABYTE = 1_000_000


class Cost(NamedTuple):
    """What one command took."""

    cpu_s: float
    """User and system time of the command and its children."""
    peak_mb: float
    """Largest resident memory of any of its processes."""


def cost(command: list[str]) -> Cost:
    """Run a command, its output thrown away, and return what it took."""
    # A pipe, for grep stops at the first hit when its output goes to /dev/null.
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert started.stdout is not None
    while started.stdout.read(1 << 16):
        pass
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode not in (0, 1):  # grep ends with 1 when nothing was found
        sys.exit(f"{command[0]} ended with {started.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / MEGABYTE)


def best(command: list[str], rounds: int) -> Cost:
    """Return the cheapest of some rounds: what disturbs only adds."""
    return min(cost(command) for _ in range(rounds))


def commands(file: Path, patterns: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield what is measured on one file: (name, command)."""
    packed = file.suffix == ".gz"
    for tool in ("rg", "grep"):
        if shutil.which(tool):
            search = [tool, "-c", "-F", "-f", str(patterns)]
            if packed:
                yield f"zcat | {tool} -c", ["sh", "-c", 'zcat "$0" | "$@" -', str(file), *search]
            else:
                yield f"{tool} -c", [*search, str(file)]
    yield "tables", [sys.executable, "-c", READ, str(file)]
    yield "whole analysis", [sys.executable, "-m", "analyzer.cli", "analyze", str(file)]


def size_of(file: Path) -> int:
    """Return the bytes of text in a file."""
    if file.suffix != ".gz":
        return file.stat().st_size
    with gzip.open(file) as text:
        return sum(len(piece) for piece in iter(lambda: text.read(1 << 20), b""))


def measure(file: Path, patterns: Path, rounds: int, start: Cost) -> None:
    """Print the table of one file."""
    size = size_of(file) / MEGABYTE
    print(f"\n{file.name}: {size:,.0f} MB\n{'':16} {'CPU s':>8} {'MB/s':>8} {'× rg':>6} {'peak MB':>8}")
    first = 0.0
    for name, command in commands(file, patterns):
        took = best(command, rounds)
        first = first or took.cpu_s
        print(f"{name:16} {took.cpu_s:8.2f} {size / took.cpu_s:8,.0f} {first / took.cpu_s:6.2f} {took.peak_mb:8.0f}")
        if name == "tables":
            net = max(took.cpu_s - start.cpu_s, 0.001)
            print(f"{'  less start-up':16} {net:8.2f} {size / net:8,.0f} {first / net:6.2f}")


def main() -> None:
    """Measure each file named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.NamedTemporaryFile("wb", suffix=".patterns") as patterns:
        literals = sorted({literal for family in kernel_log._FAMILIES for literal in family.LITERALS})
        patterns.write(b"\n".join(literals) + b"\n")
        patterns.flush()
        with tempfile.NamedTemporaryFile("wb", suffix=".log") as least:
            least.write(b"[    1.000000] a log of one line\n")
            least.flush()
            start = best([sys.executable, "-c", READ, least.name], asked.rounds)
        print(f"{len(literals)} literals; start-up {start.cpu_s:.2f} s of CPU")
        for file in asked.files:
            measure(file, Path(patterns.name), asked.rounds, start)


if __name__ == "__main__":
    main()
