"""Weights, gradients and optimizer states of a rank, in bytes.

Source: Megatron-LM d98e8a6 megatron/core/distributed (gradient buffer), megatron/core/optimizer (distributed optimizer;
layer_wise_optimizer.py for Muon); MindSpeed 028de58 mindspeed/core/optimizer; ZeRO: Rajbhandari et al. 2020; MindSpore:
weights and moments divided by optimizer parallelism, gradients whole.
"""

from __future__ import annotations

from preflight.memory import parameters
from preflight.memory.parameters import Parameters
from preflight.memory.result import Term
from preflight.memory.shape import TORCH_NPU, Shape
from preflight.source.record import NamedTuple

MOMENTS = {"adam": 2, "adamw": 2, "lamb": 2, "came": 2, "sgd": 1, "muon": 1, "lion": 1, "lomo": 0, "adafactor": 0.05}


def states_per_parameter(s: Shape) -> float:
    """Bytes of optimizer state per parameter beside the master copy: Adam 2 moments, SGD and Muon 1,
    8-bit Adam 2 bytes, LOMO 0."""
    if s.optimizer == "adam8bit":
        return 2.0
    return MOMENTS.get(s.optimizer, 2) * s.state_bytes


def sharded(s: Shape, n: Parameters, level: int) -> float:
    """Parameters a rank keeps when what is sharded from this ZeRO level on is divided: dense over shards,
    experts over theirs."""
    if s.zero < level:
        return n.total
    return n.replicated / s.shards + (n.expert + n.expert_adapter) / s.expert_shards


class Share(NamedTuple):
    """Parameters whose states a rank keeps: weights of layers; tables (embedding, output layer),
    at the least and at the most."""

    layers: float
    fewest: float
    tables: float


def shares(s: Shape, n: Parameters) -> Share:
    """Where whole parameters are dealt out (layer-wise optimizers), no rank can have less than one,
    and the fullest counts."""
    tables = n.embedding + n.output
    if s.zero < 1:
        return Share(n.total - tables, tables, tables)
    dense, experts, tables = (n.dense + n.adapter) / s.shards, n.expert / s.expert_shards, tables / s.shards
    if s.owned:
        dense = max(dense, min(n.dense, parameters.widest(s)))
        experts = max(experts, min(n.expert, parameters.widest_expert(s)))
    whole = max(tables, n.embedding, n.output) if s.owned else tables
    return Share(dense + experts, whole if s.owned == "all" else tables, whole)


def steady_terms(s: Shape, n: Parameters) -> list[Term]:
    """Weights, gradients, master copy and moments."""
    weights = s.parameter_bytes * sharded(s, n, 1 if s.weights_sharded else 3) + _unquantized(s, n)
    whole, n = n, n.trained
    gradients = s.gradient_bytes * sharded(s, n, 2)
    here = 0.0 if s.swapped else 1 - s.offload
    own = shares(s, n)
    per_table = 2 * s.state_bytes if s.optimizer == "muon" else states_per_parameter(s)
    master = {tables: s.master_bytes * (own.layers + tables) * here for tables in (own.fewest, own.tables)}
    moments = {
        tables: (states_per_parameter(s) * own.layers + per_table * tables) * here
        for tables in (own.fewest, own.tables)
    }
    over = f" / {s.shards}" if s.zero else ""
    each = (
        f"{states_per_parameter(s):g} (tables {per_table:g})"
        if per_table != states_per_parameter(s)
        else f"{per_table:g}"
    )
    return [
        *_reference(s, whole, weights),
        _term(
            "weights",
            weights,
            f"{s.parameter_bytes} x {whole.total:.4g} parameters{over if s.zero >= 3 or s.weights_sharded else ''}",
        ),
        _gradients(s, gradients, f"{s.gradient_bytes} x {n.total:.4g}{over if s.zero >= 2 else ''}"),
        Term(
            "master weights",
            master[own.fewest],
            master[own.tables],
            f"{s.master_bytes} x {n.total:.4g}{over}",
            "steady",
        ),
        Term("optimizer states", moments[own.fewest], moments[own.tables], f"{each} x {n.total:.4g}{over}", "steady"),
    ]


def _unquantized(s: Shape, n: Parameters) -> float:
    """Bytes of weights that are wider than the others: tables beside FP8; the embedding and adapters beside NF4."""
    if s.parameter_bytes < 1:
        return (2 - s.parameter_bytes) * (n.embedding + n.adapter + n.expert_adapter)
    return n.embedding + n.output if s.fp8_parameters else 0.0


def _gradients(s: Shape, size: float, formula: str) -> Term:
    """PyTorch's FSDP2 makes them during the first backward pass; they are there before the next ones."""
    return Term("gradients", 0.0 if s.fsdp == "torch-fsdp2" and s.count == 1 else size, size, formula, "steady")


def _reference(s: Shape, n: Parameters, weights: float) -> list[Term]:
    """The copies of the model that are kept and not trained."""
    if not s.frozen:
        return []
    return [_term("reference model", s.frozen * weights, f"{s.parameter_bytes} x {n.total:.4g} parameters, frozen")]


def at_step(s: Shape, n: Parameters) -> float:
    """What the optimizer's step holds beyond what stays. States that lie on the host visit the device in parts, none
    smaller than what a rank has of a parameter (MindSpeed, swap_optimizer.py:609-622). Moments of 16 bits are widened
    for the update, one parameter at a time (MindSpeed-LLM's O2AdamW, adamw.py:26-55). MindSpeed before 2025-04-22
    (cbe4363) updates a parameter out of place: an fp32 copy of it; a later one in place, which only the release tells
    apart."""
    n = n.trained
    if s.swapped:
        return (s.master_bytes + states_per_parameter(s)) * max(sharded(s, n, 1) / s.swapped, piece(s, n))
    if s.kernels == TORCH_NPU and s.optimizer == "adam" and s.master_bytes:
        widened = 12 if s.state_bytes < 4 else 0 if s.in_place else 4
        return widened * piece(s, n)
    return 0.0


def piece(s: Shape, n: Parameters) -> float:
    """The most that a rank can have of one parameter; MindSpeed's grouped experts are one parameter."""
    dense, expert = sharded(s, n._replace(expert=0.0), 1), n.expert / (s.expert_shards if s.zero else 1)
    local = s.experts.count / s.expert if s.experts else 0
    stacked = parameters.widest_expert(s) * (local if s.grouped_gemm else 1)
    return max(min(dense, max(parameters.widest(s), n.embedding, n.output)), min(expert, stacked))


def gradient_copy(s: Shape, n: Parameters) -> float:
    """fp16 training keeps an fp32 copy of the sharded gradients from the step to the next zero_grad: 4N/shards. So does
    PyTorch's FSDP2, in place of the gradients themselves (Megatron-LM core_v0.19.0, optimizer.py:1092-1105)."""
    if not s.master_bytes:
        return 0.0
    if s.fsdp == "torch-fsdp2":
        return max(0, 4 - s.gradient_bytes) * sharded(s, n.trained, 2)
    return 4 * sharded(s, n.trained, 1) if s.fp16 else 0.0


def _term(name: str, size: float, formula: str) -> Term:
    return Term(name, size, size, formula, "steady")
