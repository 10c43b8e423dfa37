"""Sparse products: A with half of each row zero, and metadata filled field by field."""

from __future__ import annotations

from typing import Any

import matrix_fragments as fragments
import numpy as np
import pytest
from test_mma import BITS, codes, codes_and_values, floats
from test_wgmma import SharedMatrix, d_matrix, d_words

from ptxdsl.ptx.module import Immediate, Instruction, Vector
from ptxdsl.sim.matrix import mma, wgmma_form
from ptxdsl.sim.matrix.arithmetic import quiet
from ptxdsl.sim.matrix.mma_form import Mma, parse
from ptxdsl.sim.matrix.sparse import Sparsity, expand

RNG = np.random.default_rng(17)
CHUNK = {32: 2, 16: 4, 8: 4, 4: 8}  # columns of which half are stored, by the bits of an element


def metadata_place(bits: int, row: int, column: int) -> tuple[int, int]:
    """Which of four lanes' words speaks of a chunk of a row, and its lowest bit: the ISA's figures of metadata."""
    columns = 256 // bits  # of one lane's word
    if bits >= 16:
        return column // columns, 16 * (row // 8) + column % columns * bits // 16
    return row // 8 + 2 * (column // columns), column % columns * bits // 8


def sparse_rows(rows: int, k: int, bits: int, ordered: bool) -> tuple[Any, Any]:
    """For each row the stored columns (rows, k / 2), and the fields of 4 bits (rows, chunks)."""
    columns: list[list[int]] = []
    fields: list[list[int]] = []
    for _ in range(rows):
        columns.append([])
        fields.append([])
        for chunk in range(0, k, CHUNK[bits]):
            if bits == 32:
                which = int(RNG.integers(2))
                columns[-1].append(chunk + which)
                fields[-1].append((0b0100, 0b1110)[which])
                continue
            first, second = RNG.permutation(4)[:2]
            if ordered and first > second:
                first, second = second, first
            fields[-1].append(int(first | second << 2))
            unit = 2 if bits == 4 else 1
            columns[-1] += [int(chunk + unit * index + i) for index in (first, second) for i in range(unit)]
    return np.array(columns), np.array(fields)


def metadata_words(fields: Any, k: int, bits: int, selector: int) -> Any:
    """The lanes' words for the fields of 16 rows; words that do not count are filled with anything."""
    lanes = Sparsity(k, bits).lanes
    words = RNG.integers(0, 1 << 32, 32)
    words.reshape(8, 4)[:, selector * lanes : (selector + 1) * lanes] = 0
    for row, line in enumerate(fields):
        for chunk, field in enumerate(line):
            lane, bit = metadata_place(bits, row, chunk * CHUNK[bits])
            words[4 * (row % 8) + selector * lanes + lane] |= int(field) << bit
    return words.astype(np.uint32)


