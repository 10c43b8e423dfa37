"""The shape of a launch and its attributes, and the driver's structure for them."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref
from math import prod
from typing import Any

from ptxdsl.cuda.driver_interface import Device, Dim3, Driver, Function
from ptxdsl.cuda.library import (
    LAUNCH_CLUSTER_DIMENSION,
    LAUNCH_COOPERATIVE,
    LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION,
    LaunchAttribute,
    LaunchConfig,
)
from ptxdsl.cuda.shape import (
    FIRST_WITH_CLUSTERS,
    PORTABLE_CLUSTER,
    check_cluster,
    check_shape,
    dimensions,
    dims_text,
    shared_size,
)
from ptxdsl.diagnostics import launch_error
from ptxdsl.record import dataclass
from ptxdsl.shown import shown_with_type
from ptxdsl.signature import KernelSignature
from ptxdsl.whole import whole


@dataclass(frozen=True)
class Shape:
    """What a launch asks for besides its arguments. smem: dynamic shared bytes, None where the launch says nothing.

    cluster: blocks, None for the kernel's own. cooperative: all blocks run at a time. pdl: it may begin before the
    kernel in front of it in the stream has ended (programmatic dependent launch).
    """

    grid: Dim3
    block: Dim3
    smem: int | None = None
    cluster: Dim3 | None = None
    cooperative: bool = False
    pdl: bool = False

    def __str__(self) -> str:
        text = f"grid {dims_text(self.grid)}, block {dims_text(self.block)}"
        text += f", cluster {dims_text(self.cluster)}" if self.cluster else ""
        text += f", {self.smem} bytes of dynamic shared memory" if self.smem else ""
        return text + (", cooperative" if self.cooperative else "")


def shape_of(
    grid: Any, block: Any, smem: Any = None, cluster: Any = None, cooperative: Any = False, pdl: Any = False
) -> Shape:
    """A shape from what a caller gave. Raises LaunchError E0908 (dimensions), E0909 (smem), E0918 (flags)."""
    for what, value in (("cooperative", cooperative), ("pdl", pdl)):
        if not isinstance(value, bool):
            raise launch_error("E0918", f"{what} is True or False, got {shown_with_type(value)}")
    return Shape(
        dimensions(grid, "grid"),
        dimensions(block, "block"),
        None if smem is None else _bytes(smem),
        None if cluster is None else dimensions(cluster, "cluster"),
        cooperative,
        pdl,
    )


def _bytes(smem: Any) -> int:
    try:
        size = whole(smem)
    except TypeError:
        raise launch_error("E0909", f"smem must be a number of bytes, got {shown_with_type(smem)}") from None
    if size.bit_length() > 64:
        raise launch_error("E0909", f"smem has {size.bit_length()} bits; no device has so much memory")
    if size < 0:
        raise launch_error("E0909", f"smem is {size}; it must not be negative")
    return size


def check(
    shape: Shape, signature: KernelSignature, device: Device, function: Function, driver: Driver,
    allow: Callable[[int], None],
) -> int:  # fmt: skip
    """The dynamic shared bytes of a launch that the kernel and the device allow.

    allow: opts in to that many. Raises LaunchError E0908 (grid, block, cluster), E0909 (shared memory), E0918
    (attributes), and DriverError.
    """
    check_shape(signature, device, function, shape.grid, shape.block)
    size = shared_size(signature, device, function, shape.smem)
    cluster = check_cluster(signature, device, shape.grid, shape.cluster)
    if shape.pdl and device.capability < FIRST_WITH_CLUSTERS:
        raise launch_error("E0918", f"pdl=True needs compute capability 9.0 or later; this is {device}")
    allow(size)
    if cluster is not None and prod(cluster) > PORTABLE_CLUSTER:
        driver.allow_large_clusters(function)
    if cluster is not None:
        _check_fit(shape, cluster, size, signature, device, function, driver)
    elif shape.cooperative:
        fit = driver.resident_blocks(function, prod(shape.block), size) * device.multiprocessors
        if prod(shape.grid) > fit:
            raise launch_error(
                "E0918",
                f"a cooperative launch runs all blocks at the same time: grid {dims_text(shape.grid)} has "
                f"{prod(shape.grid)}, and at most {fit} blocks of kernel '{signature.name}' fit {device}",
                help="give fewer blocks, and let each do more",
            )
    return size


def _check_fit(
    shape: Shape, cluster: Dim3, size: int, signature: KernelSignature, device: Device, function: Function,
    driver: Driver,
) -> None:  # fmt: skip
    """Whether one cluster can run at all: its blocks lie on multiprocessors next to one another."""
    config = byref(build_config(shape, size, 0, cluster))
    clusters = driver.resident_clusters(function, config)
    if clusters and not (shape.cooperative and prod(shape.grid) > clusters * prod(cluster)):
        return
    if clusters:
        raise launch_error(
            "E0918",
            f"a cooperative launch runs all blocks at the same time: grid {dims_text(shape.grid)} has "
            f"{prod(shape.grid)}, and at most {clusters} clusters of {prod(cluster)} of kernel '{signature.name}' fit "
            f"{device}",
            help="give fewer blocks, and let each do more",
        )
    largest = driver.largest_cluster(function, config)
    raise launch_error(
        "E0908",
        f"cluster {dims_text(cluster)} has {prod(cluster)} blocks; with block {dims_text(shape.block)} and "
        f"{size + function.shared} bytes of shared memory, clusters of kernel '{signature.name}' have at most "
        f"{largest} blocks on {device}",
    )


def build_config(shape: Shape, shared: int, stream: int, cluster: Dim3 | None) -> LaunchConfig:
    """The driver's launch configuration, for any number of calls. cluster: one that the kernel itself does not have."""
    attributes: list[LaunchAttribute] = []

    def attribute(number: int, *values: int) -> None:
        made = LaunchAttribute(number)
        made.value[: len(values)] = values
        attributes.append(made)

    if cluster is not None:
        attribute(LAUNCH_CLUSTER_DIMENSION, *cluster)
    if shape.cooperative:
        attribute(LAUNCH_COOPERATIVE, 1)
    if shape.pdl:
        attribute(LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION, 1)
    table = (LaunchAttribute * len(attributes))(*attributes)
    config = LaunchConfig(shape.grid, shape.block, shared, stream or None)
    if attributes:
        config.attributes = table  # ctypes keeps it alive with the structure
        config.attribute_count = len(attributes)
    return config
