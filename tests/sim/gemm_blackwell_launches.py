"""Launches of the Blackwell GEMM (samples/10_gemm_blackwell.pdsl) in the simulator, each with NumPy's result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tcgen05_gemm import scale_blocks
from tcgen05_matrices import random_codes, row_bytes

import ptxdsl
from ptxdsl.api.module import Module
from ptxdsl.imports import read_file
from ptxdsl.options import Options
from ptxdsl.sim import numbers

SAMPLE = Path(__file__).parents[2] / "samples" / "10_gemm_blackwell.pdsl"
# proved where the samples are
KERNELS = Module(read_file(str(SAMPLE)), Options("sm_100a", check="off"))
DTYPES = {
    "bf16": "bfloat16", "f16": "float16", "tf32": "float32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
    "s8": "int8", "u8": "uint8", "f32": "float32",
}  # fmt: skip
MAPS = {"bf16": "bf16", "f16": "f16", "tf32": "f32", "f32": "f32"}


def tiles(array, rows, type="u8", swizzle="128B"):
    """The map of tiles of a batch of matrices: so many rows of 128 bytes."""
    box = 1, rows, 128 // array.itemsize
    return ptxdsl.TensorMap(array, box, swizzle=swizzle, data_type=MAPS.get(type, "u8"))


def launch(kernel, c, constants, m, n, k, batches, maps, epilogue=(), grid=None, **options):
    """C, float64, of a launch; what is not stored stays NaN."""
    bits = np.full((batches, m, n), 0xFFFF_FFFF if c == "f32" else 0xFFFF, np.uint32 if c == "f32" else np.uint16)
    raw = bits.view(np.float32) if c == "f32" else bits
    ctas = constants.get("CTAS", 1)
    if constants.get("CLC"):  # a cluster for each tile
        grid = ctas * batches * -(-m // (128 * ctas)) * -(-n // constants["BN"])
    made = KERNELS[kernel].specialize(**constants, C=f"DType.{DTYPES[c]}")
    report = made.simulate(
        *maps, tiles(raw, 32, c), m, n, k, batches, epilogue,
        grid=grid or 2 * ctas, block=256, cluster=ctas, smem=229376, arch="sm_100a", **options,
    )  # fmt: skip
    assert report.finished, report.render()
    return raw.astype(float) if c == "f32" else numbers.decode(raw, c).astype(float)


def gemm(
    type: str, m: int, n: int, k: int, *, c: str = "f32", batches: int = 1, epilogue: Any = (), **constants: Any
) -> tuple[np.ndarray, np.ndarray]:
    """C of the kernel ``gemm`` and of NumPy, without the epilogue: (batches, m, n), float64."""
    rng = np.random.default_rng([m, n, k])
    bn, ctas = constants.setdefault("BN", 128), constants.get("CTAS", 1)
    values, maps = [], []
    for name, rows, box in (("A", m, 128), ("B", n, bn // ctas)):
        code, value = random_codes(rng, type, (batches * rows, k))
        code, value = code.reshape(batches, rows, k), value.reshape(batches, rows, k)
        mn_major = constants.get(f"{name}_MN")
        array = np.ascontiguousarray(code.transpose(0, 2, 1) if mn_major else code)
        swizzle = "128B_atom_32B" if mn_major and type == "tf32" else "128B"
        maps.append(tiles(array, 128 // array.itemsize if mn_major else box, type, swizzle))
        values.append(value)
    constants["T"] = f"DType.{DTYPES[type]}"
    found = launch("gemm", c, constants, m, n, k, batches, maps, epilogue)
    return found, values[0] @ values[1].transpose(0, 2, 1)


# elements, scale factors, elements that have one together, elements in 128 bytes
SCALED = {
    "mxfp8": ("e4m3", "ue8m0", 32, 128),
    "mxfp8 of e5m2": ("e5m2", "ue8m0", 32, 128),
    "mxfp4": ("e2m1", "ue8m0", 32, 256),
    "nvfp4": ("e2m1", "e4m3", 16, 256),
}


def scaled(name: str, m: int, n: int, k: int, **constants: Any) -> tuple[np.ndarray, np.ndarray]:
    """C of the kernel ``gemm_scaled`` and of NumPy: (m, n), float64."""
    type, scale, block, stage = SCALED[name]
    rng = np.random.default_rng([m, n, k])
    bn, ctas = constants.setdefault("BN", 128), constants.get("CTAS", 1)
    steps = -(-k // stage)
    maps, factor_maps, values = [], [], []
    for rows, box, blocks in ((m, 128, 1), (n, bn // ctas, bn // 128)):
        codes, value = random_codes(rng, type, (rows, k))
        packed = row_bytes(codes, 4, True) if type == "e2m1" else codes
        maps.append(tiles(packed[None], box))
        factors = np.zeros((-(-rows // 128) * 128, steps * stage // block), np.uint8)
        low, high = (120, 134) if scale == "ue8m0" else (0x20, 0x50)
        factors[:rows, : -(-k // block)] = rng.integers(low, high, (rows, -(-k // block)))
        words = factors.shape[1] // 4
        lying = scale_blocks(factors, words, 1).reshape(words, -1, 512).transpose(1, 0, 2)
        lying = np.ascontiguousarray(lying).reshape(1, -1, 2 * words, 256)
        factor_maps.append(ptxdsl.TensorMap(lying, (1, blocks, 2 * stage // block // 4, 256), data_type="u8"))
        values.append(value * np.repeat(numbers.decode(factors[:rows], scale).astype(float), block, 1)[:, :k])
    types = {"T": "DType.uint8" if type == "e2m1" else f"DType.{DTYPES[type]}", "BLOCK": block}
    types["S"] = "DType.uint8" if scale == "ue8m0" else "DType.float8_e4m3fn"
    found = launch("gemm_scaled", "f32", types | constants, m, n, k, 1, [*maps, *factor_maps])
    return found[0], values[0] @ values[1].T
