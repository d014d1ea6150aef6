"""Parses the words after the entry script like argparse: values by destination, and the faults on which it exits. No
prefix matching, the last occurrence wins, a value may follow as the next word or after "=". A word that is unknown
before the job runs is an unknown value; in the place of an option it may add options.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, partial

from preflight.dialects.megatron.options import Flag, Table
from preflight.dialects.megatron.parse_faults import (
    as_it_is,
    bad_value,
    from_to,
    is_prose,
    missing_value,
    replace_editable,
    same_placeholder,
    split_element,
    stray_word,
    unknown_flag,
    unwanted_value,
)
from preflight.dialects.megatron.value_conversions import BadValue, convert
from preflight.loaders.document import Problem, Setting, Unknown, Word
from preflight.run.value import Origin, Value
from preflight.source.finding import Edit, Key
from preflight.source.lazy_regex import lazy_pattern
from preflight.source.source_file import Span
from preflight.source.typing_without_import import Any

MOST_FAULTS = 1000
"""Limit of faults of one kind in a command; a rule reports fewer."""
_NEGATIVE = lazy_pattern(r"-\d+$|-\d*\.\d+$")


class Parsed:
    """The result: values by destination, faults in order, whether unknown words may add options. assumed: words assumed
    to add none.
    """

    def __init__(self) -> None:
        self.written: dict[str, Value] = {}
        self.spelt: dict[str, list[str]] = {}
        self.faults: list[Problem] = []
        self.suspect: set[str] = set()
        self.open = False
        self.assumed: list[Word] = []


Put = Callable[[str, object], tuple[Edit, ...]]


def parse(
    words: Sequence[Word],
    table: Table,
    key: Callable[[str], Key],
    run: int,
    out: Parsed,
    put: Put,
    given: Sequence[Word] = (),
) -> None:
    """Read words as the parser of a framework does, into `out`.

    key: creates the key of a setting from the option as typed. put: creates the edits that write a destination. given:
    words that add nothing, unless the caller of the script sets them.
    """
    out.assumed += [word for word in given if word not in words]
    _Parser(words, table, key, run, out, put, given).parse()


_SEVERAL = lazy_pattern(r"\[[@*]\]\}\"?$|\$[@*]\"?$")
"""The end of a word that may expand to any number of words."""


class _Parser:
    def __init__(
        self,
        words: Sequence[Word],
        table: Table,
        key: Callable[[str], Key],
        run: int,
        out: Parsed,
        put: Put,
        given: Sequence[Word],
    ) -> None:
        self.words, self.table, self.key, self.run, self.out, self.put = words, table, key, run, out, put
        self.given = given
        self.at = 0
        self.only_values = False
        self.noted = Counter[Callable[..., Problem]]()
        self.unknown = 0

    def parse(self) -> None:
        while self.at < len(self.words):
            word = self.words[self.at]
            self.at += 1
            if word.text is not None and self.is_value(word.text):
                self.stray(word)
            elif word.text == "--":
                self.only_values = True
            else:
                self.option(word)

    def is_value(self, text: str) -> bool:
        """Whether argparse treats a word as a value rather than an option."""
        if self.only_values or not text.startswith("-") or text in ("", "-"):
            return True
        if text in self.table.options or text == "--":
            return False
        if _NEGATIVE.match(text):
            return True
        return " " in text and text.partition("=")[0] not in self.table.options

    def option(self, word: Word) -> None:
        name, inline = (word, None) if word.text in self.table.options else word.parts
        if name.text is None and word in self.given:
            self.out.assumed.append(word)
            return
        if name.text is None:
            self.out.open = True
            return
        flag = self.table.options.get(name.text)
        if flag is None:
            self.unknown += 1
            if self.unknown <= MOST_FAULTS:
                fault, near = unknown_flag(self.table, name)
                self.fault(name, as_it_is, fault)
                self.out.suspect.update([near.dest] if near is not None else [])
            self.skip_values()
        elif flag.switch:
            self.switch(flag, name, inline)
        else:
            self.valued(flag, name, inline)

    def fault(self, place: Word, made: Callable[..., Problem], *about: Any) -> None:
        """Record a fault, unless the word is on a branch that may not run, or there are enough faults of its kind."""
        if not place.maybe and self.noted[made] < MOST_FAULTS:
            self.noted[made] += 1
            self.out.faults.append(made(*about))

    def doubt(self, flag: Flag, because: str) -> None:
        """The value of an option becomes unknown, whatever it was before."""
        self.out.suspect.add(flag.dest)
        if (before := self.out.written.get(flag.dest)) is not None:
            self.out.written[flag.dest] = before._replace(raw=Unknown(because), origin=Origin.UNKNOWN, note=because)

    def skip_values(self) -> None:
        """The values of an unknown option are reported together with it. An unknown array, or an unknown second word,
        may contain options."""
        first = self.at
        while self.at < len(self.words) and ((text := self.words[self.at].text) is None or self.is_value(text)):
            word = self.words[self.at]
            if word in self.given:
                self.out.assumed.append(word)
            elif text is None and (self.at > first or _SEVERAL.search(word.span.text) is not None):
                self.out.open = True
            self.at += 1

    def switch(self, flag: Flag, name: Word, inline: Word | None) -> None:
        assert name.text is not None
        if inline is not None:
            self.fault(name, unwanted_value, name, inline)
            self.doubt(flag, f"{name.text} has a value")
            return
        self.store(flag, name, flag.stores(name.text), name.span, name)

    def valued(self, flag: Flag, name: Word, inline: Word | None) -> None:
        taken = [inline] if inline is not None else self.take(flag)
        fewest = flag.nargs if isinstance(flag.nargs, int) else 0 if flag.nargs in ("*", "?") else 1
        if len(taken) < fewest or (inline is not None and isinstance(flag.nargs, int) and flag.nargs > 1):
            self.fault(name, missing_value, flag, name, len(taken))
            self.doubt(flag, f"{name.text} has no value")
            return
        read = [self.read(flag, name, word) for word in taken]
        raw: Any = read if flag.nargs not in (None, "?") else read[0] if read else True
        lost = next((item for item in read if isinstance(item, Unknown)), None)
        first, last = (taken[0], taken[-1]) if taken else (name, name)
        span = first.span if len(taken) < 2 else from_to(first.span, last.span)
        value = replace_editable(first, (len(taken) == 1 and inline is None) or first.editable)
        self.store(flag, name, raw if lost is None else lost, span, value, any(word.maybe for word in taken))

    def take(self, flag: Flag) -> list[Word]:
        most = 1 if flag.nargs in (None, "?") else flag.nargs if isinstance(flag.nargs, int) else len(self.words)
        taken: list[Word] = []
        while len(taken) < most and self.at < len(self.words):
            word = self.words[self.at]
            if word.text == "--" or (word.text is not None and not self.is_value(word.text)):
                break
            taken.append(word)
            self.at += 1
        return taken

    def read(self, flag: Flag, name: Word, word: Word) -> Any:
        if word.text is None:
            return Unknown(word.because)
        try:
            return convert(flag, word.text)
        except BadValue as fault:
            self.fault(name if name.maybe else word, bad_value, flag, name, word, fault)
            return Unknown(f"{name.text} {word.text} is rejected")

    def stray(self, word: Word) -> None:
        previous = self.words[self.at - 2] if self.at > 1 else None
        option = self.options_before[self.at - 1]
        apart = option is not None and option.uses != word.uses
        if previous is not None and (fault := split_element(option, previous, word)) is not None:
            self.fault(word, as_it_is, fault)
            while (
                self.at < len(self.words)
                and self.words[self.at].span.end <= fault.span.end
                and self.words[self.at].uses == word.uses
            ):
                self.at += 1
            return
        if (
            previous is not None
            and same_placeholder(previous, word)
            and (apart or (is_prose(previous) and is_prose(word)))
        ):
            self.blank(previous)
            return
        self.fault(word, stray_word, word, previous)

    @cached_property
    def options_before(self) -> list[Word | None]:
        """For each word the nearest preceding one that is spelled like an option."""
        found: list[Word | None] = [None]
        for word in self.words:
            found.append(word if (word.text or "").startswith("--") else found[-1])
        return found

    def blank(self, word: Word) -> None:
        """A variable such as "your data path" was split into words: the value of its option is unknown."""
        for dest, value in self.out.written.items():
            if value.setting is not None and value.setting.span == word.span:
                lost = Unknown(f"{word.text} … is a placeholder")
                self.out.written[dest] = value._replace(raw=lost, origin=Origin.UNKNOWN)

    def store(self, flag: Flag, name: Word, raw: Any, span: Span, word: Word, maybe: bool = False) -> None:
        assert name.text is not None
        maybe = maybe or name.maybe
        setting = Setting(
            self.key(name.text), raw, span, name.span, word.uses, word.editable and not flag.switch, maybe, self.run
        )
        seen = Unknown(f"{name.text} is set on one branch of a condition only") if maybe else raw
        origin = Origin.UNKNOWN if isinstance(seen, Unknown) else Origin.WRITTEN
        note = seen.because if isinstance(seen, Unknown) else ""
        self.out.written[flag.dest] = Value(seen, origin, setting, note, partial(self.put, flag.dest))
        self.out.spelt.setdefault(flag.dest, []).append(name.text)
