"""Scalars as OmegaConf reads them: numbers such as 1e-5 are numbers, dates are texts."""

from __future__ import annotations

import datetime
import re

from preflight.loaders.document import Entry, Node
from preflight.loaders.yaml_scalars import MAX_DIGITS
from preflight.source.pattern import lazy_pattern

_FLOAT = lazy_pattern(
    r"""(?:[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
        |[-+]?[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)
        |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?)""",
    re.VERBOSE,
)
MAX_DEPTH = 200


def omegaconf_values(node: Node) -> Node:
    """A tree with its scalars as OmegaConf reads them; the same tree where nothing differs."""
    if node.kind == "scalar":
        return _scalar(node)
    if node.kind == "sequence":
        items = tuple(omegaconf_values(item) for item in node.items)
        same = all(new is old for new, old in zip(items, node.items, strict=True))
        return node if same else node._replace(value=items)
    entries = tuple(_entry(entry) for entry in node.entries if not entry.shadowed)
    same = len(entries) == len(node.entries) and all(a is b for a, b in zip(entries, node.entries, strict=True))
    return node if same else node._replace(value=entries)


def _entry(entry: Entry) -> Entry:
    value = omegaconf_values(entry.value)
    return entry if value is entry.value else entry._replace(value=value)


def _scalar(node: Node) -> Node:
    value = node.value
    if node.style == "" and isinstance(value, str) and len(value) <= MAX_DIGITS and _FLOAT.fullmatch(value):
        return node._replace(value=float(value.replace("_", "")))
    if isinstance(value, datetime.date) and node.style == "":
        return node._replace(value=node.span.text)
    return node
