"""The rules for the statement at a line of a release, according to the evidence."""

from __future__ import annotations

from preflight import schemas


def owners(framework: str, release: str, place: str) -> set[str]:
    data = schemas.read(f"{framework}/evidence")
    releases = list(data["commits"])
    if release not in releases:
        return set()
    number = releases.index(release)
    file, _, line = place.rpartition(":")
    ids = {
        id
        for id, (_, runs, *_) in data["sites"].items()
        for at, _, _, first, lines in runs
        if data["files"][at] == file and first <= number < first + len(lines) and lines[number - first] == int(line)
    }
    reported = schemas.read(f"{framework}/decisions").get("reported", {})
    own = {rule for rule, (sites, more) in data["rules"].items() if ids.intersection((*sites, *more))}
    return own | {rule for rule, sites in reported.items() if ids.intersection(sites)}
