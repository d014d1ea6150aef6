"""Parts of the network in neutral terms: attention variants, hybrid layers, encoders, residual streams."""

from __future__ import annotations

from preflight.dialects.megatron.derivation_namespace import NotKnown, Run
from preflight.dialects.megatron.pipeline import held_layers, parse_hybrid
from preflight.run.training_plan import LinearAttention, SparseAttention
from preflight.run.version_ranges import matches
from preflight.source.record import NamedTuple

LAST = 1024
"""Rows of the bias that MindSpeed's flash attention uses for type 0 (alibi/dot_product_attention.py:37)."""


def is_counted(run: Run) -> bool:
    """Whether the allocations of ALiBi are known; with context parallelism only for slopes."""
    if "mindspeed" not in run.versions:
        return False
    return bool(run.context_parallel_size == 1 or run.alibi_fusion_attn_type == 2)


def pair_bias(run: Run) -> tuple[float, float, float] | None:
    """Tensors of heads x sequence² in 16 bits: those kept per sample by a layer in flight; those that always exist;
    those that exist per sample. None without a bias of that size."""
    if run.position_embedding_type != "alibi" or not is_counted(run) or run.alibi_fusion_attn_type == 2:
        return None
    if "mindspeed-llm" not in run.versions:
        return (0, min(1.0, LAST / run.seq_length), 0) if run.alibi_fusion_attn_type == 0 else None
    if not (run.square_alibi_mask or run.fill_neg_inf):
        return None  # one row for all queries
    return 1, 2, 1


DELTA_RULES = ("gated_delta_net", "gdn")


def variant(run: Run) -> LinearAttention | SparseAttention | None:
    """The replacement of attention in a run."""
    return _linear(run) or _sparse(run)


def _linear(run: Run) -> LinearAttention | None:
    """Gated delta rules in the layers between those of a frequency (core_v0.16.0 megatron/training/training.py:464-492;
    MindSpeed-LLM v26.1.0 mindspeed_llm/core/transformer/transformer_block.py:176)."""
    if run.experimental_attention_variant in DELTA_RULES:
        every, kernel = run.linear_attention_freq, run.linear_conv_kernel_dim
    elif run.full_attention_interval:
        every, kernel = run.full_attention_interval, None
    else:
        return None
    layers = run.num_layers
    pattern = every if isinstance(every, (list, tuple)) else [(i + 1) % every != 0 for i in range(layers)]
    return LinearAttention(
        sum(map(bool, pattern)) / layers, run.linear_num_key_heads, run.linear_key_head_dim,
        run.linear_num_value_heads, run.linear_value_head_dim, kernel or 4,
    )  # fmt: skip


def _sparse(run: Run) -> SparseAttention | None:
    """Attention to keys chosen by an indexer; other kinds of compressed keys are unknown."""
    if run.kv_compress:
        return None
    if run.experimental_attention_variant == "dsa":
        return SparseAttention(
            run.dsa_indexer_n_heads, run.dsa_indexer_head_dim, run.dsa_indexer_topk,
            1 / max(run.dsa_indexer_topk_freq or 1, 1), run.dsa_kernel_backend not in (None, "none"),
            bool(run.dsa_indexer_loss_coeff),
        )  # fmt: skip
    if run.enable_dsa_indexer:
        fused = bool(run.use_fused_lightning_indexer and run.use_sparse_flash_attn)
        return SparseAttention(
            run.index_n_heads, run.index_head_dim, run.index_topk, 1 / max(run.index_topk_freq or 1, 1), fused,
            bool(run.indexer_loss_coeff),
        )  # fmt: skip
    return None


WIDE = {"fp32": 4, "fp64": 8}


def router_copy(run: Run) -> int:
    """Until 2025-06-14 (0f058666a8, core 0.13) a router in a wider type keeps its input in that type (core_v0.12.0,
    router.py:66-71; MindSpeed-LLM v26.1.0, router.py:505-519), since then in the input's type (moe_utils.py:876)."""
    return WIDE.get(str(run.moe_router_dtype), 0) if matches(run.core_release, "<0.13") else 0


def weighted_last(run: Run) -> bool:
    """Until 2025-04-09 (2659630721, core 0.13) experts' outputs are weighted when they are put back in order, which
    keeps them (core_v0.12.0, moe_utils.py:331, token_dispatcher.py:219-224). One test of
    Megatron-LM has 2.74 GB five days before and 2.80 GB since. With MindSpeed's --moe-zero-memory a recorded run has no
    room for them."""
    kept = run.value("moe_zero_memory").raw in (None, "disable") and not run.value("moe_unperm2_mem_optim_swap").raw
    return kept and matches(run.core_release, "<0.13")


UNFUSED = 6
"""MindSpeed-LLM without --use-fused-mhc: the streams are kept in 16 bits for the residual path, and in 32 bits for the
mappings (mhc.py hc_pre, hc_post)."""


