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
_GROUPS = lazy_pattern(r"\(([^)]+)\)(?:\*(\d+))?")
"""Of a text that ends in a parenthesis: a group that is not repeated is taken, too, so that no search goes on in it."""
_NUMBER = lazy_pattern(r"\*\d+")
_LETTERS = lazy_pattern(r"(.)\*(\d+)")
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
    for pattern, end in ((_GROUPS, _end_of_groups(text)), (_LETTERS, None)):
        head, tail = (text, "") if end is None else (text[:end], text[end:])
        if len(text) + sum(len(m[1]) * int((m[2] or "0")[:9]) for m in pattern.finditer(head)) > _LONGEST:
            return Layout((), "", True)
        text = pattern.sub(lambda m: m[1] * int(m[2]) if m[2] else m[0], head) + tail
    stages = tuple(text.split("|"))
    return Layout(stages, next((c for stage in stages for c in stage if c not in LETTERS), ""))


def _end_of_groups(text: str) -> int:
    """Where the last group ends, its number included."""
    end = text.rfind(")") + 1
    number = _NUMBER.match(text, end)
    return number.end() if number else end


def written(chunks: tuple[tuple[int, ...], ...], depths: int = 0) -> str:
    """The layout string of decoder layers by virtual stage and pipeline rank; prediction layers lie on the last."""
    first, *middle, last = (count for row in chunks for count in row)
    between = ((count, len(list(same))) for count, same in groupby(middle))
    parts = (f"({'t' * count}|)*{times}" if times > 1 else f"{'t' * count}|" for count, times in between)
    return f"E{'t' * first}|{''.join(parts)}{'t' * last}{'m' * depths}L"
