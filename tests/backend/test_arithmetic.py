"""Arithmetic against Python's own, on the host: every edge where C or LLVM would be undefined."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from backend_kernels import Build
from host import Host, function
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxdsl.tir import F32, F64, I1, I8, I16, I32, I64, Const, Ty, Value

INTS = (I8, I16, I32, I64)


def wrap(value: int, bits: int) -> int:
    """Two's complement, signed."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def truncated(x: int, y: int) -> int:
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


# name -> the result for signed operands and the width; the caller wraps it
INTEGER: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda x, y, b: x + y,
    "sub": lambda x, y, b: x - y,
    "mul": lambda x, y, b: x * y,
    "and": lambda x, y, b: x & y,
    "or": lambda x, y, b: x | y,
    "xor": lambda x, y, b: x ^ y,
    "div.s": lambda x, y, b: truncated(x, y),
    "div.u": lambda x, y, b: truncated(unsigned(x, b), unsigned(y, b)),
    "floordiv.s": lambda x, y, b: x // y if y else 0,
    "mod.s": lambda x, y, b: x % y if y else 0,
    "floordiv.u": lambda x, y, b: unsigned(x, b) // unsigned(y, b) if y else 0,
    "mod.u": lambda x, y, b: unsigned(x, b) % unsigned(y, b) if y else 0,
    "shl": lambda x, y, b: x << y if 0 <= y < b else 0,
    "shr.u": lambda x, y, b: unsigned(x, b) >> y if 0 <= y < b else 0,
    "shr.s": lambda x, y, b: x >> y if 0 <= y < b else -(x < 0),
    "min.s": lambda x, y, b: min(x, y),
    "max.s": lambda x, y, b: max(x, y),
    "min.u": lambda x, y, b: min(unsigned(x, b), unsigned(y, b)),
    "max.u": lambda x, y, b: max(unsigned(x, b), unsigned(y, b)),
}

COMPARISONS: dict[str, Callable[[int, int, int], bool]] = {
    "eq": lambda x, y, b: x == y,
    "ne": lambda x, y, b: x != y,
    "lt.s": lambda x, y, b: x < y,
    "le.s": lambda x, y, b: x <= y,
    "gt.s": lambda x, y, b: x > y,
    "ge.s": lambda x, y, b: x >= y,
    "lt.u": lambda x, y, b: unsigned(x, b) < unsigned(y, b),
    "le.u": lambda x, y, b: unsigned(x, b) <= unsigned(y, b),
    "gt.u": lambda x, y, b: unsigned(x, b) > unsigned(y, b),
    "ge.u": lambda x, y, b: unsigned(x, b) >= unsigned(y, b),
}

FLOAT_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "feq": lambda x, y: x == y,
    "fne": lambda x, y: x != y,
    "flt": lambda x, y: x < y,
    "fle": lambda x, y: x <= y,
    "fgt": lambda x, y: x > y,
    "fge": lambda x, y: x >= y,
}

# operations with a short form for a constant second operand
BY_CONSTANT = ("div.s", "div.u", "floordiv.s", "mod.s", "floordiv.u", "mod.u", "shl", "shr.u", "shr.s")
CONSTANTS = (0, 1, -1, 2, -2, 3, -3, 7, 8, 31, 32, 33, 63, 64, 100, -128, 127)


def edges(bits: int) -> list[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    near = {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100}
    values = near | {-value for value in near} | {low, low + 1, low + 2, high, high - 1, high // 3}
    return sorted(value for value in values if low <= value <= high)


def binary(name: str, ty: Ty, result: Ty) -> Any:
    return function(f"{name}_{ty}", [ty, ty], result, lambda k, v: k(name, result, *v))


def by_constant(name: str, ty: Ty, constant: int) -> Any:
    def body(k: Build, values: list[Value]) -> Value:
        return k(name, ty, values[0], Const(ty, wrap(constant, ty.bits)))

    return function(f"{name}_{ty}_by_{constant}", [ty], ty, body)


def unary(name: str, source: Ty, result: Ty) -> Any:
    return function(f"{name}_{source}_{result}", [source], result, lambda k, v: k(name, result, *v))


@pytest.fixture(scope="module")
def host() -> Host:
    kernels = [binary(name, ty, ty) for name in INTEGER for ty in INTS]
    kernels += [binary(name, ty, I1) for name in COMPARISONS for ty in INTS]
    kernels += [binary(name, ty, I1) for name in FLOAT_COMPARISONS for ty in (F32, F64)]
    kernels += [by_constant(name, ty, c) for name in BY_CONSTANT for ty in (I8, I32) for c in CONSTANTS]
    kernels += [unary(f"ftoi.{sign}", source, to) for sign in "su" for source in (F32, F64) for to in INTS]
    kernels += [unary(f"itof.{sign}", source, to) for sign in "su" for source in INTS for to in (F32, F64)]
    kernels += [unary("abs.s", ty, ty) for ty in INTS]
    kernels += [unary(f"ext.{sign}", I8, I32) for sign in "su"] + [unary("trunc", I64, I8)]
    kernels += [unary("not", I1, I1), unary("bitcast", F32, I32)]
    kernels += [binary(name, F64, F64) for name in ("ffloordiv", "fmod", "fdiv", "fmin", "fmax")]
    return Host(kernels)


def same(name: str, got: int, expected: int, bits: int, *arguments: int) -> None:
    assert got == wrap(expected, bits), f"{name}{arguments}: {got}, expected {wrap(expected, bits)}"


@pytest.mark.parametrize("ty", INTS, ids=str)
@pytest.mark.parametrize("name", INTEGER)
def test_integer_edges(host: Host, name: str, ty: Ty) -> None:
    for x, y in itertools.product(edges(ty.bits), repeat=2):
        same(name, host(f"{name}_{ty}", x, y), INTEGER[name](x, y, ty.bits), ty.bits, x, y)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(INTEGER)), st.sampled_from(INTS), st.data())