def streams(run: Run) -> tuple[int, int, int, int] | None:
    """Their number; the minimum and maximum bytes per element that a connection keeps; the bytes per element that its
    backward pass uses temporarily. None without such streams."""
    if run.enable_mhc_connections:
        recomputed = run.recompute_granularity == "selective" and "mhc" in (run.recompute_modules or ())
        return run.mhc_num_residual_streams, 0 if recomputed else 2, 2, 6
    if not run.enable_mhc:
        return None
    count: int = run.hc_mult
    if run.use_fused_mhc:
        return count, 2, UNFUSED, 8
    return count, UNFUSED, UNFUSED, 8 * count  # two products of streams x streams in fp32 (hc_post)


HYBRID = "pretrain_mamba.py"


def hybrid_parts(run: Run) -> str | None:
    """The decoder layers of a hybrid model if each is Mamba, attention, an MLP or experts; "" if there are other kinds,
    or prediction depths have separate layers."""
    pattern = run.hybrid_layer_pattern if run.hybrid_layer_pattern is not None else run.hybrid_override_pattern
    if pattern is None or "mindspeed" in run.versions:
        return "" if pattern is not None or run.entry == HYBRID else None
    if not isinstance(pattern, str):
        return ""
    found = parse_hybrid(pattern)
    letters = "".join(found.segments)
    return letters if letters and not set(letters) - set("M*-E") and not found.depths else ""


def mamba(run: Run) -> tuple[int, int, int, int]:
    """Heads, head size, state size and groups (megatron/core/ssm/mamba_mixer.py: twice the hidden size in heads)."""
    heads = run.mamba_num_heads or 2 * run.hidden_size // run.mamba_head_dim
    return heads, run.mamba_head_dim, run.mamba_state_dim, run.mamba_num_groups


class Encoder(NamedTuple):
    """layers, hidden size, width of all heads, intermediate size, input projections of the MLP."""

    layers: int
    hidden: int
    heads: int
    ffn: int
    gates: int = 1


ENCODERS = {
    "clip": Encoder(24, 1024, 1024, 4096),
    "siglip": Encoder(27, 1152, 1152, 4304),
    "internvit": Encoder(45, 3200, 3200, 12800),
    "internvit300M": Encoder(24, 1024, 1024, 4096),
    "radio": Encoder(32, 1280, 1280, 5120),
    "radio-g": Encoder(40, 1536, 1536, 4096, 2),
    "cradio-g": Encoder(40, 1536, 1536, 6144),
}
PROJECTIONS = {
    "llama3_8b": 14336,
    "llama3.1_8b": 4096,
    "mistral_7b": 14336,
    "yi-34b": 20480,
    "qwen2.0_72B": 29568,
    "qwen2.5_7B": 3584,
    "qwen2.5_72B": 29568,
    "llama3.2_1b": 2048,
}
"""Hidden width of the projection, by --language-model-type."""
LARGEST_IMAGE = 2048


