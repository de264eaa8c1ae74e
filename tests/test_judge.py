"""Judging: found, not found and not judged; evidence, edges, sentences; the cases beside rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer import cases, rules, tables
from analyzer.case import Case
from analyzer.findings import Finding, NotJudged
from analyzer.judge import MAX_EVIDENCE, judge
from analyzer.language import grammar, measure, question, sentence, within
from analyzer.language.measure import View
from analyzer.language.selection import of_table
from analyzer.rulefile import RulesError
from analyzer.rules import Rule
from parsers.shapes import COMMON, Column, Row, Table

TABLES = {
    "stall": Table(
        "a stall",
        {
            **COMMON,
            "duration_ms": Column("Int64", ""),
            "comm": Column("str", ""),
            "incident": Column("str", ""),
            "frames": Column("object", ""),
        },
    ),
    "rcu": Table("an RCU stall", {**COMMON, "cpu": Column("Int64", "")}),
    "device": Table("a device", {**COMMON, "device": Column("str", ""), "lower": Column("str", "")}),
}
SHAPES = {name: of_table(name, table) for name, table in TABLES.items()}
SECOND = 10**9


def case_of(**rows: list[Row]) -> Case:
    frames = {
        name: tables.framed(
            TABLES[name],
            [
                {"member": "log", "line": place, "excerpt": f"{name} {place}", **row}
                for place, row in enumerate(given, 1)
            ],
        )
        for name, given in rows.items()
    }
    return Case("bundle", frames)


def rule_of(folder: Path, **fields: str) -> dict[str, Rule]:
    """Write a rule for each `id=fields` text and load them all."""
    for name, text in fields.items():
        head = {"title": "A title", "status": "draft", "severity": "medium", "finding": "Found."}
        body = "".join(f"{key}: {value}\n" for key, value in head.items() if f"\n{key}:" not in f"\n{text}")
        (folder / f"{name}.yaml").write_text(f"id: {name}\n{body}{text}\n", encoding="utf-8")
    return rules.load([folder], shipped=False, declared=TABLES)


def judged(folder: Path, case: Case, text: str) -> Finding | NotJudged | None:
    findings, not_judged, not_found = judge(case, rule_of(folder, x=text))
    assert len(findings) + len(not_judged) + len(not_found) == 1
    return (findings or not_judged or [None])[0]


def answer(text: str, case: Case, **lets: str) -> bool | None:
    return measure.truth(question.checked(grammar.parse(text), SHAPES), View(case.tables, {}, SHAPES))


# --- three answers -------------------------------------------------------------------------------------------------

STALLS: list[Row] = [
    {"duration_ms": 10_000, "comm": "a", "incident": "1"},
    {"duration_ms": 272_380, "comm": "b", "incident": "1"},
    {"duration_ms": 3_000, "comm": "a"},
]


@pytest.mark.parametrize(
    ("text", "with_rows", "empty", "absent"),
    [
        ("exists(stall)", True, False, None),
        ("found(stall)", True, False, False),
        ("count(stall) == 3", True, False, None),
        ("count(stall) == 0", False, True, None),
        ("sum(stall.duration_ms) == 285380", True, False, None),
        ("sum(stall.duration_ms) == 0", False, True, None),
        ("max(stall.duration_ms) >= 270s", True, False, None),
        ("max(stall.duration_ms) < 270s", False, False, None),
        ("min(stall.duration_ms) == 3s", True, False, None),
        ("median(stall.duration_ms) == 10s", True, False, None),
        ("distinct(stall.comm) == 2", True, False, None),
        ("stall.incidents == 2", True, False, None),
        ("stall.rows == 3", True, False, None),
        ("share(stall, stall) == 100%", True, False, None),
        ("ratio(stall.incidents, stall.rows) <= 67%", True, False, None),
        ("80% of count(stall) > 2", True, False, None),
        ("1 + count(stall) * 2 - 1 == 6", True, False, None),
        ("not exists(stall)", False, True, None),
        ("exists(stall) or count(rcu) == 0", True, True, True),
        ("exists(stall) and exists(rcu)", False, False, False),
        ("count(stall) in [3, 4]", True, False, None),
    ],
)
def test_a_question_has_three_answers(text: str, with_rows: bool, empty: bool, absent: bool | None) -> None:
    assert answer(text, case_of(stall=STALLS, rcu=[])) is with_rows
    assert answer(text, case_of(stall=[], rcu=[])) is empty
    assert answer(text, case_of(rcu=[])) is absent


KLEENE = {True: "count(stall) == 0", False: "exists(stall)", None: "exists(rcu)"}
"""Conditions that are true, false and unknown where `stall` is empty and `rcu` absent."""


@pytest.mark.parametrize("left", KLEENE)
@pytest.mark.parametrize("right", KLEENE)
def test_and_and_or_are_kleene_s(left: bool | None, right: bool | None) -> None:
    order = [False, None, True]
    least = order[min(order.index(left), order.index(right))]
    greatest = order[max(order.index(left), order.index(right))]
    case = case_of(stall=[])
    assert answer(f"{KLEENE[left]} and {KLEENE[right]}", case) is least
    assert answer(f"{KLEENE[left]} or {KLEENE[right]}", case) is greatest
    assert answer(f"not ({KLEENE[left]})", case) is (None if left is None else not left)


@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        (case_of(stall=STALLS, rcu=[]), Finding),
        (case_of(stall=STALLS), Finding),
        (case_of(stall=[], rcu=[]), type(None)),
        (case_of(stall=[]), NotJudged),
        (case_of(), NotJudged),
    ],
)
def test_without_what_it_needs_a_rule_is_not_judged_unless_it_holds_anyway(
    tmp_path: Path, case: Case, outcome: type
) -> None:
    found = judged(tmp_path, case, "needs: [stall, rcu]\nwhen: exists(stall)\ncapture: [Take the log.]")
    assert isinstance(found, outcome)
    if isinstance(found, NotJudged):
        assert "no capture in the bundle could have filled `rcu` (an RCU stall)" in found.missing
        assert found.capture[0].do == "Take the log."


# --- findings ------------------------------------------------------------------------------------------------------


def test_a_finding_is_filled_in(tmp_path: Path) -> None:
    text = """
