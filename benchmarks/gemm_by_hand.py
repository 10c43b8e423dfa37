"""The Hopper GEMM in .pdsl and the same kernel by hand in CUDA C++ (peers/gemm_hopper.cu), in one run.

    python benchmarks/gemm_by_hand.py [--runs N]

Both have the same grid, shared memory and tensor maps, and give the same bits. Printed: registers, bytes spilled and
instructions of the loop of products in machine code; microseconds alone and in a row (as gemm.py measures), medians.
Exits 1 where .pdsl takes more than 1 % longer than by hand, or the results differ; 2 where there
is no GPU, no PyTorch or no nvcc.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tests" / "stdlib")]

from gemm import in_a_row, on_device  # noqa: E402
from gpu_arrays import lacking  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

from ptxdsl.gemm_launch import Launch  # noqa: E402
from ptxdsl.kernels import Config, gemm_launch, prepare_gemm  # noqa: E402

SIZES = (2048, 4096, 8192)
CONFIG = Config(cluster=2, order=8)  # what peers/gemm_hopper.cu is written for
NEAR = 1.01
ALIGNMENT = 64  # bytes, of a tensor map


def built() -> tuple[bytes, str]:
    """The cubin of the kernel by hand, and what ptxas says of it."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "gemm.cubin")
        command = ["nvcc", "-std=c++17", "-O3", "-arch=sm_90a", "-cubin", "-Xptxas", "-v", "-o", str(cubin)]
        command.append(str(HERE / "peers" / "gemm_hopper.cu"))
        made = subprocess.run(command, check=True, capture_output=True, text=True)
        return cubin.read_bytes(), made.stderr


def launcher(cubin: bytes, product: Launch) -> Callable[[], None]:
    """Launches the kernel by hand as the other one is launched. product: what has been worked out for that."""
    import torch
    from cuda.bindings import driver

    def checked(answer: tuple[Any, ...]) -> Any:
        if answer[0] != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(str(answer[0]))
        return answer[1] if len(answer) > 1 else None

    function = checked(driver.cuModuleGetFunction(checked(driver.cuModuleLoadData(cubin)), b"gemm"))
    limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    checked(driver.cuFuncSetAttribute(function, limit, product.smem))
    kept: list[Any] = [ctypes.c_int(number) for number in product.arguments[3:7]]
    addresses = []
    for tensor_map in product.arguments[:3]:
        kept.append(ctypes.create_string_buffer(len(tensor_map.data) + ALIGNMENT))
        addresses.append(-(-ctypes.addressof(kept[-1]) // ALIGNMENT) * ALIGNMENT)
        ctypes.memmove(addresses[-1], bytes(tensor_map.data), len(tensor_map.data))
    addresses += [ctypes.addressof(number) for number in kept[:4]]
    pointers = (ctypes.c_void_p * len(addresses))(*addresses)
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = product.grid, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = product.threads, 1, 1
    config.sharedMemBytes = product.smem
    config.hStream = torch.cuda.current_stream().cuda_stream
    early = driver.CUlaunchAttribute()
    early.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    value = driver.CUlaunchAttributeValue()
    value.programmaticStreamSerializationAllowed = 1
    early.value = value
    config.attrs, config.numAttrs = [early], 1

    def call() -> None:
        checked(driver.cuLaunchKernelEx(config, function, ctypes.addressof(pointers), 0))

    call.kept = kept  # type: ignore[attr-defined]
    return call


def code() -> tuple[bytes, list[list[str]]]:
    """The cubin by hand; registers, spills and the length of the loop, of both."""
    from test_gemm_code import main_loop

    from ptxdsl.artifact import Compiled
    from ptxdsl.backend.assemble import assemble, disassemble
    from ptxdsl.driver import compile_source
    from ptxdsl.options import Options
    from ptxdsl.syntax.parse import read_source

    cubin, said = built()
    registers = said.split("Used ")[1].split()[0]
    spilled = said.split("bytes spill stores")[0].split()[-1]
    rows = [["by hand", registers, spilled, str(len(main_loop(disassemble(cubin))))]]
    options = Options("sm_90a", check="off")
    sample = HERE.parent / "samples" / "08_gemm_hopper.pdsl"
    constants = {"CLUSTER": "2", "STAGES": "3", "C_STAGES": "4", "ORDER": "8"}
    compiled = compile_source(read_source(sample, sample.name), constants=constants, options=options)
    assert isinstance(compiled, Compiled)
    assembled = assemble(compiled.ptx, options, compiled.line_map)
    (used,) = assembled.resources.values()
    loop = main_loop(disassemble(assembled.cubin))
    rows.append([".pdsl", str(used.registers), str(used.spill_stores), str(len(loop))])
    return cubin, rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    chosen = parser.parse_args()
    if lack := lacking("nvcc"):
        print(f"gemm_by_hand.py {lack}", file=sys.stderr)
        return 2
    import torch

    print(machine_line(gpu=True))
    cubin, rows = code()
    print_table(["kernel", "registers", "bytes spilled", "instructions of the loop"], rows)
    good, rows = True, []
    for size in SIZES:
        a, b = (torch.randn(size, size, device="cuda").bfloat16() for _ in range(2))
        out, other = (torch.full((size, size), float("nan"), device="cuda", dtype=torch.bfloat16) for _ in range(2))
        by_hand = launcher(cubin, gemm_launch(a, b.T, other, config=CONFIG))
        calls = {"by hand": by_hand, "ptxdsl": prepare_gemm(a, b.T, out, config=CONFIG)}
        for call in calls.values():
            call()
        same = torch.equal(out, other) and bool(torch.isfinite(out).all())
        alone = on_device(calls, chosen.runs)
        row = in_a_row(calls, alone, chosen.runs)
        ratios = [times["ptxdsl"] / times["by hand"] for times in (alone, row)]
        good = good and same and max(ratios) <= NEAR
        times = [f"{1000 * times[name]:.1f}" for times in (alone, row) for name in calls]
        rows.append([str(size), "same bits" if same else "DIFFERENT", *times, *(f"{ratio:.3f}" for ratio in ratios)])
    head = ["size", "results", "by hand", "alone", "by hand", "in a row", "ratio", "in a row"]
    print_table(head, rows)
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
