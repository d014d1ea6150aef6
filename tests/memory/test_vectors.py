"""Published figures, recomputed: states, ZeRO, FLOPs."""

from __future__ import annotations

import pytest

from preflight.memory import activations, flops, parameters, static_memory
from preflight.memory.estimate import cache
from preflight.memory.inputs_from_plan import shape
from preflight.memory.parameters import Parameters

GB = 1e9


def steady(plan, phi, **changes):
    s = shape(plan(**changes))
    return sum(term.high for term in static_memory.steady_terms(s, Parameters(phi, 0, 0, 0))) / GB


def test_llama2_7b_has_its_published_number_of_parameters(plan):
    assert parameters.model(shape(plan())) == pytest.approx(6_738_415_616)


def test_llama2_13b_has_its_published_number_of_parameters(plan):
    thirteen = plan(
        model__hidden=5120, model__heads=40, model__query_groups=40, model__ffn=13824, layout__stages=((40,),)
    )
    assert parameters.model(shape(thirteen)) == pytest.approx(13_015_864_320)


def test_stages_hold_what_the_whole_model_holds(plan):
    whole = parameters.model(shape(plan()))
    s = shape(plan(layout__pipeline=4, layout__stages=((8, 8, 8, 8),)))
    assert sum(parameters.stage(s, rank).total for rank in range(4)) == pytest.approx(whole)


@pytest.mark.parametrize(("zero", "expected"), [(0, 120.0), (1, 31.406), (2, 16.641), (3, 1.875)])
def test_zero_paper_example(plan, zero, expected):
    """7.5 B parameters over 64 ranks, K = 12: the states of Rajbhandari et al."""
    got = steady(plan, 7.5e9, precision__gradients="bf16", optimizer__zero=zero, optimizer__shards=64, layout__data=64)
    assert got == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize(
    ("shards", "gradients", "expected"), [(1, "none", 70.0), (8, "none", 8.75), (8, "fp16", 22.75)]
)
def test_mindspore_ten_bytes_a_parameter(plan, shards, gradients, expected):
    """fp16 weights with fp32 moments; optimizer parallel shards both; gradients stay whole with a pipeline."""
    got = steady(
        plan,
        7e9,
        precision__parameters="fp16",
        precision__compute="fp16",
        precision__master=None,
        precision__gradients=gradients,
        optimizer__zero=1,
        optimizer__weights_sharded=True,
        optimizer__shards=shards,
    )
    assert got == pytest.approx(expected)


def test_megatron_without_sharding_keeps_18_bytes_a_parameter(plan):
    assert steady(plan, 6.7e9) == pytest.approx(120.6)


def test_model_flops_per_token_of_llama2(plan):
    seven = shape(plan(layout__data=1, batch__count=1))
    assert flops.step(seven).model / 4096 == pytest.approx(46.1e9, rel=0.002)
    thirteen = shape(
        plan(
            model__hidden=5120,
            model__heads=40,
            model__query_groups=40,
            model__ffn=13824,
            layout__stages=((40,),),
            layout__data=1,
            batch__count=1,
        )
    )
    assert flops.step(thirteen).model / 4096 == pytest.approx(87.2e9, rel=0.002)


def test_mfu_of_the_published_7b_run(plan):
    """4695 tokens/s/device at 57 % means a device of about 376 TFLOP/s."""
    s = shape(plan(layout__data=8, batch__count=1))
    seconds = 4096 / 4695
    assert flops.utilisation(s, seconds, 376e12).mfu == pytest.approx(0.575, abs=0.002)


def test_full_recomputation_repeats_the_layers_once(plan):
    s = shape(plan(recompute__mode="full", recompute__method="uniform"))
    work = flops.step(s)
    assert work.hardware / work.model == pytest.approx(1.327, abs=0.002)


GPT = {
    "model__gated": False,
    "model__ffn": 16384,
    "model__norm": "layer",
    "model__hidden_dropout": 0.1,
    "model__attention_dropout": 0.1,
    "model__attention": "unfused",
}


