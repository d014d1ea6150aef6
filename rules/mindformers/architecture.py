"""An mcore network is not found by its architecture.

## What it does
Checks, with `use_legacy: False`, `architectures` of `model.model_config`: a name, or a list that begins with one. A
name that is nearly that of a network of MindFormers is told; any other unknown one may be a network of your own, and so
is every name where `register_path` is given.

## Why is this bad?
The network is looked up by that name on every rank, after the devices are there:
`Can't find class type models class name ...`.

## Example
    model: {model_config: {model_type: qwen3, architectures: Qwen3ForCausalML}}

Use instead:

    model: {model_config: {model_type: qwen3, architectures: Qwen3ForCausalLM}}

## Fix safety
Unsafe: another network may have been meant.

## References
MindFormers v1.7.0 and 2.1.0, mindformers/tools/register/register.py:287, :291, :327, :331 and :393
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, rule
from preflight.dialects.mindformers.registry import registers
from preflight.run.versions import matches
from preflight.source.spelling import slip_of

_FILE = "mindformers/tools/register/register.py"
_NETWORKS = (
    *(
        "DeepseekV3ForCausalLM",
        "DeepseekV4ForCausalLM",
        "Glm4ForCausalLM",
        "Glm4MoeForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
    ),
    *("Qwen3MoeForCausalLM", "TeleChat2ForCausalLM", "TeleChat3ForCausalLM", "TeleChat3MoeForCausalLM"),
)


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    value = a.given("model.model_config.architectures")
    if a.get("kind").raw != "mcore" or value is None or not value.known or not matches(job.target.version, ">=1.7"):
        return
    if value.raw is None and matches(job.target.version, ">=2"):
        return  # said where it is missing
    listed = isinstance(value.raw, list)
    name = value.raw[0] if listed and value.raw else value.raw
    if isinstance(name, str) and name:
        meant = slip_of(name, _NETWORKS) if name not in _NETWORKS and not registers(a, job.documents[0]) else None
        if meant is not None:
            fix = Fix(f"write {meant}", value.becomes([meant, *value.raw[1:]] if listed else meant))
            yield Finding(
                Message("there is no network {name}; did you mean {meant}?", name=name, meant=meant),
                job.place(value),
                key=value.key,
                fix=fix,
                upstream=f"{_FILE}:287",
            )
        return
    shown = "null" if value.raw is None else repr(value.raw)
    line = 291 if name == "" else 327 if value.raw == [] else 393 if listed else 331
    yield Finding(
        Message("architectures is {shown}; it must name a network", shown=shown),
        job.place(value),
        key=value.key,
        upstream=f"{_FILE}:{line}",
    )
