"""Comparison and selection: setp, set, selp, slct, testp.

Source: PTX ISA, "Comparison and Selection Instructions", "Half Precision Comparison Instructions", "testp".
"""

from __future__ import annotations

from ptxdsl.sim.translate.emitter import ELEMENTS, Unsupported
from ptxdsl.sim.translate.ops_bits import LOGIC
from ptxdsl.sim.translate.ops_float_common import flush, widen_half
from ptxdsl.sim.translate.ops_form import Form, Operation, is_signed
from ptxdsl.sim.translate.ops_value import Lanes

# comparison -> predicate of icmp for signed, for unsigned, and of fcmp
COMPARISONS: dict[str, tuple[str | None, str | None, str | None]] = {
    "eq": ("eq", "eq", "oeq"),
    "ne": ("ne", "ne", "one"),
    "lt": ("slt", "ult", "olt"),
    "le": ("sle", "ule", "ole"),
    "gt": ("sgt", "ugt", "ogt"),
    "ge": ("sge", "uge", "oge"),
    "lo": (None, "ult", None),
    "ls": (None, "ule", None),
    "hi": (None, "ugt", None),
    "hs": (None, "uge", None),
    "equ": (None, None, "ueq"),
    "neu": (None, None, "une"),
    "ltu": (None, None, "ult"),
    "leu": (None, None, "ule"),
    "gtu": (None, None, "ugt"),
    "geu": (None, None, "uge"),
    "num": (None, None, "ord"),
    "nan": (None, None, "uno"),
}

HALVES = ("f16", "bf16", "f16x2", "bf16x2")
INTEGER_TYPES = "b16 b32 b64 u16 u32 u64 s16 s32 s64"
FLOAT_TYPES = f"f32 f64 {' '.join(HALVES)}"


def compared(form: Form) -> list[Lanes]:
    """The comparison's result; of a packed type two, the low halves' first. The type is the opcode's last."""
    comparison = form.needs(*COMPARISONS)
    signed, unsigned, floating = COMPARISONS[comparison]
    a, b = form.source(0), form.source(1)
    if form.type not in FLOAT_TYPES.split():
        predicate = signed if is_signed(form.type) else unsigned
        if predicate is None:
            raise Unsupported(f".{comparison} of integers")
        return [a.icmp(predicate, b)]
    if floating is None:
        raise Unsupported(f".{comparison} of floating-point numbers")
    ftz = form.has("ftz")
    halves = [(a, b)]
    if form.type.endswith("x2"):
        halves = [(a.trunc("i16"), b.trunc("i16")), (a.lshr(16).trunc("i16"), b.lshr(16).trunc("i16"))]
    results = []
    for x, y in halves:
        if form.type in HALVES:
            x, y = (widen_half(value, form.type, ftz) for value in (x, y))
        elif ftz:
            x, y = flush(x), flush(y)
        results.append(x.fcmp(floating, y))
    return results


def setp(form: Form) -> None:
    boolean = form.one_of(*LOGIC)
    form.count(3 if boolean else 2)
    results = compared(form)
    # The second destination has the complement's combination, or the upper halves' comparison.
    first, second = results if len(results) == 2 else (results[0], ~results[0])
    if boolean is not None:
        other = form.source(2, "pred")
        first, second = (LOGIC[boolean](value, other) for value in (first, second))
    p, q = form.two_results()
    form.write(p, first, "pred")
    form.write(q, second, "pred")


def set_value(form: Form) -> None:
    """All ones, or 1.0, where the comparison holds; the opcode's types are those of the result and of the operands."""
    boolean = form.one_of(*LOGIC)
    form.count(3 if boolean else 2)
    if len(form.types) != 2:
        raise Unsupported("two types are wanted")
    results = compared(form)
    if boolean is not None:
        other = form.source(2, "pred")
        results = [LOGIC[boolean](value, other) for value in results]
    type = form.types[0]
    one = {"f32": 0x3F80_0000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}.get(type, -1)
    if len(results) == 1:
        element = ELEMENTS[type]
        like = Lanes(form.e, element, "")
        form.result(results[0].choose(like.pattern(one), like.pattern(0)), type)
        return
    low, high = (value.choose(Lanes(form.e, "i32", "").pattern(one & 0xFFFF), 0) for value in results)
    form.result(low | high.shl(16), type)


def selp(form: Form) -> None:
    form.count(3)
    choice = form.source(2, "pred")
    form.result(choice.choose(form.source(0), form.source(1)))


def slct(form: Form) -> None:
    """a where c is not negative (nor NaN), else b. Types: of the result, of c."""
    form.count(3)
    type = form.types[0]
    c = form.source(2)
    if form.type == "f32":
        holds = (flush(c) if form.has("ftz") else c).fcmp("oge", 0.0)
    else:
        holds = c.icmp("sge", 0)
    form.result(holds.choose(form.source(0, type), form.source(1, type)), type)


def testp(form: Form) -> None:
    (a,) = form.sources(1)
    kind = form.needs("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    bits = a.as_bits()
    magnitude = bits & ((1 << (a.bits - 1)) - 1)
    infinity = {32: 0x7F80_0000, 64: 0x7FF0_0000_0000_0000}[a.bits]
    least_normal = {32: 1 << 23, 64: 1 << 52}[a.bits]
    zero = magnitude.icmp("eq", 0)
    finite = magnitude.icmp("ult", infinity)
    small = magnitude.icmp("ult", least_normal)
    result = {
        "finite": lambda: finite,
        "infinite": lambda: magnitude.icmp("eq", infinity),
        "number": lambda: magnitude.icmp("ule", infinity),
        "notanumber": lambda: magnitude.icmp("ugt", infinity),
        "normal": lambda: (finite & ~small) | zero,
        "subnormal": lambda: small & ~zero,
    }[kind]()
    form.result(result, "pred")


COMPARE: dict[str, dict[str, Operation]] = {
    "setp": {f"{INTEGER_TYPES} {FLOAT_TYPES}": setp},
    "set": {f"{INTEGER_TYPES} {FLOAT_TYPES}": set_value},
    "selp": {f"{INTEGER_TYPES} f32 f64": selp},
    "slct": {"s32 f32": slct},
    "testp": {"f32 f64": testp},
}
