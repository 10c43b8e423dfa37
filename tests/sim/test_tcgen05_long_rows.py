"""Products with K = 96: rows of 48 bytes that go on in the next 128 bytes, factors that go on in the next word."""

from __future__ import annotations

import numpy as np
import pytest
from tcgen05_bench import Bench
from tcgen05_matrices import d_matrix, floats, random_codes, row_bytes
from tcgen05_packing import pack_instruction, pack_shared

from ptxdsl.sim import numbers
from ptxdsl.sim.host import Fault

K, STEPS = 768, 8  # three boxes of 128 bytes, 8 products of 48 bytes
A_AT, B_AT = 0x400, 0x10000
A_SCALES, B_SCALES = 256, 320
ABSOLUTE = 1 << 52


def put_boxes(window, at, codes):
    """Rows of 384 bytes as boxes of 128, one after the other, swizzled: chunk c of row r in place c ^ r % 8."""
    rows = row_bytes(codes, 4, True)
    for row, line in enumerate(rows):
        for byte, value in enumerate(line):
            box, chunk = byte // 128 * 128 * len(rows), byte % 128 // 16
            window[at + box + row * 128 + (chunk ^ row % 8) * 16 + byte % 16] = value


def descriptor(at, rows, step):
    """Of the step-th 48 bytes; the leading dimension: where the box begins that they go on in."""
    first, last = 48 * step, 48 * step + 47
    rest = at + last // 128 * 128 * rows
    return pack_shared(at + first // 128 * 128 * rows + first % 128, rest, 1024, "128B") | ABSOLUTE


def put_factors(words, column, factors):
    """Factor f of a row in byte f % 4 of word f / 4: words of 128 rows are 4 columns, of more 8."""
    step = 4 if len(factors) <= 128 else 8
    octets = words.view(np.uint8).reshape(128, -1, 4)
    for (row, f), code in np.ndenumerate(factors):
        for partition in range(4):
            octets[32 * partition + row % 32, column + f // 4 * step + row // 32, f % 4] = code


@pytest.mark.parametrize(
    ("kind", "block", "scale", "n", "ctas"),
    [("mxf4nvf4", 16, "e4m3", 64, 1), ("mxf4nvf4", 16, "e4m3", 256, 2), ("mxf4", 32, "ue8m0", 144, 1)],
)
def test_products(kind, block, scale, n, ctas):
    rng = np.random.default_rng(n)
    bench = Bench(ctas, shared=1 << 18).allocated()
    matrices, values, factors = [], [], []
    for rows in (128 * ctas, n):
        codes, meant = random_codes(rng, "e2m1", (rows, K))
        f = rng.integers(*((120, 134) if scale == "ue8m0" else (0x20, 0x50)), (rows, K // block), np.uint8)
        matrices.append(codes)
        factors.append(f)
        values.append(meant * np.repeat(numbers.decode(f, scale).astype(float), block, 1))
    for i, cta in enumerate(bench.ctas):
        put_boxes(cta.window, A_AT, matrices[0][128 * i : 128 * i + 128])
        put_boxes(cta.window, B_AT, matrices[1][i * n // ctas : (i + 1) * n // ctas])
        put_factors(bench.words(i), A_SCALES, factors[0][128 * i : 128 * i + 128])
        put_factors(bench.words(i), B_SCALES, factors[1])
    for step in range(STEPS):
        first = step * 96 // block  # of the factors
        instruction = pack_instruction(
            kind, m=128 * ctas, n=n, a_type=1, b_type=1, scale_type=int(scale == "ue8m0"), k_size=1,
            scale_a_id=first % 4, scale_b_id=first % 4,
        )  # fmt: skip
        registers = {
            "%r1": 0, "%d1": descriptor(A_AT, 128, step), "%d2": descriptor(B_AT, n // ctas, step), "%r2": instruction,
            "%r3": A_SCALES + first // 4 * 4, "%r4": B_SCALES + first // 4 * (4 if n <= 128 else 8), "%p1": step > 0,
        }  # fmt: skip
        opcode = f"tcgen05.mma.cta_group::{ctas}.kind::{kind}.block_scale.block{block}"
        bench.execute(f"{opcode} [%r1], %d1, %d2, %r2, [%r3], [%r4], %p1;", registers)
    found = np.vstack([floats(d_matrix(bench.words(i), "A", n)) for i in range(ctas)])
    np.testing.assert_allclose(found, values[0] @ values[1].T, rtol=1e-5, atol=1e-3 * np.abs(values[0]).max())


def one(instruction, leading=ABSOLUTE):
    bench = Bench().allocated()
    registers = {
        "%r1": 0, "%d1": pack_shared(A_AT, 0, 1024, "128B") | leading, "%r2": instruction, "%r3": 256, "%r4": 320,
        "%p1": False,
    }  # fmt: skip
    opcode = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16"
    bench.execute(f"{opcode} [%r1], %d1, %d1, %r2, [%r3], [%r4], %p1;", registers)


FIELDS = {"m": 128, "n": 64, "a_type": 1, "b_type": 1}


@pytest.mark.parametrize(
    ("fields", "leading", "says"),
    [
        ({"k_size": 1}, 0, "a leading dimension that is relative"),
        ({}, ABSOLUTE, "a leading dimension that is absolute"),
        ({"k_size": 1, "n": 72}, ABSOLUTE, "K = 96 with M = 128, N = 72"),
        ({"k_size": 1, "scale_a_id": 1}, ABSOLUTE, "scale factor id 1 of A with .block16 and K = 96"),
    ],
)
def test_what_cannot_be(fields, leading, says):
    with pytest.raises(Fault) as fault:
        one(pack_instruction("mxf4nvf4", **(FIELDS | fields)), leading)
    assert says in fault.value.message
