"""Mappings are nested deeper than the framework reads.

## What it does
Counts how deep mappings are nested; lists end the count, as in the framework's own check. More than 10 is
refused.

## Why is this bad?
The file is refused before it is parsed, on every rank.

## Example
    a: {b: {c: {d: {e: {f: {g: {h: {i: {j: {k: 1}}}}}}}}}}

Use instead a flatter mapping.

## References
MindFormers v1.5.0, mindformers/tools/check_rules.py:377, check_yaml_depth_before_loading
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.dialects.mindformers.config_files import MAX_NESTING
from preflight.loaders.document import Node
from preflight.run.versions import matches

_CHECKS = "mindformers/tools/check_rules.py"
UPSTREAM = {
    "mindformers@1.5.0": f"{_CHECKS}:377",
    "mindformers@1.7.0": f"{_CHECKS}:372",
    "mindformers@2.1.0": f"{_CHECKS}:396",
    "pynative": f"{_CHECKS}:396",
}


@rule(severity=Severity.ERROR, frameworks=("mindformers", "pynative"))
def check(job: Job) -> Iterator[Finding]:
    if not matches(job.target.version, ">=1.5"):
        return
    for document in job.documents:
        if document.tree is not None and not document.source.name.endswith(".json"):
            deepest = _deepest(document.tree)
            if deepest is not None:
                message = Message("mappings are nested more than {max_nesting} deep here", max_nesting=MAX_NESTING)
                yield Finding(message, deepest.span, upstream=job.upstream(UPSTREAM))


def _deepest(tree: Node) -> Node | None:
    """The first mapping that is too deep."""
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if node.kind == "mapping" and depth >= MAX_NESTING and node.entries:
            return node
        if node.value:
            stack += [(entry.value, depth + 1) for entry in reversed(node.entries) if entry.value.kind == "mapping"]
    return None
