"""PyYAML, without the patterns that it compiles as it is imported:
one of its pure-Python reader alone takes longer than a config.

The parser in C uses none of them. Each is compiled when something asks for it, so whoever else uses PyYAML finds it
whole.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from preflight.source.pattern import LazyPattern

_compile = re.compile


def _compiled_later(pattern: Any, flags: Any = 0) -> Any:
    caller = sys._getframe(1).f_globals["__name__"]
    return LazyPattern(pattern, flags, _compile) if caller.startswith("yaml.") else _compile(pattern, flags)


re.compile = _compiled_later
try:
    import yaml as yaml
finally:
    re.compile = _compile
