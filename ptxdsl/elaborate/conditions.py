"""Comparisons, ``and``/``or`` and conditional expressions: what is evaluated only on one of two paths."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl import tir
from ptxdsl.elaborate import types
from ptxdsl.elaborate.calls import Calls
from ptxdsl.elaborate.entities import Comptime, Literal, Poison, Runtime, RValue, Variable
from ptxdsl.elaborate.frames import Exit
from ptxdsl.elaborate.operators import is_pure
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.types import SimdType, Type
from ptxdsl.elaborate.values import const, is_comptime
from ptxdsl.source import Span
from ptxdsl.syntax import ast


class Conditions(Calls):
    """Values that depend on a condition."""

    def _compare(self, node: ast.Compare, scope: Scope) -> RValue:
        left, right = self.evaluate_both(node.operands[0], node.operands[1], scope)
        return self._links(node, left, right, 0, scope)

    def _links(self, node: ast.Compare, left: RValue, right: RValue, number: int, scope: Scope) -> RValue:
        """``a < b < c`` from one of its comparisons on: as ``a < b and b < c``, but b is evaluated once."""
        span = node.operands[number].span.to(node.operands[number + 1].span)
        one = self.compare(node.ops[number], left, right, span)
        if number + 1 == len(node.ops) or isinstance(one, Poison):
            return one
        first = self.condition(one, span)

        def rest() -> Runtime:
            following = self.evaluate(node.operands[number + 2], scope)
            return self.condition(self._links(node, right, following, number + 1, scope), span)

        return self._and(first, rest, node.span)

    def _bool_op(self, node: ast.BoolOp, scope: Scope) -> RValue:
        """``and`` and ``or``: the right side is evaluated only where it counts."""
        left = self.condition(self.evaluate(node.left, scope), node.left.span)

        def right() -> Runtime:
            return self.condition(self.evaluate(node.right, scope), node.right.span)

        if node.op == "and":
            return self._and(left, right, node.span)
        if self.comptime_depth and isinstance(left.value, tir.Const):
            return left if left.value.value else right()
        return self.choose(left, lambda: const(types.BOOL, 1), right, types.BOOL, node.span)

    def _and(self, left: Runtime, right: Callable[[], Runtime], span: Span) -> RValue:
        if self.comptime_depth and isinstance(left.value, tir.Const):
            return right() if left.value.value else left
        return self.choose(left, right, lambda: const(types.BOOL, 0), types.BOOL, span)

    def _conditional(self, node: ast.Conditional, scope: Scope, expected: Type | None) -> RValue:
        test = self.condition(self.evaluate(node.test, scope), node.test.span)
        if is_comptime(test) and self.comptime_depth:
            chosen, other = node.then, node.orelse
            if not self.comptime_int(test, node.test.span):
                chosen, other = other, chosen
            value = self.evaluate(chosen, scope, expected)
            if isinstance(value, Literal) and isinstance(value.value, int) and _is_float(other):
                from fractions import Fraction  # as in float_literals.py

                return Literal(Fraction(value.value))  # `1 if c else 2.5` is a float; the other side is not evaluated
            return value
        wanted = expected if isinstance(expected, SimdType) else None
        return self.choose(
            test,
            lambda: self.evaluate(node.then, scope, expected),
            lambda: self.evaluate(node.orelse, scope, expected),
            wanted,
            node.span,
        )

    def choose(
        self, test: Runtime, then: Callable[[], RValue], orelse: Callable[[], RValue], wanted: Type | None, span: Span
    ) -> RValue:
        """One of two values, each computed only if chosen; a ``select`` where that makes no difference."""
        before = self.state
        branches: list[tuple[tir.Block, RValue, dict[Variable, RValue]]] = []
        for part in (then, orelse):
            self.state = dict(before)
            with self.block() as block:
                branches.append((block, part(), self.state))
        self.state = before
        (_, a, _), (_, b, _) = branches
        if isinstance(a, Poison) or isinstance(b, Poison):
            return Poison()
        t = wanted or self._common_type(a, b, span)
        values = []
        for block, value, state in branches:
            outer, self.ops, self.state = self.ops, block.ops, state
            values.append(self.convert(value, t, span))
            self.ops, self.state = outer, before
        return self._chosen(test, branches, values, span)

    def _chosen(
        self,
        test: Runtime,
        branches: list[tuple[tir.Block, RValue, dict[Variable, RValue]]],
        values: list[RValue],
        span: Span,
    ) -> RValue:
        before = self.state
        quiet = all(is_pure(op) for block, _, _ in branches for op in block.ops) and all(
            state[v] is before[v] for _, _, state in branches for v in before
        )
        first, second = values
        if quiet and isinstance(first, Runtime) and isinstance(second, Runtime) and first.value.ty == second.value.ty:
            for block, _, _ in branches:
                self.ops.extend(block.ops)
            selected = self._select(test, first, second, span)
            return Runtime(first.type, selected, all(map(is_comptime, (test, first, second))))
        if any(isinstance(v, Comptime) for v in values):
            help = "write an `if` statement"
            raise self.fail("E0401", "a run-time condition cannot choose a compile-time value", span, help=help)
        op = tir.Op("if", [test.value], [], {}, self.origin(span), [block for block, _, _ in branches])
        exits: list[Exit] = []
        for (block, _, state), value in zip(branches, values, strict=True):
            outer, self.ops, self.state = self.ops, block.ops, state
            exits.append(self.end_block("yield", None, span, value))
            self.ops, self.state = outer, before
        self.append(op)
        result = self.merge(exits, before, op, span)
        assert result is not None
        return result

    def _select(self, test: Runtime, a: Runtime, b: Runtime, span: Span) -> tir.Value:
        if a.type == types.BOOL:  # and, or: keep them recognisable
            if isinstance(b.value, tir.Const) and b.value.value == 0:
                return self.emit1("and", [test.value, a.value], tir.I1, span)
            if isinstance(a.value, tir.Const) and a.value.value == 1:
                return self.emit1("or", [test.value, b.value], tir.I1, span)
        if isinstance(test.value, tir.Const):
            return a.value if test.value.value else b.value
        return self.emit1("select", [test.value, a.value, b.value], a.value.ty, span)

    def _common_type(self, a: RValue, b: RValue, span: Span) -> Type:
        if a.type == b.type:
            return self.materialize(a, span).type
        if isinstance(a, Literal) and isinstance(b, Literal):
            return types.FLOAT64
        if isinstance(a, Literal) or self.converts(a, b.type, span):
            return b.type
        if isinstance(b, Literal) or self.converts(b, a.type, span):
            return a.type
        raise self.fail(
            "E0301", f"the two sides have different types, {a.type} and {b.type}", span, help="convert one of them"
        )


def _is_float(node: ast.Expr) -> bool:
    """Whether a float literal is written here, with or without a sign."""
    return isinstance(node.operand if isinstance(node, ast.Unary) else node, ast.FloatLiteral)
