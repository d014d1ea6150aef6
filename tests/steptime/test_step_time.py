"""Step times depend on precision, size, links and schedule as an engineer expects, and the terms explain it."""

from __future__ import annotations

import pytest

import preflight
from preflight.steptime import StepTimeEstimate

SMALL = (
    "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 --num-query-groups 8 "
    "--group-query-attention --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256 --swiglu --bf16 "
    "--disable-bias-linear --normalization RMSNorm --untie-embeddings-and-output-weights --mock-data --train-iters 10 "
    "--tokenizer-type NullTokenizer --lr 1e-4 --use-distributed-optimizer --attention-dropout 0 --hidden-dropout 0"
)


def step(*more: str, world: int = 16, device: str = "h100", batch: int = 64) -> StepTimeEstimate:
    argv = ["pretrain_gpt.py", *SMALL.split(), "--micro-batch-size", "1", "--global-batch-size", str(batch), *more]
    env = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    report = preflight.check_command(argv, world_size=world, device=device, target="megatron@0.19.0", env=env)
    return preflight.estimate_step_time(report.jobs[0])


def seconds(*more: str, world: int = 16, device: str = "h100", batch: int = 64) -> float:
    found = step(*more, world=world, device=device, batch=batch)
    assert found.seconds is not None, found.unknown
    return found.seconds


def tensor(size: int) -> tuple[str, ...]:
    return ("--tensor-model-parallel-size", str(size), *(("--sequence-parallel",) if size > 1 else ()))


def pipeline(size: int) -> tuple[str, ...]:
    return ("--pipeline-model-parallel-size", str(size))


def test_terms_add_up_and_each_has_a_formula():
    found = step(*tensor(2), *pipeline(4))
    assert found.seconds == pytest.approx(sum(term.seconds for term in found.terms))
    assert found.low < found.seconds < found.high
    assert all(term.formula and term.unit == "s" and term.seconds >= 0 for term in found.terms)
    assert len(found.stages) == 4 and found.stages[3].seconds > found.stages[1].seconds  # the output layer


def test_a_step_without_a_device_is_unknown_and_says_why():
    argv = ["pretrain_gpt.py", *SMALL.split(), "--micro-batch-size", "1", "--global-batch-size", "16"]
    found = preflight.estimate_step_time(preflight.check_command(argv, world_size=16, target="megatron").jobs[0])
    assert found.seconds is None and "--device" in found.unknown[0]


def test_fp8_is_faster_but_not_twice_as_fast_and_its_use_is_of_its_own_peak():
    plain, fp8 = step(), step("--fp8-format", "hybrid", "--fp8-recipe", "tensorwise")
    assert 1.2 < plain.seconds / fp8.seconds < 1.8
    assert fp8.precision.startswith("FP8") and fp8.peak == pytest.approx(2 * plain.peak, rel=0.01)
    assert fp8.mfu < plain.mfu


def test_a_device_without_fp8_gains_nothing():
    assert seconds("--fp8-format", "hybrid", device="a100") == pytest.approx(seconds(device="a100"), rel=0.05)


def test_tensor_parallel_costs_time_and_more_between_nodes():
    one, two, eight = (seconds(*tensor(size)) for size in (1, 2, 8))
    assert one < two < eight
    assert seconds(*tensor(16), world=16) > 1.3 * eight


def test_hidden_exchange_costs_less():
    assert seconds(*tensor(8), "--tp-comm-overlap") < seconds(*tensor(8))
    assert seconds("--overlap-grad-reduce", "--overlap-param-gather", batch=16) < seconds(batch=16)


def test_virtual_stages_shrink_the_bubble():
    def bubble(found: StepTimeEstimate) -> float:
        return next(term.seconds for term in found.terms if term.name == "pipeline bubble")

    plain, virtual = step(*pipeline(4)), step(*pipeline(4), "--num-virtual-stages-per-pipeline-rank", "4")
    assert bubble(virtual) < 0.4 * bubble(plain)
    assert seconds(*pipeline(4), batch=128) < 2 * seconds(*pipeline(4), batch=64)


