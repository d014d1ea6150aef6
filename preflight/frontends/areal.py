"""AReaL: a config whose actor names its layout in one text, as `megatron:d4p2t2`; Megatron trains the actor."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron import batch, layout, network_sizes, pipeline
from preflight.dialects.megatron.derivation_namespace import NotKnown, Run, derives
from preflight.frontends.dotted_config import Dotted, typed
from preflight.frontends.front_end import UNREAD, FrontEnd, data
from preflight.frontends.hydra_faults import REFUSED
from preflight.frontends.megatron_run import read as reading
from preflight.frontends.published_architecture import TYPES, lose_network, trained
from preflight.frontends.release_detection import shown, with_evidence
from preflight.loaders.composition.resolved_values import Composed, omegaconf_values
from preflight.loaders.document import Document, Node, Problem
from preflight.run.value import Value, unknown
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.spelling import nearest

BACKEND = "areal_actor_backend"
MEGATRON = "areal_actor_megatron_"
SLIP = 0.9
"""The similarity from which an unknown key of the actor, the cluster or the sampling is reported as a misspelling."""
DERIVED = frozenset({"areal_devices", "areal_expert_devices", "areal_expert_stages", "areal_experts_apart"})
"""Names in its checks that no key sets."""
_DIMS = r"(?:{}[1-9][0-9]{{0,8}})+"
_LAYOUT = lazy_pattern(
    rf"megatron(?:\[[a-zA-Z_]\w*\])?:(?P<dims>{_DIMS.format('[pdtce]')})"
    rf"|megatron:\(?attn:(?P<attention>{_DIMS.format('[pdtc]')})\|ffn:(?P<experts>{_DIMS.format('[pdte]')})\)?"
)
"""areal/api/alloc_mode.py, ALLOCATION_GRAMMAR, which ignores blanks."""
_DIM = lazy_pattern(r"([pdtce])(\d+)")


class Layout(NamedTuple):
    """The sizes of a backend. experts: those of the experts, None if they are not given separately."""

    sizes: dict[str, int]
    experts: dict[str, int] | None

    def of(self, kind: str) -> int:
        """One size, 1 if it is not given."""
        return self.sizes.get(kind, 1)

    @property
    def devices(self) -> int:
        """The devices of the actor."""
        return self.of("d") * self.of("p") * self.of("t") * self.of("c")


def layout_of(text: str) -> Layout | None:
    """The sizes in the text of a backend, None if AReaL does not accept it."""
    found = _LAYOUT.fullmatch("".join(text.split()))
    if found is None:
        return None
    own = {kind: int(size) for kind, size in _DIM.findall(found["dims"] or found["attention"])}
    apart = {kind: int(size) for kind, size in _DIM.findall(found["experts"])} if found["experts"] else None
    return Layout(own, apart)


def _layout(run: Run) -> Layout:
    text = getattr(run, BACKEND)
    found = layout_of(text) if isinstance(text, str) else None
    if found is None:
        raise NotKnown("actor.backend is not a Megatron layout")
    return found


def world(run: Run) -> Value:
    """The product of the actor's sizes: AReaL starts as many workers, besides those that generate."""
    try:
        count = _layout(run).devices
    except (NotKnown, TypeError) as error:
        return unknown(str(error))
    return trained(run, BACKEND, count, "the product of the actor's sizes")


@derives(
    *("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"),
    *("expert_model_parallel_size", "expert_tensor_parallel_size", "areal_devices", "areal_expert_devices"),
    *("areal_expert_stages", "areal_experts_apart"),
)
def grid(run: Run) -> None:
    """The sizes in the text of the backend; experts may have their own (alloc_mode.py, hybrid_train_para)."""
    found = _layout(run)
    for name, kind in (("tensor", "t"), ("pipeline", "p")):
        run.derive(f"{name}_model_parallel_size", found.of(kind), "the backend's text", of=BACKEND)
    run.derive("context_parallel_size", found.of("c"), "the backend's text", of=BACKEND)
    experts = found.experts if found.experts is not None else {"e": found.of("e")}
    run.derive("expert_model_parallel_size", experts.get("e", 1), "the backend's text", of=BACKEND)
    run.derive("expert_tensor_parallel_size", experts.get("t", 1), "the backend's text", of=BACKEND)
    stages = experts.get("p", found.of("p"))
    each = stages * experts.get("t", 1) * experts.get("e", 1)
    run.derive("areal_devices", found.devices)
    run.derive("areal_expert_stages", stages)
    run.derive("areal_expert_devices", each * experts.get("d", 1))
    run.derive("areal_experts_apart", "d" in experts)


