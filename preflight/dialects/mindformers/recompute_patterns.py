"""Operator patterns of select_recompute: the cells and operators of a decoder layer that a pattern matches.

A layer is a tree of cells; a pattern is split on the two characters `\\.` and each part must match a child's name in
full. Patterns are untrusted: one that could backtrack forever is rejected without being tried.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import lru_cache

from preflight.source.record import NamedTuple
from preflight.source.typing_without_import import Any

SEPARATOR = "\\."
MAX_COST = 100_000
_NAME = 40  # about the length of the longest name; the number of characters that one unbounded repeat can match
_ATTRIBUTES = ("construct", "training", "cls_name", "shard")  # every cell has them; they are not operators
_OWN = ("__class__", "cell_init_args", "enable_backward_hook", "pipeline_segment", "pipeline_stage")
"""Names that every cell also lists: its class, whose recompute method needs a cell, and unreadable attributes."""
_OF_LINEAR = ("in_channels", "out_channels", "has_bias")
_RENAMED = (
    *(("attention." + name, "attention.w_qkv") for name in ("wq", "wk", "wv")),
    *(("attention.w_qkv", "attention." + name) for name in ("wq", "wk", "wv")),
    ("w1.activation", "activate"),
    ("activate", "w1.activation"),
    ("w1", "w_gate_hidden"),
    ("w3", "w_gate_hidden"),
    ("w_gate_hidden", "w1"),
    ("feed_forward", "mlp"),
    ("mlp", "feed_forward"),
    ("feed_forward", "feed_forward.ffn"),
    ("feed_forward", "feed_forward.shared_experts"),
    ("mlp", "mlp.shared_experts"),
    ("attention", "self_attention"),
    ("ffn_norm", "pre_mlp_layernorm"),
    ("attention_norm", "input_layernorm"),
)


class Operator(NamedTuple):
    """A name that the last part of a pattern can match. conditional: it exists only under some settings or versions.
    marked: the model itself has called `recompute` on it; a second call fails.
    """

    name: str
    conditional: bool = False
    marked: bool = False


class Cell(NamedTuple):
    """A cell of a layer. opaque: its contents are unknown."""

    name: str
    operators: tuple[Operator, ...] = ()
    cells: tuple[Cell, ...] = ()
    conditional: bool = False
    opaque: bool = False


class Hit(NamedTuple):
    """An operator or a cell that a pattern matches, as written in a config."""

    path: str
    cell: bool = False
    conditional: bool = False
    marked: bool = False


class Match(NamedTuple):
    """The effect of a pattern on one layer. unsure: it may match unknown names; invalid: why a part is not an
    expression. attribute: a plain attribute of a cell that its last part also names, "" for none. own: an attribute of
    every cell at which the walk fails.
    """

    hits: tuple[Hit, ...] = ()
    unsure: str = ""
    invalid: str = ""
    attribute: str = ""
    own: str = ""


def read_cell(name: str, data: Any) -> Cell:
    """A cell from its compact form: "mul cast! silu?", or {"=": operators, child: cell}; "*" is opaque,
    ? conditional, ! marked."""
    bare, conditional = name.rstrip("?"), name.endswith("?")
    if data == "*":
        return Cell(bare, conditional=conditional, opaque=True)
    if isinstance(data, str):
        return Cell(bare, _operators(data), (), conditional)
    return Cell(
        bare, _operators(data.get("=", "")), tuple(read_cell(k, v) for k, v in data.items() if k != "="), conditional
    )


def _operators(text: str) -> tuple[Operator, ...]:
    return tuple(Operator(word.rstrip("?!"), "?" in word, "!" in word) for word in text.split())


def match(pattern: str, layer: Cell) -> Match:
    """The matches of a pattern in a layer, as LayerSetting.set_pattern_recompute walks it."""
    hits: list[Hit] = []
    state = {"unsure": "", "invalid": "", "attribute": "", "own": ""}
    _walk(layer, pattern.split(SEPARATOR), (), False, hits, state)
    return Match(tuple(hits), **state)


def _walk(
    cell: Cell, parts: list[str], path: tuple[str, ...], conditional: bool, hits: list[Hit], state: dict[str, str]
) -> None:
    if cell.opaque:
        state["unsure"] = f"the operators below {SEPARATOR.join(path)} are unknown"
        return
    expression = compiled(parts[0])
    if isinstance(expression, str):
        kind, _, why = expression.partition(":")
        state[kind] = state[kind] or why
        return
    names = {child.name for child in cell.cells}
    for child in cell.cells:
        if expression.fullmatch(child.name):
            here, maybe = (*path, child.name), conditional or child.conditional
            if len(parts) > 1:
                _walk(child, parts[1:], here, maybe, hits, state)
            else:
                hits.append(Hit(SEPARATOR.join(here), True, maybe))
    if len(parts) == 1:
        found = (o for o in cell.operators if o.name not in names and expression.fullmatch(o.name))
        hits.extend(Hit(SEPARATOR.join((*path, o.name)), False, conditional or o.conditional, o.marked) for o in found)
        plain_names = (*_ATTRIBUTES, *(_OF_LINEAR if any(o.name == "matmul" for o in cell.operators) else ()))
        state["own"] = state["own"] or next((SEPARATOR.join((*path, n)) for n in _OWN if expression.fullmatch(n)), "")
        state["attribute"] = state["attribute"] or next(
            (SEPARATOR.join((*path, n)) for n in plain_names if expression.fullmatch(n)), ""
        )


@lru_cache(maxsize=1024)
def compiled(part: str) -> re.Pattern[str] | str:
    """A compiled part of a pattern; or "invalid:why" if it is not an expression, "unsure:why" if it might not
    terminate."""
    if cost(part) > MAX_COST:
        return f"unsure:{part[:60]!r} has too many repetitions to be matched safely"
    try:
        with warnings.catch_warnings():  # warnings about future Python syntax do not concern the user
            warnings.simplefilter("ignore")
            return re.compile(part)
    except (re.error, OverflowError, RecursionError) as error:
        return f"invalid:{part[:60]!r}: {error}"


def cost(part: str) -> float:
    """An upper bound on the ways a backtracking matcher can try an expression on a name;
    infinite when a group repeats."""
    if len(part) > 300:
        return float("inf")
    total, at, text = 1.0, 0, re.sub(r"\\.", "a", part, flags=re.DOTALL)
    text = re.sub(r"\[\^?\]?[^\]]*\]", "a", text)
    while at < len(text):
        sign = text[at]
        if sign in "*+{" and at:
            if text[at - 1] == ")":
                return float("inf")
            total *= _NAME
        elif sign == "|" or (sign == "?" and at and text[at - 1] not in "(*+}?"):
            total *= 2
        at += 1
    return total


def paths(layer: Cell, prefix: tuple[str, ...] = ()) -> Iterator[Hit]:
    """Every operator and cell of a layer that a pattern can name, in the notation of a config."""
    for operator in layer.operators:
        yield Hit(SEPARATOR.join((*prefix, operator.name)), False, operator.conditional, operator.marked)
    for cell in layer.cells:
        here = (*prefix, cell.name)
        yield Hit(SEPARATOR.join(here), True, cell.conditional)
        yield from paths(cell, here)


def nearest(pattern: str, layers: tuple[Cell, ...], taken: frozenset[str] = frozenset()) -> str:
    """The existing path that a pattern most likely means, or "" if none is similar. taken: paths that other patterns
    already name."""
    if re.search(r"[*+?|()\[\]{}]", pattern):
        return _nearest_last(pattern, layers)
    wanted = plain(pattern)
    candidates = {hit.path: hit.conditional for layer in layers for hit in paths(layer) if not hit.marked}
    exact = [path for path in candidates if plain(path) == wanted]
    if exact:
        return exact[0]
    others = _translated(wanted)
    guesses = [(2.0, path) for path in candidates if plain(path) in others]
    guesses += [
        (score, path)
        for path, conditional in candidates.items()
        if not conditional and (score := _similar(wanted, plain(path))) >= _ALIKE + 0.02
    ]
    free = [guess for guess in guesses if guess[1] not in taken]
    best = sorted(free or guesses, key=lambda guess: (-guess[0], guess[1]))
    return best[0][1] if best else ""


def _nearest_last(pattern: str, layers: tuple[Cell, ...]) -> str:
    """For a real regular expression: the same with its last part spelled like an operator that the rest matches."""
    head, found, last = pattern.rpartition(SEPARATOR)
    if not last.isidentifier() or not found:
        return ""
    names = {
        hit.path.rpartition(SEPARATOR)[2]
        for layer in layers
        for hit in match(f"{head}{SEPARATOR}[a-z_0-9]*", layer).hits
        if not hit.marked
    }
    from difflib import get_close_matches

    near = get_close_matches(last, sorted(names), 1, 0.7)
    return f"{head}{SEPARATOR}{near[0]}" if near else ""


@lru_cache(maxsize=4096)
def plain(pattern: str) -> str:
    """A pattern normalized for common misspellings of its separators and case."""
    text = re.sub(r"\\+\.|\.", ".", pattern.strip().lower())
    return re.sub(r"[\s\-]+", "_", text)


_ALIKE = 0.78


def _similar(one: str, other: str) -> float:
    """The similarity of two paths, 0 if they are unrelated; the same last part also counts."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, one, other)
    if matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE:
        return 0.0
    return matcher.ratio() + (0.02 if one.rpartition(".")[2] == other.rpartition(".")[2] else 0.0)


def _translated(wanted: str) -> set[str]:
    """The name of a path in the other variants of the layer: concatenated projections, mcore."""
    found = set()
    for old, new in _RENAMED:
        if re.search(rf"(^|\.){re.escape(old)}(\.|$)", wanted):
            found.add(re.sub(rf"(^|(?<=\.)){re.escape(old)}(?=\.|$)", new, wanted))
    return found