let:
  long: stall where duration_ms >= 60s
when: exists(long)
grade: [{when: max(long.duration_ms) >= 300s, severity: critical}, {when: exists(long), severity: high}]
finding: >-
  {long.rows} of {stall.rows} by {stall.comm}: {long.duration_ms|exact}, {max(long.duration_ms)|duration},
  {share(long, stall)|percent}{{}}
indirect: count(stall) == 3
against: [{when: exists(stall), because: "{stall.rows} speak"}, {when: exists(long), because: no, refutes: true}]
advice: [{do: "Look at {long.comm|first}.", command: "kill {stall.comm|list} {rcu.cpu|first}"}]
"""
    found = judged(tmp_path, case_of(stall=STALLS), text)
    assert isinstance(found, Finding)
    assert found.text == "1 of 3 by a and b: 272,380 ms, 4 min 32 s, 33.33 %{}"
    assert (found.severity, found.direct, found.against, found.refuted) == ("high", False, ["3 speak"], "no")
    assert (found.advice[0].do, found.advice[0].command) == ("Look at b.", "kill a b CPU")
    assert [(row.selection, row.line, row.text) for row in found.evidence] == [
        ("long", 2, "stall 2"),
        ("stall", 1, "stall 1"),
        ("stall", 3, "stall 3"),
    ]
    assert found.evidence_rows == 3


def test_evidence_is_capped_and_counted(tmp_path: Path) -> None:
    found = judged(tmp_path, case_of(stall=[{}] * 120), "when: exists(stall)")
    assert isinstance(found, Finding)
    assert (len(found.evidence), found.evidence_rows) == (MAX_EVIDENCE, 120)


def test_both_sides_of_a_join_are_evidence(tmp_path: Path) -> None:
    text = """
let:
  pair: device as up join device as low on low.device == up.lower
