"""A check through the releases: at another line, in another file, reworded, removed and restored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from preflight.program.checkout.guarded_statements import sites
from upstream import follow
from upstream.follow import Line, followed

NO_CALLS = re.compile(r"^$")


def releases(*texts: str, files: tuple[str, ...] = ()) -> list[Line]:
    names = files or ("arguments.py",) * len(texts)
    return followed([sites(name, text, NO_CALLS) for name, text in zip(names, texts, strict=True)])


def check(condition: str, *, before: str = "", function: str = "validate_args") -> str:
    return f"def {function}(args):\n{before}    assert {condition}\n"


def said(lines: list[Line]) -> list[object]:
    return [(line.id, line.before, [(number, site.line) for number, site in line.places.items()]) for line in lines]


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


def ids(lines: list[Line], number: int) -> dict[tuple[str, int, str], str]:
    return {(site.file, site.line, site.hash): line.id for line in lines if (site := line.places.get(number))}


def again(
    before: list[Line], numbers: list[int | None], *texts: str, files: tuple[str, ...] = ("arguments.py",) * 3
) -> list[Line]:
    """The lines once more, with releases in between; numbers: the former number of a release, None for a new one."""
    known = [ids(before, number) if number is not None else {} for number in numbers]
    return followed([sites(name, text, NO_CALLS) for name, text in zip(files, texts, strict=True)], known)


OLDER = check("not (args.recompute and args.offload)")
NEWER = check("not (args.recompute and args.offload and args.pipeline > 1)")


def test_names_stay_when_an_older_release_has_the_check_too() -> None:
    before = releases("", NEWER)
    after = again(before, [0, None, 1], "", OLDER, NEWER)
    assert shape(after) == [{1: 2, 2: 2}]
    assert [line.id for line in after] == [line.id for line in before]
    assert [line.id for line in releases("", OLDER, NEWER)] != [line.id for line in before]


def test_what_was_one_check_stays_one_when_a_release_comes_in_between() -> None:
    before = releases(OLDER, NEWER)
    after = again(before, [0, None, 1], OLDER, check("args.c % args.d == 0"), NEWER)
    assert shape(after) == [{0: 2, 2: 2}, {1: 2}]
    assert after[0].id == before[0].id


def test_what_was_two_checks_and_is_one_has_the_name_of_the_older() -> None:
    before = releases(OLDER, NEWER, files=("arguments.py", "config.py"))
    assert len(before) == 2
    files = ("arguments.py", "arguments.py", "config.py")
    (line,) = again(before, [0, None, 1], OLDER, NEWER, NEWER, files=files)
    assert line.before == [before[0].id, before[1].id] and line.id == before[0].id


def test_a_new_check_gets_no_name_that_another_has() -> None:
    text = "def f(args):\n" + "    if args.alpha_beta:\n        raise ValueError\n" * 2
    before = releases("", text)
    after = again(before, [0, None, 1], "", text.replace("alpha_beta", "alpha_beta_gamma"), text)
    assert len({line.id for line in after}) == len(after)
    assert {line.id for line in before} <= {line.id for line in after}


def test_lines_are_kept_and_continued(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PREFLIGHT_CACHE_DIR", str(tmp_path / "cache"))
    whole = [sites("arguments.py", text, NO_CALLS) for text in (OLDER, NEWER, check("args.c % args.d == 0"), NEWER)]
    plain = followed(whole)
    ids: list[dict[tuple[str, int, str], str]] = [{(one.file, one.line, one.hash): "x" for one in whole[0]}, {}, {}, {}]
    for before in ((), ids):
        assert said(followed(whole, before)) == said(followed(whole, before, "abcd"))
        monkeypatch.setattr(follow, "_followed_to", None)  # every step is kept
        assert said(followed(whole, before, "abcd")) == said(followed(whole[:], before, "abcd"))
        monkeypatch.undo()
        monkeypatch.setenv("PREFLIGHT_CACHE_DIR", str(tmp_path / "cache"))
    assert said(followed(whole, (), "abce")) == said(plain)
