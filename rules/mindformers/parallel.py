"""Checks that graph-mode MindFormers makes on the parallel layout."""

from preflight.lint.constraint import ConstraintSet, divides, one_of, put, refuse, requires
from preflight.lint.expressions import all_of, any_of
from preflight.rules.mindformers.shared_conditions import (
    a,
    automatic,
    context,
    data,
    flash,
    legacy,
    mcore,
    micro,
    pipeline,
    scheduler,
    semi,
    sequence_parallel,
    tensor,
    training,
)

MINDFORMERS = ConstraintSet("mindformers", why="the run fails when the network is wrapped")
_TF = "mindformers/modules/transformer/transformer.py"
algorithm = a["parallel_config.context_parallel_algo"]
splits = a["parallel_config.seq_split_num"]
degree = a["ulysses_degree"]
heads, groups = a["shape.heads"], a["shape.query_groups"]
predicting = a["run_mode"] == "predict"  # an evaluation uses the batch size of its dataset

MINDFORMERS.add(
    requires(
        "context-parallel-flash-attention",
        all_of(semi, context > 1),
        flash,
        message="context_parallel {parallel_config.context_parallel} needs use_flash_attention",
        why="context parallelism supports only flash attention, so the run fails before the network is built",
        at=(a["model.model_config.use_flash_attention"], context),
        fixes=(put(a["model.model_config.use_flash_attention"], True),),
    ),
    refuse(
        "ulysses-heads",
        all_of(semi, context > 1, algorithm == "ulysses_cp", groups.is_set, context * tensor > groups),
        message=(
            "ulysses_cp cannot distribute {shape.query_groups} key/value heads over {ranks} ranks (context_parallel "
            "{parallel_config.context_parallel} × model_parallel {parallel_config.model_parallel})"
        ),
        why="a head cannot be split, so the run fails before the network is built",
        at=(context, tensor),
        shows={"ranks": context * tensor},
        layout=True,
    ),
    divides(
        "hybrid-context-degree",
        a["parallel_config.ulysses_degree_in_cp"],
        context,
        when=all_of(context > 1, algorithm == "hybrid_cp"),
        message=(
            "ulysses_degree_in_cp {parallel_config.ulysses_degree_in_cp} is not a divisor of context_parallel "
            "{parallel_config.context_parallel}"
        ),
        why="the ranks of a context group form a grid of Ulysses and ring ranks",
        at=(a["parallel_config.ulysses_degree_in_cp"], context),
        layout=True,
    ),
    one_of(
        "context-parallel-algorithm",
        algorithm,
        ("colossalai_cp", "ulysses_cp", "hybrid_cp"),
        message=(
            "context_parallel_algo is {parallel_config.context_parallel_algo}; it must be colossalai_cp, "
            "ulysses_cp or hybrid_cp"
        ),
        why="the algorithm is looked up by name when the parallel config is created, regardless of context_parallel",
        fixes=(put(algorithm, "colossalai_cp"),),
    ),
    one_of(
        "context-parallel-algorithm-old",
        algorithm,
        ("colossalai_cp", "ulysses_cp", "hybird_cp"),
        message=(
            "context_parallel_algo is {parallel_config.context_parallel_algo}; it must be colossalai_cp, ulysses_cp "
            "or hybird_cp (with this exact spelling) in this release"
        ),
        why="the algorithm is looked up by name when the parallel config is created",
    ),
    refuse(
        "mcore-hybrid-context",
        all_of(mcore, algorithm == "hybrid_cp", training),
        message="context_parallel_algo hybrid_cp is not available for mcore models before 2.0",
        why="the conversion to a transformer config rejects these settings",
        fixes=(put(algorithm, "ulysses_cp"),),
    ),
    refuse(
        "sequence-pipeline-schedule",
        all_of(scheduler == "seqvpp", any_of(splits == 1, splits.is_none)),
        message="pipeline_scheduler seqvpp needs seq_split_num above 1",
        why=(
            "the schedule interleaves parts of a sequence, so the sequence must be split; otherwise, the run fails "
            "before the network is built"
        ),
        fixes=(put(scheduler, "seqpipe"),),
    ),
    refuse(
        "sequence-pipeline-recompute",
        all_of(pipeline > 1, splits > 1, a["recompute_config.recompute"], training),
        message="seq_split_num {parallel_config.seq_split_num} does not work with full recomputation",
        why="the sequence pipeline cannot recompute whole layers, so the run fails when the network is wrapped",
        at=(a["recompute_config.recompute"], splits),
        fixes=(put(a["recompute_config.recompute"], False),),
    ),
    refuse(
        "sequence-pipeline-per-token-loss",
        all_of(
            legacy,
            pipeline > 1,
            splits > 1,
            ~a["recompute_config.recompute"],
            a["runner_wrapper.calculate_per_token_loss"],
            training,
        ),
        message="seq_split_num {parallel_config.seq_split_num} does not work with calculate_per_token_loss",
        at=(a["runner_wrapper.calculate_per_token_loss"], splits),
    ),
    refuse(
        "mcore-sequence-pipeline",
        all_of(mcore, pipeline > 1, splits > 1, ~a["recompute_config.recompute"], training),
        message="seq_split_num {parallel_config.seq_split_num} is not available for mcore models",
        fixes=(put(splits, 1),),
    ),
    refuse(
        "mcore-micro-batch-interleave",
        all_of(mcore, a["micro_batch_interleave_num"] > 1, training),
        message="micro_batch_interleave_num {micro_batch_interleave_num} is not available for mcore models",
        fixes=(put(a["micro_batch_interleave_num"], 1),),
    ),
    requires(
        "fine-grain-interleave",
        all_of(legacy, a["model.model_config.fine_grain_interleave"] > 1, ~(context > 1)),
        sequence_parallel,
        message=(
            "fine_grain_interleave {model.model_config.fine_grain_interleave} needs use_seq_parallel or "
            "context_parallel"
        ),
        why="the interleaved layer is built on sequence parallelism",
        at=(a["model.model_config.fine_grain_interleave"], sequence_parallel),
        fixes=(put(sequence_parallel, True),),
    ),
    refuse(
        "serving-pipeline",
        all_of(a["run_mode"] == "eval", pipeline > 1),
        message="pipeline_stage {parallel_config.pipeline_stage} does not work with run_mode eval",
        why="the run fails before the network is built",
        at=(pipeline,),
        fixes=(put(pipeline, 1),),
        layout=True,
    ),
    divides(
        "serving-batch",
        data,
        a["model.model_config.batch_size"],
        when=all_of(
            predicting,
            a["use_parallel"],
            a["trainer.type"] == "CausalLanguageModelingTrainer",
            a["model.model_config.batch_size"].is_set,
        ),
        message=(
            "model_config.batch_size {model.model_config.batch_size} is not divisible by data_parallel "
            "{parallel_config.data_parallel}"
        ),
        why="every data-parallel rank predicts the same number of samples",
        at=(a["model.model_config.batch_size"], data),
        layout=True,
    ),
    refuse(
        "stages-without-mode",
        all_of(
            legacy,
            a["use_parallel"],
            ~automatic,
            a["parallel_config.pipeline_stage"].written > 1,
            a["shape.family"] == "llama",
        ),
        message=(
            "pipeline_stage {stages} needs parallel_mode 1 or 2, because the current mode resets pipeline_stage to 1 "
            "in some places but not in others"
        ),
        why="the number of stages is set in two places with different values, and the network cannot be built",
        at=(a["parallel.parallel_mode"], pipeline),
        shows={"stages": a["parallel_config.pipeline_stage"].written},
    ),
    refuse(
        "mcore-mode",
        all_of(mcore, a["use_parallel"], ~automatic, training, a["world_size"] > 1),
        message=(
            "mcore models need parallel_mode 1 or 2, because the current mode resets every parallel size to 1, which "
            "does not fit {world_size} devices"
        ),
        why="after the degrees are reset, the process groups do not cover all devices",
        at=(a["parallel.parallel_mode"],),
        fixes=(put(a["parallel.parallel_mode"], 1),),
    ),
    refuse(
        "serving-devices",
        all_of(
            predicting,
            a["use_parallel"],
            a["parallel_mode"] == "stand_alone",
            data * tensor * pipeline != a["world_size"],
        ),
        message=(
            "data_parallel {parallel_config.data_parallel} × model_parallel {parallel_config.model_parallel} × "
            "pipeline_stage {parallel_config.pipeline_stage} = {ranks} must equal the number of devices, "
            "{world_size}; in this mode, context_parallel does not count"
        ),
        why=("the process groups of a served model must cover all devices, so the run fails before anything is loaded"),
        at=(tensor, data, pipeline),
        shows={"ranks": data * tensor * pipeline},
        layout=True,
    ),
    refuse(
        "zero-bubble-chunks",
        all_of(mcore, scheduler == "zero_bubble_v", a["model.model_config.pp_interleave_num"] != 2, training),
        message="zero_bubble_v needs pp_interleave_num 2, not {model.model_config.pp_interleave_num}",
        why="the V-shaped schedule gives every stage two chunks",
        at=(a["model.model_config.pp_interleave_num"], scheduler),
        fixes=(put(a["model.model_config.pp_interleave_num"], 2),),
    ),
    refuse(
        "zero-bubble-stages",
        all_of(mcore, scheduler == "zero_bubble_v", pipeline < 2, training),
        message="zero_bubble_v needs at least 2 pipeline stages, not {parallel_config.pipeline_stage}",
        why="without a pipeline, there is no bubble to fill",
        at=(scheduler, pipeline),
        layout=True,
    ),
    refuse(
        "zero-bubble-micro-batches",
        all_of(mcore, scheduler == "zero_bubble_v", micro < pipeline * 2, training),
        message=(
            "zero_bubble_v needs {needed} micro-batches for {parallel_config.pipeline_stage} stages, "
            "not {parallel_config.micro_batch_num}"
        ),
        why="every stage has two chunks to fill",
        at=(micro, pipeline),
        shows={"needed": pipeline * 2},
        fixes=(put(micro, pipeline * 2),),
    ),
)
