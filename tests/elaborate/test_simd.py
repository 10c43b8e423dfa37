"""SIMD: construction, lanes, arithmetic, comparisons, select, slices, joins and reductions."""

from __future__ import annotations

import pytest
from semantics import F32, I32, I64, Argument, Bool, Int, evaluate

VECTOR = "var v = SIMD[DType.int32, 4](a, 20, 30, 40)\n"
KERNEL = (
    "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin], n: Int32, v: Int32):\n"
    "    var a = SIMD[DType.int32, 4](1, 2, 3, n)\n    var f = SIMD[DType.float32, 4](1.5)\n    "
)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("return v[0] + v[3]", 50), ("v[1] = 7\nreturn v[1] + v[2]", 37), ("v[2] += a\nreturn v[2]", 40),
        ("return (v + v)[1]", 40), ("return (v + 1)[3]", 41), ("return (2 * v)[2]", 60), ("return (a - v)[1]", -10),
        ("return (-v)[0]", -10), ("return (v // 3)[1]", 6), ("return (v << 2)[0]", 40), ("return (~v)[0]", -11),
        ("return v.reduce_add()", 100), ("return v.reduce_max() - v.reduce_min()", 30),
        ("return v.reduce_mul()", 240000),
        ("return (v & 12).reduce_or()", 12), ("return v.reduce_and()", 0),
        ("return v.slice[2]()[1]", 20), ("return v.slice[2, offset=2]()[0]", 30), ("return v.slice[1, offset=3]()", 40),
        ("return v.join(v * 2)[5]", 40), ("return v.join(v).reduce_add()", 200), ("return Int32(len(v))", 4),
        ("return v.gt(25).select(v, -v).reduce_add()", 40),
        ("return v.eq(SIMD[DType.int32, 4](a)).cast[DType.int32]()[0]", 1),
        ("return Int32(v == v)", 1), ("return Int32(v != v + 0)", 0), ("return Int32(v == v + 1)", 0),
        ("return min(v, 25).reduce_max()", 25), ("return max(v, SIMD[DType.int32, 4](25))[0]", 25),
        ("return abs(-v)[3]", 40), ("return v.clamp(15, 35).reduce_add()", 100), ("return v.fma(v, v)[0]", 110),
        ("return (v ** 2)[1]", 400), ("return v.cast[DType.int8]()[3].cast[DType.int32]()", 40),
        ("return Int32(SIMD[DType.float32, 4](v)[2])", 30), ("var w = v\nw[0] = 99\nreturn v[0] + w[0]", 109),
        ("return SIMD[DType.int32, 2](a, a)[1]", 10), ("return SIMD[DType.int32](1, 2, a, 3)[2]", 10),
        ("return SIMD(a, 5)[1]", 5), ("return SIMD[DType.int32, 8]()[7]", 0), ("return SIMD[DType.int32, 4](7)[3]", 7),
        ("v = 3\nreturn v.reduce_add()", 12), ("var s: SIMD[DType.int32, 4] = a\nreturn s[2]", 10),
        ("v, _ = v + 1, 3\nreturn v[0]", 11), ("return Int32(v.size)", 4),
        ("return Int32(v.dtype == DType.int32)", 1),
    ],
)  # fmt: skip
def test_vectors_of_integers(body: str, value: int) -> None:
    assert evaluate(VECTOR + body, "Int32", a=I32(10)) == value


@pytest.mark.parametrize("index", range(4))
@pytest.mark.parametrize("kind", [Int, I32, I64])
def test_lanes_are_chosen_at_run_time(index: int, kind: type[Argument]) -> None:
    body = VECTOR + "v[i] += 1\nvar w = v\nw[3 - i] = 0\nreturn v[i] * 1000 + w.reduce_add()"
    lanes = [10, 20, 30, 40]
    lanes[index] += 1
    chosen = lanes[index]
    lanes[3 - index] = 0
    assert evaluate(body, "Int32", a=I32(10), i=kind(index)) == chosen * 1000 + sum(lanes)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("return v.reduce_add()", 10.0), ("return (v / 2)[0]", 0.5), ("return (1 / v)[3]", 0.25),
        ("return (v // 2)[3]", 2.0),
        ("return (v * x + v)[1]", 8.0), ("return v.reduce_max()", 4.0),
        ("return v.lt(2.5).select(v, 0).reduce_add()", 3.0),
        ("return SIMD[DType.float32, 4](x, 2, 3, 4)[0]", 3.0), ("return (v.gt(1) & v.lt(4)).select(v, -1)[1]", 2.0),
        ("return Float32(1) if v.gt(0).reduce_and() else 0", 1.0),
        ("return Float32(1) if v.gt(3).reduce_or() else 0", 1.0),
    ],
)  # fmt: skip
def test_vectors_of_floats(body: str, value: float) -> None:
    assert evaluate("var v = SIMD[DType.float32, 4](1, 2, 3, 4)\n" + body, "Float32", x=F32(3.0)) == value


def test_selecting_by_a_vector_of_bool() -> None:
    body = """
        var m = SIMD[DType.bool, 2](c, not c)
        return m.select(SIMD[DType.int32, 2](1, 2), SIMD[DType.int32, 2](3, 4))[1]
    """
    assert evaluate(body, "Int32", c=Bool(True)) == 4
    assert evaluate(body, "Int32", c=Bool(False)) == 2


def test_aliases_of_types() -> None:
    declarations = """
        comptime float4 = SIMD[DType.float32, 4]
        comptime T = DType.int32
        comptime Wide[n: Int] = SIMD[T, n]
    """
    body = "return float4(a).reduce_add() + Float32(Wide[2](3, 4)[1])"
    assert evaluate(body, "Float32", declarations, a=F32(1.5)) == 10.0
