"""Checks made at the start of a graph-mode run: missing checkpoints, interleaved batches and latent attention."""

from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import a, empty_checkpoint, mcore, no_directory, training
from preflight.source.finding import Severity

MINDFORMERS = ConstraintSet("mindformers")
_LATENT = "mindformers/parallel_core/training_graph/transformer/multi_latent_attention.py"
resume, interleaved = a["resume_training"], a["micro_batch_interleave_num"]
softmax = a["model.model_config.softmax_compute_dtype"]
_TYPES = ("float32", "fp32", "bfloat16", "bf16", "float16", "fp16", True, False)

MINDFORMERS.add(
    refuse(
        "resume-without-checkpoint",
        all_of(a["resume_training"], empty_checkpoint),
        message="resume_training is {resume_training}, but load_checkpoint is empty",
        why="there is nothing to resume from, so the trainer fails at startup",
        after=("mindformers/auto-trans-without-checkpoint",),
        at=(a["resume_training"], a["load_checkpoint"]),
        fixes=(put(a["resume_training"], False),),
    ),
    refuse(
        "resume-name-without-checkpoint",
        all_of(resume.is_set, ~resume.is_in(True, False, ""), empty_checkpoint, no_directory),
        message="resume_training is the name {resume_training}, but load_checkpoint is empty",
        why=(
            "any text, even False in quotes, is taken as the name of a file in load_checkpoint, so the trainer fails "
            "at startup"
        ),
        after=("mindformers/auto-trans-without-checkpoint", "wrong-type"),
        at=(resume, a["load_checkpoint"]),
        fixes=(put(resume, False),),
    ),
    refuse(
        "resume-from-null",
        all_of(resume.is_in(True), a["load_checkpoint"].given, a["load_checkpoint"].is_none),
        message="resume_training is on, but load_checkpoint is null",
        why="the trainer reads the path of the checkpoint before anything else and crashes",
        after=("mindformers/auto-trans-without-checkpoint",),
        at=(a["load_checkpoint"], resume),
        fixes=(put(resume, False),),
    ),
    refuse(
        "no-interleaved-batch",
        all_of(training, interleaved == 0),
        message="micro_batch_interleave_num is 0; it must be at least 1",
        why="the batch size is divided by this number, which is 0",
        at=(interleaved,),
        fixes=(put(interleaved, 1),),
    ),
    refuse(
        "group-routing-without-experts",
        all_of(
            mcore,
            training,
            a["mcore.moe_router_group_topk"],
            a["mcore.moe_router_num_groups"],
            a["mcore.num_moe_experts"].is_none,
        ),
        message="{mcore.moe_router_num_groups} groups of experts are given, but the model has no experts",
        why="the number of experts is divided by the number of groups while the network is configured",
        at=(a["mcore.moe_router_num_groups"], a["mcore.moe_router_group_topk"]),
    ),
    refuse(
        "resume-name-new-format",
        all_of(resume.is_set, ~resume.is_in(True, False), any_of(a["checkpoint"], ~a["use_legacy_format"])),
        message=("resume_training is {resume_training}; with the new checkpoint format, it must be True or False"),
        why=(
            "a checkpoint section, or use_legacy_format False, switches to the new format, in which the trainer "
            "rejects a name"
        ),
        after=("mindformers/resume-name-without-checkpoint", "wrong-type"),
        fixes=(put(resume, True),),
    ),
    refuse(
        "evaluation-without-task",
        all_of(
            a["eval_dataset"].is_set,
            a["eval_dataset_task"].is_none,
            any_of(a["run_mode"] == "predict", all_of(training, ~a["do_eval"])),
        ),
        message="there is an eval_dataset, but no eval_dataset_task",
        why=(
            "the trainer passes the dataset to its task whether it evaluates or not, but the template fills in "
            "the task only if it evaluates"
        ),
        at=(a["eval_dataset"],),
    ),
    refuse(
        "training-data-without-task",
        all_of(a["train_dataset"].is_set, a["train_dataset_task"].is_none, a["run_mode"].is_in("predict", "eval")),
        message="there is a train_dataset, but no train_dataset_task",
        why=(
            "the trainer passes the dataset to its task whether it trains or not, but the template fills in the "
            "task only if it trains"
        ),
        at=(a["train_dataset"],),
    ),
    refuse(
        "megatron-data-without-sizes",
        all_of(
            training,
            a["train_dataset.data_loader.type"] == "BlendedMegatronDatasetDataLoader",
            a["train_dataset.data_loader.sizes"].is_none,
        ),
        message="BlendedMegatronDatasetDataLoader needs sizes: the number of training, test and evaluation samples",
        why="the first size is the length of the dataset, without which the trainer crashes",
        at=(a["train_dataset.data_loader.sizes"], a["train_dataset.data_loader.type"]),
    ),
    refuse(
        "megatron-data-without-config",
        all_of(
            training,
            a["train_dataset.data_loader.type"] == "BlendedMegatronDatasetDataLoader",
            a["train_dataset.data_loader.config"].is_none,
        ),
        message="BlendedMegatronDatasetDataLoader needs a config with the paths and the split of its data",
        why=(
            "the trainer reads the masks of the data from this config before the network is built, and fails because "
            "there is no config"
        ),
        at=(a["train_dataset.data_loader.config"], a["train_dataset.data_loader.type"]),
    ),
    refuse(
        "value-head-too-wide",
        all_of(
            mcore,
            training,
            a["mcore.multi_latent_attention"],
            a["mcore.qk_head_dim"] + a["mcore.qk_pos_emb_head_dim"] < a["mcore.v_head_dim"],
        ),
        message=(
            "v_head_dim {mcore.v_head_dim} is more than qk_head_dim {mcore.qk_head_dim} + qk_pos_emb_head_dim "
            "{mcore.qk_pos_emb_head_dim}"
        ),
        why="values are padded to the width of keys, so they must not be wider, and the attention cannot be built",
        at=(a["mcore.v_head_dim"], a["mcore.qk_head_dim"]),
    ),
    refuse(
        "softmax-type-unknown",
        all_of(mcore, softmax.is_set, ~softmax.is_in(*_TYPES)),
        message=(
            "softmax_compute_dtype {model.model_config.softmax_compute_dtype} is not a known type, so it does not "
            "count as float32"
        ),
        why="with any value except float32 or fp32, the softmax runs in the data type of the network",
        after=("wrong-type",),
        at=(softmax,),
        severity=Severity.WARNING,
    ),
)
