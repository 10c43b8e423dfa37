"""Operators on values: literals exactly, numbers by TIR operations, structs by their methods."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl import tir
from ptxdsl.effects import Kind
from ptxdsl.elaborate import types
from ptxdsl.elaborate.convert import adapts, items_of
from ptxdsl.elaborate.entities import Comptime, FunctionValue, Literal, Poison, Runtime, RValue, StructValue, TraitType
from ptxdsl.elaborate.memory import Memory
from ptxdsl.elaborate.suggestions import call_of
from ptxdsl.elaborate.types import PointerType, SimdType
from ptxdsl.elaborate.values import const, key_of, type_value
from ptxdsl.hints import TYPE_CHECKING
from ptxdsl.intrinsics import ROWS
from ptxdsl.source import Span
from ptxdsl.tir.simplify import PURE

if TYPE_CHECKING:
    from fractions import Fraction

# op → (signed integer, unsigned integer, float) operation
ARITHMETIC = {
    "+": ("add", "add", "fadd"), "-": ("sub", "sub", "fsub"), "*": ("mul", "mul", "fmul"),
    "/": ("div.s", "div.u", "fdiv"), "//": ("floordiv.s", "floordiv.u", "ffloordiv"),
    "%": ("mod.s", "mod.u", "fmod"), "<<": ("shl", "shl", None), ">>": ("shr.s", "shr.u", None),
    "&": ("and", "and", None), "|": ("or", "or", None), "^": ("xor", "xor", None),
}  # fmt: skip
BITWISE = frozenset("&|^")
SHIFTS = ("<<", ">>")
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
METHODS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul",
    "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
MAX_LITERAL_BITS = 1 << 14
MAX_EXPONENT = 64  # a power is written out as products


def is_pure(op: tir.Op) -> bool:
    row = ROWS.get(op.name)
    return op.name in PURE or (row is not None and row.effect.kind is Kind.PURE and not row.effect.convergent)


class Operators(Memory):
    """Unary, binary and comparison operators."""

    # ------------------------------------------------------------------------------------------------------- unary

    def unary(self, op: str, value: RValue, span: Span) -> RValue:
        match value:
            case Poison():
                return value
            case Literal():
                if op == "~" and isinstance(value.value, int):
                    return Literal(~value.value)
                if op == "-" and value.value == 0 and value.is_float:
                    from fractions import Fraction  # as in float_literals.py

                    from ptxdsl.elaborate.float_literals import NegativeZero

                    return Literal(Fraction() if isinstance(value.value, NegativeZero) else NegativeZero())
                if op in "+-":
                    return Literal(-value.value if op == "-" else value.value)
            case Runtime(type=SimdType() as t):
                return self._unary(op, value, t, span)
            case StructValue():
                method = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}[op]
                result = self.call_method(value, method, [], span)
                if result is not None:
                    return result
        help = None
        if isinstance(value, StructValue):
            help = f"define `{ {'-': '__neg__', '+': '__pos__', '~': '__invert__'}[op] }`"
        elif isinstance(value, FunctionValue):
            help = f"it is a function: write `{op}{call_of(value)}`"
        raise self.fail("E0302", f"`{op}` does not apply to {value.type}", span, help=help)

    def _unary(self, op: str, value: Runtime, t: SimdType, span: Span) -> RValue:
        kind = t.dtype.kind
        if op == "+" and kind != "bool":
            return value
        if op == "-" and kind == "float":
            return Runtime(t, self.emit1("fneg", [value.value], t.ty, span), value.comptime)
        if op == "-" and kind != "bool":
            return self.arithmetic("-", const(t, 0), value, t, span)
        if op == "~" and kind != "float":
            ones = const(t, 1 if kind == "bool" else -1)
            return Runtime(t, self.emit1("xor", [value.value, ones.value], t.ty, span), value.comptime)
        help = "use `not`" if kind == "bool" else "a float has no bits of its own: `bitcast` it first"
        raise self.fail("E0302", f"`{op}` does not apply to {t}", span, help=help)

    def negate(self, value: Runtime, span: Span) -> Runtime:
        return Runtime(types.BOOL, self.emit1("not", [value.value], tir.I1, span), value.comptime)

    # ------------------------------------------------------------------------------------------------------ binary

    def binary(self, op: str, left: RValue, right: RValue, span: Span) -> RValue:
        if isinstance(left, Poison) or isinstance(right, Poison):
            return Poison()
        if isinstance(left, Literal) and isinstance(right, Literal):
            return self._literals(op, left.value, right.value, span)
        if isinstance(left, StructValue) or isinstance(right, StructValue):
            return self._by_method(op, left, right, span)
        if isinstance(left, Runtime) and isinstance(left.type, PointerType) and op in "+-":
            return self._pointer(op, left, right, span)
        if op == "+" and isinstance(left, Comptime) and isinstance(right, Comptime) and left.type == types.STRING:
            if right.type == types.STRING:
                return Comptime(types.STRING, left.value + right.value)
            raise self.mismatch(right.type, types.STRING, span)
        if op == "&" and isinstance(left, Comptime) and isinstance(right, Comptime) and left.type == types.ANY_TYPE:
            own = [t for v in (left.value, right.value) if isinstance(v, TraitType) for t in v.traits]
            return type_value(TraitType(tuple(own))) if own else left  # traits: Copyable & Movable
        pair = self.operands(op, left, right, span)
        return self.arithmetic(op, *pair, span)

    def operands(self, op: str, left: RValue, right: RValue, span: Span) -> tuple[Runtime, Runtime, SimdType]:
        """Both operands in their common type: literals adapt, a scalar meets a vector in every lane."""
        if isinstance(left, Literal) and isinstance(right, Runtime) and isinstance(right.type, SimdType):
            left = self._adapt(op, left, right.type, span)
        if isinstance(right, Literal) and isinstance(left, Runtime) and isinstance(left.type, SimdType):
            right = self._adapt(op, right, left.type, span)
        if isinstance(left, Runtime) and isinstance(right, Runtime):
            left, right = self._adapted(left, right, span), self._adapted(right, left, span)
            a, b = left.type, right.type
            if isinstance(a, SimdType) and isinstance(b, SimdType) and a.dtype == b.dtype:
                if a.width == b.width:
                    return left, right, a
                if a.width == 1:
                    return self.splat(left, b, span), right, b
                if b.width == 1:
                    return left, self.splat(right, a, span), a
                raise self.fail(
                    "E0302",
                    f"`{op}` on vectors of {a.width} and {b.width} lanes",
                    span,
                    help="bring both to one width: `slice`, `join`",
                )
            if isinstance(a, SimdType) and isinstance(b, SimdType):
                raise self.fail(
                    "E0302", f"`{op}` cannot mix {a} and {b}", span,
                    help=f"convert one side: `{a.scalar}(…)` or `{b.scalar}(…)`",
                )  # fmt: skip
        function = next((value for value in (left, right) if isinstance(value, FunctionValue)), None)
        help = "operators take numbers, vectors, a pointer with an integer, and structs with methods for them"
        if function is not None:
            help = f"`{function.name}` is a function: write `{call_of(function)}`"
        raise self.fail("E0302", f"`{op}` does not apply to {left.type} and {right.type}", span, help=help)

    def _adapted(self, value: Runtime, other: Runtime, span: Span) -> Runtime:
        """An Int that is known at compile time takes the type of the integer that it meets."""
        if adapts(value) and isinstance(t := other.type, SimdType) and t.dtype.is_integer and t.scalar != types.INT:
            return self.literal(Literal(self.comptime_int(value, span)), t, span)
        return value

    def _adapt(self, op: str, literal: Literal, t: SimdType, span: Span) -> Runtime:
        if literal.is_float and t.dtype.kind != "float":
            raise self.fail(
                "E0302", f"`{op}` cannot mix {t} and a float literal", span, help="convert the integer: `Float32(…)`"
            )
        return self.literal(literal, t, span)

    def arithmetic(self, op: str, left: Runtime, right: Runtime, t: SimdType, span: Span) -> RValue:
        kind = t.dtype.kind
        comptime = left.comptime and right.comptime
        if op == "**":
            return self._power(left, right, t, span)
        names = ARITHMETIC.get(op)
        column = {"int": 0, "uint": 1, "float": 2, "bool": 1}[kind]
        name = names[column] if names else None
        if name is None or (kind == "bool" and op not in BITWISE):
            if op == "@":
                help = "structs with `__matmul__` have it"
            elif kind == "bool":
                help = "use `and`, `or`, `not`"
            else:
                help = "it works on integers: `bitcast` or convert first"
            raise self.fail("E0302", f"`{op}` does not apply to {t}", span, help=help)
        attrs = {}
        if self.index_depth and name in ("add", "sub", "mul"):  # inside a pointer index, where overflow is unspecified
            attrs = {"nsw" if kind == "int" else "nuw": True}
        value = self.emit1(name, [left.value, right.value], t.ty, span, **attrs)
        return Runtime(t, value, comptime)

    def _power(self, left: Runtime, right: Runtime, t: SimdType, span: Span) -> RValue:
        """``x ** n`` for an exponent known now, by repeated squaring."""
        exponent = right.value.value if isinstance(right.value, tir.Const) else None
        if isinstance(exponent, tuple):
            exponent = exponent[0] if len(set(exponent)) == 1 else None
        if exponent is None or exponent not in range(MAX_EXPONENT + 1):
            message = f"`**` takes a constant exponent from 0 to {MAX_EXPONENT}"
            raise self.fail("E0302", message, span, help="use `pow(x, y)`")
        result: RValue | None = None
        square: RValue = left
        n = int(exponent)
        while n:
            if n & 1:
                result = square if result is None else self.binary("*", result, square, span)
            n >>= 1
            if n:
                square = self.binary("*", square, square, span)
        one = 1.0 if t.dtype.kind == "float" else 1
        return const(t, one, comptime=left.comptime) if result is None else result

    def _pointer(self, op: str, pointer: Runtime, index: RValue, span: Span) -> RValue:
        if isinstance(index.type, PointerType):
            help = "the distance in bytes is `Int(p) - Int(q)`" if op == "-" else "add an integer: `p + 3`"
            raise self.fail("E0302", f"`{op}` does not apply to two pointers", span, help=help)
        if op == "-":
            index = self.unary("-", self.materialize(index, span), span)
        t = pointer.type
        assert isinstance(t, PointerType)
        return self.offset(pointer, index, self.layout(t.elem, span)[0], span)

    def _by_method(self, op: str, left: RValue, right: RValue, span: Span) -> RValue:
        name = METHODS[op]
        for receiver, argument, method in ((left, right, f"__{name}__"), (right, left, f"__r{name}__")):
            if isinstance(receiver, StructValue):
                result = self.call_method(receiver, method, [argument], span)
                if result is not None:
                    return result
        raise self.fail(
            "E0302", f"`{op}` does not apply to {left.type} and {right.type}", span, help=f"define `__{name}__`"
        )

    def _literals(self, op: str, a: int | Fraction, b: int | Fraction, span: Span) -> Literal:
        try:
            result = _literal_operation(op, a, b)
        except ZeroDivisionError:
            help = "a literal has no such value; an integer of a type divided by zero gives 0"
            raise self.fail("E0302", "division of a literal by zero", span, help=help) from None
        except OverflowError:
            help = "no type holds it: keep the parts as values of a type"
            raise self.fail("E0303", f"a literal of more than {MAX_LITERAL_BITS} bits", span, help=help) from None
        if result is None:
            negative = op in SHIFTS and isinstance(b, int) and b < 0
            help = "shift the other way" if negative else "it works on integers"
            raise self.fail("E0302", f"`{op}` does not apply to these literals", span, help=help)
        return Literal(result)

    # -------------------------------------------------------------------------------------------------- comparison

    def compare(self, op: str, left: RValue, right: RValue, span: Span) -> RValue:
        name = COMPARISONS.get(op)
        if isinstance(left, Poison) or isinstance(right, Poison):
            return Poison()
        if op in ("is", "is not"):
            name = "eq" if op == "is" else "ne"
        if name is None:
            found = self._contains(op, left, right, span)
            return self.negate(found, span) if op == "not in" else found
        if isinstance(left, Literal) and isinstance(right, Literal):
            return const(types.BOOL, int(_COMPARE[name](left.value, right.value)))
        if isinstance(left, StructValue):
            result = self.call_method(left, f"__{name}__", [right], span)
            if result is not None:
                return result
            raise self.fail(
                "E0302", f"`{op}` does not apply to {left.type} and {right.type}", span, help=f"define `__{name}__`"
            )
        if isinstance(left, Comptime) and isinstance(right, Comptime) and name in ("eq", "ne"):
            equal = key_of(left)[1] == key_of(right)[1]
            return const(types.BOOL, int(equal == (name == "eq")))
        if isinstance(left, Runtime) and isinstance(left.type, PointerType):
            return self._compare_pointers(name, left, right, span)
        a, b, t = self.operands(op, left, right, span)
        result = self.lanes_compare(name, a, b, t, span)
        if t.width == 1:
            return result
        if name not in ("eq", "ne"):
            raise self.fail("E0302", f"`{op}` on vectors", span, help=f"compare lane by lane: `a.{name}(b)`")
        return self._reduce_lanes(result, "and" if name == "eq" else "or", t.width, span)

    def _contains(self, op: str, value: RValue, container: RValue, span: Span) -> Runtime:
        """``value in container``: whether it equals an element, or what the struct's ``__contains__`` says."""
        items = items_of(container)
        if items is None:
            answer = self.call_method(container, "__contains__", [value], span)
            if answer is None:
                help = "Arrays, tuples and structs with `__contains__` can"
                raise self.fail("E0302", f"{container.type} cannot be searched with `{op}`", span, help=help)
            return self.condition(answer, span)
        found = const(types.BOOL, 0)
        for i, item in enumerate(items):
            one = self.condition(self.compare("==", value, item, span), span)
            found = self.condition(self.binary("|", found, one, span), span) if i else one
        return found

    def lanes_compare(self, name: str, a: Runtime, b: Runtime, t: SimdType, span: Span) -> Runtime:
        """eq, ne, lt, … lane by lane."""
        kind = t.dtype.kind
        if kind == "bool" and name not in ("eq", "ne"):
            help = "compare with `==`, or convert: `Int32(…)`"
            raise self.fail("E0302", "Bool values have no order", span, help=help)
        if kind == "float":
            name = "f" + name
        elif name not in ("eq", "ne"):
            name += ".s" if kind == "int" else ".u"
        to = SimdType(types.BOOL.dtype, t.width)
        return Runtime(to, self.emit1(name, [a.value, b.value], to.ty, span), a.comptime and b.comptime)

    def _reduce_lanes(self, value: Runtime, op: str, width: int, span: Span) -> Runtime:
        result: tir.Value | None = None
        for i in range(width):
            lane = self.emit1("vec.extract", [value.value, tir.Const(tir.I32, i)], tir.I1, span)
            result = lane if result is None else self.emit1(op, [result, lane], tir.I1, span)
        assert result is not None
        return Runtime(types.BOOL, result, value.comptime)

    def _compare_pointers(self, name: str, left: Runtime, right: RValue, span: Span) -> RValue:
        if not (isinstance(right, Runtime) and isinstance(right.type, PointerType)):
            raise self.fail(
                "E0302",
                f"a pointer cannot be compared with {right.type}",
                span,
                help="compare it with another pointer, or its number: `Int(p)`",
            )
        pointers = [left.value, right.value]
        if left.value.ty != right.value.ty:  # an address has another number in each space: the generic ones compare
            pointers = [self.emit1("ptr.cast", [p], tir.ptr("generic"), span) for p in pointers]
        integers = [self.emit1("ptr.toint", [p], tir.I64, span) for p in pointers]
        op = name if name in ("eq", "ne") else f"{name}.u"
        return Runtime(types.BOOL, self.emit1(op, integers, tir.I1, span))


