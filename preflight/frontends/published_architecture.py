"""The network of a run whose front end takes it from a published model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from preflight.dialects.megatron.derivation_namespace import Run
from preflight.dialects.megatron.unmodelled_memory import ADAPTED
from preflight.frontends.front_end import Keys
from preflight.run.published_models import Published
from preflight.run.value import Value
from preflight.source.typing_without_import import Any

ASSUMED = "published_model"
"""The name of the model in an assumed run."""
_SIZES = {
    "num_layers": "layers",
    "hidden_size": "hidden",
    "num_attention_heads": "heads",
    "num_query_groups": "query_groups",
    "kv_channels": "head_dim",
    "ffn_hidden_size": "ffn",
    "vocab_size": "vocab",
    "num_experts": "experts",
    "moe_router_topk": "top_k",
    "moe_ffn_hidden_size": "expert_ffn",
}
_TRAITS = {
    "moe_shared_expert_intermediate_size": "shared",
    "q_lora_rank": "q_lora",
    "kv_lora_rank": "kv_lora",
    "qk_head_dim": "nope",
    "qk_pos_emb_head_dim": "rope",
    "v_head_dim": "v",
    "add_bias_linear": "bias",
    "add_qkv_bias": "qkv_bias",
    "qk_layernorm": "qk_norm",
    "multi_latent_attention": "kv_lora",
}
_PLAIN: Mapping[str, Any] = {
    "group_query_attention": True,
    "swiglu": True,
    "normalization": "RMSNorm",
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "transformer_impl": "transformer_engine",
    "torch_dtype": "bfloat16",
    "max_position_embeddings": None,
    "create_attention_mask_in_dataloader": False,
    "moe_grouped_gemm": True,
    "moe_token_dispatcher_type": "alltoall",
}
"""The values with which the front ends, or Megatron-Bridge, build every such model."""


def arguments(model: Published) -> dict[str, Any]:
    """A published model as Megatron arguments."""
    sizes, traits = model.sizes, model.traits
    found = dict(_PLAIN) | {name: sizes.get(size) for name, size in _SIZES.items()}
    found |= {name: traits.get(trait) for name, trait in _TRAITS.items()}
    for name in ("add_bias_linear", "add_qkv_bias", "qk_layernorm", "multi_latent_attention"):
        found[name] = bool(found[name])
    found["kv_channels"] = found["kv_channels"] or sizes["hidden"] // sizes["heads"]
    found["untie_embeddings_and_output_weights"] = not traits.get("tied")
    found["position_embedding_type"] = "alibi" if traits.get("alibi") else "rope"
    if "experts" in sizes:
        dense = traits.get("dense", 0)
        found["moe_layer_freq"] = [0] * dense + [1] * (sizes["layers"] - dense)
    if traits.get("linear"):
        found["experimental_attention_variant"] = "gated_delta_net"
    return found


def is_supposed(run: Run) -> bool:
    """Whether a run is the one assumed for memory, with the named model."""
    return isinstance(run.value(ASSUMED).raw, Published)


def build(run: Run) -> bool:
    """Give an assumed run its network; False for the run as written."""
    model = run.value(ASSUMED).raw
    if not isinstance(model, Published):
        return False
    for name, raw in arguments(model).items():
        if not _typed(run.written.get(name)):
            run.derive(name, raw, model.name)
    return True


def complete(run: Run) -> None:
    """Give an assumed run the explicit values of its network and the unknown ones, as with a loop in a script; all of
    them if it has no layers because their file is not read."""
    model = run.value(ASSUMED).raw
    if not isinstance(model, Published) or ("num_layers" not in run.written and build(run)):
        return
    for name, raw in arguments(model).items():
        given = run.written.get(name)
        if given is not None and not given.known:
            run.derive(name, raw, model.name)


def _typed(value: Value | None) -> bool:
    return value is not None and value.known


TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
NETWORK = "it is in the model's config.json or in Megatron-Bridge"
OFF = frozenset(
    [
        *(
            "step_batch_size_schedule",
            "rampup_batch_size",
            "decrease_batch_size_if_needed",
            "train_samples",
            "skip_train",
        ),
        *("gtp_weight_remat_size", "expert_gtp_weight_remat_size", "layerwise_disaggregated_training"),
        *("eval_global_batch_size", "eval_micro_batch_size", "lr_decay_samples", "lr_warmup_samples"),
        *("encoder_pipeline_model_parallel_size", "encoder_tensor_model_parallel_size"),
    ]
)
"""Features of Megatron's own trainer: they are off."""


def trained(run: Run, of: str, count: int, note: str) -> Value:
    """The devices that train, at the key for the number of devices per node."""
    value = run.value(of).derived(count, note)
    setting = value.setting._replace(key=("devices that train",)) if value.setting is not None else None
    return value._replace(setting=setting, edits=None)


def of_bridge(run: Run, rank: int, kind: str, linears: Sequence[str] | None) -> None:
    """Adapters as Megatron-Bridge creates them: on all linears if none is named, one for all experts of a rank (51885cf
    src/megatron/bridge/peft/lora.py)."""
    named = [str(name) for name in linears or ADAPTED[:4]]
    if run.num_experts:
        named = [f"shared {name}" if name in ("linear_fc1", "linear_fc2") else name for name in named]
    run.derive("lora_target_modules", named if kind == "lora" else [*named, kind])
    run.derive("lora_r", rank)


def lose_network(run: Run, keys: Keys) -> None:
    """Arguments that are neither set nor the front end's own are unknown. They come from the published model and its
    builder, so a check that uses only them is not this run's."""
    if build(run):
        return
    own = {flag.dest for flag in keys.options.values()}
    for name in run.table.defaults:
        if name not in own and name not in OFF and name not in run.written and name not in run.effective:
            run.settled.add(name)
            run.lose(name, NETWORK)
