"""Megatron-LM: the order in which its own functions process a command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

from preflight.program.argument_checks import CHECKS, PARSES, parses_and_checks, to_check
from preflight.program.argument_parsers import ParserError
from preflight.program.cached_executions import COMMAND
from preflight.program.calls import Hook
from preflight.program.checkpoint_arguments import CHECKPOINT, set_between, take_from_checkpoint
from preflight.program.interpreter import Interpreter
from preflight.program.machine_facts import SIZE
from preflight.program.values import (
    MISSING,
    Builtin,
    Exhausted,
    Function,
    Module,
    Names,
    Raised,
    Symbol,
    Unknown,
    Value,
)
from preflight.source.typing_without_import import Any

ARGUMENTS = ("megatron.training.arguments", "megatron.arguments")
TRAINING = "megatron.training.training"
CONTAINERS = "megatron.training.argument_utils"
STARTS = ("megatron.training.training.pretrain", "megatron.training.pretrain")
INITIALIZE = ("megatron.training.initialize.initialize_megatron", "megatron.initialize.initialize_megatron")
GLOBALS = ("megatron.training.global_vars", "megatron.global_vars")
BATCHES = ("megatron.core.num_microbatches_calculator", "megatron.training.microbatches", "megatron.microbatches")
BUILDERS = ("_build_num_microbatches_calculator", "build_num_microbatches_calculator")
CONFIGURATION, BUILDS = "megatron.core.transformer.transformer_config", "core_transformer_config_from_args"
"""The definition of the model's configuration and its constructor; releases before 0.2 have none."""
DEFAULTS = {"tokenizer_type": "GPT2BPETokenizer"}
VOCABULARY = 50304
"""A padded size that every tensor parallel size divides, used if the tokenizer would determine it."""
SPECS = "megatron.core.models.gpt.gpt_layer_specs"
LAYERS = ("get_gpt_decoder_layer_specs", "get_gpt_decoder_block_spec")
"""The function that lays out dense and expert layers, newest first."""
ONE_LAYER = (
    "get_gpt_layer_local_spec",
    "get_gpt_layer_with_transformer_engine_spec",
    "get_gpt_layer_with_inference_spec",
)
"""The function that builds one of them from unread parts."""
OTHER_LAYERS = ("spec", "experimental_attention_variant", "hybrid_layer_pattern", "heterogeneous_layers_config_path")
"""Arguments with which a script uses another layout of layers."""
PROCESS_GROUPS = ("core/parallel_state.py", "core/process_groups_config.py", "mpu/initialize.py")
"""The files that hand out process groups."""
PADDING = {
    "megatron.training.vocab_utils": "calculate_padded_vocab_size",
    "megatron.core.tokenizers.utils.build_tokenizer": "vocab_size_with_padding",
    "megatron.training.tokenizer.tokenizer": "_vocab_size_with_padding",
    "megatron.tokenizer.tokenizer": "_vocab_size_with_padding",
}
"""The function that computes the padded size from that of the tokenizer, newest first."""
LATER = 25_000
"""Maximum steps of a stage after the model's configuration; a stage that exceeds it is skipped."""
PARSER, SCRIPT, ADDED = "the parser", "the script", "the options of the script"
"""Parts that run once, in addition to modules."""
PROVIDER = "extra_args_provider"
MANY, EARLY = 32, 2_000
"""Numbers of processes: above the first, groups cannot be created within these steps; with the second their sizes are
checked first."""


class Started(Exception):
    """The program reaches the function that starts training. keywords: by the names of its parameters."""

    def __init__(self, keywords: Names) -> None:
        super().__init__("training starts")
        self.keywords = keywords


