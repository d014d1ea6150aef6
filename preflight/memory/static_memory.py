"""Weights, gradients and optimizer states of a rank, and other memory that stays allocated between two steps; bytes."""

from __future__ import annotations

from preflight.memory import activations, parameters
from preflight.memory.inputs_from_plan import CUDA, TORCH_NPU, Shape
from preflight.memory.parameters import Parameters
from preflight.memory.result import Term
from preflight.source.record import NamedTuple

MOMENTS = {"adam": 2, "adamw": 2, "lamb": 2, "came": 2, "sgd": 1, "muon": 1, "lion": 1, "lomo": 0, "adafactor": 0.05}


def states_per_parameter(s: Shape) -> float:
    """Bytes of optimizer state per parameter besides the master copy: Adam 2 moments, SGD and Muon 1,
    8-bit Adam 2 bytes, LOMO 0."""
    if s.optimizer == "adam8bit":
        return 2.0
    return MOMENTS.get(s.optimizer, 2) * s.state_bytes


def sharded(s: Shape, n: Parameters, level: int) -> float:
    """Parameters per rank if data sharded from this ZeRO level on is divided: dense ones over shards, experts over
    theirs."""
    if s.zero < level:
        return n.total
    return n.replicated / s.shards + (n.expert + n.expert_adapter) / s.expert_shards


class Share(NamedTuple):
    """Parameters whose states a rank keeps: weights of layers; tables (embedding, output layer), minimum and
    maximum."""

    layers: float
    fewest: float
    tables: float


def shares(s: Shape, n: Parameters) -> Share:
    """If whole parameters are assigned to ranks (layer-wise optimizers), no rank can have less than one, and the
    fullest rank counts."""
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
    """Bytes of weights with a wider type: tables with FP8; the embedding and adapters with NF4."""
    if s.parameter_bytes < 1:
        return (2 - s.parameter_bytes) * (n.embedding + n.adapter + n.expert_adapter)
    return n.embedding + n.output if s.fp8_parameters else 0.0


def _gradients(s: Shape, size: float, formula: str) -> Term:
    """PyTorch's FSDP2 creates them during the first backward pass; they exist before the next ones."""
    return Term("gradients", 0.0 if s.fsdp == "torch-fsdp2" and s.count == 1 else size, size, formula, "steady")


def _reference(s: Shape, n: Parameters, weights: float) -> list[Term]:
    """Copies of the model that are kept and not trained."""
    if not s.frozen:
        return []
    return [_term("reference model", s.frozen * weights, f"{s.parameter_bytes} x {n.total:.4g} parameters, frozen")]


def at_step(s: Shape, n: Parameters) -> float:
    """The temporary memory of the optimizer step. States on the host are copied to the device in parts, none smaller
    than a rank's shard of a parameter (MindSpeed, swap_optimizer.py:609-622). Moments of 16 bits are widened for the
    update, one parameter at a time (MindSpeed-LLM's O2AdamW, adamw.py:26-55). MindSpeed before 2025-04-22 (cbe4363)
    updates a parameter out of place: an fp32 copy of it; later versions in place; only the release distinguishes
    them."""
    n = n.trained
    if s.swapped:
        return (s.master_bytes + states_per_parameter(s)) * max(sharded(s, n, 1) / s.swapped, piece(s, n))
    if s.kernels == TORCH_NPU and s.optimizer == "adam" and s.master_bytes:
        widened = 12 if s.state_bytes < 4 else 0 if s.in_place else 4
        return widened * piece(s, n)
    return 0.0


def piece(s: Shape, n: Parameters) -> float:
    """The largest shard of one parameter on a rank; MindSpeed's grouped experts are one parameter."""
    dense, expert = sharded(s, n._replace(expert=0.0), 1), n.expert / (s.expert_shards if s.zero else 1)
    local = s.experts.count / s.expert if s.experts else 0
    stacked = parameters.widest_expert(s) * (local if s.grouped_gemm else 1)
    return max(min(dense, max(parameters.widest(s), n.embedding, n.output)), min(expert, stacked))


def gradient_copy(s: Shape, n: Parameters) -> float:
    """fp16 training keeps an fp32 copy of the sharded gradients from the step to the next zero_grad: 4N/shards. So does
    PyTorch's FSDP2, instead of the gradients themselves (Megatron-LM core_v0.19.0, optimizer.py:1092-1105)."""
    if not s.master_bytes:
        return 0.0
    if s.fsdp == "torch-fsdp2":
        return max(0, 4 - s.gradient_bytes) * sharded(s, n.trained, 2)
    return 4 * sharded(s, n.trained, 1) if s.fp16 else 0.0


def _term(name: str, size: float, formula: str) -> Term:
    return Term(name, size, size, formula, "steady")


MIB = 2**20
BLACKWELL = 10


def terms(s: Shape, rank: int, n: Parameters) -> list[Term]:
    """Those that exist."""
    work, (least, most), bias = fixed(s), caches(s, n), activations.stays(s)
    found = (
        Term("workspaces", work, work, "Transformer Engine, cuBLAS", "steady"),
        Term("fp8 weight caches", least, most, "copies of linear weights, 1 byte each", "steady"),
        Term("attention bias, made once", bias, bias, "2 (a / t) s² each, by sample", "steady"),
        Term("gathered inputs", grid_buffer(s), grid_buffer(s), "2 T f / x", "steady"),
        Term(
            "weight gradient placeholders",
            0.0,
            placeholders(s, rank),
            "2 x linear weights, one of each shape",
            "steady",
        ),
    )
    return [term for term in found if term.high]


