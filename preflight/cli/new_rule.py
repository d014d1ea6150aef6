"""preflight new-rule"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from preflight.cli.app import OK
from preflight.cli.rule_templates import FIXTURE, FRAMEWORKS, FUNCTION, declared
from preflight.source.spelling import did_you_mean
from preflight.source.text import InputError
from preflight.source.writing import create_file, write_file

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The rule's id in kebab case, which names the fault; FRAMEWORK/ID for a declared check."
    ),
]
Into = Annotated[Path, typer.Option("--into", metavar="FOLDER", help="Folder of the rules.")]
Fixtures = Annotated[Path, typer.Option("--fixtures", metavar="FOLDER", help="Folder of their fixtures.")]
NO_PLACE = "new: nobody has named its statement upstream yet"
PAGES = "next: python tests/write_examples.py && preflight rules --write-docs docs/rules"


def new_rule(id: Id, into: Into = Path("rules"), fixtures: Fixtures = Path("tests/rules")) -> int:
    """Write the files of a new rule.

    Its module and its fixture, ready to be run and changed; for FRAMEWORK/ID a declared check, its runs and its pair.
    """
    framework, _, name = id.rpartition("/")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise InputError(f"a rule's id is kebab case, like device-count; {name!r} is not")
    if framework and framework not in FRAMEWORKS:
        raise InputError(f"there are no declared checks of {framework!r}{did_you_mean(framework, FRAMEWORKS)}")
    if not into.is_dir():
        raise InputError("is no folder; run this in a checkout, or say --into", str(into))
    if framework:
        _declared(framework, name, into, fixtures.parent)
    else:
        file = name.replace("-", "_")
        _write({into / f"{file}.py": FUNCTION, fixtures / f"{file}.yaml": FIXTURE.replace("{id}", name)})
    return OK


def _declared(framework: str, name: str, into: Path, tests: Path) -> None:
    module, edges, pair = declared(framework, name)
    place = FRAMEWORKS[framework]
    file = f"{place.folder}/{place.prefix}{name.replace('-', '_')}"
    table = tests / "constraints" / f"{place.table}.yaml"
    if not table.is_file():
        raise InputError("is missing; run this in a checkout", str(table))
    _write({into / f"{file}.py": module, tests / "edges" / f"{file}.yaml": edges})
    write_file(table, (table.read_text(encoding="utf-8") + pair).encode("utf-8"))
    typer.echo(f"added a pair to {table}")
    _without_place(into.parent / "schemas", (framework, place.folder), f"{framework}/{name}")
    typer.echo(PAGES)


def _without_place(schemas: Path, folders: tuple[str, ...], id: str) -> None:
    """Put a check among those of which nobody has named the statement upstream, in the first folder that has such."""
    files = (schemas / folder / "decisions.json" for folder in folders)
    decisions = next((file for file in files if file.is_file()), None)
    if decisions is None:
        return
    before, opening, after = decisions.read_text(encoding="utf-8").partition('"rules": {')
    end = "\n" if after.startswith("}") else ","
    write_file(decisions, f'{before}{opening}\n"{id}": "{NO_PLACE}"{end}{after}'.encode())
    typer.echo(f"added a row to {decisions}")


def _write(files: dict[Path, str]) -> None:
    for path in files:
        if path.exists():
            raise InputError("exists already", str(path))
    for path, text in files.items():
        create_file(path, text.encode("utf-8"), parents=True)
        typer.echo(f"wrote {path}")
