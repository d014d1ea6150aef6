"""The words and operators of a script in order, with the meaning that bash gives them in their place."""

from __future__ import annotations

import re
from collections.abc import Callable

from preflight.loaders.shell.bash_delimiters import Quotes, Refused
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

END = "end of file"
WORD, ASSIGNMENT, NUMBER, VARIABLE = "a word", "an assignment", "a number", "a variable"
ARITHMETIC, LOOP_ARITHMETIC = "((…))", "for ((…))"
TIME_OPTION, TIME_END = "time -p", "time --"
REDIRECTIONS = frozenset(["<", ">", ">>", ">|", "<>", "<<-", "<<", "<<<", "<&", ">&", "&>", "&>>"])
RESERVED = frozenset(
    "if then else elif fi case esac for select while until do done in function time { } ! [[ ]] coproc".split()
)
_SPECIAL = RESERVED | {"-p", "--"}
_BEFORE_TIME = frozenset(
    ["", "\n", "$(", TIME_OPTION, TIME_END, *"; && || & while do until if then elif else { ( ) ! time".split()]
)
_BEFORE_COMMANDS = _BEFORE_TIME | frozenset([ARITHMETIC, *"| } |& ]] done esac fi ;; ;& ;;& coproc $(".split()])
"""After these tokens bash recognizes its reserved words and assignments."""
_CASE_ENDS = frozenset([";;", ";&", ";;&"])
_PAIRS = frozenset(["<&", ">&", "<>", ">|", "&>", "|&", ";&", "<<", ">>", ";;", "&&", "||"])
_BUILTINS = frozenset(["alias", "declare", "export", "local", "readonly", "typeset", "eval", "let"])
"""Commands whose words may be assignments of arrays."""
_LARGEST = 2**31 - 1

_BLANKS = lazy_pattern(r"[ \t]*(?:\\\n[ \t]*)*")
_CONTINUED = lazy_pattern(r"(?:\\\n)*")
_PLAIN = lazy_pattern(r"[^ \t\n()<>;&|\\'\"`$=\[]+")
_RUN = lazy_pattern(
    r"[^ \t\n()<>;&|\\'\"`$]*(?:(?:\\.|'[^']*'|\"[^\"\\`$]*(?:(?:\\.|\$(?=[\w@*#?!])|\$\{\w+\})[^\"\\`$]*)*\""
    r"|\$\{[^}'\"\\`$<>]*\}|\$(?:\$|(?![({\['\"\\$])))[^ \t\n()<>;&|\\'\"`$]*)*",
    re.DOTALL,
)
"""The part of a word without nested constructs."""
_NAME = lazy_pattern(r"(?:[A-Za-z_]|\\\n)(?:[A-Za-z0-9_]|\\\n)*")
_ELEMENT = lazy_pattern(r"[A-Za-z_]\w*(?:\[[^\]\s'\"$`\\]*\])?\+?=", re.ASCII)
_EQUALS = lazy_pattern(r"(?:\\\n)*(?:\+(?:\\\n)*)?=(?:\\\n)*")
_VARIABLE = lazy_pattern(r"\{[A-Za-z_]\w*(?:\[[^\]]+\])?\}", re.ASCII)
_QUOTED = lazy_pattern(r"['\"\\]")
_UNQUOTED = lazy_pattern(r"\$?'([^']*)'|\$?\"((?:[^\"\\]|\\.)*)\"|\\(.)", re.DOTALL)
_LOOP_SIGNS = lazy_pattern(r"['\"\\`$]")


class _Pending(NamedTuple):
    """A here-document whose text begins on the next line. strips: leading tabs are removed."""

    end: str
    quoted: bool
    strips: bool