@derives(
    *("sequence_parallel", "bf16", "fp16", "params_dtype", "virtual_pipeline_model_parallel_size"),
    "variable_seq_lengths",
    *("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules"),
)
def forced(run: Run) -> None:
    """Settings that it makes itself (areal/engine/megatron_engine.py, _make_parallel_strategy)."""
    run.derive("sequence_parallel", run.tensor_model_parallel_size > 1, "it follows tensor parallelism")
    run.derive("variable_seq_lengths", True, "samples keep their length")
    for name, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
        run.derive(name, run.areal_actor_dtype == dtype, of="areal_actor_dtype")
    run.derive("params_dtype", TYPES.get(run.areal_actor_dtype, run.areal_actor_dtype), of="areal_actor_dtype")
    stages = f"{MEGATRON}virtual_pipeline_parallel_size"
    given = getattr(run, stages)
    run.derive("virtual_pipeline_model_parallel_size", given if given and given > 1 else None, of=stages)
    on = run.areal_actor_gradient_checkpointing
    for name in ("recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules"):
        run.derive(name, getattr(run, f"{MEGATRON}{name}") if on else None, of=f"{MEGATRON}{name}")


@derives("global_batch_size", "micro_batch_size", "seq_length", "train_iters", "max_position_embeddings")
def batches(run: Run) -> None:
    """A step trains on all samples of its prompts; a mini-batch of several is balanced by tokens."""
    run.lose("micro_batch_size", "micro-batches are filled up to a token limit")
    run.lose("seq_length", "samples keep their length")
    run.lose("max_position_embeddings", "it is in the model's config.json")
    run.lose("train_iters", "the number of prompts is in the data")
    if run.areal_actor_ppo_n_minibatches != 1:
        run.lose("global_batch_size", "a mini-batch holds as many samples as its tokens allow")
    else:
        samples = run.areal_train_dataset_batch_size * (run.areal_gconfig_n_samples or 1)
        run.derive("global_batch_size", samples, "prompts × samples", of="areal_train_dataset_batch_size")


@derives()
def network(run: Run) -> None:
    """Values that are not set and have no key come from the model."""
    lose_network(run, AREAL.keys)


AREAL = FrontEnd(
    "areal",
    "1.0.4",
    core="0.17.0",
    world=world,
    spawns=True,
    before=(grid, forced, batches, network),
    steps=(*layout.STEPS, *pipeline.STEPS, *network_sizes.STEPS, *batch.STEPS),
    unread="refused",
    apart=("megatron/training/", "megatron/legacy", "megatron/rl", "pretrain_", "gpt_builders", "model_provider"),
    models=("model_path",),
)


def _refused(config: Composed) -> Iterator[Problem]:
    """A text of the backend that AReaL cannot parse."""
    found = config.at("actor", "backend")
    if found.known and found.node is not None and isinstance(found.value, str) and layout_of(found.value) is None:
        template = "{text:.60} is not a valid layout; AReaL expects megatron: and sizes, such as megatron:d4p2t2"
        yield Problem(REFUSED, Message(template, text=found.value), found.node.span)


def _slips(tree: Node) -> Iterator[Problem]:
    """Keys that AReaL's config classes lack, and that are misspellings of another one."""
    keys = tuple(data("areal")["keys"])
    for section in ("actor", "cluster", "gconfig", "train_dataset"):
        known = sorted({one.split(".")[1] for one in keys if one.startswith(f"{section}.")})
        found = tree.get(section)
        for entry in found.entries if found is not None and found.kind == "mapping" else ():
            name = str(entry.key.value)
            near = nearest(name, known, SLIP) if name not in known else None
            if near:
                template = "AReaL has no key {section}.{name}; did you mean {near}?"
                message = Message(template, section=section, name=name, near=near)
                yield Problem(UNREAD, message, entry.key.span, harmless=True, unknown_option=True)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """The config of one experiment."""
    assert document.tree is not None
    tree = omegaconf_values(document.tree)
    parents = tree.get("defaults") is not None
    config = Composed(tree, "its defaults are not read" if parents else "")
    front_end = with_evidence(AREAL, shown(AREAL, document, surroundings))
    made = typed(front_end, Dotted(config, (document,)), surroundings)
    made.parsed.open = parents
    made.parsed.faults += [*_refused(config), *_slips(tree)]
    return reading(front_end, document, surroundings, made)
