"""Targets that read a text: it is understood, or refused with InputError."""

from __future__ import annotations

import contextlib

import yaml as pyyaml

from preflight.fix.edit_integrity import same
from preflight.loaders.document import Document, walk
from preflight.loaders.shell import arithmetic, load_script
from preflight.loaders.shell.arithmetic import NotKnown
from preflight.loaders.shell.bash_parser import without_padding
from preflight.loaders.yaml import load_yaml
from preflight.run import settings_files as settings_file
from preflight.source.source_file import InputError, Source

from .choices import Choices
from .configs import folder
from .pieces import SHELL, SUMS, TOML, YAML, pieces


def well_formed(documents: tuple[Document, ...]) -> None:
    """Spans are in their text."""
    for document in documents:
        for _, node, _ in walk(document.tree) if document.tree is not None else ():
            assert 0 <= node.span.start <= node.span.end <= len(node.span.source.text), node.span
        for problem in document.problems:
            assert 0 <= problem.span.start <= problem.span.end <= len(problem.span.source.text), problem


def loader(choices: Choices) -> None:
    """YAML: read as PyYAML reads it, or refused."""
    text = pieces(choices, YAML)
    try:
        source = Source.decode(text.encode("utf-8", "surrogatepass"), "run.yaml")
        document = load_yaml(source)
    except InputError:
        return
    well_formed((document,))
    if choices.below(4) or "\ufeff" in text:  # libyaml drops these wherever they stand
        return
    try:
        theirs = pyyaml.safe_load(source.text)
    except (pyyaml.YAMLError, ValueError, TypeError, LookupError, RecursionError):
        return
    ours = document.tree.plain() if document.tree is not None else None
    assert same(ours, theirs), f"{ours!r} instead of {theirs!r}"


def shell(choices: Choices) -> None:
    """A script: understood, or refused; without its padding it is as long,
    and has blanks instead of some characters."""
    text = pieces(choices, SHELL)
    with contextlib.suppress(InputError):
        well_formed(load_script(Source(text, "run.sh")))
    bare = without_padding(text, len(text))
    assert bare is None or (
        len(bare) == len(text) and all(new in (old, " ") for old, new in zip(text, bare, strict=True))
    ), (text, bare)


def sums(choices: Choices) -> None:
    """Arithmetic of the shell."""
    text = pieces(choices, SUMS)
    with contextlib.suppress(NotKnown):
        value = arithmetic.evaluate(text, lambda name: 7)
        assert -(2**63) <= value < 2**63, (text, value)


def toml(choices: Choices) -> None:
    """Settings: taken, or refused with a place."""
    path = folder() / choices.of(("preflight.toml", "pyproject.toml"))
    path.write_text(pieces(choices, TOML), encoding="utf-8", errors="replace")
    try:
        settings_file.load(path)
    except InputError as error:
        assert str(path) in str(error)
