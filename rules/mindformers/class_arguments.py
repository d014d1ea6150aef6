"""Checks of the arguments of classes that a config names."""

from collections.abc import Iterator
from functools import lru_cache

from preflight import Edit, Finding, Fix, Job, Message, Safety, Severity, Value, rule, schemas
from preflight.dialects.mindformers.registry import Argument, Takes, built, registers, taken, trains
from preflight.dialects.mindformers.release_tables import read_at
from preflight.lint.value_kinds import ValueKind, ways
from preflight.run.version_ranges import matches
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.spelling import meant_boolean, nearest

PLACE = "runner_wrapper.scale_sense"
USUAL = {"loss_scale_value": 65536, "scale_factor": 2, "scale_window": 1000}
NEEDED = {
    "DynamicLossScaleUpdateCell": tuple(USUAL),
    "AdaptiveLossScaleUpdateCell": tuple(USUAL),
    "FixedLossScaleUpdateCell": ("loss_scale_value",),
}


@rule(severity=Severity.ERROR, id="class-argument-missing", frameworks=("mindformers",), reads=(PLACE,))
def class_argument_missing(job: Job) -> Iterator[Finding]:
    """A required argument of a class is missing.

    ## What it does
    Checks the loss scale class in `runner_wrapper.scale_sense`. `DynamicLossScaleUpdateCell` and
    `AdaptiveLossScaleUpdateCell` need `loss_scale_value`, `scale_factor` and `scale_window`; `FixedLossScaleUpdateCell`
    needs `loss_scale_value`.

    ## Why is this bad?
    Every rank calls the class with exactly the arguments of the section, after the network has been built. Python
    raises a TypeError because an argument is missing.

    ## Example
        runner_wrapper:
          type: MFTrainOneStepCell
          scale_sense: {type: DynamicLossScaleUpdateCell, loss_scale_value: 65536}

    Use instead:

        runner_wrapper:
          type: MFTrainOneStepCell
          scale_sense: {type: DynamicLossScaleUpdateCell, loss_scale_value: 65536, scale_factor: 2, scale_window: 1000}

    ## Fix safety
    Unsafe: the usual values may not be the intended ones.

    ## References
    MindSpore 2.7.1, mindspore/python/mindspore/nn/wrap/loss_scale.py, DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell
    MindFormers v1.6.0, mindformers/wrapper/adaptive_loss_scale.py:95, AdaptiveLossScaleUpdateCell
    MindFormers v1.6.0, mindformers/wrapper/build_wrapper.py:61, build_wrapper
    """
    a = job.arguments
    if a.get("kind").raw not in ("legacy", "mcore") or not trains(a) or a.open or registers(a, job.documents[0]):
        return
    kind, section = a.given(f"{PLACE}.type"), a.given(PLACE)
    if kind is None or section is None or not isinstance(section.raw, dict) or not isinstance(kind.raw, str):
        return
    if "auto_register" in section.raw:
        return
    missing = [name for name in NEEDED.get(kind.raw, ()) if name not in section.raw]
    if missing:
        edits = tuple(Edit("set", (*PLACE.split("."), name), USUAL[name]) for name in missing)
        message = Message("{kind} needs {names}", kind=kind.raw, names=", ".join(missing))
        fix = Fix("use the usual values", edits, offered=True)
        yield Finding(
            message, job.place(kind), key=kind.key, fix=fix, upstream="mindformers/wrapper/build_wrapper.py:61"
        )


_SCIENTIFIC = lazy_pattern(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)[eE][-+]?\d{1,3}")


