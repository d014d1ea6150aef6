"""Launch scripts as documents, one per launch. Nothing is executed."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.loaders.document import MARK, Document, Problem
from preflight.loaders.file_kinds import is_script
from preflight.loaders.shell.assignments import distinct
from preflight.loaders.shell.bash_parser import Tree, parse
from preflight.loaders.shell.command_effects import Commands
from preflight.loaders.shell.cut_commands_and_unused_variables import LOST, faults
from preflight.loaders.shell.edit_ranges_and_comments import comments
from preflight.loaders.shell.launches import Found, outside
from preflight.loaders.shell.silent_mistakes import launch_slips, slips
from preflight.loaders.shell.syntax_errors import Refusal, refusal, with_cause
from preflight.loaders.shell.unreached_launches import not_launched, own_exit, swallowed
from preflight.loaders.shell.unset_variables import launch_faults
from preflight.loaders.slurm import sbatch, variables
from preflight.loaders.text_limits import MAX_PADDED
from preflight.source.resolved_words import Piece
from preflight.source.source_file import Source, Span
from preflight.source.typing_without_import import Protocol

__all__ = ["Spent", "load_script"]

_NOTHING: Mapping[str, str] = {}


class Spent(Protocol):
    """The total work done for several scripts."""

    work: int


def load_script(
    source: Source, environment: Mapping[str, str] = _NOTHING, spent: Spent | None = None, *, whole: bool = False
) -> tuple[Document, ...]:
    """The launches of a script; one document without a launch if there is none. Raises InputError.

    environment: variables known to be set. spent: the work of the scripts before this one, to which its own is added.
    whole: also read the text after the place at which bash stops, without reporting it.
    """
    refused = refusal(source) if not whole else None
    tree = parse(source, MAX_PADDED, None if refused is None or refused.readable else refused.unit)
    asked, _ = sbatch(source)
    commands = Commands(source, {**environment, **source.variables}, asked, variables(asked))
    commands.state.held = frozenset(source.variables)
    if source.arguments:
        end = source.span(len(source.text))
        commands.expander.arguments = [(Piece(word, end),) for word in source.arguments]
    commands.expander.work = spent.work if spent is not None else 0
    commands.run(tree)
    if spent is not None:
        spent.work = commands.expander.work
    noted = [outside(found, commands.texts) for found in commands.found]
    commands.found[:] = distinct(noted, lambda found: found.taken.launch) if commands.state.several else noted
    said = tuple(comments(tree)) if MARK in source.text else ()
    problems = _of_script(tree, commands, refused)
    also, looked = tuple(commands.files.opened.values()), tuple(commands.files.looked)
    found = [f for f in commands.found if _is_program(f)] or commands.found
    if not whole and (ended := _ended(source, tree, commands, environment, refused)) is not None:
        return (ended,)
    if not found:
        return (Document(source, "script", comments=said, problems=problems, also=also, looked=looked),)
    return tuple(
        Document(source, "script", None, f.taken.launch, said, told, run, len(found), also, looked)
        for run, f in enumerate(found)
        for told in [_problems(f, commands, problems)]
    )


def _is_program(found: Found) -> bool:
    """Whether a launch starts a program, itself or through a script that is not available, and not only a script."""
    launch = found.taken.launch
    return launch.launcher != "bash" or (launch.entry.text or "").endswith(".py")


def _ended(
    source: Source, tree: Tree, commands: Commands, environment: Mapping[str, str], refused: Refusal | None
) -> Document | None:
    """The launch that a script never reaches, or None."""
    if "<<" in source.text and (found := swallowed(source)) is not None:
        problem, meant = found
        if any(one.statement.start < problem.span.start for one in commands.found) or refusal(meant) is not None:
            return None
        again = parse(meant, MAX_PADDED)
    elif refused is None and not commands.found and (own := own_exit(tree, commands)) is not None:
        problem, meant, again = own, source, tree
    else:
        return None
    asked, _ = sbatch(meant)
    beyond = Commands(meant, {**environment, **source.variables}, asked, variables(asked))
    beyond.through = True
    beyond.run(again)
    launch = next((one.taken.launch for one in beyond.found if one.taken.launch.launcher != "bash"), None)
    return not_launched(source, launch, problem, tuple(commands.files.opened.values())) if launch is not None else None


def _of_script(tree: Tree, commands: Commands, refused: Refusal | None) -> tuple[Problem, ...]:
    """The problems of a script as a whole, and the place where bash stops in it or in a script that it sources."""
    noticed = (*faults(tree, commands), *(slips(tree, commands) if commands.found else ()))
    followed = (
        found.problem(source)
        for source in commands.files.opened.values()
        if is_script(source) and (found := refusal(source)) is not None
    )
    if refused is None:
        return (*noticed, *followed)
    told = with_cause(refused, noticed, tree.source) if refused.readable else [refused.problem(tree.source)]
    return (*told, *followed)


def _problems(found: Found, commands: Commands, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The problems of a launch and of the script, without lost lines that belong to other launches."""
    elsewhere = [other.statement for other in commands.found if other is not found]
    own = (p for p in problems if p.kind != LOST or not any(_holds(statement, p.span) for statement in elsewhere))
    return (*found.taken.problems, *launch_faults(found, commands), *launch_slips(found, commands), *own)


def _holds(statement: Span, span: Span) -> bool:
    return statement.source is span.source and statement.start <= span.start < statement.end
