"""verl's asynchronous trainers: what their configs and their own code refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType

from preflight.dialects import Surroundings
from preflight.frontends.front_end import FrontEnd
from preflight.frontends.hydra_faults import ALWAYS, REFUSED, of_choices, of_classes, of_interpolations, of_keys
from preflight.frontends.megatron_run import package_of
from preflight.frontends.release_config_schema import Contract, contract
from preflight.frontends.verl_accepted_values import of_loggers, taken
from preflight.frontends.verl_numbers import of_words
from preflight.loaders.composition.overrides import Override, Refused, apply
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Document, Problem
from preflight.source.finding import Message
from preflight.source.record import NamedTuple

FULLY_ASYNC, ONE_STEP_OFF = "fully_async_ppo_megatron_trainer", "one_step_off_ppo_megatron_trainer"
NAMES = (FULLY_ASYNC, ONE_STEP_OFF)
"""Configs of its other trainers: they add keys, but change none of those that are read for the plan."""
ENTRIES = MappingProxyType(
    {FULLY_ASYNC: ("fully_async_policy.", "fully_async_main"), ONE_STEP_OFF: ("one_step_off_policy.", "main_ppo")}
)
"""The package and the module of a config's trainer: below recipe until 0.7.0, below verl.experimental from 0.7.1 on."""


class Needed(NamedTuple):
    """A value that the trainer asserts. least: whether larger numbers are accepted too."""

    key: str
    value: object
    least: bool = False


CHECKS = MappingProxyType(
    {
        FULLY_ASYNC: (
            Needed("data.train_batch_size", 0),
            Needed("data.gen_batch_size", 1),
            Needed("async_training.staleness_threshold", 0, least=True),
            Needed("async_training.trigger_parameter_sync_step", 1, least=True),
            Needed("actor_rollout_ref.rollout.calculate_log_probs", True),
            Needed("actor_rollout_ref.hybrid_engine", False),
        ),
        ONE_STEP_OFF: (Needed("actor_rollout_ref.hybrid_engine", False),),
    }
)
"""fully_async_rollouter.py (v0.9.0, lines 350-358, 733), one_step_off_policy/ray_trainer.py (line 88); the same in all
described releases that have them."""


CHECKED = MappingProxyType({FULLY_ASYNC: ("fully_async_rollouter",), ONE_STEP_OFF: ("ray_trainer",)})
"""The modules with these assertions, in the folder of the entry."""


def starts(entry: str, named: str) -> bool:
    """Whether an entry is the trainer of a config."""
    package, module = ENTRIES.get(named, ("", "-"))
    entry = entry.removesuffix(".py").replace("/", ".")
    return entry.endswith(package + module)


def lacks_check(named: str, front_end: FrontEnd, document: Document, surroundings: Surroundings, key: str) -> bool:
    """Whether another trainer of a checkout has no assertion about a key."""
    package = package_of(front_end, document, surroundings)
    entry = document.launch.entry.text or "" if document.launch is not None else ""
    folder = entry.removesuffix(".py").replace(".", "/").rpartition("/")[0]
    texts = [package.files.text(f"{folder}/{name}.py") for name in CHECKED[named]] if package is not None else []
    known = [text for text in texts if text is not None]
    return bool(known) and not any(key.rpartition(".")[2] in text for text in known)


def of_variant(
    known: Contract,
    named: str,
    overrides: Sequence[Override],
    others: Sequence[str],
    stated: bool,
    unread: Callable[[Sequence[Refused]], Sequence[Refused]],
    own: Callable[[str], bool],
    registered: Callable[[str], bool],
) -> Iterator[Problem]:
    """The refusals of a launch. others: the other described releases; unread: the refused overrides that the program in
    the checkout refuses too; own: whether its code there may lack the check of a key; registered: whether it has
    registered a name itself."""
    found = known.of_variant(named)
    if found is None or any("@" in one.key for one in overrides):
        return
    tree, refused = apply(found.node, overrides)
    config, source = Composed(tree), found.node.span.source
    beside = [contract(known.front_end, one).of_variant(named) for one in others]
    alike = [one for one in beside if one is not None]
    yield from of_keys(found, unread(refused), alike, stated)
    yield from of_classes(found, overrides, alike, stated)
    yield from of_interpolations(config, overrides)
    yield from of_choices(found, config, source, dict(taken(found, config, registered)), ALWAYS)
    yield from of_loggers(config, source, registered)
    yield from of_words(config, source)
    for needed in CHECKS[named]:
        one = config.at(*needed.key.split("."))
        written = one.node is not None and one.node.span.source is not source and one.node.kind == "scalar"
        if one.node is None or not written or not one.known or own(needed.key) or not _refuses(needed, one.value):
            continue
        least = Message("at least {value}", value=needed.value)
        wanted: object = least if needed.least else str(needed.value).lower()
        template = "{key} is {value}, but this verl trainer needs {wanted}"
        message = Message(template, key=needed.key, value=str(one.value).lower(), wanted=wanted)
        yield Problem(REFUSED, message, one.node.span)


def _refuses(needed: Needed, value: object) -> bool:
    """Whether an assertion fails; a text is compared in other ways."""
    if isinstance(needed.value, bool):
        return isinstance(value, bool | int) and bool(value) is not needed.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not isinstance(needed.value, int):
        return False
    return value < needed.value if needed.least else value != needed.value
