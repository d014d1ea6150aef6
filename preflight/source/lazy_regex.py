"""Regular expressions that are compiled on first use, because a check uses few of those in its modules."""

from __future__ import annotations

import re
from collections.abc import Callable

from preflight.source.typing_without_import import TYPE_CHECKING, Any

METHODS = ("match", "fullmatch", "search", "sub", "finditer", "findall", "split", "pattern", "flags")


class LazyPattern:
    """A pattern that is compiled when one of its methods is first accessed."""

    def __init__(self, text: Any, flags: Any = 0, compile: Callable[..., Any] = re.compile) -> None:
        self._given, self._compile = (text, flags), compile

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        compiled = self._compile(*self._given)
        self.__dict__.update({method: getattr(compiled, method) for method in METHODS})
        return self.__dict__[name]


if TYPE_CHECKING:
    lazy_pattern = re.compile
else:
    lazy_pattern = LazyPattern
