"""Kernels ready to be called: matrix products on the tensor cores of Hopper, and of Blackwell (``kernels_blackwell``).

``gemm`` launches ``samples/08_gemm_hopper.pdsl`` on its arguments: with tensor maps for arrays of either major, an
epilogue for what becomes of the product, and a configuration by what was measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from ptxdsl.api.kernel import Kernel
from ptxdsl.api.program import device_in_use
from ptxdsl.cuda.arrays import device_of, view
from ptxdsl.cuda.driver import current_driver
from ptxdsl.cuda.driver_interface import Device
from ptxdsl.cuda.host_arguments import host_memory
from ptxdsl.cuda.tensor_map import TensorMap
from ptxdsl.diagnostics import LaunchError, launch_error
from ptxdsl.gemm_configs import CONFIGS, Config, choose
from ptxdsl.kernels_blackwell import BlackwellConfig, has_tensor_memory, launch_of
from ptxdsl.kernels_blackwell import choose as choose_blackwell
from ptxdsl.shown import shown

_ROW = 128  # bytes of a row of a swizzle
_STRIDE = 16  # of whose multiples the strides of a tensor map are
_GROUP_ROWS = 128  # of A that share a matrix of B
_MAP_TYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float8_e4m3fn": "u8", "float8_e5m2": "u8"}
_OPERANDS = ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")
_RESULTS = ("bfloat16", "float16", "float32")
_ACTIVATIONS = {"relu": "Relu", "gelu": "Gelu", "gelu_tanh": "GeluTanh"}


def gemm(
    a: Any, b: Any, out: Any, *, scale: float | None = None, bias: Any = None, activation: str | None = None,
    residual: Any = None, groups: Any = None, config: Config | BlackwellConfig | None = None, stream: Any = None,
) -> None:  # fmt: skip
    """out = activation(scale * (a @ b) + bias) + residual, with sums in float32.

    a: (m, k) or (batch, m, k); b: (k, n) or (batch, k, n), of one type: bfloat16, float16, or 8-bit floats. One of
    the last two dimensions is contiguous (of 8-bit floats k), the stride of the other a multiple of 16 bytes. out:
    (m, n) or (batch, m, n) by rows, of bfloat16, float16 or float32, rows of multiples of 16 bytes; it does not lie
    over a or b. scale: a number; bias: a row of n; activation: ``relu``, ``gelu`` or ``gelu_tanh``; residual: a
    matrix like out, by rows; n is even with these two, and residual is for no batch. groups: for every 128 rows of a,
    an int32 that says which matrix of b they are multiplied by; b may then have any number of them. config: by
    default ``choose``'s; with a BlackwellConfig, and on Blackwell without any, that kernel is launched, which takes
    no groups. stream: by default the current one of a's library. Arrays of NumPy are multiplied in the simulator.
    Raises LaunchError E0922 for what cannot be multiplied, and as a launch does.
    """
    product = _Product(a, b, out, scale, bias, activation, residual, groups, config)
    product.kernel[product.grid, product.threads](*product.arguments, smem=product.smem, pdl=product.pdl, stream=stream)


def prepare_gemm(
    a: Any, b: Any, out: Any, *, scale: float | None = None, bias: Any = None, activation: str | None = None,
    residual: Any = None, groups: Any = None, config: Config | BlackwellConfig | None = None, stream: Any = None,
) -> Callable[[], None]:  # fmt: skip
    """As ``gemm``, of arrays on a device, any number of times: a call of what it gives launches."""
    product = _Product(a, b, out, scale, bias, activation, residual, groups, config)
    arguments, grid, threads = product.arguments, product.grid, product.threads
    return product.kernel.prepare(grid, threads, *arguments, smem=product.smem, pdl=product.pdl, stream=stream)


class _Product:
    """A launch of the kernel, worked out of the arguments."""

    def __init__(
        self, a: Any, b: Any, out: Any, scale: float | None, bias: Any, activation: str | None, residual: Any,
        groups: Any, config: Config | BlackwellConfig | None,
    ) -> None:  # fmt: skip
        left, right, result = (
            _Matrices("a", a, _OPERANDS),
            _Matrices("b", b, _OPERANDS),
            _Matrices("out", out, _RESULTS),
        )
        m, k, n = left.rows, left.cols, right.cols
        if right.rows != k or (result.rows, result.cols) != (m, n):
            shapes = " and ".join(str(matrices.shape) for matrices in (left, right))
            raise _wrong(f"matrices of {shapes} have no product of {result.shape}")
        if left.batch != result.batch or (groups is None and left.batch != right.batch):
            raise _wrong(f"batches of {left.batch}, {right.batch} and {result.batch} matrices")
        if left.dtype != right.dtype:
            raise _wrong(f"a is of {left.dtype}, b of {right.dtype}")
        if result.transposed:
            raise _wrong("out must be stored by rows", "give its transpose, of b and a exchanged and transposed")
        if result.readonly:
            raise _wrong("out is read-only")
        if n * result.itemsize % _STRIDE:  # so a card stores them
            help = "tensor copies would write behind them: pad b and out with columns, and take those that are wanted"
            raise _wrong(f"out has rows of {n * result.itemsize} bytes, no multiple of {_STRIDE}", help)
        for operand in (left, right):
            if operand.first < result.end and result.first < operand.end:
                raise _wrong(f"out lies over {operand.name}", "a product is written while its operands are read")
        narrow = left.dtype.startswith("float8")
        if narrow and (left.transposed or not right.transposed):
            raise _wrong(f"operands of {left.dtype} must be contiguous along k")
        names, fields = _epilogue(scale, bias, activation, residual, result)
        count = _multiprocessors(a)
        self.pdl = True
        if not isinstance(config, Config | BlackwellConfig | None):
            raise _wrong(f"config is a Config or a BlackwellConfig, not {shown(config)}")
        if config is None and _on_blackwell(a):
            config = choose_blackwell(m, n, left.batch, count)
        if isinstance(config, BlackwellConfig):
            if groups is not None:
                raise _wrong("products on Blackwell have no groups", "multiply each group's rows by its matrix")
            made = launch_of(left, right, result, names, fields, config, count)
            self.kernel, self.grid, self.threads, self.smem = made.kernel, made.grid, made.threads, made.smem
            self.arguments: tuple[Any, ...] = made.arguments
            self.pdl = False  # the kernel does not wait for the one before
            return
        b_of, numbers = _groups(groups, left)
        kind = (
            left.itemsize,
            result.itemsize,
            left.transposed,
            not right.transposed,
            groups is not None,
            residual is not None,
        )
        depth = _ROW // left.itemsize
        config = _chosen(config, m, n, k, left.batch, count, kind)
        a_rows = config.rows
        if m < a_rows and not left.transposed:  # rows outside of A take as long to load as others
            a_rows = min(max(8 * config.across, 1 << (m - 1).bit_length()), a_rows)
        constants = {
            "T": f"DType.{left.dtype}", "C": f"DType.{result.dtype}", "E": names, "B": b_of, "GROUPS": config.groups,
            "BN": config.columns, "STAGES": config.stages, "C_STAGES": config.c_stages, "CLUSTER": config.cluster,
            "ORDER": config.order, "SPLIT": config.split, "SIDEWAYS": config.sideways, "A_ROWS": a_rows,
            "A_MN": left.transposed, "B_MN": not right.transposed,
        }  # fmt: skip
        self.kernel = _kernel().specialize(**constants)
        self.threads = 128 * (config.groups + 1)
        box = config.box(result.itemsize)
        self.smem = (
            config.stages * (config.rows + config.columns) * _ROW
            + config.c_stages * config.groups * 64 * box * result.itemsize
            + (config.split - 1) * config.rows * (config.columns // config.split) * 4
        )
        at_once = count // config.blocks
        if config.blocks > 2 and host_memory(a) is None:  # clusters lie in parts of the card of uneven sizes
            at_once = self.kernel.occupancy(self.threads, smem=self.smem).clusters or at_once
        self.grid = min(config.clusters(m, n) * left.batch, at_once) * config.blocks
        self.arguments = (
            left.map(depth if left.transposed else a_rows // config.across),
            right.map(config.columns // config.down if right.transposed else depth),
            result.map(64, box),
            m, n, k, left.batch, fields, numbers,
        )  # fmt: skip


@cache
def _chosen(
    given: Config | None, m: int, n: int, k: int, batches: int, count: int,
    kind: tuple[int, int, bool, bool, bool, bool],
) -> Config:  # fmt: skip
    """The configuration, of those that are for the matrices, on so many multiprocessors.

    kind: bytes of an element of the operands and of the result, whether A and B are MN-major, whether groups of rows
    have a B each, whether the result's old elements may be read (boxes of C that overlap are stored twice).
    """
    itemsize, result_size, a_mn, b_mn, grouped, in_place = kind
    depth = _ROW // itemsize
    usable = [
        some
        for some in ((given,) if given else CONFIGS)
        if some.blocks <= count
        and some.columns % (16 * some.split) == 0
        and (not grouped or some.rows * some.down <= _GROUP_ROWS)
        and not (a_mn and some.rows // some.across % depth)
        and not (b_mn and some.columns % (some.down * depth))
        and not (in_place and some.columns // some.split % some.box(result_size))
    ]
    if not usable:
        raise _wrong(f"{given} is not for these matrices")
    return choose(m, n, k * itemsize, batches, count, usable)


class _Matrices:
    """An argument as a batch of matrices. transposed: it is the rows that are contiguous."""

    def __init__(self, name: str, array: Any, types: tuple[str, ...]) -> None:
        self.array, self.name = array, name
        memory = host_memory(array)
        found: Any = memory if memory is not None else view(array)
        if found is None:
            raise _wrong(f"{name} is no array but a {type(array).__name__}")
        self.dtype = str(array.dtype).removeprefix("torch.")
        if self.dtype not in types:
            raise _wrong(f"{name} is of {self.dtype}, not of {', '.join(types)}")
        self.shape: tuple[int, ...] = tuple(found.shape)
        self.itemsize: int = found.itemsize
        if len(self.shape) not in (2, 3):
            raise _wrong(f"{name} has the shape {self.shape}", "matrices have two dimensions, batches of them three")
        if 0 in self.shape:
            raise _wrong(f"{name}, of the shape {self.shape}, has no elements", "leave the product out")
        strides = _row_major(self.shape, self.itemsize) if found.strides is None else tuple(found.strides)
        *_, self.rows, self.cols = self.shape
        self.batch = 1 if len(self.shape) == 2 else self.shape[0]
        column = self.cols == 1 and self.rows > 1 and strides[-2] == self.itemsize
        self.transposed = column or strides[-1] != self.itemsize
        inner, outer = (strides[-2], strides[-1]) if self.transposed else (strides[-1], strides[-2])
        if inner != self.itemsize:
            raise _wrong(f"{name} has strides of {strides[-2:]} bytes: rows or columns must be contiguous")
        lines, length = (self.cols, self.rows) if self.transposed else (self.rows, self.cols)
        if lines == 1:  # whatever the stride says, there is no second one
            outer = -(-length * inner // _STRIDE) * _STRIDE
        whole = strides[0] if self.batch > 1 else lines * outer
        for what, step in (("columns" if self.transposed else "rows", outer), ("matrices", whole)):
            if step < 0 or step % _STRIDE:
                help = f"{step} is {'negative' if step < 0 else f'no multiple of {_STRIDE}'}: copy it, or pad its lines"
                raise _wrong(f"{name} has {what} {step} bytes apart", help)
        self._strides = whole, outer, inner
        self.first: int = found.address if memory is None else memory.ctypes.data
        self.end = self.first + (self.batch - 1) * whole + (lines - 1) * outer + length * inner
        self.readonly: bool = found.readonly if memory is None else not memory.flags.writeable

    def map(self, lines: int, across: int | None = None) -> TensorMap:
        """Boxes of so many lines of 128 bytes (or of ``across`` elements of 32 to 128 bytes)."""
        inner, outer = (self.rows, self.cols) if self.transposed else (self.cols, self.rows)
        across = across or _ROW // self.itemsize
        return TensorMap(
            self.array, (1, lines, across), swizzle=f"{across * self.itemsize}B", l2_promotion="128B",
            data_type=_MAP_TYPES[self.dtype], shape=(self.batch, outer, inner), strides=self._strides,
        )  # fmt: skip


def _epilogue(
    scale: float | None, bias: Any, activation: str | None, residual: Any, result: _Matrices
) -> tuple[str, tuple[Any, ...]]:
    """The epilogue's type, and its fields."""
    steps: list[tuple[str, tuple[Any, ...]]] = []
    if scale is not None:
        steps.append(("Scale", (_number("scale", scale),)))
    for name, array in (("bias", bias), ("residual", residual)):
        if array is not None and not hasattr(array, "dtype"):
            raise _wrong(f"{name} is no array but a {type(array).__name__}")
        if array is not None and result.cols % 2:
            raise _wrong(f"with a {name} the result has an even number of columns, not {result.cols}")
    if bias is not None:
        if tuple(bias.shape) != (result.cols,):
            raise _wrong(f"a bias of the shape {tuple(bias.shape)} for {result.cols} columns")
        steps.append((f"Bias[DType.{_type_of(bias)}]", (bias, result.cols)))
    if activation is not None:
        if not isinstance(activation, str) or activation not in _ACTIVATIONS:
            raise _wrong(f"there is no activation {shown(activation)}", f"give one of {', '.join(_ACTIVATIONS)}")
        steps.append((_ACTIVATIONS[activation], ()))
    if residual is not None:
        if tuple(residual.shape) != (result.rows, result.cols) or result.batch != 1:
            raise _wrong(f"a residual of the shape {tuple(residual.shape)} for a result of {result.shape}")
        steps.append((f"Residual[DType.{_type_of(residual)}]", (residual, result.rows, result.cols, 1.0)))
    if not steps:
        return "Identity", ()
    name, fields = steps[-1]
    for before, given in reversed(steps[:-1]):
        name, fields = f"Then[{before}, {name}]", (given, fields)
    return name, fields


