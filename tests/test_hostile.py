"""The whole product under attack: bundles and rules from strangers, made here by code, none stored."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

import analyzer
from analyzer import Analysis, case, judge, listing, output, ranking, rules
from analyzer.case import Case
from analyzer.errors import AnalyzerError
from analyzer.report.formats import render
from analyzer.report.terminal import inventory_lines
from analyzer.rules import Rule

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests" / "corpus"
CAPTURES = sorted(path for path in CORPUS.glob("*/*") if path.suffix in (".txt", ".log"))
FIGURE = re.compile(r"\d+(?:\.\d+)?")
FIGURES = ("9" * 400, "9" * 5000, "9223372036854775808", "-7", "nan", "1e999", "\u0661")
"""Too long for int(), beyond Int64, negative, no number, infinite, and a digit that is not ASCII."""


@pytest.fixture(autouse=True)
def defects_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of a parser raises here, where users get a gap."""
    monkeypatch.setenv("POSTMORTEM_DEBUG", "1")


@cache
def book() -> dict[str, Rule]:
    """Return the shipped rules."""
    return rules.load([])


def judged(files: dict[str, str]) -> Case:
    """Return the case of the files, after every shipped rule was judged on it."""
    found = case.read_texts(files)
    judge.judge(found, book())
    return found


def absurd(path: Path, figure: str, some: int) -> str:
    """Return a capture with every so many-th number replaced."""
    counter = itertools.count()
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    return FIGURE.sub(lambda found: found[0] if next(counter) % some else figure, text)


# Numbers and dates


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure[:4]}-{len(figure)}")
def test_no_number_ends_the_analysis(figure: str) -> None:
    """All captures with all their numbers absurd, and with every third of them, are read and judged."""
    for some in (1, 3):
        judged({f"{path.parent.name}/{path.name}": absurd(path, figure, some) for path in CAPTURES})


def test_a_number_beyond_its_column_is_a_gap() -> None:
    """The value is missing, the row stays, the loss is told with its line."""
    found = case.read_texts({"f.txt": f"FUNC    COUNT\ntcp_push_one    {'9' * 400}\ntcp_sendmsg    7\n"})
    counts = found.tables["func_count"]
    assert counts["function"].tolist() == ["tcp_push_one", "tcp_sendmsg"]
    assert counts["events"].isna().tolist() == [True, False]
    assert [(gap.member, gap.line) for gap in found.gaps] == [("f.txt", 2)]
    assert "events" in found.gaps[0].what


