"""MindSpore, as far as MindFormers queries it for a configuration: the results of its functions at launch."""

from __future__ import annotations

from collections.abc import Callable

from preflight.program.interpreter import Interpreter
from preflight.program.ir import compile_source
from preflight.program.mindspore_context_refusals import (
    Veto,
    coefficient_fault,
    context_fault,
    memory_fault,
    parallel_fault,
)
from preflight.program.values import (
    OPAQUE_VALUES,
    Builtin,
    Class,
    Module,
    Names,
    Object,
    Raised,
    Scope,
    Symbol,
    Unknown,
    Value,
)
from preflight.source.typing_without_import import Any

WORLD = "world size"
DEFAULTS: dict[str, Value] = {
    "parallel_mode": "stand_alone",
    "full_batch": False,
    "pipeline_stages": 1,
    "enable_parallel_optimizer": False,
    "gradients_mean": False,
    "search_mode": "recursive_programming",
    "dataset_strategy": "data_parallel",
    "device_num": None,
    "global_rank": 0,
    "parallel_optimizer_config": None,
    "pipeline_config": {"pipeline_interleave": False, "pipeline_scheduler": "1f1b"},
}
"""The auto-parallel context in its initial state (mindspore/parallel/_auto_parallel_context.py)."""
MODES = {
    "STAND_ALONE": "stand_alone",
    "DATA_PARALLEL": "data_parallel",
    "HYBRID_PARALLEL": "hybrid_parallel",
    "SEMI_AUTO_PARALLEL": "semi_auto_parallel",
    "AUTO_PARALLEL": "auto_parallel",
}
PLACES = ("mindspore", "mindspore.context", "mindspore.common", "mindspore.parallel", "mindspore.communication")
"""Modules that give these functions under the same name."""
COMMUNICATION = ("mindspore.communication", "mindspore.communication.management", "mindspore.communication.comm_func")
DISTRIBUTED = "mindspore.mint.distributed"
PARALLEL_MODE = ("mindspore.parallel._utils._get_parallel_mode",)
COEFFICIENT = "mindspore.parallel._cost_model_context._set_rp_matmul_mem_coef"
INITIALIZED = ("mindspore.communication._comm_helper._is_initialized", "mindspore.communication.is_initialized")
CHECKS = ("mindspore._checkparam", "mindspore._checkparam.Validator", "mindspore.common._checkparam")
SILENT = (
    "set_seed",
    "set_dump",
    "set_device",
    "set_deterministic",
    "reset_ps_context",
    "save_checkpoint",
)
KEEPING = (
    "lazy_inline",
    "jit",
    "ms_function",
    "jit_class",
    "ms_class",
    "constexpr",
    "_primexpr",
    "_no_grad",
    "no_grad",
)
"""Decorators that return a function with the same arguments."""
DECORATORS = ("args_type_check",)
"""Calls that give such a decorator."""


OPERATORS = "mindspore.ops"
RETURNING = ("shard", "add_prim_attr", "recompute", "set_prim_instance_name", "del_prim_attr")
"""Methods of mindspore.ops.Primitive that return the operator itself (mindspore/ops/primitive.py)."""
TENSORS = frozenset(("Tensor", "Parameter", "MutableTensor"))
NO_TENSORS = ("mindspore.common.initializer.", "mindspore.ops.", "mindspore.nn.")
"""Places of classes that are not tensors."""
TYPES = {
    f"mindspore.{prefix.lower()}{bits}": f"{prefix}{bits}"
    for prefix, widths in {
        "Float": (16, 32, 64),
        "BFloat": (16,),
        "Int": (8, 16, 32, 64),
        "UInt": (8, 16, 32, 64),
    }.items()
    for bits in widths
}
"""The types of numbers and their texts (mindspore/core/ir/dtype/number.cc)."""
CELL = "mindspore.nn.Cell"
CONTAINERS = """
class CellList(Cell):
    def __init__(self, *cells, **named):
        super().__init__()
        self._cells = {}
        if len(cells) == 1:
            self.extend(cells[0])

    def append(self, cell):
        self._cells[str(len(self._cells))] = cell
        return self

    def extend(self, cells):
        for cell in cells:
            self.append(cell)
        return self

    def __bool__(self):
        return bool(self._cells)

    def __len__(self):
        return len(self._cells)

    def __iter__(self):
        return iter(list(self._cells.values()))

    def __getitem__(self, index):
        return list(self._cells.values())[index]

    def __setitem__(self, index, cell):
        self._cells[str(index)] = cell
"""
"""The list of layers (mindspore/nn/layer/container.py): its layers are kept by their number as text."""
NEVER_INHERITED = frozenset(("params", "submodules"))
"""Attributes of layers that MindFormers uses, and mindspore.nn.Cell lacks."""
DATA = "mindspore.dataset.Dataset()"
"""The data of a run; only its existence is known."""


