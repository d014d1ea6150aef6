"""Words of a launch made certain: what an expansion that is not known may stand for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from preflight.loaders.document import Word
from preflight.loaders.shell.word_splitting import PILED, UNREAD, Field, word
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.text import Span

_NAME = lazy_pattern(r"\$([A-Za-z_]\w*)")
_GROUP = lazy_pattern(r".*(ARGS?|ARGUMENTS|OPTS?|OPTIONS?|FLAGS?|PARAMS?|CONFIGS?|EXTRA\w*)")


class Settled(NamedTuple):
    """The words; which of them may be several or none (loose); undefined groups and unset values; whether any flag may be added."""

    words: tuple[Word, ...]
    loose: tuple[Word, ...] = ()
    groups: tuple[tuple[str, Span], ...] = ()
    unset: tuple[tuple[str, str, Span], ...] = ()
    open: bool = False


def settle(fields: Sequence[Field], near: Span, assigned: Collection[str], late: Callable[[str, Span], bool], foreign: bool) -> Settled:
    """assigned: every name that the script has set; late: whether it did so after a use; foreign: files were sourced that cannot be read."""
    words = [word(field, near) for field in fields]
    loose, groups, unset, opened = [], [], [], False
    for at, (field, made) in enumerate(zip(fields, words, strict=True)):
        if made.text is not None:
            continue
        match = _NAME.fullmatch(made.because)
        name = match[1] if match else ""
        flag = words[at - 1].text if at else None
        follows = flag is not None and flag.startswith("-") and "=" not in flag
        undefined = bool(name) and (name not in assigned or late(name, made.span)) and not foreign
        if made.because in ("$@", "$*") or made.because.endswith((UNREAD, PILED)):
            loose.append(made)
            opened = True
        elif field.loose and _GROUP.fullmatch(name.upper()) and undefined:
            loose.append(made)
            groups.append((name, made.span))
        elif field.loose and not follows:
            loose.append(made)
            opened = True
        elif undefined and follows and flag is not None and len(field.pieces) == 1:
            unset.append((name, flag, made.span))
    return Settled(tuple(words), tuple(loose), tuple(groups), tuple(unset), opened)
