"""Faults of a script as a script, noted for the rules that report them."""

from __future__ import annotations

from collections.abc import Iterator

from preflight.document import Problem
from preflight.loaders.shell.commands import Commands, Found
from preflight.loaders.shell.syntax import Tree


def faults(tree: Tree, commands: Commands) -> Iterator[Problem]:
    return iter(())


def launch_faults(found: Found, commands: Commands) -> Iterator[Problem]:
    return iter(())
