"""preflight new-rule"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from preflight.cli.app import OK
from preflight.source import InputError

Id = Annotated[str, typer.Argument(metavar="ID", help="The rule's id in kebab case; it names the fault.")]
Into = Annotated[Path, typer.Option("--into", metavar="FOLDER", help="Folder of the rules.")]
Fixtures = Annotated[Path, typer.Option("--fixtures", metavar="FOLDER", help="Folder of their fixtures.")]
_RULE = '''"""One sentence that says what is wrong.

## What it does
Compares this with that.

## Why is this bad?
What breaks, and when: at launch, at the first step, or silently.

## Example

    pipeline_stage: 4

Use instead:

    pipeline_stage: 2

## References
Framework and version, path/in/repository.py:LINE, function
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, Unverified, known, rule


@rule(severity=Severity.WARNING)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Look at the plan; stay silent where a value is unknown."""
    layers, pipeline = job.plan.model.layers, job.plan.layout.pipeline
    if (values := known(layers, pipeline)) is None:
        return
    if values[1] > values[0]:
        yield Finding(f"{values[1]} pipeline stages are more than {values[0]} layers", job.place(pipeline, layers))
'''
_FIXTURE = """- name: the fault
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
  unknown: ""
"""


def new_rule(id: Id, into: Into = Path("rules"), fixtures: Fixtures = Path("tests/rules")) -> int:
    """Write the two files of a new rule.

    Its module and its fixture, ready to be run and changed.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", id):
        raise InputError(f"a rule's id is kebab case, like device-count; {id!r} is not")
    if not into.is_dir():
        raise InputError("is no folder; run this in a checkout, or say --into", str(into))
    name = id.replace("-", "_")
    files = {into / f"{name}.py": _RULE, fixtures / f"{name}.yaml": _FIXTURE.replace("{id}", id)}
    for path in files:
        if path.exists():
            raise InputError("exists already", str(path))
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        typer.echo(f"wrote {path}")
    return OK
