"""Runs every kernel on the card and keeps what came out, for the comparison where there is no card.

python tests/card/record.py            needs an NVIDIA GPU of compute capability 9.0; writes tests/data/card.npz
python tests/card/record.py OUT NAME…  some kernels alone, to another file
"""

from __future__ import annotations

import ctypes
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import numpy as np  # noqa: E402
from card_kernels import NAMES, Kernel, kernel  # noqa: E402

from ptxdsl.cuda.device_array import DeviceArray  # noqa: E402
from ptxdsl.cuda.driver import CudaDriver, current_driver  # noqa: E402

RESULTS = ROOT / "tests" / "data" / "card.npz"


def on_card(case: Kernel, driver: CudaDriver) -> dict[int, np.ndarray]:
    """What the compared arrays hold after a run on the card. A cluster's size is the PTX's own (.reqnctapercluster)."""
    driver.context(None)
    function = driver.load(case.ptx.encode() + b"\0", case.name)
    if case.smem:
        driver.allow_shared(function, case.smem)
    arrays = {i: DeviceArray(a) for i, a in enumerate(case.arguments) if isinstance(a, np.ndarray)}
    values = [
        arrays[i].address.to_bytes(8, "little") if i in arrays else bytes(value)
        for i, value in enumerate(case.arguments)
    ]
    buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
    pointers = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(b) for b in buffers))
    driver.launch(function, case.grid, case.block, case.smem, 0, ctypes.addressof(pointers))
    return {i: arrays[i].to_host() for i in case.compared}


def recorded(name: str) -> dict[str, np.ndarray] | str:
    """By the names in the file; or what went wrong, after which this process's context is of no use."""
    try:
        return {f"{name}.{i}": array for i, array in on_card(kernel(name), current_driver()).items()}
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    context = multiprocessing.get_context("spawn")
    worker, failed = ProcessPoolExecutor(1, context), 0
    found: dict[str, np.ndarray] = {}
    for name in sys.argv[2:] or NAMES:
        result = worker.submit(recorded, name).result()
        if isinstance(result, str):
            print(f"{name}: {result}")
            failed += 1
            worker.shutdown()
            worker = ProcessPoolExecutor(1, context)
        else:
            found.update(result)
    worker.shutdown()
    np.savez_compressed(target, **found)
    print(f"{len(found)} arrays of {current_driver().context(None)[1]}, {failed} kernels failed; {target}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
