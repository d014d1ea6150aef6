"""Options that several commands share: each group is declared once, and a command takes the groups it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from preflight.record import NamedTuple


class Option(NamedTuple):
    """How an option or, without names, an argument is declared to typer, which a plain `check` does without.

    completion: the function of preflight.cli.completion that completes its values.
    """

    names: tuple[str, ...]
    more: dict[str, Any]
    completion: str

    def made(self) -> Any:
        """As typer wants it."""
        import typer

        if self.completion:
            from preflight.cli import completion

            return typer.Option(*self.names, **self.more, autocompletion=getattr(completion, self.completion))
        return typer.Option(*self.names, **self.more) if self.names else typer.Argument(**self.more)


def _option(*names: str, help: str, completion: str = "", **more: Any) -> Option:
    return Option(names, {"help": help, "show_default": False, **more}, completion)


class Inputs(NamedTuple):
    """Which files."""

    paths: Annotated[list[str] | None, _option(metavar="[PATHS|-]...", help="Files, folders, or - for stdin.")] = None
    stdin_filename: Annotated[str | None, _option("--stdin-filename", metavar="PATH", help="Name of the text on stdin.")] = None
    exclude: Annotated[list[str] | None, _option("--exclude", metavar="PATTERN", help="Files and folders not to look for in folders.")] = None
    force_exclude: Annotated[bool, _option("--force-exclude", help="Exclude files that are named as well.")] = False
    allow_unclaimed: Annotated[bool, _option("--allow-unclaimed", help="Pass over files that are no training config.")] = False


class JobFacts(NamedTuple):
    """What holds for the job beside the files."""

    world_size: Annotated[int | None, _option("--world-size", metavar="N", help="Number of devices.")] = None
    nodes: Annotated[int | None, _option("--nodes", metavar="N", help="Number of nodes.")] = None
    devices_per_node: Annotated[int | None, _option("--devices-per-node", metavar="M", help="Devices on a node.")] = None
    device: Annotated[str | None, _option("--device", metavar="NAME", help="The accelerator.", completion="devices")] = None
    target: Annotated[str | None, _option("--target", metavar="FRAMEWORK[@VERSION]", help="The framework that reads the config.", completion="targets")] = None


class Rules(NamedTuple):
    """Which rules, by whose settings."""

    select: Annotated[list[str] | None, _option("--select", metavar="RULE", help="Run only these rules (ids, with * or commas).", completion="rules")] = None
    ignore: Annotated[list[str] | None, _option("--ignore", metavar="RULE", help="Do not run these rules.", completion="rules")] = None
    config: Annotated[str | None, _option("--config", metavar="FILE", help="Settings file instead of the nearest one.")] = None
    isolated: Annotated[bool, _option("--isolated", help="Read no settings file.")] = False


Color = Annotated[str, _option("--color", metavar="auto|always|never", help="Colours (NO_COLOR and FORCE_COLOR hold for auto).")]
File = Annotated[str | None, _option("--output-file", "-o", metavar="FILE", help="Write the report here.")]
Quiet = Annotated[bool, _option("--quiet", "-q", help="Findings only, no summary.")]
FORMATS = "text, concise, json, sarif, github, gitlab, junit, markdown, html, statistics; repeatable."


class Output(NamedTuple):
    """What `check` prints where."""

    output_format: Annotated[list[str] | None, _option("--output-format", "-f", metavar="FORMAT[:FILE]", help=FORMATS, completion="formats")] = None
    output_file: File = None
    color: Color = "auto"
    quiet: Quiet = False
    verbose: Annotated[bool, _option("--verbose", "-v", help="Say more: how files were read, what was skipped.")] = False
    show_unknown: Annotated[bool, _option("--show-unknown", help="List what could not be verified.")] = False


class Printed(NamedTuple):
    """What the commands print that describe runs."""

    output_format: Annotated[str, _option("--output-format", "-f", metavar="text|json", help="For people, or for programs.")] = "text"
    output_file: File = None
    color: Color = "auto"


class Outcome(NamedTuple):
    """How `fix` tells what it did."""

    color: Color = "auto"
    quiet: Quiet = False


class Scope(NamedTuple):
    """Which of the findings."""

    baseline: Annotated[str | None, _option("--baseline", metavar="FILE", help="Say nothing of the findings that `preflight baseline` wrote down.")] = None
    diff_base: Annotated[str | None, _option("--diff-base", metavar="REV", help="Only what changed against this revision of git touched or brought.")] = None


def declared(hint: Any) -> Any:
    """A type hint with typer's own declaration in place of ours."""
    ours = next((part for part in hint.__metadata__ if isinstance(part, Option)), None)
    return hint if ours is None else Annotated[hint.__origin__, ours.made()]


def takes(*groups: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a command function of one that takes groups of options as its first parameters: typer sees single options."""
    import inspect
    from typing import get_type_hints

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        own = list(inspect.signature(function).parameters.values())[len(groups) :]
        hints = [{name: declared(hint) for name, hint in get_type_hints(group, include_extras=True).items()} for group in groups]
        flat = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=group._field_defaults[name], annotation=hint)
            for group, names in zip(groups, hints, strict=True)
            for name, hint in names.items()
        ]
        own_hints = inspect.get_annotations(function, eval_str=True)  # get_type_hints adds Optional before Python 3.11
        flat += [p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=own_hints[p.name]) for p in own]

        def command(**given: Any) -> Any:
            packed = [group(*(given.pop(name) for name in names)) for group, names in zip(groups, hints, strict=True)]
            return function(*packed, **given)

        command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in flat}
        command.__doc__, command.__name__ = function.__doc__, function.__name__
        return command

    return make


def listed(values: list[str] | None) -> tuple[str, ...]:
    """The items of a repeatable option whose values may be separated by commas."""
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())
