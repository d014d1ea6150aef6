"""Allowed contents of a config of a release: for editors, completion and schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from preflight.dialects.megatron.options import is_a_text_of_options as is_a_text_of_options
from preflight.source.finding import Key
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any


class Offer(NamedTuple):
    """An option. about: a short description of its kind and default; values: the allowed ones, () for any of its
    kind."""

    about: str
    values: tuple[str, ...] = ()
    switch: bool = False


class Offers(NamedTuple):
    """options: those of a command, by spelling. schema: the JSON Schema of a config's tree. patterns: the names that
    patterns may match, below a key path."""

    options: Mapping[str, Offer] = MappingProxyType({})
    schema: Mapping[str, Any] = MappingProxyType({})
    patterns: Callable[[Key], tuple[str, ...]] = lambda key: ()
