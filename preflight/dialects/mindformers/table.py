"""The tables of keys and defaults per release, under schemas/mindformers/graph: one small JSON file each, read once."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple


class Table(NamedTuple):
    """What one release knows. strict: sections that refuse an unknown key; required: keys a section must have.

    general: top-level scalars; sections, models, mcore: key → default, per section, per legacy model type, of the mcore
    transformer config.
    """

    version: str
    strict: tuple[str, ...]
    required: dict[str, tuple[str, ...]]
    general: dict[str, Any]
    sections: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]
    mcore: dict[str, Any]

    @property
    def templated(self) -> bool:
        """Whether this release fills and checks sections from a template (since 1.5)."""
        return bool(self.general)

    def default(self, name: str, model: str = "") -> Any:
        """The default of a dotted name, None where there is none. model: the type whose model_config it is."""
        section, _, key = name.partition(".")
        if not key:
            return self.general.get(name, _UNTEMPLATED.get(name))
        if section == "model" and key.startswith("model_config."):
            return self.models.get(model, {}).get(key.removeprefix("model_config."))
        if section == "mcore":
            return self.mcore.get(key)
        found = self.sections.get(section, {}).get(key)
        return _UNTEMPLATED.get(name) if found is None else found


_UNTEMPLATED = {
    "use_parallel": False,
    "micro_batch_interleave_num": 1,
    "runner_config.batch_size": 1,
    "runner_config.gradient_accumulation_steps": 1,
    "parallel_config.context_parallel": 1,
    "parallel_config.seq_split_num": 1,
    "parallel_config.context_parallel_algo": "colossalai_cp",
    "parallel_config.ulysses_degree_in_cp": 1,
    "swap_config.swap": False,
}


@lru_cache(maxsize=8)
def table(version: str) -> Table:
    """The table of a release."""
    data = json.loads((folder() / "graph" / f"{version}.json").read_text(encoding="utf-8"))
    required = {section: tuple(keys) for section, keys in data["required"].items()}
    return Table(data["version"], tuple(data["strict"]), required, data["general"], data["sections"], data["models"], data.get("mcore", {}))


def folder() -> Path:
    """Where the data of this dialect lies."""
    import preflight.schemas

    return Path(str(preflight.schemas.__file__)).parent / "mindformers"
