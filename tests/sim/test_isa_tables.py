"""The tables of the PTX ISA against the ISA's own worked examples, and what they leave open."""

from __future__ import annotations

import numpy as np
import pytest
from isa_bench import Probe, mistake
from isa_tables import (
    UNDECIDED,
    containers,
    copies,
    data_paths,
    descriptors,
    fragments,
    scale_factors,
    shared_layouts,
)


@pytest.mark.parametrize("name", shared_layouts.EXAMPLES)
def test_canonical_layouts_of_the_examples(name: str) -> None:
    mode, size, leading, stride, shape, steps = shared_layouts.EXAMPLES[name]
    encoded = shared_layouts.EXAMPLE_ENCODINGS[name]
    assert encoded[1] == stride >> 4 and encoded[0] in (leading >> 4, None)
    rows, columns = (int(np.prod(extents)) for extents in shape)
    for row, k in np.ndindex(rows, columns):
        at = shared_layouts.nested(shape, steps, (row, k)) * size
        if name.startswith("MN"):
            assert shared_layouts.mn_major(row * size, k, mode, leading, stride) == at
        else:
            assert shared_layouts.k_major(row, k * size, mode, leading, stride) == at


@pytest.mark.parametrize("mode", shared_layouts.SWIZZLE_BITS)
def test_swizzles_exchange_addresses(mode: str) -> None:
    width, low, _, _ = shared_layouts.SWIZZLE_BITS[mode]
    pattern = descriptors.PATTERN_BYTES.get(mode, 1024)
    addresses = [shared_layouts.swizzled(at, mode) for at in range(pattern)]
    assert sorted(addresses) == list(range(pattern))
    assert all(
        at // width == found // width and at % (1 << low) == found % (1 << low) for at, found in enumerate(addresses)
    )


@pytest.mark.parametrize(("shape", "thread", "register"), fragments.CORNERS)
def test_corners_of_fragments(shape: str, thread: int, register: int) -> None:
    assert fragments.word(shape, thread, register) == fragments.CORNERS[shape, thread, register]


@pytest.mark.parametrize("shape", fragments.SHAPES)
def test_fragments_cover_a_rectangle(shape: str) -> None:
    for count in fragments.counts(shape):
        registers = count * fragments.REGISTERS[shape]
        split = registers if shape == "16x32bx2" else 0
        places = {fragments.word(shape, thread, r, split) for thread in range(32) for r in range(registers)}
        lanes = fragments.LANES[shape]
        assert places == {(lane, column) for lane in range(lanes) for column in range(32 * registers // lanes)}


@pytest.mark.parametrize(("rows", "cta_group", "ws", "sparse"), data_paths.LAYOUTS)
def test_data_paths_have_a_place_for_every_element(rows: int, cta_group: int, ws: bool, sparse: bool) -> None:
    layout = data_paths.LAYOUTS[rows, cta_group, ws, sparse]
    n = 64
    places = {data_paths.d_place(layout, i, j, n) for i in range(rows) for j in range(n)}
    assert len(places) == rows * n
    assert all(lane < data_paths.LANES and column < n for _, lane, column in places)


@pytest.mark.parametrize("example", descriptors.ZERO_COLUMN_EXAMPLES, ids=lambda example: f"M{example[0]}")
def test_zero_column_masks_of_the_examples(example: tuple) -> None:
    m, starts, first_spans, skip, use, printed = example
    mask = descriptors.zero_columns(m, 128, starts, first_spans, skip, use)
    width = 128 // descriptors.SUB_MASKS[m]
    for i, bits in enumerate(printed):
        part = mask[i * width : (i + 1) * width]
        assert "".join(map(str, part[: len(bits)][::-1])) == bits


def test_fields_of_descriptors_do_not_overlap() -> None:
    for fields in (*descriptors.INSTRUCTION.values(), descriptors.SHARED, descriptors.ZERO_COLUMN_MASK):
        taken = [bit for low, bits in fields.values() for bit in range(low, low + bits)]
        assert len(taken) == len(set(taken))


def test_scale_factor_ids_fill_a_word() -> None:
    for count, ids in scale_factors.VECTORS.values():
        assert sorted(first + i for first in ids for i in range(count)) == list(range(4))


def test_copies_give_every_lane_a_row() -> None:
    for shape, (rows, _) in copies.SOURCES.items():
        lanes = sorted(lane for row in range(rows) for lane in copies.lanes(shape, row))
        assert lanes == (list(range(128)) if shape != "4x256b" else [0, 32, 64, 96])


def test_values_of_the_formats() -> None:
    largest = {
        "e4m3": (0x7E, 448.0),
        "e5m2": (0x7B, 57344.0),
        "e2m3": (0x1F, 7.5),
        "e3m2": (0x1F, 28.0),
        "e2m1": (7, 6.0),
    }
    for kind, (word, value) in largest.items():
        assert containers.value(kind, word) == value
        assert containers.value(kind, word | 1 << containers.bits_of(kind) - 1) == -value


# What the tables leave open is refused, so that no guess passes for a result: name -> code of the error, instruction,
# %d0, %w0.
F16 = descriptors.typed("f16", "f16", "f16", m=128, n=64)
MMA = "tcgen05.mma.cta_group::1.kind::f16 [%t], %d0, %d0, %w0, %no;"
SCALED = """add.u32 %x, %t, 400; add.u32 %y, %t, 416;
    tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%t], %d0, %d0, %w0, [%x], [%y], %no;"""
SPARSE = """add.u32 %x, %t, 64;
    tcgen05.mma.sp.cta_group::1.kind::f16 [%t], %d0, %d0, [%x], %w0, %no;"""
K96 = descriptors.typed("mxf4", "e2m1", "e2m1", scale="ue8m0", m=128, n=64, k96=1)
PLAIN = descriptors.shared(0, 128, 256, "none")
REFUSED = {
    "sparse A of 64 rows": ("E1164", SPARSE, PLAIN, descriptors.typed("f16", "f16", "f16", m=64, n=64) | 1 << 2),
    "K-major with swizzled atoms of 32 bytes": ("E1163", MMA, descriptors.shared(0, 128, 1024, "128b_atom32"), F16),
    "absolute leading addresses": ("E1163", MMA, PLAIN | 1 << descriptors.SHARED["leading_mode"][0], F16),
    "reserved bits of a shared memory descriptor": ("E1163", MMA, PLAIN | 1 << 53, F16),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_left_open_is_refused(name: str) -> None:
    code, body, shared, word = REFUSED[name]
    assert mistake(Probe(body, shared=(bytes(1 << 14),), descriptors=(shared,), words=(word,))) == code


def test_what_is_left_open_is_listed() -> None:
    assert len(UNDECIDED) == len(set(UNDECIDED)) > 0
    for topic in (
        "layout C",
        "metadata",
        "K = 96",
        "32-byte atoms",
        "shift",
        "6-bit",
        "base_offset",
        "disable-output-lane",
    ):
        assert any(topic in line for line in UNDECIDED), topic
