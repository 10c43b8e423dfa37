"""Launch parameters for which a path of decisions is taken: whether a fault can happen at all, and where it shows.

The facts of a path are bounds of sums of atoms. Values for the symbols are tried, small ones first; where none of those
tried fulfils all facts, the decisions may contradict one another and the fault is not reported as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, product

from ptxdsl.check.counters import TURNS
from ptxdsl.check.facts import Bounds, Outcome, Terms
from ptxdsl.check.held import names_of
from ptxdsl.check.values import Atom, Sum, Test, Value
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import compute

_FREE = frozenset({"symbol", "load", "answer", "drawn"})  # values that may be any
_FINITE = 1 << 61
_TRIED = (1, 2, 3, 4, 5, 6, 8, 0, 16, 32, 64, 128, 192, 256, 320, 512, 1024, 4096, -1)
_LAUNCH = {"ctaid": "block_idx", "nctaid": "grid_dim"}
_MOST = 20_000  # combinations
_MOST_COMPUTED = 200_000  # atoms, in all of them


def facts_of(path: Any) -> list[tuple[Terms, Bounds]]:
    """The decisions of a path, the first one first. Each time that a name is given to a value from memory it is another
    one's."""
    events: list[Outcome | Atom] = []
    while path is not None:
        path, event = path
        events.append(event)
    found: list[tuple[Terms, Bounds]] = []
    names: dict[Atom, Atom] = {}
    for event in reversed(events):
        if isinstance(event, Atom):
            names[event] = Atom(event.number, event.op, len(found), (), event.low, event.high)
        else:
            terms = _named(event.terms, names) if names else event.terms
            found.append((terms, event.bounds if event.key is not None else event.absolute))
    return found


def goes_by_memory(path: Any) -> bool:
    """Whether values from memory were decided about that may not be just any."""
    return any(name.op == "held" for terms, _ in facts_of(path) for atom, _ in terms for name in names_of(atom))


def _named(terms: Terms, names: dict[Atom, Atom]) -> Terms:
    return tuple([(_name(atom, names), factor) for atom, factor in terms])


def _name(atom: Atom, names: dict[Atom, Atom]) -> Atom:
    if not atom.args:
        return names.get(atom, atom)
    return Atom(atom.number, atom.op, atom.name, tuple([_of(arg, names) for arg in atom.args]), atom.low, atom.high)


def _of(value: Any, names: dict[Atom, Atom]) -> Any:
    if isinstance(value, Sum):
        return Sum(value.constant, _named(value.terms, names))
    if isinstance(value, Test):
        return Test(value.op, _of(value.value, names), tuple([_of(arg, names) for arg in value.args]))
    return value


def assignment(path: Any) -> dict[Atom, int] | None:
    """Values of the symbols with which a path is taken; None where none were found."""
    if goes_by_memory(path):
        return None
    facts = facts_of(path)
    names = list(dict.fromkeys(symbol for terms, _ in facts for atom, _ in terms for symbol in symbols(atom)))
    if not names:
        return {}
    choices = [_choices(symbol, facts) for symbol in names]
    computed = 0
    for tried, values in enumerate(smallest_first(choices)):
        if tried > _MOST or computed > _MOST_COMPUTED:
            return None
        launch = _Launch(dict(zip(names, values, strict=True)))
        if launch.possible() and all(launch.holds(terms, bounds) for terms, bounds in facts):
            return launch.known
        computed += len(launch.computed)
    return None


def is_of_launch(path: Any, known: dict[Atom, int]) -> bool:
    """Whether constant trip counts that were taken for any number are what they are on a path, too."""
    turns = {atom: int(name.split()[0]) for atom in known if (name := str(atom.name)).endswith(TURNS)}
    launch = _Launch({**known, **turns})
    return not turns or all(launch.holds(terms, bounds) for terms, bounds in facts_of(path))


def text(known: dict[Atom, int]) -> str:
    """``n = 2, block_idx.x = 1``, of kernel parameters, the block and the grid."""
    named = {atom: value for atom, value in known.items() if atom.op == "symbol"}
    return told({str(atom.name): bool(value) if atom.bits == 1 else value for atom, value in named.items()})


