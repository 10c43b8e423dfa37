"""The Hopper GEMM (samples/08_gemm_hopper.pdsl) against cuBLAS, as PyTorch calls it, in one run.

    python benchmarks/gemm.py [--sizes 1024,4096] [--runs N]

bfloat16, row-major A and the transpose of row-major B, float32 sums. Fresh random inputs for each size; outputs are
poisoned with NaN before, and compared with float64 in 256 rows. Medians of event times, our launches and cuBLAS's in
turn, launched ahead of the device so that no gap between launches is counted. Goals: 1.15 times cuBLAS's speed in
geometric mean over 1024 to 16384, 1.02 at least in each. Exits 1 where a goal is missed or a result is wrong, 2 where
there is no GPU or no PyTorch.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gpu_arrays import lacking  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

import ptxdsl  # noqa: E402

SAMPLE = HERE.parent / "samples" / "08_gemm_hopper.pdsl"
SIZES = (1024, 2048, 4096, 8192, 16384)
GOAL_MEAN, GOAL_EACH = 1.15, 1.02
# comptime parameters of the kernel, by name; the first is the sample as it stands
CONFIGURATIONS: dict[str, dict[str, int]] = {
    "as it stands": {},
    "group 8": {"GROUP": 8},
    "4 stages, n 128": {"BN": 128, "STAGES": 4},
}
CHECKED_ROWS = 256


def launch_of(constants: dict[str, int], a: Any, b: Any, c: Any) -> Callable[[], None]:
    """A prepared launch of C = A · Bᵀ."""
    import torch

    bn, bk, stages = constants.get("BN", 256), constants.get("BK", 64), constants.get("STAGES", 3)
    kernel = ptxdsl.load(SAMPLE)["gemm"].specialize(**constants)
    (m, k), n = a.shape, b.shape[0]

    def tiles(tensor: Any, rows: int, columns: int) -> Any:
        return ptxdsl.TensorMap(tensor, (rows, columns), swizzle="128B", l2_promotion="256B")

    blocks = min(-(-m // 128) * -(-n // bn), torch.cuda.get_device_properties(a.device).multi_processor_count)
    smem = stages * (128 + bn) * bk * 2 + 128 * bn * 2
    arguments = tiles(a, 128, bk), tiles(b, bn, bk), tiles(c, 64, 64), m, n, k
    return kernel.prepare(blocks, 384, *arguments, smem=smem, stream=torch.cuda.current_stream())


def times_of(calls: dict[str, Callable[[], None]], runs: int) -> dict[str, list[float]]:
    """Milliseconds of each call, in turn. A pause on the device first lets the host run ahead."""
    import torch

    for call in calls.values():
        call()
    found: dict[str, list[float]] = {name: [] for name in calls}
    done = 0
    while done < runs:
        batch = min(runs - done, 10)
        events = []
        torch.cuda._sleep(20_000_000)
        for _ in range(batch):
            for name, call in calls.items():
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                call()
                end.record()
                events.append((name, begin, end))
        torch.cuda.synchronize()
        for name, begin, end in events:
            found[name].append(float(begin.elapsed_time(end)))
        done += batch
    return found


def error_of(a: Any, b: Any, c: Any) -> float:
    """Of C, relative to float64, in the Frobenius norm over some rows; infinite where something was not written."""
    import torch

    rows = torch.randperm(len(a), device=a.device)[:CHECKED_ROWS]
    exact = a[rows].double() @ b.double().T
    error = (c[rows].double() - exact).norm() / exact.norm()
    return float(error) if bool(torch.isfinite(c).all()) else math.inf


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--runs", type=int, default=30)
    chosen = parser.parse_args()
    if lack := lacking():
        print(f"gemm.py {lack}", file=sys.stderr)
        return 2
    import torch

    torch.manual_seed(11)
    print(f"{machine_line(gpu=True)}; PyTorch {torch.__version__}, bfloat16, median of {chosen.runs}")
    head = ["m = n = k", "kernel", "ms", "TFLOP/s", "cuBLAS", "ratio", "error", "cuBLAS's", "differ"]
    table, ratios, wrong = [], [], False
    for size in map(int, chosen.sizes.split(",")):
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        own, other = torch.empty_like(a), torch.empty_like(a)
        calls: dict[str, Callable[[], None]] = {
            "cuBLAS": lambda a=a, b=b, other=other: torch.mm(a, b.T, out=other)  # type: ignore[misc]
        }
        errors = {}
        calls["cuBLAS"]()
        reference = error_of(a, b, other)
        for name, constants in CONFIGURATIONS.items():
            calls[name] = launch_of(constants, a, b, own)
            own.fill_(float("nan"))
            calls[name]()
            errors[name] = error_of(a, b, own), int((own != other).sum())
        times = {name: statistics.median(all_times) for name, all_times in times_of(calls, chosen.runs).items()}
        for name, (error, differ) in errors.items():
            ratio = times["cuBLAS"] / times[name]
            wrong = wrong or error > 1.5 * reference
            flops = 2e-9 * size**3
            rates = f"{flops / times[name]:.0f}", f"{flops / times['cuBLAS']:.0f}"
            table.append(
                [
                    str(size),
                    name,
                    f"{times[name]:.4f}",
                    *rates,
                    f"{ratio:.3f}",
                    f"{error:.2e}",
                    f"{reference:.2e}",
                    str(differ),
                ]
            )
            if name == next(iter(CONFIGURATIONS)):
                ratios.append(ratio)
        del a, b, own, other, calls
    print_table(head, table)
    mean = statistics.geometric_mean(ratios)
    good = mean >= GOAL_MEAN and min(ratios) >= GOAL_EACH and not wrong
    print(
        f"geometric mean {mean:.3f} (goal {GOAL_MEAN}), least {min(ratios):.3f} (goal {GOAL_EACH})"
        f"{', WRONG RESULTS' if wrong else ''}: {'PASS' if good else 'FAIL'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
