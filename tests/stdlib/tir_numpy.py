"""Runs a function's TIR on NumPy arrays: one element is one thread, and both sides of an If are computed.

It knows what mathematical functions are made of: arithmetic, comparisons, casts, If, Scope and the ways out of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxdsl.tir import Block, Const, Kernel, Op, Ty, Value

Array = np.ndarray[Any, Any]
FLOATS = {"f32": np.float32, "f64": np.float64}


def dtype(ty: Ty) -> Any:
    if ty.name == "i1":
        return np.bool_
    return FLOATS.get(ty.name) or np.dtype(f"i{ty.bits // 8}").type


def _unsigned(a: Array) -> Array:
    return a.view(f"u{a.dtype.itemsize}")


def _fma(a: Array, b: Array, c: Array) -> Array:
    """Rounded once: the product is exact in float64; the sum is rounded to odd there, then to float32."""
    assert a.dtype == np.float32
    p, q = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    s = p + q
    t = s - p
    lost = (p - (s - t)) + (q - t)
    bits = s.view(np.int64)
    inexact = (lost != 0) & np.isfinite(lost) & (bits & 1 == 0)
    towards = np.where((lost > 0) == (s > 0), 1, -1)
    return np.where(inexact, bits + towards, bits).view(np.float64).astype(np.float32)


def _shift(op: Callable[[Array, Array], Array], a: Array, n: Array, over: Array | int) -> Array:
    bits = a.dtype.itemsize * 8
    count = _unsigned(n)
    return np.where(count < bits, op(a, np.minimum(count, bits - 1).astype(a.dtype)), over).astype(a.dtype)


def _saturated(a: Array, ty: Ty) -> Array:
    low, high = -(2.0 ** (ty.bits - 1)), 2.0 ** (ty.bits - 1)
    whole = np.trunc(np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=high, neginf=low))
    inside = np.where((whole >= low) & (whole < high), whole, 0).astype(dtype(ty))
    limits = np.iinfo(dtype(ty))
    return np.where(whole >= high, limits.max, np.where(whole < low, limits.min, inside)).astype(dtype(ty))


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide,
    "fmin": np.fmin, "fmax": np.fmax, "eq": np.equal, "ne": np.not_equal,
    "lt.s": np.less, "le.s": np.less_equal, "gt.s": np.greater, "ge.s": np.greater_equal,
    "lt.u": lambda a, b: _unsigned(a) < _unsigned(b), "ge.u": lambda a, b: _unsigned(a) >= _unsigned(b),
    "floordiv.u": lambda a, b: (_unsigned(a) // _unsigned(b)).view(a.dtype),
    "feq": np.equal, "fne": np.not_equal, "flt": np.less, "fle": np.less_equal, "fgt": np.greater,
    "fge": np.greater_equal,
    "shl": lambda a, n: _shift(np.left_shift, a, n, 0),
    "shr.s": lambda a, n: _shift(np.right_shift, a, n, np.where(a < 0, -1, 0)),
    "shr.u": lambda a, n: _shift(np.right_shift, _unsigned(a), n, 0).view(a.dtype),
}  # fmt: skip
UNARY: dict[str, Callable[[Array], Array]] = {
    "fneg": np.negative, "fabs": np.abs, "not": np.logical_not, "trunc_f32": np.trunc, "floor_f32": np.floor,
    "ceil_f32": np.ceil, "rint_f32": np.rint, "sqrt_rn_f32": np.sqrt,
}  # fmt: skip


class Run:
    """One kernel over arrays: loads give the inputs by their position, the last store is the output."""

    def __init__(self, kernel: Kernel, *inputs: Array) -> None:
        self.inputs, self.size = inputs, len(inputs[0])
        self.values: dict[Value, Any] = {p: p for p in kernel.params}
        self.ends: dict[Op, list[tuple[Array, list[Array]]]] = {}
        self.pending = list(inputs)
        self.output: Array | None = None
        with np.errstate(all="ignore"):
            self.block(kernel.body, np.ones(self.size, bool))

    def get(self, value: Value) -> Any:
        if isinstance(value, Const):
            return np.full(self.size, value.value, dtype(value.ty))
        return self.values[value]

    def block(self, block: Block, mask: Array) -> tuple[Array, list[Array]]:
        """The lanes that reach the block's yield, and what they bring."""
        for op in block.ops:
            if op.name == "yield":
                return mask, [self.get(v) for v in op.operands]
            if op.name == "leave":
                self.ends[op.attrs["target"]].append((mask, [self.get(v) for v in op.operands]))
                return np.zeros(self.size, bool), []
            if op.name in ("return", "unreachable"):
                return np.zeros(self.size, bool), []
            mask = self.op(op, mask)
        return mask, []

    def op(self, op: Op, mask: Array) -> Array:
        name, given = op.name, op.operands
        if name in ("if", "scope"):
            ends = self.ends.setdefault(op, [])
            if name == "if":
                test = self.get(given[0])
                ends.append(self.block(op.blocks[0], mask & test))
                ends.append(self.block(op.blocks[1], mask & ~test))
            else:
                ends.append(self.block(op.blocks[0], mask))
            arrived = np.zeros(self.size, bool)
            results = [np.zeros(self.size, dtype(r.ty)) for r in op.results]
            for lanes, values in ends:
                arrived = arrived | lanes
                results = [np.where(lanes, new, old) for new, old in zip(values or results, results, strict=True)]
            self.values.update(zip(op.results, results, strict=True))
            return arrived
        if name == "load":
            self.values[op.result] = self.pending.pop(0)
        elif name == "store":
            self.output = self.get(given[1])
        elif name == "ptr.add":
            self.values[op.result] = given[0]
        else:
            self.values[op.result] = self.compute(op, [self.get(v) for v in given])
        return mask

    def compute(self, op: Op, args: list[Array]) -> Array:
        name, ty = op.name, op.result.ty
        if name in BINARY:
            return BINARY[name](*args)
        if name in UNARY:
            return UNARY[name](*args)
        if name == "fma":
            return _fma(*args)
        if name == "select":
            return np.where(*args)
        if name == "bitcast":
            return args[0].view(dtype(ty))
        if name in ("trunc", "ext.s", "fcast", "itof.s"):
            return args[0].astype(dtype(ty))
        if name == "ext.u":
            return (args[0] if args[0].dtype == bool else _unsigned(args[0])).astype(dtype(ty))
        if name == "itof.u":
            return _unsigned(args[0]).astype(dtype(ty))
        if name == "ftoi.s":
            return _saturated(args[0], ty)
        raise AssertionError(f"a mathematical function with an operation this does not know: {name}")
