"""Kernel crashes and complaints: oops, BUG, general protection fault, panic, WARNING, sanitizers; 2.6.32 to 7.2.

    BUG: unable to handle kernel NULL pointer dereference at 0000000000000048
    Oops: 0002 [#1] SMP
    CPU: 5 PID: 2210 Comm: mount Tainted: G           O    4.19.0-9-amd64 #1
    RIP: 0010:frob_lookup+0x1c/0x90 [frobfs]
    Kernel panic - not syncing: Fatal exception

Table `oops`, one row per crash or complaint: kind oops, reason `unable to handle kernel NULL pointer dereference`,
number 1, function frob_lookup, module frobfs, comm mount, pid 2210, cpu 5, tainted "G O", kernel 4.19.0-9-amd64.

Heads come from arch/*/mm/fault.c and arch/*/kernel/traps.c, lib/bug.c, lib/list_debug.c, kernel/panic.c, mm/memory.c,
mm/page_alloc.c, mm/kasan/report.c, mm/kfence/report.c, lib/ubsan.c. `WARNING: at file:line func()` up to 3.10 (el6 with
taint), `WARNING: CPU: n PID: n at …` 3.13 to 6.12, `WARNING: file:line at func, CPU#n: comm/pid` in 7.2; `Oops: `
stands before `general protection fault` and `divide error` by 6.12. What else begins with `WARNING:` is prose.

Lines of one crash share the kernel's own number for it, `[#1]`; `settle` makes them one row, and the panic that follows
one incident with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.dump_stack import running
from parsers.kernel_log.message import Block, Event, Loss
from parsers.shapes import Column, Row, Table

TABLES = {
    "oops": Table(
        "one crash or complaint of the kernel",
        {
            "kind": Column(
                "str",
                "oops, gpf, bug (kernel BUG at), panic, warning, list_corruption, bad_page, slab_corruption, "
                "stack_overflow, atomic, spinlock, kasan, kfence, kmsan, kcsan, ubsan, memory_leak or other",
            ),
            "reason": Column("str", "what the kernel says happened, addresses and names of tasks left out"),
            "function": Column("str", "where: from the instruction pointer, or from `at func`, `in func`"),
            "module": Column("str", "the module that function is of, missing for the kernel proper"),
            "file": Column("str", "source file and line, `fs/inode.c:511`, where printed"),
            "comm": Column("str", "the task that ran"),
            "pid": Column("Int64", "its pid"),
            "cpu": Column("Int64", "the CPU"),
            "tainted": Column("str", "taint letters of the kernel, or `Not tainted`"),
            "kernel": Column("str", "the kernel's release"),
            "number": Column("Int64", "how manieth crash of this boot, as printed: `[#1]`"),
            "incident": Column("str", "shared by a crash and the panic it led to"),
        },
    )
}

LITERALS = (
    b" [#",
    b"Oops[#",
    b"detected[#",
    b"nable to handle kernel ",
    b"ernel BUG at ",
    b"BUG: ",
    b" overwritten",
    b"list_add corruption",
    b"list_del corruption",
    b"list_add double add",
    b"UBSAN: ",
    b"Kernel panic - not syncing",
    b"PANIC: double fault",
    b"Unhandled fault: ",
    b"WARNING: CPU: ",
    b"WARNING: at ",
    b", CPU#",
)

AHEAD = 120
"""How far below a head its registers are looked for; KASAN prints two stacks first, lockdep its locks."""
DIE_AHEAD = 14
"""How far below a head its `[#1]` is: page tables, a ftrace notice and `Modules linked in` stand between at most."""
TASK_AHEAD = 40

_HEX = r"(?:0x)?[0-9a-fA-F]"
_DIE = re.compile(
    r"(?P<reason>(?:Oops|Internal error|Kernel bug detected)(?::? [\w ,:()./-]{0,120}?)?|[a-z][\w ,()-]{2,60}?)"
    r"(?:,? (?:probably |maybe )?for (?:non-canonical )?address 0x[0-9a-f]{1,16})?"
    r"(?:(?:: [0-9a-f]{4,16})(?: ilc:\d)?|(?<=[a-zA-Z:])(?::? [0-9a-f]{1,16})?(?:, sig: \d{1,3})?)"
    r" ?\[#(?P<number>\d{1,6})\](?=:?\s*$|:? [A-Z])"
)
"""die(): the words, the error code, the number, then `SMP` and its like; `ticket [#41]` of a service is none."""
_FAULT = re.compile(
    r"(?:CPU \d{1,6} )?(?:BUG: )?(?P<reason>(?:[Uu]nable to handle (?:kernel )?"
    r"|[Kk]ernel NULL pointer dereference)(?:[A-Za-z<>-][A-Za-z<> -]{0,90}?)?)"
    rf"(?= at (?:virtual address )?{_HEX}| at\s+\(|,? (?:for )?address|, | \[ |\s*$| on (?:read|write|execute)"
    r"| for (?:data|instruction)| in virtual)"
)
_BUG_AT = re.compile(r"[Kk]ernel BUG at (?P<file>[\w./+-]{1,200}:\d{1,9})!?")
_PANIC = re.compile(r"Kernel panic - not syncing(?:: ?(?P<reason>.*))?")
_LIST = re.compile(r"(?P<reason>list_(?:add|del) (?:corruption|double add))\b")
_SANITIZER = re.compile(
    r"BUG: (?P<tool>KASAN|KFENCE|KMSAN|KCSAN): (?P<reason>[\w -]{1,60}?)(?: in (?P<function>[A-Za-z_][\w.$]*)|$| at )"
)
_UBSAN = re.compile(r"UBSAN: (?P<reason>.{1,80}?) in (?P<file>\S{1,200}?:\d{1,9})(?::\d{1,9})?(?=\s|$)")
_SLAB = re.compile(r"BUG (?P<cache>\S{1,64}) \((?:Not tainted|Tainted: [^()]{1,80})\): (?P<reason>[\w ]{1,60})")
_BUG = re.compile(r"BUG: (?P<reason>.{1,200})")
_WARN = (
    re.compile(
        r"WARNING: CPU: (?P<cpu>\d{1,6}) PID: (?P<pid>\d{1,18}) at (?P<file>\S{1,200}:\d{1,9})"
        r"(?: (?P<function>[A-Za-z_][\w.$]*)\+0x[0-9a-f/x]+(?:\(\))?(?: \[(?P<module>[\w-]+)\])?)?"
    ),
    re.compile(
        r"WARNING: at (?P<file>\S{1,200}:\d{1,9}) (?P<function>[A-Za-z_][\w.$]*)\+0x[0-9a-f/x]+"
        r"(?: \[(?P<module>[\w-]+)\])?\(\)"
    ),
    re.compile(
        r"WARNING: (?:\[.{1,120}\] )?(?P<file>\S{1,200}:\d{1,9}) at (?:0x[0-9a-f]+"
        r"|(?P<function>[A-Za-z_][\w.$]*)\+0x[0-9a-f/x]+(?: \[(?P<module>[\w-]+)\])?), "
        r"CPU#(?P<cpu>\d{1,6}): (?P<comm>.{1,32})/(?P<pid>\d{1,18})(?=\s*$)"
    ),
)
_AT = r"(?P<function>[A-Za-z_][\w.$]*)\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[(?P<module>[\w-]{1,64})[\s\]])?"
_POINTER = re.compile(
    rf"(?:RIP:? (?:00[01][0-9a-f]:)?|EIP:? (?:is at )?|IP: |PC is at |pc : |NIP |epc\s*: (?:{_HEX}+ )?|ip is at "
    rf"|Krnl PSW : [0-9a-f ]{{16,40}}\()\s*(?:\[<?[0-9a-f]+>?\]\s*)*{_AT}"
)
_END = "---[ end trace"
_CUT_HERE = ("------------[ cut here ]", _END)
_TORN = re.compile(r"(?<=\S )\[ *\d{1,7}\.\d{6}\](?:\[ *[CT]\d+\])? ")
_ADDRESS = re.compile(rf"\b{_HEX}{{6,16}}\b|\(ptrval\)|\(null\)")

OF_OTHERS = ("soft lockup", "workqueue lockup")
"""What `BUG: ` also begins, and `lockup` reads."""
_NOT_CRASHES = re.compile(
    r"\[? ?BUG: (?:MAX_(?:LOCK|STACK)\w+ too low|looking up invalid subclass"
    r"|key \S{1,64} (?:not in \.data|has not been registered))"
)
"""lockdep says that it is out of memory or turned off: nothing is wrong with the kernel."""

_KINDS = (
    ("bad_page", re.compile(r"Bad (?:page|rss-counter|pagetable|swap)", re.I)),
    ("atomic", re.compile(r"scheduling while atomic|sleeping function called|using \S+ in preemptible", re.I)),
    ("spinlock", re.compile(r"(?:spinlock|rwlock|mutex|rwsem|write-lock|read-lock)\b")),
    ("stack_overflow", re.compile(r"stack guard page was hit|stack overflow")),
    ("memory_leak", re.compile(r"memory leak")),
    ("list_corruption", re.compile(r"corrupted list")),
    ("slab_corruption", re.compile(r"Bad usercopy|Poison overwritten")),
)
CORRUPT = ("list_corruption", "bad_page", "slab_corruption", "stack_overflow", "kasan", "kfence")
_SEVERITY = {"panic": "critical", "warning": "low", "atomic": "medium", "spinlock": "high", "other": "medium"}
_SEVERITY |= dict.fromkeys(("oops", "gpf", "bug", *CORRUPT), "high")
NUMBERED = ("oops", "gpf", "bug", "list_corruption", "stack_overflow")
"""What ends in die() and so is given a number."""

BENIGN = (
    "kernel/watchdog.c", "kernel/watchdog_hld.c", "net/sched/sch_generic.c", "kernel/rcu/tree_stall.h",
)  # fmt: skip
"""WARN()s that are the form of another family's report: hard lockup, NETDEV WATCHDOG, RCU stall."""

