"""From a plan to the plain numbers that memory depends on, or the reasons why they are unknown."""

from __future__ import annotations

from collections.abc import Callable

from preflight.memory.estimator_inputs import CUDA, TORCH_NPU, Experts, Latent, Mamba, Shape, Streams
from preflight.memory.missing_values import BYTES, MOST, Missing, verify
from preflight.run.training_plan import Plan
from preflight.run.value import Value
from preflight.source.typing_without_import import Any

__all__ = ["CUDA", "TORCH_NPU", "Experts", "Latent", "Mamba", "Missing", "Shape", "shape"]

SWAPPED = "the share of activations that is swapped out or recomputed"
Get = Callable[..., Any]


def shape(plan: Plan, architecture: int = 0) -> Shape:
    """The numbers of a plan. Raises Missing if one without a natural default is unknown."""
    values = plan.values()
    verify(values)

    def get(name: str, fallback: Any = None) -> Any:
        value: Value = values[name]
        return value.raw if value.known and value.raw is not None else fallback

    parts = (_network, _attention, _layout, _schedule, _recompute, _states, _loss, _colocated)
    return Shape(**{name: number for part in parts for name, number in part(get).items()}, architecture=architecture)


def _network(get: Get) -> dict[str, Any]:
    """The model except for its attention."""
    return {
        "stages": tuple(tuple(row) for row in get("layout.stages")),
        "hidden": get("model.hidden"),
        "ffn": get("model.ffn", 4 * get("model.hidden")),
        "gated": get("model.gated", False),
        "gate_kept": get("model.gate_kept", 0),
        "post_norm": bool(get("model.post_norm", False)),
        "vocab": get("model.vocab"),
        "sequence": get("batch.packed") or get("model.sequence"),
        "positions": get("model.positions", 0),
        "tied": get("model.tied", False),
        "bias": get("model.bias", False),
        "norm": 2 if get("model.norm", "rms") == "layer" else 1,
        "hidden_dropout": bool(get("model.hidden_dropout", 0)),
        "experts": _experts(get, sum(map(sum, get("layout.stages")))),
        **_hybrid(get, sum(map(sum, get("layout.stages")))),
        "mtp": get("model.mtp", 0),
        "streams": _streams(get),
        "pair_bias": get("model.pair_bias"),
        "beside": get("model.beside"),
        "adapter_rank": get("model.lora_rank", 8),
        "adapters": tuple(get("model.lora_targets", ())),
        "gate_apart": bool(get("model.gate_apart", False)),
    }


