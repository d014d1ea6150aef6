"""A value of a pynative config is missing or is of a type that its field refuses.

## What it does
Checks types as the configuration classes do: a bool is not an integer, `2.0` is not an integer, a number field takes
integers too but no text, and `1e-5` without a dot is a text in YAML 1.1; null only where it is allowed. Also finds
fields that must be given: model_type, architectures, and the type of schedule, reader and callbacks.

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
from contextlib import suppress

from preflight import Edit, Finding, Fix, Job, Message, Safety, Severity, rule
from preflight.dialects.mindformers.pynative_schema import Fault, faults
from preflight.lint.value_kinds import LIST, ValueKind
from preflight.loaders.document import Node
from preflight.source.text import Span

_SWITCHES = {"true": True, "false": False, "flase": False, "ture": True, "yes": True, "no": False}


@rule(severity=Severity.ERROR, frameworks=("pynative",))
def check(job: Job) -> Iterator[Finding]:
    tree = job.documents[0].tree
    for fault in faults(tree) if tree is not None else ():
        if fault.kind == "missing":
            section = ".".join(str(part) for part in fault.key[:-1]) or "the file"
            yield Finding(
                Message("{section} does not give {wanted}", section=section, wanted=fault.wanted),
                _start(job, fault),
                key=fault.key,
                upstream=fault.upstream,
            )
        elif fault.kind == "type":
            name = ".".join(str(part) for part in fault.key)
            yield Finding(
                Message("{name} is {shown}; it must be {wanted}", name=name, shown=_shown(fault), wanted=fault.wanted),
                fault.node.span,
                key=fault.key,
                fix=_fix(fault),
                upstream=fault.upstream,
            )


def _start(job: Job, fault: Fault) -> Span:
    return fault.node.span if len(fault.key) > 1 else job.start


def _shown(fault: Fault) -> str:
    node = fault.node
    if node.kind != "scalar":
        return "a mapping" if node.kind == "mapping" else "a list"
    if node.value is None:
        return "null"
    kind = "the text " if isinstance(node.value, str) else ""
    return f"{kind}{node.span.text[:40]}"


def _fix(fault: Fault) -> Fix | None:
    """The number, switch or text that is plainly there in another type; a list of the one text that does."""
    value = fault.node.value
    meant = next((meant for meant in _meanings(fault.node) if _fits(meant, fault.accepted)), None)
    if meant is not None:
        return Fix(f"write {meant}", (Edit("set", fault.key, meant),), Safety.SAFE)
    if isinstance(value, str) and value and fault.accepted == (LIST,):
        return Fix(f"write a list of {value}", (Edit("set", fault.key, [value]),))
    return None


def _fits(meant: object, accepted: tuple[ValueKind, ...]) -> bool:
    """Whether it is surely what was meant: where several kinds are accepted, a whole number alone is."""
    return any(kind.takes(meant) for kind in accepted) and (len(accepted) == 1 or type(meant) is int)


def _meanings(node: Node) -> Iterator[object]:
    """What a value may have been meant to be, the likeliest first."""
    value = node.value
    if isinstance(value, str):
        bare = value.strip().lower()
        with suppress(ValueError):
            yield float(bare)
        if bare.removeprefix("-").isdecimal():
            yield int(bare)
        if bare in _SWITCHES:
            yield _SWITCHES[bare]
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(value, float) and value.is_integer():
            yield int(value)
        yield str(value)
    elif node.kind == "sequence" and len(node.items) == 1 and isinstance(node.items[0].value, str):
        yield node.items[0].value
