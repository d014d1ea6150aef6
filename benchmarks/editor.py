"""Latencies of the language server through a real client: a keystroke to its diagnostics, hover, completion.

python benchmarks/editor.py [--keys N] [FILE...]

Keystrokes follow one another, each after the diagnostics of the previous one; the debounce of the server is part
of that time. Hover and completion are asked right after a keystroke, before the diagnostics of the text, as an editor
does while one types.
"""

from __future__ import annotations

import asyncio
import re
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


class Editor:
    """A client of one server, which types at the end of one file."""

    def __init__(self) -> None:
        self.client, self.told = LanguageClient("benchmark", "1"), asyncio.Event()
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.told.set())
        self.version = 1

    async def open(self, path: Path) -> None:
        await self.client.start_io(sys.executable, "-m", "preflight", "lsp")
        await self.client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
        text = long(path)
        self.uri, self.lines = path.absolute().as_uri(), text.split("\n")
        self.end = types.Position(text.count("\n"), 0)
        item = types.TextDocumentItem(self.uri, "text", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        await self.told.wait()

    def type(self) -> None:
        """One key at the end of the file."""
        self.told.clear()
        self.version += 1
        change = types.TextDocumentContentChangePartial(types.Range(self.end, self.end), "#")
        named = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(named, [change]))

    async def close(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()


async def measured(path: Path, keys: int) -> dict[str, list[float]]:
    """Seconds of each kind of answer."""
    editor = Editor()
    await editor.open(path)
    took: dict[str, list[float]] = {"diagnostics": [], "hover": [], "completion": []}
    for _ in range(keys):
        start = time.perf_counter()
        editor.type()
        await editor.told.wait()
        took["diagnostics"].append(time.perf_counter() - start)
    document = types.TextDocumentIdentifier(editor.uri)
    places = [
        types.Position(number, len(line) - len(line.lstrip()) + 2)
        for number, line in enumerate(editor.lines)
        if line.lstrip().startswith("--") or (re.search(r": |\w=", line) and not line.lstrip().startswith("#"))
    ]
    for turn in range(keys):
        at = places[turn % len(places)]
        for kind, ask in (
            ("hover", lambda at=at: editor.client.text_document_hover_async(types.HoverParams(document, at))),
            (
                "completion",
                lambda at=at: editor.client.text_document_completion_async(types.CompletionParams(document, at)),
            ),
        ):
            editor.type()
            start = time.perf_counter()
            await ask()
            took[kind].append(time.perf_counter() - start)
            await editor.told.wait()
    await editor.close()
    return took


def main(names: list[str]) -> None:
    keys = KEYS
    if names[:1] == ["--keys"]:
        keys, names = int(names[1]), names[2:]
    print(f"{'file':24} {'':11} {'median':>9} {'95 %':>9} {'most':>9}")
    for path in [Path(name) for name in names] or [EXAMPLES / name for name in FILES]:
        for kind, seconds in asyncio.run(measured(path, keys)).items():
            took = sorted(seconds)
            figures = (took[len(took) // 2], took[len(took) * 95 // 100], took[-1])
            print(f"{path.name:24} {kind:11} " + " ".join(f"{value * 1000:6.1f} ms" for value in figures))


if __name__ == "__main__":
    main(sys.argv[1:])