def _attention(get: Get) -> dict[str, Any]:
    """Heads and the memory of attention."""
    return {
        "heads": get("model.heads"),
        "groups": get("model.query_groups", get("model.heads")),
        "head_dim": get("model.head_dim", get("model.hidden") // get("model.heads")),
        "qkv_bias": get("model.qkv_bias", False),
        "qk_norm": get("model.qk_norm", False),
        "attention_dropout": bool(get("model.attention_dropout", 0)),
        "attention": get("model.attention", "flash"),
        "latent": _latent(get),
        "statistics": 4 if get("model.kernels", "transformer_engine") in CUDA else 64,
    }


def _layout(get: Get) -> dict[str, Any]:
    """Degrees of parallelism."""
    tensor, more = get("layout.tensor"), bool(get("layout.extended"))
    return {
        "tensor": tensor,
        "tensor_x": get("layout.tensor_x", 0),
        "pipeline": get("layout.pipeline"),
        "context": get("layout.context"),
        "exchanged": get("layout.exchanged", 0),
        "expert": get("layout.expert", 1) * (tensor if more else 1),
        "expert_tensor": 1 if more else get("layout.expert_tensor", tensor),
        "data": get("layout.data"),
        "sequence_parallel": get("layout.sequence_parallel", False),
    }


def _schedule(get: Get) -> dict[str, Any]:
    """The pipeline schedule and the micro-batches."""
    return {
        "schedule": get("layout.schedule", "1f1b"),
        "splits": get("layout.sequence_splits", 1) if get("layout.schedule", "1f1b").startswith("seq") else 1,
        "group": get("layout.group", get("layout.pipeline")),
        "micro": 1 if get("batch.packed") else get("batch.micro") * (2 if get("batch.pairs") else 1),
        "open": _open(get),
        "count": get("batch.count", get("layout.pipeline")),
    }


def _open(get: Get) -> str:
    if get("recompute.offload"):
        return SWAPPED
    return "the length of the samples" if get("batch.varying") or get("batch.packed") else ""


def _colocated(get: Get) -> dict[str, Any]:
    """Models other than the trained one."""
    return {
        "frozen": get("colocated.reference", int(bool(get("batch.pairs")))),
        "policy": bool(get("colocated.policy")),
        "rollout": float(get("colocated.rollout", 0.0)),
        "asleep": bool(get("colocated.asleep")),
        "freed": tuple(get("colocated.freed", ())),
    }


def _recompute(get: Get) -> dict[str, Any]:
    """What is recomputed."""
    return {
        "recompute": get("recompute.mode", "none"),
        "method": get("recompute.method"),
        "recompute_layers": get("recompute.layers", 0),
        "recompute_shared": bool(get("recompute.shared", False)),
        "full_layers": get("recompute.full_layers"),
        "modules": frozenset(get("recompute.modules", ()) if get("recompute.mode") == "selective" else ()),
        "operators": tuple(get("recompute.operators", ())),
        "doubtful": frozenset(get("recompute.doubtful", ())),
        "repeated": tuple(get("recompute.repeated", ())),
    }


def _states(get: Get) -> dict[str, Any]:
    """Precisions and the optimizer."""
    return {
        "parameter_bytes": 1 if get("precision.fp8_parameters") else BYTES[get("precision.parameters")],
        "gradient_bytes": BYTES[get("precision.gradients", "fp32")],
        "master_bytes": BYTES[get("precision.master")] if get("precision.master") else 0,
        "state_bytes": _moments(get),
        "fp16": get("precision.compute", get("precision.parameters")) == "fp16",
        "fp8": bool(get("precision.fp8")),
        "fp8_recipe": str(get("precision.fp8") or ""),
        "fp8_parameters": bool(get("precision.fp8_parameters")),
        "gather_buffer": bool(get("precision.gather_buffer")),
        "optimizer": get("optimizer.name"),
        "zero": get("optimizer.zero", 0),
        "weights_sharded": get("optimizer.weights_sharded", False),
        "shards": get("optimizer.shards", get("layout.data") * get("layout.context")) if get("optimizer.zero") else 1,
        "expert_shards": get("optimizer.expert_shards", 1) if get("optimizer.zero") else 1,
        "offload": float(get("optimizer.offload", 0.0)),
        "owned": get("optimizer.owned", ""),
        "swapped": get("optimizer.swapped", 0),
        "in_place": bool(get("optimizer.in_place", False)),
        "fsdp": str(get("optimizer.fsdp") or ""),
        "whole_after_forward": bool(get("optimizer.whole_after_forward", False)),
        "double_buffer": bool(get("optimizer.double_buffer", False)),
    }


def _moments(get: Get) -> float:
    """Bytes of an optimizer moment: the two may have different types."""
    first = BYTES[get("precision.states", "fp32")]
    second = BYTES[get("precision.second")] if get("precision.second") and get("optimizer.name") == "adam" else first
    return first if first == second else (first + second) / 2


def _loss(get: Get) -> dict[str, Any]:
    """The loss, and further switches."""
    return {
        "cross_entropy": get("model.cross_entropy", "unfused"),
        "capped": bool(get("model.capped", False)),
        "kernels": get("model.kernels", "transformer_engine"),
        "gradient_fusion": get("optimizer.gradient_fusion", True),
        "loader_mask": get("batch.mask_from_loader", False),
        "deferred": get("layout.deferred", 0),
        "dispatcher": get("model.dispatcher", "alltoall"),
        "grouped_gemm": get("model.grouped_gemm", False),
    }


def _latent(get: Any) -> Latent | None:
    if not get("model.latent", False):
        return None
    kv_rank, nope, rope, v = (get(f"model.{name}") for name in ("kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_dim"))
    if None in (kv_rank, nope, rope, v):
        raise Missing("a dimension of the latent attention is unknown")
    return Latent(
        q_rank=get("model.q_lora_rank"),
        kv_rank=kv_rank,
        nope=nope,
        rope=rope,
        v=v,
        down=get("layout.tensor") if get("model.down_split", False) else 1,
        padded=get("model.padded_dims"),
    )


def _streams(get: Get) -> Streams | None:
    found = get("model.streams")
    if found is not None and not all(isinstance(n, int) and 0 <= n <= MOST for n in found):
        raise Missing("the number of residual streams is not a usable size")
    return Streams(*found) if found and found[0] > 1 else None


def _hybrid(get: Get, layers: int) -> dict[str, Any]:
    """Layers of one operator each."""
    parts = get("model.parts") or ""
    if parts and len(parts) != layers:
        raise Missing("the layers per stage do not cover the pattern of the hybrid model")
    if "E" in parts and not get("model.experts", 0):
        raise Missing("the number of experts is unknown")
    sizes = get("model.mamba")
    if "M" in parts and (sizes is None or not all(isinstance(n, int) and 0 < n <= MOST for n in sizes)):
        raise Missing("the sizes of the Mamba layers are unknown")
    return {"parts": parts, "mamba": Mamba(*sizes) if "M" in parts else None}


def _experts(get: Any, layers: int) -> Experts | None:
    count = get("model.experts", 0)
    if not count:
        return None
    ffn = get("model.expert_ffn", get("model.ffn"))
    if ffn is None:
        raise Missing("the experts' intermediate size is unknown")
    return Experts(
        count=count,
        top_k=get("model.top_k", 2),
        ffn=ffn,
        shared=get("model.shared_ffn", 0),
        layers=tuple(part == "E" for part in get("model.parts") or ())
        or tuple(get("model.expert_layers", (True,) * layers)),
        capacity=_capacity(get("model.capacity")),
        router_copy=get("model.router_copy", 0),
        weighted_last=bool(get("model.weighted_last", False)),
    )


def _capacity(factor: object) -> float | None:
    """The factor of tokens per expert relative to an even share; None if none are dropped, which MindFormers also
    writes as -1."""
    if factor is None:
        return None
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not abs(factor) <= MOST:
        raise Missing(f"the capacity of the experts is {factor!r}, no usable factor")
    return float(factor) if factor > 0 else None
