"""Checks that only older releases of graph-mode MindFormers make."""

from preflight.lint.constraint import ConstraintSet, divides, in_range, put, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import a, automatic, context, data, legacy, mcore, tensor, training
from preflight.source.finding import Severity

MINDFORMERS = ConstraintSet("mindformers", why="the schedule cannot be created")
schedule, warm, total = a["lr_schedule.type"], a["lr_schedule.warmup_steps"], a["lr_schedule.total_steps"]
serving = all_of(a["run_mode"].is_in("predict", "eval"), a["model.model_config.use_past"])
ALONE = (
    *("ImageClassificationTrainer", "ZeroShotImageClassificationTrainer", "ImageToTextGenerationTrainer"),
    *("MaskedImageModelingTrainer", "MaskedLanguageModelingTrainer", "QuestionAnsweringTrainer"),
    *("TextClassificationTrainer", "TokenClassificationTrainer"),
)
"""Trainers that cannot predict on several devices."""
WARMED = (
    *("ConstantWarmUpLR", "LinearWithWarmUpLR", "CosineWithWarmUpLR", "CosineWithRestartsAndWarmUpLR"),
    *("PolynomialWithWarmUpLR", "CosineAnnealingLR"),
)
unscaled = all_of(training, a["lr_schedule.warmup_ratio"].is_none, a["lr_schedule.warmup_epochs"].is_none, total > 0)

