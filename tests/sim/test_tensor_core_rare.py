"""Products of a sparse A and with a stationary B, through the standard library, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from isa_tables.descriptors import SUB_MASKS, zero_columns
from tcgen05_gemm import scale_blocks
from tcgen05_matrices import random_codes, row_bytes
from test_tcgen05_sparse import placed
from test_tensor_core_library import DTYPES, NARROW, near, tile

import ptxdsl
from ptxdsl.api.module import Module
from ptxdsl.imports import read_file
from ptxdsl.options import Options
from ptxdsl.sim import numbers as formats

KERNELS = Module(read_file(str(Path(__file__).with_name("tensor_cores_rare.pdsl"))), Options("sm_100a", check="off"))

WIDTHS = {"f16": 16, "bf16": 16, "tf32": 16}  # bits of what metadata is laid out for, where it is not 8


def simulated(kernel, constants, *arguments, ctas=1):
    made = KERNELS[kernel].specialize(**constants)
    report = made.simulate(*arguments, grid=ctas, block=128, cluster=ctas, smem=200 * 1024, arch="sm_100a")
    assert report.finished, report.render()


def lanes_of(numbers, bits):
    """The 16 bytes of each lane, for each 128 of K: (blocks, rows, 16). JAX's formatting, numbers of 2 bits."""
    rows, blocks = len(numbers), numbers.shape[1] // 64
    if bits == 8:
        laid = numbers.reshape(rows, blocks, 64).transpose(1, 0, 2)
    else:
        laid = numbers.reshape(-1, 2, 8, blocks, 4, 2, 8).transpose(3, 0, 5, 2, 4, 1, 6).reshape(blocks, rows, 64)
    fours = laid.reshape(blocks, rows, 16, 4)
    return np.ascontiguousarray((fours << np.arange(0, 8, 2)).sum(axis=-1), np.uint8)


def in_quarters(lanes):
    """64 rows in lanes 0 to 15 of each quarter, as D has them; what is in the others does not count."""
    blocks = len(lanes)
    all = np.full((blocks, 4, 32, 16), 0x5A, np.uint8)
    all[:, :, :16] = lanes.reshape(blocks, 4, 16, 16)
    return all.reshape(blocks, 128, 16)


@pytest.mark.parametrize(
    ("a", "b", "d", "k", "forms"),
    [
        ("bf16", "bf16", "float32", 128, {}), ("f16", "f16", "float32", 256, {"CTAS": 2}),
        ("f16", "f16", "float32", 128, {"TENSOR": True}), ("e4m3", "e5m2", "float32", 256, {"NEGATE": True}),
        ("s8", "u8", "int32", 256, {}), ("e5m2", "e4m3", "float32", 256, {"CTAS": 2, "TENSOR": True}),
        ("tf32", "tf32", "float32", 128, {}), ("tf32", "tf32", "float32", 64, {"CTAS": 2, "NEGATE": True}),
        ("tf32", "tf32", "float32", 64, {"TENSOR": True}), ("e2m3", "e2m1", "float32", 256, {}),
        ("bf16", "bf16", "float32", 128, {"M": 64}), ("f16", "f16", "float32", 128, {"M": 64, "TENSOR": True}),
        ("tf32", "tf32", "float32", 64, {"M": 64}), ("e4m3", "e5m2", "float32", 256, {"M": 64, "TENSOR": True}),
        ("f16", "f16", "float32", 128, {"M": 128, "CTAS": 2}), ("tf32", "tf32", "float32", 64, {"M": 128, "CTAS": 2}),
        ("s8", "s8", "int32", 256, {"M": 128, "CTAS": 2, "TENSOR": True}),
        ("bf16", "bf16", "float32", 128, {"FORM": "divides"}), ("e4m3", "e4m3", "float32", 256, {"FORM": "keeps"}),
        ("f16", "f16", "float32", 128, {"FORM": "keeps", "CTAS": 2}),
        ("f16", "f16", "float32", 128, {"FORM": "reuses"}),
        ("bf16", "bf16", "float32", 128, {"MN": True}),
        ("s8", "u8", "int32", 256, {"FORM": "reuses"}), ("s8", "u8", "int32", 256, {"FORM": "keeps", "M": 64}),
    ],
    ids=str,
)  # fmt: skip
def test_sparse(a, b, d, k, forms):
    found, expected = sparse(a, b, "", d, k, 64, forms)
    near(found, expected)


