"""The names of `typing` used in preflight's type hints, without importing `typing` at run time.

Hints are not evaluated when a check runs, and to import `typing` takes 10 of the 390 million instructions of a cold
check of one YAML file. A hint that is evaluated nevertheless (an alias such as `Literal["a", "b"] | None`) is an empty
class; `Annotated` keeps its arguments, because the options of the command line are read from it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO as IO
    from typing import Annotated as Annotated
    from typing import Any as Any
    from typing import BinaryIO as BinaryIO
    from typing import Literal as Literal
    from typing import NoReturn as NoReturn
    from typing import Protocol as Protocol
    from typing import TextIO as TextIO
    from typing import TypeGuard as TypeGuard
    from typing import TypeVar as TypeVar
    from typing import cast as cast
else:

    class Hint:
        """A placeholder for any hint, and for the base class of a protocol."""

        __slots__ = ()

        def __class_getitem__(cls, of):
            return cls

    IO = Any = BinaryIO = Literal = NoReturn = Protocol = TextIO = TypeGuard = Hint

    class Annotated:
        """A hint with its metadata, with the attribute names of `typing`."""

        __slots__ = ("__metadata__", "__origin__")

        def __init__(self, origin, *metadata):
            self.__origin__, self.__metadata__ = origin, metadata

        def __class_getitem__(cls, of):
            return cls(*of)

    def TypeVar(name, *constraints, **more):
        """A placeholder for type variables."""
        return Hint

    def cast(kind, value):
        """Return the value unchanged."""
        return value
