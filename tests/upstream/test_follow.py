"""A check through the releases: at another line, in another file, reworded, gone and back."""

from __future__ import annotations

import re

from preflight.program.checkout.sites import sites
from upstream.follow import Line, followed

NO_CALLS = re.compile(r"^$")


def releases(*texts: str, files: tuple[str, ...] = ()) -> list[Line]:
    names = files or ("arguments.py",) * len(texts)
    return followed([sites(name, text, NO_CALLS) for name, text in zip(names, texts, strict=True)])


def check(condition: str, *, before: str = "", function: str = "validate_args") -> str:
    return f"def {function}(args):\n{before}    assert {condition}\n"


def shape(lines: list[Line]) -> list[dict[int, int]]:
    """Release → line number, of each line."""
    return [{number: site.line for number, site in line.places.items()} for line in lines]


def test_a_check_that_moves_down_is_one_line() -> None:
    one = check("args.hidden % args.heads == 0")
    other = check("args.hidden % args.heads == 0", before="    x = 1\n" * 3)
    assert shape(releases(one, other)) == [{0: 2, 1: 5}]


def test_a_check_that_moves_to_another_file_is_one_line() -> None:
    text = check("args.hidden_size % args.num_heads == 0")
    other = check("self.hidden_size % self.num_heads == 0", function="post_init").replace("(args)", "(self)")
    assert shape(releases(text, other, files=("arguments.py", "config.py"))) == [{0: 2, 1: 2}]


def test_a_short_condition_in_another_file_is_another_check() -> None:
    assert len(releases(check("args.a"), check("args.a"), files=("arguments.py", "config.py"))) == 2


def test_a_reworded_check_is_one_line_with_two_hashes() -> None:
    one = check("not (args.recompute and args.offload)")
    other = check("not (args.recompute and args.offload and args.pipeline > 1)")
    (line,) = releases(one, other)
    assert line.places[0].hash != line.places[1].hash


def test_another_check_under_the_same_condition_is_another_line() -> None:
    text = "def f(args):\n    if args.moe and args.fusion and args.graph:\n        assert {}\n"
    assert len(releases(text.format("args.dispatcher == 'flex'"), text.format("args.bias is None"))) == 2


def test_a_check_that_is_gone_for_a_release_is_the_same_when_it_is_back() -> None:
    text = check("args.hidden % args.heads == 0")
    assert shape(releases(text, "", text)) == [{0: 2, 2: 2}]


def test_names_stay_when_a_release_is_added() -> None:
    texts = [check("args.a > args.b"), check("args.a > args.b") + "    assert args.c < args.d\n"]
    names = [line.id for line in releases(*texts)]
    assert [line.id for line in releases(*texts, check("args.c < args.d"))] == names


def test_names_are_unique_where_checks_are_alike() -> None:
    text = "def f(args):\n" + "    if args.a:\n        raise ValueError\n" * 3
    names = [line.id for line in releases("", text)]
    assert len(set(names)) == 3
