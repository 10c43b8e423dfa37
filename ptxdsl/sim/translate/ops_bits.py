"""Bits: logic, shifts, fields, counts, byte permutation, lop3.

Source: PTX ISA, "Logic and Shift Instructions", "Integer Arithmetic Instructions" (bfe to szext), "Data Movement and
Conversion Instructions: prmt".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxdsl.ptx.module import Immediate
from ptxdsl.sim.translate.emitter import Unsupported
from ptxdsl.sim.translate.ops_form import Form, Operation, is_signed
from ptxdsl.sim.translate.ops_value import Lanes

LOGIC: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def logic(combine: Callable[[Lanes, Lanes], Lanes]) -> Operation:
    return lambda form: form.result(combine(*form.sources(2)))


def shifted(value: Lanes, amount: Lanes | int, direction: str) -> Lanes:
    """``shl``, ``lshr`` or ``ashr`` by any amount (unsigned, of any type): beyond the width 0, or the sign."""
    last = value.bits - 1
    if isinstance(amount, int):
        if direction == "ashr":
            return value.ashr(min(amount, last))
        if amount > last:
            return value.like(0)
        return value.shl(amount) if direction == "shl" else value.lshr(amount)
    within = amount.umin(last).resize(value.element, signed=False)
    if direction == "ashr":
        return value.ashr(within)
    result = value.shl(within) if direction == "shl" else value.lshr(within)
    return amount.icmp("ugt", last).choose(0, result)


def shift(form: Form) -> None:
    form.count(2)
    direction = "shl" if form.name == "shl" else "ashr" if is_signed(form.type) else "lshr"
    form.result(shifted(form.source(0), amount(form, 1), direction))


def amount(form: Form, index: int) -> Lanes | int:
    """An unsigned 32-bit operand: a constant as a number, so that code is chosen for it."""
    operand = form.operands[index + 1]
    return operand.value & 0xFFFF_FFFF if isinstance(operand, Immediate) else form.source(index, "u32")


def funnel(form: Form) -> None:
    """shf: of the 64 bits ``b:a``, shifted, the upper half (``l``) or the lower one (``r``)."""
    left = form.needs("l", "r") == "l"
    clamp = form.needs("clamp", "wrap") == "clamp"
    a, b, c = form.sources(3)
    # llvm.fshl takes the amount modulo 32; its operands are the upper and the lower word.
    result = b.intrinsic("fshl" if left else "fshr", a, c)
    if clamp:
        result = c.icmp("ugt", 31).choose(a if left else b, result)
    form.result(result)


def count(measure: Callable[[Lanes], Lanes]) -> Operation:
    """An instruction whose result is 32 bits wide whatever the source's type."""

    def operation(form: Form) -> None:
        (a,) = form.sources(1)
        form.result(measure(a).resize("i32", signed=False), "u32")

    return operation


def find(form: Form) -> None:
    """bfind: the place of the highest bit that differs from the sign; all ones if there is none."""
    (a,) = form.sources(1)
    if is_signed(form.type):
        a = a ^ a.ashr(a.bits - 1)
    zeros = a.leading_zeros()
    found = zeros if form.has("shiftamt") else a.bits - 1 - zeros
    form.result(a.icmp("eq", 0).choose(-1, found.resize("i32", signed=True)), "u32")


def extract_field(form: Form) -> None:
    """bfe: ``len`` bits from ``pos`` on, extended. Bits beyond the operand are copies of its sign, or 0."""
    form.count(3)
    a = form.source(0)
    signed = is_signed(form.type)
    at, size = amount(form, 1), amount(form, 2)
    if isinstance(at, int) and isinstance(size, int):
        form.result(_constant_field(a, at & 0xFF, size & 0xFF, signed))
        return
    values = [a, form.source(1, "u32"), form.source(2, "u32")]
    form.result(form.apart(lambda a, pos, length: _field(a, pos & 0xFF, length & 0xFF, signed), *values))


def _field(a: Lanes, pos: Lanes, length: Lanes, signed: bool) -> Lanes:
    low = shifted(a, pos, "ashr" if signed else "lshr")
    # Up and down again by what is not of the field.
    spare = (length.icmp("ugt", a.bits).choose(0, a.bits - length)).resize(a.element, signed=False)
    inner = spare.umin(a.bits - 1)
    up = low.shl(inner)
    field = up.ashr(inner) if signed else up.lshr(inner)
    return length.icmp("eq", 0).choose(0, field)


def _constant_field(a: Lanes, pos: int, length: int, signed: bool) -> Lanes:
    if length == 0:
        return a.like(0)
    low = shifted(a, pos, "ashr" if signed else "lshr")
    spare = a.bits - length
    if spare <= 0 or (signed and pos + length >= a.bits):
        return low
    return low.shl(spare).ashr(spare) if signed else low & ((1 << length) - 1)


