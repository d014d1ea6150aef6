"""A loaded program is not interpreted again: another call reuses the state of its modules while they are unchanged."""

from __future__ import annotations

import os
import pickle
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from trainer import write_tree

from preflight.program import interpreted_state_cache, sources
from preflight.program.checkout import statement_at_line
from preflight.program.checkout.guarded_statements import sites
from preflight.program.interpreter import Interpreter
from preflight.program.judge import Session, in_thread
from preflight.program.machine_facts import Facts
from preflight.program.sources import Sources
from preflight.program.verdict import Budget, Machine, Program, Verdict
from preflight.source import cache_folder

VALIDATE = """
    from megatron.training.limits import Kind, LIMIT, check
    check(args)
    assert args.width < LIMIT, f"too wide: {args.width}"
    assert Kind(args.kind) in Kind, "no kind"
"""
LIMITS = """
    import enum
    import os
    from dataclasses import dataclass, field, fields
    from typing import Optional
    import torch
    from torch import Tensor

    class Kind(enum.Enum):
        plain = "plain"
        fancy = "fancy"

    @dataclass
    class Bound:
        most: int = 64
        names: list = field(default_factory=list)
        weights: Optional[Tensor] = None

    KINDS = [one.type for one in fields(Bound)]
    FOUND = {"first": 1}
    if torch.cuda.get_device_capability()[0] > 8:
        FOUND["second"] = 2

    LIMIT = Bound().most * int(os.getenv("FACTOR", "1"))

    class TooFast(ValueError):
        pass

    def check(args):
        if args.fast and args.heads is None:
            raise TooFast("fast needs heads")
        if args.ranks != int(os.getenv("WORLD_SIZE", "1")):
            raise ValueError("ranks")

    def never(args):
        return [args]
"""
PARSER = """
    group.add_argument("--ranks", type=int, default=int(os.getenv("WORLD_SIZE", "1")))
    group.add_argument("--even", type=lambda text: int(text) * 2, default=None, help=argparse.SUPPRESS)
"""


class Call:
    """Checks one command as a separate call would, and counts the files that it reads."""

    def __init__(self, root: Path, entry: str | None = None) -> None:
        self.root, self.entry = root, entry
        self.files: list[str] = []

    def __call__(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        world: int | None = 8,
        machine: Machine = Machine(),
    ) -> Verdict:
        script = str(self.root / self.entry) if self.entry else None

        def run() -> Verdict:
            session = Session(Program("megatron", (str(self.root),), script), machine, Budget())
            session.strict = True
            verdict = session.judge(argv, env or {}, world)
            self.files = sorted(session.sources.read)
            return verdict

        found: Verdict = in_thread(run)
        return found


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "cache"))
    files = {"megatron/training/limits.py": LIMITS}
    return Call(write_tree(tmp_path / "tree", VALIDATE, parser=PARSER, files=files))


def refusals(verdict: Verdict) -> Sequence[str]:
    return [one.message for one in verdict.refusals]


def plain(verdict: Verdict) -> Verdict:
    """A verdict with its values as text: enumerations of two calls are two classes."""
    return verdict._replace(values={name: repr(value) for name, value in verdict.values.items()})


def test_the_second_call_reads_no_file(call: Call) -> None:
    first = call("--width", "8")
    assert len(call.files) > 1
    assert plain(call("--width", "8")) == plain(first) and call.files == []
    assert refusals(call("--width", "80")) == ["too wide: 80"] and call.files == []
    assert refusals(call("--fast")) == ["fast needs heads"] and call.files == []


