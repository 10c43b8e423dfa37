"""tcgen05.ld, .st, .cp and .shift on registers and memory."""

from __future__ import annotations

import numpy as np
import pytest
from tcgen05_bench import Bench
from tcgen05_matrices import put_matrix, random_codes, row_bytes
from tcgen05_packing import pack_shared

from ptxdsl.sim.host import Fault
from ptxdsl.sim.tcgen05.move import copy_unsupported, parse, unsupported

NUMBERS = np.arange(128)[:, None] * 1000 + np.arange(512)[None, :]  # what each word of tensor memory is set to
WAITS = "tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned;"
# shape -> registers of .x1, lanes, columns of .x1: "Various-combinations of .num and .shape", lane x size
SHAPES = {
    "32x32b": (1, 32, 1),
    "16x64b": (1, 16, 2),
    "16x128b": (2, 16, 4),
    "16x256b": (4, 16, 8),
    "16x32bx2": (1, 16, 1),
}


def names(count):
    return "{" + ", ".join(f"%r{50 + i}" for i in range(count)) + "}"


def numbered(**options):
    bench = Bench(**options).allocated()
    bench.words()[...] = NUMBERS
    return bench


def load(bench, shape, repeats, address, suffix="", warp=0, split=None):
    count = SHAPES[shape][0] * repeats
    registers = {"%r1": address}
    tail = "" if split is None else f", {split}"
    bench.execute(
        f"tcgen05.ld.sync.aligned.{shape}.x{repeats}{suffix}.b32 {names(count)}, [%r1]{tail};", registers, warp=warp
    )
    return np.stack([registers[f"%r{50 + i}"] for i in range(count)])


@pytest.mark.parametrize("shape", SHAPES)
def test_load_and_store_are_inverse(shape):
    count, lanes, columns = SHAPES[shape]
    for repeats in (1, 2, 128 // count):
        bench = numbered()
        split = repeats if shape == "16x32bx2" else None
        address = 64 << 16 | 8
        got = load(bench, shape, repeats, address, warp=2, split=split)
        width = columns * repeats * (2 if split else 1)
        assert sorted(got.reshape(-1).tolist()) == sorted(NUMBERS[64 : 64 + lanes, 8 : 8 + width].reshape(-1).tolist())
        bench.execute(WAITS, warp=2)
        bench.words()[...] = 0
        registers = {"%r1": address} | {f"%r{50 + i}": row for i, row in enumerate(got)}
        tail = f", {split}" if split else ""
        opcode = f"tcgen05.st.sync.aligned.{shape}.x{repeats}.b32"
        bench.execute(f"{opcode} [%r1]{tail}, {names(len(got))};", registers, warp=2)
        region = bench.words()[64 : 64 + lanes, 8 : 8 + width]
        assert (region == NUMBERS[64 : 64 + lanes, 8 : 8 + width]).all()
        assert np.count_nonzero(bench.words()) == region.size


def test_lanes_of_a_load():
    assert (load(numbered(), "32x32b", 2, 32 << 16 | 3, warp=1)[1] == NUMBERS[32:64, 4]).all()
    got = load(numbered(), "16x256b", 1, 16 << 16)
    assert got[0, :5].tolist() == [*NUMBERS[16, [0, 2, 4, 6]].tolist(), NUMBERS[17, 0]]
    assert got[2, 0] == NUMBERS[24, 0]


def test_offset_in_the_address():
    bench, registers = numbered(), {"%r1": 3}
    bench.execute("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1+16];", registers)
    assert (registers["%r2"] == NUMBERS[:32, 19]).all()


def test_two_addresses():
    got = load(numbered(), "16x32bx2", 2, 5, split=100)
    assert got[1].tolist() == NUMBERS[:16, 6].tolist() + NUMBERS[:16, 106].tolist()


def test_pack_and_unpack():
    """The low halves of two neighbouring columns, the first one in the low half of the register."""
    bench = Bench().allocated()
    bench.words()[...] = NUMBERS << 16 | np.arange(512)[None, :]
    got = load(bench, "32x32b", 2, 4, ".pack::16b")
    assert (got == np.array([[5 << 16 | 4], [7 << 16 | 6]])).all()
    bench.execute(WAITS)
    registers = {"%r1": 8, "%r2": 0xAAAA1111, "%r3": 0xBBBB2222}
    bench.execute("tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r1], {%r2, %r3};", registers)
    assert bench.words()[7, 8:12].tolist() == [0x1111, 0xAAAA, 0x2222, 0xBBBB]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("min.f32", -3.0), ("max.f32", 2.5), ("max.abs.f32", 3.0), ("min.abs.f32", 0.5), ("min.NaN.f32", np.nan),
    ],
)  # fmt: skip
def test_load_with_reduction(operation, expected):
    bench = Bench().allocated()
    bench.words()[:32, :4] = np.array([1.0, 2.5, -3.0, 0.5], np.float32).view(np.uint32)
    if "NaN" in operation:
        bench.words()[:32, 2] = 0x7FC00000
    registers = {"%r1": 0}
    bench.execute(f"tcgen05.ld.red.sync.aligned.32x32b.x4.{operation} {{%r2, %r3, %r4, %r5}}, %r6, [%r1];", registers)
    found = registers["%r6"].view(np.float32)
    assert (np.isnan(found) if np.isnan(expected) else found == expected).all()
    assert (registers["%r3"].view(np.float32) == 2.5).all()


