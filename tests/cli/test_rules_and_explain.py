"""Finding a rule: `rules` with words and choices, `explain` with the end of an id, and in Chinese."""

from __future__ import annotations

import json

import pytest
from harness import Cli

from preflight.source.translation import columns


def test_rules_alone_counts_them_by_framework(real_cli: Cli) -> None:
    out = real_cli("rules").out
    assert len(out.splitlines()) < 30
    assert out.splitlines()[0].split() == ["framework", "errors", "warnings", "notes"]
    assert "--all lists all" not in out and "`--all` lists all" in out


def test_doctor_and_rules_count_the_same_rules(real_cli: Cli) -> None:
    number = len(json.loads(real_cli("rules", "--all", "--json").out))
    assert f"\n{number} rules. " in real_cli("rules").out
    assert f" {number} known; " in real_cli("doctor").out


def test_rules_lists_those_with_all_words_of_a_framework_and_severity(real_cli: Cli) -> None:
    found = json.loads(real_cli("rules", "tp-2d", "--severity", "note", "--framework", "mindspeed", "--json").out)
    assert {rule["id"] for rule in found} == {"mindspeed/tp-2d-small", "mindspeed/tp-2d-ring-becomes-ulysses"}
    lines = real_cli("rules", "tp-2d", "sequence").out.splitlines()
    assert any(line.startswith("mindspeed/tp-2d-sequence-parallel ") for line in lines)
    assert max(map(len, real_cli("rules", "--all").out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("zzzz",), "no rule matches 'zzzz'; see `preflight rules`"),
        (("--severity", "eror"), "--severity must be one of error, warning, note, not 'eror'; did you mean 'error'?"),
    ],
)
def test_a_choice_without_rules_is_wrong_usage(real_cli: Cli, words: tuple[str, ...], message: str) -> None:
    assert real_cli("rules", *words) == (2, "", f"preflight: {message}\n")


def test_explain_takes_the_end_of_an_id(real_cli: Cli) -> None:
    assert real_cli("explain", "tp-2d-small").out.startswith("# mindspeed/tp-2d-small\n")
    assert "'mindspeed/tp-2d-small'?" in real_cli("explain", "tp-2d-smal").err
    assert real_cli("explain", "decay-ends-earl").code == 2


def test_explain_prints_chinese(real_cli: Cli) -> None:
    assert "**检查内容**：" in real_cli("explain", "duplicate-key", "--lang", "zh").out
    other = real_cli("explain", "tp-2d-sequence-parallel", "--lang", "zh").out
    assert "*错误 · mindspeed*" in other and "\n## 检查内容\n" in other


def test_rules_are_listed_and_searched_in_chinese(real_cli: Cli) -> None:
    out = real_cli("rules", "重计算", "--lang", "zh", "--framework", "flagscale").out
    (line,) = [line for line in out.splitlines() if line.startswith("flagscale/adapters-recompute")]
    assert line.split() == ["flagscale/adapters-recompute", "错误", "peft_type", "lora", "不能与重计算同时使用"]
    assert "条规则" in real_cli("rules", "--lang", "zh").out
    assert max(map(columns, real_cli("rules", "--all", "--lang", "zh").out.splitlines())) <= 100


def test_explain_all_prints_every_page(real_cli: Cli) -> None:
    out = real_cli("explain", "--all").out
    assert "\n# device-count\n" in out and "\n# mindspeed/tp-2d-small\n" in out
    assert real_cli("explain").err == "preflight: explain needs the id of a rule, or --all\n"
