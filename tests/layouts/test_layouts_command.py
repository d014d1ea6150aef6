"""The command `preflight layouts`: accepted files, output, refused calls."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import preflight
from preflight.cli import run

EXAMPLE = Path(__file__).parents[2] / "examples/megatron/sound_8b.yaml"
DEVICES = ("--world-size", "32", "--device", "h100")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, tmp_path / "run.yaml")
    return tmp_path / "run.yaml"


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["layouts", *words])
    return code, *capsys.readouterr()


def test_a_layout_is_written_once_and_known_again(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ran(capsys, "run.yaml", *DEVICES, "--apply", "1", "--show", "1")
    assert (code, err) == (0, "preflight: run.yaml: layout 1 was written\n")
    written = config.read_text()
    assert written != EXAMPLE.read_text()
    code, _, err = ran(capsys, "run.yaml", *DEVICES, "--apply", "1", "--show", "1")
    assert (code, err) == (0, "preflight: run.yaml: already has layout 1; nothing was written\n")
    assert config.read_text() == written


@pytest.mark.parametrize(
    "words",
    [
        ("--apply", "-1"),
        ("--show", "0"),
        ("--run", "0"),
        ("-f", "sarif"),
        ("-o", "none/out.txt"),
        ("--keep", "tensor=many"),
    ],
)
def test_wrong_usage_writes_nothing(config: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    code, out, err = ran(
        capsys, "run.yaml", *DEVICES, "--max", "tensor=1", "--max", "pipeline=1", "--max", "context=1", *words
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert config.read_text() == EXAMPLE.read_text()


def test_files_of_others_in_a_folder_pass_and_broken_configs_are_told_of(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--show", "1", "--max", "pipeline=1", "--max", "context=1")
    (config.parent / "chart.yaml").write_text("kind: [\n")
    code, out, err = ran(capsys, ".", *DEVICES, *few, "-f", "json")
    assert (code, [item["path"] for item in json.loads(out)["files"]], err) == (0, ["run.yaml"], "")
    (config.parent / "broken.yaml").write_text(EXAMPLE.read_text() + "last: [1\n")
    code, _, err = ran(capsys, ".", *DEVICES, *few)
    assert (code, err.startswith("preflight: broken.yaml:")) == (2, True)
    assert ran(capsys, "chart.yaml")[0] == 2


def test_the_table_says_whose_speed_is_assumed_and_where_nothing_is_left(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--world-size", "32", "--show", "1", "--max", "pipeline=1", "--max", "context=1")
    assert "no device is named" in ran(capsys, "run.yaml", *few)[1]
    assert "no device is named" not in ran(capsys, "run.yaml", *few, "--device", "h100")[1]
    code, out, _ = ran(capsys, "run.yaml", *few, "--keep", "tensor=3")
    assert (code, "rejected" in out, "satisfies --keep and --max" in out) == (1, False, True)
    code, out, _ = ran(capsys, "run.yaml", *few, "-o", "table.txt")
    assert (code, out) == (0, "")
    assert (config.parent / "table.txt").read_text().startswith("run.yaml: ")


def test_an_error_that_no_layout_cures_is_said_to_be_one(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text("".join(line for line in EXAMPLE.read_text().splitlines(keepends=True) if "--lr:" not in line))
    code, out, _ = ran(capsys, "run.yaml", *DEVICES, "--show", "1", "--max", "pipeline=1", "--max", "context=1")
    assert (code, "1 shown" in out) == (0, True)
    assert "no layout fixes these errors of the run (megatron/required-argument); `preflight check` shows them" in out


@pytest.mark.slow
def test_the_present_layout_comes_first_and_others_are_of_different_kinds(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ran(capsys, "run.yaml", *DEVICES, "--show", "5", "-f", "json")
    (found,) = json.loads(out)["files"]
    now, others = found["current"], [layout["sizes"] for layout in found["layouts"]]
    assert (code, now["sizes"]["tensor"], now["sizes"]["pipeline"]) == (0, 4, 2)
    assert now["rank"] > 1 and now["seconds"] > found["layouts"][0]["seconds"]
    assert len({(one["tensor"], one["pipeline"], one["expert"]) for one in others}) == 5
    classes = [layout["class"] for layout in found["layouts"]]
    assert classes == sorted(classes)
    text = ran(capsys, "run.yaml", *DEVICES, "--show", "1")[1].splitlines()
    assert text[2].split()[:3] == ["now", "4", "2"]
    rank = f"the current layout is rank {now['rank']} by estimated time among the layouts"
    assert any(line.startswith(rank) for line in text)


@pytest.mark.slow
def test_the_layout_that_is_shown_first_is_first_again_once_it_is_written(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(capsys, "run.yaml", *DEVICES, "--show", "1", "--apply", "1")
    _, out, _ = ran(capsys, "run.yaml", *DEVICES, "--show", "1", "-f", "json")
    (found,) = json.loads(out)["files"]
    assert found["current"]["rank"] <= 5
    assert found["current"]["seconds"] == pytest.approx(found["layouts"][0]["seconds"])


SHORT = [("tp", "tensor"), ("mbs", "micro"), ("vpp", "virtual"), ("micro_batch_num", "micro_batches"), ("dp", "data")]


@pytest.mark.parametrize(("short", "name"), SHORT)
def test_sizes_have_their_usual_short_names(
    config: Path, capsys: pytest.CaptureFixture[str], short: str, name: str
) -> None:
    _, out, err = ran(capsys, "run.yaml", *DEVICES, "--show", "2", "--keep", f"{short}=2", "-f", "json")
    sizes = [layout["sizes"][name] for layout in json.loads(out)["files"][0]["layouts"]]
    assert (set(sizes), err) == ({2}, "")


def test_recomputation_and_sequence_parallelism_can_be_kept(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep = ("--keep", "recompute=full,tp=2,sp=0", "--show", "2", "-f", "json")
    _, out, _ = ran(capsys, "run.yaml", *DEVICES, *keep)
    sizes = [layout["sizes"] for layout in json.loads(out)["files"][0]["layouts"]]
    assert {(one["recompute"], one["sequence_parallel"]) for one in sizes} == {("full", False)}
    ran(capsys, "run.yaml", *DEVICES, *keep, "--apply", "1")
    (job,) = preflight.check(config, world_size=32, device="h100").jobs
    assert (job.plan.layout.sequence_parallel.raw, job.plan.recompute.mode.raw) == (False, "full")
    assert "sizes are tp, pp, vpp" in ran(capsys, "run.yaml", *DEVICES, "--keep", "foo=3")[2]


def test_a_present_layout_that_does_not_fit_has_no_place_among_those_that_do(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = EXAMPLE.read_text().replace("--tensor-model-parallel-size: 4", "--tensor-model-parallel-size: 1")
    config.write_text(text.replace("--pipeline-model-parallel-size: 2", "--pipeline-model-parallel-size: 1"))
    out = ran(capsys, "run.yaml", "--world-size", "8", "--device", "h100", "--show", "1")[1]
    assert "the current layout does not fit; " in out and "GiB are missing" in out


@pytest.mark.slow
def test_the_old_name_of_keep_works_and_says_its_new_one(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ran(capsys, "run.yaml", *DEVICES, "--show", "1", "--fix", "tensor=2")
    assert (code, err) == (0, "preflight: --fix is called --keep now\n")
    assert out == ran(capsys, "run.yaml", *DEVICES, "--show", "1", "--keep", "tp=2")[1]


def test_layouts_on_several_numbers_of_devices(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ran(capsys, "run.yaml", "--device", "h100", "--scale", "16,32,64", "--plot", "s.svg", "-f", "json")
    points = json.loads(out)["scale"]
    rates = [point["tokens_per_second"] for point in points]
    assert (code, [point["devices"] for point in points], rates) == (0, [16, 32, 64], sorted(rates))
    assert rates[2] < 4 * rates[0] and (config.parent / "s.svg").read_text().count("<svg") == 1
    assert "efficiency" in ran(capsys, "run.yaml", "--device", "h100", "--scale", "32")[1]
    assert ran(capsys, "run.yaml", "--device", "h100", "--scale", "many")[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize(("device", "recipe"), [("h100", "tensorwise"), ("b200", "mxfp8")])
def test_fp8_is_written_with_the_recipe_of_the_device(
    config: Path, capsys: pytest.CaptureFixture[str], device: str, recipe: str
) -> None:
    few = ("--world-size", "32", "--device", device, "--show", "1", "--fp8", "-f", "json")
    (found,) = json.loads(ran(capsys, "run.yaml", *few, "--apply", "1")[1])["files"]
    (best,) = found["layouts"]
    assert best["seconds"] < 0.85 * best["seconds_in_16_bits"] and best["fp8_seconds"] == best["seconds"]
    assert "--fp8-format: hybrid" in config.read_text()
    (job,) = preflight.check(config, world_size=32, device=device).jobs
    assert job.plan.precision.fp8.raw == recipe
    assert preflight.estimate_step_time(job).seconds == pytest.approx(best["seconds"])
    out = ran(capsys, "run.yaml", *few[:-2])[1]
    assert f"--fp8 changes nothing: the run already computes in FP8 ({recipe})" in out


@pytest.mark.slow
def test_fp8_that_cannot_be_is_explained(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--show", "1", "--fp8", "--world-size", "32")
    a100 = ran(capsys, "run.yaml", *few, "--device", "a100")[1]
    assert "--fp8 changes nothing: A100-80 does not compute in FP8" in a100
    config.write_text(EXAMPLE.read_text().replace("--bf16: true", "--bf16: true\n  --transformer-impl: local"))
    local = ran(capsys, "run.yaml", *few, "--device", "h100")[1]
    assert "--fp8 changes nothing: the layers of this run do not compute in FP8" in local


def test_uneven_virtual_stages_are_written_as_a_layout(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--keep", "tp=1", "--keep", "pp=4", "--keep", "vpp=2", "--show", "1")
    assert "* 1: layers per stage [" in ran(capsys, "run.yaml", *DEVICES, *few)[1]
    _, out, _ = ran(capsys, "run.yaml", *DEVICES, *few, "--apply", "1", "-f", "json")
    sizes = json.loads(out)["files"][0]["layouts"][0]["sizes"]
    rows = tuple(tuple(row) for row in sizes["chunks"])
    assert sum(map(sum, rows)) == 32 and sum(row[-1] for row in rows) < sum(row[0] for row in rows)
    assert "--pipeline-model-parallel-layout: 'E" in config.read_text()
    (job,) = preflight.check(config, world_size=32, device="h100").jobs
    assert job.plan.layout.stages.raw == rows


OLD_SCRIPT = """torchrun --nproc_per_node 8 pretrain_gpt.py \\
    --tensor-model-parallel-size 1 --pipeline-model-parallel-size 2 \\
    --num-layers 40 --hidden-size 2560 --ffn-hidden-size 6912 --num-attention-heads 20 --seq-length 4096 \\
    --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --lr 1e-6 --train-iters 20 \\
    --tokenizer-type PretrainedFromHF --tokenizer-name-or-path ./model --use-distributed-optimizer --bf16 --swiglu \\
    --use-flash-attn --data-path data --position-embedding-type rope
