"""``//`` and ``%`` of floats: what is folded at compile time is what the lowered code computes, to the last bit."""

import math
import struct

import pytest
from host import Host, function
from hypothesis import example, given
from hypothesis import strategies as st

from ptxdsl.tir import F32, F64, Const, Ty
from ptxdsl.tir.fold import fold

OPERATIONS = ("ffloordiv", "fmod")


def single(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


@pytest.fixture(scope="module")
def host() -> Host:
    return Host(
        [
            function(f"{name}_{ty}", [ty, ty], ty, lambda k, values, name=name, ty=ty: k(name, ty, *values))
            for name in OPERATIONS
            for ty in (F32, F64)
        ]
    )


def same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def agree(host: Host, ty: Ty, x: float, y: float) -> None:
    for name in OPERATIONS:
        folded = fold(name, [Const(ty, x), Const(ty, y)], {}, [ty])
        assert folded is not None
        got, kept = host(f"{name}_{ty}", x, y), folded[0].value
        assert same(got, kept), (name, x, y, got, kept)


@given(x=st.floats(width=32), y=st.floats(width=32))
@example(x=single(0.3), y=single(0.1))
@example(x=-0.0, y=3.0)
@example(x=-6.0, y=3.0)
@example(x=1.0, y=math.inf)
@example(x=1.0, y=0.0)
def test_any_float32(host: Host, x: float, y: float) -> None:
    agree(host, F32, x, y)


@given(count=st.integers(1, 40), y=st.floats(0.0009765625, 8, width=32))
def test_near_a_multiple(host: Host, count: int, y: float) -> None:
    agree(host, F32, single(count * y), y)
    agree(host, F32, single(count * y * (1 - 2**-24)), y)


@given(x=st.floats(), y=st.floats())
def test_any_float64(host: Host, x: float, y: float) -> None:
    agree(host, F64, x, y)


def test_the_quotient_is_rounded_before_its_floor() -> None:
    """In float32 0.5 / 0.1 is 5, though the quotient of the two numbers is less."""
    x, y = single(0.5), single(0.1)
    assert x / y < 5.0 == single(x / y)
    folded = fold("ffloordiv", [Const(F32, x), Const(F32, y)], {}, [F32])
    assert folded is not None and folded[0].value == 5.0