class MindSpore:
    """The state that MindSpore keeps for one process, and its results."""

    def __init__(self, run: Interpreter) -> None:
        self.run = run
        self.context: Names = dict(DEFAULTS)
        self.initialized = False
        self.general: Names = {"mode": 0, "device_target": "Ascend", "device_id": 0}

    def teach(self) -> None:
        """Make the interpreter behave like MindSpore."""
        world = self.run.facts.world_size
        size: Value = Unknown((WORLD,)) if world is None else world
        values: dict[str, Value] = {"mindspore.GRAPH_MODE": 0, "mindspore.PYNATIVE_MODE": 1}
        values |= {"mindspore.context.GRAPH_MODE": 0, "mindspore.context.PYNATIVE_MODE": 1}
        calls: dict[str, Callable[..., Value]] = {}
        for place in PLACES:
            values |= {f"{place}.ParallelMode.{name}": value for name, value in MODES.items()}
            calls |= {f"{place}.{name}": _nothing for name in SILENT}
            calls[f"{place}.get_auto_parallel_context"] = self._get
            calls[f"{place}.set_auto_parallel_context"] = self._set
            calls[f"{place}.reset_auto_parallel_context"] = self._reset
            calls[f"{place}.get_context"] = self._general
            calls[f"{place}.set_context"] = self._set_general
            calls |= {f"{place}.{name}": _kept for name in KEEPING}
        values["mindspore.context.ParallelMode.MODE_LIST"] = list(MODES.values())
        for name in INITIALIZED:
            calls[name] = lambda: self.initialized
        for place in COMMUNICATION:
            calls[f"{place}.get_group_size"] = lambda *given, **named: self._size(size) if not given else _unknown()
            calls[f"{place}.get_rank"] = lambda *given, **named: 0 if not given else _unknown()
            calls[f"{place}.init"] = self._initialize
        calls[f"{DISTRIBUTED}.get_world_size"] = lambda *given, **named: self._size(size) if not given else _unknown()
        calls[f"{DISTRIBUTED}.get_rank"] = lambda *given, **named: 0 if not given else _unknown()
        calls[f"{DISTRIBUTED}.init_process_group"] = self._initialize
        calls["mindspore.runtime.set_memory"] = self._set_memory
        calls[COEFFICIENT] = lambda value: self._judged([coefficient_fault(value)])
        for place in PARALLEL_MODE:
            calls[place] = lambda: self.context["parallel_mode"]
        for place in CHECKS:
            calls |= {f"{place}.{name}": check for name, check in self._checks().items()}
            calls |= {f"{place}.{name}": lambda *given, **named: Builtin("decorator", _kept) for name in DECORATORS}
        self.run.never_inherited = NEVER_INHERITED
        self.run.inherited_values = {"_cells": self._cells}
        self.run.apart = apart
        self.run.texts = TYPES
        self.run.facts.learn_methods(OPERATORS, dict.fromkeys(RETURNING, self.run.symbol))
        values |= self._containers()
        self.run.facts.learn(values, calls | self._data())

    def _data(self) -> dict[str, Callable[..., Value]]:
        """The methods of a dataset that return one."""
        data = self.run.symbol(DATA)
        return {f"{DATA}.{name}": lambda *given, **named: data for name in ("take", "repeat", "batch", "project")}

    def _containers(self) -> Names:
        """The classes that hold layers, by the names under which they are imported."""
        module = Module("mindspore.nn", "", "", False)
        module.names["Cell"] = self.run.symbol(CELL)
        scope = Scope(module.names, None, module, "module", "")
        self.run.block(compile_source(CONTAINERS), scope)
        made = module.names["CellList"]
        return {
            f"{place}.CellList": made
            for place in ("mindspore.nn", "mindspore.nn.layer", "mindspore.nn.layer.container")
        }

    def _size(self, size: Value) -> Value:
        """The number of devices; a value that a module keeps while loading would outlast this configuration."""
        return size if self.run.journals else Unknown((WORLD,))

    def _initialize(self, *given: Value, **named: Value) -> None:
        self.initialized = True

    def _cells(self, owner: Object) -> Value:
        """The layers inside a layer: unknown if one of its attributes may be one."""
        if any(isinstance(value, Unknown) for value in owner.names.values()):
            return Unknown(gaps=(f"{owner.cls.name}._cells()",))
        return {name: value for name, value in owner.names.items() if is_cell(value)}

    # the auto-parallel context

    def _get(self, key: Value) -> Value:
        if isinstance(key, str) and key in self.context:
            found = self.context[key]
            return found
        if key in ("pipeline_interleave", "pipeline_scheduler"):
            held = self.run.plain(self.context["pipeline_config"])
            return held.get(key) if isinstance(held, dict) else _unknown()
        return Unknown(gaps=(f"the auto-parallel context's {key}",))

    def _judged(self, faults: list[Veto | None]) -> None:
        """Refuse values that MindSpore refuses; a refusal of only some releases is noted."""
        found = [one for one in faults if one is not None]
        for one in found:
            if one.sure:
                raise self.run.failure(one.error)
        for one in found:
            self.run.note(self.run.failure(one.error), Unknown(("mindspore",)))

    def _set_general(self, **given: Value) -> None:
        self._judged([context_fault(key, self.run.plain(value)) for key, value in given.items()])
        for key in self.general.keys() & given.keys():
            self.run.put(self.general, key, given[key])

    def _set_memory(self, **given: Value) -> None:
        self._judged([memory_fault(key, self.run.plain(value)) for key, value in given.items()])

    def _set(self, **given: Value) -> None:
        self._judged([parallel_fault(key, self.run.plain(value)) for key, value in given.items()])
        for key, value in given.items():
            if key == "pipeline_config" and isinstance(held := self.run.plain(value), dict):
                value = {**DEFAULTS["pipeline_config"], **held}
            if key == "parallel_mode" and isinstance(value, str) and value not in MODES.values():
                value = _unknown()
            self.run.put(self.context, key, value)

    def _reset(self) -> None:
        for key, value in DEFAULTS.items():
            self.run.put(self.context, key, value)

    def _general(self, key: Value) -> Value:
        return self.general.get(key, Unknown(gaps=(f"the context's {key}",))) if isinstance(key, str) else _unknown()

    # checks of values

    def _checks(self) -> dict[str, Callable[..., Value]]:
        def number(least: int | None, kinds: tuple[type, ...] = (int,)) -> Callable[..., Value]:
            def check(value: Value, name: Value = None, prim: Value = None, *rest: Value, **named: Value) -> Value:
                if isinstance(value, Unknown):
                    return value
                if isinstance(value, bool) or not isinstance(value, kinds):
                    raise self._wrong(TypeError, name, f"must be {kinds[-1].__name__}", value)
                if least is not None and isinstance(value, int) and value < least:
                    raise self._wrong(ValueError, name, f"must be at least {least}", value)
                return value

            return check

        def exact(kind: type) -> Callable[..., Value]:
            def check(value: Value, name: Value = None, prim: Value = None, *rest: Value, **named: Value) -> Value:
                if isinstance(value, Unknown):
                    return value
                if not isinstance(value, kind):
                    raise self._wrong(TypeError, name, f"must be a {kind.__name__}", value)
                return value

            return check

        return {
            "check_positive_int": number(1),
            "check_non_negative_int": number(0),
            "check_is_int": number(None),
            "check_positive_float": self._positive_float,
            "check_non_negative_float": self._float,
            "check_bool": exact(bool),
            "check_value_type": self._value_type,
            "check_string": self._string,
            "check_type_name": self._type_name,
        }

    def _type_name(
        self, arg_name: Value, arg_type: Value, valid_types: Value, prim_name: Value = None, **named: Value
    ) -> Value:
        rows = self.run.items(valid_types) if isinstance(valid_types, (list, tuple)) else [valid_types]
        plain = [arg_type, *rows] if isinstance(rows, list) else [Unknown()]
        if all(isinstance(one, type) or (isinstance(one, Symbol) and "(" not in one.name) for one in plain):
            known = {_named(one) for one in plain[1:]}
            if _named(arg_type) not in known:
                raise self._wrong(TypeError, arg_name, f"must be one of {sorted(known)}", _named(arg_type))
        return arg_type

    def _float(self, value: Value, name: Value = None, *rest: Value, **named: Value) -> Value:
        if not isinstance(value, Unknown) and not isinstance(value, float):
            raise self._wrong(TypeError, name, "must be float", value)
        if isinstance(value, float) and value < 0:
            raise self._wrong(ValueError, name, "must be at least 0", value)
        return value

    def _positive_float(self, value: Value, name: Value = None, *rest: Value, **named: Value) -> Value:
        if not isinstance(value, Unknown) and not isinstance(value, float):
            raise self._wrong(TypeError, name, "must be float", value)
        if isinstance(value, float) and value <= 0:
            raise self._wrong(ValueError, name, "must be larger than 0", value)
        return value

    def _value_type(self, name: Value, value: Value, kinds: Value, *rest: Value, **named: Value) -> Value:
        rows = list(kinds) if isinstance(kinds, (list, tuple)) else [kinds]
        if isinstance(value, OPAQUE_VALUES) or not all(isinstance(kind, type) or kind is None for kind in rows):
            return value
        plain = [kind if kind is not None else type(None) for kind in rows]
        if isinstance(value, bool) and bool not in plain:
            raise self._wrong(TypeError, name, f"must be one of {[one.__name__ for one in plain]}", value)
        if not isinstance(value, tuple(plain)):
            raise self._wrong(TypeError, name, f"must be one of {[one.__name__ for one in plain]}", value)
        return value

    def _string(self, value: Value, valid: Value, name: Value = None, *rest: Value, **named: Value) -> Value:
        rows = self.run.items(valid)
        if isinstance(value, Unknown) or isinstance(rows, Unknown) or not all(isinstance(one, str) for one in rows):
            return value
        if isinstance(value, str) and value in rows:
            return value
        raise self._wrong(ValueError, name, f"must be one of {rows}", value)

    def _wrong(self, kind: type[Exception], name: Value, must: str, value: Value) -> Raised:
        shown = name if isinstance(name, str) else "value"
        return self.run.failure(kind(f"'{shown}' {must}, but got {value!r} of type {type(value).__name__}"))


