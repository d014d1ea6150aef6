"""The server: its tools, with the information that an agent needs about each."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlparse

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from pydantic import Field

import preflight
from preflight.mcp import tools
from preflight.mcp.folder import Folder
from preflight.report.json_encoding import dumped
from preflight.source.source_file import InputError

INSTRUCTIONS = """\
preflight checks LLM training configs (Megatron-LM, MindSpeed, MindFormers, verl and others) without running them.
Call check for the file. If there are errors, call fix and apply its patch, or edit the file by hand with the help of
explain. Check again, with `text` for unsaved content. Then call memory with the device, and layouts if the run does not
fit. For a job that died, call why with its logs and its config.
An error means that the framework rejects the run or the run fails. With a warning, the run starts, but probably does
not do what was intended. Unknown values are listed under `unknown`, and checks that need them are skipped. Pass
world_size, device and target if you know them, and never guess them."""

Path_ = Annotated[str, Field(description="The file, relative to the server's folder.")]
OnePath = Annotated[str | None, Field(description="A file or folder, relative to the server's folder.")]
Paths = Annotated[list[str] | None, Field(description="Several files or folders, instead of `path`.")]
Text = Annotated[str | None, Field(description="Content of the file, used instead of the saved content.")]
World = Annotated[int | None, Field(description="Total number of devices of the job, if known.", ge=1)]
Nodes = Annotated[int | None, Field(description="Number of nodes of the job, if known.", ge=1)]
Device = Annotated[str | None, Field(description="The accelerator, e.g. h100 or ascend-910b3, if known.")]
Target = Annotated[str | None, Field(description="Framework and release, e.g. megatron@0.19.0, if known.")]
Logs = Annotated[list[str] | None, Field(description="Logs of all ranks of one job: files or folders of log files.")]
Values = Annotated[dict[str, str] | None, Field(description="Values of arguments or script variables.")]


def make(root: Path) -> MCPServer:
    """A server that reads one folder."""
    server = MCPServer("preflight", version=preflight.__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    for add in (_add_check, _add_fix, _add_explain, _add_memory, _add_layouts, _add_migrate, _add_why):
        add(server, root)
    return server


async def _run(root: Path, context: Context, call: Callable[[Folder], dict[str, Any]]) -> dict[str, Any]:
    """Call a function in a thread that opens nothing outside of the folder. Raises ToolError with its message."""
    folder = Folder(root, await _roots(context))

    def confined() -> dict[str, Any]:
        with folder.confined():
            found: dict[str, Any] = json.loads(dumped(call(folder)))
            return found

    try:
        return await anyio.to_thread.run_sync(confined)
    except InputError as error:
        raise ToolError(str(error)) from None


async def _roots(context: Context) -> tuple[Path, ...]:
    """The folders that the client names at run time, () if it names none."""
    capabilities = context.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return ()
    try:
        found = await context.session.list_roots()
    except MCPError:  # a client without such requests names its folder when it starts the server
        return ()
    return tuple(Path(unquote(urlparse(str(root.uri)).path)) for root in found.roots)


def _add_check(server: MCPServer, root: Path) -> None:
    @server.tool()
    async def check(
        context: Context,
        path: OnePath = None,
        paths: Paths = None,
        text: Text = None,
        world_size: World = None,
        nodes: Nodes = None,
        device: Device = None,
        target: Target = None,
        set: Values = None,
    ) -> dict[str, Any]:
        """Check configs and launch scripts. Returns the report of `preflight check -f json`: findings with rule, place,
        numbers and fixes; `accepted` is true if no known check rejects the run."""
        job = tools.Job(world_size, nodes, None, device, target, set)
        return await _run(root, context, lambda folder: tools.check(folder, tools.either(path, paths), text, job))


def _add_fix(server: MCPServer, root: Path) -> None:
    @server.tool()
    async def fix(
        context: Context,
        path: Path_,
        text: Text = None,
        unsafe: Annotated[bool, Field(description="Include fixes that change batch, layout or training.")] = False,
        world_size: World = None,
        nodes: Nodes = None,
        device: Device = None,
        target: Target = None,
        set: Values = None,
    ) -> dict[str, Any]:
        """Return verified fixes of a file as a patch. Nothing is written: apply `patch` with `git apply`, or write
        `files`."""
        job = tools.Job(world_size, nodes, None, device, target, set)
        return await _run(root, context, lambda folder: tools.fix(folder, path, text, unsafe, job))


def _add_explain(server: MCPServer, root: Path) -> None:
    @server.tool()
    async def explain(
        context: Context, rule: Annotated[str, Field(description="The id of a rule, or the last part of it.")]
    ) -> dict[str, Any]:
        """Return the page of a rule: what it checks and why, an example, the fix safety, and the upstream check."""
        return await _run(root, context, lambda folder: tools.explain(rule))


def _add_memory(server: MCPServer, root: Path) -> None:
    @server.tool()
    async def memory(
        context: Context,
        path: Path_,
        text: Text = None,
        world_size: World = None,
        nodes: Nodes = None,
        device: Device = None,
        target: Target = None,
        set: Values = None,
    ) -> dict[str, Any]:
        """Estimate the memory of each run per pipeline stage and term, in bytes, and whether it fits the device."""
        job = tools.Job(world_size, nodes, None, device, target, set)
        return await _run(root, context, lambda folder: tools.memory(folder, path, text, job))


def _add_layouts(server: MCPServer, root: Path) -> None:
    @server.tool()
    async def layouts(
        context: Context,
        path: Path_,
        text: Text = None,
        show: Annotated[int, Field(description="Number of layouts to return.", ge=1, le=50)] = 5,
        world_size: World = None,
        nodes: Nodes = None,
        device: Device = None,
        target: Target = None,
        set: Values = None,
    ) -> dict[str, Any]:
        """Find other parallel layouts of a run that pass the rules and fit in memory, fastest first, with the settings
        of each layout."""
        job = tools.Job(world_size, nodes, None, device, target, set)
        return await _run(root, context, lambda folder: tools.layouts(folder, path, text, show, job))


def _add_migrate(server: MCPServer, root: Path) -> None:
    @server.tool()
    async def migrate(
        context: Context,
        path: Path_,
        to: Annotated[str, Field(description="The release to migrate to, e.g. megatron@0.19.0.")],
        target: Target = None,
    ) -> dict[str, Any]:
        """Show what changes for each run of a file in another release: removed options, new checks, and changed values
        and defaults."""
        call = partial(tools.migrate, path=path, to=to, job=tools.Job(target=target))
        return await _run(root, context, lambda folder: call(folder))


def _add_why(server: MCPServer, root: Path) -> None:
    @server.tool()
    async def why(
        context: Context,
        logs: Logs = None,
        text: Annotated[str | None, Field(description="The text of a log that is not in a file.")] = None,
        run: Annotated[str | None, Field(description="The config or launch script of the job.")] = None,
        world_size: World = None,
        nodes: Nodes = None,
        device: Device = None,
        target: Target = None,
        set: Values = None,
    ) -> dict[str, Any]:
        """Find why a job died: the first failure, its cause, the rules that report it and, with `run`, the line in the
        config and its fix. Returns the data of `preflight why -f json`; the cause is `unknown` if the logs do not
        show it."""
        job = tools.Job(world_size, nodes, None, device, target, set)
        return await _run(root, context, lambda folder: tools.why(folder, logs or (), text, run, job))
