"""The plan of MindSpeed's own options: grids, exchanged activations, distributed recomputation."""

from __future__ import annotations

import pytest
from megatron_reading import SIZES, read


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--num-layer-list 5,7,6,6 --pipeline-model-parallel-size 4", {"layout.stages": ((5, 7, 6, 6),)}),
        ("--noop-layers 22,23 --pipeline-model-parallel-size 2", {"layout.stages": ((12, 10),)}),
        ("--n-shared-experts 2 --num-experts 8 --moe-ffn-hidden-size 100", {"model.shared_ffn": 200}),
        ("--first-k-dense-replace 1 --num-experts 8 --num-layers 3", {"model.expert_layers": (False, True, True)}),
        ("--use-flash-attn --transformer-impl local", {"model.attention": "flash"}),
        ("--gelu-tanh --post-norm", {"model.gated": True, "model.gate_kept": 4, "model.post_norm": True}),
        ("--geglu --output-logit-softcapping 30.0", {"model.gated": True, "model.gate_kept": 1, "model.capped": True}),
        ("--swiglu", {"model.gated": True, "model.gate_kept": 0, "model.post_norm": False, "model.capped": False}),
        ("", {"model.gated": False, "model.gate_kept": 0}),
        ("--swiglu --fc-type up_down", {"model.gated": False, "model.gate_kept": 0}),
        (
            "--layerwise-disaggregated-training --tensor-model-parallel-size 4 --pipeline-model-parallel-size 4",
            {"layout.world": 16, "layout.data": 1},
        ),
        (
            "--qk-rope-head-dim 64 --qk-nope-head-dim 128 --multi-head-latent-attention",
            {"model.latent": True, "model.qk_rope_dim": 64, "model.qk_nope_dim": 128},
        ),
    ],
)
def test_mindspeed_plan(options: str, expected: dict[str, object]) -> None:
    values = read(SIZES + options, target="mindspeed-llm").plan.values()
    assert {name: values[name].raw for name in expected} == expected


@pytest.mark.parametrize("release", ["2.0.0", "2.1.0", "2.3.0"])
def test_a_release_has_its_own_names_for_what_megatron_has_now(release: str) -> None:
    named = "--num-experts 8 --moe-intermediate-size 100 --multi-head-latent-attention --kv-lora-rank 512"
    values = read(SIZES + named, target=f"mindspeed-llm@{release}").plan.values()
    assert values["model.latent"].raw is True
    assert values["model.expert_ffn"].raw == 100


LATENT = "--multi-latent-attention --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128"
WIDE = "--multi-latent-attention --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 192"


@pytest.mark.parametrize(
    ("options", "padded"),
    [
        (f"{LATENT} --use-flash-attn", (256, 256)),
        (f"{LATENT} --use-flash-attn --padded-base-length 64", (192, 192)),
        (f"{LATENT} --use-flash-attn --shape-order BNSD", (192, 192)),
        (f"{LATENT} --use-flash-attn --enable-mla-absorb", (256, 256)),
        (f"{LATENT} --use-flash-attn --mla-fa-without-pad", None),
        (f"{LATENT} --use-flash-attn --mla-fa-divide-qk", None),
        (f"{WIDE} --use-flash-attn", None),
        (LATENT, None),
    ],
)
def test_how_mindspeed_pads_heads(options: str, padded: tuple[int, int] | None) -> None:
    assert read(SIZES + options, target="mindspeed-llm").plan.values()["model.padded_dims"].raw == padded
    assert read(SIZES + options, target="megatron").plan.values()["model.padded_dims"].raw is None


GRID = "--tensor-model-parallel-size 4 --tp-2d"
HYBRID = "--context-parallel-size 4 --context-parallel-algo hybrid_cp_algo --use-flash-attn"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            f"{GRID} --tp-x 2 --tp-y 2 --context-parallel-algo ulysses_cp_algo",
            {"layout.tensor_x": 2, "layout.exchanged": 2},
        ),
        (f"{GRID} --tp-x 2 --tp-y 2", {"layout.tensor_x": 2, "layout.exchanged": 2}),
        (f"{GRID} --tp-x 2 --tp-y 2 --use-flash-attn", {"layout.tensor_x": 2, "layout.exchanged": 0}),
        (
            f"{GRID} --tp-x 4 --tp-y 1 --context-parallel-algo ulysses_cp_algo",
            {"layout.tensor_x": 4, "layout.exchanged": 0},
        ),
        (
            "--context-parallel-size 2 --context-parallel-algo ulysses_cp_algo --use-flash-attn",
            {"layout.tensor_x": None, "layout.exchanged": 2},
        ),
        (
            "--context-parallel-size 2 --context-parallel-algo megatron_cp_algo --use-flash-attn",
            {"layout.exchanged": 0},
        ),
        ("--context-parallel-size 1 --context-parallel-algo ulysses_cp_algo", {"layout.exchanged": 0}),
        (f"{HYBRID} --ulysses-degree-in-cp 2", {"layout.exchanged": 2}),
        (f"{HYBRID} --ulysses-degree-in-cp 1", {"layout.exchanged": 0}),
    ],
)
def test_what_mindspeed_exchanges(options: str, expected: dict[str, object]) -> None:
    values = read(SIZES + options, target="mindspeed-llm").plan.values()
    assert {name: values[name].raw for name in expected} == expected


CHUNKS = "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3 --recompute-activation-function"
BLOCK = "--recompute-granularity full --recompute-method block --recompute-num-layers"


@pytest.mark.parametrize(
    ("options", "shared", "dealt"),
    [
        (f"{CHUNKS} --recompute-activation-function-num-layers 2", False, (2, 2, 2, 2)),
        (f"{CHUNKS} --recompute-activation-function-num-layers 5", False, (3, 3, 3, 3)),
        (
            f"{CHUNKS} --recompute-activation-function-num-layers 5 --enable-recompute-layers-per-pp-rank",
            True,
            (2, 1, 1, 1),
        ),
        (
            f"{CHUNKS} --recompute-activation-function-num-layers 1 --enable-recompute-layers-per-pp-rank",
            True,
            (1, 0, 0, 0),
        ),
        (
            f"{CHUNKS} --recompute-activation-function-num-layers 3 --enable-recompute-layers-per-pp-rank {BLOCK} 2",
            True,
            (2, 1, 1, 1),
        ),
        (f"{CHUNKS} --recompute-activation-function-num-layers 1 {BLOCK} 1", False, (2, 2, 2, 2)),
        (f"{CHUNKS} --enable-recompute-layers-per-pp-rank {BLOCK} 2", True, (3, 3, 3, 3)),
    ],
)
def test_how_mindspeed_deals_out_what_is_recomputed(options: str, shared: bool, dealt: tuple[int, ...]) -> None:
    recompute = read(SIZES + options, target="mindspeed-llm").plan.recompute
    ((_, counts),) = recompute.operators.raw
    assert recompute.shared.raw is shared
    assert counts == tuple((n, n) for n in dealt)
