"""The release of a front end's run: stated, that of the source around it, named in a file, or shown by its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial

from preflight.dialects import Surroundings
from preflight.frontends.described_releases import contracts
from preflight.frontends.front_end import FrontEnd
from preflight.frontends.megatron_run import package_of
from preflight.frontends.options_by_release import at_release, at_stated
from preflight.frontends.release_config_schema import contract
from preflight.loaders.document import Document
from preflight.run.request import Target
from preflight.run.version_ranges import numbers
from preflight.source.finding import Message
from preflight.source.record import NamedTuple


class Shown(NamedTuple):
    """The release that something other than the keys shows. named: it does not come from a source around the run."""

    target: Target
    evidence: str = ""
    named: bool = False


def shown(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> Shown | None:
    """The stated release, that of the source around a run, or the one that is installed by the run's own text or by a
    file of its repository."""
    if surroundings.request.target is not None:
        return Shown(surroundings.request.target)
    package = package_of(front_end, document, surroundings)
    if package is not None:
        return Shown(Target(front_end.name, package.version), package.evidence) if package.version else None
    from preflight.program.checkout.front_end_discovery import named_release

    if release := named_release(document.source.text, front_end.name):
        said: str = Message("the file names {release}", release=release)
        return Shown(Target(front_end.name, release), said, named=True)
    around = surroundings.around
    file, release = around.installs(document.source.path, front_end.name) if around is not None else ("", "")
    return Shown(Target(front_end.name, release), file, named=True) if release else None


def is_variant(version: str) -> bool:
    """Whether a version is a variant of a release: 0.5.0.nemotron_3_super."""
    return "_" in version


def with_evidence(front_end: FrontEnd, found: Shown | None) -> FrontEnd:
    """A front end at a described release, with the source that shows the run's own release."""
    if found is None or not found.named:
        return front_end
    own, here = numbers(found.target.version), numbers(front_end.release)
    described = own in (here, here[: len(own)]) and not is_variant(found.target.version)
    named = "" if described else f"{front_end.name} {found.target.version}"
    return front_end._replace(evidence=found.evidence, named=named)


def at_shown(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> FrontEnd | None:
    """A front end at the described release for the one that something other than the keys shows; None if nothing
    shows one."""
    found = shown(front_end, document, surroundings)
    if found is None:
        return None
    known = at_stated(front_end, found.target)
    return known if surroundings.request.target is not None else with_evidence(known._replace(stated=False), found)


def of_options(front_end: FrontEnd, document: Document, surroundings: Surroundings) -> FrontEnd:
    """A front end with options as keys at the release of a run; if nothing shows the release, the unchanged front end,
    with the releases that have the run's options."""
    if (known := at_shown(front_end, document, surroundings)) is not None:
        return known
    typed = frozenset(_typed(document))
    described = tuple(sorted((*contracts(front_end.name), front_end.release), key=numbers))
    if gone := _of_none(front_end, typed, described):
        template = "the options {options:and} belong to a release that is older than all known releases"
        older: str = Message(template, options=gone[:MOST_NAMED])
        return front_end._replace(named=f"{front_end.name} before {described[0]}", older=older)
    fits = partial(_fitting, front_end, typed, described)
    moved = any(_spelt(option) in front_end.known for option in typed)
    return _at(front_end, _of_older_line(front_end, fits("") if moved else ()))._replace(fits=fits)


def _of_older_line(front_end: FrontEnd, having: Sequence[str]) -> str:
    """The newest release that has a run's options, if only releases with an older first number have them."""
    line = numbers(front_end.release)[:1]
    return having[-1] if having and numbers(having[-1])[:1] < line else front_end.release


MOST_NAMED = 2
"""Maximum number of options of older releases that a message names."""


def best(described: Sequence[str], usual: str, lacking: Callable[[str], int]) -> str:
    """The usual release if it has all keys, otherwise the newest of those that have most of them."""
    if not (least := lacking(usual)):
        return usual
    fewest = min(((lacking(release), release != usual, at) for at, release in enumerate(reversed(described))))
    return usual if fewest[0] == least else described[len(described) - 1 - fewest[2]]


def fitting(described: Sequence[str], lacking: Callable[[str], int]) -> tuple[str, ...]:
    """The described releases that have every key known to any of them, oldest first."""
    return tuple(release for release in described if not lacking(release))


def _at(front_end: FrontEnd, release: str) -> FrontEnd:
    return front_end if release == front_end.release else at_release(front_end, release)


def _typed(document: Document) -> Iterable[str]:
    """The options of a launch, or the keys of a flat file as options."""
    if document.launch is not None:
        for word in document.launch.words:
            if word.text is not None and word.text.startswith("--") and len(word.text) > 2:
                yield word.text.partition("=")[0]
    elif document.tree is not None:
        yield from (f"--{entry.key.value}" for entry in document.tree.entries)


def _fitting(front_end: FrontEnd, typed: frozenset[str], described: Sequence[str], option: str) -> tuple[str, ...]:
    """The described releases that have every option known to any of them; none if no release has this option."""
    tables = {release: _at(front_end, release).keys.options for release in described}

    def has(release: str, one: str) -> bool:
        return one in tables[release] or _spelt(one) in tables[release]

    if option and not any(has(release, option) for release in described):
        return ()
    known = [one for one in typed if any(has(release, one) for release in described)]
    return tuple(release for release in described if all(has(release, one) for one in known))


def _of_none(front_end: FrontEnd, typed: frozenset[str], described: Sequence[str]) -> tuple[str, ...]:
    """Options that only releases before all described ones have."""
    candidates = sorted(option for option in typed if _spelt(option) in front_end.known)
    if not candidates:
        return ()
    tables = [_at(front_end, release).keys.options for release in described]
    return tuple(one for one in candidates if not any(one in keys or _spelt(one) in keys for keys in tables))


def _spelt(option: str) -> str:
    """An option spelled with underscores, as in the tables of programs that accept both spellings."""
    return f"--{option[2:].replace('-', '_')}"


def of_overrides(
    front_end: str, usual: str, keys: Sequence[str], engine: str = ""
) -> tuple[str, Callable[[str], tuple[str, ...]]]:
    """The described release of a program with composed configs whose config has most of the given keys, and a function
    that finds all such releases. engine: the engine whose config is composed, "" for the usual one."""
    described = contracts(front_end)[::-1]

    @cache
    def missing(release: str) -> frozenset[str]:
        known = contract(front_end, release)
        return (known.of_engine(engine) or known if engine else known).lacks(keys)

    @cache
    def of_none() -> frozenset[str]:
        return frozenset.intersection(*map(missing, described))

    def lacking(release: str) -> int:
        return len(missing(release) - of_none()) if missing(release) else 0

    release = best(described, usual, lacking)
    return release, lambda option: fitting(described, lacking)
