"""MindFormers: its own starting script is followed with a configuration file, from the template to the network."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from packaging.version import InvalidVersion, Version

from preflight.program import numpy_functions
from preflight.program.calls import Hook, Override
from preflight.program.interpreter import Interpreter
from preflight.program.ir import Node, Unreadable, compile_source
from preflight.program.layer_reuse import Layers
from preflight.program.mindformers_start_without_script import CONFIGURATION, is_pynative, start
from preflight.program.mindspore import DATA, MindSpore
from preflight.program.values import Exhausted, Function, Module, Names, Raised, Scope, Unknown, Value
from preflight.source.typing_without_import import Any

ENTRY = "run_mindformer.py"
CONFIG = "mindformers.tools.register.config.MindFormerConfig"
REGISTER = "mindformers.tools.register.register.MindFormerRegister"
TRAINER = "mindformers.trainer.base_trainer.BaseTrainer"
TOP = "mindformers.trainer.trainer.Trainer"
UTILITIES = "mindformers.tools.utils"
TEXTS = "mindformers.models.configuration_utils.PretrainedConfig.dict_ms_dtype_to_str"
"""Converts types to text for a written file."""
CORES = "mindformers.utils.cann_cores_utils.get_cann_workqueue_cores"
"""Queries the machine for occupied processors, to select others."""
OLDEST = Version("2.2")
"""The MindSpore release of the oldest supported MindFormers release, 1.0."""
REGISTER_PATH = "REGISTER_PATH"
FILE = "configuration.yaml"
"""The name of the configuration if the script requests it."""
STAGES = {
    f"{CONFIG}.__init__": "load",
    "__main__.main": "run_mode",
    "mindformers.core.context.build_context.build_context": "context",
    "mindformers.trainer.trainer.Trainer.__init__": "trainer_init",
    f"{TRAINER}.set_config": "set_config",
    "mindformers.tools.check_rules.check_rules": "check_rules",
}
"""Functions that begin or end a stage."""
TYPED = frozenset(("load_checkpoint", "run_mode"))
"""Settings that the command line supplies if they are empty in the file."""
BEFORE_NETWORK = re.compile(r"run_mindformer\.py$|mindformers/(?:trainer/|tools/check_rules)")
"""Places where such a setting itself is checked."""
NETWORK = ("create_network", "create_network_without_param_init")
PATTERNS = (
    "mindformers.parallel_core.training_graph.transformer.utils.LayerSetting.set_pattern_recompute",
    "mindformers.models.utils.LayerSetting.set_pattern_recompute",
    "mindformers.experimental.graph.transformer.utils.LayerSetting.set_pattern_recompute",
)
TEMPLATE = "mindformers.tools.register.template.Config"
LOGGER = "mindformers.tools.logger.logger"
DATASET = ("create_train_dataset", "create_eval_dataset", "create_dataset")
PRESENT = frozenset(("mindspore", "pyyaml", "numpy"))
"""Packages installed where MindFormers runs."""
STEPS = 250_000
"""Maximum steps of one configuration; beyond it the configuration is not read."""
LATER = 140_000
"""Maximum steps of the network's construction; beyond it the network is skipped."""
REGISTERED = re.compile(r"\bregister(?:_cls)?\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
QUOTED = re.compile(r"['\"]([\w.-]+)['\"]")
SURE = ("CONFIG", "MODELS", "TRAINER")
"""Kinds of classes defined by the program's own files; others come from MindSpore, too."""
FOLDERS = frozenset(("mindformers", "research"))
"""Places of the classes that a configuration may name."""
MOST_FILES = 3000


class Finished(Exception):
    """The program reaches unread parts: the optimizer, the data, the graph."""


class MindFormers:
    """One tree of MindFormers with one configuration."""

    def __init__(self, run: Interpreter, entry: str | None) -> None:
        self.run = run
        self.entry = entry or self._usual()
        self.document: Mapping[str, Value] | None = None
        self.stages: list[str] = []
        self.initial: Names = {}
        self._classes: dict[str, tuple[list[str], bool]] = {}
        self._partial = False
        self._listed: dict[int, tuple[Value, Value]] = {}
        self._texts: list[tuple[str, str]] | None = None
        for dotted, stage in STAGES.items():
            run.hooks[dotted] = Hook(partial(self._begin, stage), partial(self._end, stage))
        run.overrides[f"{CONFIG}._file2dict"] = lambda given, named: self._read(given)
        run.overrides[f"{TOP}.get_task_config"] = lambda given, named: {}
        run.overrides[f"{TOP}.get_load_checkpoint"] = lambda given, named: given[-1] if given else None
        run.overrides[f"{UTILITIES}.is_version_ge"] = lambda given, named: self._newer(given)
        run.overrides[CORES] = lambda given, named: []
        run.overrides[TEXTS] = lambda given, named: None
        for name in ("get_cls", "is_exist"):
            self._around(f"{REGISTER}.{name}", self._registered)
        for name in DATASET:
            run.overrides[f"{TRAINER}.{name}"] = lambda given, named: run.symbol(DATA)
        for name in NETWORK:
            self._around(f"{TRAINER}.{name}", self._network)
        for name in PATTERNS:
            self._around(name, self._recomputed)
        self._around(f"{TEMPLATE}.keys", self._template_keys)
        for name in ("debug", "info", "warning", "error", "critical"):
            run.overrides[f"{LOGGER}.{name}"] = partial(self._logged, name)

    def _usual(self) -> str:
        for root in self.run.sources.roots:
            if os.path.isfile(path := os.path.join(root, ENTRY)):
                return path
        return ""

    def _path(self, path: Value) -> Value:
        """An absolute path; the program runs in the folder of its script."""
        if not isinstance(path, str):
            return Unknown(gaps=("a path",))
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.entry) or "/", path))

    def _newer(self, given: list[Value]) -> Value:
        """Whether a version is at least another one; for MindSpore it is known if stated, or if the other is old."""
        current, base = (*given, None, None)[:2]
        try:
            least = Version(base)
            return Version(current) >= least if isinstance(current, str) else least <= OLDEST or _from(current, base)
        except (InvalidVersion, TypeError):
            return Unknown(gaps=("a version",))

    def _logged(self, level: str, given: list[Value], named: Names) -> None:
        """Warnings printed by the program are reported."""
        text = self.run.text(given[0]) if given and level == "warning" else None
        if isinstance(text, str):
            self.run.remark(f"warning: {text}")

    def _template_keys(self, given: list[Value], named: Names, original: Any) -> Value:
        """The names in the class of a section, which the program lists repeatedly."""
        owner = given[0] if given else None
        if id(owner) not in self._listed:
            self._listed[id(owner)] = owner, original()
        found = self._listed[id(owner)][1]
        return list(found) if isinstance(found, list) else found

    def _recomputed(self, given: list[Value], named: Names, original: Any) -> Value:
        """The operators of a layer that a pattern names, determined for one of equal layers."""
        layers = self.run.layers
        return original() if layers is None or named else layers.once(given, original)

    def _matched(self, name: str, pattern: Value, text: Value, **named: Value) -> Value:
        """The result of the package regex, if Python's own re interprets the pattern in the same way."""
        try:
            re.compile(pattern)
        except (re.error, TypeError):
            return Unknown(gaps=(f"regex.{name}()",))
        return self.run.call_native(getattr(re, name), [pattern, text], {})

    def __call__(self) -> None:
        """All stages in order; a refusal ends them."""
        run = self.run
        run.stage = "load"
        MindSpore(run).teach()
        numpy_functions.teach(run)
        run.facts.learn({}, {f"os.path.{name}": self._path for name in ("abspath", "realpath", "expanduser")})
        run.facts.learn(
            {}, {f"regex.{name}": partial(self._matched, name) for name in ("fullmatch", "match", "search")}
        )
        run.environ.setdefault(REGISTER_PATH, Unknown((f"environment variable {REGISTER_PATH}",)))
        started = self._script()
        if started is None or self.document is None:
            run.lost("the started script")
            return
        run.known_arguments = frozenset(_keys(self.document)) | TYPED
        limit, run.budget = run.budget, run.budget._replace(steps=min(STEPS, run.budget.steps))
        module, form, rest = started
        run.modules["__main__"] = module
        try:
            run.scope = Scope(module.names, None, module, "module", "")
            run.block(form(), run.scope)
            if rest:
                run.lost(rest)
        except Unreadable:
            run.lost("the started script")
        except Raised as raised:
            raised.sure = raised.sure and not run.gaps and not self._elsewhere(raised)
            raise
        except Finished:
            pass
        finally:
            run.modules.pop("__main__", None)
            run.budget = limit

    def _script(self) -> tuple[Module, Callable[[], tuple[Node, ...]], str] | None:
        """The started script as a module with its statements, and the unread rest."""
        sources, document = self.run.sources, self.document or {}
        found = sources.locate(self.entry) if self.entry else None
        begun = start(document, sources, has_script=bool(self.entry))
        if begun is not None:
            module = Module("__main__", "", "", False)
            module.names[CONFIGURATION] = _copied(document)
            return module, lambda: compile_source(begun.text), begun.rest
        if found is None or is_pynative(document):
            return None
        sources.asked.append(found.shown)
        return Module("__main__", found.path, found.shown, False), lambda: sources.form(found), ""

    def _elsewhere(self, raised: Raised) -> bool:
        """Whether a refusal depends on values that the command line usually supplies: a checkpoint, the mode, data to
        predict."""
        document = self.document or {}
        if (
            document.get("run_mode") == "predict"
            and posixpath.basename(posixpath.dirname(raised.place.file)) != "context"
        ):
            return "trainer/" in raised.place.file or raised.place.file == ENTRY
        last = raised.reads[0] if raised.reads else ""
        return last in TYPED and not document.get(last) and BEFORE_NETWORK.match(raised.place.file) is not None

    # stages

    def _begin(self, stage: str) -> None:
        if stage not in self.stages:
            self.run.stage = stage

    def _end(self, stage: str, found: Value) -> Value:
        if stage not in self.stages:
            self.stages.append(stage)
        return found

    def _read(self, given: list[Value]) -> Value:
        """The content that yaml reads from the file, sorted by key like in the program; other files are unknown."""
        if (
            not isinstance(given[-1], str)
            or posixpath.basename(given[-1]) != FILE
            or "base_config" in (self.document or {})
        ):
            return self.run.lost("another configuration file")
        return {
            key: _copied(value) for key, value in sorted((self.document or {}).items(), key=lambda row: str(row[0]))
        }

    def _around(self, dotted: str, around: Any) -> None:
        """Run a method of the driver around a function of the program."""

        def override(given: list[Value], named: Names) -> Value:
            return around(given, named, lambda: self._original(dotted, override, given, named))

        self.run.overrides[dotted] = override

    def _original(self, dotted: str, override: Override, given: list[Value], named: Names) -> Value:
        run = self.run
        *path, name = dotted.removeprefix(f"{self._module(dotted)}.").split(".")
        owner: Value = run.load(self._module(dotted))
        for part in [*path, name]:
            owner = owner.names.get(part) if hasattr(owner, "names") else None
        function = getattr(owner, "function", owner)
        if not isinstance(function, Function):
            return run.lost(f"no {name}")
        del run.overrides[dotted]
        try:
            return run.call(function, given, named)
        finally:
            run.overrides[dotted] = override

    def _module(self, dotted: str) -> str:
        while dotted and self.run.sources.find(dotted) is None:
            dotted = dotted.rpartition(".")[0]
        return dotted

    def _network(self, given: list[Value], named: Names, original: Any) -> Value:
        """The network is built within a step limit; later code is not read."""
        run = self.run
        if run.stage == "network":  # a function that makes a network may call another one
            return original()
        notes, gaps, limit, entered = len(run.notes), dict(run.gaps), run.budget, set(run.entered)
        run.stage = "network"
        run.budget = limit._replace(steps=min(run.steps + LATER, limit.steps))
        whole = False
        run.layers = Layers(run)
        try:
            original()
            whole = run.gaps.keys() == gaps.keys()
        except Raised as raised:
            if raised.sure and run.gaps.keys() == gaps.keys():
                raise
        except (Exhausted, RecursionError):
            pass
        finally:
            run.budget, run.layers = limit, None
        if whole:
            self._end("network", None)
        else:
            del run.notes[notes:]
            run.gaps = gaps
            run.entered = entered
            run.lost("the network")
        if run.causes:
            return Unknown(gaps=("the network",))
        raise Finished

    # the registry

    def _registered(self, given: list[Value], named: Names, original: Any) -> Value:
        """Classes are registered when their modules are imported: those that define the name are imported."""
        run = self.run
        name = given[2] if len(given) > 2 else named.get("class_name")
        if not isinstance(name, str):
            return original()
        modules, mentioned = self._defining(name)
        for module in modules:
            if module.startswith("mindformers") and module not in run.modules:
                run.load(module)
        kind = given[1] if len(given) > 1 else named.get("module_type")
        sure = not mentioned and str(getattr(kind, "name", kind)).upper() in SURE
        try:
            found = original()
        except Raised as raised:
            raised.sure = raised.sure and sure
            raise
        return run.lost(f"whether {name} is registered") if found is False and not sure else found

    def _defining(self, name: str) -> tuple[list[str], bool]:
        """The modules that define a class or register it under this name, and whether others mention it."""
        if self._texts is None:
            self._texts = list(self._files())
        if name not in self._classes:
            having = [(module, text) for module, text in self._texts if name in text]
            self._classes[name] = [module for module, text in having if _defines(text, name)], bool(having)
        found, mentioned = self._classes[name]
        return found, bool(found) or mentioned or self._partial

    def _files(self) -> Iterator[tuple[str, str]]:
        """The modules of the program with their texts."""
        left = MOST_FILES
        for root in self.run.sources.roots:
            for folder, folders, files in os.walk(root):
                folders[:] = sorted(FOLDERS.intersection(folders) if folder == root else folders)
                for file in sorted(files):
                    if not file.endswith(".py"):
                        continue
                    left -= 1
                    if left < 0:
                        self._partial = True
                        return
                    path = os.path.join(folder, file)
                    name = os.path.relpath(path, root)[:-3].replace(os.sep, ".").removesuffix(".__init__")
                    text = self.run.sources.text(path)
                    if text is None:
                        self._partial = True
                    else:
                        yield name, text


def _from(current: Value, base: str) -> Unknown:
    facts = current.facts if isinstance(current, Unknown) else ()
    return Unknown([f"{fact} >= {base}" for fact in facts], () if facts else ("a version",))


def _defines(text: str, name: str) -> bool:
    """Whether a file defines a class that it may register, or registers one under this name."""
    if "egister" in text and re.search(rf"^[ \t]*(?:class|def)[ \t]+{re.escape(name)}\b", text, re.MULTILINE):
        return True
    return any(name in QUOTED.findall(inner) for inner in REGISTERED.findall(text))


def _keys(value: Value) -> Iterator[str]:
    """Every key of a document, at any depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(key, str):
                yield key
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def _copied(value: Value) -> Value:
    if isinstance(value, Mapping):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value
