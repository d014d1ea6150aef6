"""The plain numbers that memory depends on."""

from __future__ import annotations

from preflight.source.record import NamedTuple, dataclass

CUDA, TORCH_NPU = ("transformer_engine", "local", "inference_optimized"), "torch-npu"
"""Kernels whose fused attention keeps one fp32 log-sum-exp per head and query; Ascend's keeps maximum and sum, 8 fp32
lanes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention: ranks of the compressed projections and head dimensions."""

    q_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    v: int
    down: int = 1  # tensor-parallel ranks that share a down projection
    padded: tuple[int, int] | None = None  # heads of queries and keys, and of values, as attention's kernel gets them


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Mixture of experts: counts, intermediate sizes, which layers."""

    count: int
    top_k: int
    ffn: int
    shared: int
    layers: tuple[bool, ...]
    capacity: float | None
    router_copy: int  # bytes per element of the copy of its input that the router keeps in a wider type; 0 without one
    weighted_last: bool  # whether outputs are weighted when they are put back in order; otherwise activations are


class Streams(NamedTuple):
    """Residual streams: their number, and the bytes per element that a connection keeps, and holds temporarily."""

    number: int
    least: int
    most: int
    held: int


class Mamba(NamedTuple):
    """Mamba-2 layers of a hybrid model."""

    heads: int
    head: int
    state: int
    groups: int

    @property
    def inner(self) -> int:
        """d: the inner size."""
        return self.heads * self.head

    @property
    def convolved(self) -> int:
        """The input of the convolution: x, B and C."""
        return self.inner + 2 * self.groups * self.state

    @property
    def projected(self) -> int:
        """Rows of the input projection: z, x, B, C and dt."""
        return self.inner + self.convolved + self.heads


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes in elements, counts, and bytes per element. Notation of the formulas: h hidden, f ffn, a heads, g query
    groups, d head_dim, s sequence, b micro, t tensor, c context, e expert, x expert_tensor, v virtual, p pipeline, V
    vocab."""

    stages: tuple[tuple[int, ...], ...]
    hidden: int
    ffn: int
    heads: int
    groups: int
    head_dim: int
    gated: bool
    # number of tensors of intermediate size that the gate's activation keeps besides its input and the product
    gate_kept: int
    vocab: int
    sequence: int
    positions: int
    tied: bool
    bias: bool
    qkv_bias: bool
    norm: int  # vectors per norm: 1 RMS, 2 layer norm
    qk_norm: bool
    post_norm: bool  # a norm after attention and after the MLP
    hidden_dropout: bool
    attention_dropout: bool
    attention: str
    latent: Latent | None
    experts: Experts | None
    parts: str  # for a hybrid model: one letter per decoder layer; "" if every layer has attention and an MLP
    mamba: Mamba | None
    mtp: int
    streams: Streams | None  # residual streams, if there are several
    # tensors of heads x sequence² that attention adds: per sample in a layer in flight; permanent; permanent per sample
    pair_bias: tuple[float, float, float] | None
    # parts next to a frozen decoder: frozen and trained parameters, and the bytes that they keep per token
    beside: tuple[float, float, float] | None
    adapter_rank: int
    adapters: tuple[str, ...]  # linears with a low-rank adapter; then only adapters are trained
    gate_apart: bool  # the gate's activation and the product are kept separately
    statistics: int  # bytes the fused attention keeps per head and query
    tensor: int
    # ranks of a 2-D tensor-parallel group that share the rows of a linear; 0: tensor parallelism is not 2-D
    tensor_x: int
    pipeline: int
    context: int
    exchanged: int  # ranks that exchange heads for tokens around attention; 0: none
    expert: int
    expert_tensor: int
    data: int
    sequence_parallel: bool
    schedule: str
    group: int
    splits: int  # parts per sequence of a sequence pipeline
    micro: int
    count: int  # micro-batches per step
    # why there may be fewer activations than counted: unpadded samples, swapped activations; "" if there are not
    open: str
    frozen: float  # copies of the weights besides the trained ones
    policy: bool  # the loss is a reinforcement-learning loss
    rollout: float  # share of the device that a colocated engine uses for generation; 0: none
    asleep: bool  # the engine frees it before a training step
    freed: tuple[str, ...]  # parts of the actor that are off the device during generation
    recompute: str
    method: str | None
    recompute_layers: int
    recompute_shared: bool  # the chunks of a rank share that number, distributed layer by layer
    full_layers: tuple[tuple[int, ...], ...] | None
    modules: frozenset[str]
    # recomputed outputs, layers[v][s] beyond the fully recomputed
    operators: tuple[tuple[tuple[str, ...], tuple[tuple[int, ...], ...]], ...]
    repeated: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]  # the same for matrix work of these operators
    doubtful: frozenset[str]  # kept outputs of which some may be gone at the peak
    parameter_bytes: float
    gradient_bytes: int
    master_bytes: int
    state_bytes: float  # bytes of an optimizer moment, on average
    fp16: bool
    fp8: bool
    fp8_recipe: str
    fp8_parameters: bool
    gather_buffer: bool  # gathered weights pass through a separate buffer
    optimizer: str
    zero: int
    weights_sharded: bool  # stored weights are sharded with the optimizer states (MindSpore)
    shards: int
    expert_shards: int
    offload: float
    owned: str  # states of a whole parameter are on one rank: "" no, "all", "either" (tables, too, in older versions)
    # number of parts in which states on the host are copied to the device during a step; 0: they stay on the device
    swapped: int
    in_place: bool  # Adam certainly makes no copy of a parameter
    # kind of sharding by layer, each unsharded while it is in use: "megatron-fsdp", "torch-fsdp2" …; "" without
    fsdp: str
    whole_after_forward: bool  # fully sharded weights stay unsharded from the forward to the backward pass
    double_buffer: bool  # two buffers for such a unit's gradients
    cross_entropy: str
    capped: bool  # logits pass through a tanh
    kernels: str
    gradient_fusion: bool
    loader_mask: bool
    deferred: int  # micro-batches with a deferred weight gradient of the output layer
    dispatcher: str
    grouped_gemm: bool
    architecture: int

    @property
    def virtual(self) -> int:
        return len(self.stages)

    @property
    def tokens(self) -> float:
        """T: tokens of a micro-batch on a context-parallel rank."""
        return self.sequence * self.micro / self.context

    @property
    def split_tokens(self) -> float:
        """S: tokens that stay on a rank between the tensor-parallel regions. 2-D tensor parallelism divides tokens by x
        and the hidden size by y there, which leaves the same number of elements (MindSpeed 028de58,
        linear_2d_split_along_first_dim.py:71)."""
        return self.tokens / self.tensor if self.sequence_parallel or self.tensor_x else self.tokens

    @property
    def projections(self) -> int:
        """Input projections of an MLP: 2 when gated."""
        return 2 if self.gated else 1

    @property
    def folded(self) -> bool:
        """Whether the second chunk of a pipeline runs in the reverse direction, so that the first rank has both ends of
        the model."""
        return self.schedule in ("dual-pipe-v", "zero-bubble-v") and self.virtual == 2

    @property
    def last_rank(self) -> int:
        """The rank with the output layer and the loss."""
        return 0 if self.folded else self.pipeline - 1

    def routed(self, layer: int) -> bool:
        """Whether a layer is a mixture of experts."""
        return self.experts is not None and 0 <= layer < len(self.experts.layers) and self.experts.layers[layer]

    def part(self, layer: int) -> str:
        """The kind of a layer in a hybrid model; "" if it has both attention and an MLP."""
        return self.parts[layer] if 0 <= layer < len(self.parts) else ""

    def first_layer(self, virtual: int, rank: int) -> int:
        """Index of the first decoder layer of a chunk; chunks follow each other in the order v·p + r,
        of a folded pipeline in a V."""
        if self.folded and virtual == 1:
            return sum(self.stages[0]) + sum(self.stages[1][rank + 1 :])
        return sum(map(sum, self.stages[:virtual])) + sum(self.stages[virtual][:rank])