def insert_field(form: Form) -> None:
    """bfi: the low ``len`` bits of a replace those of b from ``pos`` on."""
    form.count(4)

    def compute(a: Lanes, b: Lanes, pos: Lanes, length: Lanes) -> Lanes:
        pos = pos & 0xFF
        ones = ~shifted(a.like(-1), length & 0xFF, "shl")
        mask = shifted(ones, pos, "shl")
        return (b & ~mask) | (shifted(a, pos, "shl") & mask)

    at, size = amount(form, 2), amount(form, 3)
    a, b = form.source(0), form.source(1)
    if isinstance(at, int) and isinstance(size, int):
        mask = ((1 << (size & 0xFF)) - 1) << (at & 0xFF)
        form.result((b & ~mask) | (shifted(a, at & 0xFF, "shl") & mask))
    else:
        form.result(form.apart(compute, a, b, form.source(2, "u32"), form.source(3, "u32")))


def mask_field(form: Form) -> None:
    """bmsk: ``b`` ones from bit ``a`` on."""
    clamp = form.needs("clamp", "wrap") == "clamp"
    a, b = form.sources(2)
    if not clamp:
        a, b = a & 31, b & 31
    ones = ~shifted(a.like(-1), b, "shl")
    form.result(shifted(ones, a, "shl"))


def extend_field(form: Form) -> None:
    """szext: the low N bits, extended by zeros or by the highest of them; from N = 32 on all (clamp) or N mod 32."""
    clamp = form.needs("clamp", "wrap") == "clamp"
    a, n = form.sources(2)
    if not clamp:
        n = n & 31
    spare = n.icmp("ugt", 31).choose(0, 32 - n)
    inner = spare.umin(31)
    up = a.shl(inner)
    field = up.ashr(inner) if is_signed(form.type) else up.lshr(inner)
    form.result(n.icmp("eq", 0).choose(0, field))


def find_nth(form: Form) -> None:
    """fns: the place of the n-th one from a base on, upwards or downwards."""
    form.count(3)
    form.result(form.apart(_nth, form.source(0, "b32"), form.source(1, "b32"), form.source(2, "s32")), "b32")


def _nth(mask: Lanes, base: Lanes, offset: Lanes) -> Lanes:
    base = base & 31
    down = offset.icmp("slt", 0)
    word = down.choose(mask.intrinsic("bitreverse").lshr(31 - base), mask.lshr(base))
    steps = offset.abs() - 1  # ones to be passed over; of offset 0: -1
    distance = mask.like(0)
    for size in (16, 8, 4, 2, 1):
        below = (word & ((1 << size) - 1)).popcount()
        beyond = steps.icmp("uge", below)
        word = beyond.choose(word.lshr(size), word)
        steps = beyond.choose(steps - below, steps)
        distance = beyond.choose(distance + size, distance)
    found = (word & 1).icmp("ne", 0) & steps.icmp("eq", 0)
    place = down.choose(base - distance, base + distance)
    here = (mask.lshr(base) & 1).icmp("ne", 0)
    zero = offset.icmp("eq", 0)
    place, found = zero.choose(base, place), (zero & here) | (~zero & found)
    return found.choose(place, -1)


def lut(inputs: Sequence[Lanes], table: int) -> Lanes:
    """The function of bits that a table of ``2**len(inputs)`` bits gives; the first input is the index's top bit."""
    result = _of_table(list(inputs), table)
    return result if isinstance(result, Lanes) else inputs[0].like(result)


def _of_table(inputs: list[Lanes], table: int) -> Lanes | int:
    """As ``lut``; a constant function is 0 or -1."""
    if not inputs:
        return -table
    choice, rest = inputs[0], inputs[1:]
    size = 1 << len(rest)
    ones = (1 << size) - 1
    high, low = table >> size, table & ones
    zero = _of_table(rest, low)
    if high == low:
        return zero
    if high == low ^ ones:
        if isinstance(zero, int):
            return ~choice if zero else choice
        return zero ^ choice
    if low == 0 or low == ones:
        one = _of_table(rest, high)
        assert isinstance(one, Lanes)
        return one | ~choice if low else one & choice
    assert isinstance(zero, Lanes)
    if high == 0 or high == ones:
        return zero | choice if high else zero & ~choice
    one = _of_table(rest, high)
    assert isinstance(one, Lanes)
    return ((one ^ zero) & choice) ^ zero


