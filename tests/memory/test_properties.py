"""Invariants for all sizes: terms add up, and sharding and recomputation never increase their terms."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_plans import make

from preflight.memory import estimate
from preflight.memory.estimate import stage
from preflight.memory.inputs_from_plan import shape
from preflight.run.cluster import Cluster, Device
from preflight.run.value import assumed, unknown

CLUSTER = Cluster(device=Device("test", 80e9, 79e9))


def term(s, name, rank=0):
    return sum(t.high for t in stage(s, rank, CLUSTER).terms if t.name.startswith(name))


@given(
    micro=st.integers(1, 8),
    pipeline=st.sampled_from([1, 2, 4, 8]),
    tensor=st.sampled_from([1, 2, 4, 8]),
    full=st.booleans(),
)
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
        term(
            shape(
                make(
                    recompute__mode=mode,
                    recompute__method=method,
                    recompute__modules=("core_attn",),
                    model__attention="unfused",
                )
            ),
            "activations",
        )
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


def without(plan, **reasons):
    """The plan with unknown values."""
    for name, why in reasons.items():
        part, _, field = name.partition("__")
        plan = replace(plan, **{part: replace(getattr(plan, part), **{field: unknown(why)})})
    return plan


SHARDED = {"optimizer__zero": 1, "optimizer__shards": 8}


def test_an_unknown_vocabulary_is_counted_between_its_ends():
    plan = without(make(**SHARDED), model__vocab="no --vocab-size")
    result = estimate(plan, CLUSTER)
    said = "the vocabulary size is unknown (no --vocab-size); 1 to 262,208 counted"
    assert (result.verdict, result.taken) == ("at-risk", (said,))
    for vocab in (1, 32000, 262_208):
        known = estimate(make(**SHARDED, model__vocab=vocab), CLUSTER)
        assert result.low <= known.low and known.worst.required <= result.worst.required


def test_layers_that_fit_no_card_need_no_vocabulary():
    assert estimate(without(make(), model__vocab="no --vocab-size"), CLUSTER).verdict == "does-not-fit"


def test_what_has_no_end_is_named_with_what_is_needed_at_the_least():
    result = estimate(without(make(**SHARDED), batch__micro="$1"), CLUSTER)
    assert result.verdict == "unknown" and not result.stages
    assert result.unknown[0].startswith("the micro batch size is unknown ($1): at least ")


UNKNOWN = ("batch__count", "layout__data", "optimizer__shards", "optimizer__zero", "recompute__mode", "optimizer__name")


@settings(deadline=None)
@given(lost=st.sets(st.sampled_from([*UNKNOWN, "model__tied", "layout__sequence_parallel", "precision__states"])))
def test_a_range_contains_what_it_leaves_open(lost):
    whole = {"layout__tensor": 2, "layout__sequence_parallel": True, "layout__pipeline": 2, "recompute__mode": "none"}
    plan = make(**SHARDED, **whole, layout__stages=((16, 16),))
    known, ranged = estimate(plan, CLUSTER), estimate(without(plan, **dict.fromkeys(lost, "$1")), CLUSTER)
    assert ranged.low <= known.low and known.worst.required <= ranged.worst.required * (1 + 1e-9)
    assert not lost or ranged.taken


def test_an_assumed_size_is_no_reason_to_refuse():
    large = make(**SHARDED, model__vocab=10**8)
    assert estimate(large, CLUSTER).verdict == "does-not-fit"
    named = replace(large, model=replace(large.model, vocab=assumed(10**8, "the vocabulary of a published model")))
    result = estimate(named, CLUSTER)
    assert (result.verdict, result.assumed) == ("at-risk", ("the vocabulary of a published model",))


@given(pipeline=st.sampled_from([1, 2, 4, 8]), virtual=st.sampled_from([1, 2, 4]))
def test_more_pipeline_stages_never_hold_more_weights(pipeline, virtual):
    def most(p):
        s = shape(make(layout__pipeline=p, layout__stages=((32 // p // virtual,) * p,) * virtual, optimizer__zero=0))
        return max(term(s, "weights", rank) + term(s, "optimizer", rank) for rank in range(p))

    if 32 % (2 * pipeline * virtual) == 0:
        assert most(2 * pipeline) <= most(pipeline)


@given(context=st.sampled_from([1, 2, 4, 8]))
def test_context_parallel_divides_activations(context):
    one, many = shape(make()), shape(make(layout__context=context))
    assert term(many, "activations") == pytest.approx(term(one, "activations") / context)


@given(shards=st.sampled_from([2, 8, 64]))
def test_each_level_of_sharding_keeps_less_after_the_step(shards):
    kept = [stage(shape(make(optimizer__zero=zero, optimizer__shards=shards)), 0, CLUSTER) for zero in range(4)]
    assert all(one.steady > next_.steady for one, next_ in pairwise(kept))
    assert [t.name for t in kept[3].terms if t.name == "gathered weights"] == ["gathered weights"]


@given(layers=st.integers(0, 32))
def test_more_recomputed_layers_keep_less(layers):
    fewer = shape(make(recompute__mode="full", recompute__full_layers=((layers,),)))
    more = shape(make(recompute__mode="full", recompute__full_layers=((min(layers + 1, 32),),)))
    assert term(more, "activations") <= term(fewer, "activations")


@given(
    optimizer=st.sampled_from(["adam", "sgd", "muon"]),
    zero=st.integers(0, 3),
    owned=st.sampled_from(["", "either", "all"]),
    swapped=st.sampled_from([0, 1, 16]),
    fsdp=st.sampled_from([None, "megatron-fsdp"]),
    folded=st.booleans(),
    implementation=st.sampled_from(["torch-npu", "transformer_engine"]),
    sequence=st.sampled_from([64, 4096]),
)
def test_terms_sum_whatever_keeps_the_states(optimizer, zero, owned, swapped, fsdp, folded, implementation, sequence):
    changes = {
        "optimizer__name": optimizer,
        "optimizer__zero": zero,
        "optimizer__shards": 8,
        "optimizer__owned": owned,
        "optimizer__swapped": swapped,
        "optimizer__fsdp": fsdp,
        "model__kernels": implementation,
        "model__sequence": sequence,
        "layout__pipeline": 4,
        "layout__schedule": "dual-pipe-v" if folded else "1f1b",
        "layout__stages": ((4,) * 4,) * 2 if folded else ((8,) * 4,),
        "batch__count": 16,
    }
    s = shape(make(**changes))
    for rank in range(4):
        got = stage(s, rank, CLUSTER)
        assert got.allocated_peak == pytest.approx(sum(t.high for t in got.terms if t.kind != "device"))
        assert got.required == pytest.approx(sum(t.high for t in got.terms))
        assert all(0 <= t.low <= t.high for t in got.terms)
        assert got.steady <= got.allocated_peak * (1 + 1e-9) and got.low <= got.allocated_peak


@given(
    optimizer=st.sampled_from(["adam", "muon"]),
    zero=st.integers(1, 3),
    owned=st.sampled_from(["", "either", "all"]),
    shards=st.sampled_from([2, 8, 64]),
)
def test_more_shards_never_keep_more_states(optimizer, zero, owned, shards):
    few, many = (
        shape(make(optimizer__name=optimizer, optimizer__zero=zero, optimizer__owned=owned, optimizer__shards=count))
        for count in (shards, 2 * shards)
    )
    for name in ("weights", "gradients", "master", "optimizer states"):
        assert term(many, name) <= term(few, name) * (1 + 1e-9)


@given(parts=st.sampled_from([1, 2, 16, 64]))
def test_more_parts_of_swapped_states_never_need_more(parts):
    few, many = (
        shape(make(optimizer__zero=1, optimizer__shards=8, optimizer__swapped=count, model__sequence=64))
        for count in (parts, 2 * parts)
    )
    assert stage(many, 0, CLUSTER).allocated_peak <= stage(few, 0, CLUSTER).allocated_peak


def test_a_named_model_fills_what_a_run_leaves_open_and_is_assumed():
    from preflight.run.value import default

    plan = make(**SHARDED)
    named = replace(plan, model=replace(plan.model, names=default(("model_from_hf/llama-2-7b-hf",))))
    lost = dict.fromkeys(("model__vocab", "model__heads", "model__ffn"), "$1")
    result = estimate(without(named, **lost), CLUSTER)
    assert result.worst.required == estimate(plan, CLUSTER).worst.required
    assert result.assumed == ("Llama-2-7B is the model named by a path",)
    assert estimate(without(plan, **lost), CLUSTER).unknown == ("the attention heads are unknown ($1)",)