WATCHERS = (
    (("softlockup:",), "soft_lockup"),
    (("hung_task:",), "hung_task"),
    (("Hard LOCKUP", "Watchdog detected hard LOCKUP"), "hard_lockup"),
    (("RCU Stall",), "rcu_stall"),
    (("Out of memory", "System is deadlocked on memory"), "oom_kill"),
)
"""What panic() is told by a watchdog, to the table of that watchdog's report: the last one before is its cause."""


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield the crash or complaint whose head, or whose numbered `Oops: … [#1]` line, is block[0].

    A head that another message was printed into is told as damage too; what it says is still counted.
    """
    text = block[0].text.lstrip(" >")
    row = _head(text)
    if not row or (row["kind"] == "other" and not block[0].ended):  # what it would have said is not known
        return
    if _TORN.search(text):
        yield Loss("another message is printed into this line: the report is torn")
    if not block[0].ended and text.endswith(f"/{row.get('pid')}"):
        del row["pid"]  # its last digits may be lost
    _look_ahead(row, block)
    yield _event(row)


def _head(text: str) -> Row:
    """Return kind, reason and what else the head line says, nothing for another line."""
    if text.startswith("WARNING: "):
        return _warning(text)
    if (panic := _PANIC.match(text)) or (panic := re.match(r"PANIC: (?P<reason>double fault)", text)):
        kind = "panic" if text.startswith("K") else "oops"
        return {"kind": kind, "reason": (panic["reason"] or "no reason given").strip(" .!")}
    for pattern, kind in ((_BUG_AT, "bug"), (_LIST, "list_corruption"), (_SANITIZER, ""), (_UBSAN, "ubsan")):
        if found := pattern.match(text):
            facts = {name: value for name, value in found.groupdict().items() if value and name != "tool"}
            if facts.get("file", "").startswith("lib/list_debug.c"):  # its own line may be another message's victim
                kind, facts["reason"] = "list_corruption", "list corruption"
            reason = facts.get("reason", "kernel BUG")
            return {"kind": kind or found["tool"].lower(), **facts, "reason": reason.strip()}
    if slab := _SLAB.match(text):
        return {"kind": "slab_corruption", "reason": slab["reason"].strip()}
    if fault := _FAULT.match(text):
        return {"kind": "oops", "reason": fault["reason"].strip()}
    if text.startswith("Unhandled fault: "):
        return {"kind": "oops", "reason": text.partition(" (")[0].strip()[:120]}
    if "[#" in text and (die := _DIE.match(text)):
        reason = re.sub(r"^Oops: (?=[A-Za-z]{3})", "", die["reason"]).strip(" :")
        return {"kind": _of_die(reason), "reason": reason, "number": int(die["number"])}
    return _complaint(text)


def _warning(text: str) -> Row:
    """Return the row of a WARN() in any of its three eras."""
    for pattern in _WARN:
        if found := pattern.match(text):
            row: Row = {name: value for name, value in found.groupdict().items() if value}
            row |= {name: int(row[name]) for name in ("cpu", "pid") if name in row}
            kind = "list_corruption" if row["file"].startswith("lib/list_debug.c") else "warning"
            return {"kind": kind, "reason": "WARN()", **row}
    return {}


def _of_die(reason: str) -> str:
    """Return the kind of a numbered crash."""
    if "general protection" in reason:
        return "gpf"
    return "bug" if "BUG" in reason else "oops"


def _complaint(text: str) -> Row:
    """Return the row of another line that begins with `BUG:`."""
    found = _BUG.match(text.removeprefix("[ "))
    if not found or _NOT_CRASHES.match(text) or any(other in text for other in OF_OTHERS):
        return {}
    reason = _ADDRESS.sub("…", found["reason"]).strip(" !]")
    kind = next((kind for kind, pattern in _KINDS if pattern.search(reason)), "other")
    return {"kind": kind, "reason": re.split(r": | on CPU#|, |  | in process | mm:", reason)[0][:120]}


def _look_ahead(row: Row, block: Block) -> None:
    """Add the crash's number, the task and the function from the lines after the head, up to the next head."""
    ahead = TASK_AHEAD if row["kind"] == "panic" else AHEAD
    for place, message in enumerate(block[: ahead + 1]):
        text = message.text.lstrip(" >")
        if place and text.startswith(_END if row["kind"] == "list_corruption" else _CUT_HERE):
            break
        if "[#" in text and (die := _DIE.match(text)):
            number = int(die["number"])
            if row["kind"] not in NUMBERED or place > DIE_AHEAD or row.setdefault("number", number) != number:
                break
        elif place and (head := _head(text)) and _begins_anew(row, head):
            break
        if "tainted" not in row and (task := running(text)):
            _add_task(row, task._asdict())
        if "function" not in row and row["kind"] != "panic" and (pointer := _POINTER.match(text)):
            row |= {name: value for name, value in pointer.groupdict().items() if value}


