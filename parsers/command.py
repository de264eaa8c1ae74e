"""The command line that printed a capture, taken apart: `sudo stackcount -i 10 tcp_push_one | tail` and the like."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """One command of a pipeline."""

    tool: str
    """Its name without path, `.py`, or Debian's `-bpfcc`."""
    words: list[str]
    """Its arguments."""

    def flag(self, letter: str, name: str = "") -> bool:
        """Return whether an option without value is given, alone or among others (`-uTi`)."""
        return any(word == f"--{name}" or re.fullmatch(rf"-[A-Za-z]*{letter}[A-Za-z]*", word) for word in self.words)

    def value(self, letter: str, name: str = "") -> str | None:
        """Return an option's value: `-i 1`, `-i1`, `-uTi 1`, `--interval 1` or `--interval=1`."""
        for word, after in zip(self.words, [*self.words[1:], ""], strict=True):
            if found := re.fullmatch(rf"-[A-Za-z]*?{letter}(\d.*)?|--{name or letter}(?:=(.*))?", word):
                return found[1] or found[2] or after or None
        return None

    def number(self, letter: str, name: str = "") -> float | None:
        """Return an option's value where it is a number."""
        value = self.value(letter, name)
        return float(value) if value and re.fullmatch(r"\d{1,15}(?:\.\d{1,15})?", value) else None

    def operands(self, valued: str) -> list[str]:
        """Return the words that are neither options nor the value of an option whose letter is in `valued`."""
        before = ["", *self.words]
        return [
            word
            for previous, word in zip(before, self.words, strict=False)
            if not word.startswith("-") and not re.fullmatch(rf"-[A-Za-z]*[{valued}]|--[a-z-]+", previous)
        ]


_BEFORE_TOOL = {"sudo", "time", "nice", "ionice", "stdbuf", "timeout", "env", "taskset", "exec"}


def stages(command: str) -> list[Stage]:
    """Return the commands of a shell line, split at `|`, `&&` and `;` outside quotes; never raises."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:  # a quote was never closed: the line is cut
        words = command.split()
    pipeline: list[list[str]] = [[]]
    for word in words:
        if word and not word.strip("|&;"):
            pipeline.append([])
        else:
            pipeline[-1].append(word)
    return [_stage(each) for each in pipeline if each]


def _stage(words: list[str]) -> Stage:
    """Return a command without what only wraps it: `sudo -u x`, `VAR=1`, `timeout 10`, `python3`."""
    at, wrapped = 0, False
    while at < len(words) - 1:
        name = words[at].rsplit("/", 1)[-1]
        if name in _BEFORE_TOOL or re.fullmatch(r"python[\d.]*", name):
            wrapped = True
        elif not re.match(r"\w+=", name) and not (wrapped and re.match(r"-|\d+[smh]?$", name)):
            break
        at += 1
    name = words[at].rsplit("/", 1)[-1]
    return Stage(name.removesuffix(".py").removesuffix("-bpfcc"), words[at + 1 :])


def command_of(head: str) -> str:
    """Return the command in the `$ COMMAND` line a head may begin with, else an empty string."""
    return head.partition("\n")[0][2:].strip() if head.startswith("$ ") else ""


def stage_of(command: str, tools: Iterable[str]) -> Stage | None:
    """Return the first stage that runs one of the tools."""
    return next((stage for stage in stages(command) if stage.tool in tools), None)
