"""Ranges and pointer indices that reach the limits of their types, run on the host."""

import pytest
from backend_kernels import Build
from host import Host, function

from ptxdsl.tir import I8, I32, I64, Const, Kernel, Value, ptr

STARTS = [-128, -127, -100, -1, 0, 1, 99, 100, 101, 126, 127]


def turns(name: str, step: int, signed: bool, stop: int | None = None) -> Kernel:
    """Counts the turns of a loop over Int8 or UInt8, between the kernel's parameters or up to a constant."""

    def body(k: Build, given: list[Value]) -> Value:
        end = given[1] if stop is None else Const(I8, stop)

        def turn(op: object, index: Value, count: Value) -> list[Value]:
            return [k("add", I32, count, Const(I32, 1))]

        return k.for_(given[0], end, [Const(I32, 0)], turn, step, signed)[0]

    return function(name, [I8, I8] if stop is None else [I8], I32, body)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("step", [1, -1, 3, -3, 100, -100, 127, -128])
def test_a_range_ends_at_the_limit_of_its_type(step: int, signed: bool) -> None:
    host = Host([turns("both", step, signed), *(turns(f"to{n & 255}", step, signed, n) for n in STARTS)])
    for stop in STARTS:
        for start in STARTS:
            expected = len(range(start, stop, step) if signed else range(start & 255, stop & 255, step))
            assert host("both", start, stop) == expected, (start, stop)
            assert host(f"to{stop & 255}", start) == expected, (start, stop)


def offset(name: str, constant: int, factor: int, signed: bool) -> Kernel:
    """Bytes from a pointer to the one moved by ``((i + constant) * factor + j)`` elements of 4 bytes."""
    flag = {"nsw" if signed else "nuw": True}

    def body(k: Build, given: list[Value]) -> Value:
        i, j, start = given
        shifted = k("add" if constant > 0 else "sub", I32, i, Const(I32, abs(constant)), **flag)
        index = k("add", I32, k("mul", I32, shifted, Const(I32, factor), **flag), j, **flag)
        base = k("int.toptr", ptr("global"), start)
        moved = k("ptr.add", base.ty, base, index, scale=4, unsigned=not signed)
        return k("sub", I64, k("ptr.toint", I64, moved), start)

    return function(name, [I32, I32, I64], I64, body)


# i * factor or i + j alone leaves the type, the whole index does not.
@pytest.mark.parametrize(
    ("constant", "factor", "i", "j", "signed"),
    [
        (-1, 1 << 20, 2048, 0, True),
        (-1, 1, 2**31 - 1, 1, True),
        (-5, 1 << 20, 4096, 1 << 20, False),
        (-1, 1, 2**32 - 1, 1, False),
        (1, 1 << 20, 2046, 5, True),
        (3, 1 << 20, -5, 7, True),
        (3, -(1 << 20), 5, 7, True),
    ],
)
def test_an_index_that_fits_is_exact(constant: int, factor: int, i: int, j: int, signed: bool) -> None:
    host = Host([offset("offset", constant, factor, signed)])
    assert host("offset", i, j, 1 << 40) == 4 * ((i + constant) * factor + j)