def test_no_text_is_parsed_twice(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    call()
    parsed: list[str] = []
    monkeypatch.setattr(sources, "compile_source", lambda text: parsed.append(text) or ())
    assert call("--fast", "--heads", "2").outcome == call("--kind", "fancy").outcome == "accepts"
    assert parsed == []


def test_types_of_options_work_as_before(call: Call) -> None:
    first, second = call("--even", "4"), call("--even", "4")
    assert first.values["even"] == second.values["even"] == 8
    assert "invalid" in refusals(call("--even", "x"))[0] and call.files == []


def test_what_only_a_later_command_calls_is_kept_too(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bodies of functions that the first command does not call are read once."""
    path = call.root / "megatron/training/limits.py"
    path.write_text(
        f"{path.read_text(encoding='utf-8')}\ndef seldom(args):\n    raise ValueError(f'seldom {{args.name}}')\n"
    )
    arguments = call.root / "megatron/training/arguments.py"
    text = arguments.read_text(encoding="utf-8")
    arguments.write_text(
        text.replace(
            "    check(args)\n",
            "    check(args)\n    from megatron.training import limits\n"
            "    if args.name:\n        limits.seldom(args)\n",
        ),
        encoding="utf-8",
    )
    read: list[object] = []
    body = sources.Sources.body
    monkeypatch.setattr(sources.Sources, "body", lambda own, path, node: read.append(node[3]) or body(own, path, node))
    assert call().outcome == "accepts" and read == []
    assert refusals(call("--name", "a")) == ["seldom a"] and read == ["seldom"]
    assert refusals(call("--name", "b")) == ["seldom b"] and read == ["seldom"]
    assert call().outcome == "accepts" and read == ["seldom"]


def test_another_number_of_devices_reads_no_file(call: Call) -> None:
    assert call(world=8).values["ranks"] == 8
    second = call(world=64)
    assert (second.outcome, second.values["ranks"], call.files) == ("accepts", 64, [])
    assert call(world=None).values.get("ranks") is None


def test_another_environment_is_another_program(call: Call) -> None:
    assert refusals(call("--width", "100")) == ["too wide: 100"]
    assert call("--width", "100", env={"FACTOR": "2"}).outcome == "accepts" and call.files
    assert call("--width", "100", env={"FACTOR": "2"}).outcome == "accepts" and not call.files
    assert refusals(call("--width", "100")) == ["too wide: 100"] and not call.files
    assert call(env={"OTHER": "1"}).outcome == "accepts" and not call.files


def test_a_changed_file_is_read_again(call: Call) -> None:
    call()
    path = call.root / "megatron/training/limits.py"
    path.write_text(path.read_text(encoding="utf-8").replace("= 64", "= 4"), encoding="utf-8")
    assert refusals(call("--width", "8")) == ["too wide: 8"]


def test_a_file_with_a_new_time_and_the_same_text_is_not(call: Call) -> None:
    call()
    os.utime(call.root / "megatron/training/limits.py", (1, 1))
    assert call().outcome == "accepts" and call.files == []


def test_a_module_that_comes_before_another_is_seen(call: Call) -> None:
    call()
    folder = call.root / "megatron/training/limits"
    folder.mkdir()
    text = (call.root / "megatron/training/limits.py").read_text(encoding="utf-8")
    (folder / "__init__.py").write_text(text.replace("= 64", "= 2"), encoding="utf-8")
    assert refusals(call("--width", "8")) == ["too wide: 8"]


def test_modules_are_looked_for_again_only_where_a_folder_changed(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    time.sleep(2 * sources.FRESH / 1e9)
    call()
    looked: list[str] = []
    find = sources.Sources._find
    monkeypatch.setattr(sources.Sources, "_find", lambda own, root, name: looked.append(name) or find(own, root, name))
    call("--width", "8")
    before = set(looked)
    assert len(before) == 1  # the module with Megatron's arguments
    (call.root / "notes.txt").write_text("")
    call("--width", "4")
    again = set(looked) - before
    assert again and not [name for name in again if "." in name]


def test_what_is_kept_is_of_one_machine(call: Call) -> None:
    before = call(machine=Machine(devices=8))
    assert call(machine=Machine(devices=4)).outcome == before.outcome and call.files


def test_a_module_notes_again_what_is_unknown_of_it(call: Call) -> None:
    """Unknown parts of a module are unknown for each command that uses the module, and for no other."""
    (call.root / "megatron/training/fast.py").write_text(
        "try:\n    import quick\nexcept ImportError:\n    raise ImportError('no quick')\n", encoding="utf-8"
    )
    path = call.root / "megatron/training/limits.py"
    text = path.read_text(encoding="utf-8")
    needing = "        if args.fast:\n            from megatron.training.fast import quick\n            quick\n"
    path.write_text(text.replace("def check(args):\n", "def check(args):\n" + needing.replace("        ", "    ", 1)))
    first, other = call("--fast", "--heads", "2"), call("--heads", "2")
    assert first.outcome == "may refuse" and other.outcome == "accepts"
    assert plain(call("--fast", "--heads", "2")) == plain(first) and call.files == []


def test_a_script_that_looks_at_the_command_is_read_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path / "cache"))
    entry = """
        import sys
        from megatron.training import pretrain

        def more(parser):
            parser.add_argument("--more", type=int, default=3)
            return parser

        if "--odd" in sys.argv:
            raise ValueError("odd")
        pretrain(extra_args_provider=more)
    """
    training = "def pretrain(extra_args_provider=None):\n    pass\n"
    root = write_tree(tmp_path / "tree", "pass", files={"train.py": entry, "megatron/training/__init__.py": training})
    call = Call(root, "train.py")
    first = call("--more", "5")
    assert call("--odd").outcome != "accepts"
    assert plain(call("--more", "5")) == plain(first) and first.values["more"] == 5
    assert call.files == ["train.py"]


def test_one_site_is_what_all_sites_of_a_file_tell() -> None:
    text = '''
X = 1
class A:
    """A text
def in_a_text(): no"""
    def one(self, args):
        if args.x > 1:
            for y in (1, 2):
                raise ValueError("a"
                    "b")
        else:
            assert args.y, (
    "at the margin"
            )

    async def two(self):
        with open("x") as f:
            raise RuntimeError

def three(args):
    try:
        raise TypeError
    except TypeError as error:
        raise ValueError from error

assert X
if X:
    def four():
        assert False
'''
    every = sites("a.py", text, statement_at_line.NO_CALLS)
    for line in range(1, text.count("\n") + 2):
        whole = next((one for one in every if one.line <= line <= one.end), None)
        alone = statement_at_line.site_at("a.py", text, line)
        assert (alone and (alone.line, alone.hash)) == (whole and (whole.line, whole.hash))


class Ends:
    """An object created by a built-in function of Python."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("exit 1",)


def test_reading_makes_only_what_is_listed(tmp_path: Path) -> None:
    run = Interpreter(Sources((str(tmp_path),), Budget()), Facts(Machine(), {}, 8), Budget())
    for data in (pickle.dumps(Ends()), pickle.dumps(Path("x")), pickle.dumps(subprocess.Popen)):
        with pytest.raises(KeyError):
            interpreted_state_cache.read(run, data)


@pytest.mark.parametrize("value", [[].append, iter([1]), (one for one in ()), Path("x"), lambda: 1, os])
def test_what_has_no_form_is_not_kept(value: object, tmp_path: Path) -> None:
    run = Interpreter(Sources((str(tmp_path),), Budget()), Facts(Machine(), {}, 8), Budget())
    with pytest.raises(interpreted_state_cache.NotKept):
        interpreted_state_cache.written(run, {"value": value}, lambda function: None)
