"""Stand-ins for packages that a framework imports but that its parser and validators do not need.

A missing name can be used in any way: classes can be inherited from, and functions decorate or return another stand-
in. Packages that a framework imports only if they are installed stay absent, as on a machine without them.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Any

VERSIONS = {
    "torch": "2.8.0",
    "transformer-engine": "2.8.0",
    "flash-attn": "2.7.4",
    "numpy": "1.26.4",
    "torch-npu": "2.7.1",
}
"""Versions that stand-ins report if a framework requests them."""
TYPES = frozenset({"dtype", "device", "finfo"})
"""Lower-case names that are classes."""
REAL = {
    "pkg_resources.packaging.version": "packaging.version",
    "pkg_resources.extern.packaging.version": "packaging.version",
}
"""Installed packages that share a name with a stand-in."""
_ATTEMPTS = 80


class _Type(type(typing.Protocol)):  # type: ignore[misc]
    """The class of stand-in classes, which mix with protocols: an attribute that is missing is a stand-in."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") or name == "_is_protocol":  # required by typing
            raise AttributeError(name)
        return Standin(f"{cls.__name__}.{name}")

    def __getitem__(cls, item: Any) -> Any:
        return cls


class _Base(metaclass=_Type):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        pass

    def __init_subclass__(cls, **named: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Standin(name)


class Standin:
    """A function, object or constant of a missing package; as a decorator it returns its argument."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if (
            len(arguments) == 1
            and not named
            and isinstance(arguments[0], (types.FunctionType, type, classmethod, staticmethod))
        ):
            return arguments[0]
        if self.__name__.rpartition(".")[2].startswith(("is_", "has_")):
            return False  # nothing is initialised or available
        return Standin(f"{self.__name__}()")

    def __getattr__(self, name: str) -> Any:
        return _kept(self, name)

    def __getitem__(self, item: Any) -> Any:
        return Standin(f"{self.__name__}[]")

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def _same(self, other: Any) -> Any:
        return self

    __or__ = __ror__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = _same

    def _no(self, other: Any) -> bool:
        return False

    __lt__ = __gt__ = __le__ = __ge__ = _no

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (_Base,)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *raised: Any) -> None:
        pass

    def __fspath__(self) -> str:
        return f"/{self.__name__}"

    def __repr__(self) -> str:
        return self.__name__


def _kept(owner: Any, name: str) -> Any:
    """The object for a missing name: an imported module, a class, or a callable; always the same one."""
    if name == "__file__":
        return f"<{owner.__name__}>"
    if name.startswith("__"):
        raise AttributeError(name)
    full = f"{owner.__name__}.{name}"
    value: Any = importlib.import_module(REAL[full]) if full in REAL else sys.modules.get(full)
    if value is None:
        is_class = (name.lstrip("_")[:1].isupper() and not name.isupper()) or name in TYPES
        value = _Type(name, (_Base,), {"__module__": owner.__name__}) if is_class else Standin(full)
    setattr(owner, name, value)
    return value


class _Module(types.ModuleType):
    """A module in which every name exists."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__file__ = f"<stand-in for {name}>"
        self.__version__ = VERSIONS.get(name.partition(".")[0].replace("_", "-"), "99.0.0")

    def __getattr__(self, name: str) -> Any:
        return _kept(self, name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An import finder for packages with stand-ins."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = set(names)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in self.names and name not in self.names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        parent, _, name = module.__name__.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], name, module)


def hide_installed(kept: Sequence[str] = ("packaging",)) -> None:
    """Hides all installed packages except these: optional imports of a release would otherwise depend on the machine,
    and fail next to stand-ins."""
    for name in kept:
        importlib.import_module(name)
    sys.path[:] = [folder for folder in sys.path if not folder.rstrip("/").endswith(("site-packages", "dist-packages"))]


def install(names: Sequence[str]) -> Finder:
    """Puts stand-ins for these packages before everything else, and adds features of newer Pythons to older ones."""
    finder = Finder(names)
    sys.meta_path.insert(0, finder)
    if not hasattr(typing, "override"):
        typing.override = lambda function: function  # type: ignore[attr-defined]
    known = importlib.metadata.version

    def version(distribution_name: str) -> str:
        return VERSIONS.get(distribution_name.replace("_", "-").lower()) or known(distribution_name)

    importlib.metadata.version = version
    return finder


def load(module: str, own: Sequence[str], finder: Finder) -> Any:
    """Imports a module of a framework; missing packages that it needs get a stand-in, one per attempt.

    own: the packages of the framework itself, which never get one.
    """
    for _ in range(_ATTEMPTS):
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            name = str(error.name)
            wanted = name if name.partition(".")[0] in own else name.partition(".")[0]
            if not name or wanted in finder.names or name.partition(".")[0] in own:
                raise
            finder.names.add(wanted)
            for loaded in [one for one in sys.modules if one.partition(".")[0] in own]:
                del sys.modules[loaded]
    raise ImportError(f"{module} needs more than {_ATTEMPTS} packages that are not here")
