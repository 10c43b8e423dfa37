"""Expressions of the model as functions of an agent's variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ptxdsl.check.arithmetic import operate
from ptxdsl.check.counters import TURNS, Counters
from ptxdsl.check.rates import Rates
from ptxdsl.check.threads import Block, Lanes, Mask, Row, members, whole_warps
from ptxdsl.check.values import INFINITE, UNKNOWN, Sum, Symbols, Value, add, scale
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import ARITHMETIC, BLOCK_SIZES, CONVERSIONS, CTA_SHIFT, SIZES, Expr, apply, wrap

Environment = list[Any]
Function = Callable[[Environment], Value]


# What a thread gets of other lanes of its warp.
_ACROSS = frozenset({"shuffle", "any", "all"})
# Operations with another result for another operand, as far as sums do not wrap.
_ONE_TO_ONE = frozenset({"add", "sub", "mapa"}) | CONVERSIONS


class Common:
    """What the expressions of all agents have in common. own: names of leaves that have another value in each CTA.

    blocks: expressions of each CTA of those that are followed as one.
    """

    def __init__(self, block: Block, own: Iterable[str]) -> None:
        self.block = block
        self.own = frozenset(own)
        self.blocks: list[Expressions] = []
        self._own: dict[Expr, bool] = {}
        self.functions: dict[Expr, Function] = {}
        self.sums: dict[Expr, tuple[int, dict[Expr, int]]] = {}
        self._everywhere: dict[Expr, bool] = {}

    def everywhere(self, expr: Expr) -> bool:
        """Whether an expression is the same function of its variables for all threads of all CTAs."""
        found = self._everywhere.get(expr)
        if found is None:
            found = not isinstance(self.block.row(expr), list) and str(expr.value) not in self.own
            found = found and not (expr.op in _ACROSS and expr.variables)
            found = self._everywhere[expr] = found and all(map(self.everywhere, expr.args))
        return found

    def differs(self, expr: Expr) -> bool:
        """Whether an expression is another function of its variables in each CTA, of those that are followed as one."""
        if not self.blocks:
            return False
        found = self._own.get(expr)
        if found is None:
            apart = sum(map(self.differs, expr.args))
            found = apart > 0 or str(expr.value) in self.own
            if found and not expr.variables and not (apart == 1 and expr.op in _ONE_TO_ONE):
                first, *others = [expressions.made(expr)([]) for expressions in self.blocks]
                found = first is UNKNOWN or any(value != first for value in others)
            self._own[expr] = found
        return found


class Expressions:
    """For the threads of one agent. known: values of leaves by name (the CTA's rank in its cluster).

    like: those of the same threads in another CTA.
    """

    def __init__(
        self,
        common: Common,
        mask: Mask,
        counters: Counters,
        symbols: Symbols,
        known: Mapping[str, Value],
        like: Expressions | None = None,
    ) -> None:
        self.like = like
        self.common = common
        self.block = common.block
        self.mask = mask
        self.members = members(mask)
        self.shares_warps = whole_warps(mask, self.block.all) != mask
        self.counters = counters
        self.symbols = symbols
        self.known = known
        self._functions: dict[Expr, Function] = {}
        self._levels: dict[Expr, int | None] = {}
        self._split: dict[tuple[Expr, Mask], tuple[Function, Lanes | None, frozenset[int]]] = {}
        self._terms: dict[
            tuple[Any, ...], tuple[int, list[tuple[Function, int]], Lanes | None, frozenset[int]]
        ] = {}  # ``_split_terms``
        self._slots: dict[tuple[tuple[Expr, int], ...], Function | None] = {}

    # ----------------------------------------------------------------------------------------------------- threads

    def row(self, expr: Expr) -> Row | None:
        """The value in each thread of the block; None where it depends on more than thread ids."""
        return self.block.row(expr)

    def where(self, expr: Expr, mask: Mask) -> Mask | None:
        """The threads of a mask in which a truth value holds; None where thread ids alone do not tell."""
        held = self.block.holds(expr)
        return None if held is None else held & mask

    def level(self, expr: Expr) -> int | None:
        """What an expression of thread ids is if all threads of the agent have the same."""
        row = self.row(expr)
        if row is None or isinstance(row, int):
            return row
        if expr not in self._levels:
            first = row[self.members[0]]
            self._levels[expr] = first if all(row[t] == first for t in self.members) else None
        return self._levels[expr]

    def varies(self, expr: Expr) -> bool:
        """Whether an expression may be another one in each thread."""
        if expr.op in ("unknown", "test", "answer") or self._is_of_others(expr):
            return True
        if not expr.args or self.row(expr) is not None:
            return self.row(expr) is not None and self.level(expr) is None
        return any(map(self.varies, expr.args))

    def _is_of_others(self, expr: Expr) -> bool:
        """Whether it may be made of variables that threads of another agent have."""
        return expr.op in _ACROSS and bool(expr.variables) and self.shares_warps

    # --------------------------------------------------------------------------------------------------- functions

    def function(self, expr: Expr) -> Function:
        found = self._functions.get(expr) or self.common.functions.get(expr)
        if found is None:
            if self.like is not None and not self.common.differs(expr):
                return self.like.function(expr)
            found = self.made(expr)
            (self.common.functions if self.common.everywhere(expr) else self._functions)[expr] = found
        return found

    def constant(self, expr: Expr) -> Value | None:
        """The value of an expression without variables, None of another."""
        return None if expr.variables else self.function(expr)([])

    def made(self, expr: Expr) -> Function:
        op = expr.op
        if op == "var":
            number = expr.value
            return lambda env: env[number]
        if op == "const":
            return _always(expr.value)
        if op in ("uniform", "cta"):
            return _always(self._leaf(expr))
        level = self.level(expr)
        if level is not None:
            return _always(level)
        if op == "load":
            address = self.function(expr.args[0])
            return lambda env: self.symbols.operation("load", (expr.value, address(env)), expr.bits)
        if op in _ACROSS and not self._is_of_others(expr):
            return self.function(expr.args[0])  # what is left here is the same in all threads of the agent, or unknown
        if op not in ARITHMETIC:
            return _always(UNKNOWN)
        return self._operation(expr)

    def _leaf(self, expr: Expr) -> Value:
        name = str(expr.value)
        if name in self.known:
            return self.known[name]
        if name in BLOCK_SIZES:
            return self.block.shape[BLOCK_SIZES[name]]
        counts = expr.op == "cta" or name in SIZES or name.endswith(TURNS)
        return self.symbols.symbol(name, 0 if counts else -INFINITE, expr.bits)

    def _operation(self, expr: Expr) -> Function:
        parts = [self.function(arg) for arg in expr.args]
        rates = [_growing(self.counters.rates(arg)) for arg in expr.args]
        op, bits, operand_bits, symbols = expr.op, expr.bits, expr.args[0].bits, self.symbols
        growing = any(rates)

        def general(*args: Value) -> Value:
            marked = args
            if growing and any(type(a) is not int for a in args):
                marked = tuple(
                    symbols.index(a, rate) if rate and type(a) is int else a
                    for a, rate in zip(args, rates, strict=True)
                )
            return operate(op, marked, bits, operand_bits, symbols)

        if not expr.variables:
            return _always(general(*(part([]) for part in parts)))
        unsigned, compute = ARITHMETIC[op]
        low, high = -(1 << (bits - 1)), 1 << (bits - 1)
        if len(parts) == 2 and bits > 1 and not unsigned:
            a, b = parts

            def binary(env: Environment) -> Value:
                x, y = a(env), b(env)
                if type(x) is int and type(y) is int:
                    result: int = compute(x, y, operand_bits)
                    return result if low <= result < high else wrap(result, bits)
                return general(x, y)

            return binary
        return self._kept(expr, lambda env: general(*(part(env) for part in parts)))

    def _kept(self, expr: Expr, function: Function) -> Function:
        """A function that remembers what it gave: the same parts are in many expressions, and often in one."""
        variables = tuple(sorted(expr.variables))
        known: dict[Any, Value] = {}
        if len(variables) == 1:
            (v,) = variables

            def of_one(env: Environment) -> Value:
                key = env[v]
                found = known.get(key, known)
                if found is known:
                    found = known[key] = function(env)
                return found

            return of_one

        def of_many(env: Environment) -> Value:
            key = tuple([env[v] for v in variables])
            found = known.get(key, known)
            if found is known:
                found = known[key] = function(env)
            return found

        return of_many

    # --------------------------------------------------------------------------------------------------- addresses

    def split(self, expr: Expr, mask: Mask) -> tuple[Function, Lanes | None, frozenset[int]]:
        """An address as a part that all threads share and one that each thread of the mask has for itself.

        Gives the shared part, the threads' own parts in their order (None: there are none), and the variables used.
        """
        if self.like is not None and not self.common.differs(expr):
            return self.like.split(expr, mask)
        key = expr, mask
        found = self._split.get(key)
        if found is None:
            found = self._split[key] = self._parted(expr, mask)
        return found

    def _parted(self, expr: Expr, mask: Mask) -> tuple[Function, Lanes | None, frozenset[int]]:
        constant, terms = self._sum(expr)
        key = *terms.items(), mask
        found = self._terms.get(key)
        if found is None:
            found = self._terms[key] = self._split_terms(terms, mask)
        by, shared, own, used = found
        return _summed(constant + by, shared), own, used

    def _split_terms(
        self, terms: Mapping[Expr, int], mask: Mask
    ) -> tuple[int, list[tuple[Function, int]], Lanes | None, frozenset[int]]:
        """The same of a sum without its constant part; what threads have alike is one."""
        constant = 0
        own: list[tuple[Expr, int]] = []
        shared: list[tuple[Function, int]] = []
        used: frozenset[int] = frozenset()
        for leaf, factor in terms.items():
            row = self.row(leaf)
            level = self.level(leaf)
            if level is not None:
                constant += level * factor
            elif row is None:
                shared.append((self.function(leaf), factor))
                used |= leaf.variables
            else:
                own.append((leaf, factor))
        alike, lanes = self.block.lanes(tuple(own), mask)
        return constant + alike, shared, lanes, used

    def root(self, expr: Expr) -> int:
        """The constant part of an address: in which array it is, as far as the text tells."""
        return self._sum(expr)[0]

    def terms(self, expr: Expr) -> Mapping[Expr, int]:
        """What an address is the sum of beside a constant, with factors."""
        return self._sum(expr)[1]

    def distance(self, a: Expr, b: Expr) -> int | None:
        """How far b is behind a; None where that may change."""
        first, terms = self._sum(a)
        second, others = self._sum(b)
        return second - first if terms == others else None

    def slot(self, expr: Expr, turning: frozenset[int]) -> Function | None:
        """What an address is made of that may be the number of a stage: its variable part with the largest factor.

        turning: variables that have many values at once.
        """
        _, terms = self._sum(expr)
        if not turning:
            key = tuple(terms.items())
            if key not in self._slots:
                self._slots[key] = self._slot(terms, turning)
            return self._slots[key]
        return self._slot(terms, turning)

    def _slot(self, terms: Mapping[Expr, int], turning: frozenset[int]) -> Function | None:
        varying = [
            (abs(factor), leaf)
            for leaf, factor in terms.items()
            if leaf.variables and leaf.variables.isdisjoint(turning)
        ]
        if not varying:
            return None
        return self.function(max(varying, key=lambda pair: pair[0])[1])

    def _sum(self, expr: Expr) -> tuple[int, dict[Expr, int]]:
        """A constant and what else is added up, with factors."""
        found = self.common.sums.get(expr)
        if found is None:
            terms: dict[Expr, int] = {}
            found = self.common.sums[expr] = self._affine(expr, 1, terms), terms
        return found

    def _affine(self, expr: Expr, factor: int, terms: dict[Expr, int]) -> int:
        """Adds factor * expr to the terms; the constant part is given back. Sums are taken not to wrap."""
        op = expr.op
        if op == "const":
            return int(expr.value) * factor
        if op in ("add", "sub") and expr.bits >= 32:
            first = self._affine(expr.args[0], factor, terms)
            return first + self._affine(expr.args[1], factor if op == "add" else -factor, terms)
        if op in CONVERSIONS and expr.args[0].bits >= 32:
            return self._affine(expr.args[0], factor, terms)
        if op in ("mul", "shl"):
            a, b = expr.args
            if a.op == "const" and op == "mul":
                a, b = b, a
            if b.op == "const":
                return self._affine(a, factor * (b.value if op == "mul" else 1 << b.value), terms)
        if op == "mapa":
            rank = self._affine(expr.args[1], factor << CTA_SHIFT, terms)
            return self._affine(expr.args[0], factor, terms) + rank + (factor << CTA_SHIFT)
        terms[expr] = terms.get(expr, 0) + factor
        return 0


def _always(value: Value) -> Function:
    return lambda env: value


def _growing(rates: Rates) -> tuple[tuple[int, int, int], ...]:
    """(group, turns, growth) of what grows."""
    return tuple((g, turns, growth) for g, (turns, growth) in rates.items() if growth and g >= 0)


def _summed(constant: int, parts: list[tuple[Function, int]]) -> Function:
    if not parts:
        return _always(constant)
    if len(parts) == 1:
        function, factor = parts[0]

        def one(env: Environment) -> Value:
            value = function(env)
            if type(value) is int:
                return value * factor + constant
            return add(scale(value, factor), constant) if isinstance(value, Sum) else UNKNOWN

        return one

    def many(env: Environment) -> Value:
        result: Value = constant
        for function, factor in parts:
            value = function(env)
            if not isinstance(value, (int, Sum)):
                return UNKNOWN
            result = add(result, scale(value, factor))
        return result

    return many


def difference(a: Expr, b: Expr) -> Expr:
    return apply("sub", a, b, bits=a.bits)
