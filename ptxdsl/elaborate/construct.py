"""Constructors: ``Float32(x)``, ``SIMD[…](…)``, ``Array[…](fill=…)``, ``Pointer(to=…)``, structs."""

from __future__ import annotations

from ptxdsl import tir
from ptxdsl.diagnostics import CompileError, counted
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
    StructDecl,
    StructType,
    StructValue,
    TupleValue,
    Uninit,
)
from ptxdsl.elaborate.matching import Given
from ptxdsl.elaborate.statements import Statements
from ptxdsl.elaborate.types import ArrayType, PointerType, SimdType, TupleType, Type
from ptxdsl.elaborate.values import const, is_comptime, key_of
from ptxdsl.source import Span

CONVERSION_METHODS = {"int": "__int__", "uint": "__int__", "float": "__float__", "bool": "__bool__"}


class Construct(Statements):
    """Calls of types."""

    def construct(self, t: Type | GenericType, args: list[Given], span: Span) -> RValue:
        self.count_step(span)
        if isinstance(t, GenericType):
            return self._construct_generic(t, args, span)
        match t:
            case SimdType():
                return self._simd(t, args, span)
            case ArrayType():
                return self._array(t, args, span)
            case PointerType():
                return self._pointer_to(args, span)
            case StructType():
                return self._struct(t, args, span)
            case TupleType():
                return TupleValue(tuple(self.materialize(a.value, a.span) for a in args))
            case types.STRING:
                return self._text(args, span)
        raise self.fail(
            "E0332",
            f"a value of type {t} cannot be made like this",
            span,
            help="numbers, vectors, pointers, Arrays, tuples, strings and structs are made by calls",
        )

    def _construct_generic(self, generic: GenericType, args: list[Given], span: Span) -> RValue:
        if isinstance(generic.decl, StructDecl):
            return self._struct(self._inferred_struct(generic, generic.decl, args, span), args, span)
        if generic.decl.endswith("Pointer"):
            return self._pointer_to(args, span)
        if generic.decl == "Tuple":
            return TupleValue(tuple(self.materialize(a.value, a.span) for a in args))
        if generic.decl in ("SIMD", "Scalar") and args:
            return self._inferred_simd(generic, args, span)
        return self.construct(self.instantiate(generic, span), args, span)

    def _text(self, args: list[Given], span: Span) -> RValue:
        """``String(x)``: how a value known at compile time is written, for messages."""
        value = args[0].value if len(args) == 1 and args[0].name is None else None
        match value:
            case Literal() | Runtime() if is_comptime(value):
                return Comptime(types.STRING, str(key_of(value)[1]))
            case Comptime(type=types.STRING | types.DTYPE | types.ANY_TYPE):
                return Comptime(types.STRING, str(value.value))
        raise self.fail(
            "E0332", "a string is made of one value that is known at compile time", span,
            help="strings exist at compile time; print(…) writes run-time values",
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------- scalars and vectors

    def _inferred_simd(self, generic: GenericType, args: list[Given], span: Span) -> RValue:
        """``SIMD(1.0, x)``, ``SIMD[DType.float32](a, b, c, d)``."""
        if generic.params:
            given, scope = generic.params[0]
            if given.name not in (None, "dtype"):
                return self.construct(self.instantiate(generic, span), args, span)
            dtype = self.comptime_value(given.value, scope, types.DTYPE)
            if not isinstance(dtype, Comptime) or dtype.type != types.DTYPE:
                raise self.mismatch(dtype.type, types.DTYPE, given.value.span, dtype)
            return self._simd(SimdType(dtype.value, len(args)), args, span)
        typed = next((a.value.type for a in args if not isinstance(a.value, Literal)), None)
        first = typed if typed is not None else self.materialize(args[0].value, span).type
        if not isinstance(first, SimdType):
            raise self.fail(
                "E0301",
                f"a SIMD has numbers as its lanes, not {first}",
                span,
                help="hold other values in an Array or a tuple",
            )
        return self._simd(SimdType(first.dtype, len(args) * first.width), args, span)

    def _simd(self, t: SimdType, args: list[Given], span: Span) -> RValue:
        named = next((a for a in args if a.name is not None), None)
        if named is not None:
            raise self.fail(
                "E0323", f"{t} has no argument `{named.name}`", named.name_span, help="give the value alone"
            )
        if not args:
            return const(t, 0 if t.dtype.kind != "float" else 0.0)
        if len(args) == 1:
            return self._converted(args[0].value, t, args[0].span)
        if len(args) != t.width:
            raise self.fail(
                "E0322",
                f"{t} takes 1 or {t.width} values, {len(args)} are given",
                span,
                help=f"give one for all lanes, or each of {t.width}",
            )
        if t.width & (t.width - 1):
            raise self.fail(
                "E0315",
                f"a SIMD width is a power of two, not {t.width}",
                span,
                help="give 1, 2, 4, 8, … values, or use an Array",
            )
        lanes = [self.convert(a.value, t.scalar, a.span) for a in args]
        values = [v.value for v in lanes if isinstance(v, Runtime)]
        if len(values) != t.width:
            return Poison()
        comptime = all(isinstance(v, Runtime) and v.comptime for v in lanes)
        return Runtime(t, self.emit1("vec.build", values, t.ty, span), comptime)

    def _converted(self, value: RValue, t: SimdType, span: Span) -> RValue:
        """Explicit conversion of one value."""
        match value:
            case Poison():
                return value
            case Literal():
                if t.dtype.kind == "bool":
                    return const(t, int(value.value != 0))
                if value.is_float and t.dtype.is_integer:
                    value = Literal(int(value.value))
                return self.literal(value, t, span)
            case Runtime(type=SimdType() as have) if have.width in (1, t.width):
                return (
                    self.splat(self.cast(value, t.dtype, span), t, span)
                    if have.width == 1
                    else self.cast(value, t.dtype, span)
                )
            case Runtime(type=PointerType()) if t.dtype.is_integer and t.width == 1:
                bits = tir.I64 if value.value.ty.bits == 64 else tir.I32
                integer = Runtime(
                    SimdType(types.DTYPES["uint64" if bits is tir.I64 else "uint32"]),
                    self.emit1("ptr.toint", [value.value], bits, span),
                )
                return self.cast(integer, t.dtype, span)
            case StructValue():
                converted = self.call_method(value, CONVERSION_METHODS[t.dtype.kind], [], span)
                if isinstance(converted, Runtime):
                    return self.cast(converted, t.dtype, span)
        help = None
        if isinstance(value, StructValue):
            help = f"define `{CONVERSION_METHODS[t.dtype.kind]}`, or convert a field"
        elif isinstance(value.type, SimdType):
            help = "take a lane, `v[0]`, or convert all of them: `.cast[DType.…]()`"
        raise self.fail("E0301", f"{value.type} does not convert to {t}", span, help=help)

    # --------------------------------------------------------------------------------------------- arrays and pointers

    def _array(self, t: ArrayType, args: list[Given], span: Span) -> RValue:
        if len(args) == 1 and args[0].name == "fill":
            return ArrayValue(t, (self.convert(args[0].value, t.elem, args[0].span),) * t.size)
        if (len(args) == 1 and args[0].name == "uninitialized") or not args:
            return Uninit(t) if t.size else ArrayValue(t, ())
        named = next((a for a in args if a.name is not None), None)
        if named is not None:
            raise self.fail("E0323", f"Array has no argument `{named.name}`", named.name_span, help="write `fill=`")
        if len(args) == 1 and args[0].place is None:
            return args[0].wanted_as(t)
        if len(args) != t.size:
            raise self.fail(
                "E0322",
                f"{t} takes {counted(t.size, 'element')}, {len(args)} are given",
                span,
                help="give each of them, or one for all: `fill=`",
            )
        return ArrayValue(t, tuple(self.convert(a.value, t.elem, a.span) for a in args))

    def _pointer_to(self, args: list[Given], span: Span) -> RValue:
        if len(args) != 1 or args[0].name != "to" or args[0].place is None:
            raise self.fail(
                "E0606", "a pointer comes from an allocation, an argument, or `Pointer(to=…)`", span,
                help="allocate: unsafe_stack_allocation[n, T, address_space=…]()",
            )  # fmt: skip
        return self.address_of(args[0].place, span)

    # ------------------------------------------------------------------------------------------------------- structs

    def _struct(self, t: StructType, args: list[Given], span: Span) -> RValue:
        initialisers = t.decl.methods.get("__init__")
        if len(args) == 1 and args[0].place is not None and args[0].place.type == t and args[0].name in (None, "copy"):
            return args[0].value
        function = FunctionValue(t.decl.name, tuple(initialisers), t) if initialisers else None
        if t.decl.has("fieldwise_init") and (function is None or self._is_fieldwise(t, function, args, span)):
            return self._fieldwise(t, args, span)
        if function is not None:
            return self.call_function(function, args, span)
        raise self.fail(
            "E0342", f"`{t.decl.name}` has no constructor", span, (t.decl.node.name_span, "declared here"),
            help="decorate it with `@fieldwise_init`, or give it `def __init__(out self, …)`",
        )  # fmt: skip

    def _is_fieldwise(self, t: StructType, function: FunctionValue, args: list[Given], span: Span) -> bool:
        """Whether arguments are the fields, rather than those of an `__init__` of the struct's own."""
        names = [name for name, _ in self.fields_of(t)]
        named = {a.name for a in args if a.name is not None}
        if len(args) != len(names) or not named <= set(names[len(args) - len(named) :]):
            return False
        if not any(self.takes(d, function, args) for d in function.overloads):
            return True
        undo = self._checkpoint(args)
        try:
            self.resolve(function, args, span)
        except Exhausted:
            raise
        except CompileError:
            return True
        finally:
            undo()
        return False

    def _fieldwise(self, t: StructType, args: list[Given], span: Span) -> RValue:
        fields = self.fields_of(t)
        given: dict[str, Given] = {}
        for i, argument in enumerate(args):
            name = argument.name if argument.name is not None else (fields[i][0] if i < len(fields) else None)
            if name is None or name not in dict(fields):
                shown = (
                    f"has no field `{name}`"
                    if name
                    else f"has {counted(len(fields), 'field')}, {len(args)} values are given"
                )
                raise self.fail(
                    "E0322",
                    f"`{t.decl.name}` {shown}",
                    argument.name_span,
                    help="its fields are " + ", ".join(f"`{n}`" for n, _ in fields)
                    if fields
                    else "leave the parentheses empty",
                )
            if name in given:
                raise self.fail(
                    "E0324", f"field `{name}` is given twice", argument.name_span, help="leave one of them out"
                )
            given[name] = argument
        missing = [name for name, _ in fields if name not in given]
        if missing:
            names = ", ".join(f"`{m}`" for m in missing)
            raise self.fail(
                "E0325",
                f"`{t.decl.name}` lacks {names}",
                span,
                (t.decl.node.name_span, "declared here"),
                help="give every field a value",
            )
        values = tuple(self.convert(given[n].wanted_as(ft), ft, given[n].span) for n, ft in fields)
        return StructValue(t, values)

    def _inferred_struct(self, generic: GenericType, decl: StructDecl, args: list[Given], span: Span) -> StructType:
        """The parameters that the brackets leave open, from the constructor's arguments."""
        binding = self.struct_binding(generic, span)
        patterns = [[f.type for f in decl.fields]] if decl.has("fieldwise_init") else []
        for method in decl.methods.get("__init__", ()):
            patterns.append([a.type for a in method.node.args if a.convention != "out" and a.type is not None])
        for pattern in patterns:
            if len(pattern) < len(args) or all(p.name in binding.values for p in decl.node.params):
                continue
            for declared, argument in zip(pattern, args, strict=False):
                if argument.place is not None and argument.name is None:
                    try:
                        self.infer(binding, declared, argument.value.type)
                    except Exhausted:
                        raise
                    except CompileError:
                        break
        self.complete(binding)
        return self.struct_type(decl, binding)