MINDFORMERS.add(
    refuse(
        "finetune-without-checkpoint",
        all_of(a["run_mode"] == "finetune", any_of(a["load_checkpoint"].is_none, a["load_checkpoint"] == "")),
        message=(
            "run_mode finetune needs load_checkpoint, either in the config or as --load_checkpoint on the command line"
        ),
        why="the entry script of 1.0 rejects fine-tuning without initial weights",
        severity=Severity.WARNING,
    ),
    refuse(
        "predict-parallel-task",
        all_of(a["run_mode"] == "predict", a["use_parallel"], automatic, a["trainer.type"].is_in(*ALONE)),
        message="{trainer.type} cannot predict with parallel_mode {parallel.parallel_mode}",
        why="only translation and text generation can predict on several devices",
        at=(a["parallel.parallel_mode"], a["trainer.type"]),
    ),
    refuse(
        "predict-jit-level-old",
        all_of(serving, a["context.jit_level"] == "O1"),
        message="jit_level O1 is not available in {run_mode} mode with use_past",
        why="the context rejects these settings",
        at=(a["context.jit_level"],),
    ),
    refuse(
        "predict-boost-old",
        all_of(
            *(serving, a["context.jit_level"] == "O2"),
            any_of(a["context.infer_boost"].is_none, a["context.infer_boost"] == "on"),
        ),
        message="jit_level O2 needs infer_boost off in {run_mode} mode with use_past",
        why="the context rejects the combination",
        at=(a["context.jit_level"], a["context.infer_boost"]),
    ),
    refuse(
        "transformation-without-sink",
        all_of(
            *(training, a["use_parallel"], automatic, any_of(a["auto_trans_ckpt"], a["only_save_strategy"])),
            *(a["runner_config.sink_mode"].given, ~a["runner_config.sink_mode"]),
        ),
        message="a checkpoint is transformed for a parallel layout, which needs runner_config.sink_mode True",
        why="the model is built first to determine how it is sharded, which does not work without sink_mode",
        at=(a["runner_config.sink_mode"],),
        fixes=(put(a["runner_config.sink_mode"], True),),
    ),
    refuse(
        "warm-up-beyond-total",
        all_of(unscaled, schedule.is_in(*WARMED), warm > total),
        message="warmup_steps {lr_schedule.warmup_steps} is more than total_steps {lr_schedule.total_steps}",
        at=(warm, total),
    ),
    refuse(
        "decay-beyond-total",
        all_of(
            *(unscaled, schedule == "PolynomialWithWarmUpLR", warm >= 0),
            a["lr_schedule.decay_steps"] > total - warm,
        ),
        message="decay_steps {lr_schedule.decay_steps} is more than the {left} steps after the warm-up",
        at=(a["lr_schedule.decay_steps"], total),
        shows={"left": total - warm},
    ),
    in_range(
        "capacity-factor",
        a["moe_config.capacity_factor"],
        low=1.0,
        when=legacy,
        message="capacity_factor is {moe_config.capacity_factor}; it must be at least 1.0",
        why="the MoE config rejects the value. Releases from 1.2 on accept lower values",
    ),
    refuse(
        "capacity-balancing-old",
        all_of(
            mcore,
            training,
            a["mcore.moe_expert_capacity_factor"].is_set,
            ~a["mcore.moe_router_load_balancing_type"].is_in("aux_loss", "seq_aux_loss", "none"),
        ),
        message="moe_expert_capacity_factor does not work with load balancing {mcore.moe_router_load_balancing_type}",
        why="the transformer config of 1.6 rejects these settings",
        at=(a["mcore.moe_expert_capacity_factor"], a["mcore.moe_router_load_balancing_type"]),
    ),
    refuse(
        "latent-rope-fusion",
        all_of(mcore, training, a["mcore.multi_latent_attention"], a["mcore.apply_rope_fusion"]),
        message="apply_rope_fusion does not work with multi_latent_attention",
        why="the transformer config rejects these settings, but 2.0 accepts them",
        at=(a["mcore.apply_rope_fusion"], a["mcore.multi_latent_attention"]),
        fixes=(put(a["model.model_config.apply_rope_fusion"], False),),
    ),
    refuse(
        "latent-interleaved-positions",
        all_of(mcore, training, a["mcore.multi_latent_attention"], a["mcore.rotary_interleaved"]),
        message="rotary_interleaved does not work with multi_latent_attention",
        why="the transformer config rejects these settings, but 2.0 accepts them",
        at=(a["mcore.rotary_interleaved"], a["mcore.multi_latent_attention"]),
        fixes=(put(a["model.model_config.rotary_interleaved"], False),),
    ),
    refuse(
        "padded-experts-capacity",
        all_of(
            *(mcore, training, a["mcore.moe_pad_expert_input_to_capacity"]),
            any_of(a["mcore.moe_expert_capacity_factor"].is_none, a["mcore.moe_expert_capacity_factor"] < 0),
        ),
        message="moe_pad_expert_input_to_capacity needs moe_expert_capacity_factor",
        why="the transformer config rejects these settings",
        at=(a["mcore.moe_pad_expert_input_to_capacity"],),
    ),
    divides(
        "expert-parallel-over-ranks",
        a["parallel_config.expert_parallel"],
        data * tensor * context,
        when=all_of(
            *(mcore, training, a["mcore.num_moe_experts"].is_set, a["parallel_config.expert_parallel"] > 1),
            a["mcore.num_moe_experts"] % a["parallel_config.expert_parallel"] == 0,
        ),
        message=(
            "expert_parallel {parallel_config.expert_parallel} is not a divisor of data_parallel "
            "{parallel_config.data_parallel} × model_parallel {parallel_config.model_parallel} × context_parallel "
            "{parallel_config.context_parallel}"
        ),
        why="expert groups are formed among the data-, tensor- and context-parallel ranks",
        at=(a["parallel_config.expert_parallel"], data, tensor),
        layout=True,
    ),
    divides(
        "hybrid-context-degree-old",
        a["parallel_config.ulysses_degree_in_cp"],
        context,
        when=all_of(context > 1, a["parallel_config.context_parallel_algo"] == "hybird_cp"),
        message=(
            "ulysses_degree_in_cp {parallel_config.ulysses_degree_in_cp} is not a divisor of context_parallel "
            "{parallel_config.context_parallel}"
        ),
        why="the parallel config rejects the combination. Release 1.3 spells the algorithm hybird_cp",
        at=(a["parallel_config.ulysses_degree_in_cp"], context),
        layout=True,
    ),
    refuse(
        "broadcast-below-3",
        all_of(
            *(training, a["train_dataset.data_loader.type"] == "BlendedMegatronDatasetDataLoader"),
            *(a["context.dataset_broadcast_opt_level"].given, a["context.dataset_broadcast_opt_level"] < 3),
        ),
        message=(
            "BlendedMegatronDatasetDataLoader needs dataset_broadcast_opt_level 3, not "
            "{context.dataset_broadcast_opt_level}"
        ),
        why="the trainer of 1.6 rejects any other level. Newer releases set level 3 themselves",
        at=(a["context.dataset_broadcast_opt_level"],),
        fixes=(put(a["context.dataset_broadcast_opt_level"], 3),),
    ),
    refuse(
        "resume-name-first-format",
        all_of(
            *(a["ckpt_use_legacy_format"].given, ~a["ckpt_use_legacy_format"]),
            ~a["resume_training"].is_in(True, False),
        ),
        message="resume_training is {resume_training}; with ckpt_use_legacy_format False, it must be True or False",
        why="the trainer rejects a name, or null, with the new checkpoint format",
        after=("mindformers/resume-name-without-checkpoint", "wrong-type"),
        at=(a["resume_training"], a["ckpt_use_legacy_format"]),
        fixes=(put(a["resume_training"], True),),
    ),
)
