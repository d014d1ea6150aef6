"""A key seems to belong to the section above it, but its indentation is missing.

## What it does
Finds keys at the top level, or in `model`, that nothing reads there and that the section right above them could have,
such as `weight_decay` after `optimizer` or `pet_config` after `model_config`. Nothing is reported if that section has
the key as well, if the section is of an unknown class, or if the config registers classes from elsewhere.

## Why is this bad?
Unknown keys at these levels are silently ignored, so the run trains with the defaults, such as no weight decay or no
adapters.

## Example
    optimizer:
      type: AdamW
      betas: [0.9, 0.95]
    weight_decay: 0.1

Use instead:

    optimizer:
      type: AdamW
      betas: [0.9, 0.95]
      weight_decay: 0.1

## References
MindFormers v1.5.0, mindformers/tools/register/config.py:63, MindFormerConfig: every key of the file is kept
MindFormers v1.5.0, mindformers/trainer/base_trainer.py: sections are read by name
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule, schemas
from preflight.dialects.mindformers.known_keys import CONTEXT, DATASET, MODEL, PARALLEL, SECTIONS
from preflight.dialects.mindformers.registry import registers, trains
from preflight.dialects.mindformers.release_tables import table
from preflight.loaders.document import Entry, Node

BUILT = ("optimizer", "lr_schedule", "runner_wrapper")
FIXED = {"context": CONTEXT, "parallel": PARALLEL, "train_dataset": DATASET, "model_config": frozenset(MODEL)}
NOT_THERE = frozenset(["type", "seed", "batch_size", "profile", "auto_register"])
"""Names of many sections, also read at the top level in some release."""


@rule(severity=Severity.WARNING, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
    a, tree = job.arguments, job.arguments.tree
    if a.get("kind").raw not in ("legacy", "mcore") or not trains(a) or tree is None or registers(a, job.documents[0]):
        return
    t = table(job.target.version)
    known = {*t.general, *SECTIONS, *t.sections}
    yield from _outside(job, tree, known, {name: frozenset(keys) for name, keys in t.sections.items()})
    model = tree.get("model")
    if model is not None and model.kind == "mapping":
        yield from _outside(job, model, {"arch", "model_config", "generation_config", *NOT_THERE}, {})


def _outside(job: Job, level: Node, known: set[str], sections: dict[str, frozenset[str]]) -> Iterator[Finding]:
    """Keys of a level that belong to the section above them."""
    above: Entry | None = None
    for entry in level.entries:
        name = entry.key.value
        if name in known:
            above = entry if entry.value.kind == "mapping" else None
        elif above is not None and isinstance(name, str) and not entry.shadowed and name not in NOT_THERE:
            section = str(above.key.value)
            taken = {inner.key.value for inner in above.value.entries}
            if name in _keys(above, sections) and name not in taken:
                template = "{name} is outside of {section}, where nothing reads it; the indentation may be lost"
                yield Finding(Message(template, name=name, section=section), entry.key.span, key=(name,))


def _keys(above: Entry, sections: dict[str, frozenset[str]]) -> frozenset[str]:
    """The keys that a section can have."""
    section, kind = str(above.key.value), above.value.get("type")
    if section in BUILT:
        row = schemas.read("mindformers/parameters")[section].get(str(kind.value)) if kind is not None else None
        return frozenset(row["names"]) if row is not None else frozenset()
    return FIXED.get(section, sections.get(section, frozenset()))
