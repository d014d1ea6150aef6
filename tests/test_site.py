"""Inspection of the paths of a run: only on request, with limits, and reported."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import time
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from harness import Cli

from preflight.site.data_index import read_data
from preflight.site.isolated_file_reading import Eyes, Task, Unread, look_apart
from preflight.site.megatron_checkpoint import read_checkpoint
from preflight.site.pickles import loaded
from preflight.site.sample_counts import blend_of, epochs, split_bounds, total
from preflight.site.torch_zip import Window, saved

COMMAND = (
    "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
    "--seq-length 16 --max-position-embeddings 16 --micro-batch-size 1 --global-batch-size 8 --train-iters 10 "
    "--eval-iters 1 --eval-interval 100 --vocab-size 32000 --split 90,10,0 --lr 1e-4 "
)


def index(lengths: list[int], *, width: int = 2, code: int = 8) -> bytes:
    """An index as Megatron's writer makes it, one document a sequence."""
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1)
    begins = [width * sum(lengths[:at]) for at in range(len(lengths))]
    arrays = (("i", lengths), ("q", begins), ("q", range(len(lengths) + 1)))
    return head + b"".join(struct.pack(f"<{form}", number) for form, numbers in arrays for number in numbers)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a script and the data that it names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(f"{COMMAND} --data-path data/a\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a.idx").write_bytes(index([20] * 10))
    (tmp_path / "data/a.bin").write_bytes(bytes(400))
    return tmp_path


OPENED = """
import sys
seen = []
def watch(event, given):
    if event in ("open", "os.scandir"):
        seen.append(str(given[0]))
    elif event == "os.fork" and "gate" not in sys.argv:  # the gate checks in a process of its own
        seen.append("/data/ may be looked at by a process of its own")
sys.addaudithook(watch)
import os
stat = os.stat
os.stat = lambda path, *a, **k: (seen.append(str(path)), stat(path, *a, **k))[1]
from preflight.cli import run
code = run(sys.argv[1:])
print(*(path for path in seen if "/data/" in path), sep="\\n", file=sys.stderr)
"""


def opened(*words: str) -> str:
    """The data files that a command opened or looked up."""
    done = subprocess.run([sys.executable, "-c", OPENED, *words], capture_output=True, text=True, timeout=120)
    return done.stderr.strip()


def test_without_the_option_nothing_more_is_opened(place: Path) -> None:
    (place / "preflight.toml").write_text("[site]\nseconds = 5\n")
    for command in ("check", "show", "memory", "fix"):
        assert opened(command, "run.sh") == "", command
    assert "of its own" in opened("check", "run.sh", "--site")


def test_it_says_what_it_looked_at_and_where(real_cli: Cli, place: Path) -> None:
    out = real_cli("check", "run.sh", "--site", "-v").out
    assert f"checked on {os.uname().nodename}:" in out
    assert f"read: {place}/data/a.idx" in out
    assert f"seen: {place}/data/a.bin" in out
    assert "training: 80 samples of 180 tokens, 8 epochs, data/a" in out


@pytest.mark.parametrize("command", ["check", "show", "memory", "layouts", "fix"])
def test_every_command_about_a_run_takes_it(real_cli: Cli, place: Path, command: str) -> None:
    assert real_cli(command, "run.sh", "--site").code in (0, 1)


def test_show_prints_the_place_and_has_it_for_programs(real_cli: Cli, place: Path) -> None:
    out = real_cli("show", "run.sh", "--site").out
    assert f"seen: {place}/data/a.bin" in out
    assert "training: 80 samples of 180 tokens, 8 epochs, data/a" in out
    site = json.loads(real_cli("show", "run.sh", "--site", "-f", "json").out)["runs"][0]["site"]
    assert [one["name"] for one in site["data"]] == ["data/a"]
    assert "site" not in json.loads(real_cli("show", "run.sh", "-f", "json").out)["runs"][0]


