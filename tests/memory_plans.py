"""Plans built from plain numbers, for tests of the memory model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from preflight.run.request import Target
from preflight.run.training_plan import Plan
from preflight.run.value import default

LLAMA_7B = {
    "model.hidden": 4096,
    "model.heads": 32,
    "model.query_groups": 32,
    "model.head_dim": 128,
    "model.ffn": 11008,
    "model.gated": True,
    "model.vocab": 32000,
    "model.sequence": 4096,
    "model.positions": 0,
    "model.tied": False,
    "model.norm": "rms",
    "model.attention": "flash",
    "model.hidden_dropout": 0.0,
    "model.attention_dropout": 0.0,
    "layout.tensor": 1,
    "layout.pipeline": 1,
    "layout.context": 1,
    "layout.data": 8,
    "layout.sequence_parallel": False,
    "layout.stages": ((32,),),
    "batch.micro": 1,
    "batch.count": 8,
    "recompute.mode": "none",
    "precision.parameters": "bf16",
    "precision.compute": "bf16",
    "precision.gradients": "fp32",
    "precision.master": "fp32",
    "precision.states": "fp32",
    "optimizer.name": "adam",
    "optimizer.zero": 0,
    "model.cross_entropy": "unfused",
}


def make(**changes: Any) -> Plan:
    """A 7B plan with values replaced; keys are dotted names with __ for the dot."""
    plan = Plan(target=Target("megatron", "0.20.0"))
    for name, raw in {**LLAMA_7B, **{key.replace("__", "."): raw for key, raw in changes.items()}}.items():
        part, _, field = name.partition(".")
        plan = replace(plan, **{part: replace(getattr(plan, part), **{field: default(raw)})})
    return plan