CASES = [
    *((s, t, t, d) for s in ("m16n8k16", "m16n8k32") for t, d in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"))),
    *((s, "tf32", "tf32", "f32") for s in ("m16n8k8", "m16n8k16")),
    ("m16n8k64", "e4m3", "e5m2", "f32"),
    *((s, "s8", "u8", "s32") for s in ("m16n8k32", "m16n8k64")),
    *((s, "u4", "s4", "s32") for s in ("m16n8k64", "m16n8k128")),
]


@pytest.mark.parametrize("variant", ["sp", "sp::ordered_metadata"])
@pytest.mark.parametrize(("shape", "a_type", "b_type", "d_type"), CASES, ids=".".join)
def test_mma(shape: str, a_type: str, b_type: str, d_type: str, variant: str) -> None:
    k = int(shape.removeprefix("m16n8k"))
    bits = BITS.get(a_type, 8)
    form = parse(f"mma.{variant}.sync.aligned.{shape}.row.col.{d_type}.{a_type}.{b_type}.{d_type}")
    assert isinstance(form, Mma) and form.sparse, form
    columns, fields = sparse_rows(16, k, bits, variant != "sp")
    a, a_values = codes_and_values(a_type, (16, k // 2))
    b, b_values = codes_and_values(b_type, (k, 8))
    c_values = RNG.integers(-9, 9, (16, 8)).astype(np.float64)
    whole = np.zeros((16, k))
    for row in range(16):
        whole[row, columns[row]] = a_values[row]

    def b_place(g: int, t: int, i: int) -> tuple[int, int]:
        each = 32 // bits  # a register after the other down the column, as in the dense shapes
        return i // each * 4 * each + t * each + i % each, g

    words = np.concatenate(
        [
            fragments.pack(a, fragments.A[f"m16n8k{k // 2}", bits], bits),
            fragments.pack(b, b_place, bits),
            fragments.pack(codes(c_values, d_type), fragments.C[16], 16 if d_type == "f16" else 32),
        ]
    )
    selector = int(RNG.integers(form.sparse.selectors))
    found = form.sparse.columns(metadata_words(fields, k, bits, selector), selector)
    with quiet():
        d = mma.multiply(form, words, columns=found)
        expected = floats(codes(whole @ b_values + c_values, d_type), d_type)
    got = floats(fragments.unpack(d, fragments.C[16], 16 if d_type == "f16" else 32, (16, 8)), d_type)
    assert (got == expected).all()


@pytest.mark.parametrize("registers", [False, True], ids=["shared", "registers"])
@pytest.mark.parametrize(
    ("a_type", "b_type", "d_type"),
    [("f16", "f16", "f32"), ("tf32", "tf32", "f32"), ("e5m2", "e4m3", "f16"), ("s8", "s8", "s32")],
)
def test_wgmma(a_type: str, b_type: str, d_type: str, registers: bool) -> None:
    bits, n = BITS.get(a_type, 8), 24
    k = 512 // bits
    form = wgmma_form.parse(f"wgmma.mma_async.sp.sync.aligned.m64n{n}k{k}.{d_type}.{a_type}.{b_type}")
    assert isinstance(form, wgmma_form.Form) and form.sparse, form
    columns, fields = sparse_rows(64, k, bits, False)
    a, a_values = codes_and_values(a_type, (64, k // 2))
    b, b_values = codes_and_values(b_type, (k, n))
    whole = np.zeros((64, k))
    for row in range(64):
        whole[row, columns[row]] = a_values[row]
    if registers:
        place = fragments.A[f"m16n8k{k // 2}", bits]
        left = form.a_of_registers(np.stack([fragments.pack(a[16 * w : 16 * w + 16], place, bits) for w in range(4)]))
    else:
        left = form.a_of_memory(SharedMatrix(a, bits, 32, False).read(*form.extent("a")))
    right = form.b_of_memory(SharedMatrix(b.T, bits, 64, False).read(*form.extent("b")))
    found = [form.sparse.columns(metadata_words(fields[16 * w : 16 * w + 16], k, bits, 0), 0) for w in range(4)]
    d_bits = 16 if d_type == "f16" else 32
    with quiet():
        after = form.multiply(expand(left, np.concatenate(found), k), right, d_words(np.zeros((64, n), int), d_bits))
        expected = floats(codes(whole @ b_values, d_type), d_type)
    assert (floats(d_matrix(after, d_bits, n), d_type) == expected).all()


def test_scaled_blocks() -> None:
    form = parse(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    )
    assert isinstance(form, Mma) and form.sparse
    assert (form.operands, form.sparse.lanes, form.scales) == (10, 4, 2)
    columns, fields = sparse_rows(16, 128, 4, True)
    ones = np.full((4 + 4, 32), 0x22222222, np.uint32)  # A and B are ones
    words = np.concatenate([ones, np.zeros((4, 32), np.uint32)])
    scale = np.array([[2.0, 8.0]])
    found = form.sparse.columns(metadata_words(fields, 128, 4, 0), 0)
    d = mma.multiply(form, words, np.repeat(scale, 16, axis=0), np.ones((2, 8)), found)
    assert (found == columns).all()
    assert set(d.view(np.float32).ravel()) == {32 * 2.0 + 32 * 8.0}  # 32 stored elements in each block of 64


def test_metadata_that_names_an_element_twice() -> None:
    fields = sparse_rows(16, 32, 16, True)[1]
    fields[3, 2] = 0b0101
    assert Sparsity(32, 16).columns(metadata_words(fields, 32, 16, 1), 1) is None


def test_operands_of_the_sparse_instruction() -> None:
    form = wgmma_form.parse("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16")
    assert isinstance(form, wgmma_form.Form)
    operands = (Vector(()),) * 6 + tuple(Immediate(value) for value in (1, 1, 0, 1))
    transposed = form.transposed(Instruction("", operands, None, 1))
    assert (transposed.a_mn, transposed.b_mn, transposed.extent("a"), transposed.extent("b")) == (
        False, True, (64, 16, 16, False), (8, 32, 16, True),
    )  # fmt: skip
