"""PyYAML, without the patterns that it compiles as it is imported: one of its pure-Python reader alone takes longer than a config.

The parser in C uses none of them. Each is compiled when something asks for it, so whoever else uses PyYAML finds it whole.
"""

from __future__ import annotations

import re
import sys
from typing import Any

_compile = re.compile


class _Pattern:
    """A pattern that is compiled when it is first used."""

    def __init__(self, *given: Any) -> None:
        self._given = given

    def __getattr__(self, name: str) -> Any:
        self.__dict__.update({method: getattr(_compile(*self._given), method) for method in ("match", "search", "sub", "pattern", "flags")})
        return self.__dict__[name]


def _compiled_later(pattern: Any, flags: Any = 0) -> Any:
    caller = sys._getframe(1).f_globals["__name__"]
    return _Pattern(pattern, flags) if caller.startswith("yaml.") else _compile(pattern, flags)


re.compile = _compiled_later
try:
    import yaml as yaml
finally:
    re.compile = _compile
