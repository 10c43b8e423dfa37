"""The Blackwell GEMM (samples/10_gemm_blackwell.pdsl) against NumPy: types, one block and pairs, ragged shapes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from gemm_blackwell_launches import SAMPLE, gemm, launch, scaled, tiles

from ptxdsl.backend.assemble import assemble, disassemble
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.syntax.parse import read_source


def near(found, expected, tolerance=2e-6):
    np.testing.assert_allclose(found, expected, rtol=0, atol=abs(expected).max() * tolerance)


@pytest.mark.parametrize(
    ("type", "k", "ctas"),
    [
        ("bf16", 136, 1), ("f16", 72, 2), ("tf32", 36, 1), ("tf32", 100, 2), ("e4m3", 144, 1), ("e5m2", 400, 2),
        ("s8", 272, 1), ("u8", 16, 2),
    ],
)  # fmt: skip
def test_types(type, k, ctas):
    """Edges in all directions; a K that is no multiple of the turn's."""
    near(*gemm(type, 136, 72, k, STAGES=2, BN=64, CTAS=ctas))


@pytest.mark.parametrize(
    ("m", "n", "k", "ctas"), [(1, 8, 8, 1), (257, 40, 328, 1), (128, 128, 64, 1), (130, 264, 64, 2), (520, 72, 72, 2)]
)
def test_shapes(m, n, k, ctas):
    """More tiles than blocks, and fewer."""
    near(*gemm("bf16", m, n, k, STAGES=3, BN=64, CTAS=ctas))


@pytest.mark.parametrize(
    ("m", "n", "k", "ctas", "batches"),
    [(8, 8, 8, 1, 1), (257, 200, 72, 1, 3), (128, 64, 64, 2, 1), (520, 328, 72, 2, 1)],
)
def test_clusters_take_over_tiles_of_others(m, n, k, ctas, batches):
    """One tile, and many; the last ones have edges."""
    near(*gemm("bf16", m, n, k, STAGES=2, BN=64, CTAS=ctas, batches=batches, CLC=True))


@pytest.mark.parametrize(
    ("type", "forms"),
    [
        ("bf16", {"A_MN": True}),
        ("e4m3", {"B_MN": True}),
        ("bf16", {"A_MN": True, "B_MN": True, "CTAS": 2}),
        ("tf32", {"A_MN": True, "B_MN": True, "CTAS": 2}),
    ],
    ids=str,
)
def test_majors(type, forms):
    near(*gemm(type, 144, 144, 160, STAGES=2, BN=128, **forms))


def test_batches_of_results_of_16_bits():
    found, expected = gemm("bf16", 136, 72, 64, c="bf16", batches=3, BN=64)
    near(found, expected, 2**-8)


def test_an_epilogue():
    bias = np.arange(72, dtype=np.float32)
    kind = "Then[Bias[DType.float32], Scale]"
    found, expected = gemm("bf16", 136, 72, 64, BN=64, E=kind, epilogue=((bias, 72), (0.5,)), CTAS=2)
    near(found, (expected + bias) / 2)


def test_wide_tiles():
    """Two results of 256 columns fill tensor memory."""
    near(*gemm("bf16", 40, 264, 64, BN=256, STAGES=4))


@pytest.mark.parametrize(
    ("name", "ctas", "clc"),
    [("mxfp8", 1, False), ("mxfp8 of e5m2", 2, False), ("mxfp4", 1, False), ("nvfp4", 2, False), ("nvfp4", 2, True)],
)
def test_scaled(name, ctas, clc):
    columns = 576 if clc else 72  # more clusters than begin at once: tiles are taken over
    near(*scaled(name, 136, columns, 544, STAGES=2, CTAS=ctas, CLC=clc))


@pytest.mark.parametrize("schedule", ["slow:tma", "slow:tcgen05"])
def test_any_schedule_gives_the_same(schedule):
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((1, rows, 200)).astype(np.float16) for rows in (260, 72))
    constants = {"T": "DType.float16", "BN": 64, "CTAS": 2, "STAGES": 2}
    maps = [tiles(a.view(np.uint16), 128, "f16"), tiles(b.view(np.uint16), 32, "f16")]
    found = launch("gemm", "f32", constants, 260, 72, 200, 1, maps, grid=2, schedule=schedule)
    near(found, a.astype(float) @ b.astype(float).transpose(0, 2, 1))


@pytest.mark.parametrize(
    ("arch", "kernel", "constants", "instructions"),
    [
        ("sm_100a", "gemm", {"CTAS": "2", "STAGES": "4"}, 68),  # 17 for each 128 bytes of K
        ("sm_100a", "gemm_scaled", {"T": "DType.uint8", "CTAS": "2", "STAGES": "4"}, 72),  # 18
        ("sm_103a", "gemm_scaled", {"T": "DType.uint8", "S": "DType.float8_e4m3fn", "BLOCK": "16", "STAGES": "3"}, 51),
    ],
    ids=["bf16", "mxfp4", "nvfp4"],
)
def test_the_machine_code(arch, kernel, constants, instructions, ptxas):
    """Nothing that ptxas has a note about, nothing spilled, and a turn round the ring of loads that is short."""
    options = Options(arch, check="off")
    compiled = compile_source(read_source(SAMPLE, SAMPLE.name), kernel=kernel, constants=constants, options=options)
    assembled = assemble(compiled.ptx, options, compiled.line_map)
    assert [d.code for d in assembled.log if d.code != "W0805"] == []
    assert all(found.spill_stores == found.spill_loads == 0 for found in assembled.resources.values())
    loop = main_loop(disassemble(assembled.cubin))
    assert sum("MMA" in code for code in loop) == 4 * int(constants["STAGES"])
    assert sum("NOP" not in code for code in loop) <= instructions


def main_loop(sass):
    """The instructions of the innermost loop around products."""
    lines = re.findall(r"^(\.L_\w+):|/\*[0-9a-f]{4,}\*/\s+([^;]+?)\s*;", sass, re.MULTILINE)
    labels = {label: i for i, (label, _) in enumerate(lines) if label}
    loops = [
        [code for label, code in lines[labels[target] : i + 1] if not label]
        for i, (_, code) in enumerate(lines)
        for target in re.findall(r"BRA(?:\.\w+)* (?:!?UP\d, )?`\((\.L_\w+)\)", code)
        if labels[target] < i
    ]
    return min((loop for loop in loops if any("MMA" in code for code in loop)), key=len)
