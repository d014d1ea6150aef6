"""The settings whose sort of value is checked, release by release, and where the framework checks it."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.record import NamedTuple

Places = Mapping[str, str]
_OP = "mindformers/modules/transformer/op_parallel_config.py"
_TF = "mindformers/modules/transformer/transformer.py"
_MOE = "mindformers/modules/transformer/moe.py"
_TRAINER = "mindformers/trainer/base_trainer.py"
_RUN = "mindformers/trainer/trainer.py"


_CONTEXT, _PARALLEL = "mindformers/core/context/build_context.py", "mindformers/core/context/parallel.py"
_UTILS = "mindformers/trainer/utils.py"
_SETTING = "mindformers/parallel_core/training_graph/transformer/utils.py"
_GRAPH = "mindformers/parallel_core/training_graph"
_CORE = "mindformers/parallel_core/transformer_config.py"
_UTILS_CORE = "mindformers/parallel_core/transformer_config_utils.py"


def at(file: str, *lines: int, old: int | None = None) -> dict[str, str]:
    """Lines of a check in 1.5, 1.7 and 2.1 (a missing one is as the one before), and in 1.3."""
    numbers = [*lines, *[lines[-1]] * (3 - len(lines))]
    places = {version: f"{file}:{line}" for version, line in zip(("1.5.0", "1.7.0", "2.1.0"), numbers, strict=True)}
    return {**places, "1.3.2": f"{file}:{old}"} if old else places


class Sort(NamedTuple):
    """A setting and the sort of value it must hold. when: "", "parallel" (use_parallel is on), "swap" (swap is on), "training",
    "sunk" (training with sink_mode), "built" (training, and since 1.5 whatever the run does), "mcore", "legacy", "llama" (a legacy Llama
    type), "widened" (one whose width is computed), "layered" (a model that uses LayerSetting), "yarn",
    and parts of an mcore network."""

    name: str
    sort: str
    places: Places
    when: str = ""
    versions: str = ""


SORTS = (
    *(
        Sort(f"parallel_config.{name}", "positive", at(_OP, line))
        for name, line in (("data_parallel", 163), ("model_parallel", 164), ("context_parallel", 165))
    ),
    Sort("parallel_config.expert_parallel", "positive", at(_OP, 65)),
    Sort("parallel_config.pipeline_stage", "positive", at(_OP, 265, old=261)),
    Sort("parallel_config.micro_batch_num", "positive", at(_OP, 266, old=262)),
    Sort("parallel_config.seq_split_num", "positive", at(_OP, 267)),
    Sort("parallel_config.gradient_aggregation_group", "positive", at(_TF, 722, 699, 694, old=483)),
    Sort("parallel_config.use_seq_parallel", "bool", at(_OP, 166, old=162)),
    Sort("parallel_config.vocab_emb_dp", "bool", at(_TF, 116, 92, 87, old=114)),
    Sort("parallel_config.mem_coeff", "coefficient", at("mindformers/core/parallel_config.py", 66, 67, 67)),
    Sort("recompute_config.parallel_optimizer_comm_recompute", "bool", at(_TF, 417, 393, 388, old=210), "built"),
    Sort("recompute_config.mp_comm_recompute", "bool", at(_TF, 418, 394, 389, old=211), "built"),
    Sort("recompute_config.recompute_slice_activation", "bool", at(_TF, 419, 395, 390, old=212), "built"),
    Sort("swap_config.swap", "bool", at(_TF, 209, 185, 180), "built", ">=1.5"),
    Sort("swap_config.default_prefetch", "positive int or bool", at("mindformers/tools/check_rules.py", 340, 336, 360), "swap", ">=1.5"),
    *(Sort(f"moe_config.{name}", "positive", at(_MOE, line, line + 3), "legacy") for name, line in (("expert_num", 139), ("num_experts_chosen", 141))),
    Sort("moe_config.comp_comm_parallel_degree", "positive", at(_MOE, 144, 147), "legacy"),
    Sort("moe_config.update_step", "positive", at(_MOE, 148, 151), "legacy"),
    *(
        Sort(f"moe_config.{name}", "bool", at(_MOE, line, line + 3), "legacy")
        for name, line in (("group_wise_a2a", 142), ("comp_comm_parallel", 143), ("save_token_distribution", 145), ("enable_cold_hot_expert", 147))
    ),
    Sort("moe_config.hot_expert_num", "whole from 0", at(_MOE, 149, 152), "legacy", ">=1.5"),
    Sort("moe_config.expert_group_size", "positive or null", at(_MOE, 153, 157), "legacy", ">=1.5"),
    Sort("moe_config.aux_loss_factor", "float above 0", at(_MOE, 140, 143), "legacy", ">=1.5"),
    Sort("moe_config.router_dense_type", "router type", at(_MOE, 151, 154), "legacy", ">=1.5"),
    Sort("model.model_config.fine_grain_interleave", "number or null", at("mindformers/tools/check_rules.py", 266, 308, 332), "training", ">=1.5"),
    Sort("runner_config.gradient_accumulation_steps", "accumulation", at(_TRAINER, 278, 294, 307, old=272), "training"),
    Sort("runner_config.batch_size", "batch", at(_TRAINER, 200, 213, 255), "training"),
    Sort("micro_batch_interleave_num", "number", at(_TRAINER, 484, 493, 544), "training"),
    Sort("auto_trans_ckpt", "bool or null", at(_RUN, 1348, 1338, 1358, old=1329)),
    Sort("resume_training", "bool, text or null", at(_RUN, 1345, 1335, 1355, old=1326)),
    Sort("context.max_call_depth", "depth", at("mindformers/core/context/build_context.py", 200, 199, 233), versions=">=1.5"),
    *(
        Sort(f"context.{name}", sort, at(_CONTEXT, 200, 199), "", ">=1.5,<2")
        for name, sort in (("save_graphs", "graphs"), ("inter_op_parallel_num", "threads"), ("deterministic", "switch"))
    ),
    Sort("context.save_graphs_path", "path", at(_CONTEXT, 200, 199), "", ">=1.5,<2"),
    Sort("context.memory_optimize_level", "optimization", at(_CONTEXT, 200, 199, 196), "", ">=1.5,<2"),
    Sort("context.mempool_block_size", "memory", at(_CONTEXT, 200, 199, 196), "", ">=1.5"),
    *(Sort(f"parallel.{name}", "bool or null", at(_PARALLEL, 109, 104, 104), "parallel", ">=1.5") for name in ("full_batch", "gradients_mean")),
    *(
        Sort(f"parallel.{name}", "section", at(_PARALLEL, 109, 104, 104), "parallel", ">=1.5")
        for name in ("parallel_optimizer_config", "pipeline_config", "strategy_ckpt_config")
    ),
    Sort("parallel.strategy_ckpt_save_file", "file", {**at("mindformers/tools/utils.py", 177), "2.1.0": "mindformers/utils/file_utils.py:61"}, "", ">=1.5"),
    Sort("context.jit_config.jit_level", "jit", at(_CONTEXT, 200, 199, 320), "", ">=1.5"),
    Sort("profile_start_step", "real", at(_RUN, 1120, 1113, 1133), "profiled", ">=1.5"),
    Sort("profile_stop_step", "real", at(_RUN, 1125, 1118, 1138), "profiled", ">=1.5"),
    Sort("profile_level", "number or null", at("mindformers/tools/debug_info.py", 42), "profiled", ">=1.5"),
    Sort("context.jit_config", "section", at(_CONTEXT, 200, 199, 320), "", ">=1.5"),
    Sort(
        "train_dataset.data_loader",
        "section or null",
        {"1.5.0": "mindformers/tools/check_rules.py:230", "1.7.0": "mindformers/tools/check_rules.py:236", "2.1.0": f"{_TRAINER}:997"},
        "training",
        ">=1.5",
    ),
    Sort("output_dir", "file", {"2.1.0": "mindformers/trainer/utils.py:834"}, "training", ">=2"),
    Sort("runner_config.epochs", "epochs", at(_UTILS, 168, 206, 214), "training", ">=1.5"),
    Sort("runner_config.sink_size", "sink", at(_UTILS, 161, 199, 205), "sunk", ">=1.5"),
    Sort("context.train_precision_sync", "bool or null", at("mindformers/version_control.py", 455, 334, 339), "training", ">=1.5"),
    Sort("context.max_device_memory", "memory", at("mindformers/core/context/build_context.py", 200, 199, 196)),
    *(
        Sort(f"parallel.{name}", "bool", at("mindformers/core/context/parallel.py", 109, 104, 104), "parallel")
        for name in ("enable_alltoall", "enable_parallel_optimizer", "loss_repeated_mean", "pipeline_config.pipeline_interleave")
    ),
    Sort("parallel.parallel_optimizer_config.gradient_accumulation_shard", "bool", at("mindformers/core/context/parallel.py", 109, 104, 104), "parallel"),
    Sort(
        "parallel.parallel_optimizer_config.parallel_optimizer_threshold", "not negative", at("mindformers/core/context/parallel.py", 109, 104, 104), "parallel"
    ),
    Sort("parallel.parallel_optimizer_config.optimizer_weight_shard_size", "shard", at("mindformers/core/context/parallel.py", 109, 104, 104), "parallel"),
    Sort("parallel.parallel_optimizer_config.optimizer_level", "level", at("mindformers/core/context/parallel.py", 109, 104, 104), "parallel"),
    Sort("parallel.search_mode", "search", at("mindformers/core/context/parallel.py", 109, 104, 104), "parallel"),
    *(Sort(f"parallel.strategy_ckpt_config.{name}", "file", at(_PARALLEL, 109, 104, 104), "parallel", ">=1.5") for name in ("save_file", "load_file")),
    Sort("parallel.strategy_ckpt_config.only_trainable_params", "bool", at("mindformers/core/context/parallel.py", 109, 104, 104), "parallel"),
    Sort("parallel.pipeline_config.pipeline_scheduler", "scheduler", at("mindformers/core/context/parallel.py", 109, 104, 104), "parallel"),
)
SORTS += (
    *(
        Sort(f"model.model_config.{name}", "type", at("mindformers/models/utils.py", 56, 91), "llama")
        for name in ("param_init_type", "layernorm_compute_type", "softmax_compute_type", "rotary_dtype")
    ),
    Sort("model.model_config.compute_dtype", "type", at("mindformers/models/utils.py", 56, 91), "llama"),
    Sort("model.model_config.compute_dtype", "no int8", at("mindformers/modules/layers.py", 109, 108), "llama"),
    Sort("model.model_config.seq_length", "size", at("mindformers/modules/layers.py", 1258, 1185), "llama", "<1.5"),
    Sort("model.model_config.seq_length", "size from 0", at("mindformers/modules/layers.py", 1258, 1185), "llama", ">=1.5"),
    Sort("model.model_config.vocab_size", "size above 0", at("mindformers/modules/layers.py", 84, 83), "llama"),
    Sort("model.model_config.multiple_of", "positive", at("mindformers/modules/layers.py", 84, 83), "llama", ">=1.5"),
    *(
        Sort(f"model.model_config.{name}", sort, at("mindformers/models/llama/llama.py", 88, 93), "llama", ">=1.5")
        for name, sort in (("hidden_size", "size above 0"), ("num_heads", "size from 0"))
    ),
    Sort("model.model_config.n_kv_heads", "size from 0 or null", at("mindformers/models/llama/llama_transformer.py", 148, 147), "llama", ">=1.5"),
    Sort("model.model_config.intermediate_size", "positive or null", at("mindformers/modules/layers.py", 84, 83), "llama", ">=1.5"),
    Sort("model.model_config.ffn_dim_multiplier", "real or null", at("mindformers/models/llama/llama_layer.py", 316, 306), "widened", ">=1.5"),
    Sort("model.model_config.qkv_has_bias", "bool", at("mindformers/modules/layers.py", 84, 83), "llama", ">=1.5"),
    Sort("model.model_config.max_position_embedding", "number or null", at("mindformers/modules/layers.py", 1258, 1185), "llama", ">=1.5"),
    Sort("model.model_config.theta", "real", at("mindformers/modules/layers.py", 1195, 1122), "llama"),
    Sort(
        "model.model_config.num_layers", "size", {"1.5.0": "mindformers/models/utils.py:566", "1.7.0": f"{_SETTING}:577", "2.1.0": f"{_SETTING}:565"}, "layered"
    ),
    Sort("model.model_config.scaling_factor", "mapping", at("mindformers/modules/layers.py", 1071, 998), "yarn", ">=1.5"),
    *(
        Sort(f"model.model_config.{name}", "fraction", {"1.7.0": f"{_CORE}:{old}", "2.1.0": f"{_CORE}:{new}"}, "mcore", ">=1.7")
        for name, old, new in (("hidden_dropout", 427, 2301), ("attention_dropout", 429, 2303))
    ),
    *(
        Sort(f"model.model_config.{name}", "dtype", {"1.7.0": f"{_CORE}:{old}", "2.1.0": f"{_CORE}:{new}"}, "mcore", ">=1.7")
        for name, old, new in (("compute_dtype", 420, 2293), ("layernorm_compute_dtype", 421, 2294), ("rotary_dtype", 422, 2295))
    ),
    Sort("model.model_config.softmax_compute_dtype", "text or bool", {"1.7.0": f"{_UTILS_CORE}:44", "2.1.0": f"{_UTILS_CORE}:43"}, "mcore", ">=1.7"),
    *(
        Sort(f"model.model_config.{name}", "type or null", at("mindformers/models/utils.py", 56, 91, 106), "glm", ">=1.5")
        for name in ("compute_dtype", "layernorm_compute_type", "param_init_type", "rotary_dtype")
    ),
    Sort("model.model_config.embedding_init_type", "type or null", at("mindformers/models/utils.py", 56, 91), "llama", ">=1.5"),
    Sort("model.model_config.hidden_act", "activation or null", {"1.7.0": f"{_GRAPH}/activation.py:227"}, "dense", ">=1.7"),
    Sort("context.device_target", "device", at(_CONTEXT, 200, 199), "", ">=1.5,<2"),
    Sort("context.device_target", "device or null", {"2.1.0": f"{_CONTEXT}:163"}, "", ">=2"),
    Sort("context.ascend_config.precision_mode", "precision", at(_CONTEXT, 200, 199, 249), "ascend", ">=1.5"),
    Sort("context.memory_optimize_level", "optimization or null", at(_CONTEXT, 196), "", ">=2"),
    Sort("context.device_id", "whole from 0", at(_CONTEXT, 200, 199), "alone", ">=1.5,<2"),
    Sort("seed", "seed", at(_RUN, 290, 291, 299), "alone", ">=1.5"),
    Sort("load_ckpt_format", "format or null", at(_UTILS, 469, 518, 539), "loading", ">=1.5"),
)
