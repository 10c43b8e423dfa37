"""The numbers of a launch, checked with a message that says which is too large: grid, block, shared memory, time."""

from __future__ import annotations

import numbers
from math import inf, isfinite, prod
from typing import Any

from ptxdsl.cuda.driver_interface import Device, Dim3, Function
from ptxdsl.diagnostics import LaunchError, launch_error
from ptxdsl.shown import shown_with_type
from ptxdsl.signature import KernelSignature
from ptxdsl.whole import whole

AXES = ("x", "y", "z")
FIRST_WITH_CLUSTERS = (9, 0)
PORTABLE_CLUSTER = 8  # blocks; more are possible where a kernel is allowed them
MOST_IN_CLUSTER = 16
_MOST_BITS = 64  # of a number that is worth showing


def dimensions(value: Any, what: str) -> Dim3:
    """An int or a tuple of up to three as three numbers. Raises LaunchError E0908."""
    items = value if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(items) <= 3:
        raise _shape(f"{what} has {len(items)} dimensions; 1 to 3 are possible")
    found = []
    for axis, item in zip(AXES, items, strict=False):
        try:
            number = whole(item)
        except TypeError:
            finite = isinstance(item, float) and isfinite(item)
            hint = f"write {what}=({int(item)}, …) or use //" if finite else None
            raise _shape(f"{what}.{axis} must be an integer, got {shown_with_type(item)}", hint) from None
        if number.bit_length() > _MOST_BITS:
            raise _shape(f"{what}.{axis} has {number.bit_length()} bits; no launch is so large")
        if number < 1:
            raise _shape(f"{what}.{axis} is {number}; it must be at least 1", _empty(what, number))
        found.append(number)
    x, y, z = (*found, 1, 1)[:3]
    return x, y, z


def block_of(given: Any, declared: Dim3 | None, name: str) -> Any:
    """The block of a launch of kernel ``name``: as given, else what ``@kernel(threads=…)`` says.

    Raises LaunchError E0908 where there is neither.
    """
    block = declared if given is None else given
    if block is None:
        raise _shape(f"kernel '{name}' needs a block size", "give block=…")
    return block


def check_shape(signature: KernelSignature, device: Device, function: Function, grid: Dim3, block: Dim3) -> None:
    """Raises LaunchError E0908 where the kernel or the device does not allow the launch."""
    name, threads = signature.name, prod(block)
    if signature.threads is not None and block != signature.threads:
        raise _shape(
            f"kernel '{name}' runs with exactly {dims_text(signature.threads)} threads per block; "
            f"block is {dims_text(block)}"
        )
    check_thread_count(signature, block)
    if signature.max_threads is not None and threads > prod(signature.max_threads):
        raise _shape(
            f"kernel '{name}' is declared for at most {prod(signature.max_threads)} threads per block; "
            f"block {dims_text(block)} has {threads}",
            "raise max_threads in its @kernel decorator",
        )
    for what, value, limits in (("block", block, device.max_block), ("grid", grid, device.max_grid)):
        for axis, number, limit in zip(AXES, value, limits, strict=True):
            if number > limit:
                raise _shape(f"{what}.{axis} is {number}; {device} allows at most {limit}")
    if threads > device.max_threads:
        raise _shape(f"block {dims_text(block)} has {threads} threads; {device} allows at most {device.max_threads}")
    if threads > function.max_threads:
        raise _shape(
            f"block {dims_text(block)} has {threads} threads; kernel '{name}' needs {function.registers} registers per "
            f"thread, so at most {function.max_threads} threads fit",
            f"declare @kernel(max_threads={threads}): the compiler then uses fewer registers",
        )


