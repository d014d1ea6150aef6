"""The complete interpreter: all parts over one state."""

from __future__ import annotations

import argparse

from preflight.program.argument_parsers import Options
from preflight.program.classes import dataclass_specials
from preflight.program.ir import Node
from preflight.program.machine_facts import Facts
from preflight.program.sources import Sources
from preflight.program.values import Names, Scope
from preflight.program.verdict import Budget
from preflight.source.typing_without_import import Any


class Interpreter(Options):
    """Interprets a program's functions without executing them."""

    def __init__(self, sources: Sources, facts: Facts, budget: Budget) -> None:
        super().__init__(sources, facts, budget)
        self.enum_members: dict[type, Names] = {}
        self.field_types: dict[int, tuple[Node, Scope]] = {}
        self.kept: list[Any] = []
        self.expressions = {name[3:]: getattr(self, name) for name in dir(self) if name.startswith("_e_")}
        self.statements = {name[3:]: getattr(self, name) for name in dir(self) if name.startswith("_s_")}
        self.overrides = {}
        self.inherited_values = {}
        self.hooks = {}
        self.loading = []
        self.loaded = lambda module: None
        self.sized = []
        self.specials = {
            **self.special_table(),
            **dataclass_specials(self),
            id(argparse.ArgumentParser): self.new_parser,
        }
