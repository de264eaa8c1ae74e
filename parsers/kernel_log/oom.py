"""The OOM killer: who asked, who was killed, what was freed, Linux 2.6.32 to 7.2.

    a.out invoked oom-killer: gfp_mask=0x24280ca(GFP_HIGHUSER_MOVABLE|__GFP_ZERO), nodemask=0, order=0, oom_score_adj=0
    oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,…,task=a.out,pid=9485,uid=0
    Out of memory: Kill process 9485 (a.out) score 999 or sacrifice child
    Killed process 9485 (a.out) total-vm:4168kB, anon-rss:84kB, file-rss:0kB, shmem-rss:0kB
    oom_reaper: reaped process 9485 (a.out), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB

Tables: `oom_kill`, a row per killed process; `oom_context`, a row per line printed before a kill that says who asked
and under which limit; `oom_task`, a row per task of the table the killer chose from.

A kill's context stands up to a thousand lines above it (stack, Mem-Info, one line per task), which is too far to read
ahead from the one to the other: `settle` joins the two after the whole capture was read.

The text comes from mm/oom_kill.c and mm/memcontrol.c. gfp flag names and the reaper came by 4.9, `oom-kill:` with
5.0; `Killed process` moved its UID about (el6, el7, 5.4) and stands on the `Out of memory:` line by 5.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.kernel_log.message import MAX_AHEAD, Block, Event, Loss
from parsers.shapes import Column, Row, Table

_ASKED = {
    "incident": Column("str", "id shared by the reports of one OOM kill"),
    "invoked_by": Column("str", "name of the task whose allocation ran out of memory"),
    "order": Column("Int64", "2^order pages were wanted"),
    "gfp_mask": Column("str", "the allocation flags, hexadecimal, as printed"),
    "gfp_flags": Column("object", "tuple of the flags' names; missing before 4.9"),
    "constraint": Column("str", "what ran out: global, memcg, cpuset or memory_policy"),
    "memcg": Column("str", "path of the memory cgroup that hit its limit"),
}
_VICTIM = {
    "comm": Column("str", "name of the killed task"),
    "pid": Column("Int64", "its pid"),
    "uid": Column("Int64", "its user"),
}

TABLES = {
    "oom_kill": Table(
        "one process killed by the OOM killer",
        {
            **_ASKED,
            **_VICTIM,
            "oom_score_adj": Column("Int64", "the killed task's, where printed (since 5.4)"),
            "total_vm_kb": Column("Int64", "its virtual memory"),
            "anon_rss_kb": Column("Int64", "its anonymous pages"),
            "file_rss_kb": Column("Int64", "its file pages"),
            "shmem_rss_kb": Column("Int64", "its shared pages"),
            "reaped": Column("boolean", "the reaper freed its memory, or reported that it could not"),
        },
    ),
    "oom_context": Table(
        "one line printed before an OOM kill that says who asked or what ran out", {**_ASKED, **_VICTIM}
    ),
    "oom_task": Table(
        "one task of the table that the OOM killer chose from",
        {
            **_VICTIM,
            "total_vm_pages": Column("Int64", "its virtual memory, in pages"),
            "rss_pages": Column("Int64", "its resident memory, in pages"),
            "oom_score_adj": Column("Int64", "its adjustment, -1000 to 1000"),
        },
    ),
}

LITERALS = (
    b" invoked oom-killer: ",
    b"oom-kill:constraint=",
    b"ut of memory: Kill process ",
    b" killed as a result of limit of ",
    b"Killed process ",
    b"oom_reaper: reaped process ",
    b"oom_reaper: unable to reap pid:",
    b" uid  tgid total_vm ",
)

REAPER_LINES = 60
"""How far below a kill its reaper line is looked for: it comes within 2 s, among whatever else is logged."""

_INVOKED = re.compile(r"(?:^[\s>]*|\] )(\S.{0,31}?) invoked oom-killer: ")
_MASK = re.compile(r"gfp_mask=(0x[0-9a-f]+)(?:\(([^()]*)\)|(?=[,\s]|$))")
_ORDER = re.compile(r"\border=(-?\d{1,18})(?=,|\s|$)")
_CONSTRAINT = re.compile(r"oom-kill:constraint=CONSTRAINT_(\w+),")
_OOM_MEMCG = re.compile(r"oom_memcg=(.*?),task_memcg=")
_CHOSEN = re.compile(r"task=([^,]*(?:,[^=]*)?),pid=(\d{1,18}),uid=(\d{1,18})(?=\s|$)")
_CHOICE = re.compile(
    r"(Memory cgroup o|O)ut of memory: Kill process (\d{1,18}) \((.*)\) score \d{1,18} or sacrifice child"
)
_LIMIT = re.compile(r"[Tt]ask in .* killed as a result of limit of (\S+)")
_KILLED = re.compile(
    r"Killed process (?P<pid>\d{1,18})(?:, UID (?P<uid>\d{1,18}))?,? \((?P<comm>.*?)\)(?=,|$|\s+(?:total-vm|vsz):|\s*$)"
)
_KILLED_PAIR = re.compile(r"\b(total-vm|vsz|anon-rss|file-rss|shmem-rss|UID):? ?(\d{1,18})(?:(kB)|(?=[,\s]))")
_KILLED_ADJ = re.compile(r"\boom_score_adj:(-?\d{1,18})")
_CONSUMED = {
    "total-vm": "total_vm_kb", "vsz": "total_vm_kb", "anon-rss": "anon_rss_kb", "file-rss": "file_rss_kb",
    "shmem-rss": "shmem_rss_kb", "UID": "uid",
}  # fmt: skip
_REAPED = re.compile(
    r"oom_reaper: (?:reaped process (?P<reaped>\d{1,18}) \((?P<comm>.*)\)|unable to reap pid:(?P<unable>\d{1,18}) )"
)
_TASK_HEADER = re.compile(r"\[\s*pid\s*\]\s+(uid\s+tgid\s+total_vm\s.*\bname)\s*")
_TASK_COLUMNS = {"uid": "uid", "total_vm": "total_vm_pages", "rss": "rss_pages", "oom_score_adj": "oom_score_adj"}
_TASK_ROW = re.compile(r"\s*\[\s*(\d{1,18})\]\s+(\S.*)")


def read(block: Block) -> Iterator[Event | Loss]:
    """Yield what block[0] says about an OOM kill; a line cut before the victim or the mask is told as damage."""
    text = block[0].text
    if _TASK_HEADER.search(text):
        yield from _tasks(block)
    elif event := _kill(block) or _reaper(text) or _context(text):
        yield event
    elif "oom" in text or "Killed process" in text or "Kill process" in text:
        yield Loss("this line of an OOM kill is cut or garbled")


def _kill(block: Block) -> Event | None:
    """Return the event of a `Killed process` line."""
    text = block[0].text
    found = _KILLED.search(text)
    # A name may itself stand in brackets, `((sd-pam))`: at the end of the line its last one may be missing.
    if not found or (found.end() == len(text) and "(" in found["comm"]):
        return None
    row: Row = {"pid": int(found["pid"]), "comm": found["comm"]}
    if found["uid"]:
        row["uid"] = int(found["uid"])
    for name, number, unit in _KILLED_PAIR.findall(text[found.end() :]):
        if bool(unit) == _CONSUMED[name].endswith("_kb"):
            row[_CONSUMED[name]] = int(number)
    if adjusted := _KILLED_ADJ.search(text, found.end()):
        row["oom_score_adj"] = int(adjusted[1])
    before = text[: found.start()].lower()
    if "out of memory" in before:
        row["constraint"] = "memcg" if "memory cgroup" in before else "global"
    reaped = _reaped(block, row["pid"])
    if reaped is not None:
        row["reaped"] = reaped
    return Event("oom_kill", "high", "oom_kill", row)


def _reaped(block: Block, pid: int) -> bool | None:
    """Return whether the reaper freed a victim's memory; None where it says nothing."""
    for message in block[1 : REAPER_LINES + 1]:
        found = _REAPED.search(message.text)
        if found and int(found["reaped"] or found["unable"]) == pid:
            return found["reaped"] is not None
    return None


