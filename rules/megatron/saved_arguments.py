"""Compares the arguments of the run that saved a checkpoint with those of the run that loads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from preflight import Job, Value
from preflight.job import Checkpoint, Plain
from preflight.plugin import Origin
from preflight.source.record import NamedTuple

FORCED = (
    *("num_query_groups", "group_query_attention", "position_embedding_type", "add_position_embedding"),
    *("use_rotary_position_embeddings", "rotary_base", "rotary_percent", "rotary_interleaved", "add_bias_linear"),
    *("add_qkv_bias", "squared_relu", "swiglu", "untie_embeddings_and_output_weights", "apply_layernorm_1p"),
    *("normalization", "apply_query_key_layer_scaling", "attention_dropout", "hidden_dropout", "mtp_num_layers"),
    *("num_experts", "moe_layer_freq", "moe_ffn_hidden_size", "moe_router_topk", "moe_router_pre_softmax"),
    *("moe_grouped_gemm", "moe_shared_expert_intermediate_size", "moe_router_score_function"),
    *("moe_router_enable_expert_bias", "moe_router_topk_scaling_factor", "mamba_state_dim", "mamba_head_dim"),
    *("mamba_num_groups", "mamba_num_heads", "tiktoken_pattern", "moe_latent_size"),
)
"""Arguments that `--use-checkpoint-args` takes from the checkpoint, even if the run sets them."""
IF_NOT_GIVEN = (
    *("num_layers", "hidden_size", "ffn_hidden_size", "seq_length", "num_attention_heads", "kv_channels"),
    *("max_position_embeddings", "padded_vocab_size", "ckpt_format"),
)
"""Arguments that it takes from the checkpoint if the run does not set them."""


ABSENT: Mapping[str, Plain] = {"add_position_embedding": True}
"""The values for older checkpoints that lack these arguments."""
MISSING: Plain = "no such argument"


class Pair(NamedTuple):
    """An argument of the run, and its value when the checkpoint was saved. value: None if it is unknown."""

    name: str
    now: Value
    before: Plain


def loaded(job: Job) -> Checkpoint | None:
    """The checkpoint that the run loads, if it is intact and its arguments are known."""
    found = job.site.checkpoint if job.site is not None else None
    return found if found is not None and not found.fault and found.arguments else None


def goes_on(job: Job) -> bool:
    """Whether the run continues from the checkpoint, rather than only starting with its weights."""
    found = job.site.checkpoint if job.site is not None else None
    return found is not None and found.argument == "load" and job.arguments.get("finetune").raw is False


def taken_over(job: Job, name: str) -> bool:
    """Whether the run takes an argument from the checkpoint, so that it cannot differ from it."""
    if job.arguments.get("use_checkpoint_args").raw is not True:
        return False
    return name in FORCED or (name in IF_NOT_GIVEN and job.arguments.given(name) is None)


def pairs(job: Job, names: Iterable[str]) -> Iterator[Pair]:
    """The arguments that both runs have, with their values."""
    saved = job.site.saved if job.site is not None else {}
    for name in names:
        before = saved.get(name, ABSENT.get(name, MISSING))
        if before is not MISSING and not taken_over(job, name):
            yield Pair(name, job.arguments.get(name), before)


def is_known(value: Value) -> bool:
    """Whether a value is certain to be the one in effect, and not only assumed."""
    return value.known and value.origin is not Origin.ASSUMED


def is_on(job: Job, name: str) -> bool:
    """Whether an argument is known and is not None, false or 0."""
    value = job.arguments.get(name)
    return value.known and bool(value.raw)


def same(now: object, before: object) -> bool:
    """Whether two values are equal in Python; a list is equal to a tuple with the same items."""
    now = tuple(now) if isinstance(now, list) else now
    return now == before


def alike(now: object, before: object) -> bool:
    """Whether two values mean the same thing, as None, false and 0 do."""
    return same(now, before) or (not now and not before) or str(now).lower() == str(before).lower()


def shown(value: object) -> str:
    """A value in readable form."""
    return str(value)
