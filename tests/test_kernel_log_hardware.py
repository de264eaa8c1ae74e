"""Network devices, disks, memory and limits of the network stack, as kernels of every era report them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import analyzer
from parsers import kernel_log
from parsers.kernel_log import block, filesystem, machine, netdev, network, nvme
from parsers.shapes import Capture, Parsed

FIELD = Path(__file__).resolve().parents[2] / "shared" / "field-data"
FAMILIES = (netdev, block, filesystem, nvme, machine, network)
CORPUS = Path(__file__).parent / "corpus" / "kernel_log"


def parsed(text: str, *, end: str = "\n") -> Parsed:
    """Return what is read from a kernel log of these lines, each given a stamp."""
    lines = [f"[{index + 100:5d}.000000] {line}" for index, line in enumerate(text.split("\n"))]
    return kernel_log.parse(Capture("dmesg", 1, "dmesg", [("\n".join(lines) + end).encode()]))


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a row without some columns."""
    return {name: value for name, value in row.items() if name not in names}


def only(text: str, table: str) -> dict[str, Any]:
    """Return the single row of a table, without the common columns."""
    rows = parsed(text).rows[table]
    assert len(rows) == 1, rows
    return without(rows[0], "line", "excerpt", "host", "boot", "uptime_s", "at", "incident")


NETDEV = {
    "NETDEV WATCHDOG: eth3: transmit timed out": {"device": "eth3"},
    "NETDEV WATCHDOG: p2p1 (ixgbe): transmit queue 47 timed out": {"device": "p2p1", "driver": "ixgbe", "queue": 47},
    "NETDEV WATCHDOG: eth1.7 (virtio_net): transmit queue 2 timed out 5004 ms": {
        "device": "eth1.7", "driver": "virtio_net", "queue": 2, "duration_ms": 5004,
    },
    "mlx5_core 0000:98:00.1 ens7f1np1: NETDEV WATCHDOG: CPU: 71: transmit queue 9 timed out 15733 ms": {
        "device": "ens7f1np1", "driver": "mlx5_core", "queue": 9, "duration_ms": 15733, "cpu": 71,
    },
    "virtio_net virtio0 eth0 (unregistering): NETDEV WATCHDOG: CPU: 0: transmit queue 1 timed out 5120 ms": {
        "device": "eth0", "driver": "virtio_net", "queue": 1, "duration_ms": 5120, "cpu": 0,
    },
    "tap4: NETDEV WATCHDOG: CPU: 5: transmit queue 0 timed out 6001 ms": {
        "device": "tap4", "queue": 0, "duration_ms": 6001, "cpu": 5,
    },
}  # fmt: skip

REQUESTS = {
    "end_request: I/O error, dev sdq, sector 1953525167": {"sector": 1953525167, "status": "I/O"},
    "end_request: critical target error, dev dm-11, sector 8": {"device": "dm-11", "status": "critical target"},
    "blk_update_request: critical medium error, dev sdq, sector 77": {"status": "critical medium"},
    "print_req_error: protection error, dev nvme2n1, sector 16": {"device": "nvme2n1", "status": "protection"},
    "blk_update_request: I/O error, dev sdq, sector 3 op 0x1:(WRITE) flags 0x800 phys_seg 2 prio class 0": {
        "operation": "WRITE", "sector": 3,
    },
    "timeout error, dev cciss!c0d1, sector 512 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2": {
        "device": "cciss!c0d1", "status": "timeout", "operation": "READ",
    },
    "device offline error, dev sdr, sector 24 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2": {
        "status": "device offline",
    },
    "blk_update_request: critical space allocation error, dev dm-2, sector 9 op 0x1:(WRITE) flags 0x0": {
        "status": "critical space allocation",
    },
    "end_request: I/O error, dev sdq, sector 18446744073709551615": {"device": "sdq", "sector": None},
}  # fmt: skip

