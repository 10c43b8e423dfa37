"""Floats: rounding of literals, arithmetic at the edges, conversions both ways, the small formats."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import pytest
from semantics import BF16, F16, F32, F64, I32, U32, evaluate

INF, NAN = math.inf, math.nan
KERNEL = "@kernel\ndef k(p: Pointer[Float32, MutAnyOrigin], x: Float32, h: Float16, d: Float64):\n    "


def single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


@pytest.mark.parametrize(
    ("expression", "result", "value"),
    [
        ("0.1", "Float32", single(0.1)), ("0.1", "Float64", 0.1), ("1e-3", "Float64", 0.001),
        ("1_0.5", "Float32", 10.5),
        ("7 / 2", "Float32", 3.5), ("1 / 3", "Float64", 1 / 3), ("2 ** -1", "Float32", 0.5),
        ("1.5 * 2", "Float32", 3.0),
        ("3", "Float32", 3.0), ("0.1 + 0.2", "Float64", 0.3), ("16777217", "Float32", 16777216.0),
        ("-0.0", "Float32", -0.0), ("-(-0.0)", "Float32", 0.0), ("-0", "Float32", 0.0), ("5.5 // 2", "Float32", 2.0),
        ("-5.5 % 2", "Float32", 0.5), ("1e-50", "Float32", 0.0),
    ],
)  # fmt: skip
def test_literals_are_exact_and_rounded_once(expression: str, result: str, value: float) -> None:
    assert repr(evaluate(expression, result)) == repr(value)


@pytest.mark.parametrize(
    ("expression", "a", "b", "value"),
    [
        ("a + b", 0.1, 0.2, single(single(0.1) + single(0.2))), ("a - b", 1.0, 3.0, -2.0), ("a * b", 1e30, 1e30, INF),
        ("a / b", 1.0, 3.0, single(1 / 3)), ("a / b", 1.0, 0.0, INF), ("a / b", -1.0, 0.0, -INF),
        ("a / b", 0.0, 0.0, NAN), ("a // b", 7.5, 2.0, 3.0), ("a // b", -7.5, 2.0, -4.0), ("a % b", 7.5, 2.0, 1.5),
        ("a % b", -7.5, 2.0, 0.5), ("a % b", 7.5, -2.0, -0.5), ("-a", 0.0, 0.0, -0.0), ("min(a, b)", 1.0, NAN, 1.0),
        ("max(a, b)", NAN, 2.0, 2.0), ("abs(a)", -3.5, 0.0, 3.5), ("a ** 3", 1.5, 0.0, 3.375),
        ("a ** 0", 9.0, 0.0, 1.0),
        ("fma(a, b, a)", 2.0, 3.0, 8.0), ("2 - a", 0.5, 0.0, 1.5), ("1 / a", 4.0, 0.0, 0.25),
        ("a * 0.5", 3.0, 0.0, 1.5),
    ],
)  # fmt: skip
def test_arithmetic(expression: str, a: float, b: float, value: float) -> None:
    assert repr(evaluate(expression, "Float32", a=F32(single(a)), b=F32(single(b)))) == repr(value)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a == b", False), ("a != b", True), ("a < b", False), ("a >= b", False), ("a == a", False),
        ("not (a == a)", True),
    ],
)  # fmt: skip
def test_nothing_equals_nan(expression: str, value: bool) -> None:
    assert evaluate(expression, "Bool", a=F32(NAN), b=F32(1.0)) is value


@pytest.mark.parametrize(
    ("x", "int32", "uint8", "int64"),
    [
        (2.9, 2, 2, 2), (-2.9, -2, 0, -2), (1e10, (1 << 31) - 1, 255, 10**10), (-1e10, -(1 << 31), 0, -(10**10)),
        (INF, (1 << 31) - 1, 255, (1 << 63) - 1), (-INF, -(1 << 31), 0, -(1 << 63)), (NAN, 0, 0, 0),
        (255.9, 255, 255, 255),
    ],
)  # fmt: skip
def test_float_to_integer_saturates(x: float, int32: int, uint8: int, int64: int) -> None:
    assert evaluate("Int32(x)", "Int32", x=F64(x)) == int32
    assert evaluate("UInt8(x)", "UInt8", x=F64(x)) == uint8
    assert evaluate("x.cast[DType.int64]()", "Int64", x=F64(x)) == int64


@pytest.mark.parametrize(
    ("expression", "result", "value"),
    [
        ("Float32(n)", "Float32", 16777216.0), ("Float64(n)", "Float64", 16777217.0), ("Float16(n)", "Float16", INF),
        ("BFloat16(n)", "BFloat16", 16777216.0), ("Float32(Float16(2049.0))", "Float32", 2048.0),
        ("Float32(BFloat16(257.0))", "Float32", 256.0), ("Float32(Float8_e4m3fn(1000.0))", "Float32", 448.0),
        ("Float32(Float8_e5m2(3.3))", "Float32", 3.5), ("Float32(Float16(65519.0))", "Float32", 65504.0),
        ("Bool(Float32(0.5))", "Bool", True), ("Bool(Float32(0.0))", "Bool", False),
        ("Float32(1.9)", "Float32", single(1.9)),
        ("Int32(-1.9)", "Int32", -1), ("Float32(True)", "Float32", 1.0),
    ],
)  # fmt: skip
def test_conversions(expression: str, result: str, value: object) -> None:
    assert evaluate(expression, result, n=I32(16777217)) == value


def test_unsigned_integers_convert_as_such() -> None:
    assert evaluate("Float64(n)", "Float64", n=U32(0xFFFFFFFF)) == 4294967295.0


@pytest.mark.parametrize(
    ("value", "bits"), [(1.0, 0x3F800000), (-0.0, -0x80000000), (0.1, 0x3DCCCCCD), (INF, 0x7F800000)]
)
def test_bitcast_keeps_the_bits(value: float, bits: int) -> None:
    assert evaluate("bitcast[DType.int32](x)", "Int32", x=F32(single(value))) == bits
    assert repr(evaluate("bitcast[DType.float32](n)", "Float32", n=I32(bits))) == repr(single(value))


def test_half_precision_rounds_after_each_operation() -> None:
    assert evaluate("a + b", "Float16", a=F16(2048.0), b=F16(1.0)) == 2048.0
    assert evaluate("a * b", "BFloat16", a=BF16(3.0), b=BF16(1.0078125)) == 3.03125
    exact = Fraction(3) * Fraction(1.0078125)
    assert exact != Fraction(3.03125)


@pytest.mark.parametrize(
    ("expression", "result", "value"),
    [
        ("Float32.MAX_FINITE", "Float32", 3.4028234663852886e38), ("Float16.MIN_FINITE", "Float16", -65504.0),
        ("Float32.MAX", "Float32", INF), ("Float64.MIN", "Float64", -INF),
    ],
)  # fmt: skip
def test_limits(expression: str, result: str, value: float) -> None:
    assert repr(evaluate(expression, result)) == repr(value)


def test_a_literal_without_type_is_float64() -> None:
    assert evaluate("var x = 0.1\nreturn x", "Float64") == 0.1
