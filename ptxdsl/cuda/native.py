"""Launches without the interpreter: two functions in machine code, made by LLVM when launches are seen to be frequent.

A checked launch of arguments that have been accepted before (``fast.py``) and a prepared one become functions of
Python's own kind (``native_launch.ll``): they look at the arguments by Python's C API, at tensors by DLPack's exchange
functions, and call the driver. What they do not know they leave to the next slower way. Source: Python/C API, "Common
Object Structures"; DLPack 1.3, dlpack.h, DLPackExchangeAPI.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from ptxdsl.cuda.arguments import Packer
from ptxdsl.cuda.arrays import is_tensor_map
from ptxdsl.cuda.driver_interface import Device, Driver
from ptxdsl.cuda.library import LaunchConfig
from ptxdsl.cuda.scalars import SCALARS
from ptxdsl.cuda.streams import current_of, library_of
from ptxdsl.record import dataclass
from ptxdsl.signature import Param, PointerParam, ScalarParam, TensorMapParam

CHECKED, PREPARED = "ptxdsl_checked", "ptxdsl_prepared"
# What the code calls and looks at by name; the addresses are those of the running interpreter.
API = (
    "PyBytes_AsString", "PyBytes_Size", "PyTuple_Size", "PyTuple_GetItem", "PyLong_AsLongLongAndOverflow",
    "PyLong_AsUnsignedLongLong", "PyLong_AsDouble", "PyFloat_AsDouble", "PyLong_FromLongLong", "PyObject_GetAttr",
    "PyObject_CallOneArg", "Py_DecRef", "Py_IncRef", "PyErr_Occurred", "PyErr_Clear", "PyEval_SaveThread",
    "PyEval_RestoreThread",
)  # fmt: skip
OBJECTS = ("_Py_NoneStruct", "PyLong_Type")

INTEGER, UNSIGNED, BOOL, REAL, TENSOR, BYTES = range(6)
FIXED, FUNCTION, OBJECT = range(3)  # how the stream is got
Native = Callable[..., int]  # checked: (arguments, stream), prepared: (); gives the driver's result or -1
RECENT = 8  # launches that are remembered

_FASTCALL, _NOARGS = 0x80, 0x04
_OBJECT_TYPE_OFFSET = 8  # bytes, of a PyObject

# DLPack's code, bits and lanes of the types that kernels have.
_DLPACK_TYPES = {
    name: code | bits << 8 | 1 << 16
    for name, code, bits in (
        *((f"int{bits}", 0, bits) for bits in (8, 16, 32, 64)),
        *((f"uint{bits}", 1, bits) for bits in (8, 16, 32, 64)),
        *((f"float{bits}", 2, bits) for bits in (16, 32, 64)),
        ("bfloat16", 4, 16),
        ("bool", 6, 8),
        ("float8_e4m3fn", 10, 8),
        ("float8_e5m2", 12, 8),
    )
}  # fmt: skip


class _Argument(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("offset", ctypes.c_int32),
        ("type", ctypes.c_void_p),
        ("a", ctypes.c_int64),
        ("b", ctypes.c_int64),
        ("c", ctypes.c_int64),
    )


class _Call(ctypes.Structure):
    """What ``self`` of the functions begins with; the arguments follow."""

    _fields_ = (
        ("launch", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("number", ctypes.c_int64),
        ("ring", ctypes.c_void_p),
        ("stream_mode", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("stream", ctypes.c_void_p),
        ("device_object", ctypes.c_void_p),
        ("device_now", ctypes.c_void_p),
        ("config", LaunchConfig),
        ("count", ctypes.c_int64),
        ("size", ctypes.c_int64),
    )


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Exchange(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("earlier", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in ("allocate", "from_object", "to_object", "tensor", "stream")),
    )


@dataclass(frozen=True)
class Argument:
    """One row of a call's description; kept: objects whose addresses are in it."""

    kind: int
    type: type
    a: int = 0
    b: int = 0
    c: int = 0
    kept: tuple[Any, ...] = ()


