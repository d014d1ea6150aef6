"""Words of a launch made certain: what an expansion that is not known may stand for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from preflight.loaders.document import Word
from preflight.loaders.shell.state import State
from preflight.loaders.shell.word_splitting import PILED, UNREAD, Field, word
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.text import Span

_NAME = lazy_pattern(r"\$([A-Za-z_]\w*)")
_GROUP = lazy_pattern(r".*(ARGS?|ARGUMENTS|OPTS?|OPTIONS?|FLAGS?|PARAMS?|CONFIGS?|EXTRA\w*)")


_EXTRA = lazy_pattern(r".*(EXTRA|ADDITIONAL|OVERRIDE|CUSTOM|OPTIONAL|USER_).*")
"""Names that say of themselves that whoever starts the script may add something."""
_POSITIONAL = lazy_pattern(r"\$(?:[@*]|\d+)")


class Settled(NamedTuple):
    """The words; which of them may be several or none (loose); undefined groups and unset values; whether any flag may be added.

    assumed: of the loose ones those that add nothing unless whoever starts the script says so: "$@", $1, $EXTRA_ARGS.
    """

    words: tuple[Word, ...]
    loose: tuple[Word, ...] = ()
    groups: tuple[tuple[str, Span], ...] = ()
    unset: tuple[tuple[str, str, Span], ...] = ()
    open: bool = False
    assumed: tuple[Word, ...] = ()


def is_group(field: Field) -> bool:
    """Whether a word that is not known can only be options: "$@", or a variable with the name of a list of them."""
    piece = field.pieces[0]
    name = _NAME.fullmatch(piece.because)
    return field.loose and (piece.because in ("$@", "$*") or (name is not None and bool(_GROUP.fullmatch(name[1].upper()))))


def settle(
    fields: Sequence[Field], near: Span, assigned: Collection[str], late: Callable[[str, Span], bool], state: State
) -> Settled:
    """assigned: every name that the script has set; late: whether it did so after a use; state: of the script."""
    words = [word(field, near) for field in fields]
    loose, groups, unset, assumed, opened = [], [], [], [], False
    for at, (field, made) in enumerate(zip(fields, words, strict=True)):
        if made.text is not None:
            continue
        match = _NAME.fullmatch(made.because)
        name = match[1] if match else ""
        flag = words[at - 1].text if at else None
        follows = flag is not None and flag.startswith("-") and "=" not in flag
        undefined = bool(name) and (name not in assigned or late(name, made.span)) and not state.foreign
        group = field.loose and undefined and bool(_GROUP.fullmatch(name.upper()))
        extra = group and name not in assigned and bool(_EXTRA.fullmatch(name.upper()))
        any_number = made.because in ("$@", "$*") or made.because.endswith((UNREAD, PILED))
        positional = _POSITIONAL.fullmatch(made.because) is not None
        if follows and positional and field.loose:
            assumed.append(made)  # the value of an option, or behind a switch
        elif any_number or group or (field.loose and not follows):
            loose.append(made)
            if extra or positional or name in state.by_caller or (undefined and not group):
                assumed.append(made)
            elif group:
                groups.append((name, made.span))
            else:
                opened = True
        elif undefined and follows and flag is not None and len(field.pieces) == 1:
            unset.append((name, flag, made.span))
    return Settled(tuple(words), tuple(loose), tuple(groups), tuple(unset), opened, tuple(assumed))
