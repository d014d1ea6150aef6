"""The release of a config shown by the checkout around it, and its other readers: other programs, scripts that launch
it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from preflight.dialects import Surroundings
from preflight.dialects.identify import Identity, has_checks, identify, named_in_text, undescribed
from preflight.loaders.document import Document, Node, Unknown
from preflight.run.arguments import Certainty
from preflight.run.value import Origin, Value, unknown
from preflight.run.versions import numbers
from preflight.source.hints import TYPE_CHECKING

if TYPE_CHECKING:  # most files are in no checkout
    from preflight.program.checkout.around import Checkout


FRAMEWORK = "mindformers"
DESCRIBED = (1, 5)
"""The oldest release whose rules are fully described."""
READERS = {"mindrlhf": "MindRLHF"}
"""Packages of programs that read MindFormers configs in their own way."""
COMMON = ("model", "processor")
"""The parts of a config that MindRLHF uses as MindFormers does: it builds the network itself, and has no trainer."""
NOT_COMMON = ("mindformers/trainer/", "mindformers/tools/check_rules", "mindformers/core/context/", "run_mindformer")
"""Where MindFormers checks values that only its own entry script uses."""
BOOK = "mindformers/mindformer_book.py"
"""Where MindFormers lists the configs that Trainer(task=..., model=...) loads and fills."""
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
    return identify(surroundings.checkout(document), (FRAMEWORK,)) or named_in_text(document, (FRAMEWORK,))


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
    """Whether data and network are empty in a config that the checkout's own trainer loads by its task."""
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
    lost = Unknown(f"launches next to the file give {key} differently")
    return (
        value._replace(raw=lost, origin=Origin.UNKNOWN, note=lost.because)
        if value is not None
        else unknown(lost.because)
    )
