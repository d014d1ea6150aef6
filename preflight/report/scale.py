"""How the best layouts of a run do on several numbers of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from preflight.report.escapes import plain
from preflight.run.sizes import Sizes
from preflight.source.record import NamedTuple


class Point(NamedTuple):
    """The best layout on so many devices: seconds a step, tokens a second, or why there is none."""

    devices: int
    seconds: float = 0.0
    tokens: float = 0.0
    mfu: float = 0.0
    sizes: Sizes | None = None
    why: str = ""


def scale_text(path: str, points: Sequence[Point]) -> str:
    """A table; efficiency: tokens per second and device against those of the fewest devices."""
    lines = [f"{path}: the fastest layout on each number of devices, the global batch as it is"]
    first = next((point for point in points if point.seconds), None)
    heads = (
        f"{'devices':>8}{'layout':>30}{'step s':>9}{'tokens/s':>13}{'tokens/s/device':>17}{'MFU':>6}{'efficiency':>12}"
    )
    lines.append(heads)
    for point in points:
        if point.sizes is None or first is None:
            lines.append(f"{point.devices:>8}  none: {point.why}")
            continue
        each, base = point.tokens / point.devices, first.tokens / first.devices
        lines.append(
            f"{point.devices:>8}{_layout(point.sizes):>30}{point.seconds:>9.3g}{point.tokens:>13,.0f}{each:>17,.0f}"
            f"{point.mfu:>6.0%}{each / base:>12.0%}"
        )
    return "".join(f"{plain(line)}\n" for line in lines)


def _layout(sizes: Sizes) -> str:
    parts = {
        "TP": sizes.tensor, "PP": sizes.pipeline, "VPP": sizes.virtual, "CP": sizes.context, "EP": sizes.expert,
        "DP": sizes.data,
    }  # fmt: skip
    return " ".join(f"{name}{size}" for name, size in parts.items() if size > 1) or "one device"


def scale_dict(point: Point) -> dict[str, Any]:
    """The same as data."""
    return {
        "devices": point.devices,
        "seconds": point.seconds or None,
        "tokens_per_second": point.tokens or None,
        "mfu": point.mfu or None,
        "sizes": point.sizes._asdict() if point.sizes is not None else None,
        "why": point.why or None,
    }
