"""Integers: literals, wrap-around, division, shifts, powers, conversions; and what may not be mixed."""

from __future__ import annotations

import pytest
from elaborate_support import diagnostics, where
from semantics import I8, I16, I32, I64, U8, U16, U32, U64, Argument, Int, evaluate

KERNEL = "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin], a: Int32, b: UInt32, i: Int, f: Float32, t: Bool):\n    "


def wrapped(value: int, bits: int, signed: bool) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("-1", -1), ("1_000_000", 1_000_000), ("0x7fff_ffff", 0x7FFFFFFF), ("0b1011", 11), ("0o17", 15),
        ("-0x8000_0000", -(1 << 31)), ("1 << 30", 1 << 30), ("(1 << 40) >> 38", 4), ("2 ** 10", 1024),
        ("7 // 2 - 7 % 2", 2), ("-7 // 2", -4), ("-7 % 2", 1), ("7 // -2", -4), ("~5", -6), ("6 & 3 | 8 ^ 1", 11),
        ("3 * (4 - 6)", -6), ("-2 ** 2", -4), ("2 ** 3 ** 2", 512), ("(1 << 100) // (1 << 98)", 4),
        ("7 >> 20_000", 0), ("-7 >> 20_000", -1),
    ],
)  # fmt: skip
def test_literals_are_exact_until_they_meet_a_type(text: str, value: int) -> None:
    assert evaluate(text, "Int32") == value


@pytest.mark.parametrize("number", [I8, I16, I32, I64, U8, U16, U32, U64])
@pytest.mark.parametrize("op", ["+", "-", "*"])
def test_overflow_wraps(number: type[Argument], op: str) -> None:
    name = number(0).type
    signed, bits = name[0] == "I", int(name.strip("UInt"))
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    for a, b in [(high, high), (low, high), (high, 1), (low, 1), (5, 3)]:
        expected = wrapped(eval(f"a {op} b"), bits, signed)
        assert evaluate(f"a {op} b", name, a=number(a), b=number(b)) == expected


SIGNED = [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5), (-8, 4), (1, 7), (-1, 7), (-(1 << 31), -1), (5, 0), (-5, 0)]


@pytest.mark.parametrize(("a", "b"), SIGNED)
def test_division_floors_and_slash_truncates(a: int, b: int) -> None:
    floor, rest = (wrapped(a // b, 32, True), a % b) if b else (0, 0)
    assert evaluate("a // b", "Int32", a=I32(a), b=I32(b)) == floor
    assert evaluate("a % b", "Int32", a=I32(a), b=I32(b)) == rest
    truncated = wrapped(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1), 32, True) if b else 0
    assert evaluate("a / b", "Int32", a=I32(a), b=I32(b)) == truncated


@pytest.mark.parametrize(("a", "b"), [(7, 2), (0xFFFFFFFF, 2), (0xFFFFFFFF, 0xFFFFFFFE), (3, 0x80000000), (9, 0)])
def test_unsigned_division(a: int, b: int) -> None:
    for op in ("//", "/"):
        assert evaluate(f"a {op} b", "UInt32", a=U32(a), b=U32(b)) == (a // b if b else 0)
    assert evaluate("a % b", "UInt32", a=U32(a), b=U32(b)) == (a % b if b else 0)


@pytest.mark.parametrize("amount", [0, 1, 7, 31, 32, 33, 100, -1])
def test_shifts_beyond_the_width_give_0_or_the_sign(amount: int) -> None:
    beyond = not 0 <= amount < 32
    assert evaluate("a << n", "Int32", a=I32(0x1234567), n=I32(amount)) == (
        0 if beyond else wrapped(0x1234567 << amount, 32, True)
    )
    assert evaluate("a >> n", "Int32", a=I32(-1000), n=I32(amount)) == (-1 if beyond else -1000 >> amount)
    if amount >= 0:
        assert evaluate("a >> n", "UInt32", a=U32(0xF0000000), n=U32(amount)) == (0 if beyond else 0xF0000000 >> amount)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a & b", 0b1000), ("a | b", 0b1110), ("a ^ b", 0b0110), ("~a", ~0b1100), ("-a", -12), ("+a", 12),
        ("a ** 3", 1728), ("a ** 0", 1), ("3 - a", -9), ("2 * a + 1", 25), ("a - -b", 22), ("100 // a", 8),
        ("100 % a", 4), ("1 << a", 4096), ("min(a, b)", 10), ("max(a, b, 11)", 12), ("abs(-a)", 12),
        ("a if a > b else b", 12), ("clamp(a, 0, 5)", 5), ("ceildiv(a, 5)", 3), ("align_up(a, 8)", 16),
    ],
)  # fmt: skip
def test_operators(expression: str, value: int) -> None:
    assert evaluate(expression, "Int32", a=I32(12), b=I32(10)) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a < b", False), ("a > b", True), ("a <= a", True), ("a >= b", True), ("a == b", False), ("a != b", True),
        ("b < a <= 12 < 13", True), ("b < a < 12", False), ("a > 3", True), ("a == 12", True),
    ],
)  # fmt: skip
def test_comparisons_chain(expression: str, value: bool) -> None:
    assert evaluate(expression, "Bool", a=I32(12), b=I32(-10)) is value


