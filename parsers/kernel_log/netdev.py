"""Network devices that stop sending, and links that come and go, as Linux 2.6.32 to 7.2 print them.

    NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out
    NETDEV WATCHDOG: eth0 (e1000e): transmit queue 0 timed out 5012 ms
    e1000e 0000:00:1f.6 eth0: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5012 ms
    e1000e: eth0 NIC Link is Down

Table `netdev_timeout`, one row per timeout: the last of the first three gives device eth0, driver e1000e, queue 0,
cpu 3, duration_ms 5012. A change of the link is an event of `kernel_event` only (`link_down`, `link_up`), one incident
for each device.

The text comes from dev_watchdog() in net/sched/sch_generic.c: without a queue up to 2.6.30, the second form since 6.5,
the third since 6.8 (and in 6.1's updates), where netdev_crit() puts driver, bus address and device in front. The link
is told by each driver, and by phy_print_status() in drivers/net/phy/phy.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.message import Block, Event, Loss
from parsers.shapes import Column, Row, Table

TABLES = {
    "netdev_timeout": Table(
        "one report of a transmit queue that does not make progress",
        {
            "incident": Column("str", "id shared by the reports of one device"),
            "device": Column("str", "the network device"),
            "driver": Column("str", "its driver, where the line names it"),
            "queue": Column("Int64", "the transmit queue"),
            "duration_ms": Column("Int64", "how long the queue had stood still; since 6.5"),
            "cpu": Column("Int64", "the CPU that noticed; since 6.8"),
        },
    )
}

LITERALS = (b"NETDEV WATCHDOG: ", b" Link is ")

_TIMEOUT = re.compile(
    r"(?:(?P<front>\S.{0,120}): )?NETDEV WATCHDOG: "
    r"(?:(?P<device>\S{1,40}) \((?P<driver>[^()]{0,60})\): |(?P<alone>\S{1,40}): (?=transmit)|CPU: (?P<cpu>\d{1,6}): )?"
    r"transmit (?:queue (?P<queue>\d{1,6}) )?timed out(?: (?P<time>\d{1,12}) ms)?"
)
# `igb 0000:04:00.0 eth0: igb: eth0 NIC Link is Down`, `tg3 0000:02:00.0: eth0: Link is down`, `eth0: Link is Up`
_LINK = re.compile(
    r"(?:.{0,80}[ :])?(?P<device>[A-Za-z][\w.-]{1,15}):? (?:NIC )?(?:(?:Copper|Fibre|SerDes) )?"
    r"Link is (?P<state>[Uu]p|[Dd]own)(?=$|[\s,.])"
)


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield the timeout or the change of a link that block[0] reports; a cut report is told as damage."""
    text = block[0].text
    if "NETDEV WATCHDOG: " in text:
        yield from _timeout(text, block[0].ended)
    elif link := _LINK.match(text.lstrip()):
        yield Event(f"link_{link['state'].lower()}", "info", repeat_of=("link", link["device"], link["state"].lower()))


def _timeout(text: str, ended: bool) -> Iterator[Event | Loss]:
    """Yield a timeout; the device goes on being reported every few seconds while it does not recover."""
    found = _TIMEOUT.search(text)
    if not found:
        yield Loss("this line reports a network device that timed out, but it is cut or garbled")
        return
    row: Row = {}
    if found["cpu"]:
        # netdev_crit(): `driver bus-address device: `, the device alone where it has no parent.
        words = re.sub(r" \([^()]*\)$", "", found["front"] or "").split()
        row = {"device": words[-1]} if words else {}
        if len(words) >= 3:
            row["driver"] = words[0]
    elif found["device"] or found["alone"]:
        row["device"] = found["device"] or found["alone"]
        if found["driver"]:
            row["driver"] = found["driver"]
    columns = (("queue", "queue"), ("time", "duration_ms"), ("cpu", "cpu"))
    row |= {column: int(found[name]) for name, column in columns if found[name]}
    yield Event("netdev_timeout", "high", "netdev_timeout", row, ("netdev_timeout", row.get("device")))
    if not ended and not found["time"]:
        yield Loss("the capture ends inside this line: how long the queue stood still may be cut off")
