"""preflight diff: what differs between two configs for training, memory and step time."""

from __future__ import annotations

from typing import Annotated

from preflight.checking.engine import Report
from preflight.cli import checker_setup, output
from preflight.cli.exit_codes import FOUND, OK
from preflight.cli.options import Compared, Inputs, JobFacts, Rules, option, takes
from preflight.cli.output import deliver, read_for, refuse_unread
from preflight.source.source_file import InputError

FORMATS = ("text", "markdown", "json")
HELP = "Two files or folders, or a git range (HEAD~1.., main...HEAD) and optionally the paths to compare."
Sides = Annotated[list[str] | None, option(metavar="A B|REV..[REV] [PATHS]...", help=HELP)]


@takes(JobFacts, Rules, Compared)
def diff(facts: JobFacts, rules: Rules, out: Compared, sides: Sides = None) -> int:
    """Print the effect of a config change on the runs.

    Prints the layout, batch, tokens per step, parameters and memory before and after the change; the changed
    arguments, including derived ones; and the new and resolved findings. A single revision is compared with the working
    tree.

    Exit codes: 0 without new errors, 1 with new errors, 2 for wrong usage.
    """
    from preflight.checking.comparison import USAGE, comparisons
    from preflight.report.comparison import comparison_dict, comparison_text, comparisons_markdown
    from preflight.report.json_encoding import dumped

    if not sides:
        raise InputError(USAGE)
    style = output.printed(out, FORMATS)
    checker = checker_setup.checker(facts, rules)
    checker.look_around(sides)
    found = list(comparisons(checker, sides))
    refuse_unread(checker, Inputs(), [one.after or one.before for one in found if one.runs])
    if out.output_format == "json":
        text = dumped({"schema": 1, "files": [comparison_dict(one) for one in found]})
    elif out.output_format == "markdown":
        text = comparisons_markdown(found)
    else:
        text = "\n".join(comparison_text(one, style) for one in found) or "No run differs.\n"
    jobs = tuple(job for one in found for run in one.runs for job in (run.before, run.after) if job is not None)
    deliver(text, out.output_file, read_for(Report(jobs=jobs, checked=tuple(sides))))
    return OK if all(one.accepted for one in found) else FOUND
