"""The settings of an mcore network whose sort of value is checked while it is built; each by the network's own name, whatever it is typed as."""

from __future__ import annotations

from preflight.dialects.mindformers.sorts import Sort

_PARTS = "mindformers/parallel_core"
_CORE, _UTILS = f"{_PARTS}/transformer_config.py", f"{_PARTS}/transformer_config_utils.py"
_GRAPH = f"{_PARTS}/training_graph"
_SERVED = f"{_PARTS}/inference"
_GPT = f"{_GRAPH}/base_models/gpt/gpt_model.py"
_ROTARY, _YARN = (f"{_GRAPH}/base_models/common/embeddings/{name}rotary_pos_embedding.py" for name in ("", "yarn_"))
_LATENT = f"{_GRAPH}/transformer/multi_latent_attention.py"
_NORM, _MOE = f"{_GRAPH}/transformer/norm.py", f"{_GRAPH}/transformer/moe"


def _at(file: str, old: int, new: int = 0) -> dict[str, str]:
    """Lines of a check in 1.7 and 2.1, the same where one is given."""
    return {"1.7.0": f"{file}:{old}", "2.1.0": f"{file}:{new or old}"}


def _sort(name: str, sort: str, places: dict[str, str], when: str, versions: str = ">=1.7") -> Sort:
    return Sort(f"mcore.{name}", sort, places, when, versions)


CORE_SORTS = (
    _sort("params_dtype", "dtype", {"1.7.0": f"{_PARTS}/model_parallel_config.py:177", "2.1.0": f"{_CORE}:2279"}, "mcore"),
    _sort("moe_router_dtype", "dtype", {"1.7.0": f"{_CORE}:423", "2.1.0": f"{_CORE}:70"}, "mcore"),
    _sort("rotary_dtype", "no float16", {"2.1.0": f"{_GPT}:335"}, "trained", ">=2"),
    _sort("rotary_base", "counted with", _at(_ROTARY, 63), "rotary"),
    _sort("rotary_base", "base", _at(_YARN, 140, 139), "spread"),
    *(_sort(name, "real above 0", _at(_YARN, 140, 139), "spread") for name in ("beta_fast", "beta_slow", "max_position_embeddings")),
    _sort("mscale", "real", _at(_LATENT, 134, 137), "latent"),
    _sort("mscale_all_dim", "real", _at(_YARN, 166, 165), "spread"),
    _sort("rotary_scaling_factor", "real", _at(_LATENT, 134, 137), "latent"),
    _sort("init_method_std", "real", _at(f"{_PARTS}/utils/init_method.py", 45), "trained"),
    _sort("normalization", "norm", _at(_NORM, 380, 455), "trained"),
    _sort("rotary_base", "real", {"2.1.0": f"{_SERVED}/base_models/common/embeddings/rotary_pos_embedding.py:93"}, "served", ">=2"),
    _sort("init_method_std", "real", {"2.1.0": f"{_PARTS}/utils/init_method.py:45"}, "served", ">=2"),
    _sort("normalization", "norm", {"2.1.0": f"{_SERVED}/transformer/norm.py:141"}, "served", ">=2"),
    _sort("hidden_act", "served activation or null", {"2.1.0": f"{_SERVED}/transformer/activation.py:64"}, "served", ">=2"),
    _sort("mtp_num_layers", "whole from 0 or null", _at(_CORE, 437, 2340), "trained"),
    _sort("first_k_dense_replace", "number or null", _at(_CORE, 608), "trained", ">=1.7,<2"),
    _sort("first_k_dense_replace", "from -1 or null", {"2.1.0": f"{_CORE}:2524"}, "trained", ">=2"),
    _sort("chunk_loss_num", "real", {"2.1.0": f"{_CORE}:2740"}, "trained", ">=2"),
    _sort("num_moe_experts", "positive or null", _at(_CORE, 503, 2428), "trained"),
    _sort("moe_router_topk", "whole from 0", _at(f"{_MOE}/token_dispatcher.py", 513, 472), "experts"),
    _sort("moe_aux_loss_coeff", "real", _at(_CORE, 676, 2686), "experts"),
    _sort("moe_expert_capacity_factor", "real or null", _at(_CORE, 524, 2449), "trained"),
    _sort("moe_shared_expert_intermediate_size", "positive or null", _at(f"{_PARTS}/utils/init_method.py", 30), "experts"),
    _sort("shared_expert_num", "number", _at(_CORE, 520, 2445), "unsized"),
    _sort("shared_expert_num", "not null", _at(_CORE, 512, 2437), "sized"),
    _sort("moe_router_score_function", "score or null", _at(f"{_MOE}/router.py", 148, 163), "experts", ">=1.7,<2"),
    _sort("moe_router_score_function", "score", _at(f"{_MOE}/router.py", 148, 163), "experts", ">=2"),
    _sort("moe_router_load_balancing_type", "balancing", _at(f"{_MOE}/router.py", 186, 201), "experts"),
    _sort("moe_token_dispatcher_type", "text", _at(f"{_MOE}/ffn.py", 101, 105), "experts"),
    _sort("moe_token_drop_policy", "text or bool", _at(_UTILS, 97), "trained", ">=1.7,<2"),
    _sort("moe_token_drop_policy", "text or bool", {"2.1.0": f"{_UTILS}:687"}, "latent", ">=2"),
    _sort("moe_router_num_groups", "number or null", _at(_CORE, 583), "grouped", ">=1.7,<2"),
    _sort("moe_router_num_groups", "number or null", {"2.1.0": f"{_MOE}/router.py:249"}, "experts", ">=2"),
    _sort("moe_router_group_topk", "number or null", _at(_CORE, 588, 2498), "grouped"),
)
