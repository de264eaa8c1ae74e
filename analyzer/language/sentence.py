"""Sentences with values of the case in them: `{long.rows} stalls, the longest {max(long.duration_ms)|duration}`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from analyzer.language import grammar, measure, quantity, question
from analyzer.language.checks import Type
from analyzer.language.expression import Call, ExpressionError, Name, Node
from analyzer.language.measure import Absent, Value, View
from analyzer.language.selection import Shape
from analyzer.suggest import did_you_mean

MAX_LISTED = 8
"""Most values a list names before it says how many more there are."""
MAX_VALUE = 200
"""Longest value put into a sentence, in characters."""

FILTERS = {
    "duration": "`4 min 32 s`: a time for people",
    "exact": "`272,380 ms`: a number in its column's unit",
    "percent": "`99.96 %`: a ratio",
    "number": "`735,110`: a number with thousands separators; what a number gets by itself",
    "list": "`a, b and c`: the distinct values; what a column gets by itself",
    "first": "the value of the first row that has one",
    "prefixed": '`prefixed(" under ")`: the text, then the list; nothing at all when no row has a value',
    "counted": '`counted("stall")`: `1 stall` or `2 stalls`, a number with what it counts',
}
_FOR_COLUMNS = ("list", "first", "prefixed")


class Slot(NamedTuple):
    """One `{…}` of a sentence."""

    node: Node
    kind: Type
    filter: str
    prefix: str = ""
    """What `prefixed` puts in front, or the noun of `counted`."""


class Sentence(NamedTuple):
    """A sentence, cut into plain text and values."""

    parts: tuple[str | Slot, ...]
    written: str

    def used(self) -> list[str]:
        """Return the selections and tables its values are taken from."""
        return [name for part in self.parts if isinstance(part, Slot) for name in question.used(part.node)]


def parse(text: str, shapes: Mapping[str, Shape]) -> Sentence:
    """Return the checked sentence; raises ExpressionError."""
    if "{" not in text and "}" not in text:
        return Sentence((text,) if text else (), text)
    parts: list[str | Slot] = []
    plain, place = "", 0
    while place < len(text):
        char = text[place]
        if text.startswith(("{{", "}}"), place):
            plain, place = plain + char, place + 2
        elif char == "}":
            raise ExpressionError("this } closes nothing", place, "Write }} for a brace.")
        elif char == "{":
            end = _end(text, place)
            parts += [plain, _slot(text, place + 1, end, shapes)]
            plain, place = "", end + 1
        else:
            plain, place = plain + char, place + 1
    return Sentence((*(part for part in (*parts, plain) if part != ""),), text)


def _end(text: str, start: int) -> int:
    """Return where the { at `start` is closed, braces inside quoted texts aside."""
    quote = ""
    for place in range(start + 1, len(text)):
        char = text[place]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "}":
            return place
        elif char == "{":
            break
    raise ExpressionError("this { is never closed", start, "Write {{ for a brace.")


def _slot(text: str, start: int, end: int, shapes: Mapping[str, Shape]) -> Slot:
    source, bar, name = text[start:end].partition("|")
    at_filter = start + len(source) + 1
    try:
        node, kind = question.checked_value(grammar.parse(source), shapes)
    except ExpressionError as error:
        cure = error.cure or "A brace that holds no value is written twice: {{ }}."
        raise ExpressionError(str(error), start + error.place, cure) from None
    column = question.is_column(node)
    called = re.fullmatch(r"\s*(prefixed|counted)\s*\(\s*\"([^\"]*)\"\s*\)\s*", name)
    chosen = called[1] if called else name.strip() if bar else "list" if column else "number"
    if chosen not in FILTERS:
        raise ExpressionError(f"no filter is called {chosen or 'nothing'}", at_filter, did_you_mean(chosen, FILTERS))
    if chosen in ("prefixed", "counted") and not called:
        written = 'prefixed(" under ")' if chosen == "prefixed" else 'counted("stall")'
        raise ExpressionError(f"{chosen} needs a text", at_filter, f"Write {written}.")
    _fits(kind, chosen, column, start, at_filter)
    return Slot(node, kind, chosen, called[2] if called else "")


def _fits(kind: Type, chosen: str, column: bool, start: int, at_filter: int) -> None:
    """Raise ExpressionError when a filter does not suit what it is given."""
    if kind.kind == "truth":
        raise ExpressionError("a value should stand here, not a condition", start)
    if chosen in _FOR_COLUMNS and not column:
        raise ExpressionError(f"{chosen} is for columns", at_filter, "Use number, exact, duration or percent.")
    if chosen in ("duration", "percent", "counted") and column:
        raise ExpressionError(f"{chosen} is for a single value", at_filter, "Take max(…) or min(…).")
    if chosen == "counted" and kind.kind != "number":
        raise ExpressionError("counted needs a number", at_filter)
    if chosen == "duration" and not quantity.same_dimension(kind.unit, "s"):
        raise ExpressionError("duration needs a time, and this has none in its name", at_filter)
    if chosen == "percent" and (kind.kind != "number" or kind.unit not in ("", "%")):
        raise ExpressionError("percent needs a ratio of two like numbers", at_filter)


def fill(sentence: Sentence, view: View, *, command: bool = False) -> str:
    """Return the sentence with the case's values in it.

    Columns side by side (`{below.device|list}{changed.device|list}`) are shown as one. In a `command` each value is
    quoted for the shell, since a device or process may be called anything, and one that is not known reads as a
    placeholder: `DEVICE`.
    """
    filled = []
    for mergeable, group in groupby(sentence.parts, lambda part: _merged(part)):
        parts = list(group)
        if not mergeable:
            filled += [part if isinstance(part, str) else _filled(part, [part], view, command) for part in parts]
        elif isinstance(first := parts[0], Slot):
            filled.append(_filled(first, [part for part in parts if isinstance(part, Slot)], view, command))
    return "".join(filled)


def _merged(part: str | Slot) -> str:
    """Return the filter that may show several columns as one, else nothing."""
    return part.filter if isinstance(part, Slot) and part.filter in ("list", "first") else ""


def _filled(first: Slot, slots: list[Slot], view: View, command: bool) -> str:
    values = [measure.value(slot.node, view) for slot in slots]
    found = values[0]
    if len(slots) > 1 and (lists := [value for value in values if isinstance(value, list) and value]):
        found = list(dict.fromkeys(item for value in lists for item in value))
    if first.filter == "prefixed" and (isinstance(found, Absent) or found == []):
        return ""
    value = _quoted(first, found) if command else shown(found, first.filter, first.kind)
    if first.filter == "counted":
        return f"{value} {first.prefix}" + ("" if found == 1 else "s")
    return first.prefix + value


def shown(found: Value, chosen: str, kind: Type) -> str:
    """Return a value as a sentence shows it."""
    if isinstance(found, Absent):
        return found.value
    if isinstance(found, list):
        shown_items = [_text(item, chosen, kind) for item in found]
        if chosen == "first":
            return shown_items[0] if found else Absent.NOTHING.value
        return _listed(shown_items)
    return _text(found, chosen, kind)


def _text(found: object, chosen: str, kind: Type) -> str:
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, int | float):
        if kind.kind == "time":
            return instant(int(found))
        if chosen == "duration":
            return quantity.duration(found, kind.unit)
        if chosen == "percent":
            return quantity.percent(found / 100 if kind.unit == "%" else found)
        return quantity.exact(found, kind.unit) if chosen == "exact" else quantity.plain(found)
    text = "".join(char if char.isprintable() else "�" for char in str(found)[: MAX_VALUE + 1])
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def _listed(items: list[str]) -> str:
    """Return `a, b and c`."""
    if not items:
        return Absent.NOTHING.value
    if len(items) > MAX_LISTED:
        return f"{', '.join(items[:MAX_LISTED])} and {len(items) - MAX_LISTED:,} more"
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else items[0]


def _quoted(part: Slot, found: Value) -> str:
    if isinstance(found, Absent) or found == []:
        return _placeholder(part.node)
    items = found if isinstance(found, list) else [found]
    kept = items[:1] if part.filter == "first" else items[:MAX_LISTED]
    return " ".join(shlex.quote(str(item)) for item in kept)


def _placeholder(node: Node) -> str:
    """Return what stands for an unknown value in a command: the column's name in capitals."""
    if isinstance(node, Call):
        return _placeholder(node.args[0])
    return node.parts[-1].rpartition(".")[2].upper() if isinstance(node, Name) else "VALUE"


def instant(nanoseconds: int) -> str:
    """Return an instant as ISO 8601 UTC, to the microsecond where it has parts of a second."""
    seconds, rest = divmod(nanoseconds, 10**9)
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{rest // 1000:06d}Z" if rest >= 1000 else f"{whole}Z"
