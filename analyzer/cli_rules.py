"""The command line's part about rules: list, show, check, test, schema, and explain."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from analyzer.errors import AnalyzerError
from analyzer.suggest import did_you_mean

if TYPE_CHECKING:
    from analyzer.rules import Advice, Rule

WIDTH = 96

rules_app = typer.Typer(
    help="List, show, check and test the rules.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Folders = Annotated[list[Path] | None, typer.Option("--rules", help="A folder of further rules. Repeatable.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[RULE...]", help="Only these rules; all when left out.")]


@rules_app.command("list")
def list_rules(rules: Folders = None) -> None:
    """List the rules: id, severity, status, title.

    Example: postmortem rules list
    """
    for rule in _book(rules).values():
        print(f"{rule.id:<28} {rule.severity:<9} {rule.status:<7} {rule.title}")


@rules_app.command()
def show(rule: Annotated[str, typer.Argument(help="The rule's id.")], rules: Folders = None) -> None:
    """Print a rule's file as it is written.

    Example: postmortem rules show page-alloc-stall
    """
    print(_named(_book(rules), rule).file.read_text(encoding="utf-8"), end="")


@rules_app.command()
def check(
    folders: Annotated[list[Path] | None, typer.Argument(help="Folders of rules; those shipped when left out.")] = None,
) -> None:
    """Check rules and their cases for mistakes, all of them at once. Exit 2 when there is one.

    Example: postmortem rules check my-rules/
    """
    from analyzer import cases
    from analyzer.rules import load

    book = load(folders or ())
    poor = {rule.id: lacking for rule in book.values() if (lacking := cases.lacking(rule))}
    for rule, lacking in poor.items():
        kinds = ", one that is ".join(kind.replace("finds", "found") for kind in lacking)
        print(f"{book[rule].cases}: {rule} has no case for: {kinds}", file=sys.stderr)
    stable = [rule for rule in poor if book[rule].status == "stable"]
    if stable:
        raise AnalyzerError(
            f"{len(stable)} stable rules lack cases",
            cure="Add a case that fires, one that resembles it and does not, and one with the evidence missing, "
            "or set `status: draft`",
        )
    print(f"{len(book)} rules are well formed")


@rules_app.command("test")
def run_cases(ids: Ids = None, rules: Folders = None) -> None:
    """Run the cases beside the rules. Exit 1 when one fails.

    Examples:

      postmortem rules test

      postmortem rules test my-rule --rules my-rules/
    """
    from analyzer import cases

    book = _book(rules)
    results = cases.run([_named(book, name) for name in ids] if ids else book.values())
    failed = [result for result in results if not result.passed]
    for result in failed:
        for failure in result.failures:
            print(f"{result.where}: {result.rule}: {result.case}: {failure}")
    print(f"{len(results) - len(failed)} cases passed, {len(failed)} failed")
    if failed:
        raise typer.Exit(1)


@rules_app.command()
def schema() -> None:
    """Print the JSON schema of a rule file, for editors.

    Example: postmortem rules schema > rules.schema.json
    """
    from analyzer.rules import schema as rule_schema

    print(json.dumps(rule_schema(), indent=1))


def explain(rule: Annotated[str, typer.Argument(help="The rule's id.")], rules: Folders = None) -> None:
    """Explain a rule: what it looks for, how the failure works, what to do, what it misses.

    Example: postmortem explain page-alloc-stall
    """
    book = _book(rules)
    print("\n".join(_explained(_named(book, rule), book)))


def _book(folders: list[Path] | None) -> dict[str, Rule]:
    from analyzer.rules import load

    return load(folders or ())


def _named(book: dict[str, Rule], name: str) -> Rule:
    """Return a rule by id; raises AnalyzerError with the nearest id when there is none."""
    if name not in book:
        raise AnalyzerError(f"there is no rule {name!r}", cure=did_you_mean(name, book))
    return book[name]


def _explained(rule: Rule, book: dict[str, Rule]) -> Iterator[str]:
    """Yield a rule as prose."""
    source = rule.source
    yield f"{rule.title}  ({rule.id}, {rule.severity}, {rule.status})"
    if mechanism := source.get("mechanism"):
        yield ""
        yield from textwrap.wrap(" ".join(str(mechanism).split()), WIDTH)
    yield "\nLooks for"
    for name, selection in source.get("let", {}).items():
        yield from _item(f"{name}: {' '.join(str(selection).split())}")
    yield from _item(f"found when {' '.join(str(source['when']).split())}")
    yield from _item(f"needs the tables {', '.join(rule.needs) or 'of its selections'}, else it is not judged")
    yield from _section(
        "Can cause", [f"{book[e.symptom].title} ({e.symptom}): {e.because.written}" for e in rule.explains]
    )
    yield from _section(
        "Can come of",
        [f"{other.title} ({other.id})" for other in book.values() if rule.id in {e.symptom for e in other.explains}],
    )
    yield from _section("What to do", [line for step in rule.advice for line in _step(step)])
    yield from _section("What to capture", [line for step in rule.capture for line in _step(step)])
    yield from _section("Looks like it", rule.looks_like)
    yield from _section("Misses", rule.misses)
    yield from _section("Sources", rule.sources)


def _section(heading: str, items: list[str]) -> Iterator[str]:
    if items:
        yield f"\n{heading}"
        for item in items:
            yield from _item(item) if not item.startswith("      ") else [item]


def _item(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  - ", subsequent_indent="    ", break_long_words=False)


def _step(step: Advice) -> Iterator[str]:
    yield step.do.written
    if step.command.written:
        yield f"      {step.command.written}"
    if step.risk:
        yield f"      risk: {step.risk}"
    if step.check:
        yield f"      worked when: {step.check}"
