"""Megatron's pipeline layout strings: "Et*3|(tt|)*14tL" as the stages it stands for, and the other way round.

E embedding, t decoder layer, m multi-token-prediction layer, L loss; "|" ends a stage, commas are decoration,
"x*n" and "(xy)*n" repeat. Repetition is textual and not nested: brackets first, then single characters, as upstream
does it.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby

from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple

LETTERS = "EtmL"
_REPEATS = (lazy_pattern(r"\(([^)]+)\)\*(\d+)"), lazy_pattern(r"(.)\*(\d+)"))
_LONGEST = 100_000


class Layout(NamedTuple):
    """The stages in order, as strings of letters. strange: the first character that is no layer, or "".

    too_long: the repetition counts make more than a hundred thousand characters, which were not written out.
    """

    stages: tuple[str, ...]
    strange: str = ""
    too_long: bool = False

    @property
    def letters(self) -> str:
        """All layers in order."""
        return "".join(self.stages)

    def count(self, letter: str) -> int:
        """How many layers of a kind."""
        return self.letters.count(letter)

    def chunks(self, pipeline: int) -> tuple[tuple[str, ...], ...] | None:
        """The stages by pipeline rank, then virtual stage; None when they do not share out evenly."""
        if pipeline < 1 or len(self.stages) % pipeline:
            return None
        return tuple(self.stages[rank::pipeline] for rank in range(pipeline))


@lru_cache
def parse_layout(text: str) -> Layout:
    """Read a layout string. Stages are given even where a character is strange."""
    text = text.replace(",", "")
    for pattern in _REPEATS:
        if len(text) + sum(len(m[1]) * min(int(m[2][:9]), 10**9) for m in pattern.finditer(text)) > _LONGEST:
            return Layout((), "", True)
        text = pattern.sub(lambda m: m[1] * int(m[2]), text)
    stages = tuple(text.split("|"))
    return Layout(stages, next((c for stage in stages for c in stage if c not in LETTERS), ""))


def written(chunks: tuple[tuple[int, ...], ...], depths: int = 0) -> str:
    """The layout string of decoder layers by virtual stage and pipeline rank; prediction layers lie on the last."""
    first, *middle, last = (count for row in chunks for count in row)
    between = ((count, len(list(same))) for count, same in groupby(middle))
    parts = (f"({'t' * count}|)*{times}" if times > 1 else f"{'t' * count}|" for count, times in between)
    return f"E{'t' * first}|{''.join(parts)}{'t' * last}{'m' * depths}L"
