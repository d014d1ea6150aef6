"""One budget for the check of a file: work that exceeds it ends, and work that ignores it is stopped, without affecting
other files."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bounded import COMMAND, GRAPH

from preflight.api import check as check_files
from preflight.api import check_text, installed
from preflight.checking.configured_checker import Checker
from preflight.checking.discovery import Named
from preflight.checking.engine import Report
from preflight.loaders.document import Document
from preflight.run.project_settings import Settings
from preflight.source import budget
from preflight.source.budget import Exceeded, keep_watch, watched
from preflight.source.spelling import nearest

pytestmark = pytest.mark.slow

FAULTY = COMMAND + " --tensor-model-parallel-size 3"
EMPTY = {"empty lines": "\n" * 40, "comments and empty lines": "# c\n\n" * 40, "blanks": " \n" * 4_000}


def said(report: Report) -> set[str]:
    assert not report.crashes, report.crashes[0].trace
    return {finding.rule for finding in report.findings}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_lines_in_front_of_a_composed_config(tmp_path: Path, name: str, quick: None) -> None:
    train = "system:\n  tensor_model_parallel_size: 2\nmodel:\n  num_layers: 4\n"
    (tmp_path / "conf" / "train").mkdir(parents=True)
    (tmp_path / "conf" / "train" / "7b.yaml").write_text(EMPTY[name] + train)
    main = (
        "defaults:\n  - _self_\n  - train: 7b\n"
        "experiment:\n  exp_name: a\n  task:\n    type: train\n    backend: megatron\n"
    )
    (tmp_path / "conf" / "run.yaml").write_text(EMPTY[name] + main)
    for file in ("run.yaml", "train/7b.yaml"):
        assert not check_files(tmp_path / "conf" / file, world_size=8).crashes


def test_a_package_below_comments_is_still_found() -> None:
    from preflight.loaders.composition.hydra import _HEADER

    for text in ("# @package _global_\na: 1\n", "\n# c\n\n  #   @package: _global_\n", "\r\n# @package _global_\r\n"):
        found = _HEADER.match(text)
        assert found is not None and found[1] == "_global_", text
    assert _HEADER.match("a: 1\n# @package _global_\n") is None


def test_a_stray_word_with_dots(tmp_path: Path, quick: None) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"{FAULTY} --fp16 --bf16 a{'.' * 60}\n")
    ran = subprocess.run(
        [sys.executable, "-m", "preflight", "fix", "--unsafe", "--diff", "--world-size", "8", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr


@pytest.mark.parametrize("text", ["[[[" * 1_000, '{"a":' * 3_000, "[" * 900 + "]" * 900])
def test_a_layer_configuration_that_is_nested_too_deeply(text: str, quick: None) -> None:
    option = f"--heterogeneous-layers-config-encoded-json '{text}'"
    report = check_text(f"{COMMAND} {option}\n", name="run.sh", world_size=8)
    assert "megatron/layer-config" in said(report) or text.endswith("]")


def tokenizer(folder: Path, number: int) -> str:
    """A folder with a tokenizer of 15 MB of its own."""
    place = folder / f"tokenizer{number}"
    place.mkdir()
    vocabulary = {f"token {number} {index} of a length that is usual": index for index in range(300_000)}
    (place / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))
    return f"{COMMAND} --tokenizer-type HuggingFaceTokenizer --tokenizer-model {place.name}\n"


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizers")
    (folder / "run.sh").write_text("".join(tokenizer(folder, number) for number in range(6)))
    return folder


@pytest.mark.slow
def test_six_launches_with_a_large_tokenizer_each(tokenizers: Path, quick: None) -> None:
    report = check_files(tokenizers / "run.sh", world_size=8)
    sizes = [job.plan.model.vocab for job in report.jobs]
    assert len(sizes) == 6 and not report.crashes
    assert sizes[0].known and not sizes[5].known, "what is not read is unknown"


def test_launches_that_share_a_tokenizer_read_it_once(tokenizers: Path, quick: None) -> None:
    line = (tokenizers / "run.sh").read_text().splitlines()[0]
    (tokenizers / "same.sh").write_text(f"{line}\n" * 20)
    report = check_files(tokenizers / "same.sh", world_size=8)
    assert len(report.jobs) == 20 and all(job.plan.model.vocab.known for job in report.jobs)


def test_thousands_of_options_that_nobody_has(quick: None) -> None:
    words = " ".join(f"--tensor-model-parallel-siz{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{i}" for i in range(5_000))
    report = check_text(f"{FAULTY} {words}\n", name="run.sh", world_size=8)
    assert {"device-count", "unknown-flag"} <= said(report)


def test_suggestions_end_with_the_comparisons_of_a_file() -> None:
    known = [f"word{index}" for index in range(1_000)]
    with budget.of_one_check():
        found = [nearest(f"wordd{index}", known) for index in range(100)]
    assert found[0] is not None and found[-1] is None
    assert nearest("wordd99", known) is not None, "another file has a budget of its own"


@pytest.mark.parametrize("name", ["many times", "a tree of lists"])
def test_configs_that_are_merged_again_and_again(tmp_path: Path, name: str, quick: None) -> None:
    """Found in a composition that takes no config twice into memory, but its values a thousand times."""
    from preflight.loaders.composition.hydra import composed
    from preflight.loaders.yaml import load_yaml
    from preflight.source.source_file import Source

    values = "".join(f"k{i}: {i}\n" for i in range(10_000))
    texts = {"main": "defaults:\n" + "  - big\n" * 1_000, "big": values}
    if name == "a tree of lists":
        texts = {f"t{i}": f"defaults:\n  - t{i + 1}\n  - t{i + 1}@x{i}\n  - _self_\n" for i in range(18)}
        texts |= {"main": texts["t0"], "t18": values}

    def opened(path: str) -> Document | None:
        return load_yaml(Source(texts[path], f"{path}.yaml")) if path in texts else None

    with budget.of_one_check(), pytest.raises(Exceeded):
        composed("main", opened)


def test_steps_of_all_scripts_together() -> None:
    with budget.of_one_check():
        assert budget.may_step(budget.STEPS) and not budget.may_step(1)
    page = "".join(f"```bash\n{'A=$A$A ' * 4_000}\n{FAULTY}\n```\n" for _ in range(30))
    assert not check_text(page, name="page.md", world_size=8).crashes


def test_values_of_all_configs_together() -> None:
    with budget.of_one_check(), pytest.raises(Exceeded, match="values"):
        for _ in range(3):
            budget.draw_values(200_000, "run.yaml")
    budget.draw_values(10**9, "run.yaml")


timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an alarm of processor time")


@pytest.fixture
def watch() -> Iterator[None]:
    before = signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    keep_watch()
    yield
    budget._Watch.kept = False
    signal.signal(signal.SIGVTALRM, before)


def endless() -> Iterator[int]:
    number, started = 0, time.process_time()
    while time.process_time() - started < 20:  # a broken watch must not block the tests forever
        with contextlib.suppress(Exception):  # as a rule might
            number += 1
    raise AssertionError("nobody ends it")


@timer
def test_a_check_that_does_not_end_is_an_error_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: None
) -> None:
    from preflight.checking import checked_sources

    load = checked_sources.load
    monkeypatch.setattr(checked_sources, "load", lambda source: endless() if "slow" in source.name else load(source))
    monkeypatch.setattr("preflight.checking.configured_checker.CHECK_SECONDS", 0.3)
    checker = Checker(Settings(), installed())
    reports = {}
    for name in ("slow.yaml", "run.yaml"):
        (tmp_path / name).write_text(GRAPH)
        reports[name] = checker.check_file(Named(tmp_path / name, name, True))
    assert [error.message for error in reports["slow.yaml"].errors] == [
        "takes more than 0 s of processor time, so it is not checked"
    ]
    assert reports["run.yaml"].jobs and not reports["run.yaml"].errors


@timer
def test_a_pattern_and_a_rule_are_ended(watch: None) -> None:
    with pytest.raises(Exceeded), watched("a", 0.2):
        re.match(r"(a+)+b", "a" * 60)
    with pytest.raises(Exceeded), watched("a", 0.2), watched("b", 60):
        endless()
    with watched("a", 0.2):
        pass
    time.sleep(0)


@timer
def test_no_signal_in_somebody_elses_process(watch: None) -> None:
    """Another thread, a handler that is there already, and a library are left alone."""
    seen = []
    with watched("a", 60):
        thread = threading.Thread(target=lambda: seen.append(check_text(GRAPH).crashes))
        thread.start()
        thread.join()
    assert seen == [()]
    own = signal.signal(signal.SIGVTALRM, lambda number, frame: None)
    try:
        with watched("a", 60):
            assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    finally:
        signal.signal(signal.SIGVTALRM, own)
    budget._Watch.kept = False
    with watched("a", 60):
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
