"""Grid, block and shared memory of a launch, checked with a message that says which number is too large."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

from ptxdsl.cuda.driver import Device, Dim3, Function
from ptxdsl.cuda.errors import LaunchError, launch_error
from ptxdsl.signature import KernelSignature

AXES = ("x", "y", "z")


def dimensions(value: Any, what: str) -> Dim3:
    """An int or a tuple of up to three as three numbers. Raises LaunchError E0908."""
    items = value if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(items) <= 3:
        raise _shape(f"{what} has {len(items)} dimensions; 1 to 3 are possible")
    found = []
    for axis, item in zip(AXES, items, strict=False):
        try:
            if isinstance(item, bool):
                raise TypeError
            number = operator.index(item)
        except TypeError:
            hint = f"write {what}=({int(item)}, …) or use //" if isinstance(item, float) else None
            raise _shape(f"{what}.{axis} must be an integer, got {type(item).__name__} {item!r}", hint) from None
        if number < 1:
            raise _shape(f"{what}.{axis} is {number}; it must be at least 1", _empty(what, number))
        found.append(number)
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def check_shape(signature: KernelSignature, device: Device, function: Function, grid: Dim3, block: Dim3) -> None:
    """Raises LaunchError E0908 where the kernel or the device does not allow the launch."""
    name, threads = signature.name, prod(block)
    if signature.threads is not None and block != signature.threads:
        raise _shape(
            f"kernel '{name}' runs with exactly {_text(signature.threads)} threads a block; block is {_text(block)}"
        )
    if signature.max_threads is not None and threads > prod(signature.max_threads):
        raise _shape(
            f"kernel '{name}' is declared for at most {prod(signature.max_threads)} threads a block; "
            f"block {_text(block)} has {threads}",
            "raise max_threads in its @kernel decorator",
        )
    for what, value, limits in (("block", block, device.max_block), ("grid", grid, device.max_grid)):
        for axis, number, limit in zip(AXES, value, limits, strict=True):
            if number > limit:
                raise _shape(f"{what}.{axis} is {number}; {device} allows at most {limit}")
    if threads > device.max_threads:
        raise _shape(f"block {_text(block)} has {threads} threads; {device} allows at most {device.max_threads}")
    if threads > function.max_threads:
        raise _shape(
            f"block {_text(block)} has {threads} threads; kernel '{name}' needs {function.registers} registers a "
            f"thread, so at most {function.max_threads} threads fit",
            f"declare @kernel(max_threads={threads}): the compiler then uses fewer registers",
        )
    if signature.cluster is not None:
        for axis, number, size in zip(AXES, grid, signature.cluster, strict=True):
            if number % size:
                raise _shape(f"grid.{axis} is {number}, not a multiple of the cluster's {size} (kernel '{name}')")


def shared_size(signature: KernelSignature, device: Device, function: Function, smem: int | None) -> int:
    """The dynamic shared bytes of a launch. Raises LaunchError E0909."""
    name = signature.name
    if smem is None:
        if signature.dynamic_shared:
            raise launch_error(
                "E0909",
                f"kernel '{name}' uses dynamic shared memory (external_memory), and the launch gives none",
                help="give its size in bytes: kernel[grid, block](…, smem=…)",
            )
        return 0
    try:
        size = operator.index(smem)
    except TypeError:
        raise launch_error("E0909", f"smem must be a number of bytes, got {type(smem).__name__} {smem!r}") from None
    if size < 0:
        raise launch_error("E0909", f"smem is {size}; it must not be negative")
    if size + function.shared > device.max_shared:
        static = f" and {function.shared} bytes of its own" if function.shared else ""
        raise launch_error(
            "E0909",
            f"smem is {size} bytes; kernel '{name}' needs that{static}, and {device} has {device.max_shared} bytes "
            f"a block: at most {max(device.max_shared - function.shared, 0)} can be given",
        )
    return size


def launch_text(grid: Dim3, block: Dim3, smem: int) -> str:
    return f"grid {_text(grid)}, block {_text(block)}" + (f", {smem} bytes of dynamic shared memory" if smem else "")


def _text(dims: Dim3) -> str:
    return f"({', '.join(map(str, dims))})"


def _empty(what: str, number: int) -> str | None:
    return "skip the launch when there is nothing to do" if what == "grid" and number == 0 else None


def _shape(message: str, help: str | None = None) -> LaunchError:
    return launch_error("E0908", message, help=help)
