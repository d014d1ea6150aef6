"""The files of front ends that would be written differently: tables, contracts, and the checks that releases lack."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from preflight.dialects.supported_programs import contracts as described
from preflight.frontends.front_end import data
from preflight.run.version_ranges import numbers
from upstream.checkout import Checkout
from upstream.frameworks import COMPARED, FRONT_ENDS, MEGATRON, Framework
from upstream.front_end_news import Offered, contract
from upstream.frontends import __main__ as tables
from upstream.frontends import contracts, megatron_bridge, option_releases
from upstream.frontends.rows import SCHEMAS
from upstream.news import Say
from upstream.repositories import Repositories, wheels


def stale(repositories: Repositories, say: Say = print) -> Iterator[str]:
    """Their names below `schemas`, for front ends whose repositories, tags and wheels are available; the others are
    reported."""
    for front_end in (*FRONT_ENDS.values(), *COMPARED):
        if not repositories.has(front_end):
            say(f"no repository of {front_end.repository}")
            continue
        say(front_end.name)
        yield from _contracts(front_end, repositories, say)
        yield from _lacks(front_end, repositories)
        try:
            texts = _tables(front_end, repositories)
        except subprocess.CalledProcessError as error:
            say(f"{front_end.name}: its table is of a revision that is not there: {str(error.stderr).strip()}")
            continue
        for path, text in texts.items():
            if path.read_text(encoding="utf-8") != text:
                yield str(path.relative_to(SCHEMAS.parent))


def _tables(front_end: Framework, repositories: Repositories) -> Mapping[Path, str]:
    """File → its new content."""
    place = repositories.path(front_end)
    if front_end.name in tables.FRONT_ENDS:
        return {SCHEMAS / f"{front_end.name}.json": tables.table_text(front_end.name, place)}
    return megatron_bridge.texts(place, repositories.path(MEGATRON)) if repositories.has(MEGATRON) else {}


def _contracts(front_end: Framework, repositories: Repositories, say: Say) -> Iterator[str]:
    tags = frozenset(Checkout(repositories.path(front_end), "HEAD").tags)
    for path in sorted(contracts.CONTRACTS.glob(f"{front_end.name}-[0-9]*.json")):
        release = path.stem.removeprefix(f"{front_end.name}-")
        packed = sorted(wheels().glob(f"{front_end.name.replace('-', '_')}-{release}-*.whl"))
        if f"v{release}" not in tags and not packed:
            say(f"{front_end.name} {release}: neither its tag nor its wheel is there")
            continue
        tag = f"v{release}" if f"v{release}" in tags else ""
        one = Offered(release, tag, None if tag else packed[0])
        if contract(front_end.name, one, repositories) != path.read_text(encoding="utf-8"):
            yield f"frontends/contracts/{path.name}"


def _lacks(front_end: Framework, repositories: Repositories) -> Iterator[str]:
    name = front_end.name
    if name not in option_releases.LACKING:
        return
    clone, base = option_releases.Clone(repositories.path(front_end), name), numbers(data(name)["release"])
    older = [one for one in described(name) if numbers(one) < base and clone.has(one)]
    written = json.loads((contracts.CONTRACTS / "lacks.json").read_text(encoding="utf-8"))[name]
    if any(option_releases.lacking(name, clone, release) != written.get(release) for release in older):
        yield f"frontends/contracts/lacks.json of {name}"
