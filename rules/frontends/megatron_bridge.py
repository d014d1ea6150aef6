"""Checks made by Megatron-Bridge: matching lengths and batches, packing, offloading, FSDP, and schedules."""

from preflight.dialects.megatron import megatron_names
from preflight.frontends.front_end import names
from preflight.lint.constraint import ConstraintSet, conflicts, divides, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.source.finding import Safety, Severity

DIES = "the run fails at startup, after the devices have been allocated"
BRIDGE = ConstraintSet("megatron-bridge", why=DIES)
a = Handles(megatron_names() | names("megatron-bridge"))
CONFIG = "src/megatron/bridge/training/config.py"
EVALUATED = a.eval_micro_batch_size * a.data_parallel_size
FSDP = any_of(a.use_megatron_fsdp, a.dist_use_megatron_fsdp)
PACKED = any_of(a.enable_offline_packing.given, a.enable_in_batch_packing.given)
RECIPES = a.entry == "run_recipe.py"
LENGTHS = any_of(
    ~a.dataset_target.is_set,
    a.dataset_target.is_in(
        *("GPTDatasetConfig", "MockGPTDatasetConfig", "GPTSFTDatasetConfig", "FinetuningDatasetConfig"),
        *("DirectHFSFTDatasetConfig", "EnergonDatasetConfig", "MockVLMSFTDatasetConfig"),
    ),
)
"""Datasets whose length is compared with the model's; a dataset that is not given is unknown."""
ENERGON = any_of(~a.dataset_target.is_set, a.dataset_target == "EnergonDatasetConfig")


