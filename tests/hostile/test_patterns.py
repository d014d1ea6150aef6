"""No regular expression of the package is slow on strings composed of its own parts."""

from __future__ import annotations

import gc
import json
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import FrameType

import pytest
from clock import slower, takes_at_most
from patterns import ROOT, Pattern, Pumps, found, pumped, runs

from preflight.lint.value_kinds import Text
from preflight.loaders.shell.expansion_forms import transform
from preflight.loaders.shell.expr_command import match as expr_match
from preflight.logs.signatures import SIGNATURES
from preflight.logs.stages import STAGES
from preflight.program import launched_source
from preflight.program.checkout import front_end_discovery
from preflight.program.checkout.framework_discovery import LAYOUTS
from preflight.run.published_models import vocabularies

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an alarm of processor time")
LENGTH = 4_000
SECONDS = 0.05
"""Processor seconds for this number of characters."""
SCREEN, WORST = 200, 6
"""Characters with which the slowest strings are looked for, and how many of them are tried at full length."""
GIVE_UP = 0.5

GUARDED: dict[str, Callable[[str], str]] = {
    "preflight/loaders/shell/bash_parser.py": lambda text: text[: text.rfind("))") + 2],
    "preflight/dialects/megatron/pipeline.py": lambda text: text[: text.rfind(")") + 1],
    "rules/mindformers/init_rules.py": lambda text: text[:256],
}
"""Limits that the callers of a pattern apply first."""
RUN_TIME = {
    "preflight/program/checkout/front_end_discovery.py": [
        front_end.version[1] for front_end in front_end_discovery.LAYOUTS
    ],
    "preflight/program/checkout/framework_requirements.py": [r"(name)-(\d+\.\d+\.\d+)[^/]*\.dist-info"],
    "preflight/program/checkout/framework.py": [*(layout.calls for layout in LAYOUTS), r"\bargs\.name\b"],
    "preflight/program/checkout/framework_discovery.py": [layout.version[1] for layout in LAYOUTS],
    "preflight/dialects/megatron/network_sizes.py": [pattern for pattern, _ in vocabularies()],
    "preflight/dialects/mindformers/recompute_patterns.py": [r"(^|\.)name(\.|$)", r"(^|(?<=\.))name(?=\.|$)"],
    "preflight/checking/checked_sources.py": [r"(?<![\w-])name(?!\w)"],
    "preflight/program/checkout/class_arguments.py": [r"(?m)^class name\b"],
    "preflight/program/mindformers.py": [r"(?m)^[ \t]*(?:class|def)[ \t]+name\b"],
    "preflight/program/launched_source.py": [form.pattern for form in launched_source._FORMS],
    "preflight/lint/value_kinds.py": [],
    "preflight/loaders/yaml_scalars.py": [],
    "preflight/loaders/shell/expr_command.py": [],
    "preflight/loaders/shell/bash_parser.py": ["\n\t*word(?=\n|\\Z)"],
    "preflight/loaders/shell/unreached_launches.py": [
        *[r"(?<=\n)([ \t]+)word[ \t]*(?=\n|\Z)|(?<=\n)word[ \t]+(?=\n|\Z)"],
        *[r"(?<![\w$-])name\+?="],
    ],
    "preflight/loaders/shell/unset_variables.py": [r"(?m)^[ \t]*name[ \t]+="],
    "preflight/loaders/shell/silent_mistakes.py": [
        r"\$\{name:?[-+=?]|-v name\b|\b(?:read|for|local|export|declare)\b[^\n]{0,400}\bname\b",
        r"(?<![\w$-])name(?:\[[^]\n]*\])?\+?=(?!=)"
        r"|\b(?:printf -v|mapfile|readarray|getopts)\b[^\n]{0,400}\bname\b",
    ],
    "preflight/logs/signatures.py": ["|".join(f"(?:{one.pattern})" for one in SIGNATURES)],
    "preflight/logs/stages.py": [text for stage in STAGES for text in (stage.places, stage.kinds)],
    "preflight/lint/defect_rules.py": sorted(
        {
            row["source"][part]
            for file in sorted((ROOT / "schemas").glob("*/defects.json"))
            for row in json.loads(file.read_text(encoding="utf-8"))["defects"].values()
            for part in ("faulty", "fixed")
            if part in row.get("source", ())
        }
    ),
    "preflight/loaders/shell/expansion_forms.py": [],
    "preflight/loaders/shell/cut_commands_and_unused_variables.py": [r"(.?)\$\{name\[[@*]\]\}", r"\$\{?name\b"],
    "preflight/loaders/shell/refused_arithmetic.py": [r"(?<![\w$-])name\+?="],
    "preflight/run/published_models.py": [r"(?<!\d)7[^a-z0-9]?5b"],
    "preflight/run/project_settings.py": [r"(?m)^[ \t]*\[*[\w.\-\"']*\bkey[\"']?[ \t]*[=.\]]"],
    "rules/mindformers/pynative_layers.py": [],
    "rules/names_of_other_runs.py": [r"(?i)\btp\w{0,20}[=:]\W{0,4}8\b"],
}
"""The patterns of calls with text created at run time, with a typical name in them. Those without any are of a library,
are only compiled, or are held by a test of their own below."""
FULL = ("preflight/lint/value_kinds.py",)
"""Functions that match a whole text."""
SHARES = 24
"""Tests that the patterns are spread over: the first that runs finds them."""
read = cache(found)


