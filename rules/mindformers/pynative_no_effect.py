"""Pynative settings that are never read, or that the framework silently changes."""

from preflight import Message
from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, drop, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.source.finding import Safety, Severity

a = Handles(names())
PYNATIVE = ConstraintSet("pynative")
PIPELINE = "mindformers/pynative/distributed/pipeline_parallel.py"
TRAINER = "mindformers/pynative/trainer/trainer.py"
GPT = "mindformers/pynative/base_models/gpt/parallelize.py"
pipeline, tensor = a["parallelism.pipeline_parallel"], a["parallelism.tensor_parallel"]
shard = a["parallelism.data_parallel_shard"]
batch = a["parallelism.pipeline_parallel_microbatch_size"]
overlap, split = a["parallelism.pipeline_parallel_overlap_b_f"], a["parallelism.pipeline_parallel_enable_dxdw_split"]
YES = True

PYNATIVE.add(
    refuse(
        "shard-changed",
        all_of(shard.written > 1, shard.written != shard),
        message=(
            "data_parallel_shard is changed from {wish} to {parallelism.data_parallel_shard}, because the "
            "data-parallel size is {data_parallel}"
        ),
        why=(
            "the number of replicas is the data-parallel size divided by data_parallel_shard, rounded down, and the "
            "shard size is then computed from the number of replicas"
        ),
        shows={"wish": shard.written},
        severity=Severity.WARNING,
    ),
    refuse(
        "micro-batches-overwritten",
        all_of(pipeline > 1, batch.given, batch.written != a["micro_batches"]),
        message=(
            "pipeline_parallel_microbatch_size is changed from {written} to {micro_batches}, which is derived from "
            "the batch sizes"
        ),
        why="the number of micro-batches is global_batch_size / (data-parallel size × local_batch_size)",
        at=(batch,),
        shows={"written": batch.written},
        fixes=(drop(batch, safety=Safety.SAFE),),
        severity=Severity.WARNING,
    ),
    refuse(
        "schedule-upgraded",
        (pipeline > 1)
        & (a["schedule"] == "interleaved_1f1b")
        & a["parallelism.pipeline_parallel_schedule"].is_in("1f1b", "1F1B"),
        message=(
            "the schedule is changed from 1f1b to interleaved_1f1b, because a stage has "
            "{parallelism.pipeline_parallel_interleave_num} chunks"
        ),
        why="1f1b supports only one chunk per stage, so the name is changed silently",
        at=(a["parallelism.pipeline_parallel_schedule"],),
        fixes=(put(a["parallelism.pipeline_parallel_schedule"], "interleaved_1f1b", safety=Safety.SAFE),),
        severity=Severity.NOTE,
    ),
    refuse(
        "chunks-without-pipeline",
        (pipeline == 1) & (a["parallelism.pipeline_parallel_interleave_num"] > 1),
        message=(
            "pipeline_parallel_interleave_num {parallelism.pipeline_parallel_interleave_num} has no effect with "
            "one stage"
        ),
        why="without a pipeline, there is nothing to interleave",
        at=(a["parallelism.pipeline_parallel_interleave_num"],),
        severity=Severity.WARNING,
    ),
    refuse(
        "overlap-without-experts",
        (pipeline > 1) & (overlap == YES) & any_of(a["net.num_moe_experts"].is_none, a["net.num_moe_experts"] == 0),
        message="pipeline_parallel_overlap_b_f is turned off, because the model has no experts",
        why="without experts, there is no communication to overlap",
        at=(overlap,),
        severity=Severity.WARNING,
    ),
    refuse(
        "split-without-overlap",
        (pipeline > 1) & (split == YES) & (overlap == False),
        message="pipeline_parallel_enable_dxdw_split is turned off, because it needs pipeline_parallel_overlap_b_f",
        why="the split gradients are used only to fill the overlap",
        at=(split, overlap),
        fixes=(put(overlap),),
        severity=Severity.WARNING,
    ),
    *(
        refuse(
            f"{name.replace('_', '-')}-without-tensor",
            (tensor == 1) & (a[f"parallelism.{name}"] == YES),
            message=Message("{name} has no effect with tensor_parallel 1", name=name),
            why="the setting changes only how tensor-parallel ranks communicate",
            at=(a[f"parallelism.{name}"],),
            severity=Severity.WARNING,
        )
        for name, place in (
            ("enable_mc2", f"{GPT}:1940"),
            ("enable_loss_parallel", "mindformers/pynative/distributed/utils.py:40"),
        )
    ),
    refuse(
        "exclusion-without-recompute",
        (a["recompute.mode"] == "None") & a["recompute.exclude_op"].is_set,
        message="recompute.exclude_op has no effect while recompute.mode is None",
        why="nothing is recomputed, so there is nothing to exclude",
        at=(a["recompute.exclude_op"], a["recompute.mode"]),
        severity=Severity.WARNING,
    ),
    refuse(
        "modules-beside-full",
        (a["recompute.mode"] == "full") & a["recompute.select_module"].is_set,
        message="recompute.select_module has no effect while recompute.mode is full",
        why="whole layers are recomputed",
        at=(a["recompute.select_module"], a["recompute.mode"]),
        severity=Severity.WARNING,
    ),
    refuse(
        "layers-without-recompute",
        (a["recompute.mode"] == "None")
        & any_of(a["recompute.full_recompute_layer"].is_set, a["recompute.select_module"].is_set),
        message="the layers to recompute have no effect, because recompute.mode is None",
        why="only recompute.mode turns recomputation on",
        at=(a["recompute.full_recompute_layer"], a["recompute.select_module"], a["recompute.mode"]),
        severity=Severity.WARNING,
    ),
    refuse(
        "one-device",
        (a["world"] == 1)
        & any_of(a["parallelism.expert_parallel"] > 1, a["recompute.mode"] != "None", a["swap.enable"] == YES),
        message="on one device, expert_parallel, recompute and swap have no effect",
        why="these settings are applied together with the parallel layout, which a single device does not have",
        severity=Severity.WARNING,
    ),
)
