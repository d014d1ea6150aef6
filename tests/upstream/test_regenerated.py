"""The files equal those generated from the repositories: one release is regenerated and compared byte by byte. Needs a
checkout of Megatron-LM."""

from __future__ import annotations

import sys

import pytest
from test_written import at, read

from upstream.compact import entries
from upstream.extraction import scoped, sites_of
from upstream.frameworks import MEGATRON
from upstream.options import FIELDS, options
from upstream.repositories import VARIABLE, Repositories

RELEASE = "0.14.0"


@pytest.fixture
def repositories() -> Repositories:
    found = Repositories()
    if not found.has(MEGATRON):
        pytest.skip(f"no checkout of {MEGATRON.repository}: name the folder that holds it in {VARIABLE}")
    return found


def test_the_options_of_a_release_come_out_the_same(repositories: Repositories) -> None:
    pytest.importorskip("packaging")
    table = options(MEGATRON, repositories, MEGATRON.release(RELEASE), sys.executable)
    again = {name: [*row, *[None] * (len(FIELDS) - len(row))] for name, row in table.items()}
    assert entries({"options": again}) == entries({"options": at("megatron", RELEASE)})


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="hashes are of conditions as Python 3.11 writes them")
def test_the_checks_of_a_release_come_out_the_same(repositories: Repositories) -> None:
    sites = sites_of(MEGATRON, repositories.checkout(MEGATRON, RELEASE))
    again = sorted([site.file, site.line, site.hash] for site in sites if scoped(MEGATRON, site))
    evidence = read("megatron", "evidence")
    number = list(evidence["commits"]).index(RELEASE)
    written = []
    for kind, runs, *_ in evidence["sites"].values():
        for file, function, hash, first, lines in runs:
            if first <= number < first + len(lines) and kind in ("assert", "raise", "call", "exit"):
                name = evidence["files"][file]
                if any(
                    scoped(MEGATRON, site) for site in sites if (site.file, site.line) == (name, lines[number - first])
                ):
                    written.append([name, lines[number - first], hash])
                assert isinstance(evidence["functions"][function], str)
    assert entries({"checks": dict(enumerate(sorted(written)))}) == entries({"checks": dict(enumerate(again))})