NVME = {
    "nvme nvme4: I/O 17 QID 9 timeout, aborting": {"kind": "nvme_timeout", "device": "nvme4"},
    "nvme nvme4: I/O 17 (I/O Cmd) QID 9 timeout, aborting": {"kind": "nvme_timeout", "operation": "I/O Cmd"},
    "nvme nvme4: I/O tag 17 (3011) opcode 0x2 (I/O Cmd) QID 9 timeout, aborting req_op:READ(0) size:4096": {
        "kind": "nvme_timeout", "operation": "I/O Cmd",
    },
    "nvme nvme4: I/O tag 17 (3011) QID 0 timeout, disable controller": {
        "kind": "nvme_reset", "status": "disable controller",
    },
    "nvme nvme4: I/O 31 QID 0 timeout, completion polled": {"kind": "nvme_polled"},
    "nvme 0000:3b:00.0: I/O 6 QID 1 timeout, reset controller": {"kind": "nvme_reset", "device": "0000:3b:00.0"},
    "nvme nvme4: controller is down; will reset: CSTS=0x3, PCI_STATUS=0x2010": {
        "kind": "nvme_down", "status": "CSTS=0x3, PCI_STATUS=0x2010",
    },
    "nvme nvme4: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS read failed (134)": {
        "kind": "nvme_down", "status": "CSTS=0xffffffff, PCI_STATUS read failed",
    },
    "nvme nvme4: Device not ready; aborting initialisation, CSTS=0x0": {"kind": "nvme_dead"},
    "nvme nvme4: Removing after probe failure status: -19": {"kind": "nvme_dead"},
}  # fmt: skip

HARDWARE = {
    "CPU 7: Machine Check Exception:                5 Bank 6: f20000400010011a": {
        "kind": "mce", "cpu": 7, "bank": 6, "status": "0xf20000400010011a", "corrected": False,
    },
    "[Hardware Error]: CPU 1: Machine Check Exception: 4 Bank 4: fa00000000070f0f": {
        "cpu": 1, "bank": 4, "corrected": False,
    },
    "mce: [Hardware Error]: CPU 40: Machine Check: 0 Bank 13: cc003fc0000800c1": {
        "cpu": 40, "bank": 13, "corrected": True,
    },
    "[Hardware Error]: CPU:2\t(10:2:3) MC4_STATUS[-|CE|MiscV|-|AddrV|CECC]: 0x9c0840001a080a13": {
        "cpu": 2, "bank": 4, "corrected": True,
    },
    "[Hardware Error]: CPU:9 (17:1:2) MC16_STATUS[-|-|MiscV|AddrV|-|-|SyndV|UECC|Deferred|-|-]: 0x9c2031000000011b": {
        "cpu": 9, "bank": 16, "corrected": False,
    },
    "EDAC MC0: CE page 0x9f1c0, offset 0x140, grain 1, syndrome 0x0, row 3, channel 0, label \"\": e752x CE": {
        "kind": "memory", "memory_controller": 0, "corrected": True, "dimm": None, "events": 1,
    },
    "EDAC MC2: UE - no information available: INTERNAL ERROR": {"memory_controller": 2, "corrected": False},
    "EDAC MC5: 31 CE memory scrubbing error on CPU_SrcID#2_MC#1_Chan#0_DIMM#1 (channel:0 slot:1 page:0x2 offset:0x0)": {
        "memory_controller": 5, "events": 31, "dimm": "CPU_SrcID#2_MC#1_Chan#0_DIMM#1", "corrected": True,
    },
    "EDAC MC0: 1 UE Multi-bit ECC on unknown memory (node:0 card:0 module:1 page:0x4 offset:0x0 grain:0)": {
        "corrected": False, "dimm": "unknown memory",
    },
    "{12}[Hardware Error]: event severity: recoverable": {"kind": "firmware", "corrected": False},
    "Memory failure: 0x4a21e: recovery action for clean LRU page: Recovered": {
        "kind": "memory_failure", "device": "0x4a21e",
    },
    "CPU11: Package temperature is above threshold, cpu clock is throttled (total events = 9021)": {
        "kind": "thermal", "cpu": 11, "status": "Package", "events": 9021,
    },
    "CPU0: Temperature above threshold, cpu clock throttled": {"kind": "thermal", "cpu": 0, "events": None},
    "thermal_sys: Critical temperature reached(104 C),shutting down": {"kind": "thermal_shutdown"},
    "pcieport-driver 0000:00:03.0: PCIE Bus Error: severity=Corrected, type=Data Link Layer, id=0018(Receiver ID)": {
        "kind": "pcie", "device": "0000:00:03.0", "status": "Corrected, Data Link Layer", "corrected": True,
    },
    "bnxt 0000:80:01.0: AER: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Inaccessible, (x)": {
        "status": "Uncorrected (Non-Fatal), Inaccessible", "corrected": False,
    },
}  # fmt: skip

