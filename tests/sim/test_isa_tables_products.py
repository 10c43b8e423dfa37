"""tcgen05.mma in the simulator against the tables of the PTX ISA: types, operands in memory, data paths, options."""

from __future__ import annotations

import numpy as np
import pytest
from isa_bench import Probe, run
from isa_products import Operand, Product, check, compact, found, values
from isa_tables import containers, copies, data_paths, descriptors, scale_factors, shared_layouts

F16 = ("f16", "f16", "f16", "f32")
TYPES = (
    F16,
    ("f16", "bf16", "bf16", "f32"),
    ("f16", "f16", "f16", "f16"),
    ("tf32", "tf32", "tf32", "f32"),
    ("f8f6f4", "e4m3", "e5m2", "f32"),
    ("f8f6f4", "e5m2", "e4m3", "f16"),
    ("f8f6f4", "e2m1", "e3m2", "f32"),
    ("f8f6f4", "e2m3", "e2m1", "f32"),
    ("f8f6f4", "e3m2", "e2m3", "f32"),
    ("i8", "s8", "u8", "s32"),
    ("i8", "u8", "s8", "s32"),
)
A_START = 1 << 16  # of A in the given bytes, behind B


def a_of(m: int, cta_group: int = 1) -> Operand:
    return compact("none", False, m // cta_group, 32, 0, A_START)


def b_of(n: int, cta_group: int = 1) -> Operand:
    return compact("none", False, n // cta_group, 32, 0, 0)


def product(types: tuple[str, str, str, str], m: int, n: int, cta_group: int = 1, **options: object) -> Product:
    """A product of K-major matrices without swizzling."""
    options = {"a": a_of(m, cta_group), "b": b_of(n, cta_group)} | options
    return Product(*types, m, n, cta_group, **options)


@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_types_of_the_instruction_descriptor(types: tuple[str, str, str, str]) -> None:
    check(product(types, 128, 32))


# M, N, cta_group, .ws, lane of D
DATA_PATHS = (
    (256, 64, 2, False, 0),
    (128, 64, 2, False, 0),
    (128, 40, 1, False, 0),
    (128, 64, 1, True, 0),
    (64, 64, 1, True, 0),
    (64, 24, 1, False, 0),
    (64, 24, 1, False, 16),
    (32, 64, 1, True, 0),
    (32, 256, 1, True, 0),
)


@pytest.mark.parametrize(("m", "n", "cta_group", "ws", "lane"), DATA_PATHS)
def test_data_paths_of_d(m: int, n: int, cta_group: int, ws: bool, lane: int) -> None:
    for accumulate in (False, True):
        check(product(F16, m, n, cta_group, ws=ws, d_lane=lane, accumulate=accumulate))


def test_upper_halves_of_an_f16_d_are_not_read() -> None:
    check(product(("f16", "f16", "f16", "f16"), 128, 32, accumulate=True, rubbish=0xBEEF0000))


def test_all_data_paths_but_the_undecided_one() -> None:
    layouts = {data_paths.layout_of(m, group, ws=ws) for m, _, group, ws, _ in DATA_PATHS}
    assert layouts == set("ABDEFG")  # C: pairs with a sparse A


@pytest.mark.parametrize(("m", "n", "cta_group"), [(256, 64, 2), (128, 64, 2)])
def test_either_cta_of_a_pair_may_issue(m: int, n: int, cta_group: int) -> None:
    check(product(F16, m, n, cta_group, issuer=1))


@pytest.mark.parametrize("kind", descriptors.ACCUMULATORS)
@pytest.mark.parametrize("cta_group", [1, 2])
def test_extreme_shapes(kind: str, cta_group: int) -> None:
    types = next(types for types in TYPES if types[0] == kind)
    numbers = descriptors.legal_n(kind, cta_group)
    for n in (numbers[0], numbers[-1]):
        check(product(types, descriptors.DENSE_M[kind, cta_group][0], n, cta_group))


@pytest.mark.parametrize("mode", shared_layouts.K_MODES)
@pytest.mark.parametrize(
    "types", [F16, ("tf32", "tf32", "tf32", "f32"), ("f8f6f4", "e4m3", "e2m1", "f32")], ids="-".join
)
def test_k_major_matrices(types: tuple[str, str, str, str], mode: str) -> None:
    width = shared_layouts.SWIZZLE_BITS[mode][0]
    for advance in {0, 32, width - 32} if width > 32 else {0}:
        a, b = (compact(mode, False, rows, 32, 0, start, spare=1024) for rows, start in ((128, A_START), (32, 0)))
        a.advance = b.advance = advance
        check(product(types, 128, 32, a=a, b=b))


MN_MAJOR = [
    *((types, mode) for mode in shared_layouts.MN_MODES for types in (F16, ("i8", "s8", "u8", "s32"))),
    *((("tf32", "tf32", "tf32", "f32"), mode) for mode in shared_layouts.MN_MODES_OF_32_BITS),
    (("f8f6f4", "e4m3", "e5m2", "f32"), "128b"),
]


@pytest.mark.parametrize("spare", [0, 1024])
@pytest.mark.parametrize(("types", "mode"), MN_MAJOR, ids=str)
def test_mn_major_matrices(types: tuple[str, str, str, str], mode: str, spare: int) -> None:
    size, k = containers.bits_of(types[1]) // 8, descriptors.DENSE_K[types[0]]
    for m, n, cta_group in ((128, 64, 1), (256, 128, 2)):
        a = compact(mode, True, m // cta_group, size, k, A_START, spare=spare)
        b = compact(mode, True, n // cta_group, size, k, 0, spare=spare)
        check(product(types, m, n, cta_group, a=a, b=b))


@pytest.mark.parametrize(("m", "cta_group", "lane"), [(256, 2, 0), (128, 2, 0), (128, 1, 0), (64, 1, 0), (64, 1, 16)])
@pytest.mark.parametrize("types", [F16, ("i8", "s8", "u8", "s32"), ("f8f6f4", "e2m1", "e5m2", "f32")], ids="-".join)
def test_a_in_tensor_memory(types: tuple[str, str, str, str], m: int, cta_group: int, lane: int) -> None:
    check(product(types, m, 32, cta_group, a=None, d_lane=lane))


@pytest.mark.parametrize(("a_type", "form"), [("e2m1", "b4x16_p64"), ("e2m3", "b6x16_p32"), ("e3m2", "b6x16_p32")])
def test_a_copied_to_tensor_memory(a_type: str, form: str) -> None:
    """Where cp puts 6 bits of a byte is not decided; that mma finds them there is."""
    there = product(("f8f6f4", a_type, "e4m3", "f32"), 128, 32)
    assert there.a is not None
    copied = there.probe()
    a = there.a.descriptor()
    for row in there.a_codes:
        chunk = containers.shared_bytes("f8f6f4", a_type, [int(code) for code in row[:16]])
        assert copies.elements(chunk, form) == row[:16].tolist()
    there.a = None
    copied.body = f"add.u32 %v1, %t, {there.a_column}; tcgen05.cp.cta_group::1.128x256b.b8x16.{form} [%v1], %d2;"
    copied.body += there.body()  # in the order of the pipe, so nothing is waited for
    copied.descriptors = (0, there.b.descriptor(), a)
    after = run(copied)
    np.testing.assert_array_equal(found(there, after).view(np.float32), there.expected())


SCALED = (
    ("mxf8f6f4", "e4m3", "e5m2", "1X", "ue8m0"),
    ("mxf8f6f4", "e2m1", "e3m2", "1X", "ue8m0"),
    ("mxf4", "e2m1", "e2m1", "2X", "ue8m0"),
    ("mxf4nvf4", "e2m1", "e2m1", "2X", "ue8m0"),
    ("mxf4nvf4", "e2m1", "e2m1", "4X", "ue8m0"),
    ("mxf4nvf4", "e2m1", "e2m1", "4X", "ue4m3"),
)


def scaled(form: tuple[str, str, str, str, str], m: int, n: int, cta_group: int = 1, **options: object) -> Product:
    kind, a_type, b_type, vector, scale_type = form
    return product((kind, a_type, b_type, "f32"), m, n, cta_group, vector=vector, scale_type=scale_type, **options)


@pytest.mark.parametrize(("m", "n", "cta_group"), [(128, 200, 1), (256, 256, 2), (128, 48, 2), (128, 256, 2)])
@pytest.mark.parametrize("form", SCALED, ids="-".join)
def test_scale_factors(form: tuple[str, str, str, str, str], m: int, n: int, cta_group: int) -> None:
    ids = scale_factors.VECTORS[form[3]][1]
    check(scaled(form, m, n, cta_group, a_scale_id=ids[0], b_scale_id=ids[-1]))


@pytest.mark.parametrize("form", SCALED, ids="-".join)
def test_every_scale_factor_id(form: tuple[str, str, str, str, str]) -> None:
    ids = scale_factors.VECTORS[form[3]][1]
    for a_id, b_id in zip(ids, reversed(ids), strict=True):
        check(scaled(form, 128, 16, a_scale_id=a_id, b_scale_id=b_id))


@pytest.mark.parametrize("form", [form for form in SCALED if form[1] != "e2m3"], ids="-".join)
def test_scaled_a_in_tensor_memory(form: tuple[str, str, str, str, str]) -> None:
    check(scaled(form, 128, 32, a=None))


@pytest.mark.parametrize(("kind", "alias"), scale_factors.ALIASES)
def test_names_of_the_vector_sizes(kind: str, alias: str) -> None:
    vector = scale_factors.ALIASES[kind, alias]
    form = next(form for form in SCALED if (form[0], form[3]) == (kind, vector))
    check(scaled(form, 128, 32, suffix=f".{alias}"))


def test_mxf4_has_a_vector_size_unless_it_is_given() -> None:
    form = next(form for form in SCALED if form[0] == "mxf4")
    assert scale_factors.DEFAULTS["mxf4"] == form[3]
    default = scaled(form, 128, 32)
    text = default.body()
    default.body = lambda: text.replace(".scale_vec::2X", "")
    check(default)


def test_mn_major_matrices_with_scale_factors() -> None:
    a, b = compact("128b", True, 128, 1, 32, A_START), compact("64b", True, 64, 1, 32, 0)
    check(scaled(SCALED[0], 128, 64, a=a, b=b))


@pytest.mark.parametrize(("negate_a", "negate_b"), [(1, 0), (0, 1), (1, 1)])
def test_negation(negate_a: int, negate_b: int) -> None:
    fields = {"negate_a": negate_a, "negate_b": negate_b}
    for negated in (product(F16, 128, 32, fields=fields), scaled(SCALED[2], 128, 32, fields=fields)):
        # A sum that is 0 is +0, as measured on a B200.
        check(negated, negated.expected() * (-1) ** (negate_a + negate_b) + 0.0)


@pytest.mark.parametrize("saturate", [0, 1])
def test_saturation(saturate: int) -> None:
    sums = product(("i8", "s8", "s8", "s32"), 128, 32, accumulate=True, fields={"saturate": saturate})
    sums.before = np.where(np.arange(128)[:, None] % 2, 2**31 - 1, np.full((128, 32), -(2**31)))
    exact = sums.expected()
    check(sums, np.clip(exact, -(2**31), 2**31 - 1) if saturate else (exact + 2**31) % 2**32 - 2**31)


@pytest.mark.parametrize("types", [F16, ("tf32", "tf32", "tf32", "f32")], ids="-".join)
def test_scale_of_the_input_d(types: tuple[str, str, str, str]) -> None:
    for scale in (0, 1, 15):
        sums = product(types, 128, 32, accumulate=True, last=f", {scale}")
        a, b = values(types[1], sums.a_codes), values(types[2], sums.b_codes)
        check(sums, a @ b.T + sums.before * 2.0**-scale)


@pytest.mark.parametrize("m", [128, 64])
def test_lanes_that_are_not_written(m: int) -> None:
    masks = (0x00000001, 0x80000000, 0xFFFF0000, 0xF0F0F0F0)
    some = product(F16, m, 32, more=", {" + ", ".join(map(str, masks)) + "}")
    off = np.array([masks[lane // 32] >> lane % 32 & 1 for lane in some.places()[1][:, 0]])
    check(some, kept=np.repeat(off[:, None] == 1, 32, axis=1))


@pytest.mark.parametrize("suffix", [".collector::a::fill", ".collector::a::discard", ".collector::a::lastuse"])
def test_collectors_change_no_result(suffix: str) -> None:
    check(product(F16, 128, 32, suffix=suffix))


@pytest.mark.parametrize("example", descriptors.ZERO_COLUMN_EXAMPLES, ids=lambda example: f"M{example[0]}")
@pytest.mark.parametrize("used", [0, 1])
def test_columns_of_zeros(example: tuple, used: int) -> None:
    m, starts, first_spans, skip, use, _ = example
    number = descriptors.zero_column_descriptor(starts, first_spans, skip, use, used)
    # A descriptor that is not a shared address: the bench adds the address of the given bytes.
    some = product(F16, m, 64, ws=True, last=", %d2")
    text = some.body()
    some.body = lambda: "ld.global.u64 %d2, [%numbers + 16];" + text
    some.descriptors = (number,)
    zeros = np.array(descriptors.zero_columns(m, 64, starts, first_spans, skip, use)) * used
    check(some, np.where(zeros, 0.0, some.expected()))


def test_ashift() -> None:
    """A is multiplied as it is, and then shifted in every part of the lanes."""
    some = product(F16, 128, 32, a=None, suffix=".ashift")
    before = some.probe()
    after = run(before)
    np.testing.assert_array_equal(found(some, after).view(np.float32), some.expected())
    columns = slice(some.a_column, some.a_column + copies.SHIFT_COLUMNS)
    assert before.lanes is not None
    from_lanes = [copies.shifted(lane) for lane in range(data_paths.LANES)]
    np.testing.assert_array_equal(after[0, :, columns], before.lanes[0, from_lanes, columns])


@pytest.mark.parametrize("schedule", [None, "random:1", "random:2"])
def test_a_pipe_keeps_its_order(schedule: str | None) -> None:
    """mma, shift, cp and mma again of the same thread need nothing between them (rules.PIPELINED)."""
    some = product(F16, 128, 32, a=None, accumulate=True)
    fresh = np.random.default_rng(9).permutation(some.a_codes.reshape(-1))[:64].reshape(4, 16)
    image = bytearray(some.images()[0].ljust(A_START, b"\0"))
    Operand("none", leading=128, stride=256, start=A_START).place(image, "f16", "f16", fresh)
    shifts = "".join(
        f"add.u32 %x, %t, {part << 16 | some.a_column}; tcgen05.shift.cta_group::1.down [%x];"
        for part in (0, 32, 64, 96)
    )
    refresh = f"add.u32 %x, %t, {31 << 16 | some.a_column}; tcgen05.cp.cta_group::1.4x256b [%x], %d2;"
    probe = some.probe()
    probe = Probe(
        some.body() + shifts + refresh + some.body(),
        shared=(bytes(image),),
        lanes=probe.lanes,
        descriptors=(0, some.b.descriptor(), descriptors.shared(A_START, 128, 256, "none")),
        words=probe.words,
    )
    again = some.a_codes[[copies.shifted(lane) for lane in range(128)]]
    again[31::32] = fresh
    expected = some.expected() + values("f16", again) @ values("f16", some.b_codes).T
    np.testing.assert_array_equal(found(some, run(probe, schedule=schedule)).view(np.float32), expected)
