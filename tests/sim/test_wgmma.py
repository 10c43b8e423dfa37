"""``wgmma``: descriptors and products against matrices laid out element by element by the PTX ISA's rules."""

from __future__ import annotations

from typing import Any

import matrix_fragments as fragments
import numpy as np
import pytest
from test_mma import codes, codes_and_values, floats

from ptxdsl.ptx.module import Immediate, Instruction, Register, Vector
from ptxdsl.sim.matrix import wgmma_form
from ptxdsl.sim.matrix.arithmetic import quiet
from ptxdsl.sim.matrix.wgmma_descriptor import Descriptor, decode, elements, tile

RNG = np.random.default_rng(11)
SWIZZLE_CODES = {0: 0, 128: 1, 64: 2, 32: 3}
K = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "b1": 1}


def descriptor(address: int, leading: int, stride: int, swizzle: int, base: int = 0) -> int:
    """The 64-bit value, by the table "Matrix Descriptor Format"."""
    return address >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | base << 49 | SWIZZLE_CODES[swizzle] << 62


def swizzled(line: int, chunk: int, swizzle: int) -> int:
    """Where chunk (of 16 bytes) number ``chunk`` of a row lies in that row, in the patterns of the ISA's figures: the
    exchange changes every row with 128 bytes, every second row with 64 and every fourth with 32."""
    return chunk ^ (line % 8) * swizzle // 128 if swizzle else chunk


