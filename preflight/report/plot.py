"""The memory of a run as a picture: PNG, SVG or PDF by the extra `plot`, HTML by the extra `reports`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from preflight.job import Job
from preflight.run.cluster import GIB
from preflight.source.text import InputError

FORMATS = (".png", ".svg", ".pdf")


def plot(job: Job, path: Path) -> None:
    """Write stacked bars per stage. Raises InputError for an unknown format, a missing library, or nothing to draw."""
    if path.suffix == ".html":
        from preflight.checking.result import Report
        from preflight.report.html import render

        page = render(Report(jobs=(job,), checked=(job.documents[0].source.name,)))
        _written(path, lambda: path.write_text(page, encoding="utf-8"))
        return
    if path.suffix not in FORMATS:
        raise InputError(f"--plot writes {', '.join((*FORMATS, '.html'))}, not {path.suffix or path.name!r}")
    if not job.memory.stages:
        raise InputError(f"there is nothing to draw: {'; '.join(job.memory.unknown)}", job.documents[0].source.name)
    import matplotlib

    matplotlib.use("agg")
    _written(path, lambda: _draw(job, path))


def _written(path: Path, write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None


def _draw(job: Job, path: Path) -> None:
    from matplotlib import pyplot

    estimate = job.memory
    labels = [f"stage {stage.index}" for stage in estimate.stages]
    names = list(dict.fromkeys(term.name for stage in estimate.stages for term in stage.terms))
    figure, axes = pyplot.subplots(figsize=(12, 1.5 + max(0.45 * len(labels), 0.2 * len(names))), layout="constrained")
    left = [0.0] * len(labels)
    for index, name in enumerate(names):
        sizes = [sum(term.high for term in stage.terms if term.name == name) / GIB for stage in estimate.stages]
        axes.barh(labels, sizes, left=left, label=name, color=pyplot.get_cmap("tab20")(index % 20))
        left = [start + size for start, size in zip(left, sizes, strict=True)]
    if estimate.budget:
        axes.axvline(estimate.budget / GIB, color="black", linestyle="--", label="device")
    axes.invert_yaxis()
    axes.set_xlabel("GiB per rank")
    axes.set_title(f"{job.documents[0].source.name}: {estimate.verdict}")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)
    figure.savefig(path)
    pyplot.close(figure)
