"""The optimizer class rejects the value of one of its settings.

## What it does
For AdamW, `betas` must be two floats in [0, 1), and `eps` and `weight_decay` must be floats, so an integer such as
`weight_decay: 0` is rejected. For Muon, flat `ns_coefficients` must be three numbers, memory budgets must be positive
numbers, `adamw_betas` must be a list of two numbers, and every pattern of `adamw_include` must be a string.

## Why is this bad?
The file loads, the model is built and sharded, and then the optimizer raises an error on every rank.

## Example
    optimizer: {type: AdamW, weight_decay: 0}
Use instead:
    optimizer: {type: AdamW, weight_decay: 0.0}

## Fix safety
Safe: the number stays the same. Unsafe if a setting is removed so that its default applies.

## References
MindFormers 2.1.0, mindformers/pynative/optimizer/adamw.py:72-88, _check_param_value; muon.py:205, :2346
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Safety, Severity, Value, rule
from preflight.run.arguments import REMOVE

_ADAMW = "mindformers/pynative/optimizer/adamw.py"
_MUON = "mindformers/pynative/optimizer/muon.py"
_BUDGETS = ("ns_batch_memory_gb", "phase0_batch_memory_gb", "phase4_batch_memory_gb")


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    if job.arguments.get("run_mode").raw == "predict":
        return
    kind = job.arguments.get("optimizer.type").raw
    if kind == "AdamW":
        for name, line in (("eps", 87), ("weight_decay", 88)):
            value = job.arguments.given(f"optimizer.{name}")
            if (
                value is not None
                and isinstance(value.raw, int)
                and not isinstance(value.raw, bool)
                and 0 <= value.raw < 2**63
            ):
                yield _whole(
                    job,
                    value,
                    Message("{name} is the integer {value}; AdamW takes only a float", name=name, value=value.raw),
                    line,
                )
        yield from _betas(job)
    elif kind == "Muon":
        yield from _coefficients(job)
        yield from _apart(job)
        yield from _budgets(job)


def _whole(job: Job, value: Value, message: str, line: int) -> Finding:
    edits = value.becomes(float(value.raw))
    return Finding(
        message,
        job.place(value),
        key=value.key,
        fix=Fix(f"write {float(value.raw)}", edits, Safety.SAFE) if edits else None,
        upstream=f"{_ADAMW}:{line}",
    )


def _betas(job: Job) -> Iterator[Finding]:
    value = job.arguments.given("optimizer.betas")
    if value is None or not isinstance(value.raw, list) or not all(isinstance(n, (int, float)) for n in value.raw):
        return
    if len(value.raw) != 2:
        yield Finding(
            Message("betas must have two entries, not {count}", count=len(value.raw)),
            job.place(value),
            key=value.key,
            fix=_left_out(value),
            upstream=f"{_ADAMW}:84",
        )
    elif (bad := next((i for i, n in enumerate(value.raw) if not 0 <= n < 1), None)) is not None:
        message, where = (
            Message("betas[{bad}] is {value}; it must be at least 0 and below 1", bad=bad, value=value.raw[bad]),
            f"{_ADAMW}:{77 + 2 * bad}",
        )
        yield Finding(message, job.place(value), key=value.key, fix=_left_out(value), upstream=where)
    elif (bad := next((i for i, n in enumerate(value.raw) if isinstance(n, int)), None)) is not None:
        fix = Fix("write the numbers as floats", value.becomes([float(n) for n in value.raw]), Safety.SAFE)
        yield Finding(
            Message("betas[{bad}] is the integer {value}; AdamW takes only floats", bad=bad, value=value.raw[bad]),
            job.place(value),
            key=value.key,
            fix=fix,
            upstream=f"{_ADAMW}:{85 + bad}",
        )


def _coefficients(job: Job) -> Iterator[Finding]:
    """A flat list holds three numbers for every step; in a list of lists, each inner list holds the numbers for several
    steps."""
    value = job.arguments.given("optimizer.ns_coefficients")
    if value is None or not isinstance(value.raw, list):
        return
    why, line = None, 2338
    if not value.raw:
        why = Message(
            "ns_coefficients is empty; it must be three numbers, or a list whose entries each have three numbers and "
            "a count"
        )
    elif isinstance(value.raw[0], (int, float)) and not isinstance(value.raw[0], bool):
        if len(value.raw) != 3:
            why = Message("ns_coefficients has {count} numbers; a flat list must have three", count=len(value.raw))
            line = 2346
    else:
        why, line = _segments(value.raw)
    if why is not None:
        yield Finding(why, job.place(value), key=value.key, fix=_left_out(value), upstream=f"{_MUON}:{line}")


def _segments(segments: list[object]) -> tuple[Message | None, int]:
    """The fault in a list of segments, and the place where the framework rejects it."""
    for index, segment in enumerate(segments):
        if not isinstance(segment, list) or len(segment) != 2:
            return Message("entry {index} of ns_coefficients is not [[a, b, c], count]", index=index), 2357
        numbers, count = segment
        if not isinstance(numbers, list) or len(numbers) != 3:
            return Message("entry {index} of ns_coefficients does not begin with three numbers", index=index), 2362
        if isinstance(count, (int, float)) and int(count) <= 0:
            return Message(
                ("entry {index} of ns_coefficients has a count of {count} steps"), index=index, count=count
            ), 2367
    return None, 0


def _apart(job: Job) -> Iterator[Finding]:
    """Checks the settings of Muon for AdamW, which are two betas and the patterns of its parameters, and the clipping
    limits."""
    given = job.arguments.given
    clip, betas, include = (
        given(f"optimizer.{name}") for name in ("qk_clip_threshold", "adamw_betas", "adamw_include")
    )
    clipping = job.arguments.get("optimizer.qk_clip_enabled").raw is not False
    if clip is not None and isinstance(clip.raw, str) and clipping:
        message = Message("qk_clip_threshold is the string {clip!r}; it must be a number", clip=clip.raw)
        yield Finding(message, job.place(clip), key=clip.key, upstream=f"{_MUON}:2411")
    if betas is not None and not (isinstance(betas.raw, list) and len(betas.raw) == 2):
        message = Message("adamw_betas is {betas!r}; it must be a list of two numbers", betas=betas.raw)
        yield Finding(message, job.place(betas), key=betas.key, upstream=f"{_MUON}:2227")
    if include is None:
        return
    listed = include.raw if isinstance(include.raw, list) else []
    bad = next((item for item in listed if not isinstance(item, str)), None)
    if isinstance(include.raw, (int, float)):
        message = Message("adamw_include is {include!r}; it must be a list of patterns", include=include.raw)
        yield Finding(message, job.place(include), key=include.key, upstream=f"{_MUON}:2386")
    elif bad is not None:
        message = Message("adamw_include contains {bad!r}; every pattern must be a string", bad=bad)
        yield Finding(message, job.place(include), key=include.key, upstream=f"{_MUON}:2388")


def _budgets(job: Job) -> Iterator[Finding]:
    for name in _BUDGETS:
        value = job.arguments.given(f"optimizer.{name}")
        if value is None:
            continue
        if isinstance(value.raw, bool) or not isinstance(value.raw, (int, float)):
            yield Finding(
                Message("{name} is {value!r}; it must be a number of GB", name=name, value=value.raw),
                job.place(value),
                key=value.key,
                fix=_left_out(value),
                upstream=f"{_MUON}:205",
            )
        elif value.raw <= 0:
            message = Message("{name} is {value}; a memory budget must be positive", name=name, value=value.raw)
            yield Finding(message, job.place(value), key=value.key, fix=_left_out(value), upstream=f"{_MUON}:207")


def _left_out(value: Value) -> Fix:
    return Fix(f"remove {value.key[-1]}, so that its default applies", value.becomes(REMOVE))
