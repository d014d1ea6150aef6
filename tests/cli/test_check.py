"""`preflight check`: the checked files, and the destinations of the output."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from harness import Cli
from toy import LOUD


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


def test_folders_are_searched_for_configs_and_scripts_hidden_ones_are_not(cli: Cli, tmp_path: Path) -> None:
    for name in ("b/x.yaml", "a/y.yml", ".hidden/z.yaml", "a/notes.txt", "node_modules/q.yaml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(LOUD)
    ran = cli("check", ".", "-f", "concise")
    assert (
        ran.out
        == "a/y.yml:2:7: warning: 'LOUD' is shouted [toy-name]\nb/x.yaml:2:7: warning: 'LOUD' is shouted [toy-name]\n"
    )


def test_stdin_has_the_name_it_is_given(cli: Cli) -> None:
    assert (
        cli("check", "-", "-f", "concise", stdin=LOUD.encode()).out
        == "<stdin>:2:7: warning: 'LOUD' is shouted [toy-name]\n"
    )
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
    for words in (
        ["bad.yaml", "loud.yaml", "foreign.yaml", "crash.yaml", "broken.yaml", "--world-size", "8"],
        ["good.yaml"],
    ):
        report = json.loads(cli("check", "-f", "json", *words).out)
        jsonschema.validate(report, schema)
    found = json.loads(cli("check", "-f", "json", "bad.yaml", "--world-size", "8", "--device", "tc").out)
    assert found["accepted"] is False
    assert found["runs"] == [
        {
            "path": "bad.yaml",
            "run": 0,
            "framework": "toy",
            "version": "1.0",
            "versions": {"toy": "1.0"},
            "standing": None,
            "release": {"known": True, "read_as": "toy@1.0", "own": None, "fits": [], "reason": None},
            "evidence": None,
            "program": None,
            "source": None,
            "devices": 8,
            "device": "toy-card",
        }
    ]
    finding = found["findings"][0]
    assert [finding[name] for name in ("rule", "line", "column", "end_line", "end_column")] == [
        "toy-devices",
        2,
        7,
        2,
        8,
    ]
    edits = [{"action": "set", "key": ["data"], "value": 4}]
    text = [{"path": "bad.yaml", "line": 2, "column": 7, "end_line": 2, "end_column": 8, "new": "4"}]
    how = {"safety": "unsafe", "change": "completion", "offered": False}
    assert finding["fix"] == {"title": "set data to 4", **how, "edits": edits, "text": text}


def test_quiet_leaves_out_the_summary_and_verbose_says_how_files_were_read(cli: Cli, files: Path) -> None:
    assert "Found" not in cli("check", "loud.yaml", "-q").out
    out = cli("check", "loud.yaml", "foreign.yaml", "-v", "--world-size", "1").out
    assert "loud.yaml: read as toy@1.0, 1 devices\n" in out
    assert "Skipped: 1 file not recognized as training configs.\n" in out


def test_a_crash_is_told_and_names_rule_and_file(cli: Cli, files: Path) -> None:
    assert (
        cli("check", "crash.yaml").err
        == "preflight: rule toy-crash crashed on crash.yaml: ZeroDivisionError: as asked\n"
    )


def test_suppression_needs_a_reason_and_a_fault(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("toy: true\nname: LOUD  # preflight: ignore[toy-name] it is a title\n")
    assert cli("check", "s.yaml", "-f", "concise").out == ""
    (tmp_path / "s.yaml").write_text("toy: true\nname: soft  # preflight: ignore[toy-name] it is a title\n")
    assert "rule 'toy-name' reports nothing here [unused-suppression]" in cli("check", "s.yaml", "-f", "concise").out


def test_a_line_that_two_runs_read_is_told_once(tmp_path: Path, real_cli: Cli) -> None:
    options = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 32"
    batch = "--micro-batch-size 1 --global-batch-size 64 --lr 1e-4 --train-iters 10 --bf16 --mock-data"
    (tmp_path / "common.sh").write_text(f'ARGS="{options} {batch}"\n', encoding="utf-8")
    for name in ("one", "two"):
        start = f"#!/bin/bash\n# {name}\nsource ./common.sh\ntorchrun --nproc_per_node 8 pretrain_gpt.py $ARGS\n"
        (tmp_path / f"{name}.sh").write_text(start, encoding="utf-8")
    ran = real_cli("check", str(tmp_path), "-f", "concise", "--select", "megatron/positions-below-sequence")
    assert ran.out.count("--max-position-embeddings 32 must be at least") == 1
    left = real_cli("fix", "--diff", str(tmp_path), "--select", "megatron/positions-below-sequence")
    assert "Remaining: 1 error" in left.err
