"""``for`` with a step known at run time: what Mojo's ``range`` yields, also past the ends of a type, and its code."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ptxdsl

TURNS = 20  # after which the kernel leaves a range: one that wraps may never end
TEXT = """
@kernel
def k(
    starts: Pointer[{T}], stops: Pointer[{T}], steps: Pointer[{T}], sums: Pointer[Int32, MutAnyOrigin],
    counts: Pointer[Int32, MutAnyOrigin],
):
    var t = global_idx.x
    var sum: Int32 = 0
    var count: Int32 = 0
    for i in range(starts[unsafe_offset=t], stops[unsafe_offset=t], steps[unsafe_offset=t]):
        count += 1
        if count > 20:
            break
        if i == 3:
            continue
        sum += Int32(i) * count
    sums[unsafe_offset=t] = sum
    counts[unsafe_offset=t] = count
"""


def expected(start: int, stop: int, step: int, dtype: np.dtype) -> tuple[int, int]:
    """By Mojo's ``__next__``: it asks for the step's sign and the place each time, then adds the step, which wraps."""
    sum, count, index = 0, 0, start
    while (step > 0 and index < stop) or (step < 0 and index > stop):
        count += 1
        if count > TURNS:
            break
        if index != 3:
            sum += index * count
        index = int(np.array(index + step).astype(dtype))
    return (sum + 2**31) % 2**32 - 2**31, count


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32], ids=lambda dtype: dtype.__name__)
def test_it_goes_through_what_mojo_goes_through(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    some = sorted({low, low + 1, low // 2, 0, 1, 3, 5, 17, high // 2, high - 1, high})
    steps = sorted({s for s in (low, low + 1, -100, -7, -3, -1, 0, 1, 2, 7, 100, high) if low <= s <= high})
    cases = list(itertools.product(some, some, steps))
    given = np.array(cases, np.int64).T.astype(dtype)
    given = np.concatenate([given, np.zeros((3, -len(cases) % 64), dtype)], axis=1)
    sums, counts = np.zeros(given.shape[1], np.int32), np.zeros(given.shape[1], np.int32)
    name = dtype.__name__.replace("uint", "UInt").replace("int", "Int")
    kernel = ptxdsl.loads(TEXT.format(T=name)).k
    kernel[given.shape[1] // 64, 64](*map(np.ascontiguousarray, given), sums, counts, target="sim")
    want = [expected(*case, dtype) for case in cases]
    assert list(zip(sums.tolist(), counts.tolist(), strict=True))[: len(cases)] == want


@pytest.mark.parametrize(
    ("step", "more"),
    [("s", {"add", "xor", "setp"}), ("Int32(block_dim.x)", {"add", "setp"}), ("UInt32(s)", {"add", "setp"})],
)
def test_a_turn_compares_once(step: str, more: set[str]) -> None:
    """more: the instructions of a turn beside its body, a store, and its branch."""
    bounds = "UInt32(a), UInt32(b)" if step.startswith("U") else "a, b"
    text = f"""
@kernel
def k(p: Pointer[UInt32, MutAnyOrigin], a: Int32, b: Int32, s: Int32):
    for i in range({bounds}, {step}):
        store_relaxed(p, 7)
"""
    ptx = ptxdsl.loads(text).k.compile("sm_90a").ptx
    turn = ptx[: ptx.index("\tbra.uni")].rpartition(":\n")[2].splitlines()
    opcodes = [line.split()[0].partition(".")[0] for line in turn if "bra" not in line]
    assert len(opcodes) == 1 + len(more) and set(opcodes) == {"st", *more}
