"""The machine's answers to the program: stated facts, unknown facts by name, and the environment."""

from __future__ import annotations

import dataclasses
import math
import posixpath
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from preflight.program.values import MISSING, Builtin, Symbol, Unknown, Value
from preflight.program.verdict import Machine

ALWAYS = frozenset(("torch", "numpy", "packaging", "typing-extensions", "setuptools", "pkg-resources"))
"""Packages without which no trainer of these frameworks starts."""
WITH_ENGINE = frozenset(("einops", "onnx", "onnxscript"))
"""Packages that Transformer Engine installs with it since 2.5 (build_tools/pytorch.py, install_requirements)."""
PARAMETERS = {
    "transformer_engine.pytorch.optimizers.FusedAdam": (
        ((2, 1), "store_param_remainders"),
        ((1, 13), "master_weight_dtype exp_avg_dtype exp_avg_sq_dtype use_decoupled_grad"),
        (
            (1, 8),
            """params lr bias_correction betas eps adam_w_mode weight_decay amsgrad set_grad_none capturable
            master_weights""",
        ),
    ),
}
"""The parameters of a class that programs inspect, by the first release of its package that has them, newest first."""
DISTRIBUTIONS = {"yaml": "pyyaml", "nvidia-resiliency-ext": "nvidia-resiliency-ext", "te": "transformer-engine"}
"""Packages with an import name that differs from the installed name; others differ in - and _ only."""
ALIASES = {
    "torch.half": "torch.float16",
    "torch.float": "torch.float32",
    "torch.double": "torch.float64",
    "torch.long": "torch.int64",
    "torch.int": "torch.int32",
    "torch.short": "torch.int16",
    "torch.Tensor.type": "torch.dtype",
}
MODULES = {
    "mindspore.common.dtype": "mindspore",
    "mindspore.dtype": "mindspore",
    "mindspore.common.tensor": "mindspore",
    "mindspore.common.parameter": "mindspore",
    "mindspore.nn.cell": "mindspore.nn",
}
"""Modules with the same names as another one."""
PATHS: dict[str, Callable[..., Any]] = {
    f"os.path.{name}": getattr(posixpath, name)
    for name in ("join", "basename", "dirname", "splitext", "normpath", "isabs", "split", "commonprefix")
}
FOLDERS = frozenset(f"os.path.{name}" for name in ("exists", "isfile", "isdir", "getsize", "islink", "lexists"))
PACKAGE = "package"
"""The prefix of the fact whether a package is installed."""
FILES = "folder contents"
"""The fact that is queried for the contents of a path: the paths of a run belong to the machine on which it starts."""
LISTS = frozenset(("os.listdir", "os.scandir", "os.walk", "os.access", "os.stat", "glob.glob", "glob.iglob"))
SILENT = ("logging.", "warnings.", "atexit.", "gc.", "signal.", "faulthandler.")
"""Modules with functions that do not change anything that a check reads."""
OTHER_DEVICES = ("npu", "musa", "txda", "gcu", "xpu", "mlu", "hpu")
"""The names of other vendors' devices: torch.npu, torch_npu. If a CUDA capability is stated, these do not exist."""
DEVICE_NAMES = tuple(f"{owner}.get_device_name" for owner in ("torch_npu.npu", "torch.npu", "torch.cuda"))
TOOLS = ("nvidia-smi", "-smi")
"""Programs that show devices: that of CUDA, and how the others end."""
CUDA_CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"


