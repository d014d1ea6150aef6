"""Conditions on graph-mode runs, named by tables of checks and by rules. The handles need no table of keys: a test
checks that each is a known name.
"""

from __future__ import annotations

from preflight.lint.expressions import Expression, Handle, Handles, all_of
from preflight.lint.value_kinds import MAPPING, SWITCH, TEXT, Number, Text, one_of

a = Handles()


def _on(switch: Handle) -> Expression:
    """True itself, and not another value that Python treats as true."""
    return all_of(switch.is_a(SWITCH), switch)


_kind, _type = a["kind"], a["model.model_config.type"]
_experts, _width = a["mcore.num_moe_experts"], a["mcore.moe_shared_expert_intermediate_size"]
_positions, _latent = a["mcore.position_embedding_type"], _on(a["mcore.multi_latent_attention"])
_unscaled = ~a["mcore.rope_scaling"].is_a(MAPPING)

legacy: Expression = _kind == "legacy"
mcore: Expression = _kind == "mcore"
training = _on(a["training"])
served = all_of(mcore, a["run_mode"] == "predict")
parallel: Expression = a["use_parallel"]
alone = all_of(a["use_parallel"].is_a(SWITCH), ~a["use_parallel"])
ascend = a["context.device_target"].is_in("Ascend", None)
loading = a["load_checkpoint"].is_a(Text(r"[\s\S]+"))
swap = _on(a["swap_config.swap"])
sunk = all_of(training, a["runner_config.sink_mode"])
profiled = all_of(training, _on(a["profile"]), _on(a["runner_config.sink_mode"]))

gpt2 = all_of(legacy, training, _type == "GPT2Config")
llama = all_of(legacy, _type.is_in("LlamaConfig", "InternLM2Config"))
glm = all_of(legacy, _type == "ChatGLM2Config")
grouped_glm = all_of(glm, _on(a["model.model_config.multi_query_attention"]))
yarn = all_of(llama, a["model.model_config.extend_method"].is_a(one_of("yarn", any_case=True)))
widened = all_of(llama, a["model.model_config.intermediate_size"].is_none)
"""The width of the feed-forward network is computed."""
layered = all_of(legacy, a["shape.family"].is_in("llama", "glm", "deepseek"))
"""A model that spreads its layers by LayerSetting."""

trained = all_of(mcore, training)
dense = all_of(trained, _experts.is_none)
experts = all_of(trained, _experts.is_set)
grouped = all_of(experts, a["mcore.moe_router_group_topk"].is_a(Number(whole=True, booleans=True) | TEXT))
sized = all_of(trained, _width.is_set)
"""Shared experts have a separate width."""
unsized = all_of(trained, _width.is_none)
latent = all_of(trained, _latent)
rotary = all_of(trained, _positions.is_in("rope", "yarn"), _unscaled)
spread = all_of(trained, _positions == "yarn", _unscaled, _latent)
"""Positions of type yarn with specific settings."""