@pytest.mark.parametrize(
    ("a", "b", "scale", "k", "forms"),
    [
        ("e4m3", "e5m2", "ue8m0", 256, {}), ("e5m2", "e4m3", "ue8m0", 256, {"CTAS": 2, "NEGATE": True}),
        ("e4m3", "e4m3", "ue8m0", 256, {"TENSOR": True}), ("e3m2", "e2m1", "ue8m0", 256, {}),
        ("packed", "packed", "ue8m0", 512, {"FACTORS": 8}), ("packed", "packed", "e4m3", 512, {"FACTORS": 16}),
        ("packed", "packed", "e4m3", 512, {"FACTORS": 16, "CTAS": 2}),
    ],
    ids=str,
)  # fmt: skip
def test_sparse_scaled(a, b, scale, k, forms):
    found, expected = sparse(a, b, scale, "float32", k, 128, {"FACTORS": k // 64} | forms)
    near(found, expected)


def sparse(a, b, scale, d, k, n, forms):
    """D of the kernel, and of NumPy."""
    rng = np.random.default_rng(k)
    ctas, factors = forms.get("CTAS", 1), forms.get("FACTORS", 0)
    m, packed = forms.get("M", 128 * ctas), a == "packed"
    (stored, values), (right, b_values) = (
        random_codes(rng, "e2m1" if packed else t, shape) for t, shape in ((a, (m, k // 2)), (b, (n, k)))
    )
    numbers, places = placed(rng, "mxf4" if packed else a, m, k)
    whole = np.zeros((m, k))
    np.put_along_axis(whole, places, values, axis=1)
    metadata = [lanes_of(part, WIDTHS.get(a, 8)) for part in np.split(numbers, ctas)]
    if m // ctas == 64:
        metadata = list(map(in_quarters, metadata))
    scales = np.zeros(1, np.uint8)
    if factors:
        codes = [rng.integers(*((120, 134) if scale == "ue8m0" else (0x20, 0x50)), (rows, factors), np.uint8)
                 for rows in (m, n)]  # fmt: skip
        words = factors // 4
        parts = [*np.split(codes[0], ctas), codes[1]]
        scales = np.concatenate([
            scale_blocks(part, words, 1).reshape(words, -1, 512).transpose(1, 0, 2).ravel() for part in parts
        ])  # fmt: skip
        of_a, b_factors = (np.repeat(formats.decode(c, scale).astype(float), k // factors, 1) for c in codes)
        whole, b_values = whole * of_a, b_values * b_factors
    found = np.full((m, n), 77, d)
    constants = {"A": f"DType.{DTYPES[a]}", "B": f"DType.{DTYPES[b]}", "D": f"DType.{d}", "N": n, "K": k, **forms}
    constants |= {"A_NARROW": NARROW.get(a, -1), "B_NARROW": NARROW.get(b, -1)}
    form = forms.get("FORM")
    if form:
        constants["FORM"] = f'"{form}"'
    if scale:
        constants |= {"S": f"DType.{DTYPES[scale]}", "PACKED": packed}
    maps = [
        ptxdsl.TensorMap(row_bytes(codes, 4, True), (rows, 128), swizzle="128B", data_type="u8") if packed
        else tile(codes.T, type, codes.shape[1]) if forms.get("MN") else tile(codes, type, rows)
        for codes, type, rows in ((stored, a, m // ctas), (right, b, n // ctas))
    ]  # fmt: skip
    simulated("sparse", constants, *maps, np.concatenate(metadata), scales, found, ctas=ctas)
    expected = (-1 if forms.get("NEGATE") else 1) * whole @ b_values.T
    if form == "divides":
        expected += 12 / 8
    elif form == "reuses":
        expected *= 2
    elif form == "keeps":
        masks = np.array([0xFF, 0xFFFF, 0, 0x80000001, 1, 2, 3, 4], np.uint32)
        kept = (masks[:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(bool)  # a quarter of a block's lanes each
        if m == 64:
            kept = kept[:4, :16]
        expected = np.where(kept.reshape(-1)[:m, None], 12, expected + 12)
    return found.astype(float), expected


@pytest.mark.parametrize(
    ("a", "b", "d", "m", "n", "k", "forms"),
    [
        ("bf16", "bf16", "float32", 32, 64, 64, {}), ("f16", "f16", "float32", 64, 128, 64, {}),
        ("tf32", "tf32", "float32", 128, 64, 32, {}), ("e4m3", "e5m2", "float32", 128, 256, 128, {"TENSOR": True}),
        ("s8", "u8", "int32", 64, 64, 128, {}), ("bf16", "bf16", "float32", 32, 128, 16, {"TWICE": True}),
        ("f16", "f16", "float32", 64, 128, 64, {"TENSOR": True}),
        ("bf16", "bf16", "float32", 32, 64, 32, {"TENSOR": True}),
        ("f16", "f16", "float32", 128, 64, 64, {"MASKED": True}), ("s8", "s8", "int32", 64, 64, 128, {"MASKED": True}),
        ("bf16", "bf16", "float32", 32, 128, 64, {"MASKED": True, "SHIFT": 8}),
        ("e4m3", "e4m3", "float32", 64, 128, 128, {"MASKED": True, "TENSOR": True}),
        ("e3m2", "e2m1", "float32", 64, 64, 128, {}),
        ("bf16", "bf16", "float32", 128, 64, 128, {"SPARSE": True}),
        ("f16", "f16", "float32", 64, 128, 128, {"SPARSE": True}),
        ("tf32", "tf32", "float32", 32, 64, 64, {"SPARSE": True}),
        ("e4m3", "e5m2", "float32", 64, 64, 256, {"SPARSE": True, "TENSOR": True}),
        ("bf16", "bf16", "float32", 32, 128, 128, {"SPARSE": True, "TENSOR": True}),
        ("s8", "u8", "int32", 32, 64, 256, {"SPARSE": True}),
        ("e2m3", "e2m1", "float32", 128, 64, 256, {"SPARSE": True}),
        ("f16", "f16", "float32", 32, 64, 128, {"SPARSE": True, "TWICE": True}),
        ("e5m2", "e4m3", "float32", 128, 128, 256, {"SPARSE": True, "TWICE": True}),
        ("bf16", "bf16", "float32", 32, 128, 128, {"SPARSE": True, "MASKED": True, "SHIFT": 16}),
        ("s8", "s8", "int32", 64, 64, 256, {"SPARSE": True, "MASKED": True}),
    ],
    ids=str,
)  # fmt: skip
def test_stationary(a, b, d, m, n, k, forms):
    rng = np.random.default_rng([m, n])
    rows = n + forms.get("SHIFT", 0)
    stored = k // 2 if forms.get("SPARSE") else k
    (left, a_values), (right, b_values) = random_codes(rng, a, (m, stored)), random_codes(rng, b, (rows, k))
    metadata = np.zeros(1, np.uint8)
    if forms.get("SPARSE"):
        numbers, places = placed(rng, a, m, k)
        metadata = lanes_of(numbers, WIDTHS.get(a, 8))
        values, a_values = a_values, np.zeros((m, k))
        np.put_along_axis(a_values, places, values, axis=1)
    found = np.full((m, n), 77, d)
    constants = {
        "A": f"DType.{DTYPES[a]}", "B": f"DType.{DTYPES[b]}", "D": f"DType.{d}", "M": m, "N": n, "K": k, **forms,
        "A_NARROW": NARROW.get(a, -1), "B_NARROW": NARROW.get(b, -1),
    }  # fmt: skip
    maps = tile(left, a, m, min(stored * left.itemsize, 128)), tile(right, b, rows, min(k * right.itemsize, 128))
    simulated("stationary", constants, *maps, metadata, found)
    expected = (2 if forms.get("TWICE") else 1) * a_values @ b_values[rows - n :].T
    if forms.get("MASKED"):
        parts = SUB_MASKS[m]
        expected[:, np.array(zero_columns(m, n, (0, 1, 2, 1)[:parts], (1, 1, 0, 0)[:parts], 2, 3), bool)] = 0
    near(found.astype(float), expected)
