"""Tensor cores of the fifth generation through the standard library, from tiles to the result, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tcgen05_gemm import scale_blocks
from tcgen05_matrices import random_codes, row_bytes

import ptxdsl
from ptxdsl.api.module import Module
from ptxdsl.imports import read_file
from ptxdsl.options import Options
from ptxdsl.sim import numbers
from ptxdsl.sim.tcgen05.layout import movement

SOURCE = Path(__file__).with_name("tensor_cores.pdsl")
KERNELS = Module(read_file(str(SOURCE)), Options("sm_100a", check="off"))
# the names of types in the language, in tests of the simulator, and in tensor maps
DTYPES = {
    "bf16": "bfloat16", "f16": "float16", "tf32": "float32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
    "s8": "int8", "u8": "uint8", "e2m3": "uint8", "e3m2": "uint8", "e2m1": "uint8",
    "packed": "uint8", "ue8m0": "uint8",
}  # fmt: skip
NARROW = {"e2m3": 3, "e3m2": 4, "e2m1": 5}
MAPS = {"bf16": "bf16", "f16": "f16", "tf32": "f32"}
BITS = {"bf16": 16, "f16": 16, "tf32": 32, "e2m3": 6, "e3m2": 6, "e2m1": 4}
SHARED = 200 * 1024


def tile(codes, type, rows, span=128, atom=""):
    """The map of a matrix's tiles of so many rows; codes of less than 8 bits lie in bytes, 16 behind one another."""
    bits = BITS.get(type, 8)
    array = row_bytes(codes, bits, False) if bits < 8 else np.ascontiguousarray(codes)
    box = rows, min(array.shape[1], span // array.itemsize)
    swizzle = "none" if span == 16 else f"{span}B{atom}"
    return ptxdsl.TensorMap(array, box, swizzle=swizzle, data_type=MAPS.get(type, "u8"))


def product(a, b, d, m, n, k, *, keep=True, **forms):
    """D of the kernel, and NumPy's: A · B + 3."""
    rng = np.random.default_rng([m, n, k])
    ctas = forms.get("CTAS", 1)
    (left, a_values), (right, b_values) = random_codes(rng, a, (m, k)), random_codes(rng, b, (n, k))
    if d == "float16":  # nothing beyond its numbers
        a_values, b_values = a_values / 64, b_values / 64
        left, right = (numbers.encode(v.astype(np.float32), t) for v, t in ((a_values, a), (b_values, b)))
        a_values, b_values = numbers.decode(left, a).astype(float), numbers.decode(right, b).astype(float)
    maps = [
        tile(codes.T if forms.get(f"{name}_MN") else codes, type, k if forms.get(f"{name}_MN") else rows,
             forms.get(f"{name}_SPAN", 128), "_atom_32B" if forms.get(f"{name}_MN") and type == "tf32" else "")
        for name, codes, type, rows in (("A", left, a, m // ctas), ("B", right, b, n // ctas))
    ]  # fmt: skip
    if forms.get("TENSOR") and a in NARROW:  # in tensor memory each element has a byte, of 4 bits in its middle
        maps[0] = tile((left << (2 if a == "e2m1" else 0)).astype(np.uint8), "u8", m // ctas)
    for name, type in (("A", a), ("B", b)):
        forms[name] = f"DType.{DTYPES[type]}"
        forms[f"{name}_NARROW"] = NARROW.get(type, -1)
    kernel = KERNELS["product"].specialize(**forms, D=f"DType.{d}", M=m, N=n, K=k)
    found = np.full((m, n), 77, d)
    start = int(np.array([3], d).view(f"u{found.itemsize}")[0])
    report = kernel.simulate(*maps, found, start, keep, grid=ctas, block=128, cluster=ctas, smem=SHARED, arch="sm_100a")
    assert report.finished, report.render()
    sign = -1 if forms.get("NEGATE", False) != forms.get("NEGATE_B", False) else 1
    times = 2 if forms.get("REUSE") else 1
    if forms.get("SHIFTS"):  # each row's next one is added, but in the last lane of a quarter
        next_rows = np.where(np.arange(m) % 32 < 31, np.arange(m) + 1, np.arange(m))
        a_values = a_values + a_values[np.minimum(next_rows, m - 1)]
    expected = times * sign * a_values @ b_values.T + keep * 3 / 2 ** forms.get("SCALE", 0)
    if forms.get("KEEPS"):
        masks = np.array([1, 0x80000000, 0xFFFF0000, 0xF0F0F0F0, 0, 0xFFFFFFFF, 0x12345678, 0], np.uint32)
        kept = (masks[:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(bool).reshape(-1)
        expected[kept[:m]] = 3
    return found.astype(float), expected


def near(found, expected, d="float32"):
    np.testing.assert_allclose(found, expected, rtol=0, atol=abs(expected).max() * {"float16": 2e-3}.get(d, 1e-6))


@pytest.mark.parametrize(
    ("a", "b", "d", "k"),
    [
        ("bf16", "bf16", "float32", 64), ("f16", "f16", "float32", 64), ("f16", "f16", "float16", 64),
        ("tf32", "tf32", "float32", 32), ("e4m3", "e5m2", "float32", 128), ("e5m2", "e4m3", "float16", 128),
        ("e2m1", "e3m2", "float32", 128), ("e2m3", "e4m3", "float32", 128), ("s8", "u8", "int32", 128),
        ("u8", "u8", "int32", 128),
    ],
)  # fmt: skip
def test_types(a, b, d, k):
    near(*product(a, b, d, 128, 32, k), d)


@pytest.mark.parametrize(
    ("m", "n", "ctas"),
    [(64, 8, 1), (64, 120, 1), (128, 24, 1), (128, 256, 1), (128, 48, 2), (256, 16, 2), (256, 256, 2)],
)
def test_shapes(m, n, ctas):
    near(*product("f16", "f16", "float32", m, n, 64, CTAS=ctas))


@pytest.mark.parametrize(
    ("type", "spans", "major"),
    [
        ("bf16", (16, 64), "A_K B_K"), ("bf16", (16, 64), "A_MN B_K"), ("bf16", (64, 16), "A_K B_MN"),
        ("bf16", (32, 128), "A_MN B_MN"), ("e4m3", (128, 32), "A_MN B_MN"), ("e4m3", (32, 16), "A_K B_K"),
    ],
    ids=str,
)  # fmt: skip
def test_layouts(type, spans, major):
    """Several boxes in each direction."""
    forms = {"A_MN": "A_MN" in major, "B_MN": "B_MN" in major, "A_SPAN": spans[0], "B_SPAN": spans[1]}
    near(*product(type, type, "float32", 128, 128, 128, **forms))


@pytest.mark.parametrize("forms", [{"A_MN": True}, {"B_MN": True, "CTAS": 2}, {"A_MN": True, "B_MN": True}], ids=str)
def test_layouts_of_tf32(forms):
    """Chunks of 32 bytes change places where K is not the direction in which elements are neighbours."""
    near(*product("tf32", "tf32", "float32", 128, 64, 32, **forms))


@pytest.mark.parametrize(
    ("type", "d", "m", "k", "ctas"),
    [
        ("bf16", "float32", 128, 64, 1), ("s8", "int32", 128, 128, 1), ("tf32", "float32", 256, 32, 2),
        ("f16", "float16", 64, 64, 1), ("e4m3", "float32", 128, 128, 2), ("e2m1", "float32", 128, 128, 1),
        ("e3m2", "float32", 128, 128, 1),
    ],
)  # fmt: skip
def test_a_in_tensor_memory(type, d, m, k, ctas):
    near(*product(type, type, d, m, 32, k, TENSOR=True, CTAS=ctas), d)


@pytest.mark.parametrize(
    "forms",
    [
        {"keep": False}, {"NEGATE": True}, {"NEGATE_B": True}, {"SCALE": 3}, {"SCALE": 3, "TENSOR": True},
        {"KEEPS": True}, {"KEEPS": True, "TENSOR": True}, {"SHIFTS": True, "TENSOR": True}, {"REUSE": True},
        {"REUSE": True, "A_MN": True, "B_MN": True}, {"REUSE": True, "TENSOR": True},
    ],
    ids=str,
)  # fmt: skip
def test_forms(forms):
    n = 64 if forms.get("B_MN") else 16
    near(*product("bf16", "bf16", "float32", 128, n, 128, **forms))


@pytest.mark.parametrize("forms", [{"KEEPS": True}, {"SHIFTS": True, "TENSOR": True}, {"REUSE": True}], ids=str)
def test_forms_of_pairs(forms):
    near(*product("f16", "f16", "float32", 256, 32, 64, CTAS=2, **forms))


@pytest.mark.parametrize("forms", [{"KEEPS": True}, {"SHIFTS": True, "TENSOR": True}, {"REUSE": True}], ids=str)
def test_forms_of_bytes(forms):
    near(*product("s8", "u8", "int32", 128, 16, 128, **forms))


@pytest.mark.parametrize(
    ("a", "b", "d", "k"),
    [("s8", "s8", "int32", 128), ("e5m2", "e4m3", "float32", 128), ("e2m3", "e2m1", "float16", 128)],
)
def test_types_of_pairs(a, b, d, k):
    near(*product(a, b, d, 256, 64, k, CTAS=2), d)


def test_a_tf32_result_that_is_divided():
    near(*product("tf32", "tf32", "float32", 128, 16, 32, SCALE=15))


def test_saturating():
    """Products of −128 by 255 over a K of 32: one instruction, whose sum with the start goes beyond int32."""
    a, b = np.full((128, 32), -128, np.int8), np.full((16, 32), 255, np.uint8)
    forms = {"A_SPAN": 32, "B_SPAN": 32, "SATURATE": True}
    kernel = KERNELS["product"].specialize(A="DType.int8", B="DType.uint8", D="DType.int32", M=128, N=16, K=32, **forms)
    found = np.zeros((128, 16), np.int32)
    start = 0x8000_0005
    report = kernel.simulate(
        tile(a, "s8", 128, 32),
        tile(b, "u8", 16, 32),
        found,
        start,
        True,
        grid=1,
        block=128,
        smem=SHARED,
        arch="sm_100a",
    )
    assert report.finished, report.render()
    assert (found == -(2**31)).all()


# Scale factors


@pytest.mark.parametrize(
    ("a", "b", "scale", "block", "forms"),
    [
        ("e4m3", "e5m2", "ue8m0", 32, {"M": 128, "N": 128}),
        ("e2m3", "e2m1", "ue8m0", 32, {"M": 128, "N": 256, "NEGATE": True}),
        ("e4m3", "e4m3", "ue8m0", 32, {"M": 256, "N": 128, "CTAS": 2}),
        ("e4m3", "e4m3", "ue8m0", 32, {"M": 128, "N": 128, "TENSOR": True}),
        ("packed", "packed", "ue8m0", 32, {"M": 128, "N": 128}),
        ("packed", "packed", "e4m3", 16, {"M": 128, "N": 128, "NEGATE_B": True}),
        ("packed", "packed", "ue8m0", 16, {"M": 128, "N": 128}),
        ("packed", "packed", "e4m3", 16, {"M": 256, "N": 256, "CTAS": 2}),
        ("packed", "packed", "e4m3", 16, {"M": 128, "N": 128, "K": 384, "K96": True}),
        ("packed", "packed", "ue8m0", 32, {"M": 256, "N": 128, "CTAS": 2, "K": 384, "K96": True}),
        ("packed", "packed", "e4m3", 16, {"M": 128, "N": 128, "K": 384, "K96": True, "TENSOR": True}),
        ("e4m3", "e5m2", "ue8m0", 32, {"M": 128, "N": 128, "REUSE": True}),
        ("e4m3", "e5m2", "ue8m0", 32, {"M": 128, "N": 128, "A_MN": True, "B_MN": True}),
        ("e5m2", "e2m1", "ue8m0", 32, {"M": 256, "N": 128, "CTAS": 2, "A_MN": True}),
        ("e2m1", "e4m3", "ue8m0", 32, {"M": 128, "N": 128, "UNPACK": '"b4x16_p64"'}),
        ("e3m2", "e2m3", "ue8m0", 32, {"M": 256, "N": 128, "CTAS": 2, "UNPACK": '"b6x16_p32"'}),
        ("packed", "packed", "e4m3", 16, {"M": 256, "N": 128, "CTAS": 2, "REUSE": True}),
    ],
    ids=str,
)
def test_scaled(a, b, scale, block, forms):
    rng = np.random.default_rng(block)
    m, n, ctas = forms["M"], forms["N"], forms.get("CTAS", 1)
    packed = a == "packed"
    row = forms.get("K", 128)
    k = 2 * row if packed else row
    operands, values = [], []
    for name, type, rows in (("A", a, m), ("B", b, n)):
        codes, meant = random_codes(rng, "e2m1" if packed else type, (rows, k))
        if packed:
            map = ptxdsl.TensorMap(row_bytes(codes, 4, True), (rows // ctas, 128), swizzle="128B", data_type="u8")
        elif forms.get(f"{name}_MN"):
            map = tile(codes.T, type, k)
        else:
            map = tile(codes, type, rows // ctas)
        factors = rng.integers(*((120, 134) if scale == "ue8m0" else (0x20, 0x50)), (rows, k // block), np.uint8)
        operands.append((map, factors))
        values.append(meant * np.repeat(numbers.decode(factors, scale).astype(float), block, 1))
    words = k // block // 4
    # 512 bytes for 128 rows and four factors: the rows of a block together, the factors inside
    (a_map, a_factors), (b_map, b_factors) = operands
    layout = [
        np.concatenate(
            [scale_blocks(part, words, 1).reshape(words, -1, 512).transpose(1, 0, 2).ravel() for part in parts]
        )
        for parts in (np.split(a_factors, ctas), [b_factors])
    ]
    types = {"T": f"DType.{DTYPES[a]}", "U": f"DType.{DTYPES[b]}", "S": f"DType.{DTYPES[scale]}"}
    narrow = {"A_NARROW": NARROW.get(a, -1), "B_NARROW": NARROW.get(b, -1)}
    arch = "sm_103a" if "K96" in forms else "sm_100a"
    module = Module(read_file(str(SOURCE)), Options(arch, check="off")) if "K96" in forms else KERNELS
    kernel = module["scaled"].specialize(**types, **({"K": row} | forms), **narrow, BLOCK=block)
    found = np.full((m, n), np.nan, np.float32)
    report = kernel.simulate(
        a_map, b_map, *layout, found, 0, grid=ctas, block=128, cluster=ctas, smem=SHARED, arch=arch
    )
    assert report.finished, report.render()
    times = 2 if "REUSE" in forms else -1 if "NEGATE" in forms or "NEGATE_B" in forms else 1
    near(found, times * values[0] @ values[1].T)


# Moves and copies


@pytest.mark.parametrize(
    ("datapaths", "bits", "repeat", "pack", "split"),
    [
        (32, 32, 16, False, -1), (32, 32, 32, True, -1), (16, 64, 8, False, -1), (16, 128, 4, True, -1),
        (16, 256, 2, False, -1), (16, 256, 1, True, -1), (16, 32, 8, False, 20), (16, 32, 4, True, 16),
    ],
)  # fmt: skip
def test_loads_and_stores(datapaths, bits, repeat, pack, split):
    rng = np.random.default_rng(bits)
    words = rng.integers(0, 1 << 14, (128, 64), np.uint32)
    shape = f"{datapaths}x{bits}b" + ("x2" if split >= 0 else "")
    lanes, columns = movement(shape, repeat, pack, max(split, 0))
    found = np.full((len(lanes), 128), 77, np.uint32)
    after = np.full((128, 64), 77, np.uint32)
    kernel = KERNELS["moved"].specialize(DATAPATHS=datapaths, BITS=bits, REPEAT=repeat, PACK=pack, SPLIT=split)
    report = kernel.simulate(words, found, after, grid=1, block=128, arch="sm_100a")
    assert report.finished, report.render()
    expected = np.zeros((128, 64), np.uint32)
    for warp in range(4):
        at = lanes + 32 * warp
        values = words[at, columns] | (words[at, columns + 1] << 16 if pack else 0)
        np.testing.assert_array_equal(found[:, 32 * warp : 32 * warp + 32], values)
        for step in range(1 + pack):
            expected[at, columns + step] = 2 * words[at, columns + step]
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize(
    ("type", "op", "count", "forms"),
    [
        ("float32", "max", 8, {}), ("float32", "min", 32, {"ABS": True}), ("float32", "max", 4, {"NAN": True}),
        ("float32", "min", 2, {"ABS": True, "NAN": True}), ("int32", "min", 16, {}), ("uint32", "max", 64, {}),
        ("int32", "max", 4, {"DATAPATHS": 16, "SPLIT": 20}), ("uint32", "min", 4, {"DATAPATHS": 16, "SPLIT": 8}),
    ],
    ids=str,
)  # fmt: skip
def test_loads_that_find(type, op, count, forms):
    rng = np.random.default_rng(count)
    values = rng.standard_normal((128, 64)).astype(np.float32)
    values[rng.random((128, 64)) < 0.1] = np.nan
    words = values.view(np.uint32) if type == "float32" else rng.integers(0, 1 << 32, (128, 64), np.uint32)
    found = np.full((128, count + 1), 77, np.uint32)
    module = Module(read_file(str(SOURCE)), Options("sm_103a", check="off"))
    kernel = module["reduced"].specialize(T=f"DType.{type}", OP=f'"{op}"', COUNT=count, **forms)
    report = kernel.simulate(words, found, grid=1, block=128, arch="sm_103a")
    assert report.finished, report.render()
    thread = np.arange(128)
    lane, first = thread, np.zeros(128, int)
    if "SPLIT" in forms:  # threads 16 to 31 have the same lanes again, further on
        lane, first = thread // 32 * 32 + thread % 16, thread % 32 // 16 * forms["SPLIT"]
    read = words[lane[:, None], first[:, None] + np.arange(count)]
    np.testing.assert_array_equal(found[:, 1:], read)
    typed = read.view(type)
    if forms.get("ABS"):
        typed = abs(typed)
    if type != "float32":
        expected = getattr(typed, op)(axis=1)
    elif forms.get("NAN"):
        expected = getattr(np, f"{op}imum").reduce(typed, axis=1)
    else:
        expected = getattr(np, f"f{op}").reduce(typed, axis=1)
    np.testing.assert_array_equal(found[:, 0].view(type), expected)


LANES = {  # of a copy's rows
    (128, 256, ""): np.arange(128)[:, None],
    (128, 128, ""): np.arange(128)[:, None],
    (4, 256, ""): 32 * np.arange(4)[:, None],
    (64, 128, "02_13"): np.arange(64)[:, None] + [0, 64],
    (64, 128, "01_23"): (np.arange(64) + np.arange(64) // 32 * 32)[:, None] + [0, 32],
    (32, 128, "all"): np.arange(32)[:, None] + [0, 32, 64, 96],
}


def copied(octets, shape, source="", ctas=1, **forms):
    """What 8 columns are after a copy of rows of each block, (blocks * 128, 8)."""
    datapaths, bits, multicast = shape
    found = np.full((ctas * 128, 8), 77, np.uint32)
    kernel = KERNELS["copied"].specialize(
        DATAPATHS=datapaths, BITS=bits, MULTICAST=f'"{multicast}"', SOURCE=f'"{source}"', CTAS=ctas, **forms
    )
    report = kernel.simulate(octets, found, grid=ctas, block=128, cluster=ctas, arch="sm_100a")
    assert report.finished, report.render()
    return found


def in_lanes(octets, shape, ctas=1):
    """Rows of each block in the lanes of a shape, zeros elsewhere."""
    expected = np.zeros((ctas, 128, 8), np.uint32)
    for block, rows in zip(expected, np.split(octets, ctas), strict=True):
        for place in LANES[shape].T:
            block[place, : rows.shape[1] // 4] = rows.view(np.uint32)
    return expected.reshape(-1, 8)


@pytest.mark.parametrize("shape", LANES, ids=str)
@pytest.mark.parametrize("ctas", [1, 2])
def test_copies(shape, ctas):
    octets = np.random.default_rng(shape[1]).integers(0, 256, (ctas * shape[0], shape[1] // 8), np.uint8)
    np.testing.assert_array_equal(copied(octets, shape, ctas=ctas), in_lanes(octets, shape, ctas))


def test_a_copy_of_swizzled_rows():
    octets = np.random.default_rng(3).integers(0, 256, (128, 32), np.uint8)
    found = copied(octets, (128, 256, ""), SPAN=32)
    np.testing.assert_array_equal(found, in_lanes(octets, (128, 256, "")))


@pytest.mark.parametrize("shape", [(128, 128, ""), (64, 128, "02_13"), (64, 128, "01_23"), (32, 128, "all")], ids=str)
@pytest.mark.parametrize(("source", "bits"), [("b6x16_p32", 6), ("b4x16_p64", 4)])
def test_copies_that_unpack(shape, source, bits):
    """Elements of 6 bits go to the low bits of bytes, of 4 bits to the middle ones."""
    codes = np.random.default_rng(bits).integers(0, 1 << bits, (shape[0], 16), np.uint8)
    found = copied(row_bytes(codes, bits, False), shape, source)
    np.testing.assert_array_equal(found, in_lanes((codes << (2 if bits == 4 else 0)).astype(np.uint8), shape))


@pytest.mark.parametrize("ctas", [1, 2])
def test_a_shift(ctas):
    """Lanes 32 to 62 get what the next one has."""
    octets = np.random.default_rng(1).integers(0, 256, (ctas * 128, 32), np.uint8)
    found = copied(octets, (128, 256, ""), ctas=ctas, SHIFT=True)
    expected = octets.view(np.uint32).reshape(ctas, 128, 8).copy()
    expected[:, 32:63] = expected[:, 33:64]
    np.testing.assert_array_equal(found, expected.reshape(-1, 8))
