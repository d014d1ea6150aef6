"""Time from a keystroke to the diagnostics, through a real client.

python benchmarks/editor.py [FILE...]
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = ("mindformers/run_llama2_7b.yaml", "mindspeed/pretrain_7b_2d.sh")
LINES, KEYS = 300, 200


def long(path: Path) -> str:
    """The text of a file with comments to 300 lines."""
    text = path.read_text(encoding="utf-8")
    return text + "# more\n" * max(0, LINES - text.count("\n"))


async def typed(path: Path) -> list[float]:
    """Seconds from each keystroke to what the server says of the text."""
    client, told = LanguageClient("benchmark", "1"), asyncio.Event()
    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: told.set())
    await client.start_io(sys.executable, "-m", "preflight", "lsp")
    await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
    text, uri, took = long(path), path.absolute().as_uri(), []
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "text", 1, text)))
    await told.wait()
    end = types.Position(text.count("\n"), 0)
    for version in range(2, KEYS + 2):
        told.clear()
        change = types.TextDocumentContentChangePartial(types.Range(end, end), "#")
        start = time.perf_counter()
        named = types.VersionedTextDocumentIdentifier(version, uri)
        client.text_document_did_change(types.DidChangeTextDocumentParams(named, [change]))
        await told.wait()
        took.append(time.perf_counter() - start)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return sorted(took)


def main(names: list[str]) -> None:
    for path in [Path(name) for name in names] or [EXAMPLES / name for name in FILES]:
        took = asyncio.run(typed(path))
        middle, late = took[len(took) // 2], took[len(took) * 95 // 100]
        told = ", ".join((f"median {middle * 1000:.1f} ms", f"95 % within {late * 1000:.1f} ms"))
        print(f"{path.name:24} {told}, most {took[-1] * 1000:.1f} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
