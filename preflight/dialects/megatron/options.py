"""The options of a framework's parser in a version, read from compact tables, and retired options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property, lru_cache

from preflight import schemas
from preflight.run.request import Target, patch
from preflight.run.value import Value, default
from preflight.run.version_ranges import numbers
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

FRACTION = lazy_pattern(r"[-+]?\d*\.\d*(e[-+]?\d+)?|[-+]?\d+e[-+]?\d+")
SWITCHES = ("true", "false", "pair", "help")


class Flag(NamedTuple):
    """One option. kind: what it stores or how its text is read; nargs: None for one value, "+", "*" or a number. also:
    other spellings with the same meaning, or the negated spelling of a pair.
    """

    option: str
    dest: str
    kind: str
    default: Any = None
    nargs: str | int | None = None
    choices: tuple[Any, ...] | None = None
    also: tuple[str, ...] = ()

    @property
    def switch(self) -> bool:
        """The option takes no value."""
        return self.kind in SWITCHES

    def stores(self, spelling: str) -> bool:
        """The value that a switch stores with this spelling."""
        return self.kind == "true" or (self.kind == "pair" and spelling == self.option)


class Table:
    """Every option of one framework in one version, by spelling and by destination."""

    def __init__(self, framework: str, version: str, flags: Iterable[Flag]) -> None:
        self.framework, self.version = framework, version
        self.options: dict[str, Flag] = {}
        self.collects: frozenset[str] = frozenset()
        """Options of a checkout's own parser that may keep each of their values."""
        self._dests: dict[str, list[Flag]] = {}
        for flag in flags:
            for spelling in (flag.option, *flag.also):
                self.options[spelling] = flag
            self._dests.setdefault(flag.dest, []).append(flag)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """Destination → default; if several options share a destination, the first one with a default sets it."""
        return {
            dest: next((f.default for f in flags if f.default is not None), None) for dest, flags in self._dests.items()
        }

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """The same, as values."""
        return {dest: default(raw, self.label) for dest, raw in self.defaults.items()}

    @cached_property
    def lower(self) -> Mapping[str, str]:
        """Spelling in lower case → spelling."""
        return {spelling.lower(): spelling for spelling in self.options}

    @cached_property
    def _ends(self) -> Mapping[tuple[str, bool], list[tuple[int, str]]]:
        """The first or the last five characters → spellings with their positions in the table."""
        found: dict[tuple[str, bool], list[tuple[int, str]]] = {}
        for place, spelling in enumerate(self.options):
            found.setdefault((spelling[:5], True), []).append((place, spelling))
            found.setdefault((spelling[-5:], False), []).append((place, spelling))
        return found

    def alike(self, text: str) -> tuple[str, ...]:
        """The options that begin or end like a text, in the order of the table."""
        some = {*self._ends.get((text[:5], True), ()), *self._ends.get((text[-5:], False), ())}
        return tuple(spelling for _, spelling in sorted(some))

    def flags(self, dest: str) -> tuple[Flag, ...]:
        """The options that write a destination."""
        return tuple(self._dests.get(dest, ()))

    def with_flags(self, flags: Iterable[Flag]) -> Table:
        """A table with some options added or read differently."""
        changed = {flag.option: flag for flag in flags}
        kept = {flag.option: flag for flag in self.options.values()}
        found = Table(self.framework, self.version, {**kept, **changed}.values())
        listed = {one for one, flag in changed.items() if flag.nargs == "*" and one not in self.options}
        found.collects = self.collects | listed
        return found

    @property
    def label(self) -> str:
        return f"{self.framework} {self.version}"


MEGATRON = tuple[str, ...](schemas.read("releases")["megatron"])
"""The described releases of Megatron-LM, newest first; 0.20.0 is main at the commit named in megatron/releases.json."""

