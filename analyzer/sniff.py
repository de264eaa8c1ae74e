"""Which parser does a capture belong to? Parsers are found by listing their folder."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from types import ModuleType

import parsers

HEAD_BYTES = 65_536
"""How much of a capture a parser may look at before it must say yes or no. A perf header block with its CPU
topology takes 10 KiB, the comment block in front of a syslog far less."""


@cache
def modules() -> tuple[ModuleType, ...]:
    """Return every parser: each module of `parsers` that offers `sniff` and `parse`, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(parsers.__path__))
    found = (importlib.import_module(f"parsers.{name}") for name in names if name != "shapes")
    return tuple(module for module in found if hasattr(module, "sniff"))


def name_of(parser: ModuleType) -> str:
    """Return the parser's name as inventories print it: `ethtool`, `kernel_log`."""
    return parser.__name__.removeprefix("parsers.")


def parser_for(command: str, head: bytes) -> ModuleType | None:
    """Return the parser that claims a capture with this command and beginning, None when nobody does.

    Two parsers claiming one capture is a defect that the tests look for; at run time the first by name is taken.
    """
    text = head[:HEAD_BYTES].decode("utf-8", "backslashreplace")
    if command:
        text = f"$ {command}\n{text}"
    return next((parser for parser in modules() if parser.sniff(text)), None)


@cache
def _begins() -> tuple[re.Pattern[bytes], tuple[tuple[re.Pattern[bytes], ModuleType], ...]]:
    """Return one pattern for the first line of any capture, and each parser's own."""
    own = tuple((parser.BEGINS, parser) for parser in modules() if parser.BEGINS is not None)
    union = re.compile(b"|".join(b"(?:%s)" % pattern.pattern for pattern, _ in own))
    return union, own


def begun_by(line: bytes) -> ModuleType | None:
    """Return the parser whose capture may begin with this line, None for any other line."""
    union, own = _begins()
    if not union.match(line):
        return None
    return next((parser for pattern, parser in own if pattern.match(line)), None)
