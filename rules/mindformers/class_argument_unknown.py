"""A class does not have an argument that its section gives it.

## What it does
Compares the keys of `optimizer`, `lr_schedule`, `runner_wrapper` and the `callbacks` of a training run with the
arguments that the class has had in any MindFormers release from 1.0 to 2.0. What a class refuses is an error; of a
release after 2.0 only what is nearly an argument. A class that swallows whatever it is given, as schedules and wrappers
do, is a warning for what is nearly an
argument: `warmup_step` next to `warmup_steps`.

## Why is this bad?
The class is built on every rank after the network, and dies of a TypeError. Where it swallows the key, the default
trains: no warm-up, no gradient clipping.

## Example
    lr_schedule:
      type: CosineWithWarmUpLR
      learning_rate: 1.0e-5
      warmup_step: 2000

Use instead:

    lr_schedule:
      type: CosineWithWarmUpLR
      learning_rate: 1.0e-5
      warmup_steps: 2000

## Fix safety
Unsafe: the value takes effect once its key is spelled right.

## References
MindFormers v1.5.0, mindformers/tools/register/register.py:316, get_instance_from_cfg; v1.7.0 and 2.1.0, :398
MindFormers v1.7.0, mindformers/core/lr/lr_schedule.py, mindformers/core/callback/callback.py,
mindformers/wrapper/wrapper.py
"""

from collections.abc import Iterator
from functools import lru_cache

from preflight import Edit, Finding, Fix, Job, Message, Severity, Value, rule, schemas
from preflight.dialects.mindformers.registry import built, registers, trains
from preflight.dialects.mindformers.release_tables import read_at
from preflight.run.versions import matches
from preflight.source.spelling import nearest

_OWN = frozenset(["type", "auto_register"])
_NEAR = 0.75
_LINE = {"1.5.0": 316}


@lru_cache(maxsize=1)
def _parameters() -> dict[str, dict[str, dict[str, list[str]]]]:
    """By section and class: the names of its arguments, and whether it swallows others."""
    found: dict[str, dict[str, dict[str, list[str]]]] = schemas.read("mindformers/parameters")
    return found


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    if a.get("kind").raw not in ("legacy", "mcore") or not trains(a) or registers(a, job.documents[0]):
        return
    for section, place in built(a, job.plan.layout.pipeline.raw):
        raw, kind = a.get(place).raw, a.given(f"{place}.type")
        row = _parameters().get(section, {}).get(str(kind.raw)) if kind is not None else None
        if row is None or not isinstance(raw, dict) or "auto_register" in raw:
            continue
        for name in raw:
            value = a.given(f"{place}.{name}")
            if value is not None and name not in _OWN and name not in row["names"]:
                yield from _finding(
                    job,
                    value,
                    str(name),
                    row["names"],
                    str(kind.raw) if kind is not None else "",
                    refused=not row["open"],
                )


def _finding(job: Job, value: Value, name: str, names: list[str], kind: str, *, refused: bool) -> Iterator[Finding]:
    near = nearest(name, names, _NEAR)
    if near is None and (not refused or not matches(job.target.version, "<=2.0")):
        return
    fate = "the class refuses it" if refused else "it is ignored"
    hint = Message("; did you mean {near!r}?", near=near) if near else ""
    if name in ("beta1", "beta2") and "betas" in names:
        near, hint = None, "; it takes both as betas: [beta1, beta2]"
    elif name == "betas" and "beta1" in names:
        near, hint = None, "; it takes beta1 and beta2"
    fix = Fix(f"rename it to {near}", (Edit("rename", value.key, near),)) if near else None
    span = value.setting.key_span if value.setting is not None else job.place(value)
    upstream = (
        f"mindformers/tools/register/register.py:{_LINE.get(read_at(job.target.version), 398)}" if refused else None
    )
    message = Message(
        "{name!r} is not an argument of {kind}, and {fate}{hint}", name=name, kind=kind, fate=fate, hint=hint
    )
    yield Finding(
        message, span, key=value.key, fix=fix, severity=None if refused else Severity.WARNING, upstream=upstream
    )
