"""preflight from Python: check files, a command, or a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path

from preflight.cluster import Cluster, Device
from preflight.dialects import beside
from preflight.document import Document
from preflight.engine import Policy, Report, check_documents, find_device
from preflight.finding import Finding, Severity
from preflight.loaders import load
from preflight.memory import MemoryEstimate, estimate
from preflight.plan import Plan
from preflight.plugins import Plugins
from preflight.plugins import load as load_plugins
from preflight.request import Request, Target
from preflight.source import InputError, Source


@lru_cache(maxsize=1)
def installed() -> Plugins:
    """The installed plugins, loaded once a process."""
    return load_plugins()


def request(
    world_size: int | None = None, device: str | None = None, target: str | Target | None = None, env: Mapping[str, str] | None = None, follow: bool = True
) -> Request:
    """A Request from plain values. target: "mindformers@1.5.0" or a Target."""
    wanted = Target.parse(target) if isinstance(target, str) else target
    return Request(world_size=world_size, device=device, target=wanted, environment=dict(env or {}), follow=follow)


def reader(follow: bool = True) -> _Reader:
    """Opens files that a config names, below the folder of the config's own folder's parent, each once."""
    return _Reader(follow)


class _Reader:
    def __init__(self, follow: bool) -> None:
        self.follow, self.seen = follow, {}  # type: ignore[var-annotated]

    def __call__(self, document: Document, name: str) -> Document | None:
        path = beside(document, name) if self.follow else None
        if path is None or not path.is_file():
            return None
        if path not in self.seen:
            self.seen[path] = load(Source.read(path, _shown(path)))
        loaded: tuple[Document, ...] = self.seen[path]
        return loaded[0] if loaded else None


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def check(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    world_size: int | None = None,
    device: str | None = None,
    target: str | Target | None = None,
    env: Mapping[str, str] | None = None,
) -> Report:
    """Check config files. Raises InputError for a file that cannot be read."""
    names = [paths] if isinstance(paths, (str, PathLike)) else list(paths)
    documents = [document for name in names for document in load(Source.read(Path(name), str(name)))]
    return check_documents(documents, installed(), request(world_size, device, target, env), Policy(), reader())


def check_text(text: str, *, name: str = "run.yaml", world_size: int | None = None, device: str | None = None, target: str | Target | None = None) -> Report:
    """Check a config given as text; its name tells YAML from a script."""
    source = Source.decode(text.encode("utf-8"), name, path=Path(name))
    try:
        documents = load(source)
    except InputError as error:
        return unreadable(source, error)
    return check_documents(documents, installed(), request(world_size, device, target), Policy(), reader())


def unreadable(source: Source, error: InputError) -> Report:
    """The report of a text that cannot be parsed: one error at the place."""
    at = source.offset(error.line, error.column) if error.line else 0
    finding = Finding(error.message, source.span(min(at, len(source.text))), rule="unreadable", severity=Severity.ERROR)
    return Report(findings=(finding,), checked=(source.name,))


def check_command(
    argv: Sequence[str],
    *,
    world_size: int | None = None,
    device: str | None = None,
    target: str | Target | None = None,
    env: Mapping[str, str] | None = None,
) -> Report:
    """Check a command given as a list of words: an entry script and its flags, with or without its launcher."""
    from preflight.loaders.command import load_command

    return check_documents((load_command(argv),), installed(), request(world_size, device, target, env), Policy(), reader())


def estimate_memory(plan: Plan, device: Device | str | None = None) -> MemoryEstimate:
    """Memory per pipeline stage of a plan. Raises InputError for a device name that is not known."""
    if isinstance(device, str):
        found = find_device(installed().devices, device)
        if found is None:
            raise InputError(f"no device is called {device!r}")
        device = found
    return estimate(plan, Cluster(device=device))
