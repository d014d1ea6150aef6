"""Writes the contract of a front end's release: python -m upstream.frontends.contracts NAME RELEASE CLONE_OR_FOLDER

The composed config with the class of each section, the fields of these classes, the options of each group of its
defaults and the names that decorators register, from syntax trees and YAML: nothing is imported or run. A release
without a tag is read from the folder of its unpacked wheel.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from preflight.loaders.composition.hydra import composed
from preflight.loaders.composition.overrides import read_override
from preflight.loaders.document import Document, Word
from preflight.loaders.yaml import load_yaml
from preflight.source.source_file import Source, Span
from upstream.frontends.refusals_of_release import with_refusals
from upstream.frontends.release_sources import Sources, classes, listed, literal
from upstream.frontends.rows import SCHEMAS

CONTRACTS = SCHEMAS / "contracts"
"""There is one file per front end and release."""


def fields(name: str, known: Mapping[str, ast.ClassDef]) -> dict[str, str]:
    """The fields of a class and its bases: name → annotation."""
    node = known.get(name)
    if node is None:
        return {}
    found: dict[str, str] = {}
    for base in node.bases:
        found |= fields(ast.unparse(base).rpartition(".")[2], known)
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            found[one.target.id] = ast.unparse(one.annotation)
    return found


def choices(name: str, known: Mapping[str, ast.ClassDef], names: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """The values that the class of a section accepts for some fields, as it asserts in every run. names: lists next to
    the classes."""
    node = known.get(name)
    if node is None:
        return {}
    found: dict[str, list[Any]] = {}
    for base in node.bases:
        found |= choices(ast.unparse(base).rpartition(".")[2], known, names)
    method = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__post_init__"), None)
    inner = {**names, **listed(method.body if method is not None else ())}
    for one in method.body if method is not None else ():
        test = one.test if isinstance(one, ast.Assert | ast.If) else None
        wanted = ast.In if isinstance(one, ast.Assert) else ast.NotIn
        if isinstance(one, ast.If) and not isinstance(one.body[0], ast.Raise):
            continue
        if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], wanted):
            continue
        left, right = ast.unparse(test.left), test.comparators[0]
        values = inner.get(right.id) if isinstance(right, ast.Name) else literal(right)
        if left.startswith("self.") and left.count(".") == 1 and values:
            found[left.removeprefix("self.")] = values
    return found


def _made(tree: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The sections that name a class."""
    if isinstance(tree, dict):
        if tree.get("_target_"):
            yield path, str(tree["_target_"]).rpartition(".")[2]
        for key, value in tree.items():
            yield from _made(value, f"{path}.{key}" if path else key)


