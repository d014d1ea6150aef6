"""What an estimate of step time says: terms in seconds, per stage and for the step, and what they mean for use."""

from __future__ import annotations

from preflight.source.record import NamedTuple, dataclass


class Term(NamedTuple):
    """One contribution in seconds, with the formula that gave it."""

    name: str
    seconds: float
    formula: str = ""
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class StageTerms:
    """A pipeline rank: seconds of one micro-batch, term by term."""

    index: int
    terms: tuple[Term, ...]

    @property
    def seconds(self) -> float:
        """Of one micro-batch, forward and backward."""
        return sum(term.seconds for term in self.terms)


@dataclass(frozen=True, slots=True)
class StepTimeEstimate:
    """Seconds of a training step; None where they cannot be estimated, and `unknown` says why.

    terms: what the time of the slowest stage goes to; they add up to `seconds`. stages: each stage's micro-batch.
    assumed: what the estimate takes for granted because the job does not say it. measured: how much faster a run of the
    user's own was than its estimate, by which this one is divided; 1 without one.
    """

    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    terms: tuple[Term, ...] = ()
    stages: tuple[StageTerms, ...] = ()
    unknown: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    tokens: float | None = None
    """Tokens per second and device."""
    mfu: float | None = None
    """Model operations (the causal half of attention) over the peak of the precision that is used."""
    peak: float = 0.0
    """That peak, in operations a second and device."""
    precision: str = "16-bit"
    measured: float = 1.0
