"""From a path to a stream of members: directories, tar, zip, compressed files, and those inside each other.

What a file is, is told by its first bytes, never by its name. Nothing is extracted and nothing is written beside the
input; nothing outside a given directory is read; memory stays bounded whatever the input holds. What is refused or
broken becomes a gap, and the walk goes on.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from analyzer.bundle import tar_stream, zip_entries
from analyzer.bundle.limits import MIB, Ledger, Limits, amount, shown
from analyzer.bundle.streams import PIECE, Decompressed, Part, Stream, compression
from analyzer.errors import UnreadableBundle
from parsers.shapes import Gap

SPOOL_MEMORY = 8 * MIB
"""A zip inside an archive is held in memory up to this size, then in an unnamed temporary file."""

UNSUPPORTED = (
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"070701", "cpio"),
)
"""First bytes of archives that cannot be opened here, and what they are called."""


@dataclass(slots=True)
class Member:
    """One file of a bundle."""

    address: str
    """Relative path inside the bundle; nested ones joined by `!` (`outer.tar.xz!inner/path`). A single file has its
    own name, standard input is `stdin`. Control characters and undecodable bytes are backslash-escaped."""
    size: int | None
    """Bytes, where the container states them."""
    chunks: Iterator[bytes]
    """The content in pieces of at most 256 KiB, to be consumed before the next member is asked for."""
    mtime: float | None
    """Last change, seconds since the epoch, where known."""


def members(
    path: Path | None, notes: list[Gap], limits: Limits | None = None, stdin: BinaryIO | None = None
) -> Iterator[Member]:
    """Yield the members of a bundle: of a directory or an archive, or the one file itself; of `stdin` without path.

    A directory is walked in sorted order, an archive in its own. Gaps are added to `notes` while members are asked
    for and consumed. Raises UnreadableBundle where `path` does not exist or cannot be read at all.
    """
    walk = _Walk(Ledger(limits or Limits(), notes))
    if path is None:
        if stdin is None:
            raise UnreadableBundle("no input", cure="Give a path, or pipe a capture in.")
        yield from walk.opened(Stream(walk.reader(stdin, "stdin")), "stdin", "", None, None, 0, None)
    elif path.is_dir():
        yield from walk.directory(path)
    else:
        file = _open_given(path)
        with file:
            status = os.fstat(file.fileno())
            yield from walk.file(file, shown(path.name), "", status)


def _open_given(path: Path) -> IO[bytes]:
    """Open the file the user named; a fifo too (`<(zcat x.gz)`), other special files are refused."""
    try:
        # Without O_NONBLOCK, opening a fifo nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        cure = "Check the spelling; a bundle is a directory, an archive or a file."
        raise UnreadableBundle("no such file or directory", where=str(path), cure=cure) from None
    except (OSError, ValueError) as error:
        if getattr(error, "errno", 0) == errno.ENXIO:
            raise _not_a_file(path, "socket") from None
        why = getattr(error, "strerror", None) or str(error)
        cure = "Make it readable for this user, or pipe it in: `sudo cat FILE | postmortem -`."
        raise UnreadableBundle("cannot be opened", where=str(path), why=why, cure=cure) from None
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        os.close(descriptor)
        raise _not_a_file(path, _kind(mode))
    os.set_blocking(descriptor, True)
    return open(descriptor, "rb", buffering=0)


def _not_a_file(path: Path, kind: str) -> UnreadableBundle:
    cure = "Give a directory, an archive or a file."
    return UnreadableBundle("is not a file to read", where=str(path), why=f"it is a {kind}", cure=cure)


def _kind(mode: int) -> str:
    """Return what a special file is called."""
    kinds = ((stat.S_ISLNK, "symbolic link"), (stat.S_ISFIFO, "fifo"), (stat.S_ISSOCK, "socket"))
    return next((name for test, name in kinds if test(mode)), "device")


class _Skipped:
    """Entries without content of their own in one container, told in one sentence for each kind."""

    def __init__(self, ledger: Ledger, container: str) -> None:
        self._ledger, self._container = ledger, container
        self._count: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def add(self, kind: str, address: str) -> None:
        """Count one entry."""
        self._count[kind] += 1
        self._first.setdefault(kind, address)

    def tell(self) -> None:
        """Note what was skipped: at its own address where there is one, else at the container's."""
        for kind, skipped in sorted(self._count.items()):
            first = self._first[kind]
            if skipped == 1:
                self._ledger.note(first, f"{kind}: not read")
            else:
                self._ledger.note(self._container or first, f"{skipped:,} × {kind}: not read, the first is {first}")


