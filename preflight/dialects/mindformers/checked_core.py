"""The settings of an mcore network whose kind of value is checked while it is built, each by the network's own name."""

from __future__ import annotations

from preflight.dialects.mindformers import run_conditions as run
from preflight.dialects.mindformers.accepted_values import (
    ABOVE_0,
    BALANCING,
    COUNTED_WITH,
    DTYPE,
    GIVEN,
    NAME_OR_SWITCH,
    NO_FLOAT16,
    NORM,
    NORM_TYPE,
    POINTED_BELOW_1,
    POSITIVE,
    REAL,
    SCORE,
    SERVED_ACTIVATION,
    TYPE_NAME,
    WHOLE,
    WHOLE_FROM_0,
    WHOLE_FROM_MINUS_1,
    YARN_BASE,
)
from preflight.dialects.mindformers.checked_setting import Checked, at_core, at_first, at_new

_CONFIG = "mindformers/parallel_core/transformer_config.py"
_CONVERT = "mindformers/parallel_core/transformer_config_utils.py"
_ACTIVATION = "mindformers/parallel_core/training_graph/activation.py"
_PARALLEL_CONFIG = "mindformers/parallel_core/model_parallel_config.py"
_GPT = "mindformers/parallel_core/training_graph/base_models/gpt/gpt_model.py"
_ROTARY = "mindformers/parallel_core/training_graph/base_models/common/embeddings/rotary_pos_embedding.py"
_YARN = "mindformers/parallel_core/training_graph/base_models/common/embeddings/yarn_rotary_pos_embedding.py"
_LATENT = "mindformers/parallel_core/training_graph/transformer/multi_latent_attention.py"
_INIT = "mindformers/parallel_core/utils/init_method.py"
_NORM = "mindformers/parallel_core/training_graph/transformer/norm.py"
_SERVED_ROTARY = "mindformers/parallel_core/inference/base_models/common/embeddings/rotary_pos_embedding.py"
_SERVED_NORM = "mindformers/parallel_core/inference/transformer/norm.py"
_SERVED_ACTIVATION = "mindformers/parallel_core/inference/transformer/activation.py"
_DISPATCHER = "mindformers/parallel_core/training_graph/transformer/moe/token_dispatcher.py"
_ROUTER = "mindformers/parallel_core/training_graph/transformer/moe/router.py"
_FFN = "mindformers/parallel_core/training_graph/transformer/moe/ffn.py"

