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
from ptxdsl.cuda.arrays import device_of
from ptxdsl.cuda.driver import current_driver
from ptxdsl.cuda.driver_interface import Device
from ptxdsl.cuda.host_arguments import host_memory
from ptxdsl.cuda.scalars import encode_float, is_real
from ptxdsl.gemm_configs import CONFIGS, GROUP_ROWS, ROW, Config, Kind, choose, fault
from ptxdsl.gemm_operands import STRIDE, Matrices, check_addend, check_apart, check_beside, seen, wrong
from ptxdsl.kernels_blackwell import BlackwellConfig, has_tensor_memory, launch_of, multiplies_bytes
from ptxdsl.kernels_blackwell import choose as choose_blackwell
from ptxdsl.shown import shown

__all__ = ["BlackwellConfig", "Config", "gemm", "prepare_gemm"]

_FLOATS8, _INTEGERS8 = ("float8_e4m3fn", "float8_e5m2"), ("int8", "uint8")
_OPERANDS = ("bfloat16", "float16", "float32", *_FLOATS8, *_INTEGERS8)
_RESULTS = ("bfloat16", "float16", "float32", "int32")
_ACTIVATIONS = {"relu": "Relu", "gelu": "Gelu", "gelu_tanh": "GeluTanh"}


def gemm(
    a: Any, b: Any, out: Any, *, scale: float | None = None, bias: Any = None, activation: str | None = None,
    residual: Any = None, groups: Any = None, tf32: bool = False, config: Config | BlackwellConfig | None = None,
    stream: Any = None,
) -> None:  # fmt: skip
    """out = activation(scale * (a @ b) + bias) + residual, summed in float32, or in int32 for integers (modulo 2**32).

    a: (m, k) or (batch, m, k). b: (k, n) or (batch, k, n). Both of bfloat16, or of float16, or of float32 (with
    tf32=True: the tensor cores see 10 of its 23 bits of mantissa), or of 8-bit floats, or of int8 and uint8. One of the
    last two dimensions is contiguous (for other than 16-bit types, k), and the stride of the other is a multiple of 16
    bytes. out: (m, n) or (batch, m, n), row-major, of bfloat16, float16 or float32, for integers also int32, which
    takes the sums without scale, bias and the like; with rows of multiples of 16 bytes. It must not overlap what is
    read, except that it may be the residual itself. scale: a number. bias: a row of n numbers.
    activation: ``relu``, ``gelu`` or ``gelu_tanh``. residual: a row-major matrix like out, without a batch. With bias
    or residual, n must be even. groups: an int32 for every 128 rows of a, the index of the matrix of b that multiplies
    them; b may then have any number of matrices, and the product is 0 if it has no such matrix. config: by default the
    fastest by a table of measured times; with a BlackwellConfig, and on Blackwell by default, that kernel is launched,
    which takes no groups. stream: by default the current one of a's library. NumPy arrays are multiplied in the
    simulator. Raises LaunchError E0922 for what cannot be multiplied, and like a launch.
    """
    product = _Product(
        a, b, out, scale=scale, bias=bias, activation=activation, residual=residual, groups=groups, tf32=tf32,
        config=config,
    )  # fmt: skip
    launcher = product.kernel[product.grid, product.threads]
    target = None if host_memory(a) is None else "sim"
    launcher(*product.arguments, smem=product.smem, pdl=product.pdl, stream=stream, target=target)


def prepare_gemm(
    a: Any, b: Any, out: Any, *, scale: float | None = None, bias: Any = None, activation: str | None = None,
    residual: Any = None, groups: Any = None, tf32: bool = False, config: Config | BlackwellConfig | None = None,
    stream: Any = None,
) -> Callable[[], None]:  # fmt: skip
    """Like ``gemm``, for arrays on a device: returns a function that launches the product each time it is called."""
    if host_memory(a) is not None:
        raise wrong("a prepared product is launched on a device, but a is in host memory", "call gemm")
    product = _Product(
        a, b, out, scale=scale, bias=bias, activation=activation, residual=residual, groups=groups, tf32=tf32,
        config=config,
    )  # fmt: skip
    arguments, grid, threads = product.arguments, product.grid, product.threads
    return product.kernel.prepare(grid, threads, *arguments, smem=product.smem, pdl=product.pdl, stream=stream)


