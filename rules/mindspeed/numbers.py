"""Lists of numbers that MindSpeed takes as text: "3,3,2" and "[[2,1],[1]*3]"."""

from __future__ import annotations

import re

Nested = list["int | Nested"]


def entries(text: object) -> tuple[int, ...] | None:
    """The numbers of "1,2,3", or None for anything else."""
    parts = str(text).split(",")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else None


def nested(text: str) -> Nested | None:
    """Lists in brackets with `*` for repetition, as MindSpeed reads them: everything else is skipped. None:
    not readable."""
    stack: list[Nested] = [[]]
    tokens = iter(re.findall(r"\d+|\*|\[|\]", text))
    for token in tokens:
        if token == "[":
            stack.append([])
        elif token == "]":
            if len(stack) == 1:
                return None
            done = stack.pop()
            stack[-1].append(done)
        elif token == "*":
            times = next(tokens, "")
            if not times.isdigit() or not stack[-1] or int(times) > 4096:
                return None
            stack[-1].extend([stack[-1].pop()] * int(times))
        else:
            stack[-1].append(int(token))
    first = stack[0][0] if len(stack) == 1 and stack[0] else None
    return first if isinstance(first, list) else None
