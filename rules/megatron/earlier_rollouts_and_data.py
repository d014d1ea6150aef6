"""Options for rollouts, encoders, data and flash decoding that only some releases of Megatron reject."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of, env
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
GENERATIONS, TASKS = a.rl_num_parallel_generations, a.rl_parallel_generation_tasks
BATCHES = a.rl_num_parallel_generation_batches
MAMBA = env("MAMBA_DETERMINISTIC")

MEGATRON.add(
    refuse(
        "rollouts-counted-twice",
        all_of(a.perform_rl_step, GENERATIONS.is_set, any_of(TASKS.is_set, BATCHES.is_set)),
        message=(
            "--rl-num-parallel-generations does not work with --rl-parallel-generation-tasks or "
            "--rl-num-parallel-generation-batches"
        ),
        why="all three options set the number of rollouts in flight and cannot be combined, so " + REFUSED,
        at=(GENERATIONS, TASKS, BATCHES),
        fixes=(drop(TASKS, also=(BATCHES,)),),
    ),
    refuse(
        "parallel-rollouts-without-partial-ones",
        all_of(a.perform_rl_step, any_of(GENERATIONS.is_set, TASKS.is_set, BATCHES.is_set), ~a.rl_partial_rollouts),
        message="parallel rollouts need --rl-partial-rollouts",
        why="without that option, rollouts can only run batch by batch, so " + REFUSED,
        at=(GENERATIONS, TASKS, BATCHES),
    ),
    refuse(
        "rollouts-over-group",
        all_of(a.perform_rl_step, GENERATIONS.is_set, TASKS.is_none, GENERATIONS % a.grpo_group_size != 0),
        message=(
            "{rl_num_parallel_generations} parallel rollouts are not a multiple of the group size {grpo_group_size}"
        ),
        at=(GENERATIONS, a.grpo_group_size),
    ),
    refuse(
        "sequence-over-packing-bin",
        all_of(a.perform_rl_step, a.rl_use_sequence_packing, a.seq_length > a.rl_sequence_packing_bin_size),
        message="sequences of {seq_length} tokens do not fit into bins of {rl_sequence_packing_bin_size}",
        at=(a.rl_sequence_packing_bin_size, a.seq_length),
    ),
    conflicts(
        "fill-in-the-middle-with-legacy-tokenizer",
        a.fim_data,
        a.legacy_tokenizer,
        message="--fim-data does not work with --legacy-tokenizer",
        why="the old tokenizers lack the tokens for fill-in-the-middle, so " + REFUSED,
        at=(a.legacy_tokenizer, a.fim_data),
        fixes=(drop(a.legacy_tokenizer),),
    ),
    refuse(
        "encoder-tensor-without-stages",
        all_of(a.encoder_tensor_model_parallel_size > 0, a.encoder_pipeline_model_parallel_size == 0),
        message=(
            "--encoder-tensor-model-parallel-size {encoder_tensor_model_parallel_size} needs "
            "--encoder-pipeline-model-parallel-size"
        ),
        why="only an encoder with separate pipeline stages can have separate ranks, so " + REFUSED,
        at=(a.encoder_tensor_model_parallel_size,),
        fixes=(drop(a.encoder_tensor_model_parallel_size),),
        unless_framework="mindspeed",
    ),
    refuse(
        "pipeline-last-order-with-context-or-experts",
        all_of(a.use_tp_pp_dp_mapping, a.context_parallel_size * a.expert_model_parallel_size > 1),
        message="--use-tp-pp-dp-mapping does not work with context parallelism or expert parallelism",
        fixes=(drop(a.use_tp_pp_dp_mapping, safety=Safety.SAFE),),
        unless_framework="mindspeed",
    ),
    refuse(
        "flash-decode-in-fp8",
        all_of(a.flash_decode, a.fp8.is_set),
        message="--flash-decode does not run in fp8",
        why="Megatron rejects the model configuration at startup",
        fixes=(drop(a.flash_decode),),
    ),
    refuse(
        "l2-norm-with-latent-attention",
        all_of(
            a.multi_latent_attention,
            a.qk_l2_norm,
            a.spec.is_none,
            a.heterogeneous_layers_config_path.is_none,
            a.experimental_attention_variant.is_none,
        ),
        message="--multi-latent-attention does not work with --qk-l2-norm",
        why="the layers cannot be built, so the run fails when the model is built",
        at=(a.qk_l2_norm, a.multi_latent_attention),
        fixes=(drop(a.qk_l2_norm),),
        unless_framework="mindspeed",
    ),
    refuse(
        "layer-config-with-latent-attention",
        all_of(a.heterogeneous_layers_config_path.is_set, a.multi_latent_attention),
        message="--heterogeneous-layers-config-path does not work with --multi-latent-attention",
        why="Megatron rejects the model configuration at startup",
        at=(a.multi_latent_attention, a.heterogeneous_layers_config_path),
        unless_framework="mindspeed",
    ),
    refuse(
        "mamba-kernels-not-deterministic",
        all_of(a.deterministic_mode, MAMBA == "0"),
        message="--deterministic-mode does not work with MAMBA_DETERMINISTIC=0",
        at=(a.deterministic_mode,),
    ),
    refuse(
        "encoder-tensor-over-decoder",
        a.encoder_tensor_model_parallel_size > a.tensor_model_parallel_size,
        message=(
            "--encoder-tensor-model-parallel-size {encoder_tensor_model_parallel_size} exceeds the tensor-parallel "
            "size {tensor_model_parallel_size} of the decoder"
        ),
        why="each encoder rank must pass its output to at least one decoder rank, so " + REFUSED,
        fixes=(put(a.encoder_tensor_model_parallel_size, a.tensor_model_parallel_size),),
        after=("megatron/encoder-tensor-without-stages",),
        unless_framework="mindspeed",
    ),
    refuse(
        "no-experts-written-as-zero",
        all_of(
            a.num_experts.written == 0,
            a.encoder_pipeline_model_parallel_size == 0,
            a.encoder_tensor_model_parallel_size != a.tensor_model_parallel_size,
        ),
        message="--num-experts 0 is not accepted in this release; omit --num-experts for a dense model",
        why="with 0 experts, the comparison includes the tensor-parallel size of the encoder, which is not set, so "
        + REFUSED,
        at=(a.num_experts,),
        fixes=(drop(a.num_experts, safety=Safety.SAFE),),
        unless_framework="mindspeed",
    ),
    refuse(
        "rollouts-with-legacy-experts",
        all_of(
            a.perform_rl_step,
            a.rl_inference_expert_model_parallel_size.is_set,
            a.rl_inference_expert_model_parallel_size != a.expert_model_parallel_size,
            a.moe_use_legacy_grouped_gemm,
        ),
        message=(
            "--moe-use-legacy-grouped-gemm needs the same expert-parallel size in training and rollouts, not "
            "{expert_model_parallel_size} and {rl_inference_expert_model_parallel_size}"
        ),
        why="the weights of the old grouped experts cannot be converted to another layout, so " + REFUSED,
        at=(a.moe_use_legacy_grouped_gemm, a.rl_inference_expert_model_parallel_size),
        fixes=(drop(a.moe_use_legacy_grouped_gemm),),
    ),
    refuse(
        "single-submission-without-partial-rollouts",
        all_of(a.perform_rl_step, a.rl_submission_granularity == "R", ~a.rl_partial_rollouts),
        message="--rl-submission-granularity R needs --rl-partial-rollouts",
        at=(a.rl_submission_granularity,),
        fixes=(put(a.rl_partial_rollouts), drop(a.rl_submission_granularity)),
    ),
)
