"""The bulk-copy ring (samples/07_bulk_copy_ring.pdsl) against the driver's device-to-device copy, in one run.

    python benchmarks/copy_ring.py [--gib N] [--runs N]

Random bytes; medians of event times, our launches and the driver's in turn; every result compared byte for byte. Goal:
the sample as it stands at 0.95 times the driver's speed or more. Exits 1 where it is missed or a byte differs, 2 where
there is no GPU or no PyTorch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gpu_arrays import lacking  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

import ptxdsl  # noqa: E402

SAMPLE = HERE.parent / "samples" / "07_bulk_copy_ring.pdsl"
# stages, bytes a tile, stores under way, tiles a block, bytes of shared memory that a block takes at least
DEFAULT = (6, 2048, 5, 6, 46 * 1024)
CONFIGURATIONS = [
    DEFAULT,
    (6, 2048, 4, 8, 46 * 1024),
    (8, 2048, 4, 12, 46 * 1024),
    (3, 4096, 2, 3, 46 * 1024),
    (4, 4096, 2, 16, 46 * 1024),
    (4, 2048, 3, 6, 0),
    (3, 4096, 2, 4, 0),
    (8, 2048, 7, 8, 0),
    (5, 8192, 2, 400, 0),
]
LIMIT = 0.95


def timed(torch: Any, call: Any) -> float:
    """Milliseconds between two events around a call."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=2.0, help="size of the array (at least 1)")
    parser.add_argument("--runs", type=int, default=15)
    chosen = parser.parse_args()
    if lack := lacking():
        print(f"copy_ring.py {lack}", file=sys.stderr)
        return 2
    import torch
    from cuda.bindings import driver as cuda

    size = int(chosen.gib * 2**30) // 16 * 16
    torch.manual_seed(7)
    src = torch.randint(-(2**63), 2**63 - 1, (size // 8,), dtype=torch.int64, device="cuda").view(torch.uint8)
    res = torch.empty_like(src)

    def driver_copy() -> None:
        stream = torch.cuda.current_stream().cuda_stream
        (status,) = cuda.cuMemcpyDtoDAsync(res.data_ptr(), src.data_ptr(), size, stream)
        if status != cuda.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"cuMemcpyDtoDAsync: {status.name}")

    launches = {}
    for wait in ("try", "probe"):
        kernel = ptxdsl.load(SAMPLE, wait=wait)["copy_ring"]
        for stages, tile, lag, run, room in CONFIGURATIONS:
            blocks = -(-size // (run * tile))
            ready = kernel.specialize(STAGES=stages, TILE=tile, LAG=lag, RUN=run, ROOM=room)[blocks, 64]
            launches[wait, stages, tile, lag, run, room] = ready

    wrong = set()
    for key, ready in launches.items():  # also the warm-up
        res.fill_(0xA5)
        ready(src, res, size)
        if not torch.equal(src, res):
            wrong.add(key)
    for _ in range(3):
        driver_copy()
    times: dict[Any, list[float]] = {key: [] for key in [*launches, "driver"]}
    for _ in range(chosen.runs):
        times["driver"].append(timed(torch, driver_copy))
        for key, ready in launches.items():
            times[key].append(timed(torch, lambda ready=ready: ready(src, res, size)))
    base = statistics.median(times["driver"])

    def rate(milliseconds: float) -> str:
        return f"{2 * size / milliseconds / 1e9:.3f}"

    print(
        f"{machine_line(gpu=True)}; {size / 2**30:g} GiB, median of {chosen.runs}; TB/s counts bytes read and written"
    )
    rows = [["driver's copy", "", "", "", "", "", f"{base:.4f}", rate(base), "1.000", ""]]
    for key in launches:
        wait, *numbers = key
        median = statistics.median(times[key])
        verdict = "WRONG BYTES" if key in wrong else ""
        rows.append([wait, *map(str, numbers), f"{median:.4f}", rate(median), f"{base / median:.3f}", verdict])
    print_table(["wait", "stages", "tile", "lag", "tiles/block", "room", "ms", "TB/s", "x driver", ""], rows)
    ratios = {wait: base / statistics.median(times[(wait, *DEFAULT)]) for wait in ("try", "probe")}
    good = not wrong and ratios["try"] >= LIMIT
    told = ", ".join(f"--wait={wait} {ratio:.3f}" for wait, ratio in ratios.items())
    print(f"the sample as it stands: {told}; limit {LIMIT} with the default wait: {'PASS' if good else 'FAIL'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
