"""Checks of saving, loading and converting checkpoints."""

from preflight.lint.constraint import Change, ConstraintSet, Repair, conflicts, divides, drop, put, refuse, requires
from preflight.rules.megatron.option_names import REFUSED, a, all_of, any_of
from preflight.source.finding import Kind, Safety

MEGATRON = ConstraintSet("megatron", why=REFUSED)
SAVES = any_of(a.save.given, a.save.is_set)
"""The run saves checkpoints, possibly to an unknown folder."""
LOGITS = a.logits_save_dir.is_set
LOCAL = a.non_persistent_ckpt_type == "local"

MEGATRON.add(
    requires(
        "conversion-without-target",
        a.ckpt_convert_format.is_set,
        a.ckpt_convert_save.is_set,
        message="--ckpt-convert-format needs --ckpt-convert-save, the folder for the converted checkpoint",
        at=(a.ckpt_convert_format,),
    ),
    requires(
        "conversion-without-source",
        all_of(a.ckpt_convert_format.is_set, a.ckpt_convert_save.is_set),
        a.load.is_set,
        message="--ckpt-convert-format needs --load, the checkpoint to convert",
        at=(a.ckpt_convert_format,),
    ),
    refuse(
        "in-memory-checkpoint",
        all_of(a.non_persistent_ckpt_type.is_set, ~a.non_persistent_ckpt_type.is_in("global", "local")),
        message="--non-persistent-ckpt-type {non_persistent_ckpt_type} is not implemented; it must be global or local",
        fixes=(put(a.non_persistent_ckpt_type, "global"),),
    ),
    refuse(
        "save-interval-missing",
        all_of(SAVES, a.save_interval.is_none),
        message="--save needs --save-interval, the number of iterations between checkpoints",
        at=(a.save,),
        fixes=(put(a.save_interval, 1000, offered=~a.entry_is_known),),
        kind=Kind.ABSENCE,
    ),
    refuse(
        "save-interval-not-positive",
        all_of(SAVES, a.save_interval.is_set, a.save_interval <= 0),
        message="--save-interval is {save_interval}; it must be at least 1",
        at=(a.save_interval,),
    ),
    refuse(
        "retain-interval-not-positive",
        all_of(SAVES, a.save_interval > 0, a.save_retain_interval.is_set, a.save_retain_interval <= 0),
        message="--save-retain-interval is {save_retain_interval}; it must be at least 1",
        at=(a.save_retain_interval,),
        fixes=(put(a.save_retain_interval, a.save_interval),),
    ),
    divides(
        "retain-interval-over-save-interval",
        a.save_interval,
        a.save_retain_interval,
        when=all_of(SAVES, a.save_interval > 0, a.save_retain_interval.is_set, a.save_retain_interval > 0),
        message="--save-retain-interval {save_retain_interval} is not a multiple of --save-interval {save_interval}",
        at=(a.save_retain_interval, a.save_interval),
        fixes=(put(a.save_retain_interval, (a.save_retain_interval // a.save_interval + 1) * a.save_interval),),
    ),
    conflicts(
        "saved-params-with-param-gather",
        all_of(SAVES, a.save_params_interval.is_set),
        a.overlap_param_gather.written,
        message=(
            "--save-params-interval does not work with --overlap-param-gather, which leaves weights incomplete "
            "between steps"
        ),
        at=(a.save_params_interval, a.overlap_param_gather),
        fixes=(drop(a.save_params_interval, safety=Safety.SAFE), drop(a.overlap_param_gather, safety=Safety.SAFE)),
    ),
    refuse(
        "cached-distribution-of-two-groups",
        all_of(
            a.ckpt_pg_tensors_cache_path.is_set,
            a.ckpt_fully_parallel_save_process_group != a.ckpt_fully_parallel_load_process_group,
        ),
        message=(
            "--ckpt-pg-tensors-cache-path needs the same process group for saving and loading, not "
            "{ckpt_fully_parallel_save_process_group} and {ckpt_fully_parallel_load_process_group}"
        ),
        why="the file of one group would be read for the other, so " + REFUSED,
        at=(
            a.ckpt_fully_parallel_load_process_group,
            a.ckpt_fully_parallel_save_process_group,
            a.ckpt_pg_tensors_cache_path,
        ),
        fixes=(drop(a.ckpt_pg_tensors_cache_path, safety=Safety.SAFE),),
    ),
    refuse(
        "main-params-with-optimizer-states",
        all_of(a.load_main_params_from_ckpt, ~a.no_load_optim.written),
        message="--load-main-params-from-ckpt needs --no-load-optim",
        at=(a.load_main_params_from_ckpt,),
        fixes=(put(a.no_load_optim), drop(a.load_main_params_from_ckpt)),
    ),
    requires(
        "saved-logits-without-top-k",
        LOGITS,
        a.logits_save_top_k.is_set,
        message="--logits-save-dir needs --logits-save-top-k, the number of logits to keep per token",
        at=(a.logits_save_dir,),
    ),
    refuse(
        "saved-logits-without-async-save",
        all_of(LOGITS, a.logits_save_top_k.is_set, ~a.async_save),
        message="--logits-save-dir needs --async-save and --use-persistent-ckpt-worker",
        why="logits can only be written by the checkpoint worker, so " + REFUSED,
        at=(a.logits_save_dir,),
        fixes=(Repair((Change(a.async_save, True), Change(a.use_persistent_ckpt_worker, True))),),
    ),
    conflicts(
        "overridden-iteration-with-finetune",
        a.override_ckpt_iteration.is_set,
        a.finetune,
        message="--finetune starts at iteration 0, so --override-ckpt-iteration {override_ckpt_iteration} "
        "has no effect",
        fixes=(drop(a.override_ckpt_iteration, safety=Safety.SAFE), drop(a.finetune)),
    ),
    requires(
        "upcycling-without-save",
        a.moe_use_upcycling,
        a.save.is_set,
        message="--moe-use-upcycling writes the converted checkpoint and needs --save",
        at=(a.moe_use_upcycling,),
    ),
    requires(
        "local-checkpoint-without-folder",
        LOCAL,
        a.non_persistent_local_ckpt_dir.is_set,
        message="local checkpoints need --non-persistent-local-ckpt-dir",
        at=(a.non_persistent_ckpt_type,),
    ),
    requires(
        "replication-without-jump",
        a.replication,
        a.replication_jump.is_set,
        message="--replication needs --replication-jump, the distance between ranks that keep the same checkpoint",
        at=(a.replication,),
    ),
    requires(
        "replication-without-local-checkpoint",
        a.replication_jump.is_set,
        LOCAL,
        message="--replication copies local checkpoints and needs --non-persistent-ckpt-type local",
        at=(a.replication, a.non_persistent_ckpt_type),
        fixes=(drop(a.replication, also=(a.replication_jump,)),),
    ),
    refuse(
        "checkpoint-arguments-without-checkpoint",
        all_of(a.use_checkpoint_args, a.load.is_none, a.pretrained_checkpoint.is_none),
        message="--use-checkpoint-args needs --load, the checkpoint whose arguments it reads",
        at=(a.use_checkpoint_args,),
    ),
    refuse(
        "checkpoint-arguments-without-load",
        all_of(a.use_checkpoint_args, a.load.is_none, a.pretrained_checkpoint.is_set),
        message="--use-checkpoint-args reads the checkpoint of --load in this release, not --pretrained-checkpoint",
        at=(a.use_checkpoint_args, a.pretrained_checkpoint),
    ),
    refuse(
        "checkpoint-arguments-with-local-checkpoint",
        all_of(a.use_checkpoint_args, LOCAL),
        message="--use-checkpoint-args does not work with --non-persistent-ckpt-type local",
        why="local checkpoints are located with arguments that have not been read yet, so " + REFUSED,
        at=(a.non_persistent_ckpt_type, a.use_checkpoint_args),
        fixes=(drop(a.non_persistent_ckpt_type),),
        unless_framework="mindspeed-llm",
    ),
)
