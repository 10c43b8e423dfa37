"""What has been decided about unknown values: the trip counts and conditions that roles share.

The first role that comes to ``i < n`` decides it, for both outcomes in turn, and every role that comes to the same test
later finds it decided. A fact is an interval: bounds of a sum of atoms.

*Absolute* facts (``n >= 4``) hold for the whole launch. Facts about a counter (``i < n`` for the i that a role is at)
are kept for one run of the loops around it: a number of turns beyond the threshold (``counters.py``) is *many*, and
how many may be another each time the loop is entered. So finitely many states cover all trip counts, and a proof holds
for more launches than there are: where turns do depend on one another, a fault may be found that cannot happen, and is
then not reported as one (``witness.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.check.findings import Unproved
from ptxdsl.check.learned import Rates, answers, begin_again, settled_for_ever
from ptxdsl.check.values import CHOICES, INFINITE, UNKNOWN, Atom, Sum, Test, Value, add, negated, scale, total
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.record import Slotted

if TYPE_CHECKING:
    from ptxdsl.check.counters import Counters

Terms = tuple[tuple[Atom, int], ...]
# Loops around a place, outermost first: each with its group, the counter's value, and which of its like it is.
Nest = Sequence[tuple[int, int, int]]
Range = tuple[int, int]  # from the least to the greatest value
Key = tuple[Terms, tuple[tuple[int, int, int], ...], int]


class Bounds(metaclass=Slotted, eq=True):
    """low <= sum <= high. rates: by group, how the bounds move with its counters (turns, growth)."""

    low: int
    high: int
    rates: Rates = ()


ANY = Bounds(-INFINITE, INFINITE)


class Outcome(metaclass=Slotted, eq=True):
    """One way in which a test can turn out: which fact it makes. terms, low, high: the same for a reader."""

    key: Key | None
    bounds: Bounds
    terms: Terms
    absolute: Bounds


class Facts:
    """absolute: bounds by terms, forever. moving: bounds by place."""

    __slots__ = ("absolute", "moving")

    def __init__(self, absolute: dict[Terms, Bounds], moving: dict[Key, Bounds]) -> None:
        self.absolute = absolute
        self.moving = moving

    def copy(self) -> Facts:
        return Facts(dict(self.absolute), dict(self.moving))

    def add(self, outcome: Outcome) -> None:
        if outcome.key is not None:
            self.moving[outcome.key] = outcome.bounds
        if outcome.absolute is not ANY:
            self.absolute[outcome.terms] = outcome.absolute

    def weaken(self, other: Facts) -> bool:
        """Leaves of what holds for the whole launch no more than other facts say as well; whether that is less."""
        before = self.absolute
        both = [(terms, _either(own, other.absolute.get(terms, ANY))) for terms, own in before.items()]
        self.absolute = {terms: bounds for terms, bounds in both if bounds != ANY}
        return self.absolute != before

    def settle(self, test: Any, nest: Nest, counters: Counters) -> int | list[Outcome] | None:
        """The truth of a test; the ways in which what it hangs on can turn out; None where nothing is known of it."""
        if isinstance(test, int):
            return test
        if test is UNKNOWN:
            return None
        if isinstance(test, Sum):  # a number as a truth value
            return self.settle(negated(Test("eq", test)), nest, counters)
        if test.op in ("lt", "eq"):
            return self._compare(test, nest, counters)
        if test.op == "not":
            inner = self.settle(test.args[0], nest, counters)
            return 1 - inner if isinstance(inner, int) else inner
        deciding = 0 if test.op == "and" else 1
        for part in test.args:
            settled = self.settle(part, nest, counters)
            if not isinstance(settled, int):
                return settled
            if settled == deciding:
                return deciding
        return 1 - deciding

    def _compare(self, test: Test, nest: Nest, counters: Counters) -> int | list[Outcome] | None:
        value: Value = test.value
        if isinstance(value, int):
            return int(value < 0 if test.op == "lt" else value == 0)
        if not isinstance(value, Sum):
            return None
        if not value.simple:
            for atom, coefficient in value.terms:
                if atom.op in CHOICES:
                    return self._choice(test, value, atom, coefficient, nest, counters)
        constant, rates, terms, flipped = parts(value)
        if not terms:
            return int(constant < 0 if test.op == "lt" else constant == 0)
        sign = 1 if flipped else -1  # sum + constant < 0, or -sum + constant < 0
        cut, base = sign * constant, sign * value.constant
        if not flipped:
            rates = _minus(rates)
        if test.op == "lt":
            return self._below(terms, cut + flipped, base + flipped, rates, nest, counters, flipped)
        return self._equal(terms, cut, base, rates, nest, counters)

    def _choice(
        self, test: Test, value: Sum, atom: Atom, coefficient: int, nest: Nest, counters: Counters
    ) -> int | list[Outcome] | None:
        """Decides first which of the two a minimum, a maximum or a selection is."""
        if test.ways is None:
            test.ways = _ways(test.op, value, atom, coefficient)
        condition, *ways = test.ways
        settled = self.settle(condition, nest, counters)
        return self.settle(ways[1 - settled], nest, counters) if isinstance(settled, int) else settled

    def bounds(self, terms: Terms, key: Key, cut: int, base: int, rates: Rates, counters: Counters) -> tuple[int, int]:
        """What is known of a sum that is compared with ``cut``, which is ``base`` where the counters are 0.

        Raises BeginAgain where that does not hold for what the state stands for.
        """
        known = self.absolute.get(terms, ANY)
        low, high = known.low, known.high
        if len(terms) == 1 and terms[0][1] == 1:
            low, high = max(low, terms[0][0].low), min(high, terms[0][0].high)
        moving = self.moving.get(key, ANY)
        if not moving.rates:
            low, high = max(low, moving.low), min(high, moving.high)
        if rates:
            low, high = settled_for_ever(low, high, rates, base, counters)
        if moving.rates and (moving.rates is rates or answers(moving.rates, rates, cut, counters)):
            low, high = max(low, moving.low), min(high, moving.high)
        elif moving.rates and any(atom.moving for atom, _ in terms):  # each answer would take the other's place
            raise Unproved(
                counters.kernel.span,
                "a condition compares what a loop computes in turns that are too far apart",
                "let all roles ask the same question about the same value",
            )
        return low, high

    def at_least(
        self,
        terms: Terms,
        cut: int,
        base: int,
        rates: Rates,
        around: tuple[tuple[int, int, int], ...],
        ordinal: int,
        counters: Counters,
    ) -> int | list[Outcome]:
        """Whether a sum without counters is at least ``cut``, which moves with a counter from ``base`` on: the
        test at a loop's head."""
        key = terms, around, ordinal
        least, most = self.bounds(terms, key, cut, base, rates, counters)
        if most < cut:
            return 0
        if least >= cut:
            return 1
        return [
            self._outcome(key, terms, (cut, INFINITE), (least, most), rates, counters),
            self._outcome(key, terms, (-INFINITE, cut - 1), (least, most), rates, counters),
        ]

    def at_most(
        self,
        terms: Terms,
        cut: int,
        base: int,
        rates: Rates,
        around: tuple[tuple[int, int, int], ...],
        ordinal: int,
        counters: Counters,
    ) -> int | list[Outcome]:
        """Whether such a sum is at most ``cut``: that it is not at least ``cut + 1``."""
        found = self.at_least(terms, cut + 1, base + 1, rates, around, ordinal, counters)
        return 1 - found if isinstance(found, int) else found[::-1]

    def _below(
        self, terms: Terms, cut: int, base: int, rates: Rates, nest: Nest, counters: Counters, flipped: bool
    ) -> int | list[Outcome]:
        """Whether the sum is below cut (flipped: whether it is not)."""
        key = _key(terms, rates, nest, counters)
        least, most = self.bounds(terms, key, cut, base, rates, counters)
        if most < cut:
            return 0 if flipped else 1
        if least >= cut:
            return 1 if flipped else 0
        above = self._outcome(key, terms, (cut, INFINITE), (least, most), rates, counters)
        below = self._outcome(key, terms, (-INFINITE, cut - 1), (least, most), rates, counters)
        return [above, below]

    def _equal(
        self, terms: Terms, at: int, base: int, rates: Rates, nest: Nest, counters: Counters
    ) -> int | list[Outcome]:
        key = _key(terms, rates, nest, counters)
        least, most = self.bounds(terms, key, at + 1 if at >= 0 else at, base, rates, counters)
        if at < least or at > most:
            return 0
        if least == most:
            return 1
        ranges = [(at, at)]
        if least < at:
            ranges.append((-INFINITE, at - 1))
        if most > at:
            ranges.append((at + 1, INFINITE))
        return [self._outcome(key, terms, found, (least, most), rates, counters) for found in ranges]

    def _outcome(self, key: Key, terms: Terms, found: Range, known: Range, rates: Rates, counters: Counters) -> Outcome:
        """found: where a sum is that is known to be in a range.

        A turn stands for later ones that are no different. So what is asked without a counter tells of the whole launch
        what it finds, and nothing that facts about turns add; and what is asked with one tells of it only where turns
        that few differ for sure, which a coarse search does not rely on (``merging.py``).
        """
        moving = any(atom.moving for atom, _ in terms)
        before = self.absolute.get(terms, ANY)
        if not rates and not moving:
            return Outcome(None, ANY, terms, Bounds(max(found[0], before.low), min(found[1], before.high)))
        low, high = max(found[0], known[0]), min(found[1], known[1])
        absolute = ANY
        if not moving and not counters.coarse:
            threshold = counters.threshold
            least = max(before.low, min(low, threshold)) if low >= -threshold else before.low
            most = min(before.high, max(high, -threshold)) if high <= threshold else before.high
            absolute = Bounds(least, most)
        return Outcome(key, Bounds(low, high, rates), terms, absolute)


