"""Terminal control sequences in files: no report passes them on."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from bounded import COMMAND, EVIL, GRAPH, check

from preflight.api import installed
from preflight.checking.engine import Report
from preflight.gate.submission import Allocation, Submission
from preflight.gate.verdict import Policies, judge, told
from preflight.report.source_excerpts_and_escapes import Look

pytestmark = pytest.mark.usefixtures("quick")

FORMATS = ("concise", "github", "gitlab", "html", "json", "junit", "markdown", "sarif", "text")


def _evil_reports(folder: Path) -> Iterator[Report]:
    written = (
        EVIL.replace("\x1b", "\\e")
        .replace("\x07", "\\a")
        .replace("\u202e", "\\u202e")
        .replace("\u2028", "\\u2028")
        .replace("\x9b", "\\x9b")
    )
    yield check(
        f'{GRAPH}recompute_config: {{recompute: "{written}"}}\nparalel_config: 1\n"{written}": 1\n'
        f'runner_config: {{"{written}": 2}}\n'
    )
    yield check(
        (
            f"{COMMAND} --num-layers $'\\e[2J' --wrong{EVIL} --tensor-model-parallel-size {EVIL} "
            f"--position-embedding-type {EVIL}\n"
        ),
        "run.sh",
    )
    yield check(GRAPH.replace("40", "42"), f"{EVIL}.yaml")


@pytest.mark.parametrize("format", FORMATS)
def test_no_format_hands_escapes_to_a_terminal(format: str, tmp_path: Path) -> None:
    render = import_module(f"preflight.report.{format}").render
    for report in _evil_reports(tmp_path):
        assert report.findings
        text = render(report, Look(width=80, verbose=True, unknown=True))
        assert not {"\x1b", "\x07", "\u202e", "\x9b", "\u2028"} & set(text), format


HIDDEN = "\u061c\xad\u180e\ufffe\uffff\U000e0041\u3164\u2066"


@pytest.mark.parametrize("format", FORMATS)
def test_no_format_hands_on_what_cannot_be_seen(format: str) -> None:
    render = import_module(f"preflight.report.{format}").render
    written = "".join(f"\\U{ord(char):08x}" for char in HIDDEN)
    report = check(f'{GRAPH}paralel_config: 1\n"{written}": 1\nrunner_config: {{"{written}": 2}}\n')
    assert report.findings
    text = render(report, Look(width=80, verbose=True, unknown=True))
    assert not set(HIDDEN) & set(text)
    if format == "junit":
        ET.fromstring(text)
    if format in ("text", "concise", "markdown"):
        assert r"\u061c" in text.replace("\\\\", "\\") and r"\U000e0041" in text.replace("\\\\", "\\")


COMMANDS = (
    "::error file=a,line=1::owned",
    "::set-output name=x::y",
    "##vso[task.setvariable variable=x]y",
    "##[error]owned",
)
COMMANDS += ("##teamcity[buildStatus text='owned']", "  ::add-mask::x", "::stop-commands::x")


@pytest.mark.parametrize("format", [*FORMATS, "statistics"])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_of_a_log_is_a_command(format: str, name: str) -> None:
    render = import_module(f"preflight.report.{format}").render
    report = check(
        GRAPH.replace("40", "42") + f"paralel_config: 1\n? '{name.replace(chr(39), chr(39) * 2)}'\n: 1\n",
        f"{name}.yaml",
    )
    assert report.findings
    for line in render(report, Look(verbose=True, unknown=True)).splitlines():
        ours = format == "github" and line.startswith(("::error file=", "::warning file=", "::notice file="))
        data = line.partition("::")[2].partition("::")[2] if ours else line
        assert not data.lstrip().startswith("::"), line
        assert not any(f"##{word}" in line for word in ("[", "vso[", "teamcity[")), line


def test_a_diff_and_a_plan_are_no_commands_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from preflight.cli import run

    monkeypatch.chdir(tmp_path)
    example = Path(__file__).parents[2] / "examples" / "mindformers" / "run_llama2_7b.yaml"
    lines = example.read_text(encoding="utf-8").splitlines()
    (tmp_path / "::error x::y.yaml").write_text(
        "\n".join(part for line in lines for part in (line, "#", "# ::")) + "\n"
    )
    for command in (["fix", "--diff"], ["show"], ["memory"], ["layouts"], ["check"], ["fix"]):
        run([*command, "."])
        told = capsys.readouterr()
        assert not [line for line in f"{told.out}\n{told.err}".splitlines() if line.lstrip().startswith("::error")], (
            command
        )


LIVE = (
    "@everyone https://evil.example/x www.evil.example <img src=x> <!--x--> &#64;all #1 !2 ~bug a@evil.example | "
    "`x` ![y](z) [t](u)"
)


def test_markdown_has_no_mention_link_or_element_of_strangers() -> None:
    """Rendered as on GitHub: content from a file is text, or code if it contains markup."""
    from preflight.report.markdown import render

    report = check(f"{GRAPH}paralel_config: 1\n'{LIVE}': 1\nrunner_config: {{'{LIVE}': 2}}\n", f"{LIVE}.yaml")
    assert report.findings
    for line in render(report).splitlines():
        outside = re.sub(r"(?<!`)(`+)(?!`) .*? (?<!`)\1(?!`)", "", line)
        assert not re.search(r"@|://|www\.|[<&#!~]\w|(?<!\\)[<\[]", outside), outside
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) == 6, line


def test_nor_does_the_gate() -> None:
    script = f"#!/bin/bash\n{COMMAND} --tensor-model-parallel-size 3 --wrong{EVIL}\n".encode()
    verdict = judge(Submission(script, f"job{EVIL}", allocation=Allocation(1, 8, 8)), installed(), Policies())
    assert told(verdict) and all(line.isprintable() for line in told(verdict))
