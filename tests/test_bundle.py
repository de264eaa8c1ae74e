"""Bundles of every container and nesting, cut, crafted and broken, as streams of members."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import tarfile
import textwrap
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from analyzer.bundle.limits import MAX_NOTES, Ledger, shown
from analyzer.bundle.streams import zstd
from analyzer.bundle.walk import Limits, members
from analyzer.errors import AnalyzerError
from parsers.shapes import Gap

FILES = {
    "proc/cmdline": b"BOOT_IMAGE=/vmlinuz ro\n",
    "var/log/kern.log": b"".join(b"line %d of the kernel log\n" % n for n in range(40_000)),
    "empty": b"",
    "var/log/" + "long" * 60 + "/näme.txt": b"x" * 513,
}
Found = dict[str, bytes]


def read(path: Path | None, notes: list[Gap] | None = None, limits: Limits | None = None, **more: object) -> Found:
    """Return address to content; notes are an error unless a list for them is given."""
    gaps: list[Gap] = []
    found = {}
    for member in members(path, gaps, limits or Limits(), **more):  # type: ignore[arg-type]
        pieces = list(member.chunks)
        assert all(0 < len(piece) <= 1 << 20 for piece in pieces)
        found[member.address] = b"".join(pieces)
    if notes is None:
        assert gaps == []
    else:
        notes += gaps
    return found


def tar(files: Found = FILES, format: int = tarfile.PAX_FORMAT) -> bytes:
    """Return a tar of the files, with directories."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        directory = tarfile.TarInfo("./var")
        directory.type = tarfile.DIRTYPE
        archive.addfile(directory)
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mtime = 1_500_000_000
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(files: Found = FILES, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip of the files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.mkdir("var")
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def zip_streamed() -> bytes:
    """Return a zip written to a pipe: sizes stand behind the data."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise OSError

        def tell(self) -> int:
            raise OSError

    out = Pipe()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    return out.getvalue()


def write_tree(root: Path) -> None:
    """Write the files as a directory."""
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


PACKED: dict[str, Callable[[], bytes]] = {
    "tar": tar,
    "gnu.tar": lambda: tar(format=tarfile.GNU_FORMAT),
    "tar.gz": lambda: gzip.compress(tar()),
    "tar.xz": lambda: lzma.compress(tar()),
    "tar.bz2": lambda: bz2.compress(tar()),
    "tar.zst": lambda: zstd.compress(tar()),
    "multi.tar.gz": lambda: gzip.compress(tar()[:5000]) + gzip.compress(tar()[5000:]) + b"\0" * 700,
    "multi.tar.xz": lambda: lzma.compress(tar()[:5000]) + b"\0" * 8 + lzma.compress(tar()[5000:]),
    "zip": zipped,
    "stored.zip": lambda: zipped(method=zipfile.ZIP_STORED),
    "bzip2.zip": lambda: zipped(method=zipfile.ZIP_BZIP2),
    "streamed.zip": zip_streamed,
}


@pytest.mark.parametrize("kind", PACKED)
def test_containers_give_the_same_members(kind: str, tmp_path: Path) -> None:
    """A tree, and every archive of it, have the same members; nothing is written anywhere near."""
    tree = tmp_path / "tree"
    write_tree(tree)
    (tmp_path / "misnamed").write_bytes(PACKED[kind]())
    before = sorted(tmp_path.rglob("*"))
    assert read(tree) == read(tmp_path / "misnamed") == FILES
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("inner", PACKED)
@pytest.mark.parametrize("outer", ["tar.xz", "zip", "tree", "stdin"])
def test_archives_inside_archives(inner: str, outer: str, tmp_path: Path) -> None:
    """An archive inside another is opened where it lies, its members joined by `!`."""
    packed = PACKED[inner]()
    around = {"a/inner": packed, "b": b"after"}
    if outer == "tree":
        (tmp_path / "a").mkdir()
        (tmp_path / "a/inner").write_bytes(packed)
        (tmp_path / "b").write_bytes(b"after")
        found = read(tmp_path)
    elif outer == "stdin":
        found = read(None, stdin=io.BytesIO(tar(around)))
    else:
        (tmp_path / "x").write_bytes(lzma.compress(tar(around)) if outer == "tar.xz" else zipped(around))
        found = read(tmp_path / "x")
    assert found == {"b": b"after"} | {f"a/inner!{name}": content for name, content in FILES.items()}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd.compress])
def test_compressed_file_keeps_its_name(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """A compressed log is one member under its own name, alone, on stdin and inside a tar."""
    log = FILES["var/log/kern.log"]
    (tmp_path / "kern.log.1.gz").write_bytes(pack(log))
    assert read(tmp_path / "kern.log.1.gz") == {"kern.log.1.gz": log}
    assert read(tmp_path) == {"kern.log.1.gz": log}
    assert read(None, stdin=io.BytesIO(pack(log))) == {"stdin": log}
    assert read(None, stdin=io.BytesIO(tar({"kern.log.1.gz": pack(log)}))) == {"kern.log.1.gz": log}


def test_sizes_and_times(tmp_path: Path) -> None:
    """Members carry the size and time their container states."""
    (tmp_path / "x").write_bytes(tar({"a": b"12345"}))
    (member,) = list(members(tmp_path / "x", []))
    assert (member.address, member.size, member.mtime) == ("a", 5, 1_500_000_000)


def test_members_may_be_left_unread(tmp_path: Path) -> None:
    """Asking for the next member passes over what was not read of this one."""
    for kind, pack in PACKED.items():
        (tmp_path / kind).write_bytes(pack())
        notes: list[Gap] = []
        assert [member.address for member in members(tmp_path / kind, notes)] == list(FILES)
        assert notes == []


@pytest.mark.parametrize("kind", PACKED)
def test_cut_archives_keep_what_is_whole(kind: str, tmp_path: Path) -> None:
    """Cut anywhere: never an exception, always a gap, and every byte handed out is a byte of that member."""
    packed = PACKED[kind]()
    places = {1, 5, 17, 511, 513, 1025, len(packed) - 1, *random.Random(7).sample(range(1, len(packed)), 25)}
    for cut in sorted(place for place in places if place < len(packed)):
        (tmp_path / "cut").write_bytes(packed[:cut])
        notes: list[Gap] = []
        found = read(tmp_path / "cut", notes)
        if list(found) == ["cut"]:
            continue  # too short to be told for an archive
        for address, content in found.items():
            if address in FILES:
                assert FILES[address].startswith(content)
        if found != FILES:
            assert notes


def test_cut_tar_hands_out_the_cut_member(tmp_path: Path) -> None:
    """The member that was cut gives its bytes up to the cut, and a gap of its own."""
    files = {"whole": b"w" * 1000, "cut": random.Random(1).randbytes(100_000)}
    (tmp_path / "x.tar").write_bytes(tar(files)[:60_000])
    notes: list[Gap] = []
    found = read(tmp_path / "x.tar", notes)
    assert found["whole"] == files["whole"]
    assert files["cut"].startswith(found["cut"])
    assert len(found["cut"]) > 50_000
    assert f"{len(found['cut']):,} of its 100,000 bytes" in next(gap.what for gap in notes if gap.member == "cut")


def test_tar_goes_on_after_a_damaged_header(tmp_path: Path) -> None:
    """A header that was overwritten costs its own member only."""
    packed = bytearray(tar({"a": b"a" * 600, "b": b"b" * 600, "c": b"c" * 600}, tarfile.USTAR_FORMAT))
    place = packed.index(b"b\0\0\0")
    packed[place : place + 200] = random.Random(3).randbytes(200)
    (tmp_path / "x").write_bytes(packed)
    notes: list[Gap] = []
    assert set(read(tmp_path / "x", notes)) == {"a", "c"}
    assert "damaged at byte" in notes[0].what


def zstd_checked(data: bytes) -> bytes:
    """Return zstd data with a checksum, as the zstd program writes them."""
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstd_checked])
def test_flipped_bytes_never_raise(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Damage in compressed data ends that stream with a gap."""
    packed, chance = pack(tar()), random.Random(11)
    for _ in range(15):
        broken = bytearray(packed)
        broken[chance.randrange(6, len(packed))] ^= 1 << chance.randrange(8)
        (tmp_path / "x").write_bytes(broken)
        notes: list[Gap] = []
        found = read(tmp_path / "x", notes)
        assert notes or found == FILES


def test_damaged_zip_member_is_told(tmp_path: Path) -> None:
    """A wrong checksum is a gap at the member; the others are untouched."""
    packed = bytearray(zipped({"a": b"A" * 50, "b": b"B" * 50}, zipfile.ZIP_STORED))
    packed[packed.index(b"A" * 50)] = ord("x")
    (tmp_path / "x").write_bytes(packed)
    notes: list[Gap] = []
    assert read(tmp_path / "x", notes)["b"] == b"B" * 50
    assert [(gap.member, gap.what) for gap in notes] == [("a", "its checksum is wrong: the content is damaged")]


def test_names_are_only_names(tmp_path: Path) -> None:
    """`..`, absolute paths and control characters are shown, not followed."""
    hostile = {"../../etc/passwd": b"1", "/etc/shadow": b"2", "a\x1b[31m\nb": b"3", "\udcff\u202e": b"4"}
    (tmp_path / "x").write_bytes(tar(hostile))
    assert list(read(tmp_path / "x")) == ["../../etc/passwd", "/etc/shadow", "a\\x1b[31m\\x0ab", "\\xff\\u202e"]
    assert len(shown("n" * 9000)) == 1000


def test_links_devices_and_sparse_files_are_not_read(tmp_path: Path) -> None:
    """What has no content of its own is noted; a sparse giant costs nothing."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            info = tarfile.TarInfo(f"special-{kind.decode()}")
            info.type, info.linkname, info.size = kind, "/etc/passwd", 0
            archive.addfile(info)
        info = tarfile.TarInfo("giant")
        info.pax_headers = {"GNU.sparse.realsize": str(1 << 40), "GNU.sparse.map": f"{1 << 40},0"}
        archive.addfile(info)
        info = tarfile.TarInfo("after")
        info.size = 2
        archive.addfile(info, io.BytesIO(b"ok"))
    (tmp_path / "x").write_bytes(out.getvalue())
    notes: list[Gap] = []
    assert read(tmp_path / "x", notes) == {"after": b"ok"}
    assert sorted(gap.what for gap in notes) == [
        "device: not read", "fifo: not read", "hard link: not read", "sparse file: not read",
        "symbolic link: not read",
    ]  # fmt: skip


def test_directory_links_and_special_files(tmp_path: Path) -> None:
    """Links out of the directory, fifos and links to directories are noted and not opened."""
    (tmp_path / "secret").write_bytes(b"outside")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub/file").write_bytes(b"inside")
    (root / "link").symlink_to("../secret")
    (root / "sub/folder").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    notes: list[Gap] = []
    assert read(root, notes) == {"sub/file": b"inside"}
    assert [(gap.member, gap.what) for gap in notes] == [
        ("pipe", "fifo: not read"),
        ("link", "2 × symbolic link: not read, the first is link"),
    ]


def test_file_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    """A file swapped for a link between listing and opening stays unread; one that vanished is a gap."""
    (tmp_path / "secret").write_bytes(b"outside")
    root = tmp_path / "root"
    root.mkdir()
    for name in "abc":
        (root / name).write_bytes(b"x")
    notes: list[Gap] = []
    found = []
    for member in members(root, notes):
        found.append(member.address)
        (root / "b").unlink(missing_ok=True)
        (root / "b").mkdir(exist_ok=True)
        (root / "c").unlink(missing_ok=True)
    assert found == ["a"]
    assert len(notes) == 2


def test_unreadable_paths_are_errors(tmp_path: Path) -> None:
    """What cannot be read at all is an error with its cure, not a gap."""
    for path in (tmp_path / "missing", Path("/dev/null"), tmp_path / "a\0b"):
        with pytest.raises(AnalyzerError, match=r"\. \w"):
            list(members(path, []))
    with pytest.raises(AnalyzerError):
        list(members(None, []))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file_in_a_directory_is_a_gap(tmp_path: Path) -> None:
    """A file without permission costs itself only."""
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "a").chmod(0)
    (tmp_path / "b").write_bytes(b"y")
    notes: list[Gap] = []
    assert read(tmp_path, notes) == {"b": b"y"}
    assert notes[0].member == "a"


def test_encrypted_zip_members_are_noted(tmp_path: Path) -> None:
    """An encrypted file is not guessed at."""
    packed = bytearray(zipped({"a": b"A" * 50, "b": b"B"}, zipfile.ZIP_STORED))
    packed[packed.rindex(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "x").write_bytes(packed)
    notes: list[Gap] = []
    assert read(tmp_path / "x", notes) == {"a": b"A" * 50}
    assert notes == [Gap("b", 0, "encrypted file: not read")]


def test_overlapping_zip_is_refused(tmp_path: Path) -> None:
    """A thousand entries that share one kernel of data give it once."""
    kernel = zipped({"f": b"\0" * 100_000})
    at = kernel.index(b"PK\x01\x02")
    end = kernel.index(b"PK\x05\x06")
    central = kernel[at:end]
    record = bytearray(kernel[end:])
    directory = central * 1000
    record[8:12] = (1000).to_bytes(2, "little") * 2
    record[12:16] = len(directory).to_bytes(4, "little")
    (tmp_path / "x").write_bytes(kernel[:at] + directory + record)
    notes: list[Gap] = []
    assert read(tmp_path / "x", notes) == {"f": b"\0" * 100_000}
    assert "999 entries" in notes[0].what


def test_nesting_ends(tmp_path: Path) -> None:
    """Archives in archives are opened to the stated depth, as a quine would need without end."""
    packed, gzipped = b"core", b"core"
    for _ in range(7):
        packed, gzipped = tar({"t": packed}), gzip.compress(gzipped)
    (tmp_path / "tar").write_bytes(packed)
    (tmp_path / "gz").write_bytes(gzipped)
    for name in ("tar", "gz"):
        notes: list[Gap] = []
        assert read(tmp_path / name, notes) == {}
        assert "nested deeper than 5" in notes[0].what
    assert list(read(tmp_path / "tar", limits=Limits(depth=7))) == ["t!t!t!t!t!t!t"]


def test_limits_give_the_first_part_and_a_gap(tmp_path: Path) -> None:
    """Beyond a limit there is a gap, before it everything was read."""
    (tmp_path / "x").write_bytes(tar({"a": b"a" * 5000, "b": b"b" * 10}))
    notes: list[Gap] = []
    assert read(tmp_path / "x", notes, Limits(member_bytes=4096)) == {"a": b"a" * 4096, "b": b"b" * 10}
    assert notes == [Gap("a", 0, "longer than 4 KiB: the rest was not read")]
    notes = []
    assert list(read(tmp_path / "x", notes, Limits(members=1))) == ["a"]
    assert "limit of 1 members" in notes[0].what
    (tmp_path / "big").write_bytes(b"x" * 3_000_000)
    notes = []
    assert len(read(tmp_path / "big", notes, Limits(total_bytes=2_000_000))["big"]) <= 2_000_000
    assert "in all was reached" in notes[0].what


def test_notes_are_capped() -> None:
    """The last note says how many more there were."""
    notes = [Gap("before", 1, "another's")]
    ledger = Ledger(Limits(), notes)
    for number in range(5000):
        ledger.note(str(number), "refused")
    assert len(notes) == MAX_NOTES + 1
    assert notes[-1].what.startswith("4,001 more")


def header_bomb() -> bytes:
    """Return a small .tar.xz whose first header claims 500 MB of pax records, and has them."""
    info = tarfile.TarInfo("@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 500 << 20
    squeeze = lzma.LZMACompressor(preset=1)
    packed = squeeze.compress(info.tobuf(tarfile.USTAR_FORMAT))
    for _ in range(500):
        packed += squeeze.compress(b"A" * (1 << 20))
    return packed + squeeze.compress(tar({"after": b"ok"})) + squeeze.flush()


def zeros(pack: Callable[[bytes], bytes], more: int = 1) -> bytes:
    """Return hundreds of megabytes of zeros, packed."""
    return pack(b"\0" * (256 << 20)) * more


def zip_bomb() -> bytes:
    """Return a zip with 300 MB of zeros in bzip2."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_BZIP2) as archive, archive.open("f", "w") as file:
        for _ in range(300):
            file.write(b"\0" * (1 << 20))
    return out.getvalue()


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "pax header": (header_bomb, "was refused"),
    "xz": (lambda: zeros(lambda data: lzma.compress(data, preset=0)), "grow more than"),
    "bzip2": (lambda: zeros(bz2.compress), "grow more than"),
    "zstd": (lambda: zeros(zstd.compress), "grow more than"),
    "gzip in gzip": (lambda: gzip.compress(zeros(lambda data: gzip.compress(data, 1), 2)), ""),
    "gzip of a million": (lambda: gzip.compress(b"") * 300_000, ""),
    "zip": (zip_bomb, "grow more than"),
    "zip in tar": (lambda: tar({"z": zip_bomb()}), "grow more than"),
    "line": (lambda: gzip.compress(zlib.compress(b"", 0) + b"x" * (200 << 20), 1), ""),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_cost_bounded_memory(bomb: str, tmp_path: Path) -> None:
    """A bomb is read in a process of its own: it stays below 60 MB above the bare interpreter."""
    make, told = BOMBS[bomb]
    (tmp_path / "bomb").write_bytes(make())
    program = """
        import resource, sys
        from pathlib import Path
        from analyzer.bundle.walk import members
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        notes = []
        for member in members(Path(sys.argv[1]), notes):
            for chunk in member.chunks:
                pass
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        print(" ".join(gap.what for gap in notes))
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "bomb")],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent,
    )  # fmt: skip
    grown, _, notes = run.stdout.partition("\n")
    assert told in notes
    assert int(grown) < 60_000
