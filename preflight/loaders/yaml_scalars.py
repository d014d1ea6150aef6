"""What a YAML scalar reads as: PyYAML's own resolvers and constructors, each answer found once.

PyYAML is imported here, without the patterns that it compiles as it is imported: one of its pure-Python reader alone
takes longer than a config. The parser in C uses none of them. Each is compiled when something asks for it, so other
users of PyYAML find it whole.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache

from preflight.source.hints import Any
from preflight.source.pattern import LazyPattern

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
    """What PyYAML reports by its own LookupError."""


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
