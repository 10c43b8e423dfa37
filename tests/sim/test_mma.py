"""``mma.sync``: every shape and type against NumPy, from registers filled element by element by the ISA's formulas."""

from __future__ import annotations

from typing import Any

import matrix_fragments as fragments
import numpy as np
import pytest

from ptxdsl.ptx.module import Instruction, Register, Vector
from ptxdsl.sim.matrix import fragments as matrix_layout
from ptxdsl.sim.matrix import mma
from ptxdsl.sim.matrix.arithmetic import fused_multiply_add, quiet
from ptxdsl.sim.matrix.mma_form import Mma, parse

RNG = np.random.default_rng(7)


def small_floats(exponent_bits: int, mantissa_bits: int, bias: int) -> np.ndarray[Any, Any]:
    """The numbers of a small format, sign bit highest, by the definition of binary floating point; no infinities."""
    values = []
    for code in range(1 << 1 + exponent_bits + mantissa_bits):
        mantissa = code & (1 << mantissa_bits) - 1
        exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
        sign = -1.0 if code >> exponent_bits + mantissa_bits else 1.0
        lead = 1 if exponent else 0
        values.append(sign * (lead + mantissa / 2**mantissa_bits) * 2.0 ** (max(exponent, 1) - bias))
    return np.array(values)


E4M3, E5M2 = small_floats(4, 3, 7), small_floats(5, 2, 15)
E3M2, E2M3, E2M1 = small_floats(3, 2, 3), small_floats(2, 3, 1), small_floats(2, 1, 1)


