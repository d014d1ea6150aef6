"""The plain numbers of a plan that memory depends on, or the reasons why they are not known."""

from __future__ import annotations

from typing import Any

from preflight.memory.usable import BYTES, Missing, verify
from preflight.plan import Plan
from preflight.record import dataclass
from preflight.value import Value

__all__ = ["CUDA", "Experts", "Latent", "Missing", "Shape", "shape"]


CUDA = ("transformer_engine", "local", "inference_optimized")
"""Implementations whose fused attention keeps one fp32 log-sum-exp a head and query; Ascend's keeps maximum and sum, 8 fp32 lanes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention: ranks of the compressed projections and head dimensions."""

    q_rank: int | None
    kv_rank: int
    nope: int
    rope: int
    v: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Mixture of experts: counts, intermediate sizes, which layers."""

    count: int
    top_k: int
    ffn: int
    shared: int
    layers: tuple[bool, ...]
    capacity: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes in elements, counts, and bytes per element. Notation of the formulas: h hidden, f ffn, a heads, g query groups,
    d head_dim, s sequence, b micro, t tensor, c context, e expert, x expert_tensor, v virtual, p pipeline, V vocab."""

    stages: tuple[tuple[int, ...], ...]
    hidden: int
    ffn: int
    heads: int
    groups: int
    head_dim: int
    gated: bool
    vocab: int
    sequence: int
    positions: int
    tied: bool
    bias: bool
    qkv_bias: bool
    norm: int  # vectors per norm: 1 RMS, 2 layer norm
    qk_norm: bool
    hidden_dropout: bool
    attention_dropout: bool
    attention: str
    latent: Latent | None
    experts: Experts | None
    mtp: int
    adapter_rank: int
    adapters: tuple[str, ...]  # linears with a low-rank adapter; only adapters are trained then
    gate_apart: bool  # activation of the gate and product are kept apart
    statistics: int  # bytes the fused attention keeps per head and query
    tensor: int
    pipeline: int
    context: int
    expert: int
    expert_tensor: int
    data: int
    sequence_parallel: bool
    schedule: str
    group: int
    splits: int  # parts per sequence of a sequence pipeline
    micro: int
    count: int  # micro-batches per step
    varying: bool  # samples may be shorter than the sequence length
    frozen: int  # copies of the weights beside the trained ones
    recompute: str
    method: str | None
    recompute_layers: int
    full_layers: tuple[tuple[int, ...], ...] | None
    modules: frozenset[str]
    operators: tuple[tuple[tuple[str, ...], tuple[tuple[int, ...], ...]], ...]  # recomputed outputs, layers[v][s] beyond the fully recomputed
    parameter_bytes: int
    gradient_bytes: int
    master_bytes: int
    state_bytes: int
    fp16: bool
    fp8: bool
    fp8_parameters: bool
    optimizer: str
    zero: int
    weights_sharded: bool  # stored weights are sharded with the optimizer states (MindSpore)
    shards: int
    expert_shards: int
    offload: float
    cross_entropy: str
    implementation: str
    gradient_fusion: bool
    loader_mask: bool
    overlap_expert: bool
    deferred: int  # micro-batches whose output-layer weight gradient is put off
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
        """S: tokens that stay on a rank between the tensor-parallel regions."""
        return self.tokens / self.tensor if self.sequence_parallel else self.tokens

    @property
    def projections(self) -> int:
        """Input projections of an MLP: 2 when gated."""
        return 2 if self.gated else 1

    def first_layer(self, virtual: int, rank: int) -> int:
        """Index of the first decoder layer of a chunk; chunks follow each other in the order v·p + r."""
        return sum(map(sum, self.stages[:virtual])) + sum(self.stages[virtual][:rank])


