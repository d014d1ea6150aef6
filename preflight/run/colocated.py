"""What shares the devices of a run that trains by reinforcement: the models beside the one that learns."""

from __future__ import annotations

from preflight.run.value import Value, unknown
from preflight.source.record import dataclass

_NOT_GIVEN = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Colocated:
    """Models beside the actor, on its own devices."""

    policy: Value = _NOT_GIVEN  # True: the loss needs log-probabilities of every token
    reference: Value = _NOT_GIVEN  # frozen copies of the weights that are on the device during a training step
    rollout: Value = _NOT_GIVEN  # part of the device that an engine takes to generate; None: it has other devices
    asleep: Value = _NOT_GIVEN  # True: the engine frees its weights and cache before a training step
    # what of the actor is off the device while the engine generates: "weights", "gradients", "optimizer"
    freed: Value = _NOT_GIVEN
