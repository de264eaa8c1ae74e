"""Byte streams in bounded memory: what a file or an archive gives, plain or decompressed, a piece at a time.

A stream never raises on damaged data. It notes the damage once as a gap, and ends there: whoever reads it sees an
early end, after every byte that could still be had.
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable
from typing import Protocol

from analyzer.bundle.limits import MIB, Ledger, amount

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE = 256 << 10
"""Most bytes handed on at once: what stays in the processor's cache on its way is read ×1.5 as fast as by mebibytes."""

STEP = 64 << 10
"""Bytes asked of a decompressor, and given to it, at once. What it had decoded in a step that fails is lost with the
error, so the step decides how near to the damage one gets."""

FIRST_FEED = 4 << 10
"""Bytes given to a decompressor first, then doubled: what it does not use is copied back to us, and a gzip file may
consist of a million streams of 20 bytes."""

LZMA_MEMORY = 256 * MIB
"""Memory an xz stream may ask for. `xz -9` needs 65 MiB; a crafted header may ask for 4 GiB."""

ZSTD_WINDOW = 27
"""log2 of the largest zstd window: 128 MiB, zstd's own default bound (`zstd --long=31` needs 2 GiB)."""

GZIP_WINDOW = 31
RAW_WINDOW = -15
"""zlib's wbits for a gzip stream and for the bare deflate data of a zip."""

MAGICS = (
    ("gzip", b"\x1f\x8b\x08"),
    ("xz", b"\xfd7zXZ\x00"),
    ("bzip2", b"BZh"),
    ("zstd", b"\x28\xb5\x2f\xfd"),
)

DAMAGE = (zlib.error, lzma.LZMAError, zstd.ZstdError, OSError, EOFError, ValueError, MemoryError)
"""What the decompressors raise on damaged data (bz2 raises OSError and ValueError)."""


