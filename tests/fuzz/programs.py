"""Functions and whole trainers changed at random: the interpreter neither fails nor leaves its budget."""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import os
import shutil
import tempfile
import textwrap
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from preflight.program.ir import Unreadable, compile_source, compile_tree
from preflight.program.judge import Session, in_thread
from preflight.program.values import Class, Exhausted, Function, Module, Object, Raised, Scope, Symbol, Unknown
from preflight.program.verdict import Budget, Machine, Program

from .choices import Choices
from .rewriting import changed, files, folders, functions, statements, text_of

SMALL = Budget(steps=20_000, seconds=1.0)
SHORT = Budget(steps=2_000, seconds=1.0)
"""The budget for most functions: an endless loop shows its problem after a few iterations."""
WHOLE = Budget(steps=300_000, seconds=5.0)
FORMS = 8
SELDOM = 8
"""How rarely the text of a changed tree is read again, and how rarely the cache of a program is written."""
LOADED = 64
"""The number of modules after which loaded objects are excluded from garbage collection."""
SLACK = 1.0
"""Processor seconds beyond the budget for work that is not counted in steps, such as reading a file. Test runs get
more, because their process has more objects to collect."""
STATED = Machine({"torch": "2.8.0", "transformer-engine": "2.17"}, capability=(9, 0), devices=8)
OUTCOMES = ("accepts", "refuses", "may refuse", "unread")
TRAINER = "megatron.training.arguments"
COMMAND = (
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 "
    "--micro-batch-size 1 --global-batch-size 16 --train-iters 10 --lr 1e-4 --bf16 --tokenizer-type NullTokenizer "
    "--vocab-size 100 --tensor-model-parallel-size 2"
).split()
EXTRAS = ("--num-experts 4", "--pipeline-model-parallel-size 2", "--sequence-parallel", "--fp16", "--no-such-option")


def function(choices: Choices) -> int:
    """One function in a few forms, each called in its module with known or unknown values; returns their number."""
    module, path = files()[choices.below(min(len(files()), 65_536))]
    found = functions(path)
    if not found:
        return 0
    owner, text = found[choices.below(min(len(found), 65_536))]
    done = 0

    def each() -> None:
        nonlocal done
        home = _home(module)
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            for tree in changed(choices, ast.parse(text), FORMS):
                _tried(choices, home, owner, tree)
                done += 1

    in_thread(each)
    return done


def _tried(choices: Choices, home: Module, owner: str, tree: ast.Module) -> None:
    """Uses the tree as it is, which takes less time; if that fails, or by choice, its text."""
    budget = SMALL if choices.one_in(16) else SHORT
    at = choices.at
    if not choices.one_in(SELDOM):
        at = choices.at
        try:
            _bounded(lambda: _called(choices, home, owner, compile_tree(tree), budget), budget)
        except Exception:  # such a tree may be none of a text
            choices.at = at
        else:
            return
    if (other := text_of(tree)) is not None:
        _bounded(lambda: _called(choices, home, owner, compile_source(other), budget), budget)


def _bounded(run: Callable[[], None], budget: Budget) -> None:
    """Runs something that may fail as programs do, within its budget."""
    started = time.thread_time()
    with contextlib.suppress(Unreadable, Raised, Exhausted, RecursionError, MemoryError):
        run()
    taken = time.thread_time() - started
    assert taken < budget.seconds + SLACK, f"{taken:.1f} seconds"


@cache
def _session() -> Session:
    """A reading of all folders that functions are taken from."""
    roots = tuple(dict.fromkeys(str(one.parent) for one in folders()))
    return Session(Program("megatron", roots), STATED, SMALL)


def _called(choices: Choices, home: Module, owner: str, form: tuple[Any, ...], budget: Budget) -> None:
    session = _session()
    run = session.run
    session._begin([*COMMAND], {}, 8)
    run.budget = budget
    try:
        scope = Scope(home.names, None, home, "module", "")
        run.scope = scope
        cls = home.names.get(owner)
        run.block(form, scope)
        made = home.names.get(form[-1][3]) if form and form[-1][0] == "FunctionDef" else None
        if isinstance(made, Function):
            names = made.node[4][0]
            given = [_value(choices, home) for _ in names]
            if isinstance(cls, Class) and given:
                made.owner, given[0] = cls, Object(cls)
            run.call(made, given[: choices.below(len(given) + 2)] if choices.one_in(9) else given, {})
    finally:
        session._end()