class _Walk:
    """One walk; its methods yield members."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._limits = ledger.limits

    def reader(self, file: IO[bytes], address: str) -> Callable[[int], bytes]:
        """Return a source of the file's bytes that counts them, and ends with a note on an error."""
        read = getattr(file, "read1", file.read)

        def source(size: int) -> bytes:
            try:
                piece = bytes(read(size) or b"")
            except (OSError, ValueError) as error:
                self._ledger.note(address, f"cannot be read further: {error}")
                return b""
            return piece if self._ledger.spend(len(piece), address) else b""

        return source

    def directory(self, root: Path) -> Iterator[Member]:
        """Yield the members of a directory tree: files of a directory in sorted order, then its directories."""

        def unreadable(error: OSError) -> None:
            self._ledger.note(shown(os.fsdecode(error.filename or "")), f"directory cannot be read: {error.strerror}")

        skipped = _Skipped(self._ledger, "")
        root = root.resolve()
        try:
            os.close(os.open(root, os.O_RDONLY | os.O_DIRECTORY))
        except OSError as error:
            cure = "Make it readable for this user."
            why = error.strerror or ""
            raise UnreadableBundle("cannot be opened", where=str(root), why=why, cure=cure) from None
        try:
            for folder, folders, files, descriptor in os.fwalk(root, onerror=unreadable):
                below = os.path.relpath(folder, root)
                links = self._below(folders, descriptor, "" if below == "." else f"{below}/")
                for name in sorted([*files, *links]):
                    address = shown(name if below == "." else f"{below}/{name}")
                    if not self._ledger.enter(address):
                        return
                    yield from self._found(name, address, descriptor, skipped)
                    if self._ledger.exhausted:
                        return
        except (OSError, RecursionError) as error:
            self._ledger.note("", f"the walk through the directory ended early: {error}")
        finally:
            skipped.tell()

    def _below(self, folders: list[str], descriptor: int, prefix: str) -> set[str]:
        """Sort the folders, take out what cannot be walked into; return the links among them."""
        links = {name for name in folders if _is_link(name, descriptor)}
        walked = []
        for name in sorted(set(folders) - links):
            if not os.access(name, os.R_OK | os.X_OK, dir_fd=descriptor):
                self._ledger.note(shown(prefix + name), "directory cannot be read: permission denied")
            elif self._ledger.enter(shown(prefix + name)):
                walked.append(name)
        if walked and prefix.count("/") >= self._limits.levels:
            what = f"directories are nested deeper than {self._limits.levels} levels: not read"
            self._ledger.note(shown(prefix + walked[0]), what)
            walked = []
        folders[:] = walked
        return links

    def _found(self, name: str, address: str, folder: int, skipped: _Skipped) -> Iterator[Member]:
        """Yield what a name in the directory open as `folder` holds. Links are not followed, not even swapped ones."""
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if not stat.S_ISREG(mode):
                skipped.add(_kind(mode), address)
                return
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=folder)
        except OSError as error:
            self._ledger.note(address, f"cannot be opened: {error.strerror}")
            return
        with open(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode):
                yield from self.file(file, address, address, status)
            else:
                self._ledger.note(address, "changed while it was read: it is no file any more")

    def file(self, file: IO[bytes], address: str, prefix: str, status: os.stat_result) -> Iterator[Member]:
        """Yield the members of an open file, itself if it is plain."""
        regular = stat.S_ISREG(status.st_mode)
        # /proc and /sys state a size of 0 for files that have content.
        size = status.st_size or None if regular else None
        stream = Stream(self.reader(file, address))
        yield from self.opened(stream, address, prefix, size, status.st_mtime, 0, file if regular else None)

    def opened(
        self, stream: Stream, address: str, prefix: str, size: int | None, mtime: float | None, depth: int,
        file: IO[bytes] | None,
    ) -> Iterator[Member]:  # fmt: skip
        """Yield the members of a stream by what it begins with.

        `address` is what it is called itself, `prefix` what its members' addresses begin with (empty for the bundle
        itself), `depth` how many archives it is in, `file` the same bytes where they can be read in any order.
        """
        head = stream.peek(tar_stream.HEAD_BYTES)
        is_zip = head.startswith(zip_entries.MAGICS)
        kind = "" if is_zip else compression(head)
        is_tar = not is_zip and not kind and tar_stream.is_tar(head)
        if (is_zip or is_tar or kind) and depth >= self._limits.depth:
            self._ledger.note(address, f"archives are nested deeper than {self._limits.depth}: it was not opened")
        elif is_zip:
            yield from self._zip(stream, address, prefix, depth + 1, file)
        elif is_tar:
            yield from self._tar(stream, address, prefix, depth + 1)
        elif kind:
            inner = Stream(Decompressed(kind, stream, address, self._ledger).read)
            # A compressed tar is one archive, not two.
            tar = tar_stream.is_tar(inner.peek(tar_stream.HEAD_BYTES))
            yield from self.opened(inner, address, prefix, None, mtime, depth if tar else depth + 1, None)
        else:
            name = next((name for magic, name in UNSUPPORTED if head.startswith(magic)), "")
            if name:
                self._ledger.note(address, f"{name} archives cannot be opened: pack it as tar or zip")
            if self._ledger.admit(address):
                yield Member(address, size, self._chunks(stream.read, address), mtime)

    def _chunks(self, read: Callable[[int], bytes], address: str) -> Iterator[bytes]:
        """Yield the pieces of a member up to the limit."""
        left = self._limits.member_bytes
        while left and (piece := read(min(left, PIECE))):
            left -= len(piece)
            yield piece
        if not left and read(1):
            self._ledger.note(address, f"longer than {amount(self._limits.member_bytes)}: the rest was not read")

    def _tar(self, stream: Stream, address: str, prefix: str, depth: int) -> Iterator[Member]:
        """Yield the members of a tar."""
        skipped = _Skipped(self._ledger, address)
        for entry in tar_stream.entries(
            stream, lambda what: self._ledger.note(address, what), self._limits.header_bytes
        ):
            inner = _join(prefix, entry.name)
            if not self._ledger.enter(inner):
                break
            if entry.skipped:
                skipped.add(entry.skipped, inner)
                continue
            part = Stream(entry.data.read)
            yield from self.opened(part, inner, inner, entry.size, entry.mtime, depth, None)
            missing = entry.data.finish()
            if self._ledger.exhausted:
                break
            if missing:
                there = entry.size - missing
                self._ledger.note(inner, f"cut: only {there:,} of its {entry.size:,} bytes are there")
        skipped.tell()

    def _zip(self, stream: Stream, address: str, prefix: str, depth: int, file: IO[bytes] | None) -> Iterator[Member]:
        """Yield the members of a zip; one that cannot be read in any order is kept aside first."""
        if file is None:
            with tempfile.SpooledTemporaryFile(max_size=SPOOL_MEMORY) as aside:
                left = self._limits.spool_bytes
                while left and (piece := stream.read(min(left, PIECE))):
                    left -= len(piece)
                    aside.write(piece)
                if not left and stream.peek(1):
                    what = f"a zip inside an archive, longer than {amount(self._limits.spool_bytes)}"
                    self._ledger.note(address, f"{what}: the rest was not read")
                yield from self._zip_file(aside, address, prefix, depth)
        else:
            yield from self._zip_file(file, address, prefix, depth)

    def _zip_file(self, file: IO[bytes], address: str, prefix: str, depth: int) -> Iterator[Member]:
        """Yield the members of a seekable zip."""
        skipped = _Skipped(self._ledger, address)
        size = file.seek(0, os.SEEK_END)
        for entry in zip_entries.entries(
            file, size, lambda what: self._ledger.note(address, what), self._limits.directory_bytes
        ):
            inner = _join(prefix, entry.name)
            if not self._ledger.enter(inner):
                break
            if entry.skipped or entry.method not in zip_entries.METHODS or entry.method == 14:
                skipped.add(entry.skipped or f"file packed by method {entry.method}", inner)
                continue
            content = _ZipContent(file, entry, inner, self._ledger)
            yield from self.opened(Stream(content.read), inner, inner, entry.size, entry.mtime, depth, None)
            if self._ledger.exhausted:
                break
        skipped.tell()


