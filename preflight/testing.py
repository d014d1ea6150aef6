"""Fixtures for rules, for preflight's own and for those of plugins: a YAML file is a list of cases, each a small config
and the exact text found in it.

    @pytest.mark.parametrize("case", preflight.testing.load("tests/rules/device_count.yaml"), ids=str)
    def test_rule(case, tmp_path):
        case.verify(tmp_path, rules=["device-count"])

`assert_trains("configs/*.yaml", world_size=64)` is a test of a team's own configs.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from preflight.api import installed
from preflight.checking.checked_sources import Workspace
from preflight.checking.engine import Policy, Report, check_documents
from preflight.fix.fixer import Fixed, fix
from preflight.loaders.command_line import load_command
from preflight.plugins.manager import Plugins
from preflight.report.concise import line
from preflight.run.request import Request, SiteRequest, Target
from preflight.source.finding import Severity
from preflight.source.source_file import Source
from preflight.source.typing_without_import import Any
from preflight.source.writing import write_file


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case of a fixture file.

    text: the config, named `file`; or command: a list of words, or a string split as a shell would. found: the output
    of `preflight check --output-format concise` about the rules under test; "" if there is none. fixed: the text after
    `preflight fix --unsafe`, choosing the first fix if it is only offered; if omitted, it is not compared. unknown:
    unverified checks, one line `because [rule]` each; a case with this key is an *unknown* case. rules: ids to compare,
    if they differ from the file's name. files: other files next to the config; of bytes with !!binary. site: the files
    that the run names are examined, as with --site; python, inventory: next to the config, as with these options.
    """

    name: str
    text: str = ""
    command: str | tuple[str, ...] = ()
    file: str = "run.yaml"
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    site: bool = False
    python: str = ""
    inventory: str = ""
    devices: int | None = None
    nodes: int | None = None
    devices_per_node: int | None = None
    device: str | None = None
    target: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    found: str = ""
    unknown: str | None = None
    fixed: str | None = None
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.origin}: {self.name}"

    @property
    def request(self) -> Request:
        """The words of a user's command line."""
        target = Target.parse(self.target) if self.target else None
        said = Request(self.devices, self.nodes, self.devices_per_node, self.device, target, dict(self.environment))
        return said._replace(site=SiteRequest(kept={})) if self.site else said

    def workspace(self, folder: Path, plugins: Plugins, policy: Policy) -> Workspace:
        """The files of the case, written below a folder."""
        for name, text in {**self.files, self.file: self.text}.items():
            data = text if isinstance(text, bytes) else text.encode("utf-8")
            (folder / name).unlink(missing_ok=True)  # a new file needs no replacement, which is slow
            write_file(folder / name, data, parents=True)
        request = self.request
        if request.site is not None:
            python, inventory = (str(folder / name) if name else "" for name in (self.python, self.inventory))
            request = request._replace(site=request.site._replace(python=python, inventory=inventory))
        return Workspace([Source.read(folder / self.file, self.file)], plugins, request, policy)

    def check(self, folder: Path, plugins: Plugins, policy: Policy) -> Report:
        """The report on the case."""
        if self.command:
            words = shlex.split(self.command) if isinstance(self.command, str) else self.command
            return check_documents((load_command(words),), plugins, self.request, policy)
        return self.workspace(folder, plugins, policy).check()

    def verify(self, folder: Path, rules: Collection[str] = (), plugins: Plugins | None = None) -> None:
        """Raises AssertionError, with a diff, if findings, unknowns or the fixed text differ. rules: ids to
        compare."""
        for name, actual in self.outcome(folder, rules, plugins).items():
            if (expected := getattr(self, name)) is not None:
                _same(name, expected, actual)

    def outcome(self, folder: Path, rules: Collection[str] = (), plugins: Plugins | None = None) -> dict[str, str]:
        """The actual results as `found`, `unknown` and `fixed` (if the case has it).

        Raises AssertionError for a crash, a text that no dialect claims, a fix that is not final or causes a new error.
        """
        plugins = plugins or installed()
        wanted = frozenset(self.rules or rules)
        report = self.check(folder, plugins, Policy(options=self.options))
        if report.crashes:
            raise AssertionError("\n".join(f"{crash.rule} crashed\n{crash.trace}" for crash in report.crashes))
        if not report.jobs:
            raise AssertionError("no dialect claims the text, so nothing was checked")
        host = report.jobs[0].site.host if report.jobs[0].site is not None else ""
        found = "".join(f"{line(f)}\n" for f in report.findings if f.rule in wanted)
        unknown = "".join(f"{u.because} [{u.rule}]\n" for u in report.unknown if u.rule in wanted)
        found, unknown = (text.replace(f"{folder}/", "") for text in (found, unknown))
        found = found.replace(host, "HOST") if host else found
        if (site := report.jobs[0].site) is not None and site.save is not None:
            found = found.replace(f"{site.save.free / (1 << 30):,.1f} GiB", "FREE GiB")
        fixed = {"fixed": self._fixed(folder, plugins, wanted, report)} if self.fixed is not None else {}
        return {"found": found, "unknown": unknown, **fixed}

    def _fixed(self, folder: Path, plugins: Plugins, wanted: frozenset[str], before: Report) -> str:
        policy = Policy(options=self.options)

        def run(source: Source) -> Fixed:
            return fix(
                Workspace([source], plugins, self.request, policy),
                unsafe=True,
                wanted=lambda finding: finding.rule in wanted,
                offered=True,
            )

        result = run(Source.read(folder / self.file, self.file))
        text = result.edited[self.file].text if self.file in result.edited else self.text
        again = run(Source(text, self.file, path=folder / self.file))
        if again.edited:
            raise AssertionError("a second fix changes the text again")
        if new := _errors(again.report) - _errors(before):
            raise AssertionError(f"the fixed text has new errors: {', '.join(sorted(new))}")
        return text


