"""Conversions: what adapts by itself (literals, a scalar to a vector), and what a constructor converts."""

from __future__ import annotations

from ptxdsl import tir
from ptxdsl.diagnostics import CompileError
from ptxdsl.elaborate import types
from ptxdsl.elaborate.context import Exhausted
from ptxdsl.elaborate.entities import (
    ArrayValue,
    Comptime,
    FunctionValue,
    GenericType,
    Literal,
    Poison,
    Runtime,
    RValue,
    StructType,
    StructValue,
    TraitType,
    TupleValue,
)
from ptxdsl.elaborate.library import TRAITS
from ptxdsl.elaborate.names import Names
from ptxdsl.elaborate.suggestions import call_of
from ptxdsl.elaborate.types import DType, MetaType, PointerType, SimdType, TupleType, Type
from ptxdsl.elaborate.values import const
from ptxdsl.hints import TYPE_CHECKING
from ptxdsl.source import Span
from ptxdsl.tir.fold import round_float

if TYPE_CHECKING:
    from fractions import Fraction


def accepts_types(wanted: Type) -> bool:
    """Whether a parameter of this type takes a type: its type is a trait."""
    return isinstance(wanted, TraitType) or (isinstance(wanted, MetaType) and wanted.name in TRAITS)


LARGEST_FLOATS = {
    "float64": 1.7976931348623157e308, "float32": 3.4028234663852886e38, "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0,
}  # fmt: skip


def adapts(value: RValue) -> bool:
    """Whether it is an Int of compile time, which takes any integer type that holds it, as a literal does."""
    if not isinstance(value, Runtime) or value.type != types.INT:
        return False
    return value.comptime and isinstance(value.value, tir.Const)