LIMITS = {
    "ip_conntrack: table full, dropping packet.": {"kind": "conntrack_full"},
    "nf_conntrack: nf_conntrack: table full, dropping packet": {"kind": "conntrack_full"},
    "nf_conntrack: nf_conntrack: table full in netns 4026533001, dropping packet": {"netns": "4026533001"},
    "Neighbour table overflow.": {"kind": "neighbour_full", "cache": None},
    "ipv4: Neighbour table overflow.": {"kind": "neighbour_full", "cache": "arp_cache"},
    "neighbour: arp_cache: neighbor table overflow!": {"cache": "arp_cache"},
    "possible SYN flooding on port 5432. Sending cookies.": {"port": "5432", "action": "Sending cookies"},
    "TCP: TCP: Possible SYN flooding on port 25. Dropping request.  Check SNMP counters.": {
        "port": "25", "action": "Dropping request",
    },
    "TCP: request_sock_TCPv6: Possible SYN flooding on port [2001:db8::7]:993. Sending cookies.": {"port": "993"},
    "TCP: out of memory -- consider tuning tcp_mem": {"kind": "tcp_memory"},
    "TCP: too many of orphaned sockets": {"kind": "tcp_orphans"},
    "Out of socket memory": {"kind": "socket_memory"},
}  # fmt: skip

FORMS = [
    (text, table, expected)
    for table, forms in (
        ("netdev_timeout", NETDEV),
        ("io_error", REQUESTS),
        ("io_error", NVME),
        ("machine_check", HARDWARE),
        ("network_limit", LIMITS),
    )
    for text, expected in forms.items()
]


@pytest.mark.parametrize(("text", "table", "expected"), FORMS, ids=lambda value: str(value)[:60])
def test_each_era_gives_its_row(text: str, table: str, expected: dict[str, Any]) -> None:
    """One line, one row, with the columns that the form prints."""
    row = only(text, table)
    assert {name: row.get(name) for name in expected} == expected


HARMLESS = """EDAC MC: Ver: 3.0.0
EDAC MC1: Giving out device to module i7core_edac.c controller i7 core #1: DEV 0000:fe:03.0
pcieport 0000:00:1c.0: AER: enabled with IRQ 122
acpi PNP0A08:00: _OSC: OS now controls [PCIeHotplug PME AER PCIeCapability LTR]
mce: CPU supports 20 MCE banks
mce: [Hardware Error]: TSC 0 ADDR 1000 MISC 86
nf_conntrack version 0.5.0 (16384 buckets, 65536 max)
TCP: Hash tables configured (established 8192 bind 8192)
EXT4-fs (sda2): re-mounted. Opts: errors=remount-ro
EXT4-fs (sda2): mounted filesystem with ordered data mode. Opts: errors=remount-ro
XFS (dm-0): Ending clean mount
nvme nvme0: 16/0/0 default/read/poll queues
sd 0:0:0:0: [sda] Attached SCSI disk
CPU3: Core temperature/speed normal
audit: type=1400 audit(1.1:2): apparmor="DENIED" operation="mount" error=-13"""


