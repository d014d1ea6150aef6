"""Information from the editor: settings of its workspace, its language, the files that it watches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from preflight.lsp.buffers import Buffers
from preflight.run.project_settings import SEVERITIES, Choice, Facts
from preflight.source.translation import asked, speaking, spoken

SECTION = "preflight"
WATCHED = ("**/preflight.toml", "**/pyproject.toml", "**/*.{yaml,yml,json,sh,bash,slurm,sbatch}")
"""Files on disk that affect the findings in open ones."""


def take(buffers: Buffers, stated: object) -> bool:
    """Use the settings of an editor, except those with a wrong type; returns whether anything changed."""
    data: Mapping[str, object] = stated if isinstance(stated, Mapping) else {}

    def number(name: str) -> int | None:
        value = data.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def text(name: str) -> str | None:
        value = data.get(name)
        return value if isinstance(value, str) and value else None

    def names(name: str) -> tuple[str, ...]:
        value = data.get(name)
        return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()

    least = text("minSeverity") or ""
    return buffers.configure(
        Facts(number("worldSize"), number("nodes"), number("devicesPerNode"), text("device"), text("target")),
        Choice(names("select"), names("ignore"), least if least in SEVERITIES else ""),
    )


def speak(stack: ExitStack, locale: str | None) -> None:
    """Use the language of the editor, unless PREFLIGHT_LANG states one."""
    if locale and not spoken().explicit:
        stack.enter_context(speaking(asked(["lsp", "--lang", locale])))


def watch(server: LanguageServer) -> None:
    """Ask the editor to report changes of files on disk, if it supports this."""
    workspace = server.client_capabilities.workspace
    watching = workspace.did_change_watched_files if workspace else None
    if watching is None or not watching.dynamic_registration:
        return
    watchers = [types.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
    method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    registration = types.Registration(id="preflight-files", method=method, register_options=options)
    server.client_register_capability(types.RegistrationParams([registration]))


def ask(server: LanguageServer, buffers: Buffers, then: Callable[[], None]) -> None:
    """Fetch the workspace settings, if the editor has them; then call a function if they changed."""
    workspace = server.client_capabilities.workspace
    if workspace is None or not workspace.configuration:
        return

    def got(found: object) -> None:
        if take(buffers, found[0] if isinstance(found, (list, tuple)) and found else None):
            then()

    asked_for = types.ConfigurationParams([types.ConfigurationItem(section=SECTION)])
    server.workspace_configuration(asked_for, callback=got)
