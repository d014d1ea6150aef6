"""The folder in which the commands of a script run, as `cd` and `pushd` leave it."""

from __future__ import annotations

from preflight.loaders.document import Piece, Word
from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.state import State, Variable
from preflight.loaders.shell.substitutions import words_of
from preflight.loaders.shell.syntax import Node, Tree
from preflight.loaders.shell.word_splitting import Field, Value, word
from preflight.source.text import Span

CHANGES = frozenset(["cd", "pushd", "popd"])
"""Commands after which another folder is the working one."""
NAME = "(working folder)"
"""The variable that holds it: no script has one of that name, and branches and subshells treat it as any other."""


def change_folder(expander: Expander, tree: Tree, node: Node) -> None:
    """Follow a command of CHANGES."""
    place = tree.span(node)
    words = [field for field in words_of(expander, tree, node)[1:] if not _is_option(field)]
    unknown: Value = (Piece(None, place, exact=False, because=place.text),)
    to = tuple(words[0].pieces) if len(words) == 1 and not place.text.startswith("popd") else unknown
    before = expander.state.get(NAME)
    if before is not None and _is_relative(to):
        to = (*before.scalar, Piece("/", place, exact=False), *to)
    expander.state.put(NAME, Variable((to,), False, place))


def working_folder(state: State) -> Word | None:
    """The folder that a command runs in; None where the script stays where it is started."""
    found = state.get(NAME)
    return word(Field(list(found.scalar)), found.place) if found is not None and found.items else None


def keep_folder(state: State, place: Span, folder: Word | None) -> None:
    """A script that another one runs starts in its folder."""
    if folder is not None:
        pieces = folder.pieces or (Piece(folder.text, folder.span, exact=False, because=folder.because),)
        state.put(NAME, Variable((pieces,), False, place))


def _is_option(field: Field) -> bool:
    text = field.pieces[0].text if field.pieces else None
    return text is not None and text.startswith("-")


def _is_relative(value: Value) -> bool:
    """Whether a path begins with a name: what is not known may be any folder."""
    text = value[0].text if value else None
    return text is not None and not text.startswith(("/", "~"))
