"""The benefit of calibration on runs recorded by Megatron-LM's functional tests: times and memory of the golden values.

    python benchmarks/calibrate.py REPOSITORY [REVISION]

Each recorded run becomes the iteration lines that it printed; its estimate is then corrected by the median factor of
the other runs of its device and kind of model.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path
from statistics import median
from subprocess import run as process
from tempfile import TemporaryDirectory
from typing import Any

import preflight
from preflight.logs.calibration import Run, factors, measured_run
from preflight.logs.iterations import iterations
from preflight.report.calibration import left_out
from preflight.source.source_file import InputError

CASES = "tests/functional_tests/test_cases"
DEVICES = {"h100": "H100", "a100": "A100-80GB"}
WORLD = 8


def main(repository: str, revision: str = "HEAD") -> None:
    with TemporaryDirectory() as folder:
        packed = process(["git", "-C", repository, "archive", revision, CASES], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        runs = [one for case in sorted(Path(folder, CASES).glob("*/*")) for one in _runs(case)]
    for device in sorted({run.device for run in runs}):
        for experts in (False, True):
            _print([run for run in runs if (run.device, run.experts) == (device, experts)])


def _runs(case: Path) -> list[Run]:
    config, found = case / "model_config.yaml", []
    for golden in sorted(case.glob("golden_values_dev_dgx_*.json")):
        device = DEVICES.get(golden.stem.rpartition("_")[2])
        if device is None or not config.exists():
            continue
        measured = iterations(io.BytesIO(log_of(json.loads(golden.read_text())).encode()))
        try:
            report = preflight.check(config, world_size=WORLD, device=device)
        except InputError:
            continue
        if measured is not None and report.jobs:
            try:
                found.append(measured_run(f"{case.parent.name}/{case.name}", measured, report.jobs[0]))
            except InputError:
                continue
    return found


def log_of(golden: dict[str, Any]) -> str:
    """The iteration lines that a run printed, from its golden values."""

    def values(name: str) -> list[float]:
        told = golden.get(name)
        found = told.get("values", {}).values() if isinstance(told, dict) else ()
        return [float(value) for value in found if isinstance(value, (int, float))]

    lines = [f"max allocated: {v / (1 << 20):.2f}" for v in values("mem-max-allocated-bytes")]
    times = values("iteration-time") or values("iteration_timing_avg")
    return "\n".join([*lines, *(f"elapsed time per iteration (ms): {v * 1000:.3f}" for v in times)]) + "\n"


def _print(runs: list[Run]) -> None:
    before, after = left_out(runs)
    if not before:
        return
    first = runs[0]
    (factor,) = factors(runs)
    print(f"{first.device} {'experts' if first.experts else 'dense'}: {len(before)} runs, pace {factor.pace:.2f}")
    print(f"  step    median error {median(before):.0%} as estimated, {median(after):.0%} with the other runs' factor")
    known = [(run.beyond, run.measured.allocated) for run in runs if run.beyond is not None]
    if len(known) > 1:
        plain = [abs(beyond) / size for beyond, size in known if size]
        corrected = [
            abs(beyond - median(other for at, (other, _) in enumerate(known) if at != own)) / size
            for own, (beyond, size) in enumerate(known)
            if size
        ]
        print(f"  memory  median error {median(plain):.0%} as estimated, {median(corrected):.0%} with the other runs'")


if __name__ == "__main__":
    main(*sys.argv[1:])
