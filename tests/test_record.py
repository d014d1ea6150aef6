"""Records and named tuples behave like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import pickle
import typing
from typing import Any

import pytest

from preflight.source import record


class Ours(record.NamedTuple):
    """Few fields."""

    first: int
    second: str = "b"
    third: tuple[int, ...] = ()

    def doubled(self) -> int:
        """Twice the first."""
        return self.first * 2


class Theirs(typing.NamedTuple):
    """Few fields."""

    first: int
    second: str = "b"
    third: tuple[int, ...] = ()

    def doubled(self) -> int:
        """Twice the first."""
        return self.first * 2


class OursLong(record.NamedTuple):
    """Many fields."""

    a: int
    b: int
    c: int = 3
    d: int = 4
    e: int = 5
    f: int = 6
    g: int = 7
    h: int = 8
    i: int = 9


class TheirsLong(typing.NamedTuple):
    """Many fields."""

    a: int
    b: int
    c: int = 3
    d: int = 4
    e: int = 5
    f: int = 6
    g: int = 7
    h: int = 8
    i: int = 9


@record.dataclass(frozen=True)
class Record:
    """A record."""

    first: int
    second: list[int] = record.field(default_factory=list)
    third: str = "c"


@dataclasses.dataclass(frozen=True)
class Standard:
    """A record of the standard library."""

    first: int
    second: list[int] = dataclasses.field(default_factory=list)
    third: str = "c"


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((1, "x"), {}),
    ((1,), {"third": (2,)}),
    ((), {"first": 1}),
    ((1,), {"first": 1}),
    ((1,), {"fourth": 1}),
    ((1, 2, 3), {}),
    ((1, 2, 3, 4), {}),
]
LONG = [
    *CALLS,
    ((1, 2), {"i": 0}),
    ((1, 2), {"j": 0}),
    (tuple(range(9)), {}),
    (tuple(range(10)), {}),
    ((1, 2), {"a": 1}),
]


def outcome(made: Any, call: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    """The result of creating one: its fields and values, or a refusal."""
    try:
        value = made(*call[0], **call[1])
    except TypeError:
        return "refused"
    names = value._fields if isinstance(value, tuple) else [field.name for field in dataclasses.fields(value)]
    return [(name, getattr(value, name)) for name in names]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_it_is_made_as_in_the_standard_library(call: Any) -> None:
    assert outcome(Ours, call) == outcome(Theirs, call)
    assert outcome(Record, call) == outcome(Standard, call)


@pytest.mark.parametrize("call", LONG, ids=str)
def test_one_with_many_fields_too(call: Any) -> None:
    assert outcome(OursLong, call) == outcome(TheirsLong, call)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(Ours(1), Theirs(1)), (OursLong(1, 2), TheirsLong(1, 2))], ids=["few", "many"]
)
def test_a_named_tuple_is_one(ours: Any, theirs: Any) -> None:
    assert ours == theirs == tuple(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert (ours._fields, ours._field_defaults, ours._asdict()) == (
        theirs._fields,
        theirs._field_defaults,
        theirs._asdict(),
    )
    assert type(ours).__match_args__ == type(theirs).__match_args__
    assert type(ours).__doc__ == type(theirs).__doc__
    assert typing.get_type_hints(type(ours)) == typing.get_type_hints(type(theirs))
    assert json.dumps(ours) == json.dumps(theirs)
    for copied in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), type(ours)._make(theirs)):
        assert (copied, type(copied)) == (ours, type(ours))
    name = ours._fields[0]
    assert ours._replace(**{name: 9}) == theirs._replace(**{name: 9})
    with pytest.raises((TypeError, ValueError)):
        ours._replace(unknown=9)
    with pytest.raises(TypeError):
        type(ours)._make([1])
    with pytest.raises(AttributeError):
        setattr(ours, name, 9)
    with pytest.raises(AttributeError):
        ours.unknown = 9


def test_its_methods_and_parameters_have_their_names() -> None:
    assert Ours(2).doubled() == 4
    assert list(inspect.signature(Ours).parameters) == ["first", "second", "third"]


def test_a_field_without_default_cannot_follow_one_with_a_default() -> None:
    with pytest.raises(TypeError, match="without default"):
        type(record.NamedTuple)("Wrong", (record.NamedTuple,), {"__annotations__": {"a": int, "first": int}, "a": 1})


def test_a_list_of_one_record_is_not_that_of_another() -> None:
    assert Record(1).second is not Record(1).second
    assert record.replace(Record(1), first=2) == Record(2)
