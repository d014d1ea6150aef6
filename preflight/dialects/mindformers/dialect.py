"""The dialect of MindFormers, and the release of a checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from preflight.dialects import Reading, Surroundings
from preflight.dialects.device_and_release import (
    Identity,
    has_checks,
    identify,
    named_by_environment,
    named_in_text,
    undescribed,
)
from preflight.dialects.mindformers.config_kind_and_loading import VERSIONS, kind_of, known_version, looks_like
from preflight.dialects.mindformers.release_tables import read_at
from preflight.loaders.document import Document, Node, Unknown
from preflight.run.arguments import Certainty
from preflight.run.request import Request, Target
from preflight.run.value import Origin, Value, unknown
from preflight.run.version_ranges import numbers
from preflight.source.record import replace
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.dialects.completion_data import Offers
    from preflight.job import Job
    from preflight.program.checkout.enclosing_checkout import Checkout


FRAMEWORK = "mindformers"
DESCRIBED = (1, 5)
"""The oldest release whose rules are fully described."""
READERS = {"mindrlhf": "MindRLHF"}
"""Packages of programs that read MindFormers configs in their own way."""
COMMON = ("model", "processor")
"""The parts of a config that MindRLHF uses as MindFormers does: it builds the network itself, and has no trainer."""
NOT_COMMON = ("mindformers/trainer/", "mindformers/tools/check_rules", "mindformers/core/context/", "run_mindformer")
"""The place where MindFormers checks values that only its own entry script uses."""
BOOK = "mindformers/mindformer_book.py"
"""The place where MindFormers lists the configs that Trainer(task=..., model=...) loads and fills."""
SIZES = ("data_parallel", "model_parallel", "pipeline_stage", "context_parallel", "expert_parallel", "micro_batch_num")
REPLACED = (
    *("use_parallel", "recompute_config.recompute", "recompute_config.select_recompute"),
    *("model.model_config.seq_length", "model.model_config.offset"),
    *(f"parallel_config.{size}" for size in SIZES),
)
"""Keys that MindRLHF always takes from a separate file, next to the other contents of those sections
(mindrlhf/worker/train_worker.py:66-75)."""


def identified(document: Document, surroundings: Surroundings) -> Surroundings:
    """The surroundings with the release that the checkout shows, if none is stated. A modified older checkout is read
    as the config shows: its code shows which checks it contains.
    """
    found = _identity(document, surroundings)
    if found is None or not found.target.version:
        return surroundings
    if found.altered and numbers(found.target.version) < DESCRIBED:
        return surroundings
    return surroundings._replace(request=surroundings.request._replace(target=found.target))


def _identity(document: Document, surroundings: Surroundings) -> Identity | None:
    if surroundings.request.target is not None:
        return None
    found = identify(surroundings.checkout(document), (FRAMEWORK,)) or named_in_text(document, (FRAMEWORK,))
    return found or named_by_environment(document, surroundings, (FRAMEWORK,))


def certainty(document: Document, surroundings: Surroundings, read: Certainty) -> Certainty:
    """How certain it is that MindFormers itself reads a config as the right release. read: the reading from the config
    alone."""
    checkout, found = surroundings.checkout(document), _identity(document, surroundings)
    sourced = checkout is not None and checkout.package(FRAMEWORK) is not None
    made = _certainty(document, surroundings, read, checkout, found)._replace(sourced=sourced)
    if checkout is None or not sourced:
        return made
    from preflight.program.checkout.class_arguments import arguments_of

    return made._replace(takes=arguments_of(checkout.files))


def _certainty(
    document: Document,
    surroundings: Surroundings,
    read: Certainty,
    checkout: Checkout | None,
    found: Identity | None,
) -> Certainty:
    program, parts = _program(document, surroundings) if document.launch is None else ("", ())
    other = undescribed(found)
    told = read._replace(completed=program, parts=parts, apart=NOT_COMMON if parts else (), named=other)
    if found is None or not found.target.version:
        return told
    if checkout is None or not found.altered:
        return told._replace(stated=found.proven, releases=(), evidence=found.evidence)
    has = has_checks(checkout, {FRAMEWORK: found.target.version})
    return Certainty(False, False, evidence=found.evidence, has=has, completed=program, parts=parts, named=other)


def _program(document: Document, surroundings: Surroundings) -> tuple[str, tuple[str, ...]]:
    """The program that reads a config in its own way, and the sections that it uses as MindFormers does, () for all."""
    checkout = surroundings.checkout(document)
    if checkout is not None and checkout.reader in READERS:
        return READERS[checkout.reader], COMMON
    if checkout is not None and _is_filled_by_a_task(document, checkout):
        return "Trainer(task=...)", ()
    return (surroundings.around.program(document.source.path), ()) if surroundings.around is not None else ("", ())


def _is_filled_by_a_task(document: Document, checkout: Checkout) -> bool:
    """Whether data and network are empty in a config that the checkout's trainer loads by its task."""
    tree, path = document.tree, document.source.path
    empty = [tree.get(*place) for place in (("train_dataset",), ("model", "arch"))] if tree is not None else []
    if path is None or not all(node is not None and node.kind == "scalar" and node.value is None for node in empty):
        return False
    inside = os.path.relpath(os.path.abspath(path), checkout.root).replace(os.sep, "/")
    return bool(empty) and f'"{inside}"' in (checkout.files.text(BOOK) or "")