def test_comparisons_of_unsigned_integers() -> None:
    assert evaluate("a > b", "Bool", a=U32(0x80000000), b=U32(1)) is True
    assert evaluate("a > b", "Bool", a=U8(200), b=U8(100)) is True
    assert evaluate("a > b", "Bool", a=I8(-56), b=I8(100)) is False


@pytest.mark.parametrize(
    ("expression", "result", "value"),
    [
        ("Int64(a)", "Int64", -2), ("UInt32(a)", "UInt32", 0xFFFFFFFE), ("UInt64(a)", "UInt64", (1 << 64) - 2),
        ("Int8(a)", "Int8", -2), ("UInt8(a)", "UInt8", 254), ("Int(a)", "Int", -2), ("UInt(a)", "UInt", (1 << 64) - 2),
        ("Float32(a)", "Float32", -2.0), ("Bool(a)", "Bool", True), ("a.cast[DType.int16]()", "Int16", -2),
        ("UInt64(UInt32(a))", "UInt64", 0xFFFFFFFE), ("Int64(UInt32(a))", "Int64", 0xFFFFFFFE),
        ("Float64(UInt32(a))", "Float64", 4294967294.0), ("Int32(Int8(Int32(300) + a))", "Int32", 42),
    ],
)  # fmt: skip
def test_conversions(expression: str, result: str, value: object) -> None:
    assert evaluate(expression, result, a=I32(-2)) == value


def test_int_is_64_bits_wide() -> None:
    assert evaluate("a * a", "Int", a=Int(3_000_000_000)) == wrapped(9 * 10**18, 64, True)
    assert evaluate("a", "Int", a=Int(-(1 << 63))) == -(1 << 63)


@pytest.mark.parametrize(
    ("expression", "result", "value"),
    [
        ("Int32.MAX", "Int32", (1 << 31) - 1), ("Int32.MIN", "Int32", -(1 << 31)), ("UInt8.MAX", "UInt8", 255),
        ("UInt64.MAX", "UInt64", (1 << 64) - 1), ("Int8.MIN", "Int8", -128), ("Int.MAX", "Int", (1 << 63) - 1),
    ],
)  # fmt: skip
def test_limits(expression: str, result: str, value: int) -> None:
    assert evaluate(expression, result) == value


@pytest.mark.parametrize("name", ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"])
def test_a_literal_must_fit_its_type(name: str) -> None:
    signed, bits = name[0] == "I", int(name.strip("UInt"))
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    assert diagnostics(KERNEL + f"var x: {name} = {low}\n    var y: {name} = {high}") == []
    for value in (low - 1, high + 1):
        (problem,) = diagnostics(KERNEL + f"var x: {name} = {value}")
        assert where(problem) == ("E0303", 3, 15 + len(name))
        assert problem.message == f"{value} does not fit {name}"
        assert problem.help == f"{name} holds {low} to {high}"


AT_COMPILE_TIME = """
comptime N: Int = 24

def rows[S: Int]() -> Int32:
    return N // S
"""


@pytest.mark.parametrize("number", [I8, I16, I32, U8, U16, U32, U64])
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + N", 29), ("N - a", 19), ("a * N", 120), ("N // a", 4), ("N % a", 4), ("N >> a", 0), ("max(a, N)", 24),
        ("min(N, a)", 5), ("N if a < N else a", 24), ("a + size_of[Int]()", 13), ("ceildiv(N, a)", 5),
    ],
)  # fmt: skip
def test_an_int_of_compile_time_takes_the_type_that_it_meets(number: type[Argument], text: str, value: int) -> None:
    assert evaluate(text, number(0).type, AT_COMPILE_TIME, a=number(5)) == value


def test_an_int_of_compile_time_is_an_argument_a_result_and_a_bound() -> None:
    body = """
    var total: UInt32 = N
    for i in range(a, N, N // 4):
        total += i
    comptime for i in range(3):
        total += i * UInt32(rows[8]())
    return total
    """
    assert evaluate(body, "UInt32", AT_COMPILE_TIME, a=U32(2)) == 24 + (2 + 8 + 14 + 20) + 3 * (0 + 1 + 2)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("p[] = N * 100_000_000", "E0303", "2400000000 does not fit Int32"),
        ("var x = b + (N - 25)", "E0303", "-1 does not fit UInt32"),
        ("var x = f * N", "E0302", "`*` cannot mix Float32 and Int"),
        ("var x: Float32 = N", "E0301", "expected Float32, found Int"),
        ("var x = t or a == i", "E0302", "`==` cannot mix Int32 and Int"),
        ("var n = N; p[] = n", "E0301", "expected Int32, found Int"),
        ("for j in range(8): p[] = a + j", "E0302", "`+` cannot mix Int32 and Int"),
        ("p[] = thread_idx.x * N", "E0301", "expected Int32, found Int"),
    ],
)
def test_what_does_not_fit_or_is_not_of_compile_time_is_refused(text: str, code: str, words: str) -> None:
    (problem,) = diagnostics(f"{AT_COMPILE_TIME}\n{KERNEL}{text}\n")
    assert (problem.code, problem.message) == (code, words)
