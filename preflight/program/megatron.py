"""Megatron-LM: in which order its own functions look at a command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from preflight.program.interpreter import Interpreter
from preflight.program.values import MISSING, Function, Names, Raised, Value

ARGUMENTS = ("megatron.training.arguments", "megatron.arguments")
BATCHES = ("megatron.core.num_microbatches_calculator", "megatron.training.microbatches", "megatron.microbatches")
DEFAULTS = {"tokenizer_type": "GPT2BPETokenizer"}
VOCABULARY = 50304
"""A padded size that every tensor parallel size divides, where the tokenizer would say it."""


class Megatron:
    """One tree of Megatron, whose parser is built once."""

    def __init__(self, run: Interpreter) -> None:
        self.run = run
        self.stages: list[str] = []
        self.initial: Names = {}
        self._parser: Value = MISSING
        self.module = next((name for name in ARGUMENTS if run.sources.find(name) is not None), "")
        run.overrides[f"{self.module}.add_megatron_arguments"] = self._build
        run.overrides[f"{self.module}._print_args"] = lambda given, named: None

    def __call__(self) -> None:
        """Every stage in order; a refusal ends them."""
        args = self._stage("parse", self._parse)
        args = self._stage("validate", lambda: self._validate(args))
        self._stage("config", lambda: self._config(args))
        self._stage("microbatches", lambda: self._batches(args))

    def _stage(self, name: str, run: Callable[[], Value]) -> Value:
        self.run.stage = name
        found = run()
        self.stages.append(name)
        return found

    def function(self, module: str, name: str) -> Value:
        """A function of the tree, MISSING where it has none of that name."""
        if self.run.sources.find(module) is None:
            return MISSING
        try:
            return self.run.imported(module, name)
        except Raised as raised:
            if isinstance(raised.error, (ImportError, AttributeError)):
                return MISSING
            raise

    def _build(self, given: list[Value], named: Names) -> Value:
        if self._parser is MISSING:
            override = self.run.overrides.pop(f"{self.module}.add_megatron_arguments")
            try:
                with self.run.permanent():
                    self._parser = self.run.call(self.function(self.module, "add_megatron_arguments"), given, named)
            finally:
                self.run.overrides[f"{self.module}.add_megatron_arguments"] = override
        return self._parser

    def _parse(self) -> Value:
        args = self.run.call(self.function(self.module, "parse_args"), [], {})
        names = self.run.names_of(args)
        if names is None:
            self.run.lost("the arguments")
            return args
        self.run.arguments, self.run.known_arguments = names, frozenset(names)
        self.initial.update(names)
        self.run.writes.clear()
        return args

    def _validate(self, args: Value) -> Value:
        found = self.run.call(self.function(self.module, "validate_args"), [args, dict(DEFAULTS)], {})
        if found is not None and self.run.names_of(found) is not None:
            args = found
        names = self.run.names_of(args) or {}
        if not names.get("padded_vocab_size"):
            self.run.put(names, "padded_vocab_size", VOCABULARY)
        return args

    def _config(self, args: Value) -> None:
        self.run.call(self.function(self.module, "core_transformer_config_from_args"), [args], {})

    def _batches(self, args: Value) -> None:
        for module in BATCHES:
            for name in ("_build_num_microbatches_calculator", "build_num_microbatches_calculator"):
                function = self.function(module, name)
                if isinstance(function, Function):
                    self.run.call(function, [], self._by_name(function, args))
                    return

    def _by_name(self, function: Function, args: Value) -> Names:
        """Arguments of a function that are named as those of the command line are."""
        names = self.run.names_of(args) or {}
        shape: Any = function.node[4]
        return {name: 0 if name == "rank" else names.get(name) for name in shape[0]}