def fixed(s: Shape) -> float:
    """Workspaces: Transformer Engine and cuBLAS 72 MiB on A100, 100 MiB from Hopper on, 112 MiB with local layers;
    four streams of 32 MiB more for multi-stream grouped GEMM from Hopper on. Ascend's libraries keep theirs outside the
    allocator."""
    if s.kernels not in CUDA:
        return 0.0
    base = 112 if s.kernels == "local" else 72 if s.architecture == 8 else 100
    return (base + (128 if s.grouped_gemm and s.experts and s.architecture != 8 else 0)) * MIB


def grid_buffer(s: Shape) -> float:
    """2-D tensor parallelism gathers into one buffer that grows to the widest use, the gradient of the MLP's input
    projection, 2·T·g·f/x, and stays (MindSpeed 028de58, linear_2d_split_along_first_dim.py:186, comm_utils.py)."""
    return 2 * s.tokens * s.projections * s.ffn / s.tensor_x if s.tensor_x else 0.0


def caches(s: Shape, n: Parameters) -> tuple[float, float]:
    """FP8 compute: a copy of each linear weight unless weights are FP8 themselves, and one transposed: the matrix units
    before Blackwell only multiply rows by rows, and recipes that scale blocks scale rows and columns separately
    (Transformer Engine 2.17, pytorch/tensor/utils.py:936, module/linear.py:405-432); older versions transpose FP8
    weights each time. MXFP8 weights are gathered in 16 bits."""
    if not s.fp8:
        return 0.0, 0.0
    blocks = s.fp8_recipe in ("mxfp8", "blockwise")
    most = 1 if blocks or s.architecture < BLACKWELL else 0
    least = 1 if s.fp8_recipe == "mxfp8" or (most and s.architecture and not s.fp8_parameters) else 0
    copies = [(0 if s.fp8_parameters else 1) + turned + (2 if s.gather_buffer else 0) for turned in (least, most)]
    return copies[0] * (n.dense + n.expert), copies[1] * (n.dense + n.expert)


def placeholders(s: Shape, rank: int) -> float:
    """A linear that accumulates its weight gradient in place passes a placeholder tensor to autograd, one for each
    shape, which is kept permanently (get_dummy_wgrad: Transformer Engine 2.17 pytorch/module/base.py:85, since 2.3, of
    experts since 2.10; Megatron-LM d98e8a6 tensor_parallel/layers.py:742, since 2025-08). Older versions keep none; no
    argument shows the version."""
    if s.kernels not in CUDA or not s.gradient_fusion or s.adapters or s.beside:
        return 0.0
    each = 2 if s.fp8_parameters else s.parameter_bytes
    return float(each * sum(rows * columns for rows, columns in linears(s, rank)))


def linears(s: Shape, rank: int) -> set[tuple[float, float]]:
    """Shapes of the linear weights on a rank."""
    h, last = s.hidden, rank == s.last_rank
    held = {s.first_layer(v, rank) + index for v in range(s.virtual) for index in range(s.stages[v][rank])}
    if last and s.mtp:
        held.add(sum(map(sum, s.stages)) - 1)
    parts = {s.part(layer) for layer in held}
    found = attention(s) if parts & {"", "*"} else set()
    if "M" in parts and s.mamba is not None:
        found |= {(s.mamba.projected / s.tensor, h), (h, s.mamba.inner / s.tensor)}
    for kind in {s.routed(layer) for layer in held if s.part(layer) not in ("M", "*")}:
        wide = [(s.ffn, s.tensor)]
        if kind and s.experts is not None:
            wide = [(s.experts.ffn, s.expert_tensor), *([(s.experts.shared, s.tensor)] if s.experts.shared else [])]
        found |= {shape for ffn, over in wide for shape in ((s.projections * ffn / over, h), (h, ffn / over))}
    if last:
        found |= {(s.vocab / s.tensor, h), *([(h / s.tensor, 2 * h)] if s.mtp else [])}
    return found


def attention(s: Shape) -> set[tuple[float, float]]:
    """Shapes of the weights of attention; latent: down and up projections."""
    h, t, m = s.hidden, s.tensor, s.latent
    if m is None:
        return {((s.heads / t + 2 * max(s.groups / t, 1)) * s.head_dim, h), (h, s.heads * s.head_dim / t)}
    queries = s.heads * (m.nope + m.rope) / t
    query = {(queries, h)} if m.q_rank is None else {(m.q_rank / m.down, h), (queries, m.q_rank)}
    return query | {
        ((m.kv_rank + m.rope) / m.down, h),
        (s.heads * (m.nope + m.v) / t, m.kv_rank),
        (h, s.heads * m.v / t),
    }


def last_inputs(s: Shape, rank: int) -> float:
    """Each part of the model that receives input from another rank keeps its last input and its gradient until
    the next one arrives: 2 x 2·S·h (Megatron-LM d98e8a6, transformer_block.py:463, schedules.py:561-591). While layers
    run, that input is one of those in flight."""
    if s.pipeline == 1 or s.kernels not in (*CUDA, TORCH_NPU):
        return 0.0
    own = 1 if rank == 0 else 0
    return 4 * s.split_tokens * s.hidden * activations.width(s) * max(s.virtual - own, 0)
