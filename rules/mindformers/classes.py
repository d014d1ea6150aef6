"""Checks of the classes that a config names."""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Severity, Value, rule
from preflight.dialects.mindformers.config_kind_and_loading import GONE
from preflight.dialects.mindformers.registry import built, classes, registers
from preflight.dialects.mindformers.release_tables import read_at, table
from preflight.loaders.document import Node
from preflight.run.version_ranges import matches
from preflight.source.spelling import slip_of

_FILE = "mindformers/tools/register/register.py"
_NO_SECTION = {"1.5.0": 288, "1.7.0": 357, "2.1.0": 357}
_NO_TYPE = {"1.5.0": 289, "1.7.0": 367, "2.1.0": 367}
_NULL_TYPE = {"1.5.0": 312, "1.7.0": 393, "2.1.0": 393}
_NO_TEXT = {"1.5.0": 255, "1.7.0": 291, "2.1.0": 291}
_CONFIG = {"1.5.0": 433, "1.7.0": 446, "2.1.0": 456}
_USUAL = {"LlamaConfig": "LlamaForCausalLM"}
_TRAINER = "CausalLanguageModelingTrainer"


@rule(id="class-missing", severity=Severity.ERROR, frameworks=("mindformers",))
def class_missing(job: Job) -> Iterator[Finding]:
    """A section does not name its class.

    ## What it does
    Checks that `trainer` has a type and, in a legacy config, that `model.arch` and `model.model_config` have one. A
    section that is missing, null or empty has no type. Each type, in these and the other sections of a training run,
    must be a string.

    ## Why is this bad?
    The framework looks the trainer and the network up by this name. Without the name, every rank crashes at startup.
    The config of an mcore network does not name a type; without `use_legacy: False`, it is treated as a legacy config.

    ## Example
        model:
          arch: {}
          model_config: {type: LlamaConfig}
    Use instead:
        model:
          arch: {type: LlamaForCausalLM}
          model_config: {type: LlamaConfig}

    ## Fix safety
    Unsafe: the usual class may not be the intended one.

    ## References
    MindFormers v1.5.0, mindformers/tools/register/register.py:289, MindFormerRegister.get_instance_from_cfg
    MindFormers v1.5.0, mindformers/tools/register/register.py:312 and :255; v1.7.0 and 2.1.0, :291
    MindFormers v1.7.0 and 2.1.0, mindformers/tools/register/register.py:357, :367 and :393;
    mindformers/trainer/trainer.py:446 and :456
    """
    tree, kind = job.arguments.tree, job.arguments.get("kind").raw
    if tree is None or job.arguments.open or not table(job.target.version).templated:
        return
    if job.arguments.get("run_mode").raw is None:
        return  # given on the command line, which may set much else
    trainer = tree.get("trainer")
    if (trainer is None or trainer.value in (None, ())) and job.arguments.given("trainer.type") is None:
        said = "there is no trainer section" if trainer is None else "the trainer section is empty"
        edit = (
            Edit("set", ("trainer",), {"type": _TRAINER})
            if trainer is not None and trainer.kind == "scalar"
            else Edit("set", ("trainer", "type"), _TRAINER)
        )
        fix = (
            Fix(f"set its type to the usual value, {_TRAINER}", (edit,), explained=True)
            if job.documents[0].launch is None
            else None
        )
        span = trainer.span if trainer is not None else tree.span._replace(end=tree.span.start)
        yield Finding(
            Message("{said}; its type must name the trainer", said=said),
            span,
            key=("trainer",),
            fix=fix,
            upstream=_place(job, _NO_TYPE),
        )
    model = tree.get("model")
    if kind == "legacy" and model is not None and model.entries and job.documents[0].launch is None:
        yield from _network(job, model)
    yield from _types(job)


