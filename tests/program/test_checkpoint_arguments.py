"""Arguments that a checkpoint may set are unknown when testing whether a refusal is certain without it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from trainer import write_tree

from preflight.program.judge import Session, in_thread
from preflight.program.verdict import Budget, Machine, Program, Verdict

PARSER = """
    group.add_argument("--load", type=str, default=None)
    group.add_argument("--use-checkpoint-args", action="store_true")
    group.add_argument("--mm-model", type=str, default=None)
"""
CHECKPOINTING = """
    def _load_base_checkpoint(load_dir, rank0=False):
        raise OSError("no such folder")

    def load_args_from_checkpoint(args, load_arg="load"):
        load_dir = getattr(args, load_arg)
        if load_dir is None:
            print("no folder")
            return args
        state_dict, name, release = _load_base_checkpoint(load_dir, rank0=True)
        if not state_dict:
            return args
        if "args" not in state_dict:
            return args
        checkpoint_args = state_dict["args"]
        args.iteration = state_dict["iteration"]

        def _set_arg(arg_name, old_arg_name=None, force=False):
            if not force and getattr(args, arg_name, None) is not None:
                return
            if old_arg_name is not None:
                value = getattr(checkpoint_args, old_arg_name, None)
            else:
                value = getattr(checkpoint_args, arg_name, None)
            if value is not None:
                setattr(args, arg_name, value)
            else:
                print(f"no {arg_name}")

        _set_arg("width", force=True)
        _set_arg("heads")
        return args, checkpoint_args
"""
VALIDATE = """
    assert args.kind != "fancy", "fancy"
    assert args.width < 100, f"too wide: {args.width}"
    if args.heads is None:
        raise ValueError("no heads")
    if args.width == 8:
        args.name = "small"
    assert not args.fast or args.name, "fast needs a name"
"""
BOTH = "--use-checkpoint-args --load x"


def asked(root: Path, words: str, *, checkpoint: bool = True) -> Verdict:
    session = Session(Program("megatron", (str(root),)), Machine(), Budget())
    session.strict = True
    found: Verdict = in_thread(lambda: session.judge(words.split(), {}, 8, checkpoint=checkpoint))
    return found


def tree(folder: Path, checkpointing: str = CHECKPOINTING) -> Path:
    return write_tree(folder, VALIDATE, parser=PARSER, files={"megatron/training/checkpointing.py": checkpointing})


@pytest.mark.parametrize(
    ("words", "certain"),
    [
        ("--kind fancy", "fancy"),  # nothing that the checkpoint sets
        ("--kind fancy --heads 4", "fancy"),
        ("--width 200", ""),  # it sets the width in any case
        ("--width 200 --heads 4", ""),
        ("", ""),  # it sets the heads if they are not given
        ("--heads 4", ""),
        ("--heads 4 --fast --width 9", ""),  # with another width there is a name
        ("--heads 4 --fast --width 8", ""),
        ("--heads 4 --stages x", "invalid int value"),
        ("--heads 4 --no-such 3", "unrecognized arguments"),
    ],
)
def test_a_refusal_is_certain_if_no_checkpoint_cures_it(words: str, certain: str, tmp_path: Path) -> None:
    verdict = asked(tree(tmp_path), f"{BOTH} {words}")
    told = [one.message for one in verdict.refusals if one.certain]
    assert len(told) == bool(certain) and all(certain in one for one in told)
    assert ("checkpoint" in verdict.stages) == (certain not in ("invalid int value", "unrecognized arguments"))


@pytest.mark.parametrize(
    ("words", "checkpoint"),
    [
        (BOTH, False),
        ("--load x", True),
        ("--use-checkpoint-args", True),
        (f"{BOTH} --mm-model a.json", True),
    ],
)
def test_without_a_checkpoint_the_arguments_of_the_command_count(words: str, checkpoint: bool, tmp_path: Path) -> None:
    verdict = asked(tree(tmp_path), f"{words} --width 200", checkpoint=checkpoint)
    assert verdict.outcome == "refuses" and verdict.refusals[-1].message == "too wide: 200"
    assert "checkpoint" not in verdict.stages


@pytest.mark.parametrize(
    "checkpointing",
    [
        "def load_args_from_checkpoint(args, load_arg='load'):\n    args.width = unread_name\n",
        "def load_args_from_checkpoint(args, load_arg='load'):\n    args.width = 4\n    raise ValueError('broken')\n",
        "def load_args_from_checkpoint(args):\n    args.width = 4\n",
        "def load_args_from_checkpoint(args, load_arg='load'):\n    args.width = 4\n    while True:\n        pass\n",
        "load_args_from_checkpoint = None\n",
        "",
    ],
)
def test_what_cannot_be_read_changes_nothing(checkpointing: str, tmp_path: Path) -> None:
    verdict = asked(tree(tmp_path, checkpointing), f"{BOTH} --width 200")
    assert [one.message for one in verdict.refusals if one.certain] == ["too wide: 200"]
    assert "checkpoint" not in verdict.stages


INITIALIZE = """
def initialize_megatron(extra_args_provider=None, args_defaults={}):
    args = parse_args(extra_args_provider)

    if args.fast:
        from transformers import AutoConfig
        config = AutoConfig.from_pretrained(args.name)
        args.heads = config.num_attention_heads

    validate_args(args, args_defaults)