def codes_and_values(type: str, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Random elements of a type: their bits, and what they mean as float64."""
    if type == "f64":
        values = RNG.standard_normal(shape)
        return values.view(np.uint64), values
    if type == "f16":
        half = RNG.standard_normal(shape).astype(np.float16)
        return half.view(np.uint16), half.astype(np.float64)
    if type in ("bf16", "tf32"):
        cut = 16 if type == "bf16" else 13
        bits = RNG.standard_normal(shape).astype(np.float32).view(np.uint32) >> cut << cut
        return bits >> (16 if type == "bf16" else 0), bits.view(np.float32).astype(np.float64)
    width, table = {
        "s8": (8, np.array([*range(128), *range(-128, 0)])),
        "u8": (8, np.arange(256)),
        "s4": (4, np.array([*range(8), *range(-8, 0)])),
        "u4": (4, np.arange(16)),
        "b1": (1, np.arange(2)),
        "e4m3": (8, E4M3),
        "e5m2": (8, E5M2),
        "e2m1": (4, E2M1),
    }[type]
    largest = {"e4m3": 0x7E, "e5m2": 0x7B}.get(type, 0x7F)  # of the codes without sign that are numbers
    codes = RNG.choice(
        [code for code in range(1 << width) if width < 8 or type[0] != "e" or code & 0x7F <= largest], shape
    )
    return codes, table[codes].astype(np.float64)


def floats(words: Any, type: str) -> Any:
    """Codes of accumulators as float64."""
    whole = np.array(words, np.uint64)
    if type == "f16":
        return whole.astype(np.uint16).view(np.float16).astype(np.float64)
    if type == "f32":
        return whole.astype(np.uint32).view(np.float32).astype(np.float64)
    if type == "s32":
        return whole.astype(np.uint32).view(np.int32).astype(np.float64)
    return whole.view(np.float64)


def codes(values: Any, type: str) -> Any:
    whole: Any = {"f16": np.float16, "f32": np.float32, "s32": np.int32, "f64": np.float64}[type]
    unsigned: Any = {"f16": np.uint16, "f32": np.uint32, "s32": np.uint32, "f64": np.uint64}[type]
    return np.asarray(values).astype(whole).view(unsigned)


def parsed(opcode: str) -> Mma:
    found = parse(opcode)
    assert isinstance(found, Mma), found
    return found


def run(opcode: str, a: Any, b: Any, c: Any, a_type: str, c_type: str, d_type: str, bits: int) -> Any:
    """D's codes for the codes of A, B and C."""
    form = parsed(opcode)
    shape = opcode.split(".")[3]
    m = len(a)
    accumulator = {"f16": 16, "f64": 64}
    words = [
        fragments.pack(a, fragments.A[shape, bits], bits),
        fragments.pack(b, fragments.B[shape, bits], bits),
        fragments.pack(c, fragments.C[m], accumulator.get(c_type, 32)),
    ]
    with quiet():
        d = mma.multiply(form, np.concatenate(words))
    return fragments.unpack(d, fragments.C[m], accumulator.get(d_type, 32), (m, 8))


CASES = [
    *((f"m16n8k{k}", t, t, d) for k in (8, 16) for t, d in (("f16", "f16"), ("f16", "f32"), ("bf16", "f32"))),
    *((f"m16n8k{k}", "tf32", "tf32", "f32") for k in (4, 8)),
    *((shape, "f64", "f64", "f64") for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
    *((f"m16n8k{k}", a, b, d) for k in (16, 32) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")
      for d in ("f16", "f32")),
    *((s, a, b, "s32") for s in ("m8n8k16", "m16n8k16", "m16n8k32") for a in ("s8", "u8") for b in ("s8", "u8")),
    *((s, a, b, "s32") for s in ("m8n8k32", "m16n8k32", "m16n8k64") for a in ("s4", "u4") for b in ("s4", "u4")),
]  # fmt: skip
BITS = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4}


@pytest.mark.parametrize(("shape", "a_type", "b_type", "d_type"), CASES, ids=".".join)
def test_products_of_every_shape_and_type(shape: str, a_type: str, b_type: str, d_type: str) -> None:
    m, k = (int(part) for part in shape[1:].replace("n8k", " ").split())
    a, a_values = codes_and_values(a_type, (m, k))
    b, b_values = codes_and_values(b_type, (k, 8))
    c_values = RNG.integers(-99, 99, (m, 8)).astype(np.float64)
    opcode = f"mma.sync.aligned.{shape}.row.col.{d_type}.{a_type}.{b_type}.{d_type}"
    d = run(opcode, a, b, codes(c_values, d_type), a_type, d_type, d_type, BITS.get(a_type, 8))
    exact = a_values @ b_values + c_values
    if d_type in ("s32", "f32"):
        with np.errstate(over="ignore"):
            assert (floats(d, d_type) == floats(codes(exact, d_type), d_type)).all()
    else:
        with np.errstate(over="ignore"):
            rounded = floats(codes(exact, d_type), d_type)
        np.testing.assert_allclose(floats(d, d_type), rounded, rtol=1e-13 if d_type == "f64" else 0)


@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
@pytest.mark.parametrize("operation", ["and", "xor"])
def test_single_bits(shape: str, operation: str) -> None:
    m, k = (int(part) for part in shape[1:].replace("n8k", " ").split())
    a, b = RNG.integers(0, 2, (m, k)), RNG.integers(0, 2, (k, 8))
    c = RNG.integers(-5, 5, (m, 8))
    opcode = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc"
    d = run(opcode, a, b, codes(c, "s32"), "b1", "s32", "s32", 1)
    pairs = a[:, :, None] & b if operation == "and" else a[:, :, None] ^ b
    assert (floats(d, "s32") == pairs.sum(axis=1) + c).all()


def quad_pair_words(operand: str, layout: str, matrices: Any, bits: int) -> Any:
    """Registers of four matrices of ``mma.m8n8k4``, by the formulas of the ISA's figures 46 to 52."""
    each = {"a": 4, "b": 4, "c16": 8, "c32": 8}[operand]
    words = np.zeros((each * bits // 32, 32), np.uint32)
    for lane in range(32):
        matrix = matrices[lane % 16 // 4]
        high = 4 if lane >= 16 else 0
        for i in range(each):
            if operand == "c32":
                row, column = (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)
            elif operand == "c16" or (operand, layout) == ("a", "row"):
                row, column = lane % 4 + high, i
            elif (operand, layout) == ("a", "col"):
                row, column = i + high, lane % 4
            elif layout == "row":
                row, column = lane % 4, i + high
            else:
                row, column = i, lane % 4 + high
            words[i * bits // 32, lane] |= np.uint32(int(matrix[row, column]) << i * bits % 32)
    return words


@pytest.mark.parametrize("a_layout", ["row", "col"])
@pytest.mark.parametrize("b_layout", ["row", "col"])
@pytest.mark.parametrize(("d_type", "c_type"), [("f16", "f16"), ("f32", "f32"), ("f32", "f16")])
def test_four_products_of_m8n8k4(a_layout: str, b_layout: str, d_type: str, c_type: str) -> None:
    form = parsed(f"mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.{d_type}.f16.f16.{c_type}")
    a, b, c = RNG.integers(-9, 9, (4, 8, 4)), RNG.integers(-9, 9, (4, 4, 8)), RNG.integers(-9, 9, (4, 8, 8))
    widths = {"f16": ("c16", 16), "f32": ("c32", 32)}
    words = np.concatenate(
        [
            quad_pair_words("a", a_layout, codes(a, "f16"), 16),
            quad_pair_words("b", b_layout, codes(b, "f16"), 16),
            quad_pair_words(widths[c_type][0], "", codes(c, c_type), widths[c_type][1]),
        ]
    )
    operand, bits = widths[d_type]
    expected = quad_pair_words(operand, "", codes(a @ b + c, d_type), bits)
    assert (mma.multiply(form, words) == expected).all()


def test_integer_sums_wrap_or_saturate() -> None:
    a, b = np.full((16, 32), 127), np.full((32, 8), 127)
    c = np.full((16, 8), 2**31 - 1, np.int64).astype(np.int32)
    c[8:] = -(2**31)
    a[8:] = 0x80  # -128
    b_form = "mma.sync.aligned.m16n8k32.row.col{}.s32.s8.s8.s32"
    wrapped = run(b_form.format(""), a, b, codes(c, "s32"), "s8", "s32", "s32", 8)
    stopped = run(b_form.format(".satfinite"), a, b, codes(c, "s32"), "s8", "s32", "s32", 8)
    assert set(wrapped[:8].ravel()) == {(2**31 - 1 + 32 * 127 * 127) % 2**32}
    assert set(wrapped[8:].ravel()) == {(-(2**31) - 32 * 128 * 127) % 2**32}
    assert set(stopped[:8].ravel()) == {0x7FFFFFFF}
    assert set(stopped[8:].ravel()) == {0x80000000}


def test_not_a_number_is_canonical_and_infinities_stay() -> None:
    a = codes(np.ones((16, 16)), "f16").copy()
    b = codes(np.ones((16, 8)), "f16")
    c = codes(np.zeros((16, 8)), "f32").copy()
    a[0, 3] = 0xFE01  # a NaN of another sign and payload
    a[1, 0] = 0x7C00  # infinity
    c[2, 5] = 0xFF800000  # minus infinity
    a[3, 0], a[3, 1] = 0x7C00, 0xFC00  # infinity minus infinity
    d = run("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", a, b, c, "f16", "f32", "f32", 16)
    assert set(d[0]) == {0x7FFFFFFF}
    assert set(d[1]) == {0x7F800000}
    assert (d[2, 5], d[2, 4]) == (0xFF800000, 0x41800000)
    assert set(d[3]) == {0x7FFFFFFF}
    half = run("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", a, b, c * 0, "f16", "f16", "f16", 16)
    assert (set(half[0]), set(half[1])) == ({0x7FFF}, {0x7C00})


def test_a_sum_is_rounded_once() -> None:
    # 1 + 16 · 2**-24 is representable; adding 2**-24 to 1 sixteen times in f32 would stay at 1.
    a = codes(np.full((16, 16), 2.0**-12), "f16")
    b = codes(np.full((16, 8), 2.0**-12), "f16")
    d = run(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        a,
        b,
        codes(np.ones((16, 8)), "f32"),
        "f16",
        "f32",
        "f32",
        16,
    )
    assert set(floats(d, "f32").ravel()) == {1 + 2.0**-20}
    # f16 overflows to infinity only where the sum does: 60000 + 16 · 1000 - 16 · 1000 would not if rounded at the end.
    a = codes(np.tile([1000.0, -1000.0], (16, 8)), "f16")
    d = run(
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
        a, codes(np.ones((16, 8)), "f16"), codes(np.full((16, 8), 60000.0), "f16"), "f16", "f16", "f16", 16,
    )  # fmt: skip
    assert set(floats(d, "f16").ravel()) == {60000.0}


def test_the_lower_bits_of_tf32_do_not_count() -> None:
    a = np.full((16, 8), 0x3F801FFF)  # 1 and 13 lower bits
    b = np.full((8, 8), 0x3F800FFF)
    d = run(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", a, b, np.zeros((16, 8), int), "tf32", "f32", "f32", 32
    )
    assert set(floats(d, "f32").ravel()) == {8.0}


@pytest.mark.parametrize(("a_type", "b_type"), [("e3m2", "e2m1"), ("e2m3", "e2m3"), ("e2m1", "e4m3"), ("e5m2", "e3m2")])
def test_six_and_four_bits_in_containers_of_eight(a_type: str, b_type: str) -> None:
    tables = {"e3m2": (E3M2, 0), "e2m3": (E2M3, 0), "e2m1": (E2M1, 2), "e4m3": (E4M3[:120], 0), "e5m2": (E5M2[:120], 0)}
    (a_table, a_shift), (b_table, b_shift) = tables[a_type], tables[b_type]
    a, b = RNG.integers(0, len(a_table), (16, 32)), RNG.integers(0, len(b_table), (32, 8))
    opcode = f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{a_type}.{b_type}.f32"
    d = run(opcode, a << a_shift, b << b_shift, np.zeros((16, 8), int), a_type, "f32", "f32", 8)
    with np.errstate(over="ignore"):
        assert (floats(d, "f32") == (a_table[a] @ b_table[b]).astype(np.float32)).all()


def scale_words(factors: Any, lanes: Any, byte: int) -> Any:
    """32 lanes' words: factors (rows or columns, scales) as bytes from ``byte`` on in the lanes given for each row."""
    octets = RNG.integers(0, 255, (32, 4))
    for row, lane in enumerate(lanes):
        octets[lane, byte : byte + factors.shape[1]] = factors[row]
    return octets.astype(np.uint8).view(np.uint32).reshape(32)


@pytest.mark.parametrize(
    ("kind", "suffix", "k", "scales", "selector_a", "selector_b"),
    [
        ("mxf8f6f4", "", 32, 1, (3, 1), (2, 3)),
        ("mxf8f6f4", ".scale_vec::1X", 32, 1, (0, 0), (1, 2)),
        ("mxf4", "", 64, 2, (2, 1), (0, 3)),
        ("mxf4nvf4", ".scale_vec::4X", 64, 4, (0, 0), (0, 1)),
    ],
)
def test_blocks_of_k_are_scaled(
    kind: str, suffix: str, k: int, scales: int, selector_a: tuple[int, int], selector_b: tuple[int, int]
) -> None:
    nv = kind == "mxf4nvf4"
    opcode = f"mma.sync.aligned.m16n8k{k}.row.col.kind::{kind}.block_scale{suffix}.f32.e2m1.e2m1.f32." + (
        "ue4m3" if nv else "ue8m0"
    )
    form = parsed(opcode)
    a, b = RNG.integers(0, 16, (16, k)), RNG.integers(0, 16, (k, 8))
    low, high = (0x28, 0x50) if nv else (120, 134)
    sf_a, sf_b = RNG.integers(low, high, (16, scales)), RNG.integers(low, high, (8, scales))
    # Rows g and g + 8 from the pair of lanes 4g + 2·thread; columns from lane 4g + thread.
    words_a = scale_words(sf_a, [4 * (r % 8) + 2 * selector_a[1] + r // 8 for r in range(16)], selector_a[0])
    words_b = scale_words(sf_b, [4 * c + selector_b[1] for c in range(8)], selector_b[0])
    bits, shift = (4, 0) if k == 64 else (8, 2)
    shape = f"m16n8k{k}"
    words = np.concatenate(
        [
            fragments.pack(a << shift, fragments.A[shape, bits], bits),
            fragments.pack(b << shift, fragments.B[shape, bits], bits),
            np.zeros((4, 32), np.uint32),
        ]
    )
    d = mma.multiply(
        form, words, mma.scales_of_a(form, words_a, *selector_a), mma.scales_of_b(form, words_b, *selector_b)
    )
    value = (lambda code: E4M3[code]) if nv else (lambda code: 2.0 ** (code - 127.0))
    left = E2M1[a] * np.repeat(value(sf_a), k // scales, axis=1)
    right = E2M1[b] * np.repeat(value(sf_b), k // scales, axis=1).T
    assert (floats(fragments.unpack(d, fragments.C[16], 32, (16, 8)), "f32") == (left @ right).astype(np.float32)).all()


@pytest.mark.parametrize(
    ("a", "b", "c", "rounding", "expected"),
    [
        (1 + 2**-30, 1 + 2**-30, -1 - 2**-29, "rn", 2**-60),  # the product's last bit stays
        (1.0, 1.0, 2.0**-60, "rn", 1.0),
        (1.0, 1.0, 2.0**-60, "rp", 1 + 2**-52),
        (-1.0, 1.0, -(2.0**-60), "rm", -1 - 2**-52),
        (1.0, 1.0, -(2.0**-60), "rz", 1 - 2**-53),
        (-1.0, 1.0, 2.0**-60, "rz", -1 + 2**-53),
        (2.0**-1000, 2.0**-1000, 1.0, "rp", 1 + 2**-52),  # a product below every double
        (2.0**600, 2.0**600, -np.inf, "rn", -np.inf),
        (2.0**1000, 2.0**1000, 1.0, "rz", np.finfo(float).max),
        (0.0, 1.0, -0.0, "rm", -0.0),
        (0.0, 1.0, -0.0, "rn", 0.0),
    ],
)
def test_fused_multiply_add_rounds_once(a: float, b: float, c: float, rounding: str, expected: float) -> None:
    got = fused_multiply_add(np.array([a]), np.array([b]), np.array([c]), rounding)[0]
    assert got == expected
    assert np.signbit(got) == np.signbit(expected)


def test_f64_products_round_as_the_instruction_says() -> None:
    a = np.zeros((16, 8))
    a[:, 0] = 1.0
    a[:, 7] = 2.0**-40
    b = np.zeros((8, 8))
    b[0], b[7] = 1.0, 2.0**-40
    results = {
        rounding: set(
            floats(
                run(
                    f"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64.{rounding}",
                    codes(a, "f64"), codes(b, "f64"), codes(np.zeros((16, 8)), "f64"), "f64", "f64", "f64", 64,
                ),
                "f64",
            ).ravel()
        )
        for rounding in ("rn", "rz", "rp")
    }  # fmt: skip
    assert results == {"rn": {1.0}, "rz": {1.0}, "rp": {1 + 2.0**-52}}


@pytest.mark.parametrize(
    ("opcode", "message"),
    [
        ("mma.sp.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", "sparse mma of f64 and f64 is not supported"),
        ("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3",
         "mma of e2m1 and e2m1 with kind::mxf4nvf4 with 2 scale factors of ue4m3 is not supported"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
         "mma of tf32 and tf32 in the shape m16n8k16 is not supported"),
        ("mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16",
         "mma of bf16 and bf16 with accumulators of f16 and f16 is not supported"),
        ("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32", "mma in the layouts row and row is not supported"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
         "mma of this shape takes 4, 4, 2, 4 registers for D, A, B, C; it has (4, 4, 2, 2)"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_said_before_execution(opcode: str, message: str) -> None:
    def registers(count: int) -> Vector:
        return Vector(tuple(Register(f"%r{i}") for i in range(count)))

    operands = (registers(4), registers(4), registers(2), registers(2))
    assert mma.unsupported(Instruction(opcode, operands, None, 1)) == message


def test_every_element_of_a_fragment_has_one_place() -> None:
    for fragment in (matrix_layout.multiplicand_a(16, 16, 2), matrix_layout.accumulator(16, 256, 1)):
        assert sorted(fragment.from_matrix) == list(range(fragment.to_matrix.size))
        assert (fragment.from_matrix[fragment.to_matrix.ravel()] == np.arange(fragment.to_matrix.size)).all()
