"""The language server in a real editor: Neovim without a screen."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration
CONFIG = Path(__file__).parents[2] / "examples/mindformers/run_llama2_7b.yaml"
LUA = """
local found = {{}}
vim.cmd("edit run.yaml")
local id = vim.lsp.start_client({{ name = "preflight", cmd = {command}, root_dir = vim.fn.getcwd() }})
vim.lsp.buf_attach_client(0, id)
local function codes()
  local names = {{}}
  for _, one in ipairs(vim.diagnostic.get(0)) do table.insert(names, one.lnum + 1 .. ":" .. tostring(one.code)) end
  table.sort(names)
  return names
end
vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end, 50)
found.before = codes()
local number = {line}
local line = vim.fn.getline(number):gsub("3e%-4", "3.0e-4")
vim.fn.setline(number, line)
vim.wait(20000, function() return #vim.diagnostic.get(0) == #found.before - 1 end, 50)
found.after = codes()
local place = {{ line = number - 1, character = 3 }}
local asked = {{ textDocument = vim.lsp.util.make_text_document_params(), position = place }}
local answers = vim.lsp.buf_request_sync(0, "textDocument/hover", asked, 10000) or {{}}
for _, answer in pairs(answers) do found.hover = answer.result.contents.value end
vim.fn.append(number, "  warm")
vim.wait(20000, function() return vim.tbl_contains(codes(), number + 1 .. ":nil") end, 50)
found.half = codes()
vim.fn.writefile({{ vim.fn.json_encode(found) }}, "found.json")
vim.cmd("qall!")
"""


def test_findings_come_and_go_while_somebody_types(tmp_path: Path) -> None:
    if shutil.which("nvim") is None:
        pytest.skip("nvim is not installed")
    shutil.copy(CONFIG, tmp_path / "run.yaml")
    line = next(n for n, text in enumerate(CONFIG.read_text().splitlines(), 1) if "learning_rate: 3e-4" in text)
    command = "{" + ", ".join(json.dumps(word) for word in (sys.executable, "-m", "preflight", "lsp")) + "}"
    (tmp_path / "session.lua").write_text(LUA.format(command=command, line=line))
    words = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", "luafile session.lua"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
    assert (tmp_path / "found.json").exists(), ran.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert f"{line}:class-argument-refused" in found["before"]
    assert found["after"] == [one for one in found["before"] if not one.startswith(f"{line}:")]
    assert "**lr_schedule.learning_rate** = `0.0003`" in found["hover"]
    assert len([one for one in found["half"] if not one.endswith(":nil")]) == len(
        found["after"]
    )  # half a key hides none
    assert f"{line + 1}:nil" in found["half"]  # and is an error itself
