"""Loops of TIR that are seen to end: what they compare grows, or falls, in each turn, and what with stays the same.

Sums are taken not to wrap, as in all of the proof; but what counts down to 0 as unsigned must not come below it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl.effects import Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.protocol.expressions import ARITHMETIC, CONVERSIONS, SIZES, SUMS_FROM
from ptxdsl.protocol.tir_effects import writes_global
from ptxdsl.record import dataclass
from ptxdsl.tir import Const, Op, Value, walk

_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_DEEP, _MANY = 8, 64  # of what conditions and steps are made, at most


@dataclass(frozen=True)
class _Fact:
    """A comparison that holds. name: ``lt``, ``le``, ``eq`` or ``ne``."""

    name: str
    small: Value
    large: Value
    unsigned: bool


_Cases = list[list[_Fact]]
_Step = tuple[int, Value | None]  # so much more: a number and nothing else, or a value taken 1 or -1 times


def comes_to_an_end(loop: Op, made: Mapping[Value, Op]) -> bool:
    """Whether a ``loop`` is seen to end: each turn comes by a comparison that must hold. made: of a kernel's values."""
    return _Ends(loop, made).seen()


class _Ends:
    def __init__(self, loop: Op, made: Mapping[Value, Op]) -> None:
        self.loop = loop
        self.made = made
        self.changing: set[Value] = set(loop.blocks[0].params)
        self.counters: dict[Value, tuple[int, _Step]] = {v: (i, (0, None)) for i, v in enumerate(loop.blocks[0].params)}
        self.signed: dict[Value, tuple[Value, Value]] = {}  # a counter's complement where the other value is negative
        self.repeats: list[Op] = []
        writes = any(map(writes_global, walk(loop.blocks[0])))
        for op in walk(loop.blocks[0]):
            if op.name == "repeat" and op.attrs["target"] is loop:
                self.repeats.append(op)
            self.changing.update(param for block in op.blocks for param in block.params)
            if not _computes(op, writes) or not self.changing.isdisjoint(op.operands):
                self.changing.update(op.results)
            counter = self._counter(op)
            if counter is not None:
                self.counters[op.result] = counter
            if op.name == "xor" and op.operands[0] in self.counters:
                sign_of = self._sign_of(op.operands[1])
                if sign_of is not None:
                    self.signed[op.result] = op.operands[0], sign_of

    def _counter(self, op: Op) -> tuple[int, _Step] | None:
        """Which carried value the result is, and how much more."""
        if op.name in (*CONVERSIONS, "add", "sub") and op.result.ty.bits < SUMS_FROM:
            return None  # it wraps
        if op.name in CONVERSIONS:
            return self.counters.get(op.operands[0])
        if op.name not in ("add", "sub"):
            return None
        base, by = op.operands
        if op.name == "add" and base not in self.counters:
            base, by = by, base
        if base not in self.counters or by in self.changing:
            return None
        number, (more, value) = self.counters[base]
        sign = 1 if op.name == "add" else -1
        if isinstance(by, Const):
            return (number, (more + sign * int(by.value), None)) if value is None else None
        return (number, (sign, by)) if (more, value) == (0, None) else None

    def _sign_of(self, value: Value) -> Value | None:
        """What a value is the sign of: all ones where that is negative, else 0; both stay the same in the loop."""
        op = self.made.get(value)
        if op is None or op.name != "shr.s" or not self.changing.isdisjoint((value, op.operands[0])):
            return None
        of, by = op.operands
        return of if isinstance(by, Const) and by.value == of.ty.bits - 1 else None

    def seen(self) -> bool:
        for op in self.loop.blocks[0].ops:
            if op.name == "if":
                for arm, stays in zip(op.blocks, (False, True), strict=False):
                    if self._leaves(arm.terminator) and all(map(self._bounds, self._cases(op.operands[0], stays))):
                        return True
            if any(inner in self.repeats for block in op.blocks for inner in walk(block)):
                return False  # not every turn comes to what follows
        return False

    def _leaves(self, end: Op | None) -> bool:
        return end is not None and (end.name == "return" or (end.name == "leave" and end.attrs["target"] is self.loop))

    def _cases(self, condition: Value, holds: bool, depth: int = 0) -> _Cases:
        """What is known in each of the cases in which a condition holds, or does not."""
        op = self.made.get(condition)
        if op is None or depth > _DEEP:
            return [[]]
        name = op.name.partition(".")[0]
        if name == "not":
            return self._cases(op.operands[0], not holds, depth + 1)
        if name in ("and", "or"):
            one, other = (self._cases(part, holds, depth + 1) for part in op.operands)
            return _both(one, other) if (name == "and") == holds else one + other
        if name == "if":
            return self._chosen(op, op.results.index(condition), holds, depth + 1)
        if name not in _OPPOSITE:
            return [[]]
        name = name if holds else _OPPOSITE[name]
        a, b = op.operands
        small, large = (b, a) if name in ("gt", "ge") else (a, b)
        name = {"gt": "lt", "ge": "le"}.get(name, name)
        unsigned = op.name.endswith(".u")
        if unsigned and name == "lt" and isinstance(large, Const) and large.value == 0:
            return []  # it never holds
        return [[_Fact(name, small, large, unsigned)]]

    def _chosen(self, op: Op, number: int, holds: bool, depth: int) -> _Cases:
        cases: _Cases = []
        for arm, way in zip(op.blocks, (True, False), strict=False):
            end = arm.terminator
            if end is None or end.name != "yield":
                continue  # it is left here
            value = end.operands[number]
            if not isinstance(value, Const):
                cases += _both(self._cases(op.operands[0], way, depth), self._cases(value, holds, depth))
            elif bool(value.value) == holds:
                cases += self._cases(op.operands[0], way, depth)
        return cases

    def _bounds(self, facts: list[_Fact]) -> bool:
        """Whether turns in which this holds come to an end."""
        return any(
            of in self.counters and bound not in self.changing and self._reaches(of, bound, up, fact, facts)
            for fact in facts
            for of, bound, up in ((fact.small, fact.large, True), (fact.large, fact.small, False))
        ) or any(self._comes_nearer(fact, facts) for fact in facts)

    def _comes_nearer(self, fact: _Fact, facts: list[_Fact]) -> bool:
        """Whether it is the comparison of a ``for`` with a step known at run time.

        The counter moves by what the sign is of, which is not 0: so it grows, or its complement does.
        """
        if (
            fact.small not in self.signed
            or fact.unsigned
            or fact.name not in ("lt", "le")
            or fact.large in self.changing
        ):
            return False
        counter, step = self.signed[fact.small]
        number = self.counters[counter][0]
        moves = (self.counters.get(repeat.operands[number]) for repeat in self.repeats)
        zeros = ((other.small, other.large) for other in facts if other.name == "ne")
        return all(moved == (number, (1, step)) for moved in moves) and any(
            a is step and isinstance(b, Const) and b.value == 0 for a, b in zeros
        )

    def _reaches(self, of: Value, bound: Value, up: bool, fact: _Fact, facts: list[_Fact]) -> bool:
        number = self.counters[of][0]
        found = [self.counters.get(repeat.operands[number]) for repeat in self.repeats]
        steps = [step for counter in found if counter is not None and counter[0] == number for step in (counter[1],)]
        if len(steps) < len(found) or fact.name == "eq":
            return False
        if fact.name == "ne":  # odd steps come by every value
            return len(set(steps)) == 1 and steps[0][1] is None and steps[0][0] % 2 == 1
        if fact.unsigned and not up:
            least = (max(int(bound.value), 0) if isinstance(bound, Const) else 0) + (fact.name == "lt")
            return all(value is None and 0 < -more <= least for more, value in steps)
        alike = [other for other in facts if other.unsigned == fact.unsigned]
        return all(self._advances(step, 1 if up else -1, alike) for step in steps)

    def _advances(self, step: _Step, way: int, facts: list[_Fact]) -> bool:
        more, value = step
        if value is None or (more * way > 0 and self._is_positive(value)):
            return more * way > 0
        for fact in facts:  # where the sign of the step was asked for
            zero, other = (fact.small, fact.large) if more * way > 0 else (fact.large, fact.small)
            if fact.name == "lt" and other is value and isinstance(zero, Const) and zero.value == 0:
                return True
        return False

    def _is_positive(self, value: Value, depth: int = 0) -> bool:
        if isinstance(value, Const):
            return int(value.value) > 0
        op = self.made.get(value)
        if op is None or depth > _DEEP:
            return False
        return op.name in SIZES or (
            op.name in (*CONVERSIONS, "mul") and all(self._is_positive(operand, depth + 1) for operand in op.operands)
        )


def _both(a: _Cases, b: _Cases) -> _Cases:
    return [[*x, *y] for x in a for y in b] if len(a) * len(b) <= _MANY else [[]]


def _computes(op: Op, writes: bool) -> bool:
    """Whether the same operands give the same, as loads do unless they look anew. writes: whether the loop does."""
    if op.name == "load":
        return not writes and not op.attrs.get("volatile")
    row = ROWS.get(op.name)
    return op.name in ARITHMETIC or op.name == "ptr.add" or (row is not None and row.effect.kind is Kind.PURE)
