"""A block as families see it: the anchor and what follows it, read only as far as somebody looks.

In a dense log every fifth line begins a block of up to MAX_AHEAD messages, of which its family looks at a few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from parsers.kernel_log.message import MAX_AHEAD, Message

AT_ONCE = 8
"""Messages read at once by who walks on: to ask for each costs more than to read some in vain."""


class Ahead(Sequence[Message]):
    """A block: its first message and those after it, taken apart only as far as somebody looks."""

    def __init__(self, first: Message, following: Iterator[Message]) -> None:
        self._read = [first]
        self._following: Iterator[Message] | None = following

    def fill(self, size: int) -> list[Message]:
        """Return what was read, after reading on until `size` messages are there or no more follow."""
        read = self._read
        if self._following is not None and len(read) < size:
            host, caller, size = read[0].host, read[0].caller, min(size, MAX_AHEAD + 1)
            while len(read) < size:
                message = next(self._following, None)
                if message is None:
                    self._following = None
                    break
                if message.host == host and caller in ("", message.caller):
                    read.append(message)
        return read

    def __len__(self) -> int:
        return len(self.fill(MAX_AHEAD + 1))

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, slice):
            if (index.start or 0) < 0 or (index.stop or 0) < 0 or index.step is not None:
                return self.fill(MAX_AHEAD + 1)[index]
            return Stretch(self, range(MAX_AHEAD + 1)[index])
        return self.fill(index + 1 if index >= 0 else MAX_AHEAD + 1)[index]

    def __iter__(self) -> Iterator[Message]:
        return iter(Stretch(self, range(MAX_AHEAD + 1)))


class Stretch(Sequence[Message]):
    """A slice of a block: what nobody looks at of it is not read either."""

    def __init__(self, block: Ahead, places: range) -> None:
        self._block, self._places = block, places

    def __len__(self) -> int:
        there = len(self._block.fill(self._places.stop)) if self._places else 0
        return max(0, min(self._places.stop, there) - self._places.start)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return [*self][index]

    def __iter__(self) -> Iterator[Message]:
        read = self._block.fill(1)
        for place in self._places:
            if place >= len(read) and place >= len(self._block.fill(place + AT_ONCE)):
                return
            yield read[place]
