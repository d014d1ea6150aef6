"""One size or trait of the network differs from the published model that the run names.

## What it does
Compares the sizes of the network with those of the model that the tokenizer's or the checkpoint's path names
(`model_from_hf/llama-3-8b-hf`), or else the name of the file (`pretrain_qwen3_8b.sh`), where all of them are the
published ones but one: hidden size, heads, key-value heads, intermediate size, experts, experts per token. Where none
of these differs, and the number of layers does not, it compares the width of a head, the weights of the output layer
(those of the embedding, or its own), the norm of queries and keys, the gate of the MLP, and biases; and where these
agree, whether the base of rotary positions is below the published one. The number of layers alone is not compared:
tests and trials shorten models. A network of experts is not compared with a dense one: it may take only its tokenizer.

## Why is this bad?
Weights of the published model do not load into another shape, or load silently into part of it; a run from
scratch trains another model than the one whose name it has.

## Example
Llama-3-8B has 8 key-value heads; without the option, all 32 heads have their own keys and values.

    --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --tokenizer-model meta-llama/Meta-Llama-3-8B

Use instead

    --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8

## Fix safety
No fix: a name may have another meaning.

## References
schemas/models.json, from the config.json that each model is published with
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.run.models import Published, of_file, published

COMPARED = {
    "hidden": "a hidden size of {size}",
    "heads": "{size} attention heads",
    "query_groups": "{size} key-value heads",
    "ffn": "an intermediate size of {size}",
    "experts": "{size} experts",
    "top_k": "{size} experts per token",
}
TRAITS = {
    "tied": ("an output layer that shares the weights of the embedding", "a separate output layer"),
    "qk_norm": ("a norm of queries and keys", "no norm of queries and keys"),
    "bias": ("biases in its linear layers", "no biases in its linear layers"),
    "qkv_bias": ("biases of queries, keys and values", "no biases of queries, keys and values"),
    "head_dim": ("heads of width {size}", "heads of width {size}"),
    "gated": ("a gated MLP", "an MLP without a gate"),
}
"""What a trait is called where a model has it, and where not."""
MOST_TRAITS = 2
"""With more, it is another network of the same sizes."""
LEAST = 4
"""Sizes that must agree before the odd one is reported."""


@rule(severity=Severity.WARNING)
def check(job: Job) -> Iterator[Finding | Unverified]:
    names = job.plan.model.names.raw
    if not isinstance(names, tuple):
        return
    model = published(names) or of_file(job.documents[0].source.name.rpartition("/")[2])
    if model is None:
        return
    own = {name: getattr(job.plan.model, name) for name in COMPARED if name in model.sizes}
    if "experts" in own and "dense" not in model.traits and model.sizes["ffn"] != model.sizes.get("expert_ffn"):
        own.pop("ffn", None)  # every layer has experts, which have a separate width
    known = {name: value for name, value in own.items() if value.known and isinstance(value.raw, int)}
    odd = [name for name, value in known.items() if value.raw != model.sizes[name]]
    lost = next((value for value in own.values() if not value.known), None)
    if lost is not None and not odd:
        yield Unverified(lost.because)
    if len(known) < max(LEAST, len(own)) or _is_of_experts(job) != ("experts" in model.sizes):
        return
    if not odd and job.plan.model.layers.raw == model.sizes["layers"]:
        yield from _traits(job, model)
    if len(odd) != 1:
        return
    value = known[odd[0]]
    yield Finding(
        Message(
            "{model} has {published}, this run {own}",
            model=model.name,
            published=Message(COMPARED[odd[0]], size=model.sizes[odd[0]]),
            own=value.raw,
        ),
        span=job.place(value),
    )


def _traits(job: Job, model: Published) -> Iterator[Finding | Unverified]:
    """A trait that differs, where the sizes are those of the model."""
    wanted: dict[str, object] = {name: bool(model.traits.get(name)) for name in ("tied", "bias")}
    wanted["qkv_bias"] = bool(model.traits.get("bias") or model.traits.get("qkv_bias"))
    if not model.traits.get("post_norm"):  # other options decide the MLP of Gemma
        wanted["gated"] = True
    if job.plan.model.latent.raw is not True:  # latent attention has other heads and norms
        wanted["qk_norm"] = bool(model.traits.get("qk_norm"))
        wanted |= {"head_dim": model.sizes["head_dim"]} if "head_dim" in model.sizes else {}
    own = {name: getattr(job.plan.model, name) for name in wanted}
    odd = [name for name, value in own.items() if value.known and value.raw != wanted[name]]
    if "bias" in odd and "qkv_bias" in odd:
        odd.remove("qkv_bias")  # one option decides both
    if any(not value.known for value in own.values()):
        yield Unverified(next(value.because for value in own.values() if not value.known))
        return
    if not odd:
        yield from _rotary_base(job, model)
    if not 0 < len(odd) <= MOST_TRAITS:
        return
    name, value = odd[0], own[odd[0]]
    here, there = (TRAITS[name][0 if has else 1] for has in (value.raw, wanted[name]))
    yield Finding(
        Message(
            "{model} has {published}, this run {own}",
            model=model.name,
            published=Message(there, size=wanted[name]),
            own=Message(here, size=value.raw),
        ),
        span=job.place(value, job.plan.model.hidden),
    )


def _rotary_base(job: Job, model: Published) -> Iterator[Finding]:
    """A base of rotary positions below that of the model; a larger one stretches its context on purpose."""
    value, wanted = job.plan.model.rotary_base, model.traits.get("theta")
    if wanted is None or not value.known or not isinstance(value.raw, (int, float)) or value.raw >= wanted:
        return
    yield Finding(
        Message(
            "{model} has {published}, this run {own}",
            model=model.name,
            published=Message("a rotary base of {size}", size=wanted),
            own=value.raw,
        ),
        span=job.place(value, job.plan.model.hidden),
    )


def _is_of_experts(job: Job) -> bool:
    """Whether the network has experts: one of experts is not meant to be a dense one whose tokenizer it takes."""
    experts = job.plan.model.experts
    return experts.known and isinstance(experts.raw, int) and experts.raw > 1