@cache
def patterns() -> list[Pattern]:
    """Every pattern: those that are read, and those of calls with text created at run time."""
    known, _ = read()  # this loads every module, so that their kinds of values are there
    kinds = sorted({text.pattern for text in gc.get_objects() if isinstance(text, Text)})
    made = [
        Pattern(file, text, 0, frozenset(["fullmatch" if file in FULL else ""]))
        for file, texts in {**RUN_TIME, "preflight/lint/value_kinds.py": kinds}.items()
        for text in texts
        if text
    ]
    return [*known, *made]


Part = tuple[str, str, str]
Call = Callable[[str | bytes], object]


class Slow(Exception):
    """A pattern did not end."""


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """An alarm of processor time, which ends a pattern that is being tried."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Slow

    before = signal.signal(signal.SIGVTALRM, ring)
    yield
    signal.signal(signal.SIGVTALRM, before)


def took(call: Call, text: str | bytes) -> float:
    """Seconds of the processor."""
    start = time.thread_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVE_UP)
    try:
        call(text)
    except Slow:
        return GIVE_UP
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.thread_time() - start


def screened(call: Call, texts: Mapping[Part, str | bytes]) -> list[Part]:
    """The parts of the slowest texts; the first that does not end is the only one."""
    taken, part = {}, next(iter(texts))
    clock = time.perf_counter_ns
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * GIVE_UP)
    try:
        for part, text in texts.items():
            start = clock()
            call(text)
            taken[part] = clock() - start
    except Slow:
        return [part]
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return sorted(taken, key=taken.__getitem__, reverse=True)[:WORST]


def slowest(pattern: Pattern) -> tuple[float, str, Part]:
    """The seconds for the worst string found, the use of the pattern, and the parts of the string."""
    pumps = Pumps(pattern)
    parts = list(pumps.parts())
    guard = GUARDED.get(pattern.place.partition(":")[0], str)

    def text(part: Part, length: int) -> str | bytes:
        made = guard(pumped(*part, length))
        return made.encode("latin-1", "replace") if pumps.binary else made

    def least(call: Call, part: Part, length: int) -> float:
        return min(took(call, text(part, length)) for _ in range(3))

    worst: tuple[float, str, Part] = (0.0, "", ("", "", ""))
    for way, call in runs(pattern):
        for part in screened(call, {part: text(part, SCREEN) for part in parts}):
            seconds = took(call, text(part, LENGTH))
            if seconds > SECONDS:
                seconds = least(call, part, LENGTH)
            if SECONDS < seconds < 4 * SECONDS and seconds < 6 * least(call, part, LENGTH // 4):
                seconds = SECONDS  # a long pattern, but the time grows as the text does
            worst = max(worst, (seconds, way, part))
            if seconds > SECONDS:
                return worst
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_patterns_end_soon(share: int) -> None:
    wrong = []
    for pattern in patterns()[share::SHARES]:
        seconds, way, (prefix, unit, ending) = slowest(pattern)
        if seconds > SECONDS and seconds > SECONDS * slower():
            made = f"{prefix!r} + {unit!r} * n + {ending!r}"
            wrong.append(f"{pattern.place} {pattern.text!r}: {way} takes {seconds * 1000:.0f} ms on {made}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_every_pattern_is_looked_at() -> None:
    known, unread = read()
    assert len(known) > 200
    assert {place.partition(":")[0] for place, _ in unread} <= set(RUN_TIME), "patterns that no row of RUN_TIME tries"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", [r"(a+)+b", r"(?:a|a)*b", r"a*a*a*b", r"\A(?:\s*#[^\n]*\n|\s*\n)*?\s*#x", r"(\w*\.?)*="]
)
def test_a_pattern_that_takes_without_end_is_found(text: str) -> None:
    seconds, *_ = slowest(Pattern("made up", text, 0, frozenset(["match"])))
    assert seconds > SECONDS


@pytest.mark.parametrize("pattern", ["*a*a*b", "*?*?*b", "*a*b", "*b", "*[a-z]*[a-z]*b"])
@pytest.mark.parametrize("operator", ["%", "%%", "#", "##", "/", "//", "/#", "/%"])
def test_patterns_of_a_shell_end_soon(operator: str, pattern: str) -> None:
    for length in (60, 200, 4_000):
        seconds = min(took(lambda text: transform(str(text), operator, pattern), "a" * length) for _ in range(3))
        assert seconds < 4 * SECONDS or seconds < 4 * SECONDS * slower()


@pytest.mark.parametrize("pattern", [".*a.*a.*a.*b", "a*a*a*a*b", "a*a*b", "[a-z]*[a-z]*[a-z]*[a-z]*1"])
def test_patterns_of_expr_end_soon(pattern: str) -> None:
    seconds = min(took(lambda text: expr_match(pattern, str(text)), "a" * 200) for _ in range(3))
    assert seconds < SECONDS or seconds < SECONDS * slower()
    assert expr_match("run-\\([0-9]*\\)", "run-7") == "7"


def test_what_is_cut_off_first_is_cut_off() -> None:
    """The guards above are those of the callers."""
    from preflight.api import check_text
    from preflight.dialects.megatron.pipeline import parse_layout

    with takes_at_most(20):
        assert parse_layout("(" * 100_000).strange == "("
        assert parse_layout("(" * 50_000 + "E)" * 20).strange
        check_text("echo " + "((" * 30_000 + "\n", name="run.sh")
    assert re.fullmatch(r"\(+", "(")
