"""The scheduler's input to the gate, and its interpretation: a batch script or a manifest, with its devices."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath

from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Policy, Report, check_documents
from preflight.checking.merged_reports import merge
from preflight.fix.proven_fixes import with_proven_offers
from preflight.loaders.document import Count
from preflight.loaders.manifest import Manifest, load_manifests
from preflight.plugins.manager import Plugins
from preflight.program.checkout.enclosing_checkout import Checkouts
from preflight.run.request import Request
from preflight.source.record import NamedTuple, replace
from preflight.source.source_file import InputError, Source
from preflight.source.typing_without_import import Any


class Allocation(NamedTuple):
    """Devices of the job; None if unknown. source: scheduler, script, manifest, flag or unknown."""

    nodes: int | None = None
    devices_per_node: int | None = None
    world: int | None = None
    source: str = "unknown"

    @property
    def known(self) -> bool:
        """Whether anything is stated."""
        return self.source != "unknown"

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Allocation:
        """Create it from plain data, as in an allocation file. Raises InputError for anything that is not a count."""
        counts: dict[str, int | None] = {}
        for name in ("nodes", "devices_per_node", "world"):
            value = data.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"the allocation's {name} is not a count: {str(value)[:40]}")
            counts[name] = value
        if counts["world"] is None and counts["nodes"] and counts["devices_per_node"]:
            counts["world"] = counts["nodes"] * counts["devices_per_node"]
        known = any(value is not None for value in counts.values())
        return cls(**counts, source=str(data.get("source", "scheduler"))[:20] if known else "unknown")


class Override(NamedTuple):
    """A request to run despite errors: the user and the reason."""

    user: str
    reason: str


class Submission(NamedTuple):
    """One job about to be queued. kind: sbatch or manifest; name: the file's or the job's, for messages. component: the
    script is one component of a heterogeneous job: its own #SBATCH lines do not describe the whole allocation. change:
    the job is already queued, and its request is changed. folder: the working directory of the job, in which the files
    that it names are searched; None: they are not opened.
    """

    data: bytes
    name: str = "job script"
    kind: str = "sbatch"
    allocation: Allocation = Allocation()
    override: Override | None = None
    component: bool = False
    change: bool = False
    folder: Path | None = None


MOST_DIGITS = 9
MOST_UNASKED = 200


class Question(NamedTuple):
    """A query's parameters and the body."""

    asked: dict[str, str]
    body: bytes

    @property
    def user(self) -> str:
        """The submitting user, as stated by the caller."""
        return self.asked.get("user", "")[:100]

    @property
    def key(self) -> bytes:
        """Identity of the checked text, independent of the caller."""
        return hashlib.sha256(self.asked.get("kind", "").encode() + b"\n" + self.body).digest()

    def encode(self, seconds: float, advice: float) -> bytes:
        """As bytes for a worker, with the seconds that the check and a search for layouts may take."""
        return json.dumps([self.asked, seconds, advice]).encode() + b"\n" + self.body

    @classmethod
    def decode(cls, data: bytes) -> tuple[Question, float, float]:
        """Inverse of encode."""
        head, _, body = data.partition(b"\n")
        asked, seconds, advice = json.loads(head)
        return cls(asked, body), seconds, advice

    def submission(self) -> Submission:
        """The submission to judge. Raises InputError for an invalid count."""
        counts: dict[str, Any] = {
            name: _count(self.asked, name) for name in ("nodes", "devices_per_node", "world") if self.asked.get(name)
        }
        reason = self.asked.get("override")
        return self.bare()._replace(
            allocation=Allocation.read(counts),
            override=Override(self.user, reason) if reason else None,
            component=bool(self.asked.get("component")),
            change=bool(self.asked.get("change")),
        )

    def unasked(self) -> list[tuple[str, int]]:
        """Users, and the number of their submissions for which the gate was not queried: `2001:3,2002:1`."""
        pairs = (part.partition(":") for part in self.asked.get("unasked", "").split(",")[:MOST_UNASKED])
        return [
            (user, int(count))
            for user, _, count in pairs
            if 0 < len(count) <= MOST_DIGITS and count.isascii() and count.isdecimal()
        ]

    def bare(self) -> Submission:
        """The text alone, for an answer without a verdict."""
        return Submission(self.body, self.asked.get("name") or "job script", self.asked.get("kind") or "sbatch")


