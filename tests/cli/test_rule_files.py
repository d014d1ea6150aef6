"""Commands that write files about rules."""

from __future__ import annotations

from pathlib import Path

from harness import Cli


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


def test_new_rule_writes_a_module_and_a_fixture(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    assert cli("new-rule", "odd-shape").out == "wrote rules/odd_shape.py\nwrote tests/rules/odd_shape.yaml\n"
    assert cli("new-rule", "odd-shape").err == "preflight: rules/odd_shape.py: exists already\n"
    compile((tmp_path / "rules/odd_shape.py").read_text(), "odd_shape.py", "exec")
    assert "[odd-shape]" in (tmp_path / "tests/rules/odd_shape.yaml").read_text()
