"""The settings whose kind of value graph-mode MindFormers checks, by release."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from preflight.dialects.mindformers import graph_run_conditions as run
from preflight.dialects.mindformers.graph_value_kinds import (
    ABOVE_0,
    ACTIVATION,
    BALANCING,
    BELOW_1,
    BOOST,
    COUNT,
    COUNTED_WITH,
    DEPTH,
    DEVICE,
    DIVIDED,
    DTYPE,
    FILE,
    FLOAT_TYPE,
    FLOAT_TYPE_OR_INT8,
    FOLDER,
    FORMAT,
    GIVEN,
    GRAPHS,
    JIT_LEVEL,
    MEMORY,
    MEMORY_LEVEL,
    MEMORY_LEVEL_OR_EMPTY,
    NAME_OR_SWITCH,
    NO_FLOAT16,
    NO_INT8,
    NORM,
    NORM_TYPE,
    OLD_DEVICE,
    ON_OFF,
    OPTIMIZER_LEVEL,
    POINTED_ABOVE_0,
    POINTED_BELOW_1,
    POSITIVE,
    POSITIVE_OR_ALL,
    PRECISION_MODE,
    REAL,
    SCALING,
    SCHEDULER,
    SCORE,
    SEARCH_MODE,
    SECTION,
    SEED,
    SERVED_ACTIVATION,
    SINK,
    SWITCH_OR_NAME,
    TYPE_NAME,
    WHOLE,
    WHOLE_FROM_0,
    WHOLE_FROM_1,
    WHOLE_FROM_MINUS_1,
    YARN_BASE,
)
from preflight.lint.expressions import Expression
from preflight.lint.value_kinds import SWITCH, ValueKind
from preflight.run.version_ranges import matches
from preflight.source.record import NamedTuple

Places = Mapping[str, str]
"""Release → "file:line"."""


class Checked(NamedTuple):
    """A setting by its dotted name, the values that it takes, and the runs and releases in which they are checked.
    `mcore.<field>` is a setting of an mcore network by the network's own name, independent of its spelling in the
    config. when: the condition for the check; None: it always runs. switched: the value that the framework substitutes
    counts.
    """

    name: str
    kind: ValueKind
    places: Places
    versions: str = ""
    when: Expression | None = None
    switched: bool = False

    @property
    def renamed(self) -> bool:
        """Whether users write it under another name."""
        return self.name.startswith("mcore.")


def at(file: str, *lines: int, old: int | None = None) -> dict[str, str]:
    """Lines of a check in 1.5, 1.7 and 2.1 (a missing one equals the previous one), and in 1.3."""
    numbers = [*lines, *[lines[-1]] * (3 - len(lines))]
    places = {version: f"{file}:{line}" for version, line in zip(("1.5.0", "1.7.0", "2.1.0"), numbers, strict=True)}
    return {**places, "1.3.2": f"{file}:{old}"} if old else places


def at_core(file: str, old: int, new: int = 0) -> dict[str, str]:
    """Lines of a check in 1.7 and 2.1; one number stands for both."""
    return {"1.7.0": f"{file}:{old}", "2.1.0": f"{file}:{new or old}"}


def at_new(file: str, line: int) -> dict[str, str]:
    """The line of a check in 2.1."""
    return {"2.1.0": f"{file}:{line}"}


def at_first(file: str, line: int) -> dict[str, str]:
    """The line of a check in 1.6, which has the first mcore networks."""
    return {"1.6.0": f"{file}:{line}"}


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
"""The rows were read from 1.7 on; 1.6, which has the first mcore networks, has different rows."""

_CHECKS = "mindformers/tools/check_rules.py"
_SUPPORT = "mindformers/version_control.py"
_MODELS = "mindformers/models/utils.py"
_LAYERS = "mindformers/modules/layers.py"
_LLAMA = "mindformers/models/llama/llama.py"
_LLAMA_ATTENTION = "mindformers/models/llama/llama_transformer.py"
_LLAMA_LAYER = "mindformers/models/llama/llama_layer.py"
_SETTING = "mindformers/parallel_core/training_graph/transformer/utils.py"
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

_DEGREES = "mindformers/modules/transformer/op_parallel_config.py"
_TRANSFORMER = "mindformers/modules/transformer/transformer.py"
_COEFFICIENT = "mindformers/core/parallel_config.py"
_EXPERTS = "mindformers/modules/transformer/moe.py"
_TRAINER = "mindformers/trainer/base_trainer.py"
_RUN = "mindformers/trainer/trainer.py"
_CONTEXT = "mindformers/core/context/build_context.py"
_PARALLEL = "mindformers/core/context/parallel.py"
_TOOLS = "mindformers/tools/utils.py"
_FILES = "mindformers/utils/file_utils.py"
_DEBUG = "mindformers/tools/debug_info.py"
_UTILS = "mindformers/trainer/utils.py"
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
    Checked("runner_config.epochs", ABOVE_0, {"1.3.2": f"{_TRAINER}:853"}, "<1.5", when=run.training),
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


@lru_cache(maxsize=32)
def checked_in(version: str, *, core: bool) -> tuple[Checked, ...]:
    """The settings that a release checks ("": any release). core: settings of an mcore network, also by its own
    names."""
    rows: tuple[Checked, ...] = (*RUN_SETTINGS, *NETWORK_SETTINGS)
    if core:
        rows += CORE_SETTINGS
    return tuple(row for row in rows if matches(version, row.versions))
