"""A small trainer with the structure of Megatron, for the interpreter."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from preflight.program.judge import Session, in_thread
from preflight.program.verdict import Budget, Machine, Program, Verdict

ARGUMENTS = """
import argparse
import os

{head}

def parse_args(extra_args_provider=None):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser = add_megatron_arguments(parser)
    if extra_args_provider is not None:
        parser = extra_args_provider(parser)
    return parser.parse_args()

def add_megatron_arguments(parser):
    group = parser.add_argument_group(title="sizes")
    group.add_argument("--width", type=int, default=8)
    group.add_argument("--heads", type=int, default=None)
    group.add_argument("--kind", choices=["plain", "fancy"], default="plain")
    group.add_argument("--fast", action="store_true")
    group.add_argument("--stages", nargs="+", type=int, default=[1])
    group.add_argument("--name", type=str, default=None)
{parser}
    return parser

def validate_args(args, defaults={{}}):
{validate}
    return args

def core_transformer_config_from_args(args):
{config}
"""


def write_tree(
    root: Path,
    validate: str = "pass",
    *,
    head: str = "",
    parser: str = "",
    config: str = "pass",
    files: Mapping[str, str] | None = None,
) -> Path:
    """A tree with this body of validate_args."""
    body = ARGUMENTS.format(
        head=textwrap.dedent(head),
        parser=textwrap.indent(textwrap.dedent(parser), "    "),
        validate=textwrap.indent(textwrap.dedent(validate).strip() or "pass", "    "),
        config=textwrap.indent(textwrap.dedent(config).strip() or "pass", "    "),
    )
    for name, text in {
        "megatron/__init__.py": "",
        "megatron/training/__init__.py": "",
        "megatron/training/arguments.py": body,
        **(files or {}),
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return root


def judged(
    root: Path,
    argv: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    world_size: int | None = 8,
    machine: Machine = Machine(),
    budget: Budget = Budget(),
    entry: str | None = None,
) -> Verdict:
    """The result of the tree; an error of the interpreter itself is raised."""

    def run() -> Verdict:
        script = str(root / entry) if entry else None
        session = Session(Program("megatron", (str(root),), script), machine, budget)
        session.strict = True
        return session.judge(argv, env or {}, world_size)

    verdict: Verdict = in_thread(run)
    return verdict