def beside(run: Run) -> tuple[float, float, float] | None:
    """Parameters per rank of the frozen encoder and of the trained projection; the most bytes per token that the
    projection keeps. None if the run is not of this kind."""
    if not all(_typed(run, name) is True for name in ("freeze_LM", "freeze_ViT")):
        return None
    encoder, middle = ENCODERS.get(str(_typed(run, "vision_model_type") or "clip")), _middle(run)
    if encoder is None or middle is None:
        return None
    tensor, size = int(run.tensor_model_parallel_size), _typed(run, "patch_dim")
    patch = size if isinstance(size, int) and size > 0 else 14
    heads = _padded_heads(tensor, int(run.kv_channels)) if encoder is ENCODERS["internvit"] else encoder.heads
    layer = 4 * encoder.hidden * heads + (encoder.gates + 1) * encoder.hidden * encoder.ffn
    whole = encoder.hidden * (3 * patch**2 + (LARGEST_IMAGE // patch) ** 2)  # patches, and their positions
    wide = encoder.hidden * (4 if _typed(run, "pixel_shuffle") is True else 1)
    trained = (wide + int(run.hidden_size)) * middle / tensor
    return encoder.layers * layer / tensor + whole, trained, 2 * wide + 4 * middle / tensor


def samples(run: Run) -> str:
    """The option that sets the number of tokens for the language model; --seq-length then belongs to the encoder."""
    return "decoder_seq_length" if beside(run) is not None and _typed(run, "decoder_seq_length") else "seq_length"


def frozen(run: Run) -> bool:
    """Whether such a run is described; it is not if one of its sizes is unknown."""
    try:
        return beside(run) is not None
    except (NotKnown, TypeError, ValueError, ArithmeticError):
        return False


def _padded_heads(tensor: int, channels: int) -> int:
    """The 25 heads of InternViT-6B, rounded up to a multiple of tensor parallel (config.py: 24 // t + 1 on each
    rank)."""
    return (24 // tensor + 1) * tensor * channels


def _middle(run: Run) -> int | None:
    return PROJECTIONS.get(str(_typed(run, "language_model_type")))


def _typed(run: Run, name: str) -> object:
    given = run.written.get(name)
    return given.raw if given is not None and given.known else None


SWITCHES = {
    "tensor": ("tp_comm_overlap", "use_ascend_mc2", "use_ascend_coc"),
    "gradients": ("overlap_grad_reduce",),
    "parameters": ("overlap_param_gather",),
    "experts": ("overlap_moe_expert_parallel_comm", "moe_alltoall_overlap_comm", "moe_fb_overlap"),
    "stages": ("overlap_p2p_comm",),
    "graphs": ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_impl"),
}


def overlaps(run: Run) -> tuple[str, ...]:
    """Which communication is overlapped. The exchange next to a weight's gradient always is (d98e8a6
    megatron/core/tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication)."""
    found = [name for name, switches in SWITCHES.items() if any(_is_on(run, switch) for switch in switches)]
    return ("backward", *found, *(("whole graph",) if is_one_graph(run) else ()))


def is_one_graph(run: Run) -> bool:
    """Whether a whole iteration is one CUDA graph: kernels start without the host (d98e8a6
    megatron/core/full_cuda_graph.py)."""
    impl, scope = (run.value(name).raw for name in ("cuda_graph_impl", "cuda_graph_scope"))
    wide = scope if isinstance(scope, (tuple, list)) else [scope]
    return impl == "full_iteration" or (impl == "local" and "full_iteration" in map(str, wide))


def _is_on(run: Run, name: str) -> bool:
    """Whether a switch is on, for options that only some releases have."""
    value = run.value(name)
    return value.known and value.raw not in (None, False, 0, "", "none")


def window(run: Run) -> int | None:
    """The number of earlier tokens that a query sees in a windowed layer."""
    size = run.window_size
    first = size[0] if isinstance(size, (tuple, list)) and size else run.sliding_window
    return first if isinstance(first, int) and first > 0 else None


def window_every(run: Run) -> int | None:
    """Every n-th layer sees all tokens."""
    every = run.window_attn_skip_freq
    return every if isinstance(every, int) and not isinstance(every, bool) else None


Counts = tuple[tuple[int, ...], ...]
KEPT = {
    "self_attention": ("norm 1 output", "query key value", "attention output"),
    "input_layernorm": ("norm 1 input",),
}
"""The tensors that a module saves separately, by its name in a layer."""
MAYBE = ("query key norm inputs", "key value up", "compressed query", "attention output, padded")
"""The tensors that attention saves as parts of larger tensors, which are not copied, or as whole tensors."""
MLP = ("fc1 output", "gate activation", "activation output", "weighted activation")
EXPERTS = ("router", "dispatched tokens", "expert outputs", "shared experts")
OLDER = "input_layernorm,self_attention,pre_cross_attn_layernorm"
"""The default of MindSpeed-LLM before 2.2 if --swap-modules is not given (training/arguments.py of 2.1.0)."""


def modules(run: Run) -> tuple[str, ...]:
    """The modules whose tensors are swapped; none if the option is off, or names modules without a formula."""
    if not run.value("swap_attention").written or not run.swap_attention:
        return ()
    named = run.swap_modules or OLDER
    if any(name in named for name in ("mlp", "pre_mlp_layernorm")) or run.schedules_method == "dualpipev":
        return ()
    return tuple(name for name in KEPT if name in named) if "self_attention" in named else ()


def outputs(run: Run) -> tuple[tuple[tuple[str, ...], Counts], ...]:
    """The outputs that are freed while other layers run, with the layers of each stage."""
    swapped = modules(run)
    if not swapped:
        return ()
    held = held_layers(run)
    away, again = _numbers(run, len(held))
    names = tuple(name for module in swapped for name in KEPT[module])
    return (names, _dealt(held, away)), ((*MLP, *EXPERTS), _dealt(held, again))


def repeated(run: Run) -> tuple[tuple[str, Counts], ...]:
    """The recomputed linears; those of experts with their exchange."""
    if not modules(run):
        return ()
    held = held_layers(run)
    counts = _dealt(held, _numbers(run, len(held))[1])
    return (("experts", counts),) if run.num_experts else (("fc1", counts), ("fc2", counts))


def _numbers(run: Run, chunks: int) -> tuple[int, int]:
    """Layers of a rank that are swapped, and those with a recomputed MLP (adaptor.py:96-118)."""
    rank = run.num_layers // run.pipeline_model_parallel_size
    count = run.recompute_num_layers or 0
    if not run.enable_recompute_layers_per_pp_rank:
        count = rank if count >= (run.num_layers_per_virtual_pipeline_stage or rank) else count * chunks
    count = rank if run.recompute_method == "uniform" else min(count, rank)
    return (count if run.recompute_method == "block" else rank), count


def _dealt(held: Counts, count: int) -> Counts:
    """Distributed over a rank's virtual stages one by one."""
    return tuple(tuple(min(n, max(0, -(-(count - v) // len(held)))) for n in row) for v, row in enumerate(held))
