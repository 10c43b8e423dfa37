"""Copies TIR: fresh results for every copy, values and jump targets mapped."""

from __future__ import annotations

from ptxdsl.hints import Any
from ptxdsl.source import Span
from ptxdsl.tir import TERMINATORS, Block, Op, Ty, Value


class Cloner:
    """Copies operations into a list of its own. ``values`` and ``targets`` say what the originals have become.

    A subclass copies an operation otherwise by overriding ``op``, which appends to the list that it is given and is
    called for those with blocks and those named ``special``.
    """

    special = TERMINATORS

    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}
        self.targets: dict[Op, Op] = {}

    def value(self, value: Value) -> Value:
        return self.values.get(value, value)

    def fresh(self, value: Value) -> Value:
        """A new value in the place of an original."""
        new = self.values[value] = Value(value.ty, value.name)
        return new

    def ops(self, ops: list[Op]) -> list[Op]:
        out: list[Op] = []
        values, special = self.values, self.special
        for op in ops:
            if op.blocks or op.name in special:
                self.op(op, out)
                continue
            results = [Value(r.ty, r.name) for r in op.results]
            out.append(Op(op.name, [values.get(v, v) for v in op.operands], results, op.attrs, op.span))
            values.update(zip(op.results, results, strict=True))
        return out

    def op(self, op: Op, out: list[Op]) -> None:
        new = Op(op.name, [self.value(v) for v in op.operands], [], op.attrs, op.span)
        if op.name in TERMINATORS and "target" in op.attrs:
            new.attrs = {**op.attrs, "target": self.targets.get(op.attrs["target"], op.attrs["target"])}
        if op.blocks:
            self.targets[op] = new
            new.blocks = [Block([self.fresh(p) for p in block.params]) for block in op.blocks]
            for block, copy in zip(op.blocks, new.blocks, strict=True):
                copy.ops = self.ops(block.ops)
        new.results = [self.fresh(r) for r in op.results]
        out.append(new)


def emit(out: list[Op], name: str, operands: list[Value], result: Ty, span: Span, **attrs: Any) -> Value:
    """Appends a new operation with one result."""
    op = Op(name, operands, [Value(result)], attrs, span)
    out.append(op)
    return op.result