def _reaper(text: str) -> Event | None:
    """Return the event of a reaper line: evidence of a kill also where the kill itself was not logged."""
    found = _REAPED.search(text)
    if not found:
        return None
    row: Row = {"pid": int(found["reaped"] or found["unable"])}
    if found["comm"]:
        row["comm"] = found["comm"]
    return Event("oom_reaper", "low" if found["reaped"] else "medium", row=row)


def _context(text: str) -> Event | None:
    """Return the event of a line that precedes a kill."""
    if invoked := _INVOKED.search(text):
        row = _request(text) | {"invoked_by": invoked[1]}
        return Event("oom_invoked", "medium", "oom_context", row) if "gfp_mask" in row else None
    if constraint := _CONSTRAINT.search(text):
        return Event("oom_constraint", "info", "oom_context", _constraint(text, constraint[1]))
    if choice := _CHOICE.search(text):
        row = {"constraint": "global" if choice[1] == "O" else "memcg", "pid": int(choice[2]), "comm": choice[3]}
        return Event("oom_choice", "info", "oom_context", row)
    if limit := _LIMIT.search(text):
        return Event("oom_limit", "info", "oom_context", {"constraint": "memcg", "memcg": limit[1]})
    return None


def _request(text: str) -> Row:
    """Return order and flags of the allocation."""
    row: Row = {}
    if mask := _MASK.search(text):
        row["gfp_mask"] = mask[1]
        if mask[2] is not None:
            row["gfp_flags"] = tuple(flag for flag in mask[2].split("|") if flag)
    if order := _ORDER.search(text):
        row["order"] = int(order[1])
    return row


