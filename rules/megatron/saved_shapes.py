"""Compares the tensors in a checkpoint with those of the network that the run builds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from preflight import Job
from preflight.job import Checkpoint
from preflight.rules.megatron.saved_arguments import goes_on, is_known, is_on, loaded
from preflight.run.version_ranges import matches
from preflight.source.record import NamedTuple

OTHER_NETWORK = (
    *("use_legacy_models", "spec", "heterogeneous_layers_config_path", "heterogeneous_layers_config_encoded_json"),
    *("hybrid_layer_pattern", "hybrid_override_pattern", "is_hybrid_model", "experimental_attention_variant"),
    *("moe_use_upcycling", "multi_latent_attention", "attention_output_gate", "moe_latent_size", "use_checkpoint_args"),
    *("linear_attention_type", "export_te_mcore_model", "use_megatron_fsdp"),
)
"""Arguments that give a network different tensors, or that take its sizes from the checkpoint."""
STRICT = ("assume_ok_unexpected", "raise_unexpected", "raise_all")
"""Values of `--dist-ckpt-strictness` for which a tensor that is missing from the checkpoint ends the run."""
BOTH_WAYS = "raise_all"
"""The value for which a tensor that is missing from the run ends it as well."""
STACKED = "decoder.layers.mlp.router.weight"
"""The name of the tensor if all layers are stored in one tensor."""
NETWORK = ("decoder.", "embedding.", "output_layer.")
GATES = ("swiglu", "quick_geglu")
TENSOR, EXPERT = "tensor_model_parallel_size", "expert_tensor_parallel_size"


class Size(NamedTuple):
    """A size of a tensor. axis: counted from the end; value: the size in this run; names: the arguments that determine
    it; over: the argument for the number of parts into which the files of the ranks split it."""

    tensor: str
    axis: int
    value: int
    names: tuple[str, ...]
    over: str = ""


GLOBAL = ("torch_dist", "zarr")
"""Kinds of checkpoints whose tensors have the shapes of the whole network."""


class Unlike(NamedTuple):
    """A tensor that differs from the one in the run. names: the arguments that determine it; saved: its shape in the
    checkpoint, () if it is missing; wanted: its shape in the run, () if it is missing."""

    tensor: str
    names: tuple[str, ...]
    saved: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()


def comparable(job: Job) -> Checkpoint | None:
    """The checkpoint, if it has the tensors of a network of the kind that this run builds."""
    found = loaded(job)
    if found is None or job.target.framework != "megatron" or job.plan.model.family.raw != "gpt":
        return None
    others = (job.arguments.given(name) for name in OTHER_NETWORK)
    if any(other is not None and other.raw not in (None, False, "") for other in others):
        return None
    names = dict(found.shapes)
    whole = "embedding.word_embeddings.weight" in names and any("linear_qkv.weight" in name for name in names)
    return found if whole else None


def unlike(job: Job) -> list[Unlike]:
    """The tensors for which the loader ends the run; if hidden size or depth differ, only the tensors that show
    that."""
    found = comparable(job)
    if found is None:
        return []
    first = [*_unlike_sizes(job, found, _frame(job, found))]
    if first:
        return [] if goes_on(job) and found.kind not in GLOBAL else first
    return [*_unlike_sizes(job, found, _inner(job, found)), *_missing(job, found)]


def _number(job: Job, name: str) -> int:
    """A size of the run that is certain, otherwise 0."""
    value = job.arguments.get(name)
    return value.raw if is_known(value) and type(value.raw) is int and value.raw > 0 else 0


def _named(found: Checkpoint, end: str) -> str:
    """The tensor of the layers with this name ending, in either form; "" if there is none."""
    forms = (f"decoder.layers.{end}", f"decoder.layers.*.{end}")
    names = dict(found.shapes)
    return next((name for name in forms if name in names), "")


def _frame(job: Job, found: Checkpoint) -> Iterator[Size]:
    """Hidden size and depth, on which the other sizes depend."""
    yield Size("embedding.word_embeddings.weight", 1, _number(job, "hidden_size"), ("hidden_size",))
    stacked = "decoder.layers.self_attention.linear_qkv.weight"
    yield Size(stacked, 3, _number(job, "num_layers"), ("num_layers",))


def _inner(job: Job, found: Checkpoint) -> Iterator[Size]:
    number, named = partial(_number, job), partial(_named, found)
    heads, width = number("num_attention_heads"), number("kv_channels")
    grouped = job.arguments.get("group_query_attention")
    groups = number("num_query_groups") if grouped.raw is True else heads if grouped.raw is False else 0
    asked = ("num_attention_heads", "kv_channels")
    by_groups = ("group_query_attention", "num_query_groups", *asked)
    together = width * (heads + 2 * groups) if groups else 0
    if not (goes_on(job) and "num_attention_heads" in changed(job, ("num_attention_heads",))):
        yield Size(named("self_attention.linear_qkv.weight"), 2, together, by_groups, TENSOR)
        yield Size(named("self_attention.linear_proj.weight"), 1, width * heads, asked, TENSOR)
    gates, gated = GATES, _gated(job)
    inner = ("ffn_hidden_size", *gates)
    yield Size(named("mlp.linear_fc1.weight"), 2, number("ffn_hidden_size") * gated, inner, TENSOR)
    yield Size(named("mlp.linear_fc2.weight"), 1, number("ffn_hidden_size") if gated else 0, inner, TENSOR)
    if is_on(job, "num_experts"):
        wide = number("moe_ffn_hidden_size")
        experts = named("mlp.experts.experts.linear_fc1.weight") or named("mlp.experts.local_experts.linear_fc1.weight")
        shared = named("mlp.shared_experts.linear_fc1.weight")
        yield Size(named("mlp.router.weight"), 2, number("num_experts"), ("num_experts",))
        yield Size(experts, 2, wide * gated, ("moe_ffn_hidden_size", *gates), EXPERT)
        between = "moe_shared_expert_intermediate_size"
        yield Size(shared, 2, number(between) * gated, (between, *gates), TENSOR)
    if job.arguments.get("position_embedding_type").raw == "learned_absolute":
        places = "max_position_embeddings"
        yield Size("embedding.position_embeddings.weight", 2, number(places), (places,))
    null = (
        job.arguments.get("tokenizer_type").raw == "NullTokenizer"
    )  # the files of other tokenizers may have any vocabulary
    if found.kind == "torch" and null:  # in a distributed checkpoint the tensor is padded or truncated
        padded = ("padded_vocab_size", "make_vocab_size_divisible_by", "vocab_size", TENSOR)
        yield Size("embedding.word_embeddings.weight", 2, number("padded_vocab_size"), padded, TENSOR)


def _gated(job: Job) -> int:
    """The number of matrices in the first layer of a feed-forward network; 0 if it is unknown."""
    given = [value for gate in GATES if (value := job.arguments.given(gate)) is not None]
    return 1 + any(value.raw is True for value in given) if all(value.known for value in given) else 0


def _unlike_sizes(job: Job, found: Checkpoint, sizes: Iterator[Size]) -> Iterator[Unlike]:
    shapes = dict(found.shapes)
    for size in sizes:
        shape = shapes.get(size.tensor, ())
        parts = _parts(job, size.over) if found.kind == "torch" and size.over else 1
        if size.value and parts and len(shape) >= size.axis and shape[-size.axis] * parts != size.value:
            at = len(shape) - size.axis
            shape = (*shape[:at], shape[at] * parts, *shape[at + 1 :])
            yield Unlike(size.tensor, size.names, shape, (*shape[:at], size.value, *shape[at + 1 :]))


def _parts(job: Job, name: str) -> int:
    """The number of parts into which the files of the ranks split a tensor; 0 if the run uses a different number."""
    saved = job.site.saved if job.site is not None else {}
    tensor = saved.get(TENSOR, 1)
    parts = saved.get(name) or tensor
    return parts if type(parts) is int and tensor == _number(job, TENSOR) else 0


def _missing(job: Job, found: Checkpoint) -> Iterator[Unlike]:
    """Tensors that the run needs but the checkpoint lacks, and vice versa if that ends the run as well."""
    if not _wants_all(job, found):
        if found.kind in GLOBAL and _gated(job) > 1:  # its two halves are assembled from the tensors that exist
            yield from (one for one in _absent(job, found) if one.names == ("add_bias_linear",))
        return
    if _named(found, "mlp.router.weight") == STACKED and _is_uneven(job.arguments.get("moe_layer_freq").raw):
        yield Unlike("decoder.layers.0.mlp.linear_fc1.weight", ("moe_layer_freq",))
        return
    yield from _absent(job, found)


def _absent(job: Job, found: Checkpoint) -> Iterator[Unlike]:
    strict = found.kind == "torch" or job.arguments.get("dist_ckpt_strictness").raw == BOTH_WAYS
    shapes = dict(found.shapes)
    for tensor, argument, needed in _wanted(job):
        whole = tensor if tensor.startswith(NETWORK) else _named(found, tensor)
        if needed is True and whole not in shapes:
            yield Unlike(whole or f"decoder.layers.*.{tensor}", (argument,))
        elif needed is False and strict and whole in shapes:
            yield Unlike(whole, (argument,), shapes[whole])


def _wanted(job: Job) -> Iterator[tuple[str, str, bool | None]]:
    """Tensors that only some networks have, the arguments that decide, and whether the run has them; None if unsure."""
    get = job.arguments.get
    routed = is_on(job, "num_experts") and get("moe_layer_freq").raw in (1, None)
    shared, biased = "moe_shared_expert_intermediate_size", "moe_router_enable_expert_bias"
    untied = "untie_embeddings_and_output_weights"
    yield "output_layer.weight", untied, _is(job, untied, True)
    yield "decoder.final_layernorm.bias", "normalization", _is(job, "normalization", "LayerNorm")
    positions = _is(job, "position_embedding_type", "learned_absolute")
    yield "embedding.position_embeddings.weight", "position_embedding_type", positions
    yield "self_attention.linear_proj.bias", "add_bias_linear", _is(job, "add_bias_linear", True)
    yield "self_attention.linear_qkv.bias", "add_qkv_bias", is_on(job, "add_qkv_bias") or None
    yield "self_attention.q_layernorm.weight", "qk_layernorm", _is(job, "qk_layernorm", True)
    yield "mlp.linear_fc1.weight", "num_experts", (get("num_experts").known and not get("num_experts").raw) or None
    yield "mlp.router.weight", "num_experts", routed or None
    yield "mlp.router.expert_bias", biased, (routed and is_on(job, biased)) or None
    yield "mlp.shared_experts.linear_fc1.weight", shared, (routed and is_on(job, shared)) or None


def _is(job: Job, name: str, wanted: object) -> bool | None:
    """Whether an argument has a value; None if it is uncertain."""
    value = job.arguments.get(name)
    return value.raw == wanted if is_known(value) else None


def _is_uneven(frequency: object) -> bool:
    """Whether some layers have experts and others do not: then each layer is saved under its number."""
    if isinstance(frequency, (list, tuple)):
        return len(set(frequency)) > 1
    return type(frequency) is int and frequency > 1


def _wants_all(job: Job, found: Checkpoint) -> bool:
    """Whether a missing tensor ends the run: core 0.13 and later leave it unchanged, unless the loader of distributed
    checkpoints has already refused it."""
    release = job.versions.get("megatron", "")
    early = bool(release[:1].isdigit()) and matches(release, "<0.13")
    if found.kind in GLOBAL:
        return early or job.arguments.get("dist_ckpt_strictness").raw in STRICT
    saved = job.site.saved if job.site is not None else {}
    return early and saved.get("pipeline_model_parallel_size") == 1


def changed(job: Job, names: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments in `names` that are known to differ from those of the run that saved the checkpoint."""
    saved, get = job.site.saved if job.site is not None else {}, job.arguments.get
    return tuple(name for name in names if name in saved and is_known(get(name)) and get(name).raw != saved[name])
