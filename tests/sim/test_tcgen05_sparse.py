"""tcgen05.mma.sp against NumPy, with metadata put into tensor memory number by number."""

from __future__ import annotations

import numpy as np
import pytest
from tcgen05_bench import Bench
from tcgen05_matrices import CODES, K, d_matrix, floats, put_matrix, random_codes, row_bytes, words_of
from tcgen05_packing import pack_instruction

from ptxdsl.sim.host import Fault
from ptxdsl.sim.tcgen05.mma_form import parse

A_AT, B_AT, METADATA = 0x4000, 0x10000, 300
D_TYPES = {"f32": 1, "s32": 2}


def put_metadata(words, numbers, selector):
    """numbers: (rows, K / 2) of 2 bits. By the formats of JAX's Mosaic GPU for elements of 16 and of 8 bits."""
    words[:, METADATA : METADATA + 2] = 0
    for (row, i), number in np.ndenumerate(numbers):
        if numbers.shape[1] == 16:
            lane, column, bit = row // 16 * 16 + i // 8 * 8 + row % 8, selector, row // 8 % 2 * 16 + i % 8 * 2
        else:
            lane, column, bit = row, i // 16, i % 16 * 2
        words[lane, METADATA + column] |= np.uint32(number << bit)


def sparse_rows(rng, rows, chunks):
    """Two numbers for each four elements, the lower first: (rows, 2 * chunks)."""
    pairs = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
    return pairs[rng.integers(0, 6, (rows, chunks))].reshape(rows, -1)


def multiply(kind, a_type, b_type, d_type="f32", *, n=32, pair=False, selector=0, in_tensor=False, repeat=False):
    """D of the simulator, and of NumPy."""
    rng = np.random.default_rng([n, *kind.encode(), *a_type.encode()])
    bench, m, k = Bench(2 if pair else 1).allocated(), 256 if pair else 128, 2 * K[kind]
    ctas = len(bench.ctas)
    stored, values = random_codes(rng, a_type, (m, k // 2))
    b, b_values = random_codes(rng, b_type, (n, k))
    numbers = sparse_rows(rng, m, k // 4)
    whole = np.zeros((m, k))
    for (row, i), number in np.ndenumerate(numbers):
        whole[row, i // 2 * 4 + number] = values[row, i]
    if repeat:
        numbers[5, 3] = numbers[5, 2]
    for i in range(ctas):
        words, mine = bench.words(i), slice(128 * i, 128 * (i + 1))
        if in_tensor:
            octets = row_bytes(stored[mine], 16 if kind == "f16" else 8, False).view(np.uint32)
            words[:, 256 : 256 + octets.shape[1]] = octets
        a = put_matrix(bench, A_AT, stored[mine], a_type, cta=i)
        descriptor = put_matrix(bench, B_AT, b[i * n // ctas : (i + 1) * n // ctas], b_type, cta=i)
        put_metadata(words, numbers[mine], selector)
        words[:, :n] = words_of(np.full((128, n), 3.0), d_type)
    fields = {
        "m": m, "n": n, "a_type": CODES[kind][a_type], "b_type": CODES[kind][b_type], "d_type": D_TYPES[d_type],
        "sparse": 1, "sparsity_selector": selector,
    }  # fmt: skip
    registers = {
        "%r1": 0, "%r2": 256, "%d1": a, "%d2": descriptor, "%r3": pack_instruction(kind, **fields), "%r4": METADATA,
        "%p1": True,
    }  # fmt: skip
    left = "[%r2]" if in_tensor else "%d1"
    bench.execute(f"tcgen05.mma.sp.cta_group::{ctas}.kind::{kind} [%r1], {left}, %d2, [%r4], %r3, %p1;", registers)
    found = np.vstack([floats(d_matrix(bench.words(i), "A", n), d_type) for i in range(ctas)])
    return found, floats(words_of(whole @ b_values.T + 3, d_type), d_type)


@pytest.mark.parametrize(
    ("kind", "a", "b", "forms"),
    [
        ("f16", "f16", "f16", {}), ("f16", "bf16", "bf16", {"selector": 1, "n": 256}),
        ("f16", "f16", "f16", {"pair": True, "selector": 1}), ("f16", "bf16", "bf16", {"in_tensor": True}),
        ("f8f6f4", "e4m3", "e5m2", {}), ("f8f6f4", "e2m1", "e3m2", {"n": 8}),
        ("f8f6f4", "e5m2", "e4m3", {"pair": True}),
        ("f8f6f4", "e4m3", "e4m3", {"in_tensor": True}), ("i8", "s8", "u8", {"d_type": "s32"}),
    ],
    ids=str,
)  # fmt: skip
def test_products(kind, a, b, forms):
    found, expected = multiply(kind, a, b, **forms)
    assert (found == expected).all()


def test_an_element_that_is_named_twice():
    with pytest.raises(Fault, match="names one element of A twice"):
        multiply("f16", "f16", "f16", repeat=True)


def test_a_selector_that_there_is_not():
    with pytest.raises(Fault, match="selector 1"):
        multiply("f8f6f4", "e4m3", "e4m3", selector=1)


@pytest.mark.parametrize("kind", ["tf32", "mxf8f6f4.block_scale", "mxf4.block_scale"])
def test_kinds_whose_metadata_is_not_known(kind):
    said = parse(f"tcgen05.mma.sp.cta_group::1.kind::{kind}")
    assert isinstance(said, str)
    assert "in figures alone" in said
