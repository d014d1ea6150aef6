"""The launches of a script, noted as its commands are met, with the words that a lost continuation cuts off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from preflight.loaders.counts import Allocation
from preflight.loaders.document import Launch, Unknown, Word
from preflight.loaders.launchers import Taken, take_apart
from preflight.loaders.script_wrappers import behind_script, started_by
from preflight.loaders.shell.continuations import Broken, cut_off, goes_on
from preflight.loaders.shell.nested_commands import Texts
from preflight.loaders.shell.state import State, Variable
from preflight.loaders.shell.uncertain_words import Settled, settle
from preflight.loaders.shell.word_splitting import Field, word
from preflight.loaders.shell.working_folder import working_folder
from preflight.source.pattern import lazy_pattern
from preflight.source.record import NamedTuple
from preflight.source.text import Span

MAX_LAUNCHES, MAX_LINES, MAX_BROKEN = 64, 60, 1000
Follow = Callable[[Taken, list[Word]], bool]
_SETS = lazy_pattern(r"[+~]{0,2}[A-Za-z_]\w*(?:[.@/][\w.@/-]+)?=")
"""A setting without dashes, as key=value."""


class Found(NamedTuple):
    """A launch in a script: taken apart, its statement, and what was noticed while its words were settled."""

    taken: Taken
    statement: Span
    settled: Settled


class Met(NamedTuple):
    """A command as it was met: its place, its words, what is set in front of it.

    launch: the number of its launch, -1 where it is none. reached: how many of the words are its own, where further
    ones were meant to be. lines: how many lines of these are joined to it.
    """

    place: Span
    words: list[Field]
    own: Mapping[str, Variable | None]
    launch: int = -1
    reached: int = 0
    lines: int = 0


class Front(NamedTuple):
    """What a command is started in: the words in front of it, and what the job asks for."""

    prefix: tuple[Word, ...]
    asked: Allocation


class Launches:
    """The launches of one script. given: names of variables that are set from outside."""

    def __init__(self, state: State, given: frozenset[str]) -> None:
        self.state, self.given = state, given
        self.found: list[Found] = []
        self.broken: list[Broken] = []
        self.last: Met | None = None

    def note(self, met: Met, front: Front, follow: Follow) -> None:
        """A command that may be a launch. follow: notes the launches of a script in its place, if it can."""
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
        """A launch with the folder that it runs in."""
        return taken._replace(launch=taken.launch._replace(directory=working_folder(self.state)))

    def _certain(self, taken: Taken, settled: Settled) -> Taken:
        """A launch without the words that may be none: its options are open where those may be any."""
        launch, loose, from_outside = taken.launch, frozenset(settled.loose), frozenset(settled.assumed)
        kept = tuple(w for w in launch.words if w not in loose)
        sure = {f"${name}" for name, _ in settled.groups}
        assumed = tuple(w for w in launch.words if w in from_outside)
        unsure = any(w in loose and w.because not in sure and w not in from_outside for w in launch.words)
        all_from_outside = bool(sure or assumed) and self._is_given(kept)
        world = launch.world
        if self.state.foreign and launch.launcher == "python":
            world = tuple(
                count._replace(value=Unknown("a file that is not read may set WORLD_SIZE")) for count in world
            )
        return taken._replace(
            launch=launch._replace(words=kept, open=unsure or all_from_outside, world=world, assumed=assumed)
        )

    def _is_given(self, words: Sequence[Word]) -> bool:
        """Whether every option of a launch comes from outside: the script has none of its own."""
        options = any((w.text or "").startswith("--") or _SETS.match(w.text or "") for w in words)
        return not options and not any(v.holds_options for v in self.state.variables.values())

    def continues(self, place: Span, words: list[Field], front: Front, follow: Follow) -> bool:
        """Whether a command is none, but words that were meant for the one above: then they are read as part of it."""
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
    """A launch with every place in a file."""
    groups = tuple((name, texts.span(span)) for name, span in found.settled.groups)
    unset = tuple((name, flag, texts.span(span)) for name, flag, span in found.settled.unset)
    settled = found.settled._replace(groups=groups, unset=unset)
    return Found(texts.taken(found.taken), texts.span(found.statement), settled)


def _lost(launch: Launch, words: Sequence[Word]) -> int:
    """How many words of a launch are among the last ones of a command; one more than it has where its entry is."""
    cut = {id(word) for word in words}
    return len(launch.words) + 1 if id(launch.entry) in cut else sum(id(word) in cut for word in launch.words)
