"""What every program finds in scope: the names that Mojo has without import, and the standard library's modules.

Filling these scopes takes longer than a small kernel. They are the same for every program, so they are kept in the
process from one compilation to the next, with what was worked out in them: imports followed, ``comptime`` names
evaluated, instances of structs.
"""

from __future__ import annotations

from ptxdsl.elaborate import types
from ptxdsl.elaborate.entities import Comptime, GenericType, Variadic
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.types import MetaType, SimdType
from ptxdsl.elaborate.values import type_value
from ptxdsl.options import Options
from ptxdsl.record import dataclass, field
from ptxdsl.syntax import ast

TRAITS = frozenset({
    "AnyType", "Copyable", "Movable", "ImplicitlyCopyable", "Deinitable", "ImplicitlyDestructible", "Defaultable",
    "RegisterPassable", "TrivialRegisterPassable", "Intable", "Floatable", "Boolable", "Writable", "Stringable",
    "Sized", "Indexer", "Comparable", "Equatable", "EqualityComparable", "Hashable", "DevicePassable", "Absable",
    "UnknownDestructibility", "ExplicitlyCopyable",
})  # fmt: skip
GENERICS = ("SIMD", "Scalar", "Pointer", "MutPointer", "ImmutPointer", "Array", "Tuple")
ORIGINS = {
    "MutAnyOrigin": True, "ImmutAnyOrigin": False, "MutUntrackedOrigin": True, "ImmutUntrackedOrigin": False,
    "MutExternalOrigin": True, "ImmutExternalOrigin": False, "StaticConstantOrigin": False,
}  # fmt: skip

# A library's structs remember their instances, also those that have a program's own types for parameters.
_MOST_USES = 256
_MOST_KEPT = 8  # libraries, one for each set of options


def builtin_scope() -> Scope:
    """The names that Mojo has without import."""
    scope = Scope()
    for name, dtype in types.SCALAR_NAMES.items():
        scope.declare(name, type_value(SimdType(types.DTYPES[dtype])))
    for name in GENERICS:
        scope.declare(name, type_value(GenericType(name)))
    for name in TRAITS:
        scope.declare(name, type_value(MetaType(name)))
    for name, mutable in ORIGINS.items():
        scope.declare(name, Comptime(types.ORIGIN, mutable))
    for name in ("Origin", "MutOrigin", "ImmutOrigin"):
        scope.declare(name, type_value(types.ORIGIN))
    for name in ("print", "inlined_assembly"):
        scope.declare(name, Variadic(name))
    scope.declare("DType", type_value(types.DTYPE))
    scope.declare("AddressSpace", type_value(types.SPACE))
    scope.declare("SIMDLength", type_value(types.INT))
    scope.declare("Range", type_value(types.RANGE))
    scope.declare("NoneType", type_value(types.NONE))
    scope.declare("TensorMap", type_value(types.TENSOR_MAP))
    for name in ("StaticString", "StringLiteral", "String"):
        scope.declare(name, type_value(types.STRING))
    scope.declare("IntLiteral", type_value(types.INT_LITERAL))
    scope.declare("FloatLiteral", type_value(types.FLOAT_LITERAL))
    return scope


@dataclass(eq=False)
class Library:
    """The scopes of one compilation at a time. modules: by their trees, those that were asked for so far."""

    builtins: Scope = field(default_factory=builtin_scope)
    modules: dict[ast.Module, Scope] = field(default_factory=dict)
    uses: int = 0


_kept: dict[Options, Library] = {}


def borrow(options: Options) -> Library:
    """A library that no other thread uses: the one that was given back before, or a new one."""
    return _kept.pop(options, None) or Library()


def give_back(library: Library, options: Options) -> None:
    """Keeps the library of a compilation without errors for the next; one in error may have half-made things in it."""
    library.uses += 1
    if library.uses < _MOST_USES:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[options] = library
