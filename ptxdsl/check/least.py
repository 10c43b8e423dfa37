"""The least value that an integer can have, as far as its form tells: ``steps - at % steps`` is 1 or more.

Sums are taken not to wrap, and what the source computes as unsigned is not negative, as in all of the proof
(``values.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ptxdsl.check.values import INFINITE
from ptxdsl.protocol.algebra import linear, of_linear, plain, substitute
from ptxdsl.protocol.expressions import SIGNED_CONVERSIONS, SIZES, SUMS_FROM, Expr, const, nodes

NONE = -INFINITE  # nothing is known
_MOST_ASKED = 2000
_QUOTIENTS = frozenset({"div.u", "floordiv.u", "floordiv.s"})
_REMAINDERS = frozenset({"mod.u", "mod.s"})
# What a comparison that holds says: which operand the other one is taken from, and the least difference.
_ORDER = {"lt": (1, 0, 1), "le": (1, 0, 0), "gt": (0, 1, 1), "ge": (0, 1, 0)}

Terms = dict[Expr, int]


def least(expr: Expr, lows: Mapping[int, int]) -> int:
    """lows: of variables by their numbers. NONE where nothing is seen."""
    return _Least(lows).of(expr, ())


class _Least:
    def __init__(self, lows: Mapping[int, int]) -> None:
        self.lows = lows
        self.found: dict[tuple[Expr, tuple[Expr, ...]], int] = {}

    def of(self, expr: Expr, known: tuple[Expr, ...]) -> int:
        """known: conditions that hold."""
        key = expr, known
        if key not in self.found:
            self.found[key] = NONE  # in what is asked for it, and where too much is asked
            if len(self.found) < _MOST_ASKED:
                self.found[key] = self._of(expr, known)
        return self.found[key]

    def _of(self, expr: Expr, known: tuple[Expr, ...]) -> int:
        terms, constant = linear(expr)
        for way in (self._added, self._without_remainders, self._by_conditions, self._by_choices):
            found = way(terms, constant, expr.bits, known)
            if found > NONE:
                return found
        return NONE

    def _added(self, terms: Terms, constant: int, bits: int, known: tuple[Expr, ...]) -> int:
        for term, factor in terms.items():
            bound = self._term(term, known) if factor > 0 else _most(term)
            if abs(bound) >= INFINITE:
                return NONE
            constant += factor * bound
        return constant

    def _term(self, term: Expr, known: tuple[Expr, ...]) -> int:
        op, args = term.op, term.args
        if op == "var":
            return self.lows.get(term.value, NONE)
        if op == "cta" or term.bits == 1 or (op == "uniform" and term.value in SIZES):
            return 0
        if op in SIGNED_CONVERSIONS and term.bits >= SUMS_FROM:
            return self.of(args[0], known)
        if op == "select":
            condition, a, b = args
            return min(self._where(a, condition, known), self._where(b, _not(condition), known))
        if op.startswith(("min.", "max.")):
            bounds = self.of(args[0], known), self.of(args[1], known)
            found = min(bounds) if op.startswith("min") else max(bounds)
            return max(0, found) if op.endswith(".u") else found
        if op.endswith(".u"):
            return max(0, self.of(args[0], known)) if op == "ext.u" else 0
        if op in ("mul", "floordiv.s", "mod.s"):
            first, second = (self.of(arg, known) for arg in args)
            if op == "mul":
                return first * second if first >= 0 and second >= 0 else NONE
            return 0 if second > 0 and (first >= 0 or op == "mod.s") else NONE
        return NONE

    def _where(self, expr: Expr, condition: Expr, known: tuple[Expr, ...]) -> int:
        """The least value where a condition holds."""
        truth = {condition: const(1, 1), _not(condition): const(0, 1)}
        return self.of(substitute(expr, truth.get, {}), (*known, condition))

    def _without_remainders(self, terms: Terms, constant: int, bits: int, known: tuple[Expr, ...]) -> int:
        """x - x / d * d lies between 0 and d - 1."""
        for term, factor in terms.items():
            rest, divisor = dict(terms), None
            if term.op in _REMAINDERS and factor < 0:
                divisor = term.args[1]
                del rest[term]
            for quotient, by in (term.args, term.args[::-1]) if term.op == "mul" else ():
                if quotient.op not in _QUOTIENTS or quotient.args[1] is not by:
                    continue
                dividend, start = linear(quotient.args[0])
                if start or any(terms.get(t, 0) != -factor * f for t, f in dividend.items()):
                    continue
                divisor = by
                for t in (term, *dividend):
                    del rest[t]
            if divisor is None or self.of(divisor, known) < 1:
                continue
            left = of_linear(rest, constant, bits)
            if term.op != "mul" or factor > 0:  # it is taken away: at most |factor| * (d - 1)
                size = abs(factor)
                back = plain("mul", plain("sub", divisor, const(1, bits), bits=bits), const(-size, bits), bits=bits)
                left = plain("add", left, back, bits=bits)
            found = self.of(left, known)
            if found > NONE:
                return found
        return NONE

    def _by_conditions(self, terms: Terms, constant: int, bits: int, known: tuple[Expr, ...]) -> int:
        """A difference of which a condition says that it is not negative."""
        for condition in known:
            order = _ORDER.get(condition.op.partition(".")[0])
            if order is None or condition.args[0].bits != bits:
                continue
            large, small, at_least = order
            difference, by = linear(plain("sub", condition.args[large], condition.args[small], bits=bits))
            left = dict(terms)
            for term, factor in difference.items():
                left[term] = left.get(term, 0) - factor
            left = {term: factor for term, factor in left.items() if factor}
            if len(left) < len(terms):
                found = self.of(of_linear(left, constant - by, bits), known)
                if found > NONE:
                    return found + at_least
        return NONE

    def _by_choices(self, terms: Terms, constant: int, bits: int, known: tuple[Expr, ...]) -> int:
        """Each way that a choice can turn out by itself."""
        for term, factor in terms.items():
            if term.op.startswith("min." if factor > 0 else "max."):
                rest = {t: f for t, f in terms.items() if t is not term}
                ways = [of_linear({**rest, arg: rest.get(arg, 0) + factor}, constant, bits) for arg in term.args]
                return min(self.of(way, known) for way in ways)
        condition = _condition(terms)
        if condition is None:
            return NONE
        whole = of_linear(terms, constant, bits)
        return min(self._where(whole, way, known) for way in (condition, _not(condition)))


def _condition(terms: Iterable[Expr]) -> Expr | None:
    """What a selection in these hangs on."""
    for term in terms:
        for node in nodes(term):
            if node.op == "select":
                return node.args[0]
    return None


def _not(condition: Expr) -> Expr:
    return plain("not", condition, bits=1)


def _most(term: Expr) -> int:
    """The largest value, where that is a constant's."""
    if term.bits == 1 or (term.op == "ext.u" and term.args[0].bits == 1):
        return 1
    last = term.args[-1] if term.args else term
    if last.op == "const" and term.op.startswith("min."):
        return int(last.value)
    return int(last.value) - 1 if last.op == "const" and last.value > 0 and term.op in _REMAINDERS else INFINITE