@rule(id="class-argument-refused", severity=Severity.ERROR, sometimes=(Severity.WARNING,), frameworks=("mindformers",))
def class_argument_refused(job: Job) -> Iterator[Finding]:
    """A class rejects the value of one of its arguments.

    ## What it does
    Applies the checks that each class of a training run makes on its own arguments: `eps`, `betas` and `weight_decay`
    of an optimizer, the rate and the steps of a learning-rate schedule, what `CheckpointMonitor` saves and when, the
    loss scale, and the settings that every dataset passes to MindSpore. Only known classes are checked, each against
    what its release accepts, and none if the config registers classes from elsewhere.

    ## Why is this bad?
    Every rank builds the class after the network, and the run crashes with a TypeError or ValueError. A
    `checkpoint_format` that does not exist is worse: it is accepted, and the run crashes when it saves the first
    checkpoint. `AdamW` accepts only floats and rejects even `weight_decay: 0`.

    ## Example
        optimizer:
          type: AdamW
          weight_decay: 0
        callbacks:
          - type: CheckpointMonitor
            checkpoint_format: safetensor

    Use instead:

        optimizer:
          type: AdamW
          weight_decay: 0.0
        callbacks:
          - type: CheckpointMonitor
            checkpoint_format: safetensors

    ## Fix safety
    Safe if a number is only rewritten in the form that the class accepts. Unsafe if the fix guesses another word, True
    or False.

    ## References
    MindFormers v1.5.0, mindformers/core/optim/adamw.py:82, _check_param_value
    MindFormers v1.7.0, mindformers/core/lr/lr_schedule.py:35, _get_lr_steps
    MindFormers v1.7.0, mindformers/core/callback/callback.py:1306, CheckpointMonitor
    MindSpore 2.7.1, mindspore/train/callback/_checkpoint.py:215, CheckpointConfig
    MindSpore 2.7.1, mindspore/train/serialization.py:561, save_checkpoint
    """
    a = job.arguments
    if a.get("kind").raw not in ("legacy", "mcore") or not trains(a) or registers(a, job.documents[0]):
        return
    for section, where, name in _places(job):
        if a.given(f"{where}.auto_register") is not None:
            continue
        place = "train_dataset" if section == "train_dataset" else where
        for takes in taken(job.target.version):
            if takes.section == section and (name in takes.types or "*" in takes.types) and _checks(job, takes, place):
                yield from _of(job, takes, place, name)


def _places(job: Job) -> Iterator[tuple[str, str, str]]:
    """The sections with a class that checks its arguments, each with its location and class. With a pipeline, there is
    only one wrapper."""
    a, stages = job.arguments, job.plan.layout.pipeline.raw
    where = [place for place in built(a, stages) if place[0] != "train_dataset_task"]
    for section, place in (*where, ("train_dataset", "train_dataset_task")):
        kind = a.given(f"{place}.type")
        if kind is not None and isinstance(kind.raw, str):
            yield section, place, kind.raw
    if isinstance(stages, int) and stages > 1:
        yield "runner_wrapper", "runner_wrapper", "MFPipelineWithLossScaleCell"


def _checks(job: Job, takes: Takes, place: str) -> bool:
    """Whether the class checks its arguments. A schedule with an unknown argument checks none of them."""
    a = job.arguments
    if takes.section == "lr_schedule" and a.get("grouped_lr_schedule").raw is not None:
        return False
    if (other := a.given(f"{place}.{takes.unless}")) is not None and other.raw is not False:
        return False
    if takes.only and a.get(f"{place}.{takes.only}").raw is not True:
        return False
    section = a.get(place).raw
    return not takes.accepts or (isinstance(section, dict) and set(section) - {"type"} <= takes.accepts)


def _of(job: Job, takes: Takes, place: str, kind: str) -> Iterator[Finding]:
    for name, argument in takes.arguments.items():
        value = job.arguments.given(f"{place}.{name}")
        if value is None or (value.setting is not None and value.setting.maybe) or not _is_read(job, argument, place):
            continue
        if argument.kind.accepts(value.raw) is False:
            yield _refused_finding(job, value, f"{place.rstrip('.0123456789')}.{name}", kind, argument)
        elif name == "learning_rate" and isinstance(value.raw, (int, float)) and value.raw < 0:
            template = "{place}.{name} is {value}, so every step would raise the loss"
            message = Message(template, place=place, name=name, value=value.raw)
            yield Finding(
                message, job.place(value), key=value.key, severity=Severity.WARNING, upstream=argument.upstream
            )


def _is_read(job: Job, argument: Argument, place: str) -> bool:
    """Whether the value is used, that is, no other given value takes precedence over it."""
    names = (other if "." in other else f"{place}.{other}" for other in argument.behind)
    return all(job.arguments.given(name) is None for name in names)