"""


def test_an_older_release_counts_the_layers_of_virtual_stages_and_a_hidden_vocabulary_is_assumed(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = config.parent / "run.sh"
    script.write_text(OLD_SCRIPT)
    few = ("run.sh", "--device", "910b1", "--target", "mindspeed-llm@1.0.0", "--keep", "pp=2", "--keep", "vpp=10")
    code, out, _ = ran(capsys, *few, "--show", "1", "--apply", "1")
    assert (code, "assumed: a vocabulary size of 64000" in out) == (0, True)
    assert "--num-layers-per-virtual-pipeline-stage 2" in script.read_text()
    assert (
        ran(capsys, "run.sh", "--device", "910b1", "--target", "mindspeed-llm@1.0.0")[1].splitlines()[2].split()[3]
        == "10"
    )


@pytest.mark.slow
def test_the_devices_of_a_node_decide_how_far_tensor_parallelism_goes(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {}
    for node in ("4", "8"):
        said = ("--nodes", str(32 // int(node)), "--devices-per-node", node, "--device", "h100", "--show", "50")
        found = json.loads(ran(capsys, "run.yaml", *said, "-f", "json")[1])["files"][0]
        sizes[node] = max(layout["sizes"]["tensor"] for layout in found["layouts"])
    assert sizes == {"4": 4, "8": 8}


SEVENTY = """export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nnodes 8 --nproc-per-node 8 pretrain_gpt.py --num-layers 80 --hidden-size 8192 --num-attention-heads 64 \\
  --ffn-hidden-size 28672 --group-query-attention --num-query-groups 8 --seq-length 8192 --swiglu --bf16 --lr 1e-4 \\
  --max-position-embeddings 8192 --vocab-size 128256 --tokenizer-type NullTokenizer --disable-bias-linear --mock-data \\
  --normalization RMSNorm --untie-embeddings-and-output-weights --train-iters 10 --use-distributed-optimizer \\
  --attention-dropout 0 --hidden-dropout 0 --micro-batch-size 1 --global-batch-size 128 --sequence-parallel \\
  --tensor-model-parallel-size 4 --pipeline-model-parallel-size 8 --position-embedding-type rope \\
  --fp8-format hybrid --fp8-recipe tensorwise
"""


def test_a_slow_last_stage_gets_fewer_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.sh").write_text(SEVENTY)
    words = ("train.sh", "--device", "h100", "--target", "megatron@0.19.0", "--keep", "tp=4,pp=8,vpp=1,cp=1")
    _, out, _ = ran(capsys, *words, "--show", "1", "-f", "json")
    (found,) = json.loads(out)["files"]
    stages = found["layouts"][0]["sizes"]["stages"]
    assert sum(stages) == 80 and stages[-1] < stages[3] and len(set(stages[1:-1])) == 1
    assert found["layouts"][0]["seconds"] < 0.99 * found["current"]["seconds"]
    assert {"--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"} <= set(
        found["layouts"][0]["changes"]
    )
