"""preflight new-rule: writes a rule and its fixtures to start from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from preflight.cli.app import OK
from preflight.source.record import NamedTuple
from preflight.source.source_file import InputError
from preflight.source.spelling import did_you_mean
from preflight.source.writing import create_file, write_file

FUNCTION = '''"""One sentence that names the fault.

## What it does
Compares this with that.

## Why is this bad?
What breaks, and when: at launch, in the first step, or silently.

## Example

    pipeline_stage: 4

Use instead:

    pipeline_stage: 2

## References
Framework and version, path/in/repository.py:LINE, function
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule


@rule(severity=Severity.WARNING)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Look at the plan; where a value is unknown, report why and find nothing."""
    layers, pipeline = job.plan.model.layers, job.plan.layout.pipeline
    if (values := known(layers, pipeline)) is None:
        yield Unverified(layers.because or pipeline.because)
        return
    if values[1] > values[0]:
        template = "{stages} pipeline stages are more than {layers} layers"
        yield Finding(Message(template, stages=values[1], layers=values[0]), job.place(pipeline, layers))
'''
FIXTURE = """- name: the fault
  file: run.yaml
  text: |
    use_parallel: True
    parallel_config: {pipeline_stage: 4}
    model: {model_config: {type: LlamaConfig, num_layers: 2}}
  found: |
    run.yaml:2:35: warning: 4 pipeline stages are more than 2 layers [{id}]
- name: silent
  file: run.yaml
  text: |
    use_parallel: True
    parallel_config: {pipeline_stage: 2}
    model: {model_config: {type: LlamaConfig, num_layers: 2}}
  found: ""
- name: silent where a value is unknown
  file: run.sh
  text: |
    torchrun --nproc-per-node $GPUS pretrain_gpt.py --num-layers 2 --pipeline-model-parallel-size $PP
  found: ""
  unknown: |
    $PP [{id}]
"""
DECLARED = '''"""One sentence about what the checks of this file have in common."""

{imports}

{name} = ConstraintSet("{framework}")

{name}.add(
    refuse(
        "{id}",
        all_of({layers} > 1000, {batch} > {limit}),
        message="{message}",
        why="what is required or not supported, so the run fails at launch",
        upstream="path/of/{id}.py:1",
        at=({batch},),
        fixes=(put({batch}, {limit}),),
    ),
)
'''
EDGES = """table: {table}

{framework}/{id}:
- run: {found}
  silent:
  - {silent}
  - {other}