def test_a_defect_of_a_parser_costs_one_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other captures are read, and the gap says whose fault it is."""
    from parsers import funccount

    def fails(capture: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setenv("POSTMORTEM_DEBUG", "")
    monkeypatch.setattr(funccount, "parse", fails)
    found = case.read_texts({"a": "FUNC    COUNT\nf    7\n", "b": "Features for eth0:\ntx-checksumming: on\n"})
    assert ["a bug of ours" in gap.what for gap in found.gaps] == [True]
    assert len(found.tables["offload"]) == 1


# Text that wants to be obeyed

PAYLOADS = {
    "script": b"<script>alert(1)</script>",
    "quote": b"\"'><img src=x onerror=alert(1)>",
    "jinja": b"{{7*7}}{% raw %}{#",
    "file": b"file:///etc/passwd",
    "escape": b"\x1b]0;owned\x07\x1b[2J\r\x08",
    "csi": "\u009b2J".encode(),
    "nul": b"a\0\0b",
    "turned": "\u202egpj.exe\u2066".encode(),
    "formula": b"=cmd|'/C calc'!A0",
    "bytes": b"\xff\xfe\xc3",
    "surrogate": b"\xed\xa0\x80",
    "long": b"A" * 9_000,
}
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def poisoned(folder: Path, payload: bytes) -> Path:
    """Write a bundle that holds the payload wherever a capture holds a name."""
    folder.mkdir()
    head = b"4.9.0-%b (x@y) (gcc) #1 SMP" % payload
    log = [
        b"Linux version " + head,
        b"Command line: root=" + payload,
        b"DMI: " + payload + b" Inc. X/Y, BIOS 1",
        b"clocksource: Switched to clocksource " + payload,
        payload + b" invoked oom-killer: gfp_mask=0x24201ca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
        b"Out of memory: Kill process 1234 (" + payload + b") score 900 or sacrifice child",
        b"Killed process 1234 (" + payload + b") total-vm:1000kB, anon-rss:10kB, file-rss:0kB",
        payload + b": page allocation stalls for 272380ms, order:0, mode:0x24000c0(GFP_KERNEL)",
        b"CPU: 3 PID: 1 Comm: " + payload + b" Not tainted " + head,
        b"Hardware name: " + payload,
        b"Call Trace:",
        b" [<ffffffff81000000>] " + payload + b"+0x1/0x2",
        b"INFO: task " + payload + b":77 blocked for more than 120 seconds.",
        b"NETDEV WATCHDOG: " + payload + b" (igb): transmit queue 0 timed out",
        b"watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [" + payload + b":123]",
        b"print_req_error: I/O error, dev " + payload + b", sector 123",
    ]
    dmesg = b"".join(b"[%5d.%06d] %b\n" % (at, at, line) for at, line in enumerate(log))
    files = {
        "dmesg.txt": dmesg,
        "kern.log": b"".join(b"Oct  1 10:00:00 " + payload + b" kernel: " + line + b"\n" for line in log),
        "k.txt": b"Features for " + payload + b":\ntx-checksumming: off\nscatter-gather: off\n" + payload + b": on\n",
        "stacks.txt": b'Tracing 1 functions for "tcp_push_one"... Hit Ctrl-C to end.\n^C\n  ' + payload
        + b"\n  tcp_push_one\n  sock_no_sendpage\n    735110\n\n",
        "calls.txt": b"FUNC                          COUNT\n" + payload + b"     5\n",
        "typed.txt": b"root@" + payload + b":~# dmesg " + payload + b"\n" + dmesg + b"==> " + payload + b" <==\nx\n",
        "link.txt": b"$ ip -d link\n2: " + payload + b"@eth0: <UP> mtu 1500 qdisc noqueue state UP\n"
        b"    link/ether 00:11:22:33:44:55 brd ff:ff:ff:ff:ff:ff promiscuity 0\n",
        "facts.txt": b"$ hostname\n" + payload + b"\n$ cat current_clocksource\n" + payload + b"\n",
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_bytes(content)
    named = payload[:200].replace(b"/", b"_").replace(b"\0", b"0")
    Path(os.fsdecode(os.fsencode(folder) + b"/" + named + b"\n.log")).write_bytes(dmesg)
    return folder


class Tags(HTMLParser):
    """Counts tags, and keeps every attribute that could run or load something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.active: list[tuple[str, str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        loading = [(name, value) for name, value in attrs if name in ("href", "src", "action", "xlink:href")]
        self.active += [(tag, name, value) for name, value in loading if not (value or "").startswith("#")]
        self.active += [(tag, name, value) for name, value in attrs if name.startswith("on")]


class Refused(socket.socket):
    """Takes the place of every socket."""

    def __init__(self, *given: object, **named: object) -> None:
        raise AssertionError("the analyzer reached for the network")


@pytest.fixture(scope="module", params=PAYLOADS)
def attacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analysis]:
    """A bundle poisoned with one payload, read with every socket forbidden."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "socket", Refused)
        patch.setattr(socket, "getaddrinfo", Refused)
        yield analyzer.open(poisoned(tmp_path_factory.mktemp("poison") / "b", PAYLOADS[request.param]))


def test_poison_reaches_the_tables(attacked: Analysis) -> None:
    """The attack is one: most captures were recognised, so the payloads are in the rows."""
    assert {"alloc_stall", "offload", "stack", "func_count", "kernel_event"} <= attacked.tables.keys()
    assert attacked.findings


def test_page_is_inert(attacked: Analysis) -> None:
    """The page holds our one script, nothing that loads, runs or turns."""
    page = attacked.report("html").decode("utf-8")
    found = Tags(page)
    assert found.tags["script"] == 1
    assert not found.active
    assert not found.tags.keys() & {"img", "iframe", "object", "link", "base", "form", "embed"}
    assert not OBEYED.findall(page)
    assert len(page) < 2_000_000


def test_texts_and_tables_drive_no_terminal(attacked: Analysis) -> None:
    """Report, inventory and tables on a terminal hold nothing it would obey; JSON is JSON, CSV is CSV."""
    printed = [attacked.report("text").decode(), *inventory_lines(attacked.verdict.case)]
    document = attacked.report("json").decode("ascii")
    json.loads(document)
    for name in attacked.tables:
        text, sheet, lines = (
            "\n".join(listing.printed(attacked.verdict.case, name, format)) for format in ("text", "csv", "jsonl")
        )
        printed += [text, sheet, lines]
        for line in lines.split("\n"):
            assert not line or json.loads(line)["line"] >= 1
        rows = list(csv.reader(io.StringIO(sheet, newline="")))
        assert {len(row) for row in rows} <= {len(rows[0])}
        texts = [cell for row in rows[1:] for cell in row if not re.fullmatch(r"-?[\d.e+]+", cell)]
        assert not [cell for cell in texts if cell.startswith(("=", "+", "-", "@", "\t"))]
    assert not OBEYED.findall("\n".join([*printed, document]))


@pytest.mark.parametrize("payload", ["file", "escape", "long"])
def test_pdf_fetches_nothing(payload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The PDF is written, without links out and without any file of the host."""
    pikepdf = pytest.importorskip("pikepdf")
    monkeypatch.setattr(socket, "socket", Refused)
    made = analyzer.open(poisoned(tmp_path / "b", PAYLOADS[payload])).report("pdf")
    with pikepdf.open(io.BytesIO(made)) as pdf:
        actions = [note.get("/A", {}) for page in pdf.pages for note in page.get("/Annots", [])]
        assert not [action for action in actions if "/URI" in action or "/Launch" in action]
        assert len(pdf.pages) < 100
        assert b"root:x:" not in b"".join(item.get_file().read_bytes() for item in pdf.attachments.values())


# What is written, and where

INCIDENT = ROOT / "samples" / "cloudflare-vlan-offload" / "incident"
COMMAND = [sys.executable, "-m", "analyzer.cli"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "POSTMORTEM_DEBUG": ""}


def run(*arguments: str | Path, shell: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command; `shell` is what a shell appends to it, such as a redirection."""
    line = f"{shlex.join([*COMMAND, *map(str, arguments)])} {shell}"
    return subprocess.run(
        line, shell=True, capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT | environment, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "redirection"),
    [(["version"], ">&-"), (["version"], "> /dev/full"), (["analyze", INCIDENT, "-o-", "-fjson"], "> /dev/full")],
)
def test_standard_output_that_takes_nothing(arguments: list[str | Path], redirection: str) -> None:
    """A full disk or a closed output is one clear line and exit 2."""
    done = run(*arguments, shell=redirection)
    assert done.returncode == 2
    assert done.stderr.startswith("postmortem: standard output cannot be written")
    assert done.stderr.count("\n") == 1


def test_closed_streams_harm_nothing_else(tmp_path: Path) -> None:
    """With -o nothing is lost when the standard streams are closed; reading a closed input is exit 2."""
    done = run("analyze", INCIDENT, "-o", tmp_path / "r.json", shell="<&- >&- 2>&-")
    assert done.returncode == 0
    assert json.loads((tmp_path / "r.json").read_bytes())["candidates"]
    assert run("inventory", "-", shell="<&-").returncode == 2


def test_a_reader_that_leaves_is_no_finding(tmp_path: Path) -> None:
    """`| head -1` ends with 0, not with the 1 that means findings, however much was to come."""
    for number in range(3_000):
        (tmp_path / f"a-file-with-a-long-name-{number:06}.txt").touch()
    line = shlex.join([*COMMAND, "inventory", str(tmp_path)])
    ended = subprocess.run(
        ["bash", "-c", f"{line} | head -1; echo ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, env=ENVIRONMENT, check=False, cwd=ROOT,
    )  # fmt: skip
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[-1] == "0"


def test_output_replaces_files_only(tmp_path: Path) -> None:
    """A link is kept and its target written; a fifo is written to and stays one; a loop of links is refused."""
    target, link, fifo, loop = (tmp_path / name for name in ("real", "link", "fifo", "loop"))
    target.write_bytes(b"old")
    link.symlink_to(target)
    output.write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    output.write(fifo, b"streamed")
    assert os.read(reading, 100) == b"streamed"
    os.close(reading)
    assert fifo.is_fifo()
    loop.symlink_to(loop)
    with pytest.raises(AnalyzerError, match="cannot be written"):
        output.write(loop, b"")
    assert {path.name for path in tmp_path.iterdir()} == {"real", "link", "fifo", "loop"}


def test_a_full_disk_keeps_the_old_report(tmp_path: Path) -> None:
    """What does not fit leaves the old file and nothing beside it."""
    report = tmp_path / "r.html"
    report.write_text("old")
    line = f"ulimit -f 20; {shlex.join([*COMMAND, 'analyze', str(INCIDENT), '-o', str(report)])}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT, check=False)
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert report.read_text() == "old"
    assert list(tmp_path.iterdir()) == [report]


@pytest.mark.parametrize(
    ("number", "place"), [(signal.SIGTERM, "write"), (signal.SIGTERM, "read"), (signal.SIGINT, "write")]
)
def test_told_to_end_it_leaves_nothing_half_written(number: signal.Signals, place: str, tmp_path: Path) -> None:
    """Stopped while it reads, or with the report half written: the old file, nothing beside it, 128 + signal."""
    report, fifo = tmp_path / "r.json", tmp_path / "in"
    report.write_text("old")
    os.mkfifo(fifo)
    stalls = "import os, time\nos.replace = lambda *names: (print('now', flush=True), time.sleep(60))\n"
    program = f"{stalls if place == 'write' else ''}import sys\nfrom analyzer.cli import main\nmain(sys.argv[1:])"
    bundle = INCIDENT if place == "write" else fifo
    started = subprocess.Popen(
        [sys.executable, "-c", program, "analyze", str(bundle), "-o", str(report)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, cwd=ROOT,
    )  # fmt: skip
    with started:
        assert started.stdout is not None
        if place == "write":
            assert started.stdout.readline() == b"now\n"
            assert len(list(tmp_path.iterdir())) == 3
        else:
            writing = os.open(fifo, os.O_WRONLY)
            os.write(writing, b"[    1.000000] half a line")
            time.sleep(0.5)
        started.send_signal(number)
        assert started.wait(20) == 128 + number
    assert report.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"r.json", "in"}


def test_bundles_of_one_name_keep_their_reports(tmp_path: Path) -> None:
    """Two customers' `logs` give two reports."""
    for customer in ("a", "b"):
        (tmp_path / customer / "logs").mkdir(parents=True)
    done = run("analyze", tmp_path / "a/logs", tmp_path / "b/logs", "-o", f"{tmp_path}/out/", "-f", "json")
    assert done.returncode == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"logs.json", "logs-2.json"}


def test_an_empty_name_is_no_bundle() -> None:
    """`postmortem "$UNSET"` does not read the working directory."""
    for arguments in (["inventory", ""], [""]):
        done = run(*arguments)
        assert (done.returncode, "name is empty" in done.stderr) == (2, True)


def test_bare_dash_is_standard_input() -> None:
    """`… | postmortem -`, as the README has it."""
    line = f"cat {shlex.quote(str(INCIDENT / 'stackcount-tcp_push_one.txt'))} | {shlex.join(COMMAND)} -"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT, check=False)
    assert "735,110 of 735,405" in " ".join(done.stdout.split())


