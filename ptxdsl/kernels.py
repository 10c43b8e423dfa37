"""Kernels ready to be called: matrix products on the tensor cores of Hopper and Blackwell.

Here arguments become matrices, an epilogue and groups, and are checked; ``kernels_hopper`` and ``kernels_blackwell``
say how they are cut up and launched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxdsl import kernels_blackwell, kernels_hopper
from ptxdsl.api.program import device_in_use
from ptxdsl.cuda.arrays import device_of
from ptxdsl.cuda.driver import current_driver
from ptxdsl.cuda.driver_interface import Device
from ptxdsl.cuda.host_arguments import host_memory
from ptxdsl.cuda.scalars import encode_float, is_real
from ptxdsl.gemm_configs import GROUP_ROWS, Config, Kind
from ptxdsl.gemm_launch import Launch
from ptxdsl.gemm_operands import STRIDE, Matrices, check_addend, check_apart, check_beside, seen, wrong
from ptxdsl.kernels_blackwell import BlackwellConfig, has_tensor_memory, multiplies_bytes
from ptxdsl.shown import shown

__all__ = ["BlackwellConfig", "Config", "gemm", "gemm_launch", "prepare_gemm"]

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
    made = gemm_launch(
        a, b, out, scale=scale, bias=bias, activation=activation, residual=residual, groups=groups, tf32=tf32,
        config=config,
    )  # fmt: skip
    target = None if host_memory(a) is None else "sim"
    launcher = made.kernel[made.grid, made.threads]
    launcher(*made.arguments, smem=made.smem, pdl=made.pdl, stream=stream, target=target)


def prepare_gemm(
    a: Any, b: Any, out: Any, *, scale: float | None = None, bias: Any = None, activation: str | None = None,
    residual: Any = None, groups: Any = None, tf32: bool = False, config: Config | BlackwellConfig | None = None,
    stream: Any = None,
) -> Callable[[], None]:  # fmt: skip
    """Like ``gemm``, for arrays on a device: returns a function that launches the product each time it is called."""
    if host_memory(a) is not None:
        raise wrong("a prepared product is launched on a device, but a is in host memory", "call gemm")
    made = gemm_launch(
        a, b, out, scale=scale, bias=bias, activation=activation, residual=residual, groups=groups, tf32=tf32,
        config=config,
    )  # fmt: skip
    return made.kernel.prepare(
        made.grid, made.threads, *made.arguments, smem=made.smem, pdl=made.pdl, stream=stream
    )  # fmt: skip


def gemm_launch(
    a: Any, b: Any, out: Any, *, scale: float | None = None, bias: Any = None, activation: str | None = None,
    residual: Any = None, groups: Any = None, tf32: bool = False, config: Config | BlackwellConfig | None = None,
) -> Launch:  # fmt: skip
    """What ``gemm`` launches for these arguments: the kernel with its compile-time values, grid, threads, bytes of
    dynamic shared memory and arguments. Raises LaunchError E0922 as it does."""
    left, right, result = Matrices("a", a, _OPERANDS), Matrices("b", b, _OPERANDS), Matrices("out", out, _RESULTS)
    _check_types(left, right, result, tf32)
    _check_matrices(left, right, result, groups is not None)
    epilogue, fields = _epilogue(scale, bias, activation, residual, result)
    if result.dtype == "int32" and epilogue != "Identity":
        raise wrong("sums in int32 are stored as they are", "give an out of a float type with scale, bias and the like")
    count = _multiprocessors(a)
    if not isinstance(config, Config | BlackwellConfig | None):
        raise wrong(f"config is a Config or a BlackwellConfig, not {shown(config)}")
    if config is None and _on_blackwell(a):
        config = kernels_blackwell.choose(left.rows, right.cols, left.batch, count)
    if isinstance(config, BlackwellConfig):
        _check_blackwell(left, right, groups)
        return kernels_blackwell.launch_of(left, right, result, epilogue, fields, config, count)
    b_of, numbers = _groups(groups, left, result)
    kind = Kind(
        left.itemsize, result.itemsize, left.transposed, not right.transposed, groups is not None, residual is not None
    )
    return kernels_hopper.launch_of(
        left, right, result, epilogue, fields, b_of, numbers, kind, config, count
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
            raise wrong(f"out overlaps {operand.name}", "a product is written while its operands are read")
        if other_major and operand.itemsize != 2:
            must = (
                f"{operand.name}, of {operand.dtype}, is not contiguous along k, and only types of 16 bits need not be"
            )
            raise wrong(must, f"give {operand.contiguous_otherwise()}")


def _check_blackwell(left: Matrices, right: Matrices, groups: Any) -> None:
    """Raises LaunchError E0922 for what Blackwell's kernel or tensor cores do not multiply."""
    if groups is not None:
        raise wrong("products on Blackwell have no groups", "multiply each group's rows by its matrix")
    if left.dtype != right.dtype:
        raise wrong(f"on Blackwell a and b are of one type, not of {left.dtype} and {right.dtype}")
    if left.dtype in _INTEGERS8 and not left.host and not multiplies_bytes(device := _device(left.array)):
        raise wrong(f"the tensor cores of {device} multiply no {left.dtype}", "convert a and b to float16")


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
