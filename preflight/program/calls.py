"""Calls of functions and classes, inside and outside the program."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any, NamedTuple

from preflight.program.cached_executions import WORLD
from preflight.program.introspection_functions import Specials
from preflight.program.ir import Node, body_of
from preflight.program.known_function_shortcuts import TWINS, twin_of
from preflight.program.layer_reuse import Layers
from preflight.program.values import (
    MISSING,
    Bound,
    Builtin,
    Class,
    ClassMethod,
    Decorator,
    Exhausted,
    Function,
    Lazy,
    Module,
    Names,
    Object,
    Partial,
    Perhaps,
    Property,
    Raised,
    Scope,
    Static,
    Super,
    Symbol,
    Unknown,
    Value,
)

OF_WORLD = "torch.distributed.get_world_size"
AGAIN = 5
"""How often a function is entered again within itself with an argument that is unknown."""
REST = "**"
Override = Callable[[list[Value], Names], Value]
WARNINGS = ("warnings.warn", "logging.logger.warning", "logging.warning", "logging.logger.warn")


class Hook(NamedTuple):
    """Code to run before a function of the program, and on its result."""

    before: Callable[[], None]
    after: Callable[[Value], Value]


class Calls(Specials):
    """Calls functions, methods and classes."""

    overrides: dict[str, Override]
    """Functions of the program with results that depend only on the machine, by dotted name."""
    hooks: dict[str, Hook]
    """Actions around functions of the program, by dotted name."""

    entered: set[str]
    """Functions that were run, as "file:dotted name"."""

    def _e_Call(self, node: Any, scope: Scope) -> Value:
        function = self.evaluate(node[3], scope)
        lazy = bool(self.lazy_calls) and isinstance(function, Function) and self._is_lazy(function)
        arguments: list[Value] = []
        reads: list[tuple[str, ...]] = []
        for one in node[4]:
            mark = len(self.reads)
            if one[0] != "Starred" or lazy:
                arguments.append(self.evaluate(one, scope) if not lazy else self._as_written(one, scope))
                reads.append(self.read_since(mark))
                continue
            found = self.elements((one,), scope)
            if isinstance(found, Unknown):
                if getattr(function, "__name__", "") == "add_argument":
                    self.unread_options.append(f"an option with an unknown name at {self.place()}")
                return self.lost("a call with unknown arguments", found) if _own(function) else found
            arguments.extend(found)
            reads.extend([self.read_since(mark)] * len(found))
        keywords: Names = {}
        named: dict[str, tuple[str, ...]] = {}
        for name, value in node[5]:
            mark = len(self.reads)
            given = self.evaluate(value, scope) if not lazy else self._as_written(value, scope)
            if name is not None:
                keywords[name] = given
                named[name] = self.read_since(mark)
                continue
            spread = self.plain(given)
            if isinstance(spread, dict):
                keywords.update({str(key): one for key, one in spread.items()})
            else:
                keywords[REST] = spread
        self.line, self.end = self._line(node), self.end
        held = self.scope, self.line, self.end
        self._passed = (reads, named)
        result = self.call(function, arguments, keywords)
        self.scope, self.line, self.end = held
        return result

    _passed: tuple[list[tuple[str, ...]], dict[str, tuple[str, ...]]] = ([], {})
    """The command-line arguments from which the arguments of the present call were derived."""

    lazy_calls: frozenset[str] = frozenset()
    """Methods that receive their arguments without loading the modules of these, by dotted name, including those of
    derived classes."""

    def _is_lazy(self, function: Function) -> bool:
        lineage = function.owner.lineage if function.owner is not None else ()
        return any(f"{one.module.name}.{one.name}.{function.name}" in self.lazy_calls for one in lineage)

    def _as_written(self, node: Any, scope: Scope) -> Value:
        """Keep imported names as imports."""
        if node[0] == "Name" and isinstance(scope.names.get(node[3]), Lazy):
            return scope.names[node[3]]
        if node[0] == "Name" and isinstance(scope.module.names.get(node[3]), Lazy) and node[3] not in scope.names:
            return scope.module.names[node[3]]
        return self.evaluate(node, scope)

    def _line(self, node: Any) -> int:
        """The line of a call within a statement over several lines."""
        return node[1] if self.line <= node[1] <= self.end else self.line

    def call(self, function: Value, arguments: list[Value], keywords: Names) -> Value:
        """Call anything."""
        self.step()
        kind = type(function)
        if kind is Function:
            return self.run_function(function, arguments, keywords)
        if kind is BuiltinFunctionType and REST not in keywords:
            return self.call_native(function, arguments, keywords)
        if isinstance(function, Bound):
            return self.call(function.function, [function.receiver, *arguments], keywords)
        if isinstance(function, Class):
            return self.instance(function, arguments, keywords)
        if isinstance(function, Symbol):
            return self.call_outside(function.name, arguments, keywords)
        if isinstance(function, Unknown):
            return self._call_unknown(function)
        if isinstance(function, Partial):
            return self.call(function.function, [*function.arguments, *arguments], {**function.keywords, **keywords})
        if isinstance(function, Builtin):
            return self._built_in(function, arguments, keywords)
        if isinstance(function, Object):
            method = function.cls.find("__call__")
            return (
                self.gap("a call of an object")
                if method is MISSING
                else self.call(method, [function, *arguments], keywords)
            )
        if isinstance(function, (Static, ClassMethod)):
            return self.call(function.function, arguments, keywords)
        if isinstance(function, Decorator):
            return self.decorate(function, arguments[0]) if arguments else function
        if isinstance(function, (Property, Module, Super)):
            return self.lost("a call of something that is not a function")
        if REST in keywords and function is not functools.partial:
            return self._with_unknown_keywords(function, arguments, keywords, keywords.pop(REST))
        return self.call_native(function, arguments, keywords)

    def _with_unknown_keywords(self, function: Any, arguments: list[Value], keywords: Names, spread: Value) -> Value:
        """The result of a Python function that gets unknown keywords."""
        if getattr(function, "__name__", "") == "add_argument":
            self.unread_options.append(f"an option with unknown properties at {self.place()}")
        receiver = getattr(function, "__self__", None)
        made = function if isinstance(function, type) else type(receiver)
        if not isinstance(spread, Unknown) or issubclass(made, argparse._ActionsContainer):
            return self.call_native(function, arguments, keywords)
        if isinstance(receiver, dict) and function.__name__ == "update":
            return self.call_native(function, [*arguments, spread], keywords)
        return self.lost("a call with unknown arguments", spread) if function is dataclasses.replace else spread

    def _built_in(self, function: Builtin, arguments: list[Value], keywords: Names) -> Value:
        try:
            return function.run(*arguments, **keywords)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # it was called, and failed
            return self.lost(f"a call of {function.name} with arguments that it does not accept")

    def _call_unknown(self, function: Unknown) -> Value:
        own = [gap for gap in function.gaps if not gap.endswith("()")]
        if own and not function.facts:
            return self.lost(f"a call of something unknown ({min(own)})", function)
        return function

    def call_outside(self, name: str, arguments: list[Value], keywords: Names) -> Value:
        """The result of a function outside the program."""
        if name in WARNINGS and arguments:
            shown = self.text(arguments[0])
            self.remark(f"warning: {shown}" if isinstance(shown, str) else "warning")
            return None
        if name in ("os.getenv", "os.environ.get"):
            return self._environment(arguments, keywords)
        if name == "importlib.import_module" and len(arguments) == 1 and isinstance(arguments[0], str):
            return self.load(arguments[0])
        if name == "sys.exit":
            shown = self.text(arguments[0]) if arguments else ""
            raise self.failure(SystemExit(shown if isinstance(shown, str) else ""))
        if name == OF_WORLD:
            self.ask(WORLD)
        answer = self._native_fact(name, arguments, keywords)
        if answer is not MISSING:
            return answer
        last = name.rpartition(".")[2]
        return self.symbol(f"{name}()") if last[:1].isupper() else Unknown(gaps=(f"{name}()",))

    def _native_fact(self, name: str, arguments: list[Value], keywords: Names) -> Value:
        try:
            return self.facts.call(name, arguments, keywords)
        except (Raised, Exhausted):
            raise
        except Exception:
            return Unknown(gaps=(f"{name}()",))

    def _environment(self, arguments: list[Value], keywords: Names) -> Value:
        name = arguments[0] if arguments else keywords.get("key")
        default = arguments[1] if len(arguments) > 1 else keywords.get("default")
        return self.environ.get(name, default) if isinstance(name, str) else Unknown(gaps=("an environment variable",))

    # functions

    def run_function(self, function: Function, arguments: list[Value], keywords: Names) -> Value:
        """Run a function of the program."""
        dotted = function.dotted
        override = self.overrides.get(dotted)
        if override is not None:
            return override(arguments, keywords)
        hook = self.hooks.get(dotted)
        if hook is not None:
            hook.before()
            return hook.after(self._enter(function, arguments, keywords))
        if function.name in TWINS and (found := self._known(function, arguments, keywords)) is not MISSING:
            return found
        return self._enter(function, arguments, keywords)

    def _known(self, function: Function, arguments: list[Value], keywords: Names) -> Value:
        """The result of a function known by its text; MISSING if it must be interpreted."""
        if function.node[0] != "FunctionDef":
            return MISSING
        twin = twin_of(function, self._written(function))
        found = twin(self, function, arguments, keywords) if twin is not None else MISSING
        if found is not MISSING:
            self.entered.add(f"{function.scope.module.shown}:{function.qualified}")
            self.steps += len(found) if isinstance(found, list) else 1
        return found

    def _enter(self, function: Function, arguments: list[Value], keywords: Names) -> Value:
        if function.active > AGAIN and any(isinstance(one, Unknown) for one in arguments):
            return self.lost(f"{function.name}() calling itself with something unknown")
        if self.depth >= self.budget.depth:
            raise Exhausted(f"more than {self.budget.depth} nested calls")
        shape = function.node[4] if function.node[0] == "FunctionDef" else function.node[3]
        names = self._parameters(function, shape, arguments, dict(keywords))
        scope = Scope(names, function.scope, function.scope.module, "function", function.qualified)
        self._trace(shape[0], len(arguments), names)
        scope.owner, scope.receiver = function.owner, arguments[0] if arguments and function.owner else None
        self.entered.add(f"{function.scope.module.shown}:{function.qualified}")
        held, self.scope = self.scope, scope
        line = self.line, self.end
        self.depth += 1
        function.active += 1
        try:
            return self._body(function, scope)
        finally:
            self.depth -= 1
            function.active -= 1
            self.scope = held
            self.line, self.end = line

    def _trace(self, positional: tuple[str, ...], count: int, names: Names) -> None:
        """Record the command-line arguments from which the parameters were computed."""
        (reads, named), self._passed = self._passed, ([], {})
        for name, read in zip(positional[max(count - len(reads), 0) :], reads, strict=False):
            if read:
                self.originate(names, name, read)
        for name, read in named.items():
            if read:
                self.originate(names, name, read)

    def _body(self, function: Function, scope: Scope) -> Value:
        if function.node[0] == "Lambda":
            return self.evaluate(function.node[4], scope)
        if function.node[7]:
            if function.node[8]:
                return self.lost(f"async function {function.name}")
            scope.yielded = []
            self.block(self._written(function), scope)
            return scope.yielded
        done = self.block(self._written(function), scope)
        if done is None or done.kind != "return":
            return None
        if done.maybe:
            return self.join(done.value, None, self.gap("a function that returns on some paths"))
        return done.value

    def _written(self, function: Function) -> tuple[Node, ...]:
        """The statements of a function, loaded when it is first called."""
        if function.body is None:
            packed = function.node[5]
            if not isinstance(packed, bytes):
                packed = self.sources.body(packed[0], function.node)
                function.node = (*function.node[:5], packed, *function.node[6:])
            function.body = body_of(packed)
        return function.body

    def _parameters(self, function: Function, shape: Any, arguments: list[Value], keywords: Names) -> Names:
        positional, hidden, rest, named, _, others, _ = shape
        found: Names = dict(zip(positional, arguments, strict=False))
        if len(arguments) > len(positional) and rest is None:
            raise self._mismatch(f"{function.name}() takes {len(positional)} positional arguments")
        if rest is not None:
            found[rest] = tuple(arguments[len(positional) :])
        spread = keywords.pop(REST, None)
        offset = len(positional) - len(function.defaults)
        for at, name in enumerate(positional):
            if name in found:
                if at >= hidden and name in keywords and at < len(arguments):
                    raise self._mismatch(f"{function.name}() got multiple values for argument '{name}'")
                continue
            if name in keywords and at >= hidden:
                found[name] = keywords.pop(name)
            elif spread is not None:
                found[name] = spread
            elif at >= offset:
                found[name] = function.defaults[at - offset]
            else:
                raise self._mismatch(f"{function.name}() missing a required argument: '{name}'")
        for name, default in zip(named, function.keyword_defaults, strict=False):
            if name in keywords:
                found[name] = keywords.pop(name)
            elif default is MISSING and spread is None:
                raise self._mismatch(f"{function.name}() missing a required argument: '{name}'")
            else:
                found[name] = default if spread is None else spread
        if others is not None:
            found[others] = keywords
        else:
            self._accept_none(keywords, function.name)
        return found

    def _accept_none(self, keywords: Names, name: str) -> None:
        """Refuse arguments that a function does not accept; for an argument that may be absent, note a possible
        refusal."""
        sure = [key for key, value in keywords.items() if not isinstance(value, Perhaps)]
        for key in sure or keywords:
            raised = self._mismatch(f"{name}() got an unexpected keyword argument '{key}'")
            if sure:
                raise raised
            self.note(raised, keywords[key])

    def _mismatch(self, text: str) -> Raised:
        return self.failure(TypeError(text))

    # instances

    def instance(self, cls: Class, arguments: list[Value], keywords: Names) -> Value:
        """A new object of a class of the program."""
        if self.layers is not None and cls.opaque:
            return self.layers.make(cls, arguments, keywords)
        return self.instance_of(cls, arguments, keywords)

    layers: Layers | None = None
    """How the layers of a network are built, while it is."""

    def instance_of(self, cls: Class, arguments: list[Value], keywords: Names) -> Value:
        """A new, initialized object."""
        made = Object(cls)
        factory = cls.find("__new__")
        if factory is not MISSING:
            function = factory.function if isinstance(factory, Static) else factory
            found = self.call(function, [cls, *arguments], keywords)
            if not isinstance(found, Object) or not found.cls.inherits(cls):
                return found
            made = found
        self.initialise(made, arguments, keywords)
        return made

    def initialise(self, made: Object, arguments: list[Value], keywords: Names) -> None:
        """Initialize a new object by the nearest __init__, written or generated for a dataclass."""
        for one in made.cls.lineage:
            if "__init__" in one.names:
                self.call(one.names["__init__"], [made, *arguments], keywords)
                return
            if one.fields is not None:
                self.fill_fields(made, one, arguments, keywords)
                return
        if made.data is not None:
            content = self.call_native(dict if isinstance(made.data, dict) else list, arguments, keywords)
            if isinstance(content, (dict, list)):
                made.data.update(content) if isinstance(content, dict) else made.data.extend(content)

    def fill_fields(self, target: Object, cls: Class, arguments: list[Value], keywords: Names) -> None:
        """Implements the __init__ of a dataclass."""
        fields = cls.fields or {}
        accepted = [name for name, field in fields.items() if field.init]
        given: Names = {
            **dict(zip([name for name in accepted if not fields[name].kw_only], arguments, strict=False)),
            **keywords,
        }
        spread = given.pop(REST, None)
        found: Names = {}
        for name, field in fields.items():
            if field.init and name in given:
                value = given.pop(name)
            elif spread is not None:
                value = spread
            elif field.default is not dataclasses.MISSING:
                value = field.default
            elif field.default_factory is not dataclasses.MISSING:
                value = self.call(field.default_factory, [], {})
            elif not field.init:
                continue
            else:
                raise self.failure(TypeError(f"__init__() missing 1 required argument: '{name}'"))
            found[name] = value
        self.put_all(target.names, found)
        self._accept_none(given, "__init__")
        method = target.cls.find("__post_init__")
        if method is not MISSING:
            self.call(method, [target], {})


def _own(function: Value) -> bool:
    return isinstance(function, (Function, Bound, Class, Partial))
