"""Writes the tables of doors, schemas/doors/<door>.json: python -m upstream.doors DOOR CLONE

Reads the parser of the release that the table names, off its syntax tree: nothing is imported or run.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from preflight.dialects.checkout.parser_options import OwnOption, own_options
from preflight.dialects.megatron.option_table import table

SCHEMAS = Path(__file__).parent.parent / "schemas" / "doors"
Row = list[Any]
PATCHED = ("--post-self-attn-layernorm", "--post-mlp-layernorm", "--use-gated-attention", "--offload-optimizer-states")
"""Options that the commit under slime, and its patch (docker/patch/latest/megatron.patch), add to Megatron-LM 0.16."""


def slime(text: Callable[[str], str]) -> dict[str, Any]:
    """slime's own options, and the defaults that it changes in Megatron's parser."""
    code = text("slime/utils/arguments.py")
    below = table("megatron", "0.16.0").options
    resets = dict(_resets(ast.parse(code)))
    adds = re.sub(r"(?<!def )reset_arg\(\s*parser,", "parser.add_argument(", code)
    own = {one.option: one for one in own_options(adds)}
    defaults = {name: raw for name, raw in resets.items() if name in below and below[name].default != raw}
    keys = {name: row(one) for name, one in own.items() if name not in below}
    keys |= {name: [name[2:].replace("-", "_"), "true", False] for name in PATCHED}
    return {"takes megatron": True, "defaults": defaults, "keys": keys}


def _resets(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """The options whose default `reset_arg` changes."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "reset_arg":
            said = {one.arg: one.value for one in call.keywords}
            if "default" in said:
                yield ast.literal_eval(call.args[1]), ast.literal_eval(said["default"])


def row(one: OwnOption) -> Row:
    """An option as a row of the table: its destination, kind, default, number of values, choices, other spellings."""
    kind = one.kind or ("json" if isinstance(one.default, str) and one.default.startswith("{") else "str")
    default = False if kind == "true" else True if kind == "false" else one.default
    also = (f"--no-{one.option[2:]}",) if kind == "pair" else one.also
    found: Row = [one.dest, kind, default, one.nargs, one.choices, also or None]
    while found and found[-1] is None and len(found) > 3:
        found.pop()
    return found


Extract = Callable[[Callable[[str], str]], dict[str, Any]]
VERL = "verl/trainer/config/_generated_ppo_megatron_trainer.yaml"
"""The config of its trainer with Megatron, with all its parts in it."""
_FALLBACK = re.compile(r"\$\{oc\.select:[\w.]+,\s*([^${}]*)\}")


def verl(text: Callable[[str], str]) -> dict[str, Any]:
    """verl's trainer config; which of its keys Megatron knows, and by which name, is written by hand in the table."""
    trainer = _without_targets(yaml.safe_load(text(VERL)))
    table = json.loads((SCHEMAS / "verl.json").read_text(encoding="utf-8"))
    keys = {key: [*row_[:2], _default(trainer, key), *row_[3:]] for key, row_ in table["keys"].items()}
    return {"inside": table["inside"], "keys": keys, "all keys": sorted(_paths(trainer)), "trainer": trainer}


def _without_targets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_targets(inner) for key, inner in value.items() if key != "_target_"}
    return value


def _default(tree: Any, key: str) -> Any:
    """A default; of one that is another key's value, what it is without that."""
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    found = _FALLBACK.fullmatch(tree) if isinstance(tree, str) else None
    if found is not None:
        return yaml.safe_load(found[1])
    return None if isinstance(tree, str) and "${" in tree else tree


def _paths(tree: dict[str, Any], above: str = "") -> Iterator[str]:
    for key, value in tree.items():
        yield above + key
        if isinstance(value, dict):
            yield from _paths(value, f"{above}{key}.")


DOORS: dict[str, tuple[str, Extract, tuple[str, ...]]] = {
    "slime": ("v0.3.1", slime, ("v0.2.0", "v0.2.2", "v0.2.3", "v0.2.4", "v0.3.0", "main")),
    "verl": ("v0.9.0", verl, ("v0.6.1", "v0.7.1", "v0.8.0")),
}
"""Door → the tag that is read, what reads it, and the other releases whose keys are no mistake."""


def write(door: str, clone: Path) -> Path:
    """Write the table of a door anew."""
    tag, extract, others = DOORS[door]

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(clone), *words], capture_output=True, text=True, check=True).stdout

    found: dict[str, Any] = {"release": tag.lstrip("v"), "commit": git("rev-parse", f"{tag}^{{commit}}")[:7]}

    def at(release: str) -> dict[str, Any]:
        return extract(lambda path: git("show", f"{release}:{path}"))

    found |= at(tag)
    elsewhere = {key for other in others for key in _known(at(other))}
    found["other releases"] = sorted(elsewhere - {*_known(found)})
    found.pop("all keys", None)
    out = SCHEMAS / f"{door}.json"
    lines = (f"  {json.dumps(key)}: {_value(value)}" for key, value in found.items())
    out.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return out


def _known(found: dict[str, Any]) -> Iterable[str]:
    keys: Iterable[str] = found.get("all keys") or found["keys"]
    return keys


def _value(value: Any) -> str:
    """A mapping with a line for each key, anything else on one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    rows = (f"    {json.dumps(key)}: {json.dumps(value[key])}" for key in sorted(value))
    return "{\n" + ",\n".join(rows) + "\n  }"


def main(words: Sequence[str]) -> int:
    """DOOR and the clone of its repository."""
    print(write(words[0], Path(words[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