def shape(plan: Plan, architecture: int = 0) -> Shape:
    """The numbers of a plan. Raises Missing when one that has no natural default is unknown."""
    values = plan.values()
    verify(values)

    def get(name: str, fallback: Any = None) -> Any:
        value: Value = values[name]
        return value.raw if value.known and value.raw is not None else fallback

    heads = get("model.heads")
    stages = tuple(tuple(row) for row in get("layout.stages"))
    parameters = get("precision.parameters")
    data, context = get("layout.data"), get("layout.context")
    zero = get("optimizer.zero", 0)
    return Shape(
        stages=stages,
        hidden=get("model.hidden"),
        ffn=get("model.ffn", 4 * get("model.hidden")),
        heads=heads,
        groups=get("model.query_groups", heads),
        head_dim=get("model.head_dim", get("model.hidden") // max(heads, 1)),
        gated=get("model.gated", False),
        vocab=get("model.vocab"),
        sequence=get("model.sequence"),
        positions=get("model.positions", 0),
        tied=get("model.tied", False),
        bias=get("model.bias", False),
        qkv_bias=get("model.qkv_bias", False),
        norm=2 if get("model.norm", "rms") == "layer" else 1,
        qk_norm=get("model.qk_norm", False),
        hidden_dropout=bool(get("model.hidden_dropout", 0)),
        attention_dropout=bool(get("model.attention_dropout", 0)),
        attention=get("model.attention", "flash"),
        latent=_latent(get),
        experts=_experts(get, sum(map(sum, stages))),
        mtp=get("model.mtp", 0),
        adapter_rank=get("model.lora_rank", 8),
        adapters=tuple(get("model.lora_targets", ())),
        gate_apart=bool(get("model.gate_apart", False)),
        statistics=4 if get("loss.implementation", "transformer_engine") in CUDA else 64,
        tensor=get("layout.tensor"),
        pipeline=get("layout.pipeline"),
        context=context,
        expert=get("layout.expert", 1),
        expert_tensor=get("layout.expert_tensor", get("layout.tensor")),
        data=data,
        sequence_parallel=get("layout.sequence_parallel", False),
        schedule=get("layout.schedule", "1f1b"),
        splits=get("layout.sequence_splits", 1) if get("layout.schedule", "1f1b").startswith("seq") else 1,
        group=get("layout.group", get("layout.pipeline")),
        micro=get("batch.micro") * (2 if get("batch.pairs") else 1),
        varying=bool(get("batch.varying")),
        frozen=int(bool(get("batch.pairs"))),
        count=get("batch.count", get("layout.pipeline")),
        recompute=get("recompute.mode", "none"),
        method=get("recompute.method"),
        recompute_layers=get("recompute.layers", 0),
        full_layers=get("recompute.full_layers"),
        modules=frozenset(get("recompute.modules", ()) if get("recompute.mode") == "selective" else ()),
        operators=tuple(get("recompute.operators", ())),
        parameter_bytes=1 if get("precision.fp8_parameters") else BYTES[parameters],
        gradient_bytes=BYTES[get("precision.gradients", "fp32")],
        master_bytes=BYTES[get("precision.master")] if get("precision.master") else 0,
        state_bytes=BYTES[get("precision.states", "fp32")],
        fp16=get("precision.compute", parameters) == "fp16",
        fp8=bool(get("precision.fp8")),
        fp8_parameters=bool(get("precision.fp8_parameters")),
        optimizer=get("optimizer.name"),
        zero=zero,
        weights_sharded=get("optimizer.weights_sharded", False),
        shards=get("optimizer.shards", data * context) if zero else 1,
        expert_shards=get("optimizer.expert_shards", 1) if zero else 1,
        offload=float(get("optimizer.offload", 0.0)),
        cross_entropy=get("loss.cross_entropy", "unfused"),
        implementation=get("loss.implementation", "transformer_engine"),
        gradient_fusion=get("loss.gradient_fusion", True),
        loader_mask=get("loss.mask_from_loader", False),
        overlap_expert=get("loss.overlap_expert", False),
        deferred=get("loss.deferred", 0),
        dispatcher=get("loss.dispatcher", "alltoall"),
        grouped_gemm=get("loss.grouped_gemm", False),
        architecture=architecture,
    )


def _latent(get: Any) -> Latent | None:
    if not get("model.latent", False):
        return None
    kv_rank, nope, rope, v = (get(f"model.{name}") for name in ("kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_dim"))
    if None in (kv_rank, nope, rope, v):
        raise Missing("a dimension of the latent attention is not known")
    return Latent(q_rank=get("model.q_lora_rank"), kv_rank=kv_rank, nope=nope, rope=rope, v=v)


def _experts(get: Any, layers: int) -> Experts | None:
    count = get("model.experts", 0)
    if not count:
        return None
    ffn = get("model.expert_ffn", get("model.ffn"))
    if ffn is None:
        raise Missing("the experts' intermediate size is not known")
    return Experts(
        count=count,
        top_k=get("model.top_k", 2),
        ffn=ffn,
        shared=get("model.shared_ffn", 0),
        layers=tuple(get("model.expert_layers", (True,) * layers)),
        capacity=get("model.capacity"),
    )
