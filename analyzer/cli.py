"""The command line: a thin user of the library, with exit codes scripts can use."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from analyzer import output
from analyzer.cli_rules import explain, rules_app
from analyzer.errors import AnalyzerError, UnreadableBundle
from analyzer.report.visible import visible

if TYPE_CHECKING:
    from analyzer import Analysis
    from analyzer.case import Case

FORMATS = ("text", "html", "pdf", "json")
SEVERITIES = ("info", "low", "medium", "high", "critical")
TABLE_FORMATS = ("text", "csv", "jsonl")

app = typer.Typer(
    name="postmortem",
    help="One support bundle in, one honest incident report out, offline.\n\n"
    "  postmortem bundle.tar.xz                     the report on the terminal\n\n"
    "  postmortem analyze bundle/ -o report.html    a page to attach; .pdf and .json too\n\n"
    "  postmortem explain page-alloc-stall          what a rule looks for, and what to do\n\n"
    "Exit: 0 done, 1 findings at or above --fail-on, 2 wrong usage or unreadable input or rule, "
    "3 a bug of ours, 4 parts could not be read (--strict).",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(rules_app, name="rules")
app.command()(explain)

Bundle = Annotated[str, typer.Argument(help="A directory, a file, an archive, or - for standard input.")]
RulesDirs = Annotated[list[Path] | None, typer.Option("--rules", help="A folder of further rules. Repeatable.")]


@app.command()
def analyze(
    bundles: Annotated[list[str], typer.Argument(metavar="BUNDLE...", help="Directories, files, archives, or -.")],
    output: Annotated[
        str, typer.Option("-o", "--output", help="FILE (format by its suffix), a folder for several bundles, or -.")
    ] = "",
    formats: Annotated[
        list[str] | None, typer.Option("-f", "--format", help=f"{', '.join(FORMATS)}. Repeatable with -o FILE.")
    ] = None,
    rules: RulesDirs = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Judge only this rule. Repeatable.")] = None,
    min_severity: Annotated[str, typer.Option(help="Leave milder findings out of the report.")] = "info",
    fail_on: Annotated[str, typer.Option(help="Exit 1 when a finding is at or above this severity.")] = "",
    strict: Annotated[bool, typer.Option("--strict", help="Exit 4 when any part could not be read.")] = False,
) -> None:
    """Analyze bundles and write a report of each.

    Examples:

      postmortem analyze sosreport.tar.xz -o report.html

      postmortem analyze bundle/ -o report -f html -f pdf -f json

      dmesg | postmortem analyze - --fail-on high
    """
    _one_of(min_severity, SEVERITIES, "--min-severity")
    if fail_on:
        _one_of(fail_on, SEVERITIES, "--fail-on")
    targets = _targets(bundles, output, formats or [])
    worst, gaps, unread = -1, 0, 0
    for bundle in bundles:
        try:
            with _progress() as tell:
                import analyzer

                stdin = _stdin() if bundle == "-" else None
                analysis = analyzer.open(bundle, rules=rules or (), only=only or (), stdin=stdin, progress=tell)
        except UnreadableBundle as error:
            if len(bundles) == 1:
                raise
            _tell(str(error))  # the others may be well
            unread += 1
            continue
        worst = max([worst, *(SEVERITIES.index(finding.severity) for finding in analysis.findings)])
        gaps += len(analysis.gaps)
        _write(_at_least(analysis, min_severity), targets[bundle])
    if unread:
        _tell(f"{unread} of {len(bundles)} bundles could not be read")
        raise typer.Exit(2)
    if fail_on and worst >= SEVERITIES.index(fail_on):
        raise typer.Exit(1)
    if strict and gaps:
        _tell(f"{gaps} parts could not be read; the report lists them")
        raise typer.Exit(4)


@app.command()
def inventory(bundle: Bundle) -> None:
    """List what each part of a bundle was taken for, and what is known to be missing.

    Example: postmortem inventory sosreport.tar.xz
    """
    from analyzer.report.terminal import inventory_lines

    print("\n".join(inventory_lines(_read(bundle))))


@app.command()
def tables(
    bundle: Annotated[str, typer.Argument(help="A bundle; without it the tables are described.")] = "",
    table: Annotated[str, typer.Argument(help="One table, printed whole.")] = "",
    format: Annotated[str, typer.Option("-f", "--format", help=", ".join(TABLE_FORMATS) + ".")] = "text",
) -> None:
    """Describe the tables, or print those of a bundle.

    Examples:

      postmortem tables                                every table and column

      postmortem tables bundle/                        the tables this bundle fills

      postmortem tables bundle/ alloc_stall -f csv     one of them, whole

    In csv a text that a spreadsheet would take for a formula begins with an apostrophe; jsonl has every text as it is.
    """
    from analyzer import listing

    _one_of(format, TABLE_FORMATS, "--format")
    if not bundle:
        print("\n".join(listing.described()))
        return
    print("\n".join(listing.printed(_read(bundle), table, format)))


@app.command()
def version() -> None:
    """Print the version."""
    import analyzer

    print(f"postmortem {analyzer.version()}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: the one place where errors become exit codes."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    if given and (given[0] == "-" or not given[0].startswith("-")) and given[0] not in known | {"rules"}:
        given.insert(0, "analyze")  # a bare `postmortem BUNDLE`
    elif given[:1] == ["--version"]:
        given[0] = "version"
    output.stand_in()
    signal.signal(signal.SIGTERM, _terminated)
    try:
        try:
            app(given, standalone_mode=True)
        finally:
            sys.stdout.flush()  # at exit it would fail with a status of Python's own
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # typer makes it a 1, which means findings
            output.let_go_of_stdout()
            sys.exit(0)
        raise
    except AnalyzerError as error:
        _tell(str(error))
        sys.exit(2)
    except BrokenPipeError:  # `postmortem … | head`: the reader has what it wanted
        output.let_go_of_stdout()
        sys.exit(0)
    except OSError as error:  # input that cannot be read is a gap by now, so it is the output, or a full /tmp
        output.let_go_of_stdout()
        place = error.filename or "standard output"
        _tell(f"{place} cannot be written: {error.strerror or error}")
        sys.exit(2)
    except KeyboardInterrupt:
        _tell("interrupted")
        sys.exit(130)
    except Exception as error:
        _report_bug(error)
        sys.exit(3)


def _terminated(number: int, frame: FrameType | None) -> None:
    """End at once, without a half-written file. An exception could get lost in a callback of Pango's."""
    output.forget()
    os._exit(128 + number)


