"""Keys that + adds to verl's config: Hydra accepts all of them, but the classes that verl builds from its sections do
not, Megatron does not have all of those that are passed on to it, and plain sections hold them unread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from preflight.frontends.front_end import UNREAD, data
from preflight.frontends.hydra_faults import ALWAYS, REFUSED, of_classes
from preflight.frontends.release_config_schema import Contract
from preflight.frontends.verl_numbers import ACTOR, REF, has_reference
from preflight.loaders.composition.overrides import Override
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Problem
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message
from preflight.source.spelling import nearest, typing_errors

ONE_WORKER = (0, 8)
"""The first release whose only worker builds the class of the reference (workers/engine_workers.py:514)."""
TUNED = {"engine": f"{ACTOR}.megatron", "optim": f"{ACTOR}.optim", "model": "actor_rollout_ref.model"}
"""Sections of its fine-tuning, each with the section of the other trainer that becomes the same class
(trainer/sft_trainer.py:141-143)."""
PASSED_ON = {
    "override_transformer_config": ("model", "TransformerConfig"),
    "override_optimizer_config": ("optimizer", "OptimizerConfig"),
    "override_ddp_config": ("ddp", "DistributedDataParallelConfig"),
}
"""Sections whose keys are passed on to Megatron's classes, with the section of Megatron-Bridge that has the same fields
(workers/engine/megatron/transformer_impl.py, utils/megatron/optimizer.py, utils/megatron_utils.py)."""
ONLY_FIELDS = (
    *("bias_activation_fusion", "persist_layer_norm", "deallocate_pipeline_outputs", "gated_linear_unit"),
    *("masked_softmax_fusion", "bias_dropout_fusion", "num_query_groups", "attention_backend"),
)
"""Fields of Megatron's TransformerConfig that are neither options nor keys of Megatron-Bridge."""
SET_LATER = (0, 9)
"""The first release that sets the fields of Megatron-Bridge's providers itself if Megatron-Bridge does not, which
accepts any name (workers/engine/megatron/transformer_impl.py:388)."""
ADDS = ("add", "force")
OWN_DATA = "data.custom_cls.path"
"""A data set of one's own, which may read any key of its section (trainer/main_ppo.py, create_rl_dataset)."""
OPEN = ("override", "kwargs", "ray_", "tool_config")
"""Parts of the names of sections that are passed on with any key."""


def of_added(
    known: Contract,
    config: Composed,
    overrides: Sequence[Override],
    core: Iterable[str],
    own: Callable[[str], bool],
    others: Sequence[Contract],
    stated: bool,
) -> Iterator[Problem]:
    """The keys that + adds for nothing, or to the failure of a run. core: Megatron's own names; own: whether the
    available program has a name; others: the contracts of the other releases."""
    also = roles(known, config)
    yield from of_classes(known, overrides, others, stated, (*ALWAYS, *also))
    yield from passed_on(sections_passed_on(config, known.release, also), overrides, core, own)
    yield from next_to_known(known, overrides, also, own, others)


def roles(known: Contract, config: Composed) -> tuple[str, ...]:
    """The sections of the roles that a run certainly has besides the actor, each built as a class."""
    found: list[str] = []
    if has_critic(config):
        found.append("critic")
    if numbers(known.release) >= ONE_WORKER and has_reference(config):
        found.append(REF)
    return tuple(found)


def has_critic(config: Composed) -> bool:
    """Whether a critic is certainly trained (trainer/ppo/utils.py, need_critic)."""
    enabled = config.at("critic", "enable").value
    return enabled is True or (enabled is None and config.at("algorithm", "adv_estimator").value == "gae")


def of_tuning(
    contract: Contract, overrides: Iterable[Override], own: Callable[[str], bool], others: Sequence[Contract]
) -> Iterator[Problem]:
    """Keys that + adds to sections of its fine-tuning whose classes have no such field. contract: the other trainer's;
    own: whether the available program has a name."""
    for one in overrides:
        section, *rest = one.path
        if one.action not in ADDS or section not in TUNED or not rest:
            continue
        path = (*TUNED[section].split("."), *rest)
        length, fields = contract.fields_at(path)
        name, all_ = path[length], (contract, *others)
        if not fields or any(name in release.fields_at(path)[1] for release in all_) or own(name):
            continue
        near = nearest(name, list(fields), 0.75)
        hint: str = Message("; did you mean {near}?", near=near) if near else ""
        template = "{front_end} turns {section} into a class that has no field {name}, so it rejects the run{hint}"
        place = ".".join(one.path[: length - len(TUNED[section].split(".")) + 1])
        values = {"front_end": contract.label, "section": place, "name": name, "hint": hint}
        yield Problem(REFUSED, Message(template, **values), one.key_span)


