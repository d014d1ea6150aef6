"""The network of a Megatron run in neutral terms."""

from __future__ import annotations

from preflight.dialects.megatron.derivation_namespace import Run
from preflight.dialects.megatron.mindspeed_renamed_arguments import before
from preflight.dialects.megatron.network_extensions import (
    beside,
    frozen,
    hybrid_parts,
    mamba,
    pair_bias,
    router_copy,
    samples,
    streams,
    variant,
    weighted_last,
    window,
    window_every,
)
from preflight.dialects.megatron.network_sizes import GPT2_TOKENIZER, GPT2_VOCABULARY, rows
from preflight.dialects.megatron.plan_values import Source
from preflight.run.training_plan import Model
from preflight.run.value import Origin, Value, default
from preflight.run.version_ranges import matches
from preflight.source.record import replace

FAMILIES = {
    "pretrain_bert.py": "bert",
    "bert": "bert",
    "pretrain_t5.py": "t5",
    "t5": "t5",
    "pretrain_vlm.py": "multimodal",
    "mimo": "multimodal",
    "multimodal-llava": "multimodal",
    "pretrain_ict.py": "retrieval",
    "pretrain_mamba.py": "hybrid",
}
"""Entry scripts, or folders of functional tests, of models other than GPT."""


GATES = {"gelu": 1, "gelu_tanh": 4}
"""The tensors that MindSpeed-LLM's gates keep, by operator: the GELU's output for the product; with a written-out tanh
also the tanh, the tanh plus one, and half of the input (c77308a mindspeed_llm/core/transformer/mlp.py:85-96, glu in
megatron/core/transformer/mlp.py)."""


def _gate_kept(run: Run) -> int:
    """Megatron's fused gate keeps nothing more; without the kernel it keeps the SiLU's output and, since core 0.15 adds
    an offset (2e29a5e1e3), the linear half (d98e8a6 megatron/core/transformer/mlp.py:323-333)."""
    if not run.gated_linear_unit:
        return 0
    if (
        run.activation_func == "silu"
        and "mindspeed" not in run.versions
        and not run.bias_swiglu_fusion
        and not run.use_te_activation_func
    ):
        return 1 if matches(run.core_release, "<0.15") else 2
    return GATES.get(str(run.activation_func), 0)


def model(source: Source) -> Model:
    """Sizes, attention and experts."""
    take, compute = source.take, source.compute
    return replace(
        _network(source),
        window=compute(window, "window_size"),
        window_every=compute(window_every, "window_attn_skip_freq"),
        variant=compute(variant),
        down_split=compute(_down_split, "multi_latent_attention"),
        pair_bias=compute(pair_bias, "position_embedding_type"),
        streams=compute(streams),
        experts=take("num_experts"),
        top_k=take("moe_router_topk"),
        expert_ffn=take("moe_ffn_hidden_size"),
        shared_ffn=compute(_shared, "moe_shared_expert_intermediate_size"),
        expert_layers=compute(lambda r: r.moe_layer_pattern, "moe_layer_freq"),
        capacity=compute(_capacity, "moe_expert_capacity_factor"),
        dispatcher=take("moe_token_dispatcher_type"),
        router_copy=compute(router_copy, "moe_router_dtype"),
        weighted_last=compute(weighted_last),
        grouped_gemm=take("moe_grouped_gemm"),
        parts=compute(hybrid_parts, "hybrid_layer_pattern"),
        mamba=compute(mamba),
        mtp=take("mtp_num_layers"),
        beside=compute(beside),
        lora_rank=compute(lambda r: r.lora_r if r.lora_target_modules else None, "lora_r"),
        lora_targets=compute(_adapters, "lora_target_modules"),
    )


