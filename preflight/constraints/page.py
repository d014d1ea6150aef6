"""The documentation page of a declared constraint, written from its entry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from preflight.constraints.expressions import Expression, Handle


class Declared(Protocol):
    """What a page says of a declared constraint."""

    @property
    def message(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def refuse(self) -> Expression: ...
    @property
    def framework(self) -> str: ...
    @property
    def versions(self) -> str: ...
    @property
    def upstream(self) -> str | Mapping[str, str]: ...
    @property
    def severity(self) -> str: ...
    @property
    def since(self) -> str: ...
    @property
    def also(self) -> tuple[str, ...]: ...
    @property
    def fixes(self) -> tuple[Any, ...]: ...


_WORDS = {"is none": "is not set", "not": "not", "has": "contains", "startswith": "starts with"}


def _before(since: str) -> str:
    framework, _, release = since.rpartition("@")
    return f"{framework} before {release}" if framework else f"those before {release}"


def page(constraint: Declared) -> str:
    """Markdown with the headings that every rule's page has."""
    sources = [constraint.upstream] if isinstance(constraint.upstream, str) else [f"{place} ({version})" for version, place in constraint.upstream.items()]
    message = re.sub(r"\{([A-Za-z_][\w.]*)\}", r"‹\1›", constraint.message)
    lines = [
        message,
        "",
        "## What it does",
        f"{'Refuses' if constraint.severity == 'error' else 'Points at'} a run where `{words(constraint.refuse)}`."
        + (
            f" A warning where nobody says the release: {_before(constraint.since)} {'takes' if '@' in constraint.since else 'take'} it."
            if constraint.since
            else ""
        ),
        "",
        "## Why is this bad?",
        constraint.why[:1].upper() + constraint.why[1:] + ("" if constraint.why.endswith(".") else "."),
    ]
    if constraint.fixes:
        lines += ["", "## Fix safety", f"{'Safe' if constraint.fixes[0].safety == 'safe' else 'Unsafe: it changes what is run'}."]
    sources += constraint.also
    versions = f" (versions {constraint.versions})" if constraint.versions else ""
    lines += ["", "## References", *(f"{constraint.framework}{versions}: {source}" for source in sources)]
    return "\n".join(lines)


def words(node: object) -> str:
    """An expression as people read it."""
    if isinstance(node, Handle):
        return {"given": f"{node.name} is given", "written": f"{node.name} as written", "environment": f"${node.name}"}.get(node.view, node.name)
    if not isinstance(node, Expression):
        return repr(node)
    parts = [words(part) for part in node.parts]
    if node.op in ("and", "or"):
        return f" {node.op} ".join(f"({p})" if isinstance(q, Expression) and q.op in ("and", "or") else p for p, q in zip(parts, node.parts, strict=True))
    if node.op == "not":
        inner = node.parts[0]
        return f"{words(inner.parts[0])} is set" if isinstance(inner, Expression) and inner.op == "is none" else f"not ({parts[0]})"
    if node.op == "is none":
        return f"{parts[0]} is not set"
    if node.op == "in":
        return f"{parts[0]} is one of {', '.join(parts[1:])}"
    if node.op in ("has", "startswith"):
        return f"{parts[0]} {_WORDS[node.op]} {parts[1]}"
    if node.op in ("len", "count", "min", "max"):
        return f"{'number of true' if node.op == 'count' else node.op}({', '.join(parts)})"
    return f" {node.op} ".join(parts)
