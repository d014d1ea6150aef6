"""The classes that a graph-mode run builds from its sections, and their arguments: read once from
schemas/mindformers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from preflight import schemas
from preflight.dialects.mindformers.graph_value_kinds import ARGUMENT_KINDS
from preflight.lint.value_kinds import ValueKind
from preflight.loaders.document import Document
from preflight.run.arguments import Arguments
from preflight.run.version_ranges import matches, numbers
from preflight.source.record import NamedTuple

_HANDLED = ("HFDataLoader", "CommonDataLoader")
_TRAINED = ("optimizer", "lr_schedule", "train_dataset_task")


class Argument(NamedTuple):
    """The values that a class accepts for an argument, and where it checks them. behind: replacements that take
    precedence over it: arguments of the same section, or settings by their dotted names.
    """

    kind: ValueKind
    upstream: str
    behind: tuple[str, ...] = ()


class Takes(NamedTuple):
    """The arguments of the classes of a section. types: "*" for all. accepts: all names, if any other name switches the
    checks off. unless: an argument that, if set, passes the others to another class; only: one that must be set.
    """

    section: str
    types: tuple[str, ...]
    accepts: frozenset[str]
    unless: str
    arguments: Mapping[str, Argument]
    only: str = ""


@lru_cache(maxsize=1)
def classes() -> dict[str, list[str]]:
    """Registered names by section."""
    found: dict[str, list[str]] = schemas.read("mindformers/classes")
    return found


@lru_cache(maxsize=8)
def taken(version: str) -> tuple[Takes, ...]:
    """The arguments of the classes of a release."""
    rows = schemas.read("mindformers/arguments")
    return tuple(_takes(row, version) for row in rows if matches(version, row["versions"]))


def _takes(row: dict[str, object], version: str) -> Takes:
    arguments = row["arguments"]
    assert isinstance(arguments, dict)
    checked = {name: _argument(*row, version=version) for name, row in arguments.items()}
    types, accepts = row["types"], row.get("accepts", ())
    assert isinstance(types, list) and isinstance(accepts, (list, tuple))
    unless, only = str(row.get("unless", "")), str(row.get("only", ""))
    return Takes(str(row["section"]), tuple(types), frozenset(accepts), unless, checked, only)


def _argument(kind: str, places: dict[str, str], behind: Sequence[str] = (), *, version: str) -> Argument:
    return Argument(ARGUMENT_KINDS[kind], _place(places, version), tuple(behind))


def _place(places: dict[str, str], version: str) -> str:
    """The place of the check in the newest release up to a version."""
    return next(
        (place for since, place in reversed(places.items()) if numbers(since) <= numbers(version)),
        next(iter(places.values())),
    )


MOST_ENTRIES = 200
"""Maximum length of a list of classes: no run has that many callbacks."""


def built(a: Arguments, pipeline: object) -> Iterator[tuple[str, str]]:
    """The sections whose class this run looks up, with their places."""
    yield "trainer", "trainer"
    if a.get("kind").raw == "legacy":
        yield from (("model.arch", "model.arch"), ("model.model_config", "model.model_config"))
    if not trains(a):
        return
    yield from ((section, section) for section in _TRAINED)
    yield "train_dataset.data_loader", "train_dataset.data_loader"
    if a.get("train_dataset.data_loader.type").raw in _HANDLED and matches(a.target.version, ">=1.5"):
        yield from _each(a, "train_dataset.data_loader.handler")
    if pipeline == 1 and a.get("runner_config.gradient_accumulation_steps").raw in (None, 1):
        yield "runner_wrapper", "runner_wrapper"  # otherwise it is replaced
    if isinstance(a.get("runner_wrapper.scale_sense").raw, dict):
        yield "runner_wrapper.scale_sense", "runner_wrapper.scale_sense"
    yield from _each(a, "callbacks")


def _each(a: Arguments, section: str) -> Iterator[tuple[str, str]]:
    """The entries of a list of classes."""
    entries = a.get(section).raw
    yield from (
        (section, f"{section}.{index}")
        for index in range(min(len(entries), MOST_ENTRIES) if isinstance(entries, list) else 0)
    )


def trains(a: Arguments) -> bool:
    """Whether the run builds the parts needed for training; a prediction with the training model builds no
    optimizer."""
    return a.get("run_mode").raw in ("train", "finetune")


def registers(a: Arguments, document: Document) -> bool:
    """Whether third-party classes are registered for this run."""
    said = document.launch is not None and any(
        (word.text or "").startswith("--register_path") for word in document.launch.words
    )
    return said or a.given("register_path") is not None
