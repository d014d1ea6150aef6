"""A training run in neutral terms. Every field is a Value: known or unknown, with its origin and place.

Sizes are counts, lengths tokens. A dialect fills what it can; what it leaves out stays unknown, and nothing is guessed.
Fields that may legitimately be absent hold the raw value None (no experts, no virtual stages, no query groups).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from preflight.request import Target
from preflight.value import Value, unknown


def _unset() -> Value:
    return unknown()


_F: Any = field(default_factory=_unset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The network's shape."""

    family: Value = _F  # "gpt", "llama", "glm", "deepseek", "hybrid", "bert", … as the dialect knows it
    layers: Value = _F  # decoder layers, without multi-token-prediction layers
    hidden: Value = _F
    heads: Value = _F
    query_groups: Value = _F  # key/value heads; equals heads for plain multi-head attention
    head_dim: Value = _F
    ffn: Value = _F  # intermediate size of a dense layer
    gated: Value = _F  # True: two input projections (SwiGLU and kin)
    vocab: Value = _F  # rows of the embedding as built, padding included
    sequence: Value = _F  # tokens per sample
    positions: Value = _F  # rows of a learned position table; 0 when positions are not learned
    tied: Value = _F  # input and output embedding share weights
    bias: Value = _F  # biases in attention output and MLP linears
    qkv_bias: Value = _F
    norm: Value = _F  # "rms" or "layer"
    qk_norm: Value = _F
    hidden_dropout: Value = _F
    attention_dropout: Value = _F
    attention: Value = _F  # "flash", "fused", "unfused", "mla-flash" …: the backend that really runs
    # multi-head latent attention; None when not latent
    latent: Value = _F  # True / False
    q_lora_rank: Value = _F
    kv_lora_rank: Value = _F
    qk_nope_dim: Value = _F
    qk_rope_dim: Value = _F
    v_dim: Value = _F
    # mixture of experts; experts None or 0 when dense
    experts: Value = _F
    top_k: Value = _F
    expert_ffn: Value = _F
    shared_ffn: Value = _F  # intermediate size of all shared experts of a layer together; 0 or None without
    expert_layers: Value = _F  # tuple of bool per layer: True where the MLP is a mixture
    capacity: Value = _F  # capacity factor; None when tokens are not dropped
    mtp: Value = _F  # multi-token-prediction layers; None or 0 without
    lora_rank: Value = _F  # None without
    lora_targets: Value = _F  # tuple of names


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the run is spread over devices."""

    world: Value = _F  # ranks
    data: Value = _F
    tensor: Value = _F
    pipeline: Value = _F
    context: Value = _F
    expert: Value = _F
    expert_tensor: Value = _F
    replica: Value = _F  # ranks that hold one copy of the model, where that is more than tensor * pipeline * context
    virtual: Value = _F  # virtual stages per pipeline rank; None when there are none
    sequence_parallel: Value = _F  # effective
    tensor_x: Value = _F  # 2-D tensor parallel, x and y; None without
    tensor_y: Value = _F
    stages: Value = _F  # tuple over virtual chunks of tuples over pipeline ranks: decoder layers held; layers[v][s]
    schedule: Value = _F  # "1f1b", "interleaved", "gpipe", "zero-bubble-v", "dual-pipe-v", "seqpipe", …
    group: Value = _F  # micro-batches per virtual-stage group of the interleaved schedule
    sequence_splits: Value = _F  # sequence pipeline: parts per sequence
    context_method: Value = _F
    data_stated: bool = False  # the framework wants data parallel stated (MindFormers) instead of deriving it


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Samples per step."""

    micro: Value = _F  # samples per micro-batch and data-parallel rank
    count: Value = _F  # micro-batches per step and data-parallel rank
    total: Value = _F  # samples per step


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompute:
    """Activation recomputation."""

    mode: Value = _F  # "none", "full", "selective"
    method: Value = _F  # Megatron's "uniform" or "block"; None
    layers: Value = _F  # recompute_num_layers; None
    modules: Value = _F  # tuple of module names for "selective"
    full_layers: Value = _F  # layers[v][s] fully recomputed, where counts are given per stage; None
    patterns: Value = _F  # tuple of (pattern, counts per [v][s]) for operator patterns; None
    offload: Value = _F  # activation offloading or swap is on


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Bytes per element are derived from these names: "fp32", "bf16", "fp16", "fp8"."""

    parameters: Value = _F
    compute: Value = _F
    gradients: Value = _F
    master: Value = _F  # master copy in the optimizer; None when there is none
    states: Value = _F  # Adam moments
    fp8: Value = _F  # fp8 recipe or None
    fp8_parameters: Value = _F


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """The optimizer and how its states are sharded."""

    name: Value = _F  # "adam", "sgd", "muon", "adam8bit", "lomo", "came" …
    zero: Value = _F  # 0 none, 1 optimizer states, 2 and gradients, 3 and weights
    shards: Value = _F  # ranks over which dense states are sharded
    expert_shards: Value = _F  # the same for expert weights
    instances: Value = _F  # distributed optimizer instances
    offload: Value = _F  # fraction of states on the host
    fsdp: Value = _F  # None, "torch-fsdp2", "megatron-fsdp", "pynative"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What the last stage keeps for the loss, and other switches that memory depends on."""

    cross_entropy: Value = _F  # "unfused", "native", "te", "mindspore"
    logits_fp32: Value = _F
    implementation: Value = _F  # "transformer_engine", "local", "mindspeed", "mindspore-legacy", "mindspore-mcore", "pynative"
    gradient_fusion: Value = _F  # weight gradients accumulate straight into the main gradient buffer
    mask_from_loader: Value = _F  # the data loader makes an attention mask of sequence² bytes
    cuda_graphs: Value = _F
    overlap_expert: Value = _F  # expert-parallel all-to-all overlapped with compute
    dispatcher: Value = _F
    grouped_gemm: Value = _F


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """What a predict or inference config adds."""

    enabled: Value = _F
    batch: Value = _F
    length: Value = _F
    block_size: Value = _F
    blocks: Value = _F


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything neutral about a run. unmodelled: features that the memory model does not know, by name."""

    target: Target
    model: Model = field(default_factory=Model)
    layout: Layout = field(default_factory=Layout)
    batch: Batch = field(default_factory=Batch)
    recompute: Recompute = field(default_factory=Recompute)
    precision: Precision = field(default_factory=Precision)
    optimizer: Optimizer = field(default_factory=Optimizer)
    loss: Loss = field(default_factory=Loss)
    inference: Inference = field(default_factory=Inference)
    unmodelled: tuple[str, ...] = ()

    def values(self) -> dict[str, Value]:
        """Every Value by dotted name, in the order of the classes above."""
        parts = ("model", "layout", "batch", "recompute", "precision", "optimizer", "loss", "inference")
        return {
            f"{part}.{f.name}": value
            for part in parts
            for f in fields(getattr(self, part))
            if isinstance(value := getattr(getattr(self, part), f.name), Value)
        }
