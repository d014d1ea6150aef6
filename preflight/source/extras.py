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


def missing(error: ModuleNotFoundError) -> str:
    """The extra to install for a missing module; "" for a module of no extra, which is a bug in preflight."""
    module = error.name or ""
    known = module.partition(".")[0] in EXTRAS
    return f"this needs {module}, which is not installed: pip install {module}" if known else ""
