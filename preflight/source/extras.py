"""Optional libraries, and the extra of the package that installs each."""

from __future__ import annotations

EXTRAS = {
    "numpy": "layouts",
    "jinja2": "reports",
    "junitparser": "reports",
    "matplotlib": "plot",
    "pygls": "lsp",
    "lsprotocol": "lsp",
    "mcp": "mcp",
}
"""Extras of the package by the module that they install."""
COMPANIONS = {"anyio": "mcp", "pydantic": "mcp"}
"""Modules that are installed together with one of these and may be imported before it."""


def missing(error: ModuleNotFoundError) -> str:
    """The extra to install for a missing module; "" for a module of no extra, which is a bug in preflight."""
    module = error.name or ""
    module = COMPANIONS.get(module.partition(".")[0], module)
    known = module.partition(".")[0] in EXTRAS
    return f"this needs {module}, which is not installed: pip install {module}" if known else ""
