"""Arrays of numbers: numpy functions on known values, within limits, if numpy is installed.

Without numpy, and with any unknown element, an array is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from preflight.program.decision_recording_integers import settled
from preflight.program.values import MISSING, Names, Raised, Symbol, Unknown, Value
from preflight.source.typing_without_import import Any, Protocol

LENGTH = 20_000
"""Numbers in one array."""
DEEPEST = 4
SIZED = frozenset("ones zeros full eye identity arange linspace tile repeat outer broadcast_to pad".split())
"""Functions whose result may be much larger than their arguments."""
FUNCTIONS = SIZED | frozenset(
    """abs all any argmax argmin array array_equal array_split asarray atleast_1d ceil clip concatenate cos cumprod
    cumsum delete diff equal exp expand_dims flip floor full_like hstack insert isin log max maximum mean min minimum
    mod not_equal ones_like power ravel reshape round searchsorted sin sort split sqrt squeeze stack sum swapaxes
    transpose tril triu unique vstack where zeros_like""".split()
)
KINDS = frozenset("bool_ float16 float32 float64 int8 int16 int32 int64 uint8 uint32".split())
CONSTRUCTING = frozenset("int8 int16 int32 int64 float16 float32 float64 bool_".split())
READ = frozenset(
    """T all any argmax argmin astype copy cumsum dtype flatten item max mean min ndim prod ravel reshape round shape
    size squeeze std sum tolist transpose""".split()
)
"""Attributes and methods that the program may use."""
NOT_SURE = (OverflowError, DeprecationWarning)
"""Exceptions that only some releases of numpy raise."""
MODULE = "numpy"
KIND = "numpy.ndarray"


class Learns(Protocol):
    """The interface for adding answers by dotted names."""

    def learn(self, values: Mapping[str, Value], calls: Mapping[str, Callable[..., Value]]) -> None:
        """Add the answers."""


class Runs(Protocol):
    """The parts of the interpreter that arrays need."""

    steps: int
    blurred: dict[int, tuple[Value, Unknown]]

    @property
    def facts(self) -> Learns:
        """The answers of code outside the program."""

    def failure(self, error: BaseException, *, sure: bool = True) -> Raised:
        """An exception at the current statement."""


def is_array(value: Value) -> bool:
    """Whether a value is a numpy array or number."""
    return type(value).__module__ == MODULE and hasattr(value, "ndim")


def readable(value: Value, name: str) -> bool:
    """Whether the program may read an attribute of an array."""
    return name in READ and is_array(value)


def bounded(one: Value, other: Value) -> bool:
    """Whether an operation on two values, one of them an array, has a result of limited size."""
    shapes = [getattr(value, "shape", ()) or (_length(value),) for value in (one, other)]
    return math.prod(max(size, 1) for shape in shapes for size in shape) <= LENGTH * 10


def _length(value: Value) -> int:
    return len(value) if isinstance(value, (list, tuple, str)) else 1


def teach(run: Runs) -> None:
    """Make the interpreter answer the program's calls of numpy."""
    calls = {f"{MODULE}.{name}": _function(run, name) for name in FUNCTIONS | CONSTRUCTING}
    run.facts.learn({f"{MODULE}.newaxis": None, f"{MODULE}.pi": math.pi}, calls)


def method(run: Runs, function: Any, given: Sequence[Value], named: Names) -> Value:
    """A method of an array."""
    return _called(run, function.__name__, given, named, function)


def _function(run: Runs, name: str) -> Callable[..., Value]:
    return lambda *given, **named: _called(run, name, given, named)


def _called(run: Runs, name: str, given: Sequence[Value], named: Names, function: Any = None) -> Value:
    """Call a numpy function; unknown if an argument is unknown or the result would be large."""
    values = [*given, *named.values()]
    unknown = [one for one in _leaves(values, 0) if isinstance(one, Unknown)]
    if unknown:
        return unknown[0]
    if any(id(one) in run.blurred for one in values):
        return Unknown(gaps=(f"{MODULE}.{name}()",))
    try:
        import numpy
    except ImportError:
        return Unknown(gaps=(f"{MODULE}.{name}()",))
    plain = [_plain(settled(one), numpy) for one in given]
    keywords = {key: _plain(settled(one), numpy) for key, one in named.items()}
    if any(one is MISSING for one in (*plain, *keywords.values())) or not _small(name, plain, keywords):
        return Unknown(gaps=(f"{MODULE}.{name}()",))
    try:
        found = (function or getattr(numpy, name))(*plain, **keywords)
    except Exception as error:
        uneven = "inhomogeneous" in str(error) and "dtype" not in keywords and len(plain) < 2
        raise run.failure(error, sure=not uneven and not isinstance(error, NOT_SURE)) from None
    run.steps += getattr(found, "size", 1) // 64
    return found


def _leaves(values: Iterable[Value], depth: int) -> Iterable[Value]:
    """Every value in nested lists."""
    for one in values:
        if isinstance(one, (list, tuple)) and depth < DEEPEST:
            yield from _leaves(one[:LENGTH], depth + 1)
        else:
            yield one


def _plain(value: Value, numpy: Any) -> Value:
    """A value in numpy's form; MISSING if it must not be passed to numpy."""
    if isinstance(value, Symbol):
        package, _, kind = value.name.rpartition(".")
        return getattr(numpy, kind) if package == MODULE and kind in KINDS else MISSING
    if isinstance(value, type) and value in (int, float, bool):
        return value
    rows = list(_leaves([value], 0))
    good = len(rows) <= LENGTH and all(
        one is None or isinstance(one, (bool, int, float, str, slice, dict)) or is_array(one) for one in rows
    )
    return value if good and not any(isinstance(one, dict) and one for one in rows) else MISSING


def _small(name: str, given: list[Value], named: Names) -> bool:
    """Whether the arguments, and therefore the result, are small."""
    total = 1
    for one in [*given, *named.values()]:
        rows = list(_leaves([one], 0))
        size = sum(row.size if is_array(row) else 1 for row in rows)
        if size > LENGTH:
            return False
        if name in SIZED:
            numbers = [abs(row) for row in rows if isinstance(row, (int, float)) and not isinstance(row, bool)]
            numbers = [number for number in numbers if number == number and number != math.inf]
            total *= max(1, size, math.prod(math.ceil(max(number, 1)) for number in numbers))
    return total <= LENGTH
