"""Exit codes and messages for invalid calls and unreadable files."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Cli

import preflight
from preflight import Severity


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
        ("explain unused-suppression", 0),
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
        (
            "good.yaml",
            "there is no command 'good.yaml'; did you mean `preflight check good.yaml`? (try `preflight --help`)",
        ),
        ("check --selct x", "there is no option '--selct'; did you mean '--select'? (try `preflight check --help`)"),
        ("check --world-size", "option '--world-size' requires an argument"),
        (
            "check --world-size many good.yaml",
            "invalid value for '--world-size': 'many' is not a valid integer (try `preflight check --help`)",
        ),
        ("check --world-size 0 good.yaml", "--world-size must be at least 1, not 0"),
        ("check --select toy-nam good.yaml", "there is no rule or group 'toy-nam'; did you mean 'toy-name'?"),
        ("check --ignore other-* good.yaml", "there is no rule or group 'other-*'"),
        (
            "check --fail-on eror good.yaml",
            "--fail-on must be one of error, warning, note, never, not 'eror'; did you mean 'error'?",
        ),
        ("check -f jsn good.yaml", "there is no output format 'jsn'; did you mean 'json'?"),
        ("check --color red good.yaml", "--color must be one of auto, always, never, not 'red'"),
        ("check --device toy-crad good.yaml", "there is no device 'toy-crad'; did you mean 'toy-card'?"),
        (
            "check --device nothing-like-it good.yaml",
            "there is no device 'nothing-like-it'; known devices are toy-card",
        ),
        ("check --device TOY-CRAD good.yaml", "there is no device 'TOY-CRAD'; did you mean 'toy-card'?"),
        (
            "check --world-size 8 --nodes 2 --devices-per-node 8 good.yaml",
            "a world size of 8 contradicts 2 nodes with 8 devices each, which have 16 devices",
        ),
        ("rules --framework tooy", "there is no framework 'tooy'; did you mean 'toy'?"),
        ("memory --plot none/out.html good.yaml", "none/out.html: cannot be written: No such file or directory"),
        ("gate --final toy-nam", "--final: there is no rule 'toy-nam'; did you mean 'toy-name'?"),
        (
            "gate --timeout 0",
            "invalid value for '--timeout': 0.0 is not in the range x>=0.01 (try `preflight gate --help`)",
        ),
        ("gate --device toy-crad", "there is no device 'toy-crad'; did you mean 'toy-card'?"),
        ("gate-serve --final toy-nam", "--final: there is no rule 'toy-nam'; did you mean 'toy-name'?"),
        (
            "gate-serve --socket none/gate.sock",
            "none/gate.sock: cannot listen on this socket: No such file or directory",
        ),
        ("check --target tooy good.yaml", "there is no framework 'tooy'; did you mean 'toy'?"),
        ("check --config none.toml good.yaml", "none.toml: does not exist"),
        (
            "check",
            "nothing to check; pass files, folders (. for the working directory), - for stdin, or -- and a command",
        ),
        ("check --", "command line: no command after --"),
        ("check missing.yaml", "missing.yaml: does not exist"),
        (
            "check foreign.yaml",
            (
                "nothing was checked: foreign.yaml is not recognized as a training config; if it is one, "
                "name its framework with --target"
            ),
        ),
        ("check -o none/out.txt good.yaml", "none/out.txt: cannot be written: No such file or directory"),
        ("explain toy-nam", "there is no rule 'toy-nam'; did you mean 'toy-name'?"),
        ("schema reprot", "there is no schema 'reprot'; did you mean 'report'?"),
        ("new-rule Foo", "a rule id must be in kebab case, such as device-count, not 'Foo'"),
        ("show -f shout good.yaml", "this command prints text or json, not 'shout'"),
        ("show -o none/out.txt good.yaml", "none/out.txt: cannot be written: No such file or directory"),
        ("fix -f json good.yaml", "there is no option '-f' (try `preflight fix --help`)"),
        (
            "fix foreign.yaml",
            (
                "nothing was checked: foreign.yaml is not recognized as a training config; if it is one, "
                "name its framework with --target"
            ),
        ),
        ("fix missing.yaml", "missing.yaml: does not exist"),
        (
            "check -- bash run.sh",
            "nothing was checked: neither the command nor a script that it names starts a training run that "
            "preflight recognizes",
        ),
        (
            "check foreign.yaml --target toy",
            "nothing was checked: foreign.yaml is not recognized as a training config",
        ),
        (
            "check foreign.yaml other.yaml",
            "nothing was checked: foreign.yaml, other.yaml are not recognized as training configs",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(cli: Cli, files: Path, words: str, message: str) -> None:
    assert cli(*words.split()) == (2, "", f"preflight: {message}\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\x01binary", "in.yaml:1:1: is a binary file (it contains a NUL byte)"),
        (b"a: \xff\n", "in.yaml:1:4: is not UTF-8 (byte 0xff)"),
        (
            b"toy: true\na: [1, 2\n",
            "in.yaml:3:1: invalid YAML: while parsing a flow sequence did not find expected ',' or ']'",
        ),
        (b"toy: true\ndata: many\n", "in.yaml:2:7: data is not a number"),
        (
            b"\tkey: 1\n",
            "in.yaml:1:1: invalid YAML: while scanning for the next token found character that cannot start any token",
        ),
        (
            b"toy: true\n<<<<<<< HEAD\ndata: 1\n=======\ndata: 2\n>>>>>>> retry\n",
            "in.yaml:2:1: unresolved merge conflict, from `<<<<<<< HEAD` to `>>>>>>> retry` on line 6",
        ),
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


def test_a_broken_foreign_file_passes_where_unclaimed_files_may_and_a_broken_one_of_ours_does_not(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "chart.yaml").write_text("{{ template }}: [\n")
    assert cli("check", "chart.yaml", "--allow-unclaimed").code == 0
    assert cli("check", "chart.yaml").code == 2
    (tmp_path / "ours.yaml").write_text("toy: true\ndata: 3\n  tensor: 4\nname: x\n")
    ran = cli("check", "ours.yaml", "--allow-unclaimed")
    assert ran.code == 2
    assert ran.err.startswith("preflight: ours.yaml:3:9: invalid YAML")


def test_a_file_of_options_alone_is_told_from_other_files(cli: Cli, files: Path) -> None:
    Path("args.sh").write_text("ARGS=(\n  --num-layers 4\n  --hidden-size 64\n  --micro-batch-size 1\n)\n")
    Path("tool.sh").write_text("tar --create --file x.tar --verbose .\n")
    assert (
        "args.sh contains training options but no launch command; pass the script that reads it"
        in cli("check", "args.sh").err
    )
    assert "tool.sh is not recognized as a training config" in cli("check", "tool.sh").err


def test_a_launch_with_deepspeed_is_said_to_be_of_a_fork(cli: Cli, files: Path) -> None:
    words = "$HERE/pretrain_gpt.py --num-layers 4 --hidden-size 64"
    for text in (f"deepspeed --num_gpus 8 {words}", f'run="deepspeed \\\n  --num_gpus 8 {words}"\neval $run'):
        Path("run.sh").write_text(f"{text}\n")
        assert "run.sh: Megatron-DeepSpeed is not described" in cli("check", "run.sh").err


LAUNCH = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
    "--seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --train-iters 10 --lr 1e-4"
)
CONFLICT = "<<<<<<< HEAD\n  --bf16 \\\n=======\n  --fp16 \\\n>>>>>>> retry\n"


@pytest.mark.parametrize(
    "text",
    [
        f"# a launch\n{CONFLICT}{LAUNCH}\n",
        f'ARGS="\n{CONFLICT}"\n{LAUNCH} $ARGS\n',
        f"ARGS=(\n{CONFLICT})\n{LAUNCH} ${{ARGS[@]}}\n",
        f"{LAUNCH} \\\n{CONFLICT}  --sequence-parallel\n",
        f"{LAUNCH} \\\n{CONFLICT}  --sequence-parallel\n".replace("\n", "\r\n"),
    ],
)
def test_a_merge_conflict_in_a_script_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.sh").write_bytes(text.encode())
    (found,) = preflight.check(tmp_path / "run.sh").findings
    assert (found.rule, found.line, found.severity) == ("shell-syntax", 2, Severity.ERROR)
    assert found.message == "unresolved merge conflict, from `<<<<<<< HEAD` to `>>>>>>> retry` on line 6"