when: exists(pair)
finding: "{pair.up.device|list}"
"""
    found = judged(tmp_path, case_of(device=[{"device": "vlan10", "lower": "eth0"}, {"device": "eth0"}]), text)
    assert isinstance(found, Finding)
    assert [row.line for row in found.evidence] == [1, 2]
    assert found.text == "vlan10"


def test_the_first_evidence_says_when(tmp_path: Path) -> None:
    rows: list[Row] = [{}, {"at": 1_477_000_060 * SECOND, "uptime_s": 7.5, "boot": 1}, {"at": 1_477_000_000 * SECOND}]
    found = judged(tmp_path, case_of(stall=rows), "when: exists(stall)")
    assert isinstance(found, Finding)
    assert found.first_at == "2016-10-20T21:46:40Z"
    assert [row.at for row in found.evidence] == ["", "2016-10-20T21:47:40Z", "2016-10-20T21:46:40Z"]
    assert (found.evidence[1].uptime_s, found.evidence[1].boot, found.evidence[0].boot) == (7.5, 1, None)


def test_a_join_of_too_many_pairs_is_not_judged(tmp_path: Path) -> None:
    text = "let:\n  pair: stall as a join stall as b on a.comm == b.comm\nwhen: exists(pair)"
    found = judged(tmp_path, case_of(stall=[{"comm": "a"}] * 1001), text)
    assert isinstance(found, NotJudged)
    assert found.missing == ["a join of this rule would look at more than 1,000,000 pairs of rows"]


def test_such_a_join_in_a_sentence_alone_does_not_stop_the_finding(tmp_path: Path) -> None:
    text = """
let:
  pair: stall as a join stall as b on a.comm == b.comm
