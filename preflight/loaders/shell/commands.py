"""What single commands do: builtins that change variables, scripts that are followed, launches that are noted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from preflight.document import Piece, Word
from preflight.loaders.counts import Allocation
from preflight.loaders.launchers import Taken, command_name, take_apart
from preflight.loaders.shell.expand import Exhausted, Expander
from preflight.loaders.shell.fields import Field, Value, fields, merged, text_of, word
from preflight.loaders.shell.files import Files
from preflight.loaders.shell.follow import Follower
from preflight.loaders.shell.nested import UNKNOWN, Nested, Texts, nested
from preflight.loaders.shell.settle import Settled, settle
from preflight.loaders.shell.state import State, Variable
from preflight.loaders.shell.syntax import Node, Tree, parse
from preflight.loaders.slurm import sbatch, variables
from preflight.source import Source, Span

MAX_LAUNCHES = 64
MAX_CALLS = 12
_QUIET = frozenset(
    "echo printf mkdir cd rm ls cat cp mv ln tee sleep date pwd which chmod ulimit module pip grep sed awk touch tail head kill wait".split()  # noqa: SIM905
)
_NO_WORDS = frozenset(["variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect", "comment", "command_name"])
_SHELLS = frozenset(["sbatch", "bash", "sh"])
_READS = frozenset(["read", "mapfile", "readarray", "getopts"])
_COMMAND_STRING = re.compile(r"-[a-z]*c")


class Found(NamedTuple):
    """A launch in a script: taken apart, its statement, and what was noticed while its words were settled."""

    taken: Taken
    statement: Span
    settled: Settled


class Commands:
    """Single commands of a script, its sourced files and the scripts it calls."""

    def __init__(self, source: Source, environment: Mapping[str, str], asked: Allocation, given: Mapping[str, Word]) -> None:
        self.files, self.asked, self.given, self.environment = Files(source), asked, given, environment
        self.expander = Expander(State(), self._unset, self._substitute)
        self.state = self.expander.state
        self.follower = Follower(self.expander, self)
        self.found: list[Found] = []
        self.broken: list[Span] = []
        self.prefix: tuple[Word, ...] = ()
        self.texts = Texts()
        self.calls = 0
        self.nounset = False
        self.foreign = False
        """A file was sourced that cannot be read here: it may set any variable."""

    def run(self, tree: Tree) -> None:
        """Follow a script from its start."""
        try:
            self.follower.statement(tree, tree.root)
        except Exhausted:
            self.follower.exhausted = True

    def _unset(self, name: str, span: Span | None) -> Value:
        """The value of a variable that the script has not set: the job's environment, the scheduler's, or unknown."""
        if name in self.environment:
            place = span or self.files.source.span(0)
            return (Piece(self.environment[name], place, exact=False),)
        if (given := self.given.get(name)) is not None:
            return (Piece(given.text, given.span, (span,) if span else (), exact=False, because=given.because),)
        return (Piece(None, span or self.files.source.span(0), exact=False, because=f"${name}"),)

    def _substitute(self, tree: Tree, node: Node) -> str | None:
        """The output of $(echo …), $(expr …) and $(cat <<EOF …), else None."""
        inner = node.named_children
        if len(inner) != 1 or inner[0].type != "command":
            return None
        words = self._words(tree, inner[0])
        texts = [text_of(field.pieces) for field in words]
        if not texts or any(text is None for text in texts):
            return None
        if texts[0] == "echo" and not str(texts[1:2]).startswith("['-"):
            return " ".join(str(text) for text in texts[1:])
        if texts[0] == "expr" and len(texts) == 4:
            piece = _expr([str(text) for text in texts[1:]])
            return piece
        return None

    def _words(self, tree: Tree, node: Node) -> list[Field]:
        parts = []
        for child in node.children:
            if child.type == "command_name" and child.named_children:
                parts.append(child.named_children[0])
            elif child.is_named and child.type not in _NO_WORDS:
                parts.append(child)
        found = [field for part in parts for field in fields(self.expander.bits(tree, part))]
        self.expander.spend(len(found))
        return found

    def declare(self, tree: Tree, node: Node) -> None:
        """export, declare, local, readonly with their assignments."""
        keyword = tree.text(node.children[0])
        exported = keyword == "export" or any(c.type == "word" and re.match(r"-\w*x", tree.text(c)) for c in node.named_children)
        for child in node.named_children:
            if child.type == "variable_assignment":
                self.follower.assign(tree, child, exported)
            elif child.type == "variable_name" and exported:
                old = self.state.get(tree.text(child))
                if old is not None:
                    self.state.put(tree.text(child), old._replace(exported=True))
            elif child.type in ("concatenation", "string", "simple_expansion", "expansion"):
                for field in fields(self.expander.bits(tree, child)):
                    self._export(field, exported)

    def _export(self, field: Field, exported: bool) -> None:
        """export "NAME=value", where the grammar sees a word."""
        text = text_of(field.pieces)
        name, equals, value = (text or "").partition("=")
        if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
            whole = word(field, field.pieces[0].span)
            piece = Piece(value, whole.span, whole.uses, exact=False)
            self.state.put(name, Variable(((piece,),), False, whole.span, exported))

    def command(self, tree: Tree, node: Node, document: Node | None) -> None:
        """A simple command with its redirections."""
        before = [child for child in node.named_children if child.type == "variable_assignment"]
        name = node.child_by_field_name("name")
        if name is None:
            for child in before:
                self.follower.assign(tree, child)
            return
        plain = tree.text(name)
        if plain in _QUIET:
            return
        if document is not None and plain in _SHELLS:
            self._script_text(tree, document, plain)
            return
        if plain.startswith("-") and not before:
            self.broken.append(tree.span(node))
            return
        if plain in _READS:
            self._reads(tree, node, document)
            return
        words = self._words(tree, node)
        if not words:
            return
        own: dict[str, Variable | None] = {}
        if before:
            with self.state.frame() as changes:
                for child in before:
                    self.follower.assign(tree, child, exported=True)
            own = dict(self.state.undo(changes))
        self._execute(tree, node, words, own)

    def _execute(self, tree: Tree, node: Node, words: list[Field], own: Mapping[str, Variable | None]) -> None:
        name = text_of(words[0].pieces) or ""
        if name in self.follower.functions:
            self._call(name, words[1:])
        elif name in ("exit", "return", "break", "continue"):
            self.follower.stop.at = name
        elif name == "set":
            self._set(words[1:])
        elif name == "shift":
            self._shift(words[1:])
        elif name in (".", "source"):
            self._source(words[1:])
        elif name == "eval":
            self._nested(nested(words[1:]), apart=False)
        elif (at := _string_at(words)) is not None:
            self._nested(nested(words[at[1] : at[1] + 1]), apart=True, prefix=words[: at[0]])
        elif name in ("let", "unset", "alias", "trap", "exec") and len(words) == 1:
            return
        else:
            self._launch(tree, node, words, own)

    def _launch(self, tree: Tree, node: Node, words: list[Field], own: Mapping[str, Variable | None]) -> None:
        if len(self.found) >= MAX_LAUNCHES or self.follower.dry:
            return
        place = tree.span(node)
        settled = settle(words, place, self.state.ever | {*self.environment, UNKNOWN}, self.foreign)
        environment = {name: word(Field(list(v.scalar)), v.place) for name, v in self.state.variables.items() if v.exported}
        environment |= {name: word(Field(list(v.scalar)), v.place) for name, v in own.items() if v is not None}
        taken = take_apart((*self.prefix, *settled.words), environment, self.asked, settled.open)
        if taken is None:
            return
        launch = taken.launch
        kept = tuple(w for w in launch.words if w not in settled.loose)
        groups = {f"${name}" for name, _ in settled.groups}
        opened = any(w in settled.loose and w.because not in groups for w in launch.words)
        taken = taken._replace(launch=launch._replace(words=kept, open=opened))
        if launch.launcher == "bash" and self._follow_script(taken):
            return
        self.found.append(Found(taken, place, settled))

    def _follow_script(self, taken: Taken) -> bool:
        """`bash other.sh args`: its launches, where the file lies beside this one."""
        entry = taken.launch.entry
        inner = self.files.open(entry.text)
        if inner is None or self.calls >= MAX_CALLS:
            return False
        count = len(self.found)
        other = Commands(self.files.source, self.environment, self.asked, self.given)
        other.files, other.texts, other.calls, other.prefix = self.files, self.texts, self.calls + 1, self.prefix
        for name, variable in self.state.variables.items():
            if variable.exported:
                other.state.put(name, variable)
        other.expander.arguments = [_value(w) for w in taken.launch.words]
        other.expander.work = self.expander.work
        other.run(parse(inner))
        self.expander.work = other.expander.work
        self.follower.exhausted = self.follower.exhausted or other.follower.exhausted
        self.found += other.found[: MAX_LAUNCHES - count]
        self.broken += other.broken
        return True

    def _source(self, words: list[Field]) -> None:
        text = text_of(words[0].pieces) if words else None
        pieces = words[0].pieces if words else []
        known = text if text is not None else pieces[-1].text if pieces else None
        inner = self.files.open(known if text is not None else (known or "").lstrip("/"))
        if inner is None or self.calls >= MAX_CALLS:
            self.foreign = self.foreign or not re.search(r"(set_?env\w*|activate|bashrc|profile|conda|vars|setvars|env)(\.sh)?$", known or "")
            return
        self.calls += 1
        self.follower.statement(tree := parse(inner), tree.root)
        self.follower.stop.reached("return")
        self.calls -= 1

    def _call(self, name: str, words: list[Field]) -> None:
        tree, body = self.follower.functions[name]
        if self.calls >= MAX_CALLS:
            return
        outer, self.calls = self.expander.arguments, self.calls + 1
        self.expander.arguments = [tuple(field.pieces) for field in words]
        if any(piece.because in ("$@", "$*") for field in words for piece in field.pieces):
            self.expander.arguments = None
        self.follower.statement(tree, body)
        self.follower.stop.reached("return")
        self.expander.arguments, self.calls = outer, self.calls - 1

    def _nested(self, text: Nested | None, apart: bool, prefix: list[Field] | None = None) -> None:
        """A command line that is itself a text: eval "…", bash -c "…"."""
        if text is None or self.calls >= MAX_CALLS:
            return
        outer, self.prefix, self.calls = self.prefix, self.prefix + tuple(word(f, f.pieces[0].span) for f in prefix or []), self.calls + 1
        self.texts.add(text)
        with self.state.frame() as changes:
            tree = parse(text.source)
            self.follower.statement(tree, tree.root)
        if apart:
            self.state.undo(changes)
            self.follower.stop.at = ""
        self.prefix, self.calls = outer, self.calls - 1

    def _script_text(self, tree: Tree, document: Node, name: str) -> None:
        """A script given as a here-document; sbatch reads #SBATCH lines in it."""
        body = next((c for c in document.named_children if c.type == "heredoc_body"), None)
        if body is None:
            return
        text = nested([Field(list(self._heredoc(tree, document, body)))])
        outer, given = self.asked, self.given
        if name == "sbatch" and text is not None:
            self.asked, _ = sbatch(text.source)
            self.given = {**given, **variables(self.asked)}
        self._nested(text, apart=True)
        self.asked, self.given = outer, given

    def outside(self, found: Found) -> Found:
        """A launch with every place in a file."""
        groups = tuple((name, self.texts.span(span)) for name, span in found.settled.groups)
        unset = tuple((name, flag, self.texts.span(span)) for name, flag, span in found.settled.unset)
        return Found(self.texts.taken(found.taken), self.texts.span(found.statement), found.settled._replace(groups=groups, unset=unset))

    def _set(self, words: list[Field]) -> None:
        texts = [text_of(field.pieces) or "" for field in words]
        for at, text in enumerate(texts):
            if text == "--":
                self.expander.arguments = [tuple(field.pieces) for field in words[at + 1 :]]
                return
            if re.fullmatch(r"-\w*u\w*", text) or text == "nounset":
                self.nounset = True

    def _shift(self, words: list[Field]) -> None:
        count = text_of(words[0].pieces) if words else "1"
        if self.expander.arguments is not None:
            self.expander.arguments = self.expander.arguments[int(count) :] if count is not None and count.isdigit() and len(count) < 6 else None

    def _reads(self, tree: Tree, node: Node, document: Node | None) -> None:
        names = [child for child in node.named_children if child.type == "word" and re.fullmatch(r"[A-Za-z_]\w*", tree.text(child))]
        body = next((c for c in document.named_children if c.type == "heredoc_body"), None) if document is not None else None
        for name in names:
            self.follower.forget(tree, name)
        if names and body is not None and re.search(r"-\w*d", tree.text(node)):
            self.state.put(tree.text(names[-1]), Variable((self._heredoc(tree, document, body),), False, tree.span(names[-1])))

    def _heredoc(self, tree: Tree, document: Node, body: Node) -> Value:
        start = next((tree.text(c) for c in document.named_children if c.type == "heredoc_start"), "")
        span = Span(tree.source, body.start_byte, body.end_byte)
        if start[:1] in "'\"\\":
            return (Piece(span.text, span),)
        return merged([bit.piece for bit in self.expander.document(tree, span, body)])


def _value(given: Word) -> Value:
    return given.pieces or (Piece(given.text, given.span, given.uses, given.editable, given.because, given.maybe),)


def _string_at(words: list[Field]) -> tuple[int, int] | None:
    """Where the shell and the command string of `bash -c "…"` stand, also behind srun and its kin."""
    for at, field in enumerate(words[:-2]):
        if command_name(word(field, field.pieces[0].span)) in ("bash", "sh"):
            options = at + 1
            while options < len(words) - 1 and (text_of(words[options].pieces) or "").startswith("-"):
                if _COMMAND_STRING.fullmatch(text_of(words[options].pieces) or ""):
                    return at, options + 1
                options += 1
            return None
    return None


def _expr(words: list[str]) -> str | None:
    left, sign, right = words
    if sign not in "+-*/%" or not re.fullmatch(r"-?\d{1,18}", left) or not re.fullmatch(r"-?\d{1,18}", right) or (sign in "/%" and not int(right)):
        return None
    a, b = int(left), int(right)
    return str({"+": a + b, "-": a - b, "*": a * b}.get(sign, (abs(a) // abs(b or 1)) * (1 if a * b >= 0 else -1) if sign == "/" else a % (b or 1)))
