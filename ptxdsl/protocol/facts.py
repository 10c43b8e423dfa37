"""What is known at a place of a program: conditions that hold there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ptxdsl.protocol.algebra import linear, not_negative, plain
from ptxdsl.protocol.expressions import Expr, const, var
from ptxdsl.protocol.model import Assign
from ptxdsl.record import dataclass, field

_LIMIT = 1 << 70
_OPPOSITE = {"ge.s": "lt.s", "lt.s": "ge.s", "ge.u": "lt.u", "lt.u": "ge.u", "eq": "ne", "ne": "eq"}


_SIGNED = frozenset({"ge.s", "gt.s", "le.s", "lt.s"})


@lru_cache(4096)
def _difference(comparison: Expr) -> tuple[frozenset[tuple[Expr, int]], int]:
    """A signed comparison as a sum of terms that is at least a constant. Sums are taken not to wrap."""
    a, b = comparison.args
    if comparison.op in ("lt.s", "le.s"):
        a, b = b, a
    terms, constant = linear(plain("sub", a, b, bits=a.bits))
    return frozenset(terms.items()), (comparison.op in ("lt.s", "gt.s")) - constant


def _is_unequal(comparison: Expr) -> bool:
    return comparison.op == "ne"


@dataclass(frozen=True)
class Facts:
    """possible: whether all of them can hold together, as far as that is seen. values: of variables."""

    known: frozenset[Expr] = frozenset()
    possible: bool = True
    values: Mapping[Expr, Expr] = field(default_factory=dict)

    def and_(self, condition: Expr) -> Facts:
        """With one more."""
        if condition.op == "const":
            return self if condition.value else Facts(self.known, False, self.values)
        if condition.op == "and":
            return self.and_(condition.args[0]).and_(condition.args[1])
        possible = self.possible and not self.imply(plain("not", condition, bits=1))
        return Facts(self.known | {condition, *self._signed(condition)}, possible, self.values)

    def _signed(self, condition: Expr) -> tuple[Expr, ...]:
        """What a comparison of unsigned numbers with a constant says of them as signed ones."""
        if condition.op not in ("lt.u", "ge.u") or condition.args[1].op != "const" or condition.args[1].value < 0:
            return ()
        value, at = condition.args
        not_negative = plain("ge.s", value, const(0, at.bits), bits=1)
        if condition.op == "lt.u":
            return not_negative, plain("lt.s", value, at, bits=1)
        return (plain("ge.s", value, at, bits=1),) if self.imply(not_negative) else ()

    def without(self, assigned: Iterable[int]) -> Facts:
        """Without those about variables that get other values."""
        gone = set(assigned)
        if not gone:
            return self
        known = frozenset(f for f in self.known if not f.variables & gone)
        values = {v: e for v, e in self.values.items() if v.value not in gone and not e.variables & gone}
        return Facts(known, self.possible, values)

    def assigning(self, node: Assign) -> Facts:
        """After an assignment."""
        rest = self.without(node.targets)
        values = dict(rest.values)
        for target, value in zip(node.targets, node.values, strict=True):
            if not value.variables & set(node.targets):
                values[var(target, value.bits)] = value
        return Facts(rest.known, rest.possible, values)

    def imply(self, condition: Expr) -> bool:
        """Whether a condition holds, as far as that is seen."""
        if condition.op == "const":
            return bool(condition.value)
        if condition in self.known:
            return True
        if condition.op == "and":
            return all(map(self.imply, condition.args))
        if condition.op == "or":
            return any(map(self.imply, condition.args))
        if condition.op in _SIGNED and any(self._follows(condition, fact) for fact in self.known):
            return True
        if condition.op not in _OPPOSITE or condition.args[1].op != "const":
            return False
        if condition.op in ("lt.u", "ge.u") and condition.args[1].value >= 0:
            of, end = condition.args
            signed = [plain(f"{condition.op[:2]}.s", of, end, bits=1)]
            if condition.op == "lt.u":
                signed.append(plain("ge.s", of, const(0, end.bits), bits=1))
            if all(map(self.imply, signed)):
                return True
        value, at = condition.args[0], int(condition.args[1].value)
        unsigned = condition.op.endswith(".u")
        low, high = self._bounds(value, unsigned)
        if condition.op.startswith("ge"):
            return low >= at
        if condition.op.startswith("lt"):
            return high < at
        if condition.op == "eq":
            return low == high == at
        low_unsigned, high_unsigned = self._bounds(value, True)
        return not low <= at <= high or (at >= 0 and not low_unsigned <= at <= high_unsigned)

    @staticmethod
    def _follows(condition: Expr, fact: Expr) -> bool:
        """Whether a fact is a comparison of the same that says as much, or more."""
        if fact.op not in _SIGNED:
            return False
        (terms, least), (others, known) = _difference(condition), _difference(fact)
        return terms == others and known >= least

    def bounds(self, value: Expr) -> tuple[int, int]:
        """What a value lies between, as a signed number."""
        return self._bounds(value, False)

    def _bounds(self, value: Expr, unsigned: bool) -> tuple[int, int]:
        """What a value lies between, as the facts about it and constants say."""
        low, high = (0, _LIMIT) if unsigned or not_negative(value) else (-_LIMIT, _LIMIT)
        if value.op in ("min.s", "max.s") and not unsigned:
            both = [(arg.value, arg.value) if arg.op == "const" else self.bounds(arg) for arg in value.args]
            choose = min if value.op == "min.s" else max
            low, high = choose(both[0][0], both[1][0]), choose(both[0][1], both[1][1])
        sign = ".u" if unsigned else ".s"
        for fact in sorted(self.known, key=_is_unequal):
            if fact.op not in _OPPOSITE or fact.args[0] is not value or fact.args[1].op != "const":
                continue
            at = int(fact.args[1].value)
            if at < 0 and unsigned:
                continue
            if fact.op == "ge" + sign:
                low = max(low, at)
            elif fact.op == "lt" + sign:
                high = min(high, at - 1)
            elif fact.op == "eq":
                low, high = max(low, at), min(high, at)
            elif fact.op == "ne" and low == at:
                low += 1
        return low, high


NOTHING = Facts()
