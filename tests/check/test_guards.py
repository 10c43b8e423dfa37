"""Accesses under conditions of a thread's number and of what is not known before the launch."""

from __future__ import annotations

from itertools import product

import pytest
from proofs import verdict

from ptxdsl.check.guards import guard, together
from ptxdsl.check.threads import Block
from ptxdsl.protocol import expressions
from ptxdsl.protocol.expressions import Expr, apply, const, load, shuffle, tid, uniform, var, vote

HEAD = """
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], k: Int32, flag: Int32):
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED]()
    var t = Int32(thread_idx.x)
    var lane = t % 32
    var row = t // 32 * 8 - 5
    tile[unsafe_offset=t] = 0
    barrier()
"""
WRITE, READ = "tile[unsafe_offset={}] = src[unsafe_offset=t]", "res[unsafe_offset=t] = tile[unsafe_offset={}]"
# condition and place of a write; what comes between; condition and place of a read
ALONE = {
    "one thread writes and reads": ("t == k", "0", "", "t == k", "0"),
    "one warp writes and reads": ("t // 32 == k", "lane", "syncwarp()", "t // 32 == k", "31 - lane"),
    "one of two halves": ("(flag > 0) == (t < 32)", "lane", "", "(flag > 0) == (t < 32)", "lane"),
    "who reads writes not": ("t < k", "t", "", "t >= k", "t"),
    "the threads below and those from there on": ("lane < k", "t", "", "lane >= k", "t"),
    "nested": ("t < 32 and t == k", "0", "", "t == k", "0"),
    "above 3, below 3 unsigned": ("t < 32 and k > row + 8", "t", "", "t >= 32 and UInt32(k) < UInt32(row)", "t ^ 32"),
}
SHARED = {
    "another thread reads": ("t == k", "0", "", "t == k + 1", "0"),
    "another warp": ("t // 32 == k", "lane", "syncwarp()", "t // 32 == flag", "31 - lane"),
    "one warp without syncwarp": ("t // 32 == k", "lane", "", "t // 32 == k", "31 - lane"),
    "both halves": ("(flag > 0) == (t < 32)", "lane", "", "(flag > 0) != (t < 32)", "lane"),
    "one of several": ("t < k", "0", "", "t < k", "0"),
    "who does not write reads a neighbour": ("t < k", "t", "", "t >= k", "t ^ 1"),
    "above -5, below 3 unsigned": ("t < 32 and k > row", "t", "", "t >= 32 and UInt32(k) < UInt32(row)", "t ^ 32"),
    "below -5, above 3 unsigned": ("t < 32 and k < row", "t", "", "t >= 32 and UInt32(k) > UInt32(row)", "t ^ 32"),
}


def _kernel(first: str, to: str, between: str, second: str, at: str) -> str:
    lines = [f"if {first}:", f"    {WRITE.format(to)}", between, f"if {second}:", f"    {READ.format(at)}"]
    return HEAD + "\n".join(f"    {line}" for line in lines if line) + "\n"


@pytest.mark.parametrize("name", ALONE)
def test_no_two_threads_come_to_both(name: str) -> None:
    assert (verdict(_kernel(*ALONE[name])).verdict, verdict(_kernel(*ALONE[name])).kinds) == ("proved", ())


@pytest.mark.parametrize("name", SHARED)
def test_two_threads_come_to_both(name: str) -> None:
    assert verdict(_kernel(*SHARED[name])).kinds == ("data race",)


def test_a_value_that_changes_is_another_one_each_time() -> None:
    text = HEAD + (
        "    for i in range(k):\n        if t == i:\n            tile[unsafe_offset=0] = src[unsafe_offset=t]\n"
        "        if t == i:\n            res[unsafe_offset=t] = tile[unsafe_offset=0]\n"
    )
    assert verdict(text).kinds == ("data race",)


LOW = apply("sub", apply("mul", tid(0), const(4)), const(10))  # -10, -6, -2, 2, 6
N, FLAG = uniform("n#0"), apply("gt.s", uniform("m#1"), const(0), bits=1)
CONDITIONS = [
    apply(op, *((tid(0), N) if turned else (N, tid(0))), bits=1)
    for op, turned in product(("eq", "ne", "lt.s", "le.s", "gt.s", "ge.s", "lt.u", "ge.u"), (True, False))
]
CONDITIONS += [apply(op, N, LOW, bits=1) for op in ("lt.s", "lt.u", "ge.s", "gt.u", "le.u", "eq")]
CONDITIONS += [apply("and", FLAG, CONDITIONS[0], bits=1), apply("xor", FLAG, CONDITIONS[4], bits=1)]


def _holds(expr: Expr, n: int, flag: int, thread: int) -> int:
    if expr in (N, FLAG) or expr.op == "tid":
        return {N: n, FLAG: flag}.get(expr, thread)
    args = [const(_holds(arg, n, flag, thread), arg.bits) if arg.op != "const" else arg for arg in expr.args]
    return int(apply(expr.op, *args, bits=expr.bits).value)


@pytest.mark.parametrize("a", CONDITIONS[::3], ids=repr)
def test_who_can_do_both_is_who_does_for_some_values(a: Expr) -> None:
    block = Block((5, 1, 1))
    numbers = (*range(-12, 10), -(1 << 31), (1 << 31) - 1)
    for b in CONDITIONS:
        cases = together(guard(block, a), guard(block, b))
        assert cases is not None
        for t, u in product(range(5), repeat=2):
            both = any(_holds(a, n, f, t) and _holds(b, n, f, u) for n in numbers for f in (0, 1))
            assert bool(cases[0][t] & cases[1][u]) == both, (a, b, t, u)


UNCLEAR = [var(0), apply("add", tid(0), N), load("src#0", N, 32), shuffle(apply("ext.u", FLAG), N)]
UNCLEAR += [
    apply("ext.u", truth) for truth in (expressions.test(N, const(0)), vote("any", FLAG), vote("all", FLAG)) if truth
]


@pytest.mark.parametrize("unclear", UNCLEAR, ids=repr)
def test_what_may_change_or_is_no_comparison_says_nothing(unclear: Expr) -> None:
    assert guard(Block((32, 1, 1)), apply("eq", tid(0), unclear, bits=1)) is None
