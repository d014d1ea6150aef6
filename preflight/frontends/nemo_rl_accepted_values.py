"""Faults of a NeMo RL config that its types do not show: choices, sizes, parents and interpolations; and the names
that a user's own scripts add."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from preflight.dialects import Surroundings
from preflight.frontends.front_end import UNREAD
from preflight.frontends.hydra_faults import DECAYS, INCREASES, REFUSED
from preflight.frontends.registry_names import INITIAL
from preflight.loaders.composition.resolved_values import ARITHMETIC, Composed
from preflight.loaders.document import Document, Node, Problem
from preflight.program.checkout.framework_discovery import Files, listed
from preflight.run.version_ranges import numbers
from preflight.source.checkout_root import checkout_root
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Span
from preflight.source.spelling import anagram_of, nearest

YAML = (".yaml", ".yml")
MOST_RELATED = 3
"""Other keys that lead to a missing one, of which the place is shown."""


CHOICES: dict[str, tuple[str, ...]] = {
    "grpo.adv_estimator.name": ("gdpo", "grpo", "opd", "reinforce_plus_plus"),
    "ppo.adv_estimator.name": ("gae", "raw_reward"),
    "policy.generation.backend": ("vllm", "sglang", "megatron"),
    "policy.megatron_cfg.scheduler.lr_decay_style": DECAYS,
    "policy.megatron_cfg.scheduler.weight_decay_incr_style": INCREASES,
}
"""Values that keys accept (nemo_rl/algorithms/grpo.py:972-1106, ppo.py:838-851,
megatron/core/optimizer_param_scheduler.py)."""


ATTENTION = ("flash", "fused", "unfused", "local", "auto")
"""megatron/core/transformer/enums.py, AttnBackend."""
PACKING = ("concatenative", "first_fit_decreasing", "first_fit_shuffle", "modified_first_fit_decreasing")
"""nemo_rl/data/packing/algorithms.py, in any case."""


ENGINE_TYPES = ("auto", "half", "float16", "bfloat16", "float", "float32", "fp8")
"""nemo_rl/models/generation/vllm/vllm_worker.py:348-446; the types of values that vLLM accepts."""
FP8 = {"fp8": ("e4m3", "hybrid"), "fp8_recipe": ("tensorwise", "delayed", "mxfp8", "blockwise", "custom")}
"""megatron/core/fp8_utils.py, get_fp8_context."""
READS_DISPATCHER = (0, 6)
"""The first release that reads moe_token_dispatcher_type (nemo_rl/models/megatron/setup.py:671)."""


def generates_with_vllm(config: Composed) -> bool:
    """Whether the algorithm of a config generates, and vLLM does it."""
    generates = any(config.at(one).node is not None for one in ("grpo", "ppo", "distillation"))
    return generates and config.at("policy", "generation", "backend").value == "vllm"


def _switched(config: Composed, release: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Keys that another key switches on."""
    megatron = ("policy", "megatron_cfg")
    if generates_with_vllm(config):
        yield "policy.generation.vllm_cfg.precision", ENGINE_TYPES
    if config.at(*megatron, "fp8_cfg", "enabled").value is True:
        yield from ((f"policy.megatron_cfg.fp8_cfg.{key}", values) for key, values in FP8.items())
    if config.at(*megatron, "peft", "enabled").value is True:
        yield from ((f"policy.megatron_cfg.peft.lora_{side}_init_method", INITIAL) for side in "AB")
    experts = config.at(*megatron, "expert_model_parallel_size").value
    if isinstance(experts, int) and experts > 1 and numbers(release) >= READS_DISPATCHER:
        yield "policy.megatron_cfg.moe_token_dispatcher_type", ("allgather", "alltoall", "flex")


