"""The fuzz targets: each takes choices and raises an exception if something is wrong.
InputError is the only allowed refusal. One that tries several things at once gives how many."""

from __future__ import annotations

from collections.abc import Callable

from . import programs, repetition
from .checks import command, script, tree
from .choices import Choices
from .conditions import constraints, evaluator
from .edits import fixer, proof
from .gate import gate, manifest
from .names import names
from .parsers import composition, small
from .protocol import protocol
from .site import site
from .texts import loader, shell, sums, toml

Fuzz = Callable[[Choices], int | None]
TARGETS: dict[str, tuple[int, Fuzz]] = {
    "yaml": (2, loader),
    "shell": (3, shell),
    "arithmetic": (1, sums),
    "evaluator": (1, evaluator),
    "constraints": (1, constraints),
    "settings": (1, toml),
    "megatron-command": (3, command),
    "megatron-script": (3, script),
    "megatron-yaml": (1, tree("megatron")),
    "mindformers-graph": (4, tree("graph")),
    "mindformers-mcore": (3, tree("mcore")),
    "mindformers-pynative": (3, tree("pynative")),
    "fixer": (4, fixer),
    "gate": (2, gate),
    "manifest": (2, manifest),
    "proof": (1, proof),
    "repeated-yaml": (4, repetition.yaml),
    "repeated-shell": (4, repetition.shell),
    "names": (2, names),
    "protocol": (1, protocol),
    "composition": (3, composition),
    "small-parsers": (3, small),
    "site": (3, site),
    "functions": (3, programs.function),
    "programs": (1, programs.program),
}
"""By name: the share of the time, and the function."""
