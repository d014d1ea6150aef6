"""Output for terminals: colours, no escapes from files, progress, completion."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from harness import Cli


def test_colours_follow_the_environment(cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def coloured(*words: str) -> bool:
        return "\x1b[" in cli("check", "loud.yaml", *words).out

    assert not coloured()
    assert coloured("--color", "always")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert coloured()
    assert not coloured("--color", "never")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured()


def test_escapes_in_values_are_shown_and_not_sent(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "evil.yaml").write_text('toy: true\nname: "\\e]0;X\\a\\u202e"  # \u202e \x9b\n', encoding="utf-8")
    ran = cli("check", "evil.yaml", "-f", "text", "-f", "concise", "-f", "json")
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(ran.out + ran.err)


@pytest.mark.parametrize("command", ["show", "memory", "layouts", "check"])
def test_escapes_in_values_are_shown_in_colour_as_well(cli: Cli, tmp_path: Path, command: str) -> None:
    (tmp_path / "evil.yaml").write_text(
        'toy: true\ndata: "$\\e]0;X\\a"\ntensor: "\\e]0;X\\a"\nname: "\\e]0;LOUD\\a"\n', encoding="utf-8"
    )
    ran = cli(command, "evil.yaml", "--color", "always")
    assert not [sign for sign in ("\x1b]", "\x07") if sign in ran.out + ran.err]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_for_many_files_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    from preflight.cli.checker_setup import counter

    few, many, pipe = Terminal(), Terminal(), io.StringIO()
    for stream, total in ((few, 3), (many, 30), (pipe, 30)):
        progress = counter(total, stream)
        for number in (1, 2, 0):
            progress(number)
    assert (few.getvalue(), pipe.getvalue()) == ("", "")
    assert many.getvalue() == "\rchecking 1/30\rchecking 2/30\r\x1b[K"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("check --device t", "toy-card"),
        ("gate --device t", "toy-card"),
        ("check --device tc", "tc"),
        ("check --target t", "toy\ntoy@1.0"),
        ("check --select toy-n", "toy-name"),
        ("check --ignore toy-name,toy-d", "toy-name,toy-devices"),
        ("check -f sh", "shout"),
        ("check --fail-on n", "note\nnever"),
        ("rules --framework t", "toy"),
        ("explain toy-n", "toy-name"),
        ("schema rep", "report"),
    ],
)
def test_a_shell_completes_what_preflight_knows(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, offered: str
) -> None:
    monkeypatch.setenv("_PREFLIGHT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"preflight {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
    with pytest.raises(SystemExit):
        cli()
    assert capsys.readouterr().out == f"{offered}\n"


def test_rule_ids_open_their_pages_where_the_terminal_knows_hyperlinks(monkeypatch: pytest.MonkeyPatch) -> None:
    from preflight.cli.output import look
    from preflight.report import rule_pages
    from preflight.report.text import one
    from preflight.source.finding import Finding, Severity
    from preflight.source.source_file import Source

    def first_line(
        term: str, rule: str = "device-count", color: str = "auto", stream: io.StringIO | None = None
    ) -> str:
        monkeypatch.setenv("TERM", term)
        monkeypatch.setattr("sys.stdout", stream or Terminal())
        finding = Finding("wrong", Source("a", "f.yaml").span(0), severity=Severity.ERROR, rule=rule)
        return next(one(finding, look(color)))

    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(rule_pages, "page_url", lambda page, part: f"https://docs.example/preflight/{page}#{part}")
    start, end = "\x1b]8;;https://docs.example/preflight/rules/", "\x1b]8;;\x1b\\"
    assert f"[{start}device-count.md#device-count\x1b\\device-count{end}]" in first_line("xterm-256color")
    assert f"{start}megatron/train-length.md#ramp-with-iterations\x1b\\" in first_line(
        "xterm-256color", "megatron/ramp-with-iterations"
    )
    plain = [
        first_line("dumb"),
        first_line("xterm", color="never"),
        first_line("xterm", color="always", stream=io.StringIO()),
        first_line("xterm", rule="acme/seeds"),
    ]
    monkeypatch.setattr(rule_pages, "page_url", lambda page, part: None)
    assert not [line for line in plain if "\x1b]8" in line]
    assert "\x1b]8;;file:///" in first_line("xterm")  # the installed page
