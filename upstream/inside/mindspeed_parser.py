"""The option table of MindSpeed, MindSpeed-LLM or ModelLink on Megatron-LM: python -m
upstream.inside.mindspeed_parser ROOT MEGATRON [MINDSPEED]"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from upstream.inside.megatron_parser import OWN, parser_of
from upstream.inside.rows import rows
from upstream.inside.standins import Finder, hide_installed, install, load

STANDINS = (
    "torch",
    "torch_npu",
    "numpy",
    "modelopt",
    "transformers",
    "tqdm",
    "peft",
    "datasets",
    "mindspore",
    "apex",
    "transformer_engine",
)
PACKAGES = (*OWN, "mindspeed", "mindspeed_llm", "modellink")
ADDERS = (
    ("mindspeed_llm.training.arguments", "process_args_v2"),
    ("mindspeed_llm.training.arguments", "process_args"),
    ("modellink.arguments", "process_args"),
)
"""The code that adds the options of the frameworks built on MindSpeed, the newest way first."""


def added(root: str, parser: argparse.ArgumentParser, finder: Finder) -> argparse.ArgumentParser:
    """The parser with a framework's own options, as built by its patched `parse_args`."""
    parser.conflict_handler = "resolve"
    for module, function in ADDERS:
        if Path(root, *module.split(".")).with_suffix(".py").is_file():
            if module.startswith("mindspeed_llm.") and Path(root, "mindspeed_llm", "features_manager").is_dir():
                load("mindspeed_llm.features_manager", PACKAGES, finder)
            loaded = load(module, PACKAGES, finder)
            if hasattr(loaded, function):
                return getattr(loaded, function)(parser)  # type: ignore[no-any-return]
    return _mindspeed(root, parser, finder)


def _mindspeed(root: str, parser: argparse.ArgumentParser, finder: Finder) -> argparse.ArgumentParser:
    """By features if the release has a manager of features that its `parse_args` calls, otherwise by one function."""
    if (
        Path(root, "mindspeed", "core", "megatron_basic", "arguments_basic.py").is_file()
        or Path(root, "mindspeed", "args_utils.py").is_file()
    ):
        features: Any = load("mindspeed.features_manager", PACKAGES, finder)
        features.MindSpeedFeaturesManager.register_features_args(parser)
        return parser
    return load("mindspeed.arguments", PACKAGES, finder).process_args(parser)  # type: ignore[no-any-return]


def main(roots: list[str]) -> None:
    """Prints the options as JSON; the output of the releases themselves goes to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    sys.path[:0] = roots
    sys.argv = ["pretrain_gpt.py"]
    hide_installed()
    finder = install(STANDINS)
    parser = parser_of(load("megatron.training.arguments", PACKAGES, finder))
    json.dump({"options": rows(added(roots[0], parser, finder)), "standins": sorted(finder.names)}, out)


if __name__ == "__main__":
    main(sys.argv[1:])
