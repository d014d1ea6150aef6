"""An agent's loop over the official client: a broken config is found, mended and proved; nothing else is opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("mcp", reason="needs mcp")

from mcp import StdioServerParameters
from mcp.client.client import Client

pytestmark = pytest.mark.asyncio

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIG = EXAMPLES / "mindformers" / "run_llama2_7b.yaml"
SCHEMA = json.loads(files("preflight.schemas").joinpath("report.json").read_text(encoding="utf-8"))
TOOLS = {"check", "fix", "explain", "memory", "layouts", "migrate", "why"}

Call = Callable[..., Awaitable[dict[str, Any]]]


@asynccontextmanager
async def agent(folder: Path) -> AsyncIterator[tuple[Client, Call]]:
    """A client with a server for a folder, and a call of a tool that gives its data."""
    environment = {**os.environ, "PREFLIGHT_NO_CACHE": "1"}
    words = ["-c", "from preflight.cli import main; main()", "mcp", str(folder)]
    server = StdioServerParameters(command=sys.executable, args=words, env=environment, cwd=str(folder))
    async with Client(server) as client:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            found = await client.call_tool(tool, arguments)
            text = "".join(part.text for part in found.content if part.type == "text")
            assert not found.is_error, text
            return dict(json.loads(text))

        yield client, call


async def test_a_broken_config_is_found_mended_and_proved_in_six_calls(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(CONFIG.read_text(encoding="utf-8"), encoding="utf-8")
    facts = {"world_size": 8, "target": "mindformers@1.5.0"}
    async with agent(tmp_path) as (client, call):
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        report = await call("check", paths=["run.yaml"], **facts)
        jsonschema.validate(report, SCHEMA)
        assert not report["accepted"]
        page = await call("explain", rule=report["findings"][0]["rule"])
        assert page["page"].startswith(f"# {report['findings'][0]['rule']}\n")
        fixed = await call("fix", path="run.yaml", unsafe=True, **facts)
        assert (tmp_path / "run.yaml").read_text(encoding="utf-8") == CONFIG.read_text(encoding="utf-8")
        subprocess.run(["git", "apply", "--recount", "-"], input=fixed["patch"], text=True, cwd=tmp_path, check=True)
        text = (tmp_path / "run.yaml").read_text(encoding="utf-8")
        for error in await _errors(call, facts, text):
            ways = [error["fix"], *error["alternatives"]]
            text = _applied(text, next(way for way in ways if way is not None and way["text"])["text"])
        proved = await call("check", paths=["run.yaml"], text=text, **facts)
        assert [one["message"] for one in proved["findings"] if one["severity"] == "error"] == []
        memory = await call("memory", path="run.yaml", text=text, device="ascend-910b3", **facts)
        assert memory["runs"][0]["verdict"] in ("fits", "at-risk", "does-not-fit")


async def _errors(call: Call, facts: dict[str, Any], text: str) -> list[dict[str, Any]]:
    report = await call("check", paths=["run.yaml"], text=text, **facts)
    return sorted((one for one in report["findings"] if one["severity"] == "error"), key=lambda one: -one["line"])


def _applied(text: str, changes: list[dict[str, Any]]) -> str:
    """A text after the changes of a fix."""
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    for change in sorted(changes, key=lambda one: (one["line"], one["column"]), reverse=True):
        start = starts[change["line"] - 1] + change["column"] - 1
        end = starts[change["end_line"] - 1] + change["end_column"] - 1
        text = text[:start] + change["new"] + text[end:]
    return text


async def test_layouts_and_migrate_answer_as_the_commands_do(tmp_path: Path) -> None:
    pytest.importorskip("numpy", reason="needs numpy")
    text = (EXAMPLES / "megatron" / "sound_8b.yaml").read_text(encoding="utf-8")
    (tmp_path / "sound.yaml").write_text(text, encoding="utf-8")
    async with agent(tmp_path) as (_, call):
        found = await call("layouts", path="sound.yaml", world_size=32, device="h100", show=2)
        assert len(found["files"][0]["layouts"]) == 2
        moved = await call("migrate", path="sound.yaml", to="megatron@0.19.0")
        assert moved["runs"]


async def test_why_a_job_died_by_files_and_by_text(tmp_path: Path) -> None:
    schema = json.loads(files("preflight.schemas").joinpath("why.json").read_text(encoding="utf-8"))
    log = (EXAMPLES / "logs" / "died.log").read_text(encoding="utf-8")
    script = (EXAMPLES / "megatron" / "train_8b_faults.sh").read_text(encoding="utf-8")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank_0.log").write_text(log, encoding="utf-8")
    (tmp_path / "train.sh").write_text(script, encoding="utf-8")
    (tmp_path / "other.log").symlink_to("/proc/self/status")
    os.mkfifo(tmp_path / "pipe.log")
    async with agent(tmp_path) as (client, call):
        for given in ({"logs": ["logs"]}, {"text": log}):
            found = await call("why", run="train.sh", **given)
            jsonschema.validate(found, schema)
            assert (found["cause"], found["run"]["foreseen"]) == ("config", True)
            assert [(one["rule"], one["path"]) for one in found["run"]["findings"]] == [("bad-choice", "train.sh")]
        for logs, said in (
            (["other.log"], "outside the folder"),
            (["pipe.log"], "is not a file"),
            (["-"], "is not a file"),
            ([], "no log given"),
        ):
            refused = await client.call_tool("why", {"logs": logs})
            assert refused.is_error
            assert said in refused.content[0].text


async def test_nothing_outside_of_the_folder_is_opened(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.yaml").write_text("run_mode: train\nuse_parallel: True\nsecret_word: 1\n")
    (outside / "preflight.toml").write_text("min-severity = 'error'\n")
    (outside / "more.sh").write_text("LAYERS=31\n")
    (inside / "link.yaml").symlink_to(outside / "secret.yaml")
    (inside / "run.sh").write_text(
        "source ../outside/more.sh\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $LAYERS "
        "--pipeline-model-parallel-size 4 --hidden-size 1024 --num-attention-heads 16\n"
    )
    async with agent(inside) as (client, call):
        for path in ("../outside/secret.yaml", str(outside / "secret.yaml"), "link.yaml"):
            refused = await client.call_tool("check", {"paths": [path]})
            assert refused.is_error
            assert "outside the folder" in refused.content[0].text
        report = await call("check", paths=["run.sh"])
        assert "31" not in json.dumps(report)


async def test_wrong_arguments_are_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("run_mode: train\n")
    async with agent(tmp_path) as (client, _):
        for tool, arguments, message in (
            ("explain", {"rule": "device-cout"}, "there is no rule 'device-cout'; did you mean 'device-count'?"),
            ("check", {"paths": ["gone.yaml"]}, "does not exist"),
            ("check", {"path": "gone.yaml"}, "does not exist"),
            ("check", {}, "check needs `path` or `paths`"),
            ("check", {"paths": ["run.yaml"], "device": "h1000"}, "h1000"),
        ):
            found = await client.call_tool(tool, arguments)
            assert message in json.dumps([part.text for part in found.content]), found
