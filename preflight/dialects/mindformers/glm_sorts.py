"""The settings of a legacy GLM network whose sort of value is checked while it is built."""

from __future__ import annotations

from preflight.dialects.mindformers.sorts import Sort, at

_GLM = "mindformers/models/glm2"
_LAYERS = at("mindformers/modules/layers.py", 84, 83, 85)

GLM_SORTS = tuple(
    Sort(f"model.model_config.{name}", sort, places, when, ">=1.5")
    for name, sort, places, when in (
        ("hidden_size", "size above 0", _LAYERS, "glm"),
        ("num_attention_heads", "size above 0", at(f"{_GLM}/glm2.py", 80, 85), "glm"),
        ("multi_query_group_num", "size above 0", at(f"{_GLM}/glm2.py", 85, 90), "grouped glm"),
        ("kv_channels", "size above 0", at(f"{_GLM}/glm2_transformer.py", 157, 158), "glm"),
        ("ffn_hidden_size", "size above 0", _LAYERS, "glm"),
        ("padded_vocab_size", "size above 0", _LAYERS, "glm"),
        ("seq_length", "size from 0", at(f"{_GLM}/glm2_modules.py", 50), "glm"),
        ("rope_ratio", "real", at(f"{_GLM}/glm2_modules.py", 49), "glm"),
        ("layernorm_epsilon", "not null", at(f"{_GLM}/glm2_modules.py", 207), "glm"),
        ("hidden_dropout", "chance or null", at("mindformers/version_control.py", 146, 123), "glm"),
        ("attention_dropout", "chance or null", at("mindformers/version_control.py", 146, 123), "glm"),
        ("add_bias_linear", "bool or null", _LAYERS, "glm"),
    )
)
