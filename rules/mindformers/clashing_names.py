"""One setting of an mcore model is given under two names.

## What it does
Resolves the names of `model_config`, of the sections that go into the transformer config, and of the `config.json` of
`pretrained_model_dir` to the fields they set, and finds fields that are set twice. In 1.7 that is always refused; since
2.0 only when the two values differ. The model's own class counts, too: what it calls num_hidden_layers has a value even
where the file only sets num_layers.

## Why is this bad?
The conversion to a transformer config refuses it, on every rank.

## Example
    model_config: {num_layers: 12, num_hidden_layers: 48}

Use instead:

    model_config: {num_hidden_layers: 12}

## Fix safety
Unsafe: which of the two is intended is not known; the second is removed. Safe where a setting only gets the name that
the model's class has for it.

## References
MindFormers v1.7.0, mindformers/parallel_core/transformer_config_utils.py:485, convert_to_transformer_config
MindFormers 2.1.0, mindformers/parallel_core/transformer_config_utils.py:687, ConfigLogHandler.check_and_raise
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Safety, Severity, Unverified, Value, rule
from preflight.dialects.mindformers.mcore import SECTIONS, Clash
from preflight.run.arguments import REMOVE
from preflight.run.versions import matches

_FILE = "mindformers/parallel_core/transformer_config_utils.py"


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    new = matches(job.target.version, ">=2")
    for clash in job.arguments.get("clashes").raw:
        if new and clash.same is None:
            yield Unverified(f"whether {clash.one} and {clash.other} agree")
        if new and clash.same is not False:
            continue
        if clash.default is not None:
            yield from _against_class(job, clash, 687 if new else 485)
            continue
        one, other = _find(job, clash.one), _find(job, clash.other)
        typed = other or one
        if typed is None:
            continue
        fix = (
            Fix(f"remove {clash.other}", other.becomes(REMOVE), Safety.UNSAFE)
            if other is not None and one is not None
            else None
        )
        values = (
            Message(" ({one} and {other})", one=one.raw, other=other.raw)
            if one is not None and other is not None and one.known and other.known
            else ""
        )
        message = Message(
            "{one} and {other} set the same field, {target}{values}",
            one=clash.one,
            other=clash.other,
            target=clash.target,
            values=values,
        )
        related = one.related if one is not None and other is not None else ()
        yield Finding(message, job.place(typed), related, fix, key=typed.key, upstream=f"{_FILE}:{687 if new else 485}")


def _against_class(job: Job, clash: Clash, line: int) -> Iterator[Finding]:
    """The other name is not in the file: the class of the model gives it a value."""
    typed = _find(job, clash.other)
    if typed is None:
        return
    fix = Fix(f"rename it to {clash.one}", (Edit("rename", typed.key, clash.one),), Safety.SAFE)
    shown = Message(" {typed}", typed=typed.raw) if typed.known else ""
    message = Message(
        "{other}{shown} sets the same field as {one}, which the model itself sets to {default}; write {one}",
        other=clash.other,
        shown=shown,
        one=clash.one,
        default=clash.default,
    )
    yield Finding(message, job.place(typed), (), fix, key=typed.key, upstream=f"{_FILE}:{line}")


def _find(job: Job, name: str) -> Value | None:
    places = ("model.model_config", *SECTIONS)
    return next((value for place in places if (value := job.arguments.given(f"{place}.{name}")) is not None), None)
