"""The YAML of a rule file, each value with its place in the file.

Only what a rule needs: mappings, lists, texts, true, false, null and numbers. Keys twice, aliases, tags and several
documents are errors, and `no`, `on` or `2024-01-01` are texts. The format: https://yaml.org/spec/1.2.2/
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from analyzer.errors import AnalyzerError

MAX_FILE = 1 << 18
"""Largest rule file, in bytes; the cases beside it may hold whole captures and may be longer."""
MAX_CASES = 1 << 24
MAX_NESTING = 20

Place = tuple[str | int, ...]
"""The way to a value: `("explains", 0, "because")`."""


class Problem(NamedTuple):
    """One thing that is wrong with a rule file."""

    path: str
    line: int
    column: int
    what: str
    cure: str = ""

    def __str__(self) -> str:
        """Return `path:line:column: what. cure`."""
        text = f"{self.path}:{self.line}:{self.column}: {self.what}"
        return f"{text}. {self.cure}" if self.cure else text


class RulesError(AnalyzerError):
    """One or more rule files are broken; `problems` names every one of them."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        count = "a rule file is broken" if len(problems) == 1 else f"{len(problems)} problems in rule files"
        super().__init__(count, why="\n  " + "\n  ".join(map(str, problems)))


class _Broken(Exception):
    def __init__(self, mark: Any, what: str, cure: str = "") -> None:
        self.mark, self.what, self.cure = mark, what, cure


class Span(NamedTuple):
    """Where a value stands: indices into the file's text."""

    start: int
    end: int


@dataclass(slots=True)
class RuleFile:
    """A file's data and where each value of it stands."""

    path: str
    text: str
    data: Any = None
    spans: dict[Place, Span] = field(default_factory=dict)
    keys: dict[Place, Span] = field(default_factory=dict)

    def problem(
        self, place: Place, what: str, cure: str = "", *, offset: int | None = None, at_key: bool = False
    ) -> Problem:
        """Return a problem at a value, at the character `offset` of that text as it was read, or at its key."""
        index = self.keys[place].start if at_key and place in self.keys else self._index(place, offset)
        line = self.text.count("\n", 0, index) + 1
        return Problem(self.path, line, index - (self.text.rfind("\n", 0, index) + 1) + 1, what, cure)

    def _index(self, place: Place, offset: int | None) -> int:
        while place and place not in self.spans:
            place, offset = place[:-1], None
        span = self.spans.get(place, Span(0, 0))
        return span.start if offset is None else self._within(span, place, offset)

    def _within(self, span: Span, place: Place, offset: int) -> int:
        """Return where a text's character stands in the file, where line breaks, quotes and escapes come between."""
        value: Any = self.data
        for part in place:
            value = value[part] if isinstance(value, dict | list) else ""  # type: ignore[index]
        index = span.start
        for char in str(value)[:offset] if isinstance(value, str) else "":
            while index < span.end and self.text[index] != char and not char.isspace():
                index += 1
            if not char.isspace():
                index += 1
        rest = str(value)[offset : offset + 1]
        while rest and not rest.isspace() and index < span.end and self.text[index] != rest:
            index += 1
        return min(index, span.end)


def read(path: Path, shown: str = "", *, limit: int = MAX_FILE) -> tuple[RuleFile, list[Problem]]:
    """Return a file's data with its places, and what is wrong with its YAML (then there is no data)."""
    name = shown or str(path)
    try:
        if not path.is_file():  # opening a fifo would wait for ever
            return RuleFile(name, ""), [Problem(name, 1, 1, "is not a file")]
        with path.open("rb") as file:
            raw = file.read(limit + 1)
    except OSError as error:
        return RuleFile(name, ""), [Problem(name, 1, 1, f"cannot be read: {error.strerror or error}")]
    if len(raw) > limit:
        return RuleFile(name, ""), [Problem(name, 1, 1, f"is larger than {limit >> 10:,} KiB")]
    try:
        return loads(raw.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        return RuleFile(name, ""), [Problem(name, raw.count(b"\n", 0, error.start) + 1, 1, "is not UTF-8")]


def loads(text: str, path: str) -> tuple[RuleFile, list[Problem]]:
    """Return the data of a text with its places, and what is wrong with its YAML (then there is no data)."""
    file = RuleFile(path, text)
    try:
        reader = _Reader(file)
        file.data = reader.document()
    except _Broken as broken:
        return file, [Problem(path, broken.mark.line + 1, broken.mark.column + 1, broken.what, broken.cure)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part) or "is not YAML"
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return file, [Problem(path, line, column, f"not YAML: {what}", _yaml_cure(what))]
    except yaml.YAMLError as error:
        return file, [Problem(path, 1, 1, f"not YAML: {str(error).splitlines()[0]}")]
    return file, []


def _yaml_cure(what: str) -> str:
    if "mapping values are not allowed" in what or "flow" in what or "block mapping" in what:
        return "Put a text that holds `: `, `#`, `{`, `[` or a quote at its start into quotes, or after `>-`."
    return ""


class _Reader:
    """Builds plain data from YAML events, so that nothing of YAML's that a rule does not need gets through."""

    def __init__(self, file: RuleFile) -> None:
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times as fast
        self._events = yaml.parse(file.text, Loader=loader)
        self._file = file
        self._lines = [0]
        for line in file.text.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)

    def document(self) -> Any:
        event = self._next()
        while isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            return None
        data = self._value(event, (), 0)
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                raise _Broken(event.start_mark, "a second document begins here", "Write one rule to a file.")
        return data

    def _next(self) -> Any:
        return next(self._events)

    def _at(self, mark: Any) -> int:
        index: int = self._lines[min(mark.line, len(self._lines) - 1)] + mark.column
        return min(index, len(self._file.text))

    def _value(self, event: Any, place: Place, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            raise _Broken(event.start_mark, "an alias (*name) cannot be used here", "Write the value out.")
        if event.tag is not None and event.tag != "!":
            raise _Broken(event.start_mark, f"a tag ({event.tag}) cannot be used here", "Leave it out.")
        if depth > MAX_NESTING:
            raise _Broken(event.start_mark, f"nested more than {MAX_NESTING} deep")
        self._file.spans[place] = Span(self._at(event.start_mark), self._at(event.end_mark))
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event.value) if event.implicit[0] and event.style in (None, "") else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(place, depth)
        return self._mapping(place, depth)

    def _sequence(self, place: Place, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._value(event, (*place, len(items)), depth + 1))
        return items

    def _mapping(self, place: Place, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _Broken(event.start_mark, "a key must be a plain word")
            if event.value in found:
                raise _Broken(event.start_mark, f"{event.value!r} stands here twice", "Keep one of the two.")
            self._file.keys[(*place, event.value)] = Span(self._at(event.start_mark), self._at(event.end_mark))
            found[event.value] = self._value(self._next(), (*place, event.value), depth + 1)
        return found


def _scalar(text: str) -> Any:
    """Return a plain scalar as what YAML 1.2's core schema takes it for; anything else is a text."""
    if text in ("true", "false"):
        return text == "true"
    if text in ("", "null", "~"):
        return None
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        return int(text)
    if re.fullmatch(r"[-+]?[0-9]{1,18}\.[0-9]{1,18}", text):
        return float(text)
    return text
