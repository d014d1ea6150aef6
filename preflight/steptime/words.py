"""The formula of each term, as `show` and reports print it."""

from __future__ import annotations

from preflight.steptime.layer import (
    ATTENTION,
    CONTEXT,
    DISPATCH,
    EXPERT,
    EXPERTS,
    INDEXER,
    LINEAR,
    MATRIX,
    MOVES,
    TENSOR,
)
from preflight.steptime.stage import AGAIN, GAPS, HEAD, TABLE

NEIGHBOURS = "pipeline exchange"
FORMULAS = {
    MATRIX: "3 · 2MKN / sustained rate + operands / memory bandwidth",
    ATTENTION: "3.5 · 4 · s²/2 · a·d / attention rate",
    LINEAR: "3.5 · 2 · (3·k·v + 64·(3k + 2v)) · heads / attention rate + bytes / memory bandwidth",
    INDEXER: "3 · 2 · s/2 · heads · d / rate + scores through memory, projections",
    MOVES: "bytes of norms, sums, rotations, gates, casts / memory bandwidth",
    EXPERTS: "as matrix products, over the tokens of one expert",
    DISPATCH: "14 · k · tokens · h · 2 B / memory bandwidth, router",
    TENSOR: "8 · (t-1)/t · tokens · h · 2 B / link, less what is hidden",
    CONTEXT: "3 · (c-1) · keys and values / link, less what is hidden",
    EXPERT: "4 · k · tokens · h · 2 B · (e-1)/e / link; between domains once per domain",
    GAPS: "3 · what is lost between kernels of a layer",
    AGAIN: "forward pass of what is recomputed",
    HEAD: "3 · 2·tokens·h·V/t / rate + logits through memory",
    TABLE: "rows read and gradients added / memory bandwidth",
    NEIGHBOURS: "2 · v · tokens · h · 2 B / network",
    "pipeline bubble": "seconds of the other stages / v, shortened by the schedule",
    "gradient reduction": "N · bytes · (d-1)/d / network, less what is hidden",
    "parameter gathering": "N · 2 B · (d-1)/d / network, less what is hidden",
    "optimizer step": "30 B · N / shards / memory bandwidth",
    "waiting for slower ranks": "a share of the whole",
}
