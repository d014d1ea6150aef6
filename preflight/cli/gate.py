"""preflight gate: answers one submission, as the gate does."""

from __future__ import annotations

import getpass
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from preflight.checking.request_validation import verify_facts
from preflight.cli.exit_handling import say, tell
from preflight.cli.options import listed, option
from preflight.gate import audit as trail
from preflight.gate.submission import Allocation, Override, Submission
from preflight.gate.verdict import Policies, Reply
from preflight.gate.workers import judge_apart
from preflight.lint.suppression import present
from preflight.plugins import manager as plugins
from preflight.run.project_settings import Facts
from preflight.source.source_file import MAX_BYTES, InputError, note_file
from preflight.source.spelling import did_you_mean

Script = Annotated[
    str, option("--script", metavar="PATH|-", help="The batch script, or - for stdin.", show_default=True)
]
Manifest = Annotated[
    str | None,
    option("--manifest", metavar="PATH|-", help="The manifest of a Kubernetes job, instead of a batch script."),
]
Nodes = Annotated[int | None, option("--nodes", metavar="N", help="Number of nodes in the allocation.")]
Devices = Annotated[int | None, option("--devices-per-node", metavar="M", help="Number of devices per node.")]
Device = Annotated[
    str | None,
    option("--device", metavar="NAME", help="The accelerator; if given, memory is also checked.", completion="devices"),
]
AllocationFile = Annotated[
    str | None, option("--allocation", metavar="FILE", help="A JSON file that describes the allocation.")
]
Component = Annotated[bool, option("--component", help="The script is a component of a heterogeneous job.")]
Timeout = Annotated[
    float,
    option(
        "--timeout",
        metavar="S",
        min=0.01,
        help="Deadline in seconds; without a verdict by then, the exit code is 3.",
        show_default=True,
    ),
]
Follow = Annotated[
    bool, option("--follow/--no-follow", help="Also open other files that the script names.", show_default=True)
]
Reason = Annotated[
    str | None, option("--override", metavar="REASON", help="Let the job pass despite errors; the reason is recorded.")
]
User = Annotated[str | None, option("--user", metavar="NAME", help="The user who submits the job.")]
Final = Annotated[list[str] | None, option("--final", metavar="RULE", help="Rules that cannot be overridden.")]
ReportOnly = Annotated[bool, option("--report-only", help="Only report what would be refused, and never refuse a job.")]
RefuseUnknown = Annotated[bool, option("--refuse-unknown", help="Refuse submissions whose run cannot be determined.")]
Audit = Annotated[str | None, option("--audit", metavar="FILE", help="Append one JSON line per verdict to this file.")]
Format = Annotated[
    str,
    option(
        "--output-format",
        "-f",
        metavar="json|text",
        help="json: also print the verdict on stdout; text: only print text for people, on stderr.",
        show_default=True,
    ),
]

MOST_ALLOCATION = 65536
LEAST = 1.0
"""Seconds to wait for a line of the audit file."""


def gate(
    script: Script = "-",
    manifest: Manifest = None,
    nodes: Nodes = None,
    devices_per_node: Devices = None,
    device: Device = None,
    allocation: AllocationFile = None,
    component: Component = False,
    timeout: Timeout = 2.0,
    follow: Follow = False,
    override: Reason = None,
    user: User = None,
    final: Final = None,
    report_only: ReportOnly = False,
    refuse_unknown: RefuseUnknown = False,
    audit: Audit = None,
    output_format: Format = "json",
) -> int:
    """Give a verdict on a job before it is queued.

    Exit codes: 0 to pass the job, 1 to refuse it, 2 for unreadable input, 3 without a verdict. The caller decides
    how to treat 2 and 3.
    """
    if output_format not in ("json", "text"):
        raise InputError(f"--output-format must be json or text, not {output_format!r}")
    who = user or getpass.getuser()
    given = _allocation(nodes, devices_per_node, allocation)
    wish = Override(who, override) if override and override.strip() else None
    data, name = _read(manifest or script)
    loaded = plugins.load()
    verify_facts(Facts(device=device), loaded)
    policies = Policies(timeout, final_rules(final, loaded), report_only, refuse_unknown, follow, device=device)
    kind, folder = "manifest" if manifest else "sbatch", Path.cwd() if follow else None
    submission = Submission(data, name, kind, given, wish, component, folder=folder)
    reply = judge_apart(submission, loaded, policies, recorded=audit is not None)
    if audit:
        reply = _audited(audit, reply, who, timeout)
    return _shown(reply, output_format)


def _shown(reply: Reply, output_format: str) -> int:
    print("".join(f"{line}\n" for line in reply.text), end="", file=sys.stderr)
    if output_format == "json":
        try:
            say(json.dumps(reply.verdict) + "\n")
        except InputError as error:  # the exit code is the verdict, regardless of a lost reader
            tell(str(error), reply.code)
    return reply.code


def final_rules(given: list[str] | None, loaded: plugins.Plugins) -> frozenset[str]:
    """The rules that cannot be overridden. Raises InputError for an unknown rule, whose override would otherwise be
    granted."""
    wanted = [present(id) for id in listed(given)]
    known = [rule.id for rule in loaded.rules(None)] if wanted else []
    for id in wanted:
        if id not in known:
            raise InputError(f"--final: there is no rule {id!r}{did_you_mean(id, known)}")
    return frozenset(wanted)


def _audited(path: str, reply: Reply, who: str, seconds: float) -> Reply:
    """The reply after its line is written; unchanged if writing fails, except for an override."""
    why = trail.Trail(Path(path), lambda line: None, max(seconds, LEAST)).write(trail.line(reply.verdict, who))
    if not why:
        return reply
    tell(f"{path}: the audit file cannot be written: {why}", reply.code)
    return reply.unrecorded(why)


def _allocation(nodes: int | None, devices: int | None, path: str | None) -> Allocation:
    if path is None:
        return Allocation.read({"nodes": nodes, "devices_per_node": devices, "source": "flag"})
    try:
        data = json.loads(_bounded(path, MOST_ALLOCATION).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not an allocation: {error}", path) from None
    if not isinstance(data, dict):
        raise InputError("is not an allocation: expected a JSON object", path)
    return Allocation.read(data)


def _read(script: str) -> tuple[bytes, str]:
    return (_bounded("", MAX_BYTES), "stdin") if script == "-" else (_bounded(script, MAX_BYTES), script)


def _bounded(path: str, most: int) -> bytes:
    """The bytes of a file, a pipe, a device or stdin, up to a limit. Raises InputError."""
    try:
        with open(path, "rb") if path else nullcontext(sys.stdin.buffer) as stream:
            data = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path) from None
    if path:
        note_file(path)
    if len(data) > most:
        raise InputError(f"is longer than {most} bytes and is not read", path or "stdin")
    return data
