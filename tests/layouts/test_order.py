"""Layouts are ranked as by an expert: fastest first, simplest among equals, with a price for little free memory."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest

from preflight.layouts.result import ALIKE, PRICE, ROOM, Found, in_classes, price
from preflight.run.training_plan import Sizes

BUDGET = 80.0


PLAIN = Sizes(1, 1, 1, 1, 1, 1, 1, False, 1, 1)


def found(seconds: float, free: float = 20.0, **sizes: int) -> Found:
    return Found(PLAIN._replace(**sizes), seconds, 0.0, 0.0, 0.0, free, None, ())  # type: ignore[arg-type]


def test_the_simplest_of_a_class_comes_first_and_the_classes_by_time():
    fast, simple, slow = found(10.0, tensor=4, pipeline=2), found(10.2), found(10.5)
    ordered = in_classes([slow, simple, fast], BUDGET)
    assert [one.seconds for one in ordered] == [10.2, 10.0, 10.5]
    assert [one.alike for one in ordered] == [1, 1, 2]


def test_a_layout_that_leaves_nothing_has_to_be_faster():
    full, roomy = found(10.0, free=0.0), found(10.25, tensor=2)
    assert [one.headroom for one in in_classes([full, roomy], BUDGET)] == [0.0, 20.0]  # alike: the simpler one
    roomy = found(10.1, tensor=2)
    assert [one.headroom for one in in_classes([full, roomy], BUDGET)] == [20.0, 0.0]
    assert [one.headroom for one in in_classes([full, roomy], math.inf)] == [0.0, 20.0]


def test_the_price_falls_with_what_is_free_and_ends_at_a_tenth():
    free = np.array([-math.inf, 0.0, ROOM * BUDGET / 2, ROOM * BUDGET, BUDGET])
    assert price(free, BUDGET) == pytest.approx([1 + PRICE, 1 + PRICE, 1 + PRICE / 2, 1.0, 1.0])


def test_every_layout_stays_and_no_class_is_wider_than_said():
    chance = random.Random(4)
    for _ in range(200):
        layouts = [found(chance.uniform(1, 1.3), tensor=2 ** chance.randrange(4)) for _ in range(chance.randrange(12))]
        ordered = in_classes(layouts, BUDGET)
        assert sorted(one.seconds for one in ordered) == sorted(one.seconds for one in layouts)
        for number in {one.alike for one in ordered}:
            times = [one.seconds for one in ordered if one.alike == number]
            assert max(times) <= min(times) * (1 + ALIKE) * 1.0001


SCRIPT = (
    "torchrun --nnodes 16 --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048"
    " --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1"
    " --global-batch-size 256 --train-iters 10 --lr 1e-4 --bf16 --vocab-size 50257 --tokenizer-type NullTokenizer\n"
)


@pytest.mark.slow
def test_layouts_are_timed_on_the_stated_network(tmp_path, real_cli):
    (tmp_path / "run.sh").write_text(SCRIPT)
    times = []
    for network in ("HDR", "2"):
        ran = real_cli("layouts", "run.sh", "--device", "a100", "--network", network, "--show", "1", "-f", "json")
        shown = real_cli("show", "run.sh", "--device", "a100", "--network", network, "-f", "json")
        now = json.loads(ran.out)["files"][0]["current"]["seconds"]
        assert now == pytest.approx(json.loads(shown.out)["runs"][0]["step_time"]["seconds"], rel=1e-3)
        times.append(now)
    assert times[1] > 1.5 * times[0]
