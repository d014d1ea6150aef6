"""The effects of single commands: builtins that change variables, followed scripts, recorded launches."""

from __future__ import annotations

import re
from collections.abc import Mapping

from preflight.loaders.document import Piece, Word
from preflight.loaders.entry_scripts import command_name
from preflight.loaders.launcher_options import SLURM, read_options
from preflight.loaders.launchers import SHELLS, TASKS, Taken, started_by
from preflight.loaders.process_counts import Allocation, allocation, over
from preflight.loaders.shell.assignments import assign, in_each
from preflight.loaders.shell.bash_parser import Node, Tree, parse
from preflight.loaders.shell.cd_and_set import CHANGES, change_folder, keep_folder, removed_folders, set_options, shift
from preflight.loaders.shell.command_output import SETS, Printer, Streams, path_of, print_to_variable, streams_of
from preflight.loaders.shell.command_words import read, substitute, words_of
from preflight.loaders.shell.expansion import Exhausted, Expander
from preflight.loaders.shell.launches import MAX_LAUNCHES, Found, Front, Launches, Met
from preflight.loaders.shell.nested_commands import UNKNOWN, Inside, Nested, Texts, inner_shell, nested
from preflight.loaders.shell.referenced_scripts import Files, WrittenScripts
from preflight.loaders.shell.state import FILE, Read, State, Variable
from preflight.loaders.shell.walker import Follower
from preflight.loaders.shell.word_splitting import PILED, UNREAD, Field, Value, text_of, value_of, word
from preflight.loaders.slurm import sbatch, variables
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import InputError, Source, Span

MAX_CALLS = 12
_QUIET = {"echo", "printf", "mkdir", "rm", "ls", "cat", "cp", "mv", "ln", "tee", "sleep", "date", "pwd", "which"}
_QUIET |= {"chmod", "ulimit", "module", "pip", "grep", "sed", "awk", "touch", "tail", "head", "kill", "wait"}
_PRINTS = frozenset(["echo", "printf", "cat", "tee"])
_INNER = ("command_substitution", "process_substitution")
_QUOTING = lazy_pattern(r"[\\'\"]")
LONGEST_NAME = 200
"""Maximum bytes of a command name that is read here: a longer one is a substitution with nested ones."""
_READS = frozenset(["read", "mapfile", "readarray", "getopts"])


