"""Video instructions, without part selectors and masks on their operands: whole words, all halves, all bytes.

Source: PTX ISA, "Video Instructions".
"""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.sim.translate.emitter import Unsupported
from ptxdsl.sim.translate.ops_bits import shifted
from ptxdsl.sim.translate.ops_compare import COMPARISONS
from ptxdsl.sim.translate.ops_form import Form, Operation, is_signed
from ptxdsl.sim.translate.ops_value import Lanes


def _average(a: Lanes, b: Lanes) -> Lanes:
    """Half the sum, rounded away from zero where it is not negative, down where it is."""
    total = a + b
    return total.icmp("sge", 0).choose(total + 1, total).ashr(1)


# On integers twice as wide as what is computed with.
COMBINE: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vavrg": _average,
    "vabsdiff": lambda a, b: (a - b).abs(),
    "vmin": lambda a, b: a.smin(b),
    "vmax": lambda a, b: a.smax(b),
}
SECOND: dict[str, Callable[[Lanes, Lanes, bool], Lanes]] = {
    "add": lambda t, c, signed: t + c,
    "min": lambda t, c, signed: t.smin(c) if signed else t.umin(c),
    "max": lambda t, c, signed: t.smax(c) if signed else t.umax(c),
}


def _bounded(value: Lanes, bits: int, signed: bool) -> Lanes:
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    return value.smax(low).smin(high)


def simd(name: str, element: str) -> Operation:
    """``vadd4.dtype.atype.btype{.sat} d, a, b, c`` and with ``.add``: the sum of the parts and c."""
    bits = int(element[1:])
    wide = f"i{2 * bits}"

    def emit(form: Form) -> None:
        form.count(3)
        c = form.source(2, "b32")
        if name == "vset":
            signed, (a_type, b_type) = False, _types(form, 2)
        else:
            result_type, a_type, b_type = _types(form, 3)
            signed = is_signed(result_type)
        a = form.source(0, "b32").split(element).resize(wide, is_signed(a_type))
        b = form.source(1, "b32").split(element).resize(wide, is_signed(b_type))
        parts = _compared(form, a, b) if name == "vset" else COMBINE[name](a, b)
        if form.has("sat"):
            parts = _bounded(parts, bits, signed)
        if not form.has("add"):
            form.result(parts.trunc(element).split("i32"), "b32")
            return
        words = parts.resize("i32", signed=True)
        total = c
        for i in range(32 // bits):
            picks = ", ".join(f"i32 {32 // bits * lane + i}" for lane in range(c.count))
            mask = f"<{c.count} x i32> <{picks}>"
            text = form.e.do(f"shufflevector {words.typed}, {words.type} poison, {mask}")
            total = total + Lanes(form.e, "i32", text, c.count)
        form.result(total, "b32")

    return emit


def _types(form: Form, count: int) -> list[str]:
    if len(form.types) != count or any(type not in ("u32", "s32") for type in form.types):
        raise Unsupported(f"types .{'.'.join(form.types)}")
    return form.types


def _compared(form: Form, a: Lanes, b: Lanes) -> Lanes:
    predicate = COMPARISONS[form.needs("eq", "ne", "lt", "le", "gt", "ge")][0]
    assert predicate is not None
    return a.icmp(predicate, b).zext(a.element)


def scalar(name: str) -> Operation:
    """``vadd.dtype.atype.btype{.sat}{.op2} d, a, b{, c}``."""

    def emit(form: Form) -> None:
        if name == "vset":
            signed, (a_type, b_type) = False, _types(form, 2)
        else:
            result_type, a_type, b_type = _types(form, 3)
            signed = is_signed(result_type)
        a = form.source(0, "b32").resize("i64", is_signed(a_type))
        word = form.source(1, "b32")
        if name == "vset":
            value = _compared(form, a, word.resize("i64", is_signed(b_type)))
        elif name in ("vshl", "vshr"):
            amount = word.umin(32) if form.needs("clamp", "wrap") == "clamp" else word & 31
            direction = "shl" if name == "vshl" else "ashr" if is_signed(a_type) else "lshr"
            value = shifted(a, amount, direction)
        else:
            value = COMBINE[name](a, word.resize("i64", is_signed(b_type)))
        if form.has("sat"):
            value = _bounded(value, 32, signed)
        second = form.one_of(*SECOND)
        form.count(2 if second is None else 3)
        result = value.trunc("i32")
        if second is not None:
            result = SECOND[second](result, form.source(2, "b32"), signed)
        form.result(result, "b32")

    return emit


def multiply_add(form: Form) -> None:
    """``vmad.dtype.atype.btype{.po}{.sat}{.shr7|.shr15} d, a, b, c``."""
    form.count(3)
    _, a_type, b_type = _types(form, 3)
    signed = is_signed(a_type) or is_signed(b_type)
    a = form.source(0, "b32").resize("i128", is_signed(a_type))
    b = form.source(1, "b32").resize("i128", is_signed(b_type))
    total = a * b + form.source(2, "b32").resize("i128", signed)
    if form.has("po"):
        total = total + 1
    scale = form.one_of("shr7", "shr15")
    if scale is not None:
        total = total.ashr(int(scale[3:]))
    if form.has("sat"):
        total = _bounded(total, 32, signed)
    form.result(total.trunc("i32"), "b32")


_WORDS = "u32 s32"

VIDEO: dict[str, dict[str, Operation]] = {
    **{f"{name}2": {_WORDS: simd(name, "i16")} for name in (*COMBINE, "vset")},
    **{f"{name}4": {_WORDS: simd(name, "i8")} for name in (*COMBINE, "vset")},
    **{name: {_WORDS: scalar(name)} for name in (*COMBINE, "vshl", "vshr", "vset") if name != "vavrg"},
    "vmad": {_WORDS: multiply_add},
}
