"""Checks made by MindSpeed-RL: devices and prompts for each role, generation, packed sequences, and rewards."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.source.finding import Safety

DIES = "the run fails at startup, after Ray has allocated its devices"
MINDSPEED_RL = ConstraintSet("mindspeed-rl", why=DIES)
DERIVED = {"generation_ranks", "verifiers", "verifier_weights", "metric_is_verified", "separate_section"}
a = Handles(megatron_names() | names("mindspeed-rl") | DERIVED)
VALIDATE = "mindspeed_rl/config_cls/validate_config.py"
RL = a.prompts.is_set
REFERENCE = (
    a.reference_tensor_model_parallel_size
    * a.reference_pipeline_model_parallel_size
    * a.reference_context_parallel_size
)

MINDSPEED_RL.add(
    refuse(
        "not-bfloat16",
        all_of(RL, any_of(~a.bf16, a.generate_dtype != "bfloat16")),
        message="training and generation must both use bfloat16; dtype is {generate_dtype}",
        upstream=f"{VALIDATE}:26",
        at=(a.bf16, a.generate_dtype),
    ),
    refuse(
        "devices-beside-integrated",
        all_of(a.use_integrated_worker, any_of(a.reference_npus.is_set, a.reward_npus.is_set)),
        message="reference_resource and reward_resource do not work with use_integrated_worker, which is on",
        upstream=f"{VALIDATE}:33",
        at=(a.reference_npus, a.reward_npus, a.use_integrated_worker),
    ),
    refuse(
        "section-beside-integrated",
        all_of(a.use_integrated_worker, a.separate_section.is_set),
        message="{separate_section} does not work with use_integrated_worker, which is on",
        upstream="cli/train_grpo.py:203",
        at=(a.separate_section, a.use_integrated_worker),
        fixes=(put(a.use_integrated_worker, False),),
    ),
    refuse(
        "length-beyond-generation",
        all_of(RL, a.generate_max_model_len < a.seq_length),
        message="generation's max_model_len {generate_max_model_len} is below seq_length {seq_length}",
        upstream=f"{VALIDATE}:49",
        at=(a.generate_max_model_len, a.seq_length),
        fixes=(put(a.generate_max_model_len, a.seq_length),),
    ),
    refuse(
        "context-algorithm",
        all_of(
            RL,
            a.context_parallel_size > 1,
            a.context_parallel_algo != "ulysses_cp_algo",
            a.context_parallel_algo != "megatron_cp_algo",
        ),
        message=(
            "a context-parallel size of {context_parallel_size} works only with ulysses_cp_algo and "
            "megatron_cp_algo, not {context_parallel_algo}"
        ),
        upstream=f"{VALIDATE}:55",
        versions=">=2.2",
        at=(a.context_parallel_algo, a.context_parallel_size),
        fixes=(put(a.context_parallel_algo, "ulysses_cp_algo"),),
    ),
    refuse(
        "packed-over-stages",
        all_of(a.use_remove_padding, a.pipeline_model_parallel_size > 1, ~a.no_pad_to_seq_lengths),
        message=(
            "use_remove_padding over {pipeline_model_parallel_size} pipeline stages needs no_pad_to_seq_lengths, "
            "which is off"
        ),
        upstream=f"{VALIDATE}:65",
        versions=">=2.3",
        at=(a.use_remove_padding, a.no_pad_to_seq_lengths),
        fixes=(put(a.no_pad_to_seq_lengths, True, safety=Safety.SAFE),),
    ),
    refuse(
        "packed-without-reset-mask",
        all_of(a.use_remove_padding, ~a.reset_attention_mask),
        message="use_remove_padding needs reset_attention_mask, which is off",
        upstream=f"{VALIDATE}:71",
        versions=">=2.3",
        fixes=(put(a.reset_attention_mask, True, safety=Safety.SAFE),),
    ),
    refuse(
        "packed-images",
        all_of(a.use_remove_padding, a.is_multimodal),
        message="use_remove_padding does not work with a multimodal model",
        upstream=f"{VALIDATE}:75",
        fixes=(put(a.use_remove_padding, False, safety=Safety.SAFE),),
    ),
    divides(
        "devices-of-reference",
        REFERENCE,
        a.reference_npus,
        message=(
            "the reference model's {reference_npus} devices are not a multiple of {each}, its tensor- × pipeline- × "
            "context-parallel size"
        ),
        upstream=f"{VALIDATE}:83",
        when=all_of(~a.use_integrated_worker, a.reference_npus.is_set),
        shows={"each": REFERENCE},
        at=(a.reference_npus, a.reference_tensor_model_parallel_size),
    ),
    divides(
        "prompts-over-ranks",
        a.data_parallel_size,
        a.prompts,
        message="{prompts} prompts are not divisible by {data_parallel_size} data-parallel ranks",
        upstream=f"{VALIDATE}:136",
        when=RL,
        at=(a.prompts,),
        after=("device-count", "batch-not-divisible"),
    ),
    divides(
        "prompts-over-replicas",
        a.generation_ranks,
        a.prompts,
        message=(
            "{prompts} prompts are not divisible by {generation_ranks} generation replicas ({actor_npus} devices, "
            "{infer_tensor_parallel_size} per replica)"
        ),
        upstream=f"{VALIDATE}:191",
        when=RL,
        at=(a.prompts, a.infer_tensor_parallel_size),
        after=("mindspeed-rl/prompts-over-ranks",),
    ),
    refuse(
        "generation-over-stages",
        a.infer_pipeline_parallel_size > 1,
        message="infer_pipeline_parallel_size is {infer_pipeline_parallel_size}, but generation supports only one stage",
        upstream=f"{VALIDATE}:170",
        fixes=(put(a.infer_pipeline_parallel_size, 1, safety=Safety.SAFE),),
    ),
    divides(
        "filtered-batch-over-ranks",
        a.data_parallel_size,
        a.filter_groups_train_batch_size,
        message=(
            "filter_groups_train_batch_size {filter_groups_train_batch_size} is not divisible by "
            "{data_parallel_size} data-parallel ranks"
        ),
        upstream=f"{VALIDATE}:221",
        when=a.filter_groups_enable,
        at=(a.filter_groups_train_batch_size,),
        after=("device-count",),
    ),
    refuse(
        "verifiers-without-weights",
        a.verifiers != a.verifier_weights,
        message="verifier_function has {verifiers} entries, but verifier_weight has {verifier_weights}",
        upstream=f"{VALIDATE}:384",
        at=(a.verifier_weights, a.verifiers),
    ),
    refuse(
        "filtered-by-no-verifier",
        all_of(a.filter_groups_enable, ~a.metric_is_verified),
        message="filter_groups_metric {filter_groups_metric} is not listed in verifier_function",
        upstream=f"{VALIDATE}:412",
        at=(a.filter_groups_metric, a.verifier_function),
    ),
    refuse(
        "overlong-beyond-response",
        all_of(a.overlong_buffer_enable, a.overlong_buffer >= a.sampling_max_tokens),
        message="overlong_buffer {overlong_buffer} must be below max_tokens {sampling_max_tokens}",
        upstream=f"{VALIDATE}:392",
        at=(a.overlong_buffer, a.sampling_max_tokens),
    ),
    refuse(
        "two-response-lengths",
        all_of(a.overlong_buffer_enable, a.rollout_max_tokens != a.sampling_max_tokens),
        message=(
            "with overlong_buffer_enable, rollout_max_tokens {rollout_max_tokens} must equal max_tokens "
            "{sampling_max_tokens}"
        ),
        upstream=f"{VALIDATE}:396",
        at=(a.rollout_max_tokens, a.sampling_max_tokens),
        after=("mindspeed-rl/overlong-beyond-response",),
        fixes=(put(a.rollout_max_tokens, a.sampling_max_tokens, safety=Safety.SAFE),),
    ),
    refuse(
        "clip-range",
        all_of(a.clip_higher_enable, a.clip_ratio_low > a.clip_ratio_high),
        message="clip_ratio_low {clip_ratio_low} is above clip_ratio_high {clip_ratio_high}",
        upstream=f"{VALIDATE}:403",
        at=(a.clip_ratio_low, a.clip_ratio_high),
    ),
    refuse(
        "partial-and-in-order",
        all_of(a.partial_rollout_max_split > 1, a.guarantee_order),
        message="partial_rollout_max_split {partial_rollout_max_split} does not work with guarantee_order",
        upstream=f"{VALIDATE}:418",
        fixes=(put(a.guarantee_order, False),),
    ),
)
