"""The common grammar of OmegaConf's interpolations and Hydra's overrides: text to a small tree, without evaluation."""

from __future__ import annotations

import re

from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple


class Malformed(ValueError):
    """A text that is not in the grammar."""


class Literal(NamedTuple):
    """A number, a text, a boolean or null. quoted: it is in quotes."""

    value: object
    quoted: bool = False


class Text(NamedTuple):
    """Parts that together form one text."""

    parts: tuple[Part, ...]


class Reference(NamedTuple):
    """A reference to another value. up: 0 from the root, 1 next to this value, 2 one level higher, …"""

    up: int
    keys: tuple[Part, ...]


class Call(NamedTuple):
    """A resolver with its arguments."""

    name: str
    arguments: tuple[Part, ...]


class Many(NamedTuple):
    """A list."""

    items: tuple[Part, ...]


class Pairs(NamedTuple):
    """A mapping."""

    pairs: tuple[tuple[Part, Part], ...]


Part = Literal | Text | Reference | Call | Many | Pairs


def has_interpolation(value: object) -> bool:
    """Whether a scalar contains an interpolation."""
    return isinstance(value, str) and "${" in value


MAX_TEXT = 4000
"""Maximum characters of a text with an interpolation."""
MAX_DEPTH = 20
_INT = lazy_pattern(r"[+-]?(?:0|[1-9](?:_?\d)*)")
_FLOAT = lazy_pattern(
    r"[+-]?(?:(?:(?:0|[1-9](?:_?\d)*)\.|(?:0|[1-9](?:_?\d)*)?\.\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?"
    r"|(?:0|[1-9](?:_?\d)*)[eE][+-]?\d(?:_?\d)*|inf|nan)",
    re.IGNORECASE,
)
_NAME = lazy_pattern(r"[A-Za-z_][\w.-]*")
_KEY = lazy_pattern(r"[^\s.\[\]{}:$,'\"=]+")
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPED = "\\()[]{}:=, \t"


def template(text: str) -> Part:
    """The parts of a scalar of a config; everything outside of interpolations is text. Raises Malformed."""
    reader = _Reader(text)
    parts = reader.texts("")
    return parts[0] if len(parts) == 1 else Text(parts)


def element(text: str) -> Part:
    """A value as written after the equals sign of an override. Raises Malformed."""
    reader = _Reader(text)
    reader.blank()
    if reader.at == len(text):
        return Literal("")
    found = reader.element("")
    reader.blank()
    if reader.at != len(text):
        raise Malformed(f"{text[reader.at :][:40]!r} is unexpected")
    return found


def typed(text: str) -> object:
    """The value of an unquoted word."""
    if (low := text.lower()) in _WORDS:
        return _WORDS[low]
    if _INT.fullmatch(text):
        return int(text.replace("_", "")) if len(text) <= MAX_DEPTH * 10 else text
    return float(text.replace("_", "")) if _FLOAT.fullmatch(text) else text


class _Reader:
    def __init__(self, text: str) -> None:
        if len(text) > MAX_TEXT:
            raise Malformed(f"it has more than {MAX_TEXT} characters")
        self.text, self.at, self.depth = text, 0, 0

    def blank(self) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\t") and self.at < len(self.text):
            self.at += 1

    def take(self, what: str) -> bool:
        if not self.text.startswith(what, self.at):
            return False
        self.at += len(what)
        return True

    def need(self, what: str) -> None:
        if not self.take(what):
            raise Malformed(f"{what} is missing")

    def texts(self, end: str) -> tuple[Part, ...]:
        """Text and interpolations up to an unescaped end, which is consumed ("": the whole text)."""
        parts: list[Part] = []
        plain = ""
        while self.at < len(self.text) and not (end and self.text.startswith(end, self.at)):
            if self.text.startswith("${", self.at):
                parts += [Literal(plain, True)] if plain else []
                plain = ""
                parts.append(self.interpolation())
            elif self.take("\\${"):
                plain += "${"
            elif end and (self.take("\\" + end) or self.take("\\\\" + end)):
                plain += end
            else:
                plain += self.text[self.at]
                self.at += 1
        if end:
            self.need(end)
        return (*parts, Literal(plain, True)) if plain or not parts else tuple(parts)

    def interpolation(self) -> Part:
        self.need("${")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Malformed(f"it is nested deeper than {MAX_DEPTH} levels")
        self.blank()
        found = _NAME.match(self.text, self.at)
        if found is not None and self.text[found.end() :].lstrip().startswith(":"):
            self.at = found.end()
            self.blank()
            self.need(":")
            made: Part = Call(found.group(), self._elements("}"))
        else:
            made = self._reference()
        self.depth -= 1
        return made

    def _reference(self) -> Reference:
        up = 0
        while self.take("."):
            up += 1
        keys: list[Part] = []
        while not self.take("}"):
            if self.text.startswith("${", self.at):
                keys.append(self.interpolation())
            elif (found := _KEY.match(self.text, self.at)) is not None:
                self.at = found.end()
                keys.append(Literal(found.group()))
            else:
                raise Malformed("an interpolation is not closed")
            self.blank()
            while self.take("]"):
                pass
            self.take(".")
            self.take("[")
        return Reference(up, tuple(keys))

    def _elements(self, end: str) -> tuple[Part, ...]:
        """Comma-separated values up to an end, which is consumed."""
        self.blank()
        if self.take(end):
            return ()
        found = []
        while True:
            self.blank()
            found.append(Literal("") if self.text[self.at : self.at + 1] in (",", end) else self.element(end))
            self.blank()
            if self.take(end):
                return tuple(found)
            self.need(",")

    def element(self, end: str) -> Part:
        """One value, up to a comma or an end."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Malformed(f"it is nested deeper than {MAX_DEPTH} levels")
        for quote in ("'", '"'):
            if self.take(quote):
                parts = self.texts(quote)
                made: Part = parts[0] if len(parts) == 1 and isinstance(parts[0], Literal) else Text(parts)
                break
        else:
            if self.take("["):
                made = Many(self._elements("]"))
            elif self.take("{"):
                made = self._pairs()
            else:
                made = self._primitive(end)
        self.depth -= 1
        return made

    def _pairs(self) -> Pairs:
        pairs: list[tuple[Part, Part]] = []
        self.blank()
        if self.take("}"):
            return Pairs(())
        while True:
            self.blank()
            key = self._primitive(":")
            self.need(":")
            self.blank()
            pairs.append((key, Literal("") if self.text[self.at : self.at + 1] in (",", "}") else self.element("}")))
            self.blank()
            if self.take("}"):
                return Pairs(tuple(pairs))
            self.need(",")

    def _primitive(self, end: str) -> Part:
        parts: list[Part] = []
        word, kept = "", 0
        while self.at < len(self.text):
            here = self.text[self.at]
            if here == "," or (end and here == end) or (end != "" and here in "]}"):
                break
            if self.text.startswith("${", self.at):
                parts += [Literal(word, True)] if word else []
                word, kept = "", 0
                parts.append(self.interpolation())
                continue
            if here in "()[]{}'\"":
                raise Malformed(f"{here} is not allowed inside a word")
            if here == "\\" and self.text[self.at + 1 : self.at + 2] and self.text[self.at + 1] in _ESCAPED:
                self.at += 1
                here = self.text[self.at]
                kept = len(word) + 1
            elif not here.isspace():
                kept = len(word) + 1
            word += here
            self.at += 1
        word = word[:kept]
        if not parts:
            return Literal(typed(word))
        return (
            parts[0] if len(parts) == 1 and not word else Text((*parts, Literal(word, True)) if word else tuple(parts))
        )
