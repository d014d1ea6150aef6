"""Options of front ends in other releases than that of their table, as `python -m upstream.frontends.option_releases`
reads them from their source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from preflight import schemas
from preflight.dialects.megatron.options import Flag
from preflight.dialects.megatron.options import table as options
from preflight.frontends.described_releases import FOLDER, contracts
from preflight.frontends.front_end import FrontEnd, Keys, as_flags, data
from preflight.frontends.release_config_schema import nearest_release
from preflight.run.request import Target
from preflight.source.typing_without_import import Any


def at_stated(front_end: FrontEnd, asked: Target | None) -> FrontEnd:
    """The front end at the stated release, or at the nearest described one. What the neighbours of an undescribed
    release accept is decided where errors are compared with theirs."""
    described = (*contracts(front_end.name), front_end.release)
    release = nearest_release(front_end.name, described, asked, front_end.release)
    found = front_end if release == front_end.release else at_release(front_end, release)
    return found._replace(stated=asked is not None)


def at_release(front_end: FrontEnd, release: str) -> FrontEnd:
    """The front end at a described release other than that of its table, on the framework release under it."""
    described = _described(front_end.name, release)
    core, on = described.get("core", front_end.core), front_end.on
    on = on._replace(version=described["on"]) if on is not None and "on" in described else on
    own, lacks = _at(front_end.name, release, front_end.keys, on or Target("megatron", core))
    return front_end._replace(release=release, core=core, on=on, own=own, lacks=lacks)


def part_of(front_end: FrontEnd, part: str) -> Any:
    """A part of its table, for its release."""
    table = data(front_end.name)
    own = {} if front_end.release == table["release"] else _described(front_end.name, front_end.release)
    return own.get(part, table[part])


def of_part(front_end: FrontEnd, part: str) -> list[Flag]:
    """The options that a part of its table lists, for its release."""
    rows = data(front_end.name)[part]
    if front_end.release != data(front_end.name)["release"]:
        rows = dict(_rows(rows, _described(front_end.name, front_end.release).get(part, {})))
    return as_flags(front_end.name, rows)


@cache
def _described(front_end: str, release: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schemas.read(f"{FOLDER}/{front_end}-{release}")
    return found


@cache
def _at(front_end: str, release: str, keys: Keys, on: Target) -> tuple[Keys, frozenset[str]]:
    """The keys of a release and the rules whose checks it lacks. Arguments without an option are as in the release of
    the table: none of its checks use them."""
    described, table = _described(front_end, release), data(front_end)["keys"]
    rows = dict(_rows(table, described["keys"]))
    core = keys.core if (on.framework, on.version) == (keys.core.framework, keys.core.version) else None
    above = keys.options.values() if core is not None or not data(front_end).get("takes megatron") else ()
    core = core or options(on.framework, on.version)
    below = above or core.options.values()
    beneath = [flag for flag in below if flag.option not in table and not _is_other(flag, table)]
    flags = {flag.option: flag for flag in (*beneath, *as_flags(front_end, rows))}
    return Keys(front_end, release, list(flags.values()), core, keys), frozenset(described["lacks"])


def _is_other(flag: Flag, table: Mapping[str, Any]) -> bool:
    """Whether an option is in the table under another spelling."""
    return any(one in table for one in flag.also)


def _rows(table: Mapping[str, Any], difference: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    gone = frozenset(difference.get("without", ()))
    yield from ((option, row) for option, row in table.items() if option not in gone)
    yield from difference.get("changed", {}).items()
