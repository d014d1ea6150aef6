"""The releases in which a rule holds, from verdicts about its examples: a small trainer with several releases."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import upstream.behaviour
from preflight.program.checkout.guarded_statements import sites
from upstream.behaviour import Behaviour, behaviour
from upstream.examples import Example, Run, examples
from upstream.frameworks import MEGATRON, Framework, Release
from upstream.read_statements import ReadStatements
from upstream.repositories import Repositories

sys.path.append(str(Path(__file__).parents[1] / "program"))
from trainer import write_tree

FILE = "megatron/training/arguments.py"
FUNCTION = "validate_args"
NAMES = {"1.0": "v1", "2.0": "v2", "3.0": "v3", "4.0": "v4"}
TREES = {
    "v1": "assert args.width > 0",
    "v2": """
        assert args.width > 0
        assert args.width % args.heads == 0, 'uneven'
        """,
    "v3": """
        assert args.width > 0
        if args.fast and args.heads > 2:
            raise ValueError('fast has two heads at most')
        left = args.width - args.width // args.heads * args.heads
        if left:
            raise ValueError('uneven')
        """,
    "v4": """
        if args.width != 8:
            raise ValueError('no other width')
        """,
}
TOY = Framework(
    "megatron",
    "owner/toy",
    tuple(Release(name, tag) for name, tag in NAMES.items()),
    roots=("megatron",),
    scope="",
    calls="^$",
    parser="keys",
    read_at=("2.0",),
)


def run(words: str) -> Run:
    return Run("pretrain_gpt.py", tuple(words.split()), (), 8, "h100")


def example(rule: str, home: str, refused: str, accepted: str) -> Example:
    return Example(rule, home, run(refused), run(accepted))


EXAMPLES = [
    example("toy/uneven", "2.0", "--width 9 --heads 2", "--width 8 --heads 2"),
    example("toy/empty", "2.0", "--width 0 --heads 2", "--width 8 --heads 2"),
    example("toy/only-eight", "4.0", "--width 9 --heads 3", "--width 8 --heads 2"),
    example("toy/fast", "3.0", "--fast --heads 4", "--fast --heads 2"),
]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Behaviour:
    monkeypatch.setenv("PREFLIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(upstream.behaviour, "examples", lambda framework: EXAMPLES)
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for tag, body in TREES.items():
        write_tree(folder, body)
        for words in (["add", "-A"], ["commit", "-qm", tag], ["tag", tag]):
            subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
    repositories = Repositories([str(folder)], "megatron")
    return behaviour(TOY, repositories, ReadStatements(evidence(tmp_path)), list(NAMES), lambda text: None)


def evidence(folder: Path) -> dict[str, Any]:
    """Each rule at the statement of its release with its words."""
    found: dict[str, Any] = {"commits": NAMES, "files": [FILE], "functions": [FUNCTION], "sites": {}, "rules": {}}
    where = {"toy/uneven": ("2.0", "heads"), "toy/empty": ("2.0", "0"), "toy/only-eight": ("4.0", "8")}
    where["toy/fast"] = ("3.0", "fast")
    for rule, (home, word) in where.items():
        text = (write_tree(folder / "read", TREES[NAMES[home]]) / FILE).read_text()
        checks = [one for one in sites(FILE, text, re.compile("^$")) if one.kind in ("assert", "raise")]
        site = next(one for one in checks if word in one.shown)
        found["sites"][rule] = ["assert", [[0, 0, site.hash, list(NAMES).index(home), [site.line]]]]
        found["rules"][rule] = [{rule: [home]}, []]
    return found


def answers(told: Behaviour, rule: str) -> list[bool | None]:
    return [told.holds(rule, name) for name in NAMES]


def test_a_rule_holds_where_the_program_refuses_its_example_in_any_words(told: Behaviour) -> None:
    assert answers(told, "toy/uneven")[:3] == [False, True, True]


def test_a_rule_does_not_hold_where_the_program_accepts_its_example(told: Behaviour) -> None:
    assert answers(told, "toy/fast") == [False, False, True, False]


def test_what_is_refused_where_another_rule_was_read_is_that_rule_s(told: Behaviour) -> None:
    assert told.holds("toy/uneven", "4.0") is None and told.answers("toy/uneven", "4.0")
    assert told.holds("toy/only-eight", "4.0") is True
    assert told.read.owners(told.seen["toy/uneven"]["4.0"][0].told.statement) == {"toy/only-eight"}


def test_a_release_that_refuses_the_neighbour_as_well_does_not_answer(
    told: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = told.seen["toy/fast"]
    assert [one.refuses for one in seen["3.0"]] == [True]
    assert upstream.behaviour._refuses(seen["3.0"][0].told, seen["3.0"][0].told) is None


def test_a_release_without_the_option_does_not_answer(told: Behaviour) -> None:
    lacking = told.seen["toy/fast"]["1.0"][0].told._replace(outcome="lacks")
    assert upstream.behaviour._refuses(lacking, None) is None


def test_every_example_of_megatron_is_a_command_of_a_described_release() -> None:
    found = examples(MEGATRON)
    assert len({one.rule for one in found}) > 500
    names = {release.name for release in MEGATRON.releases}
    assert all(one.home in names and one.refused != one.accepted for one in found)


@pytest.mark.slow
def test_the_examples_are_found_outside_of_the_tests() -> None:
    """upstream's commands run without pytest, which puts the folder of the tests on the path."""
    text = "from upstream import examples, frameworks; print(len(examples.examples(frameworks.MEGATRON)))"
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=root, check=False)
    assert found.stdout.strip() == str(len(examples(MEGATRON))), found.stderr
