"""Whole GEMMs on tcgen05, from PTX text to the result in global memory, against NumPy and without a race."""

from __future__ import annotations

import subprocess
import time

import numpy as np
import pytest
import tcgen05_gemm
from tcgen05_gemm import THREADS, Gemm
from tcgen05_matrices import CODES, K, floats, random_codes, row_bytes

from ptxdsl.diagnostics import CompileError
from ptxdsl.races.trace import TraceCheck
from ptxdsl.sim import numbers
from ptxdsl.sim.copies.tensor_map import TensorMap
from ptxdsl.sim.launch import simulate


def case(kind, m, n, a, b=None, **options):
    return Gemm(kind, m, n, K[kind], CODES[kind][a], CODES[kind][b or a], **options), a, b or a


def run(gemm, a_type, b_type, k, **options):
    """D of the simulator and of NumPy, and the report."""
    rng = np.random.default_rng(k)
    packed = gemm.kind in ("mxf4", "mxf4nvf4")
    a, a_values = random_codes(rng, a_type, (gemm.m, k))
    b, b_values = random_codes(rng, b_type, (gemm.n, k))
    maps = [
        TensorMap(np.ascontiguousarray(row_bytes(codes, {"e2m1": 4}.get(t, 8), packed)), (rows, 128), swizzle="128B")
        for codes, t, rows in ((a, a_type, gemm.a_rows), (b, b_type, gemm.b_rows))
    ]
    d = np.zeros((gemm.m, gemm.n), np.uint32)
    tiles = k // gemm.stage_k
    arguments = [*maps, d, np.uint32(tiles)]
    if gemm.vector:
        per_row = k * gemm.vector // gemm.k
        scales = []
        for rows in (gemm.m, gemm.n):
            if gemm.scale_type:
                scales.append(rng.integers(120, 134, (rows, per_row), np.uint8))
            else:
                scales.append(rng.integers(0x20, 0x50, (rows, per_row), np.uint8))
        read = "ue8m0" if gemm.scale_type else "e4m3"
        a_values, b_values = (
            values * np.repeat(numbers.decode(s, read).astype(np.float64), gemm.k // gemm.vector, 1)
            for values, s in zip((a_values, b_values), scales, strict=True)
        )
        blocks = [tcgen05_gemm.scale_blocks(rows, tiles, gemm.scale_tiles) for rows in np.split(scales[0], gemm.ctas)]
        arguments += [np.concatenate(blocks), tcgen05_gemm.scale_blocks(scales[1], tiles, gemm.scale_tiles)]
    report = simulate(
        tcgen05_gemm.ptx(gemm),
        grid=gemm.ctas,
        block=THREADS,
        cluster=gemm.ctas,
        shared_bytes=gemm.shared_bytes,
        arguments=arguments,
        **options,
    )
    assert report.finished, report.render()
    return floats(d, "s32" if gemm.kind == "i8" else "f32"), a_values @ b_values.T, report


CASES = {
    "bf16 128x128x64": (case("f16", 128, 128, "bf16"), 64),
    "bf16 128x256x256": (case("f16", 128, 256, "bf16"), 256),
    "bf16 256x256x256 pair": (case("f16", 256, 256, "bf16", pair=True), 256),
    "bf16 128x64x128 pair": (case("f16", 128, 64, "bf16", pair=True), 128),
    "tf32 128x64x64": (case("tf32", 128, 64, "tf32"), 64),
    "i8 128x128x256": (case("i8", 128, 128, "s8", "u8"), 256),
    "e4m3 x e5m2 128x128x256": (case("f8f6f4", 128, 128, "e4m3", "e5m2"), 256),
    "e4m3 256x128x512 pair": (case("f8f6f4", 256, 128, "e4m3", pair=True), 512),
    "mxf8 128x128x256": (case("mxf8f6f4", 128, 128, "e4m3"), 256),
    "mxf8 256x256x256 pair": (case("mxf8f6f4", 256, 256, "e4m3", pair=True), 256),
    "mxf4 128x128x512": (case("mxf4", 128, 128, "e2m1"), 512),
    "nvf4 128x256x512": (case("mxf4nvf4", 128, 256, "e2m1", scale_type=0), 512),
    "nvf4 256x256x512 pair": (case("mxf4nvf4", 256, 256, "e2m1", pair=True, scale_type=0), 512),
}


@pytest.mark.parametrize("name", CASES)
def test_gemm(name):
    (gemm, a, b), k = CASES[name]
    watch = TraceCheck()
    got, expected, _ = run(gemm, a, b, k, watch=watch)
    assert not watch.found().races, [d.render() for d in watch.found().diagnostics]
    # sums are rounded once a product: 32 bytes of K
    assert np.abs(got - expected).max() <= 1e-6 * np.abs(expected).max() * (k / gemm.k)


@pytest.mark.parametrize("name", CASES)
def test_the_assembler_takes_it(name, ptxas, tmp_path):
    (gemm, _, _), _ = CASES[name]
    (tmp_path / "gemm.ptx").write_text(tcgen05_gemm.ptx(gemm))
    command = [ptxas, "-arch=sm_100a", "gemm.ptx", "-o", "gemm.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("schedule", ["random:1", "random:2", "slow:tcgen05", "slow:tma"])
def test_any_schedule_gives_the_same(schedule):
    (gemm, a, b), k = CASES["mxf8 256x256x256 pair"]
    expected, _, _ = run(gemm, a, b, k)
    got, _, _ = run(gemm, a, b, k, schedule=schedule)
    assert (got == expected).all()


def test_a_large_tile_takes_less_than_three_seconds():
    (gemm, a, b), k = CASES["bf16 256x256x256 pair"]
    start = time.process_time()  # not the clock's: other processes may have the processor
    run(gemm, a, b, k)
    assert time.process_time() - start < 3


# What goes wrong


def broken(name, old, new, **options):
    """The first diagnostic of a kernel in which something is written otherwise."""
    (gemm, _, _), k = CASES[name]
    text = tcgen05_gemm.ptx(gemm)
    assert old in text
    maps = [TensorMap(np.zeros((n, 2 * k), np.uint8), (rows, 128), swizzle="128B") for n, rows in (
        (gemm.m, gemm.a_rows), (gemm.n, gemm.b_rows))]  # fmt: skip
    report = simulate(
        text.replace(old, new),
        grid=gemm.ctas,
        block=THREADS,
        cluster=gemm.ctas,
        shared_bytes=gemm.shared_bytes,
        arguments=[*maps, np.zeros((gemm.m, gemm.n), np.uint32), np.uint32(k // gemm.stage_k)],
        **options,
    )
    assert not report.finished
    return report.diagnostics[0]


SMALL = "bf16 128x128x64"


def test_never_deallocated():
    found = broken(SMALL, "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 128;", "")
    assert found.code == "E1166"
    assert "tcgen05.alloc" in found.span.source.line(found.span.line)


def test_deallocated_too_early():
    found = broken(SMALL, "LOAD_LOOP:", "LOAD_LOOP:\n tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 128;")
    assert found.code in ("E1161", "E1180")  # one lane alone executes it, an .aligned instruction
    early = "    @%p0 bra LOAD;\n"
    found = broken(SMALL, early, "    @%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tmem, 128;\n" + early)
    assert found.code == "E1161"
    assert "nothing is allocated" in found.message


@pytest.mark.parametrize("schedule", ["slow:tcgen05", "round-robin"])
def test_the_accumulator_is_read_too_early(schedule):
    """Who waits for the commit of the first stage, not of the whole product, meets the products of the next."""
    early = f"[%smem+{tcgen05_gemm.EMPTY}], 0;"
    found = broken("bf16 128x256x256", f"[%smem+{tcgen05_gemm.DONE}], 0;", early, schedule=schedule)
    assert found.code == "E1165"
    assert "tcgen05.mma" in found.message


def test_lanes_of_another_warp():
    found = broken(SMALL, "shl.b32 %r1, %warp, 21;", "mov.b32 %r1, 0;")
    assert found.code == "E1162"


def test_a_pair_in_which_one_cta_allocates():
    branch = "    @%p0 bra ALLOCATED;\n"
    other = "    setp.ne.u32 %p0, %rank, 0;\n"
    found = broken("bf16 128x64x128 pair", branch, branch + other + branch)
    assert found.code == "E1190"
    assert "the other CTA of the pair in tcgen05.alloc: no warp of the CTA of rank 1 executes it" in found.message


def test_sparse_products_of_shifted_rows_are_refused_before_the_launch():
    text = tcgen05_gemm.ptx(CASES["tf32 128x64x64"][0][0])
    text = text.replace(
        "tcgen05.mma.cta_group::1.kind::tf32 [%tmem], %da, %db, %r5",
        "tcgen05.mma.sp.cta_group::1.kind::tf32.ashift [%tmem], [%tmem], %db, [%tmem], %r5",
    )
    with pytest.raises(CompileError, match=r"tcgen05\.mma\.sp with \.ashift"):
        simulate(text, grid=1, block=THREADS)
