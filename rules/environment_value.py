"""An environment variable of the launch has a value that its reader refuses or ignores.

## What it does
Looks at `HCCL_BUFFSIZE`, `NCCL_BUFFSIZE` and the allocator settings `PYTORCH_CUDA_ALLOC_CONF` and
`PYTORCH_NPU_ALLOC_CONF`: values that are not numbers, options that the allocator does not know, options that exclude
each other.

## Why is this bad?
PyTorch stops with "Unrecognized CachingAllocator option" at the first allocation; the Ascend allocator refuses
`expandable_segments` with `max_split_size_mb` or `garbage_collection_threshold`. HCCL refuses a buffer size that is not
a number.

## Example
    export PYTORCH_NPU_ALLOC_CONF=expandable_segment:True
Use instead:
    export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True

## References
PyTorch, c10/cuda/CUDAAllocatorConfig.cpp, CUDAAllocatorConfig::parseArgs
torch_npu, torch_npu/csrc/core/npu/NPUCachingAllocator.cpp, CachingAllocatorConfig::parseArgs
"""

import re
from collections.abc import Iterator

from preflight import Finding, Job, Message, Severity, rule
from preflight.job import OF_ENVIRONMENT
from preflight.source.spelling import nearest

SIZES = ("HCCL_BUFFSIZE", "NCCL_BUFFSIZE")
ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
OPTIONS = (
    "max_split_size_mb", "max_non_split_rounding_mb", "garbage_collection_threshold", "roundup_power2_divisions",
    "expandable_segments", "backend",
    "release_lock_on_cudamalloc", "release_lock_on_hipmalloc", "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register", "base_addr_aligned_kb",
    "pinned_num_register_threads", "pinned_use_background_threads", "pinned_reserve_segment_size_mb",
    "graph_capture_record_stream_reuse",
    "per_process_memory_fraction", "page_size", "segment_size_mb", "multi_stream_lazy_reclaim",
)  # fmt: skip


@rule(severity=Severity.WARNING, reads=(OF_ENVIRONMENT,))
def check(job: Job) -> Iterator[Finding]:
    launch = job.documents[0].launch
    for name, word in (launch.environment if launch is not None else {}).items():
        if not word.text or word.maybe:
            continue
        if name in SIZES and not re.fullmatch(r"[0-9]+", word.text):
            yield Finding(Message("{name} is {text!r}, which is not a number", name=name, text=word.text), word.span)
        elif name in ALLOCATORS:
            for message in _allocator(name, word.text):
                yield Finding(message, word.span)


def _allocator(name: str, text: str) -> Iterator[str]:
    given = {}
    for part in re.split(r",(?![^\[]*\])", text.replace(" ", "")):
        option, colon, value = part.partition(":")
        if not colon or option not in OPTIONS:
            near = nearest(option, OPTIONS, 0.7)
            hint = Message("; did you mean {near}", near=near) if near and near != option else ""
            yield Message("{name} has no option {option!r}{hint}", name=name, option=option, hint=hint)
            return
        given[option] = value
    expandable = given.get("expandable_segments", "False")
    if expandable not in ("True", "False"):
        yield Message(
            "expandable_segments in {name} is True or False, not {expandable!r}", name=name, expandable=expandable
        )
    splitting = [option for option in ("max_split_size_mb", "garbage_collection_threshold") if option in given]
    if "NPU" in name and expandable == "True" and splitting:
        yield Message(
            "{name} sets expandable_segments, which does not work with {other}", name=name, other=splitting[0]
        )