class _ZipContent:
    """The content of one entry of a zip, checked against its checksum when read to its end."""

    def __init__(self, file: IO[bytes], entry: zip_entries.Entry, address: str, ledger: Ledger) -> None:
        self._file, self._entry, self._address, self._ledger = file, entry, address, ledger
        self._place = entry.offset
        packed = Stream(self._raw)
        kind = zip_entries.METHODS[entry.method]
        self._part = Part(packed, entry.packed if entry.packed is not None else 1 << 62)
        plain = Stream(self._part.read)
        self._read = Decompressed(kind, plain, address, ledger, single=True).read if kind else self._stored
        self._crc = self._got = 0
        self._ended = False

    def _raw(self, size: int) -> bytes:
        # Another entry may have moved the file's position in between.
        self._file.seek(self._place)
        piece = self._file.read(size)
        self._place += len(piece)
        return piece

    def _stored(self, size: int) -> bytes:
        piece = self._part.read(size)
        return piece if self._ledger.spend(len(piece), self._address) else b""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, none at the end."""
        piece = self._read(size)
        self._got += len(piece)
        self._crc = zlib.crc32(piece, self._crc)
        if not piece and not self._ended:
            self._ended = True
            self._check()
        return piece

    def _check(self) -> None:
        entry = self._entry
        if self._ledger.exhausted or entry.size is None:
            return
        if self._got != entry.size:
            there = f"{self._got:,} of its {entry.size:,} bytes"
            self._ledger.note(self._address, f"the zip states another size: {there} were read")
        elif self._crc != entry.crc:
            self._ledger.note(self._address, "its checksum is wrong: the content is damaged")


def _join(prefix: str, name: str) -> str:
    """Return the address of a name inside an archive. A name is only a name: `..` and `/` lead nowhere."""
    while name.startswith("./"):
        name = name[2:].lstrip("/")
    return f"{prefix}!{shown(name)}" if prefix else shown(name)


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
