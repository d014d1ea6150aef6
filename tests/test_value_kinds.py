"""Kinds of values: their words, what they accept, and their use in declared constraints."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight import schemas
from preflight.dialects.mindformers.graph_kind_checks import checked_in
from preflight.dialects.mindformers.graph_value_kinds import ARGUMENT_KINDS
from preflight.dialects.mindformers.release_tables import known_names
from preflight.lint.condition_in_words import refusal
from preflight.lint.evaluator import evaluate
from preflight.lint.expressions import Handles
from preflight.lint.value_kinds import LIST, MAPPING, NULL, SWITCH, TEXT, ListOf, Number, Text, ValueKind, one_of, whole
from preflight.loaders.document import Unknown

SHARE = Number(above=0.0, below=1.0, pointed=True)
KINDS: tuple[tuple[ValueKind, str, list[Any], list[Any]], ...] = (
    (whole(1), "a positive integer", [1, 8], [0, -1, 1.0, True, "1", None]),
    (whole(1, also=(-1,)), "-1 or a positive integer", [1, -1], [0, -2]),
    (Number(0, whole=True, booleans=True), "a non-negative integer", [0, True, False], [-1, 0.5]),
    (Number(0, below=1), "a number that is at least 0 and below 1", [0, 0.5], [1, -0.1, True]),
    (Number(0, maximum=1), "a number from 0 to 1", [0, 1, 0.5], [1.5]),
    (SHARE, "a float between 0.0 and 1.0", [0.5], [0, 1, 0.0, 1.0]),
    (one_of("O0", "O1", "O2"), "O0, O1 or O2", ["O1"], ["o1", "", None, 0]),
    (one_of("silu", any_case=True, also=("swish",)), "silu", ["SiLU", "swish"], ["gelu"]),
    (Text(r"\d+GB").worded("a size such as 58GB"), "a size such as 58GB", ["58GB"], ["58G", 58]),
    (whole().or_null(), "an integer", [None, 3], ["", False]),
    (SWITCH | TEXT, "True or False or a string", [True, ""], [None, 0]),
    (~(NULL | TEXT), "anything but null or a string", [0, []], [None, "x"]),
    (
        ListOf(SHARE, 2),
        "a list of 2 entries, each a float between 0.0 and 1.0",
        [[0.9, 0.5]],
        [[0.9], [0.9, 1], 0.9],
    ),
    (MAPPING, "a mapping", [{}], [[], None]),
    (LIST, "a list", [[]], [{}, "x"]),
)


@pytest.mark.parametrize(("kind", "said", "good", "bad"), KINDS, ids=[said for _, said, _, _ in KINDS])
def test_a_kind_knows_its_words_and_what_it_accepts(
    kind: ValueKind, said: str, good: list[Any], bad: list[Any]
) -> None:
    assert kind.words == said
    assert [one for one in good if kind.accepts(one) is not True] == []
    assert [one for one in bad if kind.accepts(one) is not False] == []


def test_what_is_not_known_is_neither_accepted_nor_refused() -> None:
    unknown = Unknown("$TP")
    for kind in (whole(1), ~NULL, SWITCH | TEXT, TEXT.or_null(), ListOf(TEXT)):
        assert kind.accepts(unknown) is unknown
    assert ListOf(whole(1)).accepts([1, unknown]) is unknown
    assert ListOf(whole(1)).accepts([0, unknown]) is False
    assert ListOf(whole(1), 3).accepts([1, unknown]) is False


def test_kinds_are_values() -> None:
    assert whole(1).or_null() == whole(1).or_null() != whole(0).or_null()
    assert len({one_of("a", "b"), one_of("a", "b"), one_of("b")}) == 2


def test_a_condition_may_ask_for_a_kind() -> None:
    a = Handles()
    refused = ~a.tensor_parallel.is_a(whole(1))
    assert refusal(refused) == "`tensor_parallel` is not a positive integer."
    values: dict[str, object] = {"tensor_parallel": 0}
    assert evaluate(refused, lambda handle: values[handle.name]) is True
    values["tensor_parallel"] = 8
    assert evaluate(refused, lambda handle: values[handle.name]) is False
    values["tensor_parallel"] = Unknown("$TP")
    assert isinstance(evaluate(refused, lambda handle: values[handle.name]), Unknown)


EXACT = (
    whole(1),
    whole(1, also=(-1,)),
    Number(),
    Number(0, below=1),
    one_of("a", "b"),
    TEXT,
    SWITCH,
    TEXT | SWITCH | NULL,
    ListOf(whole(0), 2),
    whole(0).or_null(),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, -0.5, 2.5])
    | st.sampled_from(["", "a", "b", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize("kind", EXACT, ids=lambda kind: str(kind.words))
@given(value=VALUES)
def test_the_schema_of_a_kind_accepts_what_it_accepts(kind: ValueKind, value: object) -> None:
    assert jsonschema.Draft7Validator(kind.schema).is_valid(value) == kind.takes(value)


def test_conditions_of_checked_settings_ask_for_names_that_exist() -> None:
    asked = {handle.name for row in checked_in("", core=True) if row.when is not None for handle in row.when.handles()}
    assert asked - known_names() == set()


def test_every_kind_of_the_data_exists_and_is_used() -> None:
    rows = schemas.read("mindformers/arguments")
    assert {argument[0] for row in rows for argument in row["arguments"].values()} == ARGUMENT_KINDS.keys()
