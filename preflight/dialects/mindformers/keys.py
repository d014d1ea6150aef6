"""Keys that a graph-mode config may hold, section by section, and what becomes of one that is not known."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import islice

from preflight.dialects.mindformers import mcore
from preflight.dialects.mindformers.dataset_keys import DATASET, LOADER
from preflight.dialects.mindformers.namespace import TRAINING
from preflight.dialects.mindformers.release_tables import Table, read_at, table
from preflight.dialects.mindformers.section_keys import CONTEXT, MODEL, NESTED, PARALLEL, SECTIONS
from preflight.loaders.document import Entry, Node
from preflight.run.versions import matches
from preflight.source import spelling
from preflight.source.finding import Key
from preflight.source.record import NamedTuple

_OF_OLD_RELEASES = (
    "enable_dump",
    "save_dump_path",
    "memory_offload",
    "device_type",
    "reserve_memory",
    "max_size",
    "memory_replay",
    "launch_blocking",
)
"""Keys that a context may still hold, and that MindSpore 2.7 does not know any more."""
TRAINERS = ("CausalLanguageModelingTrainer", "MultiModalToTextGenerationTrainer", "GeneralTaskTrainer")
_BUILT = {"1.5.0": 320, "1.7.0": 398, "2.1.0": 398}
_TEMPLATE = "mindformers/tools/register/template.py:116"
_OLD = {"parallel_config": 57, "recompute_config": 46, "moe_config": 40}
_CONSTRUCTED = {"recompute_config": 57, "swap_config": 50}
"""Where the sections are handed to classes: before there were templates, and since,
where the template of a run mode lacks the section."""
_CONTEXT = {"1.0.0": 104, "1.2.0": 104, "1.3.2": 130, "1.5.0": 200, "1.7.0": 199}
_PARALLEL = {"1.0.0": 115, "1.2.0": 115, "1.3.2": 141, "1.5.0": 109, "1.7.0": 104, "2.1.0": 104}


MOST_GUESSES = 100
"""So many keys of a mapping that nobody knows are compared with those that are known;
a file with more is not misspelt."""


class Stray(NamedTuple):
    """A key that is not known where it stands. near: the key that was most likely meant; weight: error, warning or
    note."""

    key: Key
    entry: Entry
    where: str
    near: str
    weight: str
    upstream: str | None


def strays(tree: Node, kind: str, version: str, config: Node | None = None) -> Iterator[Stray]:
    """Every key of a graph-mode tree that its release does not know."""
    t = table(version)
    for section in t.strict:
        if section == "moe_config" and kind == "mcore" and t.templated:
            continue
        if t.templated and _template_applies(section, tree):
            yield from _in_section(tree, (section,), t.sections[section], "error", _TEMPLATE)
        elif section in (lines := _CONSTRUCTED if t.templated else _OLD):
            yield from _in_section(
                tree, (section,), t.sections[section], "error", f"mindformers/core/parallel_config.py:{lines[section]}"
            )
    yield from _of_trainer(tree, version)
    yield from _of_mindspore(tree, version)
    yield from _of_model(tree, kind, t, config)
    yield from _of_datasets(tree)
    known = {*t.general, *SECTIONS, *t.sections}
    unknown = (entry for entry in tree.entries if entry.key.value not in known and not entry.shadowed)
    for entry in islice(unknown, MOST_GUESSES):
        name = entry.key.value
        if isinstance(name, str) and (near := nearest(name, known, 0.85)):
            yield Stray((name,), entry, "the top level", near, "warning", None)


def _template_applies(section: str, tree: Node) -> bool:
    """Whether the template of the run mode has the section; what it does not have is handed on as it is."""
    if section in ("parallel_config", "moe_config", "runner_config"):
        return True
    mode = tree.get("run_mode")
    return mode is not None and mode.value in TRAINING


def _in_section(
    tree: Node, path: Key, known: Iterable[str], weight: str, upstream: str | None, cutoff: float = 0.7
) -> Iterator[Stray]:
    section = tree.get(*path)
    if section is None or section.kind != "mapping":
        return
    have = {entry.key.value for entry in section.entries}
    if have <= (known := {*known}):
        return
    meant = [key for key in known if key not in _OF_OLD_RELEASES]
    unknown = (entry for entry in section.entries if not entry.shadowed and entry.key.value not in known)
    for number, entry in enumerate(unknown):
        name = entry.key.value
        near = nearest(str(name), meant, cutoff, have) if number < MOST_GUESSES else ""
        yield Stray(
            (*path, name if isinstance(name, (str, int)) else str(name)),
            entry,
            ".".join(map(str, path)),
            near,
            weight,
            upstream,
        )


def _of_trainer(tree: Node, version: str) -> Iterator[Stray]:
    """The trainer section is handed to its class, which takes a name and no more."""
    kind = tree.get("trainer", "type")
    if (read := read_at(version)) in _BUILT and kind is not None and kind.value in TRAINERS:
        yield from _in_section(
            tree,
            ("trainer",),
            ("type", "model_name"),
            "error",
            f"mindformers/tools/register/register.py:{_BUILT[read]}",
        )


def _of_mindspore(tree: Node, version: str) -> Iterator[Stray]:
    """Sections that are handed to MindSpore, which knows its own names."""
    known = {*PARALLEL, "auto_pipeline"} if matches(version, "<1.7") else PARALLEL
    on = tree.get("use_parallel")
    if on is not None and on.value:
        place = f"mindformers/core/context/parallel.py:{_PARALLEL[read_at(version)]}"
        yield from _in_section(tree, ("parallel",), known, "error", place)
        for name, keys in NESTED.items():
            yield from _in_section(tree, ("parallel", name), keys, "error", place)
    if matches(version, ">=1.5"):
        place = f"mindformers/core/context/build_context.py:{_CONTEXT.get(read_at(version), 320)}"
        yield from _in_section(tree, ("context", "jit_config"), ("jit_level", "infer_boost"), "error", place)
    if (read := read_at(version)) in _CONTEXT:
        yield from _in_section(
            tree, ("context",), CONTEXT, "error", f"mindformers/core/context/build_context.py:{_CONTEXT[read]}"
        )
    else:
        yield from _in_section(tree, ("context",), CONTEXT, "warning", None)


def _of_datasets(tree: Node) -> Iterator[Stray]:
    """Sections of which each key is asked for by its name: only what is nearly one of them is told."""
    for section in ("train_dataset", "eval_dataset"):
        for path, known in (((section,), DATASET), ((section, "data_loader"), LOADER)):
            yield from (stray for stray in _in_section(tree, path, known, "warning", None, 0.85) if stray.near)


def _of_model(tree: Node, kind: str, t: Table, config: Node | None) -> Iterator[Stray]:
    """model_config: legacy types swallow what they do not know; mcore refuses it in 1.7 and warns in 2.x."""
    path: Key = ("model", "model_config")
    section = tree.get(*path)
    if section is None or section.kind != "mapping":
        return
    if kind == "mcore":
        said = section.get("model_type") or (config.get("model_type") if config is not None else None)
        names = mcore.names(t.version, str(said.value) if said is not None else "", t.mcore)
        known = {
            *(
                name
                for name, field in names.targets.items()
                if names.latent or not names.config or field not in mcore.LATENT
            ),
            *names.ignored,
            *t.mcore_models.get(names.config, ()),
            "model_type",
            "architectures",
            "auto_map",
            "pet_config",
            "quantization_config",
        }
        if said is None:
            return  # the type stands in a config.json that is not read
        refused = matches(t.version, "<2")
        place = "mindformers/parallel_core/transformer_config_utils.py:515" if refused else None
        yield from _in_section(tree, path, known, "error" if refused else "warning", place)
        return
    model = section.get("type")
    arguments = t.models.get(model.value) if model is not None and isinstance(model.value, str) else None
    if arguments is None:
        return
    for stray in _in_section(tree, path, {*arguments, *MODEL}, "warning", None, 0.8):
        yield stray if stray.near else stray._replace(weight="note")


def nearest(name: str, known: Iterable[str], cutoff: float, taken: Container[object] = ()) -> str:
    """The known key that a key most likely means, or ""; taken: those that stand beside it."""
    return next((key for key in spelling.alike(name, sorted(known), cutoff) if key not in taken), "")
