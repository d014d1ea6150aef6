"""The option table of one checkout of Megatron-LM, from its real parser: python -m upstream.inside.megatron_parser
ROOT [alone]"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from upstream.inside.rows import rows
from upstream.inside.standins import hide_installed, install, load

STANDINS = ("torch", "numpy", "modelopt")
OWN = ("megatron", "pretrain_gpt")
ARGUMENTS = ("megatron.training.arguments", "megatron.arguments")
"""The name of the parser's module in newer and older releases."""


class _Parsing(BaseException):
    """The parser is about to parse."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def parser_of(arguments: Any) -> argparse.ArgumentParser:
    """The parser that a release builds: from the function that adds the options or, before that existed, at the moment
    of parsing."""
    if hasattr(arguments, "add_megatron_arguments"):
        return arguments.add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))  # type: ignore

    def stop(self: argparse.ArgumentParser, *given: Any, **named: Any) -> Any:
        raise _Parsing(self)

    with patch.multiple(argparse.ArgumentParser, parse_args=stop, parse_known_args=stop):
        try:
            arguments.parse_args()
        except _Parsing as caught:
            return caught.parser
    raise RuntimeError("the release parses without a parser")


def arguments_in(root: str) -> str:
    """The module of the parser in a checkout."""
    return next(name for name in ARGUMENTS if Path(root, *name.split(".")).with_suffix(".py").is_file())


def main(root: str, *, alone: bool = False) -> None:
    """Prints the options as JSON, with the packages that got a stand-in.

    alone: without those that an entry script adds. The output of the release itself goes to stderr.
    """
    out, sys.stdout = sys.stdout, sys.stderr
    sys.path.insert(0, root)
    sys.argv = ["pretrain_gpt.py"]
    hide_installed()
    finder = install(STANDINS)
    parser = parser_of(load(arguments_in(root), OWN, finder))
    entry = Path(root, "pretrain_gpt.py")
    if not alone and entry.is_file() and "add_modelopt_args" in entry.read_text(encoding="utf-8"):
        parser = load("megatron.post_training.arguments", OWN, finder).add_modelopt_args(parser)
    json.dump({"options": rows(parser), "standins": sorted(finder.names)}, out)


if __name__ == "__main__":
    main(sys.argv[1], alone=sys.argv[2:] == ["alone"])
