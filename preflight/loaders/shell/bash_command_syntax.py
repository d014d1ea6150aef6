"""Whether bash accepts a text as commands: blocks, lists, redirections and conditions, token by token.

No tree is built: this only finds the place where bash would reject the text.
"""

from __future__ import annotations

from preflight.loaders.shell.bash_condition_syntax import MOST_NESTED, Condition
from preflight.loaders.shell.bash_delimiters import Refused, TooDeep
from preflight.loaders.shell.bash_tokens import (
    ARITHMETIC,
    ASSIGNMENT,
    END,
    LOOP_ARITHMETIC,
    NUMBER,
    REDIRECTIONS,
    TIME_END,
    TIME_OPTION,
    VARIABLE,
    WORD,
    Tokens,
)
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple

_BLOCKS = frozenset(["if", "for", "while", "until", "case", "select", "{", "(", ARITHMETIC, "[["])
_SIMPLE = frozenset([WORD, ASSIGNMENT, NUMBER, VARIABLE, *REDIRECTIONS])
_BEGINS = _BLOCKS | _SIMPLE | {"function", "!", "time", "coproc"}
_REDIRECTED = REDIRECTIONS | {NUMBER, VARIABLE}
_ENDS_LINE = frozenset(["\n", ";", END])
_PROGRAM = lazy_pattern(r"[ \t]+[A-Za-z/.\"$]")


class Block(NamedTuple):
    """An open block: its first word, its place, and the expected closing word."""

    name: str
    at: int
    wants: str


