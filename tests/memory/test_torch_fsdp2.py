"""--use-torch-fsdp2: weights, gradients and states sharded over all data-parallel ranks, partly gathered
temporarily."""

from __future__ import annotations

import pytest

import preflight

RUN = (
    "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
    "--group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 "
    "--micro-batch-size 1 --global-batch-size 16 --bf16 --lr 1e-4 --train-iters 10 --vocab-size 128256 "
    "--make-vocab-size-divisible-by 1 --tokenizer-type NullTokenizer --untie-embeddings-and-output-weights --swiglu "
    "--normalization RMSNorm --disable-bias-linear --position-embedding-type rope --attention-dropout 0 "
    "--hidden-dropout 0 --no-gradient-accumulation-fusion --ckpt-format torch_dist --use-torch-fsdp2"
)
N = 8.03e9
TABLE = 128256 * 4096


def stage(*more, world=8):
    report = preflight.check_command(
        [*RUN.split(), *more], world_size=world, device="h100", target="megatron@0.19.0", env={}
    )
    memory = report.jobs[0].memory
    assert memory.stages and not memory.taken, memory.taken
    return {term.name: term for term in memory.stages[0].terms}, memory.stages[0]


def test_everything_that_stays_is_divided_over_the_data_ranks():
    terms, _ = stage()
    sizes = {"weights": 2, "gradients": 2, "master weights": 4, "optimizer states": 8}
    for name, each in sizes.items():
        assert terms[name].high == pytest.approx(each * N / 8, rel=0.01)


def test_context_parallel_ranks_share_it_as_well():
    one, two = (stage("--context-parallel-size", str(size))[0] for size in (1, 2))
    assert one["weights"].high == two["weights"].high


def test_gradients_are_in_32_bits_between_the_step_and_the_next():
    terms, found = stage()
    stays = sum(term.high for term in terms.values() if term.kind == "steady")
    assert found.steady - stays == pytest.approx(2 * N / 8, rel=0.01)


def test_one_layer_is_whole_at_the_least_and_two_with_gradients_at_the_most():
    whole = stage()[0]["gathered weights"]
    layer = (N - 2 * TABLE) / 32
    assert whole.low == pytest.approx(2 * layer, rel=0.01)
    assert whole.high == pytest.approx(2 * (3 * layer + TABLE), rel=0.01)


def test_without_resharding_all_weights_are_whole_when_the_backward_pass_begins():
    whole = stage("--torch-fsdp2-no-reshard-after-forward")[0]["gathered weights"]
    assert whole.low == pytest.approx(2 * (N - TABLE), rel=0.01)
    assert whole.low < whole.high < 1.25 * whole.low


def test_step_time_is_not_claimed():
    report = preflight.check_command(RUN.split(), world_size=8, device="h100", target="megatron@0.19.0", env={})
    assert "not modeled" in preflight.estimate_step_time(report.jobs[0]).unknown[0]


def test_mindspeeds_own_file_may_say_otherwise():
    words = RUN.replace("--ckpt-format torch_dist", "--use-flash-attn --use-mcore-models --fsdp2-config-path own.yaml")
    report = preflight.check_command(words.split(), world_size=8, device="910B4", target="mindspeed-llm@2.3.0", env={})
    memory = report.jobs[0].memory
    assert memory.taken == ("preflight has no memory formula for PyTorch's FSDP2 with a separate config file",)
    assert memory.verdict == "at-risk" and not any(finding.rule == "predicted-oom" for finding in report.findings)
    terms = {term.name: term for term in memory.stages[0].terms}
    assert terms["master weights"].low == 0 and terms["activations: fc1 output"].low == 0
    layer = (N - 2 * TABLE) / 32
    assert terms["gathered weights"].high == pytest.approx(
        2 * (4 * layer + TABLE) + 2 * (layer + TABLE) + 4 * layer, rel=0.01
    )
