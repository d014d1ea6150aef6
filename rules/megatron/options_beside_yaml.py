"""Options are ignored because --yaml-cfg is also given.

## What it does
Finds options on the command line of a run that reads its arguments from the file given by `--yaml-cfg`.

## Why is this bad?
Megatron replaces all options with the contents of the file: `args = load_yaml(args.yaml_cfg)`. The other options have
no effect, and no message is printed.

## Example
    pretrain_gpt.py --yaml-cfg gpt.yaml --tensor-model-parallel-size 2

Use instead (with the size under `model_parallel` in the file):

    pretrain_gpt.py --yaml-cfg gpt.yaml

## References
Megatron-LM d98e8a6, megatron/training/arguments.py:140, parse_args; core_v0.6.0 :60 and core_v0.19.0 :139 alike
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Related, Severity, rule
from preflight.job import OF_FILES
from preflight.loaders.document import Word

YAML = "--yaml-cfg"
UPSTREAM = "megatron/training/arguments.py:140"
SHOWN = 3


@rule(
    severity=Severity.WARNING,
    id="megatron/options-beside-yaml",
    frameworks=("megatron", "megatron-yaml"),
    upstream=(UPSTREAM,),
    reads=("yaml_cfg", OF_FILES),
)
def check(job: Job) -> Iterator[Finding]:
    launch = job.documents[0].launch
    options = [word for word in launch.words if (word.text or "").startswith("--")] if launch is not None else []
    if not any(_name(word) == YAML for word in options):
        return
    dropped = [word for word in options if _name(word) != YAML]
    if not dropped:
        return
    names = [_name(word) for word in dropped]
    more = Message(" and {count} more", count=len(names) - SHOWN) if len(names) > SHOWN else ""
    message = Message(
        ("--yaml-cfg ignores {options}{more}, because only the YAML file is read"),
        options=tuple(names[:SHOWN]),
        more=more,
    )
    related = tuple(Related(word.span) for word in dropped[1:SHOWN])
    yield Finding(message, dropped[0].span, related, key=(names[0],), upstream=UPSTREAM)


def _name(word: Word) -> str:
    return (word.text or "").partition("=")[0]
