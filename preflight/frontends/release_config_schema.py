"""The accepted input of a front end's release: its composed config, the classes built from its sections, its groups and
registries, as `python -m upstream.frontends.contracts` reads them from its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property

from preflight import schemas
from preflight.frontends.described_releases import FOLDER
from preflight.frontends.refusal_rows import Row, identity, listed
from preflight.loaders.document import Node
from preflight.loaders.tree_from_data import json_tree
from preflight.run.request import Target
from preflight.run.version_ranges import numbers
from preflight.source.spelling import nearest
from preflight.source.typing_without_import import Any

TARGET = "_target_"
"""Hydra's key for the class that a section creates; not a setting."""
CLOSE = 0.75
"""The similarity from which a key is reported as a misspelling of its neighbour."""


class Contract:
    """The accepted input of one release."""

    def __init__(self, front_end: str, release: str, engine: str = "", variant: str = "") -> None:
        self.front_end, self.release, self.engine, self.variant = front_end, release, engine, variant
        self._data: Mapping[str, Any] = schemas.read(f"{FOLDER}/{front_end}-{release}")

    @property
    def label(self) -> str:
        """The front end and the release."""
        return f"{self.front_end} {self.release}"

    @cached_property
    def tree(self) -> Mapping[str, Any]:
        """The composed config, without the names of classes."""
        found: Mapping[str, Any] = _without_targets(self._whole)
        return found

    @cached_property
    def _whole(self) -> Mapping[str, Any]:
        whole: Mapping[str, Any] = self._data["other engines"][self.engine] if self.engine else self._data["trainer"]
        return _over(whole, self._data["variants"][self.variant]) if self.variant else whole

    def of_variant(self, name: str) -> Contract | None:
        """The same with the config of another trainer over it, None if that is not described."""
        known = name in self._data.get("variants", {})
        return contract(self.front_end, self.release, variant=name) if known else None

    def of_engine(self, engine: str) -> Contract | None:
        """The same with the config of another engine, None if that is not described."""
        known = engine in self._data.get("other engines", {})
        return contract(self.front_end, self.release, engine) if known else None

    @cached_property
    def node(self) -> Node:
        """The same as nodes of a separate file."""
        return json_tree(self.tree, f"{self.front_end}/config")

    def groups(self, primary: str) -> Mapping[str, Sequence[str]]:
        """The groups of a config's defaults, as an override names them, each with its options."""
        found: Mapping[str, Sequence[str]] = self._data["groups"].get(primary, {})
        return found

    def registered(self, registry: str) -> Sequence[str]:
        """The names in a registry; () if unknown."""
        found: Sequence[str] = self._data["registries"].get(registry, ())
        return found

    def choices(self, sections: Iterable[str]) -> Iterator[tuple[str, Sequence[object]]]:
        """Each key in some sections, and below them, that accepts only certain values."""
        taken, beginnings = {} if self.engine else self._data.get("choices", {}), tuple(sections)
        for path, name in self._data["made"].items():
            if path in beginnings or path.startswith(tuple(f"{one}." for one in beginnings)):
                yield from ((f"{path}.{field}", values) for field, values in taken.get(name, {}).items())

    @cached_property
    def refusals(self) -> tuple[Row, ...]:
        """The refusals of its code that no rule reports."""
        return () if self.engine or self.variant else tuple(listed(self._data.get("refusals", ())))

    @cached_property
    def refused(self) -> frozenset[str]:
        """The same without their lines."""
        return frozenset(map(identity, self.refusals))

    @cached_property
    def keys(self) -> frozenset[str]:
        """Every key of the config, including sections."""
        return frozenset(_paths(self.tree))

    def at(self, path: Sequence[str]) -> Any:
        """A value of the config, None if it is missing."""
        return _below(self.tree, path)

    def fields_at(self, path: Sequence[str]) -> tuple[int, Sequence[str]]:
        """The class for a key: the number of keys that lead to its section, and its fields; (0, ()) if there is no
        class, or it is unknown."""
        if self.engine:
            return 0, ()
        made, known = self._data["made"], self._data["fields"]
        for length in range(len(path) - 1, 0, -1):
            section = self.at(path[:length])
            name = made.get(".".join(path[:length]))
            if name is not None:
                return (length, known[name]) if name in known else (0, ())
            if isinstance(section, dict):
                return 0, ()  # a plain mapping accepts any key
        return 0, ()

    def has(self, key: str) -> bool:
        """Whether the config has a key, which may be the index of an item."""
        *above, last = key.split(".")
        section = _below(self._whole, above)
        return isinstance(section, list) or (isinstance(section, dict) and last in section and last != TARGET)

    def lacks(self, keys: Iterable[str]) -> frozenset[str]:
        """The given keys that the config does not have."""
        return frozenset(key for key in keys if not self.has(key))

    def meant(self, key: str) -> str:
        """The intended key for an unknown one: the most similar key of its section, otherwise the only one with that
        name in the same part of the config; "" if none is similar."""
        path = key.split(".")
        depth = next((n for n in range(len(path)) if not isinstance(self.at(path[: n + 1]), dict)), len(path) - 1)
        section = self.at(path[:depth])
        above, rest = ".".join(path[:depth]), path[depth + 1 :]
        if isinstance(section, dict) and (near := nearest(path[depth], list(section), CLOSE)):
            found = ".".join(filter(None, (above, near, *rest)))
            if found in self.keys:
                return found
        same = [one for one in self.keys if one.rpartition(".")[2] == path[-1]]
        beside = [one for one in same if one.startswith(f"{path[0]}.")] or same
        return beside[0] if len(beside) == 1 else ""


def _over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A tree over another one."""
    found = dict(base)
    for key, value in own.items():
        below = found.get(key)
        found[key] = _over(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return found


def _below(value: Any, path: Iterable[str]) -> Any:
    """A value of nested mappings, None if it is missing."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _without_targets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_targets(inner) for key, inner in value.items() if key != TARGET}
    return value


def _paths(tree: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in tree.items():
        yield above + key
        if isinstance(value, dict):
            yield from _paths(value, f"{above}{key}.")


@cache
def contract(front_end: str, release: str, engine: str = "", variant: str = "") -> Contract:
    """The contract of a described release."""
    return Contract(front_end, release, engine, variant)


@cache
def lacks(front_end: str, release: str) -> frozenset[str]:
    """The rules of a front end whose check is missing in a release."""
    return frozenset(schemas.read(f"{FOLDER}/lacks").get(front_end, {}).get(release, ()))


@cache
def made_since(front_end: str, release: str) -> Mapping[str, str]:
    """The rules whose check is missing in older releases than this one, each with the first described release that has
    it."""
    known = schemas.read(f"{FOLDER}/lacks").get(front_end, {})
    older = sorted((one for one in known if numbers(one) < numbers(release)), key=numbers)
    found: dict[str, str] = {}
    for old, next_ in zip(older, (*older[1:], release), strict=False):
        found |= dict.fromkeys(known[old], next_)
    return found


def nearest_release(front_end: str, releases: Sequence[str], asked: Target | None, default: str) -> str:
    """The described release for a stated one: itself, the newest of its minor version, the newest before it, or the
    oldest, in this order; the default if none is stated."""
    wanted = numbers(asked.version) if asked is not None and asked.framework == front_end else ()
    if not wanted:
        return default
    order = sorted(releases, key=numbers)
    begun = [one for one in order if numbers(one)[: len(wanted)] == wanted]
    alike = begun or [one for one in order if numbers(one)[:2] == wanted[:2]]
    before = [one for one in order if numbers(one) <= wanted]
    return (alike or before or order[:1])[-1]
