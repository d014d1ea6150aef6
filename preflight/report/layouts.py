"""The table of layouts that fit, on one number of devices or on several, as text and as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from preflight.layouts import Found, Result
from preflight.report.memory import between
from preflight.report.source_excerpts_and_escapes import plain
from preflight.run.training_plan import Sizes
from preflight.source.finding import Message
from preflight.source.record import NamedTuple
from preflight.source.translation import columns, local, padded
from preflight.source.typing_without_import import Any


class Point(NamedTuple):
    """The best layout for a number of devices: seconds per step and tokens per second, or the reason for having
    none."""

    devices: int
    seconds: float = 0.0
    tokens: float = 0.0
    mfu: float = 0.0
    sizes: Sizes | None = None
    why: str = ""


def scale_text(path: str, points: Sequence[Point]) -> str:
    """A table; efficiency: tokens per second and device against those of the fewest devices."""
    lines = [f"{path}: {local('the fastest layout for each number of devices, with the same global batch')}"]
    first = next((point for point in points if point.seconds), None)
    heads = {"devices": 8, "layout": 30, "step s": 9, "tokens/s": 13, "tokens/s/device": 17, "MFU": 6, "efficiency": 12}
    lines.append("".join(padded(local(head), width, right=True) for head, width in heads.items()))
    for point in points:
        if point.sizes is None or first is None:
            lines.append(f"{point.devices:>8}  {local(f'none: {local(point.why)}')}")
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


GIB = 2**30
COLUMNS = ("tensor", "pipeline", "virtual", "context", "expert", "expert_tensor", "data", "micro", "recompute")
NO_DEVICE = (
    "no device is named (--device), so times assume 312 TFLOP/s per device, and memory is compared only with a limit "
    "in the config"
)
ALL_REFUSED = "the rules reject every layout; run `preflight check` first"
MANYFOLD = 10
"""From this factor on, a change is printed as a multiple instead of a percentage."""
HEADS = ("TP", "PP", "VPP", "CP", "EP", "ETP", "DP", "MBS", "recompute")
PLAIN = "16-bit s"
FIGURES = ("step s", "MFU", "bubble", "comm s", "GiB at most", "headroom")


class Shown(NamedTuple):
    """Printing options: whether to list the reasons for rejecting layouts."""

    explain: bool = False


def layouts_text(path: str, result: Result, shown: Shown = Shown()) -> str:
    """A table: the present layout, then others, best first, each with its changes."""
    if result.unknown:
        return plain(f"{path}: {local(f'no layouts: {result.unknown}')}") + "\n"
    shown_layouts = len(result.layouts)
    lines = [f"{plain(path)}: {local(f'{result.considered} layouts considered, {shown_layouts} shown')}"]
    if result.layouts:
        lines += _table([["#", *HEADS, *FIGURES, *([PLAIN] if result.fp8 else [])], *_rows(result)])
        lines += map(local, _notes(result, shown))
    reasons = [f"{count:>8}  {local(why)}" for why, count in result.rejected.most_common() if count]
    if reasons and (shown.explain or not result.layouts):
        lines += [local("rejected:"), *reasons]
        if not result.layouts and any(why.startswith("rule ") for why in result.rejected):
            lines.append(local(ALL_REFUSED))
    elif not result.layouts:
        lines.append(local("no layout on these devices satisfies --keep and --max"))
    return "".join(f"{plain(line)}\n" for line in lines)


def _rows(result: Result) -> Iterator[list[str]]:
    now = result.current
    if result.present is not None:
        none = ["-"] * (len(FIGURES) + bool(result.fp8))
        figures = _figures(now, None, bool(result.fp8)) if now is not None else none
        yield ["now", *_sizes(result.present), *figures]
    for number, found in enumerate(result.layouts, 1):
        label = str(number) if found.edits else f"{number} (now)"
        yield [label, *_sizes(found.sizes), *_figures(found, now, bool(result.fp8))]


def _notes(result: Result, shown: Shown) -> Iterator[str]:
    """The legend of the table."""
    if result.withheld:
        yield f"the current layout has no time and no verdict: {result.withheld}"
    elif result.current is not None:
        yield from _placed(result.current, result)
    if result.current is not None:
        yield "percentages and signed numbers are changes relative to the current layout"
    yield "times are estimates; `preflight show` prints the range of each (docs/step-time.md)"
    yield from _classes(result)
    for number, found in enumerate(result.layouts, 1):
        if rows := _uneven(found.sizes):
            each = "; ".join(map(_counts, rows))
            yield f"* {number}: layers per stage {each}" + (", one list per virtual stage" if len(rows) > 1 else "")
    yield from (_written(number, found) for number, found in enumerate(result.layouts, 1) if found.edits)
    yield from _caveats(result)
    if result.pace != 1.0:
        yield (
            f"times are divided by {result.pace:.2f}, because the measured run in the settings was faster by this "
            "factor"
        )
    if shown.explain:
        yield from _explained(result)
    if not result.device:
        yield NO_DEVICE


_TWO_ALIKE = (
    "layouts {first} and {last} are within 3% of each other, counting free memory, so the simpler one comes first"
)
_ALIKE = "layouts {first} to {last} are within 3% of each other, counting free memory, so the simplest one comes first"


def _classes(result: Result) -> Iterator[str]:
    """The layouts that are equally fast within the accuracy of the estimates."""
    for _, group in groupby(enumerate(result.layouts, 1), key=lambda pair: pair[1].alike):
        numbers = [number for number, _ in group]
        if len(numbers) > 1:
            template = _TWO_ALIKE if len(numbers) == 2 else _ALIKE
            yield Message(template, first=numbers[0], last=numbers[-1])


def _placed(now: Found, result: Result) -> Iterator[str]:
    """Whether the present layout fits, and its rank by step time."""
    low, budget = now.memory.low, now.memory.budget
    if now.memory.verdict == "does-not-fit" and budget is not None:
        yield f"the current layout does not fit; at least {(low - budget) / GIB:.1f} GiB are missing"
    elif now.memory.verdict == "at-risk" and budget is not None:
        yield f"the current layout is at risk; it needs {between(*now.memory.span)} of {budget / GIB:.1f} GiB"
    if result.rank and result.at_least:
        yield f"at least {result.rank - 1} layouts that pass the rules and fit are faster than the current one"
    elif result.rank:
        place = f"rank {result.rank} by estimated time among the layouts that pass the rules and fit"
        verb = "is" if now.memory.verdict == "fits" else "would be"
        yield f"the current layout {verb} {place}"


def _written(number: int, found: Found) -> str:
    """All settings that a layout writes."""
    words = [f"{e.key[-1]}{'' if e.value is None else f' {e.value}'}" for e in found.edits if e.action == "set"]
    gone = [str(e.key[-1]) for e in found.edits if e.action == "remove"]
    settings, removed = tuple(words), tuple(gone)
    if settings and removed:
        template = "layout {number} sets {settings} and removes {removed}"
        return Message(template, number=number, settings=settings, removed=removed)
    if settings:
        return Message("layout {number} sets {settings}", number=number, settings=settings)
    if removed:
        return Message("layout {number} removes {removed}", number=number, removed=removed)
    return Message("layout {number} changes the text", number=number)


def _caveats(result: Result) -> Iterator[str]:
    """Properties of the run or the call that limit the table."""
    yield from (f"assumed: {words}" for words in result.assumed)
    if result.fp8:
        yield (
            f"all layouts except the current one compute in FP8 ({result.fp8}), and --apply writes the FP8 options; "
            "16-bit s is the time without FP8"
        )
        yield "MFU is relative to the peak of the precision; the effect of FP8 on the loss is not estimated"
    elif result.not_fp8:
        yield f"--fp8 changes nothing: {result.not_fp8}"
    if result.standing:
        rules = ", ".join(sorted(result.standing))
        yield f"no layout fixes these errors of the run ({rules}); `preflight check` shows them"


_SPENT = {"computation": "computation {seconds} s", "bubble": "bubble {seconds} s", "exchange": "exchange {seconds} s"}


def _explained(result: Result) -> Iterator[str]:
    """The reasons why each layout is faster or slower than the present one."""
    now = result.current
    for number, found in enumerate(result.layouts if now is not None else (), 1):
        assert now is not None
        parts = {
            "computation": _compute(found) - _compute(now),
            "bubble": found.bubble * _busy(found) - now.bubble * _busy(now),
            "exchange": found.communication - now.communication,
        }
        least = 0.0005 * now.seconds
        told = tuple(
            Message(_SPENT[name], seconds=f"{seconds:+.2g}") for name, seconds in parts.items() if abs(seconds) > least
        )
        if told:
            yield Message("{number}: {parts}", number=number, parts=told)
        else:
            yield Message("layout {number} takes as long as the current layout", number=number)


def _busy(found: Found) -> float:
    return found.seconds / (1 + found.bubble)


def _compute(found: Found) -> float:
    return max(_busy(found) - found.communication, 0.0)


def _sizes(found: Sizes) -> list[str]:
    sizes = found._asdict()
    if found.full_layers:
        sizes["recompute"] = _counts(found.full_layers) if any(found.full_layers) else "none"
    if found.listed:
        sizes["recompute"] += f" + operators {_counts(found.listed)}"
    if _uneven(found):
        sizes["pipeline"] = f"{found.pipeline}*"
    return [str(sizes[name]) for name in COLUMNS]


def _uneven(found: Sizes) -> tuple[tuple[int, ...], ...]:
    """Layers by virtual stage and stage, if they must be written."""
    if found.chunks:
        return found.chunks
    stages = found.stages
    return (stages,) if stages and len(set(stages)) > 1 else ()


def _counts(numbers: tuple[int, ...]) -> str:
    """Numbers by stage, with repeated numbers combined."""
    runs = ((str(number), len(list(same))) for number, same in groupby(numbers))
    cells = ([f"{number}×{times}"] if times > 2 else [number] * times for number, times in runs)
    return f"[{', '.join(chain.from_iterable(cells))}]"


def _figures(found: Found, now: Found | None, fp8: bool) -> list[str]:
    """Time, use, bubble, exchange and memory, with the change against the present layout."""
    worst, before = found.memory.worst, now.memory.worst if now is not None else None
    need = worst.required / GIB if worst is not None else math.nan
    cells = [
        _changed(f"{found.seconds:.3g}", found.seconds, now.seconds if now else None),
        f"{found.mfu:.0%}",
        f"{found.bubble:.0%}" + (f" {100 * (found.bubble - now.bubble):+.0f}" if now is not None else ""),
        f"{found.communication:.2g}" + (_signed(found.communication - now.communication) if now else ""),
        ("?" if math.isnan(need) else f"{need:.1f}") + (f" {need - before.required / GIB:+.1f}" if before else ""),
        f"{found.headroom / GIB:.1f}" if math.isfinite(found.headroom) else "?",
    ]
    return [*cells, *([f"{found.plain or found.seconds:.3g}"] if fp8 else [])]


def _signed(seconds: float) -> str:
    return f" {seconds:+.2f}" if abs(seconds) >= 0.1 or not seconds else f" {seconds:+.2g}"


def _changed(text: str, value: float, before: float | None) -> str:
    """A figure with its change, as a percentage or, beyond a factor of ten, as a multiple."""
    if not before:
        return text
    many = value / before
    return f"{text} x{many:.0f}" if many >= MANYFOLD else f"{text} {100 * (many - 1):+.0f}%"


def _table(rows: list[list[str]]) -> list[str]:
    rows = [[local(cell) for cell in row] if row is rows[0] else row for row in rows]
    widths = [max(columns(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(padded(cell, width, right=True) for cell, width in zip(row, widths, strict=True)) for row in rows]


def layouts_dict(path: str, result: Result, run: int = 1) -> dict[str, Any]:
    """The same as data; seconds and bytes."""
    return {
        "path": path,
        "run": run,
        "considered": result.considered,
        "unknown": result.unknown or None,
        "device": result.device or None,
        "current": _current(result),
        "layouts": [_found(found) for found in result.layouts],
        "rejected": {why: count for why, count in result.rejected.most_common() if count},
    }


def _current(result: Result) -> dict[str, Any] | None:
    if result.current is None:
        present = result.present
        return {"sizes": present._asdict(), "withheld": result.withheld} if present is not None else None
    return {**_found(result.current), "rank": result.rank, "rank_at_least": result.at_least}


def _found(found: Found) -> dict[str, Any]:
    worst = found.memory.worst
    return {
        "sizes": found.sizes._asdict(),
        "seconds": found.seconds,
        "class": found.alike,
        "fp8_seconds": found.seconds if found.plain else None,
        "seconds_in_16_bits": found.plain,
        "mfu": found.mfu,
        "bubble": found.bubble,
        "communication": found.communication,
        "headroom": found.headroom if math.isfinite(found.headroom) else None,
        "required": worst.required if worst else None,
        "changes": {str(edit.key[-1]): edit.value for edit in found.edits if edit.action == "set"},
    }
