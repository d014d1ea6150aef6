"""The app: commands that load on demand, errors in one line, exit codes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import get_annotations
from types import MappingProxyType
from typing import Annotated, Any, get_args

import click
import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from preflight.cli import completion
from preflight.cli.exit_codes import FAILED as FAILED
from preflight.cli.exit_codes import FOUND as FOUND
from preflight.cli.exit_codes import INTERRUPTED
from preflight.cli.exit_codes import OK as OK
from preflight.cli.exit_codes import USAGE as USAGE
from preflight.cli.exit_handling import guarded, say, tell
from preflight.cli.fast_parser import split
from preflight.cli.options import Option, Started
from preflight.source.spelling import did_you_mean, nearest

Groups = tuple[Any, ...]
CONTEXT = "ctx"


def declared(hint: Any) -> Any:
    """A type hint with typer's own declaration instead of preflight's."""
    ours = next((part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Option)), None)
    return hint if ours is None else Annotated[hint.__origin__, _made(ours)]


def _made(ours: Option) -> Any:
    if not ours.names:
        return typer.Argument(**ours.more)
    complete = getattr(completion, ours.completion) if ours.completion else None
    return typer.Option(*ours.names, **ours.more, autocompletion=complete)


def for_typer(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with one parameter per option, which packs the groups and calls a command function."""
    groups: Groups = getattr(function, "groups", ())
    hints = [get_annotations(group, eval_str=True) for group in groups]
    flat = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=group._field_defaults[name], annotation=declared(hint)
        )
        for group, names in zip(groups, hints, strict=True)
        for name, hint in names.items()
    ]
    own, started = _own(function, len(groups))

    def command(**given: Any) -> Any:
        packed = [group(*(given.pop(name) for name in group._fields)) for group in groups]
        if started:
            given[started] = given.pop(CONTEXT).obj
        return function(*packed, **given)

    command.__signature__ = inspect.Signature([*flat, *own])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*flat, *own)}
    command.__doc__, command.__name__ = function.__doc__, function.__name__
    return command


def _own(function: Callable[..., Any], groups: int) -> tuple[list[inspect.Parameter], str]:
    """The parameters of a function that follow its groups, and the name of the one that takes the command after
    `--`."""
    hints = inspect.get_annotations(function, eval_str=True)  # get_type_hints adds Optional before Python 3.11
    found, started = [], ""
    for parameter in list(inspect.signature(function).parameters.values())[groups:]:
        hint = hints[parameter.name]
        if hint == Started:
            started = parameter.name
            found.append(inspect.Parameter(CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
        else:
            found.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=declared(hint)))
    return found, started


COMMANDS = {
    "init": "init",
    "check": "check",
    "fix": "fix",
    "show": "show",
    "memory": "memory",
    "layouts": "layouts",
    "why": "why",
    "calibrate": "calibrate",
    "gate": "gate",
    "gate-serve": "gate_serve",
    "gate-install": "gate_install",
    "baseline": "baseline",
    "migrate": "migrate",
    "diff": "diff",
    "lsp": "lsp",
    "mcp": "mcp",
    "doctor": "doctor",
    "rules": "rules",
    "explain": "explain",
    "schema": "schema",
    "new-rule": "new_rule",
}


HEADINGS = {
    "Inputs": "Files",
    "JobFacts": "The job",
    "Rules": "Rules and settings",
    "Output": "Output",
    "Printed": "Output",
    "Compared": "Output",
    "Outcome": "Output",
    "Scope": "Known findings",
}
"""Headings of the option groups in the help; a command's own options come first, under "Options"."""


class Command(TyperCommand):
    """A command whose help is plain text: typer escapes brackets for rich even where rich is off.

    headings: the heading by parameter, for parameters of a group.
    """

    headings: Mapping[str, str] = MappingProxyType({})

    def get_help(self, ctx: click.Context) -> str:
        return super().get_help(ctx).replace("\\[", "[")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Arguments, the command's own options, then the groups that it shares with other commands."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                own = "Arguments" if param.param_type_name == "argument" else "Options"
                heading = own if own == "Arguments" else self.headings.get(param.name or "", own)
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes nothing: `format_options` lists the arguments."""


def headings_of(function: Callable[..., Any]) -> dict[str, str]:
    """The heading of each parameter that a command function takes in a shared group of options."""
    groups: Groups = getattr(function, "groups", ())
    return {name: HEADINGS[group.__name__] for group in groups if group.__name__ in HEADINGS for name in group._fields}


LONGEST_SENTENCE = 200
"""Characters of a command's first sentence in the list of commands."""


class Commands(TyperGroup):
    """The commands by name; each is a module of this package, with a function of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each command with its first sentence, which click would cut to one line."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(limit=LONGEST_SENTENCE)) for name, command in commands if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"preflight.cli.{COMMANDS[cmd_name]}")
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        function = for_typer(getattr(module, COMMANDS[cmd_name]))
        app.command(cmd_name, cls=Command, context_settings=_CONTEXT)(function)
        command = typer.main.get_command(app)
        if isinstance(command, Command):
            command.headings = headings_of(getattr(module, COMMANDS[cmd_name]))
        hints = get_annotations(function)
        for param in command.params:  # click 8.4 and later discard the help text that typer sets for an argument
            if isinstance(param, TyperArgument) and not param.help:
                info = get_args(hints.get(param.name or ""))
                param.help = next((part.help for part in info if isinstance(part, ArgumentInfo)), None)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            close = f"check {name}" if os.path.exists(name) else nearest(name, COMMANDS)
            hint = f"; did you mean `preflight {close}`?" if close else ""
            raise click.UsageError(f"there is no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
app = typer.Typer(cls=Commands, rich_markup_mode=None, context_settings=_CONTEXT)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"preflight {import_module('preflight').__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", "-V", help="Print the version and stop.", is_eager=True, callback=_version
    ),
) -> None:
    """Check training configs of large models before the job is queued."""


def run(argv: Sequence[str]) -> int:
    """Run a command line and return the exit code; every failure is reported in one line."""
    return guarded(lambda: _run(*split(list(argv))))


def _run(words: list[str], command: list[str] | None) -> int:
    try:
        code = app(words or ["--help"], prog_name="preflight", standalone_mode=False, obj=command)
        say("")
        return int(code or 0)
    except click.NoSuchOption as error:
        context = _way_to_help(error)
        named = [name for param in error.ctx.command.params for name in param.opts] if error.ctx else []
        close = did_you_mean(error.option_name, [*named, *(error.ctx.help_option_names if error.ctx else ())])
        return tell(f"there is no option {error.option_name!r}{close}{context}", USAGE)
    except click.ClickException as error:
        hint = _way_to_help(error) if isinstance(error, click.UsageError) else ""
        return tell(f"{_sentence(error.format_message())}{hint}", USAGE)
    except click.Abort:
        return INTERRUPTED


def _way_to_help(error: click.UsageError) -> str:
    return f" (try `{error.ctx.command_path} --help`)" if error.ctx else ""


def _sentence(text: str) -> str:
    return (text[:1].lower() + text[1:]).rstrip(".")
