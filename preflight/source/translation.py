"""The language of the output. English is in the code and needs no look-up; other languages have a catalogue.

Texts are translated where they are printed: `local(text)`. A Message is found by its template and filled in again; a
plain text, such as a title that was put together, is recognized by the templates of the catalogue.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import TYPE_CHECKING

if TYPE_CHECKING:
    from preflight.source.translation_catalogue import Catalogue

OPTION = "--lang"
VARIABLE = "PREFLIGHT_LANG"
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
SERVERS = ("gate", "gate-serve", "lsp")
"""Commands used by programs: the locale of a server is not that of the reader."""
ENGLISH = "en"
LANGUAGES = (ENGLISH, "zh")


class Asked(NamedTuple):
    """The language of a call. named: as it was written. explicit: an option or a variable of preflight sets it, so
    machine-readable output follows it too."""

    language: str = ENGLISH
    named: str = ENGLISH
    explicit: bool = False


class _Now:
    """The current language; a call of the command line has one language."""

    asked: Asked = Asked()
    catalogue: Catalogue | None = None


def asked(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> Asked:
    """The language requested by option, variable or locale; English if it is not available."""
    named = _option(argv)
    if named is None and environ.get(VARIABLE):
        named = environ[VARIABLE]
    if named is not None:
        return Asked(_known(named), named, True)
    if argv and argv[0] in SERVERS:
        return Asked()
    return Asked(_known(next((environ[name] for name in LOCALE if environ.get(name)), ENGLISH)))


def _option(argv: Sequence[str]) -> str | None:
    for at, word in enumerate(argv):
        if word == "--":
            return None
        if word == OPTION:
            return argv[at + 1] if at + 1 < len(argv) else None
        if word.startswith(f"{OPTION}="):
            return word[len(OPTION) + 1 :]
    return None


def _known(named: str) -> str:
    """ "zh" for zh, zh-CN and zh_CN.UTF-8; English for languages without a catalogue."""
    short = named.replace("-", "_").partition(".")[0].partition("_")[0].lower()
    return short if short in LANGUAGES else ENGLISH


def refuse_unknown() -> None:
    """Raise InputError if a call requests a language without a catalogue."""
    named = _Now.asked.named
    if _known(named) == ENGLISH and not named.lower().startswith((ENGLISH, "c", "posix")):
        from preflight.source.source_file import InputError

        raise InputError(f"{OPTION} must be one of {', '.join(LANGUAGES)}, not {named!r}")


@contextmanager
def speaking(wanted: Asked) -> Iterator[None]:
    """Print in a language inside the block."""
    before = _Now.asked, _Now.catalogue
    _Now.asked, _Now.catalogue = wanted, _catalogue(wanted.language)
    try:
        yield
    finally:
        _Now.asked, _Now.catalogue = before


def _catalogue(language: str) -> Catalogue | None:
    if language == ENGLISH:
        return None
    from preflight.source.translation_catalogue import catalogue

    return catalogue(language)


def spoken() -> Asked:
    """The output language of this call."""
    return _Now.asked


def local(text: str) -> str:
    """A text in the language of this call, or in English if there is no translation."""
    return text if _Now.catalogue is None else _Now.catalogue.of(text)


def phrases(text: str) -> str:
    """Short phrases joined by commas, each in the language of this call."""
    return text if _Now.catalogue is None else _Now.catalogue.phrases(text)


def joined(texts: Sequence[str], word: str = "and") -> str:
    """Texts joined by commas, with a word before the last one if given."""
    if _Now.catalogue is not None:
        return "、".join(map(local, texts))
    if not word or len(texts) < 2:
        return ", ".join(texts)
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def introduced(head: str, rest: str) -> str:
    """Two translated texts joined by a colon, which is wide in Chinese."""
    return f"{head}: {rest}" if _Now.catalogue is None else f"{head}：{rest}"


def in_brackets(text: str, more: str) -> str:
    """A translated text followed by another one in brackets, which are wide in Chinese."""
    return f"{text} ({more})" if _Now.catalogue is None else f"{text}（{more}）"


def padded(text: str, width: int, right: bool = False) -> str:
    """A text padded with blanks on the right or left to a number of terminal columns; a Chinese character takes two."""
    blanks = " " * (width - columns(text))
    return blanks + text if right else text + blanks


def columns(text: str) -> int:
    """The width of a text in terminal columns."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def cut(text: str, width: int) -> str:
    """A text cut to a number of columns, with an ellipsis if it is cut; unchanged for 0."""
    if not width or columns(text) <= width:
        return text
    end, used = 0, 1
    while (used := used + columns(text[end])) <= width:
        end += 1
    return f"{text[:end]}…"
