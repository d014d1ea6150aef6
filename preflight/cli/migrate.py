"""preflight migrate: what another release changes, and the rewritten options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from preflight.checking.engine import Report, Unreadable
from preflight.checking.request_validation import verify_facts, verify_release
from preflight.cli import checker_setup, output
from preflight.cli.exit_codes import FOUND, OK, USAGE
from preflight.cli.options import Inputs, JobFacts, Printed, Rules, option, takes
from preflight.cli.output import deliver, read_for, refuse_unread
from preflight.report.source_excerpts_and_escapes import Look
from preflight.run.project_settings import Facts
from preflight.run.request import Target
from preflight.source.source_file import InputError

if TYPE_CHECKING:
    from preflight.checking.configured_checker import Checker
    from preflight.checking.migration_effects import Migration
    from preflight.fix.migration import Rewritten

To = Annotated[
    str, option("--to", metavar="FRAMEWORK@VERSION", help="The release to migrate to.", completion="targets")
]
Write = Annotated[bool, option("--write", help="Rewrite the files in place for that release.")]


@takes(Inputs, JobFacts, Rules, Printed)
def migrate(inputs: Inputs, facts: JobFacts, rules: Rules, out: Printed, to: To, write: Write = False) -> int:
    """Print what changes for each run with another release of its framework.

    Lists renamed and removed options, new checks and changed values, each with its place, and changed defaults that
    affect the training. The current release of a run is --target; without it, the newest release that accepts the
    options of the run.

    --write changes the files: it renames and removes options, replaces values, and writes out defaults that change the
    training. It checks each change as `preflight fix` does. Settings that need a decision are listed, not changed.

    Exit codes: 0 if the other release refuses nothing new, 1 if it refuses something new, 2 for wrong usage.
    """
    style = output.printed(out)
    checker = checker_setup.checker(facts, rules)
    _verify(checker, inputs, to, write=write)
    unread: list[InputError] = []
    found, rewrites = _moved(checker, inputs, Target.parse(to), unread, write=write)
    report = Report(
        jobs=tuple(one.before for one in found),
        errors=tuple(Unreadable(error.path, error.line, error.column, error.message) for error in unread),
    )
    refuse_unread(checker, inputs, [run.before.documents[0].source.name for run in found])
    if found or out.output_format == "json":
        text = _text(found, rewrites, style, as_json=out.output_format == "json")
        deliver(text, out.output_file, read_for(report))
    _written(rewrites)
    output.write(Report(errors=report.errors), [], style)
    if report.errors:
        return USAGE
    if not found:
        return output.nothing("read", (), checker)
    return OK if all(one.accepted for one in (rewrites or found)) else FOUND


def _verify(checker: Checker, inputs: Inputs, to: str, *, write: bool) -> None:
    """Raises InputError for an undescribed release, and for text that cannot be rewritten in place."""
    verify_facts(Facts(target=to), checker.plugins)
    verify_release(to, checker.plugins)
    if write and checker_setup.STDIN in (inputs.paths or []):
        raise InputError("--write changes files, but stdin is not a file")


def _moved(
    checker: Checker, inputs: Inputs, to: Target, unread: list[InputError], *, write: bool
) -> tuple[list[Migration], list[Rewritten]]:
    """Each run in both releases, and each rewritten file. Unreadable files are returned separately."""
    from preflight.checking.migration_effects import migrations
    from preflight.fix.migration import rewritten
    from preflight.fix.permitted_fixes import Boundary

    found: list[Migration] = []
    rewrites: list[Rewritten] = []
    inside = Boundary(inputs.paths or ["."])
    for source, asked in checker_setup.sources(checker, inputs, unread):
        try:
            if write:
                rewrites.append(rewritten(checker, source, to, inside))
            found += rewrites[-1].found if write else migrations(checker, source, to)
        except InputError as error:
            if checker.ours(source, error, asked=asked):
                unread.append(InputError(error.message, error.path or source.name, error.line, error.column))
    return found, rewrites


def _text(found: list[Migration], rewrites: list[Rewritten], style: Look, *, as_json: bool) -> str:
    """The output: the changes of each run, or the rewritten files."""
    from preflight.report.json_encoding import dumped
    from preflight.report.migration import migration_dict, migration_text, rewritten_dict, rewritten_text

    if as_json:
        files = {"files": [rewritten_dict(one) for one in rewrites]} if rewrites else {}
        return dumped({"schema": 1, "runs": [migration_dict(one) for one in found], **files})
    return "\n".join([rewritten_text(one, style) for one in rewrites] or [migration_text(one, style) for one in found])


def _written(rewrites: list[Rewritten]) -> None:
    """Write the files that were rewritten."""
    from preflight.source import writing

    for one in rewrites:
        for name, new in one.result.edited.items():
            writing.write(one.result.before[name], new, output.tell_lock)
