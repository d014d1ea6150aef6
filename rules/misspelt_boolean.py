"""A string instead of True or False, which counts as true.

## What it does
Finds plain YAML scalars that are nearly `True` or `False` (`Flase`, `Ture`, `Fasle`), and `"True"` or `"False"` in
quotes where the setting is a switch: by its name, or because its default is one.

## Why is this bad?
Any text that is not empty is true to Python. `use_parallel: Flase` starts distributed training; `"False"` switches on.

## Example
    use_parallel: Flase

Use instead:

    use_parallel: False

## Fix safety
Unsafe: the setting gets the value that was meant instead of the opposite.

## References
YAML 1.1, the boolean type; PyYAML resolver: only the words yes, no, true, false, on, off are booleans
"""

from collections.abc import Iterator
from functools import lru_cache

from preflight import Edit, Finding, Fix, Job, Message, Safety, Severity, rule
from preflight.job import OF_YAML
from preflight.loaders.document import Document, Node, walk
from preflight.source.finding import Key
from preflight.source.spelling import meant_boolean

_WORDS = {"true": True, "false": False}
_NAMES = ("use_", "enable_", "is_", "do_")


@rule(
    severity=Severity.WARNING,
    beside=("wrong-type", "pynative-wrong-type", "class-argument-refused", "bad-recompute-value"),
    reads=(OF_YAML,),
)
def check(job: Job) -> Iterator[Finding]:
    for document in job.documents:
        if document.kind == "yaml" and not document.source.name.endswith(".json") and any(map(_near, document.texts)):
            yield from _of(job, document)


def _of(job: Job, document: Document) -> Iterator[Finding]:
    assert document.tree is not None
    seen: set[int] = set()
    for key, node, entry in walk(document.tree):
        if entry is None or not isinstance(node.value, str) or id(node) in seen:
            continue
        seen.add(id(node))
        meant = _meant(node, switch=str(key[-1]).startswith(_NAMES) or _switches(job, key))
        if meant is not None:
            shown = node.span.text
            fix = (
                Fix(f"write {meant}", (Edit("set", key, meant),), Safety.UNSAFE)
                if document is job.documents[0]
                else None
            )
            message = Message(
                "{name} is the text {shown}, which counts as true; did you mean {meant}?",
                name=key[-1],
                shown=shown,
                meant=meant,
            )
            yield Finding(message, node.span, key=key, fix=fix)


@lru_cache(maxsize=4096)
def _near(text: str) -> bool:
    """Whether a text is a switch's value, or nearly."""
    return meant_boolean(text) is not None


def _switches(job: Job, key: Key) -> bool:
    """Whether the framework's own default of a setting is True or False."""
    name = ".".join(map(str, key))
    names = (
        (name, name.replace("model.model_config.", "mcore.", 1)) if name.startswith("model.model_config.") else (name,)
    )
    return any(isinstance(job.arguments.default(one).raw, bool) for one in names)


def _meant(node: Node, *, switch: bool) -> bool | None:
    """The boolean that a text most likely means, or None."""
    text = str(node.value).strip()
    if node.style in ("|", ">"):
        return None
    lower = text.lower()
    if lower in _WORDS:
        return _WORDS[lower] if switch or not node.style else None
    return None if node.style else meant_boolean(lower)
