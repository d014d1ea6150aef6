"""What a job can die of, and a text that shows it."""

from __future__ import annotations

from enum import Enum

from preflight.source.record import NamedTuple


class Cause(str, Enum):
    """What kind of cause a job died of."""

    CONFIG = "config"
    DATA = "data"
    CHECKPOINT = "checkpoint"
    MEMORY = "memory"
    HOST_MEMORY = "host-memory"
    ENVIRONMENT = "environment"
    COMMUNICATION = "communication"
    NUMERICS = "numerics"
    UPSTREAM = "upstream"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


class Signature(NamedTuple):
    """A text that shows a cause. weak: it may follow from another failure, and gives way to any other cause."""

    id: str
    cause: Cause
    pattern: str
    says: str
    advice: str
    weak: bool = False
