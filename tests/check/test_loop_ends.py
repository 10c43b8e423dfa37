"""Loops without protocol in front of an arrival: whoever waits for it waits for their end, too."""

from __future__ import annotations

from textwrap import indent

import pytest
from proofs import verdict

KERNEL = """
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32, step: Int32, k: UInt32):
    var bars = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED]()
    if thread_idx.x == 0:
        bars[].init(32)
    barrier()
    var t = Int32(thread_idx.x)
    var i = t
    var u = k
    var byte = UInt8(0)
    var sum: Float32 = 0
    if thread_idx.x < 32:
{loop}
        res[] = sum
        bars[].arrive()
    else:
        bars[].wait(0)
"""
FIRST_LINE = 15
END = {
    "for": "for j in range(n):\n    sum += src[unsafe_offset=j]",
    "for with a step of the block's size": "for j in range(t, n, Int32(block_dim.x)):\n    sum += src[unsafe_offset=j]",
    "for with a step that is not known": "for j in range(0, n, step):\n    sum += src[unsafe_offset=j]",
    "up": "while i < n:\n    i += 2",
    "up by what is positive": "while i < n * 2:\n    sum += 1\n    i += Int32(block_dim.x * grid_dim.x)",
    "up or further up": "while i <= n:\n    i += 1\n    if src[] > 0:\n        i += 1\n        continue\n    sum += 1",
    "down": "while i >= step:\n    i -= 3",
    "down to an unsigned 0": "while u > 0:\n    u -= 1",
    "down by more, from further above": "while u >= 4:\n    u -= 4",
    "until it is there": "while i != n:\n    i += 1",
    "left in the middle": "while True:\n    sum += 1\n    if i > n:\n        break\n    i += 1",
    "with another condition": "while i < n and src[unsafe_offset=i] > 0:\n    i += 1",
    "for with an unsigned step": "for j in range(UInt32(0), k, UInt32(step)):\n    sum += src[unsafe_offset=j]",
    "in the order that the step's sign says": "while (i ^ (step >> 31)) < n and step != 0:\n    i += step",
    "for downwards, with continue": "for j in range(n, step, step):\n    if src[] > 0:\n        continue\n    sum += 1",
    "where the step is positive": "while 0 < step and i < n:\n    i += step",
}
ENDLESS = {
    "a step that may be 0": "while i < n:\n    i += step",
    "a step of 0": "while i != 0:\n    i = i - 0",
    "a byte that wraps": "while Int32(byte) < n:\n    byte += 1",
    "the low byte of a counter": "while Int32(Int8(i)) < n:\n    i += 1",
    "the wrong way": "while i < n:\n    i -= 1",
    "past it": "while i != n:\n    i += 2",
    "below an unsigned 0": "while u >= 0:\n    u -= 1",
    "by an unsigned 0": "while u > 0:\n    u -= 2",
    "one of the conditions": "while i < n or src[] > 0:\n    i += 1",
    "with the bound": "while i < n + sum.cast[DType.int32]():\n    i += 1\n    sum += 1",
    "turns that do not count": "while i < n:\n    if src[unsafe_offset=i] > 0:\n        continue\n    i += 1",
    "turns that do not ask": "while True:\n    if src[] > 0: continue\n    if i > n: break\n    i += 1",
    "a step that is positive as unsigned": "while 0 < UInt32(step) and i < n:\n    i += step",
    "in the order of a sign, by what may be 0": "while (i ^ (step >> 31)) < n:\n    i += step",
    "in the order of a sign, the other way": "while (i ^ (step >> 31)) < n and step != 0:\n    i -= step",
    "in the order of what is no sign": "while (i ^ (step >> 30)) < n and step != 0:\n    i += step",
    "in the order of another's sign": "while (i ^ (n >> 31)) < n and step != 0:\n    i += step",
    "a step of the other sign": "while step < 0 and i < n:\n    i += step",
    "the memory that it writes": "while Float32(i) < res[]:\n    i += 1\n    res[] = res[] + 1",
}


def _assumed(loop: str, text: str = KERNEL) -> tuple[str, ...]:
    found = verdict(text.format(loop=indent(loop, " " * 8)))
    assert (found.verdict, found.kinds) == ("proved", ())
    return found.assumptions


@pytest.mark.parametrize("name", END)
def test_it_ends(name: str) -> None:
    assert _assumed(END[name]) == ()


@pytest.mark.parametrize("name", ENDLESS)
def test_it_is_not_seen_to_end(name: str) -> None:
    assert _assumed(ENDLESS[name]) == (f"if the loop at line {FIRST_LINE} comes to an end (that is not shown)",)


def test_a_loop_is_named_whose_result_decides() -> None:
    text = KERNEL.replace("var i = t", "var i = step").replace("res[] = sum", "if i == 5: tile[unsafe_offset=t] = 1")
    assert len(_assumed(ENDLESS["a step that may be 0"], text)) == 1