class Facts:
    """The answers for one machine, environment and number of processes. In env, None marks a variable that is known to
    be unset."""

    def __init__(self, machine: Machine, env: Mapping[str, str | None], world_size: int | None) -> None:
        self.machine, self.world_size = machine, world_size
        self._versions = {distribution(name): version for name, version in machine.versions.items()}
        self._present = frozenset(distribution(name) for name in machine.present)
        self._absent = frozenset(distribution(name) for name in machine.absent)
        self._others = _others(machine)
        if self._versions.get("transformer-engine") and _newer(self._versions["transformer-engine"], (2, 5)):
            self._present |= WITH_ENGINE
        self.initialized = False
        world: Value = Unknown(("world size",)) if world_size is None else str(world_size)
        local: Value = Unknown(("devices per node",)) if machine.devices is None else str(machine.devices)
        self.environ: dict[str, Value] = {
            "RANK": "0",
            "LOCAL_RANK": "0",
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": "6000",
            CUDA_CONNECTIONS: Unknown((f"environment variable {CUDA_CONNECTIONS}",)),
            "LOCAL_WORLD_SIZE": local,
        }
        self.unset = frozenset(name for name, text in env.items() if text is None)
        for name, text in env.items():
            self.environ[name] = text
            if text is None:
                del self.environ[name]
        self.environ["WORLD_SIZE"] = world
        self._values = self._constants()
        self._methods: dict[str, tuple[str, Callable[[str], Value]]] = {}
        self._calls = self._functions()

    def learn(self, values: Mapping[str, Value], calls: Mapping[str, Callable[..., Value]]) -> None:
        """Add values and functions of a framework outside the program, by dotted names."""
        self._values.update(values)
        self._calls.update(calls)

    def learn_methods(self, package: str, methods: Mapping[str, Callable[[str], Value]]) -> None:
        """Add results of methods of a package's objects, by method name."""
        self._methods.update((name, (package, answer)) for name, answer in methods.items())

    def present(self, module: str) -> bool | None:
        """Whether a package is installed; None if not stated."""
        name = distribution(module)
        if module.partition(".")[0] in sys.stdlib_module_names or name in ALWAYS:
            return True
        if name in self._absent or (self._others == 0 and name in _OTHER_PACKAGES and name not in self._present):
            return False
        if name in self._versions or name in self._present:
            return True
        return None

    def described(self, module: str) -> bool:
        """Whether enough is known about a package to be sure that a name can be imported from it."""
        name = distribution(module)
        return module.partition(".")[0] in sys.stdlib_module_names or name in self._versions or name in self._present

    def version(self, name: str) -> Value:
        """The version of an installed package."""
        found = self._versions.get(distribution(name))
        return found if found is not None else Unknown((distribution(name),))

    def parameters(self, name: str) -> list[str] | Unknown | None:
        """The parameters of a class outside the program; None if no version is known."""
        if name not in PARAMETERS:
            return None
        version, since = self.version(package := name.partition(".")[0]), PARAMETERS[name]
        if not isinstance(version, str) or not _newer(version, since[-1][0]):
            return Unknown((distribution(package),))
        return [one for least, names in reversed(since) if _newer(version, least) for one in names.split()]

    def value(self, name: str) -> Value:
        """The value of a dotted name outside the program; MISSING if it remains a name."""
        if name in self._values:
            return self._values[name]
        package, _, rest = name.partition(".")
        if rest in ("__version__", "version.__version__"):
            return self.version(package)
        return MISSING

    def call(self, name: str, arguments: list[Value], keywords: Mapping[str, Value]) -> Value:
        """The result of a function outside the program; MISSING if unknown."""
        if (answer := self._calls.get(name)) is not None:
            return answer(*arguments, **keywords)
        owner, _, method = name.rpartition(".")
        if (known := self._methods.get(method)) is not None and owner.endswith(")") and owner.startswith(known[0]):
            return known[1](owner)
        if name in PATHS:
            return PATHS[name](*arguments) if all(isinstance(one, str) for one in arguments) else Unknown()
        if name in FOLDERS:
            return self._folder(name, arguments)
        if name in LISTS:
            return Unknown((FILES,))
        return None if name.startswith(SILENT) and not method[:1].isupper() else MISSING

    def _folder(self, name: str, arguments: list[Value]) -> Value:
        path = arguments[0] if arguments else None
        if isinstance(path, str) and name != "os.path.getsize":
            parent, _, last = path.rstrip("/").rpartition("/")
            if path in self.machine.folders:
                return name not in ("os.path.isfile", "os.path.islink")
            if parent in self.machine.folders:
                return last in self.machine.folders[parent]
        return Unknown((FILES,))

    def _constants(self) -> dict[str, Value]:
        torch = self._versions.get("torch")
        hip: Value = Unknown(("ROCm",)) if torch is None else ("6.0" if "rocm" in torch else None)
        return {
            "torch.version.cuda": Unknown(("CUDA",)) if torch is None else "12.8",
            "torch.version.hip": hip,
            "torch.inf": float("inf"),
            "numpy.inf": float("inf"),
            "typing.TYPE_CHECKING": False,
            "dataclasses.MISSING": dataclasses.MISSING,
            "sys.version_info": (3, 12, 0, "final", 0),
            "sys.platform": "linux",
            "sys.maxsize": sys.maxsize,
            "os.sep": "/",
            "os.name": "posix",
            "os.linesep": "\n",
        }

    def _functions(self) -> dict[str, Callable[..., Value]]:
        capability = self._capability
        devices: Value = Unknown(("devices per node",)) if self.machine.devices is None else self.machine.devices
        world: Value = Unknown(("world size",)) if self.world_size is None else self.world_size
        return {
            "torch.is_grad_enabled": lambda: True,
            "torch.cuda.is_available": lambda: True,
            "torch.cuda.device_count": lambda: devices,
            "torch.cuda.current_device": lambda: 0,
            "torch.cuda.get_device_capability": lambda *given: capability(),
            "torch.cuda.get_device_properties": lambda *given: self._properties(),
            "torch.cuda.set_device": lambda *given: None,
            "torch.distributed.is_available": lambda: True,
            "torch.distributed.is_initialized": lambda: self.initialized,
            "torch.distributed.get_rank": lambda group=None: 0 if group is None else _of_group(group, "rank"),
            "torch.distributed.get_world_size": lambda group=None: world if group is None else _of_group(group, "size"),
            "torch.distributed.init_process_group": self._initialize,
            "torch.distributed.new_group": lambda ranks=None, *rest, **named: _group(ranks),
            "torch.distributed.barrier": lambda *given, **named: None,
            "torch.distributed.get_process_group_ranks": lambda group: _of_group(group, "ranks"),
            "torch.cuda.synchronize": lambda *given: None,
            "importlib.metadata.version": self.version,
            "importlib.util.find_spec": self._spec,
            "os.cpu_count": lambda: Unknown(("processors",)),
            "time.time": lambda: Unknown(("time",)),
            "numpy.prod": _product,
            "numpy.array": lambda values, *rest, **named: values,
            "einops.rearrange": _rearranged,
            "shutil.which": self._which,
            **dict.fromkeys(DEVICE_NAMES, lambda *given: self.machine.device or Unknown(("device",))),
            **{f"torch.{name}.device_count": lambda: self._others for name in OTHER_DEVICES},
            **{f"torch.{name}.is_available": lambda: self._any_other() for name in OTHER_DEVICES},
            "logging.getLogger": lambda *given: Symbol("logging.logger"),
        }

    def _initialize(self, *given: Value, **named: Value) -> None:
        self.initialized = True

    def _capability(self) -> Value:
        return self.machine.capability or Unknown(("device capability",))

    def _properties(self) -> Value:
        given = self._capability()
        major, minor = given if isinstance(given, tuple) else (given, given)
        unknown = Unknown(("device",))
        return SimpleNamespace(
            major=major, minor=minor, name=unknown, total_memory=unknown, multi_processor_count=unknown
        )

    def _any_other(self) -> Value:
        return self._others if isinstance(self._others, Unknown) else False

    def _which(self, name: Value, *rest: Value, **named: Value) -> Value:
        """The path of an executable: the tool that lists the stated devices exists."""
        if isinstance(self._others, Unknown) or not isinstance(name, str) or not name.endswith(TOOLS):
            return Unknown(("programs",))
        return f"/usr/bin/{name}" if name == TOOLS[0] else None

    def _spec(self, name: Value, *rest: Value) -> Value:
        here = self.present(name) if isinstance(name, str) else None
        if here is None:
            return Unknown((f"{PACKAGE} {name}",))
        return Symbol(f"importlib.machinery.ModuleSpec.{name}") if here else None


