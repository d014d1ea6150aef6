"""Traits of published models that a run of the same sizes may lack: positions, norms, experts, the vocabulary."""

from collections.abc import Iterator

from preflight import Finding, Job, Message
from preflight.run.published_models import Published, published
from preflight.source.source_file import Span

LATENT = {
    "q_lora_rank": "a query rank of {size}",
    "kv_lora_rank": "a key-value rank of {size}",
    "qk_nope_dim": "heads with {size} dimensions without positions",
    "qk_rope_dim": "heads with {size} dimensions with positions",
    "v_dim": "values of width {size}",
}
"""Sizes of latent attention, by their names in a plan."""
TRAIT = {"q_lora_rank": "q_lora", "kv_lora_rank": "kv_lora", "qk_nope_dim": "nope", "qk_rope_dim": "rope", "v_dim": "v"}
"""The names of these sizes in the table of models."""


def differs(model: Published, published: Message, own: object, span: Span) -> Finding:
    """What a model has and the run has not. own: the value of the run."""
    message = Message("{model} has {published}, but this run has {own}", model=model.name, published=published, own=own)
    return Finding(message, span=span)


def further_traits(job: Job, model: Published) -> Iterator[Finding]:
    """Traits that differ, of a run with the sizes of a published model."""
    yield from _latent(job, model)
    yield from _norm(job, model)
    yield from _rotary_base(job, model)
    yield from _rotary_part(job, model)
    yield from _rotary_factor(job, model)
    yield from _router_scaling(job, model)
    yield from _vocabulary(job, model)
    if _loads(job, model):
        others = [*_experts(job, model), *_epsilon(job, model), *_positions(job, model)]
        yield from others if len(others) == 1 else ()  # if several differ, it is another network


CHECKPOINTS = (
    *("load", "pretrained_checkpoint", "load_checkpoint", "pretrained_model_dir"),
    *("hf_checkpoint", "hf_model_id", "model"),
)


def _loads(job: Job, model: Published) -> bool:
    """Whether the path of the checkpoint names the model: a run from scratch often uses only the tokenizer."""
    values = (job.arguments.given(name) for name in CHECKPOINTS)
    paths = [value.raw for value in values if value is not None and isinstance(value.raw, str)]
    return (named := published(paths)) is not None and named.name == model.name


def _latent(job: Job, model: Published) -> Iterator[Finding]:
    """A size of latent attention that differs; if several do, it is another network."""
    if job.plan.model.latent.raw is not True or "kv_lora" not in model.traits:
        return
    own = {name: getattr(job.plan.model, name) for name in LATENT}
    odd = [n for n, v in own.items() if v.known and (v.raw or None) != (model.traits.get(TRAIT[n]) or None)]
    if len(odd) != 1:
        return
    name, wanted = odd[0], model.traits.get(TRAIT[odd[0]])
    theirs = Message(LATENT[name], size=wanted) if wanted else Message("no low rank of queries")
    yield differs(model, theirs, own[name].raw or "none", job.place(own[name], job.plan.model.hidden))


def _norm(job: Job, model: Published) -> Iterator[Finding]:
    """A LayerNorm; all models of the table have an RMSNorm."""
    value = job.plan.model.norm
    if value.raw != "layer":
        return
    message = Message("{model} has RMSNorm, but this run has LayerNorm", model=model.name)
    yield Finding(message, span=job.place(value, job.plan.model.hidden))


def _experts(job: Job, model: Published) -> Iterator[Finding]:
    """The shared experts, the dense layers before those with experts, or the scores of the router differ."""
    own = job.plan.model
    if not model.sizes.get("experts") or own.experts.raw != model.sizes["experts"]:
        return
    shared, wanted = own.shared_ffn, model.traits.get("shared", 0)
    if shared.known and (shared.raw or 0) != wanted:
        theirs = Message("shared experts with an intermediate size of {size}", size=wanted)
        yield differs(
            model, theirs if wanted else Message("no shared experts"), shared.raw or 0, job.place(shared, own.experts)
        )
    layers, dense = own.expert_layers, model.traits.get("dense", 0)
    if layers.known and isinstance(layers.raw, tuple) and True in layers.raw and layers.raw.index(True) != dense:
        theirs = Message.plural(int(dense), "{count} dense layer first", "{count} dense layers first", count=int(dense))
        yield differs(model, theirs, layers.raw.index(True), job.place(layers, own.experts))
    yield from _scores(job, model)
    yield from _normalized(job, model)


def _normalized(job: Job, model: Published) -> Iterator[Finding]:
    """The weights of the chosen experts are not normalized to a sum of 1."""
    value = job.arguments.get("norm_topk_prob")
    if model.traits.get("norm_topk") and value.raw is False:
        theirs, own = Message("normalized weights of the chosen experts"), Message("no normalization")
        yield differs(model, theirs, own, job.place(value, job.plan.model.experts))


SCORES = {
    "legacy": "moe_config.use_gating_sigmoid",
    "mcore": "mcore.moe_router_score_function",
    None: "moe_router_score_function",
}
"""The name of the option, by the kind of a MindFormers config; None for Megatron."""


