"""The size of a vocabulary that no option states: in code, or of a tokenizer that is published under its name.

A name is good enough for an estimate of memory, not for a check: only the plan reads these sizes.
Source: `vocab_size` in the config.json that each model is published with; of SentencePiece models their number of
pieces (Llama 2 32,000, Megatron-LM d98e8a6 tests/unit_tests/tokenizers/test_tokenizer.py:104; Nemotron 256,000, arXiv
2402.16819).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from preflight.dialects.megatron.namespace import NotKnown, Run
from preflight.dialects.megatron.parsing import Parsed
from preflight.run.plan import Bound

TIKTOKEN = 2**17
"""What TikTokenizer takes without --vocab-size (megatron/core/tokenizers/text/libraries/tiktoken_tokenizer.py:24)."""

LLAMA_2 = 32000
_PUBLISHED = (
    (r"nemotron_2_256k|nemotron-?4(?!\d)", 256000),
    (r"llama-?_?3|llama3", 128256),
    (r"codellama", 32016),
    (r"llama-?_?2|llama2|mixtral|mistral-7b-v0\.1|mistral-7b-instruct-v0\.[12]", LLAMA_2),
    (r"mistral-7b(-instruct)?-v0\.3", 32768),
    (r"qwen-?_?(2|2[._-]?5|3)(?![.\d]|_5)", 151936),
    (r"deepseek-?_?v?3(?!b)", 129280),
    (r"deepseek-?_?v?2", 102400),
    (r"glm-?_?4", 151552),
    (r"gemma-?_?2(?!\d)", 256000),
    (r"gpt-?_?oss", 201088),
    (r"phi-?_?3", 32064),
    (r"baichuan-?2", 125696),
)


SET = "say it with --set vocab_size=N"
_KINDS = {
    "BertWordPieceLowerCase": (21128, 119547),
    "BertWordPieceCase": (21128, 119547),
}
"""Between what the vocabularies lie that such tokenizers are published with: BERT's from bert-base-chinese to
bert-base-multilingual-cased."""
_ANY = (1, 262_208)


def bound(run: Run) -> tuple[Bound, ...]:
    """Between what the rows of the embedding lie, where nobody says how many there are."""
    try:
        kind, tensor = run.value("tokenizer_type"), int(run.tensor_model_parallel_size)
    except (NotKnown, TypeError, ValueError):
        return ()
    least, most = _KINDS.get(str(kind.raw), _ANY) if kind.known else _ANY
    rounded = -(-most // (128 * tensor)) * 128 * tensor if tensor > 0 else most
    return (Bound("model.vocab", least, rounded, SET),)


def published(run: Run) -> int:
    """The vocabulary of the tokenizer that the options name. Raises NotKnown when it is none that is known."""
    for name in ("tokenizer_model", "tokenizer_name_or_path"):
        value = run.value(name)
        last = (
            "/".join(value.raw.lower().rstrip("/").split("/")[-2:])
            if value.known and isinstance(value.raw, str)
            else ""
        )
        for pattern, size in _PUBLISHED if last else ():
            if re.search(pattern, last):
                return size
        if run.tokenizer_type == "Llama2Tokenizer" and re.fullmatch(r"(\$[^/]*/)?tokenizer\.model", last):
            return LLAMA_2
    raise NotKnown("the size of the vocabulary is in the tokenizer's files")


def tokenizer(parsed: Parsed, open_file: Callable[[str], bytes | None]) -> tuple[int, str] | None:
    """The vocabulary's size as the tokenizer's files say it, and which; None where nobody needs them, or none do."""
    for name in ("tokenizer_model", "tokenizer_name_or_path") if "vocab_size" not in parsed.written else ():
        value = parsed.written.get(name)
        if value is not None and isinstance(value.raw, str) and value.raw:
            from preflight.dialects.tokenizer_files import vocabulary

            if (found := vocabulary(value.raw, open_file)) is not None:
                return found
    return None


def rows(run: Run) -> int:
    """Rows of the embedding as built: as derived, else of the tokenizer's files or of the published vocabulary."""
    if run.value("padded_vocab_size").known or run.vocab_size is not None:
        found: int = run.padded_vocab_size
        return found
    if run.use_checkpoint_args:
        raise NotKnown("--use-checkpoint-args takes it from the checkpoint")
    return padded(run, run.tokenizer_size or published(run))


def padded(run: Run, size: int) -> int:
    """A size rounded up so that it divides over tensor-parallel ranks, unless it is not to be padded."""
    multiple = 1 if run.pad_vocab_size is False else run.make_vocab_size_divisible_by * run.tensor_model_parallel_size
    return -(-size // multiple) * multiple
