"""The release that a run is read as, and the run's own release: stated, found in a file, or unknown."""

from __future__ import annotations

from preflight.job import Job
from preflight.lint.uncertain_facts import strange
from preflight.report.source_excerpts_and_escapes import plain
from preflight.run.request import Target, described_around
from preflight.source.finding import Message
from preflight.source.translation import in_brackets, local
from preflight.source.typing_without_import import Any

FEW = 3
"""Maximum number of releases that are named individually."""


def is_known(job: Job) -> bool:
    """Whether something other than the options and keys of a run shows its release."""
    certainty = job.arguments.certainty
    shown = certainty.evidence or certainty.named or certainty.has is not None
    return bool(job.asked or certainty.stated or shown)


def fitting(job: Job) -> tuple[str, ...]:
    """The described releases that a run of unknown release fits, oldest first; () if that is not narrowed down."""
    certainty = job.arguments.certainty
    if is_known(job):
        return ()
    option = strange(job)
    releases = (() if option else certainty.releases) or certainty.fits(option)
    return tuple(release for release in releases if "@" not in release)


def fit(releases: tuple[str, ...]) -> str:
    """A sentence about the releases that fit; "" if none fits."""
    if not releases:
        return ""
    if len(releases) == 1:
        return Message("of the releases that preflight knows, only {release} fits", release=releases[0])
    if len(releases) <= FEW:
        return Message("of the releases that preflight knows, {releases:and} fit", releases=releases)
    template = "{number} known releases from {oldest} to {newest} fit"
    return Message(template, number=len(releases), oldest=releases[0], newest=releases[-1])


def _fit_within(releases: tuple[str, ...], file: str) -> str:
    """The same, if a file installs one of them."""
    if len(releases) == 1:
        template = "of the releases that preflight knows, only {release} fits {file}"
        return Message(template, release=releases[0], file=file)
    if len(releases) <= FEW:
        return Message("of the releases that preflight knows, {releases:and} fit {file}", releases=releases, file=file)
    template = "{number} known releases from {oldest} to {newest} fit {file}"
    return Message(template, number=len(releases), oldest=releases[0], newest=releases[-1], file=file)


def _unlike(job: Job) -> str:
    """The option that no described release has; "" for none."""
    option = strange(job)
    if not option:
        return ""
    before = next((p.before for p in job.arguments.problems if p.before and p.span.text.startswith(option)), "")
    if before:
        return Message("{option} is an option of {before}", option=option, before=before)
    return Message("no known release has {option}", option=option)


def fits(job: Job) -> str:
    """The possible releases of a run of unknown release; "" if that is not narrowed down."""
    if (file := job.arguments.certainty.within) and (releases := fitting(job)):
        return _fit_within(releases, file)
    return fit(fitting(job)) or _unlike(job)


def read_as(job: Job) -> str:
    """The release that a run is read as, and why, in the language of this call."""
    certainty = job.arguments.certainty
    if job.asked is not None:
        return local(_not_described(job, job.asked))
    if certainty.lying:
        return plain(in_brackets(local(job.named), local(certainty.evidence)))
    if certainty.named:
        template = "{named}, which is not a known release, is read as {target}"
        message = Message(template, named=certainty.named, target=str(job.target))
        why = certainty.evidence or certainty.older
        return plain(in_brackets(local(message), local(why)) if why else local(message))
    if certainty.like:
        template = "{target} for an unspecified release, most similar to {like}"
        if certainty.like == "none":
            template = "{target} for an unspecified release; no known release is similar"
        told = local(Message(template, target=str(job.target), like=certainty.like))
        return plain(f"{told} ({local(certainty.evidence)})")
    if certainty.evidence:
        altered = f", {local('altered')}" if certainty.has is not None else ""
        return plain(f"{job.target} ({local(certainty.evidence)}{altered})")
    return str(job.target)


def heading(job: Job) -> str:
    """The release that a run is read as; a note if nothing shows its release."""
    if is_known(job):
        return read_as(job)
    return plain(local(unknown_release(job)))


def unknown_release(job: Job) -> Message:
    """A sentence: the release is unknown, the possible releases, and the one it is read as."""
    target, told = job.target, fits(job)
    template = "{framework}, release unknown: {fits}; read as {version}"
    if not told:
        template = "{framework}, release unknown; read as {version}"
    return Message(template, framework=target.framework, fits=told, version=target.version)


def _not_described(job: Job, asked: Target) -> Message:
    """The release that an undescribed one is read as, and the described releases around it."""
    older, newer = described_around(asked)
    template = "{target}, because {version} is not a known release; it lies between {older} and {newer}"
    if not newer:
        template = "{target}, because {version} is not a known release; the newest known release is {older}"
    if not older:
        template = "{target}, because {version} is not a known release; the oldest known release is {newer}"
    if not older and not newer:
        template = "{target}, because {version} is not a known release"
    return Message(template, target=str(job.target), version=asked.version, older=older, newer=newer)


def release_dict(job: Job) -> dict[str, Any]:
    """The same as plain data."""
    certainty = job.arguments.certainty
    own = f"{job.asked.framework} {job.asked.version}" if job.asked is not None else certainty.lying or certainty.named
    return {
        "known": is_known(job) and not certainty.like,
        "read_as": str(job.target),
        "own": own or None,
        "fits": list(fitting(job)),
        "reason": certainty.evidence or certainty.older or None,
    }