def _scores(job: Job, model: Published) -> Iterator[Finding]:
    """The router computes its scores with another function."""
    a = job.arguments
    name = SCORES.get(_kind(job))
    value = a.get(name) if name is not None else None
    if value is None or not value.known or (name == SCORES[None] and a.given("moe_router_topk") is None):
        return
    if name != SCORES[None] and a.get("training").raw is not True:
        return  # inference may have the function built in
    own = value.raw if isinstance(value.raw, str) else "sigmoid" if value.raw else "softmax"
    wanted = "sigmoid" if model.traits.get("sigmoid") else "softmax"
    if own != wanted and own in ("sigmoid", "softmax"):
        theirs = Message("router scores computed with {function}", function=wanted)
        yield differs(model, theirs, own, job.place(value, job.plan.model.experts))


def _kind(job: Job) -> str | None:
    """The kind of a MindFormers config; None for a run of Megatron."""
    kind = job.arguments.get("kind").raw
    return kind if job.target.framework in LENIENT and isinstance(kind, str) else None


EPSILON = (
    *("layernorm_epsilon", "norm_epsilon"),
    *("model.model_config.rms_norm_eps", "model.model_config.layernorm_epsilon"),
)
"""The names of the epsilon of the norms. The default is not compared, because many published scripts rely on it."""
FACTOR = 5
"""Epsilons that differ by less than this factor are alike."""
USUAL = (1e-5, 1e-6)
LENIENT = ("mindformers",)
"""Frameworks whose published configs have either of the usual values, whatever the model has."""


def _epsilon(job: Job, model: Published) -> Iterator[Finding]:
    """Another epsilon of the norms."""
    wanted = model.traits.get("eps")
    value = next((value for name in EPSILON if (value := job.arguments.given(name)) is not None), None)
    if wanted is None or value is None or not isinstance(value.raw, float) or value.raw <= 0:
        return
    if wanted / FACTOR < value.raw < wanted * FACTOR or (value.raw in USUAL and job.target.framework in LENIENT):
        return
    theirs = Message("norms with an epsilon of {size}", size=wanted)
    yield differs(model, theirs, value.raw, job.place(value, job.plan.model.hidden))


def _positions(job: Job, model: Published) -> Iterator[Finding]:
    """Learned positions instead of rotary ones."""
    value = job.arguments.get("position_embedding_type")
    if value.raw != "learned_absolute" or "alibi" in model.traits:
        return
    own = Message("learned positions")
    yield differs(model, Message("rotary positions"), own, job.place(value, job.plan.model.hidden))


def _rotary_base(job: Job, model: Published) -> Iterator[Finding]:
    """A rotary base that is less than the published one; a larger base extends the context on purpose."""
    value, wanted = job.plan.model.rotary_base, model.traits.get("theta")
    if wanted is None or not isinstance(value.raw, (int, float)) or value.raw >= wanted:
        return
    theirs = Message("a rotary base of {size}", size=wanted)
    yield differs(model, theirs, value.raw, job.place(value, job.plan.model.hidden))


def _rotary_part(job: Job, model: Published) -> Iterator[Finding]:
    """Another part of each head has rotary positions."""
    value, wanted = job.plan.model.rotary_part, model.traits.get("rotary_part")
    if wanted is None or not value.known or not isinstance(value.raw, (int, float)) or value.raw == wanted:
        return
    theirs = Message("rotary positions in {part} of each head", part=wanted)
    yield differs(model, theirs, value.raw, job.place(value, job.plan.model.rotary_base, job.plan.model.hidden))


def _rotary_factor(job: Job, model: Published) -> Iterator[Finding]:
    """Another factor of the scaled rotary positions."""
    a, wanted = job.arguments, model.traits.get("factor")
    value = a.given("rope_scaling_factor") or (a.get("rope_scaling_factor") if a.given("rope_scaling_type") else None)
    if value is None or wanted is None or not isinstance(value.raw, (int, float)) or value.raw in (wanted, 1):
        return
    theirs = Message("rotary positions scaled by {factor}", factor=wanted)
    yield differs(model, theirs, value.raw, job.place(value))


ROUTER_SCALING = (
    "moe_router_topk_scaling_factor",
    "routed_scaling_factor",
    *("deprecated_routed_scaling_factor", "moe_config.routed_scaling_factor", "mcore.moe_router_topk_scaling_factor"),
)
"""The names of the option in different releases."""


def _router_scaling(job: Job, model: Published) -> Iterator[Finding]:
    """Another factor of the router's weights; without the option, they are not scaled."""
    a, wanted = job.arguments, model.traits.get("scaling")
    stated = (value for name in ROUTER_SCALING if (value := a.given(name)) is not None)
    own = next(stated, a.get(ROUTER_SCALING[0]) if a.given("moe_router_topk") is not None else None)
    if own is None:
        return
    factor = 1 if own.raw is None else own.raw
    if wanted is None or not own.known or not isinstance(factor, (int, float)) or factor == wanted:
        return
    theirs = Message("router weights scaled by {factor}", factor=wanted)
    yield differs(model, theirs, factor, job.place(own, job.plan.model.experts))


MOST_PADDING = 3
"""The largest extended vocabulary, as a multiple of the published one."""
FEWER = 16
"""The Python variants of CodeLlama lack the tokens for infilling."""


def _vocabulary(job: Job, model: Published) -> Iterator[Finding]:
    """Fewer rows of the embedding than the model has, or many more; some more are padding."""
    value, wanted = job.arguments.given("padded_vocab_size"), model.sizes["vocab"]
    if value is None or not isinstance(value.raw, int) or wanted - FEWER <= value.raw <= wanted * MOST_PADDING:
        return
    theirs = Message("{size} rows of the embedding", size=wanted)
    yield differs(model, theirs, value.raw, job.place(value))
