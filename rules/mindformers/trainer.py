"""Checks that graph-mode MindFormers makes on the trainer, the tensor-parallel rank grid and the newest model fields."""

from preflight.lint.constraint import ConstraintSet, one_of, put, refuse
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import a, context, legacy, pipeline, semi, tensor, training

MINDFORMERS = ConstraintSet("mindformers", why="the network cannot be built")
_UTILS = "mindformers/models/utils.py"
model = "model.model_config"
grid = all_of(legacy, a[f"{model}.use_3d_tensor_parallel"])
llama = all_of(legacy, a["shape.family"] == "llama")
warm = a["lr_schedule.warmup_epochs"]

MINDFORMERS.add(
    one_of(
        "precision-sync",
        a["train_precision_sync"],
        (True, False),
        when=a["train_precision_sync"].is_set,
        message="train_precision_sync is {train_precision_sync}; it must be True or False",
        why="the context is validated at startup",
    ),
    one_of(
        "precision-sync-predict",
        a["infer_precision_sync"],
        (True, False),
        when=a["infer_precision_sync"].is_set,
        message="infer_precision_sync is {infer_precision_sync}; it must be True or False",
        why="the context is validated at startup",
    ),
    refuse(
        "sliced-inputs",
        all_of(
            legacy,
            training,
            a["train_dataset.data_loader.type"] == "BlendedMegatronDatasetDataLoader",
            ~a[f"{model}.input_sliced_sig"],
        ),
        message="BlendedMegatronDatasetDataLoader needs model_config.input_sliced_sig: True",
        why="the samples of this dataset are already cut to seq_length, so the trainer rejects any other value",
        at=(a[f"{model}.input_sliced_sig"], a["train_dataset.data_loader.type"]),
        fixes=(put(a[f"{model}.input_sliced_sig"], True),),
    ),
    refuse(
        "predict-pipeline",
        all_of(a["run_mode"] == "predict", semi, pipeline > 1),
        message="run_mode predict does not support pipeline_stage {parallel_config.pipeline_stage}",
        why="distributed prediction does not support a pipeline",
        at=(pipeline, a["run_mode"]),
        fixes=(put(pipeline, 1),),
        layout=True,
    ),
    refuse(
        "warmup-without-ratio",
        all_of(training, warm, ~a["lr_schedule.warmup_ratio"].written),
        message="warmup_epochs {lr_schedule.warmup_epochs} needs warmup_ratio as well",
        why="the schedule is computed from both settings, so since 2.1, the run fails if one of them is missing",
        at=(warm,),
    ),
    refuse(
        "broadcast-without-sink",
        all_of(training, a["context.dataset_broadcast_opt_level"] > 0, ~a["runner_config.sink_mode"]),
        message="dataset_broadcast_opt_level {context.dataset_broadcast_opt_level} needs runner_config.sink_mode True",
        why="the broadcast happens inside the sink",
        at=(a["runner_config.sink_mode"], a["context.dataset_broadcast_opt_level"]),
        fixes=(put(a["runner_config.sink_mode"], True),),
    ),
    refuse(
        "experts-tensor-size",
        all_of(
            llama,
            a["moe_config.expert_model_parallel"].is_set,
            a["moe_config.expert_model_parallel"] != 1,
            a["moe_config.expert_model_parallel"] != tensor,
            a["moe_config.expert_num"] > 1,
        ),
        message=(
            "expert_model_parallel is {moe_config.expert_model_parallel}; it must be 1 or model_parallel "
            "{parallel_config.model_parallel}"
        ),
        why="the layer cannot be built",
        at=(a["moe_config.expert_model_parallel"], tensor),
        layout=True,
    ),
    refuse(
        "tensor-grid-flash",
        all_of(grid, ~a[f"{model}.use_flash_attention"]),
        message="use_3d_tensor_parallel needs use_flash_attention",
        fixes=(put(a[f"{model}.use_flash_attention"], True),),
    ),
    refuse(
        "tensor-grid-ulysses",
        all_of(grid, a["ulysses_degree"] > 1),
        message="use_3d_tensor_parallel does not work with Ulysses context parallelism",
        at=(a[f"{model}.use_3d_tensor_parallel"], context),
    ),
    refuse(
        "tensor-grid-automatic",
        all_of(grid, a["parallel_mode"] == "auto_parallel"),
        message="use_3d_tensor_parallel does not work with parallel_mode 2 (automatic)",
        at=(a[f"{model}.use_3d_tensor_parallel"],),
    ),
    refuse(
        "tensor-grid-experts",
        all_of(grid, a["moe_config.expert_num"] > 1),
        message="use_3d_tensor_parallel does not work with a mixture of experts",
        at=(a[f"{model}.use_3d_tensor_parallel"], a["moe_config.expert_num"]),
    ),
    refuse(
        "tensor-grid-sequence",
        all_of(grid, ~a["parallel_config.use_seq_parallel"]),
        message="use_3d_tensor_parallel needs use_seq_parallel",
        at=(a["parallel_config.use_seq_parallel"], a[f"{model}.use_3d_tensor_parallel"]),
        fixes=(put(a["parallel_config.use_seq_parallel"], True),),
    ),
    refuse(
        "tensor-grid-interleave",
        all_of(grid, a[f"{model}.fine_grain_interleave"] > 1, tensor > 1),
        message=(
            "use_3d_tensor_parallel does not work with fine_grain_interleave {model.model_config.fine_grain_interleave}"
        ),
        at=(a[f"{model}.fine_grain_interleave"], a[f"{model}.use_3d_tensor_parallel"]),
    ),
    refuse(
        "grouped-experts-sequence-pipeline",
        all_of(
            legacy,
            training,
            a["moe_config.use_gmm"],
            a["moe_config.expert_num"] > 1,
            a["parallel_config.seq_split_num"] > 1,
        ),
        message="use_gmm does not work with seq_split_num {parallel_config.seq_split_num}",
        why="the expert layer cannot be built",
        at=(a["moe_config.use_gmm"], a["parallel_config.seq_split_num"]),
    ),
    refuse(
        "dense-layers-and-frequency",
        all_of(
            any_of(a["mcore.first_k_dense_replace"] > 0, a["mcore.first_k_dense_replace"] < 0),
            a["mcore.moe_layer_freq"] > 1,
        ),
        message=(
            "first_k_dense_replace {mcore.first_k_dense_replace} does not work with moe_layer_freq "
            "{mcore.moe_layer_freq}"
        ),
        why="both settings choose the layers that have experts, but only one of them can",
    ),
    one_of(
        "model-architecture",
        a["mcore.model_architecture"],
        ("decoder_only", "yoco"),
        message="model_architecture is {mcore.model_architecture}; it must be decoder_only or yoco",
        why="the transformer config rejects these settings",
    ),
)