# Too much of everything


def devices(number: int) -> dict[str, str]:
    """Return `ip -d link` and `ethtool -k` of so many VLANs that lack what their parents have."""
    links = [
        f"{at + 1}: vlan{at}@eth{at}: <UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000\n"
        "    link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff promiscuity 0\n"
        f"    vlan protocol 802.1Q id {at % 4095} <REORDER_HDR> addrgenmode eui64\n"
        for at in range(number)
    ]
    features = [
        f"Features for {name}{at}:\ntx-checksumming: {state}\n\ttx-checksum-ip-generic: {state}\n"
        f"scatter-gather: {state}\n"
        for at in range(number)
        for name, state in (("vlan", "off"), ("eth", "on"))
    ]
    return {"link.txt": "$ ip -d link\n" + "".join(links), "k.txt": "".join(features)}


def test_thousands_of_devices() -> None:
    """The join of features, links and features is by equality, and the page shows some and counts the others."""
    found = case.read_texts(devices(3_000))
    findings, _, _ = judge.judge(found, book(), only=["vlan-offload-missing"])
    assert findings[0].evidence_rows >= 6_000
    page = render(ranking.rank(found, findings, [], []), "html")
    assert len(page) < 500_000
    assert b"5,992 more devices" in page


@pytest.mark.parametrize(
    ("name", "text", "beyond"),
    [
        ("k.txt", "Features for eth0:\n" + "tx-checksumming: on\n" * 200_000, "longer than any list"),
        ("k.diff", "--- a\n+++ b\n@@ -1,99999 +1,99999 @@\n" + "+tx-gso: on\n" * 60_000, "50,000 lines"),
    ],
)
def test_what_is_too_long_is_told(name: str, text: str, beyond: str) -> None:
    """Nothing is dropped silently."""
    found = case.read_texts({name: text})
    assert [gap.what for gap in found.gaps if beyond in gap.what]
    assert 0 < len(found.tables["offload"]) < 250_000


