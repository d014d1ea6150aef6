"""Doors that build the network with Megatron-Bridge: what nobody types is the model's, and not Megatron's default."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.dialects.doors.door import Keys
from preflight.dialects.doors.published import build
from preflight.dialects.megatron.namespace import Run
from preflight.dialects.megatron.unmodelled import ADAPTED
from preflight.run.value import Value

TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
NETWORK = "the model's config.json or Megatron-Bridge says it"
OFF = frozenset(
    [
        *(
            "step_batch_size_schedule",
            "rampup_batch_size",
            "decrease_batch_size_if_needed",
            "train_samples",
            "skip_train",
        ),
        *("gtp_weight_remat_size", "expert_gtp_weight_remat_size", "layerwise_disaggregated_training"),
        *("eval_global_batch_size", "eval_micro_batch_size", "lr_decay_samples", "lr_warmup_samples"),
    ]
)
"""What only Megatron's own trainer has: it is off."""


def trained(run: Run, of: str, count: int, note: str) -> Value:
    """The devices that train, at the place of the key that says how many a node has."""
    value = run.value(of).derived(count, note)
    setting = value.setting._replace(key=("devices that train",)) if value.setting is not None else None
    return value._replace(setting=setting, edits=None)


def of_bridge(run: Run, rank: int, kind: str, linears: Sequence[str] | None) -> None:
    """Adapters as Megatron-Bridge makes them: on all linears where none is named, one for all experts of a rank
    (51885cf src/megatron/bridge/peft/lora.py)."""
    named = [str(name) for name in linears or ADAPTED[:4]]
    if run.num_experts:
        named = [f"shared {name}" if name in ("linear_fc1", "linear_fc2") else name for name in named]
    run.derive("lora_target_modules", named if kind == "lora" else [*named, kind])
    run.derive("lora_r", rank)


def lose_network(run: Run, keys: Keys) -> None:
    """Arguments that are neither typed nor the door's own are not known."""
    if build(run):
        return
    own = {flag.dest for flag in keys.options.values()}
    for name in run.table.defaults:
        if name not in own and name not in OFF and name not in run.written and name not in run.effective:
            run.lose(name, NETWORK)
