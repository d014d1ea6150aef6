"""The settings of a network (`model_config`) whose kind of value is checked while it is built, and where."""

from __future__ import annotations

from preflight.dialects.mindformers import run_conditions as run
from preflight.dialects.mindformers.accepted_values import (
    ACTIVATION,
    BELOW_1,
    DIVIDED,
    DTYPE,
    FLOAT_TYPE_OR_INT8,
    GIVEN,
    NAME_OR_SWITCH,
    NO_INT8,
    POINTED_BELOW_1,
    POSITIVE,
    REAL,
    SCALING,
    WHOLE,
    WHOLE_FROM_1,
)
from preflight.dialects.mindformers.checked_setting import Checked, at, at_core
from preflight.lint.value_kinds import SWITCH

_CHECKS = "mindformers/tools/check_rules.py"
_SUPPORT = "mindformers/version_control.py"
_MODELS = "mindformers/models/utils.py"
_LAYERS = "mindformers/modules/layers.py"
_LLAMA = "mindformers/models/llama/llama.py"
_LLAMA_ATTENTION = "mindformers/models/llama/llama_transformer.py"
_LLAMA_LAYER = "mindformers/models/llama/llama_layer.py"
_SETTING = "mindformers/parallel_core/training_graph/transformer/utils.py"
_CONFIG = "mindformers/parallel_core/transformer_config.py"
_CONVERT = "mindformers/parallel_core/transformer_config_utils.py"
_ACTIVATION = "mindformers/parallel_core/training_graph/activation.py"
_GLM = "mindformers/models/glm2/glm2.py"
_GLM_LAYER = "mindformers/models/glm2/glm2_transformer.py"
_GLM_MODULES = "mindformers/models/glm2/glm2_modules.py"
_GENERIC = "mindformers/modules/transformer/transformer.py:1752"
_M = "model.model_config"

