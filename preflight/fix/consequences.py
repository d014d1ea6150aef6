"""What a fix changes of the training itself: parameters, tokens per step, optimizer."""

from __future__ import annotations

from preflight.job import Job
from preflight.run.value import known


def consequences(before: Job, after: Job) -> str:
    """What is trained otherwise after a change, in numbers; "" where nothing is."""
    told = [
        _told("parameters", _parameters(before), _parameters(after)),
        _told("tokens per step", _tokens(before), _tokens(after)),
        _told("optimizer", _optimizer(before), _optimizer(after)),
    ]
    return ", ".join(filter(None, told))


def _told(what: str, before: str, after: str) -> str:
    return f"{what} {before} → {after}" if before and after and before != after else ""


def _parameters(job: Job) -> str:
    from preflight.memory.parameters import model
    from preflight.memory.shape import Missing, shape

    try:
        return _count(model(shape(job.plan)))
    except (Missing, ArithmeticError, ValueError, TypeError, IndexError):
        return ""


def _tokens(job: Job) -> str:
    numbers = known(job.plan.batch.total, job.plan.model.sequence)
    return f"{numbers[0] * numbers[1]:,}" if numbers and all(isinstance(n, int) for n in numbers) else ""


def _optimizer(job: Job) -> str:
    found = known(job.plan.optimizer.name)
    return str(found[0]) if found else ""


def _count(number: float) -> str:
    return f"{number / 1e9:.2f} billion" if number >= 1e9 else f"{number / 1e6:.1f} million"
