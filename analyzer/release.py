"""Which version this is."""

from __future__ import annotations


def version() -> str:
    """Return the installed version, `0.1.0`; `unknown` when run from a folder that was never installed."""
    from importlib.metadata import PackageNotFoundError  # 50 ms: only when asked
    from importlib.metadata import version as installed

    try:
        return installed("postmortem-analyzer")
    except PackageNotFoundError:
        return "unknown"
