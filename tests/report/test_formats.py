"""Report formats, read by their real consumers."""

from __future__ import annotations

import json
import re
from email.message import Message
from pathlib import Path

import pytest

import preflight
from preflight.checking.engine import check_documents
from preflight.loaders import load
from preflight.report import documentation_urls, github, gitlab, html, junit, markdown, sarif, statistics, text
from preflight.report.source_excerpts_and_escapes import Look
from preflight.run.request import Request
from preflight.source.source_file import Source

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
TEXT = "toy: true\ndata: 4 # ranks | <b>\ntensor: 8\n"


def message(headers):
    made = Message()
    for name, value in headers.items():
        made[name] = value
    return made


@pytest.fixture
def make(toys):
    return lambda text: check_documents(load(Source(text, "conf/run,1.yaml")), toys, Request(world_size=16))


@pytest.fixture
def report(make):
    return make(TEXT)


def test_sarif_names_place_rule_and_fix(report):
    run = json.loads(sarif.render(report))["runs"][0]
    result = run["results"][0]
    assert (
        result["ruleId"] == "toy-devices" and run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "toy-devices"
    )
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endColumn"]) == (2, 7, 8)
    change = result["fixes"][0]["artifactChanges"][0]
    assert (
        change["artifactLocation"]["uri"] == "conf/run%2C1.yaml"
        and change["replacements"][0]["insertedContent"]["text"] == "2"
    )


def test_sarif_names_no_home_but_the_one_that_is_installed(report, monkeypatch):
    said = {"Project-URL": "Repository, https://git.example.com/preflight"}
    monkeypatch.setattr(documentation_urls, "metadata", lambda name: message(said))
    assert (
        json.loads(sarif.render(report))["runs"][0]["tool"]["driver"]["informationUri"]
        == said["Project-URL"].partition(", ")[2]
    )
    monkeypatch.setattr(documentation_urls, "metadata", lambda name: message({}))
    driver = json.loads(sarif.render(report))["runs"][0]["tool"]["driver"]
    assert "informationUri" not in driver and driver["rules"][0]["help"]["markdown"].startswith("# toy-devices")


def test_sarif_describes_the_suppression_that_is_not_needed_as_well(make):
    run = json.loads(
        sarif.render(make("toy: true\ndata: 16  # preflight: ignore[toy-name] it is a title\ntensor: 1\n"))
    )["runs"][0]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "unused-suppression"


def test_fingerprints_outlive_line_shifts(report, make):
    moved = make("# a new line\n" + TEXT)
    prints = [json.loads(sarif.render(r))["runs"][0]["results"][0]["partialFingerprints"] for r in (report, moved)]
    assert prints[0] == prints[1]
    assert json.loads(gitlab.render(report))[0]["fingerprint"] == json.loads(gitlab.render(moved))[0]["fingerprint"]


def test_junit_is_read_by_junitparser(report, tmp_path):
    from junitparser import JUnitXml

    path = tmp_path / "out.xml"
    path.write_text(junit.render(report))
    suite = next(iter(JUnitXml.fromfile(str(path))))
    assert (suite.tests, suite.failures) == (1, 1)


def test_a_junit_case_fails_by_what_fails_the_check(make):
    warned = make("toy: true\ndata: 16  # preflight: ignore[toy-name] it is a title\ntensor: 1\n")
    assert [finding.severity for finding in warned.findings] == ["warning"]
    for fails, failures in (("error", 0), ("warning", 1), ("note", 1)):
        xml = junit.render(warned, Look(fails=fails))
        assert xml.count("<failure") == failures
        assert xml.count("unused-suppression") == 1 + failures  # its type is the rule, too


def test_all_formats_count_the_same_files(tmp_path, monkeypatch):
    """A sourced script with a finding is counted, although only the script that sources it is a run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.sh").write_text('SIZES="--num-layers 34 --pipeline-model-parallel-size 4"\n')
    (tmp_path / "run.sh").write_text(". ./sizes.sh\ntorchrun --nproc-per-node 8 pretrain_gpt.py $SIZES\n")
    report = preflight.check("run.sh")
    assert report.checked == ("run.sh",) and {finding.path for finding in report.findings} == {"run.sh", "sizes.sh"}
    assert " in 2 files, read as " in text.render(report) and " in 2 files\n" in statistics.render(report)
    assert ' tests="2"' in junit.render(report) and "2 files checked: " in markdown.render(report)


def test_github_escapes_its_properties(report):
    line = github.render(report).splitlines()[0]
    assert line.startswith("::error file=conf/run%2C1.yaml,line=2,col=7,") and "\n" not in line


def test_markdown_escapes_what_strangers_wrote(report):
    assert "| conf/run,1.yaml:2 | error |" in markdown.render(report)


def test_html_is_one_file_and_escapes_what_strangers_wrote(report):
    page = html.render(report)
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert page.count("<script") == 1 and "default-src 'none'" in page, "no script but the page's own runs"
    assert "http://" not in page and "https://" not in page
    assert "<mark>4</mark>" in page


def test_gitlab_paths_are_relative(report):
    assert json.loads(gitlab.render(report))[0]["location"]["path"] == "conf/run,1.yaml"


def test_html_leads_from_a_finding_to_its_rule_and_can_be_filtered(report):
    page = html.render(report)
    assert '<a href="#rule-toy-devices">toy-devices</a>' in page and 'id="rule-toy-devices"' in page
    assert '<details class="rule" id="rule-toy-devices">' in page
    assert 'data-severity="error" data-rule="toy-devices"' in page and "<option>toy-devices</option>" in page
    assert "prefers-color-scheme: dark" in page and "src=" not in page


def test_html_gives_memory_five_groups_with_a_colour_each_and_labels_the_device():
    from preflight import check

    page = html.render(check(EXAMPLES / "megatron" / "sound_8b.yaml", world_size=32, device="h100"))
    for name in html.GROUPS:
        assert f".{name} {{ background: var(--{name}); }}" in page
    assert 'class="weights" style="width:' in page and 'class="activations" style="width:' in page
    assert "<b>device: " in page


def test_html_has_the_verdict_as_its_title_and_each_run_as_show_has_it(monkeypatch):
    from preflight import check

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    page = html.render(check(EXAMPLES / "megatron" / "model_config.yaml", world_size=32))
    assert re.search(r"<title>Rejected: \d+ errors – preflight</title>", page)
    assert "1970-01-01" in page and "<dt>layout</dt>" in page and "<summary>Why</summary>" in page


def test_html_of_many_runs_stays_small(make):
    from preflight.checking.merged_reports import merge

    one = html.render(make(TEXT))
    many = html.render(merge([make(TEXT)] * 500))
    assert len(many) - len(one) < 500 * 1500
    assert many.index('class="finding') < many.index("<h2>Runs</h2>") < many.index("470 further runs: preflight show")
    assert one.index('<dl class="run">') < one.index('class="finding')
