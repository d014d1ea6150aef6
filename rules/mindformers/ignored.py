"""Settings that graph-mode MindFormers accepts but that have no effect or not the effect that their name suggests."""

from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.lint.expressions import Handle, all_of
from preflight.rules.mindformers.shared_conditions import (
    a,
    automatic,
    context,
    expert,
    legacy,
    mcore,
    micro,
    pipeline,
    semi,
    sequence_parallel,
    tensor,
    training,
)
from preflight.source.finding import Safety, Severity

MINDFORMERS = ConstraintSet("mindformers")
_NO_EFFECT = {"severity": Severity.NOTE}
_WRONG = {"severity": Severity.WARNING}
algorithm: Handle = a["parallel_config.context_parallel_algo"]
chunks: Handle = a["model.model_config.pp_interleave_num"]
strategy: Handle = a["parallel.dataset_strategy"]
shard: Handle = a["parallel_config.optimizer_shard"]

MINDFORMERS.add(
    refuse(
        "micro-batches-without-pipeline",
        all_of(training, pipeline == 1, micro > 1),
        message=(
            "micro_batch_num {parallel_config.micro_batch_num} has no effect without a pipeline, so the global batch "
            "size is {global_batch_size}"
        ),
        why="without a pipeline, only gradient_accumulation_steps increases the batch size",
        at=(micro, pipeline),
        fixes=(put(a["runner_config.gradient_accumulation_steps"], micro),),
        **_WRONG,
    ),
    refuse(
        "interleave-half-on",
        all_of(automatic, pipeline > 1, chunks > 1, ~a["pipeline_interleave"]),
        message=(
            "pp_interleave_num {model.model_config.pp_interleave_num} has no effect, because "
            "parallel.pipeline_config.pipeline_interleave is not on"
        ),
        why="interleaving has two switches, and one alone is silently ignored",
        at=(chunks,),
        **_WRONG,
    ),
    refuse(
        "optimizer-shard",
        all_of(legacy, shard),
        message="optimizer_shard has no effect; use parallel.enable_parallel_optimizer",
        why="no release reads the setting",
        at=(shard,),
        fixes=(drop(shard, safety=Safety.SAFE),),
        **_NO_EFFECT,
    ),
    refuse(
        "expert-parallel-ignored",
        all_of(legacy, training, semi, expert > 1, a["moe_config.expert_num"] <= 1),
        message="expert_parallel {parallel_config.expert_parallel} has no effect, because the model has no experts",
        why="legacy models ignore the setting silently",
        at=(expert,),
        **_WRONG,
        after=("class-missing",),
    ),
    refuse(
        "sequence-parallel-ignored",
        all_of(legacy, training, semi, sequence_parallel, tensor == 1),
        message="use_seq_parallel has no effect with model_parallel 1",
        why=(
            "the setting splits activations that all tensor-parallel ranks would otherwise hold, so with one rank "
            "there is nothing to split. Mcore models reject the combination"
        ),
        at=(sequence_parallel, tensor),
        **_NO_EFFECT,
    ),
    refuse(
        "strategy-ignored",
        all_of(training, automatic, a["parallel.full_batch"], strategy.given, strategy != "full_batch"),
        message="dataset_strategy has no effect while full_batch is True",
        why="the trainer resets the strategy to full_batch with a warning",
        at=(strategy, a["parallel.full_batch"]),
        **_NO_EFFECT,
    ),
    refuse(
        "strategy-wins",
        all_of(training, automatic, a["parallel.full_batch"].written, strategy != "full_batch", strategy.is_set),
        message="full_batch True has no effect, because dataset_strategy is set and turns it off",
        why="since 1.7, a strategy is used regardless of full_batch",
        at=(a["parallel.full_batch"], strategy),
        **_NO_EFFECT,
    ),
    refuse(
        "algorithm-without-context",
        all_of(training, semi, context == 1, algorithm != "colossalai_cp"),
        message="context_parallel_algo {parallel_config.context_parallel_algo} has no effect with context_parallel 1",
        why="without context parallelism, there is no group that could use the algorithm",
        at=(algorithm, context),
        **_NO_EFFECT,
    ),
    refuse(
        "vocabulary-not-sharded",
        all_of(
            legacy,
            training,
            semi,
            tensor > 1,
            a["shape.family"] == "llama",
            ~a["parallel_config.vocab_emb_dp"],
            a["shape.vocab"] % (tensor * context) != 0,
        ),
        message=(
            "vocab_size {shape.vocab} is not divisible by model_parallel {parallel_config.model_parallel}, so every "
            "rank holds the whole embedding"
        ),
        why="the layer falls back to full copies with a warning, which costs memory",
        at=(a["model.model_config.vocab_size"], tensor),
        layout=True,
        **_WRONG,
    ),
    refuse(
        "resume-ignored",
        all_of(a["resume_training"].is_in(True), a["load_checkpoint"] == ""),
        message="resume_training is on, but load_checkpoint is empty, so training starts from random weights",
        why="since 1.7, the trainer switches off resuming with a warning instead of failing at startup",
        fixes=(put(a["resume_training"], False),),
        **_WRONG,
    ),
    refuse(
        "use-past-in-training",
        all_of(legacy, training, a["model.model_config.use_past"].written.is_in(True)),
        message="use_past is on in a training config, but the trainer switches it off",
        why="a cache of past keys is used only for prediction",
        at=(a["model.model_config.use_past"],),
        fixes=(put(a["model.model_config.use_past"], False, safety=Safety.SAFE),),
        **_NO_EFFECT,
    ),
    refuse(
        "positions-fewer-than-tokens",
        all_of(
            legacy,
            a["shape.family"] == "llama",
            a["model.model_config.max_position_embedding"] < a["model.model_config.seq_length"],
            a["model.model_config.max_position_embedding"].is_set,
        ),
        message=(
            "max_position_embedding {model.model_config.max_position_embedding} is less than seq_length "
            "{model.model_config.seq_length}"
        ),
        why="the table of rotary frequencies has fewer positions than the run uses",
        at=(a["model.model_config.max_position_embedding"], a["model.model_config.seq_length"]),
        **_WRONG,
    ),
    refuse(
        "checkpoint-format-renamed",
        a["ckpt_use_legacy_format"].given,
        message="ckpt_use_legacy_format has no effect since 2.1; it is called use_legacy_format",
        why="the old name is no longer used",
        at=(a["ckpt_use_legacy_format"],),
        fixes=(drop(a["ckpt_use_legacy_format"]),),
        **_WRONG,
    ),
    refuse(
        "profile-steps-reset",
        all_of(training, a["profile"], a["profile_start_step"].given, a["profile_start_step"] > a["profile_stop_step"]),
        message=(
            "profile_start_step {profile_start_step} is after profile_stop_step {profile_stop_step}, so steps 1 to 10 "
            "are profiled"
        ),
        why="the callback resets both to their defaults with a warning",
        at=(a["profile_start_step"], a["profile_stop_step"]),
        versions=">=1.6",
        **_WRONG,
    ),
    refuse(
        "profile-start-ignored",
        all_of(
            training, a["profile"], a["init_start_profile"], a["profile_start_step"].given, a["profile_start_step"] != 1
        ),
        message="init_start_profile has no effect, because profile_start_step is {profile_start_step}, not 1",
        why="the callback switches the option off with a warning, and profiling starts at the given step",
        at=(a["init_start_profile"], a["profile_start_step"]),
        fixes=(put(a["init_start_profile"], False, safety=Safety.SAFE),),
        versions=">=1.6",
        **_WRONG,
    ),
    refuse(
        "key-value-heads-uneven",
        all_of(
            legacy,
            training,
            a["shape.family"] == "llama",
            a["shape.query_groups"] > 0,
            a["shape.heads"] % a["shape.query_groups"] != 0,
        ),
        message="{shape.heads} heads are not divisible by {shape.query_groups} key/value heads",
        why=(
            "each key/value head must serve the same number of heads. No earlier check catches this, so compiling "
            "the graph fails"
        ),
        at=(a["model.model_config.n_kv_heads"], a["model.model_config.num_heads"]),
        after=("mindformers/hidden-over-heads",),
        **{**_WRONG, "severity": Severity.ERROR},
    ),
    refuse(
        "router-top-above-experts",
        all_of(
            mcore, training, a["mcore.num_moe_experts"].is_set, a["mcore.moe_router_topk"] > a["mcore.num_moe_experts"]
        ),
        message="{mcore.moe_router_topk} experts per token are more than the {mcore.num_moe_experts} experts",
        why=(
            "the router cannot choose more experts than there are. Unlike legacy models, mcore models do not check this"
        ),
        at=(a["mcore.moe_router_topk"], a["mcore.num_moe_experts"]),
        **_WRONG,
    ),
)
