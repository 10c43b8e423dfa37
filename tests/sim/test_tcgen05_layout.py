"""Where tcgen05 puts things, against the ISA's canonical layouts, its examples, and fragments of other instructions."""

import numpy as np
import pytest
from tcgen05_packing import pack_shared

from ptxdsl.sim.matrix import fragments as matrix_layout
from ptxdsl.sim.matrix.wgmma_descriptor import elements
from ptxdsl.sim.tcgen05.descriptor import decode_shared
from ptxdsl.sim.tcgen05.layout import (
    LAYOUTS,
    MOVEMENTS,
    layout_id,
    movement,
    scale_rows,
    tile,
    unpack_shared,
    zero_columns,
)

# Shapes of tcgen05.ld and tcgen05.st


def test_32x32b_gives_each_thread_a_lane():
    lanes, columns = movement("32x32b", 4, False)
    assert (lanes == np.arange(32)).all()
    assert (columns == np.arange(4)[:, None]).all()


def test_16x64b_by_hand():
    """Threads 0-3: lane 0 column 0, lane 8 column 0, lane 0 column 1, lane 8 column 1; then lane 1 and so on."""
    lanes, columns = movement("16x64b", 2, False)
    assert lanes[0, :8].tolist() == [0, 8, 0, 8, 1, 9, 1, 9]
    assert columns[0, :8].tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert lanes[0, 28:].tolist() == [7, 15, 7, 15]
    assert (lanes[1] == lanes[0]).all()
    assert (columns[1] == columns[0] + 2).all()


def test_16x128b_is_the_fragment_of_tf32_in_mma_m16n8k4():
    fragment = matrix_layout.multiplicand_a(16, 4, 1)
    lanes, columns = movement("16x128b", 1, False)
    assert (lanes == fragment.rows[:, :, 0]).all()
    assert (columns == fragment.columns[:, :, 0]).all()


def test_16x256b_is_the_accumulator_of_mma_m16n8():
    fragment = matrix_layout.accumulator(16, 8, 1)
    lanes, columns = movement("16x256b", 2, False)
    assert (lanes[:4] == fragment.rows[:, :, 0]).all()
    assert (columns[:4] == fragment.columns[:, :, 0]).all()
    assert (columns[4:] == fragment.columns[:, :, 0] + 8).all()


def test_16x32bx2_has_two_addresses():
    lanes, columns = movement("16x32bx2", 2, False, split=20)
    assert lanes[0].tolist() == [*range(16), *range(16)]
    assert columns[1].tolist() == [1] * 16 + [21] * 16


@pytest.mark.parametrize("shape", MOVEMENTS)
@pytest.mark.parametrize("repeats", [1, 2, 16])
@pytest.mark.parametrize("packed", [False, True])
def test_every_cell_is_moved_once(shape, repeats, packed):
    """Lane x size: 16 or 32 lanes of (size x num) bits; packed, every second column is the first of a pair."""
    split = repeats * (2 if packed else 1)
    lanes, columns = movement(shape, repeats, packed, split if shape == "16x32bx2" else 0)
    cells = set(zip(lanes.ravel().tolist(), columns.ravel().tolist(), strict=True))
    width = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8, "16x32bx2": 2}[shape] * repeats
    step = 2 if packed else 1
    assert cells == {(lane, step * column) for lane in range(MOVEMENTS[shape].lanes) for column in range(width)}
    assert lanes.size == len(cells)


def test_pairs_of_columns_are_packed_in_order():
    """Packing and Unpacking: two 16-bit chunks of adjacent columns in one register."""
    _, plain = movement("16x256b", 2, False)
    _, packed = movement("16x256b", 2, True)
    assert (packed == 2 * plain).all()


# Data path layouts

TABLE = [  # M, cta_group, .ws -> layout ID: the ISA's table, of a dense A
    (32, 1, True, "G"), (64, 1, True, "E"), (64, 1, False, "F"), (128, 1, False, "D"), (128, 1, True, "D"),
    (128, 2, False, "B"), (256, 2, False, "A"),
]  # fmt: skip


@pytest.mark.parametrize(("m", "cta_group", "ws", "id"), TABLE)
def test_layout_of_each_variant(m, cta_group, ws, id):
    assert layout_id(m, cta_group, ws) == id
    assert LAYOUTS[id].rows == m // cta_group
    assert LAYOUTS[id].alignments == ((0, 16) if id == "F" else (0,))


# Of (row, column) of D in a CTA, with N = 128: lane and column of tensor memory.
CELLS = {
    "A": {(0, 0): (0, 0), (127, 127): (127, 127), (77, 3): (77, 3)},
    "D": {(0, 0): (0, 0), (127, 127): (127, 127), (77, 3): (77, 3)},
    "B": {(0, 0): (0, 0), (63, 63): (63, 63), (0, 64): (64, 0), (63, 127): (127, 63)},
    "E": {(0, 0): (0, 0), (63, 63): (63, 63), (0, 64): (64, 0), (63, 127): (127, 63)},
    "F": {(0, 0): (0, 0), (15, 127): (15, 127), (16, 0): (32, 0), (63, 5): (111, 5)},
    "G": {(0, 0): (0, 0), (31, 31): (31, 31), (0, 32): (32, 0), (31, 127): (127, 31)},
}


