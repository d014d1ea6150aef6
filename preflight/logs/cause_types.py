"""Possible causes of a job's death, and texts that indicate them."""

from __future__ import annotations

from enum import Enum

from preflight.source.record import NamedTuple


class Cause(str, Enum):
    """The kind of cause of a job's death."""

    CONFIG = "config"
    DATA = "data"
    CHECKPOINT = "checkpoint"
    MEMORY = "memory"
    HOST_MEMORY = "host-memory"
    ENVIRONMENT = "environment"
    COMMUNICATION = "communication"
    NUMERICS = "numerics"
    UPSTREAM = "upstream"
    PROGRAM = "program"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


class Signature(NamedTuple):
    """A text that indicates a cause. weak: it may follow from another failure, and any other cause takes precedence."""

    id: str
    cause: Cause
    pattern: str
    says: str
    advice: str
    weak: bool = False
