"""Commands that change the state of a script: working directory, parameters, removed folders."""

from __future__ import annotations

import posixpath
import re

from preflight.loaders.document import Piece, Word
from preflight.loaders.shell.bash_parser import Node, Tree, ancestors
from preflight.loaders.shell.command_words import words_of
from preflight.loaders.shell.expansion import Expander
from preflight.loaders.shell.state import State, Variable
from preflight.loaders.shell.word_splitting import Field, Value, text_of, word
from preflight.source.source_file import Span
from preflight.source.typing_without_import import Protocol


def set_options(expander: Expander, words: list[Field]) -> bool:
    """`set -- …` and `set -u`. Returns whether unset variables end the script from here on."""
    texts = [text_of(field.pieces) or "" for field in words]
    strict = False
    for at, text in enumerate(texts):
        if text == "--":
            expander.arguments = [tuple(field.pieces) for field in words[at + 1 :]]
            break
        strict = strict or bool(re.fullmatch(r"-[^\Wu]*u\w*", text)) or text == "nounset"
    return strict


def shift(expander: Expander, words: list[Field]) -> None:
    """`shift [n]`."""
    count = text_of(words[0].pieces) if words else "1"
    if expander.arguments is not None:
        expander.arguments = (
            expander.arguments[int(count) :] if count is not None and count.isdecimal() and len(count) < 6 else None
        )


CHANGES = frozenset(["cd", "pushd", "popd"])
"""Commands that change the working directory."""
NAME = "(working folder)"
"""The variable that stores it: no script has one of that name, and branches and subshells treat it like any other."""


def change_folder(expander: Expander, tree: Tree, node: Node) -> None:
    """Follow `cd`, `pushd` or another command of CHANGES."""
    place = tree.span(node)
    words = [field for field in words_of(expander, tree, node)[1:] if not _is_option(field)]
    unknown: Value = (Piece(None, place, exact=False, because=place.text),)
    to = tuple(words[0].pieces) if len(words) == 1 and not place.text.startswith("popd") else unknown
    before = expander.state.get(NAME)
    if before is not None and _is_relative(to):
        to = (*before.scalar, Piece("/", place, exact=False), *to)
    expander.state.put(NAME, Variable((to,), False, place))


def working_folder(state: State) -> Word | None:
    """The folder that a command runs in; None if the script does not change its working directory."""
    found = state.get(NAME)
    return word(Field(list(found.scalar)), found.place) if found is not None and found.items else None


def keep_folder(state: State, place: Span, folder: Word | None) -> None:
    """A called script starts in the working directory of its caller."""
    if folder is not None:
        pieces = folder.pieces or (Piece(folder.text, folder.span, exact=False, because=folder.because),)
        state.put(NAME, Variable((pieces,), False, place))


def _is_option(field: Field) -> bool:
    text = field.pieces[0].text if field.pieces else None
    return text is not None and text.startswith("-")


def _is_relative(value: Value) -> bool:
    """Whether a path begins with a known name: an unknown part may be any folder."""
    text = value[0].text if value else None
    return text is not None and not text.startswith(("/", "~"))


class Dry(Protocol):
    """A follower of scripts that supports trial runs without recorded launches."""

    dry: int


_CONDITIONAL = frozenset("if_statement case_statement while_statement for_statement list function_definition".split())


def _is_recursive(word: str) -> bool:
    """Whether a word is an option of `rm` that removes whole folders: `-rf`, `-R`, `--recursive`."""
    short = word.startswith("-") and not word.startswith("--") and ("r" in word or "R" in word)
    return short or word == "--recursive"


def removed_folders(expander: Expander, follower: Dry, tree: Tree, node: Node) -> list[tuple[Span, str]]:
    """The folders that `rm -r` removes unconditionally, with the place of the command."""
    if any(one.type in _CONDITIONAL for one in ancestors(node)):
        return []
    follower.dry += 1
    words = [text_of(field.pieces) for field in words_of(expander, tree, node)[1:]]
    follower.dry -= 1
    if not any(word and _is_recursive(word) for word in words):
        return []
    paths = (posixpath.normpath(word.removesuffix("/*")) for word in words if word and word[:1] != "-")
    return [(tree.span(node), path) for path in paths if path not in (".", "/")]
