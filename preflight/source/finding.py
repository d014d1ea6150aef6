"""The output of a check as pure values: messages, severities, semantic edits, fixes, findings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache

from preflight.source.record import NamedTuple, dataclass, replace
from preflight.source.resolved_words import Needed
from preflight.source.source_file import Span
from preflight.source.typing_without_import import Literal


@cache
def _place() -> re.Pattern[str]:
    """A literal brace, or `{name}`, `{name!r}`, `{name:format}`; a name may have dots. Compiled for the first
    message: most runs have none."""
    return re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w.]*)(!r)?(?::([^{}]*))?\}")


class Message(str):
    """A template with its values. It is a string, the filled-in text, and compares, sorts and prints as such.

    `{name}` is the value, `{name!r}` as Python writes it, `{name:.1f}` formatted; for a tuple, `{name}` lists the
    items, and `{name:and}` joins them by that word, `{name:、}` by that sign. `{{` is a brace. A value may be a
    Message, a part with a separate template.
    """

    __slots__ = ("template", "values")

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, /, **values: object) -> Message:
        """Fill in a template. Raises KeyError for a placeholder without a value."""
        made = super().__new__(cls, _place().sub(lambda place: _shown(place, values), template))
        made.template, made.values = template, values
        return made

    @classmethod
    def plural(cls, count: object, one: str, many: str, /, **values: object) -> Message:
        """The first template if the count is 1, otherwise the second."""
        return cls(one if count == 1 else many, **values)

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.template, self.values)


def _again(template: str, values: dict[str, object]) -> Message:
    return Message(template, **values)


def _shown(place: re.Match[str], values: Mapping[str, object]) -> str:
    name, as_python, form = place.groups()
    if name is None:
        return place[0][0]
    value = values[name]
    if as_python:
        return repr(value)
    if type(value) is tuple:
        return (f" {form} " if form and form.isascii() else form or ", ").join(map(str, value))
    return format(value, form) if form else str(value)


def continued(message: str, more: str) -> Message:
    """A message with a further clause, in parentheses after a question."""
    return Message("{message} ({more})" if message.endswith("?") else "{message}; {more}", message=message, more=more)


def template_of(text: str) -> str:
    """The template of a message; for a plain text, a template that produces it."""
    return text.template if isinstance(text, Message) else text.replace("{", "{{").replace("}", "}}")


def values_of(text: str) -> Mapping[str, object]:
    """The values of a message; empty for a plain text."""
    return text.values if isinstance(text, Message) else {}


def placeholders(template: str) -> frozenset[str]:
    """The names of the values that a template needs."""
    return frozenset(place[1] for place in _place().finditer(template) if place[1])


def literals(template: str) -> tuple[list[str], list[str]]:
    """The texts of a template around its placeholders (one more than placeholders), and the placeholder names in
    order."""
    texts, names = [""], list[str]()
    at = 0
    for place in _place().finditer(template):
        texts[-1] += template[at : place.start()]
        at = place.end()
        if place[1]:
            names.append(place[1])
            texts.append("")
        else:
            texts[-1] += place[0][0]
    texts[-1] += template[at:]
    return texts, names


class NotProven(Exception):
    """Raised if an edit would change anything unintended; the message names it."""


Key = tuple[str | int, ...]
"""The path of a setting: ("parallel_config", "data_parallel") in YAML, ("--num-layers",) on a command line."""


class Severity(str, Enum):
    """error: the run is rejected or fails; warning: it runs, probably not as intended; note: information."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """3 for error, 2 for warning, 1 for note."""
        return {"error": 3, "warning": 2, "note": 1}[self.value]

    def __str__(self) -> str:
        return self.value


class Kind(str, Enum):
    """The basis of a rule's errors, which determines whether they apply to an undescribed release.

    general: facts that all releases have in common. options: the options of a release's parser. no_value: an option
    without its value, which no parser accepts. release: a check of a release. absence: a check of a release for a
    missing option; an unknown option may have the same effect. memory: the memory estimate. cut: words that are not
    passed to the launch; an error if it is refused without them. rewrite: an argument that a release changes silently.
    """

    GENERAL = "general"
    OPTIONS = "options"
    NO_VALUE = "no-value"
    RELEASE = "release"
    ABSENCE = "absence"
    MEMORY = "memory"
    CUT = "cut"
    REWRITE = "rewrite"

    @property
    def parses(self) -> bool:
        """Whether the rule compares a command with the options of a release."""
        return self in (Kind.OPTIONS, Kind.NO_VALUE)

    @property
    def of_release(self) -> bool:
        """Whether the rule repeats a check of a release."""
        return self in (Kind.RELEASE, Kind.ABSENCE)


class Safety(str, Enum):
    """safe: the training result stays the same; unsafe: batch, loss curve or speed may change; show: advice, never
    applied."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    SHOW = "show"

    def __str__(self) -> str:
        return self.value


