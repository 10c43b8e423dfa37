"""What leaves a loop because every turn would compute the same, and what stays."""

from __future__ import annotations

from build_tir import Builder
from run_tir import Machine

from ptxdsl.rings.hoist import hoist
from ptxdsl.tir import Op
from ptxdsl.tir.verify import verify


def names(op: Op) -> list[str]:
    return [inner.name for inner in op.blocks[0].ops]


def hoisted(b: Builder, *arguments: int) -> None:
    """Hoists in the kernel of ``b``; it stays well formed and stores what it stored before."""
    b.ret()
    before = Machine(b.kernel).run(*arguments)
    hoist(b.kernel)
    verify(b.module)
    assert Machine(b.kernel).run(*arguments) == before


def test_what_every_turn_computes_is_computed_before_the_loop() -> None:
    b = Builder()
    n, lane, out = b.param("n"), b.param("lane"), b.shared("out", 256)
    loop = b.for_(0, n)
    with b.region(loop) as (i,):
        scaled = b.op("mul", lane, 4)
        place = b.op("ptr.add", out, scaled, scale=1, offset=0)
        b.store(place, b.op("add", i, scaled))
        b.repeat(loop)
    hoisted(b, 3, 5)
    assert names(loop) == ["add", "store", "repeat"]
    assert [op.name for op in b.body.ops] == ["shared.alloc", "mul", "ptr.add", "for", "return"]


def test_out_of_two_loops_or_one_as_far_as_its_operands_let_it() -> None:
    b = Builder()
    n, lane, out = b.param("n"), b.param("lane"), b.shared("out", 256)
    outer = b.for_(0, n)
    with b.region(outer) as (i,):
        inner = b.for_(0, n)
        with b.region(inner) as (j,):
            once = b.op("mul", lane, 8)
            row = b.op("add", i, once)
            b.store(out, b.op("add", row, j))
            b.repeat(inner)
        b.repeat(outer)
    hoisted(b, 2, 5)
    assert [op.name for op in b.body.ops] == ["shared.alloc", "mul", "for", "return"]
    assert names(outer) == ["add", "for", "repeat"]
    assert names(inner) == ["add", "store", "repeat"]


def test_out_of_a_branch_in_a_loop_but_not_out_of_one_that_is_in_none() -> None:
    b = Builder()
    n, lane, out = b.param("n"), b.param("lane"), b.shared("out", 256)
    role = b.if_(b.op("lt.s", lane, 32))
    with b.region(role):
        loop = b.for_(0, n)
        with b.region(loop) as (i,):
            last = b.if_(b.op("eq", i, 2))
            with b.region(last):
                b.store(out, b.op("mul", lane, 4))
                b.yield_()
            with b.region(last, 1):
                b.yield_()
            b.repeat(loop)
        b.yield_()
    with b.region(role, 1):
        b.yield_()
    hoisted(b, 4, 5)
    assert names(role) == ["mul", "for", "yield"]
    assert names(last) == ["store", "yield"]


def test_loads_and_what_they_give_stay() -> None:
    b = Builder()
    n, out = b.param("n"), b.shared("out", 256)
    loop = b.for_(0, n)
    with b.region(loop):
        loaded = b.op("load", out, ty=n.ty, align=4)
        b.store(out, b.op("add", b.op("mul", loaded, 3), 1))
        b.repeat(loop)
    hoisted(b, 3)
    assert names(loop) == ["load", "mul", "add", "store", "repeat"]


def test_what_both_arms_compute_is_computed_before_them() -> None:
    b = Builder()
    n, lane, out = b.param("n"), b.param("lane"), b.shared("out", 256)
    role = b.if_(b.op("lt.s", lane, 32))
    for arm, number in ((0, 1), (1, 2)):
        with b.region(role, arm):
            inner = b.scope()
            with b.region(inner):
                turns = b.op("max.s", n, 0)
                b.store(out, b.op("mul", turns, number))
                b.store(out, turns)
                b.yield_()
            b.yield_()
    hoisted(b, 3, 40)
    assert [op.name for op in b.body.ops] == ["shared.alloc", "lt.s", "max.s", "if", "return"]
    assert [op.name for arm in role.blocks for op in arm.ops[0].blocks[0].ops] == ["mul", "store", "store", "yield"] * 2


def test_arms_that_compute_different_things_keep_them() -> None:
    b = Builder()
    n, lane, out = b.param("n"), b.param("lane"), b.shared("out", 256)
    role = b.if_(b.op("lt.s", lane, 32))
    for arm in (0, 1):
        with b.region(role, arm):
            loaded = b.op("load", out, ty=n.ty, align=4)
            b.store(out, b.op("mul", loaded, 3))  # of values that are not the same
            b.store(out, b.op("sub", n, lane) if arm else b.op("sub", lane, n))
            b.yield_()
    hoisted(b, 3, 5)
    assert [names(role), [op.name for op in role.blocks[1].ops]] == [
        ["load", "mul", "store", "sub", "store", "yield"]
    ] * 2
