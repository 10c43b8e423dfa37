"""A launch checked against the kernel and the target, and its arguments laid out as the kernel's parameters.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; PTX ISA, ".reqntid", ".maxntid",
".reqnctapercluster", "Kernel Function Parameters".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ptxdsl.diagnostics import Diagnostic, LaunchError, counted, launch_error
from ptxdsl.ptx.module import Function, Module, Variable
from ptxdsl.record import dataclass
from ptxdsl.shown import shown, shown_with_type
from ptxdsl.sim.layout import SHARED_START
from ptxdsl.sim.machine.memory import CLUSTER_LIMIT, Memory
from ptxdsl.sim.program.symbols import Symbols
from ptxdsl.targets import shared_bytes as most_shared
from ptxdsl.whole import whole

Dim3 = tuple[int, int, int]

SHAPE, ARGUMENTS, SHARED = "E1100", "E1101", "E1102"

AXES = ("x", "y", "z")
MAX_BLOCK: Dim3 = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)
MAX_STATIC_SHARED = 48 << 10
_FIRST_WITH_CLUSTERS = 90


@runtime_checkable
class TensorMapArgument(Protocol):
    """A tensor map on an array: its 128 bytes follow from where the array lies (``tensor_map.TensorMap``)."""

    array: npt.NDArray[Any]

    def encode(self, address: int) -> bytes: ...


@dataclass(frozen=True)
class Shape:
    """A launch as checked. shared_bytes: of dynamic shared memory."""

    grid: Dim3
    block: Dim3
    cluster: Dim3
    shared_bytes: int


def check_shape(
    module: Module, kernel: Function, symbols: Symbols, grid: Any, block: Any, cluster: Any, shared_bytes: Any
) -> Shape:
    """Raises LaunchError E1100 or E1102 where the kernel or its target does not allow the launch."""
    name, target = kernel.name, module.target
    capability = int("".join(c for c in target if c.isdigit()) or 0)
    blocks, threads = _dimensions(grid, "grid"), _dimensions(block, "block")
    for what, value, limits in (("block", threads, MAX_BLOCK), ("grid", blocks, MAX_GRID)):
        for axis, number, limit in zip(AXES, value, limits, strict=True):
            if number > limit:
                raise launch_error(SHAPE, f"{what}.{axis} is {shown(number)}; at most {limit} is possible")
    if prod(threads) > MAX_THREADS:
        raise launch_error(
            SHAPE, f"block {_text(threads)} has {prod(threads)} threads; at most {MAX_THREADS} are possible"
        )
    if kernel.reqntid is not None and _padded(kernel.reqntid) != threads:
        raise launch_error(
            SHAPE,
            f"kernel '{name}' runs with exactly {_text(_padded(kernel.reqntid))} threads per block "
            f"(`@kernel(threads=…)`, in PTX .reqntid); block is {_text(threads)}",
        )
    if kernel.maxntid is not None and prod(threads) > prod(kernel.maxntid):
        raise launch_error(
            SHAPE,
            f"kernel '{name}' is declared for at most {prod(kernel.maxntid)} threads per block "
            f"(`@kernel(max_threads=…)`, in PTX .maxntid); block {_text(threads)} has {prod(threads)}",
        )
    own = _padded(kernel.reqnctapercluster) if kernel.reqnctapercluster else None
    clusters = _dimensions(cluster, "cluster") if cluster is not None else own or (1, 1, 1)
    if kernel.explicit_cluster and cluster is None and own is None:
        raise launch_error(SHAPE, f"kernel '{name}' wants a cluster to be given with its launch (.explicitcluster)")
    if kernel.blocks_are_clusters:
        raise launch_error(SHAPE, f"kernel '{name}' is launched by clusters (.blocksareclusters): not simulated")
    if own is not None and clusters != own:
        raise launch_error(
            SHAPE,
            f"kernel '{name}' has clusters of {_text(own)} blocks (`@kernel(cluster=…)`, in PTX .reqnctapercluster); "
            f"cluster is {_text(clusters)}",
        )
    if prod(clusters) > 1 and capability < _FIRST_WITH_CLUSTERS:
        raise launch_error(SHAPE, f"clusters need sm_90 or later; the PTX is for {target}")
    if prod(clusters) > CLUSTER_LIMIT:
        raise launch_error(
            SHAPE, f"cluster {_text(clusters)} has {prod(clusters)} CTAs; at most {CLUSTER_LIMIT} are possible"
        )
    for axis, number, size in zip(AXES, blocks, clusters, strict=True):
        if number % size:
            raise launch_error(SHAPE, f"grid.{axis} is {number}, not a multiple of the cluster's {size}")
    return Shape(blocks, threads, clusters, _check_shared(name, target, capability, symbols, shared_bytes))


def _check_shared(name: str, target: str, capability: int, symbols: Symbols, shared_bytes: Any) -> int:
    try:
        dynamic = whole(shared_bytes)
    except TypeError:
        given = shown_with_type(shared_bytes)
        raise launch_error(SHARED, f"dynamic shared memory must be a number of bytes, got {given}") from None
    if dynamic.bit_length() > 64:
        raise launch_error(SHARED, f"dynamic shared memory is {shown(dynamic)}; no device has so many bytes")
    if dynamic < 0:
        raise launch_error(SHARED, f"dynamic shared memory is {dynamic} bytes; it must not be negative")
    static = symbols.dynamic_start - SHARED_START
    if static > MAX_STATIC_SHARED:
        raise launch_error(
            SHARED,
            f"kernel '{name}' has {static} bytes of static shared memory; at most {MAX_STATIC_SHARED} are possible",
            help="use dynamic shared memory for more",
        )
    limit = most_shared(capability)
    if static + dynamic > limit:
        own = f"kernel '{name}' has {static} bytes of its own, and " if static else ""
        raise launch_error(
            SHARED,
            f"{dynamic} bytes of dynamic shared memory are given, too many: {own}a CTA of {target} has {limit} bytes",
        )
    return dynamic


def _dimensions(value: Any, what: str) -> Dim3:
    items = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    if not 1 <= len(items) <= 3:
        raise launch_error(SHAPE, f"{what} has {len(items)} dimensions; 1 to 3 are possible")
    numbers = []
    for axis, item in zip(AXES, items, strict=False):
        try:
            number = whole(item)
        except TypeError:
            raise launch_error(SHAPE, f"{what}.{axis} must be an integer, got {shown_with_type(item)}") from None
        if number < 1:
            raise launch_error(SHAPE, f"{what}.{axis} is {shown(number)}; it must be at least 1")
        numbers.append(number)
    return _padded(tuple(numbers))


def _padded(numbers: tuple[int, ...]) -> Dim3:
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _text(dims: Dim3) -> str:
    return f"({', '.join(map(str, dims))})"


def bind(kernel: Function, memory: Memory, arguments: Sequence[Any], names: Sequence[str] | None) -> None:
    """Writes the kernel's parameters. Arrays are lent to the simulated memory and used in place.

    An argument is an array (its address), a TensorMap, bytes as they are, a NumPy scalar, an int, a float or a bool
    (as the parameter's size wants it). Raises LaunchError E1101, all of them at once.
    """
    parameters = kernel.parameters
    if len(arguments) != len(parameters):
        wanted = ", ".join(f"{p.name}: {_kind(p)}" for p in parameters)
        raise launch_error(
            ARGUMENTS,
            f"kernel '{kernel.name}' has {counted(len(parameters), 'parameter')}"
            f"{f' ({wanted})' if wanted else ''}; {counted(len(arguments), 'argument')} given",
        )
    problems: list[Diagnostic] = []
    base = memory.symbols.places
    for number, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        name = f"'{names[number]}'" if names is not None else str(number)
        try:
            data = _bytes(parameter, argument, memory, f"argument {name}")
            if len(data) != parameter.size:
                raise _wrong(f"argument {name}", f"has {len(data)} bytes; the parameter {_kind(parameter)} has "
                             f"{parameter.size}")  # fmt: skip
        except LaunchError as problem:
            problems.extend(problem.diagnostics)
            continue
        start = base[parameter.name].address - memory.parameters_start
        memory.parameters[start : start + len(data)] = np.frombuffer(data, np.uint8)
    if problems:
        raise LaunchError(problems)


def _wrong(name: str, what: str, help: str | None = None) -> LaunchError:
    return launch_error(ARGUMENTS, f"{name} {what}", help=help)


def _kind(parameter: Variable) -> str:
    return f".{parameter.type}" + (f"[{parameter.size}]" if parameter.shape else "")


def _bytes(parameter: Variable, argument: Any, memory: Memory, name: str) -> bytes:
    size = parameter.size or 0
    if isinstance(argument, bytes | bytearray | memoryview):
        return bytes(argument)
    if isinstance(argument, np.ndarray):
        return _address(argument, memory, name).to_bytes(8, "little")
    if isinstance(argument, TensorMapArgument):
        return bytes(argument.encode(_address(argument.array, memory, name)))
    if isinstance(argument, np.generic):
        return argument.tobytes()
    if isinstance(argument, bool):
        return int(argument).to_bytes(size, "little")
    if isinstance(argument, int):
        try:
            return argument.to_bytes(size, "little", signed=argument < 0)
        except OverflowError:
            raise _wrong(name, f"is {argument}, which does not fit the {size} bytes of its parameter") from None
    if isinstance(argument, float):
        forms = {2: "<e", 4: "<f", 8: "<d"}
        if size not in forms or parameter.type == "bf16":
            raise _wrong(name, f"is a float; the parameter {_kind(parameter)} has {size} bytes", "give its bytes")
        try:
            return struct.pack(forms[size], argument)
        except OverflowError:
            raise _wrong(name, f"is {argument!r}, too large for a float of {8 * size} bits") from None
    raise _wrong(
        name,
        f"is a {type(argument).__name__}",
        "give a NumPy array, a number, bytes or a TensorMap",
    )


def _address(array: npt.NDArray[Any], memory: Memory, name: str) -> int:
    if array.dtype.hasobject:
        raise _wrong(name, f"is an array of {array.dtype}", "give an array of numbers")
    try:
        return memory.lend(array, name)
    except ValueError as problem:
        raise _wrong(name, f"cannot be used in place: {problem}", "give a contiguous copy of it") from None
