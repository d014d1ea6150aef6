"""A value of a pynative config is missing or is of a type that its field refuses.

## What it does
Checks types as the configuration classes do: a bool is no integer, `2.0` is no integer, a number field takes integers
too but no text, and `1e-5` without a dot is a text in YAML 1.1; null only where it is allowed. Also finds fields that
must be given: model_type, architectures, and the type of schedule, reader and callbacks.

## Why is this bad?
The file is refused while it is loaded.

## Example
    lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 1e-5}
Use instead:
    lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 1.0e-5}

## Fix safety
Safe: the value that was meant, in the type the field takes. Unsafe where a text becomes a list of one.

## References
MindFormers 2.1.0, mindformers/pynative/config/utils.py:22-113, check_type; config.py:110, BaseConfig.from_dict
MindFormers 2.1.0, mindformers/pynative/distributed/parallel_dims.py:459, of dense_fsdp_shard_size once more
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Safety, Severity, rule
from preflight.dialects.mindformers.pynative_schema import Fault, faults
from preflight.source import Span


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    tree = job.documents[0].tree
    for fault in faults(tree) if tree is not None else ():
        if fault.kind == "missing":
            section = ".".join(str(part) for part in fault.key[:-1]) or "the file"
            yield Finding(f"{section} does not give {fault.wanted}", _start(job, fault), key=fault.key, upstream=fault.upstream)
        elif fault.kind == "type":
            name = ".".join(str(part) for part in fault.key)
            yield Finding(f"{name} is {_shown(fault)}; it must be {fault.wanted}", fault.node.span, key=fault.key, fix=_fix(fault), upstream=fault.upstream)


def _start(job: Job, fault: Fault) -> Span:
    return fault.node.span if len(fault.key) > 1 else job.start


def _shown(fault: Fault) -> str:
    node = fault.node
    if node.kind != "scalar":
        return f"a {node.kind if node.kind == 'mapping' else 'list'}"
    if node.value is None:
        return "null"
    kind = "the text " if isinstance(node.value, str) else ""
    return f"{kind}{node.span.text[:40]}"


def _fix(fault: Fault) -> Fix | None:
    """The number or bool that a text plainly stands for; a whole float as an integer."""
    value, wanted = fault.node.value, fault.wanted
    meant: object = None
    if isinstance(value, str) and "integer" in wanted and value.strip().lstrip("-").isdigit():
        meant = int(value)
    elif isinstance(value, str) and wanted == "a number":
        try:
            meant = float(value)
        except ValueError:
            return None
    elif isinstance(value, str) and wanted == "true or false":
        meant = {"true": True, "false": False, "flase": False, "ture": True, "yes": True, "no": False}.get(value.strip().lower())
    elif isinstance(value, float) and "integer" in wanted and value.is_integer():
        meant = int(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and wanted == "a text":
        meant = str(value)
    elif isinstance(value, str) and value and wanted == "a list":
        return Fix(f"write a list of {value}", (Edit("set", fault.key, [value]),))
    elif fault.node.kind == "sequence" and wanted == "a text" and len(fault.node.items) == 1 and isinstance(fault.node.items[0].value, str):
        meant = fault.node.items[0].value
    if meant is None:
        return None
    return Fix(f"write {meant}", (Edit("set", fault.key, meant),), Safety.SAFE)
