"""One clock for a case: stamps without a year are moved into the year that the rest of the bundle shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from parsers.kernel_log.message import YEARLESS
from parsers.shapes import Gap, Row

NS = 1_000_000_000
DAY_NS = 86_400 * NS
YEAR = re.compile(r"\b(20\d\d|199\d)\b")


def settle_years(rows: dict[str, list[Row]]) -> list[Gap]:
    """Move the stamps of YEARLESS into a real year, in place, and return a gap when the bundle shows none.

    The latest dated row of the bundle is taken as the time of capture: a stamp belongs to that year, or to the year
    before when it would lie more than a day after the capture. Without any date the stamps stay in YEARLESS: they
    still compare with each other, and reports show them without a year.
    """
    stamped = [row for table in rows.values() for row in table if row.get("at") is not None]
    yearless = [row for row in stamped if _year(row["at"]) == YEARLESS]
    if not yearless:
        return []
    captured = max((row["at"] for row in stamped if _year(row["at"]) != YEARLESS), default=None)
    captured = captured or _dated_fact(rows.get("host_fact", []))
    if captured is None:
        first = yearless[0]
        return [
            Gap(
                first["member"],
                first["line"],
                "the log's stamps give no year, and nothing else in the bundle does",
            )
        ]
    for row in yearless:
        row["at"] = _moved(row["at"], captured)
    return []


def shown(at: str) -> str:
    """Return an ISO 8601 stamp as reports print it: month and day only where the year is merely stood in for."""
    return at.removeprefix(f"{YEARLESS}-")


def _year(at: int) -> int:
    return datetime.fromtimestamp(at // NS, UTC).year


def _moved(at: int, captured: int) -> int:
    """Return a yearless stamp in the latest year that does not put it more than a day after the capture."""
    stamp, year = datetime.fromtimestamp(at // NS, UTC), _year(captured)
    for candidate in (year, *range(year - 1, year - 9, -1)):  # 29 February may need to go back eight years
        try:
            moved = int(stamp.replace(year=candidate).timestamp()) * NS + at % NS
        except ValueError:
            continue
        if moved <= captured + DAY_NS:
            return moved
    return at


def _dated_fact(host_facts: Iterable[Row]) -> int | None:
    """Return the end of the year that the host's own `date` names, None where the bundle has none."""
    for row in host_facts:
        if row.get("name") == "date" and (found := YEAR.search(str(row.get("value", "")))):
            return int(datetime(int(found[1]), 12, 31, tzinfo=UTC).timestamp()) * NS
    return None
