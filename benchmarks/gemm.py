"""The Hopper GEMM (ptxdsl.kernels.gemm) against cuBLAS, as PyTorch calls it, and Triton, in one run.

    python benchmarks/gemm.py [--part squares,rectangles,fp8] [--runs N] [--no-triton]

C = A · Bᵀ of row-major matrices, sums in float32. Fresh random inputs for each shape; outputs are poisoned with NaN
before, and compared with float64 in 256 rows. Three measures, each the median of event times:

- alone: one launch on the device between two events. It was launched ahead, so that no time of the host is in it.
- in a row: of several launches one after another, as layers of a network are, also launched ahead; the time of one.
- called: each call alone, from Python, with the card idle before: what a caller waits for.

Goals, judged for each measure: bfloat16 squares 1.15 in geometric mean and 1.02 in each, rectangles 1.05 and 0.95, 1.25
of Triton; 8-bit floats 1.0. Exits 1 where launches in a row miss a goal or a result is wrong, 2 where there is no GPU
or no PyTorch.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gpu_arrays import lacking  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

from ptxdsl.kernels import prepare_gemm  # noqa: E402

Calls = dict[str, Callable[[], None]]
Shape = tuple[int, int, int]  # rows and columns of C, and K

SQUARES: list[Shape] = [(n, n, n) for n in (1024, 2048, 4096, 8192, 16384)]
RECTANGLES: list[Shape] = [
    (16384, 1024, 2048), (1024, 16384, 2048),  # tall, flat
    (8192, 512, 4096), (512, 8192, 4096),
    (2048, 2048, 16384), (4096, 4096, 1024),  # deep, shallow
    (4000, 4000, 4000), (3000, 5000, 2008),  # no whole tiles, a K that 64 does not divide
    (1357, 2056, 3080), (8191, 4104, 1096),
    (16, 8192, 8192), (128, 16384, 4096),  # few rows
]  # fmt: skip
GOALS = {"squares": (1.15, 1.02), "rectangles": (1.05, 0.95), "fp8": (1.0, 0.0), "triton": (1.25, 0.0)}
CHECKED_ROWS = 256


class Found(NamedTuple):
    """Of one shape: medians in ms by call, in the three measures; relative errors."""

    shape: Shape
    alone: dict[str, float]
    in_a_row: dict[str, float]
    called: dict[str, float]
    errors: dict[str, float]


def _events() -> tuple[Any, Any]:
    import torch

    return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def on_device(calls: Calls, runs: int) -> dict[str, float]:
    """Milliseconds of each, each twice: the second has the first's launch before it.

    The clock falls within a run, so that the first is the quickest: each comes in each place as often as the others.
    What is given is the mean, over the places, of the medians.
    """
    import torch

    found: dict[tuple[str, int], list[float]] = {(name, place): [] for name in calls for place in range(len(calls))}
    orders = itertools.cycle(itertools.permutations(calls))
    for order in itertools.islice(orders, max(runs, math.factorial(len(calls)))):
        events = []
        torch.cuda._sleep(2_000_000)  # the host runs ahead meanwhile
        for place, name in enumerate(order):
            for counted in (False, True):
                begin, end = _events()
                begin.record()
                calls[name]()
                end.record()
                if counted:
                    events.append(((name, place), begin, end))
        torch.cuda.synchronize()
        for what, begin, end in events:
            found[what].append(begin.elapsed_time(end))
    medians = {what: statistics.median(times) for what, times in found.items()}
    return {name: statistics.mean(medians[name, place] for place in range(len(calls))) for name in calls}


def in_a_row(calls: Calls, alone: dict[str, float], runs: int) -> dict[str, float]:
    """Milliseconds of one of as many launches one after another as take 2 ms, but 2 to 20."""
    import torch

    count = max(2, min(20, int(2 / min(alone.values()))))
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(runs):
        for name in random.sample(list(calls), len(calls)):
            begin, end = _events()
            torch.cuda._sleep(2_000_000)
            calls[name]()
            begin.record()
            for _ in range(count):
                calls[name]()
            end.record()
            torch.cuda.synchronize()
            found[name].append(begin.elapsed_time(end) / count)
    return {name: statistics.median(times) for name, times in found.items()}


def as_called(calls: Calls, runs: int) -> dict[str, float]:
    """Milliseconds of each, alone."""
    import torch

    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(runs):
        for name in random.sample(list(calls), len(calls)):
            begin, end = _events()
            torch.cuda.synchronize()
            begin.record()
            calls[name]()
            end.record()
            end.synchronize()
            found[name].append(begin.elapsed_time(end))
    return {name: statistics.median(times) for name, times in found.items()}


def error_of(a: Any, b: Any, c: Any) -> float:
    """Of C, relative to float64, in the Frobenius norm over some rows; infinite where something was not written."""
    import torch

    rows = torch.randperm(len(a), device=a.device)[:CHECKED_ROWS]
    exact = a[rows].double() @ b.double().T
    error = (c[rows].double() - exact).norm() / exact.norm()
    return float(error) if bool(torch.isfinite(c).all()) else math.inf


def measured(shape: Shape, fp8: bool, triton: bool, runs: int) -> Found:
    import torch

    m, n, k = shape
    a, b = (torch.randn(rows, k, device="cuda").bfloat16() for rows in (m, n))
    outputs = {"ptxdsl": torch.empty(m, n, device="cuda", dtype=torch.bfloat16)}
    calls: Calls = {}
    if fp8:
        a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        scale = torch.full((), 0.5, device="cuda")
        for name, fast in (("cuBLAS", True), ("cuBLAS, exact sums", False)):
            out = outputs[name] = torch.empty_like(outputs["ptxdsl"])
            calls[name] = lambda fast=fast, out=out: torch._scaled_mm(  # type: ignore[misc]
                a, b.T, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=fast, out=out
            )
        calls["ptxdsl"] = prepare_gemm(a, b.T, outputs["ptxdsl"], scale=0.25)
    else:
        out = outputs["cuBLAS"] = torch.empty_like(outputs["ptxdsl"])
        calls["cuBLAS"] = partial(torch.mm, a, b.T, out=out)
        calls["ptxdsl"] = prepare_gemm(a, b.T, outputs["ptxdsl"])
    if triton:
        from peers.gemm_triton import prepared

        outputs["Triton"] = torch.empty_like(outputs["ptxdsl"])
        calls["Triton"] = prepared(a, b, outputs["Triton"])
    errors = {}
    for name, call in calls.items():
        outputs[name].fill_(float("nan"))
        call()
        left = a.float() * 0.25 if fp8 else a
        errors[name] = error_of(left, b.float() if fp8 else b, outputs[name])
    until = time.monotonic() + 0.2  # clocks as they are under load
    while time.monotonic() < until:
        calls["cuBLAS"]()
        torch.cuda.synchronize()
    alone = on_device(calls, runs)
    return Found(shape, alone, in_a_row(calls, alone, runs), as_called(calls, runs), errors)


def ratio(times: dict[str, float], peer: str = "cuBLAS") -> float:
    return times[peer] / times["ptxdsl"]


def row(found: Found) -> list[str]:
    flops = 2e-9 * math.prod(found.shape)
    alone = found.alone
    return [
        "x".join(map(str, found.shape)),
        f"{alone['ptxdsl'] * 1000:.1f}",
        f"{flops / alone['ptxdsl']:.0f}",
        f"{flops / alone['cuBLAS']:.0f}",
        *(f"{ratio(times):.3f}" for times in (alone, found.in_a_row, found.called)),
        f"{ratio(found.in_a_row, 'Triton'):.3f}" if "Triton" in alone else "",
        f"{found.errors['ptxdsl']:.2e}",
        f"{found.errors['cuBLAS']:.2e}",
    ]


def judged(name: str, found: list[Found], peer: str = "cuBLAS") -> bool:
    """Prints how a part stands to its goals; whether launches in a row reach them."""
    mean_goal, least_goal = GOALS[name]
    wrong = any(f.errors["ptxdsl"] > 1.5 * f.errors["cuBLAS"] for f in found)
    reached = {}
    for measure in ("alone", "in_a_row", "called"):
        ratios = [ratio(getattr(f, measure), peer) for f in found]
        mean, least = statistics.geometric_mean(ratios), min(ratios)
        reached[measure] = mean >= mean_goal and least >= least_goal and not wrong
        said = "WRONG RESULTS" if wrong else "PASS" if reached[measure] else "FAIL"
        print(
            f"{name} of {peer}, {measure.replace('_', ' ')}: geometric mean {mean:.3f} (goal {mean_goal}), "
            f"least {least:.3f} (goal {least_goal}): {said}"
        )
    return reached["in_a_row"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="squares,rectangles,fp8")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--no-triton", action="store_true")
    chosen = parser.parse_args()
    if lack := lacking():
        print(f"gemm.py {lack}", file=sys.stderr)
        return 2
    import torch

    torch.manual_seed(11)
    random.seed(11)
    print(f"{machine_line(gpu=True)}; PyTorch {torch.__version__}, median of {chosen.runs}")
    head = ["m x n x k", "µs", "TFLOP/s", "cuBLAS", "alone", "in a row", "called", "of Triton", "error", "cuBLAS's"]
    good = True
    for part in chosen.part.split(","):
        fp8 = part == "fp8"
        triton = part == "squares" and not chosen.no_triton
        shapes = RECTANGLES if part == "rectangles" else SQUARES[1:] if fp8 else SQUARES
        found = [measured(shape, fp8, triton, chosen.runs) for shape in shapes]
        print(f"\n{part}, {'8-bit floats (e4m3)' if fp8 else 'bfloat16'}")
        print_table(head, [row(f) for f in found])
        good = judged(part, found) and good
        if fp8:
            judged(part, found, "cuBLAS, exact sums")
        if triton:
            good = judged("triton", found, "Triton") and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
