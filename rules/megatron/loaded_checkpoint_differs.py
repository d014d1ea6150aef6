"""The run builds another network than the checkpoint's, and nothing compares them.

## What it does
With `--site`, compares the arguments of the run that saved the checkpoint with those of this one, where no loader does:
rotary base and scaling, norm and its epsilon, activation, query groups, experts and their router, tied embeddings.

## Why is this bad?
Where the shapes of weights stay the same, the run goes on with weights that were trained for another computation: the
loss starts higher, or never gets to where it was. Where they are known not to, `loaded-checkpoint-shapes` reports it.

## Example
With a checkpoint that was saved with `--rotary-base 500000`, under `--site`:

    --position-embedding-type rope --load /data/llama3

Use instead:

    --position-embedding-type rope --rotary-base 500000 --load /data/llama3

## References
Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:1421, load_args_from_checkpoint, lists what it compares
nowhere
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.saved_arguments import Pair, alike, is_known, is_on, loaded, pairs, shown
from preflight.rules.megatron.saved_shapes import unlike

ROTARY = (
    *(
        "rotary_base",
        "rotary_percent",
        "rotary_interleaved",
        "rotary_scaling_factor",
        "rotary_seq_len_interpolation_factor",
    ),
    *(
        "use_rope_scaling",
        "rope_scaling_factor",
        "original_max_position_embeddings",
        "beta_fast",
        "beta_slow",
        "mscale",
    ),
)
EXPERTS = (
    *("moe_router_topk", "moe_router_score_function", "moe_router_pre_softmax", "moe_router_num_groups"),
    *("moe_router_group_topk", "moe_router_topk_scaling_factor", "moe_router_enable_expert_bias", "moe_layer_freq"),
    *("moe_ffn_hidden_size", "moe_shared_expert_intermediate_size", "moe_shared_expert_gate"),
)
LATENT = ("q_lora_rank", "kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim")
OTHERS = (
    *("position_embedding_type", "normalization", "norm_epsilon", "apply_layernorm_1p", "swiglu", "squared_relu"),
    *("openai_gelu", "quick_geglu", "qk_layernorm", "qk_l2_norm", "add_bias_linear", "add_qkv_bias", "kv_channels"),
    *("untie_embeddings_and_output_weights", "num_experts", "multi_latent_attention", "mtp_num_layers"),
    *("apply_residual_connection_post_layernorm", "softmax_scale", "window_size", "no_rope_freq"),
)
IN_PLACE = "the checkpoint was saved with {name} {before}, the run has {now}, and nothing compares them"


def _names(job: Job) -> tuple[str, ...]:
    """What decides about this network."""
    get, saved = job.arguments.get, job.site.saved if job.site is not None else {}
    kind = get("position_embedding_type")
    names = list(OTHERS)
    if kind.known and kind.raw in ("rope", "mrope", "yarn") and kind.raw == saved.get("position_embedding_type"):
        names += ROTARY
    if is_on(job, "num_experts") and saved.get("num_experts"):
        names += EXPERTS
    else:
        names.append("ffn_hidden_size")
    latent = get("multi_latent_attention").raw is True
    if latent and saved.get("multi_latent_attention") is True:
        names = [*(name for name in names if name != "kv_channels"), *LATENT]
    if not latent and get("group_query_attention").raw is True and saved.get("group_query_attention") is True:
        names.append("num_query_groups")
    return tuple(names)


@rule(severity=Severity.WARNING, frameworks=("megatron",), reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Each argument that differs."""
    if loaded(job) is None or job.arguments.given("moe_use_upcycling") is not None:
        return
    ends = {name for one in unlike(job) for name in one.names}  # another rule's errors
    for pair in pairs(job, (name for name in _names(job) if name not in ends)):
        if not is_known(pair.now):
            yield Unverified(pair.now.because or f"{pair.name} is assumed")
        elif not alike(pair.now.raw, pair.before) and not _is_of_older_release(pair):
            name = job.arguments.spell(pair.name)
            message = Message(IN_PLACE, name=name, before=shown(pair.before), now=shown(pair.now.raw))
            place = job.place(pair.now, job.arguments.given(job.site.checkpoint.argument))  # type: ignore[union-attr]
            yield Finding(message, place, key=pair.now.key)


def _is_of_older_release(pair: Pair) -> bool:
    """Whether one of the two has a value that stands for the other's default, which older releases did not have."""
    return pair.before is None or (pair.now.raw is None and not pair.now.written)
