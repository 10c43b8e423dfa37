"""Values that loops compute anew in each turn: what is taken for known of them, and that roles have them alike."""

from __future__ import annotations

from itertools import product

import pytest
from proofs import verdict

from ptxdsl import driver
from ptxdsl.check import search
from ptxdsl.check.least import NONE, least
from ptxdsl.check.proof import FAULT, PROVED, searched
from ptxdsl.options import Options
from ptxdsl.protocol.expressions import Expr, apply, const, nodes, uniform, var
from ptxdsl.protocol.from_tir import kernel_model
from ptxdsl.source import Source

AT, STEPS, END = var(0), apply("max.s", var(1), const(1)), var(2)
INSIDE = apply("lt.s", AT, END, bits=1)
REST = apply("sub", AT, apply("mul", apply("floordiv.u", AT, STEPS), STEPS))
LEASTS = {
    "what is left of a tile": (apply("sub", STEPS, REST), 1),
    "a remainder": (REST, 0),
    "the same with mod": (apply("sub", STEPS, apply("mod.u", AT, STEPS)), 1),
    "what a condition says": (apply("select", INSIDE, apply("sub", END, AT), const(4)), 1),
    "one of two": (apply("min.s", apply("sub", STEPS, REST), const(3)), 1),
    "a choice inside": (apply("sub", const(9), apply("select", INSIDE, const(2), const(5))), 4),
    "nothing is known of it": (apply("sub", END, AT), NONE),
    "the other way round": (apply("select", INSIDE, apply("sub", AT, END), const(4)), NONE),
    "a remainder that is taken away twice": (apply("sub", STEPS, apply("mul", REST, const(2))), NONE),
}


def _value(expr: Expr, variables: tuple[int, ...]) -> int:
    if expr.op == "var":
        return variables[expr.value]
    if expr.op == "const":
        return int(expr.value)
    args = [const(_value(arg, variables), arg.bits) for arg in expr.args]
    return int(apply(expr.op, *args, bits=expr.bits).value)


@pytest.mark.parametrize("name", LEASTS)
def test_least_values(name: str) -> None:
    """Never more than the least of all values that there are."""
    expr, expected = LEASTS[name]
    found = least(expr, {0: 0})
    assert found == expected
    assert found <= min(_value(expr, values) for values in product(range(9), range(-2, 6), range(-2, 9)))


def test_least_values_of_deep_expressions_end() -> None:
    expr = uniform("n")
    for number in range(60):
        expr = apply("select", apply("lt.s", expr, var(number), bits=1), apply("add", expr, var(number + 1)), expr)
    assert sum(1 for _ in nodes(expr)) > 180
    assert least(apply("sub", expr, var(3)), {}) == NONE


HEAD = """
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32, m: Int32):
    var bars = unsafe_stack_allocation[4, SharedMemBarrier, address_space=.SHARED]()
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED, alignment=128]()
    if thread_idx.x == 0:
        comptime for i in range(4):
            bars[unsafe_offset=i].init(32)
    barrier()
    var lane = Int32(thread_idx.x) % 32
    var grid = Int32(grid_dim.x)
    var block = Int32(block_idx.x)
    if thread_idx.x < 32:
        var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
{producer}
    else:
        var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
{consumer}
"""
PUT = """p.acquire()
tile[unsafe_offset=Int32(p.state.index()) * 32 + lane] = src[unsafe_offset=lane]
p.commit()"""
TAKE = """c.wait()
res[unsafe_offset=lane] = tile[unsafe_offset=Int32(c.state.index()) * 32 + lane]
c.release()"""


def _roles(loop: str, other: str | None = None) -> str:
    """Both roles go round a loop; DO: what they do in it. other: the consumer's, where it is another."""

    def written(text: str, do: str) -> str:
        lines = []
        for line in text.strip().splitlines():
            pad = line[: len(line) - len(line.lstrip())]
            lines += [pad + each for each in do.splitlines()] if line.strip() == "DO" else [line]
        return "\n".join(" " * 8 + line for line in lines)

    return HEAD.format(producer=written(loop, PUT), consumer=written(other or loop, TAKE))


def _is_proved(text: str) -> bool:
    """Whether it is by the search that allows more to happen, which is quick in giving up."""
    job = driver.Job(Source("kernel.pdsl", text), options=Options("sm_90a", check="off"))
    (kernel,) = driver.run(job, "tir").kernels
    found = search.Search(kernel_model(kernel), (64, 1, 1), search.MAX_STATES, search.MAX_STEPS, coarse=True)
    return searched(found).verdict == PROVED


# Work that is halved until nothing is left, as stdlib/scheduler.pdsl divides tiles; and one that branches.
HALVED = """
var at = n * block // grid
var end = n * (block + 1) // grid
while at < end:
    var count = max((end - at) // 2, 1)
    for i in range(count):
        DO
    at += count
"""
BRANCHES = """
var at = block
var count = m
while at < n:
    for i in range(count):
        DO
    if at % m == 0:
        at += grid * m
        count = n // m
    else:
        at += count * grid
        count = m
"""


