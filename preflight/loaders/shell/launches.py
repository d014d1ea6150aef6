"""The launches of a script, recorded while following it, including words cut off by a missing line continuation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from preflight.loaders.document import Launch, Unknown, Word
from preflight.loaders.entry_scripts import command_name
from preflight.loaders.launchers import Taken, behind_script, started_by, take_apart
from preflight.loaders.process_counts import Allocation
from preflight.loaders.shell.cd_and_set import working_folder
from preflight.loaders.shell.nested_commands import Texts
from preflight.loaders.shell.state import OPTION, State, Variable
from preflight.loaders.shell.word_splitting import PILED, UNREAD, Field, text_of, word
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.source_file import Span

_NAME = lazy_pattern(r"\$([A-Za-z_]\w*)")
_GROUP = lazy_pattern(r".*(ARGS?|ARGUMENTS|OPTS?|OPTIONS?|FLAGS?|PARAMS?|CONFIGS?|EXTRA\w*)")


_EXTRA = lazy_pattern(r".*(EXTRA|ADDITIONAL|OVERRIDE|CUSTOM|OPTIONAL|USER_).*")
"""Names which show that the caller of the script may add something."""
_POSITIONAL = lazy_pattern(r"\$(?:[@*]|\d+)")


class Settled(NamedTuple):
    """The words; which of them may be several or none (loose); undefined groups and unset values;
    whether any flag may be added.

    assumed: loose words that add nothing unless the caller of the script sets them: "$@", $1, $EXTRA_ARGS.
    """

    words: tuple[Word, ...]
    loose: tuple[Word, ...] = ()
    groups: tuple[tuple[str, Span], ...] = ()
    unset: tuple[tuple[str, str, Span], ...] = ()
    open: bool = False
    assumed: tuple[Word, ...] = ()


def is_group(field: Field) -> bool:
    """Whether an unknown word can only be options: "$@", or a variable named like a list of options."""
    piece = field.pieces[0]
    name = _NAME.fullmatch(piece.because)
    return field.loose and (
        piece.because in ("$@", "$*") or (name is not None and bool(_GROUP.fullmatch(name[1].upper())))
    )


def settle(
    fields: Sequence[Field], near: Span, assigned: Collection[str], late: Callable[[str, Span], bool], state: State
) -> Settled:
    """Settle words. assigned: names that the script sets; late: whether a name is set after its use; state: of the
    script."""
    words = [word(field, near) for field in fields]
    loose, groups, unset, assumed, opened = [], [], [], [], False
    for at, (field, made) in enumerate(zip(fields, words, strict=True)):
        if made.text is not None:
            continue
        match = _NAME.fullmatch(made.because)
        name = match[1] if match else ""
        flag = words[at - 1].text if at else None
        follows = flag is not None and flag.startswith("-") and "=" not in flag
        undefined = bool(name) and (name not in assigned or late(name, made.span)) and not state.foreign
        group = field.loose and undefined and bool(_GROUP.fullmatch(name.upper()))
        extra = group and name not in assigned and bool(_EXTRA.fullmatch(name.upper()))
        any_number = made.because in ("$@", "$*") or made.because.endswith((UNREAD, PILED))
        positional = _POSITIONAL.fullmatch(made.because) is not None
        if follows and positional and field.loose:
            assumed.append(made)  # the word is the value of an option, or follows a switch
        elif any_number or group or (field.loose and not follows):
            loose.append(made)
            if extra or positional or name in state.by_caller or (undefined and not group):
                assumed.append(made)
            elif group:
                groups.append((name, made.span))
            else:
                opened = True
        elif undefined and follows and flag is not None and len(field.pieces) == 1:
            unset.append((name, flag, made.span))
    return Settled(tuple(words), tuple(loose), tuple(groups), tuple(unset), opened, tuple(assumed))


_BETWEEN = lazy_pattern(r"(?:[ \t]*(?:\\[ \t]*)?(?:#[^\n]*|\r)?\n)+[ \t]*(?:\\[ \t]*)?(?:#[^\n]*)?")
"""Text that may be between a command and the line meant to continue it: line ends and comments."""
_NUMBER = lazy_pattern(r"-?[\d.]+(?:[eE][-+]?\d+)?")
_STARTERS = frozenset("torchrun msrun deepspeed accelerate srun mpirun mpiexec orterun".split())
"""Commands that start another one: by themselves they do nothing."""


class Broken(NamedTuple):
    """Words that begin a separate command. joined: whether they are read as part of the launch above."""

    place: Span
    joined: bool


def chains(broken: Sequence[Broken]) -> list[list[Broken]]:
    """Groups consecutive lines without continuation: they are one mistake."""
    found: list[list[Broken]] = []
    for one in broken:
        last = found[-1][-1] if found else None
        if last is not None and last.joined and one.joined and _follows(last.place, one.place):
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _follows(place: Span, below: Span) -> bool:
    between = place.source.text[place.end : below.start] if below.source is place.source else ""
    return _BETWEEN.fullmatch(between) is not None


class Above(NamedTuple):
    """The command above a line: its words, its column, and whether it is a launch."""

    words: list[Field]
    column: int
    started: bool

    @property
    def waits(self) -> bool:
        """Whether it ends with an option that may take a value."""
        return (text_of(self.words[-1].pieces) or "").startswith("--") and "=" not in (
            text_of(self.words[-1].pieces) or ""
        )

    @property
    def starts_nothing(self) -> bool:
        return not self.started and command_name(word(self.words[0], self.words[0].pieces[0].span)) in _STARTERS


def cut_off(place: Span, words: list[Field], below: Span, started: bool) -> Above | None:
    """The command above a line, if it is or should be a launch, and only comments and line ends are between."""
    if below.source is not place.source or below.start <= place.end or not words:
        return None
    if not _follows(place, below):
        return None
    kept = (
        words[:-1] if len(words) > 1 and (text_of(words[-1].pieces) or "x").isspace() else words
    )  # `\ ` is a blank as a word
    above = Above(kept, place.column, started)
    return above if started or above.starts_nothing else None


def goes_on(words: list[Field], place: Span, above: Above | None) -> bool:
    """Whether words are not a command: options, or other words that can only belong to the command above."""
    first = words[0]
    text = first.pieces[0].text
    if text is not None and text.startswith("-"):
        return above is not None or text_of(first.pieces) is not None
    if above is None:
        return False
    if text is not None and not above.starts_nothing and OPTION.match(text):
        return True
    whole = text_of(first.pieces)
    if above.starts_nothing:
        return whole is not None and whole.endswith(".py")
    if place.column <= above.column or _is_command(words):
        return False
    if whole is None:
        return is_group(first) or above.waits
    options = any((text_of(field.pieces) or "").startswith("--") for field in words[1:])
    return above.waits and (options or len(words) == 1 or bool(_NUMBER.fullmatch(whole)))


def _is_command(words: list[Field]) -> bool:
    """Whether a script or a launcher is named among the first words."""
    names = [command_name(word(field, field.pieces[0].span)) for field in words[:6]]
    return any(name.endswith((".py", ".sh")) or name in _STARTERS or name.startswith("python") for name in names)


MAX_LAUNCHES, MAX_LINES, MAX_BROKEN = 64, 60, 1000
Follow = Callable[[Taken, list[Word]], bool]
_SETS = lazy_pattern(r"[+~]{0,2}[A-Za-z_]\w*(?:[.@/][\w.@/-]+)?=")
"""A setting without dashes, as key=value."""


class Found(NamedTuple):
    """A launch in a script: its parsed words, its statement, and problems found while settling the words."""

    taken: Taken
    statement: Span
    settled: Settled


class Met(NamedTuple):
    """A followed command: its place, its words, and the variables set in front of it.

    launch: the number of its launch, -1 if it is not one. reached: the number of words that belong to it,
    if more were intended. lines: the number of lines that are joined to it.
    """

    place: Span
    words: list[Field]
    own: Mapping[str, Variable | None]
    launch: int = -1
    reached: int = 0
    lines: int = 0


class Front(NamedTuple):
    """The context of a command: the words in front of it, and the requests of the job."""

    prefix: tuple[Word, ...]
    asked: Allocation


class Launches:
    """The launches of one script. given: names of variables set by the caller."""

    def __init__(self, state: State, given: frozenset[str]) -> None:
        self.state, self.given = state, given
        self.found: list[Found] = []
        self.broken: list[Broken] = []
        self.last: Met | None = None

    def note(self, met: Met, front: Front, follow: Follow) -> None:
        """Record a command that may be a launch. follow: records the launches of a called script instead, if
        possible."""
        self.last = met
        place, words, own = met.place, met.words, met.own
        if len(self.found) >= MAX_LAUNCHES:
            return
        settled = settle(words, place, self.state.ever | self.given, self.state.late, self.state)
        environment = {
            name: word(Field(list(v.scalar)), v.place) for name, v in self.state.variables.items() if v.exported
        }
        environment |= {name: word(Field(list(v.scalar)), v.place) for name, v in own.items() if v is not None}
        taken = take_apart((*front.prefix, *settled.words), environment, front.asked, settled.open)
        if taken is None:
            return
        taken = self._there(taken)
        groups = {f"${name}" for name, _ in settled.groups}
        certain = self._certain(taken, settled)
        if taken.launch.launcher == "bash" and follow(
            certain, [w for w in taken.launch.words if w.because not in groups]
        ):
            return
        if taken.launch.launcher == "bash" and (inner := behind_script(taken, settled.words)) is not None:
            again = take_apart((*front.prefix, *inner), environment, front.asked, settled.open)
            if again is not None:
                certain = self._certain(self._there(started_by(again, taken.launch.entry)), settled)
        self.last = met._replace(launch=len(self.found))
        launch = (
            certain.launch._replace(lost=_lost(certain.launch, settled.words[met.reached :]))
            if met.reached
            else certain.launch
        )
        self.found.append(Found(certain._replace(launch=launch), place, settled))

    def _there(self, taken: Taken) -> Taken:
        """A launch with its working directory."""
        return taken._replace(launch=taken.launch._replace(directory=working_folder(self.state)))

    def _certain(self, taken: Taken, settled: Settled) -> Taken:
        """A launch without words that may be absent: its options are open if these words may be any."""
        launch, loose, from_outside = taken.launch, frozenset(settled.loose), frozenset(settled.assumed)
        kept = tuple(w for w in launch.words if w not in loose)
        sure = {f"${name}" for name, _ in settled.groups}
        assumed = tuple(w for w in launch.words if w in from_outside)
        unsure = any(w in loose and w.because not in sure and w not in from_outside for w in launch.words)
        all_from_outside = bool(sure or assumed) and self._is_given(kept)
        world = launch.world
        if self.state.foreign and launch.launcher == "python":
            elsewhere = Unknown("a file that is not read may set WORLD_SIZE")
            world = tuple(c if c.source == "WORLD_SIZE" else c._replace(value=elsewhere) for c in world)
        return taken._replace(
            launch=launch._replace(words=kept, open=unsure or all_from_outside, world=world, assumed=assumed)
        )

    def _is_given(self, words: Sequence[Word]) -> bool:
        """Whether all options of a launch come from the caller."""
        options = any((w.text or "").startswith("--") or _SETS.match(w.text or "") for w in words)
        return not options and not any(v.holds_options for v in self.state.variables.values())

    def continues(self, place: Span, words: list[Field], front: Front, follow: Follow) -> bool:
        """Whether a command consists of words meant for the command above; they are then read as part of it."""
        last = self.last
        started = last is not None and last.launch == len(self.found) - 1 >= 0
        joins = last is not None and last.lines < MAX_LINES
        above = cut_off(last.place, last.words, place, started) if last is not None and joins else None
        if not goes_on(words, place, above):
            return False
        if len(self.broken) < MAX_BROKEN:
            self.broken.append(Broken(place, above is not None))
        if above is None or last is None:
            return True
        if started:
            self.found.pop()
        whole = Span(last.place.source, last.place.start, place.end)
        reached = last.reached or len(above.words)
        self.note(Met(whole, [*above.words, *words], last.own, reached=reached, lines=last.lines + 1), front, follow)
        return True


def outside(found: Found, texts: Texts) -> Found:
    """A launch with every place traced back to a file."""
    groups = tuple((name, texts.span(span)) for name, span in found.settled.groups)
    unset = tuple((name, flag, texts.span(span)) for name, flag, span in found.settled.unset)
    settled = found.settled._replace(groups=groups, unset=unset)
    return Found(texts.taken(found.taken), texts.span(found.statement), settled)


def _lost(launch: Launch, words: Sequence[Word]) -> int:
    """The number of words of a launch among the last ones of a command; one more than all where its entry is among
    them."""
    cut = {id(word) for word in words}
    return len(launch.words) + 1 if id(launch.entry) in cut else sum(id(word) in cut for word in launch.words)
