"""Checks for missing keys and sections."""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Related, Severity, rule
from preflight.dialects.mindformers.graph_namespace import TRAINING
from preflight.dialects.mindformers.registry import trains
from preflight.dialects.mindformers.release_tables import Table, read_at, table
from preflight.loaders.document import Entry, Node
from preflight.source.typing_without_import import TypeGuard

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


@rule(id="missing-key", severity=Severity.ERROR, frameworks=("mindformers",))
def missing_key(job: Job) -> Iterator[Finding]:
    """A section lacks a required key or has the wrong form.

    ## What it does
    Checks that a section contains the keys that the template of the release requires (`type` of the trainer, the
    optimizer, the wrapper and each callback; `model.model_config`, and `model.arch` in 1.5), that sections are
    mappings, and that `callbacks` is a list.

    ## Why is this bad?
    Loading the file fails, on every rank.

    ## Example
        runner_wrapper:
          use_clip_grad: True

    Use instead:

        runner_wrapper:
          type: MFTrainOneStepCell
          use_clip_grad: True

    ## Fix safety
    Unsafe: the type that the template uses, or the trainer for language models, may not be the intended one.

    ## References
    MindFormers v1.5.0, mindformers/tools/register/template.py:109, Config._update_value, and :72 and :191, apply
    MindFormers 2.1.0, mindformers/trainer/trainer.py:456, Trainer.train; mindformers/trainer/trainer.py:1542, of callbacks
    once more
    """
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
    """The sections that the template of the run mode checks."""
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
    """Checks a section whose entries are built one by one."""
    if node.kind != "sequence":
        message = Message("{name} must be a list in which each entry has a type", name=name)
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
    """The keys that the template requires and the section lacks."""
    node = entry.value
    for key in t.required.get(name, ()):
        if not _has(node, key) and node.entries:
            usual = _TRAINER if name == "trainer" else t.sections.get(name, {}).get(key) if key == "type" else None
            fix = None
            if isinstance(usual, str) and fixable:
                fix = Fix(f"set it to the usual value, {usual}", (Edit("set", (name, key), usual),), explained=True)
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


_SECTION_LEFT_OUT_LINE = {"1.5.0": 676}


@rule(id="section-left-out", severity=Severity.WARNING, frameworks=("mindformers",), after=("missing-key",))
def section_left_out(job: Job) -> Iterator[Finding]:
    """A section that training needs is missing, so the framework uses the section of its template.

    ## What it does
    Finds training configs without `lr_schedule`, `optimizer` or `callbacks`, which releases since 1.5 fill in from
    their template, and names the replacement. A section in a `base_config` counts as present.

    ## Why is this bad?
    Only one log line mentions the replacement. Without `lr_schedule`, the run uses a cosine schedule from 5e-5 to 0,
    regardless of `optimizer.learning_rate`. Without `callbacks`, no checkpoint is ever saved.

    ## Example
        run_mode: train
        optimizer: {type: AdamW, learning_rate: 1.0e-6}

    Use instead:

        run_mode: train
        optimizer: {type: AdamW}
        lr_schedule: {type: ConstantWarmUpLR, learning_rate: 1.0e-6, warmup_steps: 0}
        callbacks:
          - type: MFLossMonitor
          - type: CheckpointMonitor

    ## Fix safety
    There is no fix, because the intended section is unknown.

    ## References
    MindFormers v1.5.0, mindformers/tools/register/template.py:676, ConfigTemplate._apply_template; v1.7.0 and 2.1.0, :687
    """
    a, tree = job.arguments, job.arguments.tree
    if tree is None or a.open or not table(job.target.version).templated or not trains(a) or tree.get("model") is None:
        return
    for name, filled in _filled(job).items():
        node = tree.get(name)
        if (node is None or node.value in (None, (), {})) and not any(key.startswith(f"{name}.") for key in a.written):
            message = Message(
                "{name} is missing: {filled}" if node is None else "{name} is empty: {filled}",
                name=name,
                filled=filled,
            )
            place = f"{_FILE}:{_SECTION_LEFT_OUT_LINE.get(read_at(job.target.version), 687)}"
            yield Finding(
                message,
                node.span if node is not None else tree.span._replace(end=tree.span.start),
                key=(name,),
                upstream=place,
            )


def _filled(job: Job) -> dict[str, str]:
    """The template's replacement for a missing section."""
    sections = table(job.target.version).sections
    typed, schedule = job.arguments.given("optimizer.learning_rate"), sections["lr_schedule"]
    anyway = (
        Message(", and optimizer.learning_rate {rate} is not used", rate=typed.raw)
        if typed is not None and typed.known
        else ""
    )
    grouped = job.arguments.get("grouped_lr_schedule").raw is not None
    rate = Message(
        "training uses {type} from {start} to {end}{anyway}",
        type=schedule["type"],
        start=schedule["learning_rate"],
        end=schedule["lr_end"],
        anyway=anyway,
    )
    optimizer = sections["optimizer"]
    adam = Message(
        "training uses {type} with betas {betas} and no weight decay",
        type=optimizer["type"],
        betas=optimizer["betas"],
    )
    return {
        **({} if grouped else {"lr_schedule": rate}),
        "optimizer": adam,
        "callbacks": "no checkpoint will be saved",
    }


_TEMPLATE_NOT_FILLED_LINE = {"1.5.0": 288, "1.7.0": 357, "2.1.0": 357}


@rule(id="template-not-filled", severity=Severity.ERROR, frameworks=("mindformers",))
def template_not_filled(job: Job) -> Iterator[Finding]:
    """The config is a template in which the data and the network are not filled in.

    ## What it does
    Finds training configs in which both `train_dataset` and `model.arch` are present but empty, as in the template that
    MindFormers ships (`configs/general/run_general_task.yaml`). The missing data are not reported a second time.

    ## Why is this bad?
    The trainer reads the data section first and then builds the network by its type, so the run crashes at startup.

    ## Example
        train_dataset:
        model:
          arch:
    Use instead:
        train_dataset:
          data_loader: {type: MindDataset, dataset_dir: /data}
        model:
          arch: {type: LlamaForCausalLM}

    ## References
    MindFormers v1.5.0, mindformers/tools/register/register.py:288
    MindFormers v1.7.0 and 2.1.0, mindformers/tools/register/register.py:357
    """
    tree = job.arguments.tree
    if tree is None or job.arguments.open or job.arguments.get("training").raw is not True:
        return
    model, data = tree.get("model"), tree.get("train_dataset")
    arch = model.get("arch") if model is not None else None
    if not _empty(data) or not _empty(arch):
        return
    line = _TEMPLATE_NOT_FILLED_LINE.get(read_at(job.target.version), _TEMPLATE_NOT_FILLED_LINE["1.5.0"])
    yield Finding(
        "train_dataset and model.arch are empty, so this is a template that must still be filled in",
        data.span,
        (Related(arch.span),),
        key=("train_dataset",),
        upstream=f"mindformers/tools/register/register.py:{line}",
    )


def _empty(node: Node | None) -> TypeGuard[Node]:
    return node is not None and node.kind == "scalar" and node.value is None