def told(known: Mapping[str, int]) -> str:
    """Such a text of values by the names that the model has for them: others are left out."""
    named = {_told(name): value for name, value in known.items()}
    return ", ".join([f"{name} = {value}" for name, value in named.items() if name])


def _told(name: str) -> str:
    parameter, is_one, _ = name.partition("#")
    if is_one:
        return parameter
    what, _, axis = name.partition("_")
    return f"{_LAUNCH[what]}.{axis}" if what in _LAUNCH else ""


class _Launch:
    """What values are where those of the symbols are known."""

    def __init__(self, known: dict[Atom, int]) -> None:
        self.known = known
        self.computed: dict[Atom, int | None] = {}

    def possible(self) -> bool:
        """Whether the number of a block is below that of the blocks, and a counter in memory rises."""
        named = {str(symbol.name): value for symbol, value in self.known.items()}
        drawn = [value for _, value in sorted((s.name, value) for s, value in self.known.items() if s.op == "drawn")]
        if any(first >= then for first, then in pairwise(drawn)) or not self._agrees():
            return False
        return all(named.get(f"ctaid_{axis}", 0) < named.get(f"nctaid_{axis}", 1 << 31) for axis in "xyz")

    def _agrees(self) -> bool:
        """Whether what is loaded from the same place is the same. Loads that have some bytes in common are not."""
        loaded: dict[tuple[Any, ...], list[tuple[int, int, int]]] = {}  # by place: the first byte, the last, the value
        for atom, value in self.known.items():
            if atom.op == "load":
                of, address = atom.args
                at, terms = self._place(address)
                loaded.setdefault((of, terms), []).append((at, at + atom.name // 8, value))
        for places in loaded.values():
            places.sort()
            if any(then[0] < one[1] and then != one for one, then in pairwise(places)):
                return False
        return True

    def _place(self, address: Value) -> tuple[int, tuple[Any, ...]]:
        """An address as a number, and what is added to it that is not known."""
        at, terms = (address.constant, address.terms) if isinstance(address, Sum) else (address, ())
        rest: dict[Atom, int] = {}
        for atom, factor in terms:
            value = self.atom(atom)
            if value is None:
                rest[atom] = rest.get(atom, 0) + factor
            else:
                at += value * factor
        return at, tuple(sorted((atom.number, factor) for atom, factor in rest.items()))

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
        if atom.op in _FREE:
            return self.known.get(atom)
        if atom.op == "held":
            return None
        args = [self.number(arg) for arg in atom.args]
        ints = [arg for arg in args if arg is not None]
        if len(ints) < len(args):
            return None
        if atom.op == "recurrence":
            found: int | None = atom.name.after(ints[0], ints[1:])
            return found
        return compute(atom.op, ints, atom.name, atom.name if atom.op.endswith(".u") else 64)

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


def symbols(atom: Atom) -> Iterator[Atom]:
    """What it is made of that may be anything."""
    if atom.op in _FREE:
        yield atom
        return
    for arg in atom.args:
        yield from _symbols_of(arg)


def _symbols_of(value: Any) -> Iterator[Atom]:
    if isinstance(value, Sum):
        for inner, _ in value.terms:
            yield from symbols(inner)
    elif isinstance(value, Test):
        yield from _symbols_of(value.value)
        for arg in value.args:
            yield from _symbols_of(arg)


def _choices(symbol: Atom, facts: list[tuple[Terms, Bounds]]) -> list[int]:
    """Values to try: those that facts about the symbol alone ask for first."""
    if str(symbol.name).endswith(TURNS):
        return [int(str(symbol.name).removesuffix(TURNS))]
    low, high = symbol.low, symbol.high
    for terms, bounds in facts:
        if terms == ((symbol, 1),):
            low, high = max(low, bounds.low), min(high, bounds.high)
    first = [v for v in (low, high) if abs(v) < _FINITE]
    half = 1 << (symbol.bits - 1)
    return [v for v in dict.fromkeys((*first, *_TRIED)) if low <= v <= high and -half <= v < half]


def smallest_first(choices: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """All combinations, those first that take early choices."""
    for most in range(max((len(c) for c in choices), default=0)):
        for picked in product(*(range(min(most + 1, len(c))) for c in choices)):
            if max(picked) == most:
                yield tuple(c[i] for c, i in zip(choices, picked, strict=True))
