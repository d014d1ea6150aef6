"""What `preflight layouts --scale` does: the best layout on each of several numbers of devices."""

from __future__ import annotations

from pathlib import Path

from preflight.cli import output, session
from preflight.cli.codes import FOUND, OK
from preflight.cli.delivery import deliver
from preflight.cli.layout_search import Wanted
from preflight.cli.options import Inputs, JobFacts, Printed, Rules
from preflight.cli.unread import refuse_unread
from preflight.layouts.sweep import every_run
from preflight.report.dump import dumped
from preflight.report.scale import Point, scale_dict, scale_text
from preflight.run.request import MOST_DEVICES
from preflight.source.text import InputError, Source

DIGITS = 1000


def scaled(inputs: Inputs, facts: JobFacts, rules: Rules, out: Printed, wanted: Wanted, numbers: str, plot: str) -> int:
    """Search on each number of devices, and print the best. Raises InputError."""
    output.printed(out)
    counts = _counts(numbers)
    checker = session.checker(facts, rules)
    named = list(session.sources(checker, inputs, []))
    if len(named) != 1:
        raise InputError("--scale takes one file")
    source = named[0][0]
    if facts.set:
        checker.workspace([source]).check()
        refuse_unread(checker, inputs, [source.name])
    points = [_point(source, facts._replace(world_size=count, nodes=None), rules, wanted, count) for count in counts]
    text = dumped({"schema": 1, "scale": [scale_dict(point) for point in points]})
    text = text if out.output_format == "json" else scale_text(source.name, points)
    deliver(text, out.output_file, (source.name,))
    if plot:
        from preflight.report.plot import plot_scale

        plot_scale([(p.devices, p.tokens) for p in points if p.seconds], Path(plot), source.name)
    return OK if all(point.seconds for point in points) else FOUND


def _counts(numbers: str) -> list[int]:
    words = [word.strip() for word in numbers.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and int(word[:DIGITS]) > 0 for word in words):
        raise InputError(f"--scale takes numbers of devices, as in 32,64,128, not {numbers!r}")
    if most := next((word for word in words if len(word) > DIGITS or int(word) > MOST_DEVICES), ""):
        raise InputError(f"--scale takes at most {MOST_DEVICES:,} devices, not {most[:40]}")
    return sorted({int(word) for word in words})


def _point(source: Source, facts: JobFacts, rules: Rules, wanted: Wanted, count: int) -> Point:
    limits = wanted.limits._replace(show=1, ranked=False)
    result = every_run(session.checker(facts, rules).workspace([source]), limits)[0]
    if not result.layouts:
        why = result.unknown or next((why for why, _ in result.rejected.most_common(1)), "no layout")
        return Point(count, why=why)
    best = result.layouts[0]
    return Point(count, best.seconds, result.tokens / best.seconds, best.mfu, best.sizes)
