"""Microseconds of the host for a launch: ptxdsl's beside a C loop and other Python routes, all in one run.

    python benchmarks/launch.py [--rounds N] [--launches N] [--parts] [--start]

Needs a GPU with PyTorch, and nvcc or cc for the C loop. Every row launches a kernel of two pointers and a number that
does nothing; what is measured is the host's time for a burst of launches, the device idle before. The rounds go through
all rows in turn, and a row's figure is its best round: whatever else the machine does only adds. Goals: a prepared
launch at most 0.8 µs over the C loop (cuLaunchKernel), a checked one with two PyTorch tensors at most 2 µs over it,
both at most 0.4 of Triton's, the prepared one at most cuda.core's with raw pointers. With ``--start``: the time of a
process that loads and launches a kernel that was compiled before, beside one that only makes a context.
Exits 1 where a figure is beyond the limit printed beside it, 2 where there is no GPU, no PyTorch or no C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gpu_arrays import lacking  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

import ptxdsl  # noqa: E402

TEXT = """
@kernel
def nothing(a: Pointer[Float32, MutAnyOrigin], b: Pointer[Float32, MutAnyOrigin], n: Int32):
    if n < 0:
        b[] = a[]
"""
CUDA = 'extern "C" __global__ void nothing(float *a, float *b, int n) { if (n < 0) *b = *a; }'

# The floor: what the driver takes when nothing is in front of it. Types as in cuda.h, which need not be installed.
C_LOOP = """
typedef int (*launch_t)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);
typedef int (*launch_ex_t)(const void *, void *, void **, void **);
int plain(launch_t launch, void *function, void **parameters, int count) {
    for (int i = 0; i < count; i++) {
        int status = launch(function, 1, 1, 1, 32, 1, 1, 0, 0, parameters, 0);
        if (status) return status;
    }
    return 0;
}
int with_config(launch_ex_t launch, const void *config, void *function, void **parameters, int count) {
    for (int i = 0; i < count; i++) {
        int status = launch(config, function, parameters, 0);
        if (status) return status;
    }
    return 0;
}
"""

PREPARED, CHECKED, TRITON = 0.8, 2.0, 0.4  # µs over the floor, µs over the floor, of Triton's time
START = 0.35  # seconds
FLOOR = "C loop, cuLaunchKernel"

Row = Callable[[int], None]  # makes that many launches


def c_library(folder: Path) -> ctypes.CDLL:
    source, library = folder / "loop.c", folder / "loop.so"
    source.write_text(C_LOOP)
    compiler = shutil.which("cc") or shutil.which("gcc")
    command = [compiler] if compiler else ["nvcc", "-Xcompiler"]
    subprocess.run([*command, "-fPIC", "-O2", "-shared", "-o", str(library), str(source)], check=True)
    return ctypes.CDLL(str(library))


def loops(row: Callable[[], Any]) -> Row:
    def run(count: int) -> None:
        for _ in range(count):
            row()

    return run


def c_rows(folder: Path, loaded: Any, a: Any, b: Any) -> dict[str, Row]:
    """The driver's calls in a loop of C, by the handle that all contexts share and by that of the context."""
    from ptxdsl.cuda.configuration import Shape, build_config

    library, driver = c_library(folder), ctypes.CDLL("libcuda.so.1")
    values = ctypes.c_uint64(a.data_ptr()), ctypes.c_uint64(b.data_ptr()), ctypes.c_int(1)
    parameters = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in values))
    kernel = ctypes.c_void_p(loaded.function.handle)
    function = ctypes.c_void_p()
    if driver.cuKernelGetFunction(ctypes.byref(function), kernel):
        raise RuntimeError("cuKernelGetFunction failed")
    config = ctypes.byref(build_config(Shape((1, 1, 1), (32, 1, 1)), 0, 0, None))
    kept = (values, config)

    def plain(handle: ctypes.c_void_p) -> Row:
        def run(count: int) -> None:
            if library.plain(driver.cuLaunchKernel, handle, parameters, count):
                raise RuntimeError(f"cuLaunchKernel failed {kept}")

        return run

    def extended(handle: ctypes.c_void_p) -> Row:
        def run(count: int) -> None:
            if library.with_config(driver.cuLaunchKernelEx, config, handle, parameters, count):
                raise RuntimeError("cuLaunchKernelEx failed")

        return run

    return {
        FLOOR: plain(function),
        "C loop, cuLaunchKernel, CUkernel": plain(kernel),
        "C loop, cuLaunchKernelEx": extended(function),
        "C loop, cuLaunchKernelEx, CUkernel": extended(kernel),
    }


