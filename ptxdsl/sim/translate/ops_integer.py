"""Integer arithmetic: add to rem, carry chains, dot products, packed 16- and 8-bit forms.

Source: PTX ISA, "Integer Arithmetic Instructions", "Extended-Precision Integer Arithmetic Instructions". Division by
zero, "machine specific" there, gives all ones, remainder too: what ptxas's code for it selects on sm_80 to sm_120.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.ptx.liveness import CARRY
from ptxdsl.sim.translate.emitter import Unsupported
from ptxdsl.sim.translate.ops_form import Form, Operation, is_signed, width
from ptxdsl.sim.translate.ops_value import Lanes

# Types of several integers in one register -> element type of LLVM.
PACKED = {"u16x2": "i16", "s16x2": "i16", "u8x4": "i8", "s8x4": "i8"}

SCALARS = "u16 s16 u32 s32 u64 s64"
ALL = f"{SCALARS} {' '.join(PACKED)}"


def elements(form: Form, *values: Lanes) -> list[Lanes]:
    """Lanes as their elements: of a packed type more, narrower ones."""
    element = PACKED.get(form.type)
    return list(values) if element is None else [value.split(element) for value in values]


def put(form: Form, value: Lanes) -> None:
    """Writes the result, packed again."""
    form.result(value.split("i32") if form.type in PACKED else value)


def saturating(name: str) -> Callable[[Form, Lanes, Lanes], Lanes]:
    """``add`` or ``sub``, clamped to the type's range."""
    return lambda form, a, b: a.intrinsic(f"{'s' if is_signed(form.type) else 'u'}{name}.sat", b)


def add(form: Form) -> None:
    a, b = elements(form, *form.sources(2))
    if form.has("sat"):
        put(form, saturating("add")(form, a, b))
    elif form.has("cc"):
        put(form, _carry_out(form, a, b, None))
    else:
        put(form, a + b)


def sub(form: Form) -> None:
    a, b = elements(form, *form.sources(2))
    if form.has("sat"):
        put(form, saturating("sub")(form, a, b))
    elif form.has("cc"):
        put(form, _carry_out(form, a, ~b, a.like(1)))
    else:
        put(form, a - b)


def addc(form: Form) -> None:
    a, b = form.sources(2)
    _with_carry(form, a, b)


def subc(form: Form) -> None:
    """The flag holds the carry of ``a + ~b + 1``, no borrow: so the card has it, where chains of adds and subs meet."""
    a, b = form.sources(2)
    _with_carry(form, a, ~b)


def _with_carry(form: Form, a: Lanes, b: Lanes) -> None:
    carry = Lanes(form.e, "i1", form.e.read(CARRY, "pred")).zext(a.element)
    form.result(_carry_out(form, a, b, carry) if form.has("cc") else a + b + carry)


def _carry_out(form: Form, a: Lanes, b: Lanes, carry: Lanes | None) -> Lanes:
    """The sum; its carry goes to the flag."""
    total = a + b
    out = total.icmp("ult", a)
    if carry is not None:
        first = total
        total = first + carry
        out = out | total.icmp("ult", first)
    form.write(CARRY, out, "pred")
    return total


def product(form: Form, a: Lanes, b: Lanes, mode: str) -> Lanes:
    """``lo``, ``hi`` or ``wide`` part of the product."""
    if mode == "lo":
        return a * b
    wide = f"i{2 * a.bits}"
    signed = is_signed(form.type)
    whole = a.resize(wide, signed) * b.resize(wide, signed)
    return whole if mode == "wide" else whole.lshr(a.bits).trunc(a.element)


def wide_type(type: str) -> str:
    return f"{type[0]}{2 * width(type)}"


def mul(form: Form) -> None:
    mode = form.needs("lo", "hi", "wide")
    a, b = form.sources(2)
    if mode == "wide" and width(form.type) == 64:
        raise Unsupported(".wide of 64 bits")
    form.result(product(form, a, b, mode), wide_type(form.type) if mode == "wide" else None)


def mad(form: Form) -> None:
    mode = form.needs("lo", "hi", "wide")
    type = wide_type(form.type) if mode == "wide" else form.type
    form.count(3)
    part = product(form, form.source(0), form.source(1), mode)
    addend = form.source(2, type)
    if form.has("sat"):
        form.result(saturating("add")(form, part, addend), type)
    elif form.has("cc"):
        form.result(_carry_out(form, part, addend, None), type)
    else:
        form.result(part + addend, type)


def madc(form: Form) -> None:
    mode = form.needs("lo", "hi")
    a, b, c = form.sources(3)
    _with_carry(form, product(form, a, b, mode), c)


