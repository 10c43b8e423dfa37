"""``wmma``: what is loaded, multiplied and stored is the product of the matrices in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_mma import codes, codes_and_values, floats

from ptxdsl.ptx.module import Instruction, Register, Vector
from ptxdsl.sim.matrix import wmma
from ptxdsl.sim.matrix.arithmetic import quiet
from ptxdsl.sim.matrix.mma import multiply
from ptxdsl.sim.matrix.mma_form import Mma

RNG = np.random.default_rng(5)
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}

# Registers of A and B as the ISA's tables of fragments count them, and types of accumulators.
FORMS = {
    ("m16n16k16", "f16"): (8, 8, "f16 f32"), ("m8n32k16", "f16"): (8, 8, "f16 f32"),
    ("m32n8k16", "f16"): (8, 8, "f16 f32"),
    ("m16n16k16", "bf16"): (4, 4, "f32"), ("m8n32k16", "bf16"): (2, 8, "f32"), ("m32n8k16", "bf16"): (8, 2, "f32"),
    ("m16n16k16", "s8"): (2, 2, "s32"), ("m8n32k16", "s8"): (1, 4, "s32"), ("m32n8k16", "u8"): (4, 1, "s32"),
    ("m16n16k8", "tf32"): (4, 4, "f32"), ("m8n8k4", "f64"): (1, 1, "f64"), ("m8n8k32", "s4"): (1, 1, "s32"),
    ("m8n8k32", "u4"): (1, 1, "s32"), ("m8n8k128", "b1"): (1, 1, "s32"),
}  # fmt: skip
CASES = [
    (shape, type, accumulator, layouts)
    for (shape, type), (_, _, accumulators) in FORMS.items()
    for accumulator in accumulators.split()
    for layouts in (("row", "col", "row"), ("col", "row", "col"))
    if BITS[type] >= 8 or layouts[0] == "row"  # smaller elements have one layout
]


def transfer(opcode: str) -> wmma.Transfer:
    found = wmma.parse_transfer(opcode)
    assert isinstance(found, wmma.Transfer), found
    return found


def lines(matrix: Any, bits: int, layout: str) -> Any:
    """A matrix of codes as its lines in memory."""
    along = matrix if layout == "row" else matrix.T
    wholes = [sum(int(code) << bits * i for i, code in enumerate(line)) for line in along]
    size = along.shape[1] * bits // 8
    return np.array([np.frombuffer(whole.to_bytes(size, "little"), np.uint8) for whole in wholes])


@pytest.mark.parametrize(("shape", "type", "d_type", "layouts"), CASES)
def test_load_multiply_store(shape: str, type: str, d_type: str, layouts: tuple[str, str, str]) -> None:
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    a, a_values = codes_and_values(type, (m, k))
    b, b_values = codes_and_values(type, (k, n))
    c_values = RNG.integers(-20, 20, (m, n)).astype(np.float64)
    words = []
    for name, matrix, of_type, layout in (
        ("a", a, type, layouts[0]),
        ("b", b, type, layouts[1]),
        ("c", codes(c_values, d_type), d_type, layouts[2]),
    ):
        load = transfer(f"wmma.load.{name}.sync.aligned.{layout}.{shape}.shared.{of_type}")
        words.append(wmma.load(load, lines(matrix, BITS[of_type], layout)))
    assert (len(words[0]), len(words[1])) == FORMS[shape, type][:2]
    assert len(words[2]) == m * n // 32 * (BITS[d_type] if d_type == "f16" else 32) // 32
    types = f"{d_type}.{d_type}" if type == "f16" else f"{d_type}.{type}.{type}.{d_type}"
    operation = ".and.popc" if type == "b1" else ""
    form = wmma.parse_mma(f"wmma.mma{operation}.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{types}")
    assert isinstance(form, Mma), form
    with quiet():
        d = multiply(form, np.concatenate(words))
    store = transfer(f"wmma.store.d.sync.aligned.{layouts[2]}.{shape}.global.{d_type}")
    stored = wmma.store(store, d)
    expected = lines(codes(a_values @ b_values + c_values, d_type), BITS[d_type], layouts[2])
    if d_type == "f64":
        got = stored.reshape(-1).view(np.float64)
        np.testing.assert_allclose(got, expected.reshape(-1).view(np.float64), rtol=1e-13)
    else:
        assert (stored == expected).all()


def test_xor_counts_differences() -> None:
    form = wmma.parse_mma("wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32")
    assert isinstance(form, Mma)
    a, b = RNG.integers(0, 2, (8, 128)), RNG.integers(0, 2, (128, 8))
    words = [
        wmma.load(transfer("wmma.load.a.sync.aligned.row.m8n8k128.b1"), lines(a, 1, "row")),
        wmma.load(transfer("wmma.load.b.sync.aligned.col.m8n8k128.b1"), lines(b, 1, "col")),
        np.zeros((2, 32), np.uint32),
    ]
    store = transfer("wmma.store.d.sync.aligned.row.m8n8k128.s32")
    d = wmma.store(store, multiply(form, np.concatenate(words))).view(np.int32)
    assert (d == (a[:, :, None] != b).sum(axis=1)).all()


def test_f16_and_f32_accumulators_have_their_elements_at_the_same_places() -> None:
    matrix = RNG.integers(-99, 99, (16, 16)).astype(np.float64)
    half, single = (
        wmma.load(transfer(f"wmma.load.c.sync.aligned.row.m16n16k16.{t}"), lines(codes(matrix, t), BITS[t], "row"))
        for t in ("f16", "f32")
    )
    halves = half.view(np.uint16).reshape(4, 32, 2).transpose(0, 2, 1).reshape(8, 32)
    assert (floats(halves, "f16") == floats(single, "f32")).all()


@pytest.mark.parametrize(
    ("opcode", "message"),
    [
        ("wmma.load.a.sync.aligned.row.m16n16k8.global.f16",
         "wmma of f16 in the shape m16n16k8 for A is not supported"),
        ("wmma.load.b.sync.aligned.row.m8n8k32.global.s4", "wmma of s4 with the layout row for B is not supported"),
        ("wmma.load.c.sync.aligned.row.m16n16k16.global.bf16",
         "wmma of bf16 in the shape m16n16k16 for C is not supported"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.bf16", "this form has 4 registers, not 8"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16", None),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_said_before_execution(opcode: str, message: str | None) -> None:
    registers = Vector(tuple(Register(f"%r{i}") for i in range(8)))
    assert wmma.unsupported_transfer(Instruction(opcode, (registers, Register("%rd1")), None, 1)) == message
