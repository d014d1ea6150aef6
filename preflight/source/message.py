"""A sentence for people, with the template and the values that it is made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache


@cache
def _place() -> re.Pattern[str]:
    """A brace that is meant, or `{name}`, `{name!r}`, `{name:format}`; a name may have dots. Compiled for the first
    message: most runs have none."""
    return re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w.]*)(!r)?(?::([^{}]*))?\}")


class Message(str):
    """A template with its values filled in, which is itself the text: it compares, sorts and prints as one.

    `{name}` is the value, `{name!r}` as Python writes it, `{name:.1f}` formatted; of a tuple `{name}` lists the items,
    and `{name:and}` joins them by that word, `{name:、}` by that sign. `{{` is a brace. A value may be a Message, a
    part with a template of its own.
    """

    __slots__ = ("template", "values")

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, /, **values: object) -> Message:
        """Fill a template. Raises KeyError for a placeholder without a value."""
        made = super().__new__(cls, _place().sub(lambda place: _shown(place, values), template))
        made.template, made.values = template, values
        return made

    @classmethod
    def plural(cls, count: object, one: str, many: str, /, **values: object) -> Message:
        """The first template where the count is 1, else the second."""
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


def template_of(text: str) -> str:
    """The template of a message; of a plain text, the one that gives the same text."""
    return text.template if isinstance(text, Message) else text.replace("{", "{{").replace("}", "}}")


def values_of(text: str) -> Mapping[str, object]:
    """The values of a message; a plain text has none."""
    return text.values if isinstance(text, Message) else {}


def placeholders(template: str) -> frozenset[str]:
    """The names of the values that a template needs."""
    return frozenset(place[1] for place in _place().finditer(template) if place[1])


def literals(template: str) -> tuple[list[str], list[str]]:
    """The texts of a template around its placeholders, one more than there are, and the names of these in order."""
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