class Tokens:
    """Reads a script token by token. start, at: the start and the end of the last token.

    patterns: whether extended patterns such as `!(a)` are words.
    """

    def __init__(self, text: str, substitution: Callable[[int], int], *, patterns: bool) -> None:
        self.text, self.quotes = text, Quotes(text, substitution)
        self.at = self.start = 0
        self.patterns = patterns
        self.last, self.before = "\n", "\n"
        self.in_pattern = self.in_case = self.brace_allowed = self.assigns = False
        self.in_redirections = self.in_array = self.in_condition = self.in_regex = False
        self.esacs = self.awaits_in = self.braces = 0
        self.documents: list[_Pending] = []
        self.resume: dict[int, int] = {}
        """Line ends after which the text of a here-document has already been read, and the end of that text."""
        self.substitutions = 0
        self.misread = -1
        """The end of the last (( without a )), which bash therefore treats as two parentheses."""

    def read(self) -> str:
        """The next token."""
        kind = self.raw()
        self.before, self.last = self.last, kind
        return kind

    def state(self) -> tuple[Any, ...]:
        """The state outside a substitution, for `leave`."""
        return (
            (self.last, self.before, self.start, self.patterns, self.documents),
            (self.in_pattern, self.in_case, self.brace_allowed, self.assigns),
            (self.in_redirections, self.in_array, self.in_condition, self.in_regex, self.esacs, self.awaits_in),
        )

    def enter(self, at: int) -> None:
        """Start reading the commands of a substitution."""
        self.at, self.last, self.before = at, "$(", "\n"
        self.in_pattern = self.in_redirections = self.in_array = self.in_condition = self.in_regex = False
        self.esacs, self.awaits_in, self.documents = 0, 0, []

    def leave(self, state: tuple[Any, ...]) -> None:
        """Restore the state after a substitution."""
        (self.last, self.before, self.start, self.patterns, self.documents) = state[0]
        (self.in_pattern, self.in_case, self.brace_allowed, self.assigns) = state[1]
        (self.in_redirections, self.in_array, self.in_condition, self.in_regex, self.esacs, self.awaits_in) = state[2]

    def raw(self) -> str:
        """The next token, without recording it as the last one."""
        text = self.text
        at = self.start = _BLANKS.match(text, self.at).end()  # type: ignore[union-attr]
        sign = text[at : at + 1]
        if sign == "#":
            at = text.find("\n", at)
            at = len(text) if at < 0 else at
            sign = "\n"
        if sign == "\n":
            return self._line_end(at)
        if not sign:
            self.at = at
            return END
        if sign in "();&|<>" and not self.in_regex:
            return self._operator(at, sign)
        if sign == "-" and self.last in ("<&", ">&"):
            self.at = at + 1
            return sign
        return self.word(at)

    def _line_end(self, at: int) -> str:
        self.start = at
        self.at = self.resume.pop(at, at + 1)
        if self.documents:
            self.gather()
        self.assigns = False
        return "\n"

    def _operator(self, at: int, sign: str) -> str:
        text, self.assigns = self.text, False
        after = _CONTINUED.match(text, at + 1).end()  # type: ignore[union-attr]
        pair = sign + text[after : after + 1]
        if pair == "((" and (kind := self._parentheses(at, after + 1)):
            return kind
        if pair in _PAIRS:
            if sign == ";":
                self.in_pattern = True
            self.at = after + 1
            third = _CONTINUED.match(text, after + 1).end()  # type: ignore[union-attr]
            longer = pair + text[third : third + 1]
            if longer in ("<<-", "<<<", ";;&", "&>>"):
                self.at = third + 1
                return longer
            return pair
        if pair in ("<(", ">("):
            return self.word(at)
        if sign == ")":
            if self.last == "(" and self.before == WORD:
                self.brace_allowed = True
            self.in_pattern = False
        self.at = at + 1
        return sign

    def _parentheses(self, at: int, inside: int) -> str:
        """The construct that `((` begins: arithmetic, or a subshell in a subshell; "" if it is neither."""
        if self.last == "for":
            end = self.quotes.arithmetic(inside)
            self.at = end
            if self.text[end : end + 1] != ")":
                raise Refused("arithmetic", at, "((")
            self._three_parts(at, self.text[inside : end - 1])
            self.at = end + 1
            return LOOP_ARITHMETIC
        if not self._at_command():
            return ""
        try:
            end = self.quotes.arithmetic(inside)
        except Refused as refused:
            raise Refused("quote", at, "((") if refused.at == inside - 1 else refused from None
        arithmetic = self.text[end : end + 1] == ")"
        self.misread = end
        self.at = end + 1 if arithmetic else at + 1
        return ARITHMETIC if arithmetic else "("

    def _three_parts(self, at: int, text: str) -> None:
        if not _LOOP_SIGNS.search(text) and text.count(";") != 2:
            raise Refused("loop", at, f"(({text}))")

    def _at_command(self) -> bool:
        """Whether reserved words are recognized here."""
        return self.last in _BEFORE_COMMANDS or (self.last == WORD and self.before in ("coproc", "function"))

    def _assignable(self) -> bool:
        """Whether a command may begin here, so a word may be an assignment."""
        last = self.last
        if last == ASSIGNMENT or (self.in_redirections and last not in REDIRECTIONS):
            return True
        return last not in _CASE_ENDS and self._at_command()

    def word(self, at: int) -> str:
        """The word that begins at a place."""
        text, command = self.text, self._assignable()
        end, kind = at, WORD
        plain = _PLAIN.match(text, at)
        if plain is not None:
            end = plain.end()
            if text[end : end + 1] in (" ", "\n", "\t", ";", "") and not self.in_regex:
                return self._taken(at, end, kind, command)
        if self.in_array:
            end = self._element(at)
            kind = ASSIGNMENT if end > at else WORD
        elif command and not self.in_pattern:
            end, assigned = self._name(at)
            kind = ASSIGNMENT if assigned else WORD
        else:
            end = at
        if end == at and self.assigns:
            end = self._array_of_builtin(at)
        return self._taken(at, self._rest(end), kind, command)

    def _name(self, at: int) -> tuple[int, bool]:
        """The end of a name with its subscript and, if it is assigned, of the array that follows."""
        name = _NAME.match(self.text, at)
        if name is None:
            return at, False
        end = name.end()
        if self.text[end : end + 1] == "[":
            end = self.quotes.subscript(end + 1)
        equals = _EQUALS.match(self.text, end)
        return (self._array(equals.end()), True) if equals is not None else (end, False)

    def _element(self, at: int) -> int:
        """The end of […]= inside an array; the given place if there is none."""
        if self.text[at] != "[":
            return at
        end = self.quotes.subscript(at + 1)
        equals = _EQUALS.match(self.text, end)
        if equals is None:
            return end
        return self._array(equals.end()) if self.assigns else equals.end()

    def _array_of_builtin(self, at: int) -> int:
        """The end of an array assigned by a word after `declare` and similar builtins."""
        found = _ELEMENT.match(self.text, at)
        return self._array(found.end()) if found is not None else at

    def _array(self, at: int) -> int:
        """The end of the array that begins at a place, otherwise that place."""
        if self.text[at : at + 1] != "(":
            return at
        state, self.last, self.in_array = self.state(), WORD, True
        self.in_condition = self.in_regex = False
        self.esacs = self.awaits_in = 0
        self.at = at + 1
        while (kind := self.raw()) != ")":
            if kind == END:
                raise Refused("quote", at, "(")
            if kind not in (WORD, ASSIGNMENT, "\n"):
                raise Refused("array", self.start, self.text[self.start : self.at])
        documents = self.documents
        self.leave(state)
        self.documents = documents
        return self.at

    def _rest(self, at: int) -> int:
        """The end of a word that is read up to a place."""
        text, quotes = self.text, self.quotes
        while True:
            at = _RUN.match(text, at).end()  # type: ignore[union-attr]
            sign = text[at : at + 1]
            if sign in (" ", "\n", "\t", "", ";", "&", ")"):
                return at
            if sign in "(|":
                if self.in_regex:
                    at = at + 1 if sign == "|" else quotes.parentheses(at + 1)
                elif self._in_extended_pattern(at):
                    at = quotes.parentheses(at + 1)
                else:
                    return at
            elif sign in "<>":
                after = _CONTINUED.match(text, at + 1).end()  # type: ignore[union-attr]
                if text[after : after + 1] != "(":
                    return at
                at = quotes.substitution(after + 1)
            elif sign == "$":
                at = self._past_dollar(at)
            elif sign == '"':
                at = quotes.double(at + 1)
            elif sign == "'":
                at = quotes.single(at + 1)
            elif sign == "`":
                at = quotes.backticks(at + 1)
            else:
                at += 1  # a backslash at the end of the file

    def _in_extended_pattern(self, at: int) -> bool:
        text = self.text
        return self.patterns and text[at] == "(" and text[at - 1] in "?*+@!" and text[at - 2 : at - 1] != "\\"

    def _past_dollar(self, at: int) -> int:
        after = _CONTINUED.match(self.text, at + 1).end()  # type: ignore[union-attr]
        sign = self.text[after : after + 1]
        if sign == "'":
            return self.quotes.ansi(after + 1)
        if sign == '"':
            return self.quotes.double(after + 1)
        return self.quotes.dollar(at) if sign in ("(", "{", "[") else max(after, at + 1)

    def _taken(self, at: int, end: int, kind: str, command: bool) -> str:
        """The kind of the word between two places."""
        self.start, self.at = at, end
        token = self.text[at:end]
        if "\\\n" in token:
            token = token.replace("\\\n", "")
        breaks = self.text[end : end + 1]
        directed = breaks in ("<", ">")
        if (directed or self.last in ("<&", ">&")) and _is_number(token):
            return NUMBER
        if self.brace_allowed or token in _SPECIAL:
            special = self._special(token) or self._reserved(token)
            if special:
                return special
        if command and token in _BUILTINS:
            self.assigns = True
        if directed and token[0] == "{" and _VARIABLE.fullmatch(token):
            return VARIABLE
        if self.last == "function":
            self.brace_allowed = True
        elif self.last in ("case", "select", "for"):
            self.awaits_in += 1
        return kind

    def _special(self, token: str) -> str:
        """The special meaning of a word after certain others, or ""."""
        last, before = self.last, self.before
        named = last == WORD and before in ("for", "case", "select")
        if token == "in" and (named or (self.awaits_in and last in (WORD, "\n"))):
            if before == "case" if named else self.in_case:
                self.in_pattern = True
                self.esacs += 1
            self.awaits_in = max(self.awaits_in - 1, 0)
            return token
        if token == "do" and ((self.awaits_in and last in ("\n", ";")) or (named and before != "case")):
            self.awaits_in = max(self.awaits_in - 1, 0)
            return token
        if token == "esac" and self.esacs and last == "in":
            self.esacs -= 1
            self.in_pattern = False
            return token
        allowed, self.brace_allowed = self.brace_allowed, False
        if (token == "{" and (allowed or last == LOOP_ARITHMETIC)) or (token == "do" and last == LOOP_ARITHMETIC):
            self.braces += token == "{"
            return token
        if token == "}" and self.braces and self._at_command():
            self.braces -= 1
            return token
        if token == "-p" and last == "time":
            return TIME_OPTION
        if token == "--" and last in ("time", TIME_OPTION):
            return TIME_END
        return token if token == "]]" and self.in_condition else ""

    def _reserved(self, token: str) -> str:
        """The word if it is reserved, otherwise ""."""
        if token not in RESERVED or not self._at_command():
            return ""
        if self.in_pattern and (token != "esac" or self.last in ("|", "(")):
            return ""
        if token == "time" and not (self.last in _BEFORE_TIME and not (self.last == "\n" and self.before == "|")):
            return ""
        if token == "esac":
            self.in_pattern = self.in_case = False
            self.esacs -= 1
        elif token == "case":
            self.in_case = True
        elif token == "{":
            self.braces += 1
        elif token == "}" and self.braces:
            self.braces -= 1
        return token

    def await_document(self, strips: bool) -> None:
        """Register a here-document with the last word as its end marker; it begins on the next line."""
        word = self.text[self.start : self.at].replace("\\\n", "")
        quoted = _QUOTED.search(word) is not None
        end = _UNQUOTED.sub(lambda found: "".join(part or "" for part in found.groups()), word) if quoted else word
        self.documents.append(_Pending(end, quoted, strips))

    def gather(self) -> None:
        """Skip the here-documents that begin here."""
        for document in self.documents:
            self.at = self._past_document(document)
        self.documents = []

    def gather_below(self) -> None:
        """Skip those that begin on the next line, before this line is read completely."""
        here, end = self.at, self.text.find("\n", self.at)
        if end >= 0:
            self.at = self.resume.get(end, end + 1)
            self.gather()
            self.resume[end], self.at = self.at, here

    def _past_document(self, document: _Pending) -> int:
        """The end of a here-document; the end of the text if its marker is missing, about which bash only warns."""
        text, begin, joined = self.text, self.at, False
        while begin < len(text):
            end = text.find("\n", begin)
            end = len(text) if end < 0 else end
            line = text[begin:end]
            bare = line.lstrip("\t") if document.strips else line
            if not joined and bare.startswith(document.end):
                rest = bare[len(document.end) :]
                if not rest:
                    return end + 1
                if self.substitutions and ")" in rest:
                    return end - len(rest)
            joined = not document.quoted and _continued(line)
            begin = end + 1
        return len(text)


def _continued(line: str) -> bool:
    """Whether a backslash quotes the end of a line."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _is_number(token: str) -> bool:
    return len(token) <= 10 and token.isascii() and token.isdigit() and int(token) <= _LARGEST