def product24(form: Form, a: Lanes, b: Lanes) -> Lanes:
    """Bits 31 to 0, or 47 to 16, of the product of the low 24 bits of each."""
    high = form.needs("lo", "hi") == "hi"

    def low24(x: Lanes) -> Lanes:
        up = x.shl(8)
        return (up.ashr(8) if is_signed(form.type) else up.lshr(8)).resize("i64", is_signed(form.type))

    whole = low24(a) * low24(b)
    return (whole.lshr(16) if high else whole).trunc("i32")


def mul24(form: Form) -> None:
    a, b = form.sources(2)
    form.result(product24(form, a, b))


def mad24(form: Form) -> None:
    a, b, c = form.sources(3)
    part = product24(form, a, b)
    form.result(saturating("add")(form, part, c) if form.has("sat") else part + c)


def sad(form: Form) -> None:
    a, b, c = form.sources(3)
    form.result(c + difference(a, b, is_signed(form.type)))


def difference(a: Lanes, b: Lanes, signed: bool) -> Lanes:
    return a.icmp("slt" if signed else "ult", b).choose(b - a, a - b)


def division(operation: str) -> Operation:
    """div or rem. Of the operands that the host's instructions do not take: by zero all ones; by -1 no overflow."""

    def compute(a: Lanes, b: Lanes, signed: bool) -> Lanes:
        zero = b.icmp("eq", 0)
        divisor = zero.choose(1, b)
        if not signed:
            return zero.choose(-1, Lanes(a.code, a.element, a.code.do(f"u{operation} {a.typed}, {divisor.text}")))
        minus_one = divisor.icmp("eq", -1)
        divisor = minus_one.choose(1, divisor)
        result = Lanes(a.code, a.element, a.code.do(f"s{operation} {a.typed}, {divisor.text}"))
        if operation == "div":
            result = minus_one.choose(-result, result)
        return zero.choose(-1, result)

    def emit(form: Form) -> None:
        signed = is_signed(form.type)
        form.result(form.apart(lambda a, b: compute(a, b, signed), *form.sources(2)))

    return emit


def absolute(form: Form) -> None:
    (a,) = form.sources(1)
    form.result(a.abs())


def negative(form: Form) -> None:
    (a,) = elements(form, *form.sources(1))
    put(form, -a)


def extreme(name: str) -> Operation:
    """min or max; with ``.relu`` at least 0."""

    def operation(form: Form) -> None:
        a, b = elements(form, *form.sources(2))
        result = a.intrinsic(("s" if is_signed(form.type) else "u") + name, b)
        put(form, result.smax(0) if form.has("relu") else result)

    return operation


def dp4a(form: Form) -> None:
    """Four products of bytes, added to c. The types of a and b are in the opcode."""
    a, b = (form.source(i, "b32").split("i8") for i in range(2))
    _dot(form, _widened(a, form.types[0]), _widened(b, form.types[1]), 4)


def dp2a(form: Form) -> None:
    """Two products of the halves of a and two bytes of b: the lower (``lo``) or the upper ones."""
    high = form.needs("lo", "hi") == "hi"
    a = _widened(form.source(0, "b32").split("i16"), form.types[0])
    word = form.source(1, "b32")
    pair = (word.lshr(16) if high else word).trunc("i16")
    _dot(form, a, _widened(pair.split("i8"), form.types[1]), 2)


def _widened(values: Lanes, type: str) -> Lanes:
    return values.resize("i32", is_signed(type))


def _dot(form: Form, a: Lanes, b: Lanes, count: int) -> None:
    form.count(3)
    if len(form.types) != 2:
        raise Unsupported("the types of two operands are wanted")
    total = form.source(2, "b32")
    products = a * b
    lanes = products.count // count
    for i in range(count):
        picks = ", ".join(f"i32 {count * lane + i}" for lane in range(lanes))
        text = form.e.do(f"shufflevector {products.typed}, {products.type} poison, <{lanes} x i32> <{picks}>")
        total = total + Lanes(form.e, "i32", text, lanes)
    form.result(total, "b32")


# opcode -> types -> operation
INTEGER: dict[str, dict[str, Operation]] = {
    "add": {ALL: add},
    "sub": {f"{SCALARS} u8x4 s8x4": sub},
    "addc": {"u32 s32 u64 s64": addc},
    "subc": {"u32 s32 u64 s64": subc},
    "mul": {SCALARS: mul},
    "mad": {SCALARS: mad},
    "madc": {"u32 s32 u64 s64": madc},
    "mul24": {"u32 s32": mul24},
    "mad24": {"u32 s32": mad24},
    "sad": {SCALARS: sad},
    "div": {SCALARS: division("div")},
    "rem": {SCALARS: division("rem")},
    "abs": {"s16 s32 s64": absolute},
    "neg": {"s16 s32 s64 s8x4": negative},
    "min": {ALL: extreme("min")},
    "max": {ALL: extreme("max")},
    "dp4a": {"u32 s32": dp4a},
    "dp2a": {"u32 s32": dp2a},
}
