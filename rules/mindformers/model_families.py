"""Checks of graph-mode models other than Llama, and of how experts are distributed over data-parallel ranks."""

from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import all_of
from preflight.rules.mindformers.shared_conditions import (
    a,
    automatic,
    context,
    data,
    expert,
    legacy,
    mcore,
    pipeline,
    scheduler,
    semi,
    training,
)

WHY = "the generic transformer layer, which GPT2 uses, cannot be built"
MINDFORMERS = ConstraintSet("mindformers", why=WHY)
_MOE = "mindformers/modules/transformer/moe.py"
_SETTING = "mindformers/parallel_core/training_graph/transformer/utils.py"
WITHOUT_LAYERS = ("BertConfig", "CLIPConfig", "SwinConfig", "ViTConfig", "ViTMAEConfig", "EVA02Config")
experts, batch = a["moe_config.expert_num"], a["model.model_config.batch_size"]
generic = all_of(legacy, automatic, a["shape.family"] == "gpt2", experts > 1)

MINDFORMERS.add(
    divides(
        "generic-heads",
        a["shape.heads"],
        a["shape.hidden"],
        when=all_of(legacy, training, a["shape.family"] == "gpt2"),
        message="hidden_size {shape.hidden} is not divisible by {shape.heads} heads",
        at=(a["shape.heads"], a["shape.hidden"]),
    ),
    divides(
        "generic-experts",
        expert,
        experts,
        when=generic,
        message=(
            "{moe_config.expert_num} experts are not divisible by {parallel_config.expert_parallel} expert-parallel ranks"
        ),
        layout=True,
    ),
    divides(
        "generic-experts-devices",
        expert,
        a["world_size"],
        when=generic,
        message="{world_size} devices are not divisible by {parallel_config.expert_parallel} expert-parallel ranks",
        at=(expert,),
        after=("mindformers/generic-experts",),
        layout=True,
    ),
    divides(
        "generic-experts-data",
        expert,
        data * context,
        when=generic,
        message=(
            "data_parallel {parallel_config.data_parallel} × context_parallel {parallel_config.context_parallel} is "
            "not a multiple of expert_parallel {parallel_config.expert_parallel}"
        ),
        at=(expert, data),
        after=("mindformers/generic-experts", "mindformers/generic-experts-devices"),
        layout=True,
    ),
    refuse(
        "experts-beyond-data",
        all_of(
            legacy,
            semi,
            a["shape.family"] == "llama",
            experts > 1,
            a["moe_config.expert_model_parallel"].is_none,
            ~a["moe_config.use_allgather_dispatcher"],
            ~a["moe_config.use_gmm"],
            expert > data * context,
        ),
        message=(
            "expert_parallel {parallel_config.expert_parallel} must be at most data_parallel "
            "{parallel_config.data_parallel}"
        ),
        why="no rank remains for replicas of an expert, and the expert layer cannot be built",
        at=(expert, data),
        layout=True,
    ),
    refuse(
        "stages-without-layers",
        all_of(legacy, semi, pipeline > 1, a["model.model_config.type"].is_in(*WITHOUT_LAYERS)),
        message=(
            "{model.model_config.type} has no num_layers, so it cannot run with pipeline_stage "
            "{parallel_config.pipeline_stage}"
        ),
        why="the number of stages cannot be checked against the number of layers, so the run fails",
        at=(pipeline,),
        fixes=(put(pipeline, 1),),
        layout=True,
    ),
    refuse(
        "interleave-without-scheduler",
        all_of(
            a["use_parallel"],
            a["parallel.pipeline_config.pipeline_interleave"].given,
            a["parallel.pipeline_config.pipeline_scheduler"].written.is_none,
        ),
        message="pipeline_config has pipeline_interleave, which also needs pipeline_scheduler",
        why="the context accepts either both options or neither",
        at=(a["parallel.pipeline_config.pipeline_interleave"],),
        fixes=(put(a["parallel.pipeline_config.pipeline_scheduler"], "1f1b"),),
    ),
    refuse(
        "scheduler-without-interleave",
        all_of(
            a["use_parallel"],
            a["parallel.pipeline_config.pipeline_scheduler"].given,
            a["parallel.pipeline_config.pipeline_interleave"].written.is_none,
        ),
        message="pipeline_config has pipeline_scheduler, which also needs pipeline_interleave",
        why="the context accepts either both options or neither",
        at=(a["parallel.pipeline_config.pipeline_scheduler"],),
        fixes=(
            put(
                a["parallel.pipeline_config.pipeline_interleave"],
                a["parallel.pipeline_config.pipeline_scheduler"] != "1f1b",
            ),
        ),
    ),
    refuse(
        "zero-bubble-chunks-legacy",
        all_of(
            legacy,
            training,
            a["use_parallel"],
            a["shape.family"].is_in("llama", "deepseek", "glm"),
            scheduler == "zero_bubble_v",
            a["model.model_config.pp_interleave_num"] == 1,
        ),
        message="zero_bubble_v needs pp_interleave_num 2, not 1",
        why="the V-shaped schedule gives every stage two chunks, and reverses the layers of the second one",
        at=(a["model.model_config.pp_interleave_num"], scheduler),
        fixes=(put(a["model.model_config.pp_interleave_num"], 2),),
    ),
    refuse(
        "mcore-ckpt-format",
        all_of(
            mcore,
            a["run_mode"] == "predict",
            a["load_checkpoint"].is_set,
            a["load_checkpoint"] != "",
            a["load_ckpt_format"] == "ckpt",
        ),
        message="load_ckpt_format is ckpt, but an mcore network can load only safetensors for prediction",
        why="the run fails when the weights are loaded, after the network is built",
        at=(a["load_ckpt_format"], a["load_checkpoint"]),
        fixes=(put(a["load_ckpt_format"], "safetensors"),),
    ),
    refuse(
        "serving-batch-unsaid",
        all_of(
            a["run_mode"] == "predict",
            a["use_parallel"],
            a["trainer.type"] == "CausalLanguageModelingTrainer",
            batch.is_none,
            data > 1,
        ),
        message=(
            "batch_size is missing from model_config and counts as 1, which is not divisible by data_parallel "
            "{parallel_config.data_parallel}"
        ),
        why="every data-parallel rank predicts the same number of samples",
        at=(data,),
        fixes=(put(batch, data),),
        layout=True,
    ),
)