BRIDGE.add(
    refuse(
        "lengths-differ",
        all_of(a.seq_length.is_set, a.dataset_seq_length != a.seq_length, LENGTHS),
        message=(
            "model.seq_length {seq_length} and dataset.seq_length {dataset_seq_length} differ, so the run fails "
            "unless run_recipe.py uses the dataset's value for both"
        ),
        upstream=f"{CONFIG}:1500",
        severity=Severity.WARNING,
        at=(a.dataset_seq_length, a.seq_length),
        fixes=(put(a.seq_length, a.dataset_seq_length),),
    ),
    refuse(
        "length-replaced",
        all_of(a.sequence_length.is_set, a.sequence_length != a.dataset_seq_length),
        message=(
            "dataset.sequence_length {sequence_length} has no effect, because dataset.seq_length {dataset_seq_length} "
            "takes precedence"
        ),
        why="the run uses a different sequence length than intended",
        upstream=f"{CONFIG}:303",
        severity=Severity.WARNING,
    ),
    refuse(
        "micro-batches-differ",
        all_of(a.dataset_micro_batch_size.is_set, a.dataset_micro_batch_size != a.micro_batch_size, ENERGON),
        message=(
            "dataset.micro_batch_size {dataset_micro_batch_size} and train.micro_batch_size {micro_batch_size} "
            "differ, which an Energon dataset rejects"
        ),
        upstream=f"{CONFIG}:1199",
        severity=Severity.WARNING,
        at=(a.dataset_micro_batch_size, a.micro_batch_size),
        fixes=(put(a.dataset_micro_batch_size, a.micro_batch_size, safety=Safety.SAFE),),
    ),
    refuse(
        "nothing-offloaded",
        all_of(a.cpu_offloading, ~a.cpu_offloading_activations, ~a.cpu_offloading_weights),
        message="cpu_offloading is on, but cpu_offloading_activations and cpu_offloading_weights are both off",
        why="Transformer Engine rejects the setting when the model is built, because there is nothing to offload",
        upstream="megatron/core/extensions/transformer_engine.py:3343",
        fixes=(put(a.cpu_offloading, False, safety=Safety.SAFE), put(a.cpu_offloading_activations, True)),
    ),
    refuse(
        "both-packings",
        all_of(a.enable_offline_packing, a.enable_in_batch_packing),
        message="enable_offline_packing does not work with enable_in_batch_packing",
        upstream=f"{CONFIG}:1154",
        at=(a.enable_in_batch_packing, a.enable_offline_packing),
        fixes=(put(a.enable_in_batch_packing, False), put(a.enable_offline_packing, False)),
    ),
    refuse(
        "packed-micro-batch",
        all_of(a.enable_offline_packing, a.micro_batch_size > 1),
        message="offline packing needs a micro-batch of 1, but train.micro_batch_size is {micro_batch_size}",
        upstream=f"{CONFIG}:1461",
        at=(a.micro_batch_size, a.enable_offline_packing),
        fixes=(put(a.micro_batch_size, 1),),
    ),
    refuse(
        "nothing-to-pack",
        all_of(a.enable_in_batch_packing, a.micro_batch_size == 1),
        message="in-batch packing needs a micro-batch of at least 2, but train.micro_batch_size is 1",
        upstream=f"{CONFIG}:1475",
        at=(a.micro_batch_size, a.enable_in_batch_packing),
        fixes=(put(a.enable_in_batch_packing, False, safety=Safety.SAFE),),
    ),
    refuse(
        "loss-of-context-ranks",
        all_of(
            PACKED,
            a.context_parallel_size > 1,
            ~RECIPES,
            any_of(~a.calculate_per_token_loss, a.ddp_average_in_collective),
        ),
        message=(
            "fine-tuning on {context_parallel_size} context-parallel ranks needs model.calculate_per_token_loss to be "
            "on and ddp.average_in_collective to be off; only run_recipe.py sets them itself"
        ),
        upstream=f"{CONFIG}:1447",
        severity=Severity.WARNING,
        at=(a.calculate_per_token_loss, a.ddp_average_in_collective, a.context_parallel_size),
    ),
    divides(
        "length-over-context",
        2 * a.context_parallel_size,
        a.seq_length,
        message=(
            "a sequence of {seq_length} tokens is not divisible by 2 × {context_parallel_size} context-parallel ranks"
        ),
        upstream=f"{CONFIG}:1431",
        when=a.context_parallel_size > 1,
        at=(a.seq_length, a.context_parallel_size),
    ),
    divides(
        "evaluation-batch",
        EVALUATED,
        a.eval_global_batch_size,
        message=(
            "an evaluation batch of {eval_global_batch_size} is not divisible by micro-batch size "
            "{eval_micro_batch_size} × {data_parallel_size} data-parallel ranks"
        ),
        upstream=f"{CONFIG}:1330",
        when=all_of(a.eval_global_batch_size.is_set, ~a.dist_eval_context_parallel_size.is_set),
        at=(a.eval_global_batch_size, a.eval_micro_batch_size),
        after=("device-count", "batch-not-divisible"),
    ),
    conflicts(
        "two-fsdp",
        a.dist_use_megatron_fsdp,
        a.use_torch_fsdp2,
        message="dist.use_megatron_fsdp does not work with dist.use_torch_fsdp2",
        upstream=f"{CONFIG}:1338",
    ),
    refuse(
        "fsdp-checkpoint-format",
        all_of(FSDP, any_of(a.save.is_set, a.load.is_set), a.ckpt_format != "fsdp_dtensor"),
        message=(
            "Megatron-FSDP saves and loads checkpoints as fsdp_dtensor, but checkpoint.ckpt_format is {ckpt_format}"
        ),
        upstream=f"{CONFIG}:1098",
        at=(a.ckpt_format, a.save, a.load),
        fixes=(put(a.ckpt_format, "fsdp_dtensor"),),
    ),
    refuse(
        "background-checkpoint-format",
        all_of(a.async_save, ~a.ckpt_format.is_in("torch_dist", "fsdp_dtensor")),
        message="checkpoint.async_save supports torch_dist and fsdp_dtensor, but checkpoint.ckpt_format is {ckpt_format}",
        upstream=f"{CONFIG}:1393",
        at=(a.ckpt_format, a.async_save),
        fixes=(put(a.async_save, False, safety=Safety.SAFE),),
    ),
    refuse(
        "groups-of-gloo",
        all_of(a.dist_use_decentralized_pg, a.use_gloo_process_groups),
        message=(
            "dist.use_decentralized_pg does not work with Gloo process groups, but dist.use_gloo_process_groups is on"
        ),
        upstream=f"{CONFIG}:1408",
        at=(a.use_gloo_process_groups, a.dist_use_decentralized_pg),
        fixes=(put(a.use_gloo_process_groups, False, safety=Safety.SAFE),),
    ),
    refuse(
        "two-lengths-of-training",
        any_of(
            all_of(a.train_iters.is_set, a.train_samples.is_set),
            all_of(a.train_iters.is_set, a.train_num_epochs.is_set),
            all_of(a.train_samples.is_set, a.train_num_epochs.is_set),
        ),
        message="only one of train_iters, train_samples and num_epochs may be given",
        upstream=f"{CONFIG}:480",
    ),
    refuse(
        "schedule-beyond-training",
        a.scheduler_max_steps < a.train_iters,
        message="scheduler.max_steps {scheduler_max_steps} is less than train.train_iters {train_iters}",
        upstream=f"{CONFIG}:1624",
        fixes=(put(a.scheduler_max_steps, a.train_iters),),
    ),
    conflicts(
        "fused-loss-is-not-deterministic",
        a.deterministic_mode,
        a.cross_entropy_loss_fusion,
        message="model.deterministic_mode does not work with model.cross_entropy_loss_fusion",
        upstream=f"{CONFIG}:1052",
    ),
)
