"""Libraries that only some uses need, and the extra of the package that installs each."""

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
    """What to install where a module of an extra is missing; "" where another one is, which is a fault of preflight."""
    module = error.name or ""
    known = module.partition(".")[0] in EXTRAS
    return f"this needs {module}, which is not installed: pip install {module}" if known else ""
