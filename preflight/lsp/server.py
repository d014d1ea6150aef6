"""The language server: what an editor asks, and what it is told."""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer

import preflight
from preflight.lsp.actions import ALL, actions
from preflight.lsp.buffers import Buffers
from preflight.lsp.completion import completions
from preflight.lsp.diagnostics import diagnostics
from preflight.lsp.hover import hover
from preflight.lsp.lens import COMMAND, lenses, memory_by_stage
from preflight.lsp.links import definition, links
from preflight.lsp.places import offset_of
from preflight.report.escapes import plain
from preflight.source.language import local
from preflight.source.message import Message


def make() -> LanguageServer:
    """A server with everything that preflight can tell about open files."""
    server = LanguageServer("preflight", preflight.__version__)
    buffers = Buffers(lambda path, why: _warn(server, path, why))
    _typing(server, buffers)
    _reading(server, buffers)
    _acting(server, buffers)
    return server


def _warn(server: LanguageServer, path: str, why: str) -> None:
    """Say which settings do not count, and why."""
    told = f"{plain(path)}: {local(Message('these settings are ignored: {why}', why=why))}"
    server.window_show_message(types.ShowMessageParams(types.MessageType.Warning, told))


def _typing(server: LanguageServer, buffers: Buffers) -> None:
    """Files are opened, changed, saved and closed."""

    def tell(uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        buffer = buffers.update(uri, document.source)
        found = diagnostics(buffer) if buffer is not None else []
        told = types.PublishDiagnosticsParams(uri, found, version=document.version)
        server.text_document_publish_diagnostics(told)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        tell(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        tell(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        buffers.look_around()
        for uri in buffers.uris():
            tell(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        buffers.close(uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


def _reading(server: LanguageServer, buffers: Buffers) -> None:
    """What stands at a place, and what leads from it."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: types.HoverParams) -> types.Hover | None:
        buffer = buffers.get(params.text_document.uri)
        return hover(buffer, offset_of(buffer.source, params.position)) if buffer else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def defined(params: types.DefinitionParams) -> types.Location | None:
        buffer = buffers.get(params.text_document.uri)
        return definition(buffer, offset_of(buffer.source, params.position)) if buffer else None

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK)
    def linked(params: types.DocumentLinkParams) -> list[types.DocumentLink]:
        buffer = buffers.get(params.text_document.uri)
        return links(buffer) if buffer else []

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lensed(params: types.CodeLensParams) -> list[types.CodeLens]:
        buffer = buffers.get(params.text_document.uri)
        return lenses(buffer, params.text_document.uri) if buffer else []

    @server.command(COMMAND)
    def memory(uri: str, number: int) -> None:
        buffer = buffers.get(uri)
        told = memory_by_stage(buffer, number) if buffer else "this file is not open any more"
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, told))


def _acting(server: LanguageServer, buffers: Buffers) -> None:
    """What changes the text."""

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, ALL]),
    )
    def acted(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        buffer = buffers.get(uri)
        return actions(buffer, uri, params.range, params.context.only) if buffer else []

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["-", ":", " "]))
    def completed(params: types.CompletionParams) -> types.CompletionList | None:
        buffer = buffers.get(params.text_document.uri)
        if buffer is None:
            return None
        text = server.workspace.get_text_document(params.text_document.uri).source
        at = buffer.source.position(offset_of(buffer.source, params.position))
        return types.CompletionList(False, completions(buffer, text, at.line - 1, at.column - 1))
