"""What single commands do: builtins that change variables, scripts that are followed, launches that are noted."""

from __future__ import annotations

import re
from collections.abc import Mapping

from preflight.loaders.counts import Allocation, allocation, over
from preflight.loaders.document import Piece, Word
from preflight.loaders.launchers import Taken
from preflight.loaders.options import SLURM, read_options
from preflight.loaders.shell.alternatives import in_each
from preflight.loaders.shell.assignments import assign
from preflight.loaders.shell.expand import Expander
from preflight.loaders.shell.files import Files
from preflight.loaders.shell.heredocs import heredoc, read
from preflight.loaders.shell.launches import MAX_LAUNCHES, Found, Front, Launches, Met
from preflight.loaders.shell.nested_commands import UNKNOWN, Nested, Texts, nested, string_at
from preflight.loaders.shell.parameter_values import Exhausted
from preflight.loaders.shell.positional import set_options, shift
from preflight.loaders.shell.printf_command import SETS, print_to_variable
from preflight.loaders.shell.state import State, Variable
from preflight.loaders.shell.substitutions import substitute, words_of
from preflight.loaders.shell.syntax import Node, Tree, parse
from preflight.loaders.shell.walker import Follower
from preflight.loaders.shell.word_splitting import PILED, UNREAD, Field, Value, text_of, value_of, word
from preflight.loaders.shell.working_folder import CHANGES, change_folder, keep_folder
from preflight.loaders.slurm import sbatch, variables
from preflight.source.text import InputError, Source, Span

MAX_CALLS = 12
_QUIET = {"echo", "printf", "mkdir", "rm", "ls", "cat", "cp", "mv", "ln", "tee", "sleep", "date", "pwd", "which"}
_QUIET |= {"chmod", "ulimit", "module", "pip", "grep", "sed", "awk", "touch", "tail", "head", "kill", "wait"}
_SHELLS, _WRITERS = frozenset(["sbatch", "bash", "sh", "ssh"]), frozenset(["cat", "tee"])
_READS = frozenset(["read", "mapfile", "readarray", "getopts"])


