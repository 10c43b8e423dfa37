"""Atomic operations of compiled warps, against the same operation done lane after lane in NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from harness import launch

LANE = np.arange(32)
HEADER = ".reg .b64 %d<12>; .reg .b32 %t, %r<20>; .reg .b16 %h<9>; .reg .f32 %f<9>; .reg .pred %p<8>; .reg .b128 %q<4>;"


def kernel(body: str, arrays: int = 3) -> str:
    """%d0: the memory, %d1: this lane's operand, %d2: this lane's result (addresses; the last two 8 bytes apart)."""
    head = ", ".join(f".param .u64 p{i}" for i in range(arrays))
    loads = " ".join(f"ld.param.u64 %d{i}, [p{i}];" for i in range(arrays))
    steps = " ".join(f"mad.wide.u32 %d{i}, %t, 8, %d{i};" for i in range(1, arrays))
    return f".visible .entry k({head}) {{ {HEADER} {loads} mov.u32 %t, %laneid; {steps}\n{body}\nret; }}"


def wrap(bits: int) -> Callable[[int], int]:
    return lambda x: x & ((1 << bits) - 1)


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: a + b,
    "add.u64": lambda a, b: a + b,
    "min.u32": min,
    "max.u64": max,
    "min.s32": lambda a, b: min(a, b, key=lambda x: signed(x, 32)),
    "max.s64": lambda a, b: max(a, b, key=lambda x: signed(x, 64)),
    "and.b32": lambda a, b: a & b,
    "or.b64": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "exch.b32": lambda a, b: b,
    "exch.b64": lambda a, b: b,
    "inc.u32": lambda a, b: 0 if a >= b else a + 1,
    "dec.u32": lambda a, b: b if a == 0 or a > b else a - 1,
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_integers(operation: str, space: str) -> None:
    """All lanes on one word: each gets what the lanes before it made."""
    bits = int(operation[-2:])
    random = np.random.default_rng(3)
    operands = random.integers(0, 1 << 64, 32, np.uint64) >> np.uint64(64 - bits)
    if operation[:3] in ("inc", "dec"):
        operands = random.integers(1, 6, 32).astype(np.uint64)
    memory = random.integers(0, 1 << 64, 1, np.uint64) >> np.uint64(64 - bits)
    olds = np.zeros(32, np.uint64)
    reg, move = ("%r1", "u32") if bits == 32 else ("%d5", "u64")
    result = "%r2" if bits == 32 else "%d6"
    opcode, type = operation.split(".")
    body = f"ld.global.{move} {reg}, [%d1];"
    if space == "shared":
        body += ".shared .align 8 .b64 s; ld.global.u64 %d7, [%d0]; st.shared.u64 [s], %d7;"
        body += f"atom.shared.{opcode}.{type} {result}, [s], {reg};"
        body += "bar.warp.sync -1; ld.shared.u64 %d7, [s]; st.global.u64 [%d0], %d7;"
    else:
        body += f"atom.relaxed.gpu.global.{opcode}.{type} {result}, [%d0], {reg};"
    body += f"st.global.{move} [%d2], {result};"
    value, want = int(memory[0]), []
    for b in operands.tolist():
        want.append(value)
        value = wrap(bits)(OPERATIONS[operation](value, b))
    launch(kernel(body), [memory, operands, olds])
    assert olds.tolist() == want and int(memory[0]) == value


def test_compare_and_swap() -> None:
    memory, olds = np.array([5], np.uint64), np.zeros(32, np.uint64)
    body = (
        "add.u32 %r1, %t, 5; add.u32 %r2, %r1, 1; atom.global.cas.b32 %r3, [%d0], %r1, %r2; st.global.u32 [%d2], %r3;"
    )
    launch(kernel(body), [memory, olds, olds])
    assert olds.tolist() == [5 + i for i in range(32)] and memory[0] == 37


def test_reductions_leave_no_result_and_respect_guards() -> None:
    memory = np.zeros(2, np.uint32)
    body = "setp.lt.u32 %p1, %t, 9; @%p1 red.global.add.u32 [%d0+4], 2; red.async_free.global.add.u32 [%d0], 1;"
    body = body.replace("async_free.", "")
    launch(kernel(body, 1), [memory])
    assert memory.tolist() == [32, 18]


def test_float_additions() -> None:
    memory, operands = np.array([0.5, 0], np.float32), np.zeros(64, np.float32)
    operands[::2] = np.random.default_rng(4).standard_normal(32)
    olds = np.zeros(32, np.uint64)
    body = "ld.global.f32 %f1, [%d1]; atom.global.add.f32 %f2, [%d0], %f1; st.global.f32 [%d2], %f2;"
    value, want = np.float32(0.5), []
    for x in operands[::2]:
        want.append(value)
        value = np.float32(value + x)
    launch(kernel(body), [memory, operands, olds])
    assert (olds.view(np.float32)[::2] == want).all() and memory[0] == value


@pytest.mark.parametrize(("space", "want"), [("global", 0), ("shared", 32)])
def test_subnormal_sums_are_flushed_in_global_memory_alone(space: str, want: int) -> None:
    memory = np.zeros(1, np.uint64)
    place = "[%d0]" if space == "global" else "[s]"
    body = f".shared .align 8 .b64 s; st.shared.u64 [s], 0; mov.b32 %f1, 1; red.{space}.add.f32 {place}, %f1;"
    if space == "shared":
        body += "bar.warp.sync -1; ld.shared.u64 %d7, [s]; st.global.u64 [%d0], %d7;"
    launch(kernel(body, 1), [memory])
    assert memory[0] == want


def test_doubles() -> None:
    memory = np.array([1e-3])
    launch(kernel(".reg .f64 %g; mov.f64 %g, 0d3FD5555555555555; red.global.add.f64 [%d0], %g;", 1), [memory])
    value = np.float64(1e-3)
    for _ in range(32):
        value += np.float64(np.array([0x3FD5555555555555], np.uint64).view(np.float64)[0])
    assert memory[0] == value


@pytest.mark.parametrize("operation", ["add", "min", "max"])
def test_halves_one_by_one_and_in_pairs(operation: str) -> None:
    random = np.random.default_rng(8)
    memory = np.array([1.5, -2], np.float16)
    operands = np.zeros((32, 4), np.float16)
    operands[:, :2] = random.standard_normal((32, 2)) * 10.0 ** random.integers(-7, 4, (32, 2))
    body = f"ld.global.b32 %r1, [%d1]; red.global.{operation}.noftz.f16x2 [%d0], %r1;"
    combine = {"add": np.add, "min": np.minimum, "max": np.maximum}[operation]
    want = memory.copy()
    for row in operands:
        want = combine(want, row[:2])
    launch(kernel(body, 2), [memory, operands])
    assert (memory.view(np.uint16) == want.view(np.uint16)).all()


def to_bf16(x: np.ndarray) -> np.ndarray:
    """Rounds to nearest even by integer arithmetic on the bits (no NaN here)."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def test_bf16_additions() -> None:
    random = np.random.default_rng(9)
    operands = np.zeros((32, 4), np.uint16)
    operands[:, 0] = to_bf16(random.standard_normal(32))
    memory, value = np.zeros(1, np.uint32), np.zeros(1, np.uint16)
    for row in operands:
        wide = (np.array([value[0], row[0]], np.uint32) << 16).view(np.float32)
        value = to_bf16(wide[:1] + wide[1:])
    body = "ld.global.b16 %h1, [%d1]; red.global.add.noftz.bf16 [%d0], %h1;"
    launch(kernel(body, 2), [memory, operands])
    assert memory[0] == value[0]


