"""Rules: from files to checked rules, every mistake in every file named at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from analyzer import rulefile, tables
from analyzer.language import grammar, question, selection, sentence
from analyzer.language.expression import ExpressionError, Node, Selection
from analyzer.language.grammar import RESERVED
from analyzer.language.selection import Shape
from analyzer.language.sentence import Sentence
from analyzer.rulefile import Place, Problem, RuleFile, RulesError
from analyzer.suggest import did_you_mean
from parsers.shapes import Table

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Advice:
    """One step of advice, or one capture to take, its values not filled in yet."""

    do: Sentence
    command: Sentence
    risk: str
    check: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """An edge of the causal graph: this rule's finding can have caused the symptom."""

    symptom: str
    because: Sentence
    when: Node | None
    weak: bool


@dataclass(frozen=True, slots=True)
class Objection:
    """What would speak against this rule's finding as a cause."""

    when: Node
    because: Sentence
    refutes: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A checked rule."""

    id: str
    title: str
    status: str
    severity: str
    grade: list[tuple[Node, str]]
    """(condition, severity): the first that holds wins over `severity`."""
    needs: list[str]
    selections: dict[str, Selection]
    """The `let` selections in their order."""
    shapes: Mapping[str, Shape]
    """Of the selections and of every declared table."""
    about: Mapping[str, str]
    """What one row of each declared table is."""
    when: Node
    finding: Sentence
    mechanism: Sentence
    specific: bool
    indirect: Node | None
    explains: list[Explanation]
    against: list[Objection]
    advice: list[Advice]
    capture: list[Advice]
    looks_like: list[str]
    misses: list[str]
    sources: list[str]
    file: Path
    source: dict[str, Any] = field(repr=False)
    """The file's data as written: `source["let"]["long"]` is the text of a selection."""

    @property
    def cases(self) -> Path:
        """The rule's cases, beside it; may not exist."""
        return self.file.with_name(f"{self.id}.cases.yaml")

    def tables(self, names: Iterable[str]) -> list[str]:
        """Return the tables that selections draw on, sorted."""
        return sorted({table for name in names for table in self.shapes[name].tables})


def load(
    folders: Sequence[Path] = (), *, shipped: bool = True, declared: Mapping[str, Table] | None = None
) -> dict[str, Rule]:
    """Return every rule by id: those shipped (unless told otherwise), and those of further folders.

    Raises RulesError, which lists every problem of every file.
    """
    places = [*([shipped_folder()] if shipped else []), *folders]
    known_tables = tables.declared() if declared is None else declared
    shapes = {name: selection.of_table(name, table) for name, table in known_tables.items()}
    about = {name: table.row for name, table in known_tables.items()}
    found: dict[str, Rule] = {}
    edges: list[tuple[RuleFile, Rule]] = []
    problems: list[Problem] = []
    for path, shown in _paths(places, problems):
        file, rule = _read(path, shown, shapes, about, problems)
        if rule is None:
            continue
        if rule.id in found:
            why = f"the rule {rule.id} stands already in {found[rule.id].file}"
            problems.append(file.problem(("id",), why, "Give it another id."))
        found[rule.id] = rule
        edges.append((file, rule))
    known = found.keys() | {path.stem for path, _ in _paths(places, [])}
    for file, rule in edges:
        for index, edge in enumerate(rule.explains):
            if edge.symptom not in known or edge.symptom == rule.id:
                why = f"no rule is called {edge.symptom}" if edge.symptom != rule.id else "a rule explains itself"
                cure = did_you_mean(edge.symptom, known - {rule.id})
                problems.append(file.problem(("explains", index, "symptom"), why, cure))
    if problems:
        raise RulesError(sorted(problems, key=lambda problem: problem[:3]))
    return dict(sorted(found.items()))


def shipped_folder() -> Path:
    """Return the folder of the shipped rules: in the package, else beside the checkout."""
    packaged = Path(str(files("analyzer") / "rules"))
    return packaged if packaged.is_dir() else Path(__file__).resolve().parent.parent / "rules"


def schema() -> dict[str, Any]:
    """Return the JSON schema of a rule file, for editors."""
    from analyzer.ruleschema import RuleModel

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "postmortem rule",
        **RuleModel.model_json_schema(),
    }


def _paths(folders: Iterable[Path], problems: list[Problem]) -> list[tuple[Path, str]]:
    """Return every rule file of some folders (or a rule file itself), and how to name it in messages."""
    found = []
    for folder in folders:
        if folder.is_file():
            found.append((folder, str(folder)))
        elif folder.is_dir():
            inside = (path for path in sorted(folder.rglob("*.yaml")) if not path.name.endswith(".cases.yaml"))
            found += [(path, _shown(path)) for path in inside]
        else:
            problems.append(Problem(str(folder), 1, 1, "no such folder of rules"))
    return found