BLENDED = """\
run_mode: train
trainer: {type: CausalLanguageModelingTrainer}
train_dataset:
  data_loader:
    type: BlendedMegatronDatasetDataLoader
    sizes: [80, 0, 0]
    config: {split: "90, 10, 0", seq_length: 16, data_path: ['1', data/a]}
"""


def test_blended_data_of_mindformers_is_megatrons(real_cli: Cli, place: Path) -> None:
    (place / "run.yaml").write_text(BLENDED)
    words = ("check", "run.yaml", "--site", "--target", "mindformers@1.7.0")
    site = json.loads(real_cli(*words, "-f", "json").out)["runs"][0]["site"]
    assert [(one["name"], one["fault"], one["tokens"]) for one in site["data"]] == [("data/a", "", 200)]
    assert [(one["split"], one["samples"], one["epochs"]) for one in site["draws"]] == [("training", 81, 8)]
    (place / "data/a.bin").write_bytes(bytes(100))
    assert "data/a.bin has 100 bytes, but its index expects 400" in real_cli(*words).out
    (place / "data/a.bin").unlink()
    assert "[data-missing]" in real_cli(*words).out


@pytest.mark.slow
def test_fix_counts_faults_of_the_place_and_estimates_stay(real_cli: Cli, place: Path) -> None:
    words = ("run.sh", "--device", "h100", "-f", "json")
    for command in ("memory", "layouts"):
        assert real_cli(command, *words, "--site").out == real_cli(command, *words).out, command
    (place / "data/a.bin").write_bytes(bytes(100))
    assert [real_cli("fix", "run.sh").code, real_cli("fix", "run.sh", "--site").code] == [0, 1]


def test_a_fault_at_the_place_is_found_only_with_the_option(real_cli: Cli, place: Path) -> None:
    (place / "data/a.bin").write_bytes(bytes(100))
    assert real_cli("check", "run.sh").code == 0
    done = real_cli("check", "run.sh", "--site")
    assert done.code == 1
    assert "data/a.bin has 100 bytes, but its index expects 400" in done.out
    (place / "data/a.bin").write_bytes(bytes(400))
    assert real_cli("check", "run.sh", "--site").code == 0


def test_the_report_for_programs_has_it(real_cli: Cli, place: Path) -> None:
    report = json.loads(real_cli("check", "run.sh", "--site", "-f", "json").out)
    site = report["runs"][0]["site"]
    assert (report["schema"], site["host"]) == (1, os.uname().nodename)
    assert [(d["split"], d["samples"], d["epochs"]) for d in site["draws"]] == [
        ("training", 80, 8),
        ("validation", 8, 7),
    ]
    assert "site" not in json.loads(real_cli("check", "run.sh", "-f", "json").out)["runs"][0]


def test_options_that_belong_to_it_want_it(real_cli: Cli, place: Path) -> None:
    for words in (["--python", "/usr/bin/python3"], ["--inventory", "nodes.json"], ["--scheduler", "slurm"]):
        done = real_cli("check", "run.sh", *words)
        assert (done.code, f"{words[0]} needs --site" in done.err) == (2, True)
    assert "it must be slurm" in real_cli("check", "run.sh", "--site=pbs").err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_what_is_no_regular_file_makes_nobody_wait(real_cli: Cli, place: Path) -> None:
    (place / "data/a.idx").unlink()
    os.mkfifo(place / "data/a.idx")
    begin = time.monotonic()
    done = real_cli("check", "run.sh", "--site", "--show-unknown")
    assert (done.code, time.monotonic() - begin < 20) == (0, True)
    assert "data/a.idx is not a regular file" in done.out


def _hang(eyes: Eyes) -> None:
    time.sleep(60)


def _take(eyes: Eyes) -> None:
    bytearray(1 << 34)


def _name(eyes: Eyes, name: str) -> str:
    if name == "broken":
        raise Unread("broken")
    return name


