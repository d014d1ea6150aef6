"""Names in a config that a front end looks up in its registries: misspelt ones, and data in formats that it does not
read.

A name that resembles none may be one that the user's own code registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from preflight.frontends.hydra_faults import REFUSED
from preflight.frontends.release_config_schema import Contract
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Node, Problem
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message
from preflight.source.source_file import Source
from preflight.source.spelling import nearest

SLIP = 0.72
"""The similarity from which a name is a misspelling of another one."""
OPTIMIZERS = ("adam", "sgd", "lion", "muon", "adaptive_muon", "dist_muon")
"""megatron/core/optimizer/__init__.py, _get_megatron_optimizer_based_on_param_groups and get_megatron_optimizer."""
INITIAL = ("xavier", "normal", "kaiming", "zero")
"""Initial weights of adapters: src/megatron/bridge/peft/utils.py:1157, _get_init_fn."""
READS = (".parquet", ".json", ".jsonl")
"""verl/utils/dataset/rl_dataset.py, _read_files_and_tokenize."""
BY_ENDING = (0, 7)
"""The first release of verl that chooses the format by the ending of the name."""
ROLLOUT = "actor_rollout_ref.rollout"


def misspelt(
    config: Composed, names: Mapping[str, Sequence[str]], own: Callable[[str], bool], source: Source | None = None
) -> Iterator[Problem]:
    """Values that resemble a known name. own: whether the available program has a name; source: the program's
    config."""
    for key, known in names.items():
        found = config.at(*(int(part) if part.isdigit() else part for part in key.split(".")))
        value, node = found.value, found.node
        if not found.known or node is None or node.span.source is source or not isinstance(value, str):
            continue
        near = nearest(value, list(known), SLIP) if value not in known else ""
        if near and not own(value):
            message = Message(
                "{key} accepts {choices:and}, not {value}{hint}",
                key=key,
                choices=tuple(known),
                value=value,
                hint=Message("; did you mean {near}?", near=near),
            )
            yield Problem(REFUSED, message, node.span)


def of_verl(releases: Sequence[Contract], config: Composed) -> dict[str, Sequence[str]]:
    """The keys of verl that hold names, with those of any release."""

    def known(registry: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for one in releases for name in one.registered(registry)))

    names: dict[str, Sequence[str]] = {
        "actor_rollout_ref.actor.optim.optimizer": OPTIMIZERS,
        "critic.optim.optimizer": OPTIMIZERS,
    }
    if config.at(*ROLLOUT.split("."), "agent", "agent_loop_config_path").value is None:
        names[f"{ROLLOUT}.agent.default_agent_loop"] = known("agent_loop")
    if config.at(*ROLLOUT.split("."), "multi_turn", "enable").value is True:
        names[f"{ROLLOUT}.multi_turn.format"] = known("tool_parser")
    if config.at(*ROLLOUT.split("."), "checkpoint_engine", "custom_backend_module").value is None:
        names[f"{ROLLOUT}.checkpoint_engine.backend"] = known("checkpoint_engine")
    return names


def of_files(config: Composed, source: Source, release: str, sure: bool) -> Iterator[Problem]:
    """Data files of verl in formats that its own class does not read. source: the program's config; sure: whether the
    run certainly has this release. Before 0.7 every file is read as Parquet, whatever its name is."""
    if config.at("data", "custom_cls", "path").value is not None or numbers(release) < BY_ENDING:
        return
    for key in ("train_files", "val_files"):
        found = config.at("data", key)
        if found.node is None or found.node.span.source is source:
            continue
        nodes: tuple[Node, ...] = tuple(found.node.items) if found.node.kind == "sequence" else (found.node,)
        for node in nodes:
            name = str(node.value).rpartition("/")[2]
            if isinstance(node.value, str) and "." in name and "$" not in name and not name.endswith(READS):
                template = "verl reads data from {formats:and} files, not from {name:.80}"
                yield Problem(REFUSED, Message(template, formats=READS, name=name), node.span, harmless=not sure)


def of_nemo_rl(registries: Mapping[str, Sequence[str]], algorithm: str, config: Composed) -> dict[str, Sequence[str]]:
    """The keys of NeMo RL that hold names, with the known ones. algorithm: the section of the config that names it."""
    data_sets = "preference dataset" if algorithm in ("dpo", "rm") else "response dataset"
    names: dict[str, Sequence[str]] = {
        "policy.megatron_cfg.optimizer.optimizer": OPTIMIZERS,
        "value.megatron_cfg.optimizer.optimizer": OPTIMIZERS,
    }
    sections = ["data", "data.default"]
    for part in ("data.train", "data.validation"):
        node = config.at(*part.split(".")).node
        many = len(node.items) if node is not None and node.kind == "sequence" else 0
        sections += [f"{part}.{at}" for at in range(many)] or [part]
    for section in sections:
        names[f"{section}.dataset_name"] = registries.get(data_sets, ())
        names[f"{section}.processor"] = registries.get("processor", ())
        names[f"{section}.env_name"] = registries.get("environment", ())
    return {key: known for key, known in names.items() if known}
