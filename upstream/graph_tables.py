"""The key tables of MindFormers' graph mode: the table of a release is derived from a neighbouring one and the
differences in options.json."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from preflight import schemas

FOLDER = Path(__file__).parent.parent / "schemas" / "mindformers"
BESIDE: dict[str, str] = schemas.read("releases")["mindformers beside"]
"""Release → the neighbouring one, whose table was written by running the framework."""
CORE = ("ModelParallelConfig", "TransformerConfig", "MLATransformerConfig", "MFModelConfig")
CONSTRUCTED = {
    "parallel_config": "TransformerOpParallelConfig",
    "recompute_config": "TransformerRecomputeConfig",
    "moe_config": "MoEConfig",
}
"""Sections of releases without a template → the class that they are passed to."""
Section = dict[str, Any]


def sections(options: Mapping[str, Any], release: str) -> dict[str, Section]:
    """Section or class → key → default, of one release."""
    number = list(options["commits"]).index(release)
    found: dict[str, Section] = {}
    for name, rows in options["options"].items():
        row = next((row for first, last, row in rows if first <= number <= last and row is not None), None)
        if row is not None:
            section, _, key = name.rpartition(".")
            found.setdefault(section, {})[key] = _plain(row[2] if len(row) > 2 else None)
    return found


def _plain(default: Any) -> Any:
    """A default as a value; unknown for an expression of anything but numbers."""
    if not (isinstance(default, str) and default.startswith("`")):
        return default
    try:
        return eval(compile(ast.parse(default.strip("`"), mode="eval"), "", "eval"), {"__builtins__": {}})
    except (NameError, TypeError, SyntaxError, AttributeError):
        return None


def moved(known: Section, before: Section, after: Section) -> Section:
    """The known keys of a section, with the differences between two releases."""
    kept = {key: value for key, value in known.items() if key in after or key not in before}
    new = {key: value for key, value in after.items() if key not in before and not key.startswith("_")}
    changed = {key: after[key] for key in kept if key in before and key in after and before[key] != after[key]}
    return {**kept, **changed, **new}


def graph_table(options: Mapping[str, Any], base: Mapping[str, Any], release: str) -> dict[str, Any]:
    """The table of a release, derived from that of a neighbouring one."""
    before, after = sections(options, base["version"]), sections(options, release)
    named = {name: CONSTRUCTED.get(name, name) if not base["general"] else name for name in base["sections"]}
    core = [{key: value for name in CORE for key, value in each.get(name, {}).items()} for each in (before, after)]
    made = {
        **base,
        "version": release,
        "general": moved(base["general"], before.get("general_config", {}), after.get("general_config", {})),
        "sections": {
            name: moved(keys, before.get(named[name], {}), after.get(named[name], {}))
            for name, keys in base["sections"].items()
        },
        "models": _models(base["models"], before, after),
    }
    if "mcore" in base:
        made["mcore"] = moved(base["mcore"], *core)
        made["mcore_models"] = _models(base["mcore_models"], before, after)
    return made


def _models(
    known: Mapping[str, Section], before: Mapping[str, Section], after: Mapping[str, Section]
) -> dict[str, Section]:
    """Model types that are in a release, or that options.json does not list because they are not part of the
    package."""
    return {
        name: moved(keys, before.get(name, {}), after.get(name, {}))
        for name, keys in known.items()
        if name in after or name not in before
    }


def texts() -> dict[Path, str]:
    """File → content, of the releases in between."""
    options = json.loads((FOLDER / "options.json").read_text(encoding="utf-8"))
    found = {}
    for release, beside in BESIDE.items():
        base = json.loads((FOLDER / "graph" / f"{beside}.json").read_text(encoding="utf-8"))
        table = graph_table(options, base, release)
        found[FOLDER / "graph" / f"{release}.json"] = (
            json.dumps(table, ensure_ascii=False, separators=(",", ":")) + "\n"
        )
    return found


def write() -> None:
    """Writes the tables of the releases in between."""
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"graph/{path.name} from {BESIDE[path.stem]}\n")


if __name__ == "__main__":
    write()
