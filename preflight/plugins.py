"""Loads plugins and hands out what they bring. A plugin that cannot be loaded is fatal and named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pluggy

from preflight import hookspecs
from preflight.rule import Checkable, RulePack

if TYPE_CHECKING:
    from preflight.cluster import Device
    from preflight.dialects import Dialect

GROUP = "preflight"


class PluginError(Exception):
    """A plugin failed: says which distribution, version and entry point, and how."""


class Plugins:
    """Everything the plugins registered. Build one with `load()`, or from a list of plugin objects in tests."""

    def __init__(self, manager: pluggy.PluginManager) -> None:
        self._hook = manager.hook
        self._packs: list[RulePack] | None = None
        self._rules: dict[tuple[str, ...], tuple[Checkable, ...]] = {}
        self._dialects: tuple[Dialect, ...] | None = None
        self._devices: tuple[Device, ...] | None = None

    def _gather(self, hook: str) -> list[Any]:
        try:
            return [item for items in reversed(getattr(self._hook, hook)()) for item in items]
        except Exception as error:
            raise PluginError(f"a plugin failed in {hook}: {type(error).__name__}: {error}") from error

    def rules(self, frameworks: Iterable[str] | None = None) -> tuple[Checkable, ...]:
        """Rules for runs in which these frameworks take part (None: all rules there are), sorted by id."""
        key = ("*",) if frameworks is None else tuple(sorted(frameworks))
        if key not in self._rules:
            if self._packs is None:
                given = self._gather("preflight_rules")
                self._packs = [item if isinstance(item, RulePack) else RulePack((), lambda item=item: (item,)) for item in given]  # type: ignore[misc]
            wanted = [p for p in self._packs if frameworks is None or not p.frameworks or not set(p.frameworks).isdisjoint(key)]
            loads = [pack.load if frameworks is None else pack.deferred or pack.load for pack in wanted]
            self._rules[key] = _sorted([rule for load in loads for rule in load()])
        return self._rules[key]

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        if self._dialects is None:
            self._dialects = tuple(self._gather("preflight_dialects"))
        return self._dialects

    @property
    def devices(self) -> tuple[Device, ...]:
        if self._devices is None:
            self._devices = tuple(self._gather("preflight_devices"))
        return self._devices

    def reporters(self) -> dict[str, str]:
        return dict(self._gather("preflight_reporters"))


def _sorted(rules: Sequence[Checkable]) -> tuple[Checkable, ...]:
    seen: dict[str, Checkable] = {}
    for rule in rules:
        if rule.id in seen:
            raise PluginError(f"two rules are called {rule.id!r}")
        seen[rule.id] = rule
    if not rules:
        raise PluginError("no rules are loaded; is preflight installed (its rules come in by an entry point)?")
    return tuple(seen[id] for id in sorted(seen))


def load(extra: Iterable[object] = ()) -> Plugins:
    """All installed plugins, preflight's own among them, and extra ones. Raises PluginError."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    for distribution, version, name, target in entry_points():
        try:
            module, _, attribute = target.partition(":")
            plugin: object = import_module(module)
            for part in filter(None, attribute.split(".")):
                plugin = getattr(plugin, part)
            manager.register(plugin, name)
        except Exception as error:
            raise PluginError(f"plugin {name!r} of {distribution} {version} ({target}) cannot be loaded: {type(error).__name__}: {error}") from error
    for plugin in extra:
        manager.register(plugin)
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(f"a plugin implements a hook that does not exist: {error}") from error
    return Plugins(manager)


def entry_points() -> list[tuple[str, str, str, str]]:
    """Distribution, version, name and target of each entry point of the group, sorted by distribution and name."""
    from importlib.metadata import distributions

    found: dict[tuple[str, str], tuple[str, str, str, str]] = {}
    for dist in distributions():
        for point in dist.entry_points:
            if point.group == GROUP:
                found.setdefault((dist.name, point.name), (dist.name, dist.version, point.name, point.value))
    return [found[key] for key in sorted(found)]
