"""A config is a template in which data and network are still to be filled in.

## What it does
Finds a config for training whose `train_dataset` and `model.arch` are both there and empty, as in the template that
MindFormers ships (`configs/general/run_general_task.yaml`). That the data are missing is not reported a second time.

## Why is this bad?
The trainer looks at the data first, then builds the network by its type: the run dies at start-up.

## Example
    train_dataset:
    model:
      arch:
Use instead:
    train_dataset:
      data_loader: {type: MindDataset, dataset_dir: /data}
    model:
      arch: {type: LlamaForCausalLM}

## References
MindFormers v1.5.0, mindformers/tools/register/register.py:288
MindFormers v1.7.0 and 2.1.0, mindformers/tools/register/register.py:357
"""

from collections.abc import Iterator

from preflight import Finding, Job, Related, Severity, rule
from preflight.dialects.mindformers.release_tables import read_at
from preflight.loaders.document import Node
from preflight.source.hints import TypeGuard

_LINE = {"1.5.0": 288, "1.7.0": 357, "2.1.0": 357}


@rule(severity=Severity.ERROR, frameworks=("mindformers",))
def check(job: Job) -> Iterator[Finding]:
    tree = job.arguments.tree
    if tree is None or job.arguments.open or job.arguments.get("training").raw is not True:
        return
    model, data = tree.get("model"), tree.get("train_dataset")
    arch = model.get("arch") if model is not None else None
    if not _empty(data) or not _empty(arch):
        return
    line = _LINE.get(read_at(job.target.version), _LINE["1.5.0"])
    yield Finding(
        "train_dataset and model.arch are empty: this is a template that is still to be filled in",
        data.span,
        (Related(arch.span),),
        key=("train_dataset",),
        upstream=f"mindformers/tools/register/register.py:{line}",
    )


def _empty(node: Node | None) -> TypeGuard[Node]:
    return node is not None and node.kind == "scalar" and node.value is None
