"""The command: gives each target its share of the time in a separate process, and reports the result."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

SLICE = 240.0
"""Seconds of a worker at most; its target's line is printed behind each."""
HEAD = f"{'target':22} {'executions':>11} {'slowest':>8} {'peak':>8} {'finds':>6}"


def _worker(engine: str, name: str, folder: Path, seconds: float, seed: int) -> bool:
    """A slice of a target's time; whether it ends well."""
    words = [sys.executable, "-m", "tests.fuzz.worker", engine, name, str(folder), f"{seconds:.1f}", str(seed)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    try:
        done = subprocess.run(words, timeout=seconds * 2 + 60, check=False, **quiet)  # type: ignore[call-overload]
    except subprocess.TimeoutExpired:
        print(f"{name} hangs for good (seed {seed})", file=sys.stderr)
        return False
    if done.returncode:
        print(
            f"{name} ended with {done.returncode} (seed {seed}): {done.stderr[-2000:].decode(errors='replace')}",
            file=sys.stderr,
        )
    return done.returncode == 0


def _row(folder: Path, name: str) -> tuple[str, int, int]:
    """A target so far: a line of the table, its executions, its finds."""
    states = [json.loads(path.read_text()) for path in folder.glob(f"{name}.*.json")]
    count, found = sum(s["executions"] for s in states), sum(s["finds"] for s in states)
    slowest, peak = max((s["slowest"] for s in states), default=0), max((s["peak_mib"] for s in states), default=0)
    return f"{name:22} {count:11,} {slowest:6.2f} s {peak:4} MiB {found:6}", count, found


def _table(folder: Path, names: list[str]) -> int:
    rows = [_row(folder, name) for name in names]
    total, finds = sum(count for _, count, _ in rows), sum(found for _, _, found in rows)
    print(HEAD, *(line for line, _, _ in rows), f"{'total':22} {total:11,} {'':8} {'':8} {finds:6}", sep="\n")
    return finds


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="of the whole run")
    parser.add_argument("--target", action="append", help="only this one (repeatable)")
    parser.add_argument(
        "--engine", choices=("atheris", "random"), default="atheris" if find_spec("atheris") else "random"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--finds", type=Path, help="folder for the inputs that were found")
    parser.add_argument("--replay", type=Path, help="run one saved input and let its exception through")
    asked = parser.parse_args()
    if asked.replay:
        from .choices import Choices
        from .targets import TARGETS as FUZZ

        name = next(name for name in sorted(FUZZ, key=len, reverse=True) if asked.replay.name.startswith(name))
        FUZZ[name][1](Choices(asked.replay.read_bytes()))
        return 0
    folder = asked.finds or Path(tempfile.mkdtemp(prefix="preflight-fuzz."))
    folder.mkdir(parents=True, exist_ok=True)
    from .targets import TARGETS

    names = asked.target or list(TARGETS)
    shares = sum(TARGETS[name][0] for name in names)
    end, seed, broken = time.monotonic() + asked.seconds, asked.seed, 0
    slice = min(SLICE, asked.seconds / len(names))
    while (left := end - time.monotonic()) > 1:
        for name in names:
            seconds = min(left, slice * TARGETS[name][0] * len(names) / shares)
            broken += not _worker(asked.engine, name, folder, seconds, seed)
            print(f"{time.strftime('%H:%M:%S')} {_row(folder, name)[0]}", flush=True)
        seed += 1
    finds = _table(folder, names)
    print(f"what was found lies in {folder}" if finds else "nothing was found")
    return 1 if finds or broken else 0


if __name__ == "__main__":
    sys.exit(main())
