"""MindSpeed and MindSpeed-LLM: Megatron with functions that are replaced and wrapped before its parser runs.

Patches are kept as data, by the dotted name of their target; each is applied only when its module is loaded, so that
the files of operators are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from preflight.program.interpreter import Interpreter
from preflight.program.megatron import Megatron
from preflight.program.values import MISSING, Builtin, Class, Lazy, Module, Names, Object, Raised, Unknown, Value

ADAPTORS = {
    "mindspeed": ("mindspeed.megatron_adaptor",),
    "mindspeed-llm": ("mindspeed_llm.tasks.megatron_adaptor_v2", "mindspeed_llm.tasks.megatron_adaptor"),
}
REGISTERING = ("mindspeed.features_manager", "mindspeed_llm.features_manager")
"""Modules that set the list of features on import: the last one counts."""
MANAGER = "mindspeed.patch_utils.MindSpeedPatchesManager"
PATCH = "mindspeed.patch_utils.Patch"
"""The entry in the manager's own table for a patch: an object with methods that check nothing."""
CHECKING = ("arguments", "_config", "initialize", "global_vars", "parallel_state", "_calculator")
"""The endings of modules whose functions check something; others contain layers and operators."""
WRAPS = ("wrapper", "decorator")
PRESENT = frozenset(("torch-npu", "transformer-engine"))
"""Packages installed where MindSpeed runs; it has its own stand-in for Transformer Engine."""
VERSION = "99.0"
"""The name of that stand-in."""
LACKS_ARGUMENT = re.compile(r"'Namespace' object has no attribute ")
"""The Python error about an option that the features' parser lacks and the command does not set."""
MINDSPORE = "mindspore"
"""The value of --ai-framework with which a program runs on MindSpore."""
CAPABILITY = (8, 0)
"""The capability that MindSpeed reports for an NPU."""


class Patch(NamedTuple):
    """The patches of one function: its replacement, and its wrappers in order."""

    replacement: list[Value]
    wrappers: list[Value]


