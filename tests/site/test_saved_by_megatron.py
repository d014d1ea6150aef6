"""Checkpoints that the real library has written, at four releases: complete, truncated, and compared with runs for
which loading by the real `load_checkpoint` was recorded. `README.md` describes how both were created."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Cli

from preflight.job import Checkpoint
from preflight.site.isolated_file_reading import Eyes
from preflight.site.megatron_checkpoint import read_checkpoint

HERE = Path(__file__).parent
RELEASES = ("0.12.1", "0.15.3", "0.17.0", "0.19.0")
RECORDED = json.loads((HERE / "verdicts.json").read_text(encoding="utf-8"))
QUIET = 40
"""Runs of a release of the quick test; the slow one has all."""


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder by release with the checkpoints of it."""
    found = tmp_path_factory.mktemp("saved")
    for release in RELEASES:
        with tarfile.open(HERE / f"megatron-{release}.tar.xz") as archive:
            for member in archive:
                assert member.isdir() or (member.isfile() and ".." not in member.name)
                archive.extract(
                    member, found / release, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {})
                )  # type: ignore[arg-type]
    return found


def read(path: Path, step: int = 0, fsdp: bool = False) -> Checkpoint:
    return read_checkpoint(Eyes(), str(path), "load", (), step, fsdp)


KINDS = (
    "gpt-torch_dist",
    "gpt-torch",
    "llama-torch_dist",
    "moe-torch_dist",
    "llama-torch",
    "moe-torch",
    "llama-torch_dcp",
)


@pytest.mark.parametrize("release", RELEASES)
def test_kind_iteration_and_arguments_are_read(places: Path, release: str) -> None:
    for name in KINDS:
        found = read(places / release / name)
        saved = dict(found.arguments)
        assert (found.fault, found.kind, found.iteration, found.release) == ("", name.partition("-")[2], 100, False), (
            name
        )
        assert (saved["num_layers"], saved["hidden_size"], saved["consumed_train_samples"]) == (2, 64, 800), name
        assert len(saved) > 450, name
        assert saved["params_dtype"] == "torch.float32" and saved["swiglu"] is (not name.startswith("gpt")), name


def test_shapes_are_those_of_the_networks(places: Path) -> None:
    for release in RELEASES:
        shapes = dict(read(places / release / "moe-torch_dist").shapes)
        assert shapes["decoder.layers.mlp.experts.experts.linear_fc1.weight"] == (2, 4, 96, 64), release
        assert shapes["decoder.layers.self_attention.linear_qkv.weight"] == (2, 128, 64), release
        shapes = dict(read(places / release / "llama-torch").shapes)
        assert shapes["decoder.layers.*.self_attention.linear_qkv.weight"] == (128, 64), release


@pytest.fixture
def copied(places: Path, tmp_path: Path) -> Iterator[Any]:
    def copy(release: str, name: str) -> Path:
        return Path(
            shutil.copytree(places / release / name, tmp_path / f"{release}-{name}-{len(os.listdir(tmp_path))}")
        )

    yield copy


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_cut_off_is_known(copied: Any, release: str) -> None:
    """Every file that a save writes, missing or without its end."""
    for name in ("llama-torch_dist", "llama-torch", "llama-torch_dcp"):
        whole = copied(release, name)
        files = [path.relative_to(whole) for path in sorted((whole / "iter_0000100").rglob("*")) if path.is_file()]
        for file in files:
            for short in (False, True):
                place = copied(release, name)
                (place / file).write_bytes((place / file).read_bytes()[:-40]) if short else (place / file).unlink()
                fault = read(place).fault
                wanted = {"cut-off", "unread"} if short or file.name == ".metadata" else {"cut-off"}
                if name == "llama-torch_dcp" and file.name == ".metadata" and not short:
                    wanted = {"cut-off", "kind"}
                if file.name == "common.pt" and not short:
                    wanted = {"unread"}  # since 0.19 there is none
                assert fault in wanted, (name, str(file), short, fault)


@pytest.mark.parametrize("release", RELEASES)
def test_trackers(copied: Any, release: str) -> None:
    place = copied(release, "llama-torch_dist")
    tracker = place / "latest_checkpointed_iteration.txt"
    tracker.write_text("200\n")
    assert (read(place).fault, read(place, step=100).fault) == ("no-step", "")
    tracker.write_text("release")
    (place / "iter_0000100").rename(place / "release")
    found = read(place)
    assert (found.fault, found.release, found.iteration) == ("", True, 0)
    tracker.write_text("none")
    assert read(place).fault == "tracker"
    tracker.unlink()
    assert read(place).fault == "no-tracker"


