"""Megatron refuses the checkpoint: it was saved with other arguments.

## What it does
With `--site`, compares what `check_checkpoint_args` compares: layers, hidden size, attention heads, whether positions
are added; with `--vocab-file` also positions, vocabulary and tokenizer; tensor and pipeline parallel size where the run
uses no distributed checkpoint. Not with `--finetune`. It also reports `--dist-ckpt-strictness return_unexpected` and
`return_all` where a distributed checkpoint is loaded: the loader then returns more than a state, which
`load_checkpoint` takes for the state.

## Why is this bad?
An assertion, or `'tuple' object has no attribute 'get'`, ends the run when it loads, after the queue and the building
of the model.

## Example
With a checkpoint of 32 layers, under `--site`:

    --num-layers 40 --load /data/llama

Use instead:

    --num-layers 32 --load /data/llama

## References
Megatron-LM core_v0.17.0, megatron/training/checkpointing.py:139, check_checkpoint_args, and
megatron/core/dist_checkpointing/serialization.py:48, load
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, rule
from preflight.rules.megatron.saved_arguments import goes_on, is_known, is_on, loaded, pairs, same, shown

ALWAYS = ("num_layers", "hidden_size", "num_attention_heads", "add_position_embedding")
WITH_VOCABULARY = ("max_position_embeddings", "make_vocab_size_divisible_by", "tokenizer_type")
BY_SIZE = ("NullTokenizer", "NullMultimodalTokenizer", "TikTokenizer")
"""Tokenizers whose size `--vocab-size` decides; that of others is in their files, whatever it is."""
RETURNED = ("return_unexpected", "return_all")
"""Values of `--dist-ckpt-strictness` with which the loader returns the tensors that do not fit together with the
state."""
TUPLE = "with {name} {now} the loader returns a tuple, which load_checkpoint takes for the state: loading ends the run"
DIFFERS = "the checkpoint was saved with {name} {before}, the run has {now}: the comparison at loading ends it"


def compared(job: Job) -> tuple[str, ...]:
    """What the loader compares."""
    get = job.arguments.get
    names = list(ALWAYS)
    distributed = get("use_dist_ckpt").raw is not False
    if is_on(job, "vocab_file"):
        own = get("vocab_size").raw is None or get("tokenizer_type").raw in BY_SIZE
        names += [*WITH_VOCABULARY, *(("padded_vocab_size",) if own and not distributed else ())]
    if get("data_parallel_random_init").raw is True:
        names.append("data_parallel_random_init")
    if is_on(job, "phase_transition_iterations"):
        names.append("global_batch_size")
    found = loaded(job)
    if not distributed and found is not None and found.version >= 3.0:
        names += ["tensor_model_parallel_size", "pipeline_model_parallel_size"]
    return tuple(names)


@rule(severity=Severity.ERROR, frameworks=("megatron",), reads=("(site)",))
def check(job: Job) -> Iterator[Finding | Unverified]:
    """Each argument that differs."""
    found = loaded(job)
    if found is None:
        return
    strictness = job.arguments.get("dist_ckpt_strictness")
    if found.kind == "torch_dist" and is_known(strictness) and strictness.raw in RETURNED:
        named = {"name": job.arguments.spell("dist_ckpt_strictness"), "now": strictness.raw}
        yield Finding(Message(TUPLE, **named), job.place(strictness), key=strictness.key)
    if not goes_on(job):
        return
    for pair in pairs(job, compared(job)):
        if not is_known(pair.now):
            yield Unverified(pair.now.because or f"{pair.name} is assumed")
        elif not same(pair.now.raw, pair.before):
            name = job.arguments.spell(pair.name)
            message = Message(DIFFERS, name=name, before=shown(pair.before), now=shown(pair.now.raw))
            place = job.place(pair.now, job.arguments.given(job.site.checkpoint.argument))  # type: ignore[union-attr]
            yield Finding(message, place, key=pair.now.key)