@pytest.mark.parametrize(
    ("tensor", "sequence_parallel", "recompute", "factor", "scores"),
    [
        (1, False, "none", 34, 5),
        (8, False, "none", 10 + 24 / 8, 5 / 8),
        (8, True, "none", 34 / 8, 5 / 8),
        (8, False, "selective", 13, 0),
        (8, True, "selective", 4.25, 0),
    ],
)
def test_published_bytes_of_a_layer(plan, tensor, sequence_parallel, recompute, factor, scores):
    """sbh(34 + 5as/h) and its forms under tensor and sequence parallelism and selective recomputation."""
    s = shape(
        plan(
            **GPT,
            layout__tensor=tensor,
            layout__sequence_parallel=sequence_parallel,
            recompute__mode=recompute,
            recompute__modules=("core_attn",),
        )
    )
    expected = 4096 * 4096 * factor + scores * 32 * 4096**2
    assert sum(activations.layer(s, False).values()) == pytest.approx(expected)


def test_full_recomputation_keeps_the_input_of_a_layer(plan):
    assert activations.layer_input(shape(plan())) == 2 * 4096 * 4096


def test_zero_1_on_eight_devices(plan):
    """16 bytes a parameter become 4 + 12/8."""
    got = steady(plan, 1e9, precision__gradients="bf16", optimizer__zero=1, optimizer__shards=8)
    assert got == pytest.approx(5.5)


@pytest.mark.parametrize(("name", "expected"), [("adam", 12), ("sgd", 8), ("adam8bit", 6)])
def test_bytes_of_optimizers(plan, name, expected):
    """K of the ZeRO formula: master copy 4 and the moments."""
    s = shape(plan(optimizer__name=name))
    assert s.master_bytes + static_memory.states_per_parameter(s) == expected


def test_interleaving_keeps_its_published_share_more(plan):
    """1 + (p - 1)/(p·m) times the memory that plain 1F1B keeps on the first stage."""
    p, m = 4, 2
    s = shape(plan(layout__pipeline=p, layout__stages=((4,) * p,) * m, layout__group=p, batch__count=64))
    chunks = sum(activations.in_flight(s, 0))
    assert chunks / m / p == pytest.approx(1 + (p - 1) / (p * m), abs=1 / (p * m))


def test_what_the_published_utilisation_implies(plan):
    """4695 tokens/s at 57 % is a device of 380 TFLOP/s; the 13B run's 55.4 % is one of 403:
    they contradict each other."""
    seven = flops.step(shape(plan(layout__data=1, batch__count=1))).model / 4096 * 4695 / 0.57
    thirteen = shape(
        plan(
            model__hidden=5120,
            model__heads=40,
            model__query_groups=40,
            model__ffn=13824,
            layout__stages=((40,),),
            layout__data=1,
            batch__count=1,
        )
    )
    other = flops.step(thirteen).model / 4096 * 2562 / 0.554
    assert seven == pytest.approx(380e12, rel=0.005)
    assert other == pytest.approx(403e12, rel=0.005)


def test_no_recomputation_explains_the_published_hardware_utilisation(plan):
    """65 % over 57 % is 1.140; selective recomputation gives 1.047 and full 1.327."""
    s = shape(plan(recompute__mode="selective", recompute__modules=("core_attn",)))
    work = flops.step(s)
    assert work.hardware / work.model == pytest.approx(1.047, abs=0.002)


def test_four_of_forty_layers_recomputed(plan):
    thirteen = shape(
        plan(
            model__hidden=5120, model__heads=40, model__query_groups=40, model__ffn=13824, layout__stages=((40,),),
            recompute__mode="full", recompute__full_layers=((4,),),
        )
    )  # fmt: skip
    work = flops.step(thirteen)
    assert work.hardware / work.model == pytest.approx(1.033, abs=0.002)


@pytest.mark.parametrize(("groups", "share"), [(32, 1), (8, 1 / 4), (1, 1 / 32)])
def test_key_value_cache(plan, groups, share):
    """4·L·b·h(s + n) bytes in 16 bits; grouped and multi-query attention keep their share of it."""
    s = shape(plan(model__query_groups=groups))
    assert cache(s, 0, 4 * 4096) == pytest.approx(4 * 32 * 4 * 4096 * 4096 * share)


def test_plain_arithmetic_of_the_sources():
    assert 8 * 1 * 2 == 16 and 59392 * 2**20 == 58 * 2**30 and 1 * 4 * 1 * 8 == 32
    assert round(2562 / 1860, 3) == 1.377 and round(120 / 35.5, 2) == 3.38
