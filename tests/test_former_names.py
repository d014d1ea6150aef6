"""Former names of rules work everywhere, with a note."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Cli

import preflight
from preflight.lint.suppression import RENAMED, former, present, with_present_names
from preflight.plugins.manager import load
from preflight.report import sarif

SCRIPT = """\
{0}MTP_ARGS="--mtp-num-layers 1"
torchrun pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 \\
  --max-position-embeddings 64 --micro-batch-size 1 --train-iters 1 --lr 1e-4
"""
OLD, NEW = "unused-group", "unused-option-variable"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.sh"
    path.write_text(SCRIPT.format(""), encoding="utf-8")
    return path


def found(cli: Cli, *words: str) -> tuple[list[str], str]:
    """The rules that a call reports, and its output on stderr."""
    ran = cli("check", "run.sh", "-f", "json", *words)
    return [finding["rule"] for finding in json.loads(ran.out)["findings"]], ran.err


def test_every_former_name_has_a_rule_and_none_is_one() -> None:
    known = {rule.id for rule in load().rules(None)}
    assert set(RENAMED.values()) <= known and known.isdisjoint(RENAMED)
    assert former(NEW) == (OLD,) and present(OLD) == NEW and present("device-count") == "device-count"
    assert with_present_names(("unused-g*", "device-count")) == ("unused-g*", NEW, "device-count")


def test_a_suppression_by_a_former_name_hides_and_is_renamed(script: Path, real_cli: Cli) -> None:
    assert NEW in found(real_cli)[0]
    script.write_text(SCRIPT.format(f"# preflight: ignore[{OLD}] not yet\n"), encoding="utf-8")
    rules, _ = found(real_cli)
    assert NEW not in rules and "unused-suppression" in rules
    report = preflight.check("run.sh")
    note = next(finding for finding in report.findings if finding.rule == "unused-suppression")
    assert (str(note.severity), str(note.message)) == (
        "note",
        f"rule {OLD!r} is now named {NEW!r}; the former name still works",
    )
    real_cli("fix", "run.sh", "--select", "unused-suppression")
    assert f"ignore[{NEW}] not yet" in script.read_text(encoding="utf-8")
    assert "unused-suppression" not in found(real_cli)[0]


def test_settings_and_options_take_former_names(script: Path, real_cli: Cli) -> None:
    rules, err = found(real_cli, "--ignore", OLD)
    assert NEW not in rules and err.count(f"{OLD!r} is now named {NEW!r}") == 1
    assert set(found(real_cli, "--select", OLD)[0]) == {NEW}
    Path("preflight.toml").write_text(f'ignore = ["{OLD}"]\n', encoding="utf-8")
    rules, err = found(real_cli)
    assert NEW not in rules and f"{OLD!r} is now named {NEW!r}" in err
    Path("preflight.toml").write_text(f'per-file = {{ "run.sh" = {{ ignore = ["{OLD}"] }} }}\n', encoding="utf-8")
    assert NEW not in found(real_cli)[0]


def test_a_baseline_takes_former_names(script: Path, real_cli: Cli) -> None:
    real_cli("baseline", "run.sh")
    known = Path("preflight-baseline.json")
    known.write_text(known.read_text(encoding="utf-8").replace(NEW, OLD), encoding="utf-8")
    assert NEW not in found(real_cli, "--baseline", str(known))[0]


def test_explain_and_rules_know_former_names(real_cli: Cli) -> None:
    assert real_cli("explain", OLD).out.startswith(f"{OLD} is a former name of {NEW}\n")
    assert NEW in real_cli("rules", OLD).out


def test_sarif_names_the_former_name(script: Path) -> None:
    rules = json.loads(sarif.render(preflight.check("run.sh")))["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["deprecatedIds"] for rule in rules if rule["id"] == NEW] == [[OLD]]
