"""SGLang's options behind a prefix: numbers that its parser refuses, and misspelt words.

Releases of SGLang accept different words, so only a word that is plainly another one is a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from preflight.frontends.hydra_faults import REFUSED
from preflight.loaders.document import Problem, Word
from preflight.source.finding import Message
from preflight.source.spelling import anagram_of

INTEGERS = frozenset(
    [
        *("context-length", "max-running-requests", "max-queued-requests", "max-total-tokens", "chunked-prefill-size"),
        *("max-prefill-tokens", "page-size", "pipeline-parallel-size", "pp-size", "data-parallel-size", "dp-size"),
        *("expert-parallel-size", "ep-size", "ep-num-redundant-experts", "moe-dense-tp-size", "cuda-graph-max-bs"),
        *("speculative-num-steps", "speculative-eagle-topk", "speculative-num-draft-tokens", "stream-interval"),
        *("decode-log-interval", "random-seed", "torch-compile-max-bs", "server-concurrency", "max-mamba-cache-size"),
    ]
)
NUMBERS = frozenset(["mem-fraction-static", "watchdog-timeout", "schedule-conservativeness", "mamba-full-memory-ratio"])
"""Options of type int and float (python/sglang/srt/server_args.py, ServerArgs.add_cli_args, v0.5.5)."""
BACKENDS = (
    *("triton", "torch_native", "flex_attention", "nsa", "cutlass_mla", "fa3", "fa4", "flashinfer", "flashmla"),
    *("trtllm_mla", "trtllm_mha", "dual_chunk_flash_attn", "aiter", "wave", "intel_amx", "ascend", "intel_xpu"),
)
WORDS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("attention-backend", "prefill-attention-backend", "decode-attention-backend"), BACKENDS),
    "speculative-algorithm": ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM"),
    "moe-a2a-backend": ("none", "deepep", "mooncake"),
    "deepep-mode": ("normal", "low_latency", "auto"),
    "kv-cache-dtype": ("auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16", "fp4_e2m1"),
    "dtype": ("auto", "half", "float16", "bfloat16", "float", "float32"),
    "load-balance-method": ("round_robin", "shortest_queue", "minimum_tokens"),
    "schedule-policy": ("lpm", "random", "fcfs", "dfs-weight", "lof", "priority"),
    "disaggregation-transfer-backend": ("mooncake", "nixl", "ascend", "fake"),
}
"""Options with choices, and their words."""


def of_sglang(words: Sequence[Word], prefix: str) -> Iterator[Problem]:
    """The options of a launch that SGLang's parser refuses."""
    for at, word in enumerate(words):
        name, equal, value = (word.text or "").partition("=")
        option = name.removeprefix(prefix)
        if option == name or not (option in INTEGERS or option in NUMBERS or option in WORDS):
            continue
        own = word if equal else words[at + 1] if at + 1 < len(words) else None
        text = value if equal else own.text if own is not None else None
        if own is None or not text or own.maybe or text.startswith("--"):
            continue
        if option in WORDS:
            near = anagram_of(text, WORDS[option])
            if near:
                message = Message(
                    "SGLang's {name} has no {value:.60}; did you mean {near}?", name=name, value=text, near=near
                )
                yield Problem(REFUSED, message, own.span)
        elif not _is(text, whole=option in INTEGERS):
            kind: str = Message("an integer") if option in INTEGERS else Message("a number")
            yield Problem(
                REFUSED, Message("{name} must be {kind}, not {value:.60}", name=name, kind=kind, value=text), own.span
            )


def _is(text: str, *, whole: bool) -> bool:
    """Whether Python reads a text as a number."""
    try:
        return (int(text) if whole else float(text)) is not None
    except ValueError:
        return False