def _either(a: Bounds, b: Bounds) -> Bounds:
    """What both bounds that do not move say of a value."""
    return a if a == b else Bounds(min(a.low, b.low), max(a.high, b.high))


def _ways(op: str, value: Sum, atom: Atom, coefficient: int) -> tuple[Any, Test, Test]:
    """What a choice in a test hangs on, and the test where that holds and where not."""
    if atom.op == "select":
        condition, a, b = atom.args
    else:
        a, b = atom.args
        smaller = add(a, b, -1)
        condition = int(smaller < 0) if isinstance(smaller, int) else Test("lt", smaller)
        if atom.op.startswith("max."):
            condition = negated(condition)
    rest = add(value, scale(Sum(0, ((atom, 1),)), coefficient), -1)
    one, other = (Test(op, add(rest, scale(way, coefficient))) for way in (a, b))
    return condition, one, other


def parts(value: Sum) -> tuple[int, tuple[tuple[int, int, int], ...], Terms, bool]:
    """A sum as its known part, the rates of that, the unknown rest with its first factor positive, and whether that
    took a change of all its signs."""
    if value.parts is None:
        constant, rates, terms = _parts(value)
        flipped = bool(terms) and terms[0][1] < 0
        if flipped:
            terms = tuple((atom, -c) for atom, c in terms)
        value.parts = constant, rates, terms, flipped
    found: tuple[int, tuple[tuple[int, int, int], ...], Terms, bool] = value.parts
    return found


