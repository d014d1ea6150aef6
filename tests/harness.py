"""Shared helpers for tests of the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import pluggy
import toy

from preflight.plugins import hookspecs
from preflight.plugins.manager import Plugins, mark


class Ran(NamedTuple):
    """The result of a command line."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ran]
"""Runs a command line: the fixture `cli`."""


def with_toy(extra: Iterable[object] = ()) -> Plugins:
    """Plugins with only the toy and the additions of a call."""
    manager = pluggy.PluginManager("preflight")
    manager.add_hookspecs(hookspecs)
    manager.register(toy)
    for plugin in extra:
        mark(plugin)
        manager.register(plugin)
    return Plugins(manager.hook)