def _groups(groups: Any, left: _Matrices) -> tuple[str, tuple[Any, ...]]:
    """Which matrix of B belongs to some rows: the type that says it, and its fields."""
    if groups is None:
        return "SameMatrix", ()
    if not hasattr(groups, "dtype"):
        raise _wrong(f"groups is no array but a {type(groups).__name__}")
    wanted = -(-left.rows // _GROUP_ROWS)
    if tuple(groups.shape) != (wanted,) or left.batch != 1 or _type_of(groups) != "int32":
        raise _wrong(
            f"groups of {_type_of(groups)} of the shape {tuple(groups.shape)} for a matrix of {left.shape}",
            f"give an int32 for each {_GROUP_ROWS} rows: {wanted}",
        )
    return "MatrixOfRows", (groups, _GROUP_ROWS)


def _type_of(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, strides[0] * length)
    return tuple(strides)


def _multiprocessors(array: Any) -> int:
    """Of the device that has an array; of the simulator, a few."""
    if host_memory(array) is not None:
        return 4
    return _device(array).multiprocessors


def _on_blackwell(array: Any) -> bool:
    if host_memory(array) is not None:
        return False
    return has_tensor_memory(_device(array).capability)


def _device(array: Any) -> Device:
    """The current one, which is the array's in a thread that has none yet."""
    return device_in_use(current_driver(), device_of(array))


@cache
def _kernel() -> Kernel:
    from ptxdsl.api.module import Module
    from ptxdsl.files.resources import folder
    from ptxdsl.imports import read_file
    from ptxdsl.options import Options

    path = os.path.join(folder("samples"), "08_gemm_hopper.pdsl")
    return Module(read_file(path), Options("sm_90a"), path=path)["gemm"]


def _number(name: str, value: Any) -> float:
    try:
        if isinstance(value, bool) or not hasattr(value, "__float__"):  # a text has none, though ``float`` reads it
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise _wrong(f"{name} is a number, not {shown(value)}") from None


def _wrong(message: str, help: str | None = None) -> LaunchError:
    return launch_error("E0922", message, help=help)
