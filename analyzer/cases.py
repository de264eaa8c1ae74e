"""The cases beside a rule: small bundles written out, and what the rule must make of each.

- name: a-single-short-stall
  bundle:
    dmesg: |
      [  122.418304] updatedb: page allocation stalls for 10024ms, order:0, mode:0x24280ca(GFP_HIGHUSER_MOVABLE)
    ethtool.txt: {sample: ../../samples/one/ethtool.txt}
  finds: page-alloc-stall       # or `nothing`, or `not judged`
  severity: medium              # these three only where it finds
  at: ["dmesg:1"]
  text: ["10,024 ms"]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analyzer import rulefile
from analyzer.findings import SEVERITIES, Finding, NotJudged
from analyzer.judge import judge
from analyzer.rulefile import Problem, RuleFile, RulesError
from analyzer.rules import Rule
from analyzer.suggest import did_you_mean

FIELDS = ("name", "bundle", "finds", "severity", "at", "text")
NEEDED = ("name", "bundle", "finds")
MAX_SAMPLE = 1 << 26
"""Largest file a case may take into its bundle by `sample:`, in bytes."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one case."""

    rule: str
    case: str
    where: str
    """`path:line` of the case."""
    failures: list[str]
    """Sentences: what was expected and what was found instead; empty when the case passes."""

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.failures


def run(rules: Iterable[Rule]) -> list[Result]:
    """Return the results of the cases of each rule, in their order; a rule without cases has none.

    Raises RulesError, which names everything that is wrong with the case files.
    """
    files = [(rule, *_read(rule)) for rule in rules if rule.cases.is_file()]
    if problems := [problem for _, _, found in files for problem in found]:
        raise RulesError(problems)
    return [_result(rule, file, index) for rule, file, _ in files for index in range(len(file.data))]


def lacking(rule: Rule) -> list[str]:
    """Return which kinds of case a rule lacks, of one that finds, one that finds nothing, one that is not judged.

    Raises RulesError when its case file is broken.
    """
    kinds = set()
    if rule.cases.is_file():
        file, problems = _read(rule)
        if problems:
            raise RulesError(problems)
        kinds = {_kind(case["finds"]) for case in file.data}
    return [kind for kind in ("finds", "nothing", "not judged") if kind not in kinds]


def _kind(finds: str) -> str:
    return finds if finds in ("nothing", "not judged") else "finds"


def _read(rule: Rule) -> tuple[RuleFile, list[Problem]]:
    """Return the file of a rule's cases, and what is wrong with it."""
    file, problems = rulefile.read(rule.cases, _shown(rule), limit=rulefile.MAX_CASES)
    if problems:
        return file, problems
    if not isinstance(file.data, list):
        return file, [file.problem((), "cases are a list", "Begin each with `- name:`.")]
    return file, [problem for index in range(len(file.data)) for problem in _problems(file, index, rule)]


def _shown(rule: Rule) -> str:
    try:
        return str(rule.cases.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(rule.cases)


def _problems(file: RuleFile, index: int, rule: Rule) -> list[Problem]:
    """Return what is wrong with one case as it is written."""
    case = file.data[index]
    if not isinstance(case, dict):
        return [file.problem((index,), "a case is a mapping of fields", "Begin it with `- name:`.")]
    found = [
        file.problem((index, key), f"no field is called {key} here", did_you_mean(key, FIELDS), at_key=True)
        for key in case.keys() - set(FIELDS)
    ]
    found += [file.problem((index,), f"the field {key} is missing") for key in NEEDED if key not in case]
    if found:
        return found
    shapes: dict[str, bool] = {
        "name": isinstance(case["name"], str),
        "bundle": isinstance(case["bundle"], dict) and all(map(_is_content, case["bundle"].values())),
        "finds": case["finds"] in (rule.id, "nothing", "not judged"),
        "severity": case.get("severity", "info") in SEVERITIES,
        "at": _is_texts(case.get("at", [])),
        "text": _is_texts(case.get("text", [])),
    }
    return [file.problem((index, key), f"{key}: {_WANTED[key]}") for key, right in shapes.items() if not right]


_WANTED = {
    "name": "a text should stand here",
    "bundle": "files by name should stand here, each a text or {sample: PATH}",
    "finds": "the rule's id, `nothing` or `not judged` should stand here",
    "severity": f"one of {', '.join(SEVERITIES)} should stand here",
    "at": 'a list of "member:line" should stand here',
    "text": "a list of texts should stand here",
}


def _is_content(given: Any) -> bool:
    return isinstance(given, str) or (
        isinstance(given, dict) and given.keys() == {"sample"} and isinstance(given["sample"], str)
    )


def _is_texts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(item, str) for item in given)


def _result(rule: Rule, file: RuleFile, index: int) -> Result:
    """Return what came of one case, judged with its own rule alone."""
    from analyzer.case import read_texts

    wanted = file.data[index]
    place = file.problem((index,), "")
    where = f"{place.path}:{place.line}"
    try:
        texts = {member: _content(given, rule.cases.parent) for member, given in wanted["bundle"].items()}
    except OSError as error:
        why = f"a sample of its bundle cannot be read: {error.filename}: {error.strerror}"
        return Result(rule.id, wanted["name"], where, [why])
    findings, not_judged, _ = judge(read_texts(texts), {rule.id: rule})
    return Result(rule.id, wanted["name"], where, list(_failures(wanted, findings, not_judged)))


def _content(given: str | dict[str, str], folder: Path) -> str:
    if isinstance(given, str):
        return given
    with (folder / given["sample"]).open("rb") as sample:
        # read_texts() encodes the same way, so that any bytes survive.
        return sample.read(MAX_SAMPLE).decode("utf-8", "surrogateescape")


def _failures(wanted: dict[str, Any], findings: list[Finding], not_judged: list[NotJudged]) -> Iterator[str]:
    """Yield what is not as the case expects it."""
    finds = wanted["finds"]
    if findings:
        came = f"it found: {findings[0].text}"
    else:
        came = f"it was not judged: {'; '.join(not_judged[0].missing)}" if not_judged else "it found nothing"
    outcome = "finds" if findings else "not judged" if not_judged else "nothing"
    if outcome != _kind(finds):
        yield f"expected {'a finding' if _kind(finds) == 'finds' else finds}, but {came}"
        return
    if not findings:
        return
    finding = findings[0]
    if wanted.get("severity", finding.severity) != finding.severity:
        yield f"expected severity {wanted['severity']}, but it is {finding.severity}"
    places = {f"{row.member}:{row.line}" for row in finding.evidence}
    for place in wanted.get("at", []):
        if place not in places:
            yield f"expected evidence at {place}, but it is at {', '.join(sorted(places)) or 'no line'}"
    told = " ".join([finding.text, finding.mechanism, finding.refuted, *finding.against])
    for text in wanted.get("text", []):
        if text not in told:
            yield f"expected {text!r} in what it says, but {came}"
