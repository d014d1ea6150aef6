"""Checks that the pynative trainer makes on context parallelism, when it builds the model or in the first step."""

from preflight.dialects.mindformers.pynative_network_fields import names
from preflight.lint.constraint import ConstraintSet, divides, put, refuse
from preflight.lint.expressions import Handles, all_of, any_of

a = Handles(names())
PYNATIVE = ConstraintSet("pynative", why="the run fails when context parallelism is applied")
GPT = "mindformers/pynative/base_models/gpt/parallelize.py"
CONTEXT = "mindformers/pynative/distributed/context_parallel.py"
many = a["distributed"]
context, tensor, method = a["parallelism.context_parallel"], a["parallelism.tensor_parallel"], a["context_method"]
split_mask = a["train_dataset.dataloader.config.create_compressed_eod_mask"] == True
sparse = a["net.experimental_attention_variant"].is_in("dsa", "dsv4_hybrid")

PYNATIVE.add(
    refuse(
        "context-method",
        many & (context > 1) & ~method.is_in("colossal", "ulysses", "hybrid") & ~sparse,
        message=(
            "context_parallel_method is {parallelism.context_parallel_method}; it must be colossal, ulysses or hybrid"
        ),
        why="the run fails when context parallelism is applied to the attention. Graph mode uses other names",
        at=(a["parallelism.context_parallel_method"],),
    ),
    refuse(
        "context-mask",
        many
        & (context > 1)
        & (a["net.experimental_attention_variant"] != "dsa")
        & ~a["net.use_attn_mask_compression"]
        & ~a["net.use_eod_attn_mask_compression"]
        & ~split_mask,
        message=(
            "context_parallel {parallelism.context_parallel} needs use_attn_mask_compression, or "
            "create_compressed_eod_mask in the data"
        ),
        at=(context, a["net.use_attn_mask_compression"]),
        fixes=(put(a["net.use_attn_mask_compression"], True),),
    ),
    refuse(
        "context-async-colossal",
        many
        & (context > 1)
        & (a["parallelism.context_parallel_async"] == True)
        & (method == "colossal")
        & (a["net.experimental_attention_variant"] != "dsa"),
        message="context_parallel_async works with ulysses and hybrid, not with colossal",
        at=(
            a["parallelism.context_parallel_async"],
            a["parallelism.context_parallel_method"],
        ),
        fixes=(put(a["parallelism.context_parallel_async"], False),),
    ),
    refuse(
        "context-async-model",
        many
        & (context > 1)
        & (a["parallelism.context_parallel_async"] == True)
        & method.is_in("ulysses", "hybrid")
        & (a["model.model_type"] == "qwen3"),
        message="context_parallel_async does not work with qwen3",
        at=(
            a["parallelism.context_parallel_async"],
            a["model.model_type"],
        ),
        fixes=(put(a["parallelism.context_parallel_async"], False),),
    ),
    refuse(
        "context-rope-fusion",
        many
        & (context > 1)
        & (a["net.apply_rope_fusion"] == True)
        & (a["net.use_eod_attn_mask_compression"] == False)
        & ~split_mask,
        message=(
            "apply_rope_fusion does not work with context_parallel {parallelism.context_parallel} unless "
            "create_compressed_eod_mask is on"
        ),
        why="the fused kernel does not support per-sample positions",
        at=(
            a["net.apply_rope_fusion"],
            context,
        ),
        fixes=(put(a["net.apply_rope_fusion"], False),),
    ),
    refuse(
        "ulysses-degree",
        (context > 1)
        & (method == "ulysses")
        & a["parallelism.ulysses_degree_in_cp"].is_set
        & (a["parallelism.ulysses_degree_in_cp"] != context)
        & ~sparse,
        message=(
            "ulysses needs ulysses_degree_in_cp equal to context_parallel {parallelism.context_parallel}, not "
            "{parallelism.ulysses_degree_in_cp}"
        ),
        why="the run fails in the first step",
        at=(
            a["parallelism.ulysses_degree_in_cp"],
            context,
        ),
    ),
    divides(
        "ulysses-heads",
        a["ulysses"],
        a["net.num_attention_heads"] // tensor,
        when=all_of(many, context > 1, method.is_in("ulysses", "hybrid"), ~sparse, a["ulysses"] > 1),
        message="{heads} attention heads per rank are not divisible by {ulysses} Ulysses ranks",
        why="every Ulysses rank must hold whole heads",
        at=(a["parallelism.ulysses_degree_in_cp"], context, tensor),
        shows={"heads": a["net.num_attention_heads"] // tensor},
        layout=True,
    ),
)

PYNATIVE.add(
    refuse(
        "first-step-context",
        all_of(
            context > 1,
            method == "hybrid",
            any_of(
                a["parallelism.ulysses_degree_in_cp"].is_none,
                a["parallelism.ulysses_degree_in_cp"] <= 1,
                a["parallelism.ulysses_degree_in_cp"] >= context,
                context % a["parallelism.ulysses_degree_in_cp"] != 0,
            ),
        ),
        message=(
            "context_parallel_method hybrid with context_parallel {parallelism.context_parallel} needs a "
            "ulysses_degree_in_cp that is above 1, below context_parallel and a divisor of context_parallel, not "
            "{degree}"
        ),
        why="the run starts and crashes in its first step",
        at=(a["parallelism.ulysses_degree_in_cp"], a["parallelism.context_parallel_method"]),
        shows={"degree": a["parallelism.ulysses_degree_in_cp"]},
        layout=True,
    ),
    refuse(
        "first-step-mask",
        (context > 1) & ~a["parallelism.context_parallel_mask_type"].is_in("causal", "Causal", "CAUSAL", ""),
        message="context parallelism supports only the causal mask, not {parallelism.context_parallel_mask_type}",
        why="the run starts and crashes in its first step",
        at=(a["parallelism.context_parallel_mask_type"],),
        fixes=(put(a["parallelism.context_parallel_mask_type"], "causal"),),
    ),
    refuse(
        "first-step-sequence",
        (context > 1) & (a["net.seq_length"] % context != 0),
        message=(
            "seq_length {net.seq_length} is not divisible by {parallelism.context_parallel} context-parallel ranks"
        ),
        why="the run starts and crashes in its first step",
        at=(
            a["net.seq_length"],
            context,
        ),
        layout=True,
    ),
)
