"""A number of the optimizer or of the schedule is written in a way its class refuses.

## What it does
For AdamW: `betas` must be two floats in [0, 1), `eps` and `weight_decay` floats: an integer such as `weight_decay: 0`
is refused. For Muon: flat `ns_coefficients` must be three numbers. For the schedule: extra numbers such as
`warmup_ratio` must be numbers, and `1e-1` is a text in YAML 1.1.

## Why is this bad?
The file loads, the model is built and sharded, and then the optimizer raises on every rank.

## Example
    optimizer: {type: AdamW, weight_decay: 0}
Use instead:
    optimizer: {type: AdamW, weight_decay: 0.0}

## Fix safety
Safe: the same number.

## References
MindFormers 2.1.0, mindformers/pynative/optimizer/adamw.py:72-88, _check_param_value; muon.py:2346; tools/register/register.py:398
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Safety, Severity, Value, rule

_ADAMW = "mindformers/pynative/optimizer/adamw.py"
_SCHEDULE = ("warmup_ratio", "warmup_lr_init", "lr_end", "warmup_steps", "decay_steps", "decay_ratio", "power", "num_cycles")


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    if job.arguments.get("run_mode").raw == "predict":
        return
    kind = job.arguments.get("optimizer.type").raw
    if kind == "AdamW":
        for name, line in (("eps", 87), ("weight_decay", 88)):
            value = job.arguments.given(f"optimizer.{name}")
            if value is not None and isinstance(value.raw, int) and not isinstance(value.raw, bool) and value.raw >= 0:
                yield _whole(job, value, f"{name} is the integer {value.raw}; AdamW takes only a float", line)
        yield from _betas(job)
    elif kind == "Muon":
        yield from _coefficients(job)
    yield from _schedule(job)


def _whole(job: Job, value: Value, message: str, line: int) -> Finding:
    edits = value.becomes(float(value.raw))
    return Finding(
        message, job.place(value), key=value.key, fix=Fix(f"write {float(value.raw)}", edits, Safety.SAFE) if edits else None, upstream=f"{_ADAMW}:{line}"
    )


def _betas(job: Job) -> Iterator[Finding]:
    value = job.arguments.given("optimizer.betas")
    if value is None or not isinstance(value.raw, list) or not all(isinstance(n, (int, float)) for n in value.raw):
        return
    if len(value.raw) != 2:
        yield Finding(f"betas has {len(value.raw)} numbers, AdamW takes two", job.place(value), key=value.key, upstream=f"{_ADAMW}:84")
    elif (bad := next((i for i, n in enumerate(value.raw) if not 0 <= n < 1), None)) is not None:
        yield Finding(f"betas[{bad}] is {value.raw[bad]}; it lies in [0, 1)", job.place(value), key=value.key, upstream=f"{_ADAMW}:{77 + 2 * bad}")
    elif (bad := next((i for i, n in enumerate(value.raw) if isinstance(n, int)), None)) is not None:
        fix = Fix("write floats", value.becomes([float(n) for n in value.raw]), Safety.SAFE)
        yield Finding(
            f"betas[{bad}] is the integer {value.raw[bad]}; AdamW takes only floats", job.place(value), key=value.key, fix=fix, upstream=f"{_ADAMW}:{85 + bad}"
        )


def _coefficients(job: Job) -> Iterator[Finding]:
    value = job.arguments.given("optimizer.ns_coefficients")
    flat = value is not None and isinstance(value.raw, list) and value.raw and all(isinstance(n, (int, float)) for n in value.raw)
    if value is not None and flat and len(value.raw) != 3:
        yield Finding(
            f"ns_coefficients has {len(value.raw)} numbers; a flat list has three",
            job.place(value),
            key=value.key,
            upstream="mindformers/pynative/optimizer/muon.py:2346",
        )


def _schedule(job: Job) -> Iterator[Finding]:
    for name in _SCHEDULE:
        value = job.arguments.given(f"lr_scheduler.{name}")
        if value is None or not isinstance(value.raw, str):
            continue
        try:
            number = float(value.raw)
        except ValueError:
            continue
        plain = repr(number) if "." in repr(number) or "e" not in repr(number) else repr(number).replace("e", ".0e")
        fix = Fix(f"write {plain}", value.becomes(number), Safety.SAFE)
        message = f"{name} {value.raw} is a text in YAML 1.1, and the schedule takes only a number; write it with a dot"
        yield Finding(message, job.place(value), key=value.key, fix=fix, upstream="mindformers/tools/register/register.py:398")