class Commands:
    """Reads a text like bash. unit: the start of the command that bash reads as a whole before running any of it."""

    def __init__(self, text: str, *, patterns: bool = False) -> None:
        self.text = text
        self.tokens = Tokens(text, self._substitution, patterns=patterns)
        self.kind: str | None = None
        self.opened: list[Block] = []
        self.unit = 0

    def read(self) -> None:
        """Read up to the end, or up to a command that ends the script. Raises Refused, or TooDeep."""
        try:
            self._read()
        except Refused as refused:
            raise self._as_bash_ends(refused) from None

    def _as_bash_ends(self, refused: Refused) -> Refused:
        """The message of bash if it drops the rest of a line after a wrong condition; in a substitution it fails."""
        tokens, misread = self.tokens, self.tokens.misread
        split = misread >= self.unit and self.text[misread : misread + 1] == "\n"
        if split and refused.fault == "token" and refused.text:
            return Refused("arithmetic", refused.at, refused.text)
        if refused.fault not in ("condition", "arithmetic"):
            return refused
        if tokens.substitutions:
            return Refused("token" if refused.fault == "condition" else "loop", refused.at, refused.text)
        if refused.fault == "arithmetic":
            return refused
        try:
            tokens.in_condition = tokens.in_regex = False
            while (kind := tokens.read()) not in ("\n", END):
                pass
        except Refused as later:
            return later if later.fault == "quote" else refused
        continued = kind == END and self.text.endswith("\n")
        return Refused("token", refused.at, refused.text) if continued else refused

    def _read(self) -> None:
        while (kind := self._peek()) != END:
            if kind == "\n":
                self.kind = None
                continue
            self.unit = self.tokens.start
            if self._line() and self._peek() in ("\n", END):
                return
            if self._peek() not in ("\n", END):
                self._refuse()
            self.kind = None

    def _peek(self) -> str:
        if self.kind is None:
            self.kind = self.tokens.read()
        return self.kind

    def _take(self, *kinds: str) -> str:
        """Read a token that must be one of these. Raises Refused if it is another one."""
        kind = self._peek()
        if kind not in kinds:
            self._refuse()
        self.kind = None
        return kind

    def _refuse(self) -> None:
        tokens = self.tokens
        raise Refused("token", tokens.start, tokens.text[tokens.start : tokens.at])

    def _open(self, name: str, wants: str) -> None:
        if len(self.opened) >= MOST_NESTED:
            raise TooDeep
        self.opened.append(Block(name, self.tokens.start, wants))

    def _wait(self, wants: str) -> None:
        self.opened[-1] = self.opened[-1]._replace(wants=wants)

    def _close(self, *kinds: str) -> str:
        kind = self._take(*kinds)
        self.opened.pop()
        return kind

    def _new_lines(self) -> None:
        while self._peek() == "\n":
            self.kind = None

    def _line(self) -> bool:
        """Read commands up to the end of a line. Returns whether one of them ends the script."""
        ends = False
        while True:
            alone = self._ends_script(self._peek())
            alone = not self._timed_pipeline() and alone
            kind = self._peek()
            ends = ends or (alone and kind in _ENDS_LINE)
            if kind in ("&&", "||"):
                self.kind = None
                self._new_lines()
                if self._last_of_and_or():
                    return ends
            elif kind in ("&", ";"):
                self.kind = None
                if self._peek() in ("\n", END):
                    return ends
            else:
                return ends

    def _last_of_and_or(self) -> bool:
        """Read the rest of a && b || c. Returns whether it ends the line."""
        while True:
            self._timed_pipeline()
            kind = self._peek()
            if kind in ("&&", "||"):
                self.kind = None
                self._new_lines()
            elif kind in ("&", ";"):
                self.kind = None
                return self._peek() in ("\n", END)
            else:
                return True

    def _ends_script(self, kind: str) -> bool:
        """Whether a command is `exit`, or `exec` with a program."""
        if kind != WORD:
            return False
        tokens = self.tokens
        word = self.text[tokens.start : tokens.at]
        return word == "exit" or (word == "exec" and _PROGRAM.match(self.text, tokens.at) is not None)

    def _list(self) -> None:
        """Read the commands of a block."""
        self._new_lines()
        while True:
            self._timed_pipeline()
            kind = self._peek()
            if kind in ("&&", "||"):
                self.kind = None
                self._new_lines()
            elif kind in ("&", ";", "\n"):
                self.kind = None
                self._new_lines()
                if self._peek() not in _BEGINS:
                    return
            else:
                return

    def _timed_pipeline(self) -> bool:
        """Read commands joined by |. Returns whether there are several."""
        while (kind := self._peek()) in ("!", "time"):
            self.kind = None
            if kind == "time" and self._peek() == TIME_OPTION:
                self.kind = None
            if kind == "time" and self._peek() == TIME_END:
                self.kind = None
            if self._peek() in _ENDS_LINE or (kind == "time" and self._peek() == ")"):
                return False
        self._command()
        several = False
        while self._peek() in ("|", "|&"):
            self.kind, several = None, True
            self._new_lines()
            self._command()
        return several

    def _command(self) -> None:
        kind = self._peek()
        if kind in _SIMPLE:
            self._simple(kind == WORD)
        elif kind in _BLOCKS:
            self._block()
        elif kind == "function":
            self._function()
        elif kind == "coproc":
            self.kind = None
            named = self._peek() == WORD
            if named:
                self.kind = None
            if self._peek() in _BLOCKS:
                self._block()
            elif named or self._peek() in _SIMPLE:
                self._simple(False, begun=named)
            else:
                self._refuse()
        else:
            self._refuse()

    def _simple(self, may_define: bool, begun: bool = False) -> None:
        """Read a command of words, assignments and redirections, or a function definition."""
        tokens = self.tokens
        tokens.in_redirections = not begun
        while (kind := self._peek()) in _SIMPLE:
            if kind in (WORD, ASSIGNMENT):
                tokens.in_redirections = False
                self.kind = None
                if may_define and self._peek() == "(":
                    opening, self.kind = tokens.start, None
                    if self._peek() != ")":
                        raise Refused("token", opening, "(")
                    self.kind = None
                    self._body()
                    return
            else:
                self._redirection()
            may_define = False
        tokens.in_redirections = False

    def _redirection(self) -> None:
        kind, numbered = self._peek(), False
        if kind in (NUMBER, VARIABLE):
            self.kind, numbered = None, True
            kind = self._peek()
        if kind not in REDIRECTIONS or (numbered and kind in ("&>", "&>>")):
            self._refuse()
        self.kind = None
        self._take(*((NUMBER, WORD, "-") if kind in ("<&", ">&") else (WORD,)))
        if kind in ("<<", "<<-"):
            self.tokens.await_document(kind == "<<-")

    def _body(self) -> None:
        self._new_lines()
        if self._peek() not in _BLOCKS:
            self._refuse()
        self._block()

    def _function(self) -> None:
        self.kind = None
        self._take(WORD)
        if self._peek() == "(":
            self._open("(", ")")
            self.kind = None
            if self._peek() == ")":
                self._close(")")
                self._body()
                return
            self._list()
            self._close(")")
            self._redirections()
        else:
            self._body()

    def _block(self) -> None:
        kind = self._peek()
        if kind == "if":
            self._if()
        elif kind in ("while", "until"):
            self._open(kind, "do")
            self.kind = None
            self._list()
            self._loop_body(braces=False)
        elif kind in ("for", "select"):
            self._for(kind)
        elif kind == "case":
            self._case()
        elif kind in ("{", "("):
            self._open(kind, "}" if kind == "{" else ")")
            self.kind = None
            self._list()
            self._close("}" if kind == "{" else ")")
        elif kind == "[[":
            self._open(kind, "]]")
            Condition(self.tokens).read()
            self.kind = None
            self.opened.pop()
        else:
            self.kind = None
        self._redirections()

    def _redirections(self) -> None:
        while self._peek() in _REDIRECTED:
            self._redirection()

    def _if(self) -> None:
        self._open("if", "then")
        self.kind = None
        while True:
            self._list()
            self._take("then")
            self._wait("fi")
            self._list()
            kind = self._peek()
            if kind != "elif":
                break
            self._wait("then")
            self.kind = None
        if kind == "else":
            self.kind = None
            self._list()
        self._close("fi")

    def _loop_body(self, *, braces: bool = True) -> None:
        kind = self._take("do", "{") if braces else self._take("do")
        self._wait(end := "done" if kind == "do" else "}")
        self._list()
        self._close(end)

    def _for(self, kind: str) -> None:
        self._open(kind, "do")
        self.kind = None
        if kind == "for" and self._peek() == LOOP_ARITHMETIC:
            self.kind = None
            if self._peek() in _ENDS_LINE:
                self.kind = None
                self._new_lines()
            return self._loop_body()
        self._take(WORD)
        if self._peek() == ";":
            self.kind = None
            self._new_lines()
            return self._loop_body()
        self._new_lines()
        if self._peek() == "in":
            self.kind = None
            while self._peek() == WORD:
                self.kind = None
            self._take(*_ENDS_LINE)
            self._new_lines()
        return self._loop_body()

    def _case(self) -> None:
        self._open("case", "in")
        self.kind = None
        self._take(WORD)
        self._new_lines()
        self._take("in")
        self._wait("esac")
        while True:
            self._new_lines()
            if self._peek() == "esac":
                break
            if self._peek() == "(":
                self.kind = None
            self._take(WORD)
            while self._peek() == "|":
                self.kind = None
                self._take(WORD)
            self._take(")")
            self._new_lines()
            if self._peek() in _BEGINS:
                self._list()
            if self._peek() not in (";;", ";&", ";;&"):
                break
            self.kind = None
        self._close("esac")

    def _substitution(self, at: int) -> int:
        """The end of the commands of $(…) that begin at a place."""
        tokens, text = self.tokens, self.text
        first = at
        while text.startswith("\\\n", first):
            first += 2
        if text.startswith("(", first):
            return tokens.quotes.arithmetic(at)
        if len(self.opened) >= MOST_NESTED:
            raise TooDeep
        state, kind, depth = tokens.state(), self.kind, len(self.opened)
        self.opened.append(Block(text[at - 2 : at], at - 2, ")"))
        self.kind = None
        tokens.substitutions += 1
        tokens.enter(at)
        self._new_lines()
        if self._peek() != ")":
            self._list()
        self._take(")")
        if tokens.documents:
            tokens.gather_below()
        del self.opened[depth:]
        self.kind = kind
        tokens.substitutions -= 1
        tokens.leave(state)
        return tokens.at
