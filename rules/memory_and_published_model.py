"""Checks that use the memory estimate and the sizes of published models."""

from collections.abc import Iterable, Iterator

from preflight import Finding, Job, Message, Severity, Unverified, Value, rule
from preflight.loaders.document import Document
from preflight.rules.published_model_traits import differs, further_traits
from preflight.run.published_models import Published, has_twin, names_another, of_file, published
from preflight.source.finding import Kind
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.resolved_words import Needed, Reason

GIB = 2**30
ENGINE = "rollout engine"


@rule(id="predicted-oom", severity=Severity.ERROR, sometimes=(Severity.WARNING,), kind=Kind.MEMORY)
def predicted_oom(job: Job) -> Iterator[Finding | Unverified]:
    """The run does not fit, or may not fit, in device memory.

    ## What it does
    Estimates the memory of every pipeline stage at the second step, when optimizer states exist: weights, gradients,
    optimizer states, activations of the micro-batches in flight, loss buffers, and the runtime's own overhead. The
    finding is an error if even the lower bound exceeds the device memory. It is a warning if only the likely
    requirement exceeds the device memory, or if the lower bound relies on the published size of a model. Unknown values
    are counted as ranges; if the range is wider than a factor of two, its upper end does not cause a warning.

    ## Why is this bad?
    The job runs out of memory at the first or second step, or hours later at the first long sample, on every device
    that it queued for.

    ## Example
    A 7B model with plain Adam and no sharding keeps 18 bytes per parameter: 121 GB before the first activation.

        --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --bf16

    Instead, use more sharding (`--use-distributed-optimizer`, tensor or pipeline parallelism), recomputation, or a smaller
    micro-batch; `preflight layouts` finds layouts that fit.

    ## Fix safety
    No automatic fix; `preflight layouts` suggests other layouts.

    ## References
    Megatron-LM d98e8a6, megatron/training/theoretical_memory_usage.py; terms as printed by `preflight memory`
    """
    if (budget := job.cluster.budget) is None:
        yield Unverified(Reason("the device is unknown", Needed.DEVICE))
        return
    estimate = job.memory
    worst = estimate.worst
    if worst is None or estimate.verdict == "unknown":
        yield Unverified(estimate.unknown[0])
        return
    if estimate.verdict == "fits":
        return
    sure = estimate.verdict == "does-not-fit"
    if estimate.supposed or (estimate.wide and estimate.taken and not sure):
        yield Unverified((*estimate.assumed, *estimate.taken)[0])
        return
    if sure:
        worst = max(estimate.stages, key=lambda stage: stage.low)
    counted = (term for term in worst.terms if term.kind != "device" or term.name == ENGINE)
    sizes = largest((term.name, term.high) for term in counted)
    parts = tuple(Message("{term} {size:.1f}", term=Message(name), size=size / GIB) for name, size in sizes)
    low = max(stage.low for stage in estimate.stages) / GIB
    stage = Message("stage {index} of {count}", index=worst.index, count=len(estimate.stages))
    yield Finding(
        Message(
            "{where} needs at least {low:.1f} GiB, but only {budget:.1f} GiB are available ({parts} GiB)"
            if sure
            else "{where} needs {low:.1f} to {high:.1f} GiB, but only {budget:.1f} GiB are available ({parts} GiB)",
            where=stage if len(estimate.stages) > 1 else Message("every rank"),
            low=worst.low / GIB if sure else low,
            high=worst.required / GIB,
            budget=budget / GIB,
            parts=parts,
        ),
        span=job.place(job.plan.batch.micro, job.plan.layout.tensor, job.plan.layout.pipeline, job.plan.model.layers),
        related=tuple(place._replace(label=str(job.cluster.named.raw)) for place in job.cluster.named.related),
        severity=Severity.ERROR if sure else Severity.WARNING,
        layout=True,
    )


