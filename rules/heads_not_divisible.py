"""The attention heads are not divisible by tensor parallel ranks.

## What it does
Checks that every tensor-parallel rank gets the same whole number of attention heads.

## Why is this bad?
A head cannot be split. The model configuration is refused on every rank at start-up.

## Example
    num_heads: 40        # 40 / 16 is not whole
    model_parallel: 16

Use instead a tensor-parallel size that divides the heads, here 8.

## Fix safety
No fix by itself: another tensor-parallel size is another layout.

## References
Megatron-LM d98e8a6, megatron/core/transformer/transformer_config.py:1447; core_v0.12.1 :559
MindFormers v1.5.0, mindformers/modules/transformer/transformer.py:1654 and models/llama/llama_transformer.py:183
MindFormers v1.7.0, mindformers/parallel_core/transformer_config.py:446; 2.1.0 :2349
MindFormers 2.1.0, mindformers/pynative/base_models/gpt/parallelize.py:729, with sparse attention :892; again in
mindformers/pynative/base_models/gpt/parallelize.py:750 and mindformers/pynative/base_models/gpt/parallelize.py:1751
MindFormers v1.5.0, mindformers/models/llama/llama_layer.py:454, the hidden size of the same ranks
"""

from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule

UPSTREAM = {
    "megatron@0.12.1": "megatron/core/transformer/transformer_config.py:559",
    "megatron": "megatron/core/transformer/transformer_config.py:1447",
    "mindformers/legacy": "mindformers/models/llama/llama_transformer.py:183",
    "mindformers/mcore@1.7.0": "mindformers/parallel_core/transformer_config.py:446",
    "mindformers/mcore": "mindformers/parallel_core/transformer_config.py:2349",
    "pynative/dsa": "mindformers/pynative/base_models/gpt/parallelize.py:892",
    "pynative": "mindformers/pynative/base_models/gpt/parallelize.py:729",
}


@rule(
    severity=Severity.ERROR,
    after=("mindspeed/tp-2d-sizes", "mindformers/hidden-over-heads", "megatron/hidden-over-heads"),
)
def check(job: Job) -> Iterator[Finding | Unverified]:
    heads, layout = job.plan.model.heads, job.plan.layout
    # MindSpeed deals out heads unevenly: mindspeed/core/transformer/transformer_config.py:21
    uneven = job.arguments.get("unaligned_linear")
    plane = job.arguments.get("tp_2d")  # 2-D tensor parallelism splits heads in one direction
    tensor = layout.tensor_x if plane.raw is True else layout.tensor
    if not layout.heads_split:
        return
    if (numbers := known(heads, tensor)) is None:
        yield Unverified(heads.because or tensor.because)
        return
    if numbers[1] <= 1 or numbers[0] % numbers[1] == 0 or uneven.raw is True:
        return
    if not (uneven.known and plane.known):
        yield Unverified(uneven.because or plane.because)
        return
    yield Finding(
        Message.plural(
            numbers[0],
            "{heads} attention head is not divisible by {ranks} tensor parallel ranks",
            "{heads} attention heads are not divisible by {ranks} tensor parallel ranks",
            heads=numbers[0],
            ranks=numbers[1],
        ),
        span=job.place(tensor, heads),
        related=heads.related if tensor.written else (),
        key=tensor.key or heads.key,
        upstream=job.upstream(UPSTREAM),
        layout=True,
    )
