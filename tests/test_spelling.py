"""Typing errors are distinguished from different names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.source.spelling import slip_of

KNOWN = (
    "CausalLanguageModelingTrainer",
    "CosineWithWarmUpLR",
    "AdamW",
    "LlamaForCausalLM",
    "Qwen3Config",
    "MFLossMonitor",
    "text_classification",
)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CosineWithWarmupLR", "CosineWithWarmUpLR"),
        ("cosine_with_warm_up_lr", "CosineWithWarmUpLR"),
        ("AdamWW", "AdamW"),
        ("MFLosMonitor", "MFLossMonitor"),
        ("LlamaForCasualLM", "LlamaForCausalLM"),
        ("text_clasification", "text_classification"),
        ("LlamaForCausalML", "LlamaForCausalLM"),
        ("AdaWm", "AdamW"),
        ("CausalModelingTrainer", "CausalLanguageModelingTrainer"),
        ("CausalLanguageTrainer", "CausalLanguageModelingTrainer"),
        ("LanguageModelingTrainer", "CausalLanguageModelingTrainer"),
        ("CosineWarmUpLR", "CosineWithWarmUpLR"),
        ("ModelingTrainer", None),
        ("CosineWithUpLR", "CosineWithWarmUpLR"),
        ("MyCausalLanguageModelingTrainer", None),
        ("CausalLanguageModelingBigTrainer", None),
        ("AdamX", None),
        ("Adan", None),
        ("MyAdamW", None),
        ("Qwen4Config", None),
        ("Qwen3MoeConfig", None),
        ("LlamaForCausalVL", None),
        ("", None),
    ],
)
def test_slips(name, meant):
    assert slip_of(name, KNOWN) == meant


@given(st.sampled_from(["Causal", "Language", "Modeling", "Trainer"]), st.data())
def test_a_word_with_two_letters_swapped_is_a_slip(word, data):
    at = data.draw(st.integers(1, len(word) - 2))
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    assert slip_of("CausalLanguageModelingTrainer".replace(word, swapped), KNOWN) == "CausalLanguageModelingTrainer"


@given(st.from_regex(r"[A-Z][a-z]{1,8}", fullmatch=True), st.sampled_from(KNOWN[:4]), st.booleans())
def test_a_word_more_is_another_name(word, known, first):
    assert slip_of(word + known if first else known + word, KNOWN) is None