def set_beside(document: Document, tree: Node, surroundings: Surroundings) -> Mapping[str, Value]:
    """Values set outside a config: by launches that name it, and by a program that replaces a section."""
    checkout = surroundings.checkout(document)
    if checkout is not None and checkout.reader in READERS:
        return {name: unknown(f"{READERS[checkout.reader]} replaces it") for name in (*REPLACED, *_inside(tree))}
    return _launched(document, surroundings)


def _inside(tree: Node) -> Iterator[str]:
    """Settings in the replaced sections."""
    for section in ("parallel_config", "recompute_config"):
        found = tree.get(section)
        yield from (f"{section}.{entry.key.value}" for entry in (found.entries if found is not None else ()))


def _launched(document: Document, surroundings: Surroundings) -> Mapping[str, Value]:
    """The options of the launches around a config that name it; an option that two of them set differently is
    unknown."""
    names = surroundings.around.launches(document.source.path) if surroundings.around is not None else ()
    if not names:
        return {}
    from preflight.dialects.mindformers.launch import overrides

    found: dict[str, Value] = {}
    for number, name in enumerate(names):
        script = surroundings.read(document, name)
        if script is None or script.launch is None:
            continue
        said = overrides(script.launch, script.run)
        for key in found.keys() | said.keys() if number else said:
            one, other = found.get(key), said.get(key)
            same = one is not None and other is not None and one.raw == other.raw
            only = said[key] if not number else None
            found[key] = only or (one if same and one is not None else _either(key, one or other))
    return found


def _either(key: str, value: Value | None) -> Value:
    lost = Unknown(f"launches next to the file give different values for {key}")
    return (
        value._replace(raw=lost, origin=Origin.UNKNOWN, note=lost.because)
        if value is not None
        else unknown(lost.because)
    )


ENTRY = "run_mindformer.py"
_NO_MAPPING = "mindformers/tools/register/config.py:185"
_NOT_YAML = {"1.5.0": 372, "1.7.0": 367, "2.1.0": 391}


class MindFormersDialect:
    """Graph-mode configs of every release, and pynative configs of 2.x."""

    name = "mindformers"

    @property
    def targets(self) -> tuple[Target, ...]:
        """The newest version first."""
        return tuple(Target("mindformers", version) for version in reversed(VERSIONS))

    def refuses_text(self, target: Target) -> str | None:
        """Reports that the framework refuses a text that is not YAML, at the requested version."""
        version = known_version(target.version) if target.version else VERSIONS[-1]
        line = _NOT_YAML.get(read_at(version))
        return f"mindformers/tools/check_rules.py:{line}" if line and target.framework == self.name else None

    def refuses_shape(self, document: Document, target: Target) -> str | None:
        """Reports that the framework refuses an empty file or one without a mapping: its keys are read immediately."""
        empty = document.launch is None and (document.tree is None or document.tree.kind != "mapping")
        return _NO_MAPPING if empty and target.framework == self.name else None

    def offers(self, job: Job) -> Offers:
        """Keys and values offered to editors."""
        from preflight.dialects.mindformers.json_schema import offers

        return offers(job)

    def claims(self, document: Document, request: Request) -> bool:
        """A launch of run_mindformer.py, or a YAML mapping with sections of a config; if a target is stated, one
        section is enough."""
        if document.launch is not None:
            entry = (document.launch.entry.text or "").rpartition("/")[2]
            return entry == ENTRY and (request.target is None or request.target.framework == self.name)
        if document.kind != "yaml" or document.tree is None:
            return False
        wanted = request.target.framework if request.target else ""
        return wanted in ("", self.name) and looks_like(document.tree, hinted=wanted == self.name)

    def read(self, document: Document, surroundings: Surroundings) -> Reading:
        """Translate; the kind of config decides how."""
        around = identified(document, surroundings)
        reading = self._read(document, around)
        arguments = replace(reading.arguments, certainty=certainty(document, surroundings, reading.arguments.certainty))
        return reading._replace(arguments=arguments)

    def _read(self, document: Document, surroundings: Surroundings) -> Reading:
        if document.launch is not None:
            from preflight.dialects.mindformers.launch import read_launch

            return read_launch(document, surroundings)
        tree = document.tree
        assert tree is not None
        if kind_of(tree) == "pynative":
            from preflight.dialects.mindformers.pynative_config import read_pynative

            return read_pynative(document, tree, surroundings)
        from preflight.dialects.mindformers.graph_config import read_graph

        return read_graph(document, surroundings, set_beside(document, tree, surroundings))