@pytest.mark.parametrize("id", CELLS)
def test_cells_of_layout(id):
    layout, found = LAYOUTS[id], {}
    width = 128 // layout.parts
    for strips in (layout.strips, layout.per_partition()):
        for strip in strips:
            for row in range(strip.rows):
                for column in range(width):
                    found[strip.row + row, strip.part * width + column] = (strip.lane + row, column)
        assert len(found) == layout.rows * 128
        assert {cell: found[cell] for cell in CELLS[id]} == CELLS[id]


# Shared memory


def swizzled(offset: int, bits: int) -> int:
    """Swizzle<bits, 4, 3> of CuTe, on byte offsets."""
    return offset ^ (offset >> 3 & ((1 << bits) - 1) << 4)


def bytes_of(offsets: np.ndarray, swizzle_bits: int) -> np.ndarray:
    return np.vectorize(lambda offset: swizzled(int(offset), swizzle_bits))(offsets)


def read(value: int, rows: int, k: int, bits: int, mn_major: bool) -> np.ndarray:
    """The byte offsets (from the start address) of a matrix's elements, as the descriptor has them: (rows, k)."""
    place = tile(decode_shared(value, "A"), rows, k, bits, mn_major)
    size = bits // 8
    memory = np.zeros(place.size, np.uint8)
    parts = []
    for byte in range(3):  # each byte of memory gets its offset, one byte of the number at a time
        memory[:] = (np.arange(place.size) + place.offset) >> 8 * byte & 0xFF
        octets = elements(place, memory).reshape(place.chunks.shape[0], -1)[:, ::size]
        parts.append(octets.astype(np.int64) << 8 * byte)
    found = sum(parts)
    return found.T if mn_major else found


# The ISA's examples of canonical layouts: the exact layout in elements, LBO and SBO as the descriptor has them.


