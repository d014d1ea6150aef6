"""What a YAML scalar reads as: PyYAML's own resolvers and constructors, each answer found once."""

from __future__ import annotations

from functools import lru_cache

from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from preflight.loaders.pyyaml import yaml

PREFIX = "tag:yaml.org,2002:"
_RESOLVERS = Resolver.yaml_implicit_resolvers
_WILD = _RESOLVERS.get(None, [])
_TEXTS = (PREFIX + "str", PREFIX + "merge", PREFIX + "value")
_NUMBERS = (PREFIX + "int", PREFIX + "float", PREFIX + "timestamp")
_constructor = SafeConstructor()


class _Unreadable(ValueError):
    """What PyYAML says by a LookupError of its own."""


LONG = 200
"""Characters of a scalar: a longer one is not remembered, as long ones would fill the memory."""
MAX_DIGITS = 4000
"""Characters of a number: PyYAML takes time that grows with the square of their number,
and Python reads hardly a longer one."""


@lru_cache(maxsize=4096)
def plain(text: str) -> object:
    """The value of a plain scalar that is not long. Raises whatever PyYAML raises."""
    return constructed(resolve(text), text)


def constructed(tag: str, text: str) -> object:
    """The value that a tag makes of a text. Raises LookupError for a tag that makes none,
    and whatever PyYAML raises."""
    if len(text) > MAX_DIGITS and tag in _NUMBERS:
        raise ValueError(f"it has {len(text)} characters")
    if tag in _TEXTS:
        return text
    if tag[len(PREFIX) :] in ("map", "seq", "set", "omap", "pairs"):
        raise LookupError(tag)
    construct = SafeConstructor.yaml_constructors[tag]
    try:
        return construct(_constructor, yaml.ScalarNode(tag, text))
    except LookupError as error:
        raise _Unreadable(str(error)) from None


def resolve(text: str) -> str:
    """The YAML 1.1 tag of a plain scalar."""
    for tag, pattern in _RESOLVERS.get(text[:1], []):
        if pattern.match(text):
            return str(tag)
    for tag, pattern in _WILD:
        if pattern.match(text):
            return str(tag)
    return PREFIX + "str"
