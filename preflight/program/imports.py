"""Modules: files of the program, loaded when one of their names is first used, and external ones."""

from __future__ import annotations

from collections.abc import Callable

from preflight.program.cached_executions import Units
from preflight.program.ir import Node, Unreadable
from preflight.program.machine_facts import PACKAGE, named
from preflight.program.sources import Found
from preflight.program.stdlib_allowlist import BUILTINS, MODULES
from preflight.program.values import MISSING, Lazy, Module, Scope, Symbol, Unknown, Value

STAR = "*"
STAY = frozenset(("module", "class"))
"""Scopes whose names outlive a call."""


class Imports(Units):
    """Resolves imports and names of modules."""

    def symbol(self, name: str) -> Value:
        """An object outside the program: a stated fact, or a name."""
        name = named(name)
        if (fact := self.facts.value(name)) is not MISSING:
            return fact
        if name not in self.symbols:
            self.symbols[name] = Symbol(name)
        return self.symbols[name]

    def load(self, name: str) -> Value:
        """A module: of the program, of the standard library, or a name."""
        if name in self.modules:
            self.use(name)
            return self.modules[name]
        if not self.sources.has(name):
            return self.symbol(name)
        found = self.sources.find(name)
        if found is None:
            raise self.failure(ModuleNotFoundError(f"No module named '{name}'"), sure=False)
        parent = name.rpartition(".")[0]
        if parent and parent not in self.modules and self.runs_packages:
            self.load(parent)
            if name in self.modules:
                return self.modules[name]
        return self.run_module(name, found)

    runs_packages = False
    """Whether the packages around a module run first, as in Python: they may register names that are needed later."""

    def run_module(self, name: str, found: Found) -> Module:
        """Run the body of a file."""
        module = self.modules[name] = Module(name, found.path, found.shown, found.package)
        if not found.path:
            return module
        try:
            body = self.sources.form(found)
        except Unreadable:
            del self.modules[name]
            raise self.failure(ImportError(f"cannot read {found.shown or name}"), sure=False) from None
        scope = Scope(module.names, None, module, "module", "")
        try:
            with self.permanent(name):
                self.scope = scope
                self.sources.asked.append(found.shown)
                self.loading.append(name)
                try:
                    self.block(body, scope)
                finally:
                    self.loading.remove(name)
                self.loaded(module)
        except BaseException:
            self.modules.pop(name, None)
            raise
        return module

    loading: list[str]
    """Modules with bodies that are running."""
    loaded: Callable[[Module], None]
    """Actions to run when a module is loaded."""

    def imported(self, module: str, name: str) -> Value:
        """The result of `from module import name`."""
        if module in MODULES and not self.sources.has(module):
            return MODULES[module][name] if name in MODULES[module] else self.symbol(f"{module}.{name}")
        loaded = self.load(module)
        if isinstance(loaded, Module):
            return self.member(loaded, name)
        if isinstance(loaded, Symbol):
            if f"{module}.{name}" in MODULES:
                return self.symbol(f"{module}.{name}")
            return self._outside(module, name)
        return self.attribute(loaded, name)

    def _outside(self, module: str, name: str) -> Value:
        """A name in an external package, which may lack it if its version is unknown."""
        value = self.symbol(f"{module}.{name}")
        if self.trying and isinstance(value, Symbol) and not self.facts.described(module):
            self._doubt(module)
        return value

    def _doubt(self, module: str) -> None:
        """Note that an import may fail here."""
        top = module.partition(".")[0]
        error = self.failure(ModuleNotFoundError(f"No module named '{top}'"))
        self.note(error, Unknown((f"{PACKAGE} {top}",)))

    def member(self, module: Module, name: str) -> Value:
        """A name of a module of the program."""
        if name in module.names:
            value = module.names[name]
            if not isinstance(value, Lazy):
                return value
            if value.module == module.name and value.name == name:
                return self._keep(module, name, value, self.load(f"{module.name}.{name}"))
            return self._keep(module, name, value, self.force(value))
        if self.sources.find(f"{module.name}.{name}") is not None:
            return self.load(f"{module.name}.{name}")
        if "__getattr__" in module.names:
            return self.call(module.names["__getattr__"], [name], {})
        raise self.failure(ImportError(f"cannot import name '{name}' from '{module.name}'"), sure=False)

    def _keep(self, module: Module, name: str, lazy: Lazy, value: Value) -> Value:
        self.resolve(module.names, name, lazy, value)
        return value

    def force(self, value: Value) -> Value:
        """The value of an imported name."""
        if not isinstance(value, Lazy):
            return value
        return self.load(value.module) if value.name is None else self.imported(value.module, value.name)

    def name(self, name: str, scope: Scope) -> Value:
        """The value of a name."""
        holder: Scope | None = scope
        while holder is not None:
            names = holder.names
            if name in names and (holder.kind != "class" or holder is scope):
                if type(names[name]) is Lazy:
                    return self._named(name, holder)
                if id(names) in self.origins:
                    self.recall(names, name)
                return names[name]
            holder = holder.outer
        if name in scope.module.names:
            return self._named(name, Scope(scope.module.names, None, scope.module, "module", ""))
        if name in BUILTINS:
            return BUILTINS[name]
        if name in ("exit", "quit"):
            return self.symbol("sys.exit")
        below = f"{scope.module.name}.{name}"
        if scope.module.package and self.sources.find(below) is not None:  # an import of a.b makes b a name of a
            return self.load(below)
        raise self.failure(NameError(f"name '{name}' is not defined"), sure=False)

    def _named(self, name: str, holder: Scope) -> Value:
        value = holder.names[name]
        if id(holder.names) in self.origins:
            self.recall(holder.names, name)
        if isinstance(value, Lazy):
            if value.module == holder.module.name and value.name == name:
                return self.member(holder.module, name)
            lazy, value = value, self.force(value)
            if holder.kind in STAY:
                self.resolve(holder.names, name, lazy, value)
            else:
                holder.names[name] = value
        return value

    def import_statement(self, node: Node, scope: Scope) -> None:
        """`import a.b` and `import a.b as c`."""
        for name, alias in node[3]:
            self._check(name)
            top = name.partition(".")[0]
            if alias:
                self.put(scope.names, alias, Lazy(name, None))
            else:
                self.put(scope.names, top, Lazy(top, None))

    def import_from(self, node: Node, scope: Scope) -> None:
        """`from a import b`."""
        _, _, _, module, names, level = node
        if level:
            module = self._relative(scope.module, module, level)
        self._check(module)
        for name, alias in names:
            if name == STAR:
                self._star(module, scope)
            elif self.trying and (self.sources.has(module) or not self.facts.described(module)):
                self.put(scope.names, alias or name, self.imported(module, name))
            else:
                self.put(scope.names, alias or name, Lazy(module, name))

    def _relative(self, module: Module, name: str, level: int) -> str:
        parts = module.name.split(".")
        kept = parts[: len(parts) - level + (1 if module.package else 0)]
        return ".".join([*kept, name] if name else kept)

    def _star(self, module: str, scope: Scope) -> None:
        loaded = self.load(module)
        if not isinstance(loaded, Module):
            return
        stated = loaded.names.get("__all__")
        names = (
            stated if isinstance(stated, (list, tuple)) else [one for one in loaded.names if not one.startswith("_")]
        )
        for name in names:
            if isinstance(name, str) and name in loaded.names:
                self.put(scope.names, name, self.as_imported(loaded.names, name))

    def _check(self, module: str) -> None:
        """Whether a module exists, for code that handles its absence."""
        if self.sources.has(module):
            if self.sources.find(module) is None:
                raise self.failure(ModuleNotFoundError(f"No module named '{module}'"), sure=False)
        elif self.trying:
            present = self.facts.present(module)
            if present is False:
                raise self.failure(ModuleNotFoundError(f"No module named '{module}'"))
            if present is None:
                self._doubt(module)
