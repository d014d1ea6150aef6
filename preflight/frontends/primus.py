"""AMD's Primus: a YAML file over presets of a module and a model; Megatron's arguments by their own names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

from preflight.dialects import Reading, Surroundings
from preflight.dialects.megatron.options import Flag, table
from preflight.dialects.megatron.value_conversions import BadValue, convert
from preflight.frontends.dotted_config import Dotted, typed
from preflight.frontends.front_end import UNREAD, FrontEnd, data
from preflight.frontends.hydra_faults import REFUSED
from preflight.frontends.megatron_run import Typed
from preflight.frontends.megatron_run import read as reading
from preflight.loaders.composition.grammar import typed as plain
from preflight.loaders.composition.merging import mapping, merge, put
from preflight.loaders.composition.resolved_values import Composed
from preflight.loaders.document import Document, Node, Problem
from preflight.loaders.tree_from_data import json_tree
from preflight.run.value import Origin, Value
from preflight.source.finding import Message
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.spelling import nearest
from preflight.source.typing_without_import import Any

CORE = "0.16.0"
"""Primus v26.5.1 contains Megatron-LM at d3528a2, 0.16.0rc0."""
SLIP = 0.92
"""The similarity from which a key unknown to presets and Megatron is reported as a misspelling."""
_VARIABLE = lazy_pattern(r"\$\{\w+(?::(?P<default>[^}]*))?\}")


def module(tree: Node | None) -> tuple[str, Node] | None:
    """The module of a config that trains with Megatron, and its name."""
    modules = tree.get("modules") if tree is not None else None
    for entry in modules.entries if modules is not None else ():
        framework = entry.value.get("framework") if entry.value.kind == "mapping" else None
        if framework is not None and framework.value == "megatron":
            return str(entry.key.value), entry.value
    return None


def _preset(kind: str, node: Node, key: str) -> dict[str, Any] | None:
    """A preset that a module names, None if it does not exist."""
    named = node.get(key)
    name = str(_scalar(named).value) if named is not None else ""
    return _whole(kind, f"megatron/{name if name.endswith(('.yaml', '.yml')) else f'{name}.yaml'}")


@cache
def _whole(kind: str, path: str) -> dict[str, Any] | None:
    """A preset merged over those that it extends, None if it does not exist."""
    own = data("primus")[kind].get(path)
    if own is None:
        return None
    merged: dict[str, Any] = {}
    for other in own.get("extends", ()):
        merged |= _whole(kind, other) or {}
    return {**merged, **{key: value for key, value in own.items() if key != "extends"}}


def _scalar(node: Node) -> Node:
    """A scalar with the defaults of its variables filled in; unchanged if one has none."""
    text = node.value
    if node.kind != "scalar" or not isinstance(text, str) or "${" not in text:
        return node
    if any(match["default"] is None for match in _VARIABLE.finditer(text)):
        return node
    return node._replace(value=plain(_VARIABLE.sub(lambda match: match["default"], text)))


def _resolved(node: Node) -> Node:
    if node.kind == "mapping":
        return node._replace(value=tuple(one._replace(value=_resolved(one.value)) for one in node.entries))
    if node.kind == "sequence":
        return node._replace(value=tuple(map(_resolved, node.items)))
    return _scalar(node)


@cache
def _flags(above: str, presets: str) -> tuple[Flag, ...]:
    """Megatron's arguments by their names, with the defaults of the presets. above: their parent keys."""
    values = json.loads(presets)
    found: dict[str, Flag] = {}
    for flag in table("megatron", CORE).options.values():
        kind = "bool" if flag.kind in ("true", "false", "pair") else flag.kind
        option = f"{above}.{flag.dest}"
        default = _usable(flag, values.get(flag.dest, flag.default))
        default = tuple(default) if isinstance(default, list) else default
        found.setdefault(option, flag._replace(option=option, kind=kind, default=default, also=(), choices=None))
    return tuple(found.values())


def _usable(flag: Flag, value: Any) -> Any:
    """A preset's value as Megatron's parser would convert its text."""
    if isinstance(value, str) and flag.kind not in ("str", "true", "false", "pair"):
        try:
            return convert(flag, value)
        except (BadValue, ValueError, TypeError):
            return None
    return None if isinstance(value, dict) else value


def _slips(overrides: Node | None, known: frozenset[str]) -> Iterator[Problem]:
    """Unused keys that are misspellings of a key in use."""
    for entry in overrides.entries if overrides is not None else ():
        name = str(entry.key.value)
        near = nearest(name, sorted(known), SLIP) if name not in known else None
        if near:
            message = Message("Primus never reads {name}; did you mean {near}?", name=name, near=near)
            yield Problem(UNREAD, message, entry.key.span, harmless=True, unknown_option=True)


