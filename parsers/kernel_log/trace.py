"""Call traces: one row for each frame, innermost first, whatever the architecture and the age of the kernel.

    [78972.620140] Call Trace:
    [78972.620148]  [<ffffffff8142d668>] dump_stack+0x4d/0x65
    [  104.001515]  <EOI>  [<ffffffffbb0b85f7>] ? blocking_notifier_chain_cond_register+0x5f/0x5f

Addresses are printed up to 4.9, none from 4.10; `?` marks a word found on the stack that need not be a caller.
Formats: `show_trace_log_lvl` and `printk_stack_address` in arch/x86/kernel/dumpstack.c, arch/arm/kernel/traps.c,
arch/arm64/kernel/stacktrace.c, arch/powerpc/kernel/process.c, arch/s390/kernel/dumpstack.c, `%pB` in lib/vsprintf.c.
A header with no frame within CORRUPT_AFTER lines is damage and becomes a gap. Frames right after a loss marker are
read as a trace whose header is among what was lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.dump_stack import running
from parsers.kernel_log.message import Aside, Block, Event, Loss, Message
from parsers.shapes import Column, Row, Table

TABLES = {
    "stack_frame": Table(
        "one frame of one call trace or stack",
        {
            "event": Column("str", "the trace: its incident and its number in the capture"),
            "depth": Column("Int64", "0 is the innermost frame, the leaf"),
            "symbol": Column("str", "function, without compiler suffixes taken off"),
            "module": Column("str", "kernel module, missing for the kernel proper"),
            "offset": Column("Int64", "bytes into the function"),
            "reliable": Column("boolean", "False for a frame marked `?` or `(unreliable)`"),
            "report": Column("str", "kind of the report the trace was printed for, missing where there is none"),
            "comm": Column("str", "the task whose stack it is, where the header names it"),
            "pid": Column("Int64", "its pid"),
            "cpu": Column("Int64", "the CPU the trace is of"),
            "incident": Column("str", "as in kernel_event"),
        },
    )
}

HEADERS = (b"Call Trace:", b"Call trace:", b"Backtrace:")
LOST = (b" printk messages dropped **", b" kernel messages")
TASKS = (b"omm: ", b"NMI backtrace for cpu ", b"Task dump for CPU ", b"running task", b"task:")
OTHERS = (b"[ cut here ]", b"ysrq: ", b"SysRq : ")
"""A trace after one of these is not of a report before it."""
LITERALS = HEADERS + LOST + TASKS + OTHERS

CORRUPT_AFTER = 15
"""A header with no frame in so many lines is corrupted (the same measure as in syzkaller's reports)."""
MAX_FRAMES = 120
MAX_BETWEEN = 24
"""Register lines between two frames of one trace: an exception's registers and code take some 20."""

HEADER = re.compile(r"[0-9a-f\s]{0,90}(?:Call [Tt]race|Backtrace):\s?(.*)")
ADDRESS = r"\(?(?:\[<[0-9a-fA-F]{8,16}>\]|\[[0-9a-f]{8,16}\])"
MARK = r"</?[#\w]{2,20}>"
LEAD = rf"\s*(?:{MARK}\s*)*(?P<addresses>(?:{ADDRESS}\s*){{0,3}})(?P<doubt>\?\s*)?"
SYMBOL = r"(?P<symbol>[A-Za-z_.$][\w.$]{0,127})"
OFFSET = r"\+0x(?P<offset>[0-9a-f]{1,8})/0x[0-9a-f]{1,8}"
MODULE = r"(?:\s+\[(?P<module>[\w-]{1,64})(?:\s[0-9a-f]{20,40})?\])?"
FRAME = re.compile(LEAD + SYMBOL + OFFSET + MODULE + r"(?P<after>.*)")
BARE = re.compile(
    LEAD + SYMBOL + r"(?:\s+\(\S+:\d+.*|\s+\S+:\d+\s*(?:\[inline\]|\(discriminator.*)?|\s*)" + MODULE + r"$"
)
"""Symbol without offset: an address before it (no kallsyms), or a source line after it (decode_stacktrace.sh)."""
ARM = re.compile(rf"\s*{ADDRESS}\s*\({SYMBOL}(?:{OFFSET})?{MODULE}\) from .*")
ARM_PLAIN = re.compile(rf"\s*{SYMBOL}(?:{OFFSET})?{MODULE} from [\w.$]+\+0x")
SAME = "<Same stack as pid "
"""Android and some vendor kernels print this in place of the frames of a stack printed before."""
MARK_ONLY = re.compile(rf"\s*(?:{MARK}\s*)+$")
REGISTERS = re.compile(
    r"\s*(?:[RE]IP:? |Code: |[RE]SP:? |[RE][A-Z]{2}: |R\d\d: |[A-Z]S:? |CR\d: |DR\d: |FS: |EFLAGS: |ORIG_RAX"
    r"|PKRU: |pc : |lr : |sp : "
    r"|x\d+ ?: |pstate: |--- |Exception stack|NIP |LR |GPR\d\d: |=+$|\S+:\s+[0-9a-f]{8} |[0-9a-f]{4,5}: |\(|$)"
)

CPU_ONLY = re.compile(r"(?:NMI backtrace for cpu|Task dump for CPU) (?P<cpu>\d{1,6})")
TASK = re.compile(r"task:(?P<comm>.{1,15}?)\s*state:\S\s.*?pid:\s*(?P<pid>\d{1,9})")
RUNNING = re.compile(r"(?P<comm>\S.{0,14}?)\s+[A-Z]\s+running task\s+\d+\s+(?P<pid>\d{1,9})\s")


def read(block: Block) -> Iterator[Event | Loss | Aside]:
    """Yield the trace that begins at the anchor line, or whose task the anchor line names."""
    text = block[0].text
    if header := HEADER.match(text):
        # Old kernels print the first frame on the header's line.
        first = [block[0]._replace(text=header[1])] if header[1] else []
        yield from _trace(block, [*first, *block[1:]] if first else list(block[1:]), 0 if first else 1)
    elif "printk messages dropped" in block[0].raw or "kernel messages" in text:
        inline = frame(text) is not None
        frames = list(block if inline else block[1:])
        if frames and frame(frames[0].text):
            yield from _trace(block, frames, 0 if inline else 1)
    elif task := task_of(text):
        yield Aside("task", task)
    elif any(other.decode() in text for other in OTHERS):
        yield Aside("report", {})


def task_of(text: str) -> Row | None:
    """Return comm, pid and cpu as far as a line in front of a trace names them, None for another line."""
    if task := running(text):
        named: Row = {"comm": task.comm, "pid": task.pid}
        return named if task.cpu is None else named | {"cpu": task.cpu}
    for pattern in (CPU_ONLY, TASK, RUNNING):
        if found := pattern.match(text):
            facts: Row = dict(found.groupdict())
            return {name: value if name == "comm" else int(value) for name, value in facts.items() if value is not None}
    return None


def frame(text: str) -> Row | None:
    """Return symbol, module, offset and reliable of a frame line, None for another line."""
    found = FRAME.match(text) or ARM.match(text) or ARM_PLAIN.match(text)
    if not found:
        found = BARE.match(text)
        if not found or not (found["addresses"] or re.search(r":\d+", text)):
            return None
    row: Row = {"symbol": found["symbol"]}
    groups = found.groupdict()
    if groups.get("module"):
        row["module"] = groups["module"]
    if groups.get("offset"):
        row["offset"] = int(groups["offset"], 16)
    row["reliable"] = not groups.get("doubt") and "(unreliable)" not in (groups.get("after") or "")
    return row


def _trace(block: Block, messages: list[Message], offset: int) -> Iterator[Event | Loss]:
    """Yield the event of the frames in `messages`, which begin `offset` messages after the anchor."""
    rows: list[tuple[str, Row]] = []
    last = between = 0
    for place, message in enumerate(messages):
        if row := frame(message.text):
            row["depth"] = len(rows)
            rows.append(("stack_frame", row | {"line": message.number}))
            last, between = place, 0
            if len(rows) == MAX_FRAMES:
                break
        elif MARK_ONLY.match(message.text):
            last, between = (place if rows else last), 0
        elif not rows and place < CORRUPT_AFTER and not HEADER.match(message.text):
            continue
        elif rows and between < MAX_BETWEEN and REGISTERS.match(message.text):
            between += 1
        else:
            break
    if rows:
        yield Event("call_trace", "info", lines=last + offset + 1, more=rows, asks="task")
    elif not (messages and messages[0].text.lstrip().startswith(SAME)):
        yield Loss(f"a call trace without a frame in the {CORRUPT_AFTER} lines after its header")
