"""How much of a device a kernel fills."""

from __future__ import annotations

from ctypes import byref
from math import prod

from ptxdsl.cuda.configuration import Shape, build_config
from ptxdsl.cuda.errors import DriverError
from ptxdsl.cuda.launch import LoadedKernel
from ptxdsl.diagnostics import launch_error
from ptxdsl.record import dataclass


@dataclass(frozen=True)
class Occupancy:
    """blocks: that one multiprocessor runs at a time. warps: in these blocks; max_warps: that it could run.

    clusters: that the device runs at a time, None for a kernel without. registers: a thread. shared: bytes per block,
    static and dynamic. limit: the largest block that the kernel's registers allow, in threads.
    """

    blocks: int
    warps: int
    max_warps: int
    clusters: int | None
    registers: int
    shared: int
    limit: int

    @property
    def fraction(self) -> float:
        """warps / max_warps."""
        return self.warps / self.max_warps


def occupancy(kernel: LoadedKernel, shape: Shape) -> Occupancy:
    """Of a launch shape, whose grid has no part in it. Raises LaunchError as a launch of that shape would."""
    plan = kernel.plan(shape)
    function, threads = kernel.function, prod(shape.block)
    cluster = shape.cluster or kernel.signature.cluster
    try:
        blocks = kernel.driver.resident_blocks(function, threads, plan.shared)
        clusters = None
        if cluster is not None:
            clusters = kernel.driver.resident_clusters(function, byref(build_config(shape, plan.shared, 0, cluster)))
    except DriverError as failure:
        raise launch_error("E0912", f"the occupancy of {plan} is not known: {failure.words}") from None
    return Occupancy(
        blocks,
        blocks * -(-threads // 32),
        kernel.device.max_warps,
        clusters,
        function.registers,
        function.shared + plan.shared,
        function.max_threads,
    )
