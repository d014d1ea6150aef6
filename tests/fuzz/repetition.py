"""Targets with repeated and nested constructs: mostly short, rarely long, because time and memory are findings, too."""

from __future__ import annotations

from preflight.checking.checked_sources import Workspace
from preflight.loaders import load
from preflight.source.source_file import InputError, Source

from . import configs
from .checks import render, request, sound
from .choices import Choices
from .pieces import SHELL, YAML
from .texts import well_formed

LONG = (60_000, 150_000, 199_000, 400_000, 999_000)
GRAPH = (
    "run_mode: train\nuse_parallel: True\nparallel_config: {data_parallel: 2, pipeline_stage: 4}\n"
    "model:\n  model_config:\n    type: LlamaConfig\n    num_layers: 40\n"
)
LAUNCH = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 --micro-batch-size 1"
CLOSING = {
    "[": "]",
    "{": "}",
    "(": ")",
    "$(": ")",
    "${A:-": "}",
    "((": "))",
    "$((": "))",
    '"$(': ')"',
    "`": "`",
    "if a; then ": "; fi",
    "{ ": "; }",
}
CLOSING |= {
    "f() { ": "; }",
    "case a in b) ": ";; esac",
    "for i in 1 2; do ": "; done",
    "while a; do ": "; done",
    "<(": ")",
    "{a: ": "}",
    "[[ ": " ]]",
    "- ": "",
}


def yaml(choices: Choices) -> None:
    """A config with something in it very often."""
    _tried(
        choices,
        _text(
            choices, YAML, (GRAPH, "", GRAPH + "list:\n", GRAPH + "list: ", GRAPH + "callbacks:\n", "apiVersion: v1\n")
        ),
        "run.yaml",
    )


def shell(choices: Choices) -> None:
    """A script with something in it very often."""
    _tried(
        choices,
        _text(choices, SHELL, (f"{LAUNCH}\n", "", f"{LAUNCH} ", "A=", 'A="', "A=(", "case $A in ", "[[ "))
        + f"\n{LAUNCH}\n",
        "run.sh",
    )


def _text(choices: Choices, parts: tuple[str, ...], starts: tuple[str, ...]) -> str:
    """A start, then a unit of a few pieces again and again or inside itself."""
    start, unit = choices.of(starts), "".join(choices.of(parts) for _ in range(1 + choices.below(4)))
    if choices.one_in(4):
        unit += choices.text(6)
    number = 1 + choices.below(choices.of((4, 4, 16, 64)))
    if choices.below(1000) == 999:
        number = choices.of(LONG) // max(1, len(unit))
    kind = choices.below(4)
    if kind == 0:
        opening = choices.of(tuple(CLOSING))
        inside = unit * (1 + choices.below(3))
        depth = min(number, 190_000 // (len(opening) + 1))
        return start + opening * depth + inside + (CLOSING[opening] * depth if choices.below(3) else "")
    if kind == 1:
        return start + "".join([f"{unit}{i}" for i in range(number)]) + "\n"
    return start + unit * number + choices.of(("\n", "", choices.of(parts)))


def _tried(choices: Choices, text: str, name: str) -> None:
    """It is read or refused; one in some is checked and shown."""
    try:
        source = Source.decode(text.encode("utf-8", "surrogatepass"), name, path=configs.folder() / name)
        if choices.below(16) == 0:
            render(choices, sound(Workspace([source], configs.plugins(), request(choices)).check()))
        else:
            well_formed(load(source))
    except InputError as error:
        assert "memory than is available" not in error.message, error
