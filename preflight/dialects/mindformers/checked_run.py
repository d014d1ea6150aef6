"""The settings of a run outside its network whose kind of value is checked, and where the framework checks it."""

from __future__ import annotations

from preflight.dialects.mindformers import run_conditions as run
from preflight.dialects.mindformers.accepted_values import (
    ABOVE_0,
    BOOST,
    COUNT,
    DEPTH,
    DEVICE,
    FILE,
    FLOAT_TYPE,
    FOLDER,
    FORMAT,
    GRAPHS,
    JIT_LEVEL,
    MEMORY,
    MEMORY_LEVEL,
    MEMORY_LEVEL_OR_EMPTY,
    OLD_DEVICE,
    ON_OFF,
    OPTIMIZER_LEVEL,
    POINTED_ABOVE_0,
    POSITIVE,
    POSITIVE_OR_ALL,
    PRECISION_MODE,
    REAL,
    SCHEDULER,
    SEARCH_MODE,
    SECTION,
    SEED,
    SINK,
    SWITCH_OR_NAME,
    WHOLE,
    WHOLE_FROM_0,
    WHOLE_FROM_1,
)
from preflight.dialects.mindformers.checked_setting import Checked, at, at_new
from preflight.lint.value_kinds import SWITCH

_DEGREES = "mindformers/modules/transformer/op_parallel_config.py"
_TRANSFORMER = "mindformers/modules/transformer/transformer.py"
_COEFFICIENT = "mindformers/core/parallel_config.py"
_CHECKS = "mindformers/tools/check_rules.py"
_EXPERTS = "mindformers/modules/transformer/moe.py"
_TRAINER = "mindformers/trainer/base_trainer.py"
_RUN = "mindformers/trainer/trainer.py"
_CONTEXT = "mindformers/core/context/build_context.py"
_PARALLEL = "mindformers/core/context/parallel.py"
_TOOLS = "mindformers/tools/utils.py"
_FILES = "mindformers/utils/file_utils.py"
_DEBUG = "mindformers/tools/debug_info.py"
_UTILS = "mindformers/trainer/utils.py"
_SUPPORT = "mindformers/version_control.py"
_OPTIMIZER = "parallel.parallel_optimizer_config"
_SET_PARALLEL = at(_PARALLEL, 109, 104)
_SET_CONTEXT, _SET_MEMORY = at(_CONTEXT, 200, 199), at(_CONTEXT, 200, 199, 196)
_RECOMPUTED = {
    "parallel_optimizer_comm_recompute": at(_TRANSFORMER, 417, 393, 388, old=210),
    "mp_comm_recompute": at(_TRANSFORMER, 418, 394, 389, old=211),
    "recompute_slice_activation": at(_TRANSFORMER, 419, 395, 390, old=212),
}

