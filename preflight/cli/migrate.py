"""preflight migrate"""

from __future__ import annotations

from typing import Annotated

from preflight.checking.engine import Report, Unreadable
from preflight.checking.verification import verify_facts, verify_release
from preflight.cli import output, session
from preflight.cli.codes import FOUND, OK, USAGE
from preflight.cli.delivery import deliver, read_for
from preflight.cli.options import Inputs, JobFacts, Printed, Rules, option, takes
from preflight.cli.unread import refuse_unread
from preflight.run.request import Target
from preflight.run.settings import Facts
from preflight.source.text import InputError

To = Annotated[str, option("--to", metavar="FRAMEWORK@VERSION", help="The release to move to.", completion="targets")]


@takes(Inputs, JobFacts, Rules, Printed)
def migrate(inputs: Inputs, facts: JobFacts, rules: Rules, out: Printed, to: To) -> int:
    """Print what changes for each run in another release of its framework.

    Options that are renamed or gone, checks that are new, values and defaults that change, each with its place.
    The release that a run has now is --target, else the newest one that takes its options. `preflight fix --target`
    writes the fixes.

    Exit codes: 0 the other release refuses nothing new, 1 it does, 2 wrong usage.
    """
    from preflight.checking.migration import Migration, migrations
    from preflight.report.dump import dumped
    from preflight.report.migration import migration_dict, migration_text

    style = output.printed(out)
    checker = session.checker(facts, rules)
    verify_facts(Facts(target=to), checker.plugins)
    verify_release(to, checker.plugins)
    unread: list[InputError] = []
    found: list[Migration] = []
    for source, asked in session.sources(checker, inputs, unread):
        try:
            found += migrations(checker, source, Target.parse(to))
        except InputError as error:
            if checker.ours(source, error, asked=asked):
                unread.append(InputError(error.message, error.path or source.name, error.line, error.column))
    report = Report(
        jobs=tuple(one.before for one in found),
        errors=tuple(Unreadable(error.path, error.line, error.column, error.message) for error in unread),
    )
    refuse_unread(checker, inputs, [run.before.documents[0].source.name for run in found])
    as_json = out.output_format == "json"
    if found or as_json:
        runs = dumped({"schema": 1, "runs": [migration_dict(one) for one in found]}) if as_json else ""
        deliver(runs or "\n".join(migration_text(one, style) for one in found), out.output_file, read_for(report))
    output.write(Report(errors=report.errors), [], style)
    if report.errors:
        return USAGE
    if not found:
        return output.nothing("read", (), checker)
    return OK if all(one.accepted for one in found) else FOUND
