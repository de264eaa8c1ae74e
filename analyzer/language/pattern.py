r"""Regular expressions whose search time grows with the text only: no pattern of a stranger's rule can hang.

The standard library's `re` backtracks: `(a+)+b` takes seconds on 24 letters. Here a pattern becomes an automaton that
reads each character once and remembers the steps it took (Thompson's construction, its table built as texts are
read). It answers one question, *does the text hold a match*, which is all that `matches` asks. google-re2 answers it as
safely, but called once per row from Python it is hardly faster than this, and it is a compiled dependency.

Understood: literals, `.` `[…]` `[^…]` `\d \w \s \D \W \S` `\b \B` `^` `$` `(…)` `(?:…)` `|` `*` `+` `?` `{m,n}` and the
lazy forms of these (the same thing here). `\d \w \s` are ASCII. `^` and `$` match at the ends of any line, since the
texts are excerpts of several lines.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

MAX_PATTERN = 1_000
"""Longest pattern, in characters."""
MAX_STATES = 1_000
"""Largest automaton: `(a{100}){100}` is refused."""
MAX_NESTING = 50
MAX_STEPS = 50_000
"""Remembered steps per pattern; when full they are forgotten, which costs time but no more memory."""

_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_CLASSES = {"d": frozenset("0123456789"), "w": _WORD, "s": frozenset(" \t\n\r\f\v")}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class PatternError(ValueError):
    """A pattern that is not understood; `place` counts characters from its start."""

    def __init__(self, why: str, place: int) -> None:
        super().__init__(why)
        self.place = place


class Chars(NamedTuple):
    """The characters in `members`, or all others when `negated`."""

    members: frozenset[str]
    negated: bool = False

    def holds(self, char: str) -> bool:
        """Return whether the character is in the set."""
        return (char in self.members) is not self.negated


class Repeat(NamedTuple):
    """A part repeated `low` to `high` times; no upper end when `high` is None."""

    part: Node
    low: int
    high: int | None


class Choice(NamedTuple):
    """Alternatives, each a sequence."""

    ways: list[list[Node]]


Node = Chars | Repeat | Choice | str
"""A string is an assertion: `^`, `$`, `b` or `B`."""


class State(NamedTuple):
    """One state of the automaton: a set of characters, an assertion or None (a free step), and what follows."""

    test: Chars | str | None
    after: tuple[int, ...]


class Row(dict[str, "Row"]):
    """One row of the step table: a set of states, the kind of the last character, and where each next one leads."""

    __slots__ = ("before", "states")

    def __init__(self, states: frozenset[int], before: str) -> None:
        self.states, self.before = states, before


MATCH = Row(frozenset(), "")


class Pattern:
    """A compiled pattern."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._states: list[State] = [State(None, ())]  # number 0 is the match
        self._start = self._build(_Reader(source).whole(), 0)
        self._literal = not set(source) & set("\\.^$*+?()[]{}|")
        self._forget()

    def search(self, text: str) -> bool:
        """Return whether the text holds a match anywhere."""
        if self._literal:
            return self.source in text
        row = self._first
        for char in text:
            following = row.get(char)
            if following is None:
                following = self._step(row, char)
            if following is MATCH:
                return True
            row = following
        return self._reach(row, "") is None

    def _forget(self) -> None:
        self._rows: dict[tuple[frozenset[int], str], Row] = {}
        self._steps = 0
        self._first = Row(frozenset([self._start]), "")

    def _step(self, row: Row, char: str) -> Row:
        """Return the row that a character leads to, and remember it."""
        kind = "\n" if char == "\n" else "w" if char in _WORD else "."
        reached = self._reach(row, kind)
        if reached is None:
            following = MATCH
        else:
            states = frozenset([self._start, *self._after(reached, char)])
            if self._steps >= MAX_STEPS:
                self._forget()
            following = self._rows.setdefault((states, kind), Row(states, kind))
        row[char] = following
        self._steps += 1
        return following

    def _after(self, reached: set[int], char: str) -> list[int]:
        found: list[int] = []
        for state in reached:
            test, after = self._states[state]
            if isinstance(test, Chars) and test.holds(char):
                found += after
        return found

    def _reach(self, row: Row, following: str) -> set[int] | None:
        """Return the states reachable before the next character is read; None when the match is among them."""
        reached: set[int] = set()
        waiting = list(row.states)
        while waiting:
            number = waiting.pop()
            if number == 0:
                return None
            if number in reached:
                continue
            reached.add(number)
            test, after = self._states[number]
            if test is None or (isinstance(test, str) and _holds(test, row.before, following)):
                waiting += after
        return reached

    def _build(self, node: Node | list[Node], following: int) -> int:
        """Add the states of a part that leads on to state `following`; return the part's first state."""
        if isinstance(node, list):
            for part in reversed(node):
                following = self._build(part, following)
            return following
        if isinstance(node, Choice):
            return self._add(None, *(self._build(way, following) for way in node.ways))
        if not isinstance(node, Repeat):
            return self._add(node, following)
        if node.high is None:
            loop = self._add(None)
            self._states[loop] = State(None, (self._build(node.part, loop), following))
            first = loop
        else:
            first = following
            for _ in range(node.high - node.low):
                first = self._add(None, self._build(node.part, first), following)
        for _ in range(node.low):
            first = self._build(node.part, first)
        return first

    def _add(self, test: Chars | str | None, *after: int) -> int:
        if len(self._states) >= MAX_STATES:
            raise PatternError("its repeats multiply to too large a pattern", 0)
        self._states.append(State(test, after))
        return len(self._states) - 1


