"""The network's configuration rejects a rule for initial weights.

## What it does
Checks that each entry of `param_init_std_rules` is a mapping with `target`, a regular expression of at most 256
characters without look-around, atomic groups or nested repetition, and `init_method_std`, a non-negative number.

## Why is this bad?
The configuration raises an error before the network is built, on every rank.

## Example
    model: {model_config: {model_type: qwen3, param_init_std_rules: [{target: ".*embed.*", init_method_std: -0.01}]}}
Use instead:
    model: {model_config: {model_type: qwen3, param_init_std_rules: [{target: ".*embed.*", init_method_std: 0.01}]}}

## References
MindFormers 2.1.0, mindformers/parallel_core/transformer_config.py:2743, _validate_param_init_std_rules
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Value, rule
from preflight.run.version_ranges import matches
from preflight.source.lazy_regex import lazy_pattern

_CONFIG = "mindformers/parallel_core/transformer_config.py"
_GRAPH, _PYNATIVE = "model.model_config.param_init_std_rules", "model.param_init_std_rules"
_LONGEST = 256
_RISKY = ("(?=", "(?!", "(?<=", "(?<!", "(?>", "\\g<")
_NESTED = lazy_pattern(r"\((?:[^()\\]|\\.)*(?:\*|\+|\{\d+(?:,\d*)?\})(?:[^()\\]|\\.)*\)\s*(?:\*|\+|\{\d+(?:,\d*)?\})")


@rule(
    severity=Severity.ERROR,
    id="mindformers/init-rules",
    frameworks=("mindformers", "pynative"),
    reads=(_GRAPH, _PYNATIVE),
)
def check(job: Job) -> Iterator[Finding]:
    a, pynative = job.arguments, "pynative" in job.versions
    if not pynative and (a.get("kind").raw != "mcore" or a.get("training").raw is not True):
        return
    value = a.get(_PYNATIVE if pynative else _GRAPH)
    if not value.known or not value.raw:
        return
    if not isinstance(value.raw, list):
        yield _finding(job, value, Message("param_init_std_rules must be a list of mappings"), 2751)
        return
    for index, entry in enumerate(value.raw):
        fault = _fault(entry, matches(job.target.version, ">=2"))
        if fault is not None:
            why, line = fault
            message = Message("entry {index} of param_init_std_rules {why}", index=index, why=why)
            yield _finding(job, value, message, line)


def _fault(entry: object, careful: bool) -> tuple[Message, int] | None:
    """The fault in an entry, and the place where the framework rejects it. careful: patterns are checked, too."""
    if not isinstance(entry, dict):
        return Message("must be a mapping with target and init_method_std"), 2758
    target, deviation = entry.get("target"), entry.get("init_method_std")
    if not isinstance(target, str):
        return Message("must have a string as target, not {target!r}", target=target), 2765
    if not isinstance(deviation, (int, float)):
        return Message("must have a number as init_method_std, not {value!r}", value=deviation), 2769
    if deviation < 0:
        return Message("has init_method_std {value}; it must not be negative", value=deviation), 2774
    return _pattern(target) if careful else None


def _pattern(target: str) -> tuple[Message, int] | None:
    if len(target) > _LONGEST:
        return Message("has a target of {count} characters; it must have at most 256", count=len(target)), 2784
    if (risky := next((token for token in _RISKY if token in target), None)) is not None:
        return Message("has {risky} in its target, which is not allowed", risky=risky), 2789
    if _NESTED.search(target):
        return Message("has a repetition inside a repetition in its target, which is not allowed"), 2800
    return None


def _finding(job: Job, value: Value, message: Message, line: int) -> Finding:
    return Finding(message, job.place(value), key=value.key, upstream=f"{_CONFIG}:{line}")
