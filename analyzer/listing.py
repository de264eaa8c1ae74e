"""The tables as text: their published description, and the rows of a bundle's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from analyzer import tables
from analyzer.case import Case
from analyzer.errors import AnalyzerError
from analyzer.report.visible import visible
from analyzer.suggest import did_you_mean
from parsers.shapes import COMMON

SHOWN_ROWS = 20
"""How many rows of a table a text listing shows before it says how many more there are."""


FORMULA = ("=", "+", "-", "@", "\t")
"""What a spreadsheet takes for a formula at the beginning of a cell: a process may be called `=cmd|…`."""


def described() -> Iterator[str]:
    """Yield the published description of every table: what a row is, its columns, their types and meaning."""
    yield "Every table has these columns:"
    for name, column in COMMON.items():
        yield f"  {name:<24} {column.dtype:<20} {column.about}"
    for name, table in sorted(tables.declared().items()):
        yield f"\n{name}: one row is {table.row}"
        for column_name, column in table.columns.items():
            yield f"  {column_name:<24} {column.dtype:<20} {column.about}"


def printed(case: Case, wanted: str, format: str) -> Iterator[str]:
    """Yield a bundle's tables, or one of them; raises AnalyzerError for a table that does not exist."""
    if not wanted:
        if format != "text":
            raise AnalyzerError(f"{format} prints one table", cure="Name the table after the bundle")
        yield f"{'table':<24} rows"
        for name, frame in sorted(case.tables.items()):
            yield f"{name:<24} {len(frame)}"
        return
    if wanted not in tables.declared():
        raise AnalyzerError(f"there is no table {wanted!r}", cure=did_you_mean(wanted, tables.declared()))
    if wanted not in case.tables:
        raise AnalyzerError(f"no capture in {case.bundle} could fill the table {wanted}")
    frame = case.tables[wanted]
    if format == "csv":
        yield frame.map(_cell).to_csv(index=False).rstrip("\n")
    elif format == "jsonl":
        for line in frame.to_json(orient="records", lines=True, date_format="iso").split("\n"):
            if line:
                yield json.dumps(json.loads(line))
    else:
        shown = frame.drop(columns=["excerpt"]).dropna(axis="columns", how="all")
        yield visible(shown.head(SHOWN_ROWS).to_string(index=False, max_colwidth=60))
        if len(frame) > SHOWN_ROWS:
            yield f"… and {len(frame) - SHOWN_ROWS} more rows; -f csv or -f jsonl prints them all"


def _cell(value: Any) -> Any:
    """Return a cell of CSV, which people open in spreadsheets: control signs visible, a formula behind an apostrophe.

    JSON lines have the same cells as they are, in ASCII.
    """
    if not isinstance(value, str):
        return visible(str(value)) if isinstance(value, tuple) else value
    shown = visible(value)
    return f"'{shown}" if shown.startswith(FORMULA) else shown