def largest(terms: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """The three largest terms of a stage, with all activations counted as one term."""
    sizes: dict[str, float] = {}
    for term, size in terms:
        name = term.partition(":")[0]
        sizes[name] = sizes.get(name, 0.0) + size
    return sorted(sizes.items(), key=lambda item: -item[1])[:3]


COMPARED = {
    "hidden": "a hidden size of {size}",
    "heads": "{size} attention heads",
    "query_groups": "{size} key-value heads",
    "ffn": "an intermediate size of {size}",
    "experts": "{size} experts",
    "top_k": "{size} experts per token",
    "expert_ffn": "experts with an intermediate size of {size}",
}
TRAITS = {
    "tied": ("an output layer that shares the weights of the embedding", "a separate output layer"),
    "qk_norm": ("a norm of queries and keys", "no norm of queries and keys"),
    "bias": ("biases in its linear layers", "no biases in its linear layers"),
    "qkv_bias": ("biases of queries, keys and values", "no biases of queries, keys and values"),
    "head_dim": ("heads of width {size}", "heads of width {size}"),
    "gated": ("a gated MLP", "an MLP without a gate"),
}
"""The words for a trait that a model has, and for one that it does not have."""
MOST_TRAITS = 2
"""If more traits differ, it is a different network of the same sizes."""
PADDED = 1.1
"""The most layers, with empty ones that fill pipeline stages, as a multiple of the published number."""
LEAST = 4
"""The number of sizes that must agree before the one that differs is reported."""


SAME_SLIP = (
    *("megatron/hidden-over-heads", "megatron/heads-over-query-groups", "megatron/query-groups-ignored"),
    "megatron/latent-rank-left-out",
    *("mindspeed/fused-swiglu-without-swiglu", "mindspeed-llm/yarn-covers-too-little"),
    *("mindspeed-llm/num-layer-list-sum", "experts-not-divisible", "mindspeed/fused-rmsnorm-with-layernorm"),
)
"""Rules that report the same mistake: a size or a switch that differs from the model's."""


@rule(id="differs-from-published", severity=Severity.WARNING, after=SAME_SLIP)
def differs_from_published(job: Job) -> Iterator[Finding | Unverified]:
    """One property of the network differs from the published model that the run names.

    ## What it does
    Compares the sizes of the network with those of a published model. The model is the one that the path of the
    tokenizer or the checkpoint names (`model_from_hf/llama-3-8b-hf`), or else the name of the file
    (`pretrain_qwen3_8b.sh`) or of the log that the launch is piped into (`| tee logs/qwen3_8b.log`), or else the
    `trainer.model_name` of a MindFormers training config that loads a checkpoint and has the vocabulary of the model.
    The rule reports the hidden size, heads, key-value heads,
    intermediate size, experts, their intermediate size or experts per token if only one of them differs from the
    published values.

    If all of these and the number of layers agree, the rule also compares the head width, the weights of the output
    layer (shared with the embedding, or separate), the norm of queries and keys, the MLP gate, and biases. It does not
    compare them if the run also states a different rotary base, because the run is then a different network that only
    uses the tokenizer. If these properties agree as well, the rule compares the sizes of latent attention, and checks
    whether the rotary base or the padded vocabulary is less than the published one, whether the same part of each head
    has rotary positions, and whether these and the weights of the router are scaled by the same factors. If the path of
    the checkpoint names the model, one further trait is reported if only that one differs: shared experts, the number of dense layers before those with experts, the
    function and normalization of the router's scores, a stated epsilon of the norms, and learned positions.

    The number of layers is only compared if it is at least three quarters of the published one, or that of another model
    of the same family and the same sizes, because tests and trials shorten models. A mixture-of-experts network is not compared with a dense model, because it may only use its
    tokenizer. Experts are only compared in a run with most of the layers.

    ## Why is this bad?
    Weights of the published model do not load into a different shape, or silently fill only part of it. A run from
    scratch trains a different model than its name suggests.

    ## Example
    Llama-3-8B has 8 key-value heads; without the option, each of the 32 heads has separate keys and values.

        --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --tokenizer-model meta-llama/Meta-Llama-3-8B

    Use instead

        --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8

    ## Fix safety
    No fix: the name may refer to something else.

    ## References
    schemas/models.json, taken from the config.json that each model is published with
    """
    names = job.plan.model.names.raw
    if not isinstance(names, tuple):
        return
    document = job.documents[0]
    if _is_from_config(document):
        return
    models = list(_candidates(names, job))
    if not models:
        return
    model = next((one for one in models if len(_odd(_compared(job, one), one)) <= 1), models[0])
    own = _compared(job, model)
    known = {name: value for name, value in own.items() if isinstance(value.raw, int)}
    odd = _odd(own, model)
    lost = next((value for value in (*own.values(), job.plan.model.experts) if not value.known), None)
    if lost is not None and not odd:
        yield Unverified(lost.because)
    if lost is not None or len(known) < max(LEAST, len(own)) or _is_of_experts(job) != ("experts" in model.sizes):
        return
    if not odd and _all_layers(job.plan.model.layers.raw, model.sizes["layers"]):
        yield from _traits(job, model)
    elif not odd:
        yield from _layers(job, model)
    if len(odd) != 1 or _is_another_network(job, model) or _is_cut(job, model, odd[0]):
        return
    value = known[odd[0]]
    theirs = Message(COMPARED[odd[0]], size=model.sizes[odd[0]])
    yield differs(model, theirs, value.raw, job.place(value))


def _is_another_network(job: Job, model: Published) -> bool:
    """Whether the run has more layers than the model, or latent attention that the model lacks: a different network
    that only uses its tokenizer."""
    own = job.plan.model
    deeper = isinstance(own.layers.raw, int) and own.layers.raw > model.sizes["layers"] * PADDED
    return deeper or (own.latent.raw is True and "kv_lora" not in model.traits)


def _is_cut(job: Job, model: Published, odd: str) -> bool:
    """Whether the run is a shortened trial: tests of networks with experts keep few layers, and few experts."""
    layers = job.plan.model.layers.raw
    kept = isinstance(layers, int) and layers >= model.sizes["layers"] * SHORTENED
    return odd in ("experts", "top_k", "expert_ffn") and not kept


def _candidates(names: Iterable[str], job: Job) -> Iterator[Published]:
    """The model that a path names, and the one that the script or its log names, or else the config itself: a run may
    use the tokenizer of another model."""
    named, document = published(names), job.documents[0]
    if named is not None:
        yield named
    filed = of_file(document.source.name.rpartition("/")[2]) or of_file(_log(document))
    if filed is not None and filed != named and not names_another(names, filed):
        yield filed
    if named is None and filed is None:
        yield from _labelled(job)


def _labelled(job: Job) -> Iterator[Published]:
    """The model that a MindFormers training config names, if it loads a checkpoint and has the model's vocabulary: the
    name is often left over from the config that was copied."""
    a = job.arguments
    label, load = a.given("trainer.model_name"), a.given("load_checkpoint")
    if a.get("training").raw is not True or label is None or not isinstance(label.raw, str):
        return
    if load is None or not load.known or not load.raw:
        return
    model = published((label.raw,))
    if model is not None and job.plan.model.vocab.raw == model.sizes["vocab"]:
        yield model


def _compared(job: Job, model: Published) -> dict[str, Value]:
    """The sizes of the run that the model has as well."""
    own = {name: getattr(job.plan.model, name) for name in COMPARED if name in model.sizes}
    same = model.sizes.get("expert_ffn") == model.sizes["ffn"] != job.plan.model.expert_ffn.raw
    if "experts" in own and "dense" not in model.traits and not same:
        own.pop("ffn", None)  # every layer has experts, which have a separate width
    if model.sizes.get("expert_ffn") == model.sizes["ffn"]:
        own.pop("expert_ffn", None)
    if _has_own_groups(job.documents[0]) or job.plan.model.latent.raw is True:
        own.pop("query_groups", None)
    return own


def _odd(own: dict[str, Value], model: Published) -> list[str]:
    """The names of the sizes that are known and differ from those of the model."""
    return [n for n, v in own.items() if v.known and isinstance(v.raw, int) and v.raw != model.sizes[n]]


_FROM_CONFIG = lazy_pattern(r"--(?:[a-z]{1,20}-){0,3}(?:bridge|from-hf|hf-model)(?:-[a-z]{1,20}){0,4}")


def _is_from_config(document: Document) -> bool:
    """Whether an option of a fork builds the network from the model's own config."""
    words = document.launch.words if document.launch is not None else ()
    return any(_FROM_CONFIG.fullmatch((word.text or "").partition("=")[0]) is not None for word in words)


_GROUPS = lazy_pattern(r"--n(?:um)?[-_](?:kv|key[-_]value)[-_]heads")


def _has_own_groups(document: Document) -> bool:
    """Whether an option of Megatron-DeepSpeed or another fork sets the key-value heads."""
    words = document.launch.words if document.launch is not None else ()
    return any(_GROUPS.fullmatch((word.text or "").partition("=")[0]) is not None for word in words)


_LAUNCH = 20_000
"""The longest text of a launch that is searched."""
_SIZED = lazy_pattern(r"\d[bB](?![A-Za-z])")
_TEE = lazy_pattern(r"\|[ \t]*tee(?:[ \t]+-a)?[ \t]+[\"']?([^\s\"'|;&]{1,200})")


def _log(document: Document) -> str:
    """The name of the file that `tee` writes the output of the launch to; empty if there is none, or if the name of the
    script states a size, because the name of the log is often left over from another script."""
    if document.launch is None or document.kind != "script" or _SIZED.search(document.source.name.rpartition("/")[2]):
        return ""
    start = document.launch.entry.span.start
    found = _TEE.search(document.source.text, start, start + _LAUNCH)
    return found[1].rpartition("/")[2] if found else ""


SHORTENED = 0.75
"""Tests and trials keep a smaller part of the layers."""


def _layers(job: Job, model: Published) -> Iterator[Finding]:
    """A layer count that is close to the published one, or that of a model with otherwise the same sizes."""
    value, wanted = job.plan.model.layers, model.sizes["layers"]
    own = value.raw
    if not isinstance(own, int) or own >= wanted or (own < wanted * SHORTENED and not has_twin(model, own)):
        return
    theirs = Message("{size} layers", size=wanted)
    yield differs(model, theirs, value.raw, job.place(value, job.plan.model.hidden))


def _all_layers(own: object, published: int) -> bool:
    """Whether no layer is missing; a few empty ones may fill the last pipeline stage."""
    return isinstance(own, int) and published <= own <= published * PADDED


def _traits(job: Job, model: Published) -> Iterator[Finding | Unverified]:
    """A trait that differs although the sizes match those of the published model."""
    wanted: dict[str, object] = {trait: bool(model.traits.get(trait)) for trait in ("tied", "bias")}
    wanted["qkv_bias"] = bool(model.traits.get("bias") or model.traits.get("qkv_bias"))
    if not model.traits.get("post_norm"):  # other options decide the MLP of Gemma
        wanted["gated"] = True
    if job.plan.model.latent.raw is not True or job.arguments.get("kind").raw != "legacy":
        wanted["qk_norm"] = bool(model.traits.get("qk_norm"))
    if job.plan.model.latent.raw is not True:  # latent attention has other heads
        wanted |= {"head_dim": model.sizes["head_dim"]} if "head_dim" in model.sizes else {}
    own = {name: getattr(job.plan.model, name) for name in wanted}
    if any(not value.known for value in own.values()):
        yield Unverified(next(value.because for value in own.values() if not value.known))
        return
    odd = [name for name, value in own.items() if (value.raw or False) != wanted[name]]
    if "bias" in odd and "qkv_bias" in odd:
        odd.remove("qkv_bias")  # one option decides both
    if not odd:
        yield from further_traits(job, model)
    if not 0 < len(odd) <= MOST_TRAITS or _has_own_base(job, model):
        return
    name, value = odd[0], own[odd[0]]
    here, there = (TRAITS[name][0 if has else 1] for has in (value.raw, wanted[name]))
    theirs, ours = Message(there, size=wanted[name]), Message(here, size=value.raw)
    yield differs(model, theirs, ours, job.place(value, job.plan.model.hidden))


def _has_own_base(job: Job, model: Published) -> bool:
    """Whether the run states another rotary base: with a trait that differs as well, it is a different network
    that only uses the tokenizer."""
    value = job.plan.model.rotary_base
    return value.setting is not None and value.raw != model.traits.get("theta", value.raw)


def _is_of_experts(job: Job) -> bool:
    """Whether the network has experts: such a network is not meant to match a dense model whose tokenizer it uses."""
    experts = job.plan.model.experts
    return isinstance(experts.raw, int) and experts.raw > 1
