"""Reads a pynative config (MindFormers 2.1): explicit arguments, the trainer's derivations and changes, the plan."""

from __future__ import annotations

from collections.abc import Mapping

from preflight.dialects import Reading, Surroundings
from preflight.dialects.mindformers.config_kind_and_loading import known_version
from preflight.dialects.mindformers.graph_namespace import written
from preflight.dialects.mindformers.known_keys import decides, keeps
from preflight.dialects.mindformers.layout_edits import relayout
from preflight.dialects.mindformers.pynative_derived import Derived, derive
from preflight.dialects.mindformers.pynative_network_fields import DEFAULTS, NAMES
from preflight.dialects.mindformers.pynative_plan import attention_variant, make_plan
from preflight.dialects.mindformers.pynative_releases import RELEASES
from preflight.dialects.mindformers.pynative_schema import VERSION, defaults
from preflight.loaders.document import Document, Node, Unknown
from preflight.run.arguments import REMOVE, Arguments, Switch
from preflight.run.cluster import Cluster
from preflight.run.request import Target
from preflight.run.value import Value, default, derived, unknown
from preflight.source.finding import Edit
from preflight.source.record import replace
from preflight.source.resolved_words import NO_WORLD_SIZE
from preflight.source.typing_without_import import Any

FRAMEWORK = "pynative"


def read_pynative(document: Document, tree: Node, surroundings: Surroundings) -> Reading:
    """Read a config. The network's fields are named `net.<field>`, regardless of the key of `model` that sets them."""
    request = surroundings.request
    asked = known_version(request.target.version) if request.target else VERSION
    target = Target("mindformers", asked if asked in RELEASES else VERSION)
    as_written = written(tree, document)
    if request.given:
        from preflight.dialects.mindformers.graph_namespace import told

        as_written = as_written.with_values(told(request.given, as_written, (), document.start))
    aliases = _aliases(as_written)
    typed = as_written.with_values({f"net.{field}": as_written[key] for field, key in aliases.items()})
    world = derived(request.devices, "given") if request.devices is not None else unknown(NO_WORLD_SIZE)
    plain = _Defaults(typed)
    found = derive(typed, plain, world)
    versions = {FRAMEWORK: target.version}
    arguments = Arguments(
        target,
        typed,
        found.values,
        plain,
        _Writer(typed, aliases),
        switches=_switches(found),
        versions=versions,
        keeps=keeps,
    )
    variant = attention_variant(arguments)
    arguments = replace(arguments, relayout=relayout(arguments, pynative=True), variant=variant, decides=decides)
    plan = make_plan(target, arguments, found)
    device = surroundings.device(request.device) if request.device else None
    per_node = (
        derived(request.devices_per_node, "given")
        if request.devices_per_node
        else unknown("the devices per node are not given")
    )
    return Reading((document,), target, arguments, plan, Cluster(device=device, count=world, per_node=per_node))


def _aliases(typed: Mapping[str, Value]) -> dict[str, str]:
    """Field of the network → the dotted key that sets it."""
    found = {}
    for name, keys in NAMES.items():
        for key in keys:
            if f"model.{key}" in typed:
                found[name] = f"model.{key}"
                break
    return found


def _switches(found: Derived) -> tuple[Switch, ...]:
    return tuple(found.switches)


class _Defaults:
    """Values that apply if nothing is set: the schema's defaults, and the model's own for fields of the network."""

    def __init__(self, typed: Mapping[str, Value]) -> None:
        kind = typed.get("model.model_type")
        name = kind.raw if kind is not None and isinstance(kind.raw, str) else ""
        self._model: dict[str, Any] | None = DEFAULTS.get(name)
        self._because = f"the defaults of model_type {name!r} are unknown" if name else "model.model_type is not given"

    def __call__(self, name: str) -> Value:
        if name.startswith("net."):
            if self._model is None:
                return unknown(self._because)
            field = name[4:]
            return (
                default(self._model[field], "the model's default")
                if field in self._model
                else unknown(f"the default of {field} is unknown")
            )
        return default(defaults().get(name), f"MindFormers {VERSION}")


class _Writer:
    """Edits that write a value to a name; a field of the network goes to the key that sets it."""

    def __init__(self, typed: Mapping[str, Value], aliases: Mapping[str, str]) -> None:
        self.typed, self.aliases = typed, aliases

    def __call__(self, name: str, value: object) -> tuple[Edit, ...]:
        if name.startswith("net."):
            field = name[4:]
            name = self.aliases.get(field) or f"model.{NAMES[field][0]}"
        have = self.typed.get(name)
        if have is not None:
            return have.becomes(value)
        return () if value is REMOVE else (Edit("set", tuple(name.split(".")), value),)


def number(value: Value) -> int | None:
    """A known integer, or None."""
    return value.raw if isinstance(value.raw, int) and not isinstance(value.raw, (bool, Unknown)) else None
