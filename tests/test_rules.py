"""Rule files: what is accepted, and how every mistake is named with its place and its cure."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analyzer import cases, rulefile, rules
from analyzer.rulefile import RulesError
from analyzer.rules import Rule
from parsers.shapes import COMMON, Column, Table

TABLES = {
    "stall": Table("a stall", {**COMMON, "duration_ms": Column("Int64", ""), "comm": Column("str", "")}),
    "rcu": Table("an RCU stall", {**COMMON, "cpus": Column("object", "")}),
}
GOOD = """\
id: long-stall
title: Long stalls
status: draft
severity: high
needs: [stall]
let:
  long: stall where duration_ms >= 60s
when: exists(long)
finding: "{long.rows} stalls, the longest {max(long.duration_ms)|duration}."
"""


def load(folder: Path, **texts: str) -> dict[str, Rule]:
    for name, text in texts.items():
        (folder / f"{name.replace('_', '-')}.yaml").write_text(textwrap.dedent(text), encoding="utf-8")
    return rules.load([folder], shipped=False, declared=TABLES)


def problems(folder: Path, **texts: str) -> list[str]:
    with pytest.raises(RulesError) as caught:
        load(folder, **texts)
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def test_a_good_rule_loads(tmp_path: Path) -> None:
    rule = load(tmp_path, long_stall=GOOD)["long-stall"]
    assert (rule.severity, rule.needs, list(rule.selections)) == ("high", ["stall"], ["long"])
    assert rule.tables(["long"]) == ["stall"]
    assert rule.cases == tmp_path / "long-stall.cases.yaml"


@pytest.mark.parametrize(
    ("change", "by", "told"),
    [
        ("title: Long", "titel: Long", "2:1: no field is called titel here. Did you mean title?"),
        ("severity: high", "severity: bad", "4:11: severity: input should be 'info', 'low', 'medium', 'high' or"),
        ("severity: high", "severity: 3", "4:11: severity: input should be"),
        ("status: draft\n", "", "1:1: the field status is missing. Add `status:`."),
        ("title: Long stalls", "title: 5", "2:8: title: input should be a valid string. Put it into quotes."),
        ("needs: [stall]", "needs: stall", "5:8: needs: input should be a valid list"),
        ("needs: [stall]", "needs: [stal]", "5:9: no table is called stal. Did you mean stall?"),
        ("id: long-stall", "id: other", "1:5: the id is not the file's name, long-stall"),
        ("id: long-stall", "id: Long", "1:5: id: string should match pattern"),
        ("  long: stall", "  long: stal", "7:9: no table or selection is called stal. Did you mean stall?"),
        ("  long: stall", "  stall: stall", "7:10: stall is a table. Choose another name"),
        ("duration_ms >= 60s", "duration_s >= 60s", "7:21: no column duration_s here. Did you mean duration_ms?"),
        ("duration_ms >= 60s", "duration_ms >= 60KiB", "7:36: KiB is a size, but a time in ms"),
        ("duration_ms >= 60s", "duration_ms >= 60sec", "7:36: no such unit: sec"),
        ("when: exists(long)", "when: exist(long)", "8:7: no function is called exist. Did you mean exists?"),
        ("when: exists(long)", "when: exists(lung)", "8:14: no table or selection is called lung. Did you mean long?"),
        ("when: exists(long)", "when: count(long)", "8:7: a condition should stand here, not a number"),
        ("when: exists(long)", "when: exists(long) and", "8:23: unexpected the end"),
        ("when: exists(long)", "when: within(long.at, stall.at)", "8:7: within takes 3"),
        ("when: exists(long)", "when: within(long.at, stall.at, 3KiB)", "8:33: a span of time should stand here"),
        ("when: exists(long)", "when: within(long.line, stall.at, 3s)", "8:14: within compares the columns `at`"),
        ("when: exists(long)", "when: long.comm == 'a'", "8:7: long.comm is a column of many rows. Ask for max("),
        ("when: exists(long)", "when: sum(long.comm) > 1", "8:11: a column of numbers should stand here"),
        ("when: exists(long)", "when: max(long.comm) == 'a'", "8:11: a text has no greatest. Take a column of numbers"),
        ("when: exists(long)", "when: sum(long.duration_ms) > 1KiB", "8:31: KiB is a size"),
        ("{long.rows}", "{long.row}", "9:17: long has no column row. Did you mean rows?"),
        ("{long.rows}", "{long.rows", "9:11: this { is never closed"),
        ("{long.rows}", "long.rows}", "9:20: this } closes nothing. Write }} for a brace."),
        ("|duration}", "|duraton}", "9:66: no filter is called duraton. Did you mean duration?"),
        ("|duration}", "|percent}", "9:66: percent needs a ratio"),
        ("{long.rows}", "{long.rows|list}", "9:22: list is for columns"),
        ("finding: ", "finding: {a: 1}\nx: ", "9:10: finding: input should be a valid string"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_cure(tmp_path: Path, change: str, by: str, told: str) -> None:
    assert change in GOOD
    found = problems(tmp_path, long_stall=GOOD.replace(change, by, 1))
    assert any(problem.startswith(f"long-stall.yaml:{told}") for problem in found), found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id: a\nid: b\n", "2:1: 'id' stands here twice"),
        ("a: &x 1\nb: *x\n", "2:4: an alias"),
        ("a: !!python/object:os.system 1\n", "1:4: a tag"),
        ("a: 1\n---\nb: 2\n", "2:1: a second document"),
        ("- 1\n", "1:1: a rule is a mapping"),
        ("", "1:1: a rule is a mapping"),
        ("a: [1, 2\n", "not YAML"),
        ("a: b: c\n", "not YAML: mapping values are not allowed"),
        ("a: " + "[" * 5000, "1:24: nested more than 20 deep"),
        ("? [a]\n: 1\n", "1:3: a key must be a plain word"),
        ("a: \x00\n", "not YAML"),
    ],
)
def test_yaml_that_no_rule_needs_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (problem,) = problems(tmp_path, x=text)
    assert told in problem


@pytest.mark.parametrize(
    ("written", "read"),
    [("no", "no"), ("on", "on"), ("2024-01-01", "2024-01-01"), ("0x10", "0x10"), ("1:30", "1:30"), ("1e3", "1e3"),
     ("true", True), ("~", None), ("12", 12), ("-1.5", -1.5), ("'12'", "12"), ("|\n  a\n  b", "a\nb\n")],
)  # fmt: skip
def test_only_plain_words_of_yaml_mean_something_else(written: str, read: object) -> None:
    file, found = rulefile.loads(f"a: {written}\n", "x.yaml")
    assert (file.data, found) == ({"a": read}, [])


def test_all_broken_rules_are_listed_at_once(tmp_path: Path) -> None:
    one = GOOD.replace("exists(long)", "exist(long)").replace("60s", "60x")
    other = GOOD.replace("id: long-stall", "id: other").replace("title: Long", "titel: Long")
    found = problems(tmp_path, long_stall=one, other=other, third="- 1")
    assert [problem.split(":")[0] for problem in found] == ["long-stall.yaml"] * 2 + ["other.yaml"] * 2 + ["third.yaml"]


def test_what_follows_from_a_broken_selection_is_not_told_again(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, long_stall=GOOD.replace("60s", "60x"))
    assert "no such unit" in problem


@pytest.mark.parametrize(
    "written",
    [
        "when: >-\n  exists(long)\n  and exists(lung)\n",
        "when: |\n  exists(long)\n  and exists(lung)\n",
        "when: exists(long)\n  and exists(lung)\n",
        'when: "exists(long)\n  and exists(lung)"\n',
        "when: 'exists(long)\n\n  and exists(lung)'\n",
    ],
)
def test_a_mistake_in_a_text_of_several_lines_is_found_in_its_line(tmp_path: Path, written: str) -> None:
    text = GOOD.replace("when: exists(long)\n", written)
    (problem,) = problems(tmp_path, long_stall=text)
    line, column = map(int, re.findall(r":(\d+):(\d+):", problem)[0])
    assert text.split("\n")[line - 1][column - 1 :].startswith("lung")


def test_an_edge_needs_its_symptom(tmp_path: Path) -> None:
    edge = GOOD + "explains:\n  - {symptom: long-stal, because: it does}\n"
    other = GOOD.replace("id: long-stall", "id: other") + "explains: [{symptom: long-stall, because: so}]\n"
    (problem,) = problems(tmp_path, long_stall=edge, other=other)
    assert problem.startswith("long-stall.yaml:11:15: no rule is called long-stal. ")


def test_one_id_stands_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "long-stall.yaml").write_text(GOOD)
    (problem,) = problems(tmp_path, long_stall=GOOD)
    assert "the rule long-stall stands already in" in problem


@given(st.text(alphabet="ab:-[]{}'\"#|>&*!%@,? \n\t\r\ufeff\u2028é\x85", max_size=60))
def test_any_text_is_data_or_a_problem_with_a_place(text: str) -> None:
    file, found = rulefile.loads(text, "x.yaml")
    assert all(problem.line >= 1 and problem.column >= 1 for problem in found)
    assert not (found and file.data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.text(alphabet="ab {}[]()\"'|:.,\n-=", max_size=4))
def test_a_rule_with_a_slip_loads_or_is_refused_in_words(tmp_path: Path, at: int, gone: int, put: str) -> None:
    with contextlib.suppress(RulesError):
        load(tmp_path, long_stall=GOOD[:at] + put + GOOD[at + gone :])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match="no such folder of rules"):
        rules.load([tmp_path / "none"], shipped=False, declared=TABLES)


def test_a_file_that_is_not_text_or_too_large_is_named(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"id: \xff\n")
    (tmp_path / "large.yaml").write_bytes(b"#" * (rulefile.MAX_FILE + 1))
    with pytest.raises(RulesError) as caught:
        rules.load([tmp_path], shipped=False, declared=TABLES)
    assert [problem.what for problem in caught.value.problems] == ["is not UTF-8", "is larger than 256 KiB"]


def test_steps_may_be_bare_texts(tmp_path: Path) -> None:
    text = GOOD + 'advice:\n  - Wait.\n  - {do: Look., command: "sed -n {{p}} {long.member|first}", risk: none}\n'
    steps = load(tmp_path, long_stall=text)["long-stall"].advice
    assert [step.do.written for step in steps] == ["Wait.", "Look."]
    assert steps[1].command.parts[0] == "sed -n {p} "


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("analyzer.errors", ["pandas", "numpy", "pydantic", "pyparsing", "yaml"]),
        ("analyzer.rules", ["pandas", "numpy", "pydantic", "pyparsing"]),
    ],
)
def test_what_takes_long_to_import_is_imported_late(module: str, unwanted: list[str]) -> None:
    code = f"import sys, {module}; print([name for name in {unwanted!r} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_the_published_schema_is_the_loader_s() -> None:
    published = Path(__file__).parent.parent / "rules.schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == rules.schema()


def test_every_shipped_rule_does_what_its_cases_say() -> None:
    results = cases.run(rules.load().values())
    assert [f"{result.where}: {result.failures}" for result in results if not result.passed] == []


def test_every_stable_rule_has_a_case_of_each_kind() -> None:
    book = rules.load()
    assert {
        rule.id: cases.lacking(rule) for rule in book.values() if rule.status == "stable" and cases.lacking(rule)
    } == {}
