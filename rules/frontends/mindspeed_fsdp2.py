"""Checks made by MindSpeed-LLM's FSDP2 entry point: device mesh, context and expert ranks, batches, and data."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.frontends.mindspeed_fsdp2 import DERIVED, STATE
from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import Handles, all_of
from preflight.source.finding import Safety, Severity

MESH = "every rank fails when the parallel state is created, after the process group has been initialized"
DIES = "the run fails at startup, when the arguments are read"
FSDP2 = ConstraintSet("mindspeed-llm-fsdp2", why=DIES)
a = Handles(megatron_names() | names("mindspeed-llm-fsdp2") | DERIVED)
ARGUMENTS = "mindspeed_llm/fsdp2/utils/arguments.py"
SHARDS, EXPERTS = a.fsdp2_parallel_fsdp_size, a.fsdp2_parallel_ep_fsdp_size

FSDP2.add(
    refuse(
        "tensor-beside-sharding",
        a.fsdp2_tensor_size > 1,
        message="tp_size is {fsdp2_tensor_size}; it must be 1, because parameters must be sharded over all devices",
        why=MESH,
        upstream=f"{STATE}:32",
        at=(a.fsdp2_tensor_size,),
        fixes=(put(a.fsdp2_tensor_size, 1),),
    ),
    refuse(
        "sharded-over-part",
        all_of(a.fsdp2_tensor_size <= 1, a.devices != SHARDS),
        message="fsdp_size {fsdp2_parallel_fsdp_size} must equal the number of devices, {devices}",
        why=MESH,
        upstream=f"{STATE}:91",
        at=(SHARDS,),
        fixes=(put(SHARDS, a.devices),),
    ),
    divides(
        "experts-over-devices",
        a.expert_model_parallel_size * EXPERTS,
        a.devices,
        message=(
            "{devices} devices are not a multiple of ep_size {expert_model_parallel_size} × ep_fsdp_size "
            "{fsdp2_parallel_ep_fsdp_size}"
        ),
        why=MESH,
        upstream=f"{STATE}:81",
        at=(EXPERTS, a.expert_model_parallel_size),
        after=("device-count", "expert-grid"),
    ),
    refuse(
        "reset-mask-of-several",
        all_of(a.fsdp2_data_reset_attention_mask, a.micro_batch_size > 1),
        message="reset_attention_mask needs one sample per device, but per_device_train_batch_size is {micro_batch_size}",
        upstream=f"{ARGUMENTS}:742",
        at=(a.micro_batch_size, a.fsdp2_data_reset_attention_mask),
        fixes=(put(a.micro_batch_size, 1),),
    ),
    refuse(
        "reset-mask-without-end",
        all_of(a.fsdp2_data_reset_attention_mask, ~a.fsdp2_data_append_eod),
        message="reset_attention_mask needs append_eod, which is off",
        upstream=f"{ARGUMENTS}:342",
        at=(a.fsdp2_data_reset_attention_mask,),
        fixes=(put(a.fsdp2_data_append_eod, True),),
    ),
    refuse(
        "prompts-and-history",
        all_of(a.fsdp2_data_mask_history, a.fsdp2_data_train_on_prompt),
        message="mask_history does not work with train_on_prompt",
        upstream=f"{ARGUMENTS}:335",
        at=(a.fsdp2_data_mask_history, a.fsdp2_data_train_on_prompt),
    ),
    refuse(
        "streamed-samples",
        all_of(a.fsdp2_data_streaming, a.fsdp2_data_max_samples.is_set),
        message=(
            "streaming does not work with max_samples {fsdp2_data_max_samples}, because a stream cannot have a limit"
        ),
        upstream=f"{ARGUMENTS}:332",
        at=(a.fsdp2_data_max_samples, a.fsdp2_data_streaming),
    ),
    refuse(
        "probabilities-of-concatenation",
        all_of(a.fsdp2_data_interleave_probs.is_set, a.fsdp2_data_mix_strategy == "concat"),
        message="interleave_probs is given, but mix_strategy concat does not interleave",
        upstream=f"{ARGUMENTS}:313",
        at=(a.fsdp2_data_interleave_probs, a.fsdp2_data_mix_strategy),
    ),
    refuse(
        "two-delta-nets",
        all_of(a.fsdp2_optimization_use_flash_gdn, a.fsdp2_optimization_use_triton_gdn),
        message="use_flash_gdn does not work with use_triton_gdn",
        upstream=f"{ARGUMENTS}:693",
        at=(a.fsdp2_optimization_use_triton_gdn, a.fsdp2_optimization_use_flash_gdn),
    ),
    refuse(
        "context-of-qwen3-next",
        all_of(
            a.fsdp2_model_model_id == "qwen3_next",
            a.context_parallel_size > 1,
            a.fsdp2_parallel_cp_type != "ulysses",
        ),
        message="qwen3_next only supports cp_type ulysses, not {fsdp2_parallel_cp_type}",
        upstream=f"{ARGUMENTS}:748",
        at=(a.fsdp2_parallel_cp_type, a.context_parallel_size),
        fixes=(put(a.fsdp2_parallel_cp_type, "ulysses", safety=Safety.SAFE),),
    ),
    divides(
        "heads-over-context",
        a.context_parallel_size,
        a.published_heads,
        message=(
            "the published model has {published_heads} attention heads, which are not divisible by cp_size "
            "{context_parallel_size}"
        ),
        why="the run fails when the layers are wrapped if the model is the unmodified published one",
        upstream="mindspeed_llm/fsdp2/distributed/mindspeed_parallel_engine.py:77",
        severity=Severity.WARNING,
        when=a.fsdp2_parallel_cp_type == "ulysses",
        at=(a.context_parallel_size,),
        after=("device-count",),
    ),
    divides(
        "experts-over-ranks",
        a.expert_model_parallel_size,
        a.published_experts,
        message=(
            "the published model has {published_experts} experts, which are not divisible by ep_size "
            "{expert_model_parallel_size}"
        ),
        why="the run fails when the experts are distributed if the model is the unmodified published one",
        upstream="mindspeed_llm/fsdp2/distributed/expert_parallel/expert_parallel.py:48",
        severity=Severity.WARNING,
        when=a.published_experts > 0,
        at=(a.expert_model_parallel_size,),
        after=("device-count", "expert-grid"),
    ),
)
