"""Writes the tables of front ends, schemas/frontends/<front end>.json: python -m upstream.frontends NAME CLONE

Reads the parser of the release that the table names from its syntax tree: nothing is imported or run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from upstream.frontends.areal import areal
from upstream.frontends.flagscale import flagscale
from upstream.frontends.mcore_adapter import mcore_adapter
from upstream.frontends.mindrlhf import mindrlhf
from upstream.frontends.mindspeed_fsdp2 import mindspeed_fsdp2
from upstream.frontends.mindspeed_mm import mindspeed_mm
from upstream.frontends.mindspeed_rl import mindspeed_rl
from upstream.frontends.ms_swift import RELEASES as SWIFT_RELEASES
from upstream.frontends.ms_swift import ms_swift
from upstream.frontends.nemo_rl import nemo_rl
from upstream.frontends.primus import primus
from upstream.frontends.rows import SCHEMAS, Extract, Row, value_lines
from upstream.frontends.skyrl import skyrl
from upstream.frontends.slime import slime
from upstream.frontends.verl import verl

FRONT_ENDS: dict[str, tuple[str, Extract, tuple[str, ...]]] = {
    "areal": ("v1.0.4", areal, ()),
    "primus": ("v26.5.1", primus, ()),
    "mcore-adapter": ("v0.3.0", mcore_adapter, ("v0.2.1",)),
    "skyrl": ("skyrl-v0.3.0", skyrl, ("skyrl-v0.2.0",)),
    "slime": ("v0.3.1", slime, ("v0.1.0", "v0.2.0", "v0.2.1", "v0.2.2", "v0.2.3", "v0.2.4", "v0.3.0", "main")),
    "nemo-rl": ("v0.7.0", nemo_rl, ()),
    "flagscale": ("v0.9.0", flagscale, ("v0.8.0",)),
    "mindrlhf": ("e8a8fc1", mindrlhf, ("dev",)),
    "mindspeed-llm-fsdp2": ("v26.1.0", mindspeed_fsdp2, ("v26.0.0",)),
    "mindspeed-mm": ("v26.1.0", mindspeed_mm, ()),
    "mindspeed-rl": ("v2.3.0", mindspeed_rl, ("2.0.0", "v2.1.0", "v2.2.0", "master")),
    "verl": ("v0.9.0", verl, ("v0.6.0", "v0.6.1", "v0.7.0", "v0.7.1", "v0.8.0")),
    "ms-swift": ("v4.5.2", ms_swift, SWIFT_RELEASES),
}
"""Front end → the tag that is read, its reader, and the other releases whose keys are not reported."""


def table_text(front_end: str, clone: Path) -> str:
    """The table of a front end."""
    tag, extract, others = FRONT_ENDS[front_end]

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(clone), *words], capture_output=True, text=True, check=True).stdout

    found: dict[str, Any] = {
        "release": tag.removeprefix("skyrl-").lstrip("v"),
        "commit": git("rev-parse", f"{tag}^{{commit}}")[:7],
    }

    def at(release: str) -> dict[str, Any]:
        listed = ("ls-tree", "-r", "--name-only", release)  # "" names every file
        return extract(lambda path: git("show", f"{release}:{path}") if path else git(*listed))

    found |= at(tag)
    tables = [at(other) for other in others]
    found["other releases"] = sorted({key for table in tables for key in _known(table)} - {*_known(found)})
    if choices := _other_choices(found["keys"], [table["keys"] for table in tables]):
        found["other choices"] = choices
    found.pop("all keys", None)
    lines = (f"  {json.dumps(key)}: {value_lines(value)}" for key, value in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _other_choices(keys: dict[str, Row], others: Iterable[dict[str, Row]]) -> dict[str, list[str]]:
    """The choices of each key that other releases have but this one lacks."""
    found: dict[str, set[str]] = {}
    for key, choices in ((key, row_[4]) for other in others for key, row_ in other.items() if len(row_) > 4):
        own = keys[key][4] if len(keys.get(key, ())) > 4 else None
        if own and choices:
            found.setdefault(key, set()).update({*map(str, choices)} - {*map(str, own)})
    return {key: sorted(choices) for key, choices in sorted(found.items()) if choices}


def _known(found: dict[str, Any]) -> Iterable[str]:
    keys: Iterable[str] = found.get("all keys") or found["keys"]
    return keys


def main(words: Sequence[str]) -> int:
    """NAME of a front end and the clone of its repository."""
    out = SCHEMAS / f"{words[0]}.json"
    out.write_text(table_text(words[0], Path(words[1])), encoding="utf-8")
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