def _constraint(text: str, name: str) -> Row:
    """Return what an `oom-kill:` line says; its task comes last, so a line cut before has none."""
    row: Row = {"constraint": "global" if name == "NONE" else name.lower()}
    if memcg := _OOM_MEMCG.search(text):
        row["memcg"] = memcg[1]
    if chosen := _CHOSEN.search(text):
        row |= {"comm": chosen[1], "pid": int(chosen[2]), "uid": int(chosen[3])}
    return row


def _tasks(block: Block) -> Iterator[Event | Loss]:
    """Yield the task table under the header block[0], its columns named by that header."""
    header = _TASK_HEADER.search(block[0].text)
    names = header[1].split() if header else []
    rows: list[tuple[str, Row]] = []
    for message in block[1:]:
        found = _TASK_ROW.fullmatch(message.text)
        if not found:
            break
        cells = found[2].rstrip().split(maxsplit=len(names) - 1)
        # The name is the last cell; one may be empty or hold blanks, so numbers are counted from the left.
        if len(cells) < len(names) - 1 or not all(
            re.fullmatch(r"-?\d{1,18}", cell) for cell in cells[: len(names) - 1]
        ):
            yield Loss(f"the OOM task table is cut or garbled at line {message.number}")
            break
        rows.append(("oom_task", _task(message.number, int(found[1]), dict(zip(names, cells, strict=False)))))
    if len(rows) == len(block) - 1 >= MAX_AHEAD - 1:
        yield Loss(f"the OOM task table is longer than the {len(rows)} tasks that were read")
    yield Event("oom_tasks", "info", lines=len(rows) + 1, more=rows)


def _task(line: int, pid: int, cells: dict[str, str]) -> Row:
    """Return the row of one task."""
    row: Row = {"line": line, "pid": pid}
    row |= {column: int(cells[name]) for name, column in _TASK_COLUMNS.items() if name in cells}
    return row | ({"comm": cells["name"]} if "name" in cells else {})


def settle(rows: dict[str, list[Row]]) -> None:
    """Fill each `oom_kill` row of one capture with what the `oom_context` rows before it say, in place.

    A kill takes the context lines since the kill before it on the same host and boot; a context that names another
    victim is not its own. What the kill's own line says stands.
    """
    waiting: dict[tuple[object, object], list[Row]] = {}
    kills = {id(row) for row in rows.get("oom_kill", [])}
    for row in sorted([*rows.get("oom_kill", []), *rows.get("oom_context", [])], key=lambda row: row["line"]):
        place = (row.get("host"), row.get("boot"))
        if id(row) not in kills:
            waiting.setdefault(place, []).append(row)
            continue
        for context in reversed(waiting.pop(place, [])):
            if context.get("pid", row["pid"]) == row["pid"]:
                given = {name: context[name] for name in (*_ASKED, "uid") if name != "incident" and name in context}
                row |= {name: value for name, value in given.items() if row.get(name) is None}
            if "invoked_by" in context:
                break  # what stands before this invocation belongs to an earlier one, which killed nobody