_COMPARE: dict[str, Callable[[int | Fraction, int | Fraction], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def _literal_operation(op: str, a: int | Fraction, b: int | Fraction) -> int | Fraction | None:
    """Exact arithmetic; None where the operator does not apply. Raises ZeroDivisionError, OverflowError."""
    from fractions import Fraction  # as in float_literals.py

    result: int | Fraction | None = None
    if op == "+":
        result = a + b
    elif op == "-":
        result = a - b
    elif op == "*":
        result = a * b
    elif op == "/":
        result = Fraction(a) / b
    elif op == "//":
        result = a // b
    elif op == "%":
        result = a % b
    elif op == "**" and isinstance(b, int):
        if abs(b) * max(a.numerator.bit_length(), a.denominator.bit_length()) > MAX_LITERAL_BITS:
            raise OverflowError
        result = a**b if b >= 0 else Fraction(a) ** b
    elif isinstance(a, int) and isinstance(b, int):
        result = _literal_bits(op, a, b)
    if result is not None and max(result.numerator.bit_length(), result.denominator.bit_length()) > MAX_LITERAL_BITS:
        raise OverflowError
    return result


def _literal_bits(op: str, a: int, b: int) -> int | None:
    if op in SHIFTS and b < 0:
        return None
    if op == ">>":
        return a >> b
    if op == "<<":
        if b > MAX_LITERAL_BITS:
            raise OverflowError
        return a << b
    if op == "&":
        return a & b
    if op == "|":
        return a | b
    return a ^ b if op == "^" else None
