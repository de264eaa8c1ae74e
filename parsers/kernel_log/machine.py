"""What the hardware reports of itself: machine checks, memory errors, heat, PCI Express, Linux 2.6.32 to 7.2.

    mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 9: 8c00004000010090
    [Hardware Error]: CPU:0 (17:1:1) MC15_STATUS[Over|CE|MiscV|AddrV|-|-|SyndV|CECC|-|-|-]: 0xdc2040000000011b
    EDAC MC0: CE page 0x2d8d, offset 0x680, grain 8, syndrome 0x8, row 2, channel 1, label "DIMM_B1": i3000 CE
    EDAC MC1: 1 CE memory read error on CPU_SrcID#1_Channel#2_DIMM#0 (channel:2 slot:0 page:0x12345 …)
    CPU3: Core temperature is above threshold, cpu clock is throttled (total events = 219)
    pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)

Table `machine_check`, one row per report: the second gives kind mce, cpu 0, bank 15, status 0xdc2040000000011b,
corrected True; the fourth gives kind memory, memory_controller 1, dimm CPU_SrcID#1_Channel#2_DIMM#0, events 1.

The text comes from arch/x86/kernel/cpu/mce/core.c (`mcheck/mce.c` before 4.21; `[Hardware Error]: ` since 2.6.36,
`Exception` only where one was raised), drivers/edac/mce_amd.c, drivers/edac/edac_mc.c (`CE page` up to 3.4, a number
of errors first since 3.5), drivers/acpi/apei/ghes.c, mm/memory-failure.c, arch/x86 therm_throt.c (`is above` since
5.6), drivers/thermal and drivers/pci/pcie/aer.c (`id=` up to 4.16, `Correctable` for `Corrected` since 6.8).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from parsers.kernel_log.message import Block, Event, Loss
from parsers.shapes import Column, Row, Table

TABLES = {
    "machine_check": Table(
        "one report of the hardware about itself",
        {
            "incident": Column("str", "id shared by the reports of one kind about one part"),
            "kind": Column(
                "str",
                "mce (a machine check bank), mce_logged (one left to mcelog or rasdaemon), mce_storm, memory (EDAC), "
                "firmware (what the BIOS hands on: APEI, GHES), memory_failure (a page taken out of use), thermal, "
                "thermal_shutdown, pcie",
            ),
            "cpu": Column("Int64", "the CPU"),
            "bank": Column("Int64", "the machine check bank"),
            "status": Column("str", "MCi_STATUS in hexadecimal, or the severity or layer as printed"),
            "corrected": Column("boolean", "whether the hardware corrected it; missing where the line does not say"),
            "memory_controller": Column("Int64", "the memory controller, MC0"),
            "dimm": Column("str", "the memory module's label"),
            "device": Column("str", "the PCI device, 0000:00:1c.0, or the page frame of a memory failure"),
            "events": Column("Int64", "how many errors this one line counts; for heat, since boot on this CPU"),
        },
    )
}

LITERALS = (
    b": Machine Check",
    b"_STATUS[",
    b"achine check events logged",
    b"CMCI storm detected",
    b"Fatal machine check",
    b"EDAC MC",
    b"event severity: ",
    b"Memory failure: 0x",
    b"cpu clock throttled",
    b"cpu clock is throttled",
    b"ritical temperature reached",
    b" Bus Error: severity=",
    b"AER: ",
)

UNCORRECTED = 1 << 61
"""MCi_STATUS.UC (Intel SDM 3B, 16.3.2.2): the error was not corrected."""
DEFERRED = 1 << 44
"""AMD: not corrected, and not consumed yet (arch/x86/include/asm/mce.h, MCI_STATUS_DEFERRED)."""
AER_LINES = 3
"""`AER: … error received` is followed at once by the report itself, unless the device has no details."""

Made = tuple[str, str, Row, tuple[object, ...]]
"""Kind, severity, row and what names the incident."""


def _mce(found: re.Match[str]) -> Made:
    corrected = not int(found["status"], 16) & UNCORRECTED
    row: Row = {"cpu": int(found["cpu"]), "bank": int(found["bank"]), "status": f"0x{found['status']}"}
    return "mce", "low" if corrected else "critical", row | {"corrected": corrected}, (row["cpu"], row["bank"])


def _amd(found: re.Match[str]) -> Made:
    flags, status = found["flags"].split("|"), found["status"].removeprefix("0x")
    # UE, CE, or neither where the error is deferred (drivers/edac/mce_amd.c).
    corrected = "CE" in flags or (not int(status, 16) & (UNCORRECTED | DEFERRED) and "UE" not in flags)
    row: Row = {"cpu": int(found["cpu"]), "bank": int(found["bank"]), "status": f"0x{status}", "corrected": corrected}
    return "mce", "low" if corrected else "critical", row, (row["cpu"], row["bank"])


def _logged(found: re.Match[str]) -> Made:
    return "mce_logged", "low", {}, ()


def _storm(found: re.Match[str]) -> Made:
    return "mce_storm", "medium", {"corrected": True}, ()


def _fatal(found: re.Match[str]) -> Made:
    return "mce", "critical", {"corrected": False, "status": found[0]}, (found[0],)


def _edac(found: re.Match[str]) -> Made:
    corrected = found["what"] == "CE"
    row: Row = {"memory_controller": int(found["mc"]), "corrected": corrected, "events": int(found["events"] or 1)}
    if label := (found["label"] or found["quoted"] or "").strip():
        row["dimm"] = label
    return "memory", "low" if corrected else "critical", row, (row["memory_controller"], label, corrected)


def _firmware(found: re.Match[str]) -> Made:
    # cper_severity_str(): recoverable, fatal, corrected, info
    corrected = found["level"] in ("corrected", "info")
    return (
        "firmware",
        "low" if corrected else "critical",
        {"status": found["level"], "corrected": corrected},
        (corrected,),
    )


def _page(found: re.Match[str]) -> Made:
    return "memory_failure", "high", {"device": found["page"], "corrected": False}, (found["page"],)


def _thermal(found: re.Match[str]) -> Made:
    row: Row = {"cpu": int(found["cpu"]), "status": (found["level"] or "Core").strip()}
    if found["events"]:
        row["events"] = int(found["events"])
    return "thermal", "low", row, (row["cpu"], row["status"])


def _too_hot(found: re.Match[str]) -> Made:
    return "thermal_shutdown", "critical", {"status": "critical temperature"}, ()


def _pcie(found: re.Match[str]) -> Made:
    corrected = found["severity"].startswith("Correct")
    row: Row = {"device": found["device"], "status": f"{found['severity']}, {found['layer']}", "corrected": corrected}
    level = "info" if corrected else "critical" if "(Fatal)" in found["severity"] else "high"
    return "pcie", level, row, (found["device"], corrected)


def _aer(found: re.Match[str]) -> Made:
    corrected = found["severity"].startswith("Correct")
    row: Row = {"device": found["device"] or found["port"], "status": found["severity"], "corrected": corrected}
    level = "info" if corrected else "critical" if "(Fatal)" in found["severity"] else "high"
    return "pcie", level, row, (row["device"], corrected)


_PCI = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]"
_SEVERITY = r"(?P<severity>Correct(?:ed|able)|Uncorrect(?:ed|able) \((?:Non-)?Fatal\))"
_AER = re.compile(
    rf"(?P<port>{_PCI}): AER: (?:Multiple )?{_SEVERITY} error (?:message )?received(?:: | from )"
    rf"(?:(?P<device>{_PCI})(?=\s|$)|id=[0-9a-f]{{4}}$)"
)
FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Made]], ...] = (
    (
        # 2.6.32 to 2.6.35 without `[Hardware Error]: `. A decoder's own copy of it says `Machine Check Event`.
        re.compile(
            r"CPU (?P<cpu>\d{1,5}): Machine Check(?: Exception)?: +[0-9a-f]{1,16} Bank (?P<bank>\d{1,3}): "
            r"(?P<status>[0-9a-f]{16})(?![0-9a-f])"
        ),
        _mce,
    ),
    (
        re.compile(
            r"CPU:? ?(?P<cpu>\d{1,5})[ :\t]{1,3}(?:\([0-9a-f:]{1,12}\) )?MC(?P<bank>\d{1,3})_STATUS"
            r"\[(?P<flags>[\w|.-]{1,80})\]: (?P<status>0x[0-9a-f]{16})"
        ),
        _amd,
    ),
    (re.compile(r"[Mm]achine check events logged"), _logged),
    (re.compile(r"CMCI storm detected"), _storm),
    (re.compile(r"Fatal machine check(?: on current CPU)?"), _fatal),
    (
        re.compile(
            r"EDAC MC(?P<mc>\d{1,4}): (?:(?P<events>\d{1,9}) )?(?P<what>CE|UE)(?:"
            r" page 0x[0-9a-f]{1,16}, offset .{1,120}? labels? \"(?P<quoted>[^\"]{0,120})\":"
            r"| - no information available|.{0,120}? on (?P<label>[^()]{1,200}?) ?\()"
        ),
        _edac,
    ),
    (
        re.compile(r"\[Hardware Error\]: +event severity: (?P<level>corrected|recoverable|fatal|info)(?=\s|$)"),
        _firmware,
    ),
    (re.compile(r"Memory failure: (?P<page>0x[0-9a-f]{1,16}): (?!.{0,60}already hardware poisoned)"), _page),
    (
        re.compile(
            r"CPU(?P<cpu>\d{1,5}): (?P<level>(?:Core|Package) )?[Tt]emperature (?:is )?above threshold, "
            r"cpu clock (?:is )?throttled(?: \(total events = (?P<events>\d{1,18})\)|$)"
        ),
        _thermal,
    ),
    (re.compile(r"[Cc]ritical temperature reached"), _too_hot),
    (
        # PCIE up to 2.6.35, `id=00e0(Receiver ID)` up to 4.16, CXL since 6.16.
        re.compile(
            rf"(?P<device>{_PCI}): (?:AER: )?(?:PCI[eE]|CXL) Bus Error: severity={_SEVERITY}, "
            r"type=(?P<layer>[A-Z][\w ]{1,40}),"
        ),
        _pcie,
    ),
)
DAMAGED = re.compile(
    r"CPU \d{1,5}: Machine Check(?! Event)|MC\d{1,3}_STATUS\[|EDAC MC\d{1,4}: (?:\d{1,9} )?[CU]E\b"
    r"|Bus Error: severity=|cpu clock (?:is )?throttled"
)


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield what the hardware reports in block[0]; a report cut before its numbers is told as damage."""
    text, ended = block[0].text.strip(), block[0].ended
    if found := _AER.search(text):
        if ended and _alone(block, found["device"] or ""):
            yield _event(_aer(found))
        return
    for pattern, made in FORMS:
        if found := pattern.search(text):
            yield _event(made(found))
            if not ended and found.end() == len(text):
                yield Loss("the capture ends inside this line: a number of it may be cut off")
            return
    if DAMAGED.search(text):
        yield Loss("this line reports a hardware error, but it is cut or garbled")


def _alone(block: Block, device: str) -> bool:
    """Return whether an announcement is all there is: else the device's report follows and is counted instead."""
    following = block[1 : AER_LINES + 1]
    return bool(following) and all(
        one.ended and not (" Bus Error: severity=" in one.text and device in one.text) for one in following
    )


def _event(made: Made) -> Event:
    """Return the event of one report."""
    kind, level, row, key = made
    return Event(f"hardware_{kind}", level, "machine_check", {"kind": kind, **row}, (kind, *key))
