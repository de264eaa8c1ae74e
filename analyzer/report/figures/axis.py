"""An axis of time that leaves out long empty stretches, so that what happened in seconds is seen in a log of days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

EMPTY = 0.35
"""A stretch without events is left out when it is longer than this share of the whole."""
BREAK = 26.0
"""Width of the place where a stretch was left out, in pixels."""
LEAST = 110.0
"""Width a piece has at least."""
INSET = 30.0
"""A piece beside a break keeps this far from it, so that labels on both sides have room."""
TICK = 84.0
"""Ticks are at least this far apart."""

STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
DAY = 86400


class Piece(NamedTuple):
    """A stretch of the axis without a break: from `begin` to `end` in seconds, `left` to `right` in pixels."""

    begin: float
    end: float
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Axis:
    """Places on the axis."""

    pieces: Sequence[Piece]

    @property
    def span(self) -> float:
        """The whole time between the first and the last event, in seconds."""
        return self.pieces[-1].end - self.pieces[0].begin

    def x(self, at: float) -> float:
        """Return the place of a time, in pixels."""
        piece = next((piece for piece in self.pieces if at <= piece.end), self.pieces[-1])
        part = (at - piece.begin) / ((piece.end - piece.begin) or 1.0)
        return piece.left + part * (piece.right - piece.left)

    def ticks(self) -> list[tuple[float, float, float]]:
        """Return (pixels, time, step between ticks in seconds) of the ticks, at round times."""
        found: list[tuple[float, float, float]] = []
        for piece in self.pieces:
            width = piece.right - piece.left
            step = _step((piece.end - piece.begin) * TICK / width)
            first = -(-piece.begin // step) * step
            times = [first + index * step for index in range(int((piece.end - first) // step) + 1)]
            times = times or [(piece.begin + piece.end) / 2 if piece.end - piece.begin > 1 else piece.begin]
            found += [(self.x(at), at, step if at % step == 0 else 1) for at in times]
        return found

    def breaks(self) -> list[tuple[float, float]]:
        """Return (pixels, seconds left out) of every break."""
        return [
            ((before.right + after.left) / 2, after.begin - before.end)
            for before, after in zip(self.pieces, self.pieces[1:], strict=False)
        ]


def axis(events: Sequence[tuple[float, float]], left: float, right: float) -> Axis:
    """Return the axis for events given as (begin, end) in seconds, at least one."""
    ordered = sorted(events)
    whole = max(end for _, end in ordered) - ordered[0][0]
    stretches = [list(ordered[0])]
    for begin, end in ordered[1:]:
        if begin - stretches[-1][1] > EMPTY * whole > 0:
            stretches.append([begin, end])
        stretches[-1][1] = max(stretches[-1][1], end)
    room = right - left - BREAK * (len(stretches) - 1) - LEAST * len(stretches)
    lasted = sum(end - begin for begin, end in stretches) or 1.0
    pieces: list[Piece] = []
    at = left
    for begin, end in stretches:
        width = LEAST + room * (end - begin) / lasted
        before = INSET if begin != stretches[0][0] else 0.0
        after = INSET if end != stretches[-1][1] else 0.0
        pieces.append(Piece(begin, end, at + before, at + width - after))
        at += width + BREAK
    return Axis(pieces)


def _step(least: float) -> float:
    """Return the round step, in seconds, that is not below `least`."""
    days = -(-least // DAY)
    return next((float(step) for step in STEPS if step >= least), float(DAY * days))