def describe(param: Param, value: Any) -> Argument | None:
    """How an argument of this class is checked and packed; None where that is left to Python. The value has been
    accepted for the parameter."""
    kind = type(value)
    if isinstance(param, ScalarParam):
        return _scalar(param.dtype, kind)
    if isinstance(param, PointerParam):
        api = exchange(kind)
        dtype = {"int": "int64", "uint": "uint64"}.get(param.dtype, param.dtype)
        if api is None or not api.tensor or dtype not in _DLPACK_TYPES:
            return None
        return Argument(TENSOR, kind, api.tensor, _DLPACK_TYPES[dtype], max(param.align, 1) - 1)
    if isinstance(param, TensorMapParam):
        if kind is bytes:
            return Argument(BYTES, kind)
        if not is_tensor_map(value):
            return None
        form = value.form if param.needs_form else None
        return Argument(BYTES, kind, id(_DATA), id(_FORM), 0 if form is None else id(form), kept=(form,))
    return None


_DATA, _FORM = sys.intern("data"), sys.intern("form")


def _scalar(dtype: str, kind: type) -> Argument | None:
    form = SCALARS[dtype]
    if form.kind == "bool":
        return Argument(BOOL, kind, id(True)) if kind is bool else None
    if form.kind == "float":
        known = form.format and kind in (int, float)
        return Argument(REAL, kind, int(kind is int), form.size) if known else None
    if kind is not int:
        return None
    least, most = form.range
    return Argument(UNSIGNED, kind) if most >= 2**63 else Argument(INTEGER, kind, least, most)


_exchanges: dict[type, _Exchange | None] = {}


def exchange(kind: type) -> _Exchange | None:
    """The functions by which a library lets others look at its arrays without the interpreter."""
    if kind not in _exchanges:
        _exchanges[kind] = _exchange(kind)
    return _exchanges[kind]


def _exchange(kind: type) -> _Exchange | None:
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    valid, pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
    valid.argtypes, valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
    pointer.argtypes, pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    if capsule is None or not valid(capsule, b"dlpack_exchange_api"):
        return None
    address = pointer(capsule, b"dlpack_exchange_api")
    while address:
        found = _Exchange.from_address(address)
        if found.major == 1:
            return found
        address = found.earlier
    return None


# ------------------------------------------------------------------------------------------------------------ functions


class Functions:
    """The machine code of this process, and the calls that were made by it last: their plans' numbers in a ring."""

    def __init__(self) -> None:
        # imported here: LLVM is loaded when launches are seen to be frequent
        import llvmlite.binding as llvm

        from ptxdsl.sim.translate.host_code import compile_ir

        for name in (*API, *OBJECTS):
            llvm.add_symbol(name, ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name)))
        self._code = compile_ir(_code(), 3, "launch")
        self.ring = (ctypes.c_int64 * (1 + RECENT))()
        self._methods = {
            name: _Method(name.encode(), self._code.address(name), flags, None)
            for name, flags in ((CHECKED, _FASTCALL), (PREPARED, _NOARGS))
        }
        self._new = ctypes.pythonapi.PyCFunction_NewEx
        self._new.argtypes, self._new.restype = (ctypes.c_void_p, ctypes.py_object, ctypes.py_object), ctypes.py_object

    def make(self, name: str, description: bytes, kept: Any) -> Native:
        """A function of Python; kept: what lives as long as it does, besides the machine code."""
        method = self._methods[name]
        made: Native = self._new(ctypes.addressof(method), description, (kept, self))
        return made

    def latest(self) -> list[int]:
        """Numbers of plans, the latest first."""
        made = self.ring[0]
        return [self.ring[1 + (made - 1 - i) % RECENT] for i in range(min(made, RECENT))]


def _code() -> str:
    from pathlib import Path

    here = Path(__file__).parent
    return "".join((here / f"native_{part}.ll").read_text(encoding="utf-8") for part in ("arguments", "launch"))


@functools.cache
def functions() -> Functions | None:
    """None where this interpreter is not one whose objects we know, or LLVM cannot make code for it."""
    if sys.implementation.name != "cpython" or sys.maxsize < 2**32 or not _with_lock() or not _objects_are_known():
        return None
    try:
        return Functions()
    except (ImportError, RuntimeError, OSError, ValueError, AttributeError):
        return None


def _with_lock() -> bool:
    enabled = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())


