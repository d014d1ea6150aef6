"""Whether bash accepts the text in [[ ]] as a condition; its words follow separate rules."""

from __future__ import annotations

from preflight.loaders.shell.bash_delimiters import Refused, TooDeep
from preflight.loaders.shell.bash_tokens import END, WORD, Tokens

MOST_NESTED = 40
_UNARY = frozenset(f"-{letter}" for letter in "abcdefghknoprstuvwxzGLOSNR")
_BINARY = frozenset(
    ["=", "==", "!=", "=~", "!~", "-nt", "-ot", "-lt", "-gt", "-eq", "-ef", "-ne", "-ge", "-le", "<", ">"]
)
_ENDS_TERM = frozenset(["]]", "&&", "||", ")"])


class Condition:
    """Reads a condition after [[. kind: the last token read."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens, self.kind, self.depth = tokens, "", 0

    def read(self) -> None:
        """Read up to the ]]. Raises Refused, or TooDeep."""
        tokens = self.tokens
        tokens.in_condition = True
        self._either()
        if self.kind != "]]":
            self._wrong()
        tokens.in_condition = False
        tokens.last, tokens.before = "]]", "a condition"

    def _wrong(self) -> None:
        tokens = self.tokens
        fault = "token" if self.kind == END else "condition"
        raise Refused(fault, tokens.start, tokens.text[tokens.start : tokens.at])

    def _next(self) -> str:
        self.kind = self.tokens.raw()
        return self.kind

    def _next_line(self) -> str:
        while self._next() == "\n":
            pass
        return self.kind

    def _either(self) -> None:
        """Terms joined by && and ||, up to the next token."""
        self._term()
        while self.kind in ("&&", "||"):
            self._term()

    def _term(self) -> None:
        kind = self._next_line()
        while kind == WORD and self._word() == "!":
            kind = self._next_line()
        if kind == "(":
            self.depth += 1
            if self.depth > MOST_NESTED:
                raise TooDeep
            self._either()
            if self.kind != ")":
                self._wrong()
            self.depth -= 1
            self._next_line()
        elif kind != WORD:
            self._wrong()
        elif self._word() in _UNARY:
            if self._next() != WORD:
                self._wrong()
            self._next_line()
        else:
            self._comparison()

    def _comparison(self) -> None:
        tokens, kind = self.tokens, self._next()
        if kind in _ENDS_TERM:
            return
        operator = self._word() if kind == WORD else kind
        if operator not in _BINARY:
            self._wrong()
        patterns = tokens.patterns
        tokens.in_regex = operator == "=~"
        tokens.patterns = patterns or operator in ("=", "==", "!=")
        kind = self._next()
        tokens.in_regex, tokens.patterns = False, patterns
        if kind != WORD:
            self._wrong()
        self._next_line()

    def _word(self) -> str:
        tokens = self.tokens
        return tokens.text[tokens.start : tokens.at].replace("\\\n", "")
