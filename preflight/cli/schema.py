"""preflight schema: JSON Schemas of settings, reports and configs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from preflight import schemas
from preflight.cli.app import OK
from preflight.cli.completion import begun
from preflight.cli.exit_handling import say
from preflight.dialects import generated_json_schemas as options
from preflight.report.documentation_urls import schema_url
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import InputError
from preflight.source.spelling import did_you_mean

ID = lazy_pattern('"\\$id": "preflight:[^"]*"')


def offered(incomplete: str) -> list[str]:
    """Names of schemas with this beginning, for the shell."""
    return begun(every_name(), incomplete)


Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="The name of a schema; without a name, all schemas are listed.", autocompletion=offered
    ),
]


def schema(name: Name = None) -> int:
    """Print a JSON Schema.

    There are schemas for the settings, the JSON report and the configs of frameworks.
    """
    known, made = names(), options.names()
    if name is None:
        say("".join(f"{item}\n" for item in every_name()))
    elif name in made:
        say(_addressed(name, json.dumps(options.schema(*made[name]), indent=2)) + "\n")
    elif name not in known:
        raise InputError(
            f"there is no schema {name!r}{did_you_mean(name, every_name()) or '; there are ' + ', '.join(every_name())}"
        )
    else:
        say(_addressed(name, schemas.text(f"{name}.json").rstrip()) + "\n")
    return OK


def _addressed(name: str, text: str) -> str:
    """A schema with the address of the project in its `$id`, if the distribution has one."""
    address = schema_url(name)
    if address is None:
        return text
    own = f'"$id": "{address}"'
    return ID.sub(lambda _: own, text, count=1) if ID.search(text) else text.replace("{", f"{{{own}, ", 1)


def every_name() -> list[str]:
    """All schemas, from files and generated."""
    return sorted({*names(), *options.names()})


def names() -> tuple[str, ...]:
    """Schemas in files: every table that declares itself a JSON Schema."""
    said = (name for name in schemas.names() if '"$schema"' in schemas.text(f"{name}.json")[:4000])
    return tuple(name for name in said if isinstance(schemas.read(name), dict))
