"""Commands that write files about rules."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import pytest
from edges import edges
from harness import Cli, with_toy

from preflight import collect, hookimpl, testing
from preflight.checking.engine import Policy
from preflight.plugins import builtin


def test_pages_of_rules_never_replace_pages_of_others(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n")
    assert cli("rules", "--write-docs", ".") == (
        2,
        "",
        "preflight: .: contains files not written by preflight; name another folder\n",
    )
    assert cli("rules", "--write-docs", "pages").code == 0
    (tmp_path / "pages" / "gone.md").write_text("# gone\n")
    assert cli("rules", "--write-docs", "pages").code == 0
    assert not (tmp_path / "pages" / "gone.md").exists()
    assert (tmp_path / "README.md").read_text() == "mine\n"
    (tmp_path / "file").write_text("")
    assert cli("rules", "--write-docs", "file").err.startswith("preflight: file/README.md: cannot be written: ")


class Written:
    """A plugin with the rule that was written, and with the dialects that its fixture needs."""

    @hookimpl
    def preflight_rules(self) -> list[object]:
        return [import_module("odd_form").check]

    @hookimpl
    def preflight_dialects(self) -> list[object]:
        return list(builtin.preflight_dialects())


def test_what_new_rule_writes_runs_as_it_is(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules").mkdir()
    cli("new-rule", "odd-form")
    monkeypatch.syspath_prepend(tmp_path / "rules")
    for case in testing.load("tests/rules/odd_form.yaml"):
        case.verify(tmp_path, rules=["odd-form"], plugins=with_toy([Written()]))


def test_new_rule_writes_a_module_and_a_fixture(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    assert cli("new-rule", "odd-shape").out == "wrote rules/odd_shape.py\nwrote tests/rules/odd_shape.yaml\n"
    assert cli("new-rule", "odd-shape").err == "preflight: rules/odd_shape.py: exists already\n"
    compile((tmp_path / "rules/odd_shape.py").read_text(), "odd_shape.py", "exec")
    assert "[odd-shape]" in (tmp_path / "tests/rules/odd_shape.yaml").read_text()


TABLES = {
    "megatron": "megatron-training",
    "mindspeed": "mindspeed",
    "mindspeed-llm": "mindspeed",
    "mindformers": "mindformers-graph",
    "pynative": "mindformers-pynative",
}


class Declared(Written):
    """A plugin with the checks that were declared."""

    @hookimpl
    def preflight_rules(self) -> list[object]:
        return list(collect(import_module("declared_fault")))


@pytest.mark.parametrize("framework", TABLES)
def test_a_declared_check_that_new_rule_writes_holds_at_its_edge(
    framework: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules").mkdir()
    table = tmp_path / "tests" / "constraints" / f"{TABLES[framework]}.yaml"
    table.parent.mkdir(parents=True)
    table.write_text("cases:\n")
    said = cli("new-rule", f"{framework}/declared-fault")
    assert said.code == 0 and "next: python tests/write_examples.py" in said.out
    assert "declared-fault" in table.read_text()
    (module,) = (tmp_path / "rules").rglob("*declared_fault.py")
    (runs,) = (tmp_path / "tests" / "edges").rglob("*declared_fault.yaml")
    (tmp_path / "declared_fault.py").write_text(module.read_text())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "declared_fault", raising=False)
    plugins = with_toy([Declared()])
    verdicts = set()
    for edge in edges(runs):
        report = edge.case.check(tmp_path, plugins, Policy(chosen=lambda id, path: id == f"{framework}/declared-fault"))
        assert report.jobs and bool(report.findings) is (edge.verdict == "speaks"), edge.change
        verdicts.add(edge.verdict)
    assert verdicts == {"speaks", "silent"}


@pytest.mark.parametrize("rows", ["{}", '{\n"pynative/other": "a reason"\n}'])
def test_new_rule_says_that_nobody_has_named_the_statement_of_a_check(rows: str, cli: Cli, tmp_path: Path) -> None:
    for folder in ("rules", "tests/constraints", "schemas/mindformers"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tests" / "constraints" / "mindformers-pynative.yaml").write_text("cases:\n")
    decisions = tmp_path / "schemas" / "mindformers" / "decisions.json"
    decisions.write_text(f'{{\n"sites": {{}},\n"rules": {rows},\n"stands": {{}}\n}}\n')
    cli("new-rule", "pynative/declared-fault")
    reason = "new: its upstream statement is not recorded yet"
    assert json.loads(decisions.read_text())["rules"] == {**json.loads(rows), "pynative/declared-fault": reason}


def test_new_rule_names_the_file_of_a_front_end_and_the_number_of_rules(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rules" / "frontends").mkdir(parents=True)
    (tmp_path / "rules" / "frontends" / "ms_swift.py").write_text("")
    said = cli("new-rule", "ms-swift/x").err
    assert said == "preflight: rules/frontends/ms_swift.py: add an entry here by hand, with its pair and its edges\n"
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_rules.py").write_text("")
    assert cli("new-rule", "odd-size").out.endswith("\nnext: add 1 to NUMBERS in tests/test_rules.py\n")


def test_new_rule_names_the_frameworks_it_knows(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    assert (
        cli("new-rule", "megatorn/x").err
        == "preflight: no checks are declared for 'megatorn'; did you mean 'megatron'?\n"
    )
    assert (
        cli("new-rule", "megatron/x").err
        == "preflight: tests/constraints/megatron-training.yaml: is missing; run this in a checkout\n"
    )