NUMBERS = frozenset(
    [
        *("micro_batch_size", "global_batch_size", "train_iters", "seq_length", "num_layers", "hidden_size"),
        *("num_attention_heads", "lr", "min_lr", "tensor_model_parallel_size", "pipeline_model_parallel_size"),
        *("context_parallel_size", "expert_model_parallel_size"),
    ]
)
"""Arguments with which Megatron calculates in every run."""


def _texts(overrides: Node | None) -> Iterator[Problem]:
    """Strings instead of numbers: Primus converts only those with variables (yaml_loader.py:_resolve_env_in_string)."""
    for entry in overrides.entries if overrides is not None and overrides.kind == "mapping" else ():
        name, value = str(entry.key.value), entry.value.value
        if name in NUMBERS and isinstance(value, str) and "${" not in value and not _is_number(value):
            template = "{name} is the string {value:.40}; it must be a number, because Megatron calculates with it"
            yield Problem(REFUSED, Message(template, name=name, value=value), entry.value.span)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _presets(node: Node, kinds: tuple[dict[str, Any] | None, dict[str, Any] | None]) -> Iterator[Problem]:
    """Names of presets that Primus lacks, and that are misspellings of one: a checkout may have more of them."""
    for found, kind, key in zip(kinds, ("modules", "models"), ("config", "model"), strict=True):
        named = node.get(key)
        name = str(_scalar(named).value) if named is not None else ""
        known = sorted(one.removeprefix("megatron/") for one in data("primus")[kind])
        near = nearest(name, known, SLIP) if found is None and name else None
        near = near or next((one for one in known if found is None and one.lower() == name.lower()), None)
        if near and named is not None:
            message = Message("Primus has no preset {name}; did you mean {near}?", name=name, near=near)
            yield Problem(UNREAD, message, named.span, harmless=True)


SWITCH, INTERVAL = "manual_gc", "manual_gc_interval"
"""Every module's preset states the interval, and leaves the switch off."""


def _written(made: Typed, presets: dict[str, Any]) -> None:
    """Values in presets other than Megatron's defaults count as explicit, as Megatron sees them; patterns become
    lists."""
    for flag in table("megatron", CORE).options.values():
        value = _usable(flag, presets.get(flag.dest))
        new = value not in (None, flag.default) and flag.dest not in made.parsed.written
        if new and not (flag.dest == INTERVAL and not presets.get(SWITCH)):
            made.parsed.written[flag.dest] = Value(value, Origin.WRITTEN, note="the preset")
        own = made.parsed.written.get(flag.dest)
        if own is not None and isinstance(own.raw, str):
            made.parsed.written[flag.dest] = own._replace(raw=_usable(flag, own.raw))


PATCHED = ("megatron/",)
"""Primus replaces layers, pipeline schedules, checkpoints and parts of Megatron's validator, depending on other keys,
so its checks are not those of a release; checks that apply to every program remain."""
PRIMUS = FrontEnd("primus", "26.5.1", core=CORE, unread="dropped", apart=PATCHED)


def read(document: Document, surroundings: Surroundings) -> Reading:
    """The config of one experiment."""
    found = module(document.tree)
    assert document.tree is not None and found is not None
    name, node = found
    kinds = (_preset("modules", node, "config"), _preset("models", node, "model"))
    presets = {**(kinds[1] or {}), **(kinds[0] or {})}  # a value in the model never replaces one in the module
    above = f"modules.{name}.overrides"
    own = json_tree(presets, "primus/configs")
    key = Node("scalar", above, own.span)
    below = put(mapping((), own.span), tuple(above.split(".")), key, own)
    config = Composed(merge(below, _resolved(document.tree)), "" if all(kinds) else "a preset is not described")
    front_end = PRIMUS._replace(options=_flags(above, json.dumps(presets)))
    made = typed(front_end, Dotted(config, (document,), (), own.span.source), surroundings)
    _written(made, presets)
    made.parsed.open = not all(kinds) or document.tree.get("extends") is not None
    known = frozenset({*presets, *(flag.dest for flag in table("megatron", CORE).options.values())})
    made.parsed.faults += [*_slips(node.get("overrides"), known), *_texts(node.get("overrides"))]
    made.parsed.faults += _presets(node, kinds)
    return reading(front_end, document, surroundings, made)