def _network(source: Source) -> Model:
    """Everything except experts, prediction depths and adapters."""
    take, compute = source.take, source.compute
    return Model(
        family=compute(_family),
        names=compute(_names),
        layers=take("num_layers"),
        hidden=take("hidden_size"),
        heads=take("num_attention_heads"),
        query_groups=take("num_query_groups"),
        head_dim=take("kv_channels"),
        ffn=take("ffn_hidden_size"),
        gated=compute(lambda r: r.gated_linear_unit, "swiglu"),
        gate_kept=compute(_gate_kept),
        vocab=_vocabulary(source),
        sequence=take(samples(source.run) if frozen(source.run) else "seq_length"),
        positions=compute(_learned_positions, "max_position_embeddings"),
        rotary_base=compute(lambda r: r.rotary_base if r.position_embedding_type == "rope" else None, "rotary_base"),
        rotary_part=compute(
            lambda r: r.rotary_percent if r.position_embedding_type == "rope" else None, "rotary_percent"
        ),
        tied=compute(lambda r: not r.untie_embeddings_and_output_weights, "untie_embeddings_and_output_weights"),
        bias=take("add_bias_linear"),
        qkv_bias=take("add_qkv_bias"),
        norm=compute(lambda r: "rms" if r.normalization == "RMSNorm" else "layer", "normalization"),
        qk_norm=take("qk_layernorm"),
        post_norm=compute(lambda r: bool(r.post_norm), "post_norm"),
        hidden_dropout=take("hidden_dropout"),
        attention_dropout=take("attention_dropout"),
        attention=compute(attention, "attention_backend"),
        kernels=default("torch-npu") if "mindspeed" in source.run.versions else take("transformer_impl"),
        cross_entropy=compute(_cross_entropy, "cross_entropy_loss_fusion"),
        capped=compute(lambda r: bool(r.output_logit_softcapping), "output_logit_softcapping"),
        latent=compute(lambda r: bool(r.multi_latent_attention), "multi_latent_attention"),
        q_lora_rank=take("q_lora_rank"),
        kv_lora_rank=take("kv_lora_rank"),
        qk_nope_dim=compute(lambda r: r.qk_head_dim or r.qk_nope_head_dim, "qk_head_dim"),
        qk_rope_dim=compute(lambda r: r.qk_pos_emb_head_dim or r.qk_rope_head_dim, "qk_pos_emb_head_dim"),
        v_dim=take("v_head_dim"),
        padded_dims=compute(_padded, "mla_fa_without_pad"),
    )


def _learned_positions(run: Run) -> int | None:
    """Rows of the table of positions, if it is learned."""
    return run.max_position_embeddings if run.position_embedding_type == "learned_absolute" else 0


NAMING = ("tokenizer_name_or_path", "tokenizer_model", "load", "hf_checkpoint", "model", "hf_model_id")


def _names(run: Run) -> tuple[str, ...]:
    """Paths in the run that may name a published model."""
    typed = (run.written.get(name) for name in NAMING)
    return tuple(value.raw for value in typed if value is not None and isinstance(value.raw, str) and value.raw)


def _down_split(run: Run) -> bool:
    """Whether these projections are divided: in Megatron-LM with its own layers; until 2025-07-29 (720c8b40d8, core
    0.14) also with Transformer Engine's (core_v0.13.0, gpt_layer_specs.py:144-146, :262). MindSpeed-LLM's are whole
    (multi_latent_attention.py, LinearNoTP).
    """
    if not run.multi_latent_attention or "mindspeed" in run.versions:
        return False
    return bool(run.transformer_impl == "local" or matches(run.core_release, "<0.14"))


