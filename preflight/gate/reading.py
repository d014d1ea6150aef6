"""From a submission to a report: a batch script or a manifest, with the devices it will get."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from preflight.checking.engine import Policy, Report, check_documents
from preflight.checking.merging import merge
from preflight.checking.workspace import Workspace
from preflight.fix.offers import with_proven_offers
from preflight.gate.submission import Allocation, Submission
from preflight.loaders.document import Count
from preflight.loaders.manifest import Manifest, load_manifests
from preflight.plugins.manager import Plugins
from preflight.program.checkout.around import Checkouts
from preflight.run.request import Request
from preflight.source.record import NamedTuple, replace
from preflight.source.text import Source

_SBATCH = re.compile(r"^#SBATCH(?=[ \t])", re.MULTILINE)


class Reading(NamedTuple):
    """What was found in a submission, and its allocation: as given, else as it says itself.

    workspace: of a script, to try layouts in.
    """

    report: Report
    allocation: Allocation
    workspace: Workspace | None = None

    def with_layouts(self) -> Report:
        """The report with layouts that would run, for errors that only another layout cures, where numpy is installed;
        and of all ways out those that are proven."""
        if self.workspace is None:
            return _without_offers(self.report)
        if not any(f.layout and f.fix is None for f in self.report.findings):
            return with_proven_offers(self.workspace, self.report)
        from preflight.layouts.suggest import suggest

        suggested = suggest(self.workspace, self.report, absent=lambda name, why: None)
        return with_proven_offers(self.workspace, suggested)


def _without_offers(report: Report) -> Report:
    """The report with nothing that is not proven: of a manifest no text is edited."""
    return replace(report, findings=tuple(replace(one, fix=None, alternatives=()) for one in report.findings))


def read(
    submission: Submission, plugins: Plugins, policy: Policy, *, follow: bool, device: str | None = None
) -> Reading:
    """Check a submission. Raises InputError for what cannot be read."""
    source = Source.decode(submission.data, submission.name)
    given = submission.allocation
    whole = given.nodes is None or given.devices_per_node is None
    request = Request(given.world if whole else None, given.nodes, given.devices_per_node, device, follow=follow)
    if submission.kind == "manifest":
        jobs = list(load_manifests(source))
        report = merge([check_documents(job.documents, plugins, request, policy) for job in jobs])
        return Reading(report, given if given.known else _of_manifest(jobs))
    nothing = Checkouts(isolated=True)  # the folder of the job is its owner's: what lies there proves no release
    workspace = Workspace([_script(source, submission, follow)], plugins, request, policy, nothing)
    report = workspace.check()
    return Reading(report, given if given.known else _of_script(report), workspace)


def _script(source: Source, submission: Submission, follow: bool) -> Source:
    """The source under a name by which the loader knows a script.

    Of a component, the #SBATCH lines say that there are others.
    """
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
    """What the #SBATCH lines ask for, as the first run states it."""
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
