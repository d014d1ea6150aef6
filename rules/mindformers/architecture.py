"""The config names an architecture that no mcore network has.

## What it does
With `use_legacy: False`, checks `architectures` of `model.model_config`, which is a name or a list that begins with
one. Reports a name that is almost the name of a MindFormers network. Any other unknown name may belong to a custom
network, and if `register_path` is given, every name may. Warns if `model_type` belongs to a different network, because
the network is looked up by its architecture, but its settings by `model_type`.

## Why is this bad?
Every rank looks the network up by this name after the devices are initialized, and fails with
`Can't find class type models class name ...`.

## Example
    model: {model_config: {model_type: qwen3, architectures: Qwen3ForCausalML}}

Use instead:

    model: {model_config: {model_type: qwen3, architectures: Qwen3ForCausalLM}}

## Fix safety
Unsafe: a different network may be intended.

## References
MindFormers v1.7.0 and 2.1.0, mindformers/tools/register/register.py:287, :291, :327, :331 and :393
"""

from collections.abc import Iterator

from preflight import Finding, Fix, Job, Message, Severity, rule
from preflight.dialects.mindformers.registry import registers
from preflight.run.version_ranges import matches
from preflight.source.spelling import slip_of

_NAME = "model.model_config.architectures"
_FILE = "mindformers/tools/register/register.py"
_NETWORKS = {
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "DeepseekV4ForCausalLM": "deepseek_v4",
    "Glm4ForCausalLM": "glm4",
    "Glm4MoeForCausalLM": "glm4_moe",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "TeleChat2ForCausalLM": "telechat",
    "TeleChat3ForCausalLM": "telechat3",
    "TeleChat3MoeForCausalLM": "telechat3_moe",
}
"""The networks, and the model_type of the settings of each."""


@rule(
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING,),
    frameworks=("mindformers",),
    after=("mindformers/mcore-without-architectures",),
    reads=(_NAME,),
)
def check(job: Job) -> Iterator[Finding]:
    a = job.arguments
    value = a.get(_NAME)
    if a.get("kind").raw != "mcore" or not value.known or not matches(job.target.version, ">=1.6"):
        return
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
        yield from _other_settings(job, name)
        return
    shown = "null" if value.raw is None else repr(value.raw)
    line = 291 if name == "" else 327 if value.raw == [] else 393 if listed else 331
    yield Finding(
        Message("architectures is {shown}; it must name a network", shown=shown),
        job.place(value),
        key=value.key,
        upstream=f"{_FILE}:{line}",
    )


def _other_settings(job: Job, name: str) -> Iterator[Finding]:
    """Reports a network of one family that has the settings of another."""
    kind = job.arguments.given("model.model_config.model_type")
    own = _NETWORKS.get(name)
    if (
        own is None
        or kind is None
        or not isinstance(kind.raw, str)
        or kind.raw.lower() not in _NETWORKS.values()
        or kind.raw.lower() == own
    ):
        return
    message = Message(
        "architectures is {name}, but model_type is {kind}, so one network is built with the settings of another",
        name=name,
        kind=kind.raw,
    )
    yield Finding(message, job.place(kind), key=kind.key, severity=Severity.WARNING, upstream=f"{_FILE}:331")
