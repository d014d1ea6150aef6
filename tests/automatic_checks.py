"""Classifies the machine-listed checks of MindFormers that were not reviewed individually.

A check is covered if a rule with a finding in some example names a location within three lines of it. The others are
classified by the part of the framework that contains them; unexplained ones are open.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent.parent / "schemas" / "coverage" / "mindformers-automatic.json"
COVERED, OPEN = "covered by a rule", "open: may depend on the config, no rule names it"
DATA = "looks into data, while it is read or made"
FILES = "looks into weights, tokenizers or other files of the run"
SERVING = "layers and requests of the prediction engine, made by its own code"
MODULES = "arguments that the network's own code passes to its parts"
RUNNING = "asked at run time: tensors, ranks, callbacks, tools of the command line"
PARTS: tuple[tuple[str, str], ...] = (
    ("mindformers/dataset/", DATA),
    ("mindformers/checkpoint/", FILES),
    ("mindformers/models/auto/", FILES),
    ("mindformers/models/tokenization", FILES),
    ("mindformers/models/utils.py", FILES),
    ("mindformers/models/build_tokenizer", FILES),
    ("mindformers/models/image_processing", DATA),
    ("mindformers/models/multi_modal/", DATA),
    ("mindformers/tools/", RUNNING),
    ("mindformers/utils/", RUNNING),
    ("mindformers/core/callback/", RUNNING),
    ("mindformers/core/metric/", RUNNING),
    ("mindformers/core/loss/", RUNNING),
    ("mindformers/wrapper/", RUNNING),
    ("mindformers/generation/", SERVING),
    ("mindformers/pipeline/", SERVING),
    ("mindformers/inference/", SERVING),
    ("mindformers/model_runner.py", SERVING),
    ("mindformers/parallel_core/inference/", SERVING),
    ("mindformers/parallel_core/process_config", SERVING),
    ("mindformers/pynative/trainer/inference", SERVING),
    ("mindformers/pynative/callback/", RUNNING),
    ("mindformers/pynative/tools/", RUNNING),
    ("mindformers/pynative/loss/", RUNNING),
    ("mindformers/pynative/layers/", MODULES),
    ("mindformers/pynative/transformers/", MODULES),
    ("mindformers/pynative/base_models/common/", MODULES),
    ("mindformers/parallel_core/training_graph/", MODULES),
    ("mindformers/modules/", MODULES),
    ("mindformers/models/", MODULES),
    ("mindformers/pet/", MODULES),
    ("research/", MODULES),
)


def part(file: str) -> str:
    """The class of a check that no rule covers, by its location."""
    if "/infer" in file or "_infer" in file:
        return SERVING
    return next((kind for prefix, kind in PARTS if file.startswith(prefix)), OPEN)


def classified(rows: list[dict[str, Any]], covered: list[bool]) -> dict[str, list[str]]:
    """Class → the checks in it."""
    found: dict[str, list[str]] = {}
    for row, yes in zip(rows, covered, strict=True):
        found.setdefault(COVERED if yes else part(row["file"]), []).append(f"{row['file']}:{row['line']}")
    return {kind: sorted(places) for kind, places in sorted(found.items())}


def write(tables: dict[str, dict[str, list[str]]]) -> None:
    """The list that is shipped."""
    OUT.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")
