"""Commands that pass a text to a shell: eval, bash -c, su -c, srun."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from preflight.loaders.document import Count, Launch, Piece, Word, word_of
from preflight.loaders.entry_scripts import command_name
from preflight.loaders.launcher_options import Spec, read_options
from preflight.loaders.launchers import SHELLS, STARTERS, Taken
from preflight.loaders.process_counts import with_default
from preflight.loaders.shell.word_splitting import Field, merged, text_of, value_of, word
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import Source, Span

MAX_TEXT = 300_000
UNKNOWN = "_unknown_to_preflight"


class Nested(NamedTuple):
    """The text, its pieces, the start of each piece in it, and the place where the text is used, if that is
    elsewhere."""

    source: Source
    pieces: tuple[Piece, ...]
    starts: tuple[int, ...]
    used: tuple[Span, ...] = ()

    def origins(self, piece: Piece) -> list[Piece]:
        """The pieces from which a piece of this text came."""
        first = max(0, bisect_right(self.starts, piece.span.start) - 1)
        if not piece.exact or piece.text is None:
            origin = self.pieces[first]
            text = origin.because if origin.text is None and piece.text is not None else piece.text
            because = origin.because if origin.text is None else piece.because
            return [
                Piece(
                    text,
                    origin.span,
                    (*origin.uses, *self.used, *piece.uses),
                    False,
                    because,
                    piece.maybe or origin.maybe,
                )
            ]
        found: list[Piece] = []
        for at in range(first, len(self.pieces)):
            start, origin = self.starts[at], self.pieces[at]
            if start >= piece.span.end and found:
                break
            uses = (*origin.uses, *self.used, *piece.uses) if origin.uses or piece.uses else ()
            if origin.text is None:
                found.append(origin._replace(uses=uses))
                continue
            low, high = max(0, piece.span.start - start), min(len(origin.text), piece.span.end - start)
            if high > low or piece.text == "":
                found.append(origin.cut(low, max(low, high))._replace(uses=uses, maybe=origin.maybe or piece.maybe))
        return found or [self.pieces[first]]


class Texts:
    """All texts that were parsed separately while a script was followed; maps them back to files."""

    def __init__(self) -> None:
        self._known: dict[int, Nested] = {}

    def add(self, text: Nested) -> None:
        self._known[id(text.source)] = text

    def pieces(self, piece: Piece) -> list[Piece]:
        """The places in files from which a piece of text comes."""
        text = self._known.get(id(piece.span.source))
        if text is not None and text.pieces:
            return [origin for part in text.origins(piece) for origin in self.pieces(part)]
        return [piece._replace(uses=tuple(map(self.span, piece.uses)))] if piece.uses else [piece]

    def span(self, span: Span) -> Span:
        """Return a place traced back to a file."""
        while (text := self._known.get(id(span.source))) is not None and text.pieces:
            span = text.origins(Piece(span.text, span))[0].span
        return span

    def word(self, word: Word) -> Word:
        """Return a word traced back to a file."""
        parts = word.pieces or (Piece(word.text, word.span, word.uses, word.editable, word.because, word.maybe),)
        return word_of(merged([origin for part in parts for origin in self.pieces(part)]) or parts)

    def count(self, count: Count | None) -> Count | None:
        """Return a count traced back to a file, where a default of the script shows."""
        if count is None or count.span is None:
            return count
        span = self.span(count.span)
        return count._replace(span=span, assumed=count.assumed or with_default(span))

    def taken(self, taken: Taken) -> Taken:
        """A launch with every word at the place where it was typed."""
        if not self._known:
            return taken
        launch = taken.launch
        nodes = self.count(launch.nodes)
        outside = nodes.assumed if nodes is not None else ""
        world = (one for count in launch.world if (one := self.count(count)) is not None)
        moved = Launch(
            launch.launcher,
            tuple(map(self.word, launch.launcher_words)),
            self.word(launch.entry),
            tuple(map(self.word, launch.words)),
            {name: self.word(word) for name, word in launch.environment.items()},
            tuple(one._replace(assumed=one.assumed or outside) for one in world),
            launch.open,
            nodes,
            self.count(launch.per_node),
            self.word(launch.device) if launch.device is not None else None,
            tuple(map(self.word, launch.assumed)),
            launch.lost,
            self.word(launch.directory) if launch.directory is not None else None,
        )
        return taken._replace(launch=moved, problems=tuple(p._replace(span=self.span(p.span)) for p in taken.problems))


def nested(words: list[Field]) -> Nested | None:
    """The text formed by words with blanks between them. Unknown pieces become a variable of an impossible name."""
    pieces: list[Piece] = []
    for index, field in enumerate(words):
        if index:
            pieces.append(Piece(" ", field.pieces[0].span, exact=False))
        pieces += field.pieces
    if not pieces:
        return None
    starts, parts, at = [], [], 0
    for piece in pieces:
        starts.append(at)
        text = piece.text if piece.text is not None else f"${{{UNKNOWN}}}"
        parts.append(text)
        at += len(text)
    if at > MAX_TEXT:
        return None
    place = pieces[0].uses[-1] if pieces[0].uses else pieces[0].span
    source = Source("".join(parts), place.source.name)
    return Nested(source, tuple(pieces), tuple(starts), (place,))


_COMMAND_STRING = lazy_pattern(r"-[A-Za-z]*c")
_TAKES_VALUE = lazy_pattern(r"[-+][A-Za-z]*[oO]|--rcfile|--init-file")
_REMOTE = frozenset(["ssh", "pdsh", "tmux"])
_AWAY = _REMOTE | {"docker", "podman", "nerdctl", "kubectl", "enroot"}
"""Programs that run a command on another host or in a container:
nothing in their arguments shows how many processes start."""
_USERS = frozenset(["su", "runuser"])
_STRINGS = _USERS | {"script", "flock", "env"}
"""Programs, in addition to shells, that take a command line as one word."""
_QUEUES = frozenset(["at", "batch", "qsub", "bsub"])
"""Programs that read a script from stdin and run it later."""
_SSH = Spec(frozenset("1246AaCfGgKkMNnqsTtVvXxYy"), {letter: letter for letter in "BbcDEeFIiJLlmOopQRSWw"})
_STDIN = ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0")
_KEYS = ("C-m", "Enter", "KPEnter", "C-j")
MOST_FRONT = 40
"""Words in front of a shell."""


class Inside(NamedTuple):
    """The source of a shell's text. front: the number of relevant words before it; string: the word with the text;
    script: the file that it runs; neither: it reads stdin. arguments: its positional parameters, None if those of the
    surrounding script apply."""

    front: int
    string: Field | None = None
    script: Field | None = None
    arguments: list[Field] | None = None


def inner_shell(words: Sequence[Field]) -> Inside | None:
    """The shell that a command starts: `srun bash -c "…"`, `ssh host "…"`, `su user -c "…"`, `srun bash -s 8`."""
    names = _names(words)
    if names[0] in ("source", "."):
        return _of_script(0, words[1:]) if len(words) > 1 else None
    if names[0] in _QUEUES:
        return Inside(0)
    away = next((at for at, name in enumerate(names[:4]) if name in _AWAY), None)

    def front(at: int) -> int:
        return at if away is None or away > at else away

    for at, name in enumerate(names):
        if name in SHELLS and (string := _string_of_shell(words, at)) is not None:
            return Inside(front(at), words[string], None, list(words[string + 2 :]))
    for at, name in enumerate(names[:-1]):
        if name in _STRINGS and (given := _string_of_option(words[at + 1 :], name)) is not None:
            return Inside(front(at), given)
    if away is not None and names[away] in _REMOTE and (remote := _remote(words, away)) is not None:
        return Inside(away, remote)
    shell = next((at for at, name in enumerate(names) if name in SHELLS), None)
    if shell is not None:
        started = shell == 0 or not names[0] or names[0] in STARTERS
        return _of_shell(front(shell), words[shell + 1 :]) if started else None
    return _login(words, names)


def _remote(words: Sequence[Field], away: int) -> Field | None:
    """The command line that is sent to another host, or a terminal, as one word."""
    string = len(words) - 1
    while words and string > away + 2 and text_of(words[string].pieces) in _KEYS:
        string -= 1
    blank = " " in "".join(piece.text or "" for piece in words[string].pieces)
    return words[string] if blank and len(words) > away + 2 else None


def _login(words: Sequence[Field], names: Sequence[str]) -> Inside | None:
    """The shell of another user or host: `su - user`, `ssh host`."""
    if names[0] == "ssh":
        rest = read_options([word(field, field.pieces[0].span) for field in words[1:]], _SSH).rest
        return Inside(0) if len(rest) == 1 else None
    user = next((at for at, name in enumerate(names) if name in _USERS), None)
    if user is None or (user and names[0] not in STARTERS):
        return None
    operands = [field for field in words[user + 1 :] if not (text_of(field.pieces) or "").startswith("-")]
    return Inside(user) if len(operands) <= 1 else None


def _names(words: Sequence[Field]) -> list[str]:
    return [command_name(word(field, field.pieces[0].span)) for field in words[:MOST_FRONT]]


def _string_of_shell(words: Sequence[Field], shell: int) -> int | None:
    """The command string of a shell, which follows `-c`."""
    at = shell + 1
    while at < len(words) - 1:
        text = text_of(words[at].pieces) or ""
        if _COMMAND_STRING.fullmatch(text):
            return at + 1
        if not text.startswith(("-", "+")):
            return None
        at += 2 if _TAKES_VALUE.fullmatch(text) else 1
    return None


def _string_of_option(words: Sequence[Field], program: str) -> Field | None:
    """The argument of `-c` anywhere among the words of a program; for `env`, that of `-S`."""
    for at, field in enumerate(words):
        text = text_of(field.pieces) or ""
        if text == "--":
            return None
        if program == "env":
            if text in ("-S", "--split-string"):
                return words[at + 1] if at + 1 < len(words) else None
            continue
        if text in ("--command", "--session-command") or _COMMAND_STRING.fullmatch(text):
            return words[at + 1] if at + 1 < len(words) else None
        if text.startswith(("--command=", "--session-command=")):
            _, value = word(field, field.pieces[0].span).parts
            return Field(list(value_of(value))) if value is not None else None
    return None


def _of_shell(front: int, words: Sequence[Field]) -> Inside | None:
    """The text of a shell without a command string; None if it only checks it."""
    at, stdin = 0, False
    while at < len(words):
        text = text_of(words[at].pieces)
        if text is None or not text.startswith(("-", "+")):
            break
        at += 1
        if text in ("-", "--"):
            break
        if not text.startswith("--") and set(text[1:]) & {"c", "n"}:
            return None
        stdin = stdin or (not text.startswith("--") and "s" in text[1:])
        at += 1 if _TAKES_VALUE.fullmatch(text) else 0
    rest = words[at:]
    return Inside(front, arguments=list(rest)) if stdin or not rest else _of_script(front, rest)


def _of_script(front: int, words: Sequence[Field]) -> Inside:
    """A shell that runs a file, which may be its stdin."""
    if text_of(words[0].pieces) in _STDIN:
        return Inside(front, arguments=list(words[1:]))
    return Inside(front, script=words[0], arguments=list(words[1:]))
