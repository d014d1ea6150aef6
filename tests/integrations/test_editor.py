"""Our schemas of MindFormers configs in yaml-language-server, as an editor would use it."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.integration
SECONDS = 60


class Editor:
    """A client of a language server over its stdin and stdout."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self.folder = folder
        self.server = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        self.number, self.waiting = 0, b""
        self.ask(
            "initialize",
            {"processId": None, "rootUri": folder.as_uri(), "capabilities": {"workspace": {"configuration": True}}},
        )
        self.tell("initialized", {})

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.server.stdin is not None
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.send({"method": method, "params": params})

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.until(lambda message: message.get("id") == self.number and "method" not in message)["result"]

    def until(self, wanted: Any) -> dict[str, Any]:
        """The next message that is wanted; questions of the server are answered on the way."""
        end = time.monotonic() + SECONDS
        while True:
            message = self.receive(end)
            if "method" in message and "id" in message:
                self.send({"id": message["id"], "result": self.configuration(message)})
            if wanted(message):
                return message

    def receive(self, end: float) -> dict[str, Any]:
        while True:
            head, found, rest = self.waiting.partition(b"\r\n\r\n")
            length = int(head.split(b"Content-Length:")[1].split(b"\r\n")[0]) if found else 0
            if found and len(rest) >= length:
                self.waiting = rest[length:]
                return json.loads(rest[:length])
            assert self.server.stdout is not None
            ready, _, _ = select.select([self.server.stdout], [], [], max(end - time.monotonic(), 0))
            assert ready, f"nothing came within {SECONDS} s"
            more = os.read(self.server.stdout.fileno(), 65536)
            assert more, "the server ended"
            self.waiting += more

    @staticmethod
    def configuration(message: dict[str, Any]) -> Any:
        own = {
            "yaml": {"schemaStore": {"enable": False, "url": ""}, "validate": True, "completion": True, "hover": True}
        }
        return (
            [own.get(item.get("section"), {}) for item in message["params"]["items"]]
            if message["method"] == "workspace/configuration"
            else None
        )

    def diagnostics(self, name: str, text: str) -> list[dict[str, Any]]:
        uri = (self.folder / name).as_uri()
        self.tell(
            "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "yaml", "version": 1, "text": text}}
        )
        return self.until(lambda m: m.get("method") == "textDocument/publishDiagnostics" and m["params"]["uri"] == uri)[
            "params"
        ]["diagnostics"]

    def hover(self, name: str, line: int, character: int) -> str:
        place = {
            "textDocument": {"uri": (self.folder / name).as_uri()},
            "position": {"line": line, "character": character},
        }
        return json.dumps(self.ask("textDocument/hover", place))


@pytest.fixture(scope="module")
def editor(modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    node, server = shutil.which("node"), modules / "yaml-language-server/bin/yaml-language-server"
    if node is None or not server.is_file():
        pytest.skip("yaml-language-server is not installed here")
    folder = tmp_path_factory.mktemp("editor")
    for name in ("legacy-2.1.0", "mcore-2.1.0"):
        words = [sys.executable, "-m", "preflight", "schema", f"mindformers/json/{name}"]
        (folder / f"{name}.json").write_text(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    client = Editor([node, str(server), "--stdio"], folder)
    yield client
    client.server.kill()
    client.server.wait()


EXAMPLE = (ROOT / "examples/mindformers/run_llama2_7b.yaml").read_text()
MODELINE = "# yaml-language-server: $schema=legacy-2.1.0.json\n"


def test_a_good_file_is_quiet(editor: Editor) -> None:
    assert editor.diagnostics("good.yaml", MODELINE + EXAMPLE) == []


def test_a_misspelt_key_of_a_closed_section_is_shown(editor: Editor) -> None:
    text = MODELINE + EXAMPLE.replace("  pipeline_stage: 2", "  pipline_stage: 2")
    (found,) = editor.diagnostics("misspelt.yaml", text)
    assert "pipline_stage" in found["message"]
    assert text.splitlines()[found["range"]["start"]["line"]].strip().startswith("pipline_stage")


def test_a_value_of_a_wrong_type_is_shown(editor: Editor) -> None:
    (found,) = editor.diagnostics(
        "wrong.yaml", MODELINE + EXAMPLE.replace("  pipeline_stage: 2", "  pipeline_stage: two")
    )
    assert "integer" in found["message"]


def test_keys_are_explained(editor: Editor) -> None:
    text = MODELINE + EXAMPLE
    editor.diagnostics("hover.yaml", text)
    line = next(i for i, item in enumerate(text.splitlines()) if item.startswith("  pipeline_stage"))
    assert "pipeline stages" in editor.hover("hover.yaml", line, 4)