def test_recomputation_costs_about_a_third():
    again = seconds("--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers", "1")
    assert 1.2 < again / seconds() < 1.4
    block = seconds("--recompute-granularity", "full", "--recompute-method", "block", "--recompute-num-layers", "8")
    assert seconds() < block < again


def test_a_window_takes_less_attention():
    whole, windowed = step(), step("--window-size", "1024,0", "--window-attn-skip-freq", "4")
    attention = [next(t.seconds for t in one.terms if t.name == "attention") for one in (whole, windowed)]
    assert attention[1] == pytest.approx(attention[0] * (0.25 + 0.75 * 0.25), rel=0.01)


EXPERTS = (
    "--num-experts 64 --moe-router-topk 8 --moe-ffn-hidden-size 1792 --moe-grouped-gemm "
    "--moe-token-dispatcher-type alltoall --expert-tensor-parallel-size 1"
)


def test_experts_pay_for_exchange_and_more_beyond_the_fast_domain():
    def exchange(device: str, size: int) -> float:
        more = (*EXPERTS.split(), "--expert-model-parallel-size", str(size))
        found = step(*more, world=32, device=device)
        return next((t.seconds for t in found.terms if t.name == "expert-parallel exchange"), 0.0)

    assert exchange("h100", 1) == 0.0 < exchange("h100", 8) < exchange("h100", 32)
    assert exchange("gb200", 32) < 0.5 * exchange("h100", 32)  # 72 devices share the fast links


LONG = ("--seq-length", "65536", "--max-position-embeddings", "65536")
LATENT = (
    "--multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 "
    "--v-head-dim 128"
).split()
INDEXER = "--experimental-attention-variant dsa --dsa-indexer-n-heads 64 --dsa-indexer-head-dim 128 --dsa-indexer-topk"


def term(found: StepTimeEstimate, name: str) -> float:
    return next((one.seconds for one in found.terms if one.name == name), 0.0)


def test_linear_attention_grows_with_the_sequence_and_takes_the_place_of_attention():
    delta = ("--experimental-attention-variant", "gated_delta_net", "--linear-attention-freq", "4")
    plain, short, long = step(*LONG), step(*delta), step(*LONG, *delta)
    assert term(long, "attention") == pytest.approx(term(plain, "attention") / 4)
    assert term(long, "linear attention") == pytest.approx(8 * term(short, "linear attention"), rel=0.01)
    assert long.seconds < 0.7 * plain.seconds
    assert "linear attention" in long.assumed[0] and long.high / long.seconds > plain.high / plain.seconds


def test_sparse_attention_sees_the_chosen_keys_and_pays_for_the_choice():
    plain = step(*LONG, *LATENT)
    fused, written_out = (
        step(*LONG, *LATENT, *INDEXER.split(), "2048", "--dsa-kernel-backend", backend) for backend in ("cudnn", "none")
    )
    share = (2048 - 2048**2 / (2 * 65536)) / (65536 / 2)
    assert term(fused, "attention") == pytest.approx(share * term(plain, "attention"), rel=0.01)
    assert term(fused, "indexer of sparse attention") > term(fused, "attention")
    assert fused.seconds < plain.seconds < written_out.seconds
    half = step(
        *LONG, *LATENT, *INDEXER.split(), "2048", "--dsa-kernel-backend", "cudnn", "--dsa-indexer-topk-freq", "2"
    )
    name = "indexer of sparse attention"
    assert term(half, name) == pytest.approx(term(fused, name) / 2)


def test_a_recorded_graph_spares_the_host_and_one_of_the_iteration_spares_its_waits():
    more = (*EXPERTS.split(), "--expert-model-parallel-size", "8")
    parts = ("--cuda-graph-impl", "transformer_engine", "--cuda-graph-modules", "attn", "moe_router")
    gaps = [
        term(step(*more, *graph), "gaps between kernels")
        for graph in ((), parts, ("--cuda-graph-impl", "full_iteration"))
    ]
    assert gaps[0] > 2 * gaps[1] > 10 * gaps[2] > 0