def check_thread_count(signature: KernelSignature, block: Dim3) -> None:
    """Raises LaunchError E0908 where operations of the kernel, such as ``block_sum``, are of blocks of another size."""
    count = signature.thread_count
    if count is not None and prod(block) != count:
        raise _shape(
            f"operations of kernel '{signature.name}' are of blocks of {count} threads (block_size={count}); "
            f"block {dims_text(block)} has {prod(block)}",
            f"launch it with block={count}, or give them another block_size",
        )


def check_cluster(signature: KernelSignature, device: Device, grid: Dim3, cluster: Dim3 | None) -> Dim3 | None:
    """The cluster of a launch, None for none. Raises LaunchError E0908 where kernel or device do not allow it."""
    name, own = signature.name, signature.cluster
    if cluster is not None and own is not None and cluster != own:
        raise _shape(
            f"kernel '{name}' has clusters of {dims_text(own)} blocks; cluster is {dims_text(cluster)}",
            "leave cluster= out, or its size out of the @kernel decorator",
        )
    size = own if cluster is None else cluster
    if size is None:
        return None
    if device.capability < FIRST_WITH_CLUSTERS:
        raise _shape(f"clusters need compute capability 9.0 or later; this is {device}")
    if prod(size) > MOST_IN_CLUSTER:
        raise _shape(
            f"cluster {dims_text(size)} has {prod(size)} blocks; at most {MOST_IN_CLUSTER} are possible",
            f"up to {PORTABLE_CLUSTER} run on every device that has clusters",
        )
    for axis, number, length in zip(AXES, grid, size, strict=True):
        if number % length:
            raise _shape(f"grid.{axis} is {number}, not a multiple of the cluster's {length} (kernel '{name}')")
    return size


def dynamic_size(signature: KernelSignature, smem: int | None, option: str = "smem") -> int:
    """The dynamic shared bytes of a launch: smem, or as many as the kernel says that it uses.

    option: what the caller gives the number by. Raises LaunchError E0909 for too few, or where nobody says how many.
    """
    used = signature.dynamic_bytes
    if smem is None and used is None and signature.dynamic_shared:
        raise launch_error(
            "E0909",
            f"kernel '{signature.name}' uses dynamic shared memory (external_memory), but the launch gives none",
            help=f"give its size in bytes: kernel[grid, block](…, {option}=…); a kernel that takes it by "
            "`dynamic_shared[bytes]()` says its size itself",
        )
    if smem is not None and used is not None and smem < used:
        raise launch_error(
            "E0909",
            f"{option} is {smem} bytes; kernel '{signature.name}' uses {used} bytes of dynamic shared memory",
            help=f"leave {option} out, and the launch gives it {used} bytes",
        )
    return used or 0 if smem is None else smem


def shared_size(signature: KernelSignature, device: Device, function: Function, smem: int | None) -> int:
    """The dynamic shared bytes of a launch on a device. Raises LaunchError E0909."""
    name, size = signature.name, dynamic_size(signature, smem)
    if size + function.shared > device.max_shared:
        static = f" and {function.shared} bytes of its own" if function.shared else ""
        raise launch_error(
            "E0909",
            f"smem is {size} bytes; kernel '{name}' needs that{static}, and {device} has {device.max_shared} bytes "
            f"a block: at most {max(device.max_shared - function.shared, 0)} can be given",
        )
    return size


def seconds(timeout: Any) -> float:
    """A time limit. Raises LaunchError E0915."""
    try:
        number = 0.0 if isinstance(timeout, bool) or not isinstance(timeout, numbers.Real) else float(timeout)
    except OverflowError:
        number = inf
    if not 0 < number < inf:
        raise launch_error("E0915", f"timeout is a positive number of seconds, got {shown_with_type(timeout)}")
    return number


def dims_text(dims: Dim3) -> str:
    return f"({', '.join(map(str, dims))})"


def _empty(what: str, number: int) -> str | None:
    return "skip the launch when there is nothing to do" if what == "grid" and number == 0 else None


def _shape(message: str, help: str | None = None) -> LaunchError:
    return launch_error("E0908", message, help=help)
