"""A size of an mcore network is not a number.

## What it does
With `use_legacy: False`, checks that the sizes of the network that the config sets are integers. They must not be
strings, and not null if there is no default. The number of heads and their width must not be 0. In training, the sizes
must be at least 1 and must not be fractions.

## Why is this bad?
The network calculates with these sizes while it is built, and crashes with a TypeError or a division by zero on every
rank.

## Example
    model: {model_config: {model_type: qwen3, num_attention_heads: "32"}}
Use instead:
    model: {model_config: {model_type: qwen3, num_attention_heads: 32}}

## Fix safety
Safe: the string is replaced by the number that it represents.

## References
MindFormers 2.1.0, mindformers/parallel_core/transformer_config.py:2349, TransformerConfig.__post_init__
MindFormers 2.1.0, mindformers/parallel_core/utils/init_method.py:30 and :45
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Safety, Severity, Value, rule
from preflight.run.version_ranges import matches
from preflight.source.record import NamedTuple

_CONFIG = "mindformers/parallel_core/transformer_config.py"
_INIT = "mindformers/parallel_core/utils/init_method.py"
_ATTENTION = "mindformers/parallel_core/training_graph/transformer/attention.py"
_FLASH = "mindformers/parallel_core/training_graph/transformer/flash_attention.py"
_LAYERS = "mindformers/parallel_core/inference/tensor_parallel/layers.py"
_MASK = "mindformers/parallel_core/training_graph/transformer/mask_generate.py"
_ROTARY = "mindformers/parallel_core/training_graph/base_models/common/embeddings/rotary_pos_embedding.py"
_LATENT = "mindformers/parallel_core/training_graph/transformer/multi_latent_attention.py"
_SERVED = "mindformers/parallel_core/inference/transformer/attention.py:169"
_DIVIDES = "mindformers/parallel_core/inference/utils.py:163"


class _Size(NamedTuple):
    """A size, and where a network crashes if it is a string: in training with 1.7, in training with 2.1, and in
    prediction with 2.1. null: the network crashes with null, too.

    zero: where each network crashes with 0, "" if it does not. least: the smallest value that a network can be built
    with in training. only: the size only exists with latent attention or with experts.
    """

    name: str
    text: tuple[str, str, str]
    null: bool = True
    zero: tuple[str, str, str] = ("", "", "")
    least: int = 1
    only: str = ""


_SIZES = (
    _Size("vocab_size", (f"{_INIT}:30", f"{_INIT}:30", f"{_LAYERS}:1173")),
    _Size("hidden_size", (f"{_INIT}:30", f"{_INIT}:30", f"{_LAYERS}:1237")),
    _Size(
        "num_attention_heads",
        (f"{_CONFIG}:446", f"{_CONFIG}:2349", f"{_CONFIG}:2349"),
        zero=(f"{_ATTENTION}:136", f"{_ATTENTION}:148", f"{_LAYERS}:95"),
    ),
    _Size("num_layers", (f"{_INIT}:45", f"{_INIT}:45", f"{_INIT}:45")),
    _Size("ffn_hidden_size", (f"{_INIT}:30", f"{_INIT}:30", _DIVIDES), null=False),
    _Size("seq_length", (f"{_MASK}:68", f"{_MASK}:71", ""), least=0),
    _Size("num_query_groups", (f"{_ATTENTION}:121", f"{_ATTENTION}:133", _DIVIDES), null=False),
    _Size(
        "kv_channels",
        (f"{_ROTARY}:63", f"{_ROTARY}:63", ""),
        null=False,
        zero=(f"{_FLASH}:126", f"{_FLASH}:139", _SERVED),
    ),
    _Size("q_lora_rank", ("", f"{_INIT}:30", ""), null=False, only="latent"),
    _Size("kv_lora_rank", ("", f"{_INIT}:30", ""), only="latent"),
    *(
        _Size(name, ("", f"{_LATENT}:135", ""), only="latent")
        for name in ("qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim")
    ),
    _Size("moe_ffn_hidden_size", (f"{_INIT}:30", f"{_INIT}:30", ""), null=False, only="experts"),
)


@rule(severity=Severity.ERROR, frameworks=("mindformers",), reads=tuple(f"mcore.{size.name}" for size in _SIZES))
def check(job: Job) -> Iterator[Finding]:
    if job.arguments.get("kind").raw != "mcore" or not matches(job.target.version, ">=1.7"):
        return
    new, training = matches(job.target.version, ">=2"), job.arguments.get("training").raw is True
    if not new and not training:
        return
    run = 2 if not training else int(new)
    latent = job.arguments.get("mcore.multi_latent_attention").raw is not False
    first = job.arguments.get("mcore.first_k_dense_replace").raw
    dense_first = isinstance(first, int) and first > 0
    # with experts and without these settings, there may be no dense layer
    mixed = job.arguments.get("mcore.num_moe_experts").raw is not None and not dense_first
    has = {"": True, "latent": job.arguments.get("mcore.multi_latent_attention").raw is True, "experts": _counts(job)}
    for size in _SIZES:
        if not has[size.only] or not (size.text[run] or size.zero[run]):
            continue
        value = job.arguments.get(f"mcore.{size.name}")
        if (
            value.setting is None
            or not value.known
            or (size.name == "ffn_hidden_size" and mixed)
            or (size.name == "kv_channels" and latent)
        ):
            continue
        if size.text[run] and (isinstance(value.raw, (str, list)) or (value.raw is None and size.null)):
            yield _finding(job, value, size.text[run])
        elif training and _cannot(value.raw, size.least) and not (latent and size.name == "num_query_groups"):
            words = "an integer" if isinstance(value.raw, float) else Message("at least {least}", least=size.least)
            message = Message("{name} is {value}; it must be {words}", name=_name(value), value=value.raw, words=words)
            zero = size.zero[run] if value.raw == 0 or size.name == "kv_channels" else ""
            where = zero or size.text[run] or size.zero[run]
            yield Finding(message, job.place(value), key=value.key, upstream=where)
        elif size.zero[run] and value.raw == 0 and not isinstance(value.raw, bool):
            message = Message("{name} is 0; it must be at least 1", name=_name(value))
            yield Finding(message, job.place(value), key=value.key, upstream=size.zero[run])


def _counts(job: Job) -> bool:
    """Whether the network certainly has experts."""
    experts = job.arguments.get("mcore.num_moe_experts").raw
    return isinstance(experts, int) and experts > 0


def _cannot(raw: object, least: int) -> bool:
    """Whether a number is a fraction or less than the smallest allowed value."""
    return isinstance(raw, float) or (isinstance(raw, int) and not isinstance(raw, bool) and raw < least)


def _finding(job: Job, value: Value, where: str) -> Finding:
    text = value.raw.strip() if isinstance(value.raw, str) else ""
    fix = Fix(f"write {int(text)}", value.becomes(int(text)), Safety.SAFE) if text.isdigit() else None
    null_or_list = "null" if value.raw is None else value.raw
    shown = Message("the string {value!r}", value=value.raw) if isinstance(value.raw, str) else null_or_list
    message = Message("{name} is {shown}; it must be an integer", name=_name(value), shown=shown)
    return Finding(message, job.place(value), key=value.key, fix=fix, upstream=where)


def _name(value: Value) -> object:
    return value.key[-1] if value.key else "the size"
