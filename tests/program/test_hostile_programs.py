"""Malicious programs: none executes anything, exceeds its limits or makes the interpreter fail."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from clock import takes_at_most
from trainer import judged, write_tree

from preflight.program.verdict import Budget

SMALL = Budget(steps=60_000, seconds=5)
HOSTILE = {
    "endless loop": "while True:\n    pass",
    "endless recursion": "def again(n):\n    return again(n + 1)\nagain(0)",
    "doubling text": "s = 'x'\nfor _ in range(200):\n    s = s + s",
    "doubling list": "s = [0]\nfor _ in range(200):\n    s += s",
    "repeated text": "s = 'x' * 10 ** 12",
    "power": "n = 10 ** 10 ** 10",
    "shift": "n = 1 << 10 ** 12",
    "product of numbers": "n = 3\nfor _ in range(200):\n    n = n * n",
    "long range": "for _ in list(range(10 ** 12)):\n    pass",
    "wide format": "s = f'{1:{10 ** 9}}' + '%1000000000d' % 1 + '{:1000000000}'.format(1) + 'x'.ljust(10 ** 10)",
    "backtracking": "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')",
    "many repeats": "import re\nre.match(r'a*a*a*a*a*a*a*b', 'a' * 500)",
    "combinations": "import itertools\nlist(itertools.product(range(100), repeat=9))",
    "shared lists": "s = [1]\nfor _ in range(60):\n    s = [s, s]\nt = str(s) + repr(s)\nassert s == s",
    "factorial": "import math\nmath.factorial(10 ** 8)",
    "long number": "n = int('9' * 900000)",
    "unknown forks": "import os\n" + "\n".join(f"if os.nice({n}):\n    args.width = {n}" for n in range(300)),
    "nested forks": "import os\n"
    + "\n".join("    " * n + f"if os.nice({n}):" for n in range(40))
    + "\n"
    + "    " * 40
    + "x = 1",
    "own subclasses": "found = ().__class__.__bases__[0].__subclasses__()\nfor one in found:\n    one()",
    "attributes in a format": "s = '{0.__class__.__mro__}'.format(args)",
    "globals of a function": "g = parse_args.__globals__['os']\ng.system('touch RAN')",
    "system": "import os, subprocess\nos.system('touch RAN')\nsubprocess.run(['touch', 'RAN'])",
    "open": "open('RAN', 'w').write('x')",
    "exec": "exec(\"open('RAN', 'w')\")",
    "compile": "eval(compile(\"open('RAN', 'w')\", 'x', 'eval'))",
    "import by name": "__import__('os').system('touch RAN')",
    "text that is evaluated": "eval(\"__import__('os').system('touch RAN')\")",
    "argument files": "p = argparse.ArgumentParser(fromfile_prefix_chars='@')\n"
    "p.add_argument('x')\np.parse_args(['@/etc/passwd'])",
    "file type": "p = argparse.ArgumentParser()\np.add_argument('x', type=argparse.FileType('w'))\n"
    "p.parse_args(['RAN'])",
    "except of what is no exception": "from typing import Any\ntry:\n    nothing\nexcept Any:\n    pass",
    "attribute set without a value": "class Size:\n    pass\nSize().__setattr__('n')",
    "attribute named by a dictionary": "class Size:\n    pass\nSize().__setattr__({}, 1)",
    "place of nothing in a list": "import os\n[os.nice(1)].index()\n[1].index()",
    "tuple without its fields": "from typing import NamedTuple\nclass Size(NamedTuple):\n    n: int\n"
    "s = Size.__new__(Size)\nlist(s)",
    "parser that is not handed over": "add_megatron_arguments()",
    "option without a name": "argparse.ArgumentParser().add_argument('')",
    "item with a key that has no hash": "d = {1: 2}\ndel d[{3}]",
    "instance of a number": "class Own(dict):\n    pass\nisinstance(Own(), 3)",
    "class in itself": "args.me = args\nassert str(args)\nl = []\nl.append(l)\nassert str(l)",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_ends_within_its_bounds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = write_tree(tmp_path / "tree", HOSTILE[name])
    with takes_at_most(30):
        verdict = judged(root, budget=SMALL)
    assert verdict.outcome in ("accepts", "refuses", "may refuse", "unread")
    assert not list(tmp_path.rglob("RAN"))


def test_a_loop_that_does_not_end_is_unread(tmp_path: Path) -> None:
    assert judged(write_tree(tmp_path, HOSTILE["endless loop"]), budget=SMALL).outcome == "unread"


def test_files_outside_the_tree_and_large_ones_are_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("def check(args):\n    assert args.width == 7\n", encoding="utf-8")
    root = write_tree(tmp_path / "tree", "from megatron.linked import check\ncheck(args)")
    (root / "megatron" / "linked.py").symlink_to(outside)
    assert judged(root).outcome == "unread"
    (root / "megatron" / "linked.py").unlink()
    (root / "megatron" / "linked.py").write_text("#" * 3000 + "\n" + outside.read_text(), encoding="utf-8")
    assert judged(root, budget=Budget(size=2000)).outcome == "unread"


WHOLE = """
import torch
from functools import partial, wraps
try:
    import kernels
    HAVE = True
except ImportError:
    HAVE = False
class Base:
    limit = 4
    def __init__(self, n=1, **rest):
        self.n = n
        self.rest = rest
    @property
    def twice(self):
        return self.n * 2
def check(args, *more, strict=True):
    found = {name: value for name, value in vars(args).items() if value}
    for at, one in enumerate(args.stages):
        if one % 2 and HAVE:
            args.width += one
        elif strict and one > Base.limit:
            raise ValueError(f"stage {at} has {one:>3} of {Base(one, wide=True).twice}")
    total = sum(args.stages) * len(found)
    while total > 3:
        total //= 2
    assert total <= 3 or torch.cuda.is_available(), "total {}".format(total)
    return [partial(max, total)(n) for n in sorted(args.stages, key=lambda n: -n)]
"""


@pytest.mark.parametrize("seed", range(60))
def test_mutated_programs_never_break_the_interpreter(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    lines = WHOLE.splitlines()
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(lines))
        kind = chance.randrange(5)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[chance.randrange(len(lines))])
        elif kind == 2:
            words = lines[at].split(" ")
            chance.shuffle(words)
            lines[at] = " ".join(words)
        elif kind == 3:
            lines[at] = lines[at].replace(
                chance.choice("nsatr.(=:"), chance.choice(["", "HAVE", "args", "[", "None", "0"]), 1
            )
        else:
            lines[at] = lines[at].replace(
                chance.choice(["args", "one", "total", "self"]), chance.choice(["HAVE", "torch", "check", "Base"])
            )
    root = write_tree(tmp_path, "check(args, strict=args.fast)", head="\n".join(lines))
    verdict = judged(root, ["--stages", "1", "6", "--fast"], budget=SMALL)
    assert verdict.outcome in ("accepts", "refuses", "may refuse", "unread")