def _types(job: Job) -> Iterator[Finding]:
    """Reports types that are not names. A null type of a model part or of the trainer is reported elsewhere."""
    a = job.arguments
    for section, place in built(a, job.plan.layout.pipeline.raw):
        kind = a.given(f"{place}.type")
        if (
            kind is None
            or not kind.known
            or ".handler" in place
            or (section == "lr_schedule" and a.given("grouped_lr_schedule") is not None)
        ):
            continue
        if (isinstance(kind.raw, str) and kind.raw) or (
            kind.raw is None and section in ("trainer", "model.arch", "model.model_config")
        ):
            continue
        shown = kind.setting.span.text[:30] if kind.setting is not None else ""
        where = _place(job, _NO_TEXT if kind.raw == "" else _NULL_TYPE)
        yield Finding(
            Message(
                "{place}.type is {shown}; it must name a class",
                place=place.rstrip(".0123456789"),
                shown=shown or Message("empty"),
            ),
            job.place(kind),
            key=kind.key,
            upstream=where,
        )


def _network(job: Job, model: Node) -> Iterator[Finding]:
    """The architecture and its configuration."""
    config, arch = model.get("model_config"), model.get("arch")
    if config is not None and config.kind in ("sequence", "scalar"):
        if job.arguments.get("training").raw is True:
            line = _CONFIG.get(read_at(job.target.version), _CONFIG["1.5.0"])
            message = "model.model_config must be a mapping with the type of the model and its sizes"
            place = f"mindformers/trainer/trainer.py:{line}"
            yield Finding(message, config.span, key=("model", "model_config"), upstream=place)
        return
    named = config.get("type") if config is not None else None
    usual = _USUAL.get(str(named.value)) if named is not None else None
    fix = None
    if usual and arch is not None:
        fix = Fix(
            f"set it to the usual value, {usual}", (Edit("set", ("model", "arch", "type"), usual),), explained=True
        )
    if arch is None or arch.kind == "scalar":
        none = "there is no model.arch"
        said = none if arch is None else Message("model.arch is {arch}", arch=arch.shown[:30] or Message("empty"))
        message = Message("{said}; it must name the network by its type", said=said)
        yield Finding(message, (arch or model).span, key=("model", "arch"), fix=fix, upstream=_place(job, _NO_SECTION))
    elif arch.kind == "mapping":
        yield from _untyped(job, "arch", arch, fix)
        if config is not None and config.kind == "mapping" and config.entries:
            yield from _untyped(job, "model_config", config, None)


def _untyped(job: Job, name: str, node: Node, fix: Fix | None) -> Iterator[Finding]:
    """Reports a part of the network that does not name the class that builds it."""
    kind = node.get("type")
    if kind is not None and kind.value is not None:
        return
    mcore = name == "model_config" and node.get("model_type") is not None
    hint = "; for an mcore network, set use_legacy: False" if mcore else ""
    message = Message("model.{name} has no type, which is required{hint}", name=name, hint=hint)
    place = _place(job, _NO_TYPE if kind is None else _NULL_TYPE)
    yield Finding(message, (kind or node).span, key=("model", name), fix=fix, upstream=place)


def _place(job: Job, lines: dict[str, int]) -> str:
    return f"{_FILE}:{lines.get(read_at(job.target.version), lines['1.5.0'])}"


_HANDLER = {
    version: f"mindformers/dataset/dataloader/hf_dataloader.py:{line}"
    for version, line in (("1.7.0", 292), ("2.1.0", 344))
}
_COMPLETE = ("trainer", "model.model_config")
"""Sections for which all classes of every release are known."""
_RIVALS = {"optimizer": ("lr_schedule",), "lr_schedule": ("optimizer",)}
_LINE = {"1.0.0": 140, "1.2.0": 140, "1.3.2": 250, "1.5.0": 251}