_OTHER_PACKAGES = frozenset(f"torch-{name}" for name in (*OTHER_DEVICES, "xmlir"))


def _others(machine: Machine) -> Value:
    """The number of devices of other vendors."""
    named = {distribution(name) for name in machine.present}
    return Unknown(("device",)) if machine.capability is None or named & _OTHER_PACKAGES else 0


def named(name: str) -> str:
    """The canonical name of an object with several names."""
    module, _, last = name.rpartition(".")
    return f"{MODULES[module]}.{last}" if module in MODULES else ALIASES.get(name, name)


def distribution(module: str) -> str:
    """The distribution name of a module's package."""
    top = module.partition(".")[0].replace("_", "-").lower()
    return DISTRIBUTIONS.get(module.partition(".")[0], top)


MOST_RANKS = 1 << 20
"""Maximum number of processes in a group."""


def _group(ranks: Value) -> Value:
    """A process group, as far as its ranks determine it; this process has rank 0."""
    known = isinstance(ranks, (list, tuple, range)) and len(ranks) <= MOST_RANKS
    if not known or not all(isinstance(one, int) for one in ranks):
        return Unknown(("process groups",))
    here = ranks.index(0) if 0 in ranks else -1
    size, rank = Builtin("size", lambda: len(ranks)), Builtin("rank", lambda: here)
    return SimpleNamespace(ranks=list(ranks), size=size, rank=rank)


