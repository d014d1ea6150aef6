"""The gate's contract: verdicts, exit codes, allocations, overrides, deadlines, messages to users."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from clock import FOREVER

from preflight.gate.submission import Allocation, Override, Submission
from preflight.gate.verdict import Policies, Verdict, judge, told
from preflight.plugins.manager import load
from preflight.source.translation import asked, columns, speaking

ROOT = Path(__file__).parents[2]
SCRIPT = """\
#!/bin/bash
#SBATCH -N2
#SBATCH --gpus-per-node=8
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP={tensor}
ARGS="
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --bf16
  --seq-length 4096 --max-position-embeddings 4096 --lr 1e-4 --train-iters 100
  --micro-batch-size 1 --global-batch-size {batch} --tensor-model-parallel-size $TP
"
srun torchrun --nnodes {nodes} --nproc-per-node 8 pretrain_gpt.py $ARGS
"""
GOOD = SCRIPT.format(tensor=4, batch=64, nodes=2)
BAD = SCRIPT.format(tensor=3, batch=64, nodes=2)


@pytest.fixture(scope="module")
def plugins():
    return load()


@pytest.fixture
def gate(plugins):
    def call(script: str, policies: Policies = Policies(seconds=20), **more: object) -> Verdict:
        return judge(Submission(script.encode(), **more), plugins, policies)

    return call


@pytest.mark.parametrize(
    ("script", "word", "code"),
    [
        (GOOD, "pass", 0),
        (BAD, "refuse", 1),
        ("#!/bin/bash\necho hello\n", "unknown", 0),
        ("", "unknown", 2),
        (SCRIPT.format(tensor="$1", batch=64, nodes='"$2"'), "pass", 0),
        (SCRIPT.format(tensor="${TP:?}", batch="$((DP * 8))", nodes="$SLURM_NNODES"), "pass", 0),
    ],
    ids=["good", "bad", "no training", "empty", "positional", "variables"],
)
def test_verdicts(gate, script: str, word: str, code: int):
    verdict = gate(script)
    assert (verdict.word, verdict.code) == (word, code), [f.message for f in verdict.report.findings]


def test_a_pass_lists_what_could_not_be_verified(gate):
    data = gate(SCRIPT.format(tensor="$TENSOR", batch=64, nodes=2)).as_dict()
    assert data["verdict"] == "pass"
    assert any("TENSOR" in item["because"] for item in data["unknown"])


def test_a_bounded_verdict_lists_the_refusals_that_were_lowered(gate):
    script = GOOD.replace("--bf16", "--bf16 --deterministic-mode --tp-comm-overlap --sequence-parallel")
    data = gate(script).as_dict()
    assert data["verdict"] == "pass"
    assert data["read_as"][0]["standing"] == "bounded" and len(data["read_as"][0]["releases"]) > 1
    assert [one["rule"] for one in data["lowered"]] == ["megatron/nondeterministic-features"]
    assert "from 0.19.0 on" in data["lowered"][0]["because"]
    assert gate(GOOD).as_dict()["lowered"] == []


@pytest.mark.parametrize(
    ("tag", "found"), [("megatron-lm:core_v0.19.0", "refuse"), ("megatron-lm:core_v0.13.0", "pass")]
)
def test_the_tag_of_an_image_tells_the_release(gate, tag: str, found: str):
    script = GOOD.replace("--bf16", "--bf16 --deterministic-mode --tp-comm-overlap --sequence-parallel")
    verdict = gate(script.replace("srun ", f"srun --container-image=registry.example.com/{tag} "))
    assert verdict.as_dict()["read_as"][0]["releases"] == [tag.partition("_v")[2]]
    assert verdict.word == found


def test_a_receipt_names_subject_rules_and_launcher(gate):
    data, other = gate(GOOD).as_dict(), gate(BAD).as_dict()
    assert data["tool"]["rules"] == other["tool"]["rules"] != ""
    assert data["subject"]["sha256"] != other["subject"]["sha256"]
    assert data["launcher"] == {"kind": "torchrun", "world": 16}
    json.dumps(data)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, (None, None, 16, "script")),
        ({"nodes": 2, "devices_per_node": 8}, (2, 8, 16, "scheduler")),
        ({"world": 16, "source": "flag"}, (None, None, 16, "flag")),
    ],
)
def test_the_allocation_says_where_it_comes_from(gate, given, told):
    assert tuple(gate(GOOD, allocation=Allocation.read(given)).as_dict()["allocation"].values()) == told


def test_the_scheduler_outweighs_the_script(gate):
    script = SCRIPT.format(tensor=16, batch=64, nodes="$SLURM_NNODES")
    assert gate(script).word == "pass"
    assert gate(script, allocation=Allocation.read({"nodes": 1, "devices_per_node": 8})).word == "refuse"


@pytest.mark.parametrize(
    ("asked", "nodes", "word"), [(2, None, "refuse"), (2, 4, "pass"), (4, None, "pass"), (4, 2, "refuse")]
)
def test_what_sbatch_is_given_outweighs_the_lines(gate, asked: int, nodes: int | None, word: str):
    """A launcher for 4 nodes, below lines that request as many or fewer."""
    script = SCRIPT.format(tensor=1, batch=64, nodes="4").replace("-N2", f"-N{asked}")
    given = {"nodes": nodes, "devices_per_node": 8} if nodes else {}
    assert gate(script, allocation=Allocation.read(given)).word == word


def test_a_component_is_not_judged_by_its_own_lines(gate):
    script = SCRIPT.format(tensor=16, batch=64, nodes="$SLURM_NNODES").replace("-N2", "-N1")
    assert gate(script).word == "refuse"
    verdict = gate(script, component=True)
    assert verdict.word == "pass" and not verdict.submission.allocation.known


@pytest.mark.parametrize(
    ("policies", "override", "word", "code", "recorded"),
    [
        (Policies(20), Override("ann", "debugging"), "pass", 0, ["device-count"]),
        (Policies(20), Override("ann", "  "), "refuse", 1, None),
        (Policies(20, final=frozenset({"device-count"})), Override("ann", "debugging"), "refuse", 1, None),
        (Policies(20, final=frozenset({"heads-not-divisible"})), Override("ann", "debugging"), "refuse", 1, None),
        (
            Policies(20, final=frozenset({"another-rule"})),
            Override("ann", "debugging"),
            "pass",
            0,
            ["device-count"],
        ),
        (Policies(20, report_only=True), None, "refuse", 0, None),
    ],
    ids=["overridden", "no reason", "final", "final behind another", "other final", "report only"],
)
def test_overrides(gate, policies, override, word, code, recorded):
    data = gate(BAD, policies, override=override).as_dict()
    assert (data["verdict"], data["exit"]) == (word, code)
    assert (data["override"] or {}).get("rules") == recorded


def test_memory_is_judged_where_the_device_is_said(gate):
    large = SCRIPT.format(tensor=1, batch=64, nodes=2)
    assert gate(large).word == "pass"
    assert "predicted-oom" in {
        f.rule for f in gate(large, Policies(20, device="v100")).report.findings if f.severity == "error"
    }
    assert gate(large, Policies(20, device="h200")).word == "pass"


def test_refusing_the_unknown_is_a_choice(gate):
    assert gate("echo hello\n", Policies(20, refuse_unknown=True)).code == 1
    assert gate(SCRIPT.format(tensor="$1", batch=64, nodes="$2"), Policies(20, refuse_unknown=True)).code == 0


def test_a_deadline_is_kept_and_is_no_verdict(gate):
    start = time.monotonic()
    verdict = gate(GOOD * 400, Policies(0.05))
    assert time.monotonic() - start < FOREVER / 2
    assert (verdict.code, verdict.word) == (3, "unknown") and verdict.as_dict()["deadline_ms"] == 50


def test_unreadable_is_exit_2(gate):
    assert judge(Submission(b"\xff\xfe\x00"), load(), Policies(20)).code == 2


def test_a_refusal_fits_80_columns_and_contains_the_fix(gate):
    lines = told(
        gate(SCRIPT.format(tensor=4, batch=63, nodes=2), name="a-rather-long-name-of-a-job-script-that-somebody-wrote")
    )
    assert all(len("sbatch: error: lua: " + line) <= 80 for line in lines)
    text = "\n".join(lines)
    assert (
        "the global batch size 63" in text
        and "fix: set the global batch size to" in text
        and "preflight-override=WHY" in text
    )


def test_a_refusal_is_chinese_where_the_server_is(gate):
    english = told(gate(BAD))
    with speaking(asked(["--lang", "zh"])):
        lines = told(gate(BAD))
        (empty,) = told(judge(Submission(b"", name="job"), load(), Policies(20)))
    assert lines[0] == "preflight：已拒绝，1 个错误" and lines[-1] == english[-1]
    assert all(columns("sbatch: error: lua: " + line) <= 84 for line in lines)
    assert empty == "preflight：没有结论：job: 为空：没有要检查的任务"


def test_layouts_that_would_run_are_offered(gate):
    assert "fix: change the layout:" in "\n".join(told(gate(BAD, Policies(60, advice=30))))


def test_no_override_is_offered_where_none_counts(gate):
    lines = told(gate(BAD, Policies(20, final=frozenset({"device-count"}))))
    assert "this cannot be overridden" in lines and not any("override=" in line for line in lines)


def test_the_way_out_is_the_one_of_the_command_that_was_refused(gate):
    assert told(gate(BAD))[-1] == '  sbatch --comment="preflight-override=WHY" ...'
    assert told(gate(BAD, change=True))[-1] == '  scontrol update ... comment="preflight-override=WHY"'


def test_escape_sequences_of_strangers_do_not_reach_the_terminal(gate):
    lines = told(gate(BAD.replace("TP=3", "TP=3 # \x1b[2J\x1b]0;x\x07"), name="x\x1b[31m"))
    assert "\x1b" not in "".join(lines) and "\x07" not in "".join(lines)


def test_the_command_writes_json_to_stdout_people_to_stderr_and_an_audit_line(tmp_path):
    log = tmp_path / "audit.jsonl"
    words = [
        sys.executable,
        "-m",
        "preflight",
        "gate",
        "--script",
        "-",
        "--override",
        "a test",
        "--user",
        "ann",
        "--audit",
        str(log),
        "--timeout",
        "50",
    ]
    ran = subprocess.run(words, input=BAD, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 0 and json.loads(ran.stdout)["override"]["user"] == "ann"
    assert ran.stderr.startswith("preflight: overridden and recorded, with 1 error")
    line = json.loads(log.read_text())
    assert (line["user"], line["verdict"], line["errors"]) == ("ann", "pass", ["device-count"])


def test_nothing_beside_the_script_is_opened(gate, tmp_path):
    (tmp_path / "model_config.yaml").write_text("num_layers: 33\n")
    script = (
        f"#!/bin/bash\nsource {tmp_path}/env.sh\ntorchrun pretrain_gpt.py --yaml-cfg {tmp_path}/model_config.yaml\n"
    )
    assert gate(script).code == 0


def test_files_that_a_script_names_are_opened_where_the_client_says_so(tmp_path, monkeypatch, capsys):
    from preflight.cli import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "configs/run.yaml").write_text((ROOT / "examples/mindformers/run_llama2_7b.yaml").read_text())
    (tmp_path / "scripts/job.sh").write_text(
        "#!/bin/bash\nmsrun --worker_num 16 --local_worker_num 8 run_mindformer.py --config configs/run.yaml\n"
    )
    assert run(["gate", "--script", "scripts/job.sh", "-f", "text", "--timeout", "60"]) == 0
    assert run(["gate", "--script", "scripts/job.sh", "-f", "text", "--timeout", "60", "--follow"]) == 1
    assert "configs/run.yaml:56" in capsys.readouterr().err