@rule(id="class-misspelt", severity=Severity.ERROR, sometimes=(Severity.WARNING,), frameworks=("mindformers",))
def class_misspelt(job: Job) -> Iterator[Finding]:
    """The name of a class is misspelled.

    ## What it does
    Compares the types in the sections of a run with the classes that MindFormers, its research models and MindSpore
    have registered in any release since 0.6. It covers `trainer`; in training also `optimizer`, `lr_schedule`,
    `runner_wrapper` and its `scale_sense`, `callbacks`, `train_dataset_task` and its `data_loader` with its handlers;
    and in a legacy config `model.arch` and `model.model_config`. A name is an error only if it is a typo (wrong
    capitals, a doubled letter, two swapped letters, or one wrong letter in a word), a schedule used as an optimizer or
    vice versa, or an optimizer that releases since 1.6 no longer have. Any other unknown name may be a custom class.
    For `trainer` and `model.model_config`, where all classes of all releases are known, it is a warning. Every name is
    accepted in a section with `auto_register` or if `--register_path` is given, and so is a class of the program whose
    checkout contains the file.

    ## Why is this bad?
    Every rank looks the class up by its name after the devices are initialized, and fails with
    `Can't find class type ... class name ...`.

    ## Example
        optimizer:
          type: AdamWW
        lr_schedule:
          type: CosineWithWarmupLR

    Use instead:

        optimizer:
          type: AdamW
        lr_schedule:
          type: CosineWithWarmUpLR

    ## Fix safety
    Unsafe: a different class may be intended.

    ## References
    MindFormers v1.7.0, mindformers/dataset/dataloader/hf_dataloader.py:292; 2.1.0, :344, HFDataLoader.process_dataset
    MindFormers v1.0.0 and v1.2.0, mindformers/tools/register/register.py:140; v1.3.2, :250; v1.5.0, :251; v1.7.0 and 2.1.0,
    :287
    """
    if job.arguments.get("kind").raw not in ("legacy", "mcore") or registers(job.arguments, job.documents[0]):
        return
    for section, place in built(job.arguments, job.plan.layout.pipeline.raw):
        kind = job.arguments.given(f"{place}.type")
        if kind is None or not isinstance(kind.raw, str):
            continue
        if (
            section == "optimizer"
            and kind.raw in GONE
            and matches(job.target.version, ">=1.6")
            and job.arguments.given("optimizer.auto_register") is None
        ):
            yield _finding(job, kind, place, "AdamW", ", any more")
        if kind.raw in classes()[section] or job.arguments.certainty.takes(kind.raw) is not None:
            continue
        other = next((name for name in _RIVALS.get(section, ()) if kind.raw in classes()[name]), None)
        if other is not None and job.arguments.given(f"{place}.auto_register") is None:
            message = Message(
                "{kind} is a class for {other}, not for {section}", kind=kind.raw, other=other, section=section
            )
            yield Finding(message, job.place(kind), key=kind.key, upstream=_upstream(job, place))
        elif (meant := slip_of(kind.raw, classes()[section])) is not None and job.arguments.given(
            f"{place}.auto_register"
        ) is None:
            yield _finding(job, kind, place, meant)
        elif section in _COMPLETE and job.arguments.given(f"{place}.auto_register") is None:
            message = Message(
                "no release of MindFormers registers a class {kind} for {place}", kind=kind.raw, place=place
            )
            yield Finding(
                message, job.place(kind), key=kind.key, severity=Severity.WARNING, upstream=_upstream(job, place)
            )


def _finding(job: Job, kind: Value, place: str, meant: str, since: str = "") -> Finding:
    message = Message(
        "there is no class {kind} for {place}{since}; did you mean {meant}?",
        kind=kind.raw,
        place=place.rstrip(".0123456789"),
        since=since,
        meant=meant,
    )
    fix = Fix(f"write {meant}", kind.becomes(meant))
    return Finding(message, job.place(kind), key=kind.key, fix=fix, upstream=_upstream(job, place))


def _upstream(job: Job, place: str) -> str:
    where = _HANDLER.get(read_at(job.target.version)) if ".handler." in place else None
    return where or f"mindformers/tools/register/register.py:{_LINE.get(read_at(job.target.version), 287)}"
