"""What NeMo RL's own code refuses in a config: combinations, misspelt names of its registries, sizes and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from preflight import schemas
from preflight.frontends.described_releases import FOLDER, contracts
from preflight.frontends.hydra_faults import REFUSED
from preflight.frontends.nemo_rl_accepted_values import generates_with_vllm
from preflight.frontends.refusal_rows import Row, identity, listed
from preflight.frontends.refusals import of_code
from preflight.frontends.registry_names import misspelt, of_nemo_rl
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Problem
from preflight.run.request import Target
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Source


@cache
def refusals_at(release: str) -> tuple[Row, ...]:
    """The refusals of a release's code that no rule reports."""
    return tuple(listed(schemas.read(f"{FOLDER}/nemo-rl-{release}").get("refusals", ())))


@cache
def in_all_releases(release: str) -> frozenset[str]:
    """The refusals of a release that all other described releases have as well."""
    others = [frozenset(map(identity, refusals_at(one))) for one in contracts("nemo-rl") if one != release]
    return frozenset(map(identity, refusals_at(release))).intersection(*others)


def of_own_code(
    config: Composed, release: str, wanted: Target | None, first: Source, known: Iterable[Problem]
) -> Iterator[Problem]:
    """The refusals of a run that trains with Megatron. release: the described one that applies; wanted: the one that is
    stated or shown; first: the file of the run; known: problems that are already reported."""
    if config.at("policy", "megatron_cfg", "enabled").value is True:
        sure = partial(_has_surely, release, wanted)
        yield from of_code(refusals_at(release), config, f"NeMo RL {release}", first=first, sure=sure, known=known)


def _has_surely(release: str, wanted: Target | None, row: Row, typed: frozenset[str]) -> bool:
    """Whether the release of a run has a refusal: it is the described one, or all described ones have it."""
    exact = wanted is not None and numbers(wanted.version) == numbers(release)
    return exact or identity(row) in in_all_releases(release)


def of_registries(config: Composed, release: str, sure: bool, own: Callable[[str], bool]) -> Iterator[Problem]:
    """Misspelt names of datasets, environments, processors and optimizers. sure: the release is known; other releases
    have other names."""
    known = schemas.read(f"{FOLDER}/nemo-rl-{release}")
    algorithm = next((one for one in known["masters"] if config.at(one).node is not None), "")
    for one in misspelt(config, of_nemo_rl(known.get("registries", {}), algorithm, config), own):
        yield one._replace(harmless=not sure)


SIZES = (
    *("cluster.gpus_per_node", "cluster.num_nodes", "policy.train_global_batch_size", "policy.train_micro_batch_size"),
    *("policy.max_total_sequence_length", "grpo.num_prompts_per_step", "grpo.num_generations_per_prompt"),
    *(f"policy.megatron_cfg.{kind}_model_parallel_size" for kind in ("tensor", "pipeline", "expert")),
    "policy.megatron_cfg.context_parallel_size",
)
"""Numbers that it divides by in every run."""


ENGINE = "policy.generation.vllm_cfg"
OF_ENGINE = tuple(f"{ENGINE}.{kind}_parallel_size" for kind in ("tensor", "pipeline", "expert"))
"""Numbers with which it divides the devices of vLLM (nemo_rl/models/generation/vllm/vllm_generation.py:101-125)."""


def of_engine(config: Composed) -> Iterator[Problem]:
    """Numbers of vLLM that are text or a fraction, and sizes without a value."""
    if not generates_with_vllm(config):
        return
    for key in (*OF_ENGINE, f"{ENGINE}.gpu_memory_utilization", f"{ENGINE}.max_model_len"):
        found = config.at(*key.split("."))
        value, node = found.value, found.node
        if not found.known or node is None or node.kind != "scalar" or isinstance(value, bool):
            continue
        whole = key != f"{ENGINE}.gpu_memory_utilization"
        text = isinstance(value, str) and (key in OF_ENGINE or not _NUMBER.fullmatch(value))
        fraction = whole and isinstance(value, float) and not value.is_integer()
        if text or fraction or (value is None and key in OF_ENGINE):
            kind: str = Message("an integer") if whole else Message("a number")
            shown = "null" if value is None else str(value)
            message = Message("{key} is {value:.60}; it must be {kind}", key=key, value=shown, kind=kind)
            yield Problem(REFUSED, message, node.span)
    for key in OF_ENGINE[:2]:
        yield from _below_one(config, key)


def _below_one(config: Composed, key: str) -> Iterator[Problem]:
    found = config.at(*key.split("."))
    if found.known and found.node is not None and type(found.value) is int and found.value < 1:
        message = Message("{key} is {value}; it must be at least 1", key=key, value=found.value)
        yield Problem(REFUSED, message, found.node.span)


def of_sizes(config: Composed) -> Iterator[Problem]:
    """Sizes below 1."""
    yield from of_engine(config)
    for key in SIZES:
        yield from _below_one(config, key)
    share = config.at("policy", "generation", "vllm_cfg", "gpu_memory_utilization")
    engine = config.at("policy", "generation", "backend").value
    if (
        engine == "vllm"
        and share.node is not None
        and isinstance(share.value, int | float)
        and not 0 < share.value <= 1
    ):
        template = "gpu_memory_utilization is {value}; it must be from 0 to 1"
        yield Problem(REFUSED, Message(template, value=share.value), share.node.span)
    limit = config.at("checkpointing", "checkpoint_must_save_by")
    if limit.node is not None and isinstance(limit.value, str) and not _DURATION.fullmatch(limit.value):
        template = "checkpoint_must_save_by is {value:.40}; it must be a time in the form DD:HH:MM:SS"
        yield Problem(REFUSED, Message(template, value=limit.value), limit.node.span)


_DURATION = lazy_pattern(r"(?: *\d{1,9} *:){3} *\d{1,9} *")
_NUMBER = lazy_pattern(r"[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?")
