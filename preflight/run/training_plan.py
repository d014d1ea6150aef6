"""A training run in neutral terms. Every field is a Value: known or unknown, with its origin and place."""

from __future__ import annotations

from collections.abc import Callable

from preflight.run.request import Target
from preflight.run.unmodelled_features import Unmodelled
from preflight.run.value import Value, unknown
from preflight.source.record import NamedTuple, dataclass, field, fields


class Sizes(NamedTuple):
    """A parallel layout in plain numbers, as proposed by the search. None: the framework derives the value.

    recompute: "none", "selective" or "full"; full_layers: fully recomputed layers per pipeline stage instead; listed:
    layers per stage, including the full ones, in which cheap operators are recomputed; stages: decoder layers per
    pipeline stage if they must be written, chunks: by virtual stage and pipeline stage, likewise; sharded: shard the
    optimizer states; fused: enable a kernel that keeps less memory, for "attention" or for the "loss"; fp8: compute
    products in FP8 by this recipe, "" leaves the precision as it is. micro_batches 0: their number is derived.
    """

    tensor: int
    pipeline: int
    context: int
    expert: int
    expert_tensor: int
    data: int
    virtual: int
    sequence_parallel: bool
    micro: int
    micro_batches: int
    recompute: str = "none"
    full_layers: tuple[int, ...] | None = None
    listed: tuple[int, ...] | None = None
    stages: tuple[int, ...] | None = None
    chunks: tuple[tuple[int, ...], ...] | None = None
    sharded: bool = False
    fused: str = ""
    fp8: str = ""


class LinearAttention(NamedTuple):
    """A gated delta rule instead of attention: the share of such layers, its heads and their sizes, the width of the
    preceding convolution."""

    share: float
    key_heads: int
    key_dim: int
    value_heads: int
    value_dim: int
    kernel: int = 4

    @property
    def keys(self) -> int:
        """Channels of the queries, and of the keys."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        """Channels of the values, and of their gates."""
        return self.value_heads * self.value_dim


class SparseAttention(NamedTuple):
    """An indexer chooses the keys of each query: its heads and their size, the number of keys, the share of the layers
    with their own choice. fused: the scores of all keys are not materialized. taught: the indexer's loss needs them."""

    heads: int
    dim: int
    chosen: int
    share: float = 1.0
    fused: bool = True
    taught: bool = False

    def seen(self, sequence: float) -> float:
        """The average number of keys that a query sees: all before it, up to the chosen number."""
        k = min(self.chosen, sequence)
        return k - k * k / (2 * sequence)


_NOT_GIVEN = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompute:
    """Activation recomputation."""

    mode: Value = _NOT_GIVEN  # "none", "full", "selective"
    method: Value = _NOT_GIVEN  # Megatron's "uniform" or "block"; None
    layers: Value = _NOT_GIVEN  # recompute_num_layers; None
    shared: Value = _NOT_GIVEN  # True: the virtual stages of a rank share that number, distributed layer by layer
    modules: Value = _NOT_GIVEN  # tuple of module names for "selective"
    full_layers: Value = _NOT_GIVEN  # layers[v][s] fully recomputed, if counts are given per stage; None
    # tuple of (names of kept outputs as the memory model calls them, counts per [v][s]); None
    operators: Value = _NOT_GIVEN
    # tuple of (a recomputed linear as adapters name it, or "scores"; counts per [v][s]); None
    repeated: Value = _NOT_GIVEN
    doubtful: Value = _NOT_GIVEN  # tuple of kept outputs, some of which may be freed at the peak; () or None
    offload: Value = _NOT_GIVEN  # activation offloading or swap is on


