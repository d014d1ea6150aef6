"""A class is misspelt.

## What it does
Compares the types of the sections that a run is built of with the classes that MindFormers, its research models and
MindSpore have registered in any release since 0.6: `trainer`, and, to train, `optimizer`, `lr_schedule`,
`runner_wrapper` and its `scale_sense`, `callbacks`, `train_dataset_task` and its `data_loader` with its handlers; of a
legacy config `model.arch` and `model.model_config`. Only a slip of the pen is reported (other capitals, a letter
doubled, two swapped, or one word a letter off), a schedule in the place of an optimizer or the other way about, and
an optimizer that releases since 1.6 have no more, is an error. Any other unknown name may be a class of your own: for
`trainer` and `model.model_config`, where all classes of all releases are known, it is a warning. Every name is taken
in a section with `auto_register`, or where `--register_path` is given; and so is a class of the program in whose
checkout the file lies.

## Why is this bad?
The class is looked up by its name on every rank, after the devices are there:
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
Unsafe: another class may have been meant.

## References
MindFormers v1.7.0, mindformers/dataset/dataloader/hf_dataloader.py:292; 2.1.0, :344, HFDataLoader.process_dataset
MindFormers v1.0.0 and v1.2.0, mindformers/tools/register/register.py:140; v1.3.2, :250; v1.5.0, :251; v1.7.0 and 2.1.0,
:287
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Value, rule
from preflight.dialects.mindformers.config_files import GONE
from preflight.dialects.mindformers.registry import built, classes, registers
from preflight.dialects.mindformers.release_tables import read_at
from preflight.run.versions import matches
from preflight.source.spelling import slip_of

_HANDLER = {
    version: f"mindformers/dataset/dataloader/hf_dataloader.py:{line}"
    for version, line in (("1.7.0", 292), ("2.1.0", 344))
}
_COMPLETE = ("trainer", "model.model_config")
"""Sections whose classes are all known, of every release."""
_RIVALS = {"optimizer": ("lr_schedule",), "lr_schedule": ("optimizer",)}
_LINE = {"1.0.0": 140, "1.2.0": 140, "1.3.2": 250, "1.5.0": 251}


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
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
