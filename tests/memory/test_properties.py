"""What must hold for any size: terms add up, sharding and recomputation never cost more of what they shard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_plans import make

from preflight.cluster import Cluster, Device
from preflight.memory import estimate
from preflight.memory.estimate import stage
from preflight.memory.shape import shape

CLUSTER = Cluster(device=Device("test", 80e9, 79e9))


def term(s, name, rank=0):
    return sum(t.high for t in stage(s, rank, CLUSTER).terms if t.name.startswith(name))


@given(micro=st.integers(1, 8), pipeline=st.sampled_from([1, 2, 4, 8]), tensor=st.sampled_from([1, 2, 4, 8]), full=st.booleans())
def test_terms_sum_to_the_totals(micro, pipeline, tensor, full):
    s = shape(
        make(
            batch__micro=micro,
            layout__pipeline=pipeline,
            layout__tensor=tensor,
            layout__stages=((32 // pipeline,) * pipeline,),
            recompute__mode="full" if full else "none",
            recompute__method="uniform" if full else None,
        )
    )
    for rank in range(pipeline):
        got = stage(s, rank, CLUSTER)
        allocated = sum(t.high for t in got.terms if t.kind != "device")
        assert got.allocated_peak == pytest.approx(allocated)
        assert got.required == pytest.approx(sum(t.high for t in got.terms))
        assert all(0 <= t.low <= t.high for t in got.terms)


@given(tensor=st.sampled_from([1, 2, 4]), sequence_parallel=st.booleans())
def test_tensor_parallel_never_keeps_more(tensor, sequence_parallel):
    one = shape(make(layout__tensor=tensor, layout__sequence_parallel=sequence_parallel))
    two = shape(make(layout__tensor=2 * tensor, layout__sequence_parallel=sequence_parallel))
    for name in ("weights", "optimizer", "activations", "logits"):
        assert term(two, name) <= term(one, name)


@given(micro=st.integers(1, 6))
def test_activations_are_linear_in_the_micro_batch(micro):
    one, many = shape(make()), shape(make(batch__micro=micro))
    assert term(many, "activations") == pytest.approx(micro * term(one, "activations"))


def test_recomputation_keeps_less():
    kept = [
        term(shape(make(recompute__mode=mode, recompute__method=method, recompute__modules=("core_attn",), model__attention="unfused")), "activations")
        for mode, method in (("none", None), ("selective", None), ("full", "uniform"))
    ]
    assert kept[0] > kept[1] > kept[2]


def test_first_stage_of_1f1b_keeps_as_many_layers_as_the_model_has():
    one = shape(make())
    four = shape(make(layout__pipeline=4, layout__stages=((8, 8, 8, 8),)))
    assert term(four, "activations") == pytest.approx(term(one, "activations"))


def test_verdicts():
    assert estimate(make(), CLUSTER).verdict == "does-not-fit"
    sharded = make(optimizer__zero=1, optimizer__shards=8)
    assert estimate(sharded, CLUSTER).verdict == "fits"
    assert estimate(sharded, Cluster()).verdict == "unknown"


def test_unknown_sizes_are_named_not_guessed():
    from dataclasses import replace

    from preflight.value import unknown

    plan = make()
    plan = replace(plan, model=replace(plan.model, vocab=unknown("no --vocab-size")))
    result = estimate(plan, CLUSTER)
    assert result.verdict == "unknown" and result.unknown == ("the vocabulary size is not known (no --vocab-size)",)
