"""A section that training needs is left out, and the template of the framework fills it.

## What it does
Finds training configs without `lr_schedule`, `optimizer` or `callbacks`, since 1.5: the release fills them from its
template. Names the replacement. What a `base_config` holds counts.

## Why is this bad?
Only one line of the log mentions it. Without `lr_schedule` a cosine from 5e-5 to 0 is trained, whatever
`optimizer.learning_rate` sets; without `callbacks` no checkpoint is ever saved.

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
There is no fix: what was meant is not known.

## References
MindFormers v1.5.0, mindformers/tools/register/template.py:676, ConfigTemplate._apply_template; v1.7.0 and 2.1.0, :687
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.dialects.mindformers.registry import trains
from preflight.dialects.mindformers.release_tables import read_at, table

_FILE = "mindformers/tools/register/template.py"
_LINE = {"1.5.0": 676}


@rule(severity=Severity.WARNING, frameworks=("mindformers",), after=("missing-key",))
def check(job: Job) -> Iterator[Finding]:
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
            place = f"{_FILE}:{_LINE.get(read_at(job.target.version), 687)}"
            yield Finding(
                message,
                node.span if node is not None else tree.span._replace(end=tree.span.start),
                key=(name,),
                upstream=place,
            )


def _filled(job: Job) -> dict[str, str]:
    """What the template does in the place of a section."""
    sections = table(job.target.version).sections
    typed, schedule = job.arguments.given("optimizer.learning_rate"), sections["lr_schedule"]
    anyway = (
        Message(", and optimizer.learning_rate {rate} is not used", rate=typed.raw)
        if typed is not None and typed.known
        else ""
    )
    grouped = job.arguments.get("grouped_lr_schedule").raw is not None
    rate = Message(
        "{type} from {start} to {end} is trained with{anyway}",
        type=schedule["type"],
        start=schedule["learning_rate"],
        end=schedule["lr_end"],
        anyway=anyway,
    )
    optimizer = sections["optimizer"]
    adam = Message(
        "{type} with betas {betas} and no weight decay is trained with",
        type=optimizer["type"],
        betas=optimizer["betas"],
    )
    return {
        **({} if grouped else {"lr_schedule": rate}),
        "optimizer": adam,
        "callbacks": "no checkpoint will be saved",
    }
