"""What is known of an address's alignment, and what comes from it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from backend_kernels import Build, i32

from ptxdsl.artifact import Compiled
from ptxdsl.driver import compile_source
from ptxdsl.imports import source_of
from ptxdsl.lower.module import lower
from ptxdsl.options import Options
from ptxdsl.tir import F32, I32, I64, Const, Value, ptr


def alignment(index: Callable[[Build, Value], Value], scale: int = 4, table: int = 128) -> int:
    """Of a load from a table in shared memory, at an index made of an integer that nothing is known of."""
    k = Build()
    out, n = k.pointer("out"), k.scalar("n")
    base = k("shared.alloc", ptr("shared"), bytes=4096, align=table, name="table")
    k.store(out, k.load(k.at(base, index(k, n), scale)))
    (found,) = re.findall(r"load float, .*, align (\d+)", lower(k.module(), Options()))
    return int(found)


@pytest.mark.parametrize(
    ("index", "bytes"),
    [
        (lambda k, n: n, 4),
        (lambda k, n: i32(0), 128),
        (lambda k, n: i32(6), 8),
        (lambda k, n: k("mul", I32, n, i32(4)), 16),
        (lambda k, n: k("mul", I32, n, i32(12), nsw=True), 16),
        (lambda k, n: k("mul", I32, n, i32(1024)), 128),
        (lambda k, n: k("shl", I32, n, i32(3)), 32),
        (lambda k, n: k("and", I32, n, i32(-8)), 32),
        (lambda k, n: k("or", I32, k("shl", I32, n, i32(3)), i32(4)), 16),
        (lambda k, n: k("sub", I32, k("shl", I32, n, i32(3)), k("shl", I32, n, i32(2))), 16),
        (lambda k, n: k("add", I32, k("mul", I32, n, i32(4)), i32(2)), 8),
        (lambda k, n: k("add", I32, k("mul", I32, n, i32(4)), i32(4)), 16),
        (lambda k, n: k("trunc", I32, k("shl", I64, k("ext.s", I64, n), Const(I64, 2))), 16),
        (lambda k, n: k("select", I32, k("eq", I32, n, i32(1)), i32(8), k("shl", I32, n, i32(2))), 16),
        (lambda k, n: k("select", I32, k("eq", I32, n, i32(1)), i32(8), n), 4),
        (lambda k, n: k("floordiv.s", I32, n, i32(4)), 4),
    ],
)
def test_of_an_index(index: Callable[[Build, Value], Value], bytes: int) -> None:
    assert alignment(index) == bytes


def test_no_more_than_the_table_has() -> None:
    assert alignment(lambda k, n: k("mul", I32, n, i32(16)), table=8) == 8


def turn(start: int, step: int, carried: Callable[[Build, Value], Value]) -> list[int]:
    """Of two loads in a loop: at its index, and at a value that it carries."""
    k = Build()
    out, n = k.pointer("out"), k.scalar("n")
    base = k("shared.alloc", ptr("shared"), bytes=4096, align=64, name="table")

    def body(_: object, i: Value, place: Value) -> list[Value]:
        k.store(out, k.load(k.at(base, i)))
        k.store(out, k.load(k.at(base, place)))
        return [carried(k, place)]

    k.for_(i32(start), n, [i32(start)], body, step=step)
    return [int(found) for found in re.findall(r"load float, .*, align (\d+)", lower(k.module(), Options()))]


@pytest.mark.parametrize(
    ("start", "step", "carried", "bytes"),
    [
        (0, 4, lambda k, v: k("add", I32, v, i32(8)), [16, 32]),
        (8, 4, lambda k, v: k("add", I32, v, i32(4)), [16, 16]),
        (2, 4, lambda k, v: k("add", I32, v, i32(4)), [8, 8]),
        (0, 1, lambda k, v: k("add", I32, v, i32(1)), [4, 4]),
        (16, -8, lambda k, v: k("mul", I32, v, v), [32, 64]),
        # Multiples of 16, of 8 after a turn, of 4 after two …
        (16, 4, lambda k, v: k("add", I32, k("floordiv.s", I32, v, i32(2)), i32(0)), [16, 4]),
    ],
)
def test_in_a_loop(start: int, step: int, carried: Callable[[Build, Value], Value], bytes: list[int]) -> None:
    assert turn(start, step, carried) == bytes


PIPELINE = """
@kernel(threads=64)
def k(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var bars = unsafe_stack_allocation[6, SharedMemBarrier, address_space=.SHARED]().unsafe_origin_cast[MutAnyOrigin]()
    var buf = stack_allocation[384, Float32, address_space=.SHARED, alignment=128]()
    if thread_idx.x == 0:
        comptime for i in range(6):
            bars[unsafe_offset=i].init(32)
    barrier()
    var lane = Int32(thread_idx.x) % 32
    if thread_idx.x < 32:
        var p = RolePipeline[3, True](bars, bars.unsafe_offset(3))
        for i in range(n):
            p.acquire()
            var slot = Int32(p.state.index()) * 128
            comptime for j in range(4):
                buf[unsafe_offset=slot + lane * 4 + Int32(j)] = src[unsafe_offset=i * 128 + lane * 4 + Int32(j)]
            p.commit()
    else:
        var c = RolePipeline[3, False](bars, bars.unsafe_offset(3))
        var sum: Float32 = 0
        for i in range(n):
            c.wait()
            var slot = Int32(c.state.index()) * 128
            comptime for j in range(4):
                sum += buf[unsafe_offset=slot + lane * 4 + Int32(j)]
            c.release()
        res[unsafe_offset=lane] = sum
"""


def test_neighbours_in_a_pipeline_are_moved_together() -> None:
    compiled = compile_source(source_of(PIPELINE.encode(), "k.pdsl"))
    assert isinstance(compiled, Compiled)
    moved = re.findall(r"\b(?:ld|st)\.shared\.\S+", compiled.ptx)
    assert moved and set(moved) == {"ld.shared.v4.b32", "st.shared.v4.b32"}


def test_what_an_access_promises_counts_too() -> None:
    k = Build()
    out, n = k.pointer("out"), k.scalar("n")
    place = k.at(out, n)
    k.store(out, k("load", F32, place, align=8))
    assert re.findall(r"load float, .*, align (\d+)", lower(k.module(), Options())) == ["8"]
