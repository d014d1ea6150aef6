"""What stays allocated between two steps beside weights, gradients and states; bytes."""

from __future__ import annotations

from preflight.memory import pair_bias, streams
from preflight.memory.parameters import Parameters
from preflight.memory.result import Term
from preflight.memory.shape import CUDA, TORCH_NPU, Shape

MIB = 2**20
BLACKWELL = 10


def terms(s: Shape, rank: int, n: Parameters) -> list[Term]:
    """Those that there are."""
    work, (least, most), bias = fixed(s), caches(s, n), pair_bias.stays(s)
    found = (
        Term("workspaces", work, work, "Transformer Engine, cuBLAS", "steady"),
        Term("fp8 weight caches", least, most, "copies of linear weights, 1 byte each", "steady"),
        Term("attention bias, made once", bias, bias, "2 (a / t) s² each, by sample", "steady"),
        Term("gathered inputs", grid_buffer(s), grid_buffer(s), "2 T f / x", "steady"),
        Term(
            "placeholders of weight gradients",
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
    before Blackwell multiply rows by rows alone, and recipes that scale blocks scale rows and columns apart
    (Transformer Engine 2.17, pytorch/tensor/utils.py:936, module/linear.py:405-432); older ones turn FP8 weights anew
    each time. MXFP8 weights are gathered in 16 bits."""
    if not s.fp8:
        return 0.0, 0.0
    blocks = s.fp8_recipe in ("mxfp8", "blockwise")
    most = 1 if blocks or s.architecture < BLACKWELL else 0
    least = 1 if s.fp8_recipe == "mxfp8" or (most and s.architecture and not s.fp8_parameters) else 0
    copies = [(0 if s.fp8_parameters else 1) + turned + (2 if s.gather_buffer else 0) for turned in (least, most)]
    return copies[0] * (n.dense + n.expert), copies[1] * (n.dense + n.expert)


def placeholders(s: Shape, rank: int) -> float:
    """A linear that accumulates its weight gradient in place hands autograd a tensor in its stead, one for each shape,
    which is kept for good (get_dummy_wgrad: Transformer Engine 2.17 pytorch/module/base.py:85, since 2.3, of experts
    since 2.10; Megatron-LM d98e8a6 tensor_parallel/layers.py:742, since 2025-08). Older ones keep none, which no
    argument tells."""
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
    """Each part of the model that another rank feeds keeps its last input, and the gradient of it, until the next one
    comes: 2 x 2·S·h (Megatron-LM d98e8a6, transformer_block.py:463, schedules.py:561-591). While layers are at work
    that input is one of those in flight."""
    if s.pipeline == 1 or s.kernels not in (*CUDA, TORCH_NPU):
        return 0.0
    own = 1 if rank == 0 else 0
    return 4 * s.split_tokens * s.hidden * streams.width(s) * max(s.virtual - own, 0)
