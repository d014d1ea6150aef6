"""A class is not given an argument that it has no default for.

## What it does
Checks the loss scale that `runner_wrapper.scale_sense` names: `DynamicLossScaleUpdateCell` and
`AdaptiveLossScaleUpdateCell` need `loss_scale_value`, `scale_factor` and `scale_window`, `FixedLossScaleUpdateCell`
needs `loss_scale_value`.

## Why is this bad?
The section is built as it is written, after the network, on every rank: Python refuses the call for the missing
argument.

## Example
    runner_wrapper:
      type: MFTrainOneStepCell
      scale_sense: {type: DynamicLossScaleUpdateCell, loss_scale_value: 65536}

Use instead:

    runner_wrapper:
      type: MFTrainOneStepCell
      scale_sense: {type: DynamicLossScaleUpdateCell, loss_scale_value: 65536, scale_factor: 2, scale_window: 1000}

## Fix safety
Unsafe: other numbers may have been meant than the usual ones.

## References
MindSpore 2.7.1, mindspore/python/mindspore/nn/wrap/loss_scale.py, DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell
MindFormers v1.6.0, mindformers/wrapper/adaptive_loss_scale.py:95, AdaptiveLossScaleUpdateCell
MindFormers v1.6.0, mindformers/wrapper/build_wrapper.py:61, build_wrapper
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Severity, rule
from preflight.dialects.mindformers.registry import registers, trains

PLACE = "runner_wrapper.scale_sense"
USUAL = {"loss_scale_value": 65536, "scale_factor": 2, "scale_window": 1000}
NEEDED = {
    "DynamicLossScaleUpdateCell": tuple(USUAL),
    "AdaptiveLossScaleUpdateCell": tuple(USUAL),
    "FixedLossScaleUpdateCell": ("loss_scale_value",),
}


@rule(severity=Severity.ERROR, id="class-argument-missing", frameworks=("mindformers",), reads=(PLACE,))
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    if a.get("kind").raw not in ("legacy", "mcore") or not trains(a) or a.open or registers(a, job.documents[0]):
        return
    kind, section = a.given(f"{PLACE}.type"), a.given(PLACE)
    if kind is None or section is None or not isinstance(section.raw, dict) or not isinstance(kind.raw, str):
        return
    if "auto_register" in section.raw:
        return
    missing = [name for name in NEEDED.get(kind.raw, ()) if name not in section.raw]
    if missing:
        edits = tuple(Edit("set", (*PLACE.split("."), name), USUAL[name]) for name in missing)
        message = Message("{kind} needs {names}", kind=kind.raw, names=", ".join(missing))
        fix = Fix("give it the usual numbers", edits, offered=True)
        yield Finding(
            message, job.place(kind), key=kind.key, fix=fix, upstream="mindformers/wrapper/build_wrapper.py:61"
        )
