"""tcgen05.mma.sp against NumPy, with metadata put into tensor memory number by number."""

from __future__ import annotations

import numpy as np
import pytest
from tcgen05_bench import Bench
from tcgen05_matrices import CODES, K, d_matrix, floats, put_matrix, put_scales, random_codes, row_bytes, words_of
from tcgen05_packing import pack_instruction

from ptxdsl.sim import numbers as formats
from ptxdsl.sim.host import Fault

A_AT, B_AT, METADATA = 0x4000, 0x10000, 300
A_SCALES, B_SCALES = 320, 340
D_TYPES = {"f32": 1, "s32": 2}


def put_metadata(words, numbers, selector, lane_of=int):
    """numbers: (rows, numbers) of 2 bits. By the formats of JAX's Mosaic GPU for elements of 16 and of 8 bits, and of
    CUTLASS, which has tf32 as 16 bits, its 4 bits for two elements taken for two numbers, and 4 bits as 8 bits.

    lane_of: where what lies in a lane there is here."""
    words[:, METADATA : METADATA + 2] = 0
    for (row, i), number in np.ndenumerate(numbers):
        if numbers.shape[1] == 16:
            lane, column, bit = row // 16 * 16 + i // 8 * 8 + row % 8, selector, row // 8 % 2 * 16 + i % 8 * 2
        else:
            lane, column, bit = row, i // 16, i % 16 * 2
        words[lane_of(lane), METADATA + column] |= np.uint32(number << bit)


def sparse_rows(rng, rows, chunks):
    """Two numbers for each four elements, the lower first: (rows, 2 * chunks)."""
    pairs = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
    return pairs[rng.integers(0, 6, (rows, chunks))].reshape(rows, -1)


