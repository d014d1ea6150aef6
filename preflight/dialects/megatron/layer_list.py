"""The value of a list of layers as people write it: [0]*1+[1]*3."""

from __future__ import annotations

import ast
import re
from typing import Any

LONGEST = 100_000
"""No list of layers is longer; "[1]*1000000000" is not expanded."""


def written(text: str) -> Any:
    """The value of digits, brackets, commas, + and *. Raises ValueError,
    TypeError or SyntaxError as upstream's `eval` would."""
    if re.search(r"[^,\d\[\]()+*]", text) or len(text) > LONGEST:
        raise ValueError(text)
    return _walk(ast.parse(text, mode="eval").body)


def _walk(node: ast.AST) -> Any:
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
        if size and times and size[0] * times[0] > LONGEST:
            raise ValueError("too long")
        return left * right
    raise ValueError(ast.dump(node))
