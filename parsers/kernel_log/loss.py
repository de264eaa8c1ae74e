"""What a kernel log says about itself: how much of it is missing.

    ** 9 printk messages dropped ** [78972.506716] Node 0 Normal: …     inline 3.16..4.14, a line of its own 4.15+
    Aug 16 01:14:51 myhost systemd-journald[13812]: Missed 17171 kernel messages
    [  641.271223] oom_kill_process: 132 callbacks suppressed

Each makes a gap and a row of `log_loss`. Formats: `console_unlock` and `console_emit_next_record` in
kernel/printk/printk.c, `___ratelimit` in lib/ratelimit.c, journald-kmsg.c and journald-rate-limit.c of systemd.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.message import Block, Loss
from parsers.shapes import Column, Row, Table

TABLES = {
    "log_loss": Table(
        "a marker of lost messages",
        {
            "kind": Column("str", "who lost them: journald, printk, ratelimit, bcc, perf, or the suppressed report"),
            "lost": Column("Int64", "how many messages or events, missing where the marker does not say"),
            "source": Column("str", "whose messages, where the marker names it: a kernel function, a service"),
            "of": Column("str", "the kind of kernel_event whose count this makes a floor: alloc_stall, hung_task, …"),
            "markers": Column("Int64", "how many markers this row stands for: 1, more in the last row of a kind"),
        },
    )
}

LITERALS = (
    b" printk messages dropped **",
    b"printk: dropped ",
    b"dropped messages **",
    b"replaying previous printk message",
    b" kernel messages",
    b" callbacks suppressed",
    b"Suppressed ",
)

DROPPED = re.compile(r"\*\* (\d{1,18}) (?:printk messages dropped|dropped messages) \*\*")
PRINTK = re.compile(r"(?:printk: )?dropped (\d{1,18}) messages")
JOURNALD = re.compile(r"Missed (\d{1,18}) kernel messages")
SERVICE = re.compile(r"Suppressed (\d{1,18}) messages from (\S+?)\.?$")
RATELIMIT = re.compile(r"(?:[\w.-]+: )*?([\w.-]+): (\d{1,18}) callbacks suppressed")

REPORTS = {
    "__alloc_pages_slowpath": "alloc_stall", "warn_alloc": "alloc_failure", "warn_alloc_show_mem": "alloc_failure",
    "warn_alloc_failed": "alloc_failure", "slab_out_of_memory": "slab_alloc_failure", "oom_kill_process": "oom_kill",
    "__oom_kill_process": "oom_kill", "dump_header": "oom_kill", "blk_update_request": "io_error",
    "print_req_error": "io_error", "blk_print_req_error": "io_error", "buffer_io_error": "io_error",
    "end_buffer_async_write": "io_error", "quiet_error": "io_error", "lost_page_write": "io_error",
    "bad_page": "bad_page",
}  # fmt: skip
"""The function that a rate limit names (`___ratelimit(rs, __func__)`) to the kind of report it held back."""


def read(block: Block) -> Iterator[Loss]:
    """Yield what the anchor line says is lost."""
    text = block[0].text
    # The inline marker belongs to the message after it and is taken off with the prefix: look for it in the line.
    if (dropped := DROPPED.search(block[0].raw)) or (dropped := PRINTK.match(text)):
        yield Loss(f"printk dropped {dropped[1]} messages", "printk", int(dropped[1]))
    elif "replaying previous printk message" in text:
        yield Loss("printk lost its place and replayed a message", "printk")
    elif missed := JOURNALD.match(text):
        yield Loss(f"journald missed {missed[1]} kernel messages", "journald", int(missed[1]))
    elif service := SERVICE.match(text):
        what = f"journald suppressed {service[1]} messages from {service[2]}"
        yield Loss(what, "journald", int(service[1]), service[2])
    elif limited := RATELIMIT.match(text):
        what = f"the kernel's rate limit in {limited[1]} suppressed {limited[2]} messages"
        yield Loss(what, "ratelimit", int(limited[2]), limited[1], REPORTS.get(limited[1], ""))


def settle(rows: dict[str, list[Row]]) -> None:
    """Say what warn_alloc() held back, in place: it prints failures, and from 4.9 to 4.14 stalls, under one limit."""
    if rows.get("alloc_stall") and not rows.get("alloc_failure"):
        for row in rows.get("log_loss", []):
            if row.get("source") == "warn_alloc":
                row["of"] = "alloc_stall"
