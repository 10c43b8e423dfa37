"""A small builder of typed IR for tests, and the kernels that the tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ptxdsl.backend.emit_ptx import Emitted, emit
from ptxdsl.lower.module import lower
from ptxdsl.options import Options
from ptxdsl.signature import KernelSignature, Param, PointerParam, ScalarParam
from ptxdsl.source import Source, Span
from ptxdsl.tir import F32, I1, I32, Block, Const, Kernel, Module, Op, Ty, Value, ptr

SOURCE = Source("test.pdsl", "\n".join(f"line {n}" for n in range(1, 4000)) + "\n")
DTYPES = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16", "bf16": "bfloat16",
    "f32": "float32", "f64": "float64", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
}  # fmt: skip


def line_span(line: int) -> Span:
    start = SOURCE.line_starts[line - 1]
    return Span(SOURCE, start, start + len(SOURCE.line(line)))


def i32(value: int) -> Const:
    return Const(I32, value)


class Build:
    """Appends operations to the innermost block; every operation gets a line of its own."""

    def __init__(self, name: str = "k", **signature: Any) -> None:
        self.name = name
        self.body = Block()
        self.blocks = [self.body]
        self.params: list[Value] = []
        self.signature_params: list[Param] = []
        self.signature = signature
        self.line = 1

    def pointer(self, name: str, ty: Ty = F32) -> Value:
        value = Value(ptr("global"), name)
        self.params.append(value)
        self.signature_params.append(PointerParam(name, DTYPES[ty.name], ty.bytes, ty.bytes, True))
        return value

    def scalar(self, name: str, ty: Ty = I32) -> Value:
        value = Value(ty, name)
        self.params.append(value)
        self.signature_params.append(ScalarParam(name, DTYPES[ty.name]))
        return value

    def op(self, name: str, operands: Sequence[Value] = (), types: Sequence[Ty] = (), /, **attrs: Any) -> Op:
        self.line += 1
        op = Op(name, list(operands), [Value(ty) for ty in types], attrs, line_span(self.line))
        self.blocks[-1].ops.append(op)
        return op

    def __call__(self, name: str, ty: Ty | None, /, *operands: Value, **attrs: Any) -> Value:
        """An operation with one result (or, of type None, without): gives the result."""
        op = self.op(name, operands, [] if ty is None else [ty], **attrs)
        return op.results[0] if ty is not None else Const(I1, 0)

    def at(self, pointer: Value, index: Value, size: int = 4) -> Value:
        return self("ptr.add", pointer.ty, pointer, index, scale=size)

    def load(self, pointer: Value, ty: Ty = F32) -> Value:
        return self("load", ty, pointer, align=ty.bytes)

    def store(self, pointer: Value, value: Value) -> None:
        self("store", None, pointer, value, align=value.ty.bytes)

    @contextmanager
    def block(self, block: Block) -> Iterator[None]:
        self.blocks.append(block)
        yield
        self.blocks.pop()

    def when(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value] | None],
        otherwise: Callable[[], Sequence[Value] | None] = lambda: None,
        types: Sequence[Ty] = (),
    ) -> list[Value]:
        op = self.op("if", [condition], types)
        for arm in (then, otherwise):
            block = Block()
            op.blocks.append(block)
            with self.block(block):
                values = arm()
                if block.terminator is None:
                    self.op("yield", values or ())
        return op.results

    def for_(
        self,
        start: Value,
        stop: Value,
        inits: Sequence[Value],
        body: Callable[..., Sequence[Value] | None],
        step: int = 1,
        signed: bool = True,
    ) -> list[Value]:
        """``body(op, index, *carried)`` gives the next carried values, or ends its block itself."""
        op = self.op("for", [start, stop, *inits], [v.ty for v in inits], step=step, signed=signed)
        block = Block([Value(start.ty), *(Value(v.ty) for v in inits)])
        op.blocks.append(block)
        with self.block(block):
            values = body(op, *block.params)
            if block.terminator is None:
                self.op("repeat", values or (), target=op)
        return op.results

    def loop(self, inits: Sequence[Value], body: Callable[..., Any], types: Sequence[Ty] = ()) -> list[Value]:
        op = self.op("loop", inits, types)
        block = Block([Value(v.ty) for v in inits])
        op.blocks.append(block)
        with self.block(block):
            body(op, *block.params)
        return op.results

    def kernel(self) -> Kernel:
        signature = KernelSignature(self.name, tuple(self.signature_params), **self.signature)
        return Kernel(self.name, self.params, self.body, signature, line_span(1))

    def module(self) -> Module:
        return Module([self.kernel()])


def compile_tir(module: Module, **options: Any) -> Emitted:
    chosen = Options(**options)
    return emit(lower(module, chosen), module, chosen)


def ptx_of(build: Build, **options: Any) -> str:
    return compile_tir(build.module(), **options).ptx


def body_of(ptx: str) -> list[str]:
    """The instructions of the first kernel, one a line, blanks squeezed."""
    inside = ptx[ptx.index("{", ptx.index(".entry")) :].splitlines()
    lines = [" ".join(line.split()) for line in inside]
    return [line for line in lines if line and line not in "{}" and not line.startswith(".")]


PIPE: dict[str, Any] = {"pipeline": "p", "stages": 3}


def kernel_a(unrolled: bool, stages: int = 3) -> Build:
    """A producer warp copies through a ring of shared stages to a consumer warp."""
    k = Build("kernel_a")
    src, res, n = k.pointer("src"), k.pointer("res"), k.scalar("n")
    shared = ptr("shared")
    bars = k("shared.alloc", shared, bytes=16 * stages, align=8, name="bars")
    buf = k("shared.alloc", shared, bytes=128 * stages, align=128, name="buf")
    tid = k("tid_x", I32)

    def initialise() -> None:
        for number in range(2 * stages):
            k("mbarrier_init", None, k.at(bars, i32(number), 8), i32(32))

    k.when(k("eq", I1, tid, i32(0)), initialise)
    k("barrier", None)
    lane = k("mod.s", I32, tid, i32(32))
    empty = k.at(bars, i32(stages), 8)
    attrs = {"pipeline": "p", "stages": stages, "subs": 1, "sub": 0}

    def index_of(i: Value) -> Value:
        return k("add", I32, k("mul", I32, i, i32(32), nsw=True), lane, nsw=True)

    def produce(i: Value, index: Value, phase: Value) -> None:
        k("pipe.wait", None, empty, index, phase, method="acquire", producer=True, side="empty", **attrs)
        value = k.load(k.at(src, index_of(i)))
        k.store(k.at(buf, index_of(index)), value)
        k("pipe.arrive", None, bars, index, method="commit", producer=True, side="full", **attrs)

    def consume(i: Value, index: Value, phase: Value) -> None:
        k("pipe.wait", None, bars, index, phase, method="wait", producer=False, side="full", **attrs)
        k.store(k.at(res, index_of(i)), k.load(k.at(buf, index_of(index))))
        k("pipe.arrive", None, empty, index, method="release", producer=False, side="empty", **attrs)

    def role(work: Callable[[Value, Value, Value], None], phase: int, producer: bool) -> None:
        make = _unrolled_role if unrolled else _counter_role
        make(k, n, stages, work, phase, producer)

    k.when(
        k("lt.u", I1, tid, i32(32)),
        lambda: role(produce, 1, True),
        lambda: role(consume, 0, False),
    )
    return k


def _counter_role(k: Build, n: Value, stages: int, work: Any, phase: int, producer: bool) -> None:
    def body(_: Op, i: Value, index: Value, parity: Value, count: Value) -> list[Value]:
        work(i, index, parity)
        attrs = {"pipeline": "p", "method": "step", "producer": producer, "stages": stages}
        return k.op("pipe.step", [index, parity, count], [I32] * 3, **attrs).results

    k.for_(i32(0), n, [i32(0), i32(phase), i32(0)], body)


def _unrolled_role(k: Build, n: Value, stages: int, work: Any, phase: int, producer: bool) -> None:
    """The ring unrolled: constant indices, the phase flipped once a turn, after each stage a test of what is left."""

    def turn() -> None:
        def body(op: Op, i: Value, left: Value, parity: Value) -> None:
            def stage(number: int, i: Value) -> None:
                work(i, i32(number), parity)
                following = k("add", I32, i, i32(1), nsw=True)

                def go_on() -> None:
                    if number + 1 < stages:
                        stage(number + 1, following)
                    else:
                        rest = k("sub", I32, left, i32(stages))
                        k.op("repeat", [following, rest, k("xor", I32, parity, i32(1))], target=op)

                k.when(k("ne", I1, left, i32(number + 1)), go_on, lambda: k.op("leave", [], target=op) and None)

            stage(0, i)
            k.op("unreachable")

        k.loop([i32(0), n, i32(phase)], body)

    k.when(k("lt.s", I1, i32(0), n), turn)


def pipe_kernel(body: Callable[[Build, Value, Value], None]) -> Build:
    k = Build()
    index = k.scalar("index")
    bars = k("shared.alloc", ptr("shared"), bytes=128, align=8, name="bars")
    body(k, bars, index)
    return k
