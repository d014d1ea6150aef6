"""The language server: requests of an editor, and their answers."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer

import preflight
from preflight.lsp.buffers import Buffer, Buffers
from preflight.lsp.completion import completions
from preflight.lsp.configuration import ask, speak, watch
from preflight.lsp.diagnostics import ALL, EXPLAIN, SOURCE, SUPPRESS, actions, diagnostics
from preflight.lsp.hover_and_links import COMMAND, address, definition, hover, lenses, links, memory_by_stage, section
from preflight.lsp.positions import offset_of
from preflight.lsp.suppression_edit import suppression
from preflight.report.source_excerpts_and_escapes import plain
from preflight.source import cache_folder
from preflight.source.finding import Message
from preflight.source.translation import local
from preflight.source.writing import write_file

DELAY = 0.15
"""Seconds without a change after which a text is checked."""


def make() -> LanguageServer:
    """A server that reports findings about open files."""
    server = LanguageServer("preflight", preflight.__version__)
    buffers = Buffers(lambda path, why: _warn(server, path, why))
    typing = Typing(server, buffers)
    _surrounding(server, buffers, typing)
    _typing(server, buffers, typing)
    _reading(server, typing)
    _acting(server, typing)
    _commanding(server, buffers, typing)
    return server


def _warn(server: LanguageServer, path: str, why: str) -> None:
    """Report which settings are ignored, and why."""
    told = f"{plain(path)}: {local(Message('these settings are ignored: {why}', why=why))}"
    server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, told))


class Typing:
    """Checks texts as they are typed: after a burst of changes, or when an answer needs it."""

    def __init__(self, server: LanguageServer, buffers: Buffers) -> None:
        self._server, self._buffers = server, buffers
        self._due: dict[str, asyncio.TimerHandle] = {}

    @property
    def pulled(self) -> bool:
        """Whether the editor pulls diagnostics itself."""
        document = self._server.client_capabilities.text_document
        return document is not None and document.diagnostic is not None

    def later(self, uri: str) -> None:
        """Check a text soon; another change restarts the delay."""
        self._cancel(uri)
        self._due[uri] = asyncio.get_running_loop().call_later(DELAY, self.now, uri)

    def now(self, uri: str) -> None:
        """Check a text, and send the findings."""
        self._cancel(uri)
        document = self._server.workspace.get_text_document(uri)
        buffer = self._buffers.update(uri, document.source, document.language_id or "")
        if not self.pulled:
            told = types.PublishDiagnosticsParams(uri, diagnostics(buffer), version=document.version)
            self._server.text_document_publish_diagnostics(told)

    def buffer(self, uri: str) -> Buffer | None:
        """The present state of an open file."""
        if uri in self._due:
            self.now(uri)
        return self._buffers.get(uri)

    def again(self) -> None:
        """Check every open text again, because its surroundings changed."""
        for uri in self._buffers.uris():
            self.now(uri)
        workspace = self._server.client_capabilities.workspace
        refresh = workspace.diagnostics if workspace else None
        if self.pulled and refresh is not None and refresh.refresh_support:
            self._server.workspace_diagnostic_refresh(None)

    def close(self, uri: str) -> None:
        """Forget a text."""
        self._cancel(uri)
        self._buffers.close(uri)
        if not self.pulled:
            self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def _cancel(self, uri: str) -> None:
        if (due := self._due.pop(uri, None)) is not None:
            due.cancel()


def _typing(server: LanguageServer, buffers: Buffers, typing: Typing) -> None:
    """Opening, changing, saving and closing files."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        typing.now(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        typing.later(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        buffers.look_around()
        typing.again()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        typing.close(params.text_document.uri)

    @server.feature(
        types.TEXT_DOCUMENT_DIAGNOSTIC,
        types.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier="preflight"),
    )
    async def pulled(params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
        await asyncio.sleep(DELAY)  # the editor cancels requests that are outdated by typing
        buffer = typing.buffer(params.text_document.uri)
        return types.RelatedFullDocumentDiagnosticReport(diagnostics(buffer) if buffer is not None else [])


def _surrounding(server: LanguageServer, buffers: Buffers, typing: Typing) -> None:
    """Configuration from the editor, and changes on disk."""
    language = ExitStack()

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        speak(language, params.locale)

    @server.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        watch(server)
        ask(server, buffers, typing.again)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: types.DidChangeConfigurationParams) -> None:
        ask(server, buffers, typing.again)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def moved(params: types.DidChangeWatchedFilesParams) -> None:
        buffers.forget()
        typing.again()


def _reading(server: LanguageServer, typing: Typing) -> None:
    """Information about a place, and links from it."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: types.HoverParams) -> types.Hover | None:
        buffer = typing.buffer(params.text_document.uri)
        return hover(buffer, offset_of(buffer.source, params.position)) if buffer else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def defined(params: types.DefinitionParams) -> types.Location | None:
        buffer = typing.buffer(params.text_document.uri)
        return definition(buffer, offset_of(buffer.source, params.position)) if buffer else None

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK)
    def linked(params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        buffer = typing.buffer(params.text_document.uri)
        return links(buffer) if buffer else []

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lensed(params: types.CodeLensParams) -> list[types.CodeLens]:
        buffer = typing.buffer(params.text_document.uri)
        return lenses(buffer, params.text_document.uri) if buffer else []


def _acting(server: LanguageServer, typing: Typing) -> None:
    """Edits of the text."""

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, ALL]),
    )
    def acted(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        buffer = typing.buffer(uri)
        shown = [one.range for one in params.context.diagnostics if one.source == SOURCE]
        return actions(buffer, uri, [params.range, *shown], params.context.only) if buffer else []

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["-", ":", " "]))
    def completed(params: types.CompletionParams) -> types.CompletionList | None:
        buffer = typing.buffer(params.text_document.uri)
        if buffer is None:
            return None
        text = server.workspace.get_text_document(params.text_document.uri).source
        at = buffer.source.position(offset_of(buffer.source, params.position))
        return types.CompletionList(False, completions(buffer, text, at.line - 1, at.column - 1))


def _commanding(server: LanguageServer, buffers: Buffers, typing: Typing) -> None:
    """Commands behind lenses and actions."""

    @server.command(COMMAND)
    def memory(uri: str, number: int) -> None:
        buffer = typing.buffer(uri)
        told = memory_by_stage(buffer, number) if buffer else "this file is no longer open"
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, told))

    @server.command(SUPPRESS)
    def suppress(uri: str, rule: str, line: int) -> None:
        buffer = typing.buffer(uri)
        edit = suppression(buffers, buffer, rule, line) if buffer is not None else None
        if edit is None:
            told = f"{rule} cannot be suppressed on line {line}: a comment above it would have no effect"
            server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, told))
            return
        changes = types.WorkspaceEdit(changes={uri: [edit]})
        server.workspace_apply_edit(types.ApplyWorkspaceEditParams(changes, label=f"Suppress {rule}"))

    @server.command(EXPLAIN)
    def explain(rule: str) -> str:
        page = section(rule)
        uri = address(rule)
        if uri is None:
            path = Path(cache_folder.folder()) / "pages" / f"{rule.replace('/', '-')}.md"
            write_file(path, page.encode(), parents=True)
            uri = path.as_uri()
        external = not uri.startswith("file:")
        server.window_show_document(types.ShowDocumentParams(uri, external=external, take_focus=True))
        return page