def runs(release: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """The checkpoint, the name, the verdict and the words of each recorded run."""
    for saved, verdicts in RECORDED["verdicts"][release].items():
        for name, verdict in verdicts.items():
            base, kind = saved.split("-")
            change = RECORDED["mutations"][name.removesuffix("-ft")]
            extra = ["--finetune"] if name.endswith("-ft") else []
            yield (
                saved,
                name,
                verdict,
                [*changed(RECORDED["bases"][base].split(), change), "--ckpt-format", kind, *extra],
            )


def changed(words: list[str], change: dict[str, Any]) -> list[str]:
    """Words with options set, added and taken away."""
    for name, value in change["set"].items():
        if name in words:
            at = words.index(name)
            del words[at : at + 2]
        words += [name, value] if value is not None else []
    return [word for word in words if word not in change["remove"]] + [w for w in change["add"] if w not in words]


def strict_runs(release: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """The same of runs with each value of `--dist-ckpt-strictness`."""
    for base, mutations in RECORDED["strictness"][release].items():
        for name, verdicts in mutations.items():
            words = changed(RECORDED["bases"][base].split(), RECORDED["mutations"][name])
            for value, verdict in verdicts.items():
                given = [*words, "--ckpt-format", "torch_dist", "--dist-ckpt-strictness", value]
                if verdict != "rng_state":  # it is in the checkpoint, --no-load-rng wants it not: not compared
                    yield f"{base}-torch_dist", f"{name} {value}", verdict, given


UNLIKE = {
    ("0.12.1", "torch", "layers-ft"),
    ("0.12.1", "torch", "moe-freq"),
    ("0.12.1", "torch", "moe-freq-ft"),
    ("0.12.1", "zarr", "moe-freq"),
    ("0.15.3", "zarr", "moe-freq"),
}
"""Checkpoints whose layers have other names than the run's, which is not compared."""


def judged(
    cli: Cli, places: Path, work: Path, release: str, chosen: list[tuple[str, str, str, list[str]]]
) -> list[str]:
    """The runs for which the verdict on loading is another one than the real one."""
    scripts = []
    for at, (saved, _, _, words) in enumerate(chosen):
        script = work / f"{at}.sh"
        script.write_text(
            f"torchrun --nproc-per-node 1 pretrain_gpt.py {shlex.join(words)} --load {places / release / saved}\n"
        )
        scripts.append(str(script))
    report = json.loads(cli("check", *scripts, "--site", "--target", f"megatron@{release}", "-f", "json").out)
    errors = [one for one in report["findings"] if one["severity"] == "error"]
    wrong = []
    for script, (saved, name, verdict, _) in zip(scripts, chosen, strict=True):
        told = [one["message"] for one in errors if Path(one["path"]).name == Path(script).name]
        if bool(told) != bool(verdict) and (release, saved.split("-")[1], name) not in UNLIKE:
            wrong.append(f"{saved} {name}: {verdict or 'loads'}, {told}")
    return wrong


@pytest.mark.halved
@pytest.mark.parametrize("release", RELEASES)
def test_runs_are_refused_as_the_real_loader_refuses_them(
    real_cli: Cli, places: Path, tmp_path: Path, release: str
) -> None:
    chosen = random.Random(38).sample(list(runs(release)), QUIET)
    assert not judged(real_cli, places, tmp_path, release, chosen)


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(HERE / f"{name}.tar.xz") as archive:
        for member in archive:
            assert member.isdir() or (member.isfile() and ".." not in member.name)
            archive.extract(member, folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # type: ignore[arg-type]
    return folder


@pytest.fixture(scope="session")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder by release with checkpoints of the kind zarr, which the releases up to 0.15 load."""
    return unpacked("megatron-zarr", tmp_path_factory.mktemp("zarr"))


@pytest.mark.halved
@pytest.mark.parametrize("release", sorted(RECORDED["zarr"]))
def test_zarr_is_read_and_refused_as_the_real_loader_refuses_it(
    real_cli: Cli, arrays: Path, tmp_path: Path, release: str
) -> None:
    chosen = []
    for saved, verdicts in RECORDED["zarr"][release].items():
        found = read(arrays / release / saved)
        assert (found.fault, found.kind, found.iteration) == ("", "zarr", 100)
        assert dict(found.arguments)["num_layers"] == 2 and len(found.arguments) > 450
        assert dict(found.shapes)["decoder.layers.self_attention.linear_qkv.weight"][::2] == (2, 64)
        for name, verdict in verdicts.items():
            words = changed(RECORDED["bases"][saved.split("-")[0]].split(), RECORDED["mutations"][name])
            chosen.append((saved, name, verdict, words))
    assert not judged(real_cli, arrays, tmp_path, release, chosen)


def test_zarr_that_is_cut_off_is_known(arrays: Path, tmp_path: Path) -> None:
    whole = arrays / "0.15.3" / "llama-zarr"
    inside = [path.relative_to(whole) for path in sorted((whole / "iter_0000100").rglob("*")) if path.is_file()]
    for file in [one for one in inside if one.name in ("common.pt", "metadata.json", ".zarray")]:
        place = Path(shutil.copytree(whole, tmp_path / str(len(os.listdir(tmp_path)))))
        (place / file).unlink()
        assert read(place).fault == "cut-off", file


@pytest.mark.parametrize("release", ["0.16.0", "0.17.0", "0.19.0"])
def test_releases_without_zarr_do_not_load_it(real_cli: Cli, arrays: Path, tmp_path: Path, release: str) -> None:
    """The real loader of each ends with an exception, with and without `--finetune`."""
    shutil.copytree(arrays / "0.15.3", tmp_path / release)
    words = RECORDED["bases"]["llama"].split()
    chosen = [("llama-zarr", "same", "died", [*words, *extra]) for extra in ([], ["--finetune"])]
    assert not judged(real_cli, tmp_path, tmp_path, release, chosen)


FSDP = "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --ckpt-format fsdp_dtensor"


@pytest.mark.parametrize("release", ["0.17.0", "0.19.0"])
def test_sharded_tensors_of_torch_are_read(real_cli: Cli, tmp_path: Path, release: str) -> None:
    """`save_checkpoint` with --ckpt-format fsdp_dtensor has written them."""
    place = unpacked("megatron-fsdp", tmp_path) / release / "gpt-fsdp_dtensor"
    found = read(place, fsdp=True)
    assert (found.fault, found.kind, found.iteration) == ("", "fsdp_dtensor", 100)
    assert dict(found.arguments)["num_layers"] == 2 and len(found.arguments) > 450
    asked = []
    for at, layers in enumerate(("2", "4")):
        words = changed(RECORDED["bases"]["gpt"].split(), {"set": {"--num-layers": layers}, "add": [], "remove": []})
        script = tmp_path / f"{at}.sh"
        script.write_text(f"torchrun --nproc-per-node 1 pretrain_gpt.py {shlex.join(words)} {FSDP} --load {place}\n")
        asked.append(str(script))
    report = json.loads(real_cli("check", *asked, "--site", "--target", f"megatron@{release}", "-f", "json").out)
    refused = {Path(one["path"]).name for one in report["findings"] if one["rule"].startswith("loaded-checkpoint-re")}
    broken = [one for one in report["findings"] if one["rule"] == "loaded-checkpoint-broken"]
    assert (refused, broken) == ({"1.sh"}, [])
    data = next((place / "iter_0000100").glob("*.distcp"))
    data.write_bytes(data.read_bytes()[:-40])
    assert read(place, fsdp=True).fault == "cut-off"


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_every_run_is_refused_as_the_real_loader_refuses_it(
    real_cli: Cli, places: Path, tmp_path: Path, release: str
) -> None:
    assert not judged(real_cli, places, tmp_path, release, list(runs(release)))


@pytest.mark.parametrize("release", sorted(RECORDED["strictness"]))
def test_each_strictness_refuses_as_in_the_real_loader(
    real_cli: Cli, places: Path, tmp_path: Path, release: str
) -> None:
    chosen = list(strict_runs(release))
    assert not judged(real_cli, places, tmp_path, release, random.Random(4).sample(chosen, QUIET))


@pytest.mark.slow
@pytest.mark.parametrize("release", sorted(RECORDED["strictness"]))
def test_every_strictness_refuses_as_in_the_real_loader(
    real_cli: Cli, places: Path, tmp_path: Path, release: str
) -> None:
    assert not judged(real_cli, places, tmp_path, release, list(strict_runs(release)))


MEASURE = """
import sys, time
from preflight.site.isolated_file_reading import Eyes
from preflight.site.megatron_checkpoint import read_checkpoint
best = 9.0
for _ in range(10):
    begin = time.process_time()
    found = read_checkpoint(Eyes(), sys.argv[1], "load", (), 0, False)
    best = min(best, time.process_time() - begin)
assert found.arguments
status = open("/proc/self/status").read() if sys.platform == "linux" else "VmHWM: 0"
print(best, int(status.partition("VmHWM:")[2].split()[0]) / 1024)
"""


def test_a_checkpoint_is_read_in_little_time_and_memory(places: Path) -> None:
    for release, name in (("0.12.1", "llama-torch"), ("0.17.0", "gpt-torch_dist"), ("0.19.0", "moe-torch_dist")):
        words = [sys.executable, "-c", MEASURE, str(places / release / name)]
        seconds, megabytes = map(
            float, subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
        )
        assert seconds < 0.1, (release, name, seconds)
        assert megabytes < 25, (release, name, megabytes)


def test_the_run_decides_whether_shards_are_those_of_megatron_fsdp(copied: Any) -> None:
    for release in RELEASES:
        sharded = copied(release, "llama-torch_dcp")
        assert (read(sharded, fsdp=True).fault, read(sharded, fsdp=True).kind) == ("", "fsdp_dtensor")
        assert read(sharded, fsdp=False).kind == "torch_dcp"