def _tell(words: str) -> None:
    """Print to standard error; when that cannot be written, the exit code still says it all."""
    with contextlib.suppress(OSError):
        print(f"postmortem: {visible(words)}", file=sys.stderr)


def _stdin() -> BinaryIO | None:
    """Return standard input, None when it was closed before us."""
    return sys.stdin.buffer if sys.stdin else None


def _read(bundle: str) -> Case:
    """Return the case of a bundle as the command line names it."""
    from analyzer import case

    if not bundle:
        raise AnalyzerError("the bundle's name is empty", cure="Is a variable of your script not set?")
    with _progress() as tell:
        return case.read(None if bundle == "-" else Path(bundle), stdin=_stdin(), progress=tell)


def _targets(bundles: list[str], output: str, formats: list[str]) -> dict[str, list[tuple[str, Path | None]]]:
    """Return for each bundle the (format, file) pairs to write; the file is None for standard output."""
    for format in formats:
        _one_of(format, FORMATS, "--format")
    if output in ("", "-"):
        if len(formats) > 1 or (not output and formats not in ([], ["text"])):
            raise AnalyzerError(
                f"where should the {' and '.join(formats)} report go?",
                cure="Name a file with `-o FILE`, or `-o -` for one report on standard output",
            )
        return {bundle: [((formats or ["text"])[0], None)] for bundle in bundles}
    target = Path(output)
    if len(bundles) > 1 or output.endswith("/") or target.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        stems = {bundle: target / name for bundle, name in _names(bundles).items()}
        wanted = formats or ["html"]
        return {bundle: [(format, Path(f"{stems[bundle]}.{format}")) for format in wanted] for bundle in bundles}
    suffix = {".txt": "text", ".htm": "html"}.get(target.suffix, target.suffix[1:])
    if len(formats) > 1:
        base = target.with_suffix("") if suffix in FORMATS else target
        return {bundles[0]: [(format, Path(f"{base}.{'txt' if format == 'text' else format}")) for format in formats]}
    return {bundles[0]: [(_one_of((formats or [suffix])[0], FORMATS, f"-o {output}: format"), target)]}


def _names(bundles: list[str]) -> dict[str, str]:
    """Return what the report of each bundle is called; bundles of the same name are numbered."""
    names: dict[str, str] = {}
    for bundle in dict.fromkeys(bundles):
        own = "stdin" if bundle == "-" else Path(bundle).resolve().name or "root"
        tried = itertools.chain([own], (f"{own}-{number}" for number in itertools.count(2)))
        names[bundle] = next(name for name in tried if name not in names.values())
    return names


def _write(analysis: Analysis, targets: list[tuple[str, Path | None]]) -> None:
    """Write one analysis to its targets."""
    for format, path in targets:
        if path is not None:
            output.write(path, analysis.report(format))
            _tell(f"wrote {path}")
        elif format == "text":
            from analyzer.report.terminal import render_text

            output.write_stdout(render_text(analysis.verdict, colour=_colour()).encode("utf-8"))
        else:
            output.write_stdout(analysis.report(format))


def _at_least(analysis: Analysis, severity: str) -> Analysis:
    """Return the analysis with milder findings and candidates left out."""
    floor = SEVERITIES.index(severity)
    verdict = analysis.verdict
    verdict.findings = [f for f in verdict.findings if SEVERITIES.index(f.severity) >= floor]
    verdict.candidates = [c for c in verdict.candidates if SEVERITIES.index(c.finding.severity) >= floor]
    return analysis


def _one_of(value: str, allowed: Sequence[str], what: str) -> str:
    """Return the value; raises AnalyzerError when it is none of those allowed."""
    if value not in allowed:
        raise AnalyzerError(f"{what} is {value!r}", cure=f"It can be {', '.join(allowed)}")
    return value


def _colour() -> bool:
    """Return whether the terminal report may use colour: a terminal, and NO_COLOR not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Give a function that tells which member is being read, on a terminal's standard error only."""
    shown = sys.stderr.isatty()

    def tell(member: str) -> None:
        if shown:
            name = "".join(sign if sign.isprintable() else "?" for sign in member)
            print(f"\r\x1b[Kreading {name[-100:]}", end="", file=sys.stderr, flush=True)

    try:
        yield tell
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _report_bug(error: Exception) -> None:
    """Say what went wrong inside us, without any content of the bundle beyond the error's own words."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else "?"
    print(
        f"postmortem: a bug of ours: {type(error).__name__} at {where}: {str(error)[:300]}\n"
        "Please report it with this line, `postmortem version`, and, if you may share it, the smallest part of the "
        "bundle that shows it. POSTMORTEM_DEBUG=1 prints where it happened in full.",
        file=sys.stderr,
    )
    if os.environ.get("POSTMORTEM_DEBUG"):
        import traceback

        traceback.print_exception(error)


if __name__ == "__main__":
    main()