MINDSPEED = tuple[str, ...](schemas.read("releases")["mindspeed"])
"""The described releases of MindSpeed, newest first; master is the commit named in its releases.json."""
MINDSPEED_BRANCHES = tuple[str, ...](schemas.read("releases")["mindspeed branches"])
"""Branches of MindSpeed on other releases of Megatron-LM; only their options are described."""
MINDSPEED_LLM = tuple[str, ...](schemas.read("releases")["mindspeed-llm"])
"""The described releases of MindSpeed-LLM, newest first; 1.0 is ModelLink."""
RELEASES = {"megatron": MEGATRON, "mindspeed": MINDSPEED, "mindspeed-llm": MINDSPEED_LLM}

UNASKED = (("megatron", "0.20.0"), ("megatron", "0.12.1"), ("mindspeed", "master"), ("mindspeed-llm", "master"))
ASKED = (
    *(("megatron", version) for version in MEGATRON if ("megatron", version) not in UNASKED),
    *(("mindspeed-llm", version) for version in MINDSPEED_LLM[1:]),
    *(("mindspeed", version) for version in (*MINDSPEED[1:], *MINDSPEED_BRANCHES)),
)
"""Releases that a run is read as only if it is stated or its options show it."""

ON_THE_TAG = {("mindspeed-llm", "2.3.0"): {"--mg-cache-dir": ["mg_cache_dir", "str"]}}
"""Options of a release's tag that were renamed in the branch described under its name."""


@cache
def _options(framework: str) -> dict[str, Any]:
    """The options of a framework; for one built on another, the differences in each release, from the first in `on`."""
    data: dict[str, Any] = schemas.read(f"{framework}/options")
    return data


def built_on(framework: str, version: str) -> str:
    """The Megatron-LM release that a release is built on."""
    under: dict[str, str] = _options(framework).get("on", {}).get(version, {})
    return under.get("megatron", version)


@lru_cache(maxsize=4096)
def _history(framework: str, option: str) -> Mapping[str, list[Any]]:
    """Release → the row of an option, for each release that has it, oldest first."""
    names = tuple(_options(framework)["commits"])
    rows: dict[str, list[Any] | None] = dict.fromkeys(names)
    if "on" in _options(framework):
        below = _history("megatron", option)
        rows = {name: below.get(built_on(framework, name)) for name in names}
    for first, last, row in _options(framework)["options"].get(option, ()):
        rows |= dict.fromkeys(names[first : last + 1], row)
    return {name: row for name, row in rows.items() if row is not None and name in _known(framework)}


@cache
def _known(framework: str) -> frozenset[str]:
    return frozenset(RELEASES[framework])


def releases_with(framework: str, option: str) -> tuple[str, ...]:
    """The releases of a framework that have an option, oldest first."""
    return tuple(_history(framework, option))


