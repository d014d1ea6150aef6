"""The command line: what it prints, where, and its exit codes. The rules are the toy's."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from harness import Ran

Cli = Callable[..., Ran]
BAD = "toy: true\ndata: 3  # dp\ntensor: 2\n"
GOOD = "toy: true\ndata: 4\ntensor: 2\n"
LOUD = "toy: true\nname: LOUD\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {
        "bad.yaml": BAD,
        "good.yaml": GOOD,
        "loud.yaml": LOUD,
        "foreign.yaml": "a: 1\n",
        "other.yaml": "b: 1\n",
        "crash.yaml": "toy: true\ncrash: 1\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_finding_is_shown_with_its_lines_its_fix_and_where_to_read_more(cli: Cli, files: Path) -> None:
    assert cli("check", "bad.yaml", "--world-size", "8") == (
        1,
        """\
bad.yaml:2:7: error: 3 x 2 is not 8 [toy-devices]
  |
1 | toy: true
2 | data: 3  # dp
  |       ^
3 | tensor: 2
  |         - tensor = 2
  |
  = fix: set data to 4 (preflight fix --unsafe)
  = more: preflight explain toy-devices

Found 1 error in 1 file, read as toy@1.0.
Fixable: 1 with `preflight fix --unsafe`.
""",
        "",
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("check good.yaml --world-size 8", 0),
        ("check bad.yaml --world-size 8", 1),
        ("check bad.yaml --nodes 2 --devices-per-node 4", 1),
        ("check bad.yaml --nodes 2 --devices-per-node 3", 0),
        ("check bad.yaml --world-size 8 --exit-zero", 0),
        ("check bad.yaml --world-size 8 --ignore toy-devices", 0),
        ("check bad.yaml --world-size 8 --ignore toy-*", 0),
        ("check bad.yaml --world-size 8 --select toy-name", 0),
        ("check bad.yaml --world-size 8 --select toy-name,toy-devices", 1),
        ("check loud.yaml", 0),
        ("check loud.yaml --fail-on warning", 1),
        ("check loud.yaml --fail-on note", 1),
        ("check loud.yaml --fail-on never", 0),
        ("check crash.yaml", 3),
        ("check crash.yaml bad.yaml --world-size 8", 1),
        ("check foreign.yaml", 2),
        ("check foreign.yaml good.yaml", 0),
        ("check foreign.yaml --allow-unclaimed", 0),
        ("check .", 3),
        ("check . --exclude crash.yaml", 0),
        ("check crash.yaml --exclude crash.yaml", 3),
        ("check crash.yaml --exclude crash.yaml --force-exclude --allow-unclaimed", 0),
        ("check good.yaml missing.yaml", 2),
        ("explain toy-name", 0),
        ("rules", 0),
        ("schema", 0),
        ("schema report", 0),
        ("show good.yaml", 0),
        ("show foreign.yaml", 2),
        ("memory good.yaml", 0),
        ("--version", 0),
        ("--help", 0),
        ("check --help", 0),
    ],
)
def test_exit_codes(cli: Cli, files: Path, words: str, code: int) -> None:
    ran = cli(*words.split())
    assert ran.code == code, ran
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("chek good.yaml", "there is no command 'chek'; did you mean `preflight check`? (try `preflight --help`)"),
        ("good.yaml", "there is no command 'good.yaml'; did you mean `preflight check good.yaml`? (try `preflight --help`)"),
        ("check --selct x", "there is no option '--selct'; did you mean '--select'? (try `preflight check --help`)"),
        ("check --world-size", "option '--world-size' requires an argument"),
        ("check --world-size many good.yaml", "invalid value for '--world-size': 'many' is not a valid integer (try `preflight check --help`)"),
        ("check --world-size 0 good.yaml", "--world-size must be at least 1, not 0"),
        ("check --select toy-nam good.yaml", "there is no rule 'toy-nam'; did you mean 'toy-name'?"),
        ("check --ignore other-* good.yaml", "there is no rule 'other-*'"),
        ("check --fail-on eror good.yaml", "--fail-on is one of error, warning, note, never, not 'eror'; did you mean 'error'?"),
        ("check -f jsn good.yaml", "there is no output format 'jsn'; did you mean 'json'?"),
        ("check --color red good.yaml", "--color is one of auto, always, never, not 'red'"),
        ("check --device toy-crad good.yaml", "no device is called 'toy-crad'; did you mean 'toy-card'?"),
        ("check --device nothing-like-it good.yaml", "no device is called 'nothing-like-it'; there are toy-card"),
        ("check --device TOY-CRAD good.yaml", "no device is called 'TOY-CRAD'; did you mean 'toy-card'?"),
        ("check --world-size 8 --nodes 2 --devices-per-node 8 good.yaml", "a world size of 8 contradicts 2 nodes with 8 devices each, which are 16"),
        ("rules --framework tooy", "no framework is called 'tooy'; did you mean 'toy'?"),
        ("memory --plot none/out.html good.yaml", "none/out.html: cannot be written: No such file or directory"),
        ("gate --final toy-nam", "--final: there is no rule 'toy-nam'; did you mean 'toy-name'?"),
        ("gate --timeout 0", "invalid value for '--timeout': 0.0 is not in the range x>=0.01 (try `preflight gate --help`)"),
        ("gate --device toy-crad", "no device is called 'toy-crad'; did you mean 'toy-card'?"),
        ("gate-serve --final toy-nam", "--final: there is no rule 'toy-nam'; did you mean 'toy-name'?"),
        ("gate-serve --socket none/gate.sock", "none/gate.sock: cannot be listened on: No such file or directory"),
        ("check --target tooy good.yaml", "no framework is called 'tooy'; did you mean 'toy'?"),
        ("check --config none.toml good.yaml", "none.toml: does not exist"),
        ("check", "nothing to check: give files, folders, - for stdin, or -- and a command"),
        ("check --", "command line: no command is given after --"),
        ("check missing.yaml", "missing.yaml: does not exist"),
        ("check foreign.yaml", "nothing was checked: foreign.yaml is no training config that preflight knows"),
        ("check -o none/out.txt good.yaml", "none/out.txt: cannot be written: No such file or directory"),
        ("explain toy-nam", "there is no rule 'toy-nam'; did you mean 'toy-name'?"),
        ("schema reprot", "there is no schema 'reprot'; did you mean 'report'?"),
        ("new-rule Foo", "a rule's id is kebab case, like device-count; 'Foo' is not"),
        ("show -f shout good.yaml", "this command prints text or json, not 'shout'"),
        ("show -o none/out.txt good.yaml", "none/out.txt: cannot be written: No such file or directory"),
        ("fix -f json good.yaml", "there is no option '-f' (try `preflight fix --help`)"),
        ("fix foreign.yaml", "nothing was checked: foreign.yaml is no training config that preflight knows"),
        ("fix missing.yaml", "missing.yaml: does not exist"),
        ("check foreign.yaml other.yaml", "nothing was checked: foreign.yaml, other.yaml are no training configs that preflight knows"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(cli: Cli, files: Path, words: str, message: str) -> None:
    assert cli(*words.split()) == (2, "", f"preflight: {message}\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\x01binary", "in.yaml:1:1: is a binary file (it contains a NUL byte)"),
        (b"a: \xff\n", "in.yaml:1:4: is not UTF-8 (byte 0xff)"),
        (b"toy: true\na: [1, 2\n", "in.yaml:3:1: is not YAML: while parsing a flow sequence did not find expected ',' or ']'"),
        (b"toy: true\ndata: many\n", "in.yaml:2:7: data is not a number"),
        (b"\tkey: 1\n", "in.yaml:1:1: is not YAML: while scanning for the next token found character that cannot start any token"),
    ],
)
def test_input_that_cannot_be_read_names_the_place(cli: Cli, tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "in.yaml").write_bytes(content)
    ran = cli("check", "in.yaml")
    assert (ran.code, ran.err) == (2, f"preflight: {message}\n")


@pytest.mark.parametrize("words", ["check folder.yaml", "fix folder.yaml", "show folder.yaml"])
def test_an_empty_folder_is_nothing_to_check(cli: Cli, tmp_path: Path, words: str) -> None:
    (tmp_path / "folder.yaml").mkdir()
    ran = cli(*words.split())
    assert ran.code == 2
    assert ran.err.startswith("preflight: nothing was ")


def test_a_broken_foreign_file_passes_where_unclaimed_files_may_and_a_broken_one_of_ours_does_not(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "chart.yaml").write_text("{{ template }}: [\n")
    assert cli("check", "chart.yaml", "--allow-unclaimed").code == 0
    assert cli("check", "chart.yaml").code == 2
    (tmp_path / "ours.yaml").write_text("toy: true\ndata: 3\n  tensor: 4\nname: x\n")
    ran = cli("check", "ours.yaml", "--allow-unclaimed")
    assert ran.code == 2
    assert ran.err.startswith("preflight: ours.yaml:3:9: is not YAML")


def test_folders_are_searched_for_configs_and_scripts_hidden_ones_are_not(cli: Cli, tmp_path: Path) -> None:
    for name in ("b/x.yaml", "a/y.yml", ".hidden/z.yaml", "a/notes.txt", "node_modules/q.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(LOUD)
    ran = cli("check", ".", "-f", "concise")
    assert ran.out == "a/y.yml:2:7: warning: 'LOUD' is shouted [toy-name]\nb/x.yaml:2:7: warning: 'LOUD' is shouted [toy-name]\n"


def test_stdin_has_the_name_it_is_given(cli: Cli) -> None:
    assert cli("check", "-", "-f", "concise", stdin=LOUD.encode()).out == "<stdin>:2:7: warning: 'LOUD' is shouted [toy-name]\n"
    ran = cli("check", "-", "--stdin-filename", "conf/run.yaml", "-f", "concise", stdin=LOUD.encode())
    assert ran.out == "conf/run.yaml:2:7: warning: 'LOUD' is shouted [toy-name]\n"


def test_several_formats_at_once(cli: Cli, files: Path) -> None:
    ran = cli("check", "loud.yaml", "-f", "concise", "-f", "json:out.json", "-f", "shout:loud.txt")
    assert ran.out == "loud.yaml:2:7: warning: 'LOUD' is shouted [toy-name]\n"
    assert json.loads((files / "out.json").read_text())["counts"] == {"error": 0, "warning": 1, "note": 0}
    assert (files / "loud.txt").read_text() == "SHOUT\n"


def test_the_json_report_keeps_its_schema(cli: Cli, files: Path) -> None:
    (files / "broken.yaml").write_text("toy: [\n")
    schema = json.loads(cli("schema", "report").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    for words in (["bad.yaml", "loud.yaml", "foreign.yaml", "crash.yaml", "broken.yaml", "--world-size", "8"], ["good.yaml"]):
        report = json.loads(cli("check", "-f", "json", *words).out)
        jsonschema.validate(report, schema)
    found = json.loads(cli("check", "-f", "json", "bad.yaml", "--world-size", "8", "--device", "tc").out)
    assert found["accepted"] is False
    assert found["runs"] == [
        {"path": "bad.yaml", "run": 0, "framework": "toy", "version": "1.0", "versions": {"toy": "1.0"}, "devices": 8, "device": "toy-card"}
    ]
    finding = found["findings"][0]
    assert [finding[name] for name in ("rule", "line", "column", "end_line", "end_column")] == ["toy-devices", 2, 7, 2, 8]
    assert finding["fix"] == {"title": "set data to 4", "safety": "unsafe", "edits": [{"action": "set", "key": ["data"], "value": 4}]}


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
    (tmp_path / "evil.yaml").write_text('toy: true\ndata: "$\\e]0;X\\a"\ntensor: "\\e]0;X\\a"\nname: "\\e]0;LOUD\\a"\n', encoding="utf-8")
    ran = cli(command, "evil.yaml", "--color", "always")
    assert not [sign for sign in ("\x1b]", "\x07") if sign in ran.out + ran.err]


def test_quiet_leaves_out_the_summary_and_verbose_says_how_files_were_read(cli: Cli, files: Path) -> None:
    assert "Found" not in cli("check", "loud.yaml", "-q").out
    out = cli("check", "loud.yaml", "foreign.yaml", "-v", "--world-size", "1").out
    assert "loud.yaml: read as toy@1.0, 1 devices\n" in out
    assert "Skipped: 1 file that preflight does not know as training configs.\n" in out


def test_a_crash_is_told_and_names_rule_and_file(cli: Cli, files: Path) -> None:
    assert cli("check", "crash.yaml").err == "preflight: rule toy-crash crashed on crash.yaml: ZeroDivisionError: as asked\n"


def test_suppression_needs_a_reason_and_a_fault(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("toy: true\nname: LOUD  # preflight: ignore[toy-name] it is a title\n")
    assert cli("check", "s.yaml", "-f", "concise").out == ""
    (tmp_path / "s.yaml").write_text("toy: true\nname: soft  # preflight: ignore[toy-name] it is a title\n")
    assert "the suppression is not needed [unused-suppression]" in cli("check", "s.yaml", "-f", "concise").out


def test_show_names_every_value_with_its_origin(cli: Cli, files: Path) -> None:
    out = cli("show", "good.yaml", "--world-size", "8").out
    assert "layout      DP 4 · TP 2 · PP ? · CP ? on 8 devices\n" in out
    assert "  layout.tensor  2  written  good.yaml:3:9\n" in out
    values = json.loads(cli("show", "good.yaml", "-f", "json").out)["runs"][0]["values"]
    assert values["layout.data"] == {"value": 4, "known": True, "origin": "written", "note": "", "at": "good.yaml:2:7"}
    assert values["layout.world"]["known"] is False


def test_what_is_shown_can_be_written_to_a_file(cli: Cli, files: Path) -> None:
    assert cli("show", "good.yaml", "-o", "plan.txt", "--color", "always") == (0, "", "")
    assert (files / "plan.txt").read_text().startswith("good.yaml: toy@1.0\n")
    assert cli("memory", "good.yaml", "-f", "json", "-o", "memory.json").out == ""
    assert json.loads((files / "memory.json").read_text())["schema"] == 1


def test_fix_passes_over_broken_files_of_others_in_a_folder(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "chart.yaml").write_text("kind: [\n")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    (tmp_path / "run.yaml").write_text(LOUD)
    assert cli("fix", ".") == (0, "run.yaml:2:7: fixed: 'LOUD' is shouted [toy-name] (say it softly)\n1 fixed.\n", "")


def test_fix_says_what_became_of_each_finding(cli: Cli, files: Path) -> None:
    (files / "both.yaml").write_text(BAD + "name: LOUD\n")
    ran = cli("fix", "both.yaml", "--world-size", "8")
    assert ran.code == 1
    assert ran.out == (
        "both.yaml:4:7: fixed: 'LOUD' is shouted [toy-name] (say it softly)\n"
        "both.yaml:2:7: needs --unsafe: 3 x 2 is not 8 [toy-devices] (set data to 4)\n"
        "1 fixed, 1 needs --unsafe.\n"
    )
    assert (files / "both.yaml").read_text() == BAD + "name: loud\n"
    assert cli("fix", "both.yaml", "--world-size", "8", "--unsafe").code == 0
    assert (files / "both.yaml").read_text() == "toy: true\ndata: 4  # dp\ntensor: 2\nname: loud\n"
    assert cli("fix", "both.yaml", "--world-size", "8", "--unsafe").out == "Nothing to fix.\n"


def test_fix_can_show_a_diff_and_write_nothing(cli: Cli, files: Path) -> None:
    ran = cli("fix", "loud.yaml", "--diff")
    assert ran.out == "--- loud.yaml\n+++ loud.yaml\n@@ -1,2 +1,2 @@\n toy: true\n-name: LOUD\n+name: loud\n"
    assert (ran.code, (files / "loud.yaml").read_text()) == (1, LOUD)


def test_fix_takes_chosen_rules_only(cli: Cli, files: Path) -> None:
    (files / "both.yaml").write_text(BAD + "name: LOUD\n")
    cli("fix", "both.yaml", "--world-size", "8", "--unsafe", "--select", "toy-devices")
    assert (files / "both.yaml").read_text() == "toy: true\ndata: 4  # dp\ntensor: 2\nname: LOUD\n"


def test_fix_turns_stdin_into_stdout(cli: Cli) -> None:
    ran = cli("fix", "-", stdin=LOUD.encode())
    assert ran.out == "toy: true\nname: loud\n"
    assert ran.err == "<stdin>:2:7: fixed: 'LOUD' is shouted [toy-name] (say it softly)\n1 fixed.\n"


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
def test_a_shell_completes_what_preflight_knows(cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, offered: str) -> None:
    monkeypatch.setenv("_PREFLIGHT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"preflight {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
    with pytest.raises(SystemExit):
        cli()
    assert capsys.readouterr().out == f"{offered}\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def testprogress_is_shown_on_a_terminal_for_many_files_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    from preflight.cli.session import progress

    few, many, pipe = Terminal(), Terminal(), io.StringIO()
    for stream, total in ((few, 3), (many, 30), (pipe, 30)):
        for number in (1, 2, 0):
            progress(number, total, stream)
    assert (few.getvalue(), pipe.getvalue()) == ("", "")
    assert many.getvalue() == "\rchecking 1/30\rchecking 2/30\r\x1b[K"
