"""Without a stated vocabulary or a known tokenizer, the estimate is a range that includes the measurement."""

from __future__ import annotations

from pathlib import Path

import pytest

import preflight

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "memory"
SAYING = ("--vocab-size", "--padded-vocab-size", "--vocab-file", "--merge-file", "--tiktoken-pattern")
TOKENIZER = ("--tokenizer-type", "--tokenizer-model", "--tokenizer-name-or-path", "--tokenizer-not-use-fast")
"""Options from which a vocabulary follows."""
NAMELESS = ("--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", "/data/tokenizer")
"""A tokenizer that nothing is known of; without any, Megatron takes GPT-2's."""

pytestmark = pytest.mark.skipif(
    not (DATA / "megatron-measured.jsonl").is_file(), reason="the measured runs are not here"
)


def without(words: list[str], names: tuple[str, ...]) -> list[str]:
    """Words of a command without some options and their values."""
    kept, dropped = [], False
    for word in words:
        if word.startswith("--"):
            dropped = word.partition("=")[0] in names
        if not dropped:
            kept.append(word)
    return kept


def shares(measured, monkeypatch, names, instead):
    """For runs with these options removed from the command: their number, and those with a peak outside the range."""
    whole = preflight.check_command

    def check(words, **more):
        return whole([*without(list(words), names), *instead], **more)

    monkeypatch.setattr(preflight, "check_command", check)
    monkeypatch.setattr(measured, "is_range", lambda estimate, plan: True)
    ranges = [unit for unit in measured.megatron(DATA) if unit.most]
    return len(ranges), [unit.name for unit in ranges if not unit.least <= unit.measured <= unit.most]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "instead"), [(SAYING, ()), ((*SAYING, *TOKENIZER), NAMELESS)], ids=["vocabulary", "tokenizer"]
)
def test_what_the_command_hides_is_between_the_ends(monkeypatch, names, instead):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import measured

    count, missed = shares(measured, monkeypatch, names, instead)
    assert count >= 100
    assert len(missed) <= 0.05 * count, missed
