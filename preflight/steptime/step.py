"""Seconds of a step from the seconds of its stages: the pace, the bubble of the schedule, what happens once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from preflight.memory.shape import Shape
from preflight.source.record import NamedTuple
from preflight.steptime.arithmetic import Number, chosen, greater
from preflight.steptime.collectives import sent
from preflight.steptime.machine import Machine
from preflight.steptime.operators import Both
from preflight.steptime.spread import Spread
from preflight.steptime.stage import EXCHANGES, Held, Layers, layers_of, micro_batch
from preflight.steptime.states import Once, once
from preflight.steptime.traits import Traits

SHORTENED = {"zero-bubble-v": 1 / 6, "zero-bubble": 1 / 3, "dual-pipe-v": 1 / 3, "dual-pipe": 1 / 3}
"""What these schedules leave of the bubble of 1F1B, with a backward pass of twice the forward one (Qi et al. 2023,
table 2; DeepSeek-V3 2024, table 2)."""


class StageTime(NamedTuple):
    """A stage: its parts for one micro-batch, the exchange with its neighbours, what it does once a step."""

    held: Held
    parts: dict[str, Both]
    neighbours: Number
    once: Once

    @property
    def seconds(self) -> Number:
        """Of one micro-batch."""
        return sum(both.total for both in self.parts.values()) + self.neighbours


class Step(NamedTuple):
    """Seconds of a step: of all of it, of all micro-batches on the slowest stage, waiting for other stages, exchange
    between devices of those micro-batches and of the step, the update."""

    seconds: Number
    busy: Number
    bubble: Number
    exchange: Number
    update: Number


def stage_times(
    s: Shape, t: Traits, w: Spread, m: Machine, kinds: Iterable[Held], layers: Layers | None = None
) -> list[StageTime]:
    """Stages that hold different things. layers: what a layer takes, where that is known."""
    layers, neighbours = layers or layers_of(s, t, w, m), _neighbours(s, t, w, m)
    return [_stage_time(s, t, w, m, held, micro_batch(s, w, m, layers, held), neighbours) for held in kinds]


def _stage_time(
    s: Shape, t: Traits, w: Spread, m: Machine, held: Held, parts: dict[str, Both], neighbours: Number
) -> StageTime:
    back = sum(both.backward for both in parts.values())
    ahead = sum(both.forward for both in parts.values())
    return StageTime(held, parts, neighbours, once(s, t, w, m, held, back, ahead))


def _neighbours(s: Shape, t: Traits, w: Spread, m: Machine) -> Number:
    """Activations go to the next stage and gradients come back, for each chunk."""
    split = chosen(w.sequence_parallel > 0, w.tensor, 1)
    size = 2.0 * s.sequence * w.micro / w.context * s.hidden / split
    stride = w.tensor * w.context * w.data
    shown = 1 - (m.rates.hidden if t.hides_stages else 0.0)
    one = sent(m, stride, size) * chosen(w.virtual > 1, shown, 1.0)
    return 2 * w.virtual * one * (w.pipeline > 1)


def step(s: Shape, w: Spread, m: Machine, stages: Sequence[StageTime], counts: Sequence[Number]) -> Step:
    """A step over stages of these kinds, each so many times there."""
    pace: Number = 0.0
    whole: Number = 0.0
    rest: Number = 0.0
    update: Number = 0.0
    for stage, count in zip(stages, counts, strict=True):
        present = count > 0
        pace = greater(pace, stage.seconds * present)
        whole = whole + stage.seconds * count
        rest = greater(rest, (stage.once.gradients + stage.once.parameters) * present)
        update = greater(update, stage.once.update * present)
    bubble = (whole - pace) / w.virtual * SHORTENED.get(s.schedule, 1.0)
    if s.splits > 1:
        bubble = bubble / s.splits
    busy = w.count * pace * (1 + m.rates.coupling * (w.pipeline > 1))
    middle = stages[-1] if len(stages) < 2 else stages[1]
    between = sum(middle.parts[name].total for name in EXCHANGES if name in middle.parts) + middle.neighbours
    factor = m.rates.straggler / m.rates.measured
    seconds = (busy + bubble + rest + update) * factor
    return Step(seconds, busy * factor, bubble * factor, (w.count * between + rest) * factor, update * factor)
