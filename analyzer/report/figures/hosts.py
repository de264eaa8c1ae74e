"""What the host is made of, as tables: offload features by device, clocksources."""

from __future__ import annotations

import itertools
from collections import Counter

from analyzer.case import Case
from analyzer.report.figures.shapes import Figure, Record, number, place, plural, records

MAX_DEVICES = 8
MAX_FEATURES = 200
"""Linux 6.12 knows 64 features and 12 legacy names."""


def offloads(case: Case) -> list[Figure]:
    """Return the offload features by device: first those in which the devices differ, then all."""
    columns = ("device", "feature", "state", "fixed", "requested", "side_label")
    rows = [row for row in records(case, "offload", *columns) if row["feature"]]
    if not rows:
        return []
    devices = list(dict.fromkeys(_device(row) for row in rows))
    cells: dict[str, dict[str, Record]] = {}
    for row in rows:
        cells.setdefault(str(row["feature"]), {})[_device(row)] = row
    differ = [feature for feature, found in cells.items() if len({row["state"] for row in found.values()}) > 1]
    shown = devices[:MAX_DEVICES]
    more = ", ".join(
        plural(count - most, f"more {name}")
        for name, count, most in (("device", len(devices), MAX_DEVICES), ("feature", len(cells), MAX_FEATURES))
        if count > most
    )
    head = ("feature", *shown, "where")
    drawn = []
    if len(devices) > 1:
        caption = f"{plural(len(differ), 'feature differs', 'features differ')} between {', '.join(devices[:6])}."
        table = [_row(feature, cells[feature], shown) for feature in differ[:MAX_FEATURES]]
        # `off [fixed]` does not stand out: the driver never had it, nobody turned it off.
        strong = frozenset(
            (at, column)
            for at, row in enumerate(table)
            for column, cell in enumerate(row)
            if cell == "off" or cell.startswith("off [requested")
        )
        drawn.append(
            Figure("offload-differs", "", "Offload features that differ", caption, None, head, table, "", more, strong)
        )
    caption = f"{plural(len(cells), 'feature')} of {plural(len(devices), 'device')} as ethtool printed them."
    table = [_row(feature, found, shown) for feature, found in itertools.islice(cells.items(), MAX_FEATURES)]
    drawn.append(Figure("offload-all", "folded", "All offload features", caption, None, head, table, "", more))
    return drawn


def _device(row: Record) -> str:
    """Return the device, with the side of a diff where the row has one."""
    return f"{row['device']} ({row['side_label']})" if row["side_label"] else str(row["device"])


def _row(feature: str, found: dict[str, Record], devices: list[str]) -> list[str]:
    """Return one row of the matrix."""
    states = Counter(row["state"] for row in found.values())
    odd = min(found.values(), key=lambda row: states[row["state"]])  # the device unlike the others is the point
    return [feature, *(_state(found.get(device)) for device in devices), place(odd)]


def _state(row: Record | None) -> str:
    """Return the state as ethtool writes it, with its tag."""
    if row is None:
        return "–"
    tag = " [fixed]" if row["fixed"] else ""
    if row["requested"] is not None and row["requested"] != "":
        wanted = {True: "on", False: "off"}.get(row["requested"], row["requested"])
        tag = f" [requested {wanted}]"
    state = {True: "on", False: "off"}.get(row["state"], row["state"])
    return f"{state}{tag}"


def clocksources(case: Case) -> list[Figure]:
    """Return the clocksource of each host and boot, with what else was available."""
    rows = records(case, "clocksource", "host", "current", "available")
    table = [[row["host"] or "–", str(row["current"] or "–"), _listed(row["available"]), place(row)] for row in rows]
    boots = records(case, "boot", "host", "boot", "kernel", "final_clocksource")
    table += [
        [
            f"{row['host'] or ''} boot {number(row['boot'])} {row['kernel'] or ''}".strip(),
            str(row["final_clocksource"]),
            "–",
            place(row),
        ]
        for row in boots
        if row["final_clocksource"]
    ]
    if not table:
        return []
    used = list(dict.fromkeys(row[1] for row in table if row[1] != "–"))
    caption = f"In use: {', '.join(used)}." if used else "No clocksource in use is known."
    return [
        Figure("clocksource", "", "Clocksource", caption, None, ("host", "in use", "available", "where"), table[:60])
    ]


def _listed(available: object) -> str:
    """Return a list of names, or a name, as text."""
    if available is None:
        return "–"
    return " ".join(map(str, available)) if isinstance(available, list | tuple) else str(available)
