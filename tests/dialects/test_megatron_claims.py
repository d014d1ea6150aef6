"""The Megatron family: claimed documents, and their targets."""

from __future__ import annotations

import pytest
from megatron_reading import document

from preflight.dialects import Surroundings
from preflight.dialects.megatron import MegatronDialect
from preflight.loaders.command_line import load_command
from preflight.run.request import Request, Target


@pytest.mark.parametrize(
    ("text", "name", "ours"),
    [
        ("torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 2", "a.sh", True),
        (
            (
                "torchrun --nproc-per-node 8 my_train.py --num-layers 2 --hidden-size 8 --seq-length 8 "
                "--micro-batch-size 1"
            ),
            "a.sh",
            True,
        ),
        ("torchrun --nproc-per-node 8 train.py --lr 1e-4 --batch-size 8", "a.sh", False),
        ("python convert_ckpt.py --num-layers 2 --hidden-size 8 --seq-length 8 --micro-batch-size 1", "a.sh", False),
        (
            "python tools/memory_estimator.py --num-layers 2 --hidden-size 8 --seq-length 8 --micro-batch-size 1",
            "a.sh",
            False,
        ),
        (
            (
                "python tools/report_theoretical_memory.py --num-layers 2 --hidden-size 8 --seq-length 8 "
                "--micro-batch-size 1"
            ),
            "a.sh",
            False,
        ),
        (
            "torchrun finetune_t5.py --base-path b --dataset d --max-encoder-length 9 --save s --lr 1 --batch-size 4 "
            "--train-iters 9 --lr-decay-style noam --inspect-iters 9 --model-config m --warmup-iters 9 --loss-scale 9",
            "a.sh",
            False,
        ),
        ("torchrun finetune_t5.py --save s --lr 1 --train-iters 9 --lr-decay-style cosine", "a.sh", True),
        ("MODEL_ARGS:\n  --num-layers: 12\n", "a.yaml", True),
        ("MODEL_ARGS:\n  num_layers: 12\n", "a.yaml", False),
        (
            "language_model: {hidden_size: 8, num_layers: 2}\nmodel_parallel: {tensor_model_parallel_size: 2}\n",
            "a.yaml",
            True,
        ),
        ("trainer: {devices: 8}\nmodel: {tensor_model_parallel_size: 2, hidden_size: 8}\n", "nemo.yaml", False),
        ("actor_rollout_ref: {actor: {megatron: {tensor_model_parallel_size: 2}}}\n", "verl.yaml", False),
        ("megatron: true\ntensor_model_parallel_size: 2\nmodel: Qwen/Qwen3-8B\n", "swift.yaml", False),
    ],
)
def test_claims_by_content(text: str, name: str, ours: bool) -> None:
    assert MegatronDialect().claims(document(text, name), Request()) is ours


@pytest.mark.parametrize(
    ("command", "wanted", "target"),
    [
        ("pretrain_gpt.py --num-layers 2", "", "megatron@0.20.0"),
        ("pretrain_gpt.py --num-layers 2", "megatron", "megatron@0.20.0"),
        ("pretrain_gpt.py --num-layers 2 --encoder-tensor-model-parallel-size 1", "", "megatron@0.13.0"),
        ("pretrain_gpt.py --num-layers 2 --use-fused-rmsnorm --tokenizer-name-or-path x", "", "mindspeed-llm@master"),
        ("posttrain_gpt.py --num-layers 2", "", "mindspeed-llm@master"),
        ("posttrain_gpt.py --num-layers 2", "mindspeed", "mindspeed@master"),
        ("pretrain_gpt.py --num-layers 2 --use-fused-rmsnorm", "megatron@0.12.1", "megatron@0.12.1"),
        ("pretrain_gpt.py --num-layers 2 --unaligned-linear", "", "mindspeed@master"),
        ("pretrain_gpt.py --num-layers 2", "megatron@0.12.0", "megatron@0.12.1"),
        ("pretrain_gpt.py --num-layers 2", "megatron@v0.19.0", "megatron@0.19.0"),
        ("pretrain_gpt.py --num-layers 2 --DDP-impl local --use-flash-attn", "", "megatron@0.20.0"),
        ("pretrain_gpt.py --num-layers 2", "mindspeed-llm", "mindspeed-llm@master"),
        ("pretrain_gpt.py --num-layers 2", "mindspeed-llm@2.1.0", "mindspeed-llm@2.1.0"),
        ("pretrain_gpt.py --num-layers 2", "mindspeed@2.3.0_core_r0.12.1", "mindspeed@2.3.0"),
        ("pretrain_gpt.py --num-layers 2", "mindspeed-llm@26.0", "mindspeed-llm@26.0.0"),
        ("pretrain_gpt.py --num-layers 2 --muon-momentum 0.9", "mindspeed-llm@26", "mindspeed-llm@26.1.0"),
        ("pretrain_gpt.py --num-layers 2 --mtp-after-norm --tokenizer-name-or-path x", "", "mindspeed-llm@2.3.0"),
    ],
)
def test_target(command: str, wanted: str, target: str) -> None:
    request = Request(target=Target.parse(wanted) if wanted else None)
    reading = MegatronDialect().read(
        load_command(command.split()), Surroundings(request, lambda d, n: None, lambda n: None)
    )
    assert str(reading.target) == target
