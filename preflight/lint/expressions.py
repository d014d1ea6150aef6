"""Inspectable conditions over arguments: `(a.expert_model_parallel_size > 1) & ~a.sequence_parallel`.

Nothing is evaluated here; `evaluator` walks these trees with three-valued logic. Combine with `&`, `|`, `~`
(Python's `and`, `or`, `not` cannot be overloaded and raise).
"""

from __future__ import annotations

from collections.abc import Iterator

from preflight.source.typing_without_import import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from preflight.lint.value_kinds import ValueKind


class Expression:
    """A condition or a number. `parts` are the operands."""

    __slots__ = ("op", "parts")

    def __init__(self, op: str, *parts: object) -> None:
        self.op, self.parts = op, parts

    def __bool__(self) -> NoReturn:
        raise TypeError("combine conditions with & | ~ instead of and, or, not")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return Expression("==", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return Expression("!=", self, other)

    def __lt__(self, other: object) -> Expression:
        return Expression("<", self, other)

    def __le__(self, other: object) -> Expression:
        return Expression("<=", self, other)

    def __gt__(self, other: object) -> Expression:
        return Expression(">", self, other)

    def __ge__(self, other: object) -> Expression:
        return Expression(">=", self, other)

    def __and__(self, other: object) -> Expression:
        return Expression("and", self, other)

    def __rand__(self, other: object) -> Expression:
        return Expression("and", other, self)

    def __or__(self, other: object) -> Expression:
        return Expression("or", self, other)

    def __ror__(self, other: object) -> Expression:
        return Expression("or", other, self)

    def __invert__(self) -> Expression:
        return Expression("not", self)

    def __add__(self, other: object) -> Expression:
        return Expression("+", self, other)

    def __radd__(self, other: object) -> Expression:
        return Expression("+", other, self)

    def __sub__(self, other: object) -> Expression:
        return Expression("-", self, other)

    def __rsub__(self, other: object) -> Expression:
        return Expression("-", other, self)

    def __mul__(self, other: object) -> Expression:
        return Expression("*", self, other)

    def __rmul__(self, other: object) -> Expression:
        return Expression("*", other, self)

    def __floordiv__(self, other: object) -> Expression:
        return Expression("//", self, other)

    def __truediv__(self, other: object) -> Expression:
        return Expression("/", self, other)

    def __mod__(self, other: object) -> Expression:
        return Expression("%", self, other)

    def is_in(self, *choices: object) -> Expression:
        """One of these values."""
        return Expression("in", self, *choices)

    def is_a(self, kind: ValueKind) -> Expression:
        """A value that the kind accepts."""
        return Expression("is a", self, kind)

    def has(self, item: object) -> Expression:
        """The value is a list or a string that contains the item."""
        return Expression("has", self, item)

    def starts_with(self, prefix: str) -> Expression:
        return Expression("startswith", self, prefix)

    @property
    def is_none(self) -> Expression:
        return Expression("is none", self)

    @property
    def is_set(self) -> Expression:
        """Not None."""
        return Expression("not", Expression("is none", self))

    @property
    def length(self) -> Expression:
        return Expression("len", self)

    @property
    def leading_zeros(self) -> Expression:
        """The number of leading zeros of a list."""
        return Expression("leading zeros", self)

    @property
    def least(self) -> Expression:
        """The smallest number of a list."""
        return Expression("least", self)

    def handles(self) -> Iterator[Handle]:
        """Every argument that is used, in reading order."""
        for part in self.parts:
            if isinstance(part, Expression):
                yield from part.handles()


class Handle(Expression):
    """An argument of the framework. view: "effective" (after silent switches), "written", "given" or "environment"."""

    __slots__ = ("key", "name", "view")

    def __init__(self, name: str, view: str = "effective") -> None:
        super().__init__("handle")
        self.name, self.view = name, view
        self.key = (name, view)

    def handles(self) -> Iterator[Handle]:
        yield self

    @property
    def written(self) -> Handle:
        """The value as written; None if it is not set."""
        return Handle(self.name, "written")

    @property
    def given(self) -> Handle:
        """True if it is set, regardless of the value."""
        return Handle(self.name, "given")


class Handles:
    """`a.tensor_model_parallel_size` is the handle of that name; with a list of known names a misspelt one is an error.

    Dotted names are written with subscripts: `a["parallel_config.data_parallel"]`.
    """

    def __init__(self, known: frozenset[str] | None = None) -> None:
        self._known = known

    def __getattr__(self, name: str) -> Handle:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Handle:
        if self._known is not None and name not in self._known:
            from difflib import get_close_matches

            near = get_close_matches(name, self._known, 3)
            raise AttributeError(f"no argument {name!r}; did you mean {', '.join(near) or 'something else'}?")
        return Handle(name)

    @staticmethod
    def env(name: str) -> Handle:
        """An environment variable of the job: its text, or None if it is not set."""
        return Handle(name, "environment")


def any_of(*conditions: Expression) -> Expression:
    """True as soon as one condition is."""
    return Expression("or", *conditions)


def all_of(*conditions: Expression) -> Expression:
    """True when every condition is."""
    return Expression("and", *conditions)


def nearest_divisor(number: Expression, near: Expression, multiple: object = 1) -> Expression:
    """The divisor of a number that is nearest to a second number, among the multiples of a third."""
    return Expression("nearest divisor", number, near, multiple)


def other_divisor(number: Expression, near: Expression, multiple: object = 1) -> Expression:
    """The nearest divisor on the other side, if it may have been meant as well; unknown if it is too far away."""
    return Expression("other divisor", number, near, multiple)


def two_divisors(number: Expression, near: Expression, multiple: object = 1) -> Expression:
    """Whether a number is between two divisors, either of which may have been meant."""
    return Expression("two divisors", number, near, multiple)


def where(condition: Expression, value: object) -> Expression:
    """A value under a condition; unknown if the condition does not hold, so that nothing is written."""
    return Expression("where", condition, value)


def total(*conditions: Expression) -> Expression:
    """The number of conditions that hold."""
    return Expression("count", *conditions)


def minimum(*values: object) -> Expression:
    """The smallest of the values."""
    return Expression("min", *values)


def maximum(*values: object) -> Expression:
    """The largest of the values."""
    return Expression("max", *values)
