"""The files of front ends that would be written differently: tables, contracts, the checks that releases lack, the
tables of refusals and the ranges of known defects."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from preflight.run.version_ranges import numbers
from upstream.checkout import Checkout
from upstream.defects import TABLE, written
from upstream.frameworks import COMPARED, FRONT_ENDS, MEGATRON, Framework
from upstream.front_end_news import Offered, contract, is_patch
from upstream.frontends import __main__ as tables
from upstream.frontends import contracts, megatron_bridge, option_refusals, option_releases
from upstream.frontends.rows import SCHEMAS
from upstream.news import Say, known_patches
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
        yield from _patches(front_end, repositories, say)
        yield from _beside(front_end, repositories)
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
    for path in sorted(contracts.CONTRACTS.glob(f"{front_end.name}-[0-9]*.json")):
        one = _offered(front_end, path.stem.removeprefix(f"{front_end.name}-"), repositories, say)
        if one is not None and contract(front_end.name, one, repositories) != path.read_text(encoding="utf-8"):
            yield f"frontends/contracts/{path.name}"


def _offered(front_end: Framework, release: str, repositories: Repositories, say: Say) -> Offered | None:
    """A release by its tag or its wheel; None if neither is available, which is reported."""
    tag = f"v{release}" if f"v{release}" in Checkout(repositories.path(front_end), "HEAD").tags else ""
    packed = sorted(wheels().glob(f"{front_end.name.replace('-', '_')}-{release}-*.whl"))
    if not tag and not packed:
        say(f"{front_end.name} {release}: neither its tag nor its wheel is there")
        return None
    return Offered(release, tag, None if tag else packed[0])


def _patches(front_end: Framework, repositories: Repositories, say: Say) -> Iterator[str]:
    """The releases that are no longer patches of the release that they are read as."""
    for release in sorted(known_patches(front_end.name), key=numbers):
        one = _offered(front_end, release, repositories, say)
        text = contract(front_end.name, one, repositories) if one is not None else None
        if text is not None and not is_patch(text):
            yield f"releases.json: {front_end.name} {release} is not a patch"


def _beside(front_end: Framework, repositories: Repositories) -> Iterator[str]:
    """The files with the checks that older releases lack, with the refusals, and with the ranges of known defects."""
    name, place = front_end.name, repositories.path(front_end)
    files: dict[Path, str] = {}
    if name in option_releases.LACKING:
        files[option_releases.LACKS] = option_releases.lacks_text(option_releases.Clone(place, name))
    if name in option_refusals.PLACES:
        clone = option_releases.Clone(place, name, wheels())
        files[option_refusals.path_of(name)] = option_refusals.table_text(name, clone)
    table = SCHEMAS.parent / name / TABLE
    if table.is_file():
        files[table] = written(front_end, repositories, SCHEMAS.parent)
    for path, text in files.items():
        if path.read_text(encoding="utf-8") != text:
            yield str(path.relative_to(SCHEMAS.parent))