class Convert(Names):
    """Values from one type to another."""

    def materialize(self, value: RValue, span: Span) -> RValue:
        """A literal as the type it has when nothing else is said: Int or Float64."""
        if isinstance(value, Literal):
            return self.literal(value, types.INT if isinstance(value.value, int) else types.FLOAT64, span)
        if isinstance(value, TupleValue):
            return TupleValue(tuple(self.materialize(i, span) for i in value.items))
        return value

    def literal(self, value: Literal, to: SimdType, span: Span) -> Runtime:
        """A literal as a constant of a type; integers must fit, floats round to nearest."""
        number = value.value
        if to.dtype.kind == "float":
            from fractions import Fraction  # as in float_literals.py

            from ptxdsl.elaborate.float_literals import NegativeZero

            rounded = -0.0 if isinstance(number, NegativeZero) else round_float(Fraction(number), to.dtype.ty)
            if abs(rounded) == float("inf"):
                help = f"{to.scalar} holds up to {LARGEST_FLOATS[to.dtype.name]:.6g}"
                raise self.fail("E0303", f"{self.number_text(number)} is beyond the range of {to}", span, help=help)
            return const(to, rounded)
        if not isinstance(number, int):
            raise self.mismatch(value.type, to, span)
        if to.dtype.kind == "bool":
            raise self.mismatch(value.type, to, span)
        low, high = to.dtype.limits
        if not low <= number <= high:
            raise self.fail(
                "E0303", f"{self.number_text(number)} does not fit {to}", span,
                help=f"{to.scalar} holds {low} to {high}",
            )  # fmt: skip
        return const(to, number - (1 << to.dtype.bits) if number > (1 << (to.dtype.bits - 1)) - 1 else number)

    @staticmethod
    def number_text(number: int | Fraction) -> str:
        try:
            text = str(number) if isinstance(number, int) else str(float(number))
        except (ValueError, OverflowError):
            return "the number"
        return text if len(text) < 40 else f"{text[:18]}…{text[-6:]}"

    def mismatch(
        self, have: Type | GenericType, want: Type | GenericType, span: Span, value: RValue | None = None
    ) -> Exception:
        """E0301, with the way to convert where there is one."""
        help: str | None = None
        found = str(have)
        if have == types.ANY_TYPE and isinstance(value, Comptime):
            found = f"the type {value.value}"
            if want == types.DTYPE and isinstance(value.value, SimdType):
                help = f"write `{value.value.dtype}`"
        elif isinstance(value, FunctionValue):
            found, help = f"the function `{value.name}`", f"call it: `{call_of(value)}`"
        elif isinstance(want, StructType) and not isinstance(have, StructType):
            help = f"construct it: `{want}(…)`"
        elif have == types.FLOAT_LITERAL and isinstance(want, SimdType) and want.dtype.is_integer:
            help = f"drop the fraction on purpose: `{want.scalar}(…)`"
        elif isinstance(want, SimdType) and isinstance(have, SimdType | MetaType):
            if want == types.BOOL:
                help = "True or False" if have == types.STRING else "compare it: `x != 0`"
            elif isinstance(have, SimdType) and have.width == want.width == 1:
                help = f"convert it: `{want}(…)`"
            elif isinstance(have, SimdType) and have.width == want.width:
                help = f"convert it: `.cast[{want.dtype}]()`"
        elif isinstance(want, PointerType) and isinstance(have, PointerType):
            if have.elem == want.elem and have.space != want.space:
                help = f"it is in {have.space} memory: are two arguments exchanged?"
            elif have.elem == want.elem:
                help = "it is read-only: declare it as `Pointer[…, MutAnyOrigin]`"
            else:
                help = "cast it: `.bitcast[T]()`"
        return self.fail("E0301", f"expected {want}, found {found}", span, help=help)

    def convert(self, value: RValue, to: Type, span: Span) -> RValue:
        """The value as a type, by the implicit conversions alone; E0301 otherwise."""
        have = value.type
        if have == to or isinstance(value, Poison):
            return value
        match to, value:
            case SimdType(), Literal():
                return self.literal(value, to, span)
            case SimdType(), Runtime() if to.dtype.is_integer and adapts(value):
                return self.literal(Literal(self.comptime_int(value, span)), to, span)
            case SimdType(), Runtime(type=SimdType() as t) if t.dtype == to.dtype and t.width == 1:
                return self.splat(value, to, span)
            case PointerType(), Runtime(type=PointerType() as p):
                if p.elem == to.elem and p.space == to.space and p.mutable:
                    return Runtime(to, value.value, value.comptime)
            case TupleType(), TupleValue() if len(to.items) == len(value.items):
                return TupleValue(tuple(self.convert(v, t, span) for v, t in zip(value.items, to.items, strict=True)))
            case MetaType(), Comptime(type=types.ANY_TYPE) if accepts_types(to):
                return value
            case MetaType(), FunctionValue() if accepts_types(to):
                return value
            case MetaType(name="FloatLiteral"), Literal():
                from fractions import Fraction  # as in float_literals.py

                return value if value.is_float else Literal(Fraction(value.value))
            case MetaType(name="IntLiteral"), Runtime(comptime=True, type=SimdType() as t) if t.dtype.is_integer:
                return Literal(self.comptime_int(value, span))
            case StructType(), _:
                converted = self.implicit_construct(value, to, span)
                if converted is not None:
                    return converted
        raise self.mismatch(have, to, span, value)

    def implicit_construct(self, value: RValue, to: StructType, span: Span) -> RValue | None:
        """An ``@implicit`` constructor, if the struct has a fitting one."""
        raise NotImplementedError

    def call_method(self, receiver: RValue, name: str, args: list[RValue], span: Span) -> RValue | None:
        """Calls a method of a struct value; None if it has none of that name."""
        raise NotImplementedError

    def converts(self, value: RValue, to: Type, span: Span) -> bool:
        """Whether ``convert`` would succeed."""
        try:
            with self.trial():
                self.convert(value, to, span)
        except Exhausted:
            raise
        except CompileError:
            return False
        return True

    def splat(self, value: Runtime, to: SimdType, span: Span) -> Runtime:
        if to.width == 1:
            return Runtime(to, value.value, value.comptime)
        return Runtime(to, self.emit1("vec.splat", [value.value], to.ty, span), value.comptime)

    def cast(self, value: Runtime, dtype: DType, span: Span) -> Runtime:
        """Numeric conversion of a scalar or vector, as constructors and ``.cast`` do it."""
        assert isinstance(value.type, SimdType)
        source, to = value.type.dtype, SimdType(dtype, value.type.width)
        if source == dtype:
            return value
        if not isinstance(value.value, tir.Const):
            for part in (source, dtype):
                if part.name.startswith("float8"):
                    self.require("fp8", span, f"conversion from {value.type} to {to}")
        result = self._cast(value.value, source, dtype, to.ty, span)
        return Runtime(to, result, value.comptime)

    def _cast(self, value: tir.Value, source: DType, to: DType, ty: tir.Ty, span: Span) -> tir.Value:
        if to.kind == "bool":
            nothing = 0.0 if source.kind == "float" else 0
            zero = tir.Const(value.ty, nothing if value.ty.lanes == 1 else (nothing,) * value.ty.lanes)
            return self.emit1("fne" if source.kind == "float" else "ne", [value, zero], ty, span)
        if source.kind == "float":
            if to.kind == "float":
                return self.emit1("fcast", [value], ty, span)
            return self.emit1("ftoi.s" if to.signed else "ftoi.u", [value], ty, span)
        if to.kind == "float":
            return self.emit1("itof.s" if source.signed else "itof.u", [value], ty, span)
        have, want = value.ty.bits, ty.bits
        if have == want:
            return value
        name = "trunc" if want < have else "ext.s" if source.signed else "ext.u"
        return self.emit1(name, [value], ty, span)

    # ------------------------------------------------------------------------------------------- what a context wants

    def condition(self, value: RValue, span: Span) -> Runtime:
        """A value as a condition: a Bool, a number (true when it is not 0) or a struct with ``__bool__``."""
        if isinstance(value, Literal):
            return const(types.BOOL, int(value.value != 0))
        if isinstance(value, Runtime) and isinstance(value.type, SimdType) and value.type.width == 1:
            return self.cast(value, types.BOOL.dtype, span)
        if isinstance(value, Poison):
            return const(types.BOOL, 0, comptime=False)
        if isinstance(value, StructValue):
            converted = self.call_method(value, "__bool__", [], span)
            if isinstance(converted, Runtime) and converted.type == types.BOOL:
                return converted
        help = "compare it with something"
        if isinstance(value, FunctionValue):
            help = f"it is a function: write `{call_of(value)}`"
        if isinstance(value.type, SimdType):
            help = "compare the lanes, and join the answers: `a.gt(b).reduce_and()`, `.reduce_or()`"
        elif isinstance(value, StructValue):
            help = "define `__bool__`, or compare a field"
        raise self.fail("E0304", f"a condition must be a Bool, not {value.type}", span, help=help)

    def comptime_int(self, value: RValue, span: Span) -> int:
        """The Python integer of a compile-time integer value."""
        if isinstance(value, Literal) and isinstance(value.value, int):
            return value.value
        if isinstance(value, Runtime) and isinstance(value.value, tir.Const) and isinstance(value.type, SimdType):
            if value.type.dtype.kind == "uint":
                return int(value.value.value) & ((1 << value.type.dtype.bits) - 1)
            if value.type.dtype.kind in ("int", "bool"):
                return int(value.value.value)
        if isinstance(value, Poison):
            raise CompileError(())  # has been reported
        raise self.fail(
            "E0301",
            f"expected a compile-time integer, found {value.type}",
            span,
            help="write an integer literal, or a `comptime` name or parameter that is one",
        )


def items_of(value: RValue) -> tuple[RValue, ...] | None:
    """The elements of an Array or a tuple; None for another value."""
    return value.items if isinstance(value, ArrayValue | TupleValue) else None
