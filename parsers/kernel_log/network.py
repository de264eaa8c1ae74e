"""Limits of the network stack that were reached, as Linux 2.6.32 to 7.2 print them.

    nf_conntrack: nf_conntrack: table full, dropping packet
    neighbour: arp_cache: neighbor table overflow!
    TCP: request_sock_TCP: Possible SYN flooding on port 443. Sending cookies.  Check SNMP counters.
    TCP: out of memory -- consider tuning tcp_mem

Table `network_limit`, one row per message: kind conntrack_full, neighbour_full, syn_flood, tcp_memory, and further
route_cache_full and tcp_orphans. The third gives port "443", action "Sending cookies".

The text comes from net/netfilter/nf_conntrack_core.c (`ip_conntrack` in the oldest, doubled prefix since 4.9, network
namespace by 7.2), net/core/neighbour.c and net/ipv4/route.c (`Neighbour table overflow` up to 3.x), net/ipv6/route.c,
net/ipv4/tcp_input.c (`TCP: ` since 3.2, an address before the port since 6.5) and net/ipv4/tcp.c (`Out of socket
memory` up to 3.2, for orphans and memory alike). All but the SYN message pass net_ratelimit(): at most 10 in 5 s are
printed, so that their number is a floor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.message import Block, Event, Loss
from parsers.shapes import Column, Row, Table

TABLES = {
    "network_limit": Table(
        "one message that a limit of the network stack was reached",
        {
            "incident": Column("str", "id shared by the messages about one limit"),
            "kind": Column(
                "str",
                "conntrack_full, neighbour_full, route_cache_full, syn_flood, tcp_memory (tcp_mem is used up), "
                "tcp_orphans (closed by their process, not yet by TCP), socket_memory (either, up to 3.2)",
            ),
            "port": Column("str", "the listening port of a SYN flood; a name rather than a number"),
            "cache": Column("str", "which neighbour table: arp_cache, ndisc_cache"),
            "netns": Column("str", "inode number of the network namespace, where it is not the first; 7.2"),
            "action": Column("str", "what the kernel did about a SYN flood: Sending cookies, Dropping request"),
        },
    )
}

LITERALS = (
    b"_conntrack: table full",
    b"table overflow",
    b"Route cache is full",
    b"ossible SYN flooding on port ",
    b"ut of memory -- consider tuning tcp_mem",
    b"orphaned sockets",
    b"Out of socket memory",
)

_CONNTRACK = re.compile(r"(?:nf|ip)_conntrack: table full(?: in netns (?P<netns>\d{1,18}))?, dropping packet")
_NEIGHBOUR = re.compile(r"(?:(?P<cache>\w{1,40}): )?[Nn]eighbou?r table overflow(?=[.!\s]|$)")
_FLOOD = re.compile(
    r"[Pp]ossible SYN flooding on port (?:(?:\[[0-9a-fA-F:.]{2,45}\]|[\d.]{7,15}):)?(?P<port>\d{1,5})\."
    r"(?: (?P<action>[A-Z][a-z]{2,20} [a-z]{2,20})\.)?"
)
_OTHERS = (
    ("route_cache_full", re.compile(r"Route cache is full: consider increasing sysctl net\.ipv\d\.route\.max_size")),
    ("tcp_memory", re.compile(r"[Oo]ut of memory -- consider tuning tcp_mem")),
    ("tcp_orphans", re.compile(r"TCP: too many (?:of )?orphaned sockets")),
    ("socket_memory", re.compile(r"Out of socket memory")),
)
_LEVELS = {"conntrack_full": "medium", "neighbour_full": "medium", "syn_flood": "info", "tcp_memory": "high"}


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield the limit that block[0] says was reached; a line cut before its numbers is told as damage."""
    text = block[0].text
    if found := _CONNTRACK.search(text):
        yield _event("conntrack_full", {"netns": found["netns"]} if found["netns"] else {})
    elif found := _NEIGHBOUR.search(text):
        # `ipv4: Neighbour table overflow.` of 3.2 names the protocol, not the table: it is ARP's.
        cache = {"ipv4": "arp_cache", "ipv6": "ndisc_cache"}.get(found["cache"] or "", found["cache"])
        yield _event("neighbour_full", {"cache": cache} if cache and cache != "neighbour" else {})
    elif found := _FLOOD.search(text):
        row: Row = {"port": found["port"]}
        if found["action"]:
            row["action"] = found["action"]
        yield _event("syn_flood", row)
        if not block[0].ended and not found["action"]:
            yield Loss("the capture ends inside this line: what was done about the SYN flood is cut off")
    elif kinds := [kind for kind, pattern in _OTHERS if pattern.search(text)]:
        yield _event(kinds[0], {})
    elif "conntrack: table full" in text or "SYN flooding" in text:
        yield Loss("this line reports a limit of the network, but it is cut or garbled")


def _event(kind: str, row: Row) -> Event:
    """Return the event of a limit; the messages about one table or port are one incident."""
    key = (kind, *row.values())
    return Event(kind, _LEVELS.get(kind, "medium"), "network_limit", {"kind": kind, **row}, key)
