"""Measured runs compared with the estimates, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from preflight.logs.calibration import GIB, Run, settings_of
from preflight.report.source_excerpts_and_escapes import Look, counted, plain
from preflight.run.cluster import Factor
from preflight.source.translation import local, padded
from preflight.source.typing_without_import import Any

LABEL = 8


def calibration_text(runs: Sequence[Run], found: Sequence[Factor], look: Look = Look()) -> str:
    """Each run with its estimate, the error that remains after scaling, and the settings."""
    lines = [line for run in runs for line in _run(run, look)]
    lines += _gain(runs, found)
    lines += ["", look.paint(local("settings for this cluster:"), "bold"), *settings_of(found)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _run(run: Run, look: Look) -> Iterator[str]:
    yield f"{look.paint(plain(run.name), 'bold')}: {run.device}, {local(counted(run.measured.steps, 'step'))}"
    measured = run.measured
    if run.seconds is not None:
        off = run.seconds / measured.seconds - 1
        told = local(f"{_seconds(measured.seconds)} measured, {_seconds(run.seconds)} estimated ({off:+.0%})")
    else:
        told = local(f"{_seconds(measured.seconds)} measured; it cannot be estimated")
    yield f"  {padded(local('step'), LABEL)}{told}"
    if measured.allocated is not None and run.allocated is not None:
        off = run.allocated / measured.allocated - 1
        peak, estimate = measured.allocated / GIB, run.allocated / GIB
        told = local(f"{peak:.1f} GiB peak allocation measured, {estimate:.1f} GiB estimated ({off:+.0%})")
        yield f"  {padded(local('memory'), LABEL)}{told}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def _gain(runs: Sequence[Run], found: Sequence[Factor]) -> Iterator[str]:
    """The error of each run after scaling by the factor of the others, if there are several runs of a kind."""
    before, after = left_out(runs)
    if len(before) > 1:
        alone, together = _mean(before), _mean(after)
        yield local(
            f"error of the step without calibration {alone:.0%}, "
            f"with the factor of the other runs {together:.0%} (mean of {len(before)} runs)"
        )


def left_out(runs: Sequence[Run]) -> tuple[list[float], list[float]]:
    """Errors of the estimated steps, without and with the factor from the other runs of the same kind."""
    from preflight.logs.calibration import factors

    before, after = [], []
    for run in runs:
        others = [one for one in runs if one is not run and (one.device, one.experts) == (run.device, run.experts)]
        pace = next((factor.pace for factor in factors(others)), None) if others else None
        if pace and run.seconds is not None:
            before.append(abs(run.seconds / run.measured.seconds - 1))
            after.append(abs(run.seconds / pace / run.measured.seconds - 1))
    return before, after


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def calibration_dict(runs: Sequence[Run], found: Sequence[Factor]) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "schema": 1,
        "runs": [
            {
                "log": run.name,
                "device": run.device,
                "shape": "experts" if run.experts else "dense",
                "steps": run.measured.steps,
                "seconds": run.measured.seconds,
                "estimated_seconds": run.seconds,
                "allocated": run.measured.allocated,
                "estimated_allocated": run.allocated,
                "pace": run.pace,
            }
            for run in runs
        ],
        "factors": [dict(factor._asdict()) for factor in found],
        "settings": "\n".join(settings_of(found)),
    }
