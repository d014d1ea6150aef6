"""Facts that a project's files show, and the settings that follow: the proposal of `preflight init`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from preflight.checking.engine import Report
from preflight.job import Job
from preflight.run.project_settings import Facts
from preflight.source.finding import Message
from preflight.source.record import NamedTuple

VENDORED = ("third_party", "3rdparty", "thirdparty", "external", "submodules", "vendor")
"""Folders with third-party code: the project does not fix findings there."""
MOST_RELEASES = 4
"""Maximum number of releases that a comment lists individually."""


class Reading(NamedTuple):
    """The reading of some files. evidence: the file that names the release, "" if only options show it. releases: the
    candidates, oldest first. sure: the release is stated, or the checkout has its code.
    """

    target: str
    evidence: str
    sure: bool
    releases: tuple[str, ...]

    @property
    def bounded(self) -> bool:
        """Only the options and keys of the files show the release."""
        return not (self.sure or self.evidence)

    def __str__(self) -> str:
        return str(self.words)

    @property
    def words(self) -> str:
        """The target, and what determined it."""
        if not self.bounded:
            if not self.evidence:
                return self.target
            return Message("{target} (from {evidence})", target=self.target, evidence=self.evidence)
        many = len(self.releases)
        if many > MOST_RELEASES:
            template = "{target} (a guess: {many} releases from {first} to {last} fit)"
            first, last = self.releases[0], self.releases[-1]
            return Message(template, target=self.target, many=many, first=first, last=last)
        if many > 1:
            return Message("{target} (a guess: {releases:and} fit)", target=self.target, releases=self.releases)
        return Message("{target} (a guess)", target=self.target)


class Project(NamedTuple):
    """A project as its files show it. readings: the most frequent first, with how many runs each."""

    files: int
    readings: tuple[tuple[Reading, int], ...]
    devices: tuple[str, ...]
    per_node: tuple[int, ...]
    vendored: tuple[str, ...]
    folders: tuple[tuple[str, str], ...] = ()
    """Each guessed target, with the folder of its runs."""


def reading_of(job: Job) -> Reading:
    """The target of one run."""
    certainty = job.arguments.certainty
    sure = certainty.stated or certainty.has is not None
    return Reading(str(job.target), certainty.evidence, sure, certainty.releases)


def _narrowed(readings: Counter[Reading]) -> Counter[Reading]:
    """Guesses of one release merged into one: the releases that fit every file."""
    targets = Counter(reading.target for reading in readings if reading.bounded)
    found: Counter[Reading] = Counter()
    for reading, runs in readings.items():
        if reading.bounded and targets[reading.target] > 1:
            alike = [other.releases for other in readings if other.bounded and other.target == reading.target]
            common = tuple(one for one in reading.releases if all(one in releases for releases in alike))
            reading = reading._replace(releases=common or reading.releases)
        found[reading] += runs
    return found


def _folder(report: Report, target: str) -> str:
    """The folder that contains all runs of a target and no others, "" if there is none."""
    inside = {job.documents[0].source.name for job in report.jobs if str(job.target) == target}
    others = {job.documents[0].source.name for job in report.jobs} - inside
    if any(PurePath(path).is_absolute() or ".." in PurePath(path).parts for path in inside):
        return ""
    folder = os.path.commonpath([PurePath(path).parent for path in inside]).replace(os.sep, "/")
    return "" if any(PurePath(path).is_relative_to(folder) for path in others) else folder.lstrip(".")


def survey(report: Report) -> Project:
    """Inspect the runs of a project."""
    readings = _narrowed(Counter(map(reading_of, report.jobs)))
    devices = Counter(job.cluster.device.name for job in report.jobs if job.cluster.device is not None)
    each = Counter(job.cluster.per_node.raw for job in report.jobs if isinstance(job.cluster.per_node.raw, int))
    folders = {part for path in report.checked for part in PurePath(path).parts[:-1]}
    return Project(
        len(report.checked),
        tuple(readings.most_common()),
        tuple(name for name, _ in devices.most_common()),
        tuple(number for number, _ in each.most_common()),
        tuple(name for name in VENDORED if name in folders),
        tuple((target, _folder(report, target)) for target in {one.target: one for one in readings if one.bounded}),
    )


def settings_lines(project: Project, facts: Facts) -> Iterator[str]:
    """The text of preflight.toml. facts: what the caller states; it takes precedence over the files."""
    yield "# Settings of preflight; `preflight check --show-settings` prints those in effect"
    yield from _target(project, facts)
    if facts.device:
        yield f'device = "{facts.device}"'
    elif len(project.devices) == 1:
        yield f'device = "{project.devices[0]}"  # named in the files'
    else:
        yield '# device = "h100"  # the accelerator: enables the estimate of memory'
    if facts.devices_per_node:
        yield f"devices-per-node = {facts.devices_per_node}"
    elif len(project.per_node) == 1:
        yield f"devices-per-node = {project.per_node[0]}  # used by all launch commands"
    else:
        yield "# devices-per-node = 8"
    if facts.world_size:
        yield f"world-size = {facts.world_size}"
    if project.vendored:
        yield f"exclude = [{', '.join(_quoted(project.vendored))}]  # third-party code"
    if not facts.target:
        yield from _targets_by_folder(project)


def _target(project: Project, facts: Facts) -> Iterator[str]:
    if facts.target:
        yield f'target = "{facts.target}"'
        return
    guessed = [reading for reading, _ in project.readings if reading.bounded]
    if not guessed:
        yield "# target: taken from the checkout around the files"
    elif len(project.readings) == 1:
        yield f"# The release is {guessed[0]}. State yours: until then, checks specific to some releases are warnings"
        yield f'# target = "{guessed[0].target}"'
    else:
        yield "# The release of some files is a guess; set yours at the end of this file"


def _targets_by_folder(project: Project) -> Iterator[str]:
    """Tables of settings for folders with a guessed release, next to folders with a different release."""
    if len(project.readings) < 2:
        return
    folders = dict(project.folders)
    for reading in dict.fromkeys(reading for reading, _ in project.readings if reading.bounded):
        folder = folders.get(reading.target, "")
        yield f'# [per-file."{f"{folder}/**" if folder else "FOLDER/**"}"]'
        yield f'# target = "{reading.target}"  # {str(reading).partition(", ")[2]}'


def _quoted(names: Sequence[str]) -> list[str]:
    return [f'"{name}"' for name in names]