class Commands:
    """Executes single commands of a script, of sourced files and of called scripts."""

    def __init__(
        self, source: Source, environment: Mapping[str, str], asked: Allocation, given: Mapping[str, Word]
    ) -> None:
        self.files, self.asked, self.given, self.environment = Files(source), asked, given, environment
        self.expander = Expander(State(), self._unset, self._substituted)
        self.state = self.expander.state
        self.follower = Follower(self.expander, self)
        self.printer = Printer(self.expander)
        self.launches = Launches(self.state, frozenset([*environment, UNKNOWN]))
        self.prefix: tuple[Word, ...] = ()
        self.texts = Texts()
        self.calls = 0
        self.nounset = False
        self.exits: tuple[Tree, Node, str] | None = None
        self.ended = self.through = False
        """exits: the last `exit` reached, with its code; ended: the script certainly ends; through: it continues."""
        self.removed: list[tuple[Span, str]] = []
        self.traps: dict[str, Nested] = {}
        self.scripts = WrittenScripts(self.printer, self.launches, lambda text: self._script_text(text, meant=True))
        self.stdin: Read | None = None
        """The stdin of the shell that runs the present text."""
        self.inside: set[tuple[int, int]] = set()
        """Substitutions that the present command has already run."""

    @property
    def found(self) -> list[Found]:
        """The recorded launches."""
        return self.launches.found

    def run(self, tree: Tree) -> None:
        """Follow a script from the start."""
        try:
            self.follower.statement(tree, tree.root)
            self.ended = self.follower.stop.at == "exit"
            self.scripts.finish()
            self._trapped()
        except Exhausted:
            self.follower.exhausted = True

    def _unset(self, name: str, span: Span | None) -> Value:
        """The value of a variable that the script has not set: from the job's environment, from the scheduler, or
        unknown."""
        if name in self.environment:
            place = span or self.files.source.span(0)
            return (Piece(self.environment[name], place, exact=False),)
        if (given := self.given.get(name)) is not None:
            return (Piece(given.text, given.span, (span,) if span else (), exact=False, because=given.because),)
        return (Piece(None, span or self.files.source.span(0), exact=False, because=f"${name}"),)

    def _substituted(self, tree: Tree, node: Node) -> Value | None:
        value = substitute(self.expander, tree, node) if node.type == "command_substitution" else None
        if value is None:
            self._run_inside(tree, node)
        return value

    def _run_inside(self, tree: Tree, node: Node) -> None:
        """Follow the commands of $(…), once per run of the surrounding command."""
        key = (id(tree.source), node.start_byte)
        if key in self.inside or self.follower.dry:
            return
        self.inside.add(key)
        last, arguments, self.launches.last = self.launches.last, self.expander.arguments, None
        self.follower.apart(tree, node.named_children)
        self.launches.last, self.expander.arguments = last, arguments

    def _look_inside(self, tree: Tree, node: Node) -> None:
        """Follow the commands of substitutions in parts that are not expanded: printed words, redirections."""
        text = tree.text(node)
        if "$(" not in text and "`" not in text and "<(" not in text and ">(" not in text:
            return
        waiting = [node]
        while waiting:
            current = waiting.pop()
            if current.type in _INNER:
                self._run_inside(tree, current)
            elif current.type not in ("heredoc_body", "pipeline", "list"):
                waiting += reversed(current.named_children)

    def printed(self, tree: Tree, node: Node, given: Read | None, whole: bool = True) -> Read:
        """The output of a statement, for other code."""

        def read() -> Value | None:
            self.follower.dry += 1
            try:
                return self.printer.printed(tree, node, given, whole)
            finally:
                self.follower.dry -= 1

        return read

    def redirected(self, tree: Tree, node: Node, given: Read | None) -> None:
        """Write the output of a block to a file."""
        streams, body = streams_of(self.expander, tree, [node], given), node.child_by_field_name("body")
        if streams.to and body is not None and not self.follower.dry:
            self.scripts.write(streams.to, streams.grows, self.printed(tree, body, streams.text)(), tree.span(node))
        for child in (child for child in node.named_children if child.type == "file_redirect"):
            self._look_inside(tree, child)

    def command(self, tree: Tree, node: Node, around: Node | None = None, given: Read | None = None) -> None:
        """Follow a simple command. around: the command with its redirections; given: its input from a pipe."""
        self.inside.clear()
        before = [child for child in node.named_children if child.type == "variable_assignment"]
        name = node.child_by_field_name("name")
        if name is None:
            for child in before:
                assign(self.expander, tree, child)
            return
        short = name.end_byte - name.start_byte <= LONGEST_NAME
        plain = _QUOTING.sub("", tree.text(name)) if short else ""
        streams = streams_of(self.expander, tree, [node] if around is None else [node, around], given or self.stdin)
        if plain == "printf" and SETS.search(tree.text(node)):
            print_to_variable(self.expander, tree, node)
            return
        if plain in _READS:
            read(self.expander, tree, node, streams.document)
            return
        if plain in CHANGES:
            change_folder(self.expander, tree, node)
            return
        if plain in _PRINTS:
            self._print(tree, node, plain, streams)
        elif plain == "rm":
            self.removed += removed_folders(self.expander, self.follower, tree, node)
        for child in around.named_children if around is not None else ():
            if child.type in ("file_redirect", "heredoc_redirect"):
                self._look_inside(tree, child)
        if plain in _QUIET:
            self._look_inside(tree, node)
            return
        self._run(tree, node, before, streams)

    def _run(self, tree: Tree, node: Node, before: list[Node], streams: Streams) -> None:
        """Follow any other command, for each text that it may have."""
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
                self._execute(tree, node, words, own, streams)

    def _print(self, tree: Tree, node: Node, plain: str, streams: Streams) -> None:
        """Follow a command that prints to a file, or prints the text of a script that is meant to run."""
        place, files = tree.span(node), [(streams.to, streams.grows)] if streams.to else []
        shows_script = plain in ("cat", "tee") and streams.document is not None
        if not files and plain != "tee" and not shows_script:
            return
        self.follower.dry += 1
        words = words_of(self.expander, tree, node)
        self.follower.dry -= 1
        if plain == "tee":
            appends = any(text_of(f.pieces) in ("-a", "--append") for f in words[1:])
            named = [tuple(f.pieces) for f in words[1:] if not (text_of(f.pieces) or "").startswith("-")]
            files += [(path, appends) for path in named]
        value = self.printer.of_words(words, streams)
        for path, grows in files if not self.follower.dry else ():
            self.scripts.write(path, grows, value, place)
        if not files and shows_script and value is not None:
            self._script_text(nested([Field(list(value))]), meant=True)

    def _goes_on(self, tree: Tree, node: Node, words: list[Field]) -> bool:
        """Whether a command only continues the one above it."""
        if self.follower.dry:
            return False
        return self.launches.continues(tree.span(node), words, Front(self.prefix, self.asked), self._follow_script)

    def _execute(
        self, tree: Tree, node: Node, words: list[Field], own: Mapping[str, Variable | None], streams: Streams
    ) -> None:
        name = text_of(words[0].pieces) or ""
        if name in self.follower.functions:
            self._call(name, words[1:])
        elif name == "exit":
            self.exits = tree, node, (text_of(words[1].pieces) or "") if len(words) > 1 else ""
            self.follower.stop.at = "" if self.through else name
        elif name in ("return", "break", "continue"):
            self.follower.stop.at = name
        elif name == "set":
            self.nounset = set_options(self.expander, words[1:]) or self.nounset
        elif name == "shift":
            shift(self.expander, words[1:])
        elif name == "trap":
            self._trap(words[1:])
        elif name == "eval":
            self._nested(nested(words[1:]), apart=False)
        elif not self._hands_text(tree, node, words, streams):
            if name in (".", "source"):
                self._source(words[1:])
            elif name == "sbatch":
                self._submit(tree, node, words, own)
            elif name not in ("let", "unset", "alias", "exec") or len(words) > 1:
                self._launch(tree, node, words, own)

    def _hands_text(self, tree: Tree, node: Node, words: list[Field], streams: Streams) -> bool:
        """Whether a command passes a text to a shell; the text is followed then."""
        if text_of(words[0].pieces) == "sbatch":
            text = streams.text() if streams.text is not None and _reads_job(words) else None
            if text is not None:
                self._script_text(nested([Field(list(text))]), submitted=True)
            return text is not None
        inside = inner_shell(words)
        value = self._text_for(tree, node, inside, streams) if inside is not None else None
        if inside is None or value is None:
            return False
        apart = text_of(words[0].pieces) not in (".", "source")
        outer, self.stdin = self.stdin, streams.text if inside.string is not None else None
        self._nested(nested([Field(list(value))]), apart, words[: inside.front], inside.arguments)
        self.stdin = outer
        return True

    def _text_for(self, tree: Tree, node: Node, inside: Inside, streams: Streams) -> Value | None:
        """The text that a shell runs, if it is known and not a file next to the script."""
        if inside.string is not None:
            return tuple(inside.string.pieces)
        if inside.script is None:
            if streams.source:
                return self.printer.content(path_of(streams.source))
            return streams.text() if streams.text is not None else None
        place = inside.script.pieces[0].span
        for child in node.named_children:
            if child.type == "process_substitution" and tree.span(child) == place:
                printing = [part for part in child.named_children if part.type != "comment"]
                return self.printed(tree, printing[0], None)() if len(printing) == 1 else None
        return None

    def _submit(self, tree: Tree, node: Node, words: list[Field], own: Mapping[str, Variable | None]) -> None:
        """`sbatch --wrap "…"` and `sbatch run.sh`: a separate job;
        the request of the command takes precedence over that of the script."""
        options = read_options([word(field, field.pieces[0].span) for field in words[1:]], SLURM)
        wrap, rest = options.word("wrap"), words[len(words) - len(options.rest) :]
        written = self.scripts.text(options.rest[0]) if options.rest else None
        inner = (
            written.source if written is not None else self.files.open(options.rest[0].text) if options.rest else None
        )
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
        """`bash other.sh args`: the launches of the other script, if it is available. An unknown word counts as one
        parameter."""
        entry = taken.launch.entry
        written = self.scripts.text(entry)
        inner = written.source if written is not None else self.files.open(entry.text)
        if inner is None or self.calls >= MAX_CALLS:
            return False
        if written is not None:
            self.texts.add(written)
            self.scripts.run(entry)
        count = len(self.found)
        other = Commands(self.files.source, self.environment, self.asked, self.given)
        other.files, other.texts, other.calls = self.files, self.texts, self.calls + 1
        other.prefix = _in_front(taken)
        other.state.foreign = self.state.foreign  # an unread file may export variables that the other script expands
        for name, variable in self.state.variables.items():
            if variable.exported:
                other.state.put(name, variable)
        keep_folder(other.state, entry.span, taken.launch.directory)
        other.state.written.update(self.state.written)
        for name, given in taken.launch.environment.items():  # NAME=value in front of the command
            there = other.state.variables.get(name)
            if there is None or word(Field(list(there.scalar)), there.place) != given:
                other.state.put(name, Variable((value_of(given),), False, given.span, exported=True))
        several = any(w.because.endswith((UNREAD, PILED)) for w in words)
        other.expander.arguments = None if several else [value_of(w) for w in words]
        other.expander.work = self.expander.work
        other.run(self._parsed(inner))
        self.state.written.update(other.state.written)
        self.expander.work = other.expander.work
        self.follower.exhausted = self.follower.exhausted or other.follower.exhausted
        self.found.extend(_started_elsewhere(found, taken) for found in other.found[: MAX_LAUNCHES - count])
        self.launches.broken += other.launches.broken
        return True

    def _source(self, words: list[Field]) -> None:
        if words and (written := self.scripts.text(name := word(words[0], words[0].pieces[0].span))) is not None:
            self.scripts.run(name)
            self._nested(written, apart=False)
            return
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
        """Parse another text that is run, counting the work. Raises Exhausted."""
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

    def _nested(
        self,
        text: Nested | None,
        apart: bool,
        prefix: list[Field] | None = None,
        arguments: list[Field] | None = None,
    ) -> None:
        """A command line given as text: eval "…", bash -c "…". apart: it runs in a separate process."""
        if text is None or self.calls >= MAX_CALLS:
            return
        outer, given, traps, self.calls = self.prefix, self.expander.arguments, self.traps, self.calls + 1
        self.prefix += tuple(word(f, f.pieces[0].span) for f in prefix or [])
        if arguments is not None:
            self.expander.arguments = [tuple(field.pieces) for field in arguments]
        self.texts.add(text)
        with self.state.frame() as changes:
            self.traps = {} if apart else traps
            tree = self._parsed(text.source)
            self.follower.statement(tree, tree.root)
            if apart:
                self._trapped()
        if apart:
            self.state.undo({name: old for name, old in changes.items() if not name.startswith(FILE)})
            self.follower.stop.at, self.traps = "", traps
        self.prefix, self.expander.arguments, self.calls = outer, given, self.calls - 1

    def _trap(self, words: list[Field]) -> None:
        """`trap "…" EXIT TERM`: runs when the script ends for any reason."""
        if words and text_of(words[0].pieces) == "--":
            words = words[1:]
        action = text_of(words[0].pieces) if words else "-p"
        if action in ("-p", "-l"):
            return
        for field in words[1:] or words[:1]:
            signal = (text_of(field.pieces) or "").upper().removeprefix("SIG")
            text = nested(words[:1]) if len(words) > 1 and action not in ("", "-") else None
            if text is None:
                self.traps.pop("EXIT" if signal == "0" else signal, None)
            else:
                self.traps["EXIT" if signal == "0" else signal] = text

    def _trapped(self) -> None:
        """Run the texts of traps at the end, each once."""
        texts = {text.source.text: text for text in self.traps.values()}
        self.traps = {}
        for text in texts.values():
            self.follower.stop.at, self.launches.last = "", None
            self._nested(text, apart=True)

    def _script_text(self, text: Nested | None, submitted: bool = False, meant: bool = False) -> None:
        """A script that sbatch reads, or that is meant to run; its #SBATCH lines state its allocation."""
        if text is None or (meant and not text.source.text.startswith("#!")):
            return
        outer, given, foreign = self.asked, self.given, self.state.foreign
        self.state.foreign = foreign or meant  # the caller of the file may set anything
        if submitted or "\n#SBATCH" in text.source.text:
            self.asked, _ = sbatch(text.source)
            self.given = {**given, **variables(self.asked)}
        self._nested(text, apart=True, arguments=None)
        self.asked, self.given, self.state.foreign = outer, given, foreign


def _reads_job(words: list[Field]) -> bool:
    """Whether sbatch has neither a script nor a command line, so it reads stdin."""
    options = read_options([word(field, field.pieces[0].span) for field in words[1:]], SLURM)
    return not options.rest and options.word("wrap") is None


def _in_front(taken: Taken) -> tuple[Word, ...]:
    """The task launchers in front of a script, with their options."""
    words, entry = taken.launch.launcher_words, taken.launch.entry
    ends = (at for at, one in enumerate(words) if command_name(one) in SHELLS or one.span == entry.span)
    return words[: next(ends, len(words))]


def _started_elsewhere(found: Found, script: Taken) -> Found:
    """A launch in a script that is started elsewhere, once or several times: the number of processes is unknown."""
    hidden = next((name for name in script.fronts if name not in TASKS), None)
    if hidden is None:
        return found
    return found._replace(taken=started_by(found.taken, Word(hidden, script.launch.entry.span)))