class Codec(Protocol):
    """The part the standard decompressors have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Inflate:
    """zlib's decompressor with the manners of the other ones."""

    def __init__(self, wbits: int) -> None:
        self._zlib = zlib.decompressobj(wbits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        """Whether the end of the stream was met."""
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        """The bytes after the end of the stream."""
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Return at most `max_length` bytes."""
        tail = self._zlib.unconsumed_tail
        out = self._zlib.decompress(tail + data if data else tail, max_length)
        self.needs_input = not self._zlib.unconsumed_tail and len(out) < max_length
        return out


def codec(kind: str) -> Codec:
    """Return a fresh decompressor for `gzip`, `xz`, `bzip2`, `zstd`, `deflate` (in zip) or `lzma` (alone format)."""
    if kind == "gzip":
        return Inflate(GZIP_WINDOW)
    if kind == "deflate":
        return Inflate(RAW_WINDOW)
    if kind == "bzip2":
        return bz2.BZ2Decompressor()
    if kind == "zstd":
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW})
    return lzma.LZMADecompressor(memlimit=LZMA_MEMORY)


def compression(head: bytes) -> str:
    """Return what compressed a stream that begins with `head`, empty for none."""
    kind = next((name for name, magic in MAGICS if head.startswith(magic)), "")
    if kind == "bzip2" and head[4:10] not in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"):
        return ""
    if not kind and len(head) >= 4 and head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5:
        return "zstd"  # a skippable frame, with which pzstd and seekable zstd files begin
    return kind


class Stream:
    """A source of bytes that can be looked into before it is read."""

    def __init__(self, source: Callable[[int], bytes]) -> None:
        """Read from `source(n)`, which returns at most n bytes, and none at the end."""
        self._source = source
        self._held = b""
        self._at = 0
        self.offset = 0
        """How many bytes were taken so far."""

    def peek(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end, without taking them."""
        while len(self._held) - self._at < size:
            more = self._source(PIECE)
            if not more:
                break
            self._held = self._held[self._at :] + more
            self._at = 0
        return self._held[self._at : self._at + size]

    def read(self, size: int) -> bytes:
        """Return some of the next bytes, at most `size`, none at the end."""
        if self._at >= len(self._held):
            self._held, self._at = self._source(PIECE), 0
        piece = self._held[self._at : self._at + size] if self._at or size < len(self._held) else self._held
        self._at += len(piece)
        self.offset += len(piece)
        return piece

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end."""
        piece = self.peek(size)
        self._at += len(piece)
        self.offset += len(piece)
        return piece

    def unread(self, size: int) -> None:
        """Give back the last `size` bytes of the piece read last."""
        self._at -= size
        self.offset -= size

    def skip(self, size: int) -> int:
        """Pass over `size` bytes; return how many of them were there."""
        left = size
        while left and (piece := self.read(min(left, PIECE))):
            left -= len(piece)
        return size - left


class Part:
    """The next `size` bytes of a stream, as a source of its own."""

    def __init__(self, stream: Stream, size: int) -> None:
        self._stream = stream
        self.left = size

    def read(self, size: int) -> bytes:
        """Return some of the part's next bytes, none at its end."""
        piece = self._stream.read(min(size, self.left)) if self.left else b""
        self.left -= len(piece)
        return piece

    def finish(self) -> int:
        """Pass over what was not read; return how many bytes of the part were missing."""
        self.left -= self._stream.skip(self.left)
        return self.left


class Decompressed:
    """The decompressed bytes of a stream, within the limits. Concatenated streams are read as one, as gzip does."""

    def __init__(self, kind: str, stream: Stream, address: str, ledger: Ledger, single: bool = False) -> None:
        self._kind = kind
        self._stream = stream
        self._address = address
        self._ledger = ledger
        self._single = single
        self._codec = codec(kind)
        self._begin = stream.offset
        self._out = 0
        self._feed = FIRST_FEED
        self._ended = False

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, none at the end or at the damage."""
        pieces: list[bytes] = []
        got = 0
        while got < size and not self._ended:
            piece = self._step(min(STEP, size - got))
            pieces.append(piece)
            got += len(piece)
        return b"".join(pieces)

    def _step(self, size: int) -> bytes:
        """Return the next few bytes; empty does not mean the end."""
        try:
            hungry = self._codec.needs_input
            data = self._stream.read(self._feed) if hungry else b""
            self._feed = min(STEP, 2 * self._feed)
            out = self._codec.decompress(data, size)
        except DAMAGE as error:
            self._end(f"{self._kind} data are damaged after {self._out:,} bytes: {error}")
            return b""
        self._out += len(out)
        if self._codec.eof:
            self._next_stream()
        elif hungry and not data and not out:
            self._end(f"{self._kind} data are cut after {self._out:,} bytes")
        return out if self._within_limits(out) else b""

    def _next_stream(self) -> None:
        """After the end of one compressed stream: begin the next, or end."""
        self._stream.unread(len(self._codec.unused_data))
        if self._single:
            self._ended = True
            return
        # xz pads with zeros, tape tools pad gzip with them.
        while (head := self._stream.peek(16)) and head[0] == 0:
            self._stream.take(len(head) - len(head.lstrip(b"\0")))
        if compression(head) == self._kind:
            self._codec = codec(self._kind)
            self._feed = FIRST_FEED
        else:
            self._end("data of another kind follow the compressed data and were not read" if head else "")

    def _within_limits(self, out: bytes) -> bool:
        """Return whether the piece may be handed on; noted and ended when not."""
        limits = self._ledger.limits
        if self._out > limits.ratio_free_bytes:
            taken = max(1, self._stream.offset - self._begin)
            if self._out > taken * limits.ratio:
                self._end(
                    f"{self._kind} data grow more than {limits.ratio:,} times beyond "
                    f"{amount(limits.ratio_free_bytes)}: the rest was not read"
                )
                return False
        if not self._ledger.spend(len(out), self._address):
            self._ended = True
            return False
        return True

    def _end(self, why: str) -> None:
        self._ended = True
        if why:
            self._ledger.note(self._address, why)
