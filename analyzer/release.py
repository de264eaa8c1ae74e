"""Which version this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed


def version() -> str:
    """Return the installed version, `0.1.0`; `unknown` when run from a folder that was never installed."""
    try:
        return installed("postmortem-analyzer")
    except PackageNotFoundError:
        return "unknown"
