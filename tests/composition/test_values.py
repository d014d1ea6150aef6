"""Interpolations and resolvers give the result of OmegaConf, and the place where the number was typed."""

from __future__ import annotations

from pathlib import Path

import pytest
from composed import document, plain, real_omegaconf, written

from preflight.loaders.composition.resolved_values import Composed, omegaconf_values
from preflight.loaders.document import Unknown

TEXTS = [
    "a: 1\nb: ${a}\nc: x${a}y\nd: ${b}",
    "a: {b: {c: 3, d: '${.c}', e: '${..f}'}, f: 4}\ng: ${a.b}\nh: ${a.b.e}",
    "a: [1, 2, {b: 3}]\nc: ${a[0]}\nd: ${a.1}\ne: ${a[2].b}\nf: ${a}",
    "a: 4\nb: 8\nc: ${mul:${a}, ${b}}\nd: ${div:${b},${a}}\ne: ${max:${a},${mul:2,3}}",
    "a: 1\nb: ${oc.select:a,9}\nc: ${oc.select:z,9}\nd: ${oc.select:z.y,${a}}\ne: ${oc.select:z,null}",
    "a: ${oc.select:z}\nb: ${oc.select:a,1}",
    "a: null\nb: ${oc.select:a,7}\nc: {d: '${oc.select:.e,1}', e: 5}\nf: ${oc.select:z,{}}\ng: ${oc.select:z,[]}",
    "a: name\nname: 3\nb: ${${a}}\nc: ${oc.select:${a},0}",
    "lr: 1e-5\nmin: 5.0e-7\nwhen: 2026-01-01\nyes: on\nno: 'off'\nnull_: ~\nt: 0x10\no: 010\nu: 1_000",
    "a: \\${b}\nb: 1\nc: 'x \\${b} ${b}'",
    "a: ${oc.select:z,'a, b'}\nb: ${oc.select:z,\"x\"}\nc: ${oc.select:z,a b }",
    "d: ${oc.select:z,1e3}\ne: ${oc.select:z,True}",
    "a: {b: 1}\nc: ${a}\nd: ${c.b}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_values_are_those_of_omegaconf(tmp_path: Path, text: str) -> None:
    tree = document(written(tmp_path, {"a.yaml": text}) / "a.yaml").tree
    assert tree is not None
    ours, theirs = plain(Composed(omegaconf_values(tree))), real_omegaconf(text, ("mul", "div", "max"))
    assert ours == theirs
    assert [type(value) for value in ours.values()] == [type(value) for value in theirs.values()]


def config(tmp_path: Path, text: str) -> Composed:
    tree = document(written(tmp_path, {"a.yaml": text}) / "a.yaml").tree
    assert tree is not None
    return Composed(omegaconf_values(tree))


def test_a_value_leads_to_the_number_that_somebody_typed(tmp_path: Path) -> None:
    found = config(tmp_path, "policy:\n  batch: 8\n  log: ${.batch}\nout: ${policy.log}\n").at("out")
    assert found.value == 8
    assert found.node is not None
    assert (found.node.span.line, found.node.span.text) == (2, "8")
    assert found.path == ("policy", "batch")
    assert [span.text for span in found.uses] == ["${.batch}", "${policy.log}"]
    assert found.exact


def test_what_is_computed_stands_where_its_formula_stands(tmp_path: Path) -> None:
    found = config(tmp_path, "a: 2\nb: ${mul:${a},3}\n").at("b")
    assert found.value == 6
    assert found.node is not None
    assert found.node.span.line == 2
    assert not found.exact


@pytest.mark.parametrize(
    "text",
    [
        "x: ${y}\ny: ${x}",
        "x: ${x}",
        "x: ${z}",
        "x: ${oc.env:HOME}",
        "x: ${user:1}",
        "x: ???",
        "x: ${",
        "x: ${mul:a,2}",
        "x: ${mul:${mul:1e18,1e18},2}",
        "x: ${.....y}",
        "x: a${mul:1}",
        "x: ${div:1,0}",
    ],
)
def test_what_cannot_be_known_is_unknown(tmp_path: Path, text: str) -> None:
    assert isinstance(config(tmp_path, text).at("x").value, Unknown)


def test_a_key_that_is_absent_is_told_apart_from_one_that_may_come_from_a_missing_file(tmp_path: Path) -> None:
    whole = config(tmp_path, "a: {b: 1}")
    assert whole.at("a", "c").absent
    torn = Composed(whole.root, "base.yaml is not read")
    assert not torn.at("a", "c").absent
    assert isinstance(torn.at("a", "c").value, Unknown)


def test_references_without_end_end() -> None:
    from preflight.loaders import load
    from preflight.source.source_file import Source

    doubled = "".join(f"a{i}: ${{a{i + 1}}}${{a{i + 1}}}\n" for i in range(40)) + "a40: x\n"
    tree = load(Source(doubled, "a.yaml"))[0].tree
    assert tree is not None
    assert isinstance(Composed(tree).at("a0").value, Unknown)
    deep = load(Source("a: " + "${" * 900 + "}" * 900, "a.yaml"))[0].tree
    assert deep is not None
    assert isinstance(Composed(deep).at("a").value, Unknown)