def passed_on(
    sections: Mapping[str, bool], overrides: Iterable[Override], core: Iterable[str], own: Callable[[str], bool]
) -> Iterator[Problem]:
    """Misspelt fields in sections that are passed on to Megatron. sections: those that a run passes on, each with
    whether a class certainly rejects the field; core: Megatron's own names."""
    fields: dict[str, tuple[str, ...]] = {}
    also = {*core, *data("megatron-bridge")["providers"]}
    for one in overrides:
        above, _, name = one.key.rpartition(".")
        kind, cls = PASSED_ON.get(above.rpartition(".")[2], ("", ""))
        if one.action not in ADDS or not kind or above not in sections:
            continue
        if kind not in fields:
            fields[kind] = _fields(kind)
        known = name in fields[kind] or name in also or own(name)
        near = () if known else typing_errors(name, fields[kind])
        if near:
            template = "Megatron's {cls} has no field {name}, so it rejects the run; did you mean {near}?"
            if not sections[above]:
                template = "Megatron's {cls} has no field {name}, so at best {key} has no effect; did you mean {near}?"
            message = Message(template, cls=cls, name=name, near=near[0], key=one.key)
            fix = (f"write {near[0]}", one.key_span, f"{above}.{near[0]}")
            yield Problem(REFUSED, message, one.key_span, fix=fix, harmless=not sections[above])


def _fields(kind: str) -> tuple[str, ...]:
    """The known fields of one of Megatron's classes."""
    bridge = (key.partition(".")[2] for key in data("megatron-bridge")["keys"] if key.startswith(f"{kind}."))
    return tuple(dict.fromkeys((*bridge, *(ONLY_FIELDS if kind == "model" else ()))))


def sections_passed_on(config: Composed, release: str, roles: Sequence[str]) -> dict[str, bool]:
    """The sections of a run that are passed on to Megatron. With Megatron-Bridge before 0.8, and without a bridge,
    fields that the network lacks are dropped (workers/megatron_workers.py:223,
    models/mcore/config_converter.py:137); from 0.9 on, it depends on the release of Megatron-Bridge."""
    found: dict[str, bool] = {}
    for role in (ACTOR, *roles):
        own = f"{role}.megatron"
        found[f"{own}.override_transformer_config"] = _rejects(config, release, own)
        if role != REF:
            found[f"{own}.override_ddp_config"] = True
            found[f"{role}.optim.override_optimizer_config"] = True
    return found


def _rejects(config: Composed, release: str, section: str) -> bool:
    """Whether a field that the network lacks certainly stops a run. section: that of the engine."""
    bridge, plain = (config.at(*section.split("."), key).value for key in ("use_mbridge", "vanilla_mbridge"))
    return ONE_WORKER <= numbers(release) < SET_LATER or (bridge is True and plain is not False)


def tuning_passed_on(config: Composed, release: str) -> dict[str, bool]:
    """The sections of its fine-tuning that are passed on to Megatron."""
    return {
        "engine.override_transformer_config": _rejects(config, release, "engine"),
        "engine.override_ddp_config": True,
        "optim.override_optimizer_config": True,
    }


def next_to_known(
    contract: Contract,
    overrides: Iterable[Override],
    built: Sequence[str],
    own: Callable[[str], bool],
    others: Sequence[Contract],
) -> Iterator[Problem]:
    """Keys that + adds next to the one that is meant: Hydra accepts them, and verl reads only the other one. built: the
    sections that become classes, which reject them; own: whether the available program has a name; others: the
    contracts of the other releases."""
    overrides = tuple(overrides)
    owned = any(one.key == OWN_DATA for one in overrides)
    for one in overrides:
        path = one.path
        depth = next((n for n in range(len(path)) if contract.at(path[: n + 1]) is None), len(path))
        if one.action not in ADDS or depth == len(path) or contract.has(one.key):
            continue
        if path[0] == "data" and owned:
            continue
        section = contract.at(path[:depth]) if depth else contract.tree
        direct = contract.fields_at(path)[1] or (contract.engine and depth == 1)
        inside = direct and one.key.startswith(tuple(f"{name}." for name in (*ALWAYS, *built)))
        passed = any(word in part for part in path[:depth] for word in OPEN)
        if not isinstance(section, dict) or not section or inside or passed:
            continue
        name, above = path[depth], ".".join(path[:depth])
        names = (*section, *contract.fields_at(path)[1])
        near = typing_errors(name, names) if name not in names and not own(name) else ()
        if near and not any(other.has(".".join(path[: depth + 1])) for other in others):
            meant = ".".join(filter(None, (above, near[0])))
            template = "{front_end} never reads {key}, which + adds next to {near}; write {near}= without +"
            message = Message(template, front_end=contract.label, key=".".join(path[: depth + 1]), near=meant)
            yield Problem(UNREAD, message, one.key_span, harmless=True, unknown_option=True)
