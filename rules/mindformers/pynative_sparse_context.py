"""Checks of context parallelism with sparse attention or ring attention in pynative mode."""

from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of
from preflight.lint.value_kinds import ListOf, whole

a = Handles(names())
WHY = "the run fails when context parallelism is applied to the attention"
PYNATIVE = ConstraintSet("pynative", why=WHY)
context, method, degree = a["parallelism.context_parallel"], a["context_method"], a["parallelism.ulysses_degree_in_cp"]
split = all_of(a["distributed"], context > 1)
sparse = all_of(split, a["net.experimental_attention_variant"] == "dsa", a["net.multi_latent_attention"])
loss, pause = a["net.dsa_indexer_use_sparse_loss"], a["parallelism.context_parallel_async"]
ratios, RATIOS = a["net.csa_compress_ratios"], ListOf(whole(0, 0, also=(4, 128)))
compressed = all_of(split, a["net.experimental_attention_variant"] == "dsv4_hybrid")

PYNATIVE.add(
    refuse(
        "sparse-context-method",
        all_of(sparse, ~method.is_in("colossal", "ulysses", "hybrid")),
        message=(
            "context_parallel_method is {parallelism.context_parallel_method}; it must be colossal, ulysses or hybrid"
        ),
        at=(a["parallelism.context_parallel_method"],),
    ),
    refuse(
        "sparse-context-stage",
        all_of(sparse, loss, method.is_in("ulysses", "hybrid")),
        message=(
            "dsa_indexer_use_sparse_loss needs context_parallel_method colossal, not "
            "{parallelism.context_parallel_method}"
        ),
        why="Ulysses and hybrid support only the dense warm-up stage, so " + WHY,
        at=(a["parallelism.context_parallel_method"], loss),
    ),
    refuse(
        "sparse-context-async",
        all_of(sparse, ~loss, pause, method.is_in("ulysses", "hybrid")),
        message=(
            "context_parallel_async does not work with {parallelism.context_parallel_method} in the dense stage of "
            "sparse attention"
        ),
        at=(pause, a["parallelism.context_parallel_method"]),
        fixes=(put(pause, False),),
    ),
    refuse(
        "sparse-context-degree",
        all_of(sparse, ~loss, method == "ulysses", degree.is_set, degree != context),
        message=(
            "ulysses needs ulysses_degree_in_cp equal to context_parallel {parallelism.context_parallel}, not "
            "{parallelism.ulysses_degree_in_cp}"
        ),
        at=(degree, context),
    ),
    refuse(
        "hybrid-entries",
        all_of(a["net.experimental_attention_variant"] == "dsv4_hybrid", ratios.is_set, ~ratios.is_a(RATIOS)),
        message="csa_compress_ratios is {net.csa_compress_ratios}; each entry must be 0, 4 or 128",
        why="the kernels can only compress by 4 or by 128, so the network's configuration rejects any other entry",
        at=(ratios,),
    ),
    refuse(
        "hybrid-context-mask",
        all_of(compressed, a["net.use_eod_attn_mask_compression"], ~a["net.use_ring_attention"]),
        message="context_parallel with dsv4_hybrid attention does not work with use_eod_attn_mask_compression",
        why="dsv4_hybrid attention supports only padded sequences, so the run fails in the first step",
        at=(context, a["net.use_eod_attn_mask_compression"]),
    ),
    refuse(
        "hybrid-context-sequence",
        all_of(
            compressed,
            a["net.seq_length"] % context == 0,
            any_of(*(all_of(ratios.has(n), a["net.seq_length"] // context % n != 0) for n in (4, 128))),
        ),
        message=(
            "a rank has {tokens} of {net.seq_length} tokens, which are not divisible by the compression of csa_compress_ratios"
        ),
        why=(
            "every rank compresses its own part of the sequence, which must be divisible by the compression, so the "
            "run fails in the first step"
        ),
        at=(context, a["net.seq_length"]),
        shows={"tokens": a["net.seq_length"] // context},
        layout=True,
    ),
    refuse(
        "context-async-ring",
        all_of(
            *(split, pause, method.is_in("ulysses", "hybrid"), a["net.use_ring_attention"]),
            a["net.experimental_attention_variant"] != "dsa",
        ),
        message="context_parallel_async does not work with use_ring_attention",
        at=(pause, a["net.use_ring_attention"]),
        fixes=(put(pause, False),),
    ),
)
