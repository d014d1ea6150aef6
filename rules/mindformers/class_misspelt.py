"""A class is misspelt.

## What it does
Compares the types of the sections that a run is built of with the classes that MindFormers, its research models and MindSpore
have registered in any release since 0.6: `trainer`, and, to train, `optimizer`, `lr_schedule`, `runner_wrapper`, `callbacks`,
`train_dataset_task` and its `data_loader`; of a legacy config `model.arch` and `model.model_config`. Only a slip of the pen
is told: other capitals, a letter doubled, two swapped, or one word a letter off. Any other unknown name may be a class of your own, and so
may every name in a section with `auto_register`, or where `--register_path` is given.

## Why is this bad?
The class is looked up by its name on every rank, after the devices are there: `Can't find class type ... class name ...`.

## Example
    optimizer:
      type: AdamWW
    lr_schedule:
      type: CosineWithWarmupLR

Use instead:

    optimizer:
      type: AdamW
    lr_schedule:
      type: CosineWithWarmUpLR

## Fix safety
Unsafe: another class may have been meant.

## References
MindFormers v1.0.0 and v1.2.0, mindformers/tools/register/register.py:140; v1.3.2, :250; v1.5.0, :251; v1.7.0 and 2.1.0, :287
"""

import json
from collections.abc import Iterator
from functools import lru_cache

from preflight import Finding, Fix, Job, Severity, Value, rule
from preflight.dialects.mindformers.table import folder
from preflight.spelling import slip_of

_LINE = {"1.0.0": 140, "1.2.0": 140, "1.3.2": 250, "1.5.0": 251}
_TRAINED = ("optimizer", "lr_schedule", "train_dataset_task")


@lru_cache(maxsize=1)
def _classes() -> dict[str, list[str]]:
    """Registered names by section."""
    found: dict[str, list[str]] = json.loads((folder() / "classes.json").read_text(encoding="utf-8"))
    return found


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
    if job.arguments.get("kind").raw not in ("legacy", "mcore") or _registers(job):
        return
    for section, place in _built(job):
        kind = job.arguments.given(f"{place}.type")
        if kind is None or not isinstance(kind.raw, str) or kind.raw in (classes := _classes()[section]):
            continue
        if (meant := slip_of(kind.raw, classes)) is not None and job.arguments.given(f"{place}.auto_register") is None:
            yield _finding(job, kind, place, meant)


def _built(job: Job) -> Iterator[tuple[str, str]]:
    """The sections whose class this run looks up, and where each stands."""
    a = job.arguments
    yield "trainer", "trainer"
    if a.get("kind").raw == "legacy":
        yield from (("model.arch", "model.arch"), ("model.model_config", "model.model_config"))
    if a.get("training").raw is not True:
        return
    yield from ((section, section) for section in _TRAINED)
    yield "train_dataset.data_loader", "train_dataset.data_loader"
    if job.plan.layout.pipeline.raw == 1 and a.get("runner_config.gradient_accumulation_steps").raw in (None, 1):
        yield "runner_wrapper", "runner_wrapper"  # else it is replaced
    callbacks = a.get("callbacks").raw
    yield from (("callbacks", f"callbacks.{index}") for index in range(len(callbacks) if isinstance(callbacks, list) else 0))


def _registers(job: Job) -> bool:
    """Whether classes from elsewhere are registered for this run."""
    launch = job.documents[0].launch
    said = launch is not None and any((word.text or "").startswith("--register_path") for word in launch.words)
    return said or job.arguments.given("register_path") is not None


def _finding(job: Job, kind: Value, place: str, meant: str) -> Finding:
    line = _LINE.get(job.target.version, 287)
    message = f"there is no class {kind.raw} for {place.rstrip('.0123456789')}; did you mean {meant}?"
    fix = Fix(f"write {meant}", kind.becomes(meant))
    return Finding(message, job.place(kind), key=kind.key, fix=fix, upstream=f"mindformers/tools/register/register.py:{line}")