def test_healthy_lines_give_no_rows() -> None:
    """What a healthy boot prints of the same hardware is no report."""
    rows = parsed(HARMLESS).rows
    assert {name: rows[name] for name in ("netdev_timeout", "io_error", "machine_check", "network_limit")} == {
        "netdev_timeout": [], "io_error": [], "machine_check": [], "network_limit": [],
    }  # fmt: skip


def test_a_request_is_no_failure() -> None:
    """A shutdown that somebody asked for is kept apart from one that an error forced."""
    rows = parsed(
        "XFS (sdb1): User initiated shutdown received. Shutting down filesystem\n"
        "XFS (sdb2): Metadata I/O Error (0x4) detected at xfs_fs_goingdown+0x5a (fs/xfs/xfs_fsops.c:492).  "
        "Shutting down filesystem.\n"
        "XFS (sdb3): Log I/O Error Detected.  Shutting down filesystem"
    ).rows["io_error"]
    assert [row["kind"] for row in rows] == ["shutdown_request", "shutdown_request", "filesystem_shutdown"]


def test_a_failing_disk_is_one_incident() -> None:
    """Requests of one disk that fail again and again share an incident, those of another do not."""
    lines = [f"end_request: I/O error, dev sd{'ab'[index % 7 == 0]}, sector {index * 8}" for index in range(23)]
    rows = parsed("\n".join(lines)).rows["io_error"]
    assert len(rows) == 23
    assert {row["device"]: row["incident"] for row in rows} == {"sdb": "io_request-1", "sda": "io_request-2"}


def test_last_line_without_newline_loses_only_its_number() -> None:
    """A number that may lack digits is not told; the gap says so."""
    found = parsed("end_request: I/O error, dev sdb, sector 19535", end="")
    assert "sector" not in found.rows["io_error"][0]
    assert [gap.what for gap in found.gaps] == [
        "the capture ends inside this line: its sector or its operation may be cut"
    ]
    assert parsed("end_request: I/O error, dev sdb, sector 19535").rows["io_error"][0]["sector"] == 19535


def test_a_controller_that_goes_takes_everything_on_it_along(tmp_path: Path) -> None:
    """PCI Express leads, the rest of the chain is explained: controller, timeout, requests, file system."""
    (tmp_path / "dmesg").write_text(
        "[  633.900000] nvme 0000:c1:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Physical Layer, (x)\n"
        "[  634.100000] nvme nvme0: I/O 978 QID 3 timeout, aborting\n"
        "[  634.200000] nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10\n"
        "[  661.400000] I/O error, dev nvme0n1, sector 20480 op 0x1:(WRITE) flags 0x8800 phys_seg 1 prio class 2\n"
        "[  661.500000] XFS (nvme0n1p1): Log I/O Error (0x2) detected at xlog_ioend_work+0x60/0xb0 [xfs] "
        "(fs/xfs/xfs_log.c:1377).  Shutting down filesystem.\n"
    )
    case = analyzer.open(tmp_path)
    chain = {"pcie-errors", "nvme-controller-down", "nvme-timeout", "io-errors", "filesystem-shutdown"}
    assert {finding.rule for finding in case.findings} == chain
    assert case.candidates[0].finding.rule == "pcie-errors"


