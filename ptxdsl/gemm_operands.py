"""What ``kernels.gemm`` is given: arrays of every library, as batches of matrices or as what an epilogue reads, and
whether they lie so that tensor copies and threads can read and write them."""

from __future__ import annotations

from math import gcd
from typing import Any

from ptxdsl.cuda.arrays import ArrayView, row_major, view
from ptxdsl.cuda.host_arguments import host_memory, not_plain
from ptxdsl.cuda.scalars import SCALARS
from ptxdsl.cuda.tensor_map import TensorMap
from ptxdsl.diagnostics import LaunchError, launch_error
from ptxdsl.gemm_configs import ROW

STRIDE = 16  # of whose multiples the strides and the address of a tensor map are
_PART = "it is a part of another array, most likely: copy it"
_MAP_TYPES = {
    "bfloat16": "bf16", "float16": "f16", "float32": "f32", "float8_e4m3fn": "u8", "float8_e5m2": "u8",
    "int8": "u8", "uint8": "u8", "int32": "s32",
}  # fmt: skip


def wrong(message: str, help: str | None = None) -> LaunchError:
    """What is no product."""
    return launch_error("E0922", message, help=help)


def seen(name: str, array: Any) -> ArrayView:
    """The array that an argument is, with its strides. Raises LaunchError E0922 for what is none."""
    memory = host_memory(array)
    try:
        problem = None if memory is None else not_plain(array)
        found = view(array) if memory is None else None
    except (TypeError, AttributeError, KeyError) as refused:
        problem = str(refused), ""
    if problem is not None:
        raise wrong(f"{name} cannot be used as an array: {problem[0]}", problem[1] or None)
    if memory is not None:
        dtype = str(array.dtype).removeprefix("torch.")  # not the storage's
        return ArrayView(
            memory.ctypes.data, dtype, memory.itemsize, memory.shape, memory.flags.c_contiguous,
            not memory.flags.writeable, None, "numpy", host=True, strides=memory.strides,
        )  # fmt: skip
    if found is None:
        raise wrong(f"{name} is not an array but of type {type(array).__name__}", "give one of NumPy, PyTorch or CuPy")
    return found


