"""Input made to break a reader: each is bounded in time and memory, and ends as a clear finding or error."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from preflight.api import installed, request
from preflight.engine import Report
from preflight.gate.submission import Allocation, Submission
from preflight.gate.text import told
from preflight.gate.verdict import Policies, judge
from preflight.loaders import load
from preflight.report.look import Look
from preflight.source import InputError, Source
from preflight.workspace import Workspace

GRAPH = """run_mode: train
use_parallel: True
parallel_config: {data_parallel: 2, pipeline_stage: 4, micro_batch_num: 4}
model:
  model_config:
    type: LlamaConfig
    num_layers: 40
"""
COMMAND = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 1"
FORMATS = ("concise", "github", "gitlab", "html", "json", "junit", "markdown", "sarif", "text")
SECONDS = 4.0


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    started = time.thread_time()
    yield
    assert time.thread_time() - started < SECONDS


def check(text: str, name: str = "run.yaml", folder: Path | None = None) -> Report:
    source = Source(text, name, path=folder / name if folder else None)
    report = Workspace([source], installed(), request(world_size=8)).check()
    assert not report.crashes, report.crashes[0].trace
    return report


def test_an_alias_bomb_is_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
    with pytest.raises(InputError, match="aliases counted"):
        check(bomb)


def test_a_merge_bomb_is_refused_or_bounded() -> None:
    check(GRAPH + "m0: &m0 {a: 1}\n" + "".join(f"m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}], b{i}: 1}}\n" for i in range(1, 14)))


DEEP = {
    "flow": "x: " + "[" * 100_000,
    "closed flow": "x: " + "[" * 100_000 + "]" * 100_000,
    "mappings": "{a: " * 100_000,
    "block": "- " * 100_000 + "1",
    "keys": "? " * 100_000,
    "indented": "".join(" " * i + f"k{i}:\n" for i in range(1500)),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_yaml_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        check(DEEP[name])


SCRIPTS = {
    "parentheses": "(" * 100_000,
    "substitutions": "torchrun pretrain_gpt.py " + "$(" * 100_000,
    "braces": "{ " * 100_000,
    "quotes": "\"'" * 50_000,
    "ifs": "if x; then " * 100_000,
    "arithmetic": f"A=$(({'(' * 50_000}1{')' * 50_000}))\n{COMMAND}\n",
    "power": f"A=$((9**9**9))\n{COMMAND} --global-batch-size $A\n",
    "shift": f"A=$((1<<999999999))\n{COMMAND} --global-batch-size $A\n",
    "long number": f"A=$(({'9' * 100_000}+1))\n{COMMAND} --global-batch-size $A\n",
    "range": f"for i in {{1..999999999}}; do A=$i; done\n{COMMAND} --global-batch-size $A\n",
    "brace product": COMMAND + " " + "{a,b}" * 60 + "\n",
    "slice": f"A=abc\n{COMMAND} --seed ${{A:{'9' * 5000}}}\n",
    "star pattern": "A=" + "a" * 3000 + f"\n{COMMAND} --seed ${{A##{'*a' * 40}b}}\n",
    "backward range": f"A=abc\n{COMMAND} --seed ${{A//[z-a]/x}}\n",
    "case pattern": f"case {'a' * 3000} in {'*a' * 60}b) A=1;; esac\n{COMMAND}\n",
    "condition": f"if [[ {'a' * 3000} =~ (a+)+$ ]]; then A=1; fi\n{COMMAND}\n",
    "superscript": f"A=(1 2)\n{COMMAND} --seed ${{A[²]}} ${{²}}\n",
    "arguments": COMMAND + " --seed 1" * 100_000,
    "itself": f"source run.sh\n. ./run.sh\n{COMMAND}\n",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_hostile_scripts_are_bounded(name: str, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(SCRIPTS[name])
    check(SCRIPTS[name], "run.sh", tmp_path)


HUGE = (10**9, 10**18, -1, 0, 10**400)


@pytest.mark.parametrize("size", HUGE, ids=lambda size: f"{len(str(size))} digits {str(size)[:3]}")
@pytest.mark.parametrize(
    "flag", ["num-layers", "hidden-size", "num-attention-heads", "tensor-model-parallel-size", "pipeline-model-parallel-size", "num-experts"]
)
def test_sizes_beyond_reason_in_a_command(flag: str, size: int) -> None:
    check(f"{COMMAND} --{flag} {size}\n", "run.sh")


KEYS = ("num_layers: 40", "data_parallel: 2", "pipeline_stage: 4", "micro_batch_num: 4")
ODD = ("1000000000", str(10**18), ".inf", "-.inf", ".nan", "-1", "0", "null", "[]", "{a: 1}", "'9'", "9" * 4000, "true", "[[1, .inf]]")


@pytest.mark.parametrize("value", ODD, ids=lambda value: value[:12])
@pytest.mark.parametrize("key", KEYS)
def test_odd_values_in_a_config(key: str, value: str) -> None:
    check(GRAPH.replace(key, f"{key.partition(':')[0]}: {value}"))


@pytest.mark.parametrize("value", ODD, ids=lambda value: value[:12])
def test_odd_offsets(value: str) -> None:
    check(GRAPH + f"    offset: {value}\n")


PATTERNS = (
    "(a+)+$",
    "(a|a)*b",
    "(.*)*x",
    ".*" * 60,
    "a{1,9999}{1,9999}",
    "(" * 5000,
    "[" * 50,
    "\\",
    "(?P<a>x)(?P=a)*",
    "a" * 1_000_000,
    "(?s).*(?i)",
    "x{65536}{65536}",
)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern[:12])
def test_patterns_of_select_recompute_end(pattern: str) -> None:
    check(GRAPH + f"recompute_config:\n  recompute: False\n  select_recompute: ['{pattern}']\n")


@pytest.mark.parametrize("layers", ["1000000000", "[1000000000, 1, 1, 1]", "[[1000000000], [1]]", "['1-999999999999']"])
def test_recompute_of_layers_without_end(layers: str) -> None:
    check(GRAPH + f"recompute_config:\n  recompute: {layers}\n  select_recompute: {layers}\n")


BAD_BYTES = {
    "nul": (b"a: 1\nb: \0\n", "run.yaml:2:4: is a binary file"),
    "latin": (b"a: 1\nname: caf\xe9\n", r"run.yaml:2:10: is not UTF-8 \(byte 0xe9\)"),
    "surrogate": (b"a: \xed\xa0\x80\n", "is not UTF-8"),
    "utf-16": ("a: 1\n".encode("utf-16"), "is not UTF-8"),
    "control": (b"a: \x07\n", "is not YAML"),
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bytes_that_are_no_text(name: str) -> None:
    data, message = BAD_BYTES[name]
    with pytest.raises(InputError, match=message):
        load(Source.decode(data, "run.yaml"))


EVIL = "\x1b[2J\x1b]0;owned\x07\u202e\u2028\x9b31m"


def _evil_reports(folder: Path) -> Iterator[Report]:
    written = EVIL.replace("\x1b", "\\e").replace("\x07", "\\a").replace("\u202e", "\\u202e").replace("\u2028", "\\u2028").replace("\x9b", "\\x9b")
    yield check(f'{GRAPH}recompute_config: {{recompute: "{written}"}}\nparalel_config: 1\n"{written}": 1\nrunner_config: {{"{written}": 2}}\n')
    yield check(f"{COMMAND} --num-layers $'\\e[2J' --wrong{EVIL} --tensor-model-parallel-size {EVIL} --position-embedding-type {EVIL}\n", "run.sh")
    yield check(GRAPH.replace("40", "42"), f"{EVIL}.yaml")


@pytest.mark.parametrize("format", FORMATS)
def test_no_format_hands_escapes_to_a_terminal(format: str, tmp_path: Path) -> None:
    render = import_module(f"preflight.report.{format}").render
    for report in _evil_reports(tmp_path):
        assert report.findings
        text = render(report, Look(width=80, verbose=True, unknown=True))
        assert not {"\x1b", "\x07", "\u202e", "\x9b", "\u2028"} & set(text), format


def test_nor_does_the_gate() -> None:
    script = f"#!/bin/bash\n{COMMAND} --tensor-model-parallel-size 3 --wrong{EVIL}\n".encode()
    verdict = judge(Submission(script, f"job{EVIL}", allocation=Allocation(1, 8, 8)), installed(), Policies())
    assert told(verdict) and all(line.isprintable() for line in told(verdict))


def preflight(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "preflight", *words], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", ["check", "fix"])
def test_what_is_not_a_regular_file(command: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    (tmp_path / ("x" * 200 + ".yaml")).mkdir()
    for name in ("pipe.yaml", "loop.yaml", "gone.yaml", "/dev/zero", "a" * 5000, "nul\\0.yaml", f"{EVIL}.yaml"):
        done = preflight(command, name, cwd=tmp_path)
        assert done.returncode == 2, (name, done)
        assert done.stderr.startswith("preflight: ") and "Traceback" not in done.stderr and "\x1b" not in done.stderr + done.stdout, name


def test_a_folder_of_links_and_pipes_is_walked_without_opening_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    (tmp_path / "run.yaml").write_text(GRAPH)
    done = preflight("check", ".", "--output-format", "concise", "--world-size", "8", cwd=tmp_path)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    with open(tmp_path / "run.yaml", "wb") as stream:
        stream.truncate(50 * 1024 * 1024)
    done = preflight("check", "run.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "are not read" in done.stderr


NAMING = {
    "source.sh": f"#!/bin/bash\nsource secret.sh\n. ../secret.sh\nsource /etc/passwd\n{COMMAND}\n",
    "config.sh": "#!/bin/bash\npython run_mindformer.py --config secret.yaml --run_mode train\n",
    "launcher.sh": '#!/bin/bash\nbash msrun_launcher.sh "run_mindformer.py --config secret.yaml" 8\nbash secret.sh\n',
    "layers.sh": f"#!/bin/bash\n{COMMAND} --yaml-cfg secret.yaml --config-yaml secret.yaml --load secret\n",
    "ranks.sh": "#!/bin/bash\nexport RANK_TABLE_FILE=secret.json\npython run_mindformer.py --config secret.yaml\n",
    "base.yaml": f"base_config: secret.yaml\npretrained_model_dir: {{folder}}\n{GRAPH}",
}


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("name", NAMING)
def test_the_gate_opens_nothing_that_a_submission_names(name: str, follow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("secret.sh", "secret.yaml", "secret.json", "config.json"):
        (tmp_path / other).write_text("HIDDEN=1\n")
    monkeypatch.chdir(tmp_path)
    load(Source(GRAPH, "warm.yaml"))
    installed().rules(None)
    judge(Submission(NAMING["source.sh"].encode(), "warm.sh"), installed(), Policies())
    opened: list[str] = []
    watching = True

    def watch(event: str, given: tuple[object, ...]) -> None:
        if watching and event == "open" and ("secret" in str(given[0]) or "config.json" in str(given[0]) or "passwd" in str(given[0])):
            opened.append(str(given[0]))

    sys.addaudithook(watch)
    verdict = judge(Submission(NAMING[name].replace("{folder}", str(tmp_path)).encode(), name), installed(), Policies(follow=follow))
    watching = False
    assert verdict.code in (0, 1) and not opened


def test_a_script_sources_only_from_its_folder(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "outside.sh").write_text("TP=3\n")
    (inner / "link.sh").symlink_to(tmp_path / "outside.sh")
    for name in ("../outside.sh", str(tmp_path / "outside.sh"), "link.sh"):
        (document,) = load(Source(f"#!/bin/bash\nsource {name}\n{COMMAND} --tensor-model-parallel-size $TP\n", "run.sh", path=inner / "run.sh"))
        assert document.also == ()
        assert document.launch is not None and document.launch.words[-1].text != "3"


def test_a_base_that_names_itself_or_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "run.yaml").write_text("base_config: run.yaml\n" + GRAPH)
    for name in ("run.yaml", "pipe.yaml", "/dev/zero", "a" * 5000, "nul\0"):
        text = f'base_config: "{name}"\n{GRAPH}'.replace("\0", "\\0")
        try:
            check(text, "run.yaml", tmp_path)
        except InputError as error:
            assert "run.yaml" in str(error)