when: exists(stall)
finding: "{pair.rows} pairs."
"""
    found = judged(tmp_path, case_of(stall=[{"comm": "a"}] * 1001), text)
    assert isinstance(found, Finding)
    assert found.text == "unknown pairs."


def test_findings_are_sorted_worst_first(tmp_path: Path) -> None:
    rule_of(tmp_path, b="when: exists(stall)\nseverity: high", c="when: exists(stall)\nseverity: critical")
    book = rule_of(
        tmp_path, a="when: exists(stall)\nseverity: high", d="when: exists(rcu)", e="when: count(stall) == 0"
    )
    findings, not_judged, not_found = judge(case_of(stall=[{}]), book)
    assert [finding.rule for finding in findings] == ["c", "a", "b"]
    assert ([rule.rule for rule in not_judged], not_found) == (["d"], ["e"])
    assert [finding.rule for finding in judge(case_of(stall=[{}]), book, only=["b"])[0]] == ["b"]


def test_device_names_cannot_run_in_a_command(tmp_path: Path) -> None:
    text = "when: exists(device)\nadvice: [{do: x, command: 'ethtool -K {device.device|first} sg on'}]"
    found = judged(tmp_path, case_of(device=[{"device": "eth0; rm -rf /"}]), text)
    assert isinstance(found, Finding)
    assert found.advice[0].command == "ethtool -K 'eth0; rm -rf /' sg on"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{stall.comm}", "a and b"),
        ("{stall.comm|first}", "a"),
        ("{stall.frames}", "x and y"),
        ("{device.device|list}", "none"),
        ("{stall.comm|list}{device.device|list}", "a and b"),
        ("{device.device|first}{stall.comm|first}", "a"),
        ('{stall.comm|prefixed(" by ")}', " by a and b"),
        ('{stall.rows|counted("stall")}', "3 stalls"),
        ('{count(device)|counted("device")}', "0 devices"),
        ('{device.device|prefixed(" by ")}', ""),
        ("{rcu.cpu}", "unknown"),
        ("{max(device.line)}", "none"),
        ("{min(stall.at)}", "2016-10-20T21:46:40Z"),
        ("{sum(stall.duration_ms)|exact}", "285,380 ms"),
        ("{sum(stall.duration_ms)}", "285,380"),
        ("{stall.duration_ms|exact}", "10,000 ms, 272,380 ms and 3,000 ms"),
        ("{stall.line|list}", "1, 2 and 3"),
        ("{ratio(10, 4)}", "2.5"),
    ],
)
def test_values_in_sentences(text: str, shown: str) -> None:
    rows = [dict(row) for row in STALLS]
    rows[0] |= {"at": 1_477_000_000 * SECOND, "frames": ("x", "y")}
    case = case_of(stall=rows, device=[])
    assert sentence.fill(sentence.parse(text, SHAPES), View(case.tables, {}, SHAPES)) == shown


def test_a_long_list_is_cut_and_control_characters_do_not_pass() -> None:
    case = case_of(
        stall=[{"comm": f"c{place}"} for place in range(11)], device=[{"device": "a\x1b[31m\nb" + "x" * 500}]
    )
    view = View(case.tables, {}, SHAPES)
    assert sentence.fill(sentence.parse("{stall.comm}", SHAPES), view) == "c0, c1, c2, c3, c4, c5, c6, c7 and 3 more"
    device = sentence.fill(sentence.parse("{device.device}", SHAPES), view)
    assert device.isprintable()
    assert len(device) == sentence.MAX_VALUE


# --- time ----------------------------------------------------------------------------------------------------------

CLOCKS = st.lists(
    st.fixed_dictionaries(
        {
            "at": st.none() | st.integers(0, 20).map(lambda seconds: seconds * SECOND),
            "uptime_s": st.none() | st.integers(0, 20).map(float),
            "boot": st.none() | st.integers(0, 1),
            "host": st.sampled_from([None, "", "a", "b"]),
            "member": st.sampled_from(["m", "n"]),
        }
    ),
    min_size=1,
    max_size=5,
)


def distance(one: dict[str, Any], other: dict[str, Any]) -> float | None:
    """Return how far apart two rows are in seconds; None when they have no clock in common."""
    if one["at"] is not None and other["at"] is not None:
        return abs(float(one["at"] - other["at"])) / SECOND
    hosts = {one["host"] or "", other["host"] or ""} - {""}
    same = one["boot"] == other["boot"] and one["member"] == other["member"] and len(hosts) < 2
    if same and one["uptime_s"] is not None and other["uptime_s"] is not None:
        return abs(float(one["uptime_s"] - other["uptime_s"]))
    return None


@given(CLOCKS, CLOCKS, st.integers(0, 10))
def test_within_agrees_with_two_loops(left: list[dict[str, Any]], right: list[dict[str, Any]], span: int) -> None:
    distances = [found for one in left for other in right if (found := distance(one, other)) is not None]
    expected = any(found <= span for found in distances) if distances else None
    frames = [tables.framed(TABLES["rcu"], [dict(row) for row in rows]) for rows in (left, right)]
    clocks = [within.clocks(frame, "") for frame in frames]
    assert within.near(clocks[0], clocks[1], span * SECOND) is expected


EDGE = "when: exists(stall)\nexplains: [{symptom: y, because: '{stall.rows} did'%s}]"
TEST = ", when: 'within(stall.at, rcu.at, 15min)'"


@pytest.mark.parametrize(
    ("test", "one", "other", "timing"),
    [
        ("", {}, {}, "untested"),
        (", when: exists(rcu)", {}, {}, "tested"),
        (", when: count(rcu) > 1", {}, {}, None),
        (", when: exists(device)", {}, {}, None),
        (TEST, {}, {}, "not timed"),
        (TEST, {"at": 0}, {"at": 900 * SECOND}, "timed"),
        (TEST, {"at": 0}, {"at": 901 * SECOND}, None),
        (TEST, {"uptime_s": 5.0, "boot": 0}, {"uptime_s": 9.0, "boot": 0, "at": 0}, "timed"),
        (TEST, {"uptime_s": 5.0, "boot": 0}, {"uptime_s": 9.0, "boot": 1}, "not timed"),
    ],
)
def test_an_edge_says_how_it_was_timed(tmp_path: Path, test: str, one: Row, other: Row, timing: str | None) -> None:
    book = rule_of(tmp_path, x=EDGE % test, y="when: exists(rcu)", z="when: exists(device)")
    findings, _, _ = judge(case_of(stall=[one], rcu=[other]), book)
    edges = next(finding.explains for finding in findings if finding.rule == "x")
    assert [(edge.symptom, edge.because, edge.timing) for edge in edges] == ([("y", "1 did", timing)] if timing else [])


def test_a_symptom_that_was_not_found_is_not_explained(tmp_path: Path) -> None:
    findings, _, _ = judge(case_of(stall=[{}], rcu=[]), rule_of(tmp_path, x=EDGE % "", y="when: exists(rcu)"))
    assert [finding.explains for finding in findings] == [[]]


def test_in_a_condition_no_common_clock_is_unknown(tmp_path: Path) -> None:
    found = judged(tmp_path, case_of(stall=[{}], rcu=[{}]), "when: within(stall.at, rcu.at, 15min)")
    assert isinstance(found, NotJudged)
    assert found.missing == ["the rows it would compare in time have no clock in common"]


# --- the cases beside rules ----------------------------------------------------------------------------------------

LOSS = """
let:
  lost: log_loss where lost >= 10