NETWORK_SETTINGS = (
    Checked(f"{_M}.fine_grain_interleave", WHOLE.or_null(), at(_CHECKS, 266, 308, 332), ">=1.5", when=run.training),
    Checked(f"{_M}.hidden_dropout_rate", BELOW_1, {"1.0.0": _GENERIC}, when=run.gpt2),
    Checked(f"{_M}.attention_dropout_rate", BELOW_1, {"1.0.0": _GENERIC}, when=run.gpt2),
    Checked(f"{_M}.param_init_type", FLOAT_TYPE_OR_INT8, at(_MODELS, 56, 91), when=run.llama),
    Checked(f"{_M}.layernorm_compute_type", FLOAT_TYPE_OR_INT8, at(_MODELS, 56, 91), when=run.llama),
    Checked(f"{_M}.softmax_compute_type", FLOAT_TYPE_OR_INT8, at(_MODELS, 56, 91), when=run.llama),
    Checked(f"{_M}.rotary_dtype", FLOAT_TYPE_OR_INT8, at(_MODELS, 56, 91), when=run.llama),
    Checked(f"{_M}.compute_dtype", FLOAT_TYPE_OR_INT8, at(_MODELS, 56, 91), when=run.llama),
    Checked(f"{_M}.compute_dtype", NO_INT8, at(_LAYERS, 109, 108), when=run.llama),
    Checked(f"{_M}.seq_length", WHOLE, at(_LAYERS, 1258, 1185), "<1.5", when=run.llama),
    Checked(f"{_M}.seq_length", DIVIDED, at(_LAYERS, 1258, 1185), ">=1.5", when=run.llama),
    Checked(f"{_M}.vocab_size", WHOLE_FROM_1, at(_LAYERS, 84, 83), when=run.llama),
    Checked(f"{_M}.multiple_of", POSITIVE, at(_LAYERS, 84, 83), ">=1.5", when=run.llama),
    Checked(f"{_M}.hidden_size", WHOLE_FROM_1, at(_LLAMA, 88, 93), ">=1.5", when=run.llama),
    Checked(f"{_M}.num_heads", DIVIDED, at(_LLAMA, 88, 93), ">=1.5", when=run.llama),
    Checked(f"{_M}.n_kv_heads", DIVIDED.or_null(), at(_LLAMA_ATTENTION, 148, 147), ">=1.5", when=run.llama),
    Checked(f"{_M}.intermediate_size", POSITIVE.or_null(), at(_LAYERS, 84, 83), ">=1.5", when=run.llama),
    Checked(f"{_M}.ffn_dim_multiplier", REAL.or_null(), at(_LLAMA_LAYER, 316, 306), ">=1.5", when=run.widened),
    Checked(f"{_M}.qkv_has_bias", SWITCH, at(_LAYERS, 84, 83), ">=1.5", when=run.llama),
    Checked(f"{_M}.max_position_embedding", WHOLE.or_null(), at(_LAYERS, 1258, 1185), ">=1.5", when=run.llama),
    Checked(f"{_M}.theta", REAL, at(_LAYERS, 1195, 1122), when=run.llama),
    Checked(f"{_M}.num_layers", WHOLE, at(_MODELS, 566) | at_core(_SETTING, 577, 565), when=run.layered),
    Checked(f"{_M}.scaling_factor", SCALING, at(_LAYERS, 1071, 998), ">=1.5", when=run.yarn),
    Checked(f"{_M}.hidden_dropout", POINTED_BELOW_1, at_core(_CONFIG, 427, 2301), ">=1.7", when=run.mcore),
    Checked(f"{_M}.attention_dropout", POINTED_BELOW_1, at_core(_CONFIG, 429, 2303), ">=1.7", when=run.mcore),
    Checked(f"{_M}.compute_dtype", DTYPE, at_core(_CONFIG, 420, 2293), ">=1.7", when=run.mcore),
    Checked(f"{_M}.layernorm_compute_dtype", DTYPE, at_core(_CONFIG, 421, 2294), ">=1.7", when=run.mcore),
    Checked(f"{_M}.rotary_dtype", DTYPE, at_core(_CONFIG, 422, 2295), ">=1.7", when=run.mcore),
    Checked(f"{_M}.softmax_compute_dtype", NAME_OR_SWITCH, at_core(_CONVERT, 44, 43), ">=1.7", when=run.mcore),
    Checked(f"{_M}.compute_dtype", FLOAT_TYPE_OR_INT8.or_null(), at(_MODELS, 56, 91, 106), ">=1.5", when=run.glm),
    Checked(
        f"{_M}.layernorm_compute_type", FLOAT_TYPE_OR_INT8.or_null(), at(_MODELS, 56, 91, 106), ">=1.5", when=run.glm
    ),
    Checked(f"{_M}.param_init_type", FLOAT_TYPE_OR_INT8.or_null(), at(_MODELS, 56, 91, 106), ">=1.5", when=run.glm),
    Checked(f"{_M}.rotary_dtype", FLOAT_TYPE_OR_INT8.or_null(), at(_MODELS, 56, 91, 106), ">=1.5", when=run.glm),
    Checked(f"{_M}.embedding_init_type", FLOAT_TYPE_OR_INT8.or_null(), at(_MODELS, 56, 91), ">=1.5", when=run.llama),
    Checked(f"{_M}.hidden_act", ACTIVATION.or_null(), at_core(_ACTIVATION, 227), ">=1.7", when=run.dense),
    Checked(f"{_M}.hidden_size", WHOLE_FROM_1, at(_LAYERS, 84, 83, 85), ">=1.5", when=run.glm),
    Checked(f"{_M}.num_attention_heads", WHOLE_FROM_1, at(_GLM, 80, 85), ">=1.5", when=run.glm),
    Checked(f"{_M}.multi_query_group_num", WHOLE_FROM_1, at(_GLM, 85, 90), ">=1.5", when=run.grouped_glm),
    Checked(f"{_M}.kv_channels", WHOLE_FROM_1, at(_GLM_LAYER, 157, 158), ">=1.5", when=run.glm),
    Checked(f"{_M}.ffn_hidden_size", WHOLE_FROM_1, at(_LAYERS, 84, 83, 85), ">=1.5", when=run.glm),
    Checked(f"{_M}.padded_vocab_size", WHOLE_FROM_1, at(_LAYERS, 84, 83, 85), ">=1.5", when=run.glm),
    Checked(f"{_M}.seq_length", DIVIDED, at(_GLM_MODULES, 50), ">=1.5", when=run.glm),
    Checked(f"{_M}.rope_ratio", REAL, at(_GLM_MODULES, 49), ">=1.5", when=run.glm),
    Checked(f"{_M}.layernorm_epsilon", GIVEN, at(_GLM_MODULES, 207), ">=1.5", when=run.glm),
    Checked(f"{_M}.hidden_dropout", BELOW_1.or_null(), at(_SUPPORT, 146, 123), ">=1.5", when=run.glm),
    Checked(f"{_M}.attention_dropout", BELOW_1.or_null(), at(_SUPPORT, 146, 123), ">=1.5", when=run.glm),
    Checked(f"{_M}.add_bias_linear", SWITCH.or_null(), at(_LAYERS, 84, 83, 85), ">=1.5", when=run.glm),
)
