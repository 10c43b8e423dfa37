"""Arguments of a launch: checked against the kernel's signature, then laid out as the driver takes them.

Nothing reaches the driver before every argument has passed.
"""

from __future__ import annotations

import ctypes
import numbers
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ptxdsl.cuda.arrays import ArrayView, default_stream, is_tensor_map, view
from ptxdsl.cuda.driver_interface import Device, Driver
from ptxdsl.cuda.scalars import SCALARS, encode_float, encode_integer, is_real
from ptxdsl.cuda.tensor_box import misfit
from ptxdsl.diagnostics import LaunchError, counted, launch_error
from ptxdsl.record import dataclass
from ptxdsl.shown import written
from ptxdsl.signature import BytesParam, KernelSignature, Param, PointerParam, ScalarParam, StructParam, TensorMapParam
from ptxdsl.source import Span

TENSOR_MAP_BYTES = 128
ALIGNMENT = 64  # of parameters in memory, in bytes: what a tensor map wants
TYPE_NAMES = {
    name: {"bool": "Bool", "bfloat16": "BFloat16", "uint": "UInt"}.get(
        name, "UInt" + name[4:] if name.startswith("uint") else name[:1].upper() + name[1:]
    )
    for name in SCALARS
}  # int32 → Int32, as the kernel's text writes it


@dataclass
class Packed:
    """Kernel parameters in host memory, at ``offset`` in ``buffer``. pointers: the driver's array, one pointer a
    parameter. arrays are kept with the names of their arguments for the checks that need the device."""

    buffer: bytearray
    offset: int
    pointers: ctypes.Array[ctypes.c_void_p] | None
    arrays: list[tuple[str, ArrayView]]

    @property
    def pointer(self) -> Any:
        """The driver's array as a pointer, which keeps it alive; None where there are no parameters."""
        return None if self.pointers is None else ctypes.byref(self.pointers)


