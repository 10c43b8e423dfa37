"""Writes TIR by hand: ``b = Builder(); x = b.op("add", y, 1)``; control flow is a ``with`` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ptxdsl.signature import KernelSignature
from ptxdsl.source import Source, Span
from ptxdsl.tir import I1, I32, Block, Const, Kernel, Module, Op, Ty, Value, ptr

SOURCE = Source("t.pdsl", "\n".join(f"line {n}" for n in range(1, 200)))
COMPARISONS = {"eq", "ne", "lt.s", "le.s", "gt.s", "ge.s", "lt.u", "le.u", "gt.u", "ge.u"}


def c(value: int, ty: Ty = I32) -> Const:
    return Const(ty, value)


class Builder:
    """One kernel. Python integers among operands are i32 constants; results have the first operand's type by default.

    ``line`` is the source line that operations are given from then on.
    """

    def __init__(self, name: str = "k", ring_unroll: bool = True) -> None:
        self.body = Block()
        self.blocks = [self.body]
        self.line = 1
        self.kernel = Kernel(name, [], self.body, KernelSignature(name, ring_unroll=ring_unroll), self.span)

    @property
    def span(self) -> Span:
        start = SOURCE.line_starts[self.line - 1]
        return Span(SOURCE, start, start + 4)

    @property
    def module(self) -> Module:
        return Module([self.kernel])

    def param(self, name: str, ty: Ty = I32) -> Value:
        value = Value(ty, name)
        self.kernel.params.append(value)
        return value

    def add(self, op: Op) -> Op:
        self.blocks[-1].ops.append(op)
        return op

    def emit(self, name: str, operands: list[Value | int], results: list[Ty], hint: str = "", /, **attrs: object) -> Op:
        values = [c(v) if isinstance(v, int) else v for v in operands]
        return self.add(Op(name, values, [Value(t, hint) for t in results], attrs, self.span))

    def op(self, op: str, /, *operands: Value | int, ty: Ty | None = None, hint: str = "", **attrs: object) -> Value:
        first = operands[0] if operands else c(0)
        if ty is None:
            ty = I1 if op in COMPARISONS else first.ty if isinstance(first, Value) else I32
        return self.emit(op, list(operands), [ty], hint, **attrs).result

    def store(self, pointer: Value, value: Value | int) -> None:
        self.emit("store", [pointer, value], [], align=4)

    def shared(self, name: str, size: int) -> Value:
        return self.op("shared.alloc", ty=ptr("shared"), hint=name, bytes=size, align=8, name=name)

    # pipelines

    def pipe(self, name: str, op: str, *operands: Value | int, stages: int, producer: bool = True, **attrs: object):
        where = {} if op in ("new", "step") else {"side": "full", "subs": 1, "sub": 0}
        results = [I32] * 3 if op == "step" else []
        attrs = {"pipeline": name, "method": op, "producer": producer, "stages": stages, **where, **attrs}
        made = self.emit("pipe." + op, list(operands), results, **attrs)
        for result, part in zip(made.results, ("index", "phase", "count"), strict=False):
            result.name = f"{name}.{part}"
        return made

    # control flow

    @contextmanager
    def region(self, op: Op, which: int = 0) -> Iterator[list[Value]]:
        self.blocks.append(op.blocks[which])
        yield op.blocks[which].params
        self.blocks.pop()

    def control(self, name: str, operands: list, results: list[Value], params: list[Value], **attrs: object) -> Op:
        op = self.emit(name, operands, [], **attrs)
        op.results = results
        op.blocks = [Block(params), Block()] if name == "if" else [Block(params)]
        return op

    def if_(self, condition: Value, *results: Value) -> Op:
        return self.control("if", [condition], list(results), [])

    def scope(self, *results: Value) -> Op:
        return self.control("scope", [], list(results), [])

    def loop(self, inits: list[Value | int], *results: Value, names: str = "") -> Op:
        params = [Value(self.typed(v), n) for v, n in zip(inits, names.split() or [""] * len(inits), strict=True)]
        return self.control("loop", inits, list(results), params)

    def for_(self, start: Value | int, stop: Value | int, *inits: Value | int, step: int = 1, names: str = "i") -> Op:
        hints = names.split() + [""] * (1 + len(inits) - len(names.split()))
        params = [Value(self.typed(v), n) for v, n in zip((start, *inits), hints, strict=True)]
        results = [Value(p.ty, p.name) for p in params[1:]]
        return self.control("for", [start, stop, *inits], results, params, step=step, signed=True)

    def typed(self, value: Value | int) -> Ty:
        return value.ty if isinstance(value, Value) else I32

    def yield_(self, *values: Value | int) -> None:
        self.emit("yield", list(values), [])

    def repeat(self, target: Op, *values: Value | int) -> None:
        self.emit("repeat", list(values), [], target=target)

    def leave(self, target: Op, *values: Value | int) -> None:
        self.emit("leave", list(values), [], target=target)

    def ret(self) -> None:
        self.emit("return", [], [])