class _Product:
    """A launch of the kernel, worked out of the arguments."""

    def __init__(
        self, a: Any, b: Any, out: Any, *, scale: float | None = None, bias: Any = None, activation: str | None = None,
        residual: Any = None, groups: Any = None, tf32: bool = False, config: Config | BlackwellConfig | None = None,
    ) -> None:  # fmt: skip
        left, right, result = Matrices("a", a, _OPERANDS), Matrices("b", b, _OPERANDS), Matrices("out", out, _RESULTS)
        _check_types(left, right, result, tf32)
        _check_matrices(left, right, result, groups is not None)
        m, k, n = left.rows, left.cols, right.cols
        names, fields = _epilogue(scale, bias, activation, residual, result)
        if result.dtype == "int32" and names != "Identity":
            raise wrong(
                "sums in int32 are stored as they are", "give an out of a float type with scale, bias and the like"
            )
        count = _multiprocessors(a)
        self.pdl = True
        if not isinstance(config, Config | BlackwellConfig | None):
            raise wrong(f"config is a Config or a BlackwellConfig, not {shown(config)}")
        if config is None and _on_blackwell(a):
            config = choose_blackwell(m, n, left.batch, count)
        if isinstance(config, BlackwellConfig):
            if groups is not None:
                raise wrong("products on Blackwell have no groups", "multiply each group's rows by its matrix")
            if left.dtype != right.dtype:
                raise wrong(f"on Blackwell a and b are of one type, not of {left.dtype} and {right.dtype}")
            if left.dtype in _INTEGERS8 and not left.host and not multiplies_bytes(_device(a)):
                raise wrong(f"the tensor cores of {_device(a)} multiply no {left.dtype}", "convert a and b to float16")
            made = launch_of(left, right, result, names, fields, config, count)
            self.kernel, self.grid, self.threads, self.smem = made.kernel, made.grid, made.threads, made.smem
            self.arguments: tuple[Any, ...] = made.arguments
            self.pdl = False  # the kernel does not wait for the one before
            return
        b_of, numbers = _groups(groups, left, result)
        kind = Kind(
            left.itemsize, result.itemsize, left.transposed, not right.transposed, groups is not None,
            residual is not None,
        )  # fmt: skip
        depth = ROW // left.itemsize
        if config is None:
            config = _chosen(m, n, k, left.batch, count, kind)
        elif (why := fault(config, kind, count)) is not None:
            raise wrong(f"{shown(config)} is not for these matrices: {why}")
        a_rows = config.rows
        if not left.transposed:  # rows outside of A take as long to load as others
            least = 8 * config.across
            a_rows = min(least << ((m - 1) // least).bit_length(), a_rows)
        constants = {
            "T": f"DType.{left.dtype}", "T_B": f"DType.{right.dtype}", "C": f"DType.{result.dtype}", "E": names,
            "B": b_of, "GROUPS": config.groups, "BN": config.columns, "STAGES": config.stages,
            "C_STAGES": config.c_stages, "CLUSTER": config.cluster, "ORDER": config.order, "SPLIT": config.split,
            "SIDEWAYS": config.sideways, "A_ROWS": a_rows, "A_MN": left.transposed, "B_MN": not right.transposed,
        }  # fmt: skip
        self.kernel = _kernel().specialize(**constants)
        self.threads = 128 * (config.groups + 1)
        self.smem = config.shared_bytes(result.itemsize)
        at_once = count // config.blocks
        if config.blocks > 2 and host_memory(a) is None:  # clusters lie in parts of the card of uneven sizes
            at_once = self.kernel.occupancy(self.threads, smem=self.smem).clusters or at_once
        self.grid = min(config.clusters(m, n) * left.batch, at_once) * config.blocks
        self.arguments = (
            left.map(depth if left.transposed else a_rows // config.across),
            right.map(config.columns // config.down if right.transposed else depth),
            result.map(64, config.box(result.itemsize)),
            m, n, k, left.batch, fields, numbers,
        )  # fmt: skip


def _check_types(left: Matrices, right: Matrices, result: Matrices, tf32: Any) -> None:
    """Raises LaunchError E0922 for types that tensor cores do not multiply, or not in the result's."""
    if type(tf32) is not bool:
        raise wrong(f"tf32 is True or False, not {shown(tf32)}")
    alike = next((types for types in (_FLOATS8, _INTEGERS8) if left.dtype in types), (left.dtype,))
    if right.dtype not in alike:
        raise wrong(f"a is of {left.dtype}, b of {right.dtype}", "convert one of them")
    if (left.dtype == "float32") != tf32:
        if tf32:
            raise wrong(f"tf32 is for matrices of float32, and a is of {left.dtype}")
        raise wrong(
            "tensor cores see 10 bits of the 23 behind the point in a float32", "say tf32=True where that is enough"
        )
    if result.dtype == "int32" and left.dtype not in _INTEGERS8:
        raise wrong(f"out is of int32, and sums of {left.dtype} are of float32")


def _check_matrices(left: Matrices, right: Matrices, result: Matrices, grouped: bool) -> None:
    """Raises LaunchError E0922 for matrices that have no product, or one that cannot be stored."""
    check_beside(right.name, right.host, left)
    check_beside(result.name, result.host, left)
    if right.rows != left.cols or (result.rows, result.cols) != (left.rows, right.cols):
        shapes = " and ".join(str(matrices.shape) for matrices in (left, right))
        raise wrong(f"matrices of {shapes} have no product of {result.shape}")
    if left.batch != result.batch or (not grouped and left.batch != right.batch):
        help = "where one multiplies all, give a view of as many: numpy.broadcast_to(…), PyTorch's expand(…)"
        raise wrong(f"batches of {left.batch}, {right.batch} and {result.batch} matrices", help)
    if result.transposed:
        raise wrong("out must be stored by rows", "give its transpose, of b and a exchanged and transposed")
    if result.readonly:
        raise wrong("out is read-only")
    if result.cols * result.itemsize % STRIDE:  # so a card stores them
        help = "tensor copies would write behind them: pad b and out with columns, and take those that are wanted"
        raise wrong(f"out has rows of {result.cols * result.itemsize} bytes, no multiple of {STRIDE}", help)
    if result.lies_over_itself():
        raise wrong("out has elements that share memory", "give an array of its own for each")
    for operand, other_major in ((left, left.transposed), (right, not right.transposed)):
        if operand.lies_over(result):
            raise wrong(f"out lies over {operand.name}", "a product is written while its operands are read")
        if other_major and operand.itemsize != 2:
            must = (
                f"{operand.name}, of {operand.dtype}, is not contiguous along k, and only types of 16 bits need not be"
            )
            raise wrong(must, f"give {operand.contiguous_otherwise()}")


@cache
def _chosen(m: int, n: int, k: int, batches: int, count: int, kind: Kind) -> Config:
    """The configuration, of those that are for the matrices, on so many multiprocessors."""
    usable = [config for config in CONFIGS if fault(config, kind, count) is None]
    return choose(m, n, k * kind.itemsize, batches, count, usable)


def _epilogue(
    scale: float | None, bias: Any, activation: str | None, residual: Any, result: Matrices
) -> tuple[str, tuple[Any, ...]]:
    """The epilogue's type, and its fields."""
    steps: list[tuple[str, tuple[Any, ...]]] = []
    if scale is not None:
        steps.append(("Scale", (_factor(scale),)))
    if bias is not None:
        row = seen("bias", bias)
        if row.shape != (result.cols,):
            raise wrong(f"a bias of the shape {row.shape} for {result.cols} columns")
        check_addend("bias", row, result)
        check_apart("bias", row, result)
        steps.append((f"Bias[DType.{row.dtype}]", (bias, result.cols)))
    if activation is not None:
        if not isinstance(activation, str) or activation not in _ACTIVATIONS:
            raise wrong(f"there is no activation {shown(activation)}", f"give one of {', '.join(_ACTIVATIONS)}")
        steps.append((_ACTIVATIONS[activation], ()))
    if residual is not None:
        matrix = seen("residual", residual)
        if result.batch != 1:
            raise wrong(f"a batch of {result.batch} products has no residual", "add it to out afterwards")
        if matrix.shape not in ((result.rows, result.cols), result.shape):
            raise wrong(f"a residual of the shape {matrix.shape} for a result of {result.shape}")
        check_addend("residual", matrix, result)
        if not result.is_all_of(matrix):
            check_apart("residual", matrix, result)
        steps.append((f"Residual[DType.{matrix.dtype}]", (residual, result.rows, result.cols, 1.0)))
    if not steps:
        return "Identity", ()
    name, fields = steps[-1]
    for before, given in reversed(steps[:-1]):
        name, fields = f"Then[{before}, {name}]", (given, fields)
    return name, fields


def _factor(scale: Any) -> float:
    """A number that float32 has room for."""
    if not is_real(scale):
        raise wrong(f"scale is a number, not {shown(scale)}", "convert it: float(…)")
    try:
        encode_float(float(scale), "float32")
    except OverflowError as large:
        raise wrong(f"scale is a float32: {large}") from None
    return float(scale)


def _groups(groups: Any, left: Matrices, result: Matrices) -> tuple[str, tuple[Any, ...]]:
    """Which matrix of B belongs to some rows: the type that says it, and its fields."""
    if groups is None:
        return "SameMatrix", ()
    found = seen("groups", groups)
    if left.batch != 1:
        raise wrong(f"with groups of rows, a is one matrix, not {left.batch}", "put its matrices below one another")
    wanted = -(-left.rows // GROUP_ROWS)
    if found.shape != (wanted,) or found.dtype != "int32":
        raise wrong(
            f"groups of {found.dtype} of the shape {found.shape} for a matrix of {left.shape}",
            f"give an int32 for each {GROUP_ROWS} rows: {wanted}",
        )
    if not found.contiguous:
        raise wrong("groups is not contiguous", "copy it")
    check_apart("groups", found, result)
    return "MatrixOfRows", (groups, GROUP_ROWS)


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
