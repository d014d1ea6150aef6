"""An editor to a language server: opens and changes files, and waits for the server's diagnostics."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from lsprotocol import types
from pytest_lsp import LanguageClient

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVER = [sys.executable, "-m", "preflight", "lsp"]
SECONDS = 60


class Editor:
    """Opens and changes files, and waits for the server's diagnostics."""

    def __init__(self, client: LanguageClient) -> None:
        self.client, self.version = client, 0
        self.found: dict[str, list[types.Diagnostic]] = {}

    async def open(self, path: Path, text: str | None = None) -> str:
        """Open a file with a text; gives its URI."""
        self.version += 1
        item = types.TextDocumentItem(path.as_uri(), "text", self.version, path.read_text() if text is None else text)
        opened = types.DidOpenTextDocumentParams(item)
        await self._told(item.uri, lambda: self.client.text_document_did_open(opened))
        return item.uri

    async def change(self, uri: str, *changes: types.TextDocumentContentChangeEvent) -> list[types.Diagnostic]:
        """Change a file as typing does; gives the diagnostics of the new text."""
        self.version += 1
        named = types.VersionedTextDocumentIdentifier(self.version, uri)
        changed = types.DidChangeTextDocumentParams(named, list(changes))
        return await self._told(uri, lambda: self.client.text_document_did_change(changed))

    async def write(self, uri: str, text: str) -> list[types.Diagnostic]:
        """Replace the whole text."""
        return await self.change(uri, types.TextDocumentContentChangeWholeDocument(text))

    async def _told(self, uri: str, send: Callable[[], None]) -> list[types.Diagnostic]:
        """The diagnostics after a notification, for this file and this text."""
        waiting = self.client.protocol.wait_for_notification_async(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        send()
        told = await asyncio.wait_for(waiting, SECONDS)
        assert (told.uri, told.version) == (uri, self.version), "the server speaks of another text"
        self.found[uri] = list(told.diagnostics)
        return self.found[uri]