OWN = ("netdev_timeout", "io_error", "machine_check", "network_limit")
FILES = (
    "netdev-watchdog-three-forms", "disk-failing-five-eras", "filesystem-stops-after-errors",
    "nvme-controller-goes-down", "hardware-errors-both-eras", "network-limits-all-forms",
)  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_cut_anywhere_invents_nothing(name: str) -> None:
    """Every row of a cut capture is one of the whole capture's, or a gap at its line says what it lost."""
    text = (CORPUS / f"{name}.txt").read_bytes().split(b"\n", 1)[1]
    whole = kernel_log.parse(Capture("m", 1, "dmesg", [text])).rows
    known = {(table, repr(without(row, "excerpt", "incident"))) for table in OWN for row in whole[table]}
    for cut in range(0, len(text), 7):
        part = kernel_log.parse(Capture("m", 1, "dmesg", [text[:cut]]))
        told = {gap.line for gap in part.gaps}
        last = text[:cut].count(b"\n") + 1
        for table in OWN:
            for row in part.rows.get(table, []):
                here = (table, repr(without(row, "excerpt", "incident")))
                sense = row.get("kind") == "sense" and last - row["line"] <= block.SENSE_LINES
                assert here in known or row["line"] in told or sense, (cut, row)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80), st.sampled_from(FORMS), st.integers(0, 90))
def test_any_text_around_a_message_is_read(noise: str, form: tuple[str, str, dict[str, Any]], cut: int) -> None:
    """Garbled messages never raise."""
    parsed(form[0][:cut] + noise + form[0][cut:])
    parsed(noise + form[0], end="")


@given(
    st.integers(0, 1 << 62),
    st.sampled_from(["sda", "dm-12", "nvme0n1", "mmcblk0", "vdb"]),
    st.sampled_from(["READ", "WRITE"]),
)
def test_printed_requests_are_read_back(sector: int, device: str, operation: str) -> None:
    """What the kernel's own format prints comes back."""
    for text in (
        f"I/O error, dev {device}, sector {sector} op 0x0:({operation}) flags 0x0 phys_seg 1 prio class 2",
        f"blk_update_request: I/O error, dev {device}, sector {sector} op 0x0:({operation}) flags 0x0 phys_seg 1",
    ):
        row = only(text, "io_error")
        assert (row["sector"], row["device"], row["operation"]) == (sector, device, operation)


SEEN = re.compile(
    rb"(?:I/O|medium|target|transport) error, dev \w|conntrack: table full|NETDEV WATCHDOG: "
    rb"|EDAC MC\d+: (?:\d+ )?[CU]E\b|Hardware Error\]: CPU|Possible SYN flooding"
    rb"|neighbou?r table overflow|Buffer I/O error on dev"
)
"""An oracle of its own: what somebody would grep for."""


@pytest.mark.skipif(not FIELD.exists(), reason="the field captures are not in this checkout")
def test_every_line_grep_finds_in_field_data_is_a_row() -> None:
    """No I/O error, full table, watchdog or memory error of a real kernel log goes unseen."""
    lines = 0
    for path in sorted(FIELD.rglob("*")):
        if not path.is_file() or not SEEN.search(text := path.read_bytes()):
            continue
        text = text.split(b"\nREPORT:")[0]  # syzkaller's own words follow
        expected = {number for number, line in enumerate(text.split(b"\n"), 1) if SEEN.search(line)}
        rows = kernel_log.parse(Capture(path.name, 1, "dmesg", [text])).rows
        found = {row["line"] for table in OWN for row in rows.get(table, [])}
        assert expected <= found, path
        lines += len(expected)
    assert lines >= 3


@pytest.mark.skipif(not FIELD.exists(), reason="the field captures are not in this checkout")
def test_field_data_gives_no_other_rows() -> None:
    """The captures hold no failing disk, memory or link: whatever is found there must be what grep finds, too."""
    wider = re.compile(
        rb" error, dev |I/O error|table full|WATCHDOG|SYN flooding|Hardware Error|throttled|Sense Key"
        rb"|hostbyte|EXT4-fs error|BTRFS"
    )
    for path in sorted(FIELD.rglob("*")):
        if not path.is_file() or path.stat().st_size > 3_000_000:
            continue
        text = path.read_bytes()
        rows = kernel_log.parse(Capture(path.name, 1, "dmesg", [text])).rows
        lines = text.split(b"\n")
        for table in OWN:
            for row in rows.get(table, []):
                assert wider.search(lines[row["line"] - 1]), (path, row)