@dataclass(frozen=True, slots=True, kw_only=True)
class Colocated:
    """Models in addition to the actor, on its devices."""

    policy: Value = _NOT_GIVEN  # True: the loss needs log-probabilities of every token
    reference: Value = _NOT_GIVEN  # frozen copies of the weights that are on the device during a training step
    rollout: Value = _NOT_GIVEN  # share of the device that an engine uses for generation; None: it has other devices
    asleep: Value = _NOT_GIVEN  # True: the engine frees its weights and cache before a training step
    # parts of the actor that are off the device during generation: "weights", "gradients", "optimizer"
    freed: Value = _NOT_GIVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The network's shape."""

    family: Value = _NOT_GIVEN  # "gpt", "llama", "glm", "deepseek", "hybrid", "bert", … as the dialect knows it
    names: Value = _NOT_GIVEN  # tuple of paths and names that may show which published model it is
    layers: Value = _NOT_GIVEN  # decoder layers, without multi-token-prediction layers
    hidden: Value = _NOT_GIVEN
    heads: Value = _NOT_GIVEN
    query_groups: Value = _NOT_GIVEN  # key/value heads; equals heads for plain multi-head attention
    head_dim: Value = _NOT_GIVEN
    ffn: Value = _NOT_GIVEN  # intermediate size of a dense layer
    gated: Value = _NOT_GIVEN  # True: two input projections (SwiGLU and similar)
    # tensors of the intermediate size that the gate's activation keeps, if no kernel fuses it; None or 0
    gate_kept: Value = _NOT_GIVEN
    vocab: Value = _NOT_GIVEN  # rows of the embedding as built, padding included
    sequence: Value = _NOT_GIVEN  # tokens per sample
    positions: Value = _NOT_GIVEN  # rows of a learned position table; 0 if positions are not learned
    rotary_base: Value = _NOT_GIVEN  # base of rotary positions; None for other kinds of positions
    rotary_part: Value = _NOT_GIVEN  # part of each head that has rotary positions; None for other kinds of positions
    tied: Value = _NOT_GIVEN  # input and output embedding share weights
    bias: Value = _NOT_GIVEN  # biases in attention output and MLP linears
    qkv_bias: Value = _NOT_GIVEN
    norm: Value = _NOT_GIVEN  # "rms" or "layer"
    qk_norm: Value = _NOT_GIVEN
    post_norm: Value = _NOT_GIVEN  # True: the outputs of attention and of the MLP pass through a separate norm
    hidden_dropout: Value = _NOT_GIVEN
    attention_dropout: Value = _NOT_GIVEN
    attention: Value = _NOT_GIVEN  # "flash", "fused", "unfused", "mla-flash" …: the backend that really runs
    window: Value = _NOT_GIVEN  # number of preceding tokens that a query sees in windowed layers; None without windows
    window_every: Value = _NOT_GIVEN  # every n-th layer sees all tokens; None or 0: all layers are windowed
    variant: Value = _NOT_GIVEN  # LinearAttention or SparseAttention; None without
    kernels: Value = _NOT_GIVEN  # "transformer_engine", "local", "inference_optimized", "torch-npu", "mindspore"
    cross_entropy: Value = _NOT_GIVEN  # the loss: "unfused", "unfused-copy", "native", "te", "mindspore"
    capped: Value = _NOT_GIVEN  # True: logits pass through a tanh, and its output is kept
    latent: Value = _NOT_GIVEN  # multi-head latent attention: True / False; the sizes are None if not latent
    q_lora_rank: Value = _NOT_GIVEN
    kv_lora_rank: Value = _NOT_GIVEN
    qk_nope_dim: Value = _NOT_GIVEN
    qk_rope_dim: Value = _NOT_GIVEN
    v_dim: Value = _NOT_GIVEN
    down_split: Value = _NOT_GIVEN  # True: latent attention's down projections are divided over tensor-parallel ranks
    # padded head sizes of queries and keys, and of values, for the attention kernel; None: not padded
    padded_dims: Value = _NOT_GIVEN
    experts: Value = _NOT_GIVEN  # mixture of experts; None or 0 if dense
    top_k: Value = _NOT_GIVEN
    expert_ffn: Value = _NOT_GIVEN
    shared_ffn: Value = _NOT_GIVEN  # intermediate size of all shared experts of a layer together; 0 or None without
    expert_layers: Value = _NOT_GIVEN  # tuple of bool per layer: True if the MLP is a mixture
    capacity: Value = _NOT_GIVEN  # capacity factor; None if tokens are not dropped
    dispatcher: Value = _NOT_GIVEN  # how tokens travel to their experts: "alltoall", "allgather", "flex" …
    router_copy: Value = _NOT_GIVEN  # bytes per element of the copy of its input that a router keeps; 0 without one
    # True: experts' outputs are weighted when they are put back in order; otherwise their activations are
    weighted_last: Value = _NOT_GIVEN
    grouped_gemm: Value = _NOT_GIVEN  # True: the experts of a rank are one parameter
    # hybrid: one letter per decoder layer, M Mamba, * attention, - MLP, E experts; None without
    parts: Value = _NOT_GIVEN
    mamba: Value = _NOT_GIVEN  # hybrid: (heads, head size, state size, groups); None without
    mtp: Value = _NOT_GIVEN  # multi-token-prediction layers; None or 0 without
    lora_rank: Value = _NOT_GIVEN  # None without
    beside: Value = _NOT_GIVEN  # (frozen, trained, bytes per token) of parts next to a frozen decoder; None without
    # linears with an adapter: "query", "key", "value", "qkv", "projection", "gate", "up", "fc1", "fc2"; () without
    lora_targets: Value = _NOT_GIVEN
    # tensors of heads x sequence² in 16 bits that attention adds: per sample in each layer in flight; permanent;
    # permanent per sample; None without
    pair_bias: Value = _NOT_GIVEN
    # residual streams: their number, bytes per element that a connection keeps (minimum, maximum), bytes that it holds
    # temporarily; None if there is one
    streams: Value = _NOT_GIVEN
    gate_apart: Value = _NOT_GIVEN  # True: the gate's activation and the product both keep their output


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The distribution of the run over devices."""

    world: Value = _NOT_GIVEN  # ranks
    data: Value = _NOT_GIVEN
    tensor: Value = _NOT_GIVEN
    pipeline: Value = _NOT_GIVEN
    context: Value = _NOT_GIVEN
    expert: Value = _NOT_GIVEN
    expert_tensor: Value = _NOT_GIVEN
    extended: Value = _NOT_GIVEN  # tensor-parallel ranks hold separate experts instead of parts of each expert
    # ranks that hold one copy of the model, if more than tensor * pipeline * context
    replica: Value = _NOT_GIVEN
    virtual: Value = _NOT_GIVEN  # virtual stages per pipeline rank; None if there are none
    sequence_parallel: Value = _NOT_GIVEN  # effective
    tensor_x: Value = _NOT_GIVEN  # ranks of the first direction of 2-D tensor parallelism; None without
    # tuple over virtual chunks of tuples over pipeline ranks: decoder layers held; layers[v][s]
    stages: Value = _NOT_GIVEN
    # "1f1b", "interleaved", "all-forward" (interleaved), "gpipe", "zero-bubble-v", "dual-pipe-v", "seqpipe", …
    schedule: Value = _NOT_GIVEN
    group: Value = _NOT_GIVEN  # micro-batches per virtual-stage group of the interleaved schedule
    sequence_splits: Value = _NOT_GIVEN  # sequence pipeline: parts per sequence
    deferred: Value = _NOT_GIVEN  # micro-batches with a deferred weight gradient of the output layer; 0 without
    # number of ranks that exchange heads for tokens around attention and keep its output on both sides; 0
    exchanged: Value = _NOT_GIVEN
    # tuple of communication hidden behind computation: "backward", "tensor", "gradients", "parameters", "experts",
    # "stages", "graphs" if kernels start from a recorded graph, and "whole graph" if there is one for the iteration
    overlaps: Value = _NOT_GIVEN
    weight_shards: Value | None = None  # ranks that share a weight beyond tensor parallelism, if supported
    only_expert_tensor: int = 0  # the only supported expert tensor size; 0 if it can be chosen, or follows tensor
    expert_grid: bool = False  # expert tensor x expert x pipeline ranks must divide the devices, too
    heads_split: bool = True  # tensor parallelism divides attention by its heads
    data_stated: bool = False  # data parallel must be stated (MindFormers) instead of being derived
    # how layers may be split unevenly over stages: "any" (every stage), "ends" (first and last), "" (not at all)
    split: str = ""
    chunked: bool = False  # virtual stages may each have a different number of layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Samples per step."""

    micro: Value = _NOT_GIVEN  # samples per micro-batch and data-parallel rank
    count: Value = _NOT_GIVEN  # micro-batches per step and data-parallel rank
    total: Value = _NOT_GIVEN  # samples per step
    varying: Value = _NOT_GIVEN  # True: samples are not padded, the sequence length is only their limit
    pairs: Value = _NOT_GIVEN  # True: preference tuning; a sample is two sequences, a frozen reference model is kept
    # number of tokens up to which a micro-batch is filled with samples of any length; None without
    packed: Value = _NOT_GIVEN
    mask_from_loader: Value = _NOT_GIVEN  # the data loader makes an attention mask of sequence² bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Bytes per element are derived from these names: "fp32", "bf16", "fp16", "fp8",
    and "none" (gradients that are not kept)."""

    parameters: Value = _NOT_GIVEN
    compute: Value = _NOT_GIVEN
    gradients: Value = _NOT_GIVEN
    master: Value = _NOT_GIVEN  # master copy in the optimizer; None if there is none
    states: Value = _NOT_GIVEN  # Adam moments
    second: Value = _NOT_GIVEN  # the second moment, if it differs; None: as the first
    fp8: Value = _NOT_GIVEN  # fp8 recipe or None
    fp8_parameters: Value = _NOT_GIVEN
    fp4: Value = _NOT_GIVEN  # fp4 recipe or None
    gather_buffer: Value = _NOT_GIVEN  # gathered weights pass through a separate buffer at full precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """The optimizer and how its states are sharded."""

    name: Value = _NOT_GIVEN  # "adam", "sgd", "muon", "adam8bit", "lomo", "came" …
    zero: Value = _NOT_GIVEN  # 0 none, 1 optimizer states, 2 and gradients, 3 and weights
    shards: Value = _NOT_GIVEN  # ranks over which dense states are sharded
    expert_shards: Value = _NOT_GIVEN  # the same for expert weights
    # True: the stored weights are sharded with the states (MindSpore optimizer parallel)
    weights_sharded: Value = _NOT_GIVEN
    offload: Value = _NOT_GIVEN  # fraction of states on the host
    fsdp: Value = _NOT_GIVEN  # the name of the fully sharding implementation; None without
    double_buffer: Value = _NOT_GIVEN  # fully sharded: two buffers for the gradients of a layer
    whole_after_forward: Value = _NOT_GIVEN  # True: fully sharded weights stay unsharded until the backward pass
    # states are divided by whole parameters: "all", "either" (tables, too, in older versions); "" or None if not
    owned: Value = _NOT_GIVEN
    in_place: Value = _NOT_GIVEN  # True: the update certainly needs no copy of a parameter
    gradient_fusion: Value = _NOT_GIVEN  # weight gradients accumulate straight into the main gradient buffer
    # states are on the host and are copied to the device in this number of parts during a step; 0 or None if they stay
    # on the device
    swapped: Value = _NOT_GIVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """Additional values of a predict or inference config."""

    enabled: Value = _NOT_GIVEN
    batch: Value = _NOT_GIVEN
    length: Value = _NOT_GIVEN
    block_size: Value = _NOT_GIVEN
    blocks: Value = _NOT_GIVEN


class Bound(NamedTuple):
    """The bounds of an unknown value. name: its dotted name. how: how a caller states it."""

    name: str
    least: int
    most: int
    how: str = ""


class Supposed(NamedTuple):
    """A plan in which unknown values of a run have their usual values, or the nearest that the framework accepts, and
    the list of these."""

    plan: Plan
    reasons: tuple[str, ...]
    replaced: tuple[str, ...] = ()
    """The reasons for which an explicit size was replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything neutral about a run. unmodelled: features without a memory formula. doubted: such features
    that may be on. architecture: compute capability of the device that the run was checked for; 0 if unknown. bounds:
    bounds of unknown sizes, from the dialect. supposed: creates the plan for the memory estimate if this one leaves too
    much open; None if there is none."""

    target: Target
    model: Model = field(default_factory=Model)
    layout: Layout = field(default_factory=Layout)
    batch: Batch = field(default_factory=Batch)
    recompute: Recompute = field(default_factory=Recompute)
    precision: Precision = field(default_factory=Precision)
    optimizer: Optimizer = field(default_factory=Optimizer)
    inference: Inference = field(default_factory=Inference)
    colocated: Colocated = field(default_factory=Colocated)
    unmodelled: tuple[Unmodelled, ...] = ()
    doubted: tuple[Unmodelled, ...] = ()
    untimed: tuple[Unmodelled, ...] = ()
    """Features that may change the step time but have no formula."""
    architecture: int = 0
    bounds: tuple[Bound, ...] = ()
    supposed: Callable[[], Supposed | None] | None = None

    def values(self) -> dict[str, Value]:
        """Every Value by dotted name, in the order of the classes above."""
        found = {}
        for part, names in _PARTS.items():
            of = getattr(self, part)
            found.update({full: value for full, name in names if isinstance(value := getattr(of, name), Value)})
        return found


_PARTS = {
    part: tuple((f"{part}.{f.name}", f.name) for f in fields(cls))
    for part, cls in (
        *(("model", Model), ("layout", Layout), ("batch", Batch), ("recompute", Recompute)),
        *(("precision", Precision), ("optimizer", Optimizer), ("inference", Inference), ("colocated", Colocated)),
    )
}