def assert_trains(
    *patterns: str, world_size: int | None = None, device: str | None = None, target: str | None = None
) -> None:
    """Raises AssertionError, with the findings, if preflight finds an error in a file that a pattern matches.

    patterns: paths, with * and ** as in glob, from the working directory. A pattern that matches no file, or no
    training config, is an error as well: such a test would assert nothing.
    """
    import glob

    from preflight.api import check

    for pattern in patterns:
        names = sorted(glob.glob(pattern, recursive=True))
        if not names:
            raise AssertionError(f"{pattern} matches no file")
        for name in names:
            report = check(name, world_size=world_size, device=device, target=target)
            told = [line(f) for f in report.findings if f.severity is Severity.ERROR]
            if told or report.crashes:
                raise AssertionError(
                    "\n".join((*told, *(f"{crash.rule} crashed: {crash.error}" for crash in report.crashes)))
                )
            if not report.jobs:
                raise AssertionError(f"{name} is not recognized as a training config")


def load(path: str | Path) -> list[Case]:
    """The cases of a fixture file. Raises ValueError for an unknown key."""
    import yaml

    path = Path(path)
    names = [f.name for f in fields(Case)]
    cases = []
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times faster
    for item in yaml.load(path.read_text(encoding="utf-8"), loader) or []:
        for key in item:
            if key not in names:
                close = difflib.get_close_matches(str(key), names, 1)
                raise ValueError(
                    f"{path}: a case has no key {key!r}"
                    + (f"; did you mean {close[0]!r}?" if close else f"; its fields are {', '.join(names)}")
                )
        lists = {key: tuple(map(str, value)) for key, value in item.items() if isinstance(value, list)}
        cases.append(Case(**{**item, **lists, "origin": path.stem}))
    return cases


def _errors(report: Report) -> set[str]:
    return {f.rule for f in report.findings if f.severity is Severity.ERROR}


def _same(what: str, expected: str, actual: str) -> None:
    if expected.rstrip("\n") != actual.rstrip("\n"):
        diff = difflib.unified_diff(
            expected.splitlines(), actual.splitlines(), f"{what}, expected", f"{what}, actual", lineterm="", n=99
        )
        raise AssertionError("\n".join(["", *diff]))
