"""A value of the network is of a type or in a range that pynative mode refuses.

## What it does
Checks dropouts, which must be floats in [0, 1) (the integer 0 is refused), sizes of the network that are written as
text or as null, kinds of position embedding, and names of number types: bfloat16, float16, float32 or their short forms.

## Why is this bad?
The network's configuration or the first layer raises while the model is made.

## Example
    model: {hidden_dropout: 0}
Use instead:
    model: {hidden_dropout: 0.0}

## Fix safety
Safe: the same number.

## References
MindFormers 2.1.0, mindformers/parallel_core/transformer_config.py:2300, TransformerConfig.__post_init__
MindFormers 2.1.0, mindformers/pynative/base_models/common/embeddings/vocab_embedding.py:57, VocabEmbedding
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Safety, Severity, rule

_CONFIG = "mindformers/parallel_core/transformer_config.py"
_TYPES = ("params_dtype", "compute_dtype", "layernorm_compute_dtype", "rotary_dtype", "moe_router_dtype")
_NAMES = (
    *("float64", "fp64", "float32", "fp32", "bfloat16", "bf16", "float16", "fp16", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "complex64", "complex128"),
)
_POSITIONS = ("rope", "yarn", "none", "relative", "learned_absolute", "partial_rope")
_EMBEDDING = "mindformers/pynative/base_models/common/embeddings/vocab_embedding.py:57"
_MEANT = {"half": "float16", "float": "float32", "single": "float32", "bfloat": "bfloat16", "bf": "bfloat16"}
_NEEDED = {
    "hidden_size": _EMBEDDING,
    "vocab_size": _EMBEDDING,
    "num_layers": "mindformers/models/qwen3/configuration_qwen3.py:221",
    "num_attention_heads": f"{_CONFIG}:2349",
}


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    for field, line in (("hidden_dropout", 2301), ("attention_dropout", 2303)):
        value = job.arguments.given(f"net.{field}")
        if value is None or (isinstance(value.raw, float) and 0 <= value.raw < 1):
            continue
        whole = value.raw == 0
        fix = Fix("write 0.0", value.becomes(0.0), Safety.SAFE) if whole else None
        why = "the integer 0; it must be written as a float" if whole else f"{value.raw!r}; it must be a float in [0, 1)"
        yield Finding(f"{field} is {why}", job.place(value), key=value.key, fix=fix, upstream=f"{_CONFIG}:{line}")
    for field in _TYPES:
        value = job.arguments.given(f"net.{field}")
        if value is not None and isinstance(value.raw, str) and value.raw not in _NAMES:
            message = f"{field} is {value.raw}; the types are called bfloat16, float16 and float32, or bf16, fp16 and fp32"
            meant = _MEANT.get(value.raw.strip().lower())
            fix = Fix(f"write {meant}", value.becomes(meant), Safety.SAFE) if meant else None
            yield Finding(message, job.place(value), key=value.key, fix=fix, upstream=f"{_CONFIG}:75")
    kind = job.arguments.given("net.position_embedding_type")
    if kind is not None and isinstance(kind.raw, str) and kind.raw not in _POSITIONS:
        message = f"position_embedding_type {kind.raw} is none of {', '.join(_POSITIONS)}"
        yield Finding(message, job.place(kind), key=kind.key, upstream=f"{_CONFIG}:2590")
    yield from _texts(job)
    yield from _nothing(job)
    factor = job.arguments.given("net.moe_aux_loss_coeff")
    if factor is not None and isinstance(factor.raw, (str, list, dict)):
        yield Finding(f"moe_aux_loss_coeff is {factor.raw!r}; it must be a number", job.place(factor), key=factor.key, upstream=f"{_CONFIG}:2686")


def _nothing(job: Job) -> Iterator[Finding]:
    """A size that is written as null does not fall back to a default."""
    for field, where in _NEEDED.items():
        value = job.arguments.given(f"net.{field}")
        if value is not None and value.raw is None:
            yield Finding(f"{value.key[-1]} is null; the network needs a number", job.place(value), key=value.key, upstream=where)
    base = job.arguments.given("net.rotary_base")
    if base is not None and isinstance(base.raw, str):
        place = "mindformers/pynative/base_models/common/embeddings/rotary_pos_embedding.py:60"
        yield Finding(f"{base.key[-1]} is the text {base.raw!r}; it must be a number", job.place(base), key=base.key, upstream=place)
    for name in ("compute_dtype", "params_dtype"):
        kind = job.arguments.given(f"net.{name}")
        if kind is not None and kind.raw is None:
            yield Finding(f"{name} is null; it must name a type such as bfloat16", job.place(kind), key=kind.key, upstream=f"{_CONFIG}:70")
    act = job.arguments.given("net.hidden_act")
    if act is not None and act.raw is None:
        yield Finding("hidden_act is null; the network needs a name", job.place(act), key=act.key, upstream="mindformers/pynative/layers/activation.py:304")


def _texts(job: Job) -> Iterator[Finding]:
    for field in ("hidden_size", "vocab_size", "num_layers", "num_attention_heads", "ffn_hidden_size"):
        value = job.arguments.given(f"net.{field}")
        if value is not None and isinstance(value.raw, str):
            number = int(value.raw) if value.raw.strip().isdigit() else None
            text_fix = Fix(f"write {number}", value.becomes(number), Safety.SAFE) if number is not None else None
            yield Finding(
                f"{value.key[-1]} is the text {value.raw!r}; it must be an integer", job.place(value), key=value.key, fix=text_fix, upstream=_EMBEDDING
            )
