"""Pages of rules: one per topic, a section per rule, conditions in words, executed examples."""

from __future__ import annotations

import re
from collections import Counter
from email.message import Message
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import write_examples
from house import each

import preflight
from preflight.cli.explain import explain
from preflight.lint.condition_in_words import Spelled, refusal
from preflight.lint.expressions import Expression, Handle, Handles, all_of, any_of, total
from preflight.lsp import hover_and_links
from preflight.lsp.diagnostics import diagnostic
from preflight.plugins.manager import load
from preflight.report import documentation_urls, html, sarif
from preflight.report.rule_pages import (
    anchor,
    documented,
    levels,
    page_path,
    pages,
    rule_page,
    section_link,
    section_path,
    section_url,
    topics,
)

RULES = {rule.id: rule for rule in documented(load().rules(None))}
DECLARED = sorted(id for id, rule in RULES.items() if isinstance(getattr(rule, "refuse", None), Expression))


@cache
def written() -> dict[str, str]:
    return pages(RULES.values())


def anchors(text: str) -> Counter[str]:
    """The headings of a page as links name them."""
    return Counter(re.findall(r"^##? ([a-z0-9-]+)$", text, re.MULTILINE))


def test_every_rule_has_one_section_on_the_page_of_its_topic() -> None:
    for id in RULES:
        assert anchors(written()[page_path(id)])[anchor(id)] == 1, id


def test_rules_of_one_file_share_a_page() -> None:
    assert section_path("mindspeed/tp-2d-coc") == "mindspeed/tp-2d.md#tp-2d-coc"
    assert section_path("mindspeed-llm/capacity-dispatcher").startswith("mindspeed/llm-")
    assert section_path("device-count") == "device-count.md#device-count"
    assert len(written()) == len(topics()) + 2  # the list, and the rule of the engine
    assert section_path("bad-value") == "megatron/parsing.md#bad-value"
    of_front_ends = [
        path for path in written() if path.startswith("frontends/")
    ]  # one for each program that starts a framework
    assert len(written()) - len(of_front_ends) <= len(RULES) / 7


def test_a_rule_of_a_plugin_has_a_page_of_its_own() -> None:
    assert page_path("acme-no-seed") == "acme-no-seed.md"


@each(DECLARED, str)
def test_a_declared_check_is_told_in_words_with_a_run_that_is_found_and_one_that_is_not(id: str) -> None:
    page = rule_page(RULES[id])
    what = page.partition("## What it does\n")[2].partition("\n## ")[0]
    outside = re.sub(r"`[^`]*`", "", what)
    assert not re.search(r"==|!=|[<>]=?|(?<!is )\bnot \(|[a-z]_[a-z]|\bNone\b", outside), outside
    example = page.partition("## Example\n")[2].partition("\n## ")[0]
    assert "\n    " in example and "Use instead" in example and "preflight reports:\n\n> " in example


@pytest.mark.slow
def test_examples_are_fresh() -> None:
    have = {path.name: path.read_text(encoding="utf-8") for path in write_examples.FOLDER.glob("*.json")}
    assert have == dict(write_examples.written()), "run `python tests/write_examples.py`"


def spell(handle: Handle) -> Spelled:
    text = f"`--{handle.name}`"
    return Spelled(text, f"{text} is on", f"{text} is off") if handle.name in "abc" else Spelled(text)


a = Handles()


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (a.a & a.b, "`--a` is used together with `--b`."),
        (a.a & ~a.b, "`--a` is used without `--b`."),
        (a.a & (a.x > 1), "`--a` is on and `--x` is greater than 1."),
        (a.x % a.y != 0, "`--x` is not a multiple of `--y`."),
        (~(a.x % a.y == 0), "`--x` is not a multiple of `--y`."),
        (~a.x.is_in("p", "q"), "`--x` is neither `p` nor `q`."),
        (~a.x.is_in("p"), "`--x` is not `p`."),
        (a.x.is_set & (a.x < 4), "`--x` is less than 4."),
        (a.x.is_none, "`--x` is not set."),
        (a.x.given & ~a.y.given, "`--x` is given and `--y` is not given."),
        (~(a.a & (a.x == "")), "`--a` is off or `--x` is not empty."),
        (
            a.a & any_of(a.b, a.x * 2 >= 7),
            "all of the following are true:\n\n* `--a` is on\n* `--b` is on or `--x` × 2 is at least 7",
        ),
        (any_of(a.x.given, a.x.is_set, a.y.is_set), "`--x` or `--y` is set."),
        (any_of(a.x == "p", a.x.is_in("q", "p")), "`--x` is `p` or `q`."),
        ((a.x == "p") & (a.x != "q") & (a.y > 1), "`--x` is `p` and `--y` is greater than 1."),
        ((a.x != "p") & (a.x != "q"), "`--x` is neither `p` nor `q`."),
        (a.x.is_none | (a.x < 0) | (a.x > 4), "`--x` is not set, is less than 0 or is greater than 4."),
        ((a.x < 0) | (a.x > 4), "`--x` is less than 0 or greater than 4."),
        (any_of(a.x.has("p"), a.x.has("q"), a.x.has("r")), "`--x` contains `p`, `q` or `r`."),
        (a.x.given & a.x.is_none, "`--x` is null."),
        (a.x.is_none & a.y.is_none, "neither `--x` nor `--y` is set."),
        (a.x.is_set & a.y.is_set, "`--x` and `--y` are both set."),
        (a.x % a.y > 0, "`--x` is not a multiple of `--y`."),
        (a.x.length > 1, "`--x` has more than one entry."),
        (a.x != a.y, "`--x` differs from `--y`."),
        (total(a.x.is_set, a.y.is_set, a.z.is_set) > 1, "more than one of `--x`, `--y` and `--z` is set."),
        (
            any_of(a.a & (a.x > 1), a.b & a.y.has("p") & (a.z < 2)) & a.v.is_set,
            "all of the following are true:\n\n* `--v` is set\n* at least one of the following is true:\n"
            "    * `--a` is on and `--x` is greater than 1\n    * all of the following are true:\n"
            "        * `--b` is on\n        * `--y` contains `p`\n        * `--z` is less than 2",
        ),
        (a.x <= 0, "`--x` is 0 or less."),
        ((a.x > 1) | (a.x <= 0), "`--x` is 0 or less, or greater than 1."),
        ((a.x <= 0) & (a.y <= 0), "`--x` and `--y` are 0 or less."),
        (a.x % 2 == 1, "`--x` is odd."),
        (a.x >= float("inf"), "`--x` is infinite."),
        (~a.x.is_in("p", "q", "r"), "`--x` is not one of `p`, `q` or `r`."),
        (a.x.is_set & ~a.x.is_in("p", "q", ""), "`--x` is set to anything other than `p`, `q` or an empty string."),
        (a.x.given & ~a.x.is_in("p", "q", "r"), "`--x` is given a value other than `p`, `q` or `r`."),
        (a.x.has("p") & Expression("==", a.b, False), "`--x` contains `p` and `--b` is off."),
        (
            all_of(~a.a, ~a.b, ~a.c, a.x == 1),
            "`--a`, `--b` and `--c` are off, and `--x` is 1.",
        ),
    ],
)  # fmt: skip
def test_a_condition_in_words(condition: Expression, words: str) -> None:
    assert refusal(condition, spell) == words


