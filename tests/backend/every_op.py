"""Kernels that between them use every operation of the typed IR with every type that it takes."""

from __future__ import annotations

from collections.abc import Iterator

from backend_kernels import Build, i32

from ptxdsl.tir import BF16, F8E4M3, F8E5M2, F16, F32, F64, I1, I8, I16, I32, I64, Const, Ty, Value, ptr

INTS = (I8, I16, I32, I64)
FLOATS = (F16, BF16, F32, F64)
FLOAT8 = (F8E4M3, F8E5M2)
INTEGER_BINARY = (
    "add", "sub", "mul", "div.s", "div.u", "floordiv.s", "mod.s", "floordiv.u", "mod.u", "and", "or", "xor", "shl",
    "shr.s", "shr.u", "min.s", "min.u", "max.s", "max.u",
)  # fmt: skip
FLOAT_BINARY = ("fadd", "fsub", "fmul", "fdiv", "ffloordiv", "fmod", "fmin", "fmax")
INT_COMPARE = ("eq", "ne", "lt.s", "le.s", "gt.s", "ge.s", "lt.u", "le.u", "gt.u", "ge.u")
FLOAT_COMPARE = ("feq", "fne", "flt", "fle", "fgt", "fge")
LANES = (1, 2, 4)


class Sink(Build):
    """A kernel whose every result is stored, volatile, so that nothing is optimised away."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.memory = self.pointer("memory", I64)

    def get(self, ty: Ty) -> Value:
        return self("load", ty, self.memory, align=1 if ty.bytes == 1 else 2 if ty.bits < 32 else 4, volatile=True)

    def put(self, value: Value) -> None:
        self("store", None, self.memory, value, align=min(value.ty.scalar.bytes, 8), volatile=True)


def bools(ty: Ty) -> Ty:
    return Ty("i1", ty.lanes)


def arithmetic() -> Iterator[Sink]:
    for scalar in (*INTS, *FLOATS):
        k = Sink(f"arithmetic_{scalar}")
        for lanes in LANES:
            ty = Ty(scalar.name, lanes)
            x, y, z = k.get(ty), k.get(ty), k.get(ty)
            for name in INTEGER_BINARY if scalar.is_int else FLOAT_BINARY:
                k.put(k(name, ty, x, y))
            for name in ("abs.s",) if scalar.is_int else ("fneg", "fabs"):
                k.put(k(name, ty, x))
            if scalar.is_float:
                k.put(k("fma", ty, x, y, z))
            for name in INT_COMPARE if scalar.is_int else FLOAT_COMPARE:
                condition = k(name, bools(ty), x, y)
                k.put(k("select", ty, k("not", bools(ty), condition), z, x))
        yield k


def conversions(float8: bool) -> Iterator[Sink]:
    k = Sink("conversions")
    for lanes in (1, 2):
        for source in (*INTS, *FLOATS, *(FLOAT8 if float8 else ())):
            x = k.get(Ty(source.name, lanes))
            for to in (*INTS, *FLOATS, *(FLOAT8 if float8 else ())):
                ty = Ty(to.name, lanes)
                if source.is_int and to.is_int:
                    for name in ("trunc",) if to.bits < source.bits else ("ext.s", "ext.u"):
                        k.put(k(name, ty, x))
                elif source.is_int or to.is_int:
                    for sign in "su":
                        k.put(k(f"{'itof' if source.is_int else 'ftoi'}.{sign}", ty, x))
                else:
                    k.put(k("fcast", ty, x))
    for source, to in ((F32, I32), (I64, F64), (BF16, I16), (Ty("f16", 2), I32), (I64, Ty("i16", 4)), (F8E4M3, I8)):
        k.put(k("bitcast", to, k.get(source)))
    yield k


def vectors() -> Iterator[Sink]:
    k = Sink("vectors")
    index = k.scalar("index")
    for scalar in (*INTS, *FLOATS, *FLOAT8, I1):
        for lanes in (2, 3, 4, 8):
            ty = Ty(scalar.name, lanes)
            x = k.get(scalar)
            v = k("vec.splat", ty, x)
            w = k("vec.build", ty, *[k.get(scalar) for _ in range(lanes)])
            k.put(k("vec.extract", scalar, w, index))
            k.put(k("vec.extract", scalar, w, i32(1)))
            w = k("vec.insert", ty, w, x, index)
            k.put(k("vec.shuffle", ty, v, w, mask=[*range(lanes, 0, -1)]))
            k.put(k("vec.shuffle", Ty(scalar.name, 2), v, w, mask=[0, lanes]))
            k.put(k("vec.shuffle", scalar, v, w, mask=[lanes + 1]))
    yield k


def constants() -> Iterator[Sink]:
    k = Sink("constants")
    numbers = (0.0, -0.0, 1.5, -448.0, 65504.0, 1e-8, 1e300, float("inf"), float("nan"), 1 / 3)
    for scalar in (*FLOATS, *FLOAT8):
        for number in numbers:
            k.put(Const(scalar, number))
        k.put(Const(Ty(scalar.name, 2), (1.0, -2.0)))
    for scalar in INTS:
        k.put(Const(scalar, -(1 << (scalar.bits - 1))))
        k.put(Const(Ty(scalar.name, 4), (1, -2, 3, -4)))
    k.put(Const(I1, 1))
    yield k


def pointers() -> Iterator[Sink]:
    k = Sink("pointers")
    n, wide = k.scalar("n"), k.scalar("wide", I64)
    shared = k("shared.alloc", ptr("shared"), bytes=256, align=16, name="tile 1")
    dynamic = k("shared.dynamic", ptr("shared"), align=128)
    local = k("alloca", ptr("local"), bytes=64, align=8)
    for pointer in (k.memory, shared, dynamic, local):
        for index in (n, wide, i32(3)):
            for unsigned in (False, True):
                place = k("ptr.add", pointer.ty, pointer, index, scale=4, offset=8, unsigned=unsigned)
                k.store(place, i32(1))
                k.put(k.load(place, I32))
        generic = k("ptr.cast", ptr("generic"), pointer)
        back = k("ptr.cast", pointer.ty, generic)
        k.put(k.load(k("ptr.add", ptr("generic"), generic, n, scale=1), I8))
        k.put(k.load(back, I64))
        k.put(k("ptr.toint", I64, pointer))
        k.put(k("ptr.toint", I64, generic))
    cluster = k("ptr.cast", ptr("cluster"), shared)
    k.put(k("ptr.toint", I32, cluster))
    k.put(k.load(k("int.toptr", ptr("shared"), n), F32))
    k.put(k.load(k("int.toptr", ptr("global"), wide), I1))
    k.store(k("int.toptr", ptr("generic"), wide), Const(I1, 1))
    yield k


def controls() -> Iterator[Sink]:
    k = Sink("controls")
    n = k.scalar("n")
    for signed in (True, False):
        for step in (1, -1, 2, -3):
            (total,) = k.for_(i32(0), n, [i32(0)], lambda _, i, s: [k("add", I32, s, i)], step=step, signed=signed)
            k.put(total)

    def body(op: object, i: Value) -> None:
        k.when(
            k("gt.s", I1, i, n),
            lambda: k.op("leave", [i], target=op) and None,
            lambda: k.op("repeat", [k("add", I32, i, i32(1))], target=op) and None,
        )
        k.op("unreachable")

    k.put(k.loop([i32(0)], body, [I32])[0])
    k.put(k.when(k("eq", I1, n, i32(1)), lambda: [i32(7)], lambda: [n], [I32])[0])
    k("assert", None, k("ne", I1, n, i32(9)), message='n was "9"\n')
    wide = k("ext.s", I64, n)
    k("print", None, n, wide, Const(F64, 1.5), format="n = %d %lld %f\n")
    k("print", None, format="done\n")
    k.when(k("eq", I1, n, i32(77)), lambda: k("trap", None) and None)
    k.when(k("eq", I1, n, i32(78)), lambda: k.op("return") and None)
    k.put(n)
    yield k