def _objects_are_known() -> bool:
    """Whether an object's type stands where the machine code looks for it."""
    samples: tuple[Any, ...] = (1, 1 << 80, 0.5, "text", b"bytes", (1,), None, True, ctypes.c_int())
    return all(
        ctypes.c_void_p.from_address(id(sample) + _OBJECT_TYPE_OFFSET).value == id(type(sample)) for sample in samples
    )


# ---------------------------------------------------------------------------------------------------------------- calls

_numbers = count(1)
_plans: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def number_of(plan: Any) -> int:
    """A number for a plan, by which ``latest`` finds it again."""
    number = next(_numbers)
    _plans[number] = plan
    return number


def latest() -> list[Any]:
    """The plans of the latest launches by machine code, the latest first."""
    found = functions() if functions.cache_info().currsize else None
    plans = [] if found is None else [_plans.get(number) for number in found.latest()]
    return [plan for plan in plans if plan is not None]


@dataclass(frozen=True)
class Stream:
    """How a call gets its stream: ``value`` is a handle, the address of a C function, or a Python function of the
    device's ordinal."""

    mode: int
    value: Any = 0


class Natives:
    """The quick launches in machine code of one loaded kernel: what its arguments were like, and whether to make any.

    wanted: launches are frequent.
    """

    def __init__(self, driver: Driver, device: Device, packer: Packer) -> None:
        self._driver = driver
        self._device = device
        self._packer = packer
        self._kinds: list[tuple[tuple[Argument, ...], Stream]] = []
        self._function = 0
        self.wanted = False

    def describe(self, arguments: Sequence[Any], library: str | None) -> None:
        """Remembers arguments that have been accepted, if there is a way for them. library: whose current stream they
        go to."""
        if self._driver.addresses is None:
            return
        others = [value for value in arguments if not is_tensor_map(value)]
        if len(others) < len(arguments) and (library_of(others) is None or self._driver.devices > 1):
            return  # machine code does not see whose arrays the tensor maps are on, nor on which device
        rows = [describe(p, v) for p, v in zip(self._packer.signature.params, arguments, strict=True)]
        found = tuple(row for row in rows if row is not None)
        if len(found) == len(rows) and (library is not None or all(row.kind != TENSOR for row in found)):
            self._kinds.append((found, stream_of(arguments, library)))

    def add_to(self, plan: Any) -> None:
        """Makes the functions that a plan does not have yet."""
        if self.wanted and len(plan.native) < len(self._kinds) and functions() is not None:
            for arguments, stream in self._kinds[len(plan.native) :]:
                plan.native.append(self.make(CHECKED, plan, stream, arguments))

    def make(
        self, name: str, plan: Any, stream: Stream, arguments: Sequence[Argument] = (), parameters: bytes = b""
    ) -> Native:
        """A function for a plan. parameters: of a prepared launch."""
        ready, addresses = functions(), self._driver.addresses
        assert ready is not None and addresses is not None
        plan.number = plan.number or number_of(plan)
        ordinal, config = self._device.ordinal, plan.structure(0)
        offsets = self._packer.offsets
        made = _Call(
            addresses[0],
            plan.kernel.function.handle,
            plan.number,
            ctypes.addressof(ready.ring),
            stream.mode,
            ordinal,
            (id(stream.value) if stream.mode == OBJECT else stream.value) or None,
            id(ordinal),
            None if self._driver.devices == 1 else addresses[1],
            config,
            len(offsets),
            self._packer.size,
        )
        rows = [_Argument(a.kind, at, id(a.type), a.a, a.b, a.c) for a, at in zip(arguments, offsets, strict=False)]
        if not arguments:
            rows = [_Argument(0, at) for at in offsets]
        description = bytes(made) + b"".join(map(bytes, rows)) + parameters
        return ready.make(name, description, (ordinal, stream, config, tuple(arguments), plan.kernel.function.code))


def stream_of(arguments: Sequence[Any], library: str | None) -> Stream:
    """The current stream of a library, by the quickest way there is."""
    current = None if library is None else current_of(library)
    if current is None:
        return Stream(FIXED)
    for value in arguments:
        api = exchange(type(value)) if library_of([value]) == library else None
        if api is not None and api.stream:
            return Stream(FUNCTION, api.stream)
    return Stream(OBJECT, current)