def _refused_finding(job: Job, value: Value, name: str, kind: str, argument: Argument) -> Finding:
    shown = value.setting.span.text[:40] if value.setting else repr(value.raw)
    text = (
        "the string " if isinstance(value.raw, str) and shown[:1] not in "\"'" and any(map(str.isdigit, shown)) else ""
    )
    message = Message(
        "{name} is {text}{shown}; {kind} takes {words}",
        name=name,
        text=text,
        shown=shown or Message("empty"),
        kind=kind,
        words=argument.kind.words,
    )
    fixes = _fixes(value, argument.kind)
    first, others = next(iter(fixes), None), fixes[1:]
    return Finding(message, job.place(value), key=value.key, fix=first, alternatives=others, upstream=argument.upstream)


def _fixes(value: Value, kind: ValueKind) -> tuple[Fix, ...]:
    """Writes the intended value; a number keeps its spelling."""
    meant = next((m for m in _meanings(value.raw, kind) if kind.takes(m)), None)
    edits = value.becomes(meant)
    if meant is None or not edits or value.setting is None:
        return ()
    if isinstance(value.raw, str) and _SCIENTIFIC.fullmatch(value.raw) and isinstance(meant, float):
        return ways(value.raw, value.key, value.setting.span)
    same = isinstance(meant, (int, float)) and not isinstance(meant, bool)
    return (Fix(f"write {meant}", edits, Safety.SAFE if same else Safety.UNSAFE),)


def _meanings(raw: object, kind: ValueKind) -> Iterator[object]:
    """The values that may be intended, the likeliest first."""
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        return
    if isinstance(raw, str):
        switch = meant_boolean(raw) if kind.switch else None  # Python treats True as the number 1
        words = (switch, nearest(raw.strip().lower(), kind.choices))
        yield from (word for word in words if word is not None)
    try:
        number = float(raw)
    except (ValueError, OverflowError):
        return
    if isinstance(raw, int) or not number.is_integer():
        yield number
    else:
        yield from (
            (number, int(number)) if isinstance(raw, str) and not raw.strip().isdigit() else (int(number), number)
        )


_OWN = frozenset(["type", "auto_register"])
_NEAR = 0.75
_LINE = {"1.5.0": 316}


@lru_cache(maxsize=1)
def _parameters() -> dict[str, dict[str, dict[str, list[str]]]]:
    """By section and class: the names of its arguments, and whether it silently accepts others."""
    found: dict[str, dict[str, dict[str, list[str]]]] = schemas.read("mindformers/parameters")
    return found


@rule(id="class-argument-unknown", severity=Severity.ERROR, sometimes=(Severity.WARNING,), frameworks=("mindformers",))
def class_argument_unknown(job: Job) -> Iterator[Finding]:
    """A section sets an argument that its class does not have.

    ## What it does
    Compares the keys of `optimizer`, `lr_schedule`, `runner_wrapper` with its `scale_sense`, and the `callbacks` of a
    training run with the arguments that the class has had in any MindFormers release from 1.0 to 2.0. A key that the
    class rejects is an error. For releases after 2.0, it is an error only if it is almost the name of an argument.
    Schedules and wrappers silently accept any key, so in these sections only a key that is almost the name of an
    argument gets a warning, such as `warmup_step` for `warmup_steps`.

    ## Why is this bad?
    Every rank builds the class after the network, and crashes with a TypeError. If the class silently accepts the key,
    the run trains with the default: no warm-up, or no gradient clipping.

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
    Unsafe: the value takes effect once its key is spelled correctly.

    ## References
    MindFormers v1.5.0, mindformers/tools/register/register.py:316, get_instance_from_cfg; v1.7.0 and 2.1.0, :398
    MindFormers v1.7.0, mindformers/core/lr/lr_schedule.py, mindformers/core/callback/callback.py,
    mindformers/wrapper/wrapper.py
    """
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
                yield from _unknown_finding(
                    job,
                    value,
                    str(name),
                    row["names"],
                    str(kind.raw) if kind is not None else "",
                    refused=not row["open"],
                )


def _unknown_finding(
    job: Job, value: Value, name: str, names: list[str], kind: str, *, refused: bool
) -> Iterator[Finding]:
    near = nearest(name, names, _NEAR)
    if near is None and (not refused or not matches(job.target.version, "<=2.0")):
        return
    fate = "the class rejects it" if refused else "it is ignored"
    hint = Message("; did you mean {near!r}?", near=near) if near else ""
    if name in ("beta1", "beta2") and "betas" in names:
        near, hint = None, "; it takes both values as betas: [beta1, beta2]"
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
