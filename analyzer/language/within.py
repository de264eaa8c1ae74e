"""Are rows of two selections close in time? Wall clocks first, else the uptime of one boot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


class Clocks(NamedTuple):
    """What tells the time of a selection's rows: arrays of one length."""

    at: Any
    """Nanoseconds since the epoch."""
    has_at: Any
    uptime: Any
    """Nanoseconds since boot."""
    has_uptime: Any
    log: list[tuple[str, int | None]]
    """(member, boot): uptimes compare only within one boot of one member."""
    host: list[str]
    """Empty where unknown, which fits any."""


def clocks(frame: pd.DataFrame, prefix: str) -> Clocks:
    """Return the clocks of a frame's rows, of one side of a join when `prefix` names it."""
    from analyzer.language.condition import of_series

    at = of_series(frame[f"{prefix}at"])
    uptime = of_series(frame[f"{prefix}uptime_s"])
    boot = of_series(frame[f"{prefix}boot"])
    boots = [None if gone else value for value, gone in zip(boot.values.tolist(), boot.missing.tolist(), strict=True)]
    members = of_series(frame[f"{prefix}member"]).values.tolist()
    hosts = of_series(frame[f"{prefix}host"]).values.tolist()
    # No machine is up for three centuries; what a damaged stamp says beyond that must not wrap around.
    nanoseconds = (uptime.values.clip(-9e9, 9e9) * 1e9).astype("int64")
    return Clocks(at.values, ~at.missing, nanoseconds, ~uptime.missing, list(zip(members, boots, strict=True)), hosts)


def near(one: Clocks, other: Clocks, span: int) -> bool | None:
    """Return whether some pair of rows is at most `span` ns apart; None when no pair has a clock in common.

    A pair is compared by `at` when both rows have it, else by uptime when both have that, of the same member and boot
    and of hosts that are equal or unknown.
    """
    timed = bool(one.has_at.any() and other.has_at.any())
    if timed and _nearest(one.at[one.has_at], other.at[other.has_at]) <= span:
        return True
    # Pairs with two wall clocks are settled above: one side of the rest has none.
    pairs = (
        (one.has_uptime & ~one.has_at, other.has_uptime),
        (one.has_uptime & one.has_at, other.has_uptime & ~other.has_at),
    )
    for left, right in pairs:
        nearest = _nearest_uptime(one, left, other, right)
        if nearest is not None and nearest <= span:
            return True
        timed = timed or nearest is not None
    return False if timed else None


def _nearest(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> int:
    """Return the smallest distance between a value of one array and one of the other, neither empty."""
    import numpy as np

    ordered = np.sort(other)
    places = np.searchsorted(ordered, one)
    after = np.abs(ordered[np.minimum(places, len(ordered) - 1)] - one)
    before = np.abs(one - ordered[np.maximum(places - 1, 0)])
    return int(min(after.min(), before.min()))


def _nearest_uptime(one: Clocks, left: Any, other: Clocks, right: Any) -> int | None:
    """Return the smallest distance of uptimes among comparable rows, None when there are none."""
    import numpy as np

    groups = _groups(one, left)
    others = _groups(other, right)
    found: list[int] = []
    for (log, host), places in groups.items():
        fitting = [
            rows for (log2, host2), rows in others.items() if log2 == log and (not host or not host2 or host == host2)
        ]
        found += [_nearest(one.uptime[np.array(places)], other.uptime[np.array(rows)]) for rows in fitting]
    return min(found, default=None)


def _groups(clocks: Clocks, mask: Any) -> dict[tuple[tuple[str, int | None], str], list[int]]:
    groups: dict[tuple[tuple[str, int | None], str], list[int]] = {}
    for place in mask.nonzero()[0].tolist():
        groups.setdefault((clocks.log[place], clocks.host[place]), []).append(place)
    return groups
