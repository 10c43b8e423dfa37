"""Products of a sparse A and with a stationary B, through the standard library, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tcgen05_matrices import random_codes
from test_tcgen05_sparse import sparse_rows
from test_tensor_core_library import DTYPES, near, tile

from ptxdsl.api.module import Module
from ptxdsl.imports import read_file
from ptxdsl.options import Options

KERNELS = Module(read_file(str(Path(__file__).with_name("tensor_cores_rare.pdsl"))), Options("sm_100a", check="off"))


def simulated(kernel, constants, *arguments, ctas=1):
    made = KERNELS[kernel].specialize(**constants)
    report = made.simulate(*arguments, grid=ctas, block=128, cluster=ctas, smem=200 * 1024, arch="sm_100a")
    assert report.finished, report.render()


def lanes_of(numbers, bits):
    """The 16 bytes of each lane, for each 128 of K: (blocks, 128, 16). JAX's formatting, numbers of 2 bits."""
    blocks = numbers.shape[1] // 64
    if bits == 8:
        laid = numbers.reshape(128, blocks, 64).transpose(1, 0, 2)
    else:
        laid = numbers.reshape(8, 2, 8, blocks, 4, 2, 8).transpose(3, 0, 5, 2, 4, 1, 6).reshape(blocks, 128, 64)
    fours = laid.reshape(blocks, 128, 16, 4)
    return np.ascontiguousarray((fours << np.arange(0, 8, 2)).sum(axis=-1), np.uint8)


@pytest.mark.parametrize(
    ("a", "b", "d", "k", "forms"),
    [
        ("bf16", "bf16", "float32", 128, {}), ("f16", "f16", "float32", 256, {"CTAS": 2}),
        ("f16", "f16", "float32", 128, {"TENSOR": True}), ("e4m3", "e5m2", "float32", 256, {"NEGATE": True}),
        ("s8", "u8", "int32", 256, {}), ("e5m2", "e4m3", "float32", 256, {"CTAS": 2, "TENSOR": True}),
    ],
    ids=str,
)  # fmt: skip
def test_sparse(a, b, d, k, forms):
    rng = np.random.default_rng(k)
    ctas, n = forms.get("CTAS", 1), 64
    m = 128 * ctas
    (stored, values), (right, b_values) = random_codes(rng, a, (m, k // 2)), random_codes(rng, b, (n, k))
    numbers = sparse_rows(rng, m, k // 4)
    whole = np.zeros((m, k))
    at = numbers + np.repeat(np.arange(0, k, 4), 2)
    np.put_along_axis(whole, at, values, axis=1)
    bits = 16 if a in ("f16", "bf16") else 8
    metadata = np.concatenate([lanes_of(part, bits) for part in np.split(numbers, ctas)])
    found = np.full((m, n), 77, d)
    constants = {"A": f"DType.{DTYPES[a]}", "B": f"DType.{DTYPES[b]}", "D": f"DType.{d}", "N": n, "K": k, **forms}
    simulated("sparse", constants, tile(stored, a, 128), tile(right, b, n // ctas), metadata, found, ctas=ctas)
    near(found.astype(float), (-1 if forms.get("NEGATE") else 1) * whole @ b_values.T)


@pytest.mark.parametrize(
    ("a", "b", "d", "m", "n", "k", "forms"),
    [
        ("bf16", "bf16", "float32", 32, 64, 64, {}), ("f16", "f16", "float32", 64, 128, 64, {}),
        ("tf32", "tf32", "float32", 128, 64, 32, {}), ("e4m3", "e5m2", "float32", 128, 256, 128, {"TENSOR": True}),
        ("s8", "u8", "int32", 64, 64, 128, {}), ("bf16", "bf16", "float32", 32, 128, 16, {"TWICE": True}),
    ],
    ids=str,
)  # fmt: skip
def test_stationary(a, b, d, m, n, k, forms):
    rng = np.random.default_rng([m, n])
    (left, a_values), (right, b_values) = random_codes(rng, a, (m, k)), random_codes(rng, b, (n, k))
    span = k * left.itemsize
    found = np.full((m, n), 77, d)
    constants = {
        "A": f"DType.{DTYPES[a]}", "B": f"DType.{DTYPES[b]}", "D": f"DType.{d}", "M": m, "N": n, "K": k, **forms,
    }  # fmt: skip
    simulated("stationary", constants, tile(left, a, m, span), tile(right, b, n, span), found)
    near(found.astype(float), (2 if forms.get("TWICE") else 1) * a_values @ b_values.T)