def test_links_to_sections_lead_to_where_the_distribution_says_the_pages_are(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Message()
    monkeypatch.setattr(documentation_urls, "metadata", lambda name: said)
    assert section_url("device-count") is None
    said["Project-URL"] = "Repository, https://git.example.com/preflight.git"
    assert (
        section_url("mindspeed/tp-2d-coc")
        == "https://git.example.com/preflight/blob/main/docs/rules/mindspeed/tp-2d.md#tp-2d-coc"
    )
    said["Project-URL"] = "Documentation, https://preflight.example.com/docs/"
    site = f"https://preflight.example.com/docs/{preflight.__version__}"
    assert section_url("device-count") == f"{site}/rules/device-count/#device-count"
    assert section_url("mindspeed/tp-2d-coc") == f"{site}/rules/mindspeed/tp-2d-coc/#tp-2d-coc"
    assert section_url("acme-no-seed") is None


def test_without_an_address_links_lead_to_the_installed_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documentation_urls, "metadata", lambda name: Message())
    assert section_url("device-count") is None and section_link("acme-no-seed") is None
    for id in ("device-count", "mindspeed/tp-2d-coc", "unused-suppression"):
        page, _, section = (section_link(id) or "").removeprefix("file://").partition("#")
        heading = re.compile(rf"^##? (?:.*/)?{re.escape(section)}$", re.MULTILINE)
        assert heading.search(Path(page).read_text(encoding="utf-8")), id


def test_explain_reports_and_editors_name_the_same_section(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = Message()
    said["Project-URL"] = "Documentation, https://preflight.example.com"
    monkeypatch.setattr(documentation_urls, "metadata", lambda name: said)
    hover_and_links.address.cache_clear()
    (tmp_path / "run.yaml").write_text(
        "use_parallel: True\nparallel: {parallel_mode: 1}\nparallel_config: {data_parallel: 2, model_parallel: 8}\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    report = preflight.check("run.yaml", world_size=32)
    place = section_url("device-count")
    assert place and [finding.rule for finding in report.findings] == ["device-count"]
    explain("device-count")
    assert f"On the web: {place}\n" in capsys.readouterr().out
    assert place in html.render(report) and f'"helpUri": "{place}"' in sarif.render(report)
    buffer = SimpleNamespace(source=SimpleNamespace(name="run.yaml"))
    described = diagnostic(report.findings[0], buffer).code_description  # type: ignore[arg-type]
    assert described is not None and described.href == place
    hover_and_links.address.cache_clear()


LOWERED = {
    "bad-value": "releases of the test runner before 0.13",
    "megatron/nccl-algorithm": "",
    "megatron/required-argument": "may add options that change this",
    "wrong-type": "applies from",
}
"""Rules whose findings an uncertain release or command lowers in a fixture, with words of the message."""


def test_the_severities_of_a_rule_are_those_of_its_findings() -> None:
    known = {rule.id: set(map(str, levels(rule))) for rule in documented(load().rules(None))}
    line = re.compile(r"^\s+\S+:\d+:\d+: (error|warning|note): (.*) \[([\w/-]+)\]$", re.MULTILINE)
    for path in sorted((Path(__file__).parents[1] / "rules").rglob("*.yaml")):
        for severity, message, rule in line.findall(path.read_text(encoding="utf-8")):
            told = LOWERED.get(rule)
            assert severity in known.get(rule, {severity}) or (told is not None and told in message), (path, message)