def test_one_that_hangs_or_takes_too_much_keeps_none_of_the_others() -> None:
    tasks: list[Task] = [partial(_name, name="a"), partial(_hang), partial(_take), partial(_name, name="broken")]
    answers = look_apart([*tasks, partial(_name, name="b")], 1.0)
    assert [answer.value for answer in answers] == ["a", None, None, None, "b"]
    assert [answer.because for answer in answers] == [
        "",
        "it took more than 1 s",
        "it exceeded its limits",
        "broken",
        "",
    ]


def test_an_index_of_any_bytes_is_read_or_refused(tmp_path: Path) -> None:
    whole = index([3, 5, 7])
    (tmp_path / "a.bin").write_bytes(bytes(30))
    for at in range(len(whole)):
        for data in (whole[:at], whole[:at] + b"\xff" + whole[at + 1 :], whole[:at] + b"\x00" * 8 + whole[at + 8 :]):
            (tmp_path / "a.idx").write_bytes(data)
            read_data(Eyes(), str(tmp_path / "a"), "data_path", (), ((0.0, 0.9), (0.9, 1.0), None))


def test_splits_and_blends_are_those_of_megatron() -> None:
    assert split_bounds("1") == ((0.0, 1.0), None, None)
    assert split_bounds("969, 30, 1") == ((0, 0.969), (0.969, 0.999), (0.999, 1.0))
    assert split_bounds("0,0,0") is None
    assert blend_of(["a", "b", "c"]) == (("a", "b", "c"), None)
    assert blend_of(["1", "a", "3", "b"]) == (("a", "b"), (1.0, 3.0))
    assert blend_of(["1", "a", "x", "b"]) is None
    assert [epochs(100, 10, 9), epochs(100, 11, 9), epochs(100, 12, 9), epochs(0, 1, 9)] == [1, 1, 2, 0]
    assert epochs(100, None, 9) == 1


def test_sums_are_those_of_numpy() -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is what they are compared with")
    for count in (1, 3, 7, 8, 9, 17, 127, 128, 129, 300, 1000):
        values = [0.1 * at % 7.3 for at in range(count)]
        assert total(values) == float(numpy.sum(numpy.array(values))), count


class Runs:
    """A pickle of it calls a function when it is loaded as pickles are."""

    def __init__(self, function: object, *given: object) -> None:
        self.made = (function, given)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.made


def hostile(place: Path) -> list[bytes]:
    """Pickles that run something, in every protocol, and such as take more than they are."""
    script = f"open({str(place / 'ran')!r}, 'w')"
    calls = (
        Runs(eval, script),
        Runs(exec, script),
        Runs(os.system, f"touch {place}/ran"),
        {"args": Runs(eval, script)},
    )
    made = [pickle.dumps(call, protocol) for call in calls for protocol in range(6)]
    bombs = [b"\x80\x02r\xff\xff\xff\x7f.", b"\x80\x04\x8e" + b"\xff" * 8 + b".", b"cos\nsystem\n(S'x'\ntR."]
    return [*made, *bombs, b"(ios\nsystem\n.", b"\x80\x02L" + b"9" * 10_000 + b"L\n."]


def test_a_hostile_pickle_runs_nothing(tmp_path: Path) -> None:
    for data in hostile(tmp_path):
        with contextlib.suppress(Unread):
            loaded(data)
    assert not list(tmp_path.iterdir())


