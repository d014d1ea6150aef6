"""Libraries that only some uses need, and the extra of the package that installs each."""

from __future__ import annotations

EXTRAS = {
    "numpy": "layouts",
    "jinja2": "reports",
    "sarif_om": "reports",
    "attr": "reports",
    "junitparser": "reports",
    "matplotlib": "plot",
    "pygls": "lsp",
    "lsprotocol": "lsp",
}
"""Extras of the package by the module that they install."""
PACKAGES = {"sarif_om": "sarif-om", "attr": "attrs"}
"""What is installed for a module that has another name."""


def missing(error: ModuleNotFoundError) -> str:
    """What to install where a module of an extra is missing; "" where another one is, which is a fault of preflight."""
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    package = PACKAGES.get(error.name or "", error.name)
    return f"this needs {error.name}, which is not installed: pip install {package}" if extra else ""