class Matrices:
    """An argument as a batch of matrices. transposed: it is the rows that are contiguous. first, end: of its memory."""

    def __init__(self, name: str, array: Any, types: tuple[str, ...]) -> None:
        self.array, self.name = array, name
        found = seen(name, array)
        self.dtype = found.dtype
        if self.dtype not in types:
            raise wrong(f"{name} is of {self.dtype}, not of {', '.join(types)}")
        self.shape: tuple[int, ...] = tuple(found.shape)
        self.itemsize: int = found.itemsize
        if len(self.shape) not in (2, 3):
            raise wrong(f"{name} has the shape {self.shape}", "matrices have two dimensions, batches of them three")
        if 0 in self.shape:
            help = "where k is 0 a product is zeros, else there is none"
            raise wrong(f"{name}, of the shape {self.shape}, has no elements", help)
        strides = row_major(self.shape, self.itemsize) if found.strides is None else tuple(found.strides)
        *_, self.rows, self.cols = self.shape
        self.batch = 1 if len(self.shape) == 2 else self.shape[0]
        column = self.cols == 1 and self.rows > 1 and strides[-2] == self.itemsize
        self.transposed = column or strides[-1] != self.itemsize
        inner, outer = (strides[-2], strides[-1]) if self.transposed else (strides[-1], strides[-2])
        if inner != self.itemsize:
            raise wrong(f"{name} has strides of {strides[-2:]} bytes: rows or columns must be contiguous", "copy it")
        lines, length = (self.cols, self.rows) if self.transposed else (self.rows, self.cols)
        self._line = length * inner  # bytes
        if lines == 1:  # whatever the stride says, there is no second one
            outer = -(-self._line // STRIDE) * STRIDE
        whole = strides[0] if self.batch > 1 else lines * outer
        kind = "columns" if self.transposed else "rows"
        for what, step in ((kind, outer), ("matrices", whole)):
            if step < 0 or step % STRIDE:
                help = f"{step} is {'negative' if step < 0 else f'no multiple of {STRIDE}'}: copy it"
                if self._line % STRIDE:
                    help = f"pad its {kind} of {length} elements to a multiple of {STRIDE // inner}"
                raise wrong(f"{name} has {what} {step} bytes apart", help)
        if found.address % STRIDE:
            raise wrong(f"{name} begins at address {found.address:#x}, no multiple of {STRIDE}", _PART)
        self._strides = whole, outer, inner
        self._counts = self.batch, lines
        self.first: int = found.address
        self.end = self.first + (self.batch - 1) * whole + (lines - 1) * outer + self._line
        self.readonly: bool = found.readonly
        self.host: bool = found.host

    def map(self, lines: int, across: int | None = None) -> TensorMap:
        """Boxes of so many lines of 128 bytes (or of ``across`` elements of 32 to 128 bytes)."""
        inner, outer = (self.rows, self.cols) if self.transposed else (self.cols, self.rows)
        across = across or ROW // self.itemsize
        return TensorMap(
            self.array, (1, lines, across), swizzle=f"{across * self.itemsize}B", l2_promotion="128B",
            data_type=_MAP_TYPES[self.dtype], shape=(self.batch, outer, inner), strides=self._strides,
        )  # fmt: skip

    def contiguous_otherwise(self) -> str:
        """The expression that copies it so that the other of rows and columns is contiguous."""
        copied = "contiguous()" if hasattr(self.array, "contiguous") else "copy()"  # PyTorch's word
        if self.transposed:
            return f"{self.name}.{copied}"
        exchanged = "T" if len(self.shape) == 2 else "swapaxes(1, 2)"
        return f"{self.name}.{exchanged}.{copied}.{exchanged}"

    def lies_over(self, other: Matrices) -> bool:
        """Whether they have bytes in common; columns of one matrix beside one another have none."""
        if self.first >= other.end or other.first >= self.end:
            return False
        period = gcd(*self._strides[:2], *other._strides[:2])  # of both, in which each has a line at most
        if period == 0:
            return True
        behind = (other.first - self.first) % period
        return behind < self._line or behind + other._line > period

    def is_all_of(self, given: ArrayView) -> bool:
        """Whether an array of the matrices' shape is these very elements."""
        return (given.address, given.nbytes, given.dtype) == (self.first, self.end - self.first, self.dtype)

    def lies_over_itself(self) -> bool:
        """Whether elements share memory."""
        extent = self._line
        for step, count in sorted(zip(self._strides, self._counts, strict=False)):
            if count > 1 and step < extent:
                return True
            extent += (count - 1) * step
        return False


def check_beside(name: str, host: bool, left: Matrices) -> None:
    """That an argument, in the host's memory or a device's, is where the left operand is."""
    if host != left.host:
        here, there = ("in host memory", "on a device") if host else ("on a device", "in host memory")
        raise wrong(f"{name} is {here}, {left.name} {there}", "copy one of them to the other's memory")


def check_apart(name: str, given: ArrayView, result: Matrices) -> None:
    """That an array that is read while the result is written lies beside it, and has no byte in common with it."""
    check_beside(name, given.host, result)
    if given.address < result.end and result.first < given.address + given.nbytes:
        raise wrong(f"out overlaps {name}", "it is written while that is read")


def check_addend(name: str, given: ArrayView, result: Matrices) -> None:
    """That the epilogue can read an array, by pairs along the columns of the result."""
    if result.cols % 2:
        raise wrong(f"with a {name} the result has an even number of columns, not {result.cols}")
    if given.dtype not in SCALARS or given.dtype == "bool":
        raise wrong(f"{name} is of {given.dtype}, no type of numbers that kernels have")
    if not given.contiguous:
        raise wrong(f"{name} is not contiguous", "copy it")
    pair = 2 * given.itemsize
    if given.address % pair:
        raise wrong(f"{name} begins at address {given.address:#x}, no multiple of its pairs' {pair} bytes", _PART)
