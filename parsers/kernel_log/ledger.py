"""Rows and counts of one capture: incidents get their names, repeats are kept up to a cap and counted beyond it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from parsers.kernel_log.message import Aside, Block, Event, Loss, Message
from parsers.shapes import Column, Gap, Row, Table, excerpt

TABLES = {
    "kernel_event": Table(
        "a recognised kernel message, repeats included",
        {
            "kind": Column("str", "what it is: rcu_stall, alloc_stall, tsc_warp, call_trace, boot, …"),
            "severity": Column("str", "info, low, medium, high or critical, by what the message itself says"),
            "cpu": Column("Int64", "the CPU it speaks of, where it names one"),
            "pid": Column("Int64", "the task's pid"),
            "comm": Column("str", "the task's name, up to 15 characters"),
            "text": Column("str", "the message without its prefix"),
            "incident": Column("str", "names what repeats of one stuck thing share: `rcu_stall-3`"),
            "repeats": Column(
                "Int64",
                "further messages of the incident that this row stands for: 0, or more where syslog or the cap on "
                "rows folded them. Rows plus the sum of this column is the exact number of messages",
            ),
        },
    )
}

KEPT_PER_INCIDENT = 200
"""Full rows kept from the start of an incident; beyond them the longest and the last."""
KEPT_PER_KIND = 5_000
"""Full rows kept of one kind; incidents that begin later are counted together as `<kind>-rest`."""
KEPT_PER_TABLE = 100_000
"""Rows kept of the tables that a message fills many rows of: stack frames, zones."""
KEPT_LOSSES = 200
"""Loss markers of one kind kept as rows and gaps; the rest is summed in one."""
NEAR_LINES = 64
"""A trace this many lines after a report, or after the last trace of it, still belongs to it: an oops prints some 40
lines of registers and code in between."""
SAME_HEADER_LINES = 2
MAX_TEXT = 1000

INSIDE_REPORTS = frozenset({"call_trace", "boot", "mem_info", "rcu_kthread_starved"})
"""What is printed between the head of a report and its trace, or stands by itself: no trace belongs to it."""

DURATIONS = ("duration_ms", "duration_s", "t_jiffies")


class Report(NamedTuple):
    """The report that a trace after it belongs to."""

    kind: str
    incident: str
    line: int


@dataclass(slots=True)
class Incident:
    """What was met of one incident."""

    name: str
    kept: int = 0
    longest_kept: float = -1.0
    folded: int = 0
    """Messages that have no row yet."""
    longest: tuple[float, int, list[tuple[str, Row]]] | None = None
    """(length, its own repeats, rows) of the longest message among those."""
    last: tuple[float, int, list[tuple[str, Row]]] | None = None


@dataclass(slots=True)
class Ledger:
    """Everything read from one capture so far."""

    member: str
    tables: Mapping[str, Table]
    """The declarations: which of them want `incident` and `report`."""
    rows: dict[str, list[Row]] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)
    _incidents: dict[tuple[object, ...], Incident] = field(default_factory=dict)
    _numbers: Counter[str] = field(default_factory=Counter)
    _kept: Counter[str] = field(default_factory=Counter)
    _losses: dict[tuple[str, str], list[Row]] = field(default_factory=dict)
    _unread: Counter[str] = field(default_factory=Counter)
    _asides: dict[tuple[str, str, str], tuple[int, Row]] = field(default_factory=dict)
    _reports: dict[tuple[str, str], Report] = field(default_factory=dict)
    _trace: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """First and last line of the last trace of each host and caller."""

    def add(self, event: Event, block: Block, boot: int, repeats: int) -> str:
        """Keep or count one event; return its incident's name, empty for a trace that was read before."""
        message = block[0]
        report = None
        if event.kind == "call_trace":
            first, last = self._trace.get((message.host, message.caller), (0, 0))
            if first <= message.number <= last:  # a loss marker glued to a frame of the trace before
                return ""
            self._trace[message.host, message.caller] = (message.number, max(row["line"] for _, row in event.more))
            report = self.report_of(message)
        if event.asks:
            self._take_over(event, message)
        incident = self._incident(event, message, boot, report)
        self._follow(event, message, incident.name, report)
        weight = max((float(event.row[name]) for name in DURATIONS if event.row.get(name) is not None), default=-1.0)
        limit = KEPT_PER_INCIDENT if not incident.name.endswith("-rest") else 0
        if incident.kept < limit and self._kept[event.kind] < KEPT_PER_KIND:
            incident.kept += 1
            self._kept[event.kind] += 1
            incident.longest_kept = max(incident.longest_kept, weight)
            self._put(self._rows(event, block, boot, incident.name, report, repeats))
            return incident.name
        incident.folded += 1 + repeats
        entry = (weight, repeats, self._rows(event, block, boot, incident.name, report, repeats, full=False))
        incident.last = entry
        if weight > (incident.longest[0] if incident.longest else incident.longest_kept):
            incident.longest = entry
        return incident.name

    def report_of(self, message: Message) -> Report | None:
        """Return the report that a trace beginning at this message belongs to."""
        # The stalled CPU's own trace is printed by that CPU, so under another caller than the report's.
        for caller in (message.caller, "") if message.caller else ("",):
            report = self._reports.get((message.host, caller))
            if report and 0 <= message.number - report.line <= NEAR_LINES:
                return report
        return None

    def _incident(self, event: Event, message: Message, boot: int, report: Report | None) -> Incident:
        """Return the incident an event belongs to, a new one where it is the first of it."""
        key: tuple[object, ...] | None = None
        if report:
            key = (event.kind, report.incident)
        elif event.repeat_of is not None:
            key = (message.host, boot, event.kind, event.repeat_of)
        if key is not None and (known := self._incidents.get(key)):
            return known
        if self._kept[event.kind] >= KEPT_PER_KIND:
            return self._incidents.setdefault(("rest", event.kind), Incident(f"{event.kind}-rest"))
        if report:
            name = report.incident
        else:
            self._numbers[event.kind] += 1
            name = f"{event.kind}-{self._numbers[event.kind]}"
        incident = Incident(name)
        if key is not None:
            self._incidents[key] = incident
        return incident

    def _follow(self, event: Event, message: Message, incident: str, report: Report | None) -> None:
        """Remember which report the traces after this event belong to."""
        if report:
            here = report._replace(line=self._trace[message.host, message.caller][1])
        elif event.kind in INSIDE_REPORTS or event.table in ("clock_event", "throttle"):
            return
        else:
            here = Report(event.kind, incident, message.number)
        if len(self._reports) > 10_000:
            self._reports.clear()
            self._trace.clear()
        self._reports[message.host, ""] = here
        if message.caller:
            self._reports[message.host, message.caller] = here

    def _take_over(self, event: Event, message: Message) -> None:
        """Give an event the facts it asks for, where a line shortly before told them."""
        line, facts = self._asides.get((message.host, message.caller, event.asks), (0, {}))
        if line and 0 <= message.number - line <= NEAR_LINES:
            event.row = facts | event.row
            for _, row in event.more:
                row.update({name: value for name, value in facts.items() if name not in row})

    def aside(self, aside: Aside, message: Message) -> None:
        """Remember what a line tells about those after it."""
        if aside.about == "report":
            self._forget_report(message)
            return
        if len(self._asides) > 10_000:
            self._asides.clear()
        key = message.host, message.caller, aside.about
        line, facts = self._asides.get(key, (0, {}))
        # `Task dump for CPU 26:` names the CPU, the line after it the task.
        together = facts | aside.facts if 0 <= message.number - line <= SAME_HEADER_LINES else aside.facts
        self._asides[key] = (message.number, together)

    def _forget_report(self, message: Message) -> None:
        """Let a trace after this message belong to no report before it."""
        self._reports.pop((message.host, ""), None)
        self._reports.pop((message.host, message.caller), None)

    def common(self, message: Message, boot: int) -> Row:
        """Return the columns every row has, from the line it stands in."""
        row: Row = {"line": message.number, "host": message.host or None, "boot": boot}
        return row | {"at": message.at, "uptime_s": message.uptime_s}

    def _rows(
        self,
        event: Event,
        block: Block,
        boot: int,
        incident: str,
        report: Report | None,
        repeats: int,
        *,
        full: bool = True,
    ) -> list[tuple[str, Row]]:
        """Return an event's rows, its first the one of kernel_event; without `full`, not those of further tables."""
        message = block[0]
        base = self.common(message, boot)
        base["excerpt"] = excerpt(one.raw for one in block[: max(event.lines, 1)])
        named = {name: event.row[name] for name in ("cpu", "pid", "comm") if event.row.get(name) is not None}
        own: Row = {"kind": event.kind, "severity": event.severity, "text": message.text.strip()[:MAX_TEXT]}
        rows = [("kernel_event", base | own | named | {"incident": incident, "repeats": repeats})]
        trace = f"{incident}/{self._numbers['call_trace event']}" if event.kind == "call_trace" else incident
        if event.kind == "call_trace":
            self._numbers["call_trace event"] += 1
        links = {"incident": incident, "report": report.kind if report else None, "event": trace}
        further = event.more if full else []
        for table, row in [(event.table, event.row), *further] if event.table else further:
            columns = self.tables[table].columns if table in self.tables else {}
            linked = {name: value for name, value in links.items() if name in columns}
            place = _stands_in(block, row["line"]) if row.get("line", message.number) != message.number else None
            here = base if place is None else self.common(place, boot) | {"excerpt": excerpt([place.raw])}
            rows.append((table, here | linked | row))
        return rows

    def _put(self, rows: list[tuple[str, Row]]) -> None:
        """Append rows to their tables; the row of kernel_event and the family's own always fit."""
        for place, (table, row) in enumerate(rows):
            kept = self.rows.setdefault(table, [])
            if place < 2 or len(kept) < KEPT_PER_TABLE:
                kept.append(row)
            else:
                self._unread[table] += 1

    def loss(self, loss: Loss, message: Message, boot: int) -> None:
        """Keep a loss as a gap and a row of log_loss; past the cap of its kind it is summed with the others."""
        if loss.kind in ("printk", "journald") and not loss.source:
            self._forget_report(message)  # the head of what follows may be among what is lost
        losses = self._losses.setdefault((loss.kind, loss.of), [])
        row = self.common(message, boot) | {"excerpt": excerpt([message.raw]), "kind": loss.kind, "lost": loss.lost}
        row |= {"source": loss.source or None, "of": loss.of or None, "markers": 1}
        if len(losses) <= KEPT_LOSSES:
            losses.append(row)
            if len(losses) <= KEPT_LOSSES:
                self.gaps.append(Gap(self.member, message.number, loss.what))
        else:
            losses[-1]["markers"] += 1
            losses[-1]["source"] = None
            losses[-1]["lost"] = (losses[-1]["lost"] or 0) + (loss.lost or 0) or None

    def close(self) -> None:
        """Write what the caps folded, and put every table into the order of the file."""
        for incident in self._incidents.values():
            self._unfold(incident)
        for (kind, _), losses in self._losses.items():
            if kind:
                self.rows.setdefault("log_loss", []).extend(losses)
            if len(losses) > KEPT_LOSSES:
                rest = losses[-1]
                what = f"{rest['markers']} further {kind or 'damage'} markers from here on"
                self.gaps.append(Gap(self.member, rest["line"], what))
        for table, dropped in self._unread.items():
            self.gaps.append(
                Gap(self.member, 0, f"{table}: {dropped} rows beyond the first {KEPT_PER_TABLE} were not kept")
            )
        for rows in self.rows.values():
            rows.sort(key=lambda row: int(row["line"]))
        self.gaps.sort(key=lambda gap: gap.line)

    def _unfold(self, incident: Incident) -> None:
        """Give a row to the longest and to the last of the messages that were only counted."""
        if incident.last is None:
            return
        entries = [incident.last]
        if incident.longest and incident.longest is not incident.last:
            entries.insert(0, incident.longest)
        folded = incident.folded - sum(1 + repeats for _, repeats, _ in entries)
        kernel_event = incident.last[2][0][1]
        kernel_event["repeats"] += folded
        for _, _, rows in entries:
            self._put(rows)
        if incident.name.endswith("-rest"):
            what = f"{incident.folded} further {kernel_event['kind']} messages are counted, but not told apart"
            self.gaps.append(Gap(self.member, int(kernel_event["line"]), what))


def _stands_in(block: Block, line: int) -> Message | None:
    """Return the message of a block that stands in this line of the member."""
    return next((message for message in block if message.number == line), None)
