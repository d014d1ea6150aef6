"""Commands that write files about rules."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from harness import Cli, with_toy

from preflight import builtin, hookimpl, testing


def test_pages_of_rules_never_replace_pages_of_others(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n")
    assert cli("rules", "--write-docs", ".") == (2, "", "preflight: .: holds pages that are not preflight's; name a folder of its own\n")
    assert cli("rules", "--write-docs", "pages").code == 0
    (tmp_path / "pages" / "gone.md").write_text("# gone\n")
    assert cli("rules", "--write-docs", "pages").code == 0
    assert not (tmp_path / "pages" / "gone.md").exists()
    assert (tmp_path / "README.md").read_text() == "mine\n"
    (tmp_path / "file").write_text("")
    assert cli("rules", "--write-docs", "file").err.startswith("preflight: file: cannot be written: ")


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