"""
_LAYERS, _BATCH = "model.model_config.num_layers", "parallel_config.micro_batch_num"


class Declared(NamedTuple):
    """Differences between the frameworks: the folder of the rules, the table of pairs, the example."""

    folder: str
    table: str
    imports: str
    layers: str
    batch: str
    limit: int
    message: str
    found: str
    silent: str
    accepted: str
    other: str
    sides: tuple[str, str] = ("rejected", "accepted")
    prefix: str = ""


def _command(folder: str, table: str, names: str, sides: tuple[str, str], *, whole: bool) -> Declared:
    more = "" if whole else "from preflight.lint.expressions import all_of\n"
    imports = (
        f"{more}from preflight.lint.constraint import ConstraintSet, put, refuse\nfrom preflight.rules.{folder}.{names}"
    )
    found, silent = "--num-layers 1001 --micro-batch-size 2", "--micro-batch-size 1"
    message = "{num_layers} layers take micro-batches of 1, not {micro_batch_size}"
    layers, batch, accepted, other = (
        "a.num_layers",
        "a.micro_batch_size",
        f"--num-layers 1001 {silent}",
        "--num-layers 1000",
    )
    return Declared(folder, table, imports, layers, batch, 1, message, found, silent, accepted, other, sides)


def _config(table: str, imports: str, names: tuple[str, str, str], limit: int, prefix: str = "") -> Declared:
    handle, layers, batch = names
    found, accepted = (f"{{{layers}: 1001, {batch}: {value}}}" for value in (limit * 2, limit))
    message = f"{{{handle}}} layers take {batch.rpartition('.')[2]} {limit}, not {{{batch}}}"
    silent, other = f"{{{batch}: {limit}}}", f"{{{layers}: 1000}}"
    return Declared(
        "mindformers",
        table,
        imports,
        f'a["{handle}"]',
        f'a["{batch}"]',
        limit,
        message,
        found,
        silent,
        accepted,
        other,
        prefix=prefix,
    )


_GRAPH = (
    "from preflight.lint.expressions import all_of\nfrom preflight.lint.constraint import ConstraintSet, put, refuse\n"
)
_GRAPH += "from preflight.rules.mindformers.shared_conditions import a"
_PYNATIVE = "from preflight.dialects.mindformers.pynative_network_fields import names\n"
_PYNATIVE += "from preflight.lint.expressions import Handles, all_of\n"
_PYNATIVE += "from preflight.lint.constraint import ConstraintSet, put, refuse\n\na = Handles(names())"
_CASES = ("speaks", "silent")
FRAMEWORKS = {
    "megatron": _command(
        "megatron", "megatron-training", "option_names import a, all_of", ("rejected", "accepted"), whole=True
    ),
    "mindspeed": _command("mindspeed", "mindspeed", "shorthand import a", _CASES, whole=False),
    "mindspeed-llm": _command("mindspeed", "mindspeed", "shorthand import a", _CASES, whole=False),
    "mindformers": _config("mindformers-graph", _GRAPH, (_LAYERS, _LAYERS, _BATCH), 2),
    "pynative": _config(
        "mindformers-pynative",
        _PYNATIVE,
        ("net.num_layers", "model.num_hidden_layers", "training.local_batch_size"),
        1,
        "pynative_",
    ),
}
"""The frameworks with declared checks."""


def declared(framework: str, id: str) -> tuple[str, str, str]:
    """A declared check as three texts: its module, its edge cases, and the row of its pair."""
    d = FRAMEWORKS[framework]
    values = {
        "imports": d.imports,
        "name": framework.upper().replace("-", "_"),
        "framework": framework,
        "id": id,
        "table": d.table,
    }
    values |= {"layers": d.layers, "batch": d.batch, "limit": str(d.limit), "message": d.message}
    values |= {"found": d.found, "silent": d.silent, "other": d.other}
    module, edges = DECLARED, EDGES
    for name, value in values.items():
        module, edges = module.replace(f"{{{name}}}", value), edges.replace(f"{{{name}}}", value)
    rule = f"{framework}/{id}" if d.table == "mindspeed" else id
    return module, edges, f"- {{rule: {rule}, {d.sides[0]}: {d.found}, {d.sides[1]}: {d.accepted}}}\n"


Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The rule's id, which names the fault, in kebab case; FRAMEWORK/ID for a declared check."
    ),
]
Into = Annotated[Path, typer.Option("--into", metavar="FOLDER", help="The folder for the rule.")]
Fixtures = Annotated[Path, typer.Option("--fixtures", metavar="FOLDER", help="The folder for its fixture.")]
NO_PLACE = "new: its upstream statement is not recorded yet"
COUNT = "next: add 1 to NUMBERS in {file}"
PAGES = "next: python tests/write_examples.py && preflight rules --write-docs docs/rules"


def new_rule(id: Id, into: Into = Path("rules"), fixtures: Fixtures = Path("tests/rules")) -> int:
    """Write the files of a new rule.

    Writes a module and a fixture that pass as they are and can then be changed. For FRAMEWORK/ID, writes a declared
    check with its runs and its pair.
    """
    framework, _, name = id.rpartition("/")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise InputError(f"a rule id must be in kebab case, such as device-count, not {name!r}")
    if (own := into / "frontends" / f"{framework.replace('-', '_')}.py").is_file():
        raise InputError("add an entry here by hand, with its pair and its edges", str(own))
    if framework and framework not in FRAMEWORKS:
        raise InputError(f"no checks are declared for {framework!r}{did_you_mean(framework, FRAMEWORKS)}")
    if not into.is_dir():
        raise InputError("is not a folder; run this in a checkout, or give --into", str(into))
    if framework:
        _declared(framework, name, into, fixtures.parent)
    else:
        file = name.replace("-", "_")
        _write({into / f"{file}.py": FUNCTION, fixtures / f"{file}.yaml": FIXTURE.replace("{id}", name)})
    if (numbers := fixtures.parent / "test_rules.py").is_file():
        typer.echo(COUNT.format(file=numbers))
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
    """Add a check to those whose upstream statement is not recorded, in the first folder that has such a list."""
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