def _padded(run: Run) -> tuple[int, int] | None:
    """MindSpeed-LLM pads heads for its flash attention, with BNSD only the values (c77308a
    multi_latent_attention.py:355-359, :661-667)."""
    if "mindspeed-llm" not in run.versions or not run.multi_latent_attention or not run.use_flash_attn:
        return None
    if run.mla_fa_without_pad or run.mla_fa_divide_qk or (run.enable_mla_absorb and run.use_sparse_flash_attn):
        return None
    queries, values = (
        (run.qk_head_dim or run.qk_nope_head_dim) + (run.qk_pos_emb_head_dim or run.qk_rope_head_dim),
        run.v_head_dim,
    )
    if queries == values:
        return None
    if run.shape_order == "BNSD":
        return queries, queries
    wide = -(-max(queries, values) // run.padded_base_length) * run.padded_base_length
    return wide, wide


def _vocabulary(source: Source) -> Value:
    """Rows of the embedding; if no option sets them, those of the named tokenizer, or the usual number of its type, are
    assumed."""
    value = source.take("padded_vocab_size")
    if value.known:
        return _usual(value) if _of_a_type(source.run, value) else value
    file = source.run.value("tokenizer_file")
    named = file.known and file.raw
    note = f"the vocabulary of {file.raw}" if named else "the published vocabulary of this tokenizer"
    found = source.compute(rows, "tokenizer_model", note)
    return found._replace(origin=Origin.ASSUMED) if found.known else found


def _of_a_type(run: Run, value: Value) -> bool:
    """Whether only the type of the tokenizer shows the number of rows: its files may contain any number."""
    nobody = value.origin not in (Origin.WRITTEN, Origin.STATED) and run.value("vocab_size").raw is None
    return nobody and run.value("tokenizer_type").raw in (None, GPT2_TOKENIZER)


def _usual(value: Value) -> Value:
    note = f"a vocabulary of {GPT2_VOCABULARY}: {GPT2_TOKENIZER} is published with it, but the files may differ"
    return value._replace(origin=Origin.ASSUMED, note=note)


def _family(run: Run) -> str:
    if run.hybrid_layer_pattern is not None or (run.is_core("<0.17") and run.hybrid_override_pattern is not None):
        return "hybrid"
    return FAMILIES.get(run.entry, "deepseek" if run.multi_latent_attention and run.num_experts else "gpt")


def attention(run: Run) -> str:
    """The effective backend. Transformer Engine selects a flash kernel unless options choose or prevent it; Megatron's
    own attention keeps the scores; MindSpeed's is flash if requested."""
    latent = "mla-" if run.multi_latent_attention else ""
    if "mindspeed" in run.versions:
        ring = run.context_parallel_size > 1
        # training/arguments.py:1288 of 2.3.0 makes it local
        engine = run.transformer_impl == "transformer_engine" and not before(run, "26")
        return f"{latent}flash" if run.use_flash_attn or ring or engine else _own(run)
    if run.transformer_impl == "local":
        return _own(run)
    if run.attention_backend == "unfused":
        return "unfused"
    if run.attention_backend == "local":
        return _own(run)
    if run.deterministic_mode and run.attention_backend == "auto":
        return f"{latent}flash-if-deterministic"
    return f"{latent}flash" if latent or run.attention_backend != "fused" else "fused"


def _own(run: Run) -> str:
    return "unfused" if run.masked_softmax_fusion else "unfused-fp32"


def _shared(run: Run) -> int | None:
    size: int | None = run.moe_shared_expert_intermediate_size
    if size is None and run.n_shared_experts:
        size = run.n_shared_experts * run.moe_ffn_hidden_size
    return size


_LINEARS = {"linear_qkv": "qkv", "linear_proj": "projection", "linear_fc1": "fc1", "linear_fc2": "fc2"}
_LINEARS |= {f"shared {name}": f"shared {_LINEARS[name]}" for name in ("linear_fc1", "linear_fc2")}


def _adapters(run: Run) -> tuple[str, ...]:
    """The linears with an adapter; an unknown target is not an error here, but nothing can be computed from it."""
    return tuple(_LINEARS[name] for name in run.lora_target_modules or () if name in _LINEARS)


def _capacity(run: Run) -> float | None:
    factor: float | None = run.moe_expert_capacity_factor
    return None if factor is None or factor < 0 else factor


def _cross_entropy(run: Run) -> str:
    """MindSpeed's loss kept a copy of the fp32 logits before MindSpeed-LLM 2.2
    (mindspeed/core/tensor_parallel/cross_entropy.py:15 of 2.0.0_core_r0.8.0)."""
    if run.cross_entropy_loss_fusion:
        return run.cross_entropy_fusion_impl or "native"
    return "unfused-copy" if "mindspeed-llm" in run.versions and matches(run.core_release, "<0.12") else "unfused"