_ROWS = (
    Checked("mcore.params_dtype", DTYPE, at_core(_PARALLEL_CONFIG, 177) | at_new(_CONFIG, 2279), when=run.mcore),
    Checked("mcore.moe_router_dtype", DTYPE, at_core(_CONFIG, 423, 70), when=run.mcore),
    Checked("mcore.rotary_dtype", NO_FLOAT16, at_new(_GPT, 335), ">=1.8", when=run.trained),
    Checked("mcore.params_dtype", NORM_TYPE, at_first(_NORM, 58), ">=1.6,<1.7", when=run.trained),
    Checked("mcore.layernorm_compute_dtype", NORM_TYPE, at_first(_NORM, 61), ">=1.6,<1.7", when=run.trained),
    Checked("mcore.hidden_dropout", POINTED_BELOW_1, at_first(_CONFIG, 415), ">=1.6,<1.7", when=run.trained),
    Checked("mcore.mtp_num_layers", WHOLE_FROM_0.or_null(), at_first(_CONFIG, 425), ">=1.6,<1.7", when=run.trained),
    Checked("mcore.attention_dropout", POINTED_BELOW_1, at_first(_CONFIG, 417), ">=1.6,<1.7", when=run.trained),
    Checked("mcore.rotary_base", COUNTED_WITH, at_core(_ROTARY, 63), when=run.rotary),
    Checked("mcore.rotary_base", YARN_BASE, at_core(_YARN, 140, 139), when=run.spread),
    Checked("mcore.beta_fast", ABOVE_0, at_core(_YARN, 140, 139), when=run.spread),
    Checked("mcore.beta_slow", ABOVE_0, at_core(_YARN, 140, 139), when=run.spread),
    Checked("mcore.max_position_embeddings", ABOVE_0, at_core(_YARN, 140, 139), when=run.spread),
    Checked("mcore.mscale", REAL, at_core(_LATENT, 134, 137), when=run.latent),
    Checked("mcore.mscale_all_dim", REAL, at_core(_YARN, 166, 165), when=run.spread),
    Checked("mcore.rotary_scaling_factor", REAL, at_core(_LATENT, 134, 137), when=run.latent),
    Checked("mcore.init_method_std", REAL, at_core(_INIT, 45), when=run.trained),
    Checked("mcore.normalization", NORM, at_core(_NORM, 380, 455), when=run.trained),
    Checked("mcore.rotary_base", REAL, at_new(_SERVED_ROTARY, 93), ">=2", when=run.served),
    Checked("mcore.init_method_std", REAL, at_new(_INIT, 45), ">=2", when=run.served),
    Checked("mcore.normalization", NORM, at_new(_SERVED_NORM, 141), ">=2", when=run.served),
    Checked("mcore.hidden_act", SERVED_ACTIVATION.or_null(), at_new(_SERVED_ACTIVATION, 64), ">=2", when=run.served),
    Checked("mcore.mtp_num_layers", WHOLE_FROM_0.or_null(), at_core(_CONFIG, 437, 2340), when=run.trained),
    Checked("mcore.first_k_dense_replace", WHOLE.or_null(), at_core(_CONFIG, 608), ">=1.7,<2", when=run.trained),
    Checked(
        "mcore.first_k_dense_replace", WHOLE_FROM_MINUS_1.or_null(), at_new(_CONFIG, 2524), ">=2", when=run.trained
    ),
    Checked("mcore.chunk_loss_num", REAL, at_new(_CONFIG, 2740), ">=2", when=run.trained),
    Checked("mcore.num_moe_experts", POSITIVE.or_null(), at_core(_CONFIG, 503, 2428), when=run.trained),
    Checked("mcore.moe_router_topk", WHOLE_FROM_0, at_core(_DISPATCHER, 513, 472), when=run.experts),
    Checked("mcore.moe_aux_loss_coeff", REAL, at_core(_CONFIG, 676, 2686), when=run.experts),
    Checked("mcore.moe_expert_capacity_factor", REAL.or_null(), at_core(_CONFIG, 524, 2449), when=run.trained),
    Checked("mcore.moe_shared_expert_intermediate_size", POSITIVE.or_null(), at_core(_INIT, 30), when=run.experts),
    Checked("mcore.shared_expert_num", WHOLE, at_core(_CONFIG, 520, 2445), when=run.unsized),
    Checked("mcore.shared_expert_num", GIVEN, at_core(_CONFIG, 512, 2437), when=run.sized),
    Checked(
        "mcore.moe_router_score_function", SCORE.or_null(), at_core(_ROUTER, 148, 163), ">=1.7,<2", when=run.experts
    ),
    Checked("mcore.moe_router_score_function", SCORE, at_core(_ROUTER, 148, 163), ">=2", when=run.experts),
    Checked("mcore.moe_router_load_balancing_type", BALANCING, at_core(_ROUTER, 186, 201), when=run.experts),
    Checked("mcore.moe_token_dispatcher_type", TYPE_NAME, at_core(_FFN, 101, 105), when=run.experts),
    Checked("mcore.moe_token_drop_policy", NAME_OR_SWITCH, at_core(_CONVERT, 97), ">=1.7,<2", when=run.trained),
    Checked("mcore.moe_token_drop_policy", NAME_OR_SWITCH, at_new(_CONVERT, 687), ">=2", when=run.latent),
    Checked("mcore.moe_router_num_groups", WHOLE.or_null(), at_core(_CONFIG, 583), ">=1.7,<2", when=run.grouped),
    Checked("mcore.moe_router_num_groups", WHOLE.or_null(), at_new(_ROUTER, 249), ">=2", when=run.experts),
    Checked("mcore.moe_router_group_topk", WHOLE.or_null(), at_core(_CONFIG, 588, 2498), when=run.grouped),
)

CORE_SETTINGS = tuple(row if row.versions else row._replace(versions=">=1.7") for row in _ROWS)
"""The rows were read from 1.7 on; 1.6, which has the first mcore networks, has rows of its own."""
