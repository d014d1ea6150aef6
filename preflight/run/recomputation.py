"""What a run makes again in its backward pass, in neutral terms."""

from __future__ import annotations

from preflight.run.value import Value, unknown
from preflight.source.record import dataclass

_NOT_GIVEN = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompute:
    """Activation recomputation."""

    mode: Value = _NOT_GIVEN  # "none", "full", "selective"
    method: Value = _NOT_GIVEN  # Megatron's "uniform" or "block"; None
    layers: Value = _NOT_GIVEN  # recompute_num_layers; None
    shared: Value = _NOT_GIVEN  # True: a rank's virtual stages share that number, dealt out layer by layer
    modules: Value = _NOT_GIVEN  # tuple of module names for "selective"
    full_layers: Value = _NOT_GIVEN  # layers[v][s] fully recomputed, where counts are given per stage; None
    # tuple of (names of kept outputs as the memory model calls them, counts per [v][s]); None
    operators: Value = _NOT_GIVEN
    # tuple of (a linear as adapters name it, or "scores", that runs again; counts per [v][s]); None
    repeated: Value = _NOT_GIVEN
    doubtful: Value = _NOT_GIVEN  # tuple of kept outputs of which some may be gone at the peak; () or None
    offload: Value = _NOT_GIVEN  # activation offloading or swap is on
