"""Checks that the options of a run work with its checkpoint format."""

from preflight.lint.constraint import ConstraintSet, conflicts, drop, put, refuse, requires
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of, weights_sharded
from preflight.source.finding import Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
FORMAT = a.ckpt_format
DCP = FORMAT == "torch_dcp"
EMERGING = a.optimizer.is_in("muon", "lion", "soap", "adaptive_muon")  # dist_muon was renamed to muon
SHARED = all_of(a.dist_ckpt_optim_fully_reshardable, a.distrib_optim_fully_reshardable_mem_efficient)

MEGATRON.add(
    refuse(
        "legacy-async-save",
        all_of(any_of(a.save.given, a.save.is_set), a.async_save, FORMAT == "torch"),
        message="--async-save does not work with --ckpt-format torch; use torch_dist",
        why="the run crashes when it writes its first checkpoint",
        upstream="megatron/training/checkpointing.py:767",
        at=(FORMAT, a.async_save),
        fixes=(put(FORMAT, "torch_dist"), drop(a.async_save, safety=Safety.SAFE)),
    ),
    requires(
        "torch-dcp-without-fsdp",
        DCP,
        a.use_torch_fsdp2,
        message="--ckpt-format torch_dcp works only with --use-torch-fsdp2",
        at=(FORMAT,),
        fixes=(put(FORMAT, "torch_dist"),),
    ),
    refuse(
        "torch-dcp-with-tensor-parallel",
        all_of(DCP, a.use_torch_fsdp2, a.tensor_model_parallel_size > 1),
        message="--ckpt-format torch_dcp needs a tensor-parallel size of 1, not {tensor_model_parallel_size}",
        at=(FORMAT, a.tensor_model_parallel_size),
        fixes=(put(FORMAT, "torch_dist"),),
    ),
    requires(
        "fsdp-dtensor-without-fsdp",
        FORMAT == "fsdp_dtensor",
        a.use_megatron_fsdp,
        message="--ckpt-format fsdp_dtensor works only with --use-megatron-fsdp",
        at=(FORMAT,),
        fixes=(put(FORMAT, "torch_dist"),),
    ),
    refuse(
        "legacy-checkpoint-without-gloo",
        all_of(a.use_gloo_process_groups.written == False, a.use_distributed_optimizer, ~a.use_dist_ckpt),
        message="without Gloo groups, the distributed optimizer cannot be saved with --ckpt-format torch",
        at=(FORMAT, a.use_gloo_process_groups),
        fixes=(put(FORMAT, "torch_dist"),),
    ),
    refuse(
        "reshardable-checkpoint-without-gloo",
        all_of(
            any_of(a.use_gloo_process_groups.written == False, a.enable_gloo_process_groups.written == False),
            a.use_distributed_optimizer,
            a.use_dist_ckpt,
            SHARED,
        ),
        message="--distrib-optim-fully-reshardable-mem-efficient needs Gloo groups, which are disabled",
        at=(a.distrib_optim_fully_reshardable_mem_efficient,),
        fixes=(drop(a.distrib_optim_fully_reshardable_mem_efficient, safety=Safety.SAFE),),
    ),
    refuse(
        "gloo-disabled-with-legacy-checkpoint",
        all_of(a.enable_gloo_process_groups.written == False, a.use_distributed_optimizer, ~a.use_dist_ckpt),
        message="without Gloo groups, the distributed optimizer cannot be saved with --ckpt-format torch",
        at=(FORMAT, a.enable_gloo_process_groups),
        fixes=(put(FORMAT, "torch_dist"),),
    ),
    refuse(
        "integrity-check-format",
        all_of(a.verify_integrity, FORMAT != "torch_dist"),
        message="--verify-integrity works with --ckpt-format torch_dist, not {ckpt_format}",
        why="Megatron rejects the checkpoint configuration",
        fixes=(drop(a.verify_integrity, safety=Safety.SAFE), put(FORMAT, "torch_dist")),
    ),
    refuse(
        "weight-shards-checkpoint-format",
        all_of(weights_sharded, ~FORMAT.is_in("torch", "torch_dist")),
        message="sharded weights need --ckpt-format torch or torch_dist, not {ckpt_format}",
        at=(FORMAT, a.tensor_parallel_num_weight_shards, a.expert_tensor_parallel_num_weight_shards),
        fixes=(put(FORMAT, "torch_dist"),),
    ),
    conflicts(
        "weight-shards-with-lean-checkpoint",
        weights_sharded,
        SHARED,
        message="sharded weights cannot be saved with --distrib-optim-fully-reshardable-mem-efficient",
        at=(
            a.distrib_optim_fully_reshardable_mem_efficient,
            a.tensor_parallel_num_weight_shards,
            a.expert_tensor_parallel_num_weight_shards,
        ),
        fixes=(drop(a.distrib_optim_fully_reshardable_mem_efficient, safety=Safety.SAFE),),
    ),
    requires(
        "legacy-model-checkpoint-format",
        a.use_legacy_models,
        FORMAT == "torch",
        message="legacy models need --ckpt-format torch, not {ckpt_format}",
        at=(FORMAT, a.use_legacy_models),
        fixes=(put(FORMAT, "torch"),),
    ),
)