def test_integers_anywhere(host: Host, name: str, ty: Ty, data: st.DataObject) -> None:
    numbers = st.integers(-(1 << (ty.bits - 1)), (1 << (ty.bits - 1)) - 1)
    x, y = data.draw(numbers), data.draw(numbers)
    same(name, host(f"{name}_{ty}", x, y), INTEGER[name](x, y, ty.bits), ty.bits, x, y)


@pytest.mark.parametrize("ty", (I8, I32), ids=str)
@pytest.mark.parametrize("name", BY_CONSTANT)
def test_constant_operands(host: Host, name: str, ty: Ty) -> None:
    for x, constant in itertools.product(edges(ty.bits), CONSTANTS):
        got = host(f"{name}_{ty}_by_{constant}", x)
        same(name, got, INTEGER[name](x, wrap(constant, ty.bits), ty.bits), ty.bits, x, constant)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(host: Host, name: str) -> None:
    for ty in INTS:
        for x, y in itertools.product(edges(ty.bits), repeat=2):
            assert host(f"{name}_{ty}", x, y) is COMPARISONS[name](x, y, ty.bits), (ty, x, y)


FLOATS = (0.0, -0.0, 1.0, -1.5, 0.49, 127.5, 128.0, -128.9, 255.9, 3e9, -3e9, 1e19, -1e19, 1e30, math.inf, -math.inf)


@pytest.mark.parametrize("name", FLOAT_COMPARISONS)
def test_float_comparisons_with_nan(host: Host, name: str) -> None:
    for x, y in itertools.product((*FLOATS[:5], math.nan), repeat=2):
        assert host(f"{name}_f64", x, y) is FLOAT_COMPARISONS[name](x, y), (x, y)


def to_int(value: float, bits: int, signed: bool) -> int:
    """Saturating, towards zero, NaN gives 0."""
    if math.isnan(value):
        return 0
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if math.isinf(value):
        return high if value > 0 else low
    return min(max(math.trunc(value), low), high)


@pytest.mark.parametrize("to", INTS, ids=str)
@pytest.mark.parametrize("source", (F32, F64), ids=str)
@pytest.mark.parametrize("sign", "su")
def test_float_to_int_saturates(host: Host, sign: str, source: Ty, to: Ty) -> None:
    for value in (*FLOATS, math.nan):
        exact = struct.unpack("f", struct.pack("f", value))[0] if source == F32 else value
        got = host(f"ftoi.{sign}_{source}_{to}", exact)
        same("ftoi", got, to_int(exact, to.bits, sign == "s"), to.bits)


@pytest.mark.parametrize("source", INTS, ids=str)
def test_int_to_float(host: Host, source: Ty) -> None:
    for value in edges(source.bits):
        assert host(f"itof.s_{source}_f64", value) == float(value)
        assert host(f"itof.u_{source}_f64", value) == float(unsigned(value, source.bits))


def test_unary(host: Host) -> None:
    for ty in INTS:
        for value in edges(ty.bits):
            same("abs", host(f"abs.s_{ty}_{ty}", value), abs(value), ty.bits, value)
    assert host("ext.s_i8_i32", -1) == -1
    assert host("ext.u_i8_i32", -1) == 255
    assert host("trunc_i64_i8", 0x1FF) == -1
    assert host("not_i1_i1", True) is False
    assert host("bitcast_f32_i32", 1.0) == 0x3F800000


@pytest.mark.parametrize(("x", "y"), list(itertools.product((7.5, -7.5, 0.0, 1e300), (2.0, -2.0, 0.5, 3.25))))
def test_float_floor_division(host: Host, x: float, y: float) -> None:
    assert host("ffloordiv_f64", x, y) == math.floor(x / y)
    assert host("fmod_f64", x, y) == float(Fraction(x) - math.floor(x / y) * Fraction(y))  # rounded once


def test_float_minimum_ignores_nan(host: Host) -> None:
    assert host("fmin_f64", math.nan, 1.0) == 1.0
    assert host("fmax_f64", 2.0, math.nan) == 2.0
    assert host("fdiv_f64", 1.0, 0.0) == math.inf
