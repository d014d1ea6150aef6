"""The kinds of files, by name and content."""

from __future__ import annotations

from preflight.source.source_file import SCRIPT_SUFFIXES, YAML_SUFFIXES, Source

PYTHON_SUFFIX = ".py"
MARKDOWN_SUFFIXES = (".md", ".markdown")
COMMAND = "command line"
"""The name of the source that contains a command given as words."""
MANIFEST = "apiVersion"
"""Text that every manifest contains."""


def is_script(source: Source) -> bool:
    """A shell script, by its name or by a first line that names a shell."""
    name = source.name.lower()
    if name.endswith(SCRIPT_SUFFIXES):
        return True
    first = source.text[:200].partition("\n")[0]
    return first.startswith("#!") and "sh" in first and not name.endswith(YAML_SUFFIXES)
