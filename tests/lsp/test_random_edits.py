"""Random edits through a client: no crash, no stale diagnostics, and finally the result of a fresh check."""

from __future__ import annotations

import os
import random

import pytest

pytest.importorskip("pytest_lsp", reason="needs pytest-lsp and pygls")

from lsprotocol import types
from typist import EXAMPLES, Editor

import preflight

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]
EDITS = int(os.environ.get("PREFLIGHT_EDITS", "120"))
PIECES = (
    "",
    "#",
    "\n",
    " ",
    "  x: 1\n",
    "--num-layers 3 ",
    "$",
    '"',
    "'",
    "${A:-4}",
    "[",
    "{",
    "- ",
    ": ",
    "0",
    "\\",
    "ü𝔸",
)


def position(text: str, offset: int) -> types.Position:
    line = text[:offset].rpartition("\n")[2]
    return types.Position(text.count("\n", 0, offset), len(line.encode("utf-16-le")) // 2)


@pytest.mark.parametrize(
    "name", ["mindformers/run_llama2_7b.yaml", "megatron/train_8b_faults.sh", "megatron/sound_8b.yaml"]
)
async def test_random_edits(editor: Editor, name: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    chosen = random.Random(name)
    original = (EXAMPLES / name).read_text()
    path = tmp_path / name.rpartition("/")[2]
    path.write_text(original)
    uri, text = await editor.open(path), original
    for number in range(EDITS):
        if number % 60 == 59:  # faults add up until nothing is read any more
            text = original
            await editor.write(uri, text)
            continue
        start = chosen.randrange(len(text) + 1)
        end = min(len(text), start + chosen.choice((0, 0, 1, 3, 30)))
        new = chosen.choice(PIECES)
        if "\r" in text[start:end]:
            continue
        place = types.Range(position(text, start), position(text, end))
        text = text[:start] + new + text[end:]
        await editor.change(uri, types.TextDocumentContentChangePartial(place, new))
        if number % 10 == 0:
            here = types.TextDocumentIdentifier(uri)
            at = position(text, min(start, len(text)))
            await editor.client.text_document_hover_async(types.HoverParams(here, at))
            await editor.client.text_document_completion_async(types.CompletionParams(here, at))
            asked = types.CodeActionParams(here, types.Range(at, at), types.CodeActionContext([]))
            await editor.client.text_document_code_action_async(asked)
    told = await editor.write(uri, original)
    fresh = preflight.check_text(original, name=str(path))
    assert sorted(one.message for one in told) == sorted(finding.message for finding in fresh.findings)
