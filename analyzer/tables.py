"""Every declared table: those of the parsers, and those derived from them."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Iterable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import parsers
from analyzer import derive
from parsers.shapes import COMMON, Gap, Row, Table

if TYPE_CHECKING:
    import pandas as pd


MISFIT = (ArithmeticError, TypeError, ValueError)
"""What making a column raises where a value does not fit it; pandas says it in different ways for each dtype."""


@cache
def declared() -> dict[str, Table]:
    """Return every table by name, its columns complete: the common ones first, then its own.

    Tables are found by walking the modules of `parsers`; two different declarations of one table are a defect.
    """
    found: dict[str, Table] = {}
    for home in _homes():
        for name, table in getattr(home, "TABLES", {}).items():
            whole = Table(table.row, {**COMMON, **table.columns})
            if found.setdefault(name, whole) != whole:
                raise TypeError(f"{home.__name__} declares the table {name} again, and differently")
    return dict(sorted(found.items()))


@cache
def _homes() -> tuple[ModuleType, ...]:
    """Return every module that may declare tables."""
    names = sorted(module.name for module in pkgutil.walk_packages(parsers.__path__, "parsers."))
    return (*(importlib.import_module(name) for name in names), derive)


@cache
def captures() -> dict[str, tuple[str, str]]:
    """Return for each table what to ask for so that it can be filled, in words, and the command that captures it."""
    return {name: capture for home in _homes() for name, capture in getattr(home, "CAPTURES", {}).items()}


def frame(name: str, rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows as the table `name`: declared columns only, in order, with their dtypes also when empty.

    A column that a row leaves out is missing there; one that the table does not declare is a KeyError; a value
    that a column cannot hold is one of MISFIT.
    """
    rows = list(rows)
    # A kernel log makes a dozen tables present that stay empty; 4 ms each where a copy takes 0.1.
    return framed(declared()[name], rows) if rows else _empty(name).copy()


@cache
def _empty(name: str) -> pd.DataFrame:
    return framed(declared()[name], [])


def drop_unfit(name: str, rows: Iterable[Row]) -> list[Gap]:
    """Make missing, in place, every value that its column cannot hold; return a gap for each row that lost one.

    Captures come from strangers: a counter of 400 digits is no number of any kernel, and must not end the analysis.
    """
    gaps = []
    for row in rows:
        lost = [column for column, value in row.items() if not _fits(value, declared()[name].columns[column].dtype)]
        if lost:
            row.update(dict.fromkeys(lost))
            what = f"{', '.join(lost)}: no genuine value, taken as not known"
            gaps.append(Gap(str(row.get("member") or ""), int(row.get("line") or 0), what))
    return gaps


def _fits(value: Any, dtype: str) -> bool:
    """Return whether a column of this dtype can hold the value."""
    if value is None:
        return True
    try:
        _array([value], dtype)
    except MISFIT:
        return False
    return True


def framed(table: Table, rows: list[Row]) -> pd.DataFrame:
    """Return rows as a frame of a complete table declaration."""
    import pandas as pd  # 0.3 s: only when there are rows to hold

    for row in rows:
        if unknown := row.keys() - table.columns.keys():
            raise KeyError(f"no such column: {', '.join(sorted(unknown))}")
    columns = {name: _array([row.get(name) for row in rows], column.dtype) for name, column in table.columns.items()}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows)))


def _array(values: list[Any], dtype: str) -> Any:
    """Return values with their dtype; instants come as nanoseconds since the epoch or as anything pandas reads."""
    import numpy as np
    import pandas as pd

    cells = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        cells[place] = tuple(value) if isinstance(value, list) else value
    series: Any = pd.Series(cells, dtype=object)
    if dtype == "Float64" and any(isinstance(value, float) and math.isinf(value) for value in values):
        raise OverflowError("no measured value is infinite")
    if dtype.startswith("datetime64"):
        series = pd.to_datetime(series, utc=True)
    return series.astype(dtype).array
