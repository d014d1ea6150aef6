"""The samples that a run draws from its data: splits, blends and epochs, with the arithmetic of Megatron's GPTDataset
and BlendedMegatronDatasetBuilder (core 0.12 to 0.20)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil

from preflight.job import DataFile, Draw
from preflight.site.data_index import Bounds
from preflight.source.record import NamedTuple

SPLITS = ("training", "validation", "test")
SURPLUS = 0.005
"""How much more of each dataset of a blend is prepared."""
BLOCK = 128


def total(values: Sequence[float]) -> float:
    """The sum in numpy's order of addition: in eight lanes, and in halves above 128."""
    count = len(values)
    if count < 8:
        found = 0.0
        for value in values:
            found += value
        return found
    if count > BLOCK:
        half = count // 2 - (count // 2) % 8
        return total(values[:half]) + total(values[half:])
    lanes = list(values[:8])
    whole = count - count % 8
    for at in range(8, whole, 8):
        for lane in range(8):
            lanes[lane] += values[at + lane]
    pairs = [lanes[at] + lanes[at + 1] for at in (0, 2, 4, 6)]
    found = (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])
    for value in values[whole:]:
        found += value
    return found


def normalized(weights: Sequence[float]) -> list[float] | None:
    """Weights divided by their sum; None if the sum is not positive."""
    whole = total(weights)
    return [weight / whole for weight in weights] if whole > 0 else None


def split_bounds(text: str) -> tuple[Bounds, Bounds, Bounds] | None:
    """The splits of `--split 99,1,0`; None for other text."""
    try:
        parts = [float(part) for part in re.findall(r"[.0-9]+", text)]
    except ValueError:
        return None
    if not 0 < len(parts) <= len(SPLITS):
        return None
    shares = normalized([*parts, *(0.0 for _ in range(len(SPLITS) - len(parts)))])
    if shares is None:
        return None
    ends = [0.0]
    for share in shares:
        ends.append(ends[-1] + share)
    first, second, third = ((ends[at], ends[at + 1]) if ends[at + 1] > ends[at] else None for at in range(len(SPLITS)))
    return first, second, third


class Blend(NamedTuple):
    """Datasets with their weights; None for a blend without weights."""

    names: tuple[str, ...]
    weights: tuple[float, ...] | None


def blend_of(words: Sequence[str]) -> Blend | None:
    """The blend in a list of words: an even number of words are pairs if every first word is a number. None if Megatron
    refuses it."""
    if len(words) % 2:
        return Blend(tuple(word.strip() for word in words), None)
    weights = [_number(word) for word in words[::2]]
    if all(weight is None for weight in weights):
        return Blend(tuple(word.strip() for word in words), None)
    if any(weight is None for weight in weights):
        return None
    return Blend(tuple(word.strip() for word in words[1::2]), tuple(w for w in weights if w is not None))


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


class Need(NamedTuple):
    """The samples that a run needs, for training, validation and test; None for one pass over the data."""

    samples: tuple[int | None, int | None, int | None]
    sequence: int
    surplus: float = SURPLUS
    extra: int = 1
    """One token more than a sample has, so that each has a next one."""


def epochs(tokens: int, samples: int | None, sequence: int, extra: int = 1) -> int:
    """The number of passes over the tokens for a number of samples; 0 if there are no tokens."""
    if samples is None:
        return 1
    wanted = samples * sequence + extra
    if tokens <= 0:
        return 1 if wanted <= 0 else 0
    return max(1, -(-wanted // tokens))


def draws(blend: Blend, files: Sequence[DataFile], splits: Sequence[int], need: Need) -> list[Draw]:
    """The samples that splits, by number, draw from the datasets of a blend; files: the existing ones."""
    found = []
    shares = normalized(blend.weights) if blend.weights is not None else None
    for split in splits:
        samples = need.samples[split]
        for at, file in enumerate(files):
            if file.fault not in ("", "short"):
                continue
            wanted = samples
            if len(files) > 1 or shares is not None:
                wanted = _of_blend(samples, shares[at] if shares is not None else None, need.surplus)
            tokens = file.parts[split]
            times = epochs(tokens, wanted, need.sequence, need.extra)
            length = max(0, (times * tokens - need.extra) // need.sequence)
            found.append(Draw(SPLITS[split], file.name, file.argument, tokens, wanted, times, length))
    return found


def _of_blend(samples: int | None, share: float | None, surplus: float) -> int | None:
    """The number of samples prepared from one dataset of a blend; one pass over it without weights."""
    if samples is None or share is None:
        return None
    return ceil(ceil(samples * share) * (1 + surplus))
