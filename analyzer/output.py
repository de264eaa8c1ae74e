"""Writing a report: aside first, then renamed, so that the output is the old file or the whole new one.

A link keeps pointing where it did, and what is no file (`/dev/null`, a fifo) is written to, never replaced.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

from analyzer.errors import AnalyzerError

_asides: set[str] = set()
"""Files that are being written aside at this moment."""


def write(path: Path, content: bytes) -> None:
    """Write a file so that a reader never sees half of it; raises AnalyzerError when the place cannot be written."""
    try:
        place = path.resolve()
        if place.exists() and not place.is_file():
            place.write_bytes(content)
        else:
            _replace(place, content)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links, until Python 3.12
        raise _unwritable(path, error) from error


def forget() -> None:
    """Take away what is half written; for a process that is told to end at once."""
    for aside in list(_asides):
        with contextlib.suppress(OSError):
            os.unlink(aside)


def _replace(place: Path, content: bytes) -> None:
    """Write the file aside, then let it take the place of the old one."""
    aside = str(place.with_name(f".{place.name[:100]}.{os.getpid()}.{os.urandom(4).hex()}"))
    _asides.add(aside)
    try:
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(aside, place)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        _asides.discard(aside)


def stand_in() -> None:
    """Give the streams that were closed before us (`>&-`) a file: writing to standard output fails, nothing else.

    Where the locale is ASCII, other signs are written as escapes.
    """
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def let_go_of_stdout() -> None:
    """Let what is still to be flushed go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_stdout(content: bytes) -> None:
    """Write a report to standard output, as bytes."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _unwritable(path: Path, error: OSError | RuntimeError) -> AnalyzerError:
    return AnalyzerError(
        "the report cannot be written",
        where=str(path),
        why=getattr(error, "strerror", None) or str(error),
        cure="Name a file in a folder you can write to, or `-o -` for standard output",
    )
