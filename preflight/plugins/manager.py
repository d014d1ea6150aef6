"""Plugins: the entry points that name them, and what they register."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module

from preflight.lint.rule import Checkable
from preflight.lint.rule_registry import RuleTable, RuleTableError, Selection
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from preflight.dialects import Dialect
    from preflight.run.cluster import Device


class EntryPoint(NamedTuple):
    """One entry point and the distribution that has it; target: "module" or "module:attribute"."""

    distribution: str
    version: str
    name: str
    target: str


def entry_points(group: str) -> list[EntryPoint]:
    """Every entry point of a group, sorted by distribution and name;
    the first of two with the same name on the path applies."""
    found: dict[tuple[str, str], EntryPoint] = {}
    for point in _listed(group) if _foreign() else _scanned(group):
        found.setdefault((point.distribution, point.name), point)
    return [found[key] for key in sorted(found)]


def _foreign() -> bool:
    finders = (finder for finder in sys.meta_path if hasattr(finder, "find_distributions"))
    return any(getattr(finder, "__name__", "") != "PathFinder" for finder in finders) or any(
        map(os.path.isfile, sys.path)
    )


def _listed(group: str) -> Iterator[EntryPoint]:
    from importlib.metadata import distributions

    for dist in distributions():
        for point in dist.entry_points:
            if point.group == group:
                yield EntryPoint(dist.name, dist.version, point.name, point.value)


def _scanned(group: str) -> Iterator[EntryPoint]:
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        if any(name.endswith(".egg") for name in names):
            yield from _listed(group)
            return
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                yield from _points(os.path.join(folder, name), group)


def _points(folder: str, group: str) -> Iterator[EntryPoint]:
    text = _text(os.path.join(folder, "entry_points.txt"))
    if group not in text:
        return
    about = _text(os.path.join(folder, "METADATA")) or _text(os.path.join(folder, "PKG-INFO"))
    head = dict(
        line.split(": ", 1)
        for line in about.partition("\n\n")[0].splitlines()
        if ": " in line and not line.startswith(" ")
    )
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == group and "=" in line and not line.startswith("#"):
            name, _, target = line.partition("=")
            yield EntryPoint(head.get("Name", ""), head.get("Version", ""), name.strip(), target.strip())


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError):
        return ""


GROUP = "preflight"
OWN = "preflight.plugins.builtin"


class PluginError(Exception):
    """A plugin failed: the message gives the distribution, the version, the entry point and the error."""


class Plugins:
    """Everything that the plugins registered. Build one with `load()`, or from a list of plugin objects in tests."""

    def __init__(self, hook: Any) -> None:
        """hook: has a function per hook that returns the results of every plugin, the last registered first."""
        self._hook = hook
        self._table: RuleTable | None = None
        self._dialects: tuple[Dialect, ...] | None = None
        self._devices: tuple[Device, ...] | None = None

    @property
    def own_only(self) -> bool:
        """Whether no third-party plugin takes part."""
        return isinstance(self._hook, _Alone)

    def _gather(self, hook: str) -> list[Any]:
        try:
            return [item for items in reversed(getattr(self._hook, hook)()) for item in items]
        except Exception as error:
            raise PluginError(f"a plugin failed in {hook}: {type(error).__name__}: {error}") from error

    @property
    def table(self) -> RuleTable:
        """The rules of all plugins."""
        if self._table is None:
            self._table = RuleTable(self._gather("preflight_rules"))
        return self._table

    def rules(self, frameworks: Iterable[str] | None = None) -> tuple[Checkable, ...]:
        """Rules for runs in which these frameworks take part (None: all rules), sorted by id."""
        try:
            return self.table.rules(frameworks)
        except RuleTableError as error:
            raise PluginError(str(error)) from None

    def selection(self, versions: Mapping[str, str]) -> Selection:
        """The rules for runs in which these versions of frameworks take part."""
        try:
            return self.table.selection(versions)
        except RuleTableError as error:
            raise PluginError(str(error)) from None

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


def load(extra: Iterable[object] = ()) -> Plugins:
    """All installed plugins, preflight's own among them, and extra ones. Raises PluginError."""
    points, extra = entry_points(GROUP), tuple(extra)
    if not extra and [point.target for point in points] == [OWN]:
        return Plugins(_Alone(import_module(OWN)))
    import pluggy

    from preflight.plugins import hookspecs

    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    for distribution, version, name, target in points:
        try:
            module, _, attribute = target.partition(":")
            plugin: object = import_module(module)
            for part in filter(None, attribute.split(".")):
                plugin = getattr(plugin, part)
            if target == OWN:
                mark(plugin)
            manager.register(plugin, name)
        except Exception as error:
            raise PluginError(
                f"plugin {name!r} of {distribution} {version} ({target}) cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error
    for plugin in extra:
        mark(plugin)
        manager.register(plugin)
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(f"a plugin implements a hook that does not exist: {error}") from error
    return Plugins(manager.hook)


class _Alone:
    """The hooks where preflight's own plugin is the only one: pluggy has nothing to combine,
    and costs 10 ms to import."""

    def __init__(self, plugin: object) -> None:
        self._plugin = plugin

    def __getattr__(self, name: str) -> Callable[[], list[Any]]:
        function: Callable[[], Any] = getattr(self._plugin, name)
        return lambda: [function()]


def mark(plugin: object) -> None:
    """Mark preflight's own functions as hooks by their names, so that their modules load without pluggy."""
    from preflight.plugins.hookspecs import hookimpl

    for name in dir(plugin):
        function = getattr(plugin, name)
        function = getattr(function, "__func__", function)
        if (
            name.startswith("preflight_")
            and getattr(function, "__module__", "").startswith("preflight.")
            and not hasattr(function, "preflight_impl")
        ):
            hookimpl(function)
