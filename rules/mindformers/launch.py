"""Checks of modes, validators and checkpoints that graph-mode MindFormers makes before it builds anything."""

from preflight.lint.constraint import ConstraintSet, drop, in_range, one_of, put, refuse, requires
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import (
    a,
    automatic,
    data,
    empty_checkpoint,
    mcore,
    no_directory,
    training,
)
from preflight.source.finding import Kind

MINDFORMERS = ConstraintSet("mindformers", why="the mode is validated at startup, even when use_parallel is off")
_MODES = (0, 1, 2, 3, "DATA_PARALLEL", "SEMI_AUTO_PARALLEL", "AUTO_PARALLEL", "HYBRID_PARALLEL", "STAND_ALONE")
_ENTRY = {
    "1.5.0": "run_mindformer.py:271",
    "1.7.0": "run_mindformer.py:276",
    "1.3.2": "run_mindformer.py:263",
    "1.2.0": "run_mindformer.py:216",
    "1.0.0": "run_mindformer.py:306",
}
predicting = a["run_mode"].is_in("predict", "eval")

MINDFORMERS.add(
    one_of(
        "run-mode",
        a["run_mode"],
        ("train", "finetune", "eval", "predict", "predict_with_train_model", "export"),
        when=a["run_mode"].is_set,
        message="run_mode is {run_mode}; it must be train, finetune, eval or predict",
        why="the launcher rejects any other mode before it reads anything",
        fixes=(put(a["run_mode"], "train"), put(a["run_mode"], "finetune")),
    ),
    refuse(
        "run-mode-missing",
        all_of(
            a["run_mode"].is_none,
            any_of(a["trainer.type"].is_set, a["model.model_config.type"].is_set),
            any_of(a["use_parallel"].given, a["load_checkpoint"].given, a["train_dataset.data_loader.type"].is_set),
            ~a["infer"].given,  # a file for mindformers/tools/export.py, which needs no mode
        ),
        message="run_mode is set neither in the config nor by --run_mode; it must be train, finetune, eval or predict",
        why="the launcher rejects a run without a mode before it reads anything",
        upstream=_ENTRY,
        at=(a["run_mode"],),
        kind=Kind.ABSENCE,
        always=True,
        fixes=(put(a["run_mode"], "train", offered=True), put(a["run_mode"], "finetune", offered=True)),
    ),
    refuse(
        "run-mode-export",
        a["run_mode"] == "export",
        message="run_mode export was removed; it must be train, finetune, eval or predict",
        why="the mode existed only in 1.0",
    ),
    refuse(
        "run-mode-new",
        a["run_mode"] == "predict_with_train_model",
        message="run_mode predict_with_train_model does not exist before 2.1",
        why="the launcher rejects any other mode",
    ),
    one_of(
        "context-mode",
        a["context.mode"],
        (0, 1, "GRAPH_MODE", "PYNATIVE_MODE"),
        message="context.mode is {context.mode}; it must be 0 (GRAPH_MODE) or 1 (PYNATIVE_MODE)",
        why="the context is validated at startup",
        fixes=(put(a["context.mode"], 0),),
    ),
    one_of(
        "parallel-mode",
        a["parallel.parallel_mode"],
        _MODES,
        message=(
            "parallel_mode is {parallel.parallel_mode}; it must be 0 to 3 or an uppercase name such as "
            "SEMI_AUTO_PARALLEL"
        ),
        fixes=(put(a["parallel.parallel_mode"], 1),),
    ),
    one_of(
        "parallel-mode-new",
        a["parallel.parallel_mode"],
        (*_MODES, "MANUAL_PARALLEL"),
        message=(
            "parallel_mode is {parallel.parallel_mode}; it must be 0 to 3 or an uppercase name such as "
            "SEMI_AUTO_PARALLEL"
        ),
        fixes=(put(a["parallel.parallel_mode"], 1),),
    ),
    refuse(
        "predict-flash-without-past",
        all_of(
            a["run_mode"] == "predict",
            a["model.model_config.use_past"].written.is_in(False),
            a["model.model_config.use_flash_attention"].written.is_in(True),
        ),
        message="predict with use_past False cannot use flash attention",
        why="the validators reject the combination at startup",
        at=(a["model.model_config.use_flash_attention"], a["model.model_config.use_past"]),
        fixes=(put(a["model.model_config.use_past"], True), put(a["model.model_config.use_flash_attention"], False)),
    ),
    refuse(
        "predict-jit-level-1",
        all_of(
            predicting,
            any_of(
                a["context.jit_config.jit_level"] == "O1",
                all_of(a["context.jit_config.jit_level"].is_none, a["context.jit_level"] == "O1"),
            ),
        ),
        message="jit_level O1 is not available in {run_mode} mode",
        why="the context rejects these settings",
        at=(a["context.jit_config.jit_level"], a["context.jit_level"]),
    ),
    refuse(
        "predict-jit-level-2",
        all_of(
            predicting,
            any_of(
                a["context.jit_config.jit_level"] == "O2",
                all_of(a["context.jit_config.jit_level"].is_none, a["context.jit_level"] == "O2"),
            ),
            ~any_of(
                a["context.jit_config.infer_boost"] == "off",
                all_of(a["context.jit_config.infer_boost"].is_none, a["context.infer_boost"] == "off"),
            ),
        ),
        message="jit_level O2 needs infer_boost off in {run_mode} mode",
        why="the context rejects the combination",
        at=(a["context.jit_config.jit_level"], a["context.jit_level"]),
    ),
    refuse(
        "auto-trans-without-checkpoint",
        all_of(a["auto_trans_ckpt"], empty_checkpoint, no_directory),
        message="auto_trans_ckpt is on, but load_checkpoint is empty",
        why="there is nothing to transform, so the trainer fails at startup",
        at=(a["auto_trans_ckpt"], a["load_checkpoint"]),
        fixes=(put(a["auto_trans_ckpt"], False, offered=True),),  # or its checkpoint is not named yet
    ),
    refuse(
        "optimizer-level-and-shard",
        all_of(
            a["use_parallel"],
            a["parallel.parallel_optimizer_config.optimizer_level"].is_in("level1", "level3"),
            a["parallel.parallel_optimizer_config.gradient_accumulation_shard"].given,
        ),
        message=(
            "optimizer_level {parallel.parallel_optimizer_config.optimizer_level} does not work with "
            "gradient_accumulation_shard, whatever its value"
        ),
        why="MindSpore accepts only one of the two",
        at=(
            a["parallel.parallel_optimizer_config.gradient_accumulation_shard"],
            a["parallel.parallel_optimizer_config.optimizer_level"],
        ),
        fixes=(drop(a["parallel.parallel_optimizer_config.gradient_accumulation_shard"]),),
    ),
    refuse(
        "mcore-without-architectures",
        all_of(
            mcore,
            training,
            a["model.model_config.architectures"].written.is_none,
            any_of(a["pretrained_model_dir"].is_none, a["pretrained_model_dir"] == ""),
        ),
        message="model_config has no architectures, and pretrained_model_dir names no network either",
        why="an mcore model is looked up by its architecture",
        at=(a["model.model_config"],),
    ),
    refuse(
        "auto-pipeline",
        all_of(a["use_parallel"], a["parallel.auto_pipeline"]),
        message="parallel.auto_pipeline was removed",
        why="the option is rejected at startup",
        fixes=(drop(a["parallel.auto_pipeline"]),),
    ),
    refuse(
        "only-save-strategy-with-checkpoint",
        all_of(any_of(a["checkpoint"], ~a["use_legacy_format"]), a["only_save_strategy"]),
        message="only_save_strategy does not work with a checkpoint section, or with use_legacy_format False",
        why=(
            "a checkpoint section or use_legacy_format False turns off the legacy format, which only_save_strategy "
            "needs"
        ),
        at=(a["only_save_strategy"], a["checkpoint"]),
        fixes=(put(a["only_save_strategy"], False),),
    ),
    refuse(
        "train-without-data",
        all_of(training, a["train_dataset.data_loader"].is_none),
        message="run_mode is {run_mode}, but train_dataset has no data_loader",
        why="the data loader is read before the network is built",
        at=(a["train_dataset"], a["run_mode"]),
        after=("template-not-filled",),
    ),
    *(
        in_range(
            f"checkpoint-{name.replace('_', '-')}",
            a[f"checkpoint.{name}"],
            low=1,
            message=f"checkpoint.{name} is {{checkpoint.{name}}}; it must be at least 1",
            why="the checkpoint section is validated before training",
        )
        for name, line in (("save_max", 777), ("save_interleaved_steps", 779), ("reshard_worker_num", 781))
    ),
    requires(
        "predict-with-train-model-data-parallel",
        a["run_mode"] == "predict_with_train_model",
        data == 1,
        message="predict_with_train_model needs data_parallel 1, not {parallel_config.data_parallel}",
        why="in predict_with_train_model mode, all ranks must predict the same batch",
        at=(data, a["run_mode"]),
        fixes=(put(data, 1),),
    ),
    requires(
        "predict-with-train-model-full-batch",
        all_of(a["run_mode"] == "predict_with_train_model", automatic),
        a["parallel.full_batch"],
        message="predict_with_train_model needs full_batch True",
        why="in predict_with_train_model mode, all ranks must predict the same batch",
        at=(a["parallel.full_batch"], a["run_mode"]),
    ),
)
