"""The kind of a MindFormers config, and its tree as the framework loads it."""

from __future__ import annotations

from functools import lru_cache

from preflight.dialects import Surroundings
from preflight.dialects.mindformers.release_tables import VERSIONS as VERSIONS
from preflight.dialects.mindformers.release_tables import Table, table
from preflight.loaders.document import Document, Entry, Node
from preflight.run.request import Request, Target, patch
from preflight.run.version_ranges import numbers
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.spelling import nearest
from preflight.source.typing_without_import import Literal

Kind = Literal["legacy", "mcore", "pynative"]
_PYNATIVE = ("training", "parallelism", "lr_scheduler")
_GRAPH = ("parallel_config", "runner_config", "runner_wrapper", "train_dataset_task", "use_legacy")
_STRONG = (
    "parallel_config",
    "runner_config",
    "runner_wrapper",
    "moe_config",
    "recompute_config",
    "swap_config",
    "use_legacy",
    "train_dataset_task",
    "base_config",
)
# fmt: off
_WEAK = (
    *("run_mode", "trainer", "use_parallel", "parallel", "context", "lr_schedule", "optimizer", "train_dataset",
        "eval_dataset", "callbacks", "metric"),
    *("model", "processor", "output_dir", "load_checkpoint", "auto_trans_ckpt", "pretrained_model_dir", "seed"),
)
# fmt: on

MODES = ("train", "finetune", "eval", "predict", "export")
_FRAGMENT = frozenset(("model", "processor", "context", "seed"))
"""Sections that describe no run: a file with only these is included by another one."""
_COMMON = frozenset(("trainer", "optimizer", "train_dataset", "eval_dataset", "metric", *_FRAGMENT, "output_dir"))
"""Weak sections, which configs of other programs also have."""
_TYPED = (("trainer", "type"), ("optimizer", "type"), ("model", "arch"), ("train_dataset", "data_loader"))
"""Typical keys of a common section in a MindFormers config."""
_FOREIGN = ("_target_", "defaults", "hydra", "distribute_parallel_config")
"""Keys of unrelated configs with sections of the same names: Hydra's, and a MindFormers schema that no release
reads."""
_REFERENCE = lazy_pattern(r"\$\{(\w{1,100})(?:\.[\w.]{0,200})?\}")


def looks_like(tree: Node, *, hinted: bool = False) -> bool:
    """Whether a mapping has enough of the sections of a MindFormers config. hinted: the caller states that it is
    one."""
    if tree.kind != "mapping":
        return False
    keys = {entry.key.value for entry in tree.entries}
    if not hinted and (keys.intersection(_FOREIGN) or _is_experimental(tree) or _is_of_another_trainer(tree, keys)):
        return False
    if hinted and keys.intersection((*_STRONG, *_WEAK, *_PYNATIVE)):
        return True
    if keys <= _FRAGMENT:
        return False
    if _is_pynative(tree, keys):
        return True
    network = tree.get("model", "model_config")
    strong, weak = len(keys.intersection(_STRONG)), len(keys.intersection(_WEAK))
    own = not keys.intersection(_WEAK) <= _COMMON or any(tree.get(*path) is not None for path in _TYPED)
    if strong:
        return strong + (network is not None) >= 2 or weak >= 1 or keys == {"parallel_config"}
    typed = network is not None and (network.get("type") is not None or network.get("model_type") is not None)
    return (typed and weak >= 1) or (own and (network is not None or weak >= 4))


def _is_of_another_trainer(tree: Node, keys: set[object]) -> bool:
    """Whether the common sections are those of another program: their types are modules of Python, which MindFormers
    looks up in its registry by a bare name, values refer to other keys, or MindFormers has no such mode of a run."""
    if keys.intersection(_STRONG):
        return False
    values = (entry.value for section in tree.entries for entry in (section, *section.value.entries))
    if any(_refers_to(value.value, keys) for value in values):
        return True
    types = [tree.get(section, "type") for section in ("model", "optimizer", "dataset", "trainer", "train_dataset")]
    if any(isinstance(one.value, str) and "." in one.value for one in types if one is not None):
        return True
    mode = tree.get("run_mode")
    return mode is not None and isinstance(mode.value, str) and not nearest(mode.value, MODES)


def _refers_to(value: object, keys: set[object]) -> bool:
    """Whether a value is another key in the form of OmegaConf, `${seed}`, which MindFormers reads as text."""
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) and value.startswith("${") else None
    return match is not None and match[1] in keys


def _is_pynative(tree: Node, keys: set[object]) -> bool:
    """Whether a mapping has sections of a pynative config, with a network or data in the form that only that kind
    uses."""
    own = keys.intersection(_PYNATIVE)
    return bool(own) and (
        tree.get("model", "model_type") is not None or (len(own) >= 2 and tree.get("train_dataset") is not None)
    )


def _is_experimental(tree: Node) -> bool:
    """Whether the sizes have only Megatron's names, as in the experimental library of releases 1.3 to 1.5, which
    scripts read directly."""
    sizes = tree.get("parallel_config")
    names = {entry.key.value for entry in sizes.entries} if sizes is not None else set()
    theirs, ours = (
        {"tensor_model_parallel_size", "pipeline_model_parallel_size"},
        ("data_parallel", "model_parallel", "pipeline_stage"),
    )
    return theirs <= names and not names.intersection(ours)


def kind_of(tree: Node) -> Kind:
    """The kind of a config; `use_legacy` may come late, so the whole mapping is searched."""
    keys = {entry.key.value for entry in tree.entries}
    pynative = len(keys.intersection(_PYNATIVE))
    if pynative >= 2 or (pynative and not keys.intersection(_GRAPH) and tree.get("model", "model_config") is None):
        return "pynative"
    legacy = tree.get("use_legacy")
    return "mcore" if legacy is not None and legacy.value is False else "legacy"