def saved_zip(data: bytes) -> bytes:
    """A file as torch.save writes it, with a pickle in it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a/data.pkl", data)
    return stream.getvalue()


def test_mutated_pickles_are_read_or_refused(tmp_path: Path) -> None:
    """A share of a million inputs tried by hand."""
    state = {"args": argparse.Namespace(num_layers=4, names=["a", "b"], size=1 << 40), "iteration": 100}
    corpus = [*hostile(tmp_path), *(pickle.dumps(state, protocol) for protocol in range(6))]
    generator = random.Random(38)
    for _ in range(600):
        data = bytearray(generator.choice(corpus))
        for _ in range(generator.randint(1, 4)):
            at = generator.randrange(len(data))
            data[at : at + generator.randint(0, 3)] = generator.randbytes(generator.randint(0, 4))
        for whole in (bytes(data), saved_zip(bytes(data))[: generator.choice((None, 90))]):
            (tmp_path / "state.pt").write_bytes(whole)
            with contextlib.suppress(Unread):
                saved(Eyes(), Window(str(tmp_path / "state.pt"), 0, len(whole)))
            with contextlib.suppress(Unread):
                loaded(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["state.pt"]


def test_the_gate_never_looks(place: Path) -> None:
    (place / "preflight.toml").write_text("[site]\nseconds = 5\n")
    assert opened("gate", "--script", "run.sh") == ""


def test_versions_are_read_and_nothing_is_run(real_cli: Cli, place: Path) -> None:
    folder = place / "env/lib/python3.11/site-packages/megatron_core-0.12.1.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Name: megatron-core\nVersion: 0.12.1\n")
    (place / "env/bin").mkdir()
    (place / "env/bin/python").write_text("#!/bin/sh\ntouch ran\n")
    (place / "env/bin/python").chmod(0o755)
    words = ("check", "run.sh", "--site", "--python", "env/bin/python", "-v", "--target", "megatron@0.17.0")
    out = real_cli(*words).out
    assert "packages: megatron-core 0.12.1" in out
    assert "the job's interpreter has megatron-core 0.12.1" in out
    assert not (place / "ran").exists()


def test_slurm_is_asked_only_where_an_option_says_so(
    real_cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = place / "tools"
    tools.mkdir()
    answer = {"sinfo": [{"nodes": {"total": 2}, "gres": {"total": "gpu:h100:4"}, "partition": {"name": "train"}}]}
    (tools / "sinfo").write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    (tools / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    said = "the run requests 8 devices per node, but the scheduler lists at most 4"
    assert said in real_cli("check", "run.sh", "--site=slurm").out
    assert said not in real_cli("check", "run.sh", "--site").out


def test_a_checkpoint_of_bytes_in_a_shard(tmp_path: Path) -> None:
    """Since core 0.19 the data common to all ranks is in a shard, which the metadata names."""
    folder = tmp_path / "iter_0000100"
    folder.mkdir()
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("100")
    (folder / "metadata.json").write_text('{"sharded_backend": "torch_dist"}')
    state = saved_zip(pickle.dumps([{"args": argparse.Namespace(num_layers=4), "checkpoint_version": 3.0}], 2))
    (folder / "__0_0.distcp").write_bytes(b"tensors" + state)
    index, info = named("MetadataIndex", fqn="common_state/shard_0_1", index=None, offset=None), named("_StorageInfo")
    info.relative_path, info.offset, info.length = "__0_0.distcp", 7, len(state)
    whole = named("Metadata", storage_data={index: info})
    (folder / ".metadata").write_bytes(pickle.dumps(whole, 2))
    found = read_checkpoint(Eyes(), str(tmp_path), "load", (), 0, False)
    assert (found.fault, found.kind, found.arguments) == ("", "torch_dist", (("num_layers", 4),))
    (folder / "__0_0.distcp").write_bytes(b"tensors" + state[:-9])
    assert read_checkpoint(Eyes(), str(tmp_path), "load", (), 0, False).fault == "cut-off"


class MetadataIndex:
    """As in torch; a pickle contains its class name."""


class Metadata:
    """As in torch; a pickle contains its class name."""


class _StorageInfo:
    """As in torch; a pickle contains its class name."""


def named(name: str, **fields: object) -> Any:
    """An object of one of these classes."""
    made = globals()[name]()
    made.__dict__.update(fields)
    return made
