"""Which layers MindSpeed's pipeline stages hold: where they are written out, where they are empty,
where a schedule folds them."""

from __future__ import annotations

import re

from preflight.dialects.megatron.namespace import NotKnown, Run


def stated_chunks(run: Run) -> tuple[tuple[int, ...], ...] | None:
    """Layers by rank and virtual stage where they are written out:
    --num-layer-list or --pipeline-num-transformer-layers."""
    pipeline = run.pipeline_model_parallel_size
    if run.num_layer_list is not None:
        rows: tuple[tuple[int, ...], ...] = tuple((int(part),) for part in str(run.num_layer_list).split(","))
        if run.layerwise_disaggregated_training:  # the first stage holds the last layers as well
            rows = ((*rows[0], *rows[-1]), *((*row, 0) for row in rows[1:-1]))
    elif run.pipeline_num_transformer_layers is not None:
        rows = tuple(
            tuple(int(n) for n in re.findall(r"\d+", row))
            for row in re.findall(r"\[([\d,\s]+)\]", run.pipeline_num_transformer_layers)
        )
        if "*" in run.pipeline_num_transformer_layers:
            raise NotKnown("the layers per stage are written with repetitions")
    else:
        return None
    if len(rows) != pipeline or sum(map(sum, rows)) != run.num_layers:
        raise NotKnown("the layers that are written out do not fit the layers and stages")
    return rows


def held_layers(run: Run) -> tuple[tuple[int, ...], ...]:
    """Layers that compute, by virtual stage and pipeline rank. DualPipeV folds twice as many stages into a V
    (dualpipev_chunks.py:43-52)."""
    if run.schedules_method != "dualpipev":
        return tuple(zip(*without_noop(run, run.layers_per_chunk), strict=True))
    ranks = run.pipeline_model_parallel_size
    if run.num_layers % (2 * ranks):
        raise NotKnown("the layers do not divide by twice the pipeline stages")
    held = [row[0] for row in without_noop(run, ((run.num_layers // (2 * ranks),),) * (2 * ranks))]
    return tuple(held[:ranks]), tuple(held[: ranks - 1 : -1])


def without_noop(run: Run, chunks: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Layers that compute: those named by --noop-layers only pass their input on."""
    if not run.noop_layers:
        return chunks
    skipped = {int(part) for part in str(run.noop_layers).split(",")}
    first, rows = 0, [list(row) for row in chunks]
    for virtual in range(len(chunks[0])):
        for rank, row in enumerate(chunks):
            rows[rank][virtual] -= sum(first <= layer < first + row[virtual] for layer in skipped)
            first += row[virtual]
    return tuple(map(tuple, rows))
