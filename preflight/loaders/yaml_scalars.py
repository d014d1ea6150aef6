"""The values of YAML scalars: PyYAML's own resolvers and constructors, with cached results. PyYAML is imported here
without compiling its patterns, because one pattern of its pure-Python reader alone takes longer than a config. The C
parser uses none of them. Each is compiled on demand, so that other users of PyYAML find it complete.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache

from preflight.loaders.document import MAX_DIGITS
from preflight.source.lazy_regex import LazyPattern
from preflight.source.typing_without_import import Any

_compile = re.compile


def _compiled_later(pattern: Any, flags: Any = 0) -> Any:
    caller = sys._getframe(1).f_globals["__name__"]
    return LazyPattern(pattern, flags, _compile) if caller.startswith("yaml.") else _compile(pattern, flags)


re.compile = _compiled_later
try:
    import yaml as yaml
    from yaml.constructor import SafeConstructor as SafeConstructor
    from yaml.resolver import Resolver as Resolver
finally:
    re.compile = _compile

PREFIX = "tag:yaml.org,2002:"
_RESOLVERS = Resolver.yaml_implicit_resolvers
_WILD = _RESOLVERS.get(None, [])
_TEXTS = (PREFIX + "str", PREFIX + "merge", PREFIX + "value")
_NUMBERS = (PREFIX + "int", PREFIX + "float", PREFIX + "timestamp")
_constructor = SafeConstructor()


class _Unreadable(ValueError):
    """The error that PyYAML raises, as a LookupError."""


LONG = 200
"""Characters of a scalar above which it is not cached, because long ones would fill the memory."""


@lru_cache(maxsize=4096)
def plain(text: str) -> object:
    """The value of a short plain scalar. Raises whatever PyYAML raises."""
    return constructed(resolve(text), text)


def constructed(tag: str, text: str) -> object:
    """The value of a text with a tag. Raises LookupError for an unknown tag, and whatever PyYAML raises."""
    if len(text) > MAX_DIGITS and tag in _NUMBERS:
        raise ValueError(f"the scalar has {len(text)} characters")
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
