"""`preflight fix`: the changes, and the output about them."""

from __future__ import annotations

from pathlib import Path

from harness import Cli
from toy import BAD, LOUD


def test_fix_says_what_became_of_each_finding(cli: Cli, files: Path) -> None:
    (files / "both.yaml").write_text(BAD + "name: LOUD\n")
    ran = cli("fix", "both.yaml", "--world-size", "8")
    assert ran.code == 1
    assert ran.out == (
        "both.yaml:4:7: fixed: 'LOUD' is shouted [toy-name] (say it softly)\n"
        "1 fixed.\n"
        "Remaining: 1 error (1 with --unsafe); `preflight check` lists them.\n"
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


def test_a_file_that_cannot_be_written_does_not_keep_others_from_being_fixed(cli: Cli, tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml", "c.yaml"):
        (tmp_path / name).write_text(LOUD)
    (tmp_path / "b.yaml").chmod(0o444)
    ran = cli("fix", ".")
    assert (ran.code, ran.err) == (2, "preflight: b.yaml: is read-only; nothing was written\n")
    assert (
        ran.out
        == "".join(f"{name}.yaml:2:7: fixed: 'LOUD' is shouted [toy-name] (say it softly)\n" for name in "ac")
        + "2 fixed.\n"
    )
    assert [(tmp_path / name).read_text() == LOUD for name in ("a.yaml", "b.yaml", "c.yaml")] == [False, True, False]


def test_fix_turns_stdin_into_stdout(cli: Cli) -> None:
    ran = cli("fix", "-", stdin=LOUD.encode())
    assert ran.out == "toy: true\nname: loud\n"
    assert ran.err == "<stdin>:2:7: fixed: 'LOUD' is shouted [toy-name] (say it softly)\n1 fixed.\n"


def test_fix_passes_over_broken_files_of_others_in_a_folder(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "chart.yaml").write_text("kind: [\n")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    (tmp_path / "run.yaml").write_text(LOUD)
    assert cli("fix", ".") == (0, "run.yaml:2:7: fixed: 'LOUD' is shouted [toy-name] (say it softly)\n1 fixed.\n", "")
