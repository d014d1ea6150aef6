"""preflight gate"""

from __future__ import annotations

import getpass
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from preflight import plugins
from preflight.cli import completion
from preflight.cli.options import listed
from preflight.gate import audit as trail
from preflight.gate.submission import Allocation, Override, Submission
from preflight.gate.text import told
from preflight.gate.verdict import Policies, Verdict, judge
from preflight.settings import Facts
from preflight.source import InputError
from preflight.spelling import did_you_mean
from preflight.verification import verify_facts

Script = Annotated[str, typer.Option("--script", metavar="PATH|-", help="The batch script; - reads stdin.")]
Manifest = Annotated[str | None, typer.Option("--manifest", metavar="PATH|-", help="A Kubernetes job instead of a script.", show_default=False)]
Nodes = Annotated[int | None, typer.Option("--nodes", metavar="N", help="Nodes of the allocation.", show_default=False)]
Devices = Annotated[int | None, typer.Option("--devices-per-node", metavar="M", help="Devices on a node.", show_default=False)]
Device = Annotated[str | None, typer.Option("--device", metavar="NAME", help="The accelerator: memory is judged, too.", autocompletion=completion.devices)]
AllocationFile = Annotated[str | None, typer.Option("--allocation", metavar="FILE", help="The allocation as JSON.", show_default=False)]
Component = Annotated[bool, typer.Option("--component", help="The script is a component of a heterogeneous job.", show_default=False)]
Timeout = Annotated[float, typer.Option("--timeout", metavar="S", min=0.01, help="Seconds until there is no verdict (exit 3).")]
Follow = Annotated[bool, typer.Option("--follow/--no-follow", help="Open other files that the script names.")]
Reason = Annotated[str | None, typer.Option("--override", metavar="REASON", help="Let it pass with errors, recorded.", show_default=False)]
User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Who submits.", show_default=False)]
Final = Annotated[list[str] | None, typer.Option("--final", metavar="RULE", help="Rules that no override lifts.", show_default=False)]
ReportOnly = Annotated[bool, typer.Option("--report-only", help="Say what would be refused; never refuse.", show_default=False)]
RefuseUnknown = Annotated[bool, typer.Option("--refuse-unknown", help="Refuse where no run could be resolved.", show_default=False)]
Audit = Annotated[str | None, typer.Option("--audit", metavar="FILE", help="Append a line a verdict.", show_default=False)]
Format = Annotated[str, typer.Option("--output-format", "-f", metavar="json|text", help="json: the verdict on stdout; text: only for people.")]


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

    Exit codes: 0 pass, 1 refuse, 2 unreadable input, 3 no verdict. The wrapper decides what 2 and 3 mean for it.
    """
    if output_format not in ("json", "text"):
        raise InputError(f"--output-format is json or text, not {output_format!r}")
    who = user or getpass.getuser()
    given = _allocation(nodes, devices_per_node, allocation)
    wish = Override(who, override) if override and override.strip() else None
    data, name = _read(manifest or script)
    loaded = plugins.load()
    verify_facts(Facts(device=device), loaded)
    policies = Policies(timeout, final_rules(final, loaded), report_only, refuse_unknown, follow, device=device)
    kind, folder = "manifest" if manifest else "sbatch", Path.cwd() if follow else None
    verdict = judge(Submission(data, name, kind, given, wish, component, folder=folder), loaded, policies)
    if audit:
        _audit(audit, verdict, who)
    if output_format == "json":
        print(json.dumps(verdict.as_dict()))
    print("".join(f"{line}\n" for line in told(verdict)), end="", file=sys.stderr)
    return verdict.code


def final_rules(given: list[str] | None, loaded: plugins.Plugins) -> frozenset[str]:
    """The rules that no override lifts. Raises InputError for one that there is not: its override would be granted."""
    wanted = listed(given)
    known = [rule.id for rule in loaded.rules(None)] if wanted else []
    for id in wanted:
        if id not in known:
            raise InputError(f"--final: there is no rule {id!r}{did_you_mean(id, known)}")
    return frozenset(wanted)


def _audit(path: str, verdict: Verdict, who: str) -> None:
    try:
        trail.append(Path(path), verdict, who)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", path) from None


def _allocation(nodes: int | None, devices: int | None, path: str | None) -> Allocation:
    if path is None:
        return Allocation.read({"nodes": nodes, "devices_per_node": devices, "source": "flag"})
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"is not an allocation: {error}", path) from None
    if not isinstance(data, dict):
        raise InputError("is not an allocation: a JSON object is expected", path)
    return Allocation.read(data)


def _read(script: str) -> tuple[bytes, str]:
    if script == "-":
        return sys.stdin.buffer.read(), "stdin"
    try:
        return Path(script).read_bytes(), script
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", script) from None
