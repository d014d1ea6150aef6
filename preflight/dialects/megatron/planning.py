"""From Megatron's arguments to the neutral plan: layout, batch, and the parts translated by other modules."""

from __future__ import annotations

from preflight.dialects.megatron import network_parts, plan_model, plan_training, sizes
from preflight.dialects.megatron.mindspeed import inflates
from preflight.dialects.megatron.namespace import Run
from preflight.dialects.megatron.network_parts import overlaps
from preflight.dialects.megatron.pipeline import held_layers
from preflight.dialects.megatron.plan_source import Puts, Source
from preflight.dialects.megatron.unmodelled import find_unmodelled
from preflight.dialects.megatron.untimed import find_untimed
from preflight.run.plan import Batch, Inference, Layout, Plan
from preflight.run.request import Target
from preflight.run.value import Value, default
from preflight.run.versions import matches


def plan(run: Run, target: Target, writer: Puts) -> Plan:
    """Everything neutral that the arguments determine."""
    source = Source(run, writer)
    unmodelled, doubted = find_unmodelled(source)
    return Plan(
        target=target,
        model=plan_model.model(source),
        layout=layout(source),
        batch=Batch(
            micro=source.take("micro_batch_size"),
            count=source.take("num_microbatches"),
            total=_total(source),
            varying=source.compute(_varying, "no_pad_to_seq_lengths"),
            pairs=source.compute(lambda r: r.stage == "dpo", "stage"),
            mask_from_loader=source.take("create_attention_mask_in_dataloader"),
        ),
        recompute=plan_training.recompute(source),
        precision=plan_training.precision(source),
        optimizer=plan_training.optimizer(source),
        inference=Inference(enabled=default(False)),
        unmodelled=unmodelled,
        doubted=doubted,
        untimed=find_untimed(run),
        architecture=_architecture(run),
        bounds=sizes.bound(run),
    )


def _varying(run: Run) -> bool:
    """Whether samples are, or may be, unpadded. MindSpeed-LLM pads them unless an option forbids it
    (data_samplers.py:70); until 2.2 that was --variable-seq-lengths (33fc8b8), which no longer has an effect: an older
    release may be meant, or MindSpore, which interprets it differently."""
    return bool(
        run.no_pad_to_seq_lengths
        or run.variable_seq_lengths
        or network_parts.frozen(run)
        or ("mindspeed-llm" in run.versions and _asked(run))
    )


def _asked(run: Run) -> bool:
    given = run.written.get("variable_seq_lengths")
    return given is not None and given.raw is not False


def _architecture(run: Run) -> int:
    value = run.value("device_architecture")
    return int(value.raw) if value.known and isinstance(value.raw, int) else 0


def layout(source: Source) -> Layout:
    """The distribution of the run over ranks."""
    take, compute, run = source.take, source.compute, source.run
    return Layout(
        world=compute(_world)
        if source.run.value("layerwise_disaggregated_training").raw not in (None, False)
        else source.run.value("world_size"),
        data=source.run.value("data_parallel_size"),
        tensor=take("tensor_model_parallel_size"),
        pipeline=take("pipeline_model_parallel_size"),
        context=take("context_parallel_size"),
        expert=take("expert_model_parallel_size"),
        expert_tensor=take("expert_tensor_parallel_size"),
        extended=take("moe_tp_extend_ep"),
        replica=source.run.value("total_model_size"),
        virtual=source.run.value("virtual_pipeline_model_parallel_size"),
        sequence_parallel=take("sequence_parallel"),
        tensor_x=compute(lambda r: r.tp_x if r.tp_2d else None, "tp_x"),
        stages=compute(held_layers, note="layers by virtual stage and pipeline rank"),
        schedule=compute(_schedule),
        group=compute(
            lambda r: r.microbatch_group_size_per_vp_stage or r.pipeline_model_parallel_size,
            "microbatch_group_size_per_vp_stage",
        ),
        sequence_splits=default(1),
        deferred=compute(_deferred, "defer_embedding_wgrad_compute"),
        split="ends",
        chunked=bool(run.table.flags("pipeline_model_parallel_layout")),
        weight_shards=run.value("gtp_weight_remat_size") if "megatron" in run.versions else None,
        expert_grid="megatron" in run.versions,
        exchanged=compute(_exchanged, "context_parallel_algo"),
        overlaps=compute(overlaps),
    )


def _deferred(run: Run) -> int:
    """Micro-batches with a deferred weight gradient of the output layer; a limit of 0 means all of them."""
    if not run.defer_embedding_wgrad_compute:
        return 0
    count: int = run.num_microbatches
    return min(run.wgrad_deferral_limit or count, count)


def _exchanged(run: Run) -> int:
    """MindSpeed's exchange creates a second tensor of attention's output (028de58, ulysses_context_parallel.py:166);
    Transformer Engine keeps only one and exchanges it again."""
    ranks: int = run.context_parallel_size * (run.tp_y if run.tp_2d else 1)
    if run.context_parallel_algo in ("hybrid_cp_algo", "hybrid_adaptive_cp_algo"):
        ranks = run.ulysses_degree_in_cp or 1
    elif run.context_parallel_algo != "ulysses_cp_algo":
        ranks = 1
    return ranks if ranks > 1 else 0


def _total(source: Source) -> Value:
    """Samples per step; with --decrease-batch-size-if-needed the multiple of the micro-batches that is really used. A
    file that is not read may set that option, and leaves the written batch as it is."""
    decreases = source.run.value("decrease_batch_size_if_needed")
    if decreases.known and decreases.raw not in (None, False):
        return source.compute(
            lambda r: r.num_microbatches * r.micro_batch_size * r.data_parallel_size * r.gtp_weight_remat_size,
            "global_batch_size",
        )
    return source.take("global_batch_size")


def _world(run: Run) -> int:
    """Layer-wise disaggregated training counts as many ranks as one copy of the model needs."""
    ranks: int = run.world_size
    return int(run.total_model_size) if ranks % run.total_model_size and inflates(run) else ranks


def _schedule(run: Run) -> str:
    if run.schedules_method == "dualpipev":
        return "dual-pipe-v"
    if (run.virtual_pipeline_model_parallel_size or 1) == 1:
        return "1f1b"
    if matches(run.core_release, "<0.10") and run.num_microbatches == run.pipeline_model_parallel_size:
        return "all-forward"  # core_v0.8.0 schedules.py:646, gone in core_v0.10.0
    return "interleaved"
