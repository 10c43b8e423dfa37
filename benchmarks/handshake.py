"""Cycles an iteration of the bare mbarrier handshake (handshake.pdsl), beside handshake_reference.cu in the same run.

    python benchmarks/handshake.py [--runs N] [--trips N]

Needs a GPU with PyTorch, and nvcc for the reference. Goals: the default form (``--wait=try``, rings unrolled where the
rule says so) at most 1.02 times the better of the reference's two forms at every S, and at most 57 cycles for S >= 2
with the better of the two waits. Exits 1 where one is missed, 2 where there is no GPU, no PyTorch or no nvcc.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gpu_arrays import device_int64, lacking  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

import ptxdsl  # noqa: E402

STAGES = (1, 2, 3, 4, 8)
FORMS = [(wait, unroll) for wait in ("try", "probe") for unroll in (True, False)]
SLACK = 1.02
LIMIT = 57.0


def measure(wait: str, unroll: bool, stages: int, trips: int, runs: int) -> float:
    """The median over the runs of the producer's cycles an iteration."""
    module = ptxdsl.load(HERE / "handshake.pdsl", wait=wait, ring_unroll=unroll)  # type: ignore[arg-type]
    kernel = module["handshake"].specialize(S=stages)
    n = trips // stages * stages
    found = []
    for _ in range(runs + 1):
        result = device_int64([-1, -1])
        kernel[1, 64](result, n)
        producer, consumer = result.tolist()
        if min(producer, consumer) < n:
            raise RuntimeError(f"S={stages}: {producer} and {consumer} cycles for {n} iterations cannot be")
        found.append(float(producer) / n)
    return statistics.median(found[1:])


def reference(folder: Path) -> dict[int, tuple[float, float]]:
    """S to (counter, unrolled) of the CUDA C++ program; it repeats each three times."""
    program = folder / "handshake_reference"
    source = HERE / "handshake_reference.cu"
    subprocess.run(["nvcc", "-O3", "-arch=native", "-o", str(program), str(source)], check=True)
    text = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for stages, counter, unrolled, status in re.findall(
        r"S=(\d+) cycles/iter counter ([\d.]+) unrolled ([\d.]+) err (.*)", text
    ):
        if status != "no error":
            raise RuntimeError(f"the reference failed: {status}")
        found[int(stages)].append((float(counter), float(unrolled)))
    return {
        stages: (statistics.median(c for c, _ in pairs), statistics.median(u for _, u in pairs))
        for stages, pairs in found.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--trips", type=int, default=120000)
    chosen = parser.parse_args()
    if lack := lacking("nvcc"):
        print(f"handshake.py {lack}", file=sys.stderr)
        return 2
    print(f"{machine_line(gpu=True)}; cycles an iteration, median of {chosen.runs} runs of {chosen.trips} iterations")
    with tempfile.TemporaryDirectory() as folder:
        theirs = reference(Path(folder))
    rows, good = [], True
    for stages in STAGES:
        ours = {form: measure(*form, stages, chosen.trips, chosen.runs) for form in FORMS}
        default, better = ours["try", True], min(ours["try", True], ours["probe", True])
        bound = SLACK * min(theirs[stages])
        verdicts = [f"try {default / min(theirs[stages]):.3f}x {'PASS' if default <= bound else 'FAIL'}"]
        good = good and default <= bound
        if stages >= 2:
            verdicts.append(f"<= {LIMIT:g} {'PASS' if better <= LIMIT else 'FAIL'}")
            good = good and better <= LIMIT
        numbers = [*theirs[stages], *(ours[form] for form in FORMS)]
        rows.append([str(stages), *(f"{number:.2f}" for number in numbers), ", ".join(verdicts)])
    head = ["S", "CUDA counter", "CUDA unrolled", *(f"{w}{'' if u else ' counter'}" for w, u in FORMS), "limits"]
    print_table(head, rows)
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