def lop3(form: Form) -> None:
    boolean = form.one_of(*LOGIC)
    form.count(5 if boolean else 4)
    immediate = form.operands[4]
    if not isinstance(immediate, Immediate) or not 0 <= immediate.value <= 255:
        raise Unsupported("the table is not a constant from 0 to 255")
    a, b, c = (form.source(i) for i in range(3))
    value = lut((a, b, c), immediate.value)
    if boolean is None:
        form.result(value)
        return
    destination, predicate = form.two_results()
    other = form.source(4, "pred")
    form.write(destination, value, form.type)
    form.write(predicate, LOGIC[boolean](value.icmp("ne", 0), other), "pred")


def permute(form: Form) -> None:
    """prmt: each byte of the result is one of the eight of b:a, or its sign in all bits."""
    mode = form.one_of("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    form.count(3)
    control = form.operands[3]
    if mode is None and isinstance(control, Immediate):
        form.result(_permuted(form, control.value), "b32")
        return
    form.result(form.apart(lambda a, b, c: _chosen(a, b, c, mode), *(form.source(i, "b32") for i in range(3))), "b32")


def _chosen(a: Lanes, b: Lanes, c: Lanes, mode: str | None) -> Lanes:
    pair = a.zext("i64") | b.zext("i64").shl(32)
    selectors = [c.lshr(4 * i) if i else c for i in range(4)] if mode is None else _selectors(mode, c & 3)
    result = a.like(0)
    for i, selector in enumerate(selectors):
        byte = pair.lshr((selector & 7).shl(3).zext("i64")).trunc("i8")
        if mode is None:
            byte = (selector & 8).icmp("ne", 0).choose(byte.ashr(7), byte)
        wide = byte.zext("i32")
        result = result | (wide.shl(8 * i) if i else wide)
    return result


def _permuted(form: Form, control: int) -> Lanes:
    """prmt with a constant control: one shuffle of bytes, and one more that puts signs where they are wanted."""
    a, b = (form.source(i, "b32").split("i8") for i in range(2))
    wanted = [control >> (4 * i) & 15 for i in range(4)]
    places = [4 * lane + s % 4 + (a.count if s & 4 else 0) for lane in range(a.count // 4) for s in wanted]
    result = _shuffled(a, b, places)
    if any(s & 8 for s in wanted):
        signs = [lane + (a.count if wanted[lane % 4] & 8 else 0) for lane in range(a.count)]
        result = _shuffled(result, result.ashr(7), signs)
    return result.split("i32")


def _shuffled(a: Lanes, b: Lanes, places: list[int]) -> Lanes:
    mask = ", ".join(f"i32 {place}" for place in places)
    text = a.code.do(f"shufflevector {a.typed}, {b.typed}, <{len(places)} x i32> <{mask}>")
    return Lanes(a.code, a.element, text, len(places))


def _selectors(mode: str, c: Lanes) -> list[Lanes]:
    """The four byte numbers of a mode for a control value of 0 to 3."""
    if mode == "f4e":
        return [c + i for i in range(4)]
    if mode == "b4e":
        return [(c - i) & 7 for i in range(4)]
    if mode == "rc8":
        return [c] * 4
    if mode == "ecl":
        return [c.umax(i) for i in range(4)]
    if mode == "ecr":
        return [c.umin(i) for i in range(4)]
    half = (c & 1).shl(1)  # rc16: the lower half for 0 and 2, the upper for 1 and 3
    return [half, half + 1] * 2


def bit_not(form: Form) -> None:
    (a,) = form.sources(1)
    form.result(~a)


def is_zero(form: Form) -> None:
    """cnot."""
    (a,) = form.sources(1)
    form.result(a.icmp("eq", 0).zext(a.element))


def reverse(form: Form) -> None:
    (a,) = form.sources(1)
    form.result(a.intrinsic("bitreverse"))


_FIELDS = "u32 s32 u64 s64"

BITS: dict[str, dict[str, Operation]] = {
    **{name: {"pred b16 b32 b64": logic(combine)} for name, combine in LOGIC.items()},
    "not": {"pred b16 b32 b64": bit_not},
    "cnot": {"b16 b32 b64": is_zero},
    "shl": {"b16 b32 b64": shift},
    "shr": {"b16 b32 b64 u16 u32 u64 s16 s32 s64": shift},
    "shf": {"b32": funnel},
    "popc": {"b32 b64": count(Lanes.popcount)},
    "clz": {"b32 b64": count(Lanes.leading_zeros)},
    "bfind": {_FIELDS: find},
    "brev": {"b32 b64": reverse},
    "bfe": {_FIELDS: extract_field},
    "bfi": {"b32 b64": insert_field},
    "bmsk": {"b32": mask_field},
    "szext": {"u32 s32": extend_field},
    "fns": {"b32": find_nth},
    "lop3": {"b32": lop3},
    "prmt": {"b32": permute},
}