def known_version(asked: str) -> str:
    """The requested release if it is described, otherwise the nearest older one, of the same minor version if
    possible."""
    if not numbers(asked):
        return VERSIONS[-1]
    if of := patch(Target("mindformers", asked)).get("of"):
        return str(of)
    wanted = numbers(asked)
    below = next((v for v in reversed(VERSIONS) if numbers(v)[: len(wanted)] <= wanted), VERSIONS[0])
    alike = next((v for v in VERSIONS if numbers(v)[:2] == wanted[:2]), below)
    return below if numbers(below)[:2] == wanted[:2] else alike


def choose_version(tree: Node, kind: Kind, request: Request) -> str:
    """The requested release, otherwise the newest of the best-fitting ones. A release fits if it knows the model's type
    and the keys of its strict sections. A key that no release knows (a misspelt one) is ignored.
    """
    if request.target is not None and request.target.version:
        return known_version(request.target.version)
    found = {(str(s.key.value), str(e.key.value)) for s in tree.entries for e in s.value.entries}
    model = tree.get("model", "model_config", "type")
    name = model.value if model is not None and isinstance(model.value, str) else ""
    optimizer = tree.get("optimizer", "type")
    old = optimizer is not None and optimizer.value in GONE
    return _fitting(kind, frozenset(found & _candidates(kind)[1]), name, old=old)


@lru_cache(maxsize=256)
def _fitting(kind: Kind, found: frozenset[tuple[str, str]], name: str, *, old: bool = False) -> str:
    """The newest of the releases that know most of the keys, the model's type, and the optimizer; old: optimizers that
    newer releases lack."""
    candidates = _candidates(kind)[0]

    def misfits(t: Table) -> int:
        unknown_keys = sum(1 for s, k in found if s in t.strict and k not in t.sections[s])
        unknown_keys += 10 * (old and numbers(t.version) >= (1, 6))
        return unknown_keys + 10 * (
            bool(name) and name not in t.models and any(name in other.models for other in candidates)
        )

    best: Table = min(reversed(candidates), key=misfits)
    return best.version


@lru_cache(maxsize=3)
def _candidates(kind: Kind) -> tuple[tuple[Table, ...], frozenset[tuple[str, str]]]:
    """The releases that have a kind of config, and all keys of their sections."""
    tables = tuple(table(v) for v in VERSIONS if kind == "legacy" or numbers(v) >= (1, 6))
    return tables, frozenset(
        (*_FORMER, *((section, key) for t in tables for section in t.sections for key in t.sections[section]))
    )


GONE = ("adamw", "fp32_adamw", "fused_adamw", "FP32StateAdamWeightDecay", "FusedAdamWeightDecay")
"""Optimizers removed in 1.6: v1.6.0, mindformers/core/optim/build_optim.py."""
_FORMER = (
    *(
        ("runner_config", key)
        for key in ("image_size", "per_epoch_size", "initial_epoch", "has_trained_epoches", "has_trained_steps")
    ),
    ("parallel_config", "auto_parallel"),
)
"""Keys of releases before 1.5 that no table lists: mindformers r1.0, mindformers/trainer/config_args.py:692."""

MAX_NESTING = 10
MAX_BASES = 20


class Loaded(NamedTuple):
    """The merged tree, every document that it came from (the first is the config itself), and names of unread bases."""

    tree: Node
    documents: tuple[Document, ...]
    missing: tuple[str, ...] = ()


def load(document: Document, surroundings: Surroundings) -> Loaded:
    """The tree of a document merged over its base configs."""
    bases = _Bases(surroundings)
    tree = bases.below(document, (document.source.name,))
    return Loaded(tree, (document, *bases.found), tuple(bases.missing))


class _Bases:
    """The base configs of a config, recursively."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.found: list[Document] = []
        self.missing: list[str] = []

    def below(self, current: Document, above: tuple[str, ...]) -> Node:
        """The tree of a document merged over its bases. above: the names of the documents that include it."""
        tree = current.tree
        assert tree is not None
        bases = tree.get("base_config")
        if bases is None:
            return tree
        base = Node("mapping", (), tree.span)
        for name in bases.items or (bases,):
            known = isinstance(name.value, str) and len(above) < MAX_BASES
            found = self.surroundings.read(current, str(name.value)) if known else None
            if found is None or found.tree is None or found.source.name in above:
                self.missing.append(str(name.value))
                continue
            self.found.append(found)
            base = _update(base, self.below(found, (*above, found.source.name)))
        own = tuple(entry for entry in tree.entries if entry.key.value != "base_config")
        return _merge(Node("mapping", own, tree.span, tree.style), base)


def _update(base: Node, more: Node) -> Node:
    """Top-level keys of a later base replace those of an earlier one completely."""
    names = {entry.key.value for entry in more.entries}
    return Node("mapping", (*(e for e in base.entries if e.key.value not in names), *more.entries), base.span)


def _merge(child: Node, base: Node) -> Node:
    """The child's values merged over the base's, mapping by mapping."""
    have = {entry.key.value: entry for entry in base.entries if not entry.shadowed}
    entries = [e for e in base.entries if child.get(e.key.value) is None]  # type: ignore[arg-type]
    for entry in child.entries:
        below = have.get(entry.key.value)
        if below is not None and not entry.shadowed and entry.value.kind == below.value.kind == "mapping":
            entry = Entry(entry.key, _merge(entry.value, below.value))
        entries.append(entry)
    return Node("mapping", tuple(entries), child.span, child.style)