def _home(module: str) -> Module:
    """The module that a function comes from, an empty one if it cannot be read."""
    session = _session()
    run, before = session.run, len(session.run.modules) // LOADED
    if module not in run.modules:
        session._begin([*COMMAND], {}, 8)
        run.budget = WHOLE
        try:
            _bounded(lambda: run.load(module), WHOLE)
        finally:
            session._end()
    if len(run.modules) // LOADED > before:
        gc.collect()
        gc.freeze()
    return run.modules.get(module) or Module(module, "", "", False)


def _value(choices: Choices, home: Module) -> Any:
    """An argument of a call."""
    known = argparse.Namespace(num_layers=4, hidden_size=64, fp16=False, bf16=True, params_dtype=None, x=[1, 2])
    values = (
        *(Unknown(("torch >= 2.1",)), Unknown(gaps=("something",)), Unknown(), known, known, known),
        *(None, True, False, 0, 1, 7, 2**40, 0.5, "", "a text", "1,2", [1, 2, 3], [], {"a": 1}, {}, (1, 2), {1, 2}),
        *(Symbol("torch.bfloat16"), Symbol("torch"), [Unknown(), 1], {"a": Unknown()}, str, int, len, b"x", range(4)),
    )
    at = choices.below(len(values) + 8)
    if at < len(values):
        return values[at]
    named = [one for one in home.names.values() if isinstance(one, (Class, Function))]
    return choices.of(named) if named else None


def program(choices: Choices) -> None:
    """A whole trainer with some changed files, queried about one command."""
    roots = [one.parent for one in folders() if (one / "training" / "arguments.py").is_file()]
    if not roots:
        function(choices)
        return
    root = choices.of(roots)
    read = _read(root)
    folder = Path(tempfile.mkdtemp(prefix="preflight-fuzz-program."))
    try:
        for _ in range(1 + choices.below(3)):
            name = "megatron/training/arguments.py" if choices.below(2) else read[choices.below(len(read))]
            _write_changed(choices, root, folder, name)
        words = [*COMMAND, *(choices.of(EXTRAS).split() if choices.below(2) else [])]
        machine, kept = STATED if choices.below(2) else Machine(), choices.one_in(SELDOM)
        in_thread(lambda: _bounded(lambda: _judged((str(folder), str(root)), words, machine, kept), WHOLE))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _read(root: Path) -> tuple[str, ...]:
    """The files of a trainer read for a command."""
    return tuple(
        in_thread(lambda: Session(Program("megatron", (str(root),)), STATED, Budget()).judge(COMMAND, {}, 8)).files
    )


def _write_changed(choices: Choices, root: Path, folder: Path, name: str) -> None:
    """A file with some of its statements changed, before the one that it replaces."""
    lines = (root / name).read_text(encoding="utf-8").splitlines()
    spans = statements(root / name)
    chosen = {spans[choices.below(min(len(spans), 65_536))] for _ in range(1 + choices.below(4)) if spans}
    last = len(lines) + 1
    for first, end in sorted(chosen, reverse=True):
        if end >= last:
            continue  # it holds one that was changed
        last = first
        margin = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            part = ast.parse(textwrap.dedent("\n".join(lines[first - 1 : end])))
            text = text_of(next(changed(choices, part, 1))) or ""
            lines[first - 1 : end] = textwrap.indent(text, margin).splitlines()
    for part_of in Path(name).parents:
        if (root / part_of / "__init__.py").is_file() and part_of != Path():
            (folder / part_of).mkdir(parents=True, exist_ok=True)
            if not (folder / part_of / "__init__.py").exists():
                shutil.copy(root / part_of / "__init__.py", folder / part_of / "__init__.py")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")


def _judged(roots: tuple[str, ...], words: list[str], machine: Machine, kept: bool) -> None:
    """kept: the program is cached for the next call."""
    session = Session(Program("megatron", roots), machine, WHOLE)
    session.strict = True
    if not kept:
        session._kept = None
    verdict = session.judge(words, {}, 8)
    assert verdict.outcome in OUTCOMES


os.environ.setdefault("PREFLIGHT_CACHE_DIR", tempfile.mkdtemp(prefix="preflight-fuzz-cache."))