when: exists(lost)
finding: "{sum(lost.lost)} lost."
needs: [log_loss]
"""
GOOD_CASES = """\
- name: many
  bundle: {dmesg: {sample: dmesg.txt}}
  finds: x
  at: ["dmesg:2"]
  severity: medium
  text: ["17,171 lost"]
- name: none
  bundle:
    dmesg: |
      [    0.000000] Linux version 4.9.0 (gcc) #1 SMP
  finds: nothing
- name: no-log
  bundle: {notes.txt: nothing here}
  finds: not judged
"""


def shipped_like(folder: Path, text: str, written: str) -> list[Rule]:
    (folder / "x.yaml").write_text(f"id: x\ntitle: t\nstatus: draft\nseverity: medium\n{text}", encoding="utf-8")
    (folder / "x.cases.yaml").write_text(written, encoding="utf-8")
    (folder / "dmesg.txt").write_text(
        "2016-10-20T21:46:40.000000+00:00 db1 kernel: [    1.000000] Linux version 4.9.0 (gcc) #1 SMP\n"
        "Oct 20 21:46:41 db1 systemd-journald[312]: Missed 17171 kernel messages\n"
    )
    return list(rules.load([folder], shipped=False).values())


def test_cases_that_hold_pass(tmp_path: Path) -> None:
    book = shipped_like(tmp_path, LOSS, GOOD_CASES)
    assert [(result.case, result.failures) for result in cases.run(book)] == [
        ("many", []),
        ("none", []),
        ("no-log", []),
    ]
    assert cases.lacking(book[0]) == []


@pytest.mark.parametrize(
    ("change", "by", "line", "told"),
    [
        ("finds: x", "finds: nothing", 1, "expected nothing, but it found: 17,171 lost."),
        ("dmesg:2", "dmesg:3", 1, "expected evidence at dmesg:3, but it is at dmesg:2"),
        ("17,171", "17,172", 1, "expected '17,172 lost' in what it says, but it found: 17,171 lost."),
        ("severity: medium", "severity: high", 1, "expected severity high, but it is medium"),
        ("finds: nothing", "finds: x", 7, "expected a finding, but it found nothing"),
        (
            "finds: not judged",
            "finds: nothing",
            12,
            "expected nothing, but it was not judged: no capture in the bundle",
        ),
        ("sample: dmesg.txt", "sample: none.txt", 1, "a sample of its bundle cannot be read"),
    ],
)
def test_a_case_that_fails_says_what_was_found_instead(
    tmp_path: Path, change: str, by: str, line: int, told: str
) -> None:
    results = cases.run(shipped_like(tmp_path, LOSS, GOOD_CASES.replace(change, by, 1)))
    (failed,) = [result for result in results if not result.passed]
    assert failed.where.endswith(f"x.cases.yaml:{line}")
    assert failed.failures[0].startswith(told)


@pytest.mark.parametrize(
    ("change", "by", "told"),
    [
        ("finds: x", "finds: y", ":3:10: finds: the rule's id, `nothing` or `not judged` should stand here"),
        ("finds: x", "find: x", ":3:3: no field is called find here. Did you mean finds?"),
        ("{sample: dmesg.txt}", "[1]", ":2:11: bundle: files by name should stand here"),
        ("- name: many", "- 1\n- name: many", ":1:3: a case is a mapping of fields"),
        ('at: ["dmesg:2"]', "at: dmesg:2", ':4:7: at: a list of "member:line" should stand here'),
    ],
)
def test_a_broken_case_file_is_named(tmp_path: Path, change: str, by: str, told: str) -> None:
    with pytest.raises(RulesError) as caught:
        cases.run(shipped_like(tmp_path, LOSS, GOOD_CASES.replace(change, by, 1)))
    assert any(told in str(problem) for problem in caught.value.problems), caught.value


def test_kinds_of_cases_that_are_lacking_are_named(tmp_path: Path) -> None:
    book = shipped_like(tmp_path, LOSS, GOOD_CASES.split("- name: none")[0])
    assert cases.lacking(book[0]) == ["nothing", "not judged"]