class Megatron:
    """One tree of Megatron, whose parser is built once."""

    def __init__(self, run: Interpreter, entry: str | None) -> None:
        self.run, self.entry = run, entry
        self.stages: list[str] = []
        self.initial: Names = {}
        self._parser: Value = MISSING
        self._started: Names | None = None
        self._names: frozenset[str] = frozenset()
        self.module = next((name for name in ARGUMENTS if run.sources.find(name) is not None), "")
        self._args: Value = None
        self._config: Value = None
        self.provider: Value = None
        self.added: Value = MISSING
        self.checkpoint = False
        """Whether the arguments that a checkpoint may set are unknown; otherwise the command's own count."""
        run.overrides[f"{self.module}.add_megatron_arguments"] = self._build
        run.overrides[f"{self.module}._print_args"] = lambda given, named: None
        run.hooks[f"{self.module}.parse_args"] = Hook(lambda: self._at("parse"), self._parsed)
        run.hooks[f"{self.module}.validate_args"] = Hook(lambda: self._at("validate"), self._validated)

    def __call__(self) -> None:
        """All stages in order; a refusal ends them."""
        self.run.stage = "parse"
        if not self.module:
            self.run.lost("a tree without Megatron's arguments")
            return
        start = self._start()
        provider = start.get("extra_args_provider")
        stated = start.get("args_defaults")
        defaults = stated if isinstance(stated, dict) else dict(DEFAULTS)
        if parses_and_checks(partial(self.function, self.module)):
            self._parse_and_check(provider, defaults)
        else:
            self.call(self.module, PARSES, [provider] if provider is not None else [])
            if self.checkpoint and take_from_checkpoint(self.run, self._args, self.function):
                self._reached(CHECKPOINT, None)
            set_between(self.run, self._args)
            checks = self.function(self.module, CHECKS)
            self.call(self.module, CHECKS, to_check(self.run, checks, self._args, defaults))
        self._publish()
        if self.run.sources.find(CONFIGURATION) is not None or self.function(self.module, BUILDS) is not MISSING:
            self._at("config")
            self._config = self.call(self.module, BUILDS, [self._args])
            self._reached("config", None)
        self._at("microbatches")
        self._batches()
        self._reached("microbatches", None)
        for name, stage in self.later().items():
            self._later(name, stage)

    def later(self) -> dict[str, Callable[[], Value]]:
        """Stages that are skipped if they cannot be read."""
        stages = {
            "vocabulary": self._vocabulary,
            "groups": self._groups,
            "layers": self._layers,
            "specs": self._specs,
            "scheduler": self._scheduler,
        }
        if self.function(CONTAINERS, "pretrain_cfg_container_from_args") is MISSING:
            return {**stages, "optimizer": self._optimizer}
        return {"containers": self._containers, **stages}

    def _at(self, stage: str) -> None:
        self.run.stage = stage

    def _reached(self, stage: str, found: Value) -> Value:
        if stage not in self.stages:
            self.stages.append(stage)
        return found

    def call(self, module: str, name: str, arguments: list[Value], keywords: Names | None = None) -> Value:
        """Call a function of the tree."""
        function = self.function(module, name)
        if function is MISSING:
            return self.run.lost(f"no {name} in {module}")
        return self.run.call(function, arguments, keywords or {})

    def _parse_and_check(self, provider: Value, defaults: dict[Any, Any]) -> None:
        """Run the function of releases before 3.0 that parses the arguments and then checks them itself."""
        self.run.after_parsing = self._parsed
        try:
            self.call(self.module, PARSES, [provider], {"defaults": defaults})
        finally:
            self.run.after_parsing = None
        self._validated(self._args)

    def function(self, module: str, name: str) -> Value:
        """A function of the tree, MISSING if it has none of that name."""
        if self.run.sources.find(module) is None:
            return MISSING
        try:
            found = self.run.imported(module, name)
        except Raised as raised:
            if isinstance(raised.error, (ImportError, AttributeError)):
                return MISSING
            raise
        return MISSING if isinstance(found, Symbol) else found  # the file of no module of the program

    def _build(self, given: list[Value], named: Names) -> Value:
        """The parser, built for the first command and kept."""
        if self._parser is not MISSING:
            self.run.use(PARSER)
            for option in self.run.sized:
                size = self.run.environ.get(SIZE)
                option.default = int(size) if isinstance(size, str) else size
            return self._parser
        override = self.run.overrides.pop(f"{self.module}.add_megatron_arguments")
        try:
            with self.run.permanent(PARSER):
                self._parser = self.call(self.module, "add_megatron_arguments", given, named)
        finally:
            self.run.overrides[f"{self.module}.add_megatron_arguments"] = override
        return self._parser

    def to_keep(self) -> tuple[Value, ...]:
        """State that is read once, in addition to modules, for reuse by another call."""
        started = None
        if self._started is not None and SCRIPT in self.run.units:
            left_out = None if self.provider is None else PROVIDER
            started = {name: one for name, one in self._started.items() if name != left_out}
        return started, self.provider, self.added, self._parser, self._names, self.run.sized

    def take_up(self, kept: tuple[Value, ...]) -> None:
        """Continue from the state that another call has read."""
        started, self.provider, self.added, self._parser, self._names, self.run.sized = kept
        self._started = self.with_provider(started) if started is not None else None

    def _parsed(self, args: Value) -> Value:
        names = self.run.names_of(args)
        if names is None:
            self.run.lost("the arguments")
            return args
        if names is self.run.arguments:
            return args
        self._args = args
        self.run.arguments, self.run.known_arguments = names, frozenset(names)
        self.initial.update(names)
        self.run.writes.clear()
        if self.run.after_parsing is not None:
            self._at("validate")
        return self._reached("parse", args)

    def _validated(self, found: Value) -> Value:
        if found is not None and self.run.names_of(found) is not None:
            self._args = found
        names = self.run.names_of(self._args) or {}
        if not names.get("padded_vocab_size"):
            self.run.put(names, "padded_vocab_size", VOCABULARY)
        return self._reached("validate", found)

    def _batches(self) -> None:
        for module in BATCHES:
            for name in BUILDERS:
                function = self.function(module, name)
                if isinstance(function, Function):
                    self.run.call(function, [], self._by_name(function))
                    return

    def _by_name(self, function: Function) -> Names:
        """Arguments of a function with the names of command-line arguments; older functions take all arguments."""
        names = {**(self.run.names_of(self._args) or {}), "rank": 0, "args": self._args}
        shape: Any = function.node[4]
        return {name: names.get(name) for name in shape[0]}

    # the script

    def _start(self) -> Names:
        """The options and defaults with which the script starts training."""
        if self._started is not None and SCRIPT in self.run.units:
            self.run.use(SCRIPT)
            return self._started
        with self.run.permanent(SCRIPT) as unit:
            self._started = self._read_entry() if self.entry else {}
        if COMMAND in unit.asked:  # it is read again for each command
            del self.run.units[SCRIPT]
        return self._started

    def _read_entry(self) -> Names:
        run = self.run
        found = run.sources.locate(self.entry or "")
        if found is None:
            run.unread_options.append("the started script")
            return {}
        kept = dict(run.overrides), dict(run.hooks), len(run.notes), dict(run.gaps)
        run.hooks.clear()
        self._names = frozenset()
        for dotted in (*STARTS, *INITIALIZE, f"{self.module}.parse_and_validate_args"):
            run.overrides[dotted] = self._starter(dotted)
        started: Names = {}
        try:
            run.run_module("__main__", found)
            run.unread_options.append("the started script")
        except Started as reached:
            started = reached.keywords
        except Raised as raised:
            if raised.sure and isinstance(raised.error, ParserError) and not run.unread_options:
                raise  # the script itself has the command parsed before it starts training
            run.unread_options.append("the started script")
        finally:
            run.modules.pop("__main__", None)
            run.overrides, run.hooks = kept[0], kept[1]
            del run.notes[kept[2] :]
            run.gaps = kept[3]
        return self._once(started)

    def _starter(self, dotted: str) -> Callable[[list[Value], Names], Value]:
        module, _, name = dotted.rpartition(".")

        def started(given: list[Value], named: Names) -> Value:
            function = self.function(module, name)
            shape = function.node[4] if isinstance(function, Function) else ((),)
            script = self.run.modules.get("__main__")
            self._names = frozenset(script.names) if script is not None else self._names
            raise Started({**dict(zip(shape[0], given, strict=False)), **named})

        return started

    def _once(self, started: Names) -> Names:
        """The script's options are added to the parser once, because it is kept."""
        provider = started.get("extra_args_provider")
        if provider is None:
            return started
        if isinstance(provider, (Unknown, Symbol)):
            causes = provider.name if isinstance(provider, Symbol) else sorted(provider.facts or provider.gaps)
            shown = causes if isinstance(causes, str) else ", ".join(causes)
            self.run.unread_options.append(f"the options that the script adds ({shown})")
            return {**started, "extra_args_provider": None}
        self.provider = provider
        return self.with_provider(started)

    def with_provider(self, started: Names) -> Names:
        """The arguments with which training starts, with the function that replaces the script's for adding options."""
        return {**started, PROVIDER: Builtin(PROVIDER, self._add)} if self.provider is not None else started

    def _add(self, parser: Value) -> Value:
        if self.added is MISSING:
            with self.run.permanent(ADDED):
                self.added = self.run.call(self.provider, [parser], {})
        else:
            self.run.use(ADDED)
        if self.added is None or isinstance(self.added, (Unknown, Symbol)):
            self.run.unread_options.append("the options that the script adds")
            return parser
        return self.added

    # stages after the configuration

    def _publish(self) -> None:
        """Store the arguments where get_args() reads them."""
        for name in GLOBALS:
            if self.run.sources.find(name) is not None:
                module = self.run.load(name)
                if isinstance(module, Module):
                    self.run.put(module.names, "_GLOBAL_ARGS", self._args)

    def _later(self, name: str, stage: Callable[[], Value]) -> None:
        """A stage that is skipped, including its notes, if it cannot be read to its end."""
        run = self.run
        notes, gaps, limit, entered = len(run.notes), dict(run.gaps), run.budget, set(run.entered)
        self._at(name)
        most = EARLY if name == "groups" and (run.facts.world_size or 0) > MANY else LATER
        run.budget = limit._replace(steps=min(run.steps + most, limit.steps))
        try:
            found = stage()
            whole = found is not MISSING and run.gaps.keys() == gaps.keys()
        except Raised as raised:
            if raised.sure and run.gaps.keys() == gaps.keys() and not self._without_groups(name, raised):
                raise
            whole = False
        except (Exhausted, RecursionError):
            whole = False
        finally:
            run.budget = limit
        if whole:
            self._reached(name, None)
        else:
            del run.notes[notes:]
            run.gaps, run.entered = gaps, entered

    def _without_groups(self, stage: str, raised: Raised) -> bool:
        """Whether a stage only misses the process groups, whose creation could not be read."""
        creates = stage == "groups" and not raised.place.function.rpartition(".")[2].startswith("get_")
        return not creates and "groups" not in self.stages and raised.place.file.endswith(PROCESS_GROUPS)

    def _vocabulary(self) -> Value:
        """The padded size of the vocabulary, if the command does not state it; any tokenizer size is possible."""
        if self.initial.get("padded_vocab_size") is not None:
            return None
        size = self.initial.get("vocab_size")
        sizes = {"orig_vocab_size": size or VOCABULARY, "vocab_size": VOCABULARY if size is None else size}
        for module, name in PADDING.items():
            function = self.function(module, name)
            if isinstance(function, Function):
                named = {**self._by_name(function), **sizes, "args": self._args, "logging_enabled": False}
                parameters = function.node[4][0]
                return self.run.call(function, [], {one: named[one] for one in parameters if one in named})
        return MISSING

    def _groups(self) -> Value:
        function = self.function("megatron.training.initialize", "_initialize_distributed")
        if not isinstance(function, Function):
            return MISSING
        needed = len(function.node[4][0]) - len(function.defaults)
        return self.run.call(function, [None] * needed, {})

    def _layers(self) -> Value:
        function = self.function("megatron.core.transformer.transformer_block", "get_num_layers_to_build")
        if not isinstance(function, Function):
            return MISSING
        parameters = function.node[4][0]
        names = self.run.names_of(self._args) or {}
        chunks = names.get("virtual_pipeline_model_parallel_size")
        ranks = names.get("pipeline_model_parallel_size")
        for stage in range(chunks) if isinstance(chunks, int) and "vp_stage" in parameters else (None,):
            for rank in range(ranks) if isinstance(ranks, int) and "pp_rank" in parameters else (None,):
                given = {"vp_stage": stage, "pp_rank": rank}
                self.run.call(function, [self._config], {key: one for key, one in given.items() if one is not None})
        return None

    def _specs(self) -> Value:
        """The layers with experts, if the command states them and the script builds a GPT from them."""
        names = self.run.names_of(self._args) or {}
        builds = any(name.startswith(("gpt_", "get_gpt_")) for name in self._names)
        other = any(names.get(name) is not None for name in OTHER_LAYERS)
        if not builds or other or not names.get("num_experts") or names.get("moe_layer_freq", 1) == 1:
            return MISSING
        function = next((one for one in (self.function(SPECS, name) for name in LAYERS) if one is not MISSING), MISSING)
        if not isinstance(function, Function):
            return MISSING
        chunks = names.get("virtual_pipeline_model_parallel_size")
        first = {"vp_stage": 0 if isinstance(chunks, int) else chunks} if "vp_stage" in function.node[4][0] else {}
        kept = dict(self.run.overrides)
        self.run.overrides.update(
            {f"{SPECS}.{name}": lambda given, named: self.run.symbol("spec") for name in ONE_LAYER}
        )
        try:
            return self.run.call(function, [self._config, False], first)
        finally:
            self.run.overrides = kept

    def _scheduler(self) -> Value:
        if (self.run.names_of(self._args) or {}).get("skip_train"):
            return MISSING  # without training there is no optimizer
        optimizer = SimpleNamespace(param_groups=[{"params": []}])
        return self.call(TRAINING, "get_optimizer_param_scheduler", [optimizer])

    def _containers(self) -> Value:
        """The configurations of optimizer, data parallelism, checkpoints and similar; also of the model, if the script
        builds it before training starts."""
        hybrid = (self.run.names_of(self._args) or {}).get("hybrid_layer_pattern") is not None
        builder = f"{'hybrid' if hybrid else 'gpt'}_config_from_args"
        model = [self.call(CONTAINERS, builder, [self._args])] if builder in self._names else []
        return self.call(CONTAINERS, "pretrain_cfg_container_from_args", [self._args, *model])

    def _optimizer(self) -> Value:
        if (self.run.names_of(self._args) or {}).get("skip_train"):
            return MISSING
        for name in ("get_megatron_optimizer_config", "get_megatron_ddp_config"):
            function = self.function(TRAINING, name)
            if isinstance(function, Function):
                self.run.call(function, [self._args], {})
        return None
