"""Kubernetes manifests as any other config: checked, shown, fixed and suppressed at their own lines."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path
from time import thread_time

import pytest
from kubernetes_manifests import FOLDED, KINDS, LIST, SCRIPT

import preflight
from preflight.cli import run
from preflight.source.source_file import Source

FAULTS = {"megatron/positions-below-sequence": "2048", "megatron/recompute-full-without-method": "full"}


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)

    def called(*words: str, stdin: str = "") -> tuple[int, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = run([*words])
        return code, capsys.readouterr().out

    return called


@pytest.mark.parametrize("kind", KINDS)
def test_findings_stand_where_the_manifest_says_it(kind: str) -> None:
    text = KINDS[kind]
    found = {finding.rule: finding for finding in preflight.check_text(text, name="job.yaml").findings}
    source = Source(text, "job.yaml")
    for rule, typed in FAULTS.items():
        finding = found[rule]
        assert source.line(finding.line)[finding.column - 1 :].startswith(typed)
        assert (finding.path, finding.span.source.text) == ("job.yaml", text)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_fixed_is_changed_in_its_place_and_nothing_else(kind: str, call, tmp_path: Path) -> None:
    text = KINDS[kind]
    (tmp_path / "job.yaml").write_text(text)
    call("fix", "--unsafe", "job.yaml")
    after = (tmp_path / "job.yaml").read_text()
    left = {f.rule for f in preflight.check_text(after, name="job.yaml").findings}
    assert not left & {*FAULTS, "megatron/recompute-full-without-layers"}
    was, now = (Counter(re.findall(r"[^\s,\"'\[\]]+", part)) for part in (text.replace("2048", "4096"), after))
    assert not was - now
    assert set(now - was) <= {"--recompute-num-layers", "1", "--recompute-method", "uniform", "-", "\\"}


def test_an_option_comes_in_as_items_of_the_list(call, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(LIST)
    call("fix", "job.yaml")
    added = """\
            - --bf16
            - --recompute-method
            - "uniform"
            - --recompute-num-layers
            - "1"
          resources"""
    assert added in (tmp_path / "job.yaml").read_text()


def test_each_pod_gets_its_layout(call, tmp_path: Path) -> None:
    master = SCRIPT[SCRIPT.index("    Master:") :].replace("--lr 1e-4", "--lr 1e-4 --tensor-model-parallel-size 3")
    text = SCRIPT[: SCRIPT.index("    Master:")] + master + master.replace("Master", "Worker")
    (tmp_path / "job.yaml").write_text(text)
    # positions, recomputation and layout of the one pod, then those of the other
    assert call("fix", "--interactive", "job.yaml", stdin="1\n1\n1\n1\n1\n3\n")[0] == 0
    fixed = (tmp_path / "job.yaml").read_text()
    assert re.findall(r"--tensor-model-parallel-size (\d)", fixed) == ["4", "8"]


@pytest.mark.parametrize("kind", ["list", "folded", "literal"])
def test_a_finding_is_suppressed_by_a_comment(kind: str) -> None:
    comment = "# preflight: ignore[megatron/positions-below-sequence] it is rotary"
    line = {"list": '            - "2048"', "folded": "        - >-", "literal": "              torchrun"}[kind]
    indent = line[: len(line) - len(line.lstrip())]
    text = KINDS[kind].replace(line, f"{indent}{comment}\n{line}")
    rules = {finding.rule for finding in preflight.check_text(text, name="job.yaml").findings}
    assert "megatron/recompute-full-without-method" in rules
    assert not rules & {"megatron/positions-below-sequence", "unused-suppression"}


def test_folders_stdin_show_and_memory_take_them_too(call, tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "job.yaml").write_text(LIST)
    assert call("check", "jobs", "-f", "concise")[1].startswith("jobs/job.yaml:")
    assert call("check", "-", "--stdin-filename", "a/job.yaml", "-f", "concise", stdin=LIST)[1].startswith(
        "a/job.yaml:"
    )
    assert "TP 1 · PP 1 · CP 1 on 8 devices" in call("show", "jobs/job.yaml")[1]
    assert "GiB" in call("memory", "jobs/job.yaml")[1]


OTHERS = {
    "objects": "apiVersion: v1\nkind: ConfigMap\n---\napiVersion: v1\nkind: Service\n",
    "no training": LIST[: LIST.index("            - torchrun")] + "            - sleep\n            - infinity\n",
    "no command": LIST[: LIST.index("          command:")],
    "Helm": "{{- if .Values.on }}\n" + LIST + "{{- end }}\n",
    "Helm, broken YAML": LIST.replace('"2048"', "{{ .Values.positions }}").replace(
        "name: pretrain", "name: {{ .Release.Name }}"
    ),
    "Helm, readable": FOLDED.replace("--bf16", "{{- if .Values.bf16 }} --bf16 {{- end }}"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_manifests_and_templates_are_skipped(name: str, call, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(OTHERS[name])
    assert call("check", "job.yaml") == (2, "")
    assert call("check", "--allow-unclaimed", "job.yaml")[0] == 0
    (tmp_path / "ours.yaml").write_text(LIST)
    assert call("check", ".", "--exit-zero")[0] == 0
    assert call("check", "job.yaml", "ours.yaml", "--exit-zero")[0] == 0


def test_a_value_that_a_template_puts_in_is_unknown() -> None:
    text = FOLDED.replace(
        "--num-attention-heads 32",
        "--num-attention-heads {{ .Values.heads }} --tensor-model-parallel-size {{ .Values.tensor }}",
    )
    report = preflight.check_text(text, name="job.yaml")
    assert {finding.rule for finding in report.findings if finding.severity == "error"} == set(FAULTS)
    listed = LIST.replace('"32"', "${LAYERS}").replace('"4096"', "<tokens>")
    assert {finding.rule for finding in preflight.check_text(listed, name="job.yaml").findings} == {
        "megatron/recompute-full-without-method"
    }


def test_pods_of_a_plain_job_count_where_an_index_tells_them_apart() -> None:
    def world(more: str) -> object:
        text = LIST.replace("spec:\n  template:", f"spec:\n{more}  template:", 1).replace(
            "--nproc-per-node=8", "--nnodes=$(NODES)"
        )
        return preflight.check_text(text, name="job.yaml").jobs[0].plan.layout.world.raw

    assert world("  parallelism: 2\n  completionMode: Indexed\n") == 16
    assert not isinstance(world("  parallelism: 2\n"), int)


def test_a_job_among_many_objects_is_found_in_time_and_where_it_stands() -> None:
    others = "".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{n}}}\ndata: {{text: '{'x' * 2000}'}}\n---\n"
        for n in range(450)
    )
    start = thread_time()
    report = preflight.check_text(others + FOLDED, name="all.yaml")
    assert thread_time() - start < 4
    found = next(finding for finding in report.findings if finding.rule == "megatron/positions-below-sequence")
    assert found.line == others.count("\n") + 13
    assert preflight.check_text(others, name="all.yaml").skipped == ("all.yaml",)


@pytest.mark.parametrize(
    ("text", "place"),
    [("{}---\nkind: Job\napiVersion: [batch/v1\n", (44, 1)), ("{}--- {{kind: Job, apiVersion: ]}}\n", (41, 29))],
)
def test_what_is_broken_in_one_of_several_documents_is_told_at_its_place(text: str, place: tuple[int, int]) -> None:
    report = preflight.check_text(text.format(LIST + "---\n" + "# nothing\n" * 9), name="job.yaml")
    assert [(finding.rule, finding.line, finding.column) for finding in report.findings] == [("unreadable", *place)]


def test_documents_without_a_word_do_not_count(call, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("# first\n---\n" + OTHERS["no command"] + "---\n# the end\n")
    (tmp_path / "ours.yaml").write_text("---\n" + LIST)
    assert call("check", "job.yaml", "ours.yaml", "--exit-zero")[0] == 0


def test_what_master_and_worker_have_alike_is_one_finding_with_both_places(call, tmp_path: Path) -> None:
    master = SCRIPT[SCRIPT.index("    Master:") :]
    text = SCRIPT[: SCRIPT.index("    Master:")] + master + master.replace("Master", "Worker")
    (tmp_path / "job.yaml").write_text(text)
    code, out = call("check", "job.yaml")
    assert code == 1
    for rule in FAULTS:
        assert out.count(f"[{rule}]") == 1
    assert out.count("same message here") >= len(FAULTS)
    call("fix", "--unsafe", "job.yaml")
    assert "2048" not in (tmp_path / "job.yaml").read_text(), "both are fixed"


def test_what_differs_between_pods_stays_two_findings(call, tmp_path: Path) -> None:
    master = SCRIPT[SCRIPT.index("    Master:") :]
    worker = master.replace("Master", "Worker").replace("2048", "1024")
    (tmp_path / "job.yaml").write_text(SCRIPT[: SCRIPT.index("    Master:")] + master + worker)
    assert call("check", "job.yaml", "-f", "concise")[1].count("[megatron/positions-below-sequence]") == 2
