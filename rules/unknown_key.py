"""A key that the framework does not know at this place.

## What it does
Compares the keys of a graph-mode MindFormers config with those of its release: in strict sections (`parallel_config`,
`recompute_config`, `swap_config`, `moe_config`, `runner_config`, `monitor_config` since 1.5; those handed to a class
before), in `trainer`, in the sections handed to MindSpore (`parallel`, `context`), in `model_config`, and, where a
known key is very near, in the datasets and at the top level. In a checkout of MindFormers the keys of `model_config`
are the arguments of the class that lies there.

## Why is this bad?
A strict section refuses the file at load. Elsewhere the key is silently ignored and the default trains instead of the
value that was meant: `num_hidden_layers` in a `LlamaConfig` gives 32 layers.

## Example
    parallel_config:
      model_paralel: 8

Use instead:

    parallel_config:
      model_parallel: 8

## Fix safety
Unsafe: the value takes effect once the key is spelled right. Where it would be refused under that name, the key can be
removed instead.

## References
MindFormers v1.5.0, mindformers/tools/register/template.py:116, Config._update_value
MindFormers v1.7.0, mindformers/parallel_core/transformer_config_utils.py:515, convert_to_transformer_config
MindFormers 2.1.0, mindformers/parallel_core/config_converter.py:88, ConfigConverter.convert
"""

from collections.abc import Iterator

from preflight import Edit, Finding, Fix, Job, Message, Related, Safety, Severity, rule
from preflight.dialects.mindformers.keys import Stray, strays
from preflight.loaders.document import Node

MOST_LETTERS = 3
"""So many letters more or less are a slip; with more it may be another key."""

_FEW = "{where} has keys that this model does not read: {names}"
_MANY = "{where} has keys that this model does not read: {names} and {more} more"


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
    kind = job.arguments.get("kind").raw
    if kind not in ("legacy", "mcore"):
        return
    config = next((d.tree for d in job.documents[1:] if d.source.name.endswith("config.json")), None)
    if (tree := job.arguments.tree) is None:
        return
    found = [one for one in strays(tree, kind, job.target.version, config) if not _is_taken(one, tree, job)]
    yield from (
        _finding(stray, fixable=stray.entry.key.span.source is job.documents[0].source)
        for stray in found
        if stray.weight != "note"
    )
    yield from _unused([stray for stray in found if stray.weight == "note"])


def _is_taken(stray: Stray, tree: Node, job: Job) -> bool:
    """Whether the class that a section of the network is handed to takes the key, in the program that lies here."""
    kind = tree.get(*stray.key[:-1], "type") if stray.key[:1] == ("model",) else None
    takes = job.arguments.certainty.takes(str(kind.value)) if kind is not None else None
    return takes is not None and stray.key[-1] in takes


def _unused(found: list[Stray]) -> Iterator[Finding]:
    """Keys that nothing reads and that look like no other, together."""
    if found:
        names = tuple(str(stray.key[-1]) for stray in found[:8])
        message = Message(_MANY if len(found) > 8 else _FEW, where=found[0].where, names=names, more=len(found) - 8)
        related = tuple(Related(stray.entry.key.span) for stray in found[1:100])
        yield Finding(message, found[0].entry.key.span, related, key=found[0].key, severity=Severity.NOTE)


def _finding(stray: Stray, *, fixable: bool) -> Finding:
    name, weight = stray.key[-1], Severity(stray.weight)
    ignored = "no loader takes it" if stray.where.endswith("data_loader") else "it is silently ignored"
    fate = "the framework refuses it" if weight is Severity.ERROR else ignored
    hint = Message("; did you mean {near!r}?", near=stray.near) if stray.near else ""
    slip = len(stray.near) - len(name) if isinstance(name, str) else 0
    fix = (
        Fix(f"rename it to {stray.near}", (Edit("rename", stray.key, stray.near),), offered=abs(slip) > MOST_LETTERS)
        if stray.near and fixable
        else None
    )
    gone = Fix(f"remove {name}", (Edit("remove", stray.key),), Safety.UNSAFE) if weight is Severity.ERROR else None
    message = Message(
        "{name!r} is not a key of {where}, and {fate}{hint}", name=name, where=stray.where, fate=fate, hint=hint
    )
    others = (gone,) if fix is not None and gone is not None else ()
    return Finding(
        message,
        stray.entry.key.span,
        key=stray.key,
        fix=fix,
        alternatives=others,
        upstream=stray.upstream,
        severity=weight,
    )