def test_hundreds_of_features_are_counted() -> None:
    """A made-up driver with thousands of features does not fill the page."""
    text = "Features for eth0:\ntx-checksumming: on\n" + "".join(f"tx-made-up-{at}: on\n" for at in range(3_000))
    page = render(ranking.rank(case.read_texts({"k.txt": text}), [], [], []), "html")
    assert b"2,801 more features" in page
    assert len(page) < 400_000


def test_false_marks_in_a_log_cost_and_move_nothing() -> None:
    """What looks like a prompt and is none leaves the log whole and its lines numbered, in one pass."""
    stall = "[    1.000000] ntpd: page allocation stalls for 272380ms, order:0, mode:0x24000c0(GFP_KERNEL)\n"
    text = stall * 100 + "$ =\n==> x\n" * 60_000 + stall.replace("1.0", "2.0")
    found = case.read_texts({"dmesg": text})
    assert found.tables["alloc_stall"]["line"].max() == text.count("\n")


def test_a_command_is_clipped() -> None:
    """A prompt continued for thousands of lines ends in a command a person can read."""
    found = case.read_texts({"typed.txt": "$ dmesg \\\n" * 20_000})
    assert max(len(entry.capture) for entry in found.inventory) <= 4_000


def test_directories_without_end(tmp_path: Path) -> None:
    """A tree deeper than any bundle is told, and what comes after it is read."""
    path = tmp_path / "a"
    path.mkdir()
    descriptor = os.open(path, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("a", dir_fd=descriptor)
        below = os.open("a", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "calls.txt").write_text("FUNC    COUNT\nf    7\n")
    found = case.read(tmp_path)
    assert len(found.tables["func_count"]) == 1
    assert ["levels" in gap.what for gap in found.gaps] == [True]


def test_a_socket_is_named_as_one(tmp_path: Path) -> None:
    """The error says what it is, not that it should be made readable."""
    os.mknod(tmp_path / "s", stat.S_IFSOCK | 0o600)
    with pytest.raises(AnalyzerError, match="socket"):
        case.read(tmp_path / "s")


# Rules from strangers, and odd surroundings


def test_odd_files_among_rules(tmp_path: Path) -> None:
    """A fifo, a directory, a link and a giant called x.yaml are named; none is waited for or read whole."""
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "link.yaml").symlink_to(tmp_path / "nowhere")
    with open(tmp_path / "giant.yaml", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(AnalyzerError) as broken:
        rules.load([tmp_path])
    told = str(broken.value)
    assert all(name in told for name in ("fifo.yaml", "folder.yaml", "link.yaml", "giant.yaml"))


def test_ascii_surroundings() -> None:
    """Where the terminal knows ASCII only, everything is still printed."""
    done = run("tables", PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0
    assert "\\u2026" in done.stdout


def test_nothing_is_written_beside_the_input(tmp_path: Path) -> None:
    """The bundle's folder is the same afterwards, and so is every file's time of change."""
    bundle = poisoned(tmp_path / "b", PAYLOADS["script"])

    def seen() -> dict[str, tuple[int, int]]:
        return {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in (bundle, *bundle.iterdir())}

    before = seen()
    for format in ("html", "json", "text"):
        analyzer.open(bundle).report(format)
    assert seen() == before


@pytest.mark.parametrize("content", [b"", b"\n\n\n", b"\0" * 5000, bytes(range(256)) * 99])
def test_nothing_to_read(content: bytes, tmp_path: Path) -> None:
    """Empty and binary files, and a bundle of nothing but them, give a report that says so."""
    (tmp_path / "f").write_bytes(content)
    for bundle in (tmp_path, tmp_path / "f"):
        found = analyzer.open(bundle)
        assert not found.findings
        assert b"<html" in found.report("html")
        assert [entry.parser for entry in found.inventory] == [""]


def test_twenty_thousand_files_fit_on_a_page(tmp_path: Path) -> None:
    """The page stays usable, says how many it leaves out, and the JSON has them all."""
    texts = {f"logs/{at:05}.txt": "x\n" for at in range(20_000)}
    found = case.read_texts(texts)
    verdict = ranking.rank(found, [], [], [])
    page = render(verdict, "html")
    assert len(page) < 400_000
    assert b"18,000 more" in page or b"18000 more" in page
    assert len(json.loads(render(verdict, "json"))["inventory"]) == 20_000


@pytest.mark.parametrize(
    "stamp",
    [
        "Feb 29 12:00:00",
        "Feb 30 12:00:00",
        "Foo 12 12:00:00",
        "Jan  0 25:61:61",
        "0000-00-00T00:00:00+00:00",
        "0001-01-01T00:00:00+14:00",
        "1970-01-01T00:00:00+99:99",
        "9999-12-31T23:59:59.999999+00:00",
        "9999-12-31T23:59:59-23:59",
    ],
)
def test_dates_that_are_none(stamp: str) -> None:
    """A stamp nobody can have seen is no reason to lose the message."""
    message = "ntpd: page allocation stalls for 272380ms, order:0, mode:0x24000c0(GFP_KERNEL)"
    for uptime in ("    1.000000", "999999999999999999.000000"):
        found = judged({"kern.log": f"{stamp} h kernel: [{uptime}] {message}\n" * 3, "date.txt": f"$ date\n{stamp}\n"})
        findings, not_judged, not_found = judge.judge(found, book())
        verdict = ranking.rank(found, findings, not_judged, not_found)
        for format in ("html", "json", "text"):
            render(verdict, format)


def test_gaps_are_counted_where_there_are_too_many() -> None:
    """A capture of nothing but damage tells some of it and counts the rest, so that a report stays a report."""
    gaps = case.read_texts({"k.txt": "Features for eth0:\ntx-checksumming: on\n" + "x\n" * 5_000}).gaps
    assert len(gaps) == 1_001
    assert gaps[-1].what.startswith("4,000 more gaps")
