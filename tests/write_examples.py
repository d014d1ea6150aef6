"""Writes schemas/examples: the examples on pages of declared checks, from the pairs of runs in tests/constraints.

python tests/write_examples.py
"""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from edges import DEVICES, ELSE, ENTRIES, TARGETS, case
from pairs import Pair, Run, config, defect_pairs, pairs

from preflight.api import installed
from preflight.checking.engine import Policy
from preflight.dialects.megatron.options import ASKED, table
from preflight.dialects.megatron.options import UNASKED as TABLES
from preflight.dialects.mindformers.pynative_network_fields import NAMES
from preflight.frontends.front_end import data
from preflight.lint.constraint import Constraint
from preflight.plugins.manager import load

FOLDER = Path(__file__).parent.parent / "schemas" / "examples"
WIDTH = 100
DOTTED_KEY = re.compile(r"[a-z_]\w*(?:\.\w+)+=")
WORLD = {"world_size", "world", "distributed", "data_parallel_size", "expert_data_parallel_size", "num_microbatches"}
COMES_FROM = {
    "num_microbatches": ("global_batch_size", "micro_batch_size"),
    "pipeline_num_layers": ("num_layers",),
    "virtual_pipeline_model_parallel_size": ("num_layers",),
    "padded_vocab_size": ("vocab_size",),
    "lr_decay_steps": ("train_iters",),
    "data_parallel_size": ("nnodes", "n_gpus_per_node", "tensor_model_parallel_size"),
}
"""Options of a base that decide a derived value."""


@cache
def declared() -> Mapping[str, Constraint]:
    return {rule.id: rule for rule in load().rules(None) if isinstance(rule, Constraint)}


@cache
def destinations(of: str) -> Mapping[str, str]:
    """Option → destination, in any release; of a front end's table its keys."""
    if of.startswith("frontends-"):
        return {key: row[0] for key, row in data(of.removeprefix("frontends-"))["keys"].items()}
    return {option: flag.dest for release in (*TABLES, *ASKED) for option, flag in table(*release).options.items()}


def names(rule: Constraint) -> set[str]:
    """The arguments that a check is about: in its condition, in its message, its places."""
    found = {handle.name for handle in (*rule.refuse.handles(), *rule.at) if handle.view != "environment"}
    found |= set(re.findall(r"\{([A-Za-z_][\w.]*)\}", rule.message))
    return found | {source for name in found for source in COMES_FROM.get(name, ())}


def groups(words: str) -> dict[str, list[str]]:
    """Option → its values."""
    found: dict[str, list[str]] = {}
    last: list[str] = []
    for word in shlex.split(words):
        if word.startswith("--"):
            last = found[word] = []
        elif DOTTED_KEY.match(word):
            found[word.partition("=")[0]] = [word]
        else:
            last.append(word)
    return found


def command(pair: Pair, words: Run, rule: Constraint, environment: Mapping[str, str | None]) -> str:
    """The variables and options that count, in lines that a script could have."""
    assert isinstance(pair.base, str) and isinstance(words, str)
    wanted, typed = names(rule), groups(words)
    base = {
        option: values
        for option, values in groups(pair.base).items()
        if destinations(pair.table).get(option) in wanted and option not in typed
    }
    read = {handle.name for handle in rule.refuse.handles() if handle.view == "environment"}
    lines = [f"export {name}={value}" for name, value in environment.items() if name in read and value is not None]
    entry = pair.row.get("entry") or ENTRIES.get(str(pair.row.get("base")))
    options = (base | typed).items()
    shown = ([*([option] if option.startswith("-") else []), *values] for option, values in options)
    texts = [*([entry] if entry else []), *map(shlex.join, shown)]
    line = ""
    for text in texts:
        if line and len(line) + len(text) > WIDTH:
            lines.append(f"{line} \\")
            line = text
        else:
            line = f"{line} {text}".strip()
    return "\n".join([*lines, line] if line else lines)


def section(pair: Pair, changes: Run, rule: Constraint) -> str:
    """The settings that count, as YAML: the same ones on both sides."""
    assert not isinstance(pair.base, str) and not isinstance(changes, str)
    changed = [*pair.found, *(name for name in pair.silent if name not in pair.found)]
    keys = {dest: key for key, dest in destinations(pair.table).items()} if pair.table.startswith("frontends-") else {}
    about = (
        keys[name]
        if name in keys
        else f"model.{NAMES[name[4:]][0]}"
        if name.startswith("net.") and name[4:] in NAMES
        else name
        for name in sorted(names(rule))
    )
    whole = config(pair.base, changes)
    shown = settings(whole, dict.fromkeys((*changed, *about)), changes)
    if not shown:  # all relevant parts are removed; the rest is unrelated
        parents = {name.rpartition(".")[0] for name in changed}
        beside = [
            f"{parent}.{key}".lstrip(".")
            for parent in parents
            for key in list((value_at(whole, parent) if parent else whole) or ())[:3]
        ]
        shown = settings(whole, beside, changes)
    return yaml.safe_dump(shown, sort_keys=False, width=WIDTH).rstrip("\n") if shown else ""


