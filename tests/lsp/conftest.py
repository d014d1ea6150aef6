"""A server process with an editor: one for all tests of a module, each with an editor of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

pytest.importorskip("pytest_lsp", reason="needs pytest-lsp and pygls")

import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient
from typist import SERVER, Editor


@pytest_lsp.fixture(config=ClientServerConfig(server_command=SERVER), scope="module")
async def client(lsp_client: LanguageClient) -> AsyncIterator[None]:
    capabilities = pytest_lsp.client_capabilities("visual-studio-code")
    assert capabilities.text_document is not None
    capabilities.text_document.diagnostic = None  # an editor that is sent diagnostics
    asked = types.InitializeParams(capabilities=capabilities)

    @lsp_client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def registered(params: types.RegistrationParams) -> None:
        """Nothing watches files here."""

    await lsp_client.initialize_session(asked)
    yield
    await lsp_client.shutdown_session()


@pytest.fixture
def editor(client: LanguageClient) -> Editor:
    return Editor(client)