def _count(asked: Mapping[str, str], name: str) -> int:
    value = asked[name]
    if not (value.isascii() and value.isdecimal()) or len(value) > MOST_DIGITS:
        raise InputError(f"{name} is not a count: {value[:40]}")
    return int(value)


_SBATCH = re.compile(r"^#SBATCH(?=[ \t])", re.MULTILINE)


class Reading(NamedTuple):
    """The findings in a submission, and its allocation: as given, otherwise as its own lines state it. workspace: of a
    script, in which layouts are tried.
    """

    report: Report
    allocation: Allocation
    workspace: Workspace | None = None

    def with_layouts(self) -> Report:
        """The report with layouts that would run, for errors that only another layout fixes, if numpy is installed;
        with only proven fixes."""
        if self.workspace is None:
            return _without_offers(self.report)
        if not any(f.layout and f.fix is None for f in self.report.findings):
            return with_proven_offers(self.workspace, self.report)
        from preflight.layouts.layout_fixes import suggest

        suggested = suggest(self.workspace, self.report, absent=lambda name, why: None)
        return with_proven_offers(self.workspace, suggested)


def _without_offers(report: Report) -> Report:
    """The report with only proven fixes; the text of a manifest is never edited."""
    return replace(report, findings=tuple(replace(one, fix=None, alternatives=()) for one in report.findings))


def read(
    submission: Submission, plugins: Plugins, policy: Policy, *, follow: bool, device: str | None = None
) -> Reading:
    """Check a submission. Raises InputError if it cannot be read."""
    source = Source.decode(submission.data, submission.name)
    given = submission.allocation
    whole = given.nodes is None or given.devices_per_node is None
    request = Request(given.world if whole else None, given.nodes, given.devices_per_node, device, follow=follow)
    if submission.kind == "manifest":
        jobs = list(load_manifests(source))
        report = merge([check_documents(job.documents, plugins, request, policy) for job in jobs])
        return Reading(report, given if given.known else _of_manifest(jobs))
    nothing = Checkouts(isolated=True)  # the folder of the job belongs to its owner: its contents prove no release
    workspace = Workspace([_script(source, submission, follow)], plugins, request, policy, nothing)
    report = workspace.check()
    return Reading(report, given if given.known else _of_script(report), workspace)


def _script(source: Source, submission: Submission, follow: bool) -> Source:
    """The source under a name that the loader recognizes as a script. For a component, the #SBATCH lines show that
    there are others."""
    name = source.name
    if not source.text.startswith("#!") and not name.endswith((".sh", ".sbatch", ".slurm", ".bash", ".job")):
        name += ".sbatch"
    text = _SBATCH.sub("#SBATCH hetjob", source.text, count=1) if submission.component else source.text
    path = submission.folder / PurePath(name).name if follow and submission.folder is not None else None
    return Source(text, name, path=path, bom=source.bom)


def _of_manifest(jobs: Iterable[Manifest]) -> Allocation:
    first = next((job for job in jobs if job.documents), None)
    if first is None or first.world is None:
        return Allocation()
    return Allocation(first.nodes, first.devices_per_node, first.world, "manifest")


def _of_script(report: Report) -> Allocation:
    """The request in the #SBATCH lines, as stated for the first run."""
    launch = next((launch for job in report.jobs if (launch := job.documents[0].launch) is not None), None)
    if launch is None:
        return Allocation()

    def number(*counts: Count | None) -> int | None:
        return next(
            (c.value for c in counts if c is not None and c.source == "#SBATCH" and isinstance(c.value, int)), None
        )

    world = number(*launch.world)
    return (
        Allocation(number(launch.nodes), number(launch.per_node), world, "script")
        if world is not None
        else Allocation()
    )
