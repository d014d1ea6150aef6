"""Configs derived from those of the fixtures: keys removed, added, and given unusual values."""

from __future__ import annotations

import json
import shlex
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from preflight import testing
from preflight.plugins.manager import Plugins, load

from .choices import Choices
from .values import odd, odd_word

TESTS = Path(__file__).resolve().parent.parent
SCHEMAS = TESTS.parent / "schemas"
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
TARGETS = {
    "megatron": ("megatron@0.20.0", "megatron@0.12.1", "mindspeed@26.1.0", "mindspeed-llm@26.1.0"),
    "graph": (
        "mindformers@1.5.0",
        "mindformers@2.1.0",
        "mindformers@1.2.0",
        "mindformers@1.7.0",
        "mindformers@1.3.2",
        "mindformers@1.0.0",
    ),
}


class Seed(NamedTuple):
    """A config written for a test, as plain data or as words."""

    target: str | None
    tree: Any = None
    words: tuple[str, ...] = ()
    text: str = ""


@cache
def plugins() -> Plugins:
    """Every rule and dialect."""
    return load()


@cache
def yaml_seeds(kind: str) -> tuple[Seed, ...]:
    """Trees of the fixtures: graph, mcore, pynative or megatron."""
    found = []
    for path in sorted((TESTS / "rules").rglob("*.yaml")):
        for case in testing.load(path):
            if case.file.endswith((".yaml", ".yml")) and case.text:
                try:
                    tree = yaml.safe_load(case.text)
                except (yaml.YAMLError, ValueError):
                    continue
                if isinstance(tree, dict) and _kind(path, case.text) == kind:
                    found.append(Seed(case.target, tree, text=case.text))
    if kind in ("graph", "mcore"):
        table = yaml.safe_load((TESTS / "constraints" / "mindformers-graph.yaml").read_text(encoding="utf-8"))
        found += [
            Seed("mindformers@1.5.0", base, text=yaml.safe_dump(base)) for _, base in sorted(table["bases"].items())
        ]
    return tuple(found) or yaml_seeds("graph")


def _kind(path: Path, text: str) -> str:
    if path.name.startswith("pynative") or "distribute" in text:
        return "pynative"
    if "MODEL_ARGS" in text:
        return "megatron"
    return "mcore" if "mcore" in path.name or "pretrain_config" in text or "2.1.0" in text else "graph"


@cache
def dotted_names() -> tuple[str, ...]:
    """Every dotted key that a declared check reads."""
    names = {name for rule in plugins().rules(None) for name in getattr(rule, "names", ()) if "." in name}
    return tuple(sorted(names))


@cache
def pynative_names() -> tuple[str, ...]:
    data = json.loads((SCHEMAS / "mindformers" / "pynative.json").read_text(encoding="utf-8"))
    found: set[str] = set()
    stack = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            found.update(key for key in item if isinstance(key, str) and key.isidentifier())
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return tuple(sorted(found))


@cache
def options() -> tuple[str, ...]:
    """Every option of every framework started by a command."""
    table = import_module("preflight.dialects.megatron.options")
    return tuple(
        sorted({option for release in (*table.UNASKED, *table.ASKED) for option in table.table(*release).options})
    )


@cache
def command_seeds() -> tuple[tuple[str, ...], ...]:
    """The words of the bases and of the pairs of the declared checks."""
    found = []
    for name in ("megatron-training", "mindspeed", "megatron-core"):
        table = yaml.safe_load((TESTS / "constraints" / f"{name}.yaml").read_text(encoding="utf-8"))
        bases = {key: shlex.split(text) for key, text in table.get("bases", {}).items()}
        for case in table["cases"]:
            extra = case.get("rejected", case.get("speaks", ""))
            base = bases.get(case.get("base", "dense"), [])
            if isinstance(extra, str):
                found.append(tuple([*base, *shlex.split(extra)]))
    return tuple(found)


def tree(choices: Choices, kind: str) -> tuple[Any, str | None]:
    """A mutated tree, and the version to read it as."""
    seed = choices.of(yaml_seeds(kind))
    made = json.loads(json.dumps(seed.tree, default=str))
    for _ in range(1 + choices.below(6)):
        _mutate(choices, made, kind)
    return made, (choices.of(TARGETS["graph"]) if kind in ("graph", "mcore") and choices.one_in(3) else seed.target)


def _places(node: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    for key, value in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
        found.append((node, key))
        if isinstance(value, (dict, list)):
            _places(value, found)
    return found


def _mutate(choices: Choices, made: Any, kind: str) -> None:
    action = choices.below(8)
    names = pynative_names() if kind == "pynative" else dotted_names()
    if action < 3 and kind != "pynative" and kind != "megatron":
        *path, last = choices.of(names).split(".")
        node = made
        for part in path:
            inner = node.setdefault(part, {})
            if not isinstance(inner, dict):
                return
            node = inner
        node[last] = odd(choices)
        return
    places = _places(made, [])
    if not places:
        return
    node, key = places[choices.below(min(len(places), 65536))]
    if action == 7 and isinstance(node, dict):
        node.pop(key, None)
    elif action == 6 and isinstance(node, dict):
        name = choices.of(options()) if kind == "megatron" else choices.of(names).rpartition(".")[2]
        node[name] = odd(choices)
    else:
        node[key] = odd(choices)


def yaml_text(choices: Choices, kind: str) -> tuple[str, str | None]:
    """A mutated config as text."""
    made, target = tree(choices, kind)
    return yaml.dump(made, Dumper=_Dumper, allow_unicode=True, sort_keys=False), target


def words(choices: Choices) -> list[str]:
    """A mutated command, the entry left out."""
    made = list(choices.of(command_seeds()))
    for _ in range(choices.below(6)):
        at = choices.below(len(made)) if made else 0
        action = choices.below(6)
        if action == 0 and made:
            del made[at]
        elif action == 1:
            made[at:at] = [choices.of(options())]
        elif action == 2:
            made[at:at] = [f"{choices.of(options())}={odd_word(choices)}"]
        elif action < 5:
            values = [i for i, word in enumerate(made) if not word.startswith("--")]
            if values:
                made[values[choices.below(min(len(values), 256))]] = odd_word(choices)
        else:
            made += [choices.of(options()), *(odd_word(choices) for _ in range(choices.below(3)))]
    return made


@cache
def folder() -> Path:
    """The assumed location of texts that need a path."""
    return Path(tempfile.mkdtemp(prefix="preflight-fuzz."))