def settings(whole: Mapping[str, Any], wanted: Iterable[str], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Some settings of a config by dotted name; a section as a whole only if it was written as one."""
    shown: dict[str, Any] = {}
    for name in wanted:
        value = value_at(whole, name)
        if changes.get(name) == "null":
            shown = config(shown, {name: "null"})
        elif value is not None and (name in changes or not isinstance(value, dict)):
            shown = config(shown, {name: value})
    return shown


def value_at(whole: Any, name: str) -> Any:
    for part in name.split("."):
        whole = whole.get(part) if isinstance(whole, dict) else None
    return whole


def around(pair: Pair, rule: Constraint) -> str:
    """The release and the devices, if they matter."""
    said = []
    if "target" in pair.row:
        target = str(pair.row["target"])
        said.append(
            f"in {target.replace('@', ' ')}"
            if "@" in target or not target[0].isdigit()
            else f"in {TARGETS[pair.table].partition('@')[0]} {target}"
        )
    if pair.table.startswith("mindformers") and said:
        said = [f"in MindFormers {pair.row['target']}"]
    if "devices" in pair.row or (names(rule) & WORLD and not pair.table.startswith("frontends-")):
        count = pair.row.get("devices", DEVICES.get(pair.table, 1))
        said.append(f"with {count} device{'s' if count != 1 else ''}")
    if "device" in pair.row:
        said.append(f"on {str(pair.row['device']).upper()}")
    return ", ".join(said)


def message(pair: Pair, environment: Mapping[str, str | None], folder: Path) -> str:
    """The findings of preflight about the found run."""
    run = {name: pair.row[name] for name in ELSE if name in pair.row} | {"run": pair.found, "env": environment}
    made = case(pair.table, {pair.row.get("base") or "only": pair.base}, run)
    report = made.check(folder, installed(), Policy(chosen=lambda id, path: id == pair.rule))
    return report.findings[0].message if report.findings else ""


def example(pair: Pair, folder: Path) -> dict[str, str]:
    """One example as the data file has it."""
    rule = declared()[pair.rule]
    before: dict[str, str | None] = {
        **({"CUDA_DEVICE_MAX_CONNECTIONS": None} if pair.row.get("unset") else {}),
        **pair.row.get("env", {}),
    }
    if isinstance(pair.found, str) and isinstance(pair.silent, str):
        standard = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
        found = command(pair, pair.found, rule, {**standard, **before}) or "pretrain_gpt.py"
        after = pair.row.get(
            "accepted_env", {} if "accepted_env" in pair.row or pair.table == "megatron-training" else before
        )
        silent = command(
            pair,
            pair.silent,
            rule,
            {**standard, **({"CUDA_DEVICE_MAX_CONNECTIONS": None} if pair.row.get("unset") else {}), **after},
        )
        dropped = [option for option in groups(pair.found) if option not in groups(pair.silent)]
        language = "sh"
    else:
        found, silent, language = section(pair, pair.found, rule), section(pair, pair.silent, rule), "yaml"
        dropped = [name for name in pair.found if name not in pair.silent]
    rows = {
        "around": around(pair, rule),
        "language": language,
        "found": found,
        "message": message(pair, before, folder),
        "silent": silent,
    }
    return {**{name: text for name, text in rows.items() if text}, **({} if silent else {"dropped": " ".join(dropped)})}


def written(only: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """File name → text, of every framework's examples."""
    files: dict[str, dict[str, dict[str, str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for pair in (*pairs(), *defect_pairs()):
            made = files.setdefault(pair.table.partition("-")[0], {})
            if pair.rule in declared() and pair.rule not in made:
                made[pair.rule] = example(pair, Path(folder))
    for name, examples in sorted(files.items()):
        rows = (f"{json.dumps(rule)}: {json.dumps(examples[rule], ensure_ascii=False)}" for rule in sorted(examples))
        yield f"{name}.json", "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in written():
        (FOLDER / name).write_text(text, encoding="utf-8")