def _of_group(group: Value, name: str) -> Value:
    found = getattr(group, name, None) if isinstance(group, SimpleNamespace) else None
    if found is None:
        return Unknown(("process groups",))
    return found.run() if isinstance(found, Builtin) else found


def _newer(version: str, least: tuple[int, int]) -> bool:
    """Whether one version is at least another."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= least


def _rearranged(values: Value, pattern: Value, **sizes: Value) -> Value:
    """A flat list of numbers as rows: "(l s u) -> (l u) s"."""
    found = re.fullmatch(r"\((\w) (\w) (\w)\) -> \((\w) (\w)\) (\w)", pattern) if isinstance(pattern, str) else None
    known = isinstance(values, list) and all(isinstance(one, int) for one in [*values, *sizes.values()])
    if found is None or not known or set(found.groups()) != set(sizes):
        return Unknown(("process groups",))
    axes, rows = found.groups()[:3], found.groups()[3:]
    if math.prod(sizes.values()) != len(values):
        raise ValueError(f"cannot divide {len(values)} ranks into {sizes}")
    strides = {axes[0]: sizes[axes[1]] * sizes[axes[2]], axes[1]: sizes[axes[2]], axes[2]: 1}
    table = [
        [values[a * strides[rows[0]] + b * strides[rows[1]] + c * strides[rows[2]]] for c in range(sizes[rows[2]])]
        for a in range(sizes[rows[0]])
        for b in range(sizes[rows[1]])
    ]
    return SimpleNamespace(tolist=Builtin("tolist", lambda: table))


def _product(values: Value, *rest: Value, **named: Value) -> Value:
    if not isinstance(values, (list, tuple)) or not all(isinstance(one, (int, float)) for one in values):
        return Unknown(gaps=("numpy.prod",))
    found: Value = 1
    for one in values[:100]:
        found *= one
    return found if len(values) <= 100 else Unknown(gaps=("numpy.prod",))


SIZE = "WORLD_SIZE"


class SizeText(str):
    """The number of processes as text, which may become the default of an option."""

    __slots__ = ()


class Size(int):
    """The number of processes as a number, which may become the default of an option."""

    __slots__ = ()


class Environment(dict[str, Value]):
    """The variables of the environment. asked: those that units read while one runs. open: how often they read the
    number of processes and have not made it the default of an option, which is set again for each command."""

    asked: set[str] | None = None
    open = 0

    def __getitem__(self, key: str) -> Value:
        if (size := self._size(key)) is not None:
            return size
        self._ask(key)
        return super().__getitem__(key)

    def _size(self, key: object) -> SizeText | None:
        value = super().get(SIZE) if key == SIZE and self.asked is not None else None
        if not isinstance(value, str) or not value.isdecimal():
            return None
        self.open += 1
        return SizeText(value)

    def __contains__(self, key: object) -> bool:
        self._ask(key)
        return super().__contains__(key)

    def get(self, key: str, default: Value = None) -> Value:
        """The value of a variable."""
        if (size := self._size(key)) is not None:
            return size
        self._ask(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        self._ask(*super().keys())
        return super().__iter__()

    def plain(self) -> dict[str, Value]:
        """All variables, without recording a read."""
        return dict(super().items())

    def _ask(self, *keys: object) -> None:
        if self.asked is not None:
            self.asked.update(map(str, keys))