def registered(sources: Sources, folders: Sequence[str], decorator: str) -> list[str]:
    """The names that a decorator registers, from its argument: a text, or a member of an enumeration."""
    members: dict[str, str] = {}
    found: set[str] = set()
    for path in (one for folder in folders for one in sources.below(folder)):
        if decorator not in sources.text(path):
            continue
        for node in ast.walk(sources.tree(path)):
            if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
                members |= {
                    f"{node.name}.{ast.unparse(one.targets[0])}": str(one.value.value)
                    for one in node.body
                    if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant)
                }
        for node in ast.walk(sources.tree(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found |= set(_names(node.decorator_list, decorator, members))
    return sorted(found)


def _names(decorators: Iterable[ast.expr], wanted: str, members: Mapping[str, str]) -> Iterator[str]:
    for one in decorators:
        if not isinstance(one, ast.Call) or ast.unparse(one.func).rpartition(".")[2] != wanted:
            continue
        inner = next((item for item in one.args if isinstance(item, ast.Call)), one)
        arguments = [*inner.args, *(word.value for word in inner.keywords if word.arg in ("name", "names"))]
        for argument in arguments:
            for item in argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]:
                text = ast.unparse(item)
                if isinstance(item, ast.Constant) and isinstance(item.value, str):
                    yield item.value
                elif text in members:
                    yield members[text]


CONFIG = "verl/trainer/config"
REGISTRIES: dict[str, tuple[tuple[str, ...], str]] = {
    "policy_loss": (("verl/trainer/ppo/core_algos.py",), "register_policy_loss"),
    "adv_estimator": (("verl/trainer/ppo/core_algos.py",), "register_adv_est"),
    "distillation_loss": (("verl/trainer/distillation/",), "register_distillation_loss"),
    "trainer_mode": (("verl/trainer/ppo/v1/",), "register_trainer"),
    "agent_loop": (
        tuple(f"verl/experimental/agent_loop/{one}_agent_loop.py" for one in ("single_turn", "tool")),
        "register",
    ),
    "tool_parser": (("verl/experimental/agent_loop/tool_parser.py",), "register"),
    "checkpoint_engine": (("verl/checkpoint_engine/",), "register"),
}


def verl(sources: Sources) -> dict[str, Any]:
    """The contract of a release of verl."""
    tree = yaml.safe_load(sources.text(f"{CONFIG}/_generated_ppo_megatron_trainer.yaml"))
    engines = groups(sources, "ppo_trainer").get("model_engine", [])
    others: dict[str, Any] = {name: trainer(sources, name) for name in ("dp", "mindspeed") if name in engines}
    others |= {FINE_TUNING: composed_config(sources, "sft_trainer_engine", "engine=megatron", "optim=megatron")}
    known = classes(sources, "verl/")
    made = dict(_made(tree))
    of_classes = {name: sorted(fields(name, known)) for name in sorted({*made.values()})}
    beside = {
        name: values
        for path in sources.below("verl/workers/config/")
        for name, values in listed(sources.tree(path).body).items()
    }
    taken = {name: choices(name, known, beside) for name in of_classes}
    found = {name: registered(sources, *where) for name, where in REGISTRIES.items()}
    found["rollout"] = keyed(sources, "verl/workers/rollout/base.py", "_ROLLOUT_REGISTRY")
    return {
        "trainer": tree,
        "other engines": others,
        "variants": variants(sources),
        "made": made,
        "fields": {name: own for name, own in of_classes.items() if own},
        "choices": {name: own for name, own in taken.items() if own},
        "groups": {name: groups(sources, name) for name in ("ppo_trainer", "ppo_megatron_trainer")},
        "registries": {name: names for name, names in found.items() if names},
    }


FINE_TUNING = "sft"
"""Its fine-tuning with Megatron, next to the other engines."""
OVER = ["ppo_megatron_trainer", "_self_"]


def variants(sources: Sources) -> dict[str, Any]:
    """The configs of its asynchronous trainers over that of its trainer with Megatron, without the latter."""
    found = {}
    for path in sources.below("", "_ppo_megatron_trainer.yaml"):
        tree = yaml.safe_load(sources.text(path))
        if tree.pop("defaults", None) == OVER:
            tree.pop("hydra", None)
            found[Path(path).stem] = tree
    return dict(sorted(found.items()))


def trainer(sources: Sources, engine: str) -> Any:
    """The config of its trainer with another engine."""
    return composed_config(sources, "ppo_trainer", f"model_engine={engine}")


def composed_config(sources: Sources, primary: str, *overrides: str) -> Any:
    """A config, composed from the files of its groups."""

    def opened(path: str) -> Document | None:
        text = sources.text(f"{CONFIG}/{path}.yaml")
        return load_yaml(Source(text, path)) if text else None

    read = (read_override(Word(one, Span(Source(one, "words"), 0, len(one)))) for one in overrides)
    found = composed(primary, opened, tuple(one for one in read if one is not None))
    assert found is not None and not found.missing, found and found.missing
    return found.tree.plain()


def keyed(sources: Sources, path: str, name: str) -> list[str]:
    """The first text of each key in a mapping of a module."""
    for node in ast.walk(sources.tree(path)):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name and isinstance(node.value, ast.Dict):
            keys = [ast.literal_eval(key) for key in node.value.keys if key is not None]
            return sorted({str(key[0] if isinstance(key, tuple) else key) for key in keys})
    return []


def groups(sources: Sources, primary: str) -> dict[str, list[str]]:
    """The groups of a config's defaults, as an override names them, with the available options."""
    entries = (yaml.safe_load(sources.text(f"{CONFIG}/{primary}.yaml")) or {}).get("defaults") or []
    found: dict[str, list[str]] = {}
    for entry in entries:
        if isinstance(entry, str):
            found |= groups(sources, entry) if f"{CONFIG}/{entry}.yaml" in sources.names else {}
            continue
        name = str(next(iter(entry)))
        if name.startswith("override "):
            continue
        group, _, package = name.split()[-1].partition("@")
        folder = f"{CONFIG}/{group}/"
        options = [one.removeprefix(folder)[:-5] for one in sources.below(folder, ".yaml")]
        found[group if package in ("", group) else f"{group}@{package}"] = [one for one in options if "/" not in one]
    return found


SIMPLE = {"int", "float", "bool", "str"}


def kind(annotation: ast.expr | None, known: Mapping[str, ast.ClassDef]) -> Any:
    """A type in the notation of the tables: a name, or ["union" | "list" | "literal" | "class", …]; "any" for types
    that are not read here."""
    if isinstance(annotation, ast.Constant):
        return "none" if annotation.value is None else kind(_parsed(annotation.value), known)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _union([kind(annotation.left, known), kind(annotation.right, known)])
    if isinstance(annotation, ast.Subscript):
        inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        name = ast.unparse(annotation.value).rpartition(".")[2]
        if name in ("NotRequired", "Required", "Annotated"):
            return kind(inner[0], known)
        if name == "Optional":
            return _union([kind(inner[0], known), "none"])
        if name == "Union":
            return _union([kind(one, known) for one in inner])
        if name == "Literal":
            return ["literal", *(ast.literal_eval(one) for one in inner)]
        if name in ("list", "List"):
            return ["list", kind(inner[0], known)]
        return "dict" if name in ("dict", "Dict") else "any"
    name = ast.unparse(annotation).rpartition(".")[2] if annotation is not None else ""
    if name in SIMPLE or name in ("list", "dict"):
        return name
    return ["class", name] if name in known else "any"


def _parsed(text: object) -> ast.expr | None:
    try:
        return ast.parse(str(text), mode="eval").body
    except SyntaxError:
        return None


def _union(kinds: list[Any]) -> Any:
    flat = [
        one for kind_ in kinds for one in (kind_[1:] if isinstance(kind_, list) and kind_[0] == "union" else [kind_])
    ]
    return "any" if "any" in flat else ["union", *flat]


def typed(node: ast.ClassDef, known: Mapping[str, ast.ClassDef]) -> dict[str, list[Any]]:
    """The fields of a TypedDict or pydantic model: name → its type and whether it is required."""
    found: dict[str, list[Any]] = {}
    for base in node.bases:
        above = known.get(ast.unparse(base).rpartition(".")[2])
        found |= typed(above, known) if above is not None else {}
    partial = any(word.arg == "total" and ast.unparse(word.value) == "False" for word in node.keywords)
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            optional = "NotRequired[" in ast.unparse(one.annotation) or one.value is not None or partial
            found[one.target.id] = [kind(one.annotation, known), not optional]
    return found


def _is_typed(node: ast.ClassDef, known: Mapping[str, ast.ClassDef]) -> bool:
    bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    return any(
        base in ("TypedDict", "BaseModel") or (base in known and _is_typed(known[base], known)) for base in bases
    )


NAMED = {
    "response dataset": ("nemo_rl/data/datasets/response_datasets/__init__.py", "DATASET_REGISTRY"),
    "preference dataset": ("nemo_rl/data/datasets/preference_datasets/__init__.py", "DATASET_REGISTRY"),
    "environment": ("nemo_rl/environments/utils.py", "ENV_REGISTRY"),
    "processor": ("nemo_rl/data/processors.py", "PROCESSOR_REGISTRY"),
}
"""Mappings of NeMo RL whose keys are names in a config."""


def mapped(sources: Sources, path: str, name: str) -> list[str]:
    """The keys of a mapping of a module, which may be inside cast(); [] if the release lacks it."""
    for node in sources.tree(path).body if sources.text(path) else ():
        target = (
            node.targets[0]
            if isinstance(node, ast.Assign)
            else node.target
            if isinstance(node, ast.AnnAssign)
            else None
        )
        if target is not None and ast.unparse(target) == name and isinstance(node, ast.Assign | ast.AnnAssign):
            first = next((one for one in ast.walk(node.value or node) if isinstance(one, ast.Dict)), ast.Dict([], []))
            return sorted({str(key.value) for key in first.keys if isinstance(key, ast.Constant)})
    return []


ALGORITHMS = ("distillation", "dpo", "grpo", "ppo", "rm", "sft")


def nemo_rl(sources: Sources) -> dict[str, Any]:
    """The contract of a release of NeMo RL: the fields of its configs, and whether it checks their types."""
    known = classes(sources, "nemo_rl/")
    masters: dict[str, Any] = {}
    for name in ALGORITHMS:
        tree = (
            sources.tree(f"nemo_rl/algorithms/{name}.py") if f"nemo_rl/algorithms/{name}.py" in sources.names else None
        )
        found = (
            [one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "MasterConfig"] if tree else []
        )
        masters |= {name: typed(found[0], known)} if found else {}
    listed_ = {name: typed(node, known) for name, node in sorted(known.items()) if _is_typed(node, known)}
    checked = "BaseModel" in sources.text("nemo_rl/algorithms/grpo.py")
    names = {one: keys for one, where in NAMED.items() if (keys := mapped(sources, *where))}
    return {"checked": checked, "masters": masters, "classes": _reached(masters, listed_), "registries": names}


def _reached(masters: Mapping[str, Any], listed_: Mapping[str, Any]) -> dict[str, Any]:
    """The classes reached from the configs."""
    found: dict[str, Any] = {}
    left = [field[0] for fields_ in masters.values() for field in fields_.values()]
    while left:
        one = left.pop()
        if isinstance(one, list) and one[0] == "class":
            if one[1] in listed_ and one[1] not in found:
                found[one[1]] = listed_[one[1]]
                left += [field[0] for field in listed_[one[1]].values()]
        elif isinstance(one, list) and one[0] in ("union", "list"):
            left += one[1:]
    return found


EXTRACTS = {"verl": verl, "nemo-rl": nemo_rl}


def contract_text(name: str, release: str, place: Path) -> str:
    """The contract of a release."""
    sources = Sources(place, release)
    found = with_refusals(name, sources, {"release": release, **EXTRACTS[name](sources)})
    lines = (f"  {json.dumps(key)}: {json.dumps(value, separators=(',', ': '))}" for key, value in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(name: str, release: str, place: Path) -> Path:
    """Write the contract of a release."""
    CONTRACTS.mkdir(exist_ok=True)
    out = CONTRACTS / f"{name}-{release}.json"
    out.write_text(contract_text(name, release, place), encoding="utf-8")
    return out


def main(words: Sequence[str]) -> int:
    """NAME of a front end, RELEASE, and the clone of its repository or the folder of its unpacked wheel."""
    print(write(words[0], words[1], Path(words[2])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