def _begins_anew(row: Row, head: Row) -> bool:
    """Return whether a head among another's lines begins a report of its own: a list's `kernel BUG at` does not."""
    return head["kind"] != row["kind"] or head["kind"] not in ("list_corruption", "oops")


def _add_task(row: Row, task: Row) -> None:
    """Add the task, CPU, taint and kernel, where the head did not name them."""
    for name, value in task.items():
        if value is not None:
            row.setdefault(name, value)


def _event(row: Row) -> Event:
    """Return the event: numbered crashes share an incident, WARN()s those of one place in the source."""
    kind = row["kind"]
    if "number" in row:
        return Event("oops", "high", "oops", row, ("die", row["number"]))
    severity = _SEVERITY.get(kind, "medium")
    if kind == "warning":
        known = row["file"].removeprefix("./").rpartition(":")[0].endswith(BENIGN)
        return Event(kind, "info" if known else severity, "oops", row, (kind, row["file"], row.get("function")))
    if kind == "list_corruption":  # the message and the WARN() it comes with
        return Event(kind, severity, "oops", row, (kind, row.get("pid")))
    name = "oops" if kind in ("gpf", "bug") else kind
    return Event(name, severity, "oops", row, None if kind == "panic" else (kind, row["reason"], row.get("function")))


def settle(rows: dict[str, list[Row]]) -> None:
    """Make one `oops` row of the lines of each numbered crash, and give a panic the incident of its crash, in place.

    `Fatal exception` is what panic() says after an oops, `panic_on_warn set` after a WARN(), `softlockup: hung tasks`
    after a soft lockup. Every line keeps its row in `kernel_event`.
    """
    kept: list[Row] = []
    first: dict[tuple[object, ...], Row] = {}
    names: dict[str, str] = {}
    watched = [(words, rows.get(table, [])) for words, table in WATCHERS]
    last: dict[tuple[object, ...], Row] = {}
    for row in sorted(rows.get("oops", []), key=lambda row: int(row["line"])):
        place = (row.get("host"), row.get("boot"))
        if row["kind"] == "panic":
            before = last.get(place)
            if before and _led_to(before, row):
                names[row["incident"]] = before["incident"]
            for reports in (reports for words, reports in watched if row["reason"].startswith(words)):
                earlier = [one for one in reports if (one.get("host"), one.get("boot")) == place]
                if found := [one for one in earlier if int(one["line"]) <= int(row["line"])]:
                    names[row["incident"]] = max(found, key=lambda one: int(one["line"]))["incident"]
        elif row.get("number") is not None:
            head = first.setdefault((*place, row["incident"], row["number"]), row)
            if head is not row:
                head |= {name: value for name, value in row.items() if head.get(name) is None}
                continue
        kept.append(row)
        if row["kind"] != "panic":
            last[place] = row
    if "oops" in rows:
        rows["oops"][:] = kept
    for table in rows.values() if names else ():
        for row in table:
            if row.get("incident") in names:
                row["incident"] = names[row["incident"]]


def _led_to(before: Row, panic: Row) -> bool:
    """Return whether a panic says that it follows from the complaint before it, on the same CPU where both name one."""
    if before.get("cpu") is not None and panic.get("cpu") not in (None, before["cpu"]):
        return False
    reason = str(panic["reason"])
    if reason.startswith(("Fatal exception", "Oops: Fatal exception", "panic_on_oops", "Attempted to kill", "Aiee")):
        return before.get("number") is not None
    return reason.startswith(("panic_on_warn", "kasan.fault", "KASAN", "KFENCE")) or before["reason"] == "double fault"