def test_vectors_are_added_element_by_element() -> None:
    memory = np.arange(4, dtype=np.float32)
    olds = np.zeros((32, 2), np.float32)
    body = """mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; mov.f32 %f3, 0f40400000; mov.f32 %f4, 0f40800000;
    atom.global.add.v4.f32 {%f5, %f6, %f7, %f8}, [%d0], {%f1, %f2, %f3, %f4}; st.global.v2.f32 [%d2], {%f5, %f8};"""
    launch(kernel(body), [memory, olds, olds])
    assert (memory == np.arange(4) + 32 * np.arange(1, 5)).all()
    assert (olds[:, 0] == LANE).all() and (olds[:, 1] == 3 + 4 * LANE).all()


def test_128_bits() -> None:
    memory = np.array([7, 8], np.uint64)
    olds = np.zeros((32, 2), np.uint64)
    body = """cvt.u64.u32 %d3, %t; mov.b64 %d5, 9; add.u64 %d7, %d3, 1;
    setp.eq.u32 %p1, %t, 0; mov.b128 %q1, {%d3, %d5}; mov.b128 %q2, {%d7, %d5};
    @%p1 atom.global.exch.b128 %q3, [%d0], %q1; @!%p1 atom.global.cas.b128 %q3, [%d0], %q1, %q2;
    mov.b128 {%d8, %d9}, %q3; st.global.u64 [%d2], %d9;"""
    launch(kernel(body), [memory, olds, olds])
    assert memory.tolist() == [0, 9]  # lane 1 compares with (1, 9), and finds (0, 9)
    body = body.replace(
        "@!%p1 atom.global.cas.b128 %q3, [%d0], %q1, %q2;",
        "add.u64 %d3, %d3, -1; mov.b128 %q1, {%d3, %d5};"
        "add.u64 %d7, %d3, 1; mov.b128 %q2, {%d7, %d5}; @!%p1 atom.global.cas.b128 %q3, [%d0], %q1, %q2;",
    )
    launch(kernel(body), [memory, olds, olds])
    assert memory.tolist() == [31, 9]


def test_atomics_that_change_nothing_are_no_writes() -> None:
    memory = np.array([3], np.uint32)
    made = launch(kernel("atom.global.cas.b32 %r1, [%d0], 8, 9;", 1), [memory])
    before = int(made.launch[0]["writes"])
    made = launch(kernel("atom.global.cas.b32 %r1, [%d0], 3, 9;", 1), [memory])
    assert before == 0 and made.launch[0]["writes"] == 1
