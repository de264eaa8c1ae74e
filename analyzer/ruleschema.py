"""What may stand in a rule file, field by field; published as `rules.schema.json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from analyzer.rulefile import Problem, RuleFile
from analyzer.suggest import did_you_mean

Severity = Literal["info", "low", "medium", "high", "critical"]
Text = Annotated[str, Field(min_length=1)]
Condition = Annotated[str, Field(min_length=1, description="an expression over selections, as in `when`")]
FilledText = Annotated[str, Field(min_length=1, description="a sentence; {EXPRESSION|filter} puts a value in")]


class Strict(BaseModel):
    """No unknown fields, no silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Grade(Strict):
    """Another severity where a condition holds."""

    when: Condition
    severity: Severity


class Explains(Strict):
    """A symptom this finding can have caused."""

    symptom: Annotated[str, Field(description="the id of the rule that finds the symptom")]
    because: FilledText
    when: Condition | None = None
    weak: Annotated[bool, Field(description="an indirect explanation: does not dethrone the symptom")] = False


class Against(Strict):
    """Something in the bundle that would speak against this finding as a cause."""

    when: Condition
    because: FilledText
    refutes: Annotated[bool, Field(description="it cannot be the cause then")] = False


class Advice(Strict):
    """One step: what to do, the exact command, what it risks, how to see that it worked."""

    do: FilledText
    command: Text | None = None
    risk: Text | None = None
    check: Text | None = None


class Capture(Strict):
    """One capture to take."""

    do: FilledText
    command: Text | None = None


def _step(given: Any) -> Any:
    return {"do": given} if isinstance(given, str) else given


class RuleModel(Strict):
    """One signature: a YAML file named after its id, its cases beside it in `<id>.cases.yaml`."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", description="the file's name")]
    title: Text
    status: Annotated[
        Literal["stable", "draft"],
        Field(description="draft until it fired on a real capture and stayed silent on every healthy sample"),
    ]
    severity: Severity
    grade: Annotated[list[Grade], Field(description="the first that holds wins over `severity`")] = []
    needs: Annotated[list[str], Field(description="tables that must be present, else the rule is not judged")] = []
    let: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Text],
        Field(description="selections by name, in order: TABLE where …; their rows are the evidence"),
    ] = {}
    when: Condition
    finding: FilledText
    mechanism: Annotated[str, Field(description="how it works, a sentence like `finding`")] = ""
    specific: Annotated[bool, Field(description="false for a signature that many causes share")] = True
    indirect: Annotated[str | None, Field(description="the evidence is only indirect when this holds")] = None
    explains: list[Explains] = []
    against: list[Against] = []
    advice: list[Annotated[Advice, BeforeValidator(_step, json_schema_input_type=str | Advice)]] = []
    capture: list[Annotated[Capture, BeforeValidator(_step, json_schema_input_type=str | Capture)]] = []
    looks_like: Annotated[list[Text], Field(description="what resembles it and is something else")] = []
    misses: Annotated[list[Text], Field(description="what it cannot see")] = []
    sources: list[Text] = []


def problems(file: RuleFile) -> list[Problem]:
    """Return what is wrong with a file's fields, each at its place."""
    if not isinstance(file.data, dict):
        return [Problem(file.path, 1, 1, "a rule is a mapping of fields", "Begin with `id:`.")]
    try:
        RuleModel.model_validate(file.data)
    except ValidationError as error:
        return [_problem(file, found) for found in error.errors(include_url=False, include_input=False)]
    return []


def _problem(file: RuleFile, found: Any) -> Problem:
    place = found["loc"]
    if found["type"] == "extra_forbidden":
        known = _MODELS.get(place[0], RuleModel) if len(place) > 1 else RuleModel
        cure = did_you_mean(place[-1], known.model_fields)
        return file.problem(place, f"no field is called {place[-1]} here", cure, at_key=True)
    if found["type"] == "missing":
        return file.problem(place[:-1], f"the field {place[-1]} is missing", f"Add `{place[-1]}:`.")
    if place[-1:] == ("[key]",):
        return file.problem(place[:-1], f"{place[-2]!r} cannot be a name", "Use letters, digits and _.", at_key=True)
    message = found["msg"][:1].lower() + found["msg"][1:]
    return file.problem(place, f"{'.'.join(map(str, place))}: {message}", _CURES.get(found["type"], ""))


_MODELS: dict[str, type[Strict]] = {
    "grade": Grade,
    "explains": Explains,
    "against": Against,
    "advice": Advice,
    "capture": Capture,
}
_CURES = {"string_type": "Put it into quotes.", "list_type": "Begin each item on its own line with `- `."}
