"""The sites of a file: where it refuses, changes an argument silently, adds an option."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from preflight.program.checkout.guarded_statements import Site, lines, sites

CALLS = re.compile(r"(^|\.)(incompatible_check|check_\w+)$")


def found(text: str, *, everything: bool = False) -> list[Site]:
    return sites("framework/arguments.py", dedent(text), CALLS, everything=everything)


SOURCE = """
    import sys

    class Feature:
        def validate(self, args):
            if args.experts:
                assert args.experts % args.ranks == 0, "the experts do not divide"
                if args.dropless and args.capacity is not None:
                    raise ValueError(f"{args.capacity} with dropless")
                elif args.capacity is None:
                    args.capacity = 1.0
            self.incompatible_check(args, "fusion", f"not with {args.experts}")
            if args.seed < 0:
                sys.exit("no seed")
            args.always = True

    def add(group):
        group.add_argument("--experts", type=int)
"""


@pytest.mark.parametrize(
    ("line", "kind", "condition", "what"),
    [
        (7, "assert", {"experts", "0 != experts % ranks"}, ""),
        (9, "raise", {"experts", "dropless", "capacity is not None"}, ""),
        (11, "assign", {"experts", "capacity is None", "any(capacity is None; not dropless)"}, "capacity = 1.0"),
        (12, "call", set(), "incompatible_check(args, 'fusion')"),
        (14, "exit", {"seed < 0"}, ""),
        (18, "parser", set(), "--experts"),
    ],
)
def test_each_kind_of_site(line: int, kind: str, condition: set[str], what: str) -> None:
    site = next(site for site in found(SOURCE) if site.line == line)
    assert (site.kind, set(site.condition), site.what) == (kind, condition, what)


def test_what_is_no_site_is_left_out() -> None:
    assert {site.line for site in found(SOURCE)} == {7, 9, 11, 12, 14, 18}


def test_every_statement_where_a_rule_may_mean_any() -> None:
    assert {"a = 1", "return a"} <= {
        site.what for site in found("def f():\n    a = 1\n    return a\n", everything=True)
    }


def test_a_site_names_its_function_and_the_branch_it_fills() -> None:
    site = next(site for site in found(SOURCE) if site.kind == "raise")
    assert (site.function, site.start, site.line) == ("Feature.validate", 8, 9)


def test_a_check_keeps_its_hash_when_only_its_form_changes() -> None:
    asserted = found("def validate(args):\n    if args.a:\n        assert not args.b, 'no'\n")
    raised = found("def check(self):\n    if self.a and self.b:\n        raise RuntimeError('other words')\n")
    assert [site.hash for site in asserted] == [site.hash for site in raised]


def test_a_check_of_another_condition_has_another_hash() -> None:
    one = found("def f(args):\n    assert args.a > 1\n")
    other = found("def f(args):\n    assert args.a >= 1\n")
    assert [site.hash for site in one] != [site.hash for site in other]


def test_two_alike_in_one_function_are_numbered() -> None:
    text = "def f(args):\n    if args.a:\n        raise ValueError\n    if args.a:\n        raise ValueError\n"
    assert [site.number for site in found(text)] == [0, 1]


def test_a_file_that_this_python_does_not_read_has_no_sites() -> None:
    assert found("print 'two'\n") == []


def test_the_lines_of_a_page() -> None:
    assert [(site.line, site.what) for site in lines("docs/a.md", "# A\n\n*  not  with B\n")] == [
        (1, "# A"),
        (3, "* not with B"),
    ]


def test_the_head_of_a_branch_may_have_several_lines() -> None:
    (site, *_) = found("def f(a):\n    if (\n        a.b\n        and a.c\n    ):\n        print(a)\n", everything=True)
    assert (site.line, site.end) == (2, 4)
