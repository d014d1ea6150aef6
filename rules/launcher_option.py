"""A launcher is given an option that it does not have.

## What it does
Compares the options in front of the script with those of torchrun (`torch.distributed.run`, `torch.distributed.launch`)
and msrun. Only what is nearly one of them is reported: another name may be an option of a newer release. Both accept
the beginning of a name as the name. A module of `python -m` that is nearly torch's launcher is reported as well.

## Why is this bad?
The launcher refuses its command line on every node and starts nothing; a module that does not exist starts nothing
either.

## Example
    torchrun --nproc-pernode 8 pretrain_gpt.py --num-layers 32

Use instead:

    torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32

## Fix safety
Unsafe: with the option in effect another number of devices may start.

## References
PyTorch 010929f, torch/distributed/run.py, get_args_parser and parse_args
MindSpore 2.7, mindspore/python/mindspore/parallel/cluster/run.py, get_args
"""

from collections.abc import Iterator

from preflight import Finding, Job, Severity, rule


@rule(severity=Severity.ERROR, noticed=True)
def check(job: Job) -> Iterator[Finding]:
    yield from job.noticed("launcher-option")
