"""The tables as text: their published description, and the rows of a bundle's."""

from __future__ import annotations

import json
from collections.abc import Iterator

from analyzer import tables
from analyzer.case import Case
from analyzer.errors import AnalyzerError
from analyzer.suggest import did_you_mean
from parsers.shapes import COMMON

SHOWN_ROWS = 20
"""How many rows of a table a text listing shows before it says how many more there are."""


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
        yield frame.to_csv(index=False).rstrip("\n")
    elif format == "jsonl":
        for line in frame.to_json(orient="records", lines=True, date_format="iso").splitlines():
            if line:
                yield json.dumps(json.loads(line), ensure_ascii=False)
    else:
        shown = frame.drop(columns=["excerpt"]).dropna(axis="columns", how="all")
        yield shown.head(SHOWN_ROWS).to_string(index=False, max_colwidth=60)
        if len(frame) > SHOWN_ROWS:
            yield f"… and {len(frame) - SHOWN_ROWS} more rows; -f csv or -f jsonl prints them all"
