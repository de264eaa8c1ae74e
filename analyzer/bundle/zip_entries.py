"""The entries of a zip, by the directory at its end; of a cut zip, by the headers in front of each file.

`zipfile` reads a directory of any size into memory and decompresses bzip2 and xz without bound, and cannot open a zip
whose end is missing; so the records are read here. Format: PKWARE APPNOTE.TXT 6.3, sections 4.3.7 (local header),
4.3.12 (central header), 4.3.14–16 (end records), 4.5.3 (zip64 sizes).
"""

from __future__ import annotations

import bisect
import datetime
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from analyzer.bundle.limits import amount

MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
METHODS = {0: "", 8: "deflate", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz"}
"""Compression methods and the codec that reads them; `lzma` (14) has a header of its own and is refused."""

LOCAL = struct.Struct("<4s5H3L2H")
CENTRAL = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
END64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR64 = struct.Struct("<4sLQL")
ENCRYPTED, DESCRIPTOR, UTF8 = 1, 8, 0x800
FULL = 0xFFFFFFFF
"""A 32-bit field that says: see the zip64 extra field."""


@dataclass(slots=True)
class Entry:
    """One file of a zip."""

    name: str
    size: int | None
    """Bytes when decompressed; None where only a descriptor behind the data says it."""
    packed: int | None
    """Bytes in the zip; None as above."""
    crc: int | None
    method: int
    offset: int
    """Where its data begin in the zip."""
    mtime: float | None
    skipped: str
    """Why its content is not handed out, else empty."""


def entries(file: IO[bytes], size: int, note: Callable[[str], None], directory_bytes: int) -> Iterator[Entry]:
    """Yield the files of a seekable zip of `size` bytes, directories left out; `note` is told what is wrong."""
    end = _end(file, size)
    if end is None:
        note("the zip has no directory at its end: it was cut, what could be found from the front was read")
        yield from _from_front(file, size)
        return
    start, length = end
    if not 0 <= start <= size or length > directory_bytes:
        note(f"the zip's directory of {length:,} bytes was refused, the limit is {amount(directory_bytes)}")
        return
    yield from _from_directory(file, start, min(length, size - start), note)


def _end(file: IO[bytes], size: int) -> tuple[int, int] | None:
    """Return offset and length of the directory, None without an end record."""
    tail_at = max(0, size - END.size - 0xFFFF - LOCATOR64.size)
    tail = _at(file, tail_at, size - tail_at)
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or len(tail) - place < END.size:
        return None
    *_, length, start, _comment = END.unpack_from(tail, place)
    if FULL in (length, start) and place >= LOCATOR64.size:
        magic, _, where, _ = LOCATOR64.unpack_from(tail, place - LOCATOR64.size)
        record = _at(file, where, END64.size) if magic == b"PK\x06\x07" and where < size else b""
        if len(record) == END64.size and record.startswith(b"PK\x06\x06"):
            *_, length, start = END64.unpack(record)
    return start, length


def _from_directory(file: IO[bytes], start: int, length: int, note: Callable[[str], None]) -> Iterator[Entry]:
    """Yield the entries of the directory. Data that lie in an earlier entry's data are refused."""
    directory = _at(file, start, length)
    taken = _Taken()
    overlapping = place = 0
    while place + CENTRAL.size <= len(directory) and directory.startswith(b"PK\x01\x02", place):
        (_, made, _, flags, method, time, date, crc, packed, size, name_len, extra_len, comment_len, _, _, attrs,
         local) = CENTRAL.unpack_from(directory, place)  # fmt: skip
        names = place + CENTRAL.size
        extra = directory[names + name_len : names + name_len + extra_len]
        size, packed, local = _zip64(extra, [size, packed, local])
        name = _name(directory[names : names + name_len], flags)
        place = names + name_len + extra_len + comment_len
        if name.endswith("/"):
            continue
        offset = _data_offset(file, local)
        if offset is None:
            note(f"`{name}` has no header where the zip's directory says")
            continue
        if not taken.take(offset, offset + packed):
            overlapping += 1
            continue
        mode = attrs >> 16 if made >> 8 == 3 else 0
        skipped = "symbolic link" if mode & 0o170000 == 0o120000 else ""
        skipped = "encrypted file" if flags & ENCRYPTED else skipped
        yield Entry(name, size, packed, crc, method, offset, _mtime(date, time), skipped)
    if place < len(directory):
        note("the zip's directory is damaged: entries may be missing")
    if overlapping:
        note(f"{overlapping:,} entries of the zip share their data with others, as in a zip bomb: not read")


def _from_front(file: IO[bytes], size: int) -> Iterator[Entry]:
    """Yield the entries of a zip without directory, header by header, as far as the headers say their sizes."""
    place = 0
    while (record := _at(file, place, LOCAL.size)) and len(record) == LOCAL.size:
        magic, _, flags, method, time, date, crc, packed, length, name_len, extra_len = LOCAL.unpack(record)
        if magic != MAGICS[0]:
            return
        names = _at(file, place + LOCAL.size, name_len + extra_len)
        length, packed = _zip64(names[name_len:], [length, packed])
        name, offset = _name(names[:name_len], flags), place + LOCAL.size + name_len + extra_len
        unknown = bool(flags & DESCRIPTOR) and not packed
        if not name.endswith("/"):
            skipped = "encrypted file" if flags & ENCRYPTED else ""
            entry = Entry(name, length, packed, crc, method, offset, _mtime(date, time), skipped)
            if unknown:
                entry.size = entry.packed = entry.crc = None
            yield entry
        if unknown:
            return
        place = offset + packed + (_descriptor_size(file, offset + packed) if flags & DESCRIPTOR else 0)


def _descriptor_size(file: IO[bytes], place: int) -> int:
    """Return the length of the data descriptor at `place`: 12 or 20 bytes, 4 more with its optional signature."""
    after = _at(file, place, 28)
    return next((n for n in (16, 12, 24, 20) if after[n : n + 4] in (*MAGICS, b"PK\x01\x02")), 16)


class _Taken:
    """The byte ranges of the zip that belong to an entry already."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []

    def take(self, begin: int, end: int) -> bool:
        """Return whether the range was free, and take it."""
        if begin == end:
            return True
        place = bisect.bisect_right(self._begins, begin)
        if place and self._ends[place - 1] > begin:
            return False
        if place < len(self._begins) and self._begins[place] < end:
            return False
        self._begins.insert(place, begin)
        self._ends.insert(place, end)
        return True


def _at(file: IO[bytes], place: int, size: int) -> bytes:
    file.seek(place)
    return file.read(size)


def _data_offset(file: IO[bytes], local: int) -> int | None:
    """Return where the data behind a local header begin, None when there is no such header."""
    record = _at(file, local, LOCAL.size)
    if len(record) < LOCAL.size or not record.startswith(MAGICS[0]):
        return None
    *_, name_len, extra_len = LOCAL.unpack(record)
    return local + LOCAL.size + int(name_len) + int(extra_len)


def _zip64(extra: bytes, fields: list[int]) -> list[int]:
    """Return the fields, those that are FULL replaced in order by the 64-bit values of the zip64 extra field."""
    while len(extra) >= 4:
        tag, size = struct.unpack_from("<2H", extra)
        if tag == 1:
            values = iter(struct.unpack_from(f"<{min(size, len(extra) - 4) // 8}Q", extra, 4))
            return [next(values, field) if field == FULL else field for field in fields]
        extra = extra[4 + size :]
    return fields


def _name(raw: bytes, flags: int) -> str:
    """Return a name: UTF-8 where it is (many tools forget the flag), else code page 437 as the format says."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "surrogateescape") if flags & UTF8 else raw.decode("cp437")


def _mtime(date: int, time: int) -> float | None:
    """Return a DOS time as seconds since the epoch, taken for UTC (zip does not say), None when it is none."""
    try:
        moment = datetime.datetime(
            1980 + (date >> 9), date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, (time & 31) * 2,
            tzinfo=datetime.UTC,
        )  # fmt: skip
    except ValueError:
        return None
    return moment.timestamp()
