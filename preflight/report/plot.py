"""The memory of a run as a chart: PNG, SVG or PDF with the extra `plot`, HTML with the extra `reports`."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from preflight.job import Job
from preflight.memory import MemoryEstimate
from preflight.memory.result import term_names
from preflight.run.cluster import GIB
from preflight.source.source_file import InputError
from preflight.source.typing_without_import import Any
from preflight.source.writing import write_report

HUES = {"steady": "Blues", "dynamic": "Oranges", "device": "Greys"}
HATCHES = ("", "//", "..", "\\\\", "xx")
FORMATS = (".png", ".svg", ".pdf")


def plot(job: Job, path: Path) -> None:
    """Write stacked bars per stage. Raises InputError for an unknown format, a missing library, or nothing to draw."""
    if path.suffix == ".html":
        from preflight.checking.engine import Report
        from preflight.report.html import render

        page = render(Report(jobs=(job,), checked=(job.documents[0].source.name,)))
        write_report(str(path), page)
        return
    if path.suffix not in FORMATS:
        raise InputError(f"--plot writes {', '.join((*FORMATS, '.html'))}, not {path.suffix or path.name!r}")
    if not job.memory.stages:
        raise InputError(f"nothing to draw: {'; '.join(job.memory.unknown)}", job.documents[0].source.name)
    import matplotlib

    matplotlib.use("agg")
    _draw(job, path)


def plot_scale(points: list[tuple[int, float]], path: Path, name: str) -> None:
    """Draw tokens per second over the number of devices, next to perfect scaling.

    Raises InputError for an unknown format or nothing to draw.
    """
    if path.suffix not in FORMATS:
        raise InputError(f"--plot writes {', '.join(FORMATS)}, not {path.suffix or path.name!r}")
    if not points:
        raise InputError("nothing to draw, because no device count has a valid layout", name)
    import matplotlib

    matplotlib.use("agg")
    _draw_scale(points, path, name)


def _draw_scale(points: list[tuple[int, float]], path: Path, name: str) -> None:
    from matplotlib import pyplot

    devices, tokens = [count for count, _ in points], [rate for _, rate in points]
    figure, axes = pyplot.subplots(figsize=(7, 5), layout="constrained")
    axes.plot(devices, tokens, marker="o", label="the fastest layout")
    axes.plot(devices, [tokens[0] * count / devices[0] for count in devices], "--", label="perfect scaling")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(devices, [f"{count:,}" for count in devices])
    axes.set_yticks(tokens, [f"{rate:,.0f}" for rate in tokens])
    axes.minorticks_off()
    axes.set_xlabel("devices")
    axes.set_ylabel("tokens per second (estimated)")
    axes.set_title(name)
    axes.legend()
    _save(figure, path)
    pyplot.close(figure)


def _save(figure: Any, path: Path) -> None:
    picture = BytesIO()
    figure.savefig(picture, format=path.suffix[1:])
    write_report(str(path), picture.getvalue())


def _looks(estimate: MemoryEstimate) -> dict[str, tuple[str, float, str]]:
    """The style of each term: one hue each for permanent terms, activations and the rest; within a hue terms differ in
    shade and pattern."""
    kinds: dict[str, list[str]] = {kind: [] for kind in HUES}
    for term in (term for stage in estimate.stages for term in stage.terms):
        if term.name not in kinds[term.kind]:
            kinds[term.kind].append(term.name)
    return {
        name: (HUES[kind], 0.35 + 0.6 * at / max(len(names) - 1, 1), HATCHES[at % len(HATCHES)])
        for kind, names in kinds.items()
        for at, name in enumerate(names)
    }


def _draw(job: Job, path: Path) -> None:
    from matplotlib import pyplot

    estimate = job.memory
    labels = [f"stage {stage.index}" for stage in estimate.stages]
    names = term_names(estimate.stages)
    figure, axes = pyplot.subplots(figsize=(12, 1.5 + max(0.45 * len(labels), 0.2 * len(names))), layout="constrained")
    left = [0.0] * len(labels)
    look = _looks(estimate)
    for name in names:
        sizes = [sum(term.high for term in stage.terms if term.name == name) / GIB for stage in estimate.stages]
        hue, shade, hatch = look[name]
        color = pyplot.get_cmap(hue)(shade)
        axes.barh(labels, sizes, left=left, label=name, color=color, hatch=hatch, edgecolor="white", linewidth=0.3)
        left = [start + size for start, size in zip(left, sizes, strict=True)]
    if estimate.budget:
        axes.axvline(estimate.budget / GIB, color="black", linestyle="--", label="device")
    axes.invert_yaxis()
    axes.set_xlabel("GiB per rank")
    axes.set_title(f"{job.documents[0].source.name}: {estimate.verdict}")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)
    _save(figure, path)
    pyplot.close(figure)