def test_example_k_major_without_swizzle_tf32():
    """((8,2),(4,4)):((4,32),(1,64)), LBO 16, SBO 8 encoded."""
    value = 16 << 16 | 8 << 32 | 1 << 46 | 0 << 61
    row, column = np.arange(16)[:, None], np.arange(16)[None, :]
    expected = 4 * (row % 8 * 4 + row // 8 * 32 + column % 4 + column // 4 * 64)
    assert (read(value, 16, 16, 32, False) == expected).all()


def test_example_k_major_32_byte_swizzle_tf32():
    """Swizzle<1,4,3> o ((8,2),(4,4)):((8,64),(1,4)), SBO 16 encoded; the tile is one row of 32 bytes wide: K = 8."""
    value = 1 << 16 | 16 << 32 | 1 << 46 | 6 << 61
    row, column = np.arange(16)[:, None], np.arange(8)[None, :]
    expected = bytes_of(4 * (row % 8 * 8 + row // 8 * 64 + column), 1)
    assert (read(value, 16, 8, 32, False) == expected).all()


@pytest.mark.parametrize(
    ("swizzle_bits", "code", "width", "leading", "stride", "lbo", "sbo"),
    [
        # MN-major bf16: ((8,1,2),(8,2)):((1,8,64),(8,128)) / ((8,2,2),(8,2)):((1,8,128),(16,256)) /
        # ((8,4,2),(8,2)):((1,8,256),(32,512)). Without swizzling SBO is the step along M or N.
        (0, 0, 1, 128, 64, 16, 8),
        (1, 6, 2, 128, 256, 16, 32),
        (2, 4, 4, 256, 512, 32, 64),
    ],
)
def test_examples_mn_major_bf16(swizzle_bits, code, width, leading, stride, lbo, sbo):
    value = lbo << 16 | sbo << 32 | 1 << 46 | code << 61
    rows = 8 * width * 2
    row, k = np.arange(rows)[:, None], np.arange(16)[None, :]
    inner = row % 8 + row // 8 % width * 8
    if swizzle_bits:
        expected = inner + row // (8 * width) * leading + k % 8 * 8 * width + k // 8 * stride
    else:
        expected = inner + row // 8 * stride + k % 8 * 8 + k // 8 * leading
    assert (read(value, rows, 16, 16, True) == bytes_of(2 * expected, swizzle_bits)).all()


def test_k_major_128_byte_swizzle():
    """Swizzle<3,4,3> o ((8,m),(T,2k)):((8T,SBO),(1,T)), and a start within the row of 128 bytes, as K is stepped."""
    row, column = np.arange(32)[:, None], np.arange(16)[None, :]
    for step in range(4):
        value = pack_shared(0x8000 + 32 * step, 16, 1024, "128B")
        expected = bytes_of(row % 8 * 128 + row // 8 * 1024 + 2 * column + 32 * step, 3)
        assert (read(value, 32, 16, 16, False) + 32 * step == expected).all()


def test_mn_major_128_bytes_with_atoms_of_32():
    """8 x 4 chunks of 16 bytes an atom; Swizzle<2,5,2>: address bits 5-6 with bits 7-8. tf32: 32 x 4 elements."""
    leading, stride = 2048, 512
    value = pack_shared(0x400, leading, stride, "128B with 32B atoms")
    row, k = np.arange(64)[:, None], np.arange(8)[None, :]
    offset = row % 32 * 4 + row // 32 * leading + k % 4 * 128 + k // 4 * stride
    expected = offset ^ (offset >> 2 & 3 << 5)
    assert (read(value, 64, 8, 32, True) == expected).all()


def test_a_tile_of_128_byte_rows_read_with_32_byte_swizzle():
    """Seen on the card (CUTLASS's example of sliced K): rows of 128 bytes, stored with the 128-byte swizzle and read as
    four rows of 32 bytes each, show their 32-byte pieces in the order slot ^ (row >> 3 & 3), each piece whole."""
    memory = np.zeros((32, 128), np.int64)
    stored = memory.reshape(-1)
    for row in range(32):
        for byte in range(128):
            stored[swizzled(row * 128 + byte, 3)] = row * 128 + byte
    offsets = read(pack_shared(0x400, 16, 256, "32B"), 128, 32, 8, False)
    seen = stored[offsets]
    physical = np.arange(128)
    piece = physical % 4 ^ (physical >> 3 & 3)
    assert (seen == (physical // 4 * 128 + piece * 32)[:, None] + np.arange(32)).all()


# Scale factors


def test_scale_factors_of_128_rows():
    """cuBLAS's layout of a 128 x 4 tile of scale factors in 512 bytes, (row % 32) * 16 + row / 32 * 4 + k, copied by
    .32x128b: a lane gets 16 bytes, so row r lies in lane r % 32, column r / 32."""
    scales = np.random.default_rng(0).integers(0, 255, (128, 4), np.uint8)
    blocked = np.zeros(512, np.uint8)
    for row in range(128):
        for k in range(4):
            blocked[row % 32 * 16 + row // 32 * 4 + k] = scales[row, k]
    words = blocked.view(np.uint32).reshape(32, 4)
    assert (scale_rows(words, 128, 0, 4, 0) == scales).all()
    assert (scale_rows(words, 32, 64, 2, 2) == scales[64:96, 2:]).all()
    assert (scale_rows(words, 128, 0, 1, 3) == scales[:, 3:]).all()


# Elements of 4 and 6 bits


def test_elements_with_padding():
    """16 elements of 4 bits, then 8 bytes of padding; 16 of 6 bits, then 4 bytes."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 16, (3, 32), np.uint8)
    octets = rng.integers(0, 256, (3, 2, 16), np.uint8)
    octets[..., :8] = (codes[:, ::2] | codes[:, 1::2] << 4).reshape(3, 2, 8)
    assert (unpack_shared(octets.reshape(3, 32), 4) == codes).all()
    codes = rng.integers(0, 64, (3, 32), np.uint8)
    octets = rng.integers(0, 256, (3, 2, 16), np.uint8)
    for row, chunk in np.ndindex(3, 2):
        number = sum(int(code) << 6 * i for i, code in enumerate(codes[row, 16 * chunk : 16 * chunk + 16]))
        octets[row, chunk, :12] = np.frombuffer(number.to_bytes(12, "little"), np.uint8)
    assert (unpack_shared(octets.reshape(3, 32), 6) == codes).all()


# The zero-column mask


def mask_descriptor(starts, firsts, non_zero, skip, use, shift):
    value = sum(start << 8 * i for i, start in enumerate(starts)) | sum(
        first << 32 + i for i, first in enumerate(firsts)
    )
    return value | non_zero << 39 | skip << 40 | use << 48 | shift << 56


def text(mask: np.ndarray) -> str:
    """As the ISA prints it: column 0 last."""
    return "".join("1" if bit else "0" for bit in mask[::-1])


def test_examples_of_the_zero_column_mask():
    assert not zero_columns(mask_descriptor((0,) * 4, (0,) * 4, 0, 4, 3, 0), 128, 64).any()
    assert text(zero_columns(mask_descriptor((0,), (0,), 1, 2, 3, 0), 128, 64)).endswith("11100001110000")
    mask = zero_columns(mask_descriptor((0, 0), (1, 0), 1, 2, 3, 0), 64, 64)
    assert text(mask[:32]).endswith("11100001110000111")
    assert text(mask[32:]).endswith("00001110000" + "1110000")
    mask = zero_columns(mask_descriptor((0, 1, 2, 1), (1, 1, 0, 0), 1, 2, 3, 2), 32, 128)
    assert text(mask[:32]).endswith("00001110000111")
    assert text(mask[32:64]).endswith("0000111000011")
    assert text(mask[64:96]).endswith("111000011100")
    assert text(mask[96:]).endswith("1110000111000")
