"""What the simulator can do in a second: instructions, a pipeline, tensor-core products; and the memory that it takes.

    python benchmarks/simulator.py [--runs N]

One core. Each figure is the best of N runs; random inputs, results checked. The
reader's speed has a benchmark of its own, ``simulator_reader.py``. Exits 1 where a figure is beyond its limit.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
KERNEL_A = ROOT / "samples" / "04_kernel_a.pdsl"
sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "tests" / "sim")]

import numpy as np  # noqa: E402
from machine import machine_line, print_table  # noqa: E402
from simulator_kernels import FMA_LOOP, wgmma_gemm  # noqa: E402
from tcgen05_gemm import THREADS, Gemm  # noqa: E402
from tcgen05_gemm import ptx as tcgen05_ptx  # noqa: E402

import ptxdsl  # noqa: E402
from ptxdsl.sim.copies.tensor_map import TensorMap  # noqa: E402
from ptxdsl.sim.launch import simulate  # noqa: E402
from ptxdsl.sim.numbers import decode, encode  # noqa: E402


@dataclass(frozen=True)
class Row:
    """value: as the unit says. limit: what it may be, None for anything; higher: whether more is better."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    higher: bool = False

    @property
    def within(self) -> bool:
        return self.limit is None or (self.value >= self.limit if self.higher else self.value <= self.limit)

    @property
    def verdict(self) -> str:
        return "" if self.limit is None else "ok" if self.within else "BEYOND"


def best(runs: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(runs))


def instruction_rate(runs: int) -> Row:
    """A loop of integer and FMA instructions by 1024 threads, the compilation of the kernel left out."""
    out = np.zeros(1024, np.uint32)
    trips = 20_000
    simulate(FMA_LOOP, "fma_loop", grid=1, block=1024, arguments=[out, 10])
    rates = []
    for _ in range(runs):
        start = time.process_time()
        report = simulate(FMA_LOOP, "fma_loop", grid=1, block=1024, arguments=[out, trips])
        rates.append(report.statistics.thread_instructions / (time.process_time() - start) / 1e6)
        assert report.finished and len(set(out.tolist())) > 1000
    return Row("integer/FMA loop, 1024 threads", max(rates), "M thread-instructions/s", 300, higher=True)


def kernel_a(runs: int) -> Row:
    """A text that is new each time, compiled, checked, translated and simulated: kernel A with 1000 trips."""
    text = KERNEL_A.read_text(encoding="utf-8")
    source = np.random.default_rng(1).standard_normal(32_000, dtype=np.float32)
    number = iter(range(1_000_000))

    def run() -> float:
        result = np.full_like(source, np.nan)
        # another literal: neither the PTX nor the code made of it is that of a run before
        new = text.replace("    barrier()", f"        res[unsafe_offset=0] = {next(number)}\n    barrier()", 1)
        start = time.perf_counter()
        kernel = ptxdsl.loads(new).kernel
        report = kernel.simulate(source, result, 1000, grid=1, block=64)
        seconds = time.perf_counter() - start
        assert report.finished, report.render()
        assert np.array_equal(result, source)
        return seconds

    return Row("kernel A, n = 1000, compiled and simulated", best(runs, run), "s", 0.3)


def kernel_a_command(runs: int) -> Row:
    """The same text as a command, with the start of Python and all imports."""
    command = [
        sys.executable, "-m", "ptxdsl", "run", str(KERNEL_A), "--target", "sim",
        "--arg", "src=randn:f32:32000:seed=1", "--arg", "res=nan:f32:32000", "--arg", "n=1000",
        "--expect", "res == src",
    ]  # fmt: skip

    def run() -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        return time.perf_counter() - start

    return Row("kernel A, n = 1000, the whole command", best(runs, run), "s")


def hopper_gemm(runs: int) -> Row:
    """512 x 512 x 512 in bf16 by wgmma, tiles by TMA."""
    rng = np.random.default_rng(2)
    a, b = (encode(rng.standard_normal((512, 512)), "bf16").astype(np.uint16) for _ in range(2))
    expected = decode(a, "bf16").astype(np.float64) @ decode(b, "bf16").astype(np.float64).T
    maps = [TensorMap(m, (rows, 64), swizzle="128B", data_type="bf16") for m, rows in ((a, 64), (b, 256))]

    def run() -> float:
        out = np.full((512, 512), np.nan, np.float32)
        start = time.perf_counter()
        text = wgmma_gemm(512, 512, 512)
        report = simulate(text, "gemm", grid=(2, 8), block=128, shared_bytes=82944, arguments=[*maps, out])
        seconds = time.perf_counter() - start
        assert report.finished, report.render()
        assert np.allclose(out, expected, rtol=1e-4, atol=1e-3)
        return seconds

    return Row("GEMM 512 x 512 x 512, bf16, wgmma and TMA", best(runs, run), "s", 5)


def blackwell_gemm(runs: int) -> Row:
    """256 x 256 x 256 in bf16 by tcgen05, two CTAs."""
    gemm = Gemm("f16", 256, 256, 16, 1, 1, pair=True)
    rng = np.random.default_rng(3)
    a, b = (encode(rng.standard_normal((256, 256)), "bf16").astype(np.uint16) for _ in range(2))
    expected = decode(a, "bf16").astype(np.float64) @ decode(b, "bf16").astype(np.float64).T
    maps = [
        TensorMap(m.view(np.uint8), (rows, 128), swizzle="128B") for m, rows in ((a, gemm.a_rows), (b, gemm.b_rows))
    ]

    def run() -> float:
        out = np.full((256, 256), np.nan, np.float32)
        start = time.perf_counter()
        report = simulate(
            tcgen05_ptx(gemm),
            grid=2,
            block=THREADS,
            cluster=2,
            shared_bytes=gemm.shared_bytes,
            arguments=[*maps, out, np.uint32(256 // gemm.stage_k)],
        )
        seconds = time.perf_counter() - start
        assert report.finished, report.render()
        assert np.allclose(out, expected, rtol=1e-4, atol=1e-3)
        return seconds

    return Row("GEMM 256 x 256 x 256, bf16, tcgen05, cta_group::2", best(runs, run), "s", 3)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rows = [f(runs) for f in (instruction_rate, kernel_a, kernel_a_command, hopper_gemm, blackwell_gemm)]
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    rows.append(Row("memory beyond the start's", memory, "MiB", 1024))
    print(machine_line())
    print_table(
        ["", "measured", "limit", "unit", ""],
        [[r.name, f"{r.value:.3g}", "" if r.limit is None else f"{r.limit:g}", r.unit, r.verdict] for r in rows],
    )
    return 0 if all(row.within for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
