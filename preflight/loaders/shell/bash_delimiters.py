"""Finds the end of a quote, an expansion or a pair of brackets like bash when it reads a script."""

from __future__ import annotations

import re
from collections.abc import Callable

from preflight.source.lazy_regex import lazy_pattern

_DOUBLE = lazy_pattern(r"[^\"\\`$]*(?:(?:\\.|\$(?:\$|(?!\$|(?:\\\n)*[({\[])))[^\"\\`$]*)*", re.DOTALL)
_ANSI = lazy_pattern(r"[^'\\]*(?:\\.[^'\\]*)*'", re.DOTALL)
_BACKTICKS = lazy_pattern(r"[^`\\]*(?:\\.[^`\\]*)*`", re.DOTALL)
_DOLLAR = lazy_pattern(r"\$(?:\\\n)*")
_SIGNS = r"\\(?:.|\Z)|['\"`]|\$(?:\\\n)*[$']?"
_NESTING = r"\\(?:.|\Z)|['\"`]|\$(?:\\\n)*[$'({\[]?|[<>][<>(]?"
_ARITHMETIC = r"\\(?:.|\Z)|['\"`]|\$(?:\\\n)*[$'(]?"
_PARENTHESES = lazy_pattern(_SIGNS + r"|[()]", re.DOTALL)
_SUM = lazy_pattern(_ARITHMETIC + r"|[()]", re.DOTALL)
_BRACKETS = lazy_pattern(_ARITHMETIC + r"|[\[\]]", re.DOTALL)
_SUBSCRIPT = lazy_pattern(_NESTING + r"|[\[\]]", re.DOTALL)
_BRACES = lazy_pattern(_NESTING + r"|\}", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Refused(Exception):
    """Raised at the place where bash stops in a script.

    fault: "quote" if something is opened and never closed, "token" if a word does not fit, "array" for a word in an
    array, "loop" for the parts of for (( )), "condition" for a wrong [[ ]] and "arithmetic" for a (( that has no )): at
    these two bash ends with the status of the previous command. text: the unclosed sign, otherwise the word; empty at
    the end of the script.
    """

    def __init__(self, fault: str, at: int, text: str) -> None:
        super().__init__(fault)
        self.fault, self.at, self.text = fault, at, text


MOST_OPEN = 100
"""Maximum number of nested quotes and brackets."""


class TooDeep(Exception):
    """Raised if the text is nested too deeply."""


class Quotes:
    """Finds ends in a text. substitution: a function that finds the end of the commands after `$(`."""

    def __init__(self, text: str, substitution: Callable[[int], int]) -> None:
        self.text, self.substitution, self._open = text, substitution, 0

    def single(self, at: int) -> int:
        """The place after the closing quote of '…', given the place after the opening one."""
        end = self.text.find("'", at)
        if end < 0:
            raise Refused("quote", at - 1, "'")
        return end + 1

    def ansi(self, at: int) -> int:
        """The same for $'…'."""
        found = _ANSI.match(self.text, at)
        if found is None:
            raise Refused("quote", at - 1, "'")
        return found.end()

    def backticks(self, at: int) -> int:
        """The same for `…`, whose commands bash reads only when it runs them."""
        found = _BACKTICKS.match(self.text, at)
        if found is None:
            raise Refused("quote", at - 1, "`")
        return found.end()

    def double(self, at: int) -> int:
        """The same for "…"."""
        text, begin = self.text, at - 1
        self._enter()
        while True:
            at = _DOUBLE.match(text, at).end()  # type: ignore[union-attr]
            sign = text[at : at + 1]
            if sign == '"':
                self._open -= 1
                return at + 1
            if sign == "`":
                at = self.backticks(at + 1)
            elif sign == "$":
                at = self.dollar(at)
            else:
                raise Refused("quote", begin, '"')

    def dollar(self, at: int) -> int:
        """The end of $(…), ${…} or $[…] that begins at a place."""
        sign = _DOLLAR.match(self.text, at).end()  # type: ignore[union-attr]
        return self._expansion(self.text[sign], sign + 1)

    def _expansion(self, sign: str, at: int) -> int:
        if sign == "(":
            return self.substitution(at)
        return self.braces(at) if sign == "{" else self._end(at, _BRACKETS, "[")

    def braces(self, at: int) -> int:
        """The end of ${…}."""
        return self._end(at, _BRACES, "{")

    def subscript(self, at: int) -> int:
        """The end of the […] of an array element."""
        return self._end(at, _SUBSCRIPT, "[")

    def parentheses(self, at: int) -> int:
        """The end of the parentheses of a pattern, which bash only counts."""
        return self._end(at, _PARENTHESES, "(")

    def arithmetic(self, at: int) -> int:
        """The end of arithmetic parentheses, which may contain substitutions."""
        return self._end(at, _SUM, "(")

    def _end(self, at: int, signs: re.Pattern[str], opening: str) -> int:
        begin, closing, count = at - 1, _CLOSING[opening], 1
        self._enter()
        while True:
            found = signs.search(self.text, at)
            if found is None:
                raise Refused("quote", begin, opening)
            sign, at = found[0], found.end()
            if sign == closing:
                count -= 1
                if not count:
                    self._open -= 1
                    return at
            elif sign == opening:
                count += 1
            else:
                at = self._past(sign, at)

    def _enter(self) -> None:
        self._open += 1
        if self._open > MOST_OPEN:
            raise TooDeep

    def _past(self, sign: str, at: int) -> int:
        """The end of the construct that a character opens inside brackets."""
        first, last = sign[0], sign[-1]
        if first == "\\" or last in "$<>":
            return at
        if last == "'":
            return self.ansi(at) if first == "$" else self.single(at)
        if last == '"':
            return self.double(at)
        if last == "`":
            return self.backticks(at)
        return self._expansion(last, at)