def our_rows(kernel: Any, a: Any, b: Any) -> dict[str, Row]:
    prepared = kernel.prepare(1, 32, a, b, 1)
    raw = kernel.prepare(1, 32, a, b, 1, stream=0)
    kernel[1, 32](a, b, 1)
    return {
        "ptxdsl, prepared": loops(prepared),
        "ptxdsl, prepared for a stream": loops(raw),
        "ptxdsl, checked": loops(lambda: kernel[1, 32](a, b, 1)),
        "ptxdsl, checked, with smem=": loops(lambda: kernel[1, 32](a, b, 1, smem=0)),
    }


def parts(kernel: Any, a: Any, b: Any) -> dict[str, Row]:
    """Where the time of our rows goes."""
    from ptxdsl.cuda import native

    prepared = kernel.prepare(1, 32, a, b, 1)
    for _ in range(100):
        kernel[1, 32](a, b, 1)
        prepared()
    code = kernel[1, 32]._native
    print(f"# machine code: checked {code}, prepared {prepared._go}")
    print(f"# DLPack's exchange functions: {native.exchange(type(a))}")
    found = {"part: kernel[grid, block]": loops(lambda: kernel[1, 32]), "part: prepared's own": loops(prepared._go)}
    if code is not None:
        arguments = (a, b, 1)
        found["part: checked's machine code"] = loops(lambda: code(arguments, None))
    return found


def other_rows(a: Any, b: Any) -> dict[str, Row]:
    """Triton, CuPy and cuda.core, as far as they are installed; a row that fails to start says so."""
    found: dict[str, Row] = {}
    for name, make in (("Triton", triton_row), ("CuPy RawKernel", cupy_row), ("cuda.core launch", core_row)):
        try:
            run = make(a, b)
            run(3)
            found[name] = run
        except ImportError as missing:
            print(f"# {name} is not installed: {missing}", file=sys.stderr)
        except Exception as problem:
            print(f"# {name} does not run here: {type(problem).__name__}: {problem}", file=sys.stderr)
    return found


