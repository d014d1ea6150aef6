"""Makes functions of the program callable by Python itself."""

from __future__ import annotations

import argparse
import functools

from preflight.program.values import Raised, Unknown, Value
from preflight.source.typing_without_import import Any


class Bridge:
    """A function of the program, or a method of a class that Python itself calls."""

    __slots__ = ("function", "run")

    def __init__(self, run: Any, function: Value) -> None:
        self.run, self.function = run, function

    @property
    def __name__(self) -> str:
        return str(getattr(self.function, "name", "function"))

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.run.call(self.function, list(given), dict(named))

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)


class Converter(Bridge):
    """A type function of the program, called by argparse."""

    __slots__ = ()

    def __call__(self, text: str) -> Any:
        try:
            return self.run.call(self.run.force(self.function), [text], {})
        except Raised as raised:
            if isinstance(raised.error, (TypeError, ValueError, argparse.ArgumentTypeError)):
                raise raised.error from None
            raise


def unknown_type(text: str) -> Unknown:
    """The result of an option's type function that is unknown."""
    return Unknown(gaps=("the type of an option",))
