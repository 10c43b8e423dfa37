"""tcgen05.mma of every kind, size and layout against NumPy, on matrices laid out byte by byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tcgen05_bench import Bench
from tcgen05_matrices import (
    BITS,
    CODES,
    K,
    d_matrix,
    floats,
    put_d,
    put_matrix,
    put_scales,
    random_codes,
    row_bytes,
    words_of,
)  # fmt: skip
from tcgen05_packing import pack_instruction

from ptxdsl.sim import numbers
from ptxdsl.sim.host import Fault

A_AT, B_AT = 0x4000, 0x10000
D_TYPES = {"f16": 0, "f32": 1, "s32": 2}


def layout_of(m: int, pair: bool, ws: bool) -> str:
    return {(256, True): "A", (128, True): "B", (128, False): "D", (64, False): "E" if ws else "F", (32, False): "G"}[
        m, pair
    ]


def multiply(
    kind: str, m: int, n: int, a_type: str, b_type: str, d_type: str = "f32", *,
    swizzles: tuple[str, str] = ("128B", "128B"), transposed: tuple[bool, bool] = (False, False),
    pair: bool = False, ws: bool = False, a_in_tensor: bool = False, accumulate: bool = True,
    scale: tuple[int, str, int, int] | None = None, lane: int = 0, extra: str = "", before: Any = None,
    fields: dict[str, int] | None = None, suffix: str = "", registers: dict[str, Any] | None = None,
) -> tuple[Any, Any, Bench]:  # fmt: skip
    """D's values in the simulator, by NumPy (before rounding), and the bench. scale: vector, type, ids of A and B."""
    rng = np.random.default_rng([m, n, int(pair), *kind.encode(), *a_type.encode(), *b_type.encode()])
    k, packed = K[kind], kind in ("mxf4", "mxf4nvf4")
    bench = Bench(2 if pair else 1).allocated()
    ctas = len(bench.ctas)
    rows, layout = m // ctas, layout_of(m, pair, ws)
    a, a_values = random_codes(rng, a_type, (m, k))
    b, b_values = random_codes(rng, b_type, (n, k))
    d_values = before if before is not None else rng.integers(-50, 50, (m, n)).astype(np.float64)
    descriptor_a = descriptor_b = 0
    for i in range(ctas):
        words, mine = bench.words(i), a[i * rows : (i + 1) * rows]
        if a_in_tensor:
            if BITS[a_type] < 8 and not packed:
                octets = mine << (2 if BITS[a_type] == 4 else 0)
            else:
                octets = row_bytes(mine, BITS[a_type], packed)
            put_a(words, layout, octets.view(np.uint32), 256, lane)
        else:
            descriptor_a = put_matrix(
                bench, A_AT, mine, a_type, swizzles[0], mn_major=transposed[0], packed=packed, cta=i
            )
        descriptor_b = put_matrix(
            bench, B_AT, b[i * n // ctas : (i + 1) * n // ctas], b_type, swizzles[1],
            mn_major=transposed[1], packed=packed, cta=i,
        )  # fmt: skip
        put_d(words, layout, words_of(d_values[i * rows : (i + 1) * rows], d_type), 0, lane)
    product_a, product_b, scales, qualifiers = a_values, b_values, "", ""
    named = {"m": m, "n": n, "a_type": CODES[kind][a_type], "b_type": CODES[kind][b_type]}
    named |= {"transpose_a": int(transposed[0]), "transpose_b": int(transposed[1])}
    if scale is not None:
        vector, scale_type, id_a, id_b = scale
        named |= {"scale_a_id": id_a, "scale_b_id": id_b, "scale_type": int(scale_type == "ue8m0")}
        sa, sb = (
            rng.integers(117, 137, (size, vector), np.uint8)
            if scale_type == "ue8m0"
            else rng.integers(1, 120, (size, vector), np.uint8)
            for size in (m, n)
        )
        for i in range(ctas):
            put_scales(bench.words(i), 300, sa[i * rows : (i + 1) * rows], id_a)
            if layout == "B":  # each half of the lanes has the factors of its half of N
                for half in range(2):
                    put_scales(bench.words(i)[64 * half :], 320, sb[half * n // 2 : (half + 1) * n // 2], id_b)
            else:
                put_scales(bench.words(i), 320, sb, id_b)
        read = "ue8m0" if scale_type == "ue8m0" else "e4m3"
        product_a = a_values * np.repeat(numbers.decode(sa, read).astype(np.float64), k // vector, 1)
        product_b = b_values * np.repeat(numbers.decode(sb, read).astype(np.float64), k // vector, 1)
        scales, qualifiers = "[%r4], [%r5], ", f".block_scale.scale_vec::{vector}X"
    else:
        named["d_type"] = D_TYPES[d_type]
    values: dict[str, Any] = {
        "%r1": lane << 16, "%r2": lane << 16 | 256, "%d1": descriptor_a, "%d2": descriptor_b,
        "%r3": pack_instruction(kind, **(named | (fields or {}))), "%r4": 300, "%r5": 320, "%p1": accumulate,
    }  # fmt: skip
    values |= registers or {}
    a_operand = "[%r2]" if a_in_tensor else "%d1"
    opcode = f"tcgen05.mma{'.ws' * ws}.cta_group::{ctas}.kind::{kind}{qualifiers}{suffix}"
    bench.execute(f"{opcode} [%r1], {a_operand}, %d2, %r3, {scales}{extra}%p1;", values)
    got = np.vstack([floats(d_matrix(bench.words(i), layout, n, 0, lane), d_type) for i in range(ctas)])
    return got, product_a @ product_b.T + (d_values if accumulate else 0), bench


def put_a(words: Any, layout: str, a: Any, column: int, lane: int) -> None:
    """Rows of A at the lanes of the same rows of D; layouts with parts of N side by side have A once for each part."""
    width = a.shape[1]
    if layout in "BEG":
        rows = a.shape[0]
        for start in range(0, 128, rows):
            words[start : start + rows, column : column + width] = a
    else:
        put_d(words, layout, a, column, lane)


def check(*arguments: Any, **named: Any) -> None:
    got, exact, _ = multiply(*arguments, **named)
    d_type = arguments[5] if len(arguments) > 5 else "f32"
    expected = floats(words_of(exact, d_type), d_type)
    assert (got == expected).all()


PLAIN = [
    ("f16", "f16", "f16", "f32"), ("f16", "bf16", "bf16", "f32"),
    ("f16", "f16", "f16", "f16"), ("tf32", "tf32", "tf32", "f32"),
    ("i8", "s8", "s8", "s32"), ("i8", "u8", "s8", "s32"),
    *(("f8f6f4", a, b, "f32") for a in CODES["f8f6f4"] for b in CODES["f8f6f4"]),
    ("f8f6f4", "e2m1", "e2m3", "f16"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "a", "b", "d"), PLAIN)
def test_types(kind, a, b, d):
    check(kind, 128, 16, a, b, d)


@pytest.mark.parametrize("kind", ["f16", "tf32", "f8f6f4", "i8"])
@pytest.mark.parametrize(
    ("m", "n", "pair", "ws"),
    [
        (64, 8, False, False), (64, 256, False, False), (128, 8, False, False), (128, 256, False, False),
        (128, 32, True, False), (256, 64, True, False),
        (32, 64, False, True), (64, 128, False, True), (128, 64, False, True),
    ],
)  # fmt: skip
def test_sizes(kind, m, n, pair, ws):
    a, d = {"f16": ("bf16", "f32"), "tf32": ("tf32", "f32"), "f8f6f4": ("e5m2", "f32"), "i8": ("s8", "s32")}[kind]
    check(kind, m, n, a, a, d, pair=pair, ws=ws)


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("type", ["bf16", "tf32", "e4m3", "e3m2", "e2m1"])
def test_swizzles(swizzle, type):
    kind = {"bf16": "f16", "tf32": "tf32"}.get(type, "f8f6f4")
    check(kind, 64, 32, type, type, swizzles=(swizzle, swizzle))


@pytest.mark.parametrize("swizzle", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("transposed", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("type", ["f16", "e5m2", "s8"])
def test_transposed(swizzle, transposed, type):
    kind = {"f16": "f16", "e5m2": "f8f6f4", "s8": "i8"}[type]
    d = "s32" if type == "s8" else "f32"
    check(kind, 128, 64, type, type, d, swizzles=(swizzle, swizzle), transposed=transposed)


def test_transposed_tf32():
    check("tf32", 64, 64, "tf32", "tf32", swizzles=("128B with 32B atoms",) * 2, transposed=(True, True))


@pytest.mark.parametrize(
    ("kind", "type"), [("f16", "bf16"), ("tf32", "tf32"), ("f8f6f4", "e4m3"), ("f8f6f4", "e2m3"), ("f8f6f4", "e2m1")]
)
@pytest.mark.parametrize(
    ("m", "pair", "ws"),
    [
        (64, False, False),
        (128, False, False),
        (128, True, False),
        (256, True, False),
        (32, False, True),
        (64, False, True),
    ],
)
def test_a_in_tensor_memory(kind, type, m, pair, ws):
    check(kind, m, 64, type, "e4m3" if kind == "f8f6f4" else type, pair=pair, ws=ws, a_in_tensor=True)


def test_upper_half_of_the_partitions():
    """Layout F may begin at lane 16; A in tensor memory then does too."""
    check("f16", 64, 24, "f16", "f16", lane=16)
    check("f16", 64, 24, "f16", "f16", lane=16, a_in_tensor=True)


SCALED = [
    *(("mxf8f6f4", a, b, (1, "ue8m0", id, 3 - id)) for id, (a, b) in enumerate(
        [("e4m3", "e4m3"), ("e5m2", "e2m1"), ("e2m3", "e3m2"), ("e2m1", "e5m2")])),
    ("mxf4", "e2m1", "e2m1", (2, "ue8m0", 0, 2)), ("mxf4", "e2m1", "e2m1", (2, "ue8m0", 2, 0)),
    ("mxf4nvf4", "e2m1", "e2m1", (2, "ue8m0", 2, 2)), ("mxf4nvf4", "e2m1", "e2m1", (4, "ue8m0", 0, 0)),
    ("mxf4nvf4", "e2m1", "e2m1", (4, "ue4m3", 0, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "a", "b", "scale"), SCALED)
@pytest.mark.parametrize(("m", "n", "pair"), [(128, 40, False), (128, 256, False), (128, 128, True), (256, 224, True)])
def test_block_scales(kind, a, b, scale, m, n, pair):
    check(kind, m, n, a, b, scale=scale, pair=pair)


def test_block_scales_with_a_in_tensor_memory():
    check("mxf4nvf4", 128, 64, "e2m1", "e2m1", scale=(4, "ue4m3", 0, 0), a_in_tensor=True)
    check("mxf8f6f4", 128, 64, "e3m2", "e4m3", scale=(1, "ue8m0", 2, 1), a_in_tensor=True)


def test_names_of_the_scale_vector():
    """.block32 and .block16 are .scale_vec::1X or 2X, and 4X; .kind::mxf4 has .block32 where nothing is said."""
    from ptxdsl.sim.tcgen05.mma_form import Form, parse

    def vector(kind, qualifiers):
        form = parse(f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale{qualifiers}")
        return form.scale_vec if isinstance(form, Form) else form

    assert vector("mxf8f6f4", ".block32") == vector("mxf8f6f4", "") == 1
    assert vector("mxf4", ".block32") == vector("mxf4", "") == vector("mxf4nvf4", ".block32") == 2
    assert vector("mxf4nvf4", ".block16") == 4
    assert vector("mxf4nvf4", "") == "this form of tcgen05.mma of kind mxf4nvf4"


def test_scale_address_may_carry_the_id():
    check("mxf8f6f4", 128, 32, "e4m3", "e4m3", scale=(1, "ue8m0", 3, 1), registers={"%r4": 3 << 30 | 300})


def test_each_partition_reads_its_own_scale_factors():
    got, _, bench = multiply("mxf8f6f4", 128, 32, "e4m3", "e4m3", scale=(1, "ue8m0", 0, 0), accumulate=False)
    other, _, _ = multiply("mxf8f6f4", 128, 32, "e4m3", "e4m3", scale=(1, "ue8m0", 0, 0), accumulate=False)
    assert (got == other).all()
    # 1.0 for the rows of the third partition, in its own lanes alone
    bench.words().view(np.uint8).reshape(128, 512, 4)[64:96, 302, 0] = 127
    before = bench.words()[:, :32].copy()
    bench.execute(
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%r1], %d1, %d2, %r3, [%r4], [%r5], %p1;",
        bench.last_registers,
    )
    changed = (bench.words()[:, :32] != before).any(axis=1)
    assert changed[64:96].any()
    assert not changed[:64].any()
    assert not changed[96:].any()


# Options


def test_without_d():
    check("f16", 128, 16, "f16", "f16", accumulate=False)
    got, exact, _ = multiply("f16", 128, 8, "f16", "f16", accumulate=False, before=np.full((128, 8), np.nan))
    assert (got == floats(words_of(exact))).all()


def test_negated():
    got, _, _ = multiply("f16", 64, 16, "bf16", "bf16", accumulate=False)
    for fields, sign in (({"negate_a": 1}, -1), ({"negate_b": 1}, -1), ({"negate_a": 1, "negate_b": 1}, 1)):
        negated, _, _ = multiply("f16", 64, 16, "bf16", "bf16", accumulate=False, fields=fields)
        assert (negated == sign * got).all()


def test_scaled_d():
    """D = A*B + D * 2^-scale-input-d."""
    rng = np.random.default_rng(3)
    d = rng.integers(-50, 50, (128, 16)) * 1024.0
    zero, _, _ = multiply("f16", 128, 16, "f16", "f16", accumulate=False)
    got, _, bench = multiply("f16", 128, 16, "f16", "f16", before=d)
    put_d(bench.words(), "D", words_of(d))
    bench.execute("tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r3, %p1, 10;", bench.last_registers)
    product = multiply("f16", 128, 16, "f16", "f16", before=d)[1] - d
    assert (floats(bench.words()[:, :16]) == floats(words_of(product + d / 1024))).all()
    assert (got != zero).any()
    with pytest.raises(Fault, match="scale-input-d"):
        bench.execute("tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r3, %p1, 16;", bench.last_registers)


def test_disabled_lanes_keep_their_words():
    masks = {"%r10": 0xFFFFFFFE, "%r11": 0, "%r12": 0x0000FFFF, "%r13": 0xFFFFFFFF}
    before = np.arange(128 * 16, dtype=np.float64).reshape(128, 16)
    got, exact, _ = multiply(
        "f16", 128, 16, "f16", "f16", before=before, extra="{%r10, %r11, %r12, %r13}, ", registers=masks
    )
    off = np.array([masks[f"%r1{lane // 32}"] >> lane % 32 & 1 for lane in range(128)], bool)
    assert (got[off] == before[off]).all()
    assert (got[~off] == floats(words_of(exact))[~off]).all()


def test_disabled_lanes_of_a_pair():
    """Elements 4 to 7 of the vector are the lanes of the odd CTA."""
    masks = {f"%r1{i}": 0xFFFFFFFF if i in (1, 6) else 0 for i in range(8)}
    before = np.arange(256 * 16, dtype=np.float64).reshape(256, 16)
    vector = "{" + ", ".join(masks) + "}, "
    got, exact, _ = multiply("f16", 256, 16, "f16", "f16", pair=True, before=before, extra=vector, registers=masks)
    off = np.zeros(256, bool)
    off[32:64] = off[192:224] = True
    assert (got[off] == before[off]).all()
    assert (got[~off] == floats(words_of(exact))[~off]).all()


def test_integers_wrap_or_saturate():
    near = np.full((128, 16), 2.0**31 - 1)
    for saturate in (0, 1):
        got, exact, _ = multiply("i8", 128, 16, "u8", "u8", "s32", before=near, fields={"saturate": saturate})
        assert (exact > 2**31 - 1).any()
        if saturate:
            assert (got == np.clip(exact, -(2**31), 2**31 - 1)).all()
        else:
            assert (got == (exact + 2**31) % 2**32 - 2**31).all()


def test_nan_and_infinity():
    got, _, bench = multiply("f16", 128, 8, "f16", "f16", accumulate=False, before=np.zeros((128, 8)))
    bench.words()[0, 0] = 0x7F800000  # infinity
    bench.words()[1, 0] = 0xFFC00001  # a NaN
    bench.execute("tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r3, %p2;", bench.last_registers | {"%p2": True})
    assert bench.words()[0, 0] == 0x7F800000
    assert bench.words()[1, 0] == 0x7FFFFFFF
    assert np.isfinite(floats(bench.words()[2:, :8])).all()
    assert np.isfinite(got).all()


def test_f16_accumulators_have_words_of_their_own():
    """A word of tensor memory has one 16-bit element in its lower half; the upper half does not count."""
    _, _, bench = multiply("f16", 128, 8, "f16", "f16", "f16", accumulate=False)
    plain = bench.words()[:, :8].copy()
    bench.words()[:, :8] = 0xABCD0000
    bench.execute("tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r3, %p2;", bench.last_registers | {"%p2": True})
    assert (bench.words()[:, :8] & 0xFFFF == plain & 0xFFFF).all()


# .ashift, .ws


def test_ashift_moves_a_after_the_product():
    """As seen on the card: the product has A as it was; then row r becomes row r + 1, but for the last of 32."""
    got, exact, bench = multiply("tf32", 128, 16, "tf32", "tf32", a_in_tensor=True, accumulate=False, suffix=".ashift")
    assert (got == floats(words_of(exact))).all()
    bench.execute("tcgen05.mma.cta_group::1.kind::tf32 [%r1], [%r2], %d2, %r3, %p1;", bench.last_registers)
    shifted = got.copy()
    shifted[:-1] = got[1:]
    shifted[31::32] = got[31::32]
    assert (floats(bench.words()[:, :16]) == shifted).all()


def test_ws_with_a_zero_column_mask():
    """Example 4 of the ISA: M = 32, columns from 2 on, and zeros where the mask of each quarter has ones."""
    rng = np.random.default_rng(5)
    bench = Bench().allocated()
    a, a_values = random_codes(rng, "f16", (32, 16))
    b, b_values = random_codes(rng, "f16", (136, 16))
    descriptors = {"%d1": put_matrix(bench, A_AT, a, "f16"), "%d2": put_matrix(bench, B_AT, b, "f16")}
    mask = 0 | 1 << 8 | 2 << 16 | 1 << 24 | 0b0011 << 32 | 1 << 39 | 2 << 40 | 3 << 48 | 2 << 56
    bench.execute(
        "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b1::fill [%r1], %d1, %d2, %r3, %p1, %d3;",
        descriptors
        | {"%r1": 0, "%r3": pack_instruction("f16", m=32, n=128, d_type=1, max_shift=1), "%p1": False, "%d3": mask},
    )
    zero = np.zeros(128, bool)
    # of each quarter, from its first column on (the ISA prints the first column last)
    period = {0: [1, 1, 1, 0, 0, 0, 0], 1: [1, 1, 0, 0, 0, 0, 1], 2: [0, 0, 1, 1, 1, 0, 0], 3: [0, 0, 0, 1, 1, 1, 0]}
    for quarter in range(4):
        zero[32 * quarter : 32 * quarter + 32] = (period[quarter] * 5)[:32]
    used = np.where(zero[:, None], 0, b_values[2:130])
    assert (floats(d_matrix(bench.words(), "G", 128)) == floats(words_of(a_values @ used.T))).all()
