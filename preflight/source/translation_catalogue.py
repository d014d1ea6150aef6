"""The translations of one language: `translations/<language>.po`, compiled by `tests/update_catalogue.py`."""

from __future__ import annotations

import gettext
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from preflight.source.finding import Message, literals, template_of
from preflight.source.lazy_regex import lazy_pattern

FOLDER = Path(__file__).parent.parent / "locale"
LEAST = 2
"""The number of letters that a template needs besides its placeholders to be recognized in a plain text."""
SURE = 12
"""With this number of letters it is a sentence, which cannot be confused with anything else."""
_BETWEEN = lazy_pattern("(?<=[\u3000-\u9fff\uff00-\uffef]) +(?=[\u3000-\u9fff\uff00-\uffef])")
_AFTER = lazy_pattern("(?<=[\u3000-\u9fff\uff00-\uffef]); ")
_DIGITS = lazy_pattern(r"\d[\d.,]*( [TBM])?")
_WORDS = lazy_pattern("[a-z]{2,} [a-z]{2,}")
LISTS = {"; ": "；", ", ": "，"}
"""The separator of texts that are joined."""
LISTED = "、"
"""The separator of the items of a list."""
NUMBER = "number"
"""The placeholder that only matches digits."""
JOINTS = ("; ", ": ", " (", ", ")
"""The boundary between a text and its continuation, as in "there is no rule 'x'; did you mean 'y'?"."""


class Catalogue:
    """Translations by template."""

    def __init__(self, translations: Mapping[str, str]) -> None:
        self.translations = translations
        self._seen: dict[str, str | None] = {}
        self._patterns = sorted(_patterns(translations), key=lambda pattern: -sum(map(len, pattern[1][0])))

    def of(self, text: str) -> str:
        """The translation of a text, or the text itself."""
        if isinstance(text, Message) and (found := self._template(text)) is not None:
            return _tidy(Message(found, **{name: self._value(value) for name, value in text.values.items()}))
        return _tidy(self._plain(text) or text)

    def _template(self, message: Message) -> str | None:
        """The translation of a message's template, with lists joined as in Chinese; a template without words is
        unchanged."""
        found = self.translations.get(message.template)
        if found is None:
            wordless = not any(map(str.isalpha, "".join(literals(message.template)[0])))
            return message.template.replace("; ", LISTS["; "]) if wordless else None
        for name, value in message.values.items():
            if isinstance(value, tuple):
                found = found.replace(f"{{{name}}}", f"{{{name}:{LISTED}}}")
        return found

    def phrases(self, text: str) -> str:
        """The translation of a line, whole or phrase by phrase."""
        found = self._plain(text)
        if found is None:
            parts = text.split(", ")
            told = [self._plain(part) or part for part in parts]
            found = (", " if told == parts else "，").join(told)
        return _tidy(found)

    def _value(self, value: object) -> object:
        """A value of a message, translated if it is a sentence or has several words."""
        if isinstance(value, tuple):
            return tuple(map(self._value, value))
        if isinstance(value, Message) or (isinstance(value, str) and " " in value.strip()):
            return self.of(value)
        return value

    def _plain(self, text: str) -> str | None:
        """The translation of a plain text, or None."""
        text = str(text)
        if text not in self._seen:
            self._seen[text] = None  # nested requests are for parts of it
            exact = self.translations.get(template_of(text))
            self._seen[text] = exact if exact is not None else self._recognized(text)
        return self._seen[text]

    def _recognized(self, text: str) -> str | None:
        """The translation by the template that fits a text best: the one with the most fixed words. A list of texts
        that a template treats as one is translated item by item."""
        every = list(self._fitting(text))
        fitting = next((one for one in every if all(map(self._clean, one[1].values()))), next(iter(every), None))
        for sign, local_sign in LISTS.items():
            if sign in text and (fitting is None or not any(sign in part for part in literals(fitting[0])[0])):
                parts = [self._plain(part) for part in text.split(sign)]
                if all(part is not None for part in parts):
                    return local_sign.join(filter(None, parts))
        if fitting is None:
            return None
        template, values = fitting
        texts, names = literals(self.translations[template])
        told = (f"{text}{self._part(values[name])}" for text, name in zip(texts[:-1], names, strict=True))
        return "".join(told) + texts[-1]

    def _fitting(self, text: str) -> Iterator[tuple[str, dict[str, str]]]:
        """The templates that may have produced a text, with their values."""
        for template, (parts, names), longest in self._patterns:
            if longest in text and (values := _values(text, parts)) is not None:
                few = sum(char.isalpha() for part in parts for char in part) < SURE
                filled = dict(zip(names, values, strict=True))
                if all(self._may_be(name, value, few) for name, value in filled.items()):
                    yield template, filled

    def _may_be(self, name: str, value: str, few: bool) -> bool:
        """Whether a text may be the value of a placeholder. few: the template has few fixed words, so words must be a
        known text."""
        if (name == NUMBER and not _DIGITS.fullmatch(value)) or value.count("(") != value.count(")"):
            return False
        return not few or self._clean(value)

    def _clean(self, value: str) -> bool:
        """Whether a value is a name, a number or a known text, or is already translated."""
        return not value.isascii() or _WORDS.search(value) is None or self._plain(value) is not None

    def _part(self, text: str) -> str:
        """A part of a plain text, which may be a separate text."""
        return self._plain(text) or text if " " in text.strip() or text in self.translations else text


def _tidy(text: str) -> str:
    """Removes blanks between two Chinese characters, which remain when a value replaces a name, and uses Chinese
    punctuation after them."""
    return _BETWEEN.sub("", _AFTER.sub("；", text)) if not text.isascii() else text


def _patterns(translations: Mapping[str, str]) -> Iterator[tuple[str, tuple[list[str], list[str]], str]]:
    """Each template that can be recognized: its texts and the names between them, and the longest text."""
    for template in translations:
        parts, names = literals(template)
        if names and sum(char.isalpha() for part in parts for char in part) >= LEAST and len(names) == len(set(names)):
            yield template, (parts, names), max(parts, key=len)


def _values(text: str, parts: list[str]) -> list[str] | None:
    """The values of a template in a text; None if the text does not match it."""
    first, last = parts[0], parts[-1]
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return None
    at, end, values = len(first), len(text) - len(last), []
    for number, part in enumerate(parts[1:-1]):
        found = _joint(text, at, end) if part == "" else text.find(part, at, end)
        if found < 0 or (found == at and number == 0 and part):
            return None
        values.append(text[at:found])
        at = found + len(part)
    return [*values, text[at:end]]


def _joint(text: str, start: int, end: int) -> int:
    """The start of the second of two adjacent values."""
    return min((at for joint in JOINTS if (at := text.find(joint, start, end)) >= 0), default=end)


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language."""
    with open(FOLDER / language / "LC_MESSAGES" / "preflight.mo", "rb") as stream:
        found: dict[str, str] = vars(gettext.GNUTranslations(stream))["_catalog"]
    return Catalogue({template: text for template, text in found.items() if template and text})