@cache
def compiled(source: str) -> Pattern:
    """Return the compiled pattern; raises PatternError."""
    return Pattern(source)


def _holds(assertion: str, before: str, after: str) -> bool:
    """Return whether an assertion holds between two kinds of character: `w` word, `\\n`, `.` other, empty for none."""
    if assertion == "^":
        return before in ("", "\n")
    if assertion == "$":
        return after in ("", "\n")
    return ((before == "w") is not (after == "w")) is (assertion == "b")


class _Reader:
    """Reads a pattern's source."""

    def __init__(self, source: str) -> None:
        if len(source) > MAX_PATTERN:
            raise PatternError(f"it is longer than {MAX_PATTERN:,} characters", MAX_PATTERN)
        self.source, self.place, self.depth = source, 0, 0

    def whole(self) -> Node:
        choice = self._choice()
        if self.place < len(self.source):
            raise PatternError("this ) closes nothing", self.place)
        return choice

    def _peek(self) -> str:
        return self.source[self.place : self.place + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise PatternError("it ends too early", self.place)
        self.place += 1
        return char

    def _choice(self) -> Choice:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise PatternError(f"its groups are nested more than {MAX_NESTING} deep", self.place)
        ways: list[list[Node]] = [[]]
        while (char := self._peek()) and char != ")":
            if char == "|":
                self.place += 1
                ways.append([])
            else:
                ways[-1].append(self._repeats(self._one()))
        self.depth -= 1
        return Choice(ways)

    def _one(self) -> Node:
        place, char = self.place, self._take()
        if char == "(":
            return self._group(place)
        if char == "[":
            return self._set(place)
        if char == ".":
            return Chars(frozenset("\n"), negated=True)
        if char in "^$":
            return char
        if char == "\\":
            return self._take() if self._peek() in ("b", "B") else self._escape()
        if char in "*+?":
            raise PatternError(f"nothing stands before this {char} to repeat", place)
        return Chars(frozenset(char))

    def _group(self, place: int) -> Choice:
        if self._peek() == "?":
            self.place += 1
            if self._take() != ":":
                raise PatternError("of the (?…) forms only (?:…) is known here", place)
        choice = self._choice()
        if self._peek() != ")":
            raise PatternError("this ( is never closed", place)
        self.place += 1
        return choice

    def _escape(self) -> Chars:
        place, char = self.place, self._take()
        if char.lower() in _CLASSES:
            return Chars(_CLASSES[char.lower()], negated=char.isupper())
        if char in _ESCAPES:
            return Chars(frozenset(_ESCAPES[char]))
        if char.isalnum():
            raise PatternError(f"\\{char} is not known here", place - 1)
        return Chars(frozenset(char))

    def _set(self, place: int) -> Chars:
        negated = self._peek() == "^"
        self.place += negated
        members: set[str] = set()
        first = True
        while first or self._peek() != "]":
            if not self._peek():
                raise PatternError("this [ is never closed", place)
            first = False
            low = self._member()
            following = self.source[self.place : self.place + 2]
            if following[:1] == "-" and following[1:] not in ("]", "") and len(low) == 1:
                self.place += 1
                high = self._member()
                if len(high) != 1 or min(high) < min(low):
                    raise PatternError("this range has no beginning before its end", self.place - 1)
                if ord(min(high)) - ord(min(low)) > 4096:
                    raise PatternError("this range is too wide", self.place - 1)
                low = frozenset(map(chr, range(ord(min(low)), ord(min(high)) + 1)))
            members |= low
        self.place += 1
        return Chars(frozenset(members), negated)

    def _member(self) -> frozenset[str]:
        place = self.place
        if self._take() != "\\":
            return frozenset(self.source[place])
        chars = self._escape()
        if chars.negated:
            raise PatternError("a negated class cannot stand inside […]", place)
        return chars.members

    def _repeats(self, node: Node) -> Node:
        while span := self._quantifier():
            if isinstance(node, str):
                raise PatternError("an assertion cannot be repeated", self.place - 1)
            node = Repeat(node, *span)
            self.place += self._peek() == "?"
            if isinstance(node.part, Repeat) and node.part.high is None and node.high is None:
                node = Repeat(node.part.part, min(node.low, node.part.low), None)
        return node

    def _quantifier(self) -> tuple[int, int | None] | None:
        place, char = self.place, self._peek()
        if char in _QUANTIFIERS:
            self.place += 1
            return _QUANTIFIERS[char]
        end = self.source.find("}", place)
        low, comma, high = self.source[place + 1 : end].partition(",")
        # As elsewhere, a { that begins no {m,n} stands for itself.
        if char != "{" or end < 0 or not low.isdecimal() or not (high.isdecimal() or not high):
            return None
        self.place = end + 1
        span = (int(low), int(high) if high else None if comma else int(low))
        if max(span[0], span[1] or 0) > MAX_STATES or (span[1] is not None and span[1] < span[0]):
            raise PatternError("this repeat is out of range", place)
        return span
