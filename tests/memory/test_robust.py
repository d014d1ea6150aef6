"""For any config, memory is an estimate or a named unknown: never a crash, never NaN."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from memory_plans import make

from preflight.memory import estimate
from preflight.memory.inputs_from_plan import Missing, shape
from preflight.run.cluster import Cluster, Device

CLUSTERS = (
    Cluster(device=Device("test", 80e9, 79e9)),
    Cluster(device=Device("910", 64e9, 60e9, vendor="ascend")),
    Cluster(),
)
SIZE = st.sampled_from([0, 1, 2, 3, 8, 64, -1, 10**12, 1 << 60, True, 2.5, "4", None])
# fmt: off
FIELDS = (
    *("model__hidden", "model__heads", "model__query_groups", "model__head_dim", "model__ffn", "model__vocab",
        "model__sequence", "model__experts"),
    *("model__top_k", "model__expert_ffn", "model__shared_ffn", "model__mtp", "model__positions", "model__lora_rank",
        "layout__tensor", "layout__context"),
    *("layout__expert", "layout__expert_tensor", "layout__data", "layout__group", "layout__sequence_splits",
        "batch__micro", "batch__count"),
    *("optimizer__shards", "optimizer__expert_shards", "recompute__layers", "layout__deferred"),
)
# fmt: on
ROW = st.lists(st.integers(-1, 5), min_size=1, max_size=4)


@st.composite
def plans(draw):
    changes = {name: draw(SIZE) for name in draw(st.lists(st.sampled_from(FIELDS), max_size=5, unique=True))}
    rows = draw(st.lists(ROW, max_size=3))
    stages = tuple(map(tuple, rows)) or ((4, 4),)
    changes |= {"layout__stages": stages, "layout__pipeline": draw(st.sampled_from([len(stages[0]), 1, 0]))}
    changes["layout__schedule"] = draw(
        st.sampled_from(["1f1b", "interleaved", "gpipe", "zero-bubble-v", "dual-pipe-v", "seqpipe", "seqvpp"])
    )
    changes["recompute__mode"] = draw(st.sampled_from(["none", "full", "selective"]))
    changes["recompute__shared"] = draw(st.booleans())
    changes["recompute__method"] = draw(st.sampled_from([None, "uniform", "block"]))
    changes["model__expert_layers"] = draw(st.sampled_from([(), (True,), (False, True) * 4]))
    changes["model__latent"] = draw(st.booleans())
    changes |= {
        "model__kv_lora_rank": draw(SIZE),
        "model__qk_nope_dim": 64,
        "model__qk_rope_dim": 64,
        "model__v_dim": draw(SIZE),
    }
    changes["optimizer__zero"] = draw(st.integers(0, 3))
    changes["inference__enabled"] = draw(st.booleans())
    changes |= {
        "inference__batch": draw(SIZE),
        "inference__length": draw(SIZE),
        "inference__block_size": draw(SIZE),
        "inference__blocks": draw(SIZE),
    }
    return make(**changes)


@settings(max_examples=200, deadline=None)
@given(plan=plans(), cluster=st.sampled_from(CLUSTERS))
def test_never_a_crash_and_never_nonsense(plan, cluster):
    result = estimate(plan, cluster)
    assert result.stages or result.unknown
    for stage in result.stages:
        assert all(math.isfinite(term.high) and 0 <= term.low <= term.high for term in stage.terms), stage.terms
        assert 0 < stage.allocated_peak <= stage.required
        assert sum(t.high for t in stage.terms) == stage.required or math.isclose(
            sum(t.high for t in stage.terms), stage.required, rel_tol=1e-9
        )


def test_a_schedule_of_many_micro_batches_is_counted_not_walked():
    numbers = shape(make(layout__stages=((2,),) * 16, layout__pipeline=1, layout__group=10**9, batch__count=10**9))
    from preflight.memory.activations import in_flight

    assert sum(in_flight(numbers, 0)) == 15 * 10**9 + 1


def test_a_prediction_depth_beside_experts_in_no_layer():
    plan = make(model__experts=8, model__expert_layers=(), model__mtp=1)
    assert estimate(plan, CLUSTERS[0]).stages


def test_what_no_run_can_have_is_named():
    for change, words in (
        ({"model__heads": 0}, "attention heads: 0 is not"),
        ({"layout__expert": 0, "model__experts": 8}, "expert-parallel size: 0 is not"),
        ({"optimizer__shards": 0, "optimizer__zero": 1}, "optimizer shards: 0 is not"),
        ({"layout__stages": ((0,),), "model__mtp": 1}, "0 layers"),
    ):
        try:
            shape(make(**change))
        except Missing as missing:
            assert words in str(missing)
        else:
            raise AssertionError(change)
