"""A section lacks a key that it must have, or is not of the form that it must have.

## What it does
Checks the keys that the template of a release demands of a section that is present (`type` of the trainer, the
optimizer, the wrapper, each callback; `model.model_config`, and `model.arch` in 1.5), and that sections are mappings
and `callbacks` is a list.

## Why is this bad?
The file is refused when it is loaded, on every rank.

## Example
    runner_wrapper:
      use_clip_grad: True

Use instead:

    runner_wrapper:
      type: MFTrainOneStepCell
      use_clip_grad: True

## Fix safety
Unsafe: the type that the template would give, or the trainer of language models, may not be the one that was meant.

## References
MindFormers v1.5.0, mindformers/tools/register/template.py:109, Config._update_value, and :72 and :191, apply
MindFormers 2.1.0, mindformers/trainer/trainer.py:456, Trainer.train; mindformers/trainer/trainer.py:1542, of callbacks
once more
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule
from preflight.dialects.mindformers.namespace import TRAINING
from preflight.dialects.mindformers.release_tables import Table, read_at, table
from preflight.loaders.document import Entry, Node

_FILE = "mindformers/tools/register/template.py"
_GENERAL = ("runner_config", "context", "parallel", "trainer", "model", "moe_config", "parallel_config")
_TRAIN = (
    *(
        "recompute_config",
        "swap_config",
        "runner_wrapper",
        "optimizer",
        "lr_schedule",
        "metric",
        "train_dataset",
        "train_dataset_task",
        "callbacks",
    ),
    "monitor_config",
)
_EVAL = ("eval_dataset", "eval_dataset_task", "eval_callbacks", "metric")
_LISTS = ("callbacks", "eval_callbacks")
_TRAINER = "CausalLanguageModelingTrainer"
_REGISTER = {"1.5.0": 312, "1.7.0": 393, "2.1.0": 393}
_RUN = {
    "1.5.0": "mindformers/trainer/trainer.py:1362",
    "1.7.0": "mindformers/trainer/trainer.py:1404",
    "2.1.0": "mindformers/trainer/trainer.py:456",
}


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
    tree, kind = job.arguments.tree, job.arguments.get("kind").raw
    if tree is None or job.arguments.open:
        return
    t = table(job.target.version)
    if not t.templated:
        return
    wanted = _sections(job)
    for entry in tree.entries:
        name = entry.key.value
        if name in wanted and not entry.shadowed and not (name == "moe_config" and kind == "mcore"):
            yield from _section(
                str(name), entry, t, mcore=kind == "mcore", fixable=entry.key.span.source is job.documents[0].source
            )
    if job.arguments.get("run_mode").raw in TRAINING and tree.get("model") is None:
        yield Finding(
            "there is no model section, so there is nothing to train",
            tree.span._replace(end=tree.span.start),
            upstream=_RUN[read_at(t.version)],
        )


def _sections(job: Job) -> tuple[str, ...]:
    """The sections that the template of the run mode looks at."""
    mode = job.arguments.get("run_mode").raw
    if mode in TRAINING:
        return (*_GENERAL, *_TRAIN, *(_EVAL if job.arguments.get("do_eval").raw is True else ()))
    return (*_GENERAL, *(_EVAL if mode == "eval" else ("processor",) if mode == "predict" else ()))


def _section(name: str, entry: Entry, t: Table, *, mcore: bool, fixable: bool) -> Iterator[Finding]:
    node = entry.value
    if node.value is None:
        return
    if name in _LISTS:
        yield from _list(name, node)
    elif node.kind != "mapping":
        message = Message("{name} must be a mapping, not {node!r}", name=name, node=node.shown[:30])
        yield Finding(message, node.span, key=(name,), upstream=f"{_FILE}:72")
    else:
        yield from _lacking(name, entry, t, _place(name, mcore=mcore, t=t), fixable)
        yield from _trainer(name, node, t)


def _list(name: str, node: Node) -> Iterator[Finding]:
    """A section whose entries are built one by one."""
    if node.kind != "sequence":
        message = Message("{name} must be a list, each entry with its type", name=name)
        yield Finding(message, node.span, key=(name,), upstream=f"{_FILE}:191")
        return
    for index, item in enumerate(node.items):
        key = (name, index)
        if item.kind != "mapping":
            shown = repr(item.shown[:30]) if item.shown else Message("empty")
            message = Message(
                "entry {index} of {name} is {shown}; it must be a mapping with a type",
                index=index,
                name=name,
                shown=shown,
            )
            yield Finding(message, item.span, key=key, upstream=f"{_FILE}:110")
        elif item.get("type") is None:
            message = Message("entry {index} of {name} has no type", index=index, name=name)
            yield Finding(message, item.span, key=key, upstream=f"{_FILE}:109")


def _lacking(name: str, entry: Entry, t: Table, place: str, fixable: bool) -> Iterator[Finding]:
    """The keys that the template demands and the section does not have."""
    node = entry.value
    for key in t.required.get(name, ()):
        if not _has(node, key) and node.entries:
            usual = _TRAINER if name == "trainer" else t.sections.get(name, {}).get(key) if key == "type" else None
            fix = None
            if isinstance(usual, str) and fixable:
                fix = Fix(f"set it to {usual}, which is usual", (Edit("set", (name, key), usual),))
            message = Message("{name} has no {key}; it is required", name=name, key=key)
            yield Finding(message, entry.key.span, key=(name,), fix=fix, upstream=place)


def _trainer(name: str, node: Node, t: Table) -> Iterator[Finding]:
    kind = node.get("type")
    if name == "trainer" and kind is not None and kind.value is None and read_at(t.version) in _REGISTER:
        place = f"mindformers/tools/register/register.py:{_REGISTER[read_at(t.version)]}"
        yield Finding("trainer.type is null; it must name the trainer", kind.span, key=(name, "type"), upstream=place)


def _has(node: Node, key: str) -> bool:
    return any(entry.key.value == key for entry in node.entries)


def _place(name: str, *, mcore: bool, t: Table) -> str:
    return f"{_FILE}:109" if name != "model" or not mcore or read_at(t.version) != "2.1.0" else _RUN["2.1.0"]