def _taken(config: Composed, release: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Keys with the values that they accept; some are read only if another key switches them on."""
    yield from CHOICES.items()
    yield from _switched(config, release)
    if config.at("policy", "megatron_cfg", "attention_backend").value is not None:
        yield "policy.megatron_cfg.attention_backend", ATTENTION
    if config.at("policy", "megatron_cfg", "activation_checkpointing").value is True:
        yield "policy.megatron_cfg.recompute_granularity", ("full", "selective")
    packing = ("policy", "sequence_packing")
    algorithm = config.at(*packing, "algorithm").value
    if config.at(*packing, "enabled").value is True and str(algorithm).lower() not in PACKING:
        yield "policy.sequence_packing.algorithm", PACKING
    penalty = config.at("loss_fn", "reference_policy_kl_penalty")
    if penalty.known and penalty.value not in (0, None):
        yield "loss_fn.reference_policy_kl_type", ("k1", "k2", "k3")


def of_choices(config: Composed, own: Callable[[str], bool], release: str) -> Iterator[Problem]:
    """Values that their keys do not accept. own: whether the available program defines a name itself."""
    for key, choices in _taken(config, release):
        found = config.at(*key.split("."))
        if found.known and found.node is not None and isinstance(found.value, str) and found.value not in choices:
            if own(found.value):
                continue
            near = nearest(found.value, choices)
            hint = Message("; did you mean {near}?", near=near) if near else ""
            values = {"key": key, "choices": choices, "value": found.value, "hint": hint}
            yield Problem(REFUSED, Message("{key} accepts {choices:and}, not {value}{hint}", **values), found.node.span)


LATER = ("add",)
"""Resolvers added after the described releases."""


def of_interpolations(
    config: Composed, own: Callable[[str], bool], registers: Callable[[str], bool], *, sure: bool
) -> Iterator[Problem]:
    """Interpolations of a key that the config lacks, or with a resolver that the program lacks: it resolves all of them
    at once. own: whether the available program defines a name itself; registers: whether another program in the
    repository has a resolver, and resolves the config before; sure: whether the release is known."""
    leaves = list(_leaves(config))
    odd = {name for _, node in leaves if (name := config.unregistered(node)) and not own(name)}
    if any(map(registers, odd)):
        return
    dead: dict[str, list[tuple[str, Span]]] = {}
    for key, node in leaves:
        if lost := config.dead(tuple(key), node):
            dead.setdefault(lost, []).append((".".join(map(str, key)), node.span))
        elif why := config.malformed(node):
            template = "the value {value:.80} of {key} is not valid for OmegaConf: {why}"
            message = Message(template, value=node.value, key=".".join(map(str, key)), why=why)
            yield Problem(REFUSED, message, node.span)
        elif (name := config.unregistered(node)) in odd and (sure or name not in LATER):
            template = "NeMo RL has no resolver {name}; it has only {known:and}"
            message = Message(template, name=name, known=(*ARITHMETIC, "oc.*"))
            yield Problem(REFUSED, message, node.span, harmless=not sure)
    yield from (_missing_key(lost, places) for lost, places in dead.items())


def _leaves(config: Composed) -> Iterator[tuple[tuple[str | int, ...], Node]]:
    """The values of a config that are neither mappings nor lists, each with its path."""
    left: list[tuple[tuple[str | int, ...], Node]] = [((), config.root)]
    while left:
        path, node = left.pop()
        if node.kind == "mapping":
            left += [((*path, str(one.key.value)), one.value) for one in node.entries if not one.shadowed]
        elif node.kind == "sequence":
            left += [((*path, at), one) for at, one in enumerate(node.items)]
        else:
            yield path, node


def _missing_key(lost: str, places: Sequence[tuple[str, Span]]) -> Problem:
    """One problem for all keys that lead to a missing one, at the first of them."""
    (key, span), *more = sorted(places, key=lambda one: (one[1].path or "", one[1].start))
    template = "{key} refers to {lost}, which the config does not have"
    values: dict[str, object] = {"key": key, "lost": lost}
    if len(more) == 1:
        template = "{key} and {other} refer to {lost}, which the config does not have"
        values["other"] = more[0][0]
    elif more:
        template = "{key} and {count} other keys refer to {lost}, which the config does not have"
        values["count"] = len(more)
    return Problem(REFUSED, Message(template, **values), span, tuple(span for _, span in more[:MOST_RELATED]))


def of_parents(documents: Sequence[Document], missing: Sequence[str]) -> Iterator[Problem]:
    """Missing parents for which a file exists that differs only in case, ending, hyphens or the order of its letters;
    other parents are unknown, because a config may have been copied here without them."""
    for document in documents:
        named = document.tree.get("defaults") if document.tree is not None else None
        if named is None or document.source.path is None:
            continue
        folder = document.source.path.parent
        for node in named.items or (named,):
            place, _, name = str(node.value).rpartition("/")
            if str(node.value) not in missing or "$" in place or not (folder / place).is_dir():
                continue
            names = [one.name for one in (folder / place).iterdir() if one.suffix in YAML]
            beside = {_bare(one): one for one in names}
            near = beside.get(_bare(name)) or anagram_of(name, sorted(names)) or name
            if near != name and not (folder / place / name).exists():
                message = Message("there is no file {name}; did you mean {near}?", name=node.value, near=near)
                yield Problem(REFUSED, message, node.span)


_IMPORTED = lazy_pattern(r"(?m)^from[ \t]+([A-Za-z_][\w.]*)[ \t]+import\b")
MOST_SCRIPTS, MOST_MODULES, MOST_FILES = 20, 500, 1_000
PACKAGE = "nemo_rl"
_NAMED = lazy_pattern(r"[\"'.](\w+)\b(?!\s+\w)")


def _own_scripts(document: Document, surroundings: Surroundings) -> Iterator[str]:
    """The texts of the scripts in the folder of a config, and of the modules of the checkout that they import by
    name: they may register more than the release has."""
    path = document.source.path
    if path is None or surroundings.around is None:
        return
    files = Files(os.path.dirname(os.path.abspath(path)))
    scripts = [entry.name for entry in listed(files.root) if entry.name.endswith(".py")][:MOST_SCRIPTS]
    texts = [text for script in scripts if (text := files.text(script)) is not None]
    yield from texts
    top = Files(checkout_root(path))
    for text in texts:
        for match in islice(_IMPORTED.finditer(text), MOST_SCRIPTS):
            if (module := top.text(f"{match[1].replace('.', '/')}.py")) is not None:
                yield module


def defines(name: str, document: Document, surroundings: Surroundings) -> bool:
    """Whether a script in the folder of a config, or a module that it imports, has a name in quotes."""
    quoted = (f'"{name}"', f"'{name}'")
    return any(one in text for text in _own_scripts(document, surroundings) for one in quoted)


_REGISTERED = lazy_pattern(r"register_new_resolver\(\s{0,40}[\"'](\w{1,40})[\"']")


def registers(name: str, document: Document, surroundings: Surroundings) -> bool:
    """Whether code of the repository around a config registers a resolver of a name."""
    if document.source.path is None or surroundings.around is None:
        return False
    top = Files(checkout_root(document.source.path))
    texts = (top.text(path) or "" for path in islice(top.names(), MOST_FILES))
    return any(name in _REGISTERED.findall(text) for text in texts if "register_new_resolver" in text)


_LOADERS = ("response_data", "preference_data", "setup_data", "nemo_rl.data")


def loads_itself(document: Document, surroundings: Surroundings) -> bool:
    """Whether scripts in the folder of a config start the run, and none of them loads data with NeMo RL."""
    texts = list(_own_scripts(document, surroundings))
    return bool(texts) and not any(one in text for text in texts for one in _LOADERS)


def without_own_keys(faults: Sequence[Problem], document: Document, surroundings: Surroundings) -> Iterator[Problem]:
    """The faults, without those for keys that a script in the folder of the config names, or the program in the
    checkout; without the program, any code of the repository."""
    path, texts = document.source.path, list[str | None]()
    if path is not None and surroundings.around is not None and any(fault.kind == UNREAD for fault in faults):
        files = Files(os.path.dirname(os.path.abspath(path)))
        scripts = [entry.name for entry in listed(files.root) if entry.name.endswith(".py")][:MOST_SCRIPTS]
        texts = [files.text(script) for script in scripts]
        top = Files(checkout_root(path))
        own = islice(top.names(PACKAGE if os.path.isdir(os.path.join(top.root, PACKAGE)) else ""), MOST_MODULES)
        texts += [top.text(name) for name in own]
    named = frozenset(name for text in texts if text is not None for name in _NAMED.findall(text))
    yield from (fault for fault in faults if fault.kind != UNREAD or fault.span.text not in named)


def _bare(name: str) -> str:
    return name.removesuffix(".yaml").removesuffix(".yml").replace("-", "_").casefold()
