"""From text to documents: YAML files, Kubernetes manifests (recognized by their content), scripts (by name or first
line), and commands as lists of words."""

from __future__ import annotations

from preflight.loaders.document import Document
from preflight.loaders.file_kinds import COMMAND, MANIFEST, MARKDOWN_SUFFIXES, PYTHON_SUFFIX, is_script
from preflight.loaders.text_limits import refuse_large
from preflight.source.source_file import InputError, Source


def load(source: Source) -> tuple[Document, ...]:
    """The documents of a file: one for YAML, one per launch for a script or a manifest. Raises InputError."""
    try:
        return _load(source)
    except RecursionError:
        raise InputError("is nested too deeply", source.name) from None
    except MemoryError:
        raise InputError("needs more memory than is available", source.name) from None


def _load(source: Source) -> tuple[Document, ...]:
    if source.name == COMMAND and source.path is None:
        from preflight.loaders.command_line import load_commands

        return load_commands(source)
    if source.name.lower().endswith(PYTHON_SUFFIX):
        from preflight.loaders.python import load_python

        return load_python(source)
    if source.name.lower().endswith(MARKDOWN_SUFFIXES):
        from preflight.loaders.markdown import load_markdown

        return load_markdown(source)
    if is_script(source):
        from preflight.loaders.shell import load_script

        return load_script(source)
    refuse_large(source)
    if MANIFEST in source.text:
        from preflight.loaders.manifest import load_manifest

        return load_manifest(source)
    from preflight.loaders.yaml import load_yaml

    return (load_yaml(source),)