class SharedMatrix:
    """A matrix of ``rows`` (M or N) by k codes in a memory of bytes, and its descriptor.

    One atom is 8 lines of ``swizzle`` bytes. Strides are as a kernel might choose them, with gaps.
    """

    def __init__(
        self, matrix: Any, bits: int, swizzle: int, mn_major: bool, address: int = 4096, base: int = 0
    ) -> None:
        rows, k = matrix.shape
        self.memory = RNG.integers(0, 256, 1 << 17).astype(np.uint8)
        width = swizzle or 16
        per_chunk = 128 // bits
        along, across = (rows, k) if mn_major else (k, rows)
        atoms = -(-along // (8 * width // bits))
        lines = -(-across // 8)
        # Two strides: to the next 8 lines, and to the next atom along the major direction.
        if mn_major:
            next_lines = 8 * width * atoms + (1024 if swizzle else 64)
            next_atom = 8 * width
        else:
            next_lines, next_atom = 8 * width + (1024 if swizzle else 64), (8 * width + 64) * lines
        for line in range(across):
            for chunk in range(-(-along // per_chunk)):
                place = address + line // 8 * next_lines + line % 8 * width
                if swizzle:
                    place += chunk // (width // 16) * next_atom + 16 * swizzled(line, chunk % (width // 16), swizzle)
                else:
                    place += chunk * next_atom
                codes = matrix[chunk * per_chunk :][:per_chunk, line] if mn_major else matrix[line, chunk * per_chunk :]
                whole = sum(int(code) << bits * i for i, code in enumerate(codes[:per_chunk]))
                self.memory[place : place + 16] = np.frombuffer(whole.to_bytes(16, "little"), np.uint8)
        if mn_major and swizzle:
            strides = next_atom, next_lines
        elif mn_major:
            strides = next_lines, next_atom
        else:
            strides = next_atom if not swizzle else 16, next_lines
        self.descriptor = descriptor(address, *strides, swizzle, base)

    def read(self, *extent: Any) -> Any:
        fields = decode(self.descriptor)
        place = tile(fields, *extent)
        start = fields.address + place.offset
        return elements(place, self.memory[start : start + place.size])


def form(opcode: str, a_mn: bool = False, b_mn: bool = False) -> wgmma_form.Form:
    found = wgmma_form.parse(opcode)
    assert isinstance(found, wgmma_form.Form), found
    immediates = tuple(Immediate(value) for value in (1, 1, int(a_mn), int(b_mn)))
    return found.transposed(Instruction(opcode, (Vector(()),) * 4 + immediates, None, 1))


def accumulator_place(g: int, t: int, i: int) -> tuple[int, int]:
    """The figures of the accumulator D: the one of mma, repeated every 8 columns."""
    row, column = fragments.C[16](g, t, i % 4)
    return row, 8 * (i // 4) + column


def d_words(matrix: Any, bits: int) -> Any:
    return np.stack([fragments.pack(matrix[16 * warp : 16 * warp + 16], accumulator_place, bits) for warp in range(4)])


def d_matrix(words: Any, bits: int, n: int) -> Any:
    return np.concatenate([fragments.unpack(words[warp], accumulator_place, bits, (16, n)) for warp in range(4)])


def product(
    opcode: str, n: int, a_type: str, b_type: str, d_type: str,
    swizzle: tuple[int, int] = (128, 128), mn: tuple[bool, bool] = (False, False),
    registers: bool = False, accumulate: bool = True, negate: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """D's values as the simulator makes them, and as NumPy does."""
    k = K[a_type]
    a, a_values = codes_and_values(a_type, (64, k))
    b, b_values = codes_and_values(b_type, (k, n))
    d_values = RNG.integers(-9, 9, (64, n)).astype(np.float64)
    bits = 16 if d_type == "f16" else 32
    f = form(opcode, *mn)
    if registers:
        place = fragments.A[f"m16n8k{k}", BITS.get(a_type, 8)]
        words = [fragments.pack(a[16 * w : 16 * w + 16], place, BITS.get(a_type, 8)) for w in range(4)]
        left = f.a_of_registers(np.stack(words))
    else:
        left = f.a_of_memory(SharedMatrix(a, BITS.get(a_type, 8), swizzle[0], mn[0]).read(*f.extent("a")))
    right = f.b_of_memory(SharedMatrix(b.T, BITS.get(b_type, 8), swizzle[1], mn[1]).read(*f.extent("b")))
    before = d_words(codes(d_values, d_type), bits) if accumulate else None
    with quiet():
        after = f.multiply(left, right, before, negate)
        exact = a_values @ b_values * (-1 if negate else 1) + (d_values if accumulate else 0)
        return floats(d_matrix(after, bits, n), d_type), floats(codes(exact, d_type), d_type)


TYPES = [
    ("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"),
    *((a, b, d) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2") for d in ("f32", "f16")),
    *((a, b, "s32") for a in ("s8", "u8") for b in ("s8", "u8")),
]  # fmt: skip


@pytest.mark.parametrize(("a_type", "b_type", "d_type"), TYPES, ids=".".join)
@pytest.mark.parametrize("registers", [False, True], ids=["shared", "registers"])
def test_every_type(a_type: str, b_type: str, d_type: str, registers: bool) -> None:
    opcode = f"wgmma.mma_async.sync.aligned.m64n16k{K[a_type]}.{d_type}.{a_type}.{b_type}"
    got, expected = product(opcode, 16, a_type, b_type, d_type, registers=registers)
    assert (got == expected).all()


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_every_n(n: int) -> None:
    got, expected = product(f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16", n, "bf16", "bf16", "f32")
    assert (got == expected).all()


@pytest.mark.parametrize("a_swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("b_swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("mn", [(False, False), (False, True), (True, False), (True, True)])
def test_every_swizzle_and_majorness(a_swizzle: int, b_swizzle: int, mn: tuple[bool, bool]) -> None:
    opcode = "wgmma.mma_async.sync.aligned.m64n88k16.f32.f16.f16"
    got, expected = product(opcode, 88, "f16", "f16", "f32", (a_swizzle, b_swizzle), mn)
    assert (got == expected).all()


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize(("type", "d_type"), [("tf32", "f32"), ("s8", "s32"), ("e5m2", "f32")])
def test_other_element_sizes_in_every_swizzle(swizzle: int, type: str, d_type: str) -> None:
    opcode = f"wgmma.mma_async.sync.aligned.m64n32k{K[type]}.{d_type}.{type}.{type}"
    got, expected = product(opcode, 32, type, type, d_type, (swizzle, swizzle))
    assert (got == expected).all()


def test_single_bits() -> None:
    got, expected = product("wgmma.mma_async.sync.aligned.m64n24k256.s32.b1.b1.and.popc", 24, "b1", "b1", "s32")
    assert (got == expected).all()


def test_scale_d_and_negation() -> None:
    opcode = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    for accumulate in (False, True):
        got, expected = product(opcode, 8, "f16", "f16", "f32", accumulate=accumulate, negate=True)
        assert (got == expected).all()


def test_integers_wrap_or_saturate() -> None:
    for satfinite, expected in (("", 2**31 - 1 + 32 * 127 * 127 - 2**32), (".satfinite", 2**31 - 1)):
        f = form(f"wgmma.mma_async.sync.aligned.m64n8k32{satfinite}.s32.s8.s8")
        a = np.full((64, 32), 127, np.float32)
        after = f.multiply(a, a[:8].T, np.full((4, 4, 32), 2**31 - 1, np.uint32))
        assert set(after.view(np.int32).ravel()) == {expected}


def test_a_tile_is_walked_along_k_by_adding_to_the_address() -> None:
    # A 64 x 64 tile of f16 in rows of 128 swizzled bytes: the second k16 starts 32 bytes further.
    whole = RNG.integers(0, 1 << 16, (64, 64))
    shared = SharedMatrix(whole, 16, 128, False)
    for step in range(4):
        shared.descriptor += 0 if step == 0 else 32 >> 4
        found = shared.read(64, 16, 16, False).view(np.uint16).reshape(64, 16)
        assert (found == whole[:, 16 * step : 16 * step + 16]).all()


@pytest.mark.parametrize(("swizzle", "row"), [(128, 3), (64, 1), (32, 1)])
def test_the_base_offset_is_where_the_pattern_starts(swizzle: int, row: int) -> None:
    matrix = RNG.integers(0, 1 << 16, (64, 16))
    shared = SharedMatrix(matrix, 16, swizzle, False, address=4096 + 128 * row, base=row)
    assert (shared.read(64, 16, 16, False).view(np.uint16).reshape(64, 16) == matrix).all()


def cute_offset(coordinate: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """What a CuTe mode makes of an integral coordinate: digits in the mixed base ``shape``, times the strides."""
    total = 0
    for extent, step in zip(shape, stride, strict=True):
        total += coordinate % extent * step
        coordinate //= extent
    return total


@pytest.mark.parametrize(
    ("mode", "major", "bits", "rows_mode", "k_mode", "leading", "stride"),
    [  # the examples of "Canonical Layouts": the exact layout, then LBO and SBO in elements
        (0, "k", 32, ((8, 2), (4, 32)), ((4, 4), (1, 64)), 64, 32),
        (1, "k", 32, ((8, 2), (8, 64)), ((4, 4), (1, 4)), 0, 64),
        (0, "mn", 16, ((8, 1, 2), (1, 8, 64)), ((8, 2), (8, 128)), 128, 64),
        (1, "mn", 16, ((8, 2, 2), (1, 8, 128)), ((8, 2), (16, 256)), 128, 256),
        (2, "mn", 16, ((8, 4, 2), (1, 8, 256)), ((8, 2), (32, 512)), 256, 512),
    ],
)  # fmt: skip
def test_the_canonical_layouts_that_the_isa_writes_out(
    mode: int, major: str, bits: int, rows_mode: Any, k_mode: Any, leading: int, stride: int
) -> None:
    size = bits // 8
    swizzle = (0, 32, 64)[mode]
    rows, k = int(np.prod(rows_mode[0])), int(np.prod(k_mode[0]))
    if (mode, major) == (1, "k"):
        k = 8  # one instruction's; the row of 32 bytes holds no more
    place = tile(Descriptor(0, leading * size, stride * size, 0, swizzle), rows, k, bits, major == "mn")
    memory = np.arange(1 << 14, dtype=np.uint32 if bits == 32 else np.uint16)
    octets = memory.view(np.uint8)[place.offset : place.offset + place.size]
    found = elements(place, octets).view(memory.dtype)
    found = found.reshape(k, rows).T if major == "mn" else found.reshape(rows, k)
    for row in range(rows):
        for column in range(k):
            byte = size * (cute_offset(row, *rows_mode) + cute_offset(column, *k_mode))
            byte ^= (byte >> 7 & (1 << mode) - 1) << 4  # Swizzle<mode, 4, 3> of bytes
            assert found[row, column] == byte // size


@pytest.mark.parametrize(
    ("opcode", "message"),
    [
        ("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16", "this wgmma.mma_async has 10 operands, not 8"),
        ("wgmma.mma_async.sync.aligned.m64n20k16.f32.f16.f16",
         "wgmma.mma_async of f16 and f16 in the shape m64n20k16 is not supported"),
        ("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8",
         "wgmma.mma_async of s8 and s8 in the shape m64n40k32 is not supported"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16",
         "wgmma.mma_async of bf16 and bf16 with a result of f16 is not supported"),
        ("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16",
         "this wgmma.mma_async has 8 registers for D, not 4"),
        ("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", "this wgmma.mma_async has 6 operands, not 8"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", None),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_said_before_execution(opcode: str, message: str | None) -> None:
    d = Vector(tuple(Register(f"%f{i}") for i in range(4)))
    operands = (d, Register("%rd1"), Register("%rd2"), Register("%p1"), *(Immediate(v) for v in (1, -1, 0, 1)))
    assert wgmma_form.unsupported(Instruction(opcode, operands, None, 1)) == message
