"""Estimated step time of all candidates: compute with recomputation, pipeline bubble, communication; seconds.

A ranking aid, not a promise: matrix work at half the device's peak, links at 70 % of their nominal rate, gradient and
context-parallel traffic half hidden behind compute. Volumes as in Narayanan et al. 2021 and Korthikanti et al. 2022.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from preflight.layouts.grid import COUNTED, RECOMPUTE, Columns, Space
from preflight.memory import flops
from preflight.run.cluster import Device
from preflight.source.record import NamedTuple

MATRIX_EFFICIENCY = 0.5
LINK_EFFICIENCY = 0.7
HIDDEN = 0.5
FALLBACK_MEMORY_RATE = 1.2e12
PASSES = 3
"""An elementwise operator that runs again reads its inputs and writes its output:
about three times the size of what it makes."""
FALLBACK_FLOPS, FALLBACK_INTRA, FALLBACK_INTER = 312e12, 200e9, 25e9


class Time(NamedTuple):
    """Seconds per step and candidate: everything, and its parts; bubble is a fraction of the compute time."""

    total: Any
    compute: Any
    bubble: Any
    communication: Any
    mfu: Any


def step_time(space: Space, columns: Columns, device: Device | None, share: Any = 1.0, moved: Any = 0.0) -> Time:
    """Times of every candidate. share: layers that are recomputed in full, of those candidates that count them;
    moved: bytes that recomputed elementwise operators of a device read and write in a step."""
    peak = (device.flops if device and device.flops else FALLBACK_FLOPS) * space.world
    work = [flops.step(_batch(space, mode)) for mode in RECOMPUTE]
    hardware = np.array([*(w.hardware for w in work), 0.0])[columns["recompute"]]
    counted = work[0].hardware + share * (work[2].hardware - work[0].hardware)
    hardware = np.where(columns["recompute"] == COUNTED, counted, hardware)
    compute = hardware / (peak * MATRIX_EFFICIENCY) + moved / FALLBACK_MEMORY_RATE
    bubble = (columns["pipeline"] - 1) / (columns["virtual"] * np.maximum(columns["micro_batches"], 1))
    per_micro, per_step = _communication(space, columns, device)
    busy = compute + per_micro
    total = busy * (1 + bubble) + per_step
    return Time(total, compute, bubble, per_micro + per_step, work[0].model / (total * peak))


def _batch(space: Space, mode: str) -> Any:
    """The whole global batch on one replica, for counting operations."""
    modules = space.shape.modules or frozenset(("core_attn",))
    return replace(
        space.shape,
        micro=space.batch or space.world,
        count=1,
        data=1,
        recompute=mode,
        method="uniform",
        full_layers=None,
        modules=modules,
    )


def _link(span: Any, space: Space, device: Device | None) -> Any:
    """Bytes per second of a group that spans so many consecutive ranks."""
    intra = (device.intra if device and device.intra else FALLBACK_INTRA) * LINK_EFFICIENCY
    inter = (device.inter if device and device.inter else FALLBACK_INTER) * LINK_EFFICIENCY
    return np.where(span <= space.per_node, intra, inter)


def _communication(space: Space, columns: Columns, device: Device | None) -> tuple[Any, Any]:
    """Seconds spent between devices: in every micro-batch (summed over the step), and once a step."""
    s = space.shape
    t, c, p, d, e = (columns[name] for name in ("tensor", "context", "pipeline", "data", "expert"))
    layers = sum(map(sum, s.stages)) / p
    tokens = s.sequence * columns["micro"] * columns["micro_batches"] / c
    repeats = np.where(columns["recompute"] >= 2, 1.5, 1.0)
    tensor = layers * repeats * 16 * (t - 1) / t * tokens * s.hidden / _link(t, space, device)
    context = (
        HIDDEN * layers * 3 * 4 * (c - 1) * tokens * max(s.groups, 1) * s.head_dim / t / _link(t * c, space, device)
    )
    stages = np.where(
        p > 1, 4 * columns["virtual"] * tokens * s.hidden / np.where(columns["sequence_parallel"] == 1, t, 1), 0.0
    )
    pipeline = stages / _link(np.full_like(p, space.world), space, device)
    experts = _experts(space, columns, layers * tokens, device) if s.experts else 0.0
    weights = sum(map(sum, s.stages)) * 12 * s.hidden**2 / (t * p) + s.vocab * s.hidden / t
    ring = (d * c - 1) / (d * c)
    gradients = HIDDEN * (s.gradient_bytes + s.parameter_bytes) * weights * ring / _link(t * c * d, space, device)
    return tensor + context + pipeline + experts, gradients * np.where(d * c > 1, 1, 0) + 0 * e


def _experts(space: Space, columns: Columns, layer_tokens: Any, device: Device | None) -> Any:
    """All-to-all of dispatched tokens: there and back, forward and backward."""
    s = space.shape
    assert s.experts is not None
    e = columns["expert"]
    share = sum(s.experts.layers) / max(len(s.experts.layers), 1)
    tokens = layer_tokens / np.where(columns["sequence_parallel"] == 1, columns["tensor"], 1)
    volume = 4 * 2 * tokens * share * s.experts.top_k * s.hidden * (e - 1) / e
    return volume / _link(e * columns["expert_tensor"], space, device)
