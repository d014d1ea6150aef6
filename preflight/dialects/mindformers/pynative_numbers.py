"""Settings of a pynative network that must hold a number, a name or a switch: where the network dies of a text,
and where of null."""

from __future__ import annotations

from preflight.source.record import NamedTuple

_CONFIG = "mindformers/parallel_core/transformer_config.py"
_CONVERTED = "mindformers/parallel_core/transformer_config_utils.py:687"
_DEVIATION = "mindformers/parallel_core/utils/init_method.py:45"
_EMBEDDING = "mindformers/pynative/base_models/common/embeddings/vocab_embedding.py:57"
_ROTARY = "mindformers/pynative/base_models/common/embeddings/rotary_pos_embedding.py:60"
_YARN = "mindformers/pynative/base_models/common/embeddings/yarn_rotary_pos_embedding.py"
_LATENT = "mindformers/pynative/transformers/multi_latent_attention.py"
_LINEAR = "mindformers/pynative/layers/linear.py:85"

INTEGER, NUMBER, TYPE, NAME, SWITCH = (
    "an integer",
    "a number",
    "the name of a type such as bfloat16",
    "a name",
    "true or false",
)


class Held(NamedTuple):
    """A field of the network and what it must hold. text, null: where upstream dies of a text, of null;
    "" where it does not.

    when: "" for every network, "plain" or "latent" attention, "rotary" or "yarn" (scaled) positions, "experts",
    "groups" of experts.
    """

    field: str
    wanted: str
    text: str = ""
    null: str = ""
    when: str = ""


HELD = (
    Held("hidden_size", INTEGER, _EMBEDDING, _EMBEDDING),
    Held("vocab_size", INTEGER, _EMBEDDING, _EMBEDDING),
    Held(
        "num_layers",
        INTEGER,
        "mindformers/models/qwen3/configuration_qwen3.py:221",
        "mindformers/models/qwen3/configuration_qwen3.py:221",
    ),
    Held("num_attention_heads", INTEGER, f"{_CONFIG}:2349", f"{_CONFIG}:2349"),
    Held("ffn_hidden_size", INTEGER, _LINEAR),
    Held("mtp_num_layers", INTEGER, f"{_CONFIG}:2339"),
    Held("init_method_std", NUMBER, _DEVIATION, _DEVIATION),
    Held("num_query_groups", INTEGER, "mindformers/pynative/transformers/attention.py:92", when="plain"),
    Held("kv_channels", INTEGER, _ROTARY, when="plain"),
    Held("rotary_base", NUMBER, _ROTARY, _ROTARY, "rotary"),
    Held("q_lora_rank", INTEGER, "mindformers/pynative/layers/layer_norm.py:146", when="latent"),
    Held("kv_lora_rank", INTEGER, f"{_LATENT}:343", f"{_LATENT}:343", "latent"),
    Held("qk_pos_emb_head_dim", INTEGER, _ROTARY, f"{_YARN}:76", "latent"),
    Held("qk_head_dim", INTEGER, f"{_LATENT}:112", f"{_LATENT}:112", "latent"),
    Held("v_head_dim", INTEGER, f"{_LATENT}:118", f"{_LATENT}:109", "latent"),
    *(Held(name, NUMBER, f"{_YARN}:144", f"{_YARN}:144", "yarn") for name in ("beta_fast", "beta_slow")),
    *(Held(name, NUMBER, f"{_YARN}:170", f"{_YARN}:170", "yarn") for name in ("mscale", "mscale_all_dim")),
    Held("num_moe_experts", INTEGER, f"{_CONFIG}:2427"),
    Held("first_k_dense_replace", INTEGER, f"{_CONFIG}:2523"),
    Held("moe_ffn_hidden_size", INTEGER, "mindformers/pynative/transformers/moe/experts.py:82", when="experts"),
    Held(
        "shared_expert_num",
        INTEGER,
        "mindformers/pynative/transformers/moe/moe_layer.py:56",
        f"{_CONFIG}:2437",
        "experts",
    ),
    Held("moe_shared_expert_intermediate_size", INTEGER, _LINEAR, when="experts"),
    Held("moe_router_num_groups", INTEGER, f"{_CONFIG}:2495", f"{_CONFIG}:2492", "groups"),
    Held("moe_router_group_topk", INTEGER, f"{_CONFIG}:2500", when="groups"),
    Held("moe_router_topk", INTEGER, f"{_CONFIG}:2505", f"{_CONFIG}:2505", "groups"),
    Held("moe_aux_loss_coeff", NUMBER, f"{_CONFIG}:2686"),
    Held(
        "moe_grouped_gemm", SWITCH, null="mindformers/pynative/base_models/gpt/moe_module_specs.py:33", when="experts"
    ),
    Held("moe_token_drop_policy", NAME, null=_CONVERTED),
    Held("position_embedding_type", NAME, null=f"{_CONFIG}:2590"),
    Held("hidden_act", NAME, null="mindformers/pynative/layers/activation.py:304"),
    Held("softmax_compute_dtype", TYPE, null=_CONVERTED),
    *(
        Held(name, TYPE, null=f"{_CONFIG}:70")
        for name in ("compute_dtype", "params_dtype", "layernorm_compute_dtype", "rotary_dtype")
    ),
)
