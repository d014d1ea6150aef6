"""The app: commands that load when they are called, errors as one line, exit codes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from inspect import get_annotations
from typing import get_args

import click
import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from preflight.cli.codes import FAILED as FAILED
from preflight.cli.codes import FOUND as FOUND
from preflight.cli.codes import INTERRUPTED
from preflight.cli.codes import OK as OK
from preflight.cli.codes import USAGE as USAGE
from preflight.cli.guard import guarded, tell
from preflight.cli.signature import for_typer
from preflight.cli.stream import say
from preflight.cli.words import split
from preflight.source.spelling import did_you_mean, nearest

COMMANDS = {
    "init": "init",
    "check": "check",
    "fix": "fix",
    "show": "show",
    "memory": "memory",
    "layouts": "layouts",
    "gate": "gate",
    "gate-serve": "gate_serve",
    "gate-install": "gate_install",
    "baseline": "baseline",
    "migrate": "migrate",
    "diff": "diff",
    "lsp": "lsp",
    "rules": "rules",
    "explain": "explain",
    "schema": "schema",
    "new-rule": "new_rule",
}


class Command(TyperCommand):
    """A command whose help is plain text: typer escapes brackets for rich even where rich is off."""

    def get_help(self, ctx: click.Context) -> str:
        return super().get_help(ctx).replace("\\[", "[")

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Nothing: typer lists the arguments beside the options."""


class Commands(TyperGroup):
    """The commands by name; a module of this package each, with a function of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"preflight.cli.{COMMANDS[cmd_name]}")
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        function = for_typer(getattr(module, COMMANDS[cmd_name]))
        app.command(cmd_name, cls=Command, context_settings=_CONTEXT)(function)
        command = typer.main.get_command(app)
        hints = get_annotations(function)
        for param in command.params:  # click 8.4 and later take away the help that typer gave to an argument
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
    """Run a command line and give the exit code; whatever goes wrong is one line."""
    return guarded(lambda: _run(*split(list(argv))))


def _run(words: list[str], command: list[str] | None) -> int:
    try:
        code = app(words or ["--help"], prog_name="preflight", standalone_mode=False, obj=command)
        say("")
        return int(code or 0)
    except click.NoSuchOption as error:
        context = f" (try `{error.ctx.command_path} --help`)" if error.ctx else ""
        named = [name for param in error.ctx.command.params for name in param.opts] if error.ctx else []
        close = did_you_mean(error.option_name, [*named, *(error.ctx.help_option_names if error.ctx else ())])
        return tell(f"there is no option {error.option_name!r}{close}{context}", USAGE)
    except click.ClickException as error:
        hint = f" (try `{error.ctx.command_path} --help`)" if isinstance(error, click.UsageError) and error.ctx else ""
        return tell(f"{_sentence(error.format_message())}{hint}", USAGE)
    except click.Abort:
        return INTERRUPTED


def _sentence(text: str) -> str:
    return (text[:1].lower() + text[1:]).rstrip(".")