def is_cell(value: Value) -> bool:
    """Whether a value is a layer."""
    if isinstance(value, Symbol):
        return value.name.startswith("mindspore.nn.") and value.name.endswith("()")
    return isinstance(value, Object) and derives_from_cell(value.cls)


def derives_from_cell(cls: Class) -> bool:
    """Whether a class of the program is a layer class."""
    return cls.derives_from(CELL)


def apart(value: Value, kind: str) -> bool:
    """Whether a MindSpore object is certainly not an instance of a MindSpore class."""
    if kind.rpartition(".")[2] not in TENSORS:
        return False
    if isinstance(value, Object):
        return derives_from_cell(value.cls)
    return isinstance(value, Symbol) and value.name.startswith(NO_TENSORS) and value.name.endswith("()")


def _named(kind: Value) -> str:
    return kind.name if isinstance(kind, Symbol) else kind.__name__


def _nothing(*given: Value, **named: Value) -> None:
    return None


def _unknown() -> Unknown:
    return Unknown(gaps=("MindSpore",))


def _kept(*given: Any, **named: Any) -> Value:
    """The result of a decorator: the function itself, or a decorator if it is only given arguments."""
    if given and not isinstance(given[0], (str, bool, type(None))):
        return given[0]
    return Builtin("decorator", lambda function: function)
