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


def _f() -> Any:
    """A field of its own each time: dataclasses write the name into it."""
    return field(default_factory=_unset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The network's shape."""

    family: Value = _f()  # "gpt", "llama", "glm", "deepseek", "hybrid", "bert", … as the dialect knows it
    layers: Value = _f()  # decoder layers, without multi-token-prediction layers
    hidden: Value = _f()
    heads: Value = _f()
    query_groups: Value = _f()  # key/value heads; equals heads for plain multi-head attention
    head_dim: Value = _f()
    ffn: Value = _f()  # intermediate size of a dense layer
    gated: Value = _f()  # True: two input projections (SwiGLU and kin)
    vocab: Value = _f()  # rows of the embedding as built, padding included
    sequence: Value = _f()  # tokens per sample
    positions: Value = _f()  # rows of a learned position table; 0 when positions are not learned
    tied: Value = _f()  # input and output embedding share weights
    bias: Value = _f()  # biases in attention output and MLP linears
    qkv_bias: Value = _f()
    norm: Value = _f()  # "rms" or "layer"
    qk_norm: Value = _f()
    hidden_dropout: Value = _f()
    attention_dropout: Value = _f()
    attention: Value = _f()  # "flash", "fused", "unfused", "mla-flash" …: the backend that really runs
    # multi-head latent attention; None when not latent
    latent: Value = _f()  # True / False
    q_lora_rank: Value = _f()
    kv_lora_rank: Value = _f()
    qk_nope_dim: Value = _f()
    qk_rope_dim: Value = _f()
    v_dim: Value = _f()
    # mixture of experts; experts None or 0 when dense
    experts: Value = _f()
    top_k: Value = _f()
    expert_ffn: Value = _f()
    shared_ffn: Value = _f()  # intermediate size of all shared experts of a layer together; 0 or None without
    expert_layers: Value = _f()  # tuple of bool per layer: True where the MLP is a mixture
    capacity: Value = _f()  # capacity factor; None when tokens are not dropped
    mtp: Value = _f()  # multi-token-prediction layers; None or 0 without
    lora_rank: Value = _f()  # None without
    lora_targets: Value = _f()  # tuple of names


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the run is spread over devices."""

    world: Value = _f()  # ranks
    data: Value = _f()
    tensor: Value = _f()
    pipeline: Value = _f()
    context: Value = _f()
    expert: Value = _f()
    expert_tensor: Value = _f()
    replica: Value = _f()  # ranks that hold one copy of the model, where that is more than tensor * pipeline * context
    virtual: Value = _f()  # virtual stages per pipeline rank; None when there are none
    sequence_parallel: Value = _f()  # effective
    tensor_x: Value = _f()  # 2-D tensor parallel, x and y; None without
    tensor_y: Value = _f()
    stages: Value = _f()  # tuple over virtual chunks of tuples over pipeline ranks: decoder layers held; layers[v][s]
    schedule: Value = _f()  # "1f1b", "interleaved", "gpipe", "zero-bubble-v", "dual-pipe-v", "seqpipe", …
    group: Value = _f()  # micro-batches per virtual-stage group of the interleaved schedule
    sequence_splits: Value = _f()  # sequence pipeline: parts per sequence
    context_method: Value = _f()
    data_stated: bool = False  # the framework wants data parallel stated (MindFormers) instead of deriving it


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Samples per step."""

    micro: Value = _f()  # samples per micro-batch and data-parallel rank
    count: Value = _f()  # micro-batches per step and data-parallel rank
    total: Value = _f()  # samples per step


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompute:
    """Activation recomputation."""

    mode: Value = _f()  # "none", "full", "selective"
    method: Value = _f()  # Megatron's "uniform" or "block"; None
    layers: Value = _f()  # recompute_num_layers; None
    modules: Value = _f()  # tuple of module names for "selective"
    full_layers: Value = _f()  # layers[v][s] fully recomputed, where counts are given per stage; None
    patterns: Value = _f()  # tuple of (pattern, counts per [v][s]) for operator patterns; None
    offload: Value = _f()  # activation offloading or swap is on


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Bytes per element are derived from these names: "fp32", "bf16", "fp16", "fp8"."""

    parameters: Value = _f()
    compute: Value = _f()
    gradients: Value = _f()
    master: Value = _f()  # master copy in the optimizer; None when there is none
    states: Value = _f()  # Adam moments
    fp8: Value = _f()  # fp8 recipe or None
    fp8_parameters: Value = _f()


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """The optimizer and how its states are sharded."""

    name: Value = _f()  # "adam", "sgd", "muon", "adam8bit", "lomo", "came" …
    zero: Value = _f()  # 0 none, 1 optimizer states, 2 and gradients, 3 and weights
    shards: Value = _f()  # ranks over which dense states are sharded
    expert_shards: Value = _f()  # the same for expert weights
    instances: Value = _f()  # distributed optimizer instances
    offload: Value = _f()  # fraction of states on the host
    fsdp: Value = _f()  # None, "torch-fsdp2", "megatron-fsdp", "pynative"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What the last stage keeps for the loss, and other switches that memory depends on."""

    cross_entropy: Value = _f()  # "unfused", "native", "te", "mindspore"
    logits_fp32: Value = _f()
    implementation: Value = _f()  # "transformer_engine", "local", "mindspeed", "mindspore-legacy", "mindspore-mcore", "pynative"
    gradient_fusion: Value = _f()  # weight gradients accumulate straight into the main gradient buffer
    mask_from_loader: Value = _f()  # the data loader makes an attention mask of sequence² bytes
    cuda_graphs: Value = _f()
    overlap_expert: Value = _f()  # expert-parallel all-to-all overlapped with compute
    dispatcher: Value = _f()
    grouped_gemm: Value = _f()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """What a predict or inference config adds."""

    enabled: Value = _f()
    batch: Value = _f()
    length: Value = _f()
    block_size: Value = _f()
    blocks: Value = _f()


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
