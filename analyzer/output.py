"""Writing a report: aside first, then renamed, so that the output is the old file or the whole new one."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from analyzer.errors import AnalyzerError


def write(path: Path, content: bytes) -> None:
    """Write a file so that a reader never sees half of it; raises AnalyzerError when the place cannot be written."""
    try:
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(aside, 0o666 & ~_umask())  # mkstemp gives 0600; a report is an ordinary file
        os.replace(aside, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)


def write_stdout(content: bytes) -> None:
    """Write a report to standard output, as bytes."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _unwritable(path: Path, error: OSError) -> AnalyzerError:
    return AnalyzerError(
        "the report cannot be written",
        where=str(path),
        why=error.strerror or str(error),
        cure="Name a file in a folder you can write to, or `-o -` for standard output",
    )