def placed(rng, kind, rows, k):
    """Metadata as numbers, and the place in a row of K elements of each stored one, (rows, K / 2)."""
    if kind == "tf32":  # one of two elements: 0b0100 or 0b1110
        chosen = rng.integers(0, 2, (rows, k // 2))
        numbers = np.stack([2 * chosen, 2 * chosen + 1], axis=-1).reshape(rows, -1)
        return numbers, chosen + np.arange(0, k, 2)
    if kind.startswith("mxf4"):  # two of four pairs
        numbers = sparse_rows(rng, rows, k // 8)
        pairs = 2 * (numbers + np.repeat(np.arange(0, k // 2, 4), 2))
        return numbers, np.stack([pairs, pairs + 1], axis=-1).reshape(rows, -1)
    numbers = sparse_rows(rng, rows, k // 4)
    return numbers, numbers + np.repeat(np.arange(0, k, 4), 2)


def multiply(
    kind, a_type, b_type, d_type="f32", *, n=32, pair=False, selector=0, in_tensor=False, repeat=False,
    scale=None, vector=0, metadata_lane=0,
):  # fmt: skip
    """D of the simulator, and of NumPy. vector: scale factors of a row."""
    rng = np.random.default_rng([n, *kind.encode(), *a_type.encode()])
    bench, m, k = Bench(2 if pair else 1).allocated(), 256 if pair else 128, 2 * K[kind]
    ctas = len(bench.ctas)
    stored, values = random_codes(rng, a_type, (m, k // 2))
    b, b_values = random_codes(rng, b_type, (n, k))
    numbers, places = placed(rng, kind, m, k)
    whole = np.zeros((m, k))
    np.put_along_axis(whole, places, values, axis=1)
    if repeat:
        numbers[5, 3] = numbers[5, 2]
    packed = kind.startswith("mxf4")
    factors = [rng.integers(*((120, 134) if scale == "ue8m0" else (0x20, 0x50)), (rows, vector), np.uint8)
               for rows in (m, n)]  # fmt: skip
    for i in range(ctas):
        words, mine = bench.words(i), slice(128 * i, 128 * (i + 1))
        if in_tensor:
            octets = row_bytes(stored[mine], 16 if kind == "f16" else 4 if packed else 8, packed).view(np.uint32)
            words[:, 256 : 256 + octets.shape[1]] = octets
        a = put_matrix(bench, A_AT, stored[mine], a_type, packed=packed, cta=i)
        part = b[i * n // ctas : (i + 1) * n // ctas]
        descriptor = put_matrix(bench, B_AT, part, b_type, packed=packed, cta=i)
        put_metadata(words, numbers[mine], selector)
        put_scales(words, A_SCALES, factors[0][mine])
        put_scales(words, B_SCALES, factors[1])
        words[:, :n] = words_of(np.full((128, n), 3.0), d_type)
    fields = {"m": m, "n": n, "a_type": CODES[kind][a_type], "b_type": CODES[kind][b_type], "sparse": 1}
    if scale:
        fields["scale_type"] = int(scale == "ue8m0")
    else:
        fields |= {"d_type": D_TYPES[d_type], "sparsity_selector": selector}
    registers = {
        "%r1": 0, "%r2": 256, "%d1": a, "%d2": descriptor, "%r3": pack_instruction(kind, **fields),
        "%r4": metadata_lane << 16 | METADATA, "%r5": A_SCALES, "%r6": B_SCALES, "%p1": True,
    }  # fmt: skip
    left = "[%r2]" if in_tensor else "%d1"
    form, scales = (f".block_scale.scale_vec::{vector}X", ", [%r5], [%r6]") if scale else ("", "")
    opcode = f"tcgen05.mma.sp.cta_group::{ctas}.kind::{kind}{form}"
    bench.execute(f"{opcode} [%r1], {left}, %d2, [%r4], %r3{scales}, %p1;", registers)
    found = np.vstack([floats(d_matrix(bench.words(i), "A", n), d_type) for i in range(ctas)])
    if scale:
        decoded = [np.repeat(formats.decode(f, scale).astype(float), k // vector, 1) for f in factors]
        whole, b_values = whole * decoded[0], b_values * decoded[1]
    return found, floats(words_of(whole @ b_values.T + 3, d_type), d_type)


@pytest.mark.parametrize(
    ("kind", "a", "b", "forms"),
    [
        ("f16", "f16", "f16", {}), ("f16", "bf16", "bf16", {"selector": 1, "n": 256}),
        ("f16", "f16", "f16", {"pair": True, "selector": 1}), ("f16", "bf16", "bf16", {"in_tensor": True}),
        ("f8f6f4", "e4m3", "e5m2", {}), ("f8f6f4", "e2m1", "e3m2", {"n": 8}),
        ("f8f6f4", "e5m2", "e4m3", {"pair": True}),
        ("f8f6f4", "e4m3", "e4m3", {"in_tensor": True}), ("i8", "s8", "u8", {"d_type": "s32"}),
        ("tf32", "tf32", "tf32", {}), ("tf32", "tf32", "tf32", {"pair": True, "selector": 1}),
        ("mxf8f6f4", "e4m3", "e5m2", {"scale": "ue8m0", "vector": 1}),
        ("mxf8f6f4", "e3m2", "e2m1", {"scale": "ue8m0", "vector": 1, "pair": True, "n": 256}),
        ("mxf4", "e2m1", "e2m1", {"scale": "ue8m0", "vector": 2}),
        ("mxf4nvf4", "e2m1", "e2m1", {"scale": "e4m3", "vector": 4, "n": 64}),
        ("mxf4nvf4", "e2m1", "e2m1", {"scale": "e4m3", "vector": 4, "in_tensor": True}),
    ],
    ids=str,
)  # fmt: skip
def test_products(kind, a, b, forms):
    found, expected = multiply(kind, a, b, **forms)
    assert (found == expected).all()


@pytest.mark.parametrize("lane", [0, 16])
@pytest.mark.parametrize(
    ("kind", "type", "pair"), [("f16", "f16", False), ("f8f6f4", "e4m3", False), ("tf32", "tf32", True)]
)
def test_rows_in_half_of_the_lanes(kind, type, pair, lane):
    """Layouts C and F: 64 rows in lanes 0 to 15 or 16 to 31 of each quarter, metadata too ("Alignment restriction")."""
    rng, n, k = np.random.default_rng(lane), 32, 2 * K[kind]
    bench = Bench(2 if pair else 1).allocated()
    ctas = len(bench.ctas)
    stored, values = random_codes(rng, type, (64 * ctas, k // 2))
    b, b_values = random_codes(rng, type, (n, k))
    numbers, places = placed(rng, kind, 64 * ctas, k)
    whole = np.zeros((64 * ctas, k))
    np.put_along_axis(whole, places, values, axis=1)
    for i in range(ctas):
        mine = slice(64 * i, 64 * (i + 1))
        a = put_matrix(bench, A_AT, stored[mine], type, cta=i)
        of_b = put_matrix(bench, B_AT, b[i * n // ctas : (i + 1) * n // ctas], type, cta=i)
        put_metadata(bench.words(i), numbers[mine], 0, lambda at: at // 16 * 32 + at % 16 + lane)
        bench.words(i)[:, :n] = words_of(np.full((128, n), 3.0), "f32")
    fields = {
        "m": 64 * ctas,
        "n": n,
        "a_type": CODES[kind][type],
        "b_type": CODES[kind][type],
        "sparse": 1,
        "d_type": 1,
    }
    registers = {
        "%r1": lane << 16, "%d1": a, "%d2": of_b, "%r3": pack_instruction(kind, **fields), "%p1": True,
        "%r4": lane << 16 | METADATA,
    }  # fmt: skip
    opcode = f"tcgen05.mma.sp.cta_group::{ctas}.kind::{kind}"
    power = "" if kind == "f8f6f4" else ", 1"
    bench.execute(f"{opcode} [%r1], %d1, %d2, [%r4], %r3, %p1{power};", registers)
    found = np.vstack([floats(d_matrix(bench.words(i), "C", n, 0, lane), "f32") for i in range(ctas)])
    expected = whole @ b_values.T + (1.5 if power else 3)
    assert (found == floats(words_of(expected, "f32"), "f32")).all()
    others = bench.words()[(np.arange(128) % 32 < 16) == bool(lane), :n]
    assert (floats(others, "f32") == 3).all()


def test_metadata_at_another_lane_than_d():
    with pytest.raises(Fault, match="metadata at lane 16"):
        multiply("f16", "f16", "f16", metadata_lane=16)


def test_an_element_that_is_named_twice():
    with pytest.raises(Fault, match="names one element of A twice"):
        multiply("f16", "f16", "f16", repeat=True)


def test_numbers_of_tf32_that_name_no_element():
    with pytest.raises(Fault, match="names one element of A twice") as fault:
        multiply("tf32", "tf32", "tf32", repeat=True)
    assert "with tf32 0b0100 and 0b1110" in fault.value.help


def test_a_selector_that_there_is_not():
    with pytest.raises(Fault, match="selector 1"):
        multiply("f8f6f4", "e4m3", "e4m3", selector=1)
