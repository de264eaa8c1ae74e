"""Tables derived from other tables, for what the rule language is too small to work out."""

from __future__ import annotations

from parsers.shapes import Column, Table

TABLES = {
    "busy_period": Table(
        "sends, then receives, on one connection until it is idle again",
        {
            "connection": Column("str", "the connection: `local > peer`, or pid and descriptor"),
            "comm": Column("str", "the process that sends"),
            "pid": Column("Int64", "its process id"),
            "queued": Column("boolean", "whether a request was sent before the answer to an earlier one had come"),
            "latency_s": Column("Float64", "from the first send to the last receive"),
            "first_verb": Column("str", "the first word of the first request, where its text was captured"),
            "last_verb": Column("str", "the first word of the last request, where its text was captured"),
            "released_together": Column("boolean", "whether the answers came in one burst, once the first was ready"),
        },
    ),
}
CAPTURES = {
    "busy_period": (
        "the system calls, or the packets, of shared connections",
        "strace -f -tt -T -yy -e trace=network,read,write -p PID",
    ),
}
