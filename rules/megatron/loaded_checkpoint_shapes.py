"""The tensors in the checkpoint have other shapes than those of the network that the run builds.

## What it does
With `--site`, compares the shapes of tensors in the checkpoint with those that the arguments of the run make:
attention, feed-forward networks, experts, positions, and of files by rank the vocabulary. It also reports tensors that
the run wants and a distributed checkpoint lacks, such as the output layer where its embeddings were tied. With
`--finetune`, which compares no arguments, it reports hidden size and layers as well. Before core 0.13 files by rank
must have the tensors of the run and no others; a distributed checkpoint must have them with every
`--dist-ckpt-strictness`. With `raise_all` it must have no others. Networks with latent attention, hybrid layers or a
separate specification are not compared.

## Why is this bad?
The run ends when it loads, after the queue and the building of the model: with `Global shape mismatch`, `size mismatch`
or a `KeyError` for a name of a tensor, none of which names an option.

## Example
With a checkpoint that was saved with `--num-query-groups 8`, under `--site`:

    --group-query-attention --num-query-groups 4 --load /data/llama

Use instead:

    --group-query-attention --num-query-groups 8 --load /data/llama

## References
Megatron-LM core_v0.17.0, megatron/core/dist_checkpointing/strategies/torch.py:501, _validate_global_shapes, and
megatron/training/checkpointing.py:1866, load_model_state_dict
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.rules.megatron.saved_arguments import shown
from preflight.rules.megatron.saved_shapes import Unlike, changed, unlike

SHAPE = "the checkpoint has {tensor} of shape {saved}, {name} {now} makes it {wanted}: loading it ends the run"
ABSENT = "the checkpoint has no {tensor}, which the run has with {name} {now}: loading it ends the run"

MORE = "the checkpoint has {tensor}, which the run has not with {name} {now}: loading it ends the run"


@rule(severity=Severity.ERROR, frameworks=("megatron",), reads=("(site)",))
def check(job: Job) -> Iterator[Finding]:
    """Each argument that makes other tensors, once."""
    told = set()
    for one in unlike(job):
        name = _decides(job, one)
        if name not in told:
            told.add(name)
            yield _finding(job, one, name)


def _decides(job: Job, one: Unlike) -> str:
    """The argument that makes the tensor another one: the first that differs from the saved, otherwise the first
    typed."""
    typed = (name for name in one.names if job.arguments.given(name) is not None)
    return next(iter(changed(job, one.names)), None) or next(typed, one.names[0])


def _finding(job: Job, one: Unlike, name: str) -> Finding:
    now = job.arguments.get(name)
    named = {"tensor": one.tensor, "name": job.arguments.spell(name), "now": shown(now.raw)}
    if one.saved and one.wanted:
        message = Message(SHAPE, **named, saved=_product(one.saved), wanted=_product(one.wanted))
    else:
        message = Message(MORE if one.saved else ABSENT, **named)
    others = (job.arguments.given(each) for each in (*one.names, "load", "pretrained_checkpoint"))
    return Finding(message, job.place(now, *others), key=now.key)


def _product(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
