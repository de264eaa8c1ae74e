"""The members of a tar, read once from front to back.

The header blocks are read here and taken apart by `tarfile.TarInfo.frombuf`. `tarfile.open` itself is not used: in
stream mode it ends silently at a damaged header, holds extended headers of any size in memory, keeps every member it
met, and accepts negative sizes (up to 3.11.7). Format: POSIX pax(1), "ustar Interchange Format", "pax Extended
Header"; GNU tar manual, "Basic Tar Format".
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analyzer.bundle.limits import amount
from analyzer.bundle.streams import Part, Stream

BLOCK = tarfile.BLOCKSIZE
HEAD_BYTES = BLOCK
"""How much of a stream `is_tar` looks at."""

EXTENSIONS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
              tarfile.GNUTYPE_LONGLINK)  # fmt: skip
WITHOUT_DATA = {
    tarfile.LNKTYPE: "hard link",
    tarfile.SYMTYPE: "symbolic link",
    tarfile.CHRTYPE: "device",
    tarfile.BLKTYPE: "device",
    tarfile.FIFOTYPE: "fifo",
    tarfile.DIRTYPE: "",
}
"""Types without data blocks, whatever their size field says, and what the notes call them."""


@dataclass(slots=True)
class Entry:
    """One header of a tar."""

    name: str
    size: int
    mtime: float | None
    skipped: str
    """Why its content is not handed out (`symbolic link`, `sparse file`, …); empty for a plain file."""
    data: Part


def is_tar(head: bytes) -> bool:
    """Return whether a stream that begins with `head` is a tar: the ustar magic, or a header checksum that fits."""
    if len(head) < BLOCK:
        return False
    return head[257:262] == b"ustar" or _header(head[:BLOCK]) is not None


def entries(stream: Stream, note: Callable[[str], None], header_bytes: int) -> Iterator[Entry]:
    """Yield the entries, directories left out; each entry's data are to be read before the next is asked for.

    What is damaged or refused is told to `note`. After a damaged header the next sound one is looked for.
    """
    extended: dict[str, str] = {}
    everywhere: dict[str, str] = {}
    lost = 0
    while block := stream.take(BLOCK):
        if not block.strip(b"\0") and len(block) == BLOCK:
            return
        info = _header(block)
        if info is None:
            lost += 1
            if lost == 1:
                note(_damage(block, stream))
            continue
        lost = 0
        if info.type in EXTENSIONS:
            _extend(info, stream, note, header_bytes, everywhere if info.type == tarfile.XGLTYPE else extended)
            continue
        entry = _entry(info, block, stream, {**everywhere, **extended})
        extended = {}
        if entry is None:
            note(f"the size field of `{info.name}` is not a size: it was skipped")
            continue
        if not info.isdir():
            yield entry
        entry.data.finish()
        stream.skip(-entry.size % BLOCK)
    note("the tar ends without its end mark: it was cut, members may be missing")


def _header(block: bytes) -> tarfile.TarInfo | None:
    """Return what a header block says, None when it is none."""
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError, OverflowError):
        return None


def _damage(block: bytes, stream: Stream) -> str:
    if len(block) < BLOCK:
        return "the tar is cut inside a header"
    return f"the tar is damaged at byte {stream.offset - BLOCK:,}: what follows was read from the next sound header on"


def _extend(
    info: tarfile.TarInfo, stream: Stream, note: Callable[[str], None], limit: int, into: dict[str, str]
) -> None:
    """Read an extension header (a long name, or pax records) for the next entry, or for all."""
    if not 0 <= info.size <= limit:
        size = f"of {info.size:,} bytes" if info.size >= 0 else "of negative size"
        note(f"a tar header {size} was refused, the limit is {amount(limit)}: a name may be cut short")
        stream.skip(max(0, info.size + -info.size % BLOCK))
        return
    data = stream.take(info.size)
    stream.skip(-info.size % BLOCK)
    if info.type == tarfile.GNUTYPE_LONGNAME:
        into["path"] = data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
    elif info.type != tarfile.GNUTYPE_LONGLINK:
        into.update(_pax_records(data))


def _pax_records(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the `length key=value` records of a pax header, up to the first that is damaged."""
    while data:
        length, space, _ = data[:20].partition(b" ")
        if not space or not length.isdigit() or not len(length) + 1 < int(length) <= len(data):
            return
        key, equals, value = data[len(length) + 1 : int(length)].removesuffix(b"\n").partition(b"=")
        if equals:
            yield key.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape")
        data = data[int(length) :]


def _entry(info: tarfile.TarInfo, block: bytes, stream: Stream, pax: dict[str, str]) -> Entry | None:
    """Return the entry a header and its extensions describe, None when its size makes no sense."""
    sparse = info.type == tarfile.GNUTYPE_SPARSE or any(key.startswith("GNU.sparse.") for key in pax)
    if info.type == tarfile.GNUTYPE_SPARSE and block[482]:
        # Old GNU format: the map of holes goes on in blocks of its own, byte 504 says whether another follows.
        while (more := stream.take(BLOCK)) and len(more) == BLOCK and more[504]:
            pass
    size = 0 if info.type in WITHOUT_DATA else info.size
    if "size" in pax and size:
        if not pax["size"].isdecimal() or len(pax["size"]) > 20:
            return None
        size = int(pax["size"])
    if size < 0:
        return None
    name = pax.get("GNU.sparse.name") or pax.get("path") or info.name
    skipped = "sparse file" if sparse else WITHOUT_DATA.get(info.type, "")
    return Entry(name, size, _mtime(pax.get("mtime"), info.mtime), skipped, Part(stream, size))


def _mtime(pax: str | None, header: float) -> float | None:
    """Return seconds since the epoch, None where a header states none a clock can show."""
    try:
        seconds = float(pax) if pax else float(header)
    except ValueError:
        return None
    return seconds if 0 < seconds < 1 << 40 else None