def triton_row(a: Any, b: Any) -> Row:
    import importlib.util

    # Triton reads a kernel's source from its file
    place = Path(tempfile.mkdtemp()) / "triton_nothing.py"
    place.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef nothing(a, b, n):\n"
        "    if n < 0:\n        tl.store(b, tl.load(a))\n"
    )
    spec = importlib.util.spec_from_file_location("triton_nothing", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.nothing
    # a number other than 1, for which Triton would specialise the kernel
    return loops(lambda: kernel[(1,)](a, b, 3, num_warps=1))


def cupy_row(a: Any, b: Any) -> Row:
    import cupy

    kernel = cupy.RawKernel(CUDA, "nothing")
    x, y, n = cupy.asarray(a), cupy.asarray(b), cupy.int32(1)
    return loops(lambda: kernel((1,), (32,), (x, y, n)))


def core_row(a: Any, b: Any) -> Row:
    import numpy as np

    try:
        from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
    except ImportError:
        from cuda.core.experimental import Device, LaunchConfig, Program, ProgramOptions, launch
    device = Device()
    device.set_current()
    arch = "".join(f"{number}" for number in device.compute_capability)
    program = Program(CUDA, code_type="c++", options=ProgramOptions(arch=f"sm_{arch}"))
    kernel = program.compile("cubin").get_kernel("nothing")
    stream, config = device.default_stream, LaunchConfig(grid=1, block=32)
    x, y, n = a.data_ptr(), b.data_ptr(), np.int32(1)
    return loops(lambda: launch(stream, config, kernel, x, y, n))


def measure(rows: dict[str, Row], rounds: int, launches: int) -> dict[str, list[float]]:
    """By row, microseconds a launch in each round."""
    import torch

    found: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(rounds):
        for name, run in rows.items():
            run(10)
            torch.cuda.synchronize()
            start = time.perf_counter()
            run(launches)
            found[name].append((time.perf_counter() - start) / launches * 1e6)
            torch.cuda.synchronize()
    return found


# ------------------------------------------------------------------------------------------------------------- start

CONTEXT = """
import ctypes
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context) and not cuda.cuCtxSynchronize()
"""
OURS = """
import array, ctypes, ptxdsl
kernel = ptxdsl.load({path!r}).nothing
a = ptxdsl.to_device(array.array("f", [0] * 8))
kernel[1, 32](a, a, 1)
assert not ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()
"""


def start_seconds(folder: Path, runs: int = 7) -> tuple[float, float]:
    """Seconds of a process that makes a context, and of one that launches a kernel from the cache."""
    path = folder / "nothing.pdsl"
    path.write_text(TEXT)
    root = str(HERE.parent)
    environment = {**os.environ, "PTXDSL_CACHE_DIR": str(folder / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))

    def seconds(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        return time.perf_counter() - start

    ours = OURS.format(path=str(path))
    seconds(ours), seconds(CONTEXT)
    pairs = [(seconds(CONTEXT), seconds(ours)) for _ in range(runs)]
    return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


# -------------------------------------------------------------------------------------------------------------- table


def limits(best: dict[str, float]) -> list[tuple[str, bool]]:
    floor, prepared, checked = best[FLOOR], best["ptxdsl, prepared"], best["ptxdsl, checked"]
    found = [
        (f"prepared: floor + {prepared - floor:.2f} µs (limit {PREPARED})", prepared <= floor + PREPARED),
        (f"checked: floor + {checked - floor:.2f} µs (limit {CHECKED})", checked <= floor + CHECKED),
    ]
    if "Triton" in best:
        for name, value in (("prepared", prepared), ("checked", checked)):
            ratio = value / best["Triton"]
            found.append((f"{name}: {ratio:.2f} of Triton's (limit {TRITON})", ratio <= TRITON))
    if "cuda.core launch" in best:
        ratio = prepared / best["cuda.core launch"]
        found.append((f"prepared: {ratio:.2f} of cuda.core's (limit 1)", ratio <= 1))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--launches", type=int, default=400, help="of a burst; the driver's queue has about 1000")
    parser.add_argument("--parts", action="store_true", help="rows of what our launches are made of, too")
    parser.add_argument("--start", action="store_true", help="measure the start of a process too")
    chosen = parser.parse_args()
    lack = lacking() or (None if shutil.which("cc") or shutil.which("nvcc") else "needs a C compiler")
    if lack:
        print(f"launch.py {lack}", file=sys.stderr)
        return 2
    import torch

    a, b = torch.zeros(8, device="cuda"), torch.zeros(8, device="cuda")
    print(f"{machine_line(gpu=True)}; best of {chosen.rounds} rounds of {chosen.launches} launches")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernel = ptxdsl.loads(TEXT)["nothing"]
        rows = {**c_rows(folder, kernel.load((a,)), a, b), **our_rows(kernel, a, b), **other_rows(a, b)}
        if chosen.parts:
            rows.update(parts(kernel, a, b))
        found = measure(rows, chosen.rounds, chosen.launches)
        best = {row: min(times) for row, times in found.items()}
        print_table(
            ["launch", "µs", "median", "over the floor", "of the floor"],
            [
                [row, f"{value:.2f}", f"{statistics.median(found[row]):.2f}", f"{value - best[FLOOR]:+.2f}",
                 f"{value / best[FLOOR]:.2f}"]
                for row, value in best.items()
            ],
        )  # fmt: skip
        verdicts = limits(best)
        if chosen.start:
            context, ours = start_seconds(folder)
            text = f"start of a cached kernel: {ours - context:.3f} s over a context's {context:.3f} s (limit {START})"
            verdicts.append((text, ours - context <= START))
    for text, good in verdicts:
        print(f"{'PASS' if good else 'FAIL'}  {text}")
    return 0 if all(good for _, good in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
