"""The fields of pynative configs in releases other than that of the JSON Schema, from their configuration classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from preflight import schemas
from preflight.dialects.mindformers.pynative_schema import UPSTREAM, VERSION, Fault, faults
from preflight.loaders.document import Node
from preflight.source.finding import Key
from preflight.source.spelling import nearest
from preflight.source.typing_without_import import Any

RELEASES = ("1.9.0", "2.0.0", VERSION)
"""The releases with pynative mode, oldest first."""
Rows = Mapping[str, Sequence[Any]]
"""Field → its type and, if it has one, its default."""
_SIMILAR = 0.75


@lru_cache(maxsize=8)
def sections(release: str) -> Mapping[Key, Rows]:
    """Section → its fields in a release."""
    extracted = schemas.read("mindformers/options")
    number = list(extracted["commits"]).index(release)
    classes: dict[str, dict[str, Sequence[Any]]] = {}
    for option, variants in extracted["options"].items():
        owner, _, name = option.partition(".")
        for first, last, row in variants:
            if first <= number <= last and row is not None and owner.endswith("Config"):
                classes.setdefault(owner, {})[name] = row[1:]
    found: dict[Key, Rows] = {}

    def walk(owner: str, path: Key) -> None:
        found[path] = classes[owner]
        for name, row in classes[owner].items():
            inner = re.fullmatch(r"(?:Optional\[)?(\w+)\]?", str(row[0]))
            if inner is not None and inner[1] in classes and inner[1] != owner:
                walk(inner[1], (*path, name))

    walk("TrainConfig", ())
    return found


def faults_at(tree: Node, release: str) -> Iterator[Fault]:
    """All violations of a release's fields in a document."""
    if release == VERSION or release not in RELEASES:
        yield from faults(tree)
        return
    here, there = sections(release), sections(VERSION)
    for fault in faults(tree):
        path, name = _field(fault.key)
        known = here.get(path, {}).get(name)
        if fault.kind == "unknown" and path in here:
            if known is None:
                yield fault._replace(choices=tuple(here[path]))
        elif known is not None and known == there.get(path, {}).get(name):
            yield fault
    yield from _of_later_releases(tree, (), here, there)


def _field(key: Key) -> tuple[Key, str]:
    """The section and the field of a key; an item of a list belongs to the field of the list."""
    names = [part for part in key if isinstance(part, str)]
    return tuple(names[:-1]), names[-1] if names else ""


def _of_later_releases(node: Node, path: Key, here: Mapping[Key, Rows], there: Mapping[Key, Rows]) -> Iterator[Fault]:
    """Keys that a section has in the release of the schema and not in this one."""
    rows = here[path]
    for entry in node.entries:
        name = entry.key.value
        if entry.shadowed or not isinstance(name, str):
            continue
        if (*path, name) in here and entry.value.kind == "mapping":
            yield from _of_later_releases(entry.value, (*path, name), here, there)
        elif name not in rows and name in there.get(path, {}) and not rows.get("allow_extra", ("", False))[-1]:
            yield Fault("unknown", (*path, name), entry.key, "", UPSTREAM, tuple(rows))


def name_at(release: str, section: Key, name: str) -> str | None:
    """The name in a release of a field that another release calls otherwise: the only field of the same type that only
    one of the two has and that begins or ends with the same word, or else the only one that has also the same default
    or the most similar name. "" if the release has no such field, None if no release has the field."""
    here = sections(release).get(section, {})
    for other in sorted(RELEASES, key=lambda one: abs(RELEASES.index(one) - RELEASES.index(release))):
        there = sections(other).get(section, {})
        if name in there and name not in here:
            alike = [
                one
                for one, row in here.items()
                if one not in there and row[0] == there[name][0] and _share_an_end(one, name)
            ]
            same = [one for one in alike if here[one] == there[name]]
            only = next((found[0] for found in (alike, same) if len(found) == 1), "")
            return only or nearest(name, same, _SIMILAR) or ""
    return None


def _share_an_end(name: str, other: str) -> bool:
    """Whether two names begin or end with the same word."""
    words, others = name.split("_"), other.split("_")
    return words[0] == others[0] or words[-1] == others[-1]
