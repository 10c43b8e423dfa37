"""The number of a loop's turn in terms of something that goes up by more than one a turn."""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.protocol.algebra import linear, of_linear, plain, substitute
from ptxdsl.protocol.expressions import CONVERSIONS, Expr, const
from ptxdsl.protocol.model import Node
from ptxdsl.protocol.rewriting import with_expressions


class TurnNumbers:
    """turn: the variable that is the number of the turn. done: what is ``step`` times that."""

    def __init__(self, turn: int, step: int, done: Expr) -> None:
        self.turn = turn
        self.step = step
        self.done = done
        self.known: dict[Expr, Expr] = {}

    def put_in(self, nodes: Sequence[Node]) -> list[Node]:
        """Nodes with the other number in the place of that of the turn."""
        return [with_expressions(node, self.of, self.known) for node in nodes]

    def of(self, expr: Expr) -> Expr | None:
        if self._is_turn(expr):
            return self._times(1, expr.bits)
        if expr.op not in ("add", "sub", "mul"):
            return None
        terms, constant = linear(expr)
        total = const(constant, expr.bits)
        for term, factor in terms.items():
            if self._is_turn(term):
                part = self._times(factor, expr.bits)
            else:
                inner = substitute(term, self.of, self.known)
                part = plain("mul", inner, const(factor, expr.bits), bits=expr.bits)
            total = plain("add", total, part, bits=expr.bits)
        return of_linear(*linear(total), expr.bits)

    def _is_turn(self, expr: Expr) -> bool:
        while expr.op in CONVERSIONS:
            expr = expr.args[0]
        return expr.op == "var" and expr.value == self.turn

    def _times(self, factor: int, bits: int) -> Expr:
        done = self.done
        if factor % self.step:
            done = plain("div.u", done, const(self.step, done.bits), bits=done.bits)
        else:
            factor //= self.step
        wide = plain("ext.u" if bits > done.bits else "trunc", done, bits=bits)
        return plain("mul", wide, const(factor, bits), bits=bits)