def _shown(path: Path) -> str:
    """Return a path as a person would type it from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _read(
    path: Path, shown: str, shapes: Mapping[str, Shape], about: Mapping[str, str], problems: list[Problem]
) -> tuple[RuleFile, Rule | None]:
    """Return one file and its rule; None, with the problems added, when it is broken."""
    from analyzer import ruleschema  # pydantic: 60 ms, only when rules are read

    file, broken = rulefile.read(path, shown)
    if not broken:
        broken = ruleschema.problems(file)
    if not broken and file.data["id"] != path.stem:
        broken = [file.problem(("id",), f"the id is not the file's name, {path.stem}", "Rename one of the two.")]
    if broken:
        problems += broken
        return file, None
    checker = _Checker(file, dict(shapes))
    rule = checker.rule(path, about)
    problems += checker.problems
    return file, None if checker.problems else rule


class _Checker:
    """Checks the expressions and sentences of one file, going on after each mistake."""

    def __init__(self, file: RuleFile, shapes: dict[str, Shape]) -> None:
        self.file, self.shapes, self.problems = file, shapes, list[Problem]()
        self.data: dict[str, Any] = file.data
        self._broken: set[str] = set()
        """Selections whose shape a mistake hides: what follows from that is not told again."""

    def rule(self, path: Path, about: Mapping[str, str]) -> Rule | None:
        """Return the rule; None when there are problems."""
        data = self.data
        self._needs()
        selections = self._selections()
        when: Any = self._condition(("when",))
        texts: dict[str, Any] = {key: self._sentence((key,), data.get(key, "")) for key in ("finding", "mechanism")}
        grade: list[Any] = [
            (self._condition(("grade", index, "when")), item["severity"])
            for index, item in enumerate(data.get("grade", []))
        ]
        rest: dict[str, Any] = {
            "indirect": self._condition(("indirect",)) if data.get("indirect") is not None else None,
            "explains": [self._explanation(index, item) for index, item in enumerate(data.get("explains", []))],
            "against": [self._objection(index, item) for index, item in enumerate(data.get("against", []))],
            "advice": self._steps("advice"),
            "capture": self._steps("capture"),
        }
        if self.problems:
            return None
        plain: dict[str, Any] = {key: data.get(key, []) for key in ("needs", "looks_like", "misses", "sources")}
        return Rule(
            **{key: data[key] for key in ("id", "title", "status", "severity")},
            **texts, **rest, **plain, grade=grade, selections=selections, shapes=self.shapes, about=about,
            when=when,
            specific=data.get("specific", True), file=path, source=data,
        )  # fmt: skip

    def _needs(self) -> None:
        for index, name in enumerate(self.data.get("needs", [])):
            if name not in self.shapes:
                cure = did_you_mean(name, self.shapes)
                self.problems.append(self.file.problem(("needs", index), f"no table is called {name}", cure))

    def _selections(self) -> dict[str, Selection]:
        found: dict[str, Selection] = {}
        for name, text in self.data.get("let", {}).items():
            place = ("let", name)
            if name in self.shapes or name in RESERVED:
                why = f"{name} is a table" if name in self.shapes else f"{name} has a meaning of its own"
                self.problems.append(self.file.problem(place, why, "Choose another name for the selection."))
                continue
            done = self._try(place, text, lambda text: selection.checked(grammar.parse_selection(text), self.shapes))
            if done is not None:
                found[name], self.shapes[name] = done
            elif (shape := self._intended(text)) is not None:
                self.shapes[name] = shape
            else:
                self._broken.add(name)
        return found

    def _intended(self, text: str) -> Shape | None:
        """Return the shape that a broken selection would have, so that what follows can be checked too."""
        try:
            intended = grammar.parse_selection(text)
        except ExpressionError:
            return None
        return None if intended.joins else self.shapes.get(intended.source.name)

    def _condition(self, place: Place) -> Node | None:
        text: Any = self.data
        for part in place:
            text = text[part]
        return self._try(place, text, lambda text: question.checked(grammar.parse(text), self.shapes))

    def _sentence(self, place: Place, text: str) -> Sentence | None:
        return self._try(place, text, lambda text: sentence.parse(text, self.shapes))

    def _try(self, place: Place, text: str, check: Callable[[str], _T]) -> _T | None:
        """Return what `check` makes of a text, None after a mistake, which is noted with its place."""
        try:
            return check(text)
        except ExpressionError as error:
            # A name that is unknown only because its own selection is broken is not worth a second message.
            if not any(f"is called {name}" in str(error) for name in self._broken):
                self.problems.append(self.file.problem(place, str(error), error.cure, offset=error.place))
        return None

    def _explanation(self, index: int, item: dict[str, Any]) -> Explanation:
        place = ("explains", index)
        because: Any = self._sentence((*place, "because"), item["because"])
        when = self._condition((*place, "when")) if item.get("when") is not None else None
        return Explanation(item["symptom"], because, when, item.get("weak", False))

    def _objection(self, index: int, item: dict[str, Any]) -> Objection:
        place = ("against", index)
        because: Any = self._sentence((*place, "because"), item["because"])
        when: Any = self._condition((*place, "when"))
        return Objection(when, because, item.get("refutes", False))

    def _steps(self, key: str) -> list[Advice]:
        steps = []
        for index, item in enumerate(self.data.get(key, [])):
            step = {"do": item} if isinstance(item, str) else item
            place = (key, index) if isinstance(item, str) else (key, index, "do")
            do: Any = self._sentence(place, step["do"])
            command: Any = self._sentence((key, index, "command"), step.get("command") or "")
            steps.append(Advice(do, command, step.get("risk") or "", step.get("check") or ""))
        return steps
