"""The plan used to estimate memory if a run leaves too much open."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm

from preflight.dialects.megatron.derivation_namespace import NotKnown, Run
from preflight.dialects.megatron.parse_faults import UNKNOWN_FLAG
from preflight.dialects.megatron.parsing import Parsed
from preflight.dialects.megatron.plan_values import Puts
from preflight.dialects.megatron.run_plan import plan
from preflight.run.cluster import Cluster
from preflight.run.request import Target
from preflight.run.training_plan import Plan, Supposed
from preflight.run.unmodelled_features import Unmodelled
from preflight.run.value import Origin, Value
from preflight.source.record import replace
from preflight.source.typing_without_import import Protocol

FROZEN = "--freeze-LM"
REPAIRS = 3
"""With this many corrections, a run counts as a different one."""


class Words(Protocol):
    """The inputs that a run is read from."""

    @property
    def parsed(self) -> Parsed: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def target(self) -> Target: ...
    @property
    def lost(self) -> str: ...
    @property
    def reasons(self) -> tuple[str, ...]: ...
    def again(self, written: Mapping[str, Value], count: Value) -> Run: ...
    def planned(self, plan: Plan, run: Run) -> Plan: ...


def suppose(words: Words, writer: Puts) -> Supposed | None:
    """The run with assumed values for what it leaves open; None if nothing is open."""
    lost, typed, world = words.lost, dict(words.parsed.written), words.cluster.count
    reasons = [*([f"no additional options are assumed: {lost}"] if lost else []), *words.reasons]
    if (given := typed.get("use_checkpoint_args")) is not None and given.raw is not False:
        reasons.append("the checkpoint of --use-checkpoint-args has the same sizes as the options of the run")
    for name, value in words.parsed.written.items():
        if value.setting is not None and value.setting.maybe and not value.known:
            typed[name] = value._replace(raw=value.setting.value, origin=Origin.ASSUMED)
            reasons.append(f"{value.setting.key[-1]} has the value from the branch that sets it")
    run, replaced = words.again(typed, world), list[str]()
    for _ in range(REPAIRS):
        found = _devices(run) or _layers(run, typed)
        if found is None:
            break
        reason, typed, world = found[0], found[1] or typed, found[2] or world
        replaced.append(reason)
        run = words.again(typed, world)
    reasons += replaced
    return Supposed(_planned(run, words, writer), tuple(reasons), tuple(replaced)) if reasons else None


FOREIGN = frozenset((Unmodelled.OWN_ENTRY_SCRIPT, Unmodelled.FROZEN_LANGUAGE_MODEL, Unmodelled.FROZEN_PARAMETERS))
"""Values that suggest that the run trains another model, or parts of it."""


def _planned(run: Run, words: Words, writer: Puts) -> Plan:
    """The plan, including effects that an entry script may have."""
    made = words.planned(plan(run, words.target, writer), run)
    own = {fault.span.text for fault in words.parsed.faults if fault.kind == UNKNOWN_FLAG}
    told = FOREIGN.intersection(made.unmodelled)
    if not own or told or run.value("entry_is_known").raw:
        return made
    beside = Unmodelled.FROZEN_LANGUAGE_MODEL if FROZEN in own else Unmodelled.OWN_ENTRY_SCRIPT
    return replace(made, unmodelled=(*made.unmodelled, beside))


Found = tuple[str, dict[str, Value] | None, Value | None] | None


def _devices(run: Run) -> Found:
    """The number of devices, rounded to a multiple of the layout if the given number is not one."""
    world = run.value("world_size")
    if run.value("data_parallel_size").known and run.value("expert_data_parallel_size").known:
        return None
    try:
        model = int(run.total_model_size)
        experts = int(run.expert_model_size) if run.num_experts else 1
    except NotKnown:
        return None
    least = lcm(model, experts)
    if model < 1 or experts < 1 or not world.known or not isinstance(world.raw, int) or world.raw < 1:
        return None
    count = -(-world.raw // least) * least
    if count == world.raw:
        return None
    reason = f"{count} devices instead of {world.raw}, which is not a multiple of the layout"
    return reason, None, Value(count, Origin.ASSUMED, note=reason)


def _layers(run: Run, typed: Mapping[str, Value]) -> Found:
    """The number of layers, rounded to a multiple of the number of stages."""
    if run.value("layers_per_chunk").known:
        return None
    try:
        layers, stages = (
            run.num_layers,
            run.pipeline_model_parallel_size * (run.num_layers_per_virtual_pipeline_stage or 1),
        )
    except (NotKnown, TypeError):
        return None
    if not isinstance(layers, int) or not isinstance(stages, int) or stages < 1 or not layers % stages:
        return None
    count = -(-layers // stages) * stages
    reason = f"{count} layers instead of {layers}, which are not divisible by {stages} stages"
    return reason, {**typed, "num_layers": Value(count, Origin.ASSUMED, note=reason)}, None