class Commands:
    """Single commands of a script, its sourced files and the scripts it calls."""

    def __init__(
        self, source: Source, environment: Mapping[str, str], asked: Allocation, given: Mapping[str, Word]
    ) -> None:
        self.files, self.asked, self.given, self.environment = Files(source), asked, given, environment
        self.expander = Expander(State(), self._unset, self._substituted)
        self.state = self.expander.state
        self.follower = Follower(self.expander, self)
        self.launches = Launches(self.state, frozenset([*environment, UNKNOWN]))
        self.prefix: tuple[Word, ...] = ()
        self.texts = Texts()
        self.calls = 0
        self.nounset = False

    @property
    def found(self) -> list[Found]:
        """The launches."""
        return self.launches.found

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

    def _substituted(self, tree: Tree, node: Node) -> str | None:
        return substitute(self.expander, tree, node)

    def command(self, tree: Tree, node: Node, document: Node | None) -> None:
        """A simple command with its redirections."""
        before = [child for child in node.named_children if child.type == "variable_assignment"]
        name = node.child_by_field_name("name")
        if name is None:
            for child in before:
                assign(self.expander, tree, child)
            return
        plain = tree.text(name)
        if document is not None and (plain in _SHELLS or plain in _WRITERS):
            self._script_text(tree, document, plain)
            return
        if plain == "printf" and SETS.search(tree.text(node)):
            print_to_variable(self.expander, tree, node)
            return
        if plain in _READS:
            read(self.expander, tree, node, document)
            return
        if plain in CHANGES:
            change_folder(self.expander, tree, node)
            return
        if plain in _QUIET:
            return
        own: dict[str, Variable | None] = {}
        for words in [*in_each(self.state, tree.text(node), lambda: words_of(self.expander, tree, node))] or [
            words_of(self.expander, tree, node)
        ]:
            if before and words and not own:
                with self.state.frame() as changes:
                    for child in before:
                        assign(self.expander, tree, child, exported=True)
                own = dict(self.state.undo(changes))
            if words and (before or not self._goes_on(tree, node, words)):
                self._execute(tree, node, words, own)

    def _goes_on(self, tree: Tree, node: Node, words: list[Field]) -> bool:
        """Whether a command is only the rest of the one above it."""
        if self.follower.dry:
            return False
        return self.launches.continues(tree.span(node), words, Front(self.prefix, self.asked), self._follow_script)

    def _execute(self, tree: Tree, node: Node, words: list[Field], own: Mapping[str, Variable | None]) -> None:
        name = text_of(words[0].pieces) or ""
        if name in self.follower.functions:
            self._call(name, words[1:])
        elif name in ("exit", "return", "break", "continue"):
            self.follower.stop.at = name
        elif name == "set":
            self.nounset = set_options(self.expander, words[1:]) or self.nounset
        elif name == "shift":
            shift(self.expander, words[1:])
        elif name in (".", "source"):
            self._source(words[1:])
        elif name == "eval":
            self._nested(nested(words[1:]), apart=False)
        elif name == "sbatch":
            self._submit(tree, node, words, own)
        elif (at := string_at(words)) is not None:
            self._nested(nested(words[at[1] : at[1] + 1]), apart=True, prefix=words[: at[0]])
        elif name in ("let", "unset", "alias", "trap", "exec") and len(words) == 1:
            return
        else:
            self._launch(tree, node, words, own)

    def _submit(self, tree: Tree, node: Node, words: list[Field], own: Mapping[str, Variable | None]) -> None:
        """`sbatch --wrap "…"` and `sbatch run.sh`: a job of its own;
        what the command asks for counts before what the script asks for."""
        options = read_options([word(field, field.pieces[0].span) for field in words[1:]], SLURM)
        wrap, rest = options.word("wrap"), words[len(words) - len(options.rest) :]
        inner = self.files.open(options.rest[0].text) if options.rest else None
        outer, given = self.asked, self.given
        self.asked = over(allocation(options, "sbatch"), sbatch(inner)[0] if inner is not None else Allocation())
        self.given = {**given, **variables(self.asked)}
        if wrap is not None:
            self._nested(nested([Field(list(value_of(wrap)))]), apart=True)
        elif rest:
            shell = Field([Piece("bash", words[0].pieces[0].span, exact=False)])
            self._launch(tree, node, [shell, *rest], own)
        self.asked, self.given = outer, given

    def _launch(self, tree: Tree, node: Node, words: list[Field], own: Mapping[str, Variable | None]) -> None:
        if not self.follower.dry:
            self.launches.note(Met(tree.span(node), words, own), Front(self.prefix, self.asked), self._follow_script)

    def _follow_script(self, taken: Taken, words: list[Word]) -> bool:
        """`bash other.sh args`: its launches, where the file lies beside this one.
        A word that is not known is taken for one parameter."""
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
        keep_folder(other.state, entry.span, taken.launch.directory)
        for name, given in taken.launch.environment.items():  # NAME=value in front of the command
            there = other.state.variables.get(name)
            if there is None or word(Field(list(there.scalar)), there.place) != given:
                other.state.put(name, Variable((value_of(given),), False, given.span, exported=True))
        several = any(w.because.endswith((UNREAD, PILED)) for w in words)
        other.expander.arguments = None if several else [value_of(w) for w in words]
        other.expander.work = self.expander.work
        other.run(self._parsed(inner))
        self.expander.work = other.expander.work
        self.follower.exhausted = self.follower.exhausted or other.follower.exhausted
        self.found.extend(other.found[: MAX_LAUNCHES - count])
        self.launches.broken += other.launches.broken
        return True

    def _source(self, words: list[Field]) -> None:
        text, pieces = (text_of(words[0].pieces), words[0].pieces) if words else (None, [])
        known = text if text is not None else pieces[-1].text if pieces else None
        inner = self.files.sourced(known or "", text is None, pieces[-1].span.source) if pieces else None
        if inner is None or self.calls >= MAX_CALLS:
            self.state.foreign = self.state.foreign or not re.search(
                r"(set_?env\w*|activate|bashrc|profile|conda|vars|setvars|env)(\.sh)?$", known or ""
            )
            return
        self.calls += 1
        self.follower.statement(tree := self._parsed(inner), tree.root)
        self.follower.stop.reached("return")
        self.calls -= 1

    def _parsed(self, source: Source) -> Tree:
        """Another text that is run; parsing it is work, too. Raises Exhausted."""
        self.expander.spend(len(source.text) // 10)
        try:
            return parse(source)
        except InputError:
            raise Exhausted from None

    def _call(self, name: str, words: list[Field]) -> None:
        tree, body = self.follower.functions[name]
        if self.calls >= MAX_CALLS:
            return
        outer, self.calls = self.expander.arguments, self.calls + 1
        self.expander.arguments = [tuple(field.pieces) for field in words]
        self.expander.locals.append({})
        self.follower.statement(tree, body)
        self.follower.stop.reached("return")
        for name, before in self.expander.locals.pop().items():
            self.state.put(name, before)
        self.expander.arguments, self.calls = outer, self.calls - 1

    def _nested(self, text: Nested | None, apart: bool, prefix: list[Field] | None = None) -> None:
        """A command line that is itself a text: eval "…", bash -c "…"."""
        if text is None or self.calls >= MAX_CALLS:
            return
        outer, self.calls = self.prefix, self.calls + 1
        self.prefix += tuple(word(f, f.pieces[0].span) for f in prefix or [])
        self.texts.add(text)
        with self.state.frame() as changes:
            tree = self._parsed(text.source)
            self.follower.statement(tree, tree.root)
        if apart:
            self.state.undo(changes)
            self.follower.stop.at = ""
        self.prefix, self.calls = outer, self.calls - 1

    def _script_text(self, tree: Tree, document: Node, name: str) -> None:
        """A script given as a here-document, or written to a file that is meant to run;
        sbatch reads #SBATCH lines in it."""
        body = next((c for c in document.named_children if c.type == "heredoc_body"), None)
        if body is None:
            return
        text = nested([Field(list(heredoc(self.expander, tree, document, body)))])
        if text is None or (name in _WRITERS and not text.source.text.startswith("#!")):
            return
        outer, given, foreign = self.asked, self.given, self.state.foreign
        self.state.foreign = foreign or name in _WRITERS  # whoever runs the file may set anything
        if name == "sbatch" or (name in _WRITERS and "\n#SBATCH" in text.source.text):
            self.asked, _ = sbatch(text.source)
            self.given = {**given, **variables(self.asked)}
        self._nested(text, apart=True)
        self.asked, self.given, self.state.foreign = outer, given, foreign
