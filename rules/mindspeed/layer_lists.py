"""Checks of per-stage layer lists, and of empty layers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, Unverified, known, rule
from preflight.source.finding import Kind

Nested = list["int | Nested"]


def entries(text: object) -> tuple[int, ...] | None:
    """The numbers of "1,2,3", or None for anything else."""
    parts = str(text).split(",")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else None


def nested(text: str) -> Nested | None:
    """Reads lists in brackets with `*` for repetition as MindSpeed does, skipping everything else. None if the text is
    not readable."""
    stack: list[Nested] = [[]]
    tokens = iter(re.findall(r"\d+|\*|\[|\]", text))
    for token in tokens:
        if token == "[":
            stack.append([])
        elif token == "]":
            if len(stack) == 1:
                return None
            done = stack.pop()
            stack[-1].append(done)
        elif token == "*":
            times = next(tokens, "")
            if not times.isdigit() or not stack[-1] or int(times) > 4096:
                return None
            stack[-1].extend([stack[-1].pop()] * int(times))
        else:
            stack[-1].append(int(token))
    first = stack[0][0] if len(stack) == 1 and stack[0] else None
    return first if isinstance(first, list) else None


LENGTH = "mindspeed_llm/features_manager/pipeline_parallel/num_layer_list.py:28"
BLOCK = "mindspeed_llm/features_manager/transformer/transformer_block.py:25"
EVEN = "megatron/training/arguments.py:490"
"""Megatron uses the length of the list as the number of layers, and first requires it to be divisible by the stages."""
SUM = "mindspeed_llm/training/arguments.py:147"
SPLIT = "mindspeed_llm/core/layerwise_disaggregated_training/initialize.py:105"

_LENGTH = "--num-layer-list has {count} numbers for {pipeline} pipeline stages"
_DISAGGREGATED = (
    "the length of --num-layer-list is {count}, but --layerwise-disaggregated-training needs {wanted}, one "
    "more than the number of pipeline stages"
)
_COUNTED = (
    "embedding and loss cannot be counted as layers with --num-layer-list, because {pipeline} + {counted} is not "
    "divisible by {pipeline} stages"
)
_SUM = "--num-layer-list adds up to {total}, but the model has {count} layers"


@rule(
    id="mindspeed-llm/num-layer-list-sum",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    frameworks=("mindspeed-llm",),
    after=("mindspeed-llm/layer-list-pipeline",),
    upstream=(LENGTH, BLOCK, SUM, SPLIT),
    reads=("num_layer_list",),
)
def num_layer_list_sum(job: Job) -> Iterator[Finding | Unverified]:
    """--num-layer-list does not match the pipeline or the number of layers.

    ## What it does
    Checks that `--num-layer-list` has one number per pipeline stage (one more with
    `--layerwise-disaggregated-training`, whose first stage holds the first and the last layers), that the numbers add
    up to `--num-layers`, and that neither the embedding nor the loss counts as an additional layer.

    ## Why is this bad?
    MindSpeed-LLM rejects a list with a different length when it validates arguments, and a different sum when it builds
    the model config, so every rank fails at launch.

    ## Example
        --num-layers 10 --pipeline-model-parallel-size 4 --num-layer-list 3,3,2,1

    Use instead:

        --num-layers 10 --pipeline-model-parallel-size 4 --num-layer-list 3,3,2,2

    ## References
    MindSpeed-LLM c77308a, mindspeed_llm/features_manager/pipeline_parallel/num_layer_list.py:27,
    mindspeed_llm/training/arguments.py:146,
    mindspeed_llm/core/layerwise_disaggregated_training/initialize.py:104
    """
    arguments = job.arguments
    value = arguments.given("num_layer_list")
    if value is None:
        return
    layers, stages, split = (
        arguments.get(name)
        for name in ("num_layers", "pipeline_model_parallel_size", "layerwise_disaggregated_training")
    )
    if (numbers := known(value, layers, stages)) is None or not split.known:
        yield Unverified(next((v.because for v in (value, layers, stages, split) if not v.known), ""))
        return
    text, count, pipeline = numbers
    if pipeline < 1:
        return
    disaggregated = bool(split.raw)  # releases before 26.0 lack it
    listed = entries(text)
    if listed is None:
        message = Message("--num-layer-list {text!r} is not a list of numbers", text=text)
        yield Finding(message, job.place(value), key=value.key, upstream=SUM)
    elif disaggregated and len(listed) != pipeline + 1:
        related = (*stages.related, *split.related)
        message = Message(_DISAGGREGATED, count=len(listed), wanted=pipeline + 1)
        yield Finding(message, job.place(value), related, key=value.key, upstream=SPLIT, layout=True)
    elif not disaggregated and len(listed) != pipeline:
        where = LENGTH if len(listed) % pipeline == 0 else EVEN
        message = Message(_LENGTH, count=len(listed), pipeline=pipeline)
        yield Finding(message, job.place(value), stages.related, key=value.key, upstream=where, layout=True)
    elif (counted := _counted(job)) is None:
        yield Unverified("whether embedding and loss count as layers")
    elif counted % pipeline:
        message = Message(_COUNTED, pipeline=pipeline, counted=counted)
        yield Finding(message, job.place(value), stages.related, key=value.key, upstream=EVEN)
    elif sum(listed) != count:
        message = Message(_SUM, total=sum(listed), count=count)
        yield Finding(message, job.place(value), layers.related, key=value.key, upstream=SUM)


def _counted(job: Job) -> int | None:
    """The number of additional layers that Megatron counts when it checks a plain pipeline; None if unknown."""
    if any(
        job.arguments.get(name).raw is not None
        for name in ("num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank")
    ):
        return 0
    flags = [job.arguments.get(f"account_for_{part}_in_pipeline_split") for part in ("embedding", "loss")]
    return sum(flag.raw is True for flag in flags) if all(flag.known for flag in flags) else None


NOOP_FILE = "mindspeed/features_manager/pipeline_parallel/noop_layers.py"


@rule(
    id="mindspeed/noop-layers-range",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    frameworks=("mindspeed",),
    upstream=(f"{NOOP_FILE}:43", f"{NOOP_FILE}:46"),
    reads=("noop_layers",),
)
def noop_layers_range(job: Job) -> Iterator[Finding | Unverified]:
    """A layer named by --noop-layers does not exist.

    ## What it does
    Checks that `--noop-layers` is a list of layer numbers, separated by commas, each at least 0 and less than
    `--num-layers`.

    ## Why is this bad?
    MindSpeed reads the list when it validates arguments and rejects any other list, so every rank fails at launch.
    `--num-layers` includes the empty layers, so a 61-layer model padded to 64 layers names 61, 62 and 63.

    ## Example
        --num-layers 64 --noop-layers 62,63,64

    Use instead:

        --num-layers 64 --noop-layers 61,62,63

    ## References
    MindSpeed 028de58, mindspeed/features_manager/pipeline_parallel/noop_layers.py:42, post_validate_args
    """
    value = job.arguments.given("noop_layers")
    automated = job.arguments.get("automated_pipeline")
    if value is None or automated.raw is True:
        return
    layers = job.arguments.get("num_layers")
    if (both := known(value, layers)) is None or not automated.known:
        yield Unverified(value.because or layers.because or automated.because)
        return
    text, count = both
    numbers = entries(text)
    beyond = [n for n in numbers or () if n >= count]
    if numbers is not None and not beyond:
        return
    wrong = (
        Message("--noop-layers names {beyond}, but layers run from 0 to {last}", beyond=tuple(beyond), last=count - 1)
        if beyond
        else Message("--noop-layers {text!r} is not a list of layer numbers", text=text)
    )
    place = f"{NOOP_FILE}:{46 if beyond else 43}"
    yield Finding(wrong, job.place(value), layers.related, key=value.key, upstream=place)


LIST_FILE = "mindspeed/features_manager/pipeline_parallel/unaligned_pineline_feature.py"


@rule(
    id="mindspeed/pipeline-layers-list",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    frameworks=("mindspeed",),
    upstream=tuple(f"{LIST_FILE}:{line}" for line in (49, 55, 57, 65)),
    reads=("pipeline_num_transformer_layers",),
)
def pipeline_layers_list(job: Job) -> Iterator[Finding | Unverified]:
    """--pipeline-num-transformer-layers does not match the pipeline or the number of layers.

    ## What it does
    Checks that the list has one entry per pipeline stage, that each entry has one number per virtual stage, and that
    the sum of the numbers is at most `--num-layers`.

    ## Why is this bad?
    MindSpeed rejects any other list when it validates arguments, so every rank fails at launch.

    ## Example
        --num-layers 8 --pipeline-model-parallel-size 4 --pipeline-num-transformer-layers [[3],[2],[3]]

    Use instead:

        --num-layers 8 --pipeline-model-parallel-size 4 --pipeline-num-transformer-layers [[3],[2],[2],[1]]

    ## References
    MindSpeed 028de58, mindspeed/features_manager/pipeline_parallel/unaligned_pineline_feature.py:48, validate_args
    """
    arguments = job.arguments
    value = arguments.given("pipeline_num_transformer_layers")
    if value is None:
        return
    others = [
        arguments.get(name)
        for name in ("num_layers", "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size")
    ]
    if unknown := next((v for v in (value, *others) if not v.known), None):
        yield Unverified(unknown.because)
        return
    if (numbers := known(value, *others[:2])) is None:
        return
    text, layers, pipeline = numbers
    if wrong := fault(nested(str(text)), layers, pipeline, others[2].raw or 1):
        message, line = wrong
        yield Finding(
            message,
            job.place(value),
            tuple(place for v in others[:2] for place in v.related),
            key=value.key,
            upstream=f"{LIST_FILE}:{line}",
            layout=True,
        )


def fault(stages: Nested | None, layers: int, pipeline: int, virtual: int) -> tuple[str, int] | None:
    """The fault in a list, and the upstream line that checks it."""
    if not stages or len(stages) != pipeline:
        return Message(
            "--pipeline-num-transformer-layers has {count} entries for {pipeline} pipeline stages",
            count=len(stages or ()),
            pipeline=pipeline,
        ), 49
    for stage in stages:
        if not isinstance(stage, list) or len(stage) != virtual:
            count = len(stage) if isinstance(stage, list) else 0
            one = "an entry of --pipeline-num-transformer-layers has {count} numbers for {virtual} virtual stage"
            more = "an entry of --pipeline-num-transformer-layers has {count} numbers for {virtual} virtual stages"
            return Message.plural(virtual, one, more, count=count, virtual=virtual), 57 if virtual > 1 else 55
    total = sum(n for stage in stages if isinstance(stage, list) for n in stage if isinstance(n, int))
    if total > layers:
        return Message(
            "--pipeline-num-transformer-layers adds up to {total}, but the model has {layers} layers",
            total=total,
            layers=layers,
        ), 65
    return None


OVERLAP_FILE = "mindspeed/features_manager/moe/fb_overlap.py"
EARLY = (
    "--noop-layers names {early}, but --moe-fb-overlap needs empty layers to be in the last virtual stage, "
    "from layer {first} on"
)


@rule(
    id="mindspeed/fb-overlap-layers",
    kind=Kind.RELEASE,
    severity=Severity.ERROR,
    sometimes=(Severity.WARNING,),
    frameworks=("mindspeed",),
    upstream=(f"{OVERLAP_FILE}:65", f"{OVERLAP_FILE}:135"),
    reads=("moe_fb_overlap",),
)
def fb_overlap_layers(job: Job) -> Iterator[Finding | Unverified]:
    """Empty layers or chunks are at positions that the forward-backward overlap does not allow.

    ## What it does
    With `--moe-fb-overlap` on virtual stages, checks that `--noop-layers` are all in the last virtual stage, and that
    every chunk of `--pipeline-model-parallel-layout` holds a decoder layer.

    ## Why is this bad?
    The overlap pairs the forward pass of one layer with the backward pass of another, and an empty chunk has neither.
    The run fails at launch. MindSpeed's check reads "the first" element of an unordered set, so the result can depend
    on the numbers in the list.

    ## Example
        --num-layers 16 --num-layers-per-virtual-pipeline-stage 2 --moe-fb-overlap --noop-layers 12,15

    Use instead:

        --num-layers 16 --num-layers-per-virtual-pipeline-stage 2 --moe-fb-overlap --noop-layers 14,15

    ## References
    MindSpeed 028de58, mindspeed/features_manager/moe/fb_overlap.py:134 and :65
    """
    arguments = job.arguments
    if (on := known(arguments.get("moe_fb_overlap"))) is None or not on[0]:
        return
    if (layout := arguments.given("pipeline_model_parallel_layout")) is not None:
        chunks = arguments.get("layers_per_chunk")
        if (rows := known(chunks)) is not None and any(count == 0 for row in rows[0] for count in row):
            message = (
                "a chunk of --pipeline-model-parallel-layout holds no decoder layer, which --moe-fb-overlap cannot run"
            )
            yield Finding(message, job.place(layout), key=layout.key, upstream=f"{OVERLAP_FILE}:65", layout=True)
        return
    if (noop := arguments.given("noop_layers")) is None or arguments.get("schedules_method").raw == "dualpipev":
        return
    values = (
        noop,
        arguments.get("num_layers"),
        arguments.get("num_layers_per_virtual_pipeline_stage"),
        arguments.get("schedules_method"),
    )
    if (sizes := known(*values[:3])) is None or not values[3].known:
        if unknown := next((value for value in values if not value.known), None):
            yield Unverified(unknown.because)
        return
    text, layers, virtual = sizes
    numbers = entries(text) or ()
    early = [n for n in numbers if n < layers - virtual]
    if early:
        first = next(
            iter(set(numbers))
        )  # the element that upstream gets first: hashes of small numbers are not randomized
        yield Finding(
            Message(EARLY, early=tuple(early), first=layers - virtual),
            job.place(noop),
            key=noop.key,
            upstream=f"{OVERLAP_FILE}:135",
            severity=Severity.ERROR if first in early else Severity.WARNING,
        )
