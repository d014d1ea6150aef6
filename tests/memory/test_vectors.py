"""Published figures, recomputed: states, ZeRO, FLOPs."""

from __future__ import annotations

import pytest

from preflight.memory import flops, parameters, states
from preflight.memory.parameters import Parameters
from preflight.memory.shape import shape

GB = 1e9


def steady(plan, phi, **changes):
    s = shape(plan(**changes))
    return sum(term.high for term in states.steady_terms(s, Parameters(phi, 0, 0, 0))) / GB


def test_llama2_7b_has_its_published_number_of_parameters(plan):
    assert parameters.model(shape(plan())) == pytest.approx(6_738_415_616)


def test_llama2_13b_has_its_published_number_of_parameters(plan):
    thirteen = plan(model__hidden=5120, model__heads=40, model__query_groups=40, model__ffn=13824, layout__stages=((40,),))
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


@pytest.mark.parametrize(("shards", "gradients", "expected"), [(1, "none", 70.0), (8, "none", 8.75), (8, "fp16", 22.75)])
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
        plan(model__hidden=5120, model__heads=40, model__query_groups=40, model__ffn=13824, layout__stages=((40,),), layout__data=1, batch__count=1)
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