@pytest.mark.parametrize("loop", [HALVED, BRANCHES], ids=["halved", "branches"])
def test_roles_that_compute_alike_do_the_same_turns(loop: str) -> None:
    assert verdict(_roles(loop)).verdict == PROVED


CONTINUES = """
var at = block
while at < n:
    if at % m == 0:
        at += grid
        continue
    DO
    at += grid
"""
NESTED = """
var at = block
while at < n:
    for j in range(at, m):
        for i in range(n):
            DO
    at += grid
"""
TWICE = """
var at = block
while at < n:
    if at % m == 0:
        at += grid
    DO
    at += grid
"""


@pytest.mark.parametrize("loop", [CONTINUES, NESTED], ids=["continues", "nested"])
def test_what_grows_on_every_way_to_the_next_turn_grows_steadily(loop: str) -> None:
    assert _is_proved(_roles(loop))


@pytest.mark.parametrize("loop", [CONTINUES, NESTED, TWICE], ids=["continues", "nested", "twice"])
def test_what_grows_otherwise_on_one_way_is_no_other_roles(loop: str) -> None:
    before, plus, after = loop.partition("+= grid")
    assert not _is_proved(_roles(loop, f"{before}{plus} + 1{after}"))


def test_what_some_turns_do_not_come_to_is_not_done_in_every_turn() -> None:
    """at grows in turns in which it is no multiple of m, and counts what is done."""
    loop = "var at = Int32(1)\nfor i in range(n):\n    if at % m != 0:\n        at += grid\n    if at < 9:\n        DO"
    other = "var at = Int32(1)\nfor i in range(n):\n    at += grid\n    if at < 9:\n        DO"
    assert not _is_proved(_roles(loop, other))


OTHERWISE = {
    "another step": ("at += count", "at += count + 1"),
    "another start": ("var at = n * block // grid", "var at = n * block // grid + 1"),
    "another end": ("var end = n * (block + 1) // grid", "var end = n * (block + 1) // grid - 1"),
    "another count": ("// 2, 1)", "// 2, 2)"),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_roles_that_compute_otherwise_are_not_proved(name: str) -> None:
    was, is_ = OTHERWISE[name]
    assert was in HALVED
    assert not _is_proved(_roles(HALVED, HALVED.replace(was, is_)))


def test_a_turn_that_such_a_value_makes_unlike_is_shown() -> None:
    """The producer leaves out the turn in which what is divided by m is 5: the launch that is told has such a one."""
    loop = "var at = n\nwhile at > 0:\n    DO\n    at //= m"
    found = verdict(_roles(loop.replace("    DO", "    if at != 5:\n        DO"), loop))
    assert found.verdict == FAULT
    said = dict(part.split(" = ") for part in found.shows_with[0].split(", "))
    at, by, turns = int(said["n"]), int(said["m"]), []
    while at > 0 and len(turns) < 99:
        turns.append(at)
        at //= by
    assert 5 in turns


def test_a_value_of_the_turn_before_is_not_that_of_this_turn() -> None:
    """What is assigned together with a value that grows has that of before."""
    loop = """
var at = block
var before = block
for i in range(n):
    if SKIPPED != 7 * grid:
        DO
    before = at
    at += grid
"""
    at, before = (loop.replace("SKIPPED", name) for name in ("at", "before"))
    assert [_is_proved(_roles(*both)) for both in ((at, at), (before, before), (at, before))] == [True, True, False]


def test_a_loop_that_waits_for_memory_is_told() -> None:
    text = """
from atomic import load_acquire
@kernel(threads=32)
def kernel(flag: Pointer[UInt32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin]):
    var tile = unsafe_stack_allocation[32, Float32, address_space=.SHARED]()
    tile[unsafe_offset=thread_idx.x] = 1
    while load_acquire(flag) == 0:
        pass
    res[unsafe_offset=thread_idx.x] = tile[unsafe_offset=thread_idx.x]
"""
    found = verdict(text)
    assert found.verdict == PROVED
    assert found.assumptions == ("if the loop at line 7 comes to an end (waits for memory)",)
    assert verdict(text.replace("    while load_acquire(flag) == 0:\n        pass\n", "")).assumptions == ()


def test_a_loop_that_loads_what_it_works_on_waits_for_nothing() -> None:
    found = verdict("""
@kernel(threads=256)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var parts = unsafe_stack_allocation[256, Float32, address_space=.SHARED]()
    var sum: Float32 = 0
    for i in range(Int32(global_idx.x), n, Int32(grid_dim.x) * 256):
        sum += src[unsafe_offset=i]
    parts[unsafe_offset=thread_idx.x] = sum
    barrier()
    res[unsafe_offset=thread_idx.x] = parts[unsafe_offset=255 - Int(thread_idx.x)]
""")
    assert (found.verdict, found.assumptions) == (PROVED, ())
