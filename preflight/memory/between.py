"""One stage of a plan between the least and the most that it may need."""

from __future__ import annotations

from preflight.memory.result import Stage, Term
from preflight.source.record import replace


def between(least: Stage, most: Stage) -> Stage:
    """The stage at its most, its terms from what they are at the least on.

    The two ends may have their peak at different moments: what a term is at the least and is not there at the most is
    spread over the others as far as they go.
    """
    lows: dict[tuple[str, str], float] = {}
    for term in least.terms:
        if term.kind != "device":
            lows[term.kind, term.name] = lows.get((term.kind, term.name), 0.0) + term.low
    terms: list[Term] = []
    for term in most.terms:
        left = lows.get((term.kind, term.name), 0.0)
        low = term.low if term.kind == "device" else min(left, term.high)
        lows[term.kind, term.name] = left - low
        terms.append(term._replace(low=low))
    return replace(most, terms=tuple(_spread(terms, sum(lows.values()))), sure=min(least.sure, most.sure))


def _spread(terms: list[Term], rest: float) -> list[Term]:
    spread = []
    for term in terms:
        more = min(rest, term.high - term.low) if term.kind != "device" else 0.0
        rest -= more
        spread.append(term._replace(low=term.low + more) if more > 0 else term)
    return spread