RUN_SETTINGS = (
    Checked("parallel_config.data_parallel", POSITIVE, at(_DEGREES, 163)),
    Checked("parallel_config.model_parallel", POSITIVE, at(_DEGREES, 164)),
    Checked("parallel_config.context_parallel", POSITIVE, at(_DEGREES, 165)),
    Checked("parallel_config.expert_parallel", POSITIVE, at(_DEGREES, 65)),
    Checked("parallel_config.pipeline_stage", POSITIVE, at(_DEGREES, 265, old=261)),
    Checked("parallel_config.micro_batch_num", POSITIVE, at(_DEGREES, 266, old=262)),
    Checked("parallel_config.seq_split_num", POSITIVE, at(_DEGREES, 267)),
    Checked("parallel_config.gradient_aggregation_group", POSITIVE, at(_TRANSFORMER, 722, 699, 694, old=483)),
    Checked("parallel_config.use_seq_parallel", SWITCH, at(_DEGREES, 166, old=162)),
    Checked("parallel_config.vocab_emb_dp", SWITCH, at(_TRANSFORMER, 116, 92, 87, old=114), switched=True),
    Checked("parallel_config.mem_coeff", ABOVE_0, at(_COEFFICIENT, 66, 67)),
    *(
        Checked(f"recompute_config.{name}", SWITCH, place, "<1.5", when=run.training)
        for name, place in _RECOMPUTED.items()
    ),
    *(Checked(f"recompute_config.{name}", SWITCH, place, ">=1.5") for name, place in _RECOMPUTED.items()),
    Checked("swap_config.swap", SWITCH, at(_TRANSFORMER, 209, 185, 180), ">=1.5"),
    Checked("swap_config.default_prefetch", WHOLE_FROM_1, at(_CHECKS, 340, 336, 360), ">=1.5", when=run.swap),
    Checked("moe_config.expert_num", POSITIVE, at(_EXPERTS, 139, 142), when=run.legacy),
    Checked("moe_config.num_experts_chosen", POSITIVE, at(_EXPERTS, 141, 144), when=run.legacy),
    Checked("moe_config.comp_comm_parallel_degree", POSITIVE, at(_EXPERTS, 144, 147), when=run.legacy),
    Checked("moe_config.update_step", POSITIVE, at(_EXPERTS, 148, 151), when=run.legacy),
    Checked("moe_config.group_wise_a2a", SWITCH, at(_EXPERTS, 142, 145), when=run.legacy),
    Checked("moe_config.comp_comm_parallel", SWITCH, at(_EXPERTS, 143, 146), when=run.legacy),
    Checked("moe_config.save_token_distribution", SWITCH, at(_EXPERTS, 145, 148), when=run.legacy),
    Checked("moe_config.enable_cold_hot_expert", SWITCH, at(_EXPERTS, 147, 150), when=run.legacy),
    Checked("moe_config.hot_expert_num", WHOLE_FROM_0, at(_EXPERTS, 149, 152), ">=1.5", when=run.legacy),
    Checked("moe_config.expert_group_size", POSITIVE.or_null(), at(_EXPERTS, 153, 157), when=run.legacy),
    Checked("moe_config.aux_loss_factor", POINTED_ABOVE_0, at(_EXPERTS, 140, 143), ">=1.5", when=run.legacy),
    Checked("moe_config.router_dense_type", FLOAT_TYPE, at(_EXPERTS, 151, 154), ">=1.5", when=run.legacy),
    Checked(
        "runner_config.gradient_accumulation_steps",
        POSITIVE.or_null(),
        at(_TRAINER, 278, 294, 307, old=272),
        when=run.training,
    ),
    Checked("runner_config.batch_size", WHOLE_FROM_1, at(_TRAINER, 200, 213, 255), when=run.training),
    Checked("micro_batch_interleave_num", WHOLE, at(_TRAINER, 484, 493, 544), when=run.training),
    Checked("auto_trans_ckpt", SWITCH.or_null(), at(_RUN, 1348, 1338, 1358, old=1329), ">=1.1"),
    Checked("resume_training", SWITCH.or_null(), {"1.1.0": f"{_RUN}:1190"}, ">=1.1,<1.2"),
    Checked("resume_training", SWITCH_OR_NAME, at(_RUN, 1345, 1335, 1355, old=1326), ">=1.2"),
    Checked("context.max_call_depth", WHOLE_FROM_1, at(_CONTEXT, 200, 199, 233), ">=1.5,<2"),
    Checked("context.max_call_depth", DEPTH.or_null(), at(_CONTEXT, 200, 199, 233), ">=2"),
    Checked("context.save_graphs", GRAPHS, _SET_CONTEXT, ">=1.5,<2"),
    Checked("context.inter_op_parallel_num", WHOLE_FROM_0, _SET_CONTEXT, ">=1.5,<2"),
    Checked("context.deterministic", ON_OFF, _SET_CONTEXT, ">=1.5,<2"),
    Checked("context.save_graphs_path", FOLDER, _SET_CONTEXT, ">=1.5,<2"),
    Checked("context.memory_optimize_level", MEMORY_LEVEL, _SET_MEMORY, ">=1.5,<2"),
    Checked("context.mempool_block_size", MEMORY, _SET_MEMORY, ">=1.5,<2"),
    Checked("context.mempool_block_size", MEMORY.or_null(), _SET_MEMORY, ">=2"),
    Checked("parallel.full_batch", SWITCH.or_null(), _SET_PARALLEL, ">=1.5", when=run.parallel),
    Checked("parallel.gradients_mean", SWITCH.or_null(), _SET_PARALLEL, ">=1.5", when=run.parallel),
    Checked("parallel.parallel_optimizer_config", SECTION, _SET_PARALLEL, ">=1.5", when=run.parallel),
    Checked("parallel.pipeline_config", SECTION, _SET_PARALLEL, ">=1.5", when=run.parallel),
    Checked("parallel.strategy_ckpt_config", SECTION, _SET_PARALLEL, ">=1.5", when=run.parallel),
    Checked("parallel.strategy_ckpt_save_file", FILE, at(_TOOLS, 177) | at_new(_FILES, 61), ">=1.5"),
    Checked("context.jit_config.jit_level", JIT_LEVEL, at(_CONTEXT, 200, 199, 320), ">=1.5"),
    Checked("context.jit_config.infer_boost", BOOST, at(_CONTEXT, 200, 199, 320), ">=1.5"),
    Checked("profile_start_step", REAL, at(_RUN, 1120, 1113, 1133), ">=1.5", when=run.profiled),
    Checked("profile_stop_step", REAL, at(_RUN, 1125, 1118, 1138), ">=1.5", when=run.profiled),
    Checked("profile_level", WHOLE.or_null(), at(_DEBUG, 42), ">=1.5", when=run.profiled),
    Checked("context.jit_config", SECTION, at(_CONTEXT, 200, 199, 320), ">=1.5"),
    Checked(
        "train_dataset.data_loader",
        SECTION.or_null(),
        at(_CHECKS, 230, 236) | at_new(_TRAINER, 997),
        ">=1.5",
        when=run.training,
    ),
    Checked("output_dir", FILE, at_new(_UTILS, 834), ">=2", when=run.training),
    Checked("runner_config.epochs", ABOVE_0, at(_UTILS, 168, 206, 214), ">=1.5", when=run.training),
    Checked("runner_config.sink_size", SINK, at(_UTILS, 161, 199, 205), ">=1.5", when=run.sunk),
    Checked("context.train_precision_sync", SWITCH.or_null(), at(_SUPPORT, 455, 334, 339), ">=1.5", when=run.training),
    Checked("context.max_device_memory", MEMORY, _SET_MEMORY, "<2"),
    Checked("context.max_device_memory", MEMORY.or_null(), _SET_MEMORY, ">=2"),
    Checked("parallel.enable_alltoall", SWITCH, _SET_PARALLEL, when=run.parallel),
    Checked("parallel.enable_parallel_optimizer", SWITCH, _SET_PARALLEL, when=run.parallel),
    Checked("parallel.loss_repeated_mean", SWITCH, _SET_PARALLEL, when=run.parallel),
    Checked("parallel.pipeline_config.pipeline_interleave", SWITCH, _SET_PARALLEL, when=run.parallel),
    Checked(f"{_OPTIMIZER}.gradient_accumulation_shard", SWITCH, _SET_PARALLEL, when=run.parallel),
    Checked(f"{_OPTIMIZER}.parallel_optimizer_threshold", COUNT, _SET_PARALLEL, when=run.parallel),
    Checked(f"{_OPTIMIZER}.optimizer_weight_shard_size", POSITIVE_OR_ALL, _SET_PARALLEL, when=run.parallel),
    Checked("parallel.optimizer_weight_shard_size", WHOLE, _SET_PARALLEL, when=run.parallel),
    Checked(f"{_OPTIMIZER}.optimizer_level", OPTIMIZER_LEVEL, _SET_PARALLEL, when=run.parallel),
    Checked("parallel.search_mode", SEARCH_MODE, _SET_PARALLEL, when=run.parallel),
    Checked("parallel.strategy_ckpt_config.save_file", FILE, _SET_PARALLEL, ">=1.5", when=run.parallel),
    Checked("parallel.strategy_ckpt_config.load_file", FILE, _SET_PARALLEL, ">=1.5", when=run.parallel),
    Checked("parallel.strategy_ckpt_config.only_trainable_params", SWITCH, _SET_PARALLEL, when=run.parallel),
    Checked("parallel.pipeline_config.pipeline_scheduler", SCHEDULER, _SET_PARALLEL, when=run.parallel),
    Checked("context.device_target", OLD_DEVICE, _SET_CONTEXT, ">=1.5,<2"),
    Checked("context.device_target", DEVICE.or_null(), at_new(_CONTEXT, 163), ">=2"),
    Checked(
        "context.ascend_config.precision_mode", PRECISION_MODE, at(_CONTEXT, 200, 199, 249), ">=1.5", when=run.ascend
    ),
    Checked("context.memory_optimize_level", MEMORY_LEVEL_OR_EMPTY, at(_CONTEXT, 196), ">=2"),
    Checked("context.device_id", WHOLE_FROM_0, _SET_CONTEXT, ">=1.5,<2", when=run.alone),
    Checked("seed", SEED, at(_RUN, 290, 291, 299), ">=1.5", when=run.alone),
    Checked("load_ckpt_format", FORMAT.or_null(), at(_UTILS, 469, 518, 539), ">=1.5", when=run.loading),
)
