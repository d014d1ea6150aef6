"""Checks of fully sharded data parallelism: Torch FSDP2 and Megatron-FSDP."""

from preflight.lint.constraint import REMOVE, Change, ConstraintSet, Repair, conflicts, drop, put, refuse, requires
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of, distributed_at_first, env
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
TORCH, OWN = a.use_torch_fsdp2, a.use_megatron_fsdp
SHARDING = a.data_parallel_sharding_strategy
EMERGING = a.optimizer.is_in("muon", "lion", "soap", "adaptive_muon")  # dist_muon was renamed to muon
ONE_CONNECTION = env("CUDA_DEVICE_MAX_CONNECTIONS") == "1"
SERIAL = "sharded communication would have to wait for the computation, so " + REFUSED

MEGATRON.add(
    refuse(
        "torch-fsdp-with-pipeline",
        all_of(TORCH, a.pipeline_model_parallel_size != 1),
        message="Torch FSDP2 needs a pipeline-parallel size of 1, not {pipeline_model_parallel_size}",
        at=(a.pipeline_model_parallel_size, TORCH),
        layout=True,
    ),
    refuse(
        "torch-fsdp-with-expert-parallel",
        all_of(TORCH, a.expert_model_parallel_size != 1),
        message="Torch FSDP2 does not work with an expert-parallel size of {expert_model_parallel_size}",
        at=(a.expert_model_parallel_size, TORCH),
        layout=True,
    ),
    conflicts(
        "torch-fsdp-with-distributed-optimizer",
        TORCH,
        distributed_at_first,
        message="--use-distributed-optimizer does not work with Torch FSDP2, which shards optimizer states itself",
        at=(a.use_distributed_optimizer, TORCH),
        fixes=(drop(a.use_distributed_optimizer), drop(TORCH)),
    ),
    conflicts(
        "torch-fsdp-with-fused-accumulation",
        TORCH,
        a.gradient_accumulation_fusion,
        message="Torch FSDP2 needs --no-gradient-accumulation-fusion",
        at=(TORCH,),
        fixes=(put(a.gradient_accumulation_fusion, False, safety=Safety.SAFE),),
    ),
    refuse(
        "torch-fsdp-checkpoint-format",
        all_of(TORCH, ~a.ckpt_format.is_in("torch_dist", "torch_dcp")),
        message="Torch FSDP2 needs --ckpt-format torch_dist or torch_dcp, not {ckpt_format}",
        at=(a.ckpt_format, TORCH),
        fixes=(put(a.ckpt_format, "torch_dist"),),
    ),
    requires(
        "torch-fsdp-with-tied-embeddings",
        TORCH,
        a.untie_embeddings_and_output_weights,
        message="Torch FSDP2 needs --untie-embeddings-and-output-weights",
    ),
    conflicts(
        "torch-fsdp-in-fp16",
        TORCH,
        a.fp16,
        message="Torch FSDP2 does not train in fp16",
        fixes=(Repair((Change(a.fp16, REMOVE), Change(a.bf16, True))),),
    ),
    refuse(
        "torch-fsdp-with-one-connection",
        all_of(TORCH, ONE_CONNECTION),
        message="Torch FSDP2 needs CUDA_DEVICE_MAX_CONNECTIONS to be unset or above 1, not 1",
        why=SERIAL,
        at=(TORCH,),
        fixes=(put(env("CUDA_DEVICE_MAX_CONNECTIONS"), 8),),
    ),
    conflicts(
        "fsdp2-with-distributed-optimizer",
        all_of(OWN, a.megatron_fsdp_version == 2),
        distributed_at_first,
        message=(
            "--use-distributed-optimizer does not work with version 2 of Megatron-FSDP, which shards optimizer "
            "states itself"
        ),
        at=(a.use_distributed_optimizer, a.megatron_fsdp_version),
        fixes=(drop(a.use_distributed_optimizer),),
    ),
    refuse(
        "fsdp-with-single-grouped-weights",
        all_of(OWN, any_of(a.moe_single_grouped_weight, a.moe_single_grouped_bias)),
        message="Megatron-FSDP cannot shard experts that are kept as one tensor",
        at=(a.moe_single_grouped_weight, a.moe_single_grouped_bias, OWN),
        fixes=(drop(a.moe_single_grouped_weight, also=(a.moe_single_grouped_bias,)), drop(a.moe_single_grouped_bias)),
    ),
    refuse(
        "fsdp-optimizer",
        all_of(OWN, ~a.optimizer.is_in("sgd", "adam")),
        message="Megatron-FSDP works only with adam and sgd, not {optimizer}",
        at=(a.optimizer, OWN),
    ),
    conflicts(
        "fsdp-with-weight-hash-check",
        all_of(OWN, SHARDING == "optim_grads_params"),
        a.check_weight_hash_across_dp_replicas_interval.is_set,
        message=(
            "no rank holds whole weights under {data_parallel_sharding_strategy}, so their hashes cannot be "
            "compared between replicas"
        ),
        at=(a.check_weight_hash_across_dp_replicas_interval, SHARDING),
        fixes=(drop(a.check_weight_hash_across_dp_replicas_interval, safety=Safety.SAFE),),
    ),
    requires(
        "custom-fsdp-without-distributed-optimizer",
        a.use_custom_fsdp,
        a.use_distributed_optimizer,
        message="--use-custom-fsdp needs --use-distributed-optimizer",
        at=(a.use_custom_fsdp,),
        fixes=(put(a.use_distributed_optimizer),),
    ),
    refuse(
        "fsdp-with-one-connection",
        all_of(a.use_custom_fsdp, ONE_CONNECTION),
        message="Megatron-FSDP needs CUDA_DEVICE_MAX_CONNECTIONS to be unset or above 1, not 1",
        why=SERIAL,
        at=(OWN, a.use_custom_fsdp),
        fixes=(put(env("CUDA_DEVICE_MAX_CONNECTIONS"), 8),),
    ),
    refuse(
        "fsdp-checkpoint-format",
        all_of(OWN, a.ckpt_format != "fsdp_dtensor"),
        message="Megatron-FSDP needs --ckpt-format fsdp_dtensor, not {ckpt_format}",
        at=(a.ckpt_format, OWN),
        fixes=(put(a.ckpt_format, "fsdp_dtensor"),),
    ),
    conflicts(
        "meta-device-without-sharding",
        all_of(OWN, a.init_model_with_meta_device),
        SHARDING == "no_shard",
        message="--init-model-with-meta-device needs sharded weights, but the strategy is no_shard",
        at=(a.init_model_with_meta_device, SHARDING),
        fixes=(drop(a.init_model_with_meta_device, safety=Safety.SAFE),),
    ),
    requires(
        "manual-registration-without-fsdp",
        a.fsdp_manual_registration,
        OWN,
        message="--fsdp-manual-registration needs --use-megatron-fsdp",
        fixes=(drop(a.fsdp_manual_registration, safety=Safety.SAFE),),
    ),
    requires(
        "manual-registration-without-user-buffers",
        all_of(a.fsdp_manual_registration, OWN),
        a.nccl_ub,
        message="--fsdp-manual-registration needs --use-nccl-ub",
        at=(a.fsdp_manual_registration,),
        fixes=(put(a.nccl_ub), drop(a.fsdp_manual_registration, safety=Safety.SAFE)),
    ),
    conflicts(
        "torch-fsdp-optimizer",
        EMERGING,
        TORCH,
        message="the optimizer {optimizer} does not work with Torch FSDP2",
        fixes=(),
    ),
    conflicts(
        "fused-accumulation-with-sharded-gradients",
        all_of(a.use_custom_fsdp, SHARDING.is_in("optim_grads_params", "optim_grads")),
        a.gradient_accumulation_fusion,
        message="the {data_parallel_sharding_strategy} strategy needs --no-gradient-accumulation-fusion",
        at=(SHARDING, a.use_custom_fsdp),
        fixes=(put(a.gradient_accumulation_fusion, False, safety=Safety.SAFE),),
    ),
)
