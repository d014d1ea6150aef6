"""Rows of NVIDIA's tables that no constant was fitted on, as Megatron-LM commands: from Megatron-Bridge, and from
dgxc-benchmarking in the containers of spring 2025."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("bridge.tsv")
EARLIER = Path(__file__).with_name("dgxc.tsv")
# fmt: off
MODELS: dict[str, str] = {
    "llama3-8b": "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 14336 "
        "--num-query-groups 8 --vocab-size 128256",
    "llama3-70b": "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --ffn-hidden-size 28672 "
        "--num-query-groups 8 --vocab-size 128256",
    "llama3.1-405b": "--num-layers 126 --hidden-size 16384 --num-attention-heads 128 --ffn-hidden-size 53248 "
        "--num-query-groups 8 --vocab-size 128256",
    "gpt-oss-120b": "--num-layers 36 --hidden-size 2880 --num-attention-heads 64 --ffn-hidden-size 2880 "
        "--num-query-groups 8 --kv-channels 64 --vocab-size 201088 --num-experts 128 --moe-router-topk 4 "
        "--moe-ffn-hidden-size 2880 --window-size 128,0 --window-attn-skip-freq 2 --softmax-type learnable "
        "--activation-func-clamp-value 7.0 --glu-linear-offset 1.0",
    "qwen3-30b": "--num-layers 48 --hidden-size 2048 --num-attention-heads 32 --ffn-hidden-size 6144 "
        "--num-query-groups 4 --kv-channels 128 --vocab-size 151936 --num-experts 128 --moe-router-topk 8 "
        "--moe-ffn-hidden-size 768 --qk-layernorm",
    "qwen3-235b": "--num-layers 94 --hidden-size 4096 --num-attention-heads 64 --ffn-hidden-size 12288 "
        "--num-query-groups 4 --kv-channels 128 --vocab-size 151936 --num-experts 128 --moe-router-topk 8 "
        "--moe-ffn-hidden-size 1536 --qk-layernorm",
    "deepseek-v3": "--num-layers 61 --hidden-size 7168 --num-attention-heads 128 --ffn-hidden-size 18432 "
        "--multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 "
        "--v-head-dim 128 --vocab-size 129280 --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048 "
        "--moe-shared-expert-intermediate-size 2048 --moe-layer-freq ([0]*3+[1]*58) --qk-layernorm",
    "nemotron4-15b": "--num-layers 32 --hidden-size 6144 --num-attention-heads 48 --ffn-hidden-size 24576 "
        "--num-query-groups 8 --vocab-size 256000 --squared-relu",
    "nemotron4-340b": "--num-layers 96 --hidden-size 18432 --num-attention-heads 96 --ffn-hidden-size 73728 "
        "--num-query-groups 8 --kv-channels 192 --vocab-size 256000 --squared-relu",
    "grok1": "--num-layers 64 --hidden-size 6144 --num-attention-heads 48 --ffn-hidden-size 32768 "
        "--num-query-groups 8 --kv-channels 128 --vocab-size 131072 --num-experts 8 --moe-router-topk 2",
}
FIXED = ("--bf16 --tokenizer-type NullTokenizer --train-iters 100 --lr 1e-4 --mock-data "
    "--make-vocab-size-divisible-by 128 --disable-bias-linear --normalization RMSNorm --position-embedding-type rope "
    "--untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 --cross-entropy-loss-fusion "
    "--grad-reduce-in-bf16 --attention-backend flash --use-distributed-optimizer --overlap-grad-reduce "
    "--overlap-param-gather")
# fmt: on


class Published(NamedTuple):
    """A row: its name, the command, the machine, seconds of a step, its container. options: options of the recipe that
    the table omits; None if unknown. layout: the properties that are the same in other containers."""

    name: str
    argv: list[str]
    device: str
    ranks: int
    seconds: float
    container: str
    options: list[str] | None
    layout: tuple[str, ...]


def published(table: Path = TABLE) -> Iterator[Published]:
    """Every row of a table."""
    for line in table.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield _row(line.rstrip("\n").split("\t"), table)


def _row(cells: list[str], table: Path) -> Published:
    (model, device, ranks, precision), numbers = cells[:4], cells[4:12]
    figure, container, *more = cells[12:]
    batch, micro, sequence, tensor, pipeline, context, virtual, expert = map(int, numbers)
    words = [
        "pretrain_gpt.py", *MODELS[model].split(), *FIXED.split(), "--global-batch-size", str(batch),
        "--micro-batch-size", str(micro), "--seq-length", str(sequence), "--max-position-embeddings", "8192",
        "--tensor-model-parallel-size", str(tensor), "--pipeline-model-parallel-size", str(pipeline),
        "--context-parallel-size", str(context), *_experts(expert, "--num-experts" in MODELS[model]),
        *_precision(precision),
    ]  # fmt: skip
    words += ["--group-query-attention"] if "--num-query-groups" in words else []
    words += [] if "--squared-relu" in words else ["--swiglu"]
    words += ["--sequence-parallel"] if tensor > 1 else []
    words += ["--tp-comm-overlap"] if table == EARLIER and tensor > 1 and "--num-experts" not in words else []
    words += ["--num-virtual-stages-per-pipeline-rank", str(virtual)] if virtual > 1 else []
    if pipeline > 1 and model in ("llama3.1-405b", "qwen3-235b"):
        words += ["--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"]
    name = f"{model} {device}x{ranks} {precision} TP{tensor} PP{pipeline} VP{virtual} EP{expert} ({container})"
    added = [word for word in more[0].split() if word != "-"] if more and more[0] else None
    seconds = float(figure) if table == EARLIER else batch * sequence / float(figure) / int(ranks)
    return Published(name, words, device, int(ranks), seconds, container, added, tuple(cells[:12]))


def _experts(expert: int, routed: bool) -> list[str]:
    more = "--expert-tensor-parallel-size 1 --moe-grouped-gemm --moe-token-dispatcher-type alltoall"
    more += " --moe-router-load-balancing-type aux_loss"
    return ["--expert-model-parallel-size", str(expert), *more.split()] if routed else []


def _precision(recipe: str) -> list[str]:
    if recipe == "bf16":
        return []
    if recipe == "nvfp4":
        return ["--fp4-format", "e2m1", "--fp4-recipe", "nvfp4"]
    return ["--fp8-format", "hybrid", "--fp8-recipe", recipe, "--fp8-param-gather"]