def test_load_with_integer_reduction():
    bench = Bench().allocated()
    bench.words()[:32, :2] = [0xFFFFFFFF, 5]
    for operation, expected in (("min.s32", 0xFFFFFFFF), ("min.u32", 5), ("max.u32", 0xFFFFFFFF), ("max.s32", 5)):
        registers = {"%r1": 0}
        bench.execute(f"tcgen05.ld.red.sync.aligned.32x32b.x2.{operation} {{%r2, %r3}}, %r6, [%r1];", registers)
        assert (registers["%r6"] == expected).all()


def test_forms_that_do_not_exist():
    from ptxdsl.ptx.module import Instruction

    for opcode in ("tcgen05.ld.sync.aligned.16x256b.x64.b32", "tcgen05.ld.sync.aligned.64x32b.x1.b32"):
        assert unsupported(Instruction(opcode, (), None, 1)) == "this form of tcgen05.ld"
    assert not isinstance(parse("tcgen05.ld.sync.aligned.x1.32x32b.b32"), str)  # ptxas takes this order too
    assert copy_unsupported(Instruction("tcgen05.cp.cta_group::1.64x128b", (), None, 1)) is not None


# cp


def copied(shape, rows, octets, swizzle="none", formats="", lane=0, ctas=1):
    """The bench after a copy of random bytes to column 8, and those bytes (of each CTA)."""
    bench = numbered() if ctas == 1 else Bench(ctas).allocated()
    for i in range(ctas):
        bench.words(i)[...] = NUMBERS
    rng = np.random.default_rng(rows + octets)
    data = rng.integers(0, 256, (ctas, rows, octets), np.uint8)
    for i in range(ctas):
        descriptor = put_matrix(bench, 0x2000, data[i], "u8", swizzle, cta=i)
    bench.execute(
        f"tcgen05.cp.cta_group::{ctas}.{shape}{formats} [%r1], %d1;", {"%r1": lane << 16 | 8, "%d1": descriptor}
    )
    return bench, data if ctas > 1 else data[0]


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize(("shape", "octets"), [("128x256b", 32), ("128x128b", 16)])
def test_copy_of_128_lanes(shape, octets, swizzle):
    bench, data = copied(shape, 128, octets, swizzle)
    words = bench.words().copy()
    assert (words[:, 8 : 8 + octets // 4] == data.view(np.uint32)).all()
    words[:, 8 : 8 + octets // 4] = NUMBERS[:, 8 : 8 + octets // 4]
    assert (words == NUMBERS).all()


@pytest.mark.parametrize(
    ("shape", "rows", "places"),
    [
        ("32x128b.warpx4", 32, {0: 0, 1: 0, 2: 0, 3: 0}),  # of each warp, the first row of what it receives
        ("64x128b.warpx2::02_13", 64, {0: 0, 2: 0, 1: 32, 3: 32}),
        ("64x128b.warpx2::01_23", 64, {0: 0, 1: 0, 2: 32, 3: 32}),
    ],
)
def test_copy_to_several_warps(shape, rows, places):
    bench, data = copied(shape, rows, 16)
    for warp, row in places.items():
        assert (bench.words()[32 * warp : 32 * warp + 32, 8:12] == data[row : row + 32].view(np.uint32)).all()


def test_copy_of_four_rows():
    """One row to each partition, at the lane of the address in it: the last lane is what a shift leaves to renew."""
    bench, data = copied("4x256b", 4, 32, lane=31)
    assert (bench.words()[31::32, 8:16] == data.view(np.uint32)).all()
    assert (bench.words()[:31] == NUMBERS[:31]).all()


def test_copy_in_a_pair_is_from_each_cta_s_own_memory():
    bench, data = copied("128x128b", 128, 16, ctas=2)
    for i in range(2):
        assert (bench.words(i)[:, 8:12] == data[i].view(np.uint32)).all()


@pytest.mark.parametrize(("formats", "type", "shift"), [("b4x16_p64", "e2m1", 2), ("b6x16_p32", "e3m2", 0)])
def test_decompression(formats, type, shift):
    """16 elements of 4 or 6 bits and padding become 16 bytes: 4 bits in the middle, 6 bits at the low end."""
    bench = Bench().allocated()
    codes, _ = random_codes(np.random.default_rng(4), type, (128, 32))
    descriptor = put_matrix(bench, 0x2000, codes, type, "none")
    bench.execute(f"tcgen05.cp.cta_group::1.128x256b.b8x16.{formats} [%r1], %d1;", {"%r1": 0, "%d1": descriptor})
    assert (bench.words()[:, :8] == row_bytes(codes << shift, 8, False).view(np.uint32)).all()


def test_copy_must_fit():
    with pytest.raises(Fault, match="reaches lane 159"):
        copied("128x128b", 128, 16, lane=32)
    with pytest.raises(Fault, match="not allocated"):
        Bench().allocated(32).execute(
            "tcgen05.cp.cta_group::1.128x256b [%r1], %d1;", {"%r1": 25, "%d1": pack_shared(0x2000, 16, 256, "none")}
        )


# shift


def test_shift_moves_one_partition_towards_lane_0():
    bench = numbered()
    bench.execute("tcgen05.shift.cta_group::1.down [%r1];", {"%r1": 64 << 16 | 8})
    expected = NUMBERS.copy()
    expected[64:95, 8:16] = NUMBERS[65:96, 8:16]
    assert (bench.words() == expected).all()
    with pytest.raises(Fault, match="lane 16"):
        bench.execute("tcgen05.shift.down.cta_group::1 [%r1];", {"%r1": 16 << 16})