"""


@pytest.mark.parametrize(("words", "refused"), [("", "no heads"), ("--fast --name a", ""), ("--heads 2", "")])
def test_what_a_fork_sets_before_its_checks_is_unknown(tmp_path: Path, words: str, refused: str) -> None:
    root = write_tree(tmp_path, VALIDATE, parser=PARSER, files={"megatron/training/initialize.py": INITIALIZE})
    told = [one.message for one in asked(root, words).refusals if one.certain]
    assert told == ([refused] if refused else [])


@pytest.mark.parametrize(
    ("between", "words", "refused"),
    [
        (
            "if os.path.exists(args.name):\n    if args.fast and args.heads is None:\n        args.heads = read()",
            "--name /x",
            True,
        ),
        (
            "if os.path.exists(args.name):\n    if args.fast and args.heads is None:\n        args.heads = read()",
            "--name /x --fast",
            False,
        ),
        ("if args.name is not None:\n    args.heads = read(args.name)", "", True),
        ("if args.name is not None:\n    args.heads = read(args.name)", "--name a", False),
        ("if args.kind == 'plain':\n    pass\nelse:\n    args.heads = read()", "", True),
        ("if args.kind == 'plain':\n    pass\nelse:\n    args.heads = read()", "--kind fancy", False),
        ("if not args.fast or args.width > 8:\n    args.heads, args.width = read()", "--fast", True),
        ("if not args.fast or args.width > 8:\n    args.heads, args.width = read()", "--fast --width 16", False),
        ("for one in read():\n    args.heads = one", "", False),
        ("with read() as one:\n    if args.name:\n        args.heads = one", "", True),
        ("if args_defaults.get('heads'):\n    args.heads = 1", "", False),
        ("found = read()\nif found:\n    args.heads = found", "", False),
        ("if unknown_to_all(args):\n    args.heads = 2", "", False),
        ("other.heads = read()", "", True),
        ("args.heads = args.heads", "", True),
        ("args.heads = args.width * 2", "", False),
        ("args.heads = None", "--heads 2", True),
        ("args.heads = os.path.getsize(args.name)", "--heads 2", False),
        ("args.heads = 2\nargs.heads = None", "--heads 2", True),
        ("if args.fast:\n    args.heads = None", "--heads 2", False),
        ("if args.fast:\n    args.heads = None", "--heads 2 --fast", True),
        ("if read():\n    args.heads = None", "--heads 2", False),
        ("for one in read():\n    args.heads = None", "--heads 2", False),
        ("try:\n    args.heads = None\nexcept ValueError:\n    pass", "--heads 2", False),
        ("args.heads, args.width = None, 4", "--heads 2", False),
        ("args.heads += 1", "--heads 2", False),
        ("args.width = args.heads = None", "--heads 2", False),
    ],
)
def test_what_is_set_under_conditions_before_the_checks(
    tmp_path: Path, between: str, words: str, refused: bool
) -> None:
    start = f"""
import os
from megatron.training.arguments import parse_args, validate_args

def initialize_megatron(extra_args_provider=None, args_defaults={{}}, parsed_args=None):
    if parsed_args is None:
        args = parse_args(extra_args_provider)
    else:
        args = parsed_args

{textwrap.indent(between, "    ")}

    if args.name == "yaml":
        args = validate_yaml(args)
    else:
        validate_args(args, args_defaults)
    args.heads = 4
"""
    root = write_tree(tmp_path, VALIDATE, parser=PARSER, files={"megatron/training/initialize.py": start})
    told = [one.message for one in asked(root, words, checkpoint=False).refusals if one.certain]
    assert ("no heads" in told) is refused