def test_gradients_of_experts_count():
    dense, routed = step(batch=16), step(*EXPERTS.split(), "--expert-model-parallel-size", "1", batch=16)
    reduction = [next(t.seconds for t in one.terms if t.name == "gradient reduction") for one in (dense, routed)]
    assert reduction[1] > 2 * reduction[0]


def test_what_is_assumed_is_said():
    argv = [w if w != "NullTokenizer" else "HuggingFaceTokenizer" for w in SMALL.split()]
    at = argv.index("--vocab-size")
    argv = ["pretrain_gpt.py", *argv[:at], *argv[at + 2 :], "--tokenizer-model", "/nowhere/model"]
    argv += ["--micro-batch-size", "1", "--global-batch-size", "64"]
    report = preflight.check_command(argv, world_size=16, device="h100", target="megatron@0.19.0")
    found = preflight.estimate_step_time(report.jobs[0])
    assert found.seconds is not None and "vocabulary" in found.assumed[0]
    assert found.high / found.seconds > step().high / step().seconds


def test_unfused_attention_is_slow_where_matrix_units_do_not_take_its_heads():
    unfused = ("--attention-backend", "unfused", "--bf16")
    odd, even = (step(*unfused, "--kv-channels", str(width), device="a100") for width in (100, 104))
    shares = [next(term.seconds for term in one.terms if term.name == "attention") for one in (odd, even)]
    assert shares[0] > 2 * shares[1]
    fused = [step("--kv-channels", str(width), device="a100") for width in (100, 104)]
    assert fused[0].seconds < fused[1].seconds


def test_experts_one_by_one_start_more_kernels_than_grouped_ones():
    more = (*EXPERTS.split(), "--expert-model-parallel-size", "8")
    grouped = step(*more)
    one_by_one = step(*(word for word in more if word != "--moe-grouped-gemm"))
    name = "gaps between kernels"
    assert term(one_by_one, name) > term(grouped, name) and one_by_one.seconds > grouped.seconds


def on_ascend(*more: str) -> StepTimeEstimate:
    argv = ["posttrain_gpt.py", *SMALL.split(), "--micro-batch-size", "1", "--global-batch-size", "64"]
    argv += ["--use-mcore-models", "--use-flash-attn", "--use-fused-rmsnorm", "--use-fused-swiglu", *more]
    report = preflight.check_command(argv, world_size=16, device="910B1", target="mindspeed-llm@2.3.0")
    found = preflight.estimate_step_time(report.jobs[0])
    assert found.seconds is not None, found.unknown
    return found


def test_attention_of_ascend_is_slower_for_small_heads_and_short_sequences():
    def each(found: StepTimeEstimate, tokens: int) -> float:
        return term(found, "attention") / tokens**2

    usual, small = on_ascend(), on_ascend("--kv-channels", "64")
    assert term(small, "attention") == pytest.approx(0.75 * term(usual, "attention"))  # half the products
    long = on_ascend("--seq-length", "32768", "--max-position-embeddings", "32768")
    assert each(long, 32768) == pytest.approx(each(usual, 8192) * (1 + 1 / 32) / (1 + 1 / 8))
    wide = on_ascend("--kv-channels", "256")
    assert term(wide, "attention") == pytest.approx(2 * term(usual, "attention"))
    assert term(step("--kv-channels", "64"), "attention") == pytest.approx(term(step(), "attention") / 2)


def test_swapped_attention_makes_the_experts_run_again():
    routed = (
        "--num-experts", "8", "--moe-router-topk", "2", "--moe-grouped-gemm", "--moe-token-dispatcher-type", "alltoall"
    )  # fmt: skip
    swapped = ("--swap-attention", "--recompute-num-layers", "32", "--recompute-method", "block")
    plain, again = on_ascend(*routed), on_ascend(*routed, *swapped)
    experts = sum(term(plain, name) for name in ("products of experts", "routing tokens", "expert-parallel exchange"))
    assert 0.2 * experts < term(again, "recomputation") < 0.45 * experts
    half = on_ascend(*routed, *swapped[:2], "16", *swapped[3:])
    assert term(half, "recomputation") == pytest.approx(term(again, "recomputation") / 2)
