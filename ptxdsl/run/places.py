"""Where a kernel runs: the simulator or this machine's GPU. Both leave what the kernel wrote in the host's arrays."""

from __future__ import annotations

import time
from typing import Any, Unpack

import numpy as np

from ptxdsl.cuda.tensor_map import TensorMap
from ptxdsl.diagnostics import error
from ptxdsl.record import dataclass
from ptxdsl.run.binding import Bound, MapOf
from ptxdsl.run.subject import Subject
from ptxdsl.sim.launch import Report
from ptxdsl.sim.run_options import RunOptions

Dim3 = tuple[int, int, int]

# The simulator's names of element types, for the arrays of a tensor map that NumPy has no dtype for.
_MAP_TYPES = {"bfloat16": "bf16", "float8_e4m3fn": "u8", "float8_e5m2": "u8"}


@dataclass(frozen=True)
class Shape:
    grid: Dim3
    block: Dim3
    cluster: Dim3 | None
    smem: int


def in_simulator(subject: Subject, bound: Bound, shape: Shape, **how: Unpack[RunOptions]) -> Report:
    """Raises LaunchError and CompileError for what cannot be launched; a fault of the kernel is in the report."""
    from ptxdsl.cuda.simulated import simulate_kernel

    values = [_map(value, value.array) if isinstance(value, MapOf) else value for value in bound.values]
    return simulate_kernel(
        subject.compiled, subject.spans, values, grid=shape.grid, block=shape.block, cluster=shape.cluster,
        smem=shape.smem, ptx_file=subject.ptx_file, **how,
    )  # fmt: skip


def on_gpu(subject: Subject, bound: Bound, shape: Shape) -> float:
    """Seconds of the launch as the host sees them, the loading apart. Raises LaunchError."""
    from ptxdsl.api.program import device_in_use
    from ptxdsl.cuda.device_array import DeviceArray
    from ptxdsl.cuda.driver import current_driver
    from ptxdsl.cuda.launch import LoadedKernel

    driver = current_driver()
    device = device_in_use(driver)
    copies = {name: DeviceArray(array, dtype) for name, (array, dtype) in bound.arrays.items()}
    by_array = {id(array): copies[name] for name, (array, _) in bound.arrays.items()}
    values = [_on_device(value, by_array) for value in bound.values]
    kernel = LoadedKernel(driver, device, subject.compiled, subject.signature, subject.spans)
    start = time.perf_counter()
    kernel.launch(shape.grid, shape.block, values, shape.smem, None, shape.cluster)
    for name, copy in copies.items():
        bound.arrays[name][0][...] = copy.to_host()
    return time.perf_counter() - start


def _map(spec: MapOf, array: Any) -> TensorMap:
    """The tensor map, on the array itself or on its copy on the device."""
    options = spec.options
    if "box" not in options:
        raise error("E1018", "a TensorMap needs a box", None, help="for example randn:bf16:256x64:box=64x64")
    return TensorMap(
        array,
        _sizes(options["box"]),
        _sizes(options["strides"]) if "strides" in options else None,
        options.get("interleave", "none"),
        options.get("swizzle", "none"),
        options.get("l2", "none"),
        options.get("fill", "zero"),
        data_type=_MAP_TYPES.get(spec.dtype),
    )


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split("x")))
    except ValueError:
        raise error("E1013", f"'{text}' is not a shape", None, help="for example box=64x64") from None


def _on_device(value: Any, copies: dict[int, Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_on_device(item, copies) for item in value)
    if isinstance(value, MapOf):
        return _map(value, copies[id(value.array)])
    return copies[id(value)] if isinstance(value, np.ndarray) else value
