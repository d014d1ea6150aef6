"""Memory differences of undescribed releases of MindSpeed-LLM and Megatron."""

from __future__ import annotations

import pytest

import preflight
from preflight.memory import Stage

RUN = (
    "pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 4096 "
    "--max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size {batch} --bf16 --lr 1e-4 --train-iters 10 "
    "--vocab-size 128000 --make-vocab-size-divisible-by 1 --tokenizer-type NullTokenizer "
    "--untie-embeddings-and-output-weights --use-flash-attn --use-mcore-models {more}"
)
VIRTUAL = "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2"


def stages(target: str, batch: int = 2, more: str = "") -> tuple[Stage, ...]:
    report = preflight.check_command(
        RUN.format(batch=batch, more=more).split(), world_size=2 if more else 1, device="910b", target=target
    )
    memory = report.jobs[0].memory
    assert memory.stages, memory.unknown
    return memory.stages


def term(stage: Stage, name: str) -> float:
    return sum(term.high for term in stage.terms if term.name == name)


@pytest.mark.parametrize(("release", "bytes_per_logit"), [("1.0.0", 10), ("2.1.0", 10), ("2.2.0", 6), ("26.1.0", 6)])
def test_the_loss_kept_a_copy_of_the_logits_before_2_2(release, bytes_per_logit):
    (stage,) = stages(f"mindspeed-llm@{release}")
    assert term(stage, "logits and loss") == pytest.approx(bytes_per_logit * 4096 * 128000, rel=1e-3)


@pytest.mark.parametrize(
    ("target", "together"),
    [("mindspeed-llm@2.0.0", True), ("mindspeed-llm@2.2.0", False), ("megatron@0.9", True), ("megatron@0.10", False)],
)
def test_as_many_micro_batches_as_stages_ran_all_forward_first(target, together):
    last = stages(target, batch=2, more=VIRTUAL)[-1]
    assert (term(last, "losses of earlier micro-batches") > 0) is together


def test_more_micro_batches_than_stages_never_did():
    few, many = (stages("mindspeed-llm@2.0.0", batch=batch, more=VIRTUAL)[-1] for batch in (2, 8))
    assert term(many, "losses of earlier micro-batches") == 0
    assert term(few, "activations: fc1 output") > term(many, "activations: fc1 output")


def test_a_stated_release_tells_whether_adam_copies_a_parameter():
    """Activations are few, so that the copy of the embedding would be the peak."""
    first = {
        target: stages(target, more=f"{VIRTUAL} --seq-length 64")[-1].allocated_peak
        for target in ("mindspeed-llm", "mindspeed-llm@2.3.0", "mindspeed-llm@2.0.0")
    }
    assert first["mindspeed-llm"] - first["mindspeed-llm@2.3.0"] > 4 * 128000 * 1024 * 0.5
    assert first["mindspeed-llm@2.0.0"] >= first["mindspeed-llm"]


EXPERTS = (
    "--num-experts 8 --moe-router-topk 2 --moe-grouped-gemm --moe-token-dispatcher-type alltoall --swiglu "
    "--disable-bias-linear --moe-router-load-balancing-type none"
)


def kept(target: str, more: str) -> dict[str, float]:
    report = preflight.check_command(
        [*RUN.format(batch=2, more=more).split()], world_size=1, device="h100", target=target
    )
    return {term.name.removeprefix("activations: "): term.high for term in report.jobs[0].memory.stages[0].terms}


@pytest.mark.parametrize(("target", "outputs"), [("megatron@0.12.1", True), ("megatron@0.13.0", False)])
def test_experts_outputs_were_kept_to_be_weighted_before_0_13(target, outputs):
    found = kept(target, EXPERTS)
    assert ("expert outputs" in found) is outputs
    if outputs:
        assert found["expert outputs"] == 8 * 2 * (4096 * 2) * 1024


def test_a_router_in_32_bits_kept_a_copy_of_its_input_before_0_13():
    older, newer = (
        kept(target, f"{EXPERTS} --moe-router-dtype fp32")["router"]
        for target in ("megatron@0.12.1", "megatron@0.13.0")
    )
    assert older - newer == 8 * 4 * 4096 * 1024
    assert kept("megatron@0.12.1", EXPERTS)["router"] == newer


PRECISE = "--use-precision-aware-optimizer --use-distributed-optimizer"


@pytest.mark.parametrize(
    ("more", "bytes_each"),
    [
        ("--use-distributed-optimizer", 4),
        (PRECISE, 2),
        (f"{PRECISE} --main-params-dtype fp16", 2),
        (f"{PRECISE} --fp8-format hybrid --fp8-recipe mxfp8", 4),
        (f"{PRECISE} --fp8-format hybrid --fp8-recipe delayed", 2),
    ],
)
def test_a_precise_optimizer_keeps_what_the_weights_lack(more, bytes_each):
    """The 16 bits of an fp32 weight that the bf16 weight lacks."""
    found = kept("megatron@0.19.0", f"{more} --transformer-impl transformer_engine")
    assert found["master weights"] == pytest.approx(2 * bytes_each * found["weights"] / 4)


LATENT = (
    "--multi-latent-attention --q-lora-rank 512 --kv-lora-rank 256 --qk-head-dim 64 --qk-pos-emb-head-dim 64 "
    "--v-head-dim 64 --tensor-model-parallel-size 2"
)


def parameters(target: str, more: str) -> float:
    report = preflight.check_command(RUN.format(batch=2, more=more).split(), world_size=2, device="h100", target=target)
    return report.jobs[0].memory.stages[0].parameters


def test_down_projections_were_divided_over_tensor_parallel_ranks_before_0_14():
    older, newer = (parameters(f"megatron@{version}", LATENT) for version in ("0.13.0", "0.14.0"))
    assert newer - older == 8 * 1024 * (512 + 256 + 64) / 2
    assert parameters("megatron@0.14.0", f"{LATENT} --transformer-impl local") == older


@pytest.mark.parametrize(("target", "tensors"), [("megatron@0.14.0", 1), ("megatron@0.15.0", 2)])
def test_an_unfused_gate_keeps_its_linear_half_since_0_15(target, tensors):
    found = kept(target, "--swiglu --no-bias-swiglu-fusion --disable-bias-linear")
    assert found["gate activation"] == pytest.approx(tensors * found["fc1 output"] / 2)
