"""Two-dimensional tensor parallelism and exchanged heads: the tensors between linears, one buffer, attention's
output."""

from __future__ import annotations

import pytest
from memory_plans import make

from preflight.memory import activations, parameters, peak
from preflight.memory.estimate import stage
from preflight.memory.inputs_from_plan import Missing, shape
from preflight.run.cluster import Cluster, Device

CLUSTER = Cluster(device=Device("test", 80e9, 79e9))
GRID = {"layout__tensor": 4, "layout__tensor_x": 2, "model__kernels": "torch-npu"}


def test_two_dimensions_of_tensor_parallelism_divide_what_lies_between_linears_as_sequence_parallelism_does():
    grid, split = (
        shape(make(**{**GRID, **more})) for more in ({}, {"layout__tensor_x": None, "layout__sequence_parallel": True})
    )
    assert activations.layer(grid, routed=False) == activations.layer(split, routed=False)
    assert parameters.stage(grid, 0) == parameters.stage(split, 0)
    assert peak.head_input(grid) == peak.head_input(split) / 2 + 2 * 4096 * 4096, "the output layer's input is gathered"


@pytest.mark.parametrize("width", [2, 4])
def test_two_dimensions_of_tensor_parallelism_gather_into_one_buffer(width):
    terms = stage(shape(make(**{**GRID, "layout__tensor_x": width})), 0, CLUSTER).terms
    assert [term.high for term in terms if term.name == "gathered inputs"] == [2 * 4096 * 2 * 11008 / width]
    assert not [term for term in stage(shape(make()), 0, CLUSTER).terms if term.name == "gathered inputs"]


@pytest.mark.parametrize("size", [0, -1, 2.0, "2", True])
def test_a_width_that_is_no_size_is_no_estimate(size):
    with pytest.raises(Missing, match="width of the 2-D tensor parallel group"):
        shape(make(**{**GRID, "layout__tensor_x": size}))


def test_an_exchange_of_heads_for_tokens_keeps_attentions_output_twice():
    plain, exchanged = (
        activations.layer(shape(make(layout__context=2, layout__exchanged=ranks)), routed=False) for ranks in (0, 2)
    )
    assert exchanged["attention output, exchanged"] == plain["attention output"] == 2 * 2048 * 4096
    assert sum(exchanged.values()) == sum(plain.values()) + 2 * 2048 * 4096


@pytest.mark.parametrize(("ranks", "heads"), [(0, 2), (2, 2), (4, 8), (8, 8)])
def test_keys_are_repeated_where_more_ranks_exchange_heads_than_there_are(ranks, heads):
    grouped = {"model__query_groups": 8, "layout__tensor": 4, "layout__context": max(ranks, 1)}
    kept = activations.layer(shape(make(**grouped, layout__exchanged=ranks)), routed=False)
    assert kept["query key value"] == 2 * (4096 / max(ranks, 1)) * (8 + 2 * heads) * 128
