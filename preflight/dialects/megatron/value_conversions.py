"""Converts the text of an option's value to what the parser stores, like upstream's type functions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from preflight.dialects.megatron.options import Flag
from preflight.source.typing_without_import import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ast

LONGEST = 100_000
"""Maximum length of a list of layers; "[1]*1000000000" is not expanded."""


def written(text: str) -> Any:
    """The value of digits, brackets, commas, + and *. Raises ValueError,
    TypeError or SyntaxError as upstream's `eval` would."""
    if re.search(r"[^,\d\[\]()+*]", text) or len(text) > LONGEST:
        raise ValueError(text)
    import ast

    return _walk(ast.parse(text, mode="eval").body)


def _walk(node: ast.AST) -> Any:
    import ast

    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        items = [_walk(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        left, right = _walk(node.left), _walk(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        size = [len(side) for side in (left, right) if isinstance(side, (list, tuple))]
        times = [side for side in (left, right) if isinstance(side, int)]
        if size and times and max(size[0], 1) * times[0] > LONGEST:
            raise ValueError("too long")
        return left * right
    raise ValueError(ast.dump(node))


GRAPH_MODULES = (
    "attn",
    "mlp",
    "moe",
    "moe_router",
    "moe_preprocess",
    "mamba",
    "full",
    "full_iteration",
    "full_iteration_inference",
)
LIST = "an integer or a list such as [0]*1+[1]*3"
YES, NO = ("yes", "true", "t", "y", "1"), ("no", "false", "f", "n", "0")
WORDS = {
    "int": "an integer",
    "float": "a number",
    "ints": "integers separated by commas",
    "truth": "true or false",
    "yesno": "true or false",
    "json": "JSON",
    "pattern": LIST,
}


class BadValue(ValueError):
    """The text is refused; the message names the expected form. choices: the allowed values. crash: as in Problem."""

    def __init__(self, wanted: str, choices: tuple[Any, ...] = (), crash: str = "") -> None:
        super().__init__(wanted)
        self.wanted, self.choices, self.crash = wanted, choices, crash


def convert(flag: Flag, text: str) -> Any:
    """One value. Raises BadValue."""
    if flag.kind == "enum":
        if text not in (flag.choices or ()):
            raise BadValue("one of the names", flag.choices or (), "enum")
        return text
    try:
        value = _READ[flag.kind](text)
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError) as error:
        choices = GRAPH_MODULES if flag.kind == "graph" else ()
        crash = "pattern" if isinstance(error, SyntaxError) else ""  # argparse does not catch this exception
        raise BadValue(WORDS.get(flag.kind, "another value"), choices, crash) from None
    if flag.choices is not None and value not in flag.choices:
        raise BadValue("one of the choices", flag.choices)
    return value


def _int(text: str) -> int:
    if len(text) > 4000:
        raise ValueError
    return int(text)


def pattern(text: str) -> Any:
    """An integer, or a list written with digits, brackets, commas, + and *."""
    if "[" not in text:
        return _int(text)

    return written(text)


def _ints(text: str) -> tuple[int, ...]:
    return tuple(_int(part) for part in text.strip("()").split(","))


def _graph(text: str) -> str:
    if text not in GRAPH_MODULES:
        raise ValueError(text)
    return text


def _truth(text: str) -> bool | None:
    return {"true": True, "false": False, "none": None}[text.lower()]


def _yesno(text: str) -> bool:
    return {**dict.fromkeys(YES, True), **dict.fromkeys(NO, False)}[text.lower()]


def _swap(text: str) -> float:
    return 65.0 if text == "all" else float(text)


_READ: dict[str, Callable[[str], Any]] = {
    "int": _int,
    "float": float,
    "str": str,
    "bool": bool,
    "pattern": pattern,
    "ints": _ints,
    "graph": _graph,
    "truth": _truth,
    "yesno": _yesno,
    "json": json.loads,
    "swap": _swap,
}
