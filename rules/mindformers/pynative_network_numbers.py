"""A network setting has a value or type that pynative mode rejects.

## What it does
Checks dropouts, which must be floats in [0, 1) (the integer 0 is rejected), numbers that are written as strings, null
for settings without a default, kinds of position embedding, and names of data types: bfloat16, float16, float32 or
their short forms.

## Why is this bad?
The network's configuration or the first layer raises an error while the model is built.

## Example
    model: {hidden_dropout: 0}
Use instead:
    model: {hidden_dropout: 0.0}

## Fix safety
Safe: the value of the number stays the same.

## References
MindFormers 2.1.0, mindformers/parallel_core/transformer_config.py:2300, TransformerConfig.__post_init__
MindFormers 2.1.0, mindformers/pynative/base_models/common/embeddings/vocab_embedding.py:57, VocabEmbedding
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Safety, Severity, Value, rule
from preflight.dialects.mindformers.pynative_schema import HELD, INTEGER, Held
from preflight.loaders.document import Unknown

_CONFIG = "mindformers/parallel_core/transformer_config.py"
_TYPES = ("params_dtype", "compute_dtype", "layernorm_compute_dtype", "rotary_dtype", "moe_router_dtype")
_NAMES = (
    *("float64", "fp64", "float32", "fp32", "bfloat16", "bf16", "float16", "fp16", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128"),
)
_POSITIONS = ("rope", "yarn", "none", "relative", "learned_absolute", "partial_rope")
_MEANT = {"half": "float16", "float": "float32", "single": "float32", "bfloat": "bfloat16", "bf": "bfloat16"}

_WHOLE = "{field} is the integer 0; it must be written as a float"


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    for field, line in (("hidden_dropout", 2301), ("attention_dropout", 2303)):
        value = job.arguments.given(f"net.{field}")
        if value is None or (isinstance(value.raw, float) and 0 <= value.raw < 1):
            continue
        whole = value.raw == 0
        fix = Fix("write 0.0", value.becomes(0.0), Safety.SAFE) if whole else None
        template = _WHOLE if whole else "{field} is {value!r}; it must be a float in [0, 1)"
        message = Message(template, field=field, value=value.raw)
        yield Finding(message, job.place(value), key=value.key, fix=fix, upstream=f"{_CONFIG}:{line}")
    for field in _TYPES:
        value = job.arguments.given(f"net.{field}")
        if value is not None and isinstance(value.raw, str) and value.raw not in _NAMES:
            message = Message(
                "{field} is {value}; it must be bfloat16, float16 or float32, or bf16, fp16 or fp32",
                field=field,
                value=value.raw,
            )
            meant = _MEANT.get(value.raw.strip().lower())
            fix = Fix(f"write {meant}", value.becomes(meant), Safety.SAFE) if meant else None
            yield Finding(message, job.place(value), key=value.key, fix=fix, upstream=f"{_CONFIG}:75")
    kind = job.arguments.given("net.position_embedding_type")
    if kind is not None and isinstance(kind.raw, str) and kind.raw not in _POSITIONS:
        message = Message(
            ("position_embedding_type is {kind}; it must be one of {positions}"),
            kind=kind.raw,
            positions=tuple(_POSITIONS),
        )
        yield Finding(message, job.place(kind), key=kind.key, upstream=f"{_CONFIG}:2590")
    for held in HELD:
        value = job.arguments.given(f"net.{held.field}")
        if value is not None and value.known and _is_there(job, held.when):
            yield from _held(job, held, value)


def _held(job: Job, held: Held, value: Value) -> Iterator[Finding]:
    """Reports a value that is null or a string if the network cannot work with it."""
    name = value.key[-1] if value.key else held.field
    if held.null and value.raw is None:
        yield Finding(
            Message("{name} is null; it must be {wanted}", name=name, wanted=held.wanted),
            job.place(value),
            key=value.key,
            upstream=held.null,
        )
    elif held.text and isinstance(value.raw, (str, list, dict)):
        meant = _meant(value.raw, held.wanted)
        fix = Fix(f"write {meant}", value.becomes(meant), Safety.SAFE) if meant is not None else None
        shown = "the string " if isinstance(value.raw, str) else ""
        yield Finding(
            Message(
                "{name} is {shown}{value!r}; it must be {wanted}",
                name=name,
                shown=shown,
                value=value.raw,
                wanted=held.wanted,
            ),
            job.place(value),
            key=value.key,
            fix=fix,
            upstream=held.text,
        )


def _is_there(job: Job, when: str) -> bool:
    """Whether the network certainly has the part that a setting belongs to."""
    get, given = job.arguments.get, job.arguments.given
    latent, position = get("net.multi_latent_attention").raw, given("net.position_embedding_type")
    experts, groups = get("net.num_moe_experts").raw, get("net.moe_router_group_topk").raw
    if when in ("plain", "latent"):
        return latent is (when == "latent")
    if when == "rotary":
        return position is None or position.raw in ("rope", "yarn")
    if when == "yarn":
        factor = get("net.rotary_scaling_factor").raw
        return (
            latent is True
            and position is not None
            and position.raw == "yarn"
            and isinstance(factor, (int, float))
            and factor > 1
        )
    if when == "experts":
        return isinstance(experts, int) and experts > 0
    if when == "groups":
        return groups not in (None, 0) and not isinstance(groups, Unknown)
    return True


def _meant(raw: object, wanted: str) -> int | float | None:
    """The number that a string represents."""
    try:
        return None if not isinstance(raw, str) else int(raw) if wanted == INTEGER else float(raw)
    except ValueError:
        return None
