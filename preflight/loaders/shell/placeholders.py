"""Placeholders such as `<Specify path>` that somebody should have filled in."""

from __future__ import annotations

import re

from preflight.source.pattern import lazy_pattern

UNFILLED = lazy_pattern(
    r"^([ \t]*(?:export[ \t]+)?[A-Za-z_]\w*=)(<[A-Za-z][^<>\n|;&]*>)(?=[\w./-]*[ \t]*$)"
    r"|(?<=[\s\"'])(<[A-Za-z](?:[\w ./-]*\w)?>)(?=[\s\"');&|]|\Z)"
    r"|(?<=[=/])(<[A-Za-z](?:[\w ./-]*\w)?>)(?=[\s\"'/._;&|)-]|\Z)"
    r"|(?<=[\s\"'])(<[A-Za-z][\w.-]*(?: [\w.-]+)+>)(?=/)",
    re.MULTILINE,
)
"""A placeholder, a word to whoever writes it and redirections to bash and to the grammar, which would take the next
line with it."""


def without_placeholders(text: str) -> str:
    """The text with a plain word of the same length for each placeholder."""
    return UNFILLED.sub(lambda m: (m[1] or "") + "%" * len(m[2] or m[3] or m[4] or m[5]), text)
