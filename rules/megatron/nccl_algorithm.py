"""The NCCL algorithm is not deterministic.

## What it does
With `--deterministic-mode`, checks the algorithms in the environment variable `NCCL_ALGO`. Core 0.20 accepts Ring,
CollnetDirect, CollnetChain and ^NVLS, or an unset variable, which it sets to Ring. Core 0.12 also accepts Tree, but it
accepts only a single word, and rejects an unset variable. If no release is given, Tree is a warning, because releases
before 0.19 accept it.

## Why is this bad?
The order in which gradients are summed would differ between runs, so the run fails at startup.

## Example
    NCCL_ALGO=Tree python pretrain_gpt.py --deterministic-mode …

Use instead: `NCCL_ALGO=Ring`.

## Fix safety
Unsafe: another algorithm may be slower.

## References
Megatron-LM d98e8a6, megatron/training/determinism.py:91, apply_determinism_env; core_v0.12.1,
megatron/training/arguments.py:881
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, Unverified, rule
from preflight.lint.upstream_evidence import dated
from preflight.loaders.document import Unknown
from preflight.rules.megatron.option_names import core, read, typed
from preflight.run.version_ranges import matches
from preflight.source.finding import Kind

STEADY = ("Ring", "CollnetDirect", "CollnetChain", "^NVLS")
OLD = "<0.19"


@rule(
    severity=Severity.ERROR,
    id="megatron/nccl-algorithm",
    kind=Kind.RELEASE,
    frameworks=("megatron",),
    reads=("deterministic_mode",),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    """NCCL_ALGO in deterministic mode."""
    values = read(job, "deterministic_mode")
    if isinstance(values, Unverified) or not values[0]:
        return
    value = job.arguments.environment.get("NCCL_ALGO")
    text = value.raw if value is not None else None
    if isinstance(text, Unknown) or (text is None and job.arguments.open):
        yield Unverified(text.because if isinstance(text, Unknown) else "the environment is unknown")
        return
    old, trees = matches(core(job), OLD), text == "Tree"
    words = (*STEADY, "Tree") if old else STEADY
    if text is None:
        message = (
            Message("--deterministic-mode needs NCCL_ALGO to be one of {words}; it is not set", words=tuple(words))
            if old
            else ""
        )
    else:
        given = [text] if old else [word.strip() for word in str(text).split(",") if word.strip()]
        fine = bool(given) and all(word in words for word in given)
        message = (
            ""
            if fine
            else Message("--deterministic-mode needs NCCL_ALGO {words}, not {text}", words=tuple(words), text=text)
        )
    if message:
        edits = job.arguments.export("NCCL_ALGO", "Ring")
        fix = Fix("set NCCL_ALGO=Ring", edits) if edits else None
        message, severity = dated(job, message, "megatron", "" if old or not trees else "0.19")
        yield Finding(
            message,
            span=job.place(*typed(job, "deterministic_mode")),
            fix=fix,
            severity=severity,
        )