def _parts(value: Sum) -> tuple[int, tuple[tuple[int, int, int], ...], Terms]:
    constant = value.constant
    rates: dict[int, tuple[int, int]] = {}
    rest: dict[Atom, int] = {}
    for atom, coefficient in value.terms:
        if atom.op != "index":
            rest[atom] = coefficient
            continue
        at, growth = atom.name
        constant += at * coefficient
        for group, turns, grown in growth:
            other = rates.get(group)
            if other is None:
                rates[group] = turns, grown * coefficient
            else:  # over a common number of turns
                common = turns * other[0]
                rates[group] = common, grown * coefficient * other[0] + other[1] * turns
    left = total(0, rest)
    terms = left.terms if isinstance(left, Sum) else ()
    return constant, tuple(sorted((g, t, r) for g, (t, r) in rates.items() if r)), terms


def _minus(rates: Rates) -> tuple[tuple[int, int, int], ...]:
    return tuple((g, turns, -growth) for g, turns, growth in rates)


def _key(terms: Terms, rates: Rates, nest: Nest, counters: Counters) -> Key:
    """Facts hold for one run of the loops around the outermost loop whose counter is in the test."""
    groups = {g for g, _, _ in rates}
    for atom, _ in terms:
        if atom.moving:
            groups |= moving_groups(atom)
    around: list[tuple[int, int, int]] = []
    for loop in nest:
        if loop[0] in groups:
            return terms, tuple(around), loop[2]
        around.append(loop)
    if groups and nest:
        begin_again(groups, counters)
    return terms, (), 0


def moving_groups(atom: Atom) -> set[int]:
    """The groups of the counters in an atom."""
    if atom.op == "index":
        return {g for g, _, _ in atom.name[1]}
    found: set[int] = set()
    for arg in atom.args:
        parts = arg.terms if isinstance(arg, Sum) else ()
        for inner, _ in parts:
            if inner.moving:
                found |= moving_groups(inner)
    return found
