"""An mcore network cannot be built with its rotary scaling, or has no rotary positions at all.

## What it does
With `use_legacy: False` in training, checks the `rope_scaling` mapping, which needs a `factor` and whose numeric
settings must be numbers. Its type decides how positions are computed. Yarn, as the type or as
`position_embedding_type`, needs latent attention. Any type other than yarn and rope is accepted, but the network then
has no rotary positions. In 1.7, the same happens with a `position_embedding_type` that does not exist.

## Why is this bad?
Every rank fails when it builds the network. Without rotary positions, the network is built and trained, but it cannot
see the order of the tokens.

## Example
    model: {model_config: {model_type: deepseek_v3, rope_scaling: {type: yarn, factor: "40"}}}

Use instead:

    model: {model_config: {model_type: deepseek_v3, rope_scaling: {type: yarn, factor: 40}}}

## References
MindFormers v1.7.0, mindformers/parallel_core/transformer_config.py:655; 2.1.0, :2595, TransformerConfig.__post_init__
MindFormers v1.7.0, mindformers/parallel_core/training_graph/base_models/gpt/gpt_model.py:288; 2.1.0, :298, GPTModel
MindFormers 2.1.0,
mindformers/parallel_core/training_graph/base_models/common/embeddings/yarn_rotary_pos_embedding.py:139
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Value, rule
from preflight.dialects.mindformers.mcore_model_config import names
from preflight.run.version_ranges import matches
from preflight.source.spelling import nearest

_SCALING, _POSITIONS = "mcore.rope_scaling", "mcore.position_embedding_type"
_CONFIG = "mindformers/parallel_core/transformer_config.py"
_GPT = "mindformers/parallel_core/training_graph/base_models/gpt/gpt_model.py"
_YARN = "mindformers/parallel_core/training_graph/base_models/common/embeddings/yarn_rotary_pos_embedding.py"
_NUMBERS = {
    "factor": (72, 81),
    "original_max_position_embeddings": (140, 139),
    "beta_fast": (140, 139),
    "beta_slow": (140, 139),
    "mscale": (166, 165),
    "mscale_all_dim": (166, 165),
}
_ABOVE = ("original_max_position_embeddings", "beta_fast", "beta_slow")
_BUILT = ("rope", "yarn")
_NONE = ("none", "learned_absolute")
_KINDS = (*_BUILT, "none", "relative", "learned_absolute", "partial_rope")


@rule(severity=Severity.ERROR, sometimes=(Severity.WARNING,), frameworks=("mindformers",), reads=(_SCALING, _POSITIONS))
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    scaling, kind = a.get(_SCALING), a.get(_POSITIONS)
    if a.get("kind").raw != "mcore" or not scaling.known or not matches(job.target.version, ">=1.7"):
        return
    if a.get("training").raw is not True:
        if (
            matches(job.target.version, ">=2")
            and scaling.written
            and isinstance(scaling.raw, dict)
            and "factor" not in scaling.raw
        ):
            yield Finding("rope_scaling has no factor", job.place(scaling), key=scaling.key, upstream=f"{_CONFIG}:2598")
        return
    if isinstance(scaling.raw, dict):
        if scaling.written:
            yield from _scaling(job, scaling, scaling.raw)
    elif kind.written and kind.raw == "yarn":
        yield from _latent(job, kind)
    elif kind.written and isinstance(kind.raw, str) and kind.raw not in _KINDS and matches(job.target.version, "<2"):
        yield _blind(job, kind, Message("{name} {kind}", name=kind.key[-1], kind=kind.raw), _KINDS)


def _scaling(job: Job, scaling: Value, raw: dict[str, object]) -> Iterator[Finding]:
    new = matches(job.target.version, ">=2")
    kind = raw.get("type") or raw.get("rope_type")
    if "factor" not in raw:
        yield Finding(
            "rope_scaling has no factor",
            job.place(scaling),
            key=scaling.key,
            upstream=f"{_CONFIG}:{2598 if new else 658}",
        )
    elif kind == "yarn":
        yield from _latent(job, scaling)
        yield from _numbers(job, scaling, raw, new=new)
    elif kind not in ("rope", *_NONE):
        yield _blind(
            job,
            scaling,
            Message("rope_scaling of type {kind}", kind=kind) if kind is not None else "rope_scaling without type",
            _BUILT,
        )


def _latent(job: Job, value: Value) -> Iterator[Finding]:
    """Yarn reads a head width that only latent attention has."""
    said = job.arguments.given("model.model_config.model_type")
    known = names(job.target.version, str(said.raw), {}) if said is not None else None
    if said is not None and known is not None and known.config and not known.latent:
        place = f"{_GPT}:{320 if matches(job.target.version, '>=2') else 310}"
        yield Finding(
            Message("yarn position embeddings need latent attention, which {said} does not have", said=said.raw),
            job.place(value),
            key=value.key,
            upstream=place,
        )


def _numbers(job: Job, scaling: Value, raw: dict[str, object], *, new: bool) -> Iterator[Finding]:
    for name, given in raw.items():
        own = job.arguments.given(".".join((*map(str, scaling.key), name)))
        place, key = job.place(own, scaling), (*scaling.key, name)
        if name in _NUMBERS and not _fits(name, given):
            shown = (
                "null"
                if given is None
                else Message("the string {given!r}", given=given)
                if isinstance(given, str)
                else given
            )
            words = "a number above 0" if name in _ABOVE else "a number"
            yield Finding(
                Message("rope_scaling.{name} is {shown}; it must be {words}", name=name, shown=shown, words=words),
                place,
                key=key,
                upstream=f"{_YARN}:{_NUMBERS[name][int(new)]}",
            )
        elif (
            name not in _NUMBERS
            and (near := nearest(name, [known for known in _NUMBERS if known not in raw], 0.75)) is not None
        ):
            yield Finding(
                Message("nothing reads rope_scaling.{name}; did you mean {near!r}?", name=name, near=near),
                place,
                key=key,
                severity=Severity.WARNING,
            )


def _fits(name: str, given: object) -> bool:
    """Whether the framework can calculate with a number. Without the original positions, it uses the sequence
    length."""
    if name == "original_max_position_embeddings" and not given:
        return True
    return isinstance(given, (int, float)) and (name not in _ABOVE or given > 0)


def _blind(job: Job, value: Value, said: str, kinds: tuple[str, ...]) -> Finding:
    near = nearest(str(value.raw), kinds) if isinstance(value.raw, str) else None
    hint = Message("; did you mean {near}?", near=near) if near else ""
    line = 298 if matches(job.target.version, ">=2") else 288
    message = Message(
        ("{said} creates no rotary positions, so the model does not see the order of the tokens{hint}"),
        said=said,
        hint=hint,
    )
    return Finding(message, job.place(value), key=value.key, severity=Severity.WARNING, upstream=f"{_GPT}:{line}")