def releases_that_take(framework: str, typed: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    """The releases of a framework whose parsers accept all these options and values, oldest first. Options or values
    that no release accepts are ignored.
    """
    possible = set(RELEASES[framework])
    for option, value in typed:
        known = _history(framework, option)
        taken = {name for name, row in known.items() if _takes(row, value)}
        possible &= taken or known.keys() or possible
    return tuple(name for name in reversed(RELEASES[framework]) if name in possible)


def lists_choice(framework: str, option: str, value: str | None) -> bool:
    """Whether a release of a framework has an option and accepts a value for it, judged by its choices."""
    return any(_takes(row, value) for row in _history(framework, option).values())


def _takes(row: list[Any], value: str | None) -> bool:
    """Whether an option accepts a value, judged by its choices and number of values."""
    choices = row[4] if len(row) > 4 else None
    if value is None:
        return True
    if choices is not None:
        return any(str(choice) == value for choice in choices)
    return row[1] != "int" or FRACTION.fullmatch(value) is None


@cache
def _rows(framework: str, version: str) -> dict[str, Any]:
    """The options of a framework in a version, by spelling."""
    data = _options(framework)
    number = list(data["commits"]).index(version)
    below = _rows("megatron", built_on(framework, version)) if "on" in data else {}
    own = {
        option: row for option, rows in data["options"].items() for first, last, row in rows if first <= number <= last
    }
    return {
        option: row
        for option, row in {**below, **own, **ON_THE_TAG.get((framework, version), {})}.items()
        if row is not None
    }


@cache
def table(framework: str, version: str) -> Table:
    """The table of a framework in a version. Raises KeyError if there is none."""
    if (framework, version) not in (*UNASKED, *ASKED):
        raise KeyError((framework, version))
    return Table(framework, version, (_flag(option, row) for option, row in _rows(framework, version).items()))


def _flag(option: str, row: list[Any]) -> Flag:
    choices = tuple(row[4]) if len(row) > 4 and row[4] is not None else None
    more = [tuple(row[5])] if len(row) > 5 and row[5] is not None else []
    return Flag(option, *row[:4], *([choices] if len(row) > 4 else []), *more)


def patch_flags(target: Target | None) -> tuple[Flag, ...]:
    """The options that a patch release adds or changes."""
    return tuple(_flag(option, row) for option, row in patch(target).get("options", {}).items())


@cache
def destinations() -> frozenset[str]:
    """Every destination known to any of the frameworks in any version."""
    rows = (row for framework in RELEASES for spans in _options(framework)["options"].values() for _, _, row in spans)
    return frozenset(row[0] for row in rows if row is not None)


ENOUGH, MOST = 3, 60
"""Options that a text must contain to count as options, and those searched for."""


def is_a_text_of_options(text: str) -> bool:
    """Whether a text contains options of some release, like a file that a launch script reads."""
    typed = dict.fromkeys(re.findall(r"(?<![\w-])--[a-z][\w-]+", text))
    return sum(bool(where_an_option_is(option)) for option in list(typed)[:MOST]) >= ENOUGH


def where_an_option_is(text: str) -> list[str]:
    """The releases of each framework that have an option, as users write them."""
    return [said for framework in RELEASES for said in _spans(framework, releases_with(framework, text))]


def _spans(framework: str, releases: tuple[str, ...]) -> list[str]:
    """Releases of a framework as users write them: from one on, or from one to another, with the gaps between them."""
    order = tuple(reversed(RELEASES[framework]))
    runs: list[list[str]] = []
    for release in releases:
        if runs and order.index(release) == order.index(runs[-1][-1]) + 1:
            runs[-1].append(release)
        else:
            runs.append([release])
    return [f"{framework} {_said(run[0], run[-1], order[-1])}" for run in runs]


def _said(first: str, last: str, newest: str) -> str:
    if first == last:
        return first
    return f"{first} and later" if last == newest else f"{first} to {last}"


IN_USE = {"megatron": (0, 8), "mindspeed": (2,), "mindspeed-llm": (2,)}
"""The oldest releases assumed to be in use; options that only older releases have count as removed."""


@cache
def _retired() -> dict[str, dict[str, dict[str, Any]]]:
    """Framework → options → the first release without them; the same for removed choices of existing options."""
    rows: dict[str, dict[str, dict[str, Any]]] = schemas.read("retired_options")
    return rows


def option_before(option: str) -> tuple[str, bool]:
    """The releases that have an option, as "megatron before 0.9", and whether one of them is in use; "" if there are
    none."""
    return _before({framework: rows["options"].get(option, "") for framework, rows in _retired().items()})


def choice_before(option: str, choice: str) -> tuple[str, bool]:
    """The releases that accept a choice of an existing option, in the same form."""
    return _before(
        {framework: rows["choices"].get(option, {}).get(choice, "") for framework, rows in _retired().items()}
    )


def _before(releases: dict[str, str]) -> tuple[str, bool]:
    found = {framework: release for framework, release in releases.items() if release}
    said = " and ".join(f"{framework} before {release}" for framework, release in found.items())
    return said, any(numbers(release) > IN_USE[framework] for framework, release in found.items())
