"""The types of the language and their machine types. Those of structs are in ``elaborate/entities.py``.

Element types, scalars, vectors and the types of compile-time values exist once each: comparing them is comparing
objects, which elaboration does some hundred times a line.
"""

from __future__ import annotations

from ptxdsl import tir
from ptxdsl.record import dataclass


@dataclass(frozen=True, eq=False)
class DType:
    """An element type, one of DTYPES: Mojo's name, ``kind`` (bool, int, uint, float), bits, and the machine type."""

    name: str
    kind: str
    bits: int
    ty: tir.Ty

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def signed(self) -> bool:
        return self.kind == "int"

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and greatest integer of an integer type."""
        if self.kind == "int":
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    def __str__(self) -> str:
        return f"DType.{self.name}"


DTYPES = {
    d.name: d
    for d in (
        DType("bool", "bool", 8, tir.I1),
        *(DType(f"int{n}", "int", n, tir.Ty(f"i{n}")) for n in (8, 16, 32, 64)),
        *(DType(f"uint{n}", "uint", n, tir.Ty(f"i{n}")) for n in (8, 16, 32, 64)),
        DType("int", "int", 64, tir.I64),
        DType("uint", "uint", 64, tir.I64),
        DType("float16", "float", 16, tir.F16),
        DType("bfloat16", "float", 16, tir.BF16),
        DType("float32", "float", 32, tir.F32),
        DType("float64", "float", 64, tir.F64),
        DType("float8_e4m3fn", "float", 8, tir.F8E4M3),
        DType("float8_e5m2", "float", 8, tir.F8E5M2),
    )
}

# The short names of the scalar types, as Mojo spells them.
SCALAR_NAMES = {
    "Bool": "bool", "Int": "int", "UInt": "uint",
    **{f"Int{n}": f"int{n}" for n in (8, 16, 32, 64)}, **{f"UInt{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    "Byte": "uint8", "Float16": "float16", "BFloat16": "bfloat16", "Float32": "float32", "Float64": "float64",
    "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2",
}  # fmt: skip
_SHORT = {dtype: short for short, dtype in SCALAR_NAMES.items() if short != "Byte"}

SPACES = {
    "GENERIC": "generic", "GLOBAL": "global", "SHARED": "shared", "CONSTANT": "const", "LOCAL": "local",
    "SHARED_CLUSTER": "cluster",
}  # fmt: skip


class Type:
    """Base of all types. Types are compared by value; struct instances by declaration and parameters."""

    __slots__ = ()

    @property
    def at_runtime(self) -> bool:
        """Whether a value can live in registers (literals, strings and types cannot)."""
        return False


class MetaType(Type):
    """The types of compile-time values: ``IntLiteral FloatLiteral StaticString DType AnyType AddressSpace Origin
    Function Module NoneType``, and the traits."""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    name: str

    def __new__(cls, name: str) -> MetaType:
        known = _META_TYPES.get(name)
        if known is None:
            known = super().__new__(cls)
            known.name = name
            known = _META_TYPES.setdefault(name, known)
        return known

    def __str__(self) -> str:
        return self.name


_META_TYPES: dict[str, MetaType] = {}

INT_LITERAL, FLOAT_LITERAL = MetaType("IntLiteral"), MetaType("FloatLiteral")
STRING, DTYPE, ANY_TYPE = MetaType("StaticString"), MetaType("DType"), MetaType("AnyType")
SPACE, ORIGIN, FUNCTION, MODULE, NONE = (
    MetaType("AddressSpace"), MetaType("Origin"), MetaType("Function"), MetaType("Module"), MetaType("NoneType"),
)  # fmt: skip
RANGE = MetaType("Range")
TENSOR_MAP = MetaType("TensorMap")


class SimdType(Type):
    """``SIMD[dtype, width]``; a width of 1 is a scalar. ty: the machine type."""

    __slots__ = ("dtype", "ty", "width")
    __match_args__ = ("dtype", "width")

    dtype: DType
    width: int
    ty: tir.Ty

    def __new__(cls, dtype: DType, width: int = 1) -> SimdType:
        known = _SIMD_TYPES.get((dtype, width))
        if known is None:
            known = super().__new__(cls)
            known.dtype, known.width, known.ty = dtype, width, tir.Ty(dtype.ty.name, width)
            known = _SIMD_TYPES.setdefault((dtype, width), known)
        return known

    @property
    def at_runtime(self) -> bool:
        return True

    @property
    def scalar(self) -> SimdType:
        return SimdType(self.dtype)

    def __str__(self) -> str:
        return _SHORT[self.dtype.name] if self.width == 1 else f"SIMD[{self.dtype}, {self.width}]"


_SIMD_TYPES: dict[tuple[DType, int], SimdType] = {}

BOOL, INT, UINT = SimdType(DTYPES["bool"]), SimdType(DTYPES["int"]), SimdType(DTYPES["uint"])
INT32, UINT32, UINT64 = SimdType(DTYPES["int32"]), SimdType(DTYPES["uint32"]), SimdType(DTYPES["uint64"])
FLOAT32, FLOAT64 = SimdType(DTYPES["float32"]), SimdType(DTYPES["float64"])


@dataclass(frozen=True)
class PointerType(Type):
    """``Pointer[elem, origin, address_space=space]``. The origin's mutability counts, its identity does not.

    A generic pointer's machine value may be narrower (a kernel's pointer parameter is known to be global memory).
    """

    elem: Type
    space: str = "generic"
    mutable: bool = True

    @property
    def at_runtime(self) -> bool:
        return True

    @property
    def ty(self) -> tir.Ty:
        return tir.ptr(self.space)

    def __str__(self) -> str:
        origin = "MutAnyOrigin" if self.mutable else "ImmutAnyOrigin"
        name = next(k for k, v in SPACES.items() if v == self.space)
        space = "" if self.space == "generic" else f", address_space=AddressSpace.{name}"
        return f"Pointer[{self.elem}, {origin}{space}]"


@dataclass(frozen=True)
class ArrayType(Type):
    """``Array[elem, size]``: in registers."""

    elem: Type
    size: int

    @property
    def at_runtime(self) -> bool:
        return self.elem.at_runtime

    def __str__(self) -> str:
        return f"Array[{self.elem}, {self.size}]"


@dataclass(frozen=True)
class TupleType(Type):
    items: tuple[Type, ...]

    @property
    def at_runtime(self) -> bool:
        return all(t.at_runtime for t in self.items)

    def __str__(self) -> str:
        return f"Tuple[{', '.join(map(str, self.items))}]"
