"""How fast preflight is: `python benchmarks/speed.py [CORPUS] [--runs N] [--curve] [--check | --record speed.json]`.

Measures CPU time of whole processes (user and system, children included) as medians, and prints ratios to `python -c
pass` and to yamllint, which is run on the same files if it is installed. The rows "hook" are the command lines that
pre-commit runs. Nothing is remembered from run to run but in the rows "again" (no file has changed) and "re-check" (one
has). CORPUS is a folder of configs, with the MindFormers YAML below `mindformers/` and Megatron's below `megatron/`;
without it 250 and 333 files are generated, which yamllint reads faster than published ones: the bars are about those.
--check fails when a ratio is more than 25 % above the recorded one. If valgrind is installed, it also counts the
instructions of tasks on one file, which do not depend on the load of the machine: their ratios fail at 10 %, and the
ratios of times are then only printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).parent.parent / "examples"
# installed tools include bytecode
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
COLD = {**ENVIRONMENT, "PREFLIGHT_NO_CACHE": "1"}
ALLOWED, ALLOWED_INSTRUCTIONS = 1.25, 1.10
COUNTED = ("version", "hook", "hook with target", "hook of fix", "one script", "yamllint one")
"""Tasks with counted instructions: those on one file, because valgrind is about forty times slower."""
BARS = {
    "version / pass": 2.0,
    "hook / yamllint": 0.9,
    "hook with target / yamllint": 0.9,
    "hook of fix / yamllint": 1.5,
    "250 yaml / yamllint": 0.20,
    "one script / hook": 1.25,
    "333 megatron / 250 yaml": 3.0,
    "peak MB / 80": 1.0,
    "250 yaml re-check / one yaml": 1.3,
}


PREFLIGHT = [sys.executable, "-m", "preflight"]
HOOK = ["--force-exclude", "--allow-unclaimed"]
"""The arguments of the pre-commit hooks besides the command and the paths; a test compares them with the entry
lines."""


class Work(NamedTuple):
    """A process that is measured. before: preparation before each run."""

    argv: list[str]
    runs: int
    environment: dict[str, str] = COLD
    before: Callable[[], object] = lambda: None


def once(work: Work) -> tuple[float, float]:
    """CPU milliseconds of a process, and its peak memory in MB."""
    work.before()
    child = subprocess.Popen(work.argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=work.environment)
    _, status, used = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):  # 1: it has findings
        raise SystemExit(f"{' '.join(work.argv[:6])} fails: its time says nothing")
    return (used.ru_utime + used.ru_stime) * 1000, used.ru_maxrss / 1024


def instructions(work: Work) -> float | None:
    """Millions of instructions of a process, without its children; None if valgrind is missing or fails."""
    if (valgrind := shutil.which("valgrind")) is None:
        return None
    work.before()
    words = [valgrind, "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    counted = subprocess.run(
        [*words, *work.argv],
        capture_output=True,
        text=True,
        check=False,
        env={**work.environment, "PYTHONHASHSEED": "0"},
    )
    found = re.search(r"I\s+refs:\s+([\d,]+)", counted.stderr)
    return float(found[1].replace(",", "")) / 1e6 if found is not None and counted.returncode in (0, 1) else None


def by_instructions(works: dict[str, Work]) -> dict[str, float]:
    """The instruction ratios of tasks on one file; nothing if they cannot be counted."""
    found = {name: instructions(works[name]) for name in COUNTED if name in works}
    counts = {name: count for name, count in found.items() if count is not None}
    for name, count in counts.items():
        print(f"{name:28} {count:8.0f} million instructions")
    pairs = (("one script", "hook"), ("hook with target", "hook"), ("hook of fix", "hook"), ("hook", "yamllint one"))
    return {
        f"{one} / {other.removesuffix(' one')}": counts[one] / counts[other]
        for one, other in pairs
        if one in counts and other in counts
    }


def rounds(works: dict[str, Work]) -> tuple[dict[str, float], dict[str, float]]:
    """Median milliseconds and peak MB of each work, taken in turns: a machine that slows down slows all of them."""
    for work in works.values():
        once(work)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for number in range(max(work.runs for work in works.values())):
        for name, work in works.items():
            if number < work.runs:
                taken[name].append(once(work))
    times, peaks = ({name: statistics.median(run[at] for run in runs) for name, runs in taken.items()} for at in (0, 1))
    return times, peaks


def generated(folder: Path) -> tuple[list[str], list[str], str]:
    """Files like published ones: 250 of MindFormers, 333 of Megatron, and one script of 200 lines."""
    graph = (EXAMPLES / "mindformers" / "run_llama2_7b.yaml").read_text(encoding="utf-8")
    args = (EXAMPLES / "megatron" / "model_config.yaml").read_text(encoding="utf-8")
    mindformers, megatron = [], []
    for number in range(333):
        for names, text, count in ((mindformers, graph, 250), (megatron, args, 333)):
            if number < count:
                path = folder / f"{'mindformers' if text is graph else 'megatron'}_{number}.yaml"
                path.write_text(f"{text}# {number}\n", encoding="utf-8")
                names.append(str(path))
    return mindformers, megatron, script(folder)


def script(folder: Path) -> str:
    """A launch script of 200 lines."""
    text = (EXAMPLES / "megatron" / "train_8b_faults.sh").read_text(encoding="utf-8")
    path = folder / "train.sh"
    head, _, rest = text.partition("\n")
    filler = "".join(
        f"OPTION_{number}=${{OPTION_{number}:-{number}}}\n" for number in range(max(0, 199 - text.count("\n")))
    )
    path.write_text(f"{head}\n{filler}{rest}", encoding="utf-8")
    return str(path)


def published(corpus: Path, folder: Path) -> tuple[list[str], list[str]]:
    found = [sorted((corpus / name).rglob("*.yaml")) for name in ("mindformers", "megatron")]
    copied = [[_copy(path, corpus, folder) for path in paths] for paths in found]
    return copied[0][:250], copied[1][:333]


def _copy(path: Path, corpus: Path, folder: Path) -> str:
    """A copy that may be changed."""
    copy = folder / "corpus" / path.relative_to(corpus)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, copy)
    return str(copy)


def works(one: str, launch: str, mindformers: list[str], megatron: list[str], runs: int) -> dict[str, Work]:
    """The measured tasks. one: a YAML file of about 200 lines."""
    few, fixed = max(3, runs // 3), f"{one}.fixed.yaml"
    every = [*PREFLIGHT, "check", *mindformers]
    found = {
        "pass": Work([sys.executable, "-c", "pass"], runs),
        "version": Work([*PREFLIGHT, "--version"], runs),
        "one yaml": Work([*PREFLIGHT, "check", one], runs),
        "hook": Work([*PREFLIGHT, "check", *HOOK, one], runs),
        "hook with target": Work([*PREFLIGHT, "check", *HOOK, "--target", "mindformers@1.5.0", one], runs),
        "hook of fix": Work([*PREFLIGHT, "fix", *HOOK, fixed], runs, COLD, lambda: shutil.copyfile(one, fixed)),
        "one script": Work([*PREFLIGHT, "check", *HOOK, launch], runs),
        "250 yaml": Work(every, few),
        "333 megatron": Work([*PREFLIGHT, "check", *megatron], few),
        "250 yaml re-check": Work(every, runs, ENVIRONMENT, lambda: os.utime(mindformers[0])),
    }
    if lint := shutil.which("yamllint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"):
        found |= {"yamllint one": Work([lint, one], runs), "yamllint 250": Work([lint, *mindformers], 3)}
    return found


def measure(
    corpus: Path | None, runs: int, folder: Path
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Milliseconds by work, ratios, and ratios of instructions."""
    mindformers, megatron, launch = generated(folder)
    if corpus is not None:
        mindformers, megatron = published(corpus, folder)
    one = min(mindformers, key=lambda name: abs(Path(name).read_text(encoding="utf-8").count("\n") - 200))
    measured = works(one, launch, mindformers, megatron, runs)
    times, peaks = rounds(measured)
    few, every = max(3, runs // 3), [*PREFLIGHT, "check", *mindformers]
    again = {
        "one yaml again": Work([*PREFLIGHT, "check", one], few, ENVIRONMENT),
        "250 yaml again": Work(every, few, ENVIRONMENT),
    }
    times |= rounds(again)[0]
    return times, {**ratios(times), "peak MB / 80": peaks["250 yaml"] / 80}, by_instructions(measured)


def ratios(times: dict[str, float]) -> dict[str, float]:
    """The compared pairs."""
    pairs = [
        *(("version", "pass"), ("one yaml", "pass"), ("one script", "hook"), ("hook with target", "hook")),
        *(("hook of fix", "hook"), ("250 yaml", "one yaml"), ("333 megatron", "250 yaml")),
        ("250 yaml re-check", "one yaml"),
    ]
    found = {f"{one} / {other}": times[one] / times[other] for one, other in pairs}
    if "yamllint one" in times:
        for name in ("one yaml", "hook", "hook with target", "hook of fix"):
            found[f"{name} / yamllint"] = times[name] / times["yamllint one"]
        for name in ("250 yaml", "250 yaml again"):
            found[f"{name} / yamllint"] = times[name] / times["yamllint 250"]
    return found


def curve(folder: Path) -> None:
    """Milliseconds for more and more files, and for a longer and longer one."""
    files = generated(folder)[0]
    for count in (100, 1000, 10000):
        many = folder / f"many_{count}"
        many.mkdir()
        for number in range(count):
            shutil.copy(files[number % len(files)], many / f"{number}.yaml")
        took, peak = once(Work([*PREFLIGHT, "check", str(many)], 1))
        print(f"{count:>10} files {took:10.0f} ms {took / count:8.2f} ms a file {peak:8.0f} MB")
    text = Path(files[0]).read_text(encoding="utf-8")
    for size in (0.5, 5):
        path = folder / f"long_{size}.yaml"
        path.write_text(
            text + "unread:\n" + "".join(f"  key_{number}: {number}\n" for number in range(int(size * 2**20 / 20))),
            encoding="utf-8",
        )
        took, peak = once(Work([*PREFLIGHT, "check", str(path)], 1))
        print(f"{path.stat().st_size / 2**20:>10.1f} MiB   {took:10.0f} ms {took / size:8.0f} ms a MiB  {peak:8.0f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--check", type=Path)
    parser.add_argument("--record", type=Path)
    asked = parser.parse_args()
    for name in ("check", "record", "corpus"):
        if (path := getattr(asked, name)) is not None:
            setattr(asked, name, path.absolute())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([*PREFLIGHT, "--version"], check=True)  # another folder's preflight is not measured
        for environment in (ENVIRONMENT, COLD):
            environment["PREFLIGHT_CACHE_DIR"] = os.path.join(folder, "cache")
        if asked.curve:
            curve(Path(folder))
            return 0
        times, compared, counted = measure(asked.corpus, asked.runs, Path(folder))
    for name, value in times.items():
        print(f"{name:28} {value:8.0f} ms {value / times['pass']:8.1f} x pass")
    worse = []
    recorded = json.loads(asked.check.read_text(encoding="utf-8")) if asked.check else {}
    before = recorded.get("instructions", {})
    for name, value in compared.items():
        bar = f"  bar {BARS[name]}" if name in BARS else ""
        print(f"{name:28} {value:8.2f}{bar}{'  MISSED' if value > BARS.get(name, value) else ''}")
        if name in recorded and not (name in counted and name in before) and value > recorded[name] * ALLOWED:
            worse.append(f"{name}: {value:.2f}, recorded {recorded[name]:.2f}")
    for name, value in counted.items():
        bar = f"  bar {BARS[name]}" if name in BARS else ""
        print(f"{name:28} {value:8.3f} by instructions{bar}{'  MISSED' if value > BARS.get(name, value) else ''}")
        if name in before and value > before[name] * ALLOWED_INSTRUCTIONS:
            worse.append(f"{name} by instructions: {value:.3f}, recorded {before[name]:.3f}")
    if asked.record:
        # the times of other tools vary more
        ours: dict[str, object] = {
            name: round(v, 3) for name, v in compared.items() if not name.endswith(("/ pass", "/ yamllint"))
        }
        ours["instructions"] = {name: round(v, 3) for name, v in counted.items()}
        asked.record.write_text(json.dumps(ours, indent=2) + "\n", encoding="utf-8")
    if missing := [name for name in BARS if name not in compared]:
        print(f"not measured, for want of yamllint (the extra dev has it): {', '.join(missing)}")
    print(*worse, sep="\n", end="\n" if worse else "")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