class Edit(NamedTuple):
    """One change to a document, by meaning; the fixer turns it into text at the right place and in the right style.

    set: give the setting `key` the value (`None` for a flag without value); it is added if it is missing.
    remove: delete the setting. rename: keep the value, the key's last part becomes `value`.
    splice: replace the text of `span` by the string `value`; settings keep their meaning unless `key` names the one
    that changes.
    """

    action: Literal["set", "remove", "rename", "splice"]
    key: Key
    value: object = None
    span: Span | None = None
    run: int = 0


class Change(str, Enum):
    """How a fix changes the typed text, from the most conservative to the least.

    correction: a typo is corrected. completion: a missing setting is added. number: a number is changed. switch: a
    choice is changed. removal: an explicit setting is removed.
    """

    CORRECTION = "correction"
    COMPLETION = "completion"
    NUMBER = "number"
    SWITCH = "switch"
    REMOVAL = "removal"

    @property
    def rank(self) -> int:
        """0 for the most conservative change."""
        return list(Change).index(self)

    def __str__(self) -> str:
        return self.value


class Fix(NamedTuple):
    """Edits that are applied together or not at all.

    change: what it does to what was typed; the policy decides. offered: it is written only where the user chooses it.
    cost: what it costs compared with other solutions, where that is estimated. layout: it writes another parallel
    layout, and the global batch stays. explained: the title states the effect on the training.
    """

    title: str
    edits: tuple[Edit, ...]
    safety: Safety = Safety.UNSAFE
    change: Change = Change.NUMBER
    offered: bool = False
    cost: str = ""
    layout: bool = False
    explained: bool = False


class Related(NamedTuple):
    """An additional place of a finding."""

    span: Span
    label: str = ""


class Unverified(NamedTuple):
    """A check that a rule could not make, and the cause ("$NNODES"). Rules yield it besides findings; it never refuses.

    One without a cause is not reported: only unset values are missing. needs: the fact that would decide it, if the
    cause does not contain it.
    """

    because: str
    span: Span | None = None
    needs: Needed | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A reported fact. Rules do not set `rule` and `kind`; the engine pairs a finding with the rule that made it.

    severity: None means that of the rule; a finding may lower it, never raise it. message: a Message with template and
    values, or a plain text. upstream: the location of the same check in the framework, "path/in/repository.py:LINE",
    "argparse", or None. layout: another parallel layout would fix the fault. lowered: why a potential error is not one,
    "" if nothing was lowered.
    """

    message: str
    span: Span
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    key: Key = ()
    upstream: str | None = None
    severity: Severity | None = None
    rule: str = ""
    layout: bool = False
    alternatives: tuple[Fix, ...] = ()
    kind: Kind = Kind.GENERAL
    lowered: str = ""

    @property
    def template(self) -> str:
        """The message without its values; for a plain text, a template that produces it."""
        return template_of(self.message)

    @property
    def values(self) -> Mapping[str, object]:
        """The values of the template's placeholders."""
        return values_of(self.message)

    @property
    def path(self) -> str:
        return self.span.path

    @property
    def line(self) -> int:
        return self.span.line

    @property
    def column(self) -> int:
        return self.span.column

    def of(self, rule: str, severity: Severity, more: tuple[Related, ...] = (), kind: Kind = Kind.GENERAL) -> Finding:
        """The finding with the rule's severity, unless the finding lowers it, and with more related places."""
        lowered = self.severity is not None and self.severity.rank < severity.rank
        related = (*self.related, *more)
        return replace(self, rule=rule, severity=self.severity if lowered else severity, related=related, kind=kind)
