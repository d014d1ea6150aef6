"""Files and streams without an end, and the rows of attacks that took seconds: each ends in time,
with one line or a bounded report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bounded import COMMAND, GRAPH, check
from clock import FOREVER
from watched import preflight

from preflight.checking.engine import MOST_FINDINGS
from preflight.loaders import load, text_limits
from preflight.loaders.manifest import MOST_LAUNCHES
from preflight.loaders.text_limits import MAX_SCRIPT, MAX_TEXT, SMALL
from preflight.run import project_settings
from preflight.run import settings_files as settings_file
from preflight.source.source_file import MAX_BYTES, InputError, Source

pytestmark = pytest.mark.slow


def duplicates(number: int) -> str:
    return GRAPH + "seed: 1\n" * number


@pytest.mark.parametrize(
    "words", [("check", "-f", "sarif"), ("check", "-f", "json"), ("check",), ("fix", "--diff")], ids=" ".join
)
def test_thousands_of_duplicate_keys(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(duplicates(3000))
    preflight(*words, "run.yaml", cwd=tmp_path).in_bounds()


def test_a_report_of_many_findings_ends_with_their_number() -> None:
    report = check(duplicates(2001))
    found = [finding for finding in report.findings if finding.rule == "duplicate-key"]
    assert len(found) == MOST_FINDINGS + 1
    assert found[-1].message.startswith("and at least ") and found[-1].message.endswith(
        "more findings of duplicate-key in this file"
    )


def test_few_findings_are_all_shown() -> None:
    found = [finding for finding in check(duplicates(MOST_FINDINGS + 2)).findings if finding.rule == "duplicate-key"]
    assert len(found) == MOST_FINDINGS + 1 and not any(finding.message.startswith("and ") for finding in found)


def test_what_is_left_out_is_never_graver_than_what_is_shown() -> None:
    keys = "".join(f"same{i}: 1\nsame{i}: 1\n" for i in range(120)) + "other: 1\nother: 2\n"
    found = [finding for finding in check(GRAPH + keys).findings if finding.rule == "duplicate-key"]
    assert "warning" in {str(finding.severity) for finding in found}
    (more,) = [finding for finding in found if finding.message.startswith("and ")]
    assert more.message == "and 21 more findings of duplicate-key in this file" and str(more.severity) == "note"


def job(*commands: str) -> str:
    """A Kubernetes job whose containers run these."""
    containers = "".join(f"\n        - {{name: c, command: {command}}}" for command in commands)
    return "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:" + containers + "\n"


LOOPS = "".join(f"for {name} in 1 2 3 4 5 6 7 8; do " for name in "abcde") + "A=$a$b$c$d$e" + "; done" * 5
SLOW = {
    "sexagesimal.yaml": GRAPH + "seed: 1" + ":59" * 300_000 + "\n",
    "comments.yaml": GRAPH + "# comment\n" * 95_000,
    "line.yaml": GRAPH + "output_dir: " + "x" * 900_000 + "\n",
    "unknown.yaml": GRAPH + "".join(f"key_{i}: 1\n" for i in range(60_000)),
    "jobs.sh": f"{COMMAND} &\n" * 1300,
    "pipeline.sh": "a" + "|a" * 99_000 + f"\n{COMMAND}\n",
    "case.sh": "case $A in\n" + "a) b;;\n" * 20_000 + f"esac\n{COMMAND}\n",
    "and.sh": "true && " * 400 + f"{COMMAND}\n",
    "stray.sh": COMMAND + " {1..999}" * 12_000 + "\n",
    "placeholders.sh": COMMAND + " '<a b>'" * 15_000 + "\n",
    "array.sh": f"A=({'a ' * 15_000})\n{COMMAND} ${{A[@]}}\n",
    "options.sh": COMMAND + "".join(f" --sed{i} 1" for i in range(2_500)) + "\n",
    "values.yaml": job(f"[torchrun, pretrain_gpt.py{', --seed' * 100_000}]"),
    "containers.yaml": job(*["[torchrun, pretrain_gpt.py]"] * 8_000),
    "loops.yaml": job(*[f"[bash, -c, '{LOOPS}; torchrun pretrain_gpt.py']"] * 40),
    "scripts.yaml": job(*["[bash, -c, a b c]"] * 9_000),
}


@pytest.mark.parametrize("name", SLOW)
def test_what_once_took_seconds(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(SLOW[name])
    preflight("check", name, cwd=tmp_path).in_bounds()


def test_four_hundred_commands_that_succeed_lead_to_the_launch() -> None:
    report = check(SLOW["and.sh"], "run.sh")
    assert len(report.jobs) == 1 and report.findings


@pytest.mark.parametrize("command", ["[torchrun, pretrain_gpt.py]", "[bash, -c, torchrun pretrain_gpt.py]"])
def test_a_manifest_of_many_launches_is_followed_to_a_place_that_is_shown(command: str) -> None:
    report = check(job(*[command] * (MOST_LAUNCHES + 20)), "job.yaml")
    assert len(report.jobs) == MOST_LAUNCHES
    (left_out,) = [finding for finding in report.findings if finding.rule == "script-not-followed"]
    assert left_out.line == 7 + MOST_LAUNCHES
    whole = check(job(*[command] * MOST_LAUNCHES), "job.yaml")
    assert len(whole.jobs) == MOST_LAUNCHES
    assert "script-not-followed" not in {finding.rule for finding in whole.findings}


def test_scripts_of_a_manifest_share_the_work_of_one() -> None:
    launch = "[bash, -c, torchrun pretrain_gpt.py]"
    report = check(job(launch, f"[bash, -c, '{LOOPS}']", launch), "job.yaml")
    (left_out,) = [finding for finding in report.findings if finding.rule == "script-not-followed"]
    assert len(report.jobs) == 1 and left_out.line == 9


def test_a_bad_value_among_thousands_of_stray_words_is_found() -> None:
    rules = {finding.rule for finding in check(f"{COMMAND}{' stray' * 3000} --num-layers many\n", "run.sh").findings}
    assert {"stray-word", "bad-value"} <= rules


@pytest.mark.parametrize("name", ["run.sh", "run.yaml", "run.job"])
def test_larger_than_any_config(name: str) -> None:
    script = not name.endswith(".yaml")
    text = f"{COMMAND}\n" + "x" * MAX_SCRIPT if script else GRAPH + "#" * MAX_TEXT
    with pytest.raises(
        InputError,
        match="more than .* characters, the limit for a script"
        if script
        else "characters; a config or script may have",
    ):
        load(Source(text, name))


def test_a_large_file_of_others_passes_in_a_folder_and_a_large_config_does_not(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text("paths:\n" + "  /x: {get: {}}\n" * 80_000)
    (tmp_path / "run.yaml").write_text(GRAPH)
    assert preflight("check", ".", "--world-size", "8", cwd=tmp_path).in_bounds().code in (0, 1)
    (tmp_path / "large.yaml").write_text("# padding\n" * 110_000 + GRAPH)
    done = preflight("check", ".", "--world-size", "8", cwd=tmp_path).in_bounds()
    assert "large.yaml: has 1,1" in done.err and "api.yaml" not in done.err


def test_a_script_that_exhausts_the_grammar_is_refused_by_a_child(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too complex"):
        text_limits.refuse_involved(b" " * (SMALL + 1), lambda data: os.kill(os.getpid(), 9), "run.sh")
    with pytest.raises(InputError, match="too complex"):
        text_limits.refuse_involved(b"x" * (SMALL + 1), lambda data: [b"x" * 2**20 for _ in range(2000)], "run.sh")
    with pytest.raises(InputError, match="too complex"):
        text_limits.refuse_involved(b"y" * (SMALL + 1), _endless, "run.sh")
    text_limits.refuse_involved(b"z" * (SMALL + 1), len, "run.sh")


def _endless(data: bytes) -> None:
    while True:
        pass


def test_without_fork_a_long_script_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    with pytest.raises(InputError, match="too complex"):
        load(Source(f"{COMMAND}\n" + "true\n" * 8000, "run.sh"))
    load(Source(f"{COMMAND}\n" + "true\n" * 100, "run.sh"))


def test_an_ordinary_script_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a short script is parsed at once"))
    load(Source(f"{COMMAND}\n", "run.sh"))


@pytest.mark.parametrize("name", ["kmsg", "self/environ", "self/status", "kcore"])
def test_what_the_kernel_makes_up_is_no_file(name: str, tmp_path: Path) -> None:
    path = Path("/proc") / name
    if not path.exists():
        pytest.skip(f"there is no {path} here")
    (tmp_path / "run.yaml").write_text(f"base_config: {path}\n{GRAPH}")
    preflight("check", "run.yaml", cwd=tmp_path).in_bounds()
    preflight("check", str(path), cwd=tmp_path).in_bounds()


@pytest.mark.parametrize(
    "words",
    [("gate", "--script", "/dev/zero"), ("gate", "--manifest", "/dev/zero"), ("gate", "--allocation", "/dev/zero")],
    ids=" ".join,
)
def test_the_gate_reads_no_more_than_a_file(words: tuple[str, ...], tmp_path: Path) -> None:
    assert preflight(*words, cwd=tmp_path).in_bounds().code == 2


@pytest.mark.parametrize("words", [("check", "-"), ("gate",)], ids=" ".join)
def test_stdin_without_end(words: tuple[str, ...], tmp_path: Path) -> None:
    done = preflight(*words, cwd=tmp_path, stdin=b"a: 1\n" * (MAX_BYTES // 4)).in_bounds()
    assert done.code == 2 and "not read" in done.err and str(MAX_BYTES) in done.err


def test_settings_without_end(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(GRAPH)
    with open(tmp_path / "pyproject.toml", "wb") as stream:
        stream.truncate(600 * 1024 * 1024)
    done = preflight("check", "run.yaml", cwd=tmp_path).in_bounds()
    assert done.code in (1, 2) and "pyproject.toml: is more than" in done.err


@pytest.mark.parametrize("text", ["a." * 100_000 + "b = 1", "a = " + "[" * 20_000], ids=["dots", "brackets"])
def test_settings_that_are_too_involved(text: str, tmp_path: Path) -> None:
    path = tmp_path / project_settings.FILE
    path.write_text(text)
    with pytest.raises(InputError):
        settings_file.load(path)


def test_a_baseline_that_counts_beyond_reason(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(GRAPH)
    known = {"preflight-baseline": 1, "files": {"run.yaml": [{"rule": "device-count", "about": "x", "times": 10**12}]}}
    (tmp_path / "known.json").write_text(json.dumps(known))
    preflight("check", "run.yaml", "--baseline", "known.json", cwd=tmp_path).in_bounds()


def test_a_file_that_grows_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(b"a" * 100)
    monkeypatch.setattr("preflight.source.source_file.MAX_BYTES", 50)
    with pytest.raises(InputError):
        Source.read(path, limit=1000)


def test_many_suppressions_and_many_findings_meet_in_time(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(GRAPH + "seed: 1 # preflight: ignore[duplicate-key] why\n" * 15_000)
    done = preflight("check", "run.yaml", "-v", cwd=tmp_path).in_bounds()
    assert "Suppressed: " in done.out


def test_a_place_in_a_long_line_is_shown_with_what_is_around_it(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(GRAPH + "runner_config: {" + "seed: 1, " * 20_000 + "batch_size: 1}\n")
    done = preflight("check", "run.yaml", cwd=tmp_path).in_bounds()
    assert max(map(len, done.out.splitlines())) < 400 and "^" in done.out


def test_the_module_reads_no_more_than_it_says() -> None:
    program = (
        "from preflight.source.source_file import read_all, InputError\nimport sys\n"
        "try: read_all(open('/dev/zero','rb').read, 'x')\nexcept InputError: sys.exit(7)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=FOREVER, check=False).returncode == 7


ALARM_IN_A_FORK = """
import os, signal, threading, time
from preflight.gate.check_limits import OutOfTime, deadline
from preflight.loaders.text_limits import SMALL, refuse_involved
threading.Thread(target=threading.Event().wait, daemon=True).start()
def ring():
    os.kill(os.getpid(), signal.SIGALRM)
    for _ in range(9):
        time.sleep(0.01)
os.register_at_fork(before=ring)
try:
    with deadline(60):
        refuse_involved(b"x" * (SMALL + 1), lambda data: time.sleep(1), "run.sh")
except OutOfTime:
    print("in time")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_alarm_while_a_child_is_started_is_not_lost() -> None:
    ran = subprocess.run([sys.executable, "-c", ALARM_IN_A_FORK], capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("in time\n", "")
