"""The columns agree with the memory model, candidate by candidate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from memory_plans import make

from preflight.layouts.candidate_memory import required
from preflight.layouts.candidate_step_time import step_time
from preflight.layouts.candidates import Space, grid, sizes
from preflight.memory.estimate import stage
from preflight.memory.inputs_from_plan import shape
from preflight.run.cluster import Cluster, Device

DEVICE = Device("test", 80e9, 79e9, 300e12, 300e9, 25e9)
EXPERTS = {
    "model__experts": 8, "model__top_k": 2, "model__expert_ffn": 4096, "model__expert_layers": (True,) * 32,
    "model__grouped_gemm": True,
    "optimizer__zero": 1, "optimizer__shards": 8, "model__dispatcher": "alltoall",
}  # fmt: skip


@pytest.mark.parametrize(
    "changes", [{}, {"optimizer__zero": 1, "optimizer__shards": 8}, EXPERTS], ids=["plain", "sharded", "experts"]
)
def test_columns_agree_with_the_memory_model(changes):
    s = shape(make(**changes))
    space = Space(s, 16, 8, 64)
    columns, _ = grid(space)
    got = required(space, columns, Cluster(device=DEVICE))
    rows = np.random.default_rng(0).choice(len(got), 60, replace=False)
    errors = [abs(got[row] / _exact(s, sizes(columns, int(row))) - 1) for row in rows]
    assert np.median(errors) < 0.02 and max(errors) < 0.15


def _exact(s, wanted):
    layers = sum(map(sum, s.stages))
    per_chunk = layers // (wanted.pipeline * wanted.virtual)
    expert_shards = max(1, wanted.data * wanted.tensor * wanted.context // (wanted.expert * wanted.expert_tensor))
    one = replace(
        s, stages=((per_chunk,) * wanted.pipeline,) * wanted.virtual, tensor=wanted.tensor, pipeline=wanted.pipeline,
        context=wanted.context,
        expert=wanted.expert, expert_tensor=wanted.expert_tensor, data=wanted.data,
        sequence_parallel=wanted.sequence_parallel,
        micro=wanted.micro, count=wanted.micro_batches, group=wanted.pipeline, recompute=wanted.recompute,
        method="uniform", recompute_layers=1,
        modules=frozenset(("core_attn",)) if wanted.recompute == "selective" else frozenset(),
        shards=wanted.data * wanted.context if s.zero else 1, expert_shards=expert_shards if s.zero else 1,
    )  # fmt: skip
    return max(stage(one, rank, Cluster(device=DEVICE)).required for rank in range(wanted.pipeline))


def test_every_candidate_keeps_devices_and_global_batch():
    space = Space(shape(make()), 32, 8, 128)
    columns, _ = grid(space)
    c = {name: columns[name] for name in columns}
    assert (c["tensor"] * c["pipeline"] * c["context"] * c["data"] == 32).all()
    assert (c["micro"] * c["micro_batches"] * c["data"] == 128).all()
    assert (32 % c["tensor"] == 0).all() and (c["tensor"] <= 8).all()


def test_limits_of_the_user_hold():
    columns, _ = grid(Space(shape(make()), 32, 8, 128, fixed={"tensor": 4}, most={"pipeline": 2}))
    assert set(columns["tensor"]) == {4} and set(columns["pipeline"]) <= {1, 2}


def test_recomputation_costs_time_and_bubbles_shrink_with_virtual_stages():
    space = Space(shape(make()), 16, 8, 64, fixed={"tensor": 2, "pipeline": 4, "context": 1, "micro": 1})
    columns, _ = grid(space)
    time = step_time(space, columns, DEVICE)
    by = {
        (int(v), int(r)): float(t) for v, r, t in zip(columns["virtual"], columns["recompute"], time.total, strict=True)
    }
    assert by[1, 0] < by[1, 1] < by[1, 2]
    bubble = {int(v): float(b) for v, b in zip(columns["virtual"], time.bubble, strict=True)}
    assert bubble[1] > bubble[2] > bubble[4]


@pytest.fixture(scope="module")
def long_context():
    """Qwen2-7B with 128k tokens on 32 devices of 80 GB, tensor parallel at most 4: a published tuning account."""
    qwen = make(
        model__hidden=3584, model__heads=28, model__query_groups=4, model__ffn=18944, model__vocab=152064,
        model__sequence=131072,
        layout__stages=((28,),), optimizer__zero=1, optimizer__shards=8,
    )  # fmt: skip
    space = Space(shape(qwen), 32, 8, 32, fixed={"micro": 1, "virtual": 1}, most={"tensor": 4})
    columns, _ = grid(space)
    time = step_time(space, columns, DEVICE)
    names = ("tensor", "pipeline", "context", "data", "recompute")
    keys = [tuple(int(columns[name][row]) for name in names) for row in range(len(time.total))]
    need = required(space, columns, Cluster(device=DEVICE))
    return dict(zip(keys, time.total, strict=True)), dict(zip(keys, need, strict=True))


def test_long_context_prefers_data_parallel_over_more_context_parallel(long_context):
    time, _ = long_context
    assert time[4, 1, 1, 8, 2] <= time[4, 1, 2, 4, 2] < time[4, 1, 4, 2, 2] < time[4, 1, 8, 1, 2]


def test_tensor_parallel_in_a_node_comes_before_pipeline_stages(long_context):
    time, _ = long_context
    assert time[4, 1, 2, 4, 2] < time[2, 2, 2, 4, 2] < time[1, 4, 2, 4, 2]
    assert time[4, 1, 2, 4, 2] < time[4, 2, 2, 2, 2]


def test_less_recomputation_of_the_fastest_does_not_fit(long_context):
    _, need = long_context
    for layout in ((4, 1, 1, 8), (4, 1, 2, 4)):
        assert need[(*layout, 2)] < 79e9 < need[(*layout, 0)]
