"""Launch parameters for which a path of decisions is taken: whether a fault can happen at all, and where it shows.

The facts of a path are bounds of sums of atoms. Values for the symbols are tried, small ones first; where none of those
tried fulfils all facts, the decisions may contradict one another and the fault is not reported as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ptxdsl.check.facts import Bounds, Outcome, Terms
from ptxdsl.check.values import Atom, Sum, Test, Value
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import compute

_FINITE = 1 << 61
_TRIED = (1, 2, 3, 4, 5, 6, 8, 0, 16, 32, 64, 128, 192, 256, 320, 512, 1024, 4096, -1)
_MOST = 20_000  # combinations
_MOST_COMPUTED = 200_000  # atoms, in all of them


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
    computed = 0
    for tried, values in enumerate(_smallest_first(choices)):
        if tried > _MOST or computed > _MOST_COMPUTED:
            return None
        launch = _Launch(dict(zip(names, values, strict=True)))
        if launch.possible() and all(launch.holds(terms, bounds) for terms, bounds in facts):
            return launch.known
        computed += len(launch.computed)
    return None


def text(known: dict[Atom, int]) -> str:
    """``n = 2, k = 1``, of kernel parameters alone."""
    parts = [
        f"{str(atom.name).partition('#')[0]} = {value}"
        for atom, value in known.items()
        if atom.op == "symbol" and "#" in str(atom.name)
    ]
    return ", ".join(parts)


class _Launch:
    """What values are where those of the symbols are known."""

    def __init__(self, known: dict[Atom, int]) -> None:
        self.known = known
        self.computed: dict[Atom, int | None] = {}

    def possible(self) -> bool:
        """Whether the number of a block is below that of the blocks."""
        named = {str(symbol.name): value for symbol, value in self.known.items()}
        return all(named.get(f"ctaid_{axis}", 0) < named.get(f"nctaid_{axis}", 1 << 31) for axis in "xyz")

    def holds(self, terms: Terms, bounds: Bounds) -> bool:
        value = self.number(Sum(0, terms))
        return value is not None and bounds.low <= value <= bounds.high

    def number(self, value: Value) -> int | None:
        """None where that cannot be computed."""
        if isinstance(value, int):
            return value
        if not isinstance(value, Sum):
            return self.truth(value) if isinstance(value, Test) else None
        result = value.constant
        for atom, coefficient in value.terms:
            part = self.atom(atom)
            if part is None:
                return None
            result += coefficient * part
        return result

    def atom(self, atom: Atom) -> int | None:
        if atom not in self.computed:
            self.computed[atom] = self._atom(atom)
        return self.computed[atom]

    def _atom(self, atom: Atom) -> int | None:
        if atom.op == "index":
            return int(atom.name[0])
        if atom.op in ("symbol", "load", "answer"):
            return self.known.get(atom)
        args = [self.number(arg) for arg in atom.args]
        ints = [arg for arg in args if arg is not None]
        if len(ints) < len(args):
            return None
        if atom.op == "recurrence":
            found: int | None = atom.name.after(ints[0], ints[1:])
            return found
        return compute(atom.op, ints, atom.name, 64)

    def truth(self, test: Test) -> int | None:
        if test.op in ("lt", "eq"):
            value = self.number(test.value)
            return None if value is None else int(value < 0 if test.op == "lt" else value == 0)
        args = [self.number(arg) for arg in test.args]
        if any(arg is None for arg in args):
            return None
        if test.op == "not":
            return 1 - int(args[0] or 0)
        return int(all(args) if test.op == "and" else any(args))


def _symbols(atom: Atom) -> Iterator[Atom]:
    if atom.op in ("symbol", "load", "answer"):
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
