"""Loads plugins and hands out what they register. A plugin that cannot be loaded is fatal and named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

from preflight.lint.rule import Checkable
from preflight.lint.rule_table import RuleTable, RuleTableError, Selection
from preflight.plugins.entry_points import entry_points
from preflight.source.hints import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from preflight.dialects import Dialect
    from preflight.run.cluster import Device

GROUP = "preflight"
OWN = "preflight.plugins.builtin"


class PluginError(Exception):
    """A plugin failed: names which distribution, version and entry point, and how."""


class Plugins:
    """Everything the plugins registered. Build one with `load()`, or from a list of plugin objects in tests."""

    def __init__(self, hook: Any) -> None:
        """hook: has a function per hook that gives the results of every plugin, the last registered first."""
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
        """Rules for runs in which these frameworks take part (None: all rules there are), sorted by id."""
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
    """Mark preflight's own functions as hooks, which they are by name: their modules load without pluggy."""
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
