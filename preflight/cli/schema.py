"""preflight schema"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Annotated

import typer

from preflight.cli.app import OK
from preflight.cli.completion import begun
from preflight.cli.stream import say
from preflight.dialects import option_schemas as options
from preflight.source.spelling import did_you_mean
from preflight.source.text import InputError


def offered(incomplete: str) -> list[str]:
    """Names of schemas that begin so, for the shell."""
    return begun(every_name(), incomplete)


Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="A schema's name; without it the names are listed.", autocompletion=offered),
]


def schema(name: Name = None) -> int:
    """Print a JSON Schema.

    Of the settings, of the JSON report, of a framework's config.
    """
    known, made = names(), options.names()
    if name is None:
        say("".join(f"{item}\n" for item in every_name()))
    elif name in made:
        say(json.dumps(options.schema(*made[name]), indent=2) + "\n")
    elif name not in known:
        raise InputError(
            f"there is no schema {name!r}{did_you_mean(name, every_name()) or '; there are ' + ', '.join(every_name())}"
        )
    else:
        say(files("preflight.schemas").joinpath(known[name]).read_text(encoding="utf-8").rstrip() + "\n")
    return OK


def every_name() -> list[str]:
    """All schemas, those in files and those that are made."""
    return sorted({*names(), *options.names()})


def names() -> dict[str, str]:
    """Schemas by name, with the file of each: every JSON file of the package that says it is a JSON Schema."""
    found = {}
    pending = [("", files("preflight.schemas"))]
    while pending:
        prefix, folder = pending.pop()
        for entry in folder.iterdir():
            if entry.is_dir():
                pending.append((f"{prefix}{entry.name}/", entry))
            elif (
                entry.name.endswith(".json")
                and '"$schema"' in (text := entry.read_text(encoding="utf-8"))[:4000]
                and isinstance(json.loads(text), dict)
            ):
                found[f"{prefix}{entry.name.removesuffix('.json')}"] = f"{prefix}{entry.name}"
    return found
