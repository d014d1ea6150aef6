"""Layout strings are read as they were written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from preflight.dialects.megatron.pipeline import parse_layout, written

ROWS = st.integers(2, 6).flatmap(
    lambda stages: st.lists(
        st.lists(st.integers(1, 12), min_size=stages, max_size=stages).map(tuple), min_size=1, max_size=4
    ).map(tuple)
)


@given(rows=ROWS, depths=st.integers(0, 2))
def test_a_layout_that_is_written_is_read_again(rows: tuple[tuple[int, ...], ...], depths: int) -> None:
    found = parse_layout(written(rows, depths))
    assert [stage.count("t") for stage in found.stages] == [count for row in rows for count in row]
    assert (found.strange, found.letters[0], found.letters[-1], found.count("m")) == ("", "E", "L", depths)
    assert found.stages[-1].count("m") == depths


def test_stages_that_repeat_are_written_once() -> None:
    assert written(((1, 2, 2, 2), (2, 2, 2, 1))) == "Et|(tt|)*6tL"
