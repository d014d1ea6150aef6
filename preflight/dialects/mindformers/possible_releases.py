"""The releases that a graph-mode config without a stated release may be of: those that know as many of its keys as the
one it is read as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from preflight.dialects.mindformers import mcore
from preflight.dialects.mindformers.release_tables import VERSIONS, Table, table
from preflight.loaders.document import Node
from preflight.run.versions import numbers

FIRST_TEMPLATE = "1.5.0"
FIRST_CORE = (1, 6)


def possible_releases(tree: Node, kind: str, read_as: str) -> tuple[str, ...]:
    """The releases, oldest first, that a config fits as well as the one it is read as, including that one."""
    known = Counter(takers for key in frozenset(_keys(tree)) if (takers := _takers(kind, *key)))
    misfits = {
        version: sum(keys for takers, keys in known.items() if version not in takers) for version in _candidates(kind)
    }
    return tuple(version for version, count in misfits.items() if count <= misfits[read_as])


@lru_cache(maxsize=4096)
def _takers(kind: str, section: str, key: str) -> frozenset[str]:
    """The releases that know a key of a section."""
    if not section:
        return _top_level(kind).get(key, frozenset())
    return frozenset(version for version in _candidates(kind) if _knows(table(version), kind, section, key))


@lru_cache(maxsize=2)
def _top_level(kind: str) -> dict[str, frozenset[str]]:
    """The releases that know each key outside of sections."""
    first = table(FIRST_TEMPLATE)
    known = {
        version: {*(t if t.templated else first).general, *_sections(t)}
        for version in _candidates(kind)
        for t in (table(version),)
    }
    keys = frozenset[str]().union(*known.values())
    return {key: frozenset(version for version, names in known.items() if key in names) for key in keys}


def _candidates(kind: str) -> tuple[str, ...]:
    return tuple(version for version in VERSIONS if kind == "legacy" or numbers(version) >= FIRST_CORE)


def _keys(tree: Node) -> Iterator[tuple[str, str]]:
    """Section and key of each setting; the type of the network is represented by a separate key."""
    model = tree.get("model", "model_config")
    named = model.get("type") if model is not None else None
    name = named.value if named is not None and isinstance(named.value, str) else ""
    yield from (("", str(entry.key.value)) for entry in tree.entries)
    yield from (
        (str(section.key.value), str(entry.key.value)) for section in tree.entries for entry in section.value.entries
    )
    yield from ((f"class {name}", str(entry.key.value)) for entry in (model.entries if model is not None else ()))
    yield from ((f"class {name}", "") for _ in (name,) if name)


def _knows(t: Table, kind: str, section: str, key: str) -> bool:
    """Whether a release knows a key of a section, judged by its table: keys that it passes on unread count as known."""
    if section.startswith("class "):
        if kind == "mcore":
            return not key or key in mcore.names(t.version, "", t.mcore).targets
        known = t.models.get(section.removeprefix("class "))
        return known is not None and (not key or key in known)
    return section not in t.strict or key in t.sections[section]


def _sections(t: Table) -> tuple[str, ...]:
    """The sections that a release knows; before templates existed, those of the first template except the strict ones
    added with it."""
    first = table(FIRST_TEMPLATE)
    return (
        tuple(t.sections)
        if t.templated
        else tuple(name for name in first.sections if name not in first.strict or name in (*t.strict, "runner_config"))
    )