class Packer:
    """The signature of one kernel, ready to check and pack any number of calls.

    spans: where the kernel's text declares each parameter, for the errors.
    """

    wanted_arrays = "give a PyTorch, CuPy, JAX or Numba array"

    def __init__(self, signature: KernelSignature, spans: Mapping[str, Span]) -> None:
        self.signature = signature
        self.spans = spans
        self.offsets: list[int] = []
        self.size = 0
        for param in signature.params:
            self._lay_out(param)

    def _lay_out(self, param: Param) -> None:
        if isinstance(param, StructParam):
            for field in param.fields:
                self._lay_out(field)
            return
        size, align = 8, 8
        if isinstance(param, ScalarParam):
            size = align = SCALARS[param.dtype].size
        elif isinstance(param, TensorMapParam):
            size, align = TENSOR_MAP_BYTES, 64
        elif isinstance(param, BytesParam):
            size, align = param.size, param.align
        offset = -(-self.size // align) * align
        self.offsets.append(offset)
        self.size = offset + size

    def empty(self) -> Packed:
        """Room for the parameters, all zero."""
        buffer = bytearray(self.size + ALIGNMENT)
        start = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        offset = -start % ALIGNMENT
        addresses = (start + offset + place for place in self.offsets)
        pointers = (ctypes.c_void_p * len(self.offsets))(*addresses) if self.offsets else None
        return Packed(buffer, offset, pointers, [])

    def pack(self, arguments: Sequence[Any], stream: Callable[[], int] | None = None) -> Packed:
        """stream: gives the handle of the stream that the kernel will run on. Raises LaunchError with one diagnostic
        for every argument that is wrong."""
        packed = self.empty()
        self.fill(packed, arguments, stream)
        return packed

    def fill(self, packed: Packed, arguments: Sequence[Any], stream: Callable[[], int] | None = None) -> None:
        """``pack`` into room that is there. Raises as it does, with nothing changed."""
        leaves, arrays = self.leaves(arguments, stream)
        for place, data in zip(self.offsets, leaves, strict=True):
            packed.buffer[packed.offset + place : packed.offset + place + len(data)] = data
        packed.arrays = arrays

    def leaves(
        self, arguments: Sequence[Any], stream: Callable[[], int] | None = None
    ) -> tuple[list[Any], list[tuple[str, ArrayView]]]:
        """What each leaf of the parameters gets, in their order, and the arrays. Raises as ``pack`` does."""
        params = self.signature.params
        if len(arguments) != len(params):
            wanted = ", ".join(f"{p.name}: {type_text(p)}" for p in params)
            raise launch_error(
                "E0903",
                f"kernel '{self.signature.name}' takes {counted(len(params), 'argument')} ({wanted}), "
                f"got {len(arguments)}",
            )
        leaves: list[Any] = []
        arrays: list[tuple[str, ArrayView]] = []
        problems: list[LaunchError] = []
        for param, value in zip(params, arguments, strict=True):
            try:
                self._leaf(param, param.name, value, leaves, arrays, stream or default_stream)
            except LaunchError as problem:
                problems.append(problem)
        if problems:
            raise LaunchError(d for p in problems for d in p.diagnostics)
        return leaves, arrays

    def check_device(self, arrays: Sequence[tuple[str, ArrayView]], device: Device, driver: Driver) -> None:
        """Every array must lie on the device that the kernel will run on."""
        for path, array in arrays:
            ordinal = array.ordinal
            if ordinal is None and array.address:
                ordinal = driver.pointer_device(array.address)
                if ordinal is None:
                    raise self._error("E0905", path, "is not in device memory", "copy the array to the GPU first")
            if ordinal is not None and ordinal != device.ordinal:
                raise self._error(
                    "E0905",
                    path,
                    f"is on device {ordinal}, but the kernel would run on the current {device}",
                    f"make device {ordinal} current (torch.cuda.device({ordinal}), cupy.cuda.Device({ordinal}).use()) "
                    "or copy the array",
                )

    def _leaf(
        self, param: Param, path: str, value: Any, leaves: list[Any], arrays: list[tuple[str, ArrayView]],
        stream: Callable[[], int],
    ) -> None:  # fmt: skip
        if isinstance(param, StructParam):
            for field, item in zip(param.fields, self._fields(param, path, value), strict=True):
                self._leaf(field, f"{path}.{field.name}", item, leaves, arrays, stream)
        elif isinstance(param, PointerParam):
            array, leaf = self._pointer(param, path, value, stream)
            leaves.append(leaf)
            arrays.append((path, array))
        elif isinstance(param, TensorMapParam):
            self._check_box(param, path, value)
            leaves.append(self._tensor_map(path, value))
            mapped = self._mapped(value, stream)
            if mapped is not None:
                arrays.append((path, mapped))
        elif isinstance(param, BytesParam):
            if not isinstance(value, bytes) or len(value) != param.size:
                raise self._error("E0904", path, f"is {type_text(param)}; got {_describe(value)}")
            leaves.append(value)
        else:
            leaves.append(self._scalar(param, path, value))

    def _fields(self, param: StructParam, path: str, value: Any) -> Sequence[Any]:
        names = [f.name for f in param.fields]
        if isinstance(value, Mapping):
            if set(value) == set(names):
                return [value[name] for name in names]
            given = ", ".join(sorted(map(str, value))) or "none"
            raise self._error("E0904", path, f"is the struct {param.type} with fields {', '.join(names)}; got {given}")
        if isinstance(value, tuple | list):
            if len(value) == len(names):
                return value
            raise self._error(
                "E0904",
                path,
                f"is the struct {param.type} with {counted(len(names), 'field')}; got {counted(len(value), 'value')}",
            )
        raise self._error(
            "E0904",
            path,
            f"is the struct {param.type}; got {_describe(value)}",
            f"give its fields as a tuple or a dict: {{{', '.join(f'{n!r}: …' for n in names)}}}",
        )

    def _pointer(self, param: PointerParam, path: str, value: Any, stream: Callable[[], int]) -> tuple[ArrayView, Any]:
        """The array and what its parameter gets: its address."""
        array = self._array(param, path, value, stream)
        if array.host:
            raise self._error(
                "E0905",
                path,
                f"is in host memory ({array.owner}, {array.dtype})",
                "copy it to the GPU first: ptxdsl.to_device(a), torch.from_numpy(a).cuda() or cupy.asarray(a)",
            )
        self._check_elements(param, path, array)
        self._check_memory(param, path, array)
        return array, array.address.to_bytes(8, "little")

    def _array(self, param: PointerParam, path: str, value: Any, stream: Callable[[], int]) -> ArrayView:
        try:
            array = view(value, stream)
        except (TypeError, AttributeError, KeyError) as refused:
            raise self._error("E0904", path, f"cannot be used as a device array: {refused}") from None
        wanted = type_text(param)
        if array is None:
            instead = "allocate an empty array" if value is None else self.wanted_arrays
            raise self._error("E0904", path, f"is a {wanted}; got {_describe(value)}", instead)
        return array

    def _check_memory(self, param: PointerParam, path: str, array: ArrayView) -> None:
        if not array.contiguous:
            help = f"pass a contiguous copy of it{_in_the_copy(param)}"
            raise self._error("E0906", path, f"is not contiguous (shape {array.shape})", help)
        if array.readonly and param.mutable and array.owner == "jax":
            raise self._error(
                "E0906",
                path,
                "is a JAX array, which is immutable, but the kernel may write through this pointer",
                "write into a copy, or hand the array over: ptxdsl.donate(x)",
            )
        if array.readonly and param.mutable:
            raise self._error(
                "E0906",
                path,
                "is a read-only array, but the kernel may write through this pointer",
                f"where the kernel only reads it, declare it `Pointer[{TYPE_NAMES.get(param.dtype, param.dtype)}, "
                "ImmutAnyOrigin]`; else pass a copy, which gets what the kernel writes",
            )
        if param.align and array.address % param.align:
            raise self._error(
                "E0906",
                path,
                f"starts at address {array.address:#x}, which is not a multiple of {param.align} bytes",
                f"the array is probably a slice of another: pass a copy{_in_the_copy(param)}",
            )

    def _check_elements(self, param: PointerParam, path: str, array: ArrayView) -> None:
        known = {"int": "int64", "uint": "uint64"}.get(param.dtype, param.dtype)
        if known in SCALARS:
            if array.dtype != known:
                what = f"is a {type_text(param)}; got an array of {array.dtype}"
                raise self._error("E0904", path, what, _converted(param, known, array))
        elif array.itemsize != param.size and not (array.itemsize == 1 and array.nbytes % param.size == 0):
            raise self._error(
                "E0904",
                path,
                f"is a {type_text(param)} with {param.size} bytes per element; got an array of {array.dtype}",
                f"give an array of uint8 whose length is a multiple of {param.size}",
            )

    def _tensor_map(self, path: str, value: Any) -> Any:
        """The 128 bytes: those of a map on an array of the device, or bytes as they are."""
        if is_tensor_map(value):
            data = getattr(value, "data", None)
            if data is None:
                raise self._error(
                    "E0905",
                    path,
                    "is a TensorMap of an array in host memory",
                    "make it of an array on the GPU: ptxdsl.TensorMap(ptxdsl.to_device(a), box=…)",
                )
            return data
        help = "make one of the array: ptxdsl.TensorMap(array, box=…)"
        try:
            memory = memoryview(value)
        except (TypeError, ValueError, BufferError):
            raise self._error("E0904", path, f"is a TensorMap; got {_describe(value)}", help) from None
        if memory.format[-1] in "efdg?O":  # floats are elements; a map may come as bytes or as words
            raise self._error("E0904", path, f"is a TensorMap; got an array ({_describe(value)})", help)
        if memory.nbytes != TENSOR_MAP_BYTES:
            what = f"is a TensorMap of {TENSOR_MAP_BYTES} bytes; got {memory.nbytes} bytes"
            raise self._error("E0904", path, what, help)
        return bytes(memory)

    def _check_box(self, param: TensorMapParam, path: str, value: Any) -> None:
        """That a map has the boxes that the kernel's copies move; of one that is 128 bytes that is not known."""
        if is_tensor_map(value) and (wrong := misfit(param, value.description)) is not None:
            raise self._error("E0923", path, f"is a TensorMap that is not for its copies: {wrong[0]}", wrong[1])

    def _mapped(self, value: Any, stream: Callable[[], int]) -> ArrayView | None:
        """The array that a tensor map is on; None where it does not say."""
        return view(value.array, stream) if is_tensor_map(value) else None

    def _scalar(self, param: ScalarParam, path: str, value: Any) -> bytes:
        form = SCALARS[param.dtype]
        wanted = TYPE_NAMES[param.dtype]
        boolean = isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")
        try:
            if form.kind == "bool":
                if boolean:
                    return bytes([bool(value)])
                raise self._error("E0904", path, f"is a Bool; got {_describe(value)}", "give True or False")
            if not boolean and form.kind == "float" and is_real(value):
                return encode_float(float(value), param.dtype)
            if not boolean and isinstance(value, numbers.Integral):
                return encode_integer(operator.index(value), param.dtype)
        except OverflowError as large:
            raise self._error("E0907", path, f"does not fit {wanted}: {large}") from None
        conversion = "float(…)" if form.kind == "float" else "int(…)"
        converts = isinstance(value, str) or hasattr(value, "__int__") or hasattr(value, "__float__")
        help = f"convert it: {conversion}" if converts else None
        raise self._error("E0904", path, f"is {_article(wanted)}; got {_describe(value)}", help)

    def _error(self, code: str, path: str, what: str, help: str | None = None) -> LaunchError:
        span = self.spans.get(path.partition(".")[0])
        return launch_error(code, f"argument '{path}' of kernel '{self.signature.name}' {what}", span, help)


def type_text(param: Param) -> str:
    """A parameter's type as the kernel's text writes it."""
    if isinstance(param, ScalarParam):
        return TYPE_NAMES[param.dtype]
    if isinstance(param, PointerParam):
        return f"Pointer[{TYPE_NAMES.get(param.dtype, param.dtype)}]"
    if isinstance(param, BytesParam):
        return f"{param.size} bytes"
    return param.type if isinstance(param, StructParam) else "TensorMap"


def _converted(param: PointerParam, wanted: str, array: ArrayView) -> str:
    """How an array of another element type becomes one for a pointer, in its library's words."""
    if array.owner == "numpy" and wanted in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        bits = "uint16" if wanted == "bfloat16" else "uint8"
        return f"NumPy has no {wanted}: give an array of {bits} with its bits, or one of ml_dtypes' {wanted}"
    call = {"numpy": f"astype(np.{wanted})", "torch": f"to(torch.{wanted})"}.get(array.owner, f'astype("{wanted}")')
    return f"convert it: a.{call}{_in_the_copy(param)}"


def _in_the_copy(param: PointerParam) -> str:
    return "; what the kernel writes goes there" if param.mutable else ""


def _describe(value: Any) -> str:
    if value is None:
        return "None"
    kind = type(value)
    home = kind.__module__.partition(".")[0]
    name = kind.__name__ if home == "builtins" else f"{home}.{kind.__name__}"
    text = written(value) if isinstance(value, numbers.Number | str) else None
    return f"{name} {text}" if text and len(text) <= 40 else name


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"
