"""Array: elements chosen at compile time and at run time, lists. Tuples: unpacking and exchanging."""

from __future__ import annotations

import pytest
from elaborate_support import typed
from semantics import F32, I32, Argument, Bool, Int, evaluate

from ptxdsl import tir

KERNEL = "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin], n: Int32, i: Int):\n    var a = Array[Int32, 3](fill=n)\n    "


@pytest.mark.parametrize("index", range(4))
@pytest.mark.parametrize("kind", [Int, I32])
def test_elements_chosen_at_run_time(index: int, kind: type[Argument]) -> None:
    body = """
        var a: Array[Int32, 4] = [n, 2, 3, 4]
        a[i] = a[i] * 10
        var b = a
        b[3 - i] = 0
        return a[i] + a[0] + b[3 - i]
    """
    items = [5, 2, 3, 4]
    items[index] *= 10
    assert evaluate(body, "Int32", n=I32(5), i=kind(index)) == items[index] + items[0]


def test_an_array_filled_by_a_run_time_loop() -> None:
    body = """
        var a = Array[Int32, 4](fill=0)
        for j in range(n):
            a[j] = j * j
        var total: Int32 = 0
        for j in range(4):
            total = total * 10 + a[j]
        return total
    """
    assert evaluate(body, "Int32", n=I32(4)) == 149
    assert evaluate(body, "Int32", n=I32(2)) == 100


def test_arrays_of_structs() -> None:
    declarations = """
        @fieldwise_init
        struct P(TrivialRegisterPassable):
            var x: Int32
            var y: Float32
    """
    body = """
        var a = Array[P, 3](fill=P(n, 1.5))
        a[1].x = 7
        a[i].y += 2
        return Float32(a[1].x + a[0].x) + a[2].y + a[1].y
    """
    assert evaluate(body, "Float32", declarations, n=I32(2), i=Int(2)) == 9 + 3.5 + 1.5


def test_elements_known_at_compile_time_need_no_memory() -> None:
    source = KERNEL + "a[0] = 1\n    comptime for j in range(3):\n        p[j] = a[j]"
    assert "alloca" not in [op.name for op in tir.walk(typed(source).kernels[0].body)]
    assert "alloca" in [op.name for op in tir.walk(typed(source + "\n    p[] = a[i]").kernels[0].body)]


@pytest.mark.parametrize("c", [False, True])
def test_tuples_and_arrays_meet_where_paths_join(c: bool) -> None:
    body = """
        var t = (x, x)
        var a = Array[Float32, 2](fill=x)
        if c:
            t = (t[1] + 1, x)
            a[1] = 9
        else:
            a = Array[Float32, 2](fill=2)
        return t[0] * 100 + a[0] * 10 + a[1]
    """
    assert evaluate(body, "Float32", c=Bool(c), x=F32(4.0)) == (549.0 if c else 422.0)


PARTS = """
@fieldwise_init
struct P(TrivialRegisterPassable):
    var x: Int32
    var y: Int32

    def bump(mut self, by: Int32):
        self.x += by

def increment(mut v: Int32):
    v += 1

def get(a: Array[Int32, 4], i: Int) -> Int32:
    if i < 4:
        return a[i]
    return -1
"""


@pytest.mark.parametrize("i", range(3))
def test_elements_chosen_at_run_time_are_changed_in_place(i: int) -> None:
    body = """
        var a = Array[P, 3](fill=P(2, 1))
        a[i].bump(5)
        increment(a[i].y)
        swap(a[i].x, a[i].y)
        return a[i].x * 100 + a[i].y * 10 + a[(i + 1) % 3].x
    """
    assert evaluate(body, "Int32", PARTS, i=Int(i)) == 272
    assert evaluate("var v = SIMD[DType.int32, 4](0)\nincrement(v[i])\nreturn v[i]", "Int32", PARTS, i=Int(i)) == 1


def test_an_index_on_a_path_never_taken_is_no_error() -> None:
    assert evaluate("var a = Array[Int32, 4](fill=7)\nreturn get(a, 5) + get(a, 3)", "Int32", PARTS) == 6