class MindSpeed(Megatron):
    """A tree of MindSpeed over one of Megatron."""

    def __init__(self, run: Interpreter, framework: str, entry: str | None) -> None:
        super().__init__(run, entry)
        self.framework = framework
        self.patches: dict[str, Patch] = {}
        self._originals: dict[str, Value] = {}
        self._waiting: dict[str, list[str]] = {}
        run.overrides[f"{MANAGER}.register_patch"] = self._register
        run.overrides[f"{MANAGER}.remove_wrappers"] = self._remove
        run.overrides[f"{MANAGER}.apply_patches"] = lambda given, named: self._apply()
        run.overrides[f"{MANAGER}.remove_patches"] = lambda given, named: self.patches.clear()
        run.lazy_calls = frozenset((f"{MANAGER}.register_patch",))
        run.loaded = self._loaded
        run.runs_packages = True

    def __call__(self) -> None:
        """The patches, then Megatron's stages."""
        self._at("patches")
        adaptor = next((name for name in ADAPTORS[self.framework] if self.run.sources.find(name) is not None), None)
        if adaptor is None or self.run.sources.find("mindspeed") is None:
            self.run.lost(f"a source tree without the patches of {'mindspeed' if adaptor else self.framework}")
            return
        for name in REGISTERING:
            if self.run.sources.has(name) and self.run.sources.find(name) is not None:
                self.run.load(name)
        try:
            self.run.load(adaptor)
        except Raised as raised:
            raised.sure = raised.sure and self._is_certain(raised.error)
            raise
        self._reached("patches", None)
        super().__call__()

    def _is_certain(self, error: BaseException) -> bool:
        """Whether an error of the patches is the program's own. An argument that the parser of the features lacks is
        certainly missing, unless the program runs on MindSpore, for which another tool rewrites it."""
        if not isinstance(error, AttributeError):
            return True
        return LACKS_ARGUMENT.match(str(error)) is not None and MINDSPORE not in self.run.argv

    def later(self) -> dict[str, Callable[[], Value]]:
        """The process groups; other changes by MindSpeed are not read."""
        return {"groups": self._groups}

    def _register(self, given: list[Value], named: Names) -> None:
        name = given[0] if given else named.get("orig_func_name")
        value = given[1] if len(given) > 1 else named.get("new_func")
        force = given[2] if len(given) > 2 else named.get("force_patch", False)
        if not isinstance(name, str):
            self.run.lost("a patch of something unknown")
            return
        self._noted(name)
        patch = self.patches.setdefault(name, Patch([], []))
        title = getattr(value, "name", None) or ""
        if title.endswith(WRAPS):
            if not any(_same(value, one) for one in patch.wrappers):
                patch.wrappers.append(value)
        elif value is not None:
            if patch.replacement and isinstance(force, Unknown):
                self.run.lost(f"{name} is replaced twice")
            elif patch.replacement and not force:
                raise self.run.failure(RuntimeError(f"the patch of {name.rpartition('.')[2]} exist !"))
            patch.replacement[:] = [value]

    def _noted(self, name: str) -> None:
        """Enter a patch into the manager's own table, for code that reads it."""
        module, _, manager = MANAGER.rpartition(".")
        table = self.run.names_of(self.run.imported(module, manager)) or {}
        if isinstance(patches := table.get("patches_info"), dict):
            self.run.put(patches, name, self.run.symbol(PATCH))

    def _remove(self, given: list[Value], named: Names) -> None:
        name = given[0] if given else named.get("orig_func_name")
        wrappers = given[1] if len(given) > 1 else named.get("wrappers_name")
        if not isinstance(name, str) or name not in self.patches:
            raise self.run.failure(ValueError(f"The function <{name}> not exist."))
        kept = self.patches[name].wrappers
        names = {wrappers} if isinstance(wrappers, str) else set(wrappers or ())
        kept[:] = [one for one in kept if names and getattr(one, "name", "") not in names]

    def _apply(self) -> None:
        """Apply the patches that can be applied now; the rest waits for its module."""
        self._waiting = {}
        for name in self.patches:
            module = self._module_of(name)
            if module is None:
                continue
            self._waiting.setdefault(module, []).append(name)
        for module in list(self._waiting):
            loaded = self.run.modules.get(module)
            if isinstance(loaded, Module) and module not in self.run.loading:
                self._loaded(loaded)

    def _module_of(self, name: str) -> str | None:
        """The module of the program that contains a dotted name."""
        module = name.rpartition(".")[0]
        while module:
            if self.run.sources.has(module) and self.run.sources.find(module) is not None:
                return module
            module = module.rpartition(".")[0]
        return None

    def _loaded(self, module: Module) -> None:
        for name in self._waiting.pop(module.name, ()):
            try:
                self._patch(module, name)
            except Raised as raised:
                if module.name.endswith(CHECKING):
                    self.run.lost(f"the patch of {name} ({raised})")

    def _patch(self, module: Module, name: str) -> None:
        *path, last = name[len(module.name) + 1 :].split(".")
        owner: Value = module
        for part in path:
            owner = self.run.attribute(owner, part)
        if not isinstance(owner, (Module, Class)):
            return
        current, patch = self._original(owner, last), self.patches[name]
        before = self._originals.setdefault(name, current)
        after = self.run.force(patch.replacement[0]) if patch.replacement else before
        for wrapper in patch.wrappers:
            after = self.run.call(self.run.force(wrapper), [after], {})
        if isinstance(after, Unknown) and not isinstance(before, Unknown) and module.name.endswith(CHECKING):
            self.run.lost(f"the patch of {name}")
            return
        self.run.put(owner.names, last, after)
        for other in list(self.run.modules.values()):
            if before is not None and any(other.names.get(last) is one for one in (before, current)):
                self.run.put(other.names, last, after)

    def _original(self, owner: Module | Class, name: str) -> Value:
        """The replaced object: the existing one, or the default that Python creates for a class."""
        if isinstance(owner, Module):
            return self.run.force(owner.names[name]) if name in owner.names else None
        found = owner.find(name)
        if found is not MISSING:
            return found
        if name == "__init__" and owner.fields is not None:

            def fill(made: Value, *given: Value, **named: Value) -> None:
                if isinstance(made, Object):
                    self.run.fill_fields(made, owner, list(given), named)

            return Builtin("__init__", fill)
        return None


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, Lazy) and isinstance(other, Lazy):
        return (one.module, one.name) == (other.module, other.name)
    return one is other
