"""Launch parameters for which a path of decisions is taken: whether a fault can happen at all, and where it shows.

The facts of a path are bounds of sums of atoms. Values for the symbols are tried, small ones first; where none of those
tried fulfils all facts, the decisions may contradict one another and the fault is not reported as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ptxdsl.check.facts import Bounds, Outcome, Terms
from ptxdsl.check.values import Atom, Sum, Test, plain
from ptxdsl.hints import Any

_FINITE = 1 << 61
_TRIED = (1, 2, 3, 4, 5, 6, 8, 0, 16, 32, 64, 128, 192, 256, 320, 512, 1024, 4096, -1)
_MOST = 20_000  # combinations


def facts_of(path: Any) -> list[tuple[Terms, Bounds]]:
    """The decisions of a path, the first one first."""
    found = []
    while path is not None:
        path, outcome = path
        assert isinstance(outcome, Outcome)
        found.append((outcome.terms, outcome.bounds if outcome.key is not None else outcome.absolute))
    return found[::-1]


def assignment(path: Any) -> dict[Atom, int] | None:
    """Values of the symbols with which a path is taken; None where none were found."""
    facts = facts_of(path)
    symbols: dict[Atom, None] = {}
    for terms, _ in facts:
        for atom, _ in terms:
            for symbol in _symbols(atom):
                symbols[symbol] = None
    if not symbols:
        return {}
    choices = [_choices(symbol, facts) for symbol in symbols]
    names = list(symbols)
    for tried, values in enumerate(_smallest_first(choices)):
        if tried > _MOST:
            return None
        known = dict(zip(names, values, strict=True))
        if all(_holds(terms, bounds, known) for terms, bounds in facts):
            return known
    return None


def text(known: dict[Atom, int]) -> str:
    """``n = 2, k = 1``, of kernel parameters alone."""
    parts = [
        f"{str(atom.name).partition('#')[0]} = {value}"
        for atom, value in known.items()
        if atom.op == "symbol" and "#" in str(atom.name)
    ]
    return ", ".join(parts)


def _holds(terms: Terms, bounds: Bounds, known: dict[Atom, int]) -> bool:
    value = plain(Sum(0, terms), known.get)
    return value is not None and bounds.low <= value <= bounds.high


def _symbols(atom: Atom) -> Iterator[Atom]:
    if atom.op in ("symbol", "load"):
        yield atom
        return
    for arg in atom.args:
        yield from _symbols_of(arg)


def _symbols_of(value: Any) -> Iterator[Atom]:
    if isinstance(value, Sum):
        for inner, _ in value.terms:
            yield from _symbols(inner)
    elif isinstance(value, Test):
        yield from _symbols_of(value.value)
        for arg in value.args:
            yield from _symbols_of(arg)


def _choices(symbol: Atom, facts: list[tuple[Terms, Bounds]]) -> list[int]:
    """Values to try: those that facts about the symbol alone ask for first."""
    low, high = symbol.low, symbol.high
    for terms, bounds in facts:
        if terms == ((symbol, 1),):
            low, high = max(low, bounds.low), min(high, bounds.high)
    first = [v for v in (low, high) if abs(v) < _FINITE]
    return [v for v in dict.fromkeys((*first, *_TRIED)) if low <= v <= high]


def _smallest_first(choices: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """All combinations, those first that take early choices."""
    for most in range(max((len(c) for c in choices), default=0)):
        for picked in product(*(range(min(most + 1, len(c))) for c in choices)):
            if max(picked) == most:
                yield tuple(c[i] for c, i in zip(choices, picked, strict=True))
