"""The table of layouts that fit, as text and as plain data."""

from __future__ import annotations

import math
from typing import Any

from preflight.layouts import Found, Result
from preflight.report.escapes import plain

GIB = 2**30
COLUMNS = ("tensor", "pipeline", "virtual", "context", "expert", "expert_tensor", "data", "micro", "recompute")
NO_DEVICE = (
    "no device is named (--device): times are those of 312 TFLOP/s a device, "
    "and memory is compared with nothing but a limit of the config"
)
HEADS = ("TP", "PP", "VPP", "CP", "EP", "ETP", "DP", "MBS", "recompute")


def layouts_text(path: str, result: Result, explain: bool) -> str:
    """A table, best first, with what decides between them."""
    lines = [f"{plain(path)}: {result.considered} layouts considered, {len(result.layouts)} shown"]
    if result.unknown:
        return plain(f"{path}: no layouts: {result.unknown}") + "\n"
    if result.layouts:
        rows = [[str(number), *_row(found)] for number, found in enumerate(result.layouts, 1)]
        lines += _table([["#", *HEADS, "step s", "MFU", "bubble", "comm s", "headroom GiB"], *rows])
        lines.append("estimated times rank layouts; they are no promise")
        lines += [] if result.device else [NO_DEVICE]
    reasons = [f"{count:>8}  {why}" for why, count in result.rejected.most_common() if count]
    if reasons and (explain or not result.layouts):
        lines += ["left out:", *reasons]
        if not result.layouts and any(why.startswith("rule ") for why in result.rejected):
            lines.append("where a rule refuses every layout, something else is wrong: preflight check shows what")
    elif not result.layouts:
        lines.append("no layout of these devices is left to look at; do --fix and --max leave any?")
    return "".join(f"{plain(line)}\n" for line in lines)


def _row(found: Found) -> list[str]:
    sizes = found.sizes._asdict()
    if found.sizes.full_layers:
        sizes["recompute"] = f"{list(found.sizes.full_layers)}" if any(found.sizes.full_layers) else "none"
    if found.sizes.listed:
        sizes["recompute"] += f" + operators {list(found.sizes.listed)}"
    if found.sizes.stages and len(set(found.sizes.stages)) > 1:
        sizes["pipeline"] = f"{found.sizes.pipeline} {list(found.sizes.stages)}"
    if found.sizes.chunks:
        sizes["pipeline"] = f"{found.sizes.pipeline} {[list(row) for row in found.sizes.chunks]}"
    room = f"{found.headroom / GIB:.1f}" if math.isfinite(found.headroom) else "?"
    return [
        *(str(sizes[name]) for name in COLUMNS),
        f"{found.seconds:.3g}",
        f"{found.mfu:.0%}",
        f"{found.bubble:.0%}",
        f"{found.communication:.2g}",
        room,
    ]


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def layouts_dict(path: str, result: Result, run: int = 1) -> dict[str, Any]:
    """The same as data; seconds and bytes."""
    return {
        "path": path,
        "run": run,
        "considered": result.considered,
        "unknown": result.unknown or None,
        "device": result.device or None,
        "layouts": [_found(found) for found in result.layouts],
        "rejected": {why: count for why, count in result.rejected.most_common() if count},
    }


def _found(found: Found) -> dict[str, Any]:
    worst = found.memory.worst
    return {
        "sizes": found.sizes._asdict(),
        "seconds": found.seconds,
        "mfu": found.mfu,
        "bubble": found.bubble,
        "communication": found.communication,
        "headroom": found.headroom if math.isfinite(found.headroom) else None,
        "required": worst.required if worst else None,
        "changes": {str(edit.key[-1]): edit.value for edit in found.edits if edit.action == "set"},
    }
