"""Single instructions, run over the same operands on a card and in the simulator: one row an instruction.

A row is written ``result | instruction | operands``: the operands' types name the pools that fill ``%a %b %c %d`` (of a
type given twice, the second is the pool in another order), and ``%r`` is the result. ``GROUPS`` are kernels.
"""
# ruff: noqa: E501 (a table)

from __future__ import annotations

import re
from dataclasses import dataclass

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
FLOAT_COMPARISONS = (*COMPARISONS, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
ROUNDINGS = ("rn", "rz", "rm", "rp")


@dataclass(frozen=True)
class Row:
    """result: its type; setup: lines before, for instructions in several steps. bound: None: bit for bit; else the
    ISA's bound as (relative, absolute) error."""

    result: str
    text: str
    operands: tuple[str, ...]
    bound: tuple[float, float] | None = None


def rows(text: str, bound: tuple[float, float] | None = None) -> list[Row]:
    found = []
    for line in text.strip().splitlines():
        result, instruction, operands = (part.strip() for part in re.split(r"\s\|\s|\s\|$", line.strip()))
        found.append(Row(result, instruction, tuple(operands.split()), bound))
    return found


def each(template: str, **lists: tuple[str, ...]) -> str:
    """The template's lines for every combination of the lists' items (``<name>`` in it)."""
    lines = [line.strip() for line in template.strip().splitlines()]
    for name, items in lists.items():
        lines = [line.replace(f"<{name}>", item) for line in lines for item in items]
    return "\n".join(lines)


def _bool(instruction: str, result: str = "b32") -> str:
    """A predicate made visible: the instruction writes %p."""
    return f"{result} | {instruction} selp.b32 %r, 1, 0, %p;"


GROUPS: dict[str, list[Row]] = {}

GROUPS["integer_add"] = rows(
    each("b32 | <op>.<t> %r, %a, %b; | b32 b32", op=("add", "sub", "min", "max"), t=("u32", "s32"))
    + "\n" + each("b64 | <op>.<t> %r, %a, %b; | b64 b64", op=("add", "sub", "min", "max"), t=("u64", "s64"))
    + "\n" + each("b16 | <op>.<t> %r, %a, %b; | b16 b16", op=("add", "sub", "min", "max"), t=("u16", "s16"))
    + "\n" + each("b32 | <op>.s32 %r, %a; | b32", op=("abs", "neg"))
    + "\n" + each("b64 | <op>.s64 %r, %a; | b64", op=("abs", "neg"))
    + "\n" + each("b16 | <op>.s16 %r, %a; | b16", op=("abs", "neg"))
    + "\n" + each("b32 | <op> %r, %a, %b; | b32 b32", op=("add.s32.sat", "sub.s32.sat", "add.u16x2", "add.s16x2", "min.u16x2", "max.s16x2", "min.s16x2", "max.u16x2", "min.s32.relu", "max.s32.relu", "min.s16x2.relu"))
)  # fmt: skip
GROUPS["integer_multiply"] = rows(
    each("b32 | mul.<p>.<t> %r, %a, %b; | b32 b32", p=("lo", "hi"), t=("u32", "s32"))
    + "\n" + each("b64 | mul.<p>.<t> %r, %a, %b; | b64 b64", p=("lo", "hi"), t=("u64", "s64"))
    + "\n" + each("b16 | mul.<p>.<t> %r, %a, %b; | b16 b16", p=("lo", "hi"), t=("u16", "s16"))
    + "\n" + each("b64 | mul.wide.<t> %r, %a, %b; | b32 b32", t=("u32", "s32"))
    + "\n" + each("b32 | mul.wide.<t> %r, %a, %b; | b16 b16", t=("u16", "s16"))
    + "\n" + each("b32 | mul24.<p>.<t> %r, %a, %b; | b32 b32", p=("lo", "hi"), t=("u32", "s32"))
    + "\n" + each("b32 | mad.<p>.<t> %r, %a, %b, %c; | b32 b32 b32", p=("lo", "hi"), t=("u32", "s32"))
    + "\n" + each("b64 | mad.<p>.<t> %r, %a, %b, %c; | b64 b64 b64", p=("lo", "hi"), t=("u64", "s64"))
    + "\n" + each("b64 | mad.wide.<t> %r, %a, %b, %c; | b32 b32 b64", t=("u32", "s32"))
    + "\n" + each("b32 | mad.wide.<t> %r, %a, %b, %c; | b16 b16 b32", t=("u16", "s16"))
    + "\n" + each("b32 | mad24.<p>.<t> %r, %a, %b, %c; | b32 b32 b32", p=("lo", "hi"), t=("u32", "s32"))
    + "\nb32 | mad.hi.sat.s32 %r, %a, %b, %c; | b32 b32 b32"
    + "\n" + each("b32 | sad.<t> %r, %a, %b, %c; | b32 b32 b32", t=("u32", "s32"))
    + "\n" + each("b64 | sad.<t> %r, %a, %b, %c; | b64 b64 b64", t=("u64", "s64"))
    + "\n" + each("b32 | dp4a.<t>.<u> %r, %a, %b, %c; | b32 b32 b32", t=("u32", "s32"), u=("u32", "s32"))
    + "\n" + each("b32 | dp2a.<p>.<t>.<u> %r, %a, %b, %c; | b32 b32 b32", p=("lo", "hi"), t=("u32", "s32"), u=("u32", "s32"))
)  # fmt: skip
GROUPS["integer_divide"] = rows(  # by zero: what the card gives, the ISA leaves it open
    each("b32 | <op>.<t> %r, %a, %b; | b32 b32", op=("div", "rem"), t=("u32", "s32"))
    + "\n" + each("b64 | <op>.<t> %r, %a, %b; | b64 b64", op=("div", "rem"), t=("u64", "s64"))
    + "\n" + each("b16 | <op>.<t> %r, %a, %b; | b16 b16", op=("div", "rem"), t=("u16", "s16"))
)  # fmt: skip
GROUPS["carry"] = rows("""
    b32 | add.cc.u32 %r, %a, %b; addc.u32 %r, %c, %d; | b32 b32 b32 b32
    b32 | add.cc.u32 %r, %a, %b; addc.cc.u32 %r, %c, %d; addc.u32 %r, 0, 0; | b32 b32 b32 b32
    b32 | sub.cc.u32 %r, %a, %b; subc.u32 %r, %c, %d; | b32 b32 b32 b32
    b32 | sub.cc.u32 %r, %a, %b; subc.cc.u32 %r, %c, %d; subc.u32 %r, 0, 0; | b32 b32 b32 b32
    b32 | mad.lo.cc.u32 %r, %a, %b, %c; madc.hi.u32 %r, %a, %b, %d; | b32 b32 b32 b32
    b32 | mad.hi.cc.u32 %r, %a, %b, %c; addc.u32 %r, 0, 0; | b32 b32 b32
    b32 | mad.lo.cc.u32 %r, %a, %b, %c; madc.lo.cc.u32 %r, %a, %d, %r; addc.u32 %r, %r, 0; | b32 b32 b32 b32
    b64 | add.cc.u64 %r, %a, %b; addc.u64 %r, %c, %d; | b64 b64 b64 b64
    b64 | sub.cc.s64 %r, %a, %b; subc.s64 %r, %c, %d; | b64 b64 b64 b64
""")
GROUPS["shift"] = rows(
    each("b32 | <op> %r, %a, %b; | b32 shift", op=("shl.b32", "shr.u32", "shr.s32", "shr.b32"))
    + "\n" + each("b64 | <op> %r, %a, %b; | b64 shift", op=("shl.b64", "shr.u64", "shr.s64"))
    + "\n" + each("b16 | <op> %r, %a, %b; | b16 shift", op=("shl.b16", "shr.u16", "shr.s16"))
    + "\n" + each("b32 | shf.<d>.<m>.b32 %r, %a, %b, %c; | b32 b32 shift", d=("l", "r"), m=("wrap", "clamp"))
    + "\n" + each("b32 | bfe.<t>32 %r, %a, %b, %c; | b32 byte byte", t=("u", "s"))
    + "\n" + each("b64 | bfe.<t>64 %r, %a, %b, %c; | b64 byte byte", t=("u", "s"))
    + "\nb32 | bfi.b32 %r, %a, %b, %c, %d; | b32 b32 byte byte\nb64 | bfi.b64 %r, %a, %b, %c, %d; | b64 b64 byte byte"
    + "\n" + each("b32 | bmsk.<m>.b32 %r, %a, %b; | shift shift", m=("wrap", "clamp"))
    + "\n" + each("b32 | szext.<m>.<t>32 %r, %a, %b; | b32 shift", m=("wrap", "clamp"), t=("u", "s"))
)  # fmt: skip
GROUPS["bits"] = rows(
    each("b32 | <op>.b32 %r, %a, %b; | b32 b32", op=("and", "or", "xor"))
    + "\n" + each("b64 | <op>.b64 %r, %a, %b; | b64 b64", op=("and", "or", "xor"))
    + "\n" + each("b32 | <op>.b32 %r, %a; | b32", op=("not", "cnot", "popc", "clz", "brev"))
    + "\n" + each("b64 | <op>.b64 %r, %a; | b64", op=("not", "cnot", "brev"))
    + "\n" + each("b32 | <op>.b64 %r, %a; | b64", op=("popc", "clz"))
    + "\n" + each("b16 | <op>.b16 %r, %a; | b16", op=("not", "cnot"))
    + "\n" + each("b32 | bfind<s>.<t> %r, %a; | b32", s=("", ".shiftamt"), t=("u32", "s32"))
    + "\n" + each("b32 | bfind<s>.<t> %r, %a; | b64", s=("", ".shiftamt"), t=("u64", "s64"))
    + "\n" + each("b32 | lop3.b32 %r, %a, %b, %c, <i>; | b32 b32 b32", i=("0x80", "0xfe", "0x96", "0xca", "0x1b", "0x00", "0xff", "0xe8"))
    + "\n" + each("b32 | lop3.<o>.b32 %r|%p, %a, %b, %c, 0x96, %q; selp.b32 %r, 1, 0, %p; | b32 b32 b32", o=("or", "and"))
    + "\n" + each("b32 | prmt.b32<m> %r, %a, %b, %c; | b32 b32 b32", m=("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"))
    + "\n" + each("b32 | fns.b32 %r, %a, %b, %c; | b32 lane small")
)  # fmt: skip
GROUPS["compare_integer"] = rows(
    each(_bool("setp.<c>.<t> %p, %a, %b;") + " | b32 b32", c=COMPARISONS, t=("s32",))
    + "\n" + each(_bool("setp.<c>.<t> %p, %a, %b;") + " | b32 b32", c=("lo", "ls", "hi", "hs"), t=("u32",))
    + "\n" + each(_bool("setp.<c>.<t> %p, %a, %b;") + " | b64 b64", c=COMPARISONS, t=("s64", "u64"))
    + "\n" + each(_bool("setp.<c>.<t> %p, %a, %b;") + " | b16 b16", c=COMPARISONS, t=("s16", "u16"))
    + "\n" + each(_bool("setp.lt.<o>.s32 %p, %a, %b, %q;") + " | b32 b32", o=("and", "or", "xor"))
    + "\n" + each(_bool("setp.lt.<o>.s32 %p, %a, %b, !%q;") + " | b32 b32", o=("and", "or", "xor"))
    + "\nb32 | setp.lt.and.s32 %p|%q, %a, %b, %q; selp.b32 %r, 3, 5, %q; | b32 b32"
    + "\n" + each("b32 | set.<c>.<d>.s32 %r, %a, %b; | b32 b32", c=("lt", "eq"), d=("u32", "s32", "f32"))
    + "\nb32 | slct.s32.s32 %r, %a, %b, %c; | b32 b32 b32\nb64 | slct.b64.s32 %r, %a, %b, %c; | b64 b64 b32"
    + "\nf32 | slct.f32.f32 %r, %a, %b, %c; | f32 f32 f32\nb64 | selp.b64 %r, %a, %b, %q; | b64 b64"
)  # fmt: skip
GROUPS["compare_float"] = rows(
    each(_bool("setp.<c>.f32 %p, %a, %b;") + " | f32 f32", c=FLOAT_COMPARISONS)
    + "\n" + each(_bool("setp.<c>.f64 %p, %a, %b;") + " | f64 f64", c=("eq", "lt", "neu", "geu", "nan"))
    + "\n" + each(_bool("setp.<c>.ftz.f32 %p, %a, %b;") + " | f32 f32", c=("eq", "lt", "gtu"))
    + "\n" + each(_bool("setp.<c>.f16 %p, %a, %b;") + " | f16 f16", c=("eq", "lt", "neu", "num"))
    + "\n" + each(_bool("setp.<c>.bf16 %p, %a, %b;") + " | bf16 bf16", c=("eq", "lt", "neu", "nan"))
    + "\n" + each("b32 | setp.<c>.f16x2 %p|%q, %a, %b; selp.b32 %r, 1, 2, %p; selp.b32 %s, 4, 8, %q; or.b32 %r, %r, %s; | f16x2 f16x2", c=("lt", "geu"))
    + "\n" + each("b32 | testp.<c>.f32 %p, %a; selp.b32 %r, 1, 0, %p; | f32", c=("finite", "infinite", "number", "notanumber", "normal", "subnormal"))
    + "\n" + each("b32 | testp.<c>.f64 %p, %a; selp.b32 %r, 1, 0, %p; | f64", c=("finite", "notanumber", "subnormal"))
    + "\nf32 | copysign.f32 %r, %a, %b; | f32 f32\nf64 | copysign.f64 %r, %a, %b; | f64 f64"
    + "\n" + each("b32 | set.<c>.<d>.f32 %r, %a, %b; | f32 f32", c=("lt", "nan"), d=("u32", "f32"))
)  # fmt: skip
GROUPS["float32"] = rows(
    each("f32 | <op>.<r>.f32 %r, %a, %b; | f32 f32", op=("add", "sub", "mul"), r=ROUNDINGS)
    + "\n" + each("f32 | fma.<r>.f32 %r, %a, %b, %c; | f32 f32 f32", r=ROUNDINGS)
    + "\n" + each("f32 | <op>.<r>.f32 %r, %a, %b; | near near", op=("add", "mul"), r=ROUNDINGS)
    + "\n" + each("f32 | fma.<r>.f32 %r, %a, %b, %c; | near near near", r=ROUNDINGS)
    + "\n" + each("f32 | <op>.rn.ftz.f32 %r, %a, %b; | f32 f32", op=("add", "sub", "mul"))
    + "\n" + each("f32 | <op>.rn.sat.f32 %r, %a, %b; | f32 f32", op=("add", "mul"))
    + "\nf32 | fma.rn.ftz.f32 %r, %a, %b, %c; | f32 f32 f32\nf32 | fma.rn.sat.f32 %r, %a, %b, %c; | f32 f32 f32"
    + "\nf32 | fma.rp.ftz.sat.f32 %r, %a, %b, %c; | f32 f32 f32"
    + "\n" + each("f32 | <op><m>.f32 %r, %a, %b; | f32 f32", op=("min", "max"), m=("", ".ftz", ".NaN", ".NaN.xorsign.abs", ".xorsign.abs"))
    + "\n" + each("f32 | <op>.f32 %r, %a; | f32", op=("abs", "neg", "abs.ftz", "neg.ftz"))
)  # fmt: skip
GROUPS["float32_divide"] = rows(
    each("f32 | div.<r>.f32 %r, %a, %b; | f32 f32", r=ROUNDINGS)
    + "\n" + each("f32 | rcp.<r>.f32 %r, %a; | f32", r=ROUNDINGS)
    + "\n" + each("f32 | sqrt.<r>.f32 %r, %a; | f32", r=ROUNDINGS)
    + "\nf32 | div.rn.ftz.f32 %r, %a, %b; | f32 f32\nf32 | rcp.rn.ftz.f32 %r, %a; | f32\nf32 | sqrt.rn.ftz.f32 %r, %a; | f32"
    + "\n" + each("f32 | div.<r>.f32 %r, %a, %b; | near near", r=ROUNDINGS)
)  # fmt: skip
GROUPS["float64"] = rows(
    each("f64 | <op>.<r>.f64 %r, %a, %b; | f64 f64", op=("add", "sub", "mul", "div"), r=ROUNDINGS)
    + "\n" + each("f64 | fma.<r>.f64 %r, %a, %b, %c; | f64 f64 f64", r=ROUNDINGS)
    + "\n" + each("f64 | <op>.<r>.f64 %r, %a; | f64", op=("rcp", "sqrt"), r=ROUNDINGS)
    + "\n" + each("f64 | <op>.f64 %r, %a, %b; | f64 f64", op=("min", "max"))
    + "\n" + each("f64 | <op>.f64 %r, %a; | f64", op=("abs", "neg"))
)  # fmt: skip
GROUPS["half"] = rows(
    each("<t> | <op>.rn.<t> %r, %a, %b; | <t> <t>", op=("add", "sub", "mul"), t=("f16", "bf16", "f16x2", "bf16x2"))
    + "\n" + each("<t> | fma.rn<m>.<t> %r, %a, %b, %c; | <t> <t> <t>", t=("f16", "bf16", "f16x2", "bf16x2"), m=("", ".relu"))
    + "\n" + each("<t> | <op>.<t> %r, %a, %b; | <t> <t>", op=("min", "max", "min.NaN", "max.NaN", "min.NaN.xorsign.abs"), t=("f16", "bf16", "f16x2", "bf16x2"))
    + "\n" + each("<t> | <op>.<t> %r, %a; | <t>", op=("abs", "neg"), t=("f16", "bf16", "f16x2", "bf16x2"))
    + "\n" + each("f16 | <op>.f16 %r, %a, %b; | f16 f16", op=("add.ftz", "sub.sat", "mul.ftz.sat", "min.ftz"))
    + "\nf16 | fma.rn.ftz.sat.f16 %r, %a, %b, %c; | f16 f16 f16"
)  # fmt: skip
GROUPS["convert_integer"] = rows(
    each("b32 | cvt.<d>.<s> %r, %a; | b32", d=("u8", "s8", "u16", "s16"), s=("u32", "s32"))
    .replace("b32 | cvt.u8", "b16 | cvt.u8").replace("b32 | cvt.s8", "b16 | cvt.s8")
    .replace("b32 | cvt.u16", "b16 | cvt.u16").replace("b32 | cvt.s16", "b16 | cvt.s16")
    + "\n" + each("b64 | cvt.<d>.<s> %r, %a; | b32", d=("u64", "s64"), s=("u32", "s32"))
    + "\n" + each("b32 | cvt.<d>.<s> %r, %a; | b64", d=("u32", "s32"), s=("u64", "s64"))
    + "\n" + each("b32 | cvt.<d>.<s> %r, %a; | b16", d=("u32", "s32"), s=("u16", "s16", "u8", "s8"))
    + "\nb32 | cvt.sat.u32.s32 %r, %a; | b32\nb32 | cvt.sat.s32.u32 %r, %a; | b32"
    + "\n" + each("b32 | cvt.sat.<d>.<s> %r, %a; | b64", d=("u32", "s32"), s=("s64", "u64"))
    + "\n" + each("b16 | cvt.sat.<d>.<s> %r, %a; | b32", d=("u8", "s8", "u16", "s16"), s=("s32", "u32"))
    + "\n" + each("b32 | cvt.pack.sat.<d>.s32 %r, %a, %b; | b32 b32", d=("u16", "s16"))
    + "\n" + each("b32 | cvt.pack.sat.<d>.s32.b32 %r, %a, %b, %c; | b32 b32 b32", d=("u8", "s8"))
)  # fmt: skip
GROUPS["convert_float_to_integer"] = rows(
    each("b32 | cvt.<r>i.<d>.f32 %r, %a; | f32", r=ROUNDINGS, d=("u32", "s32"))
    + "\n" + each("b64 | cvt.<r>i.<d>.f32 %r, %a; | f32", r=("rn", "rz"), d=("u64", "s64"))
    + "\n" + each("b16 | cvt.rzi.<d>.f32 %r, %a; | f32", d=("u16", "s16", "u8", "s8"))
    + "\n" + each("b32 | cvt.<r>i.<d>.f64 %r, %a; | f64", r=ROUNDINGS, d=("u32", "s32"))
    + "\n" + each("b64 | cvt.<r>i.<d>.f64 %r, %a; | f64", r=ROUNDINGS, d=("u64", "s64"))
    + "\n" + each("b32 | cvt.<r>i.<d>.f16 %r, %a; | f16", r=("rn", "rz"), d=("u32", "s32"))
    + "\n" + each("b64 | cvt.rzi.<d>.f16 %r, %a; | f16", d=("u64", "s64"))
    + "\n" + each("b16 | cvt.rzi.<d>.f16 %r, %a; | f16", d=("u16", "s16"))
    + "\n" + each("b32 | cvt.rzi.<d>.bf16 %r, %a; | bf16", d=("u32", "s32"))
    + "\n" + each("f32 | cvt.<r>i.f32.f32 %r, %a; | f32", r=ROUNDINGS)
    + "\n" + each("f64 | cvt.<r>i.f64.f64 %r, %a; | f64", r=ROUNDINGS)
    + "\nf16 | cvt.rni.f16.f16 %r, %a; | f16\nb32 | cvt.rni.ftz.s32.f32 %r, %a; | f32"
)  # fmt: skip
GROUPS["convert_integer_to_float"] = rows(
    each("f32 | cvt.<r>.f32.<s> %r, %a; | b32", r=ROUNDINGS, s=("u32", "s32"))
    + "\n" + each("f32 | cvt.<r>.f32.<s> %r, %a; | b64", r=ROUNDINGS, s=("u64", "s64"))
    + "\n" + each("f64 | cvt.<r>.f64.<s> %r, %a; | b64", r=ROUNDINGS, s=("u64", "s64"))
    + "\n" + each("f64 | cvt.rn.f64.<s> %r, %a; | b32", s=("u32", "s32"))
    + "\n" + each("f16 | cvt.<r>.f16.<s> %r, %a; | b32", r=("rn", "rz"), s=("u32", "s32"))
    + "\n" + each("f16 | cvt.rn.f16.<s> %r, %a; | b64", s=("u64", "s64"))
    + "\n" + each("f16 | cvt.rn.f16.<s> %r, %a; | b16", s=("u16", "s16"))
    + "\n" + each("bf16 | cvt.rn.bf16.<s> %r, %a; | b32", s=("u32", "s32"))
    + "\n" + each("f32 | cvt.rn.f32.<s> %r, %a; | b16", s=("u16", "s16", "u8", "s8"))
)  # fmt: skip
GROUPS["convert_float"] = rows(
    each("f32 | cvt.<r>.f32.f64 %r, %a; | f64", r=ROUNDINGS)
    + "\nf64 | cvt.f64.f32 %r, %a; | f32\nf32 | cvt.f32.f16 %r, %a; | f16\nf32 | cvt.f32.bf16 %r, %a; | bf16"
    + "\n" + each("f16 | cvt.<r>.f16.f32 %r, %a; | f32", r=ROUNDINGS)
    + "\n" + each("f16 | cvt.<r>.f16.f64 %r, %a; | f64", r=("rn", "rz"))
    + "\nf64 | cvt.f64.f16 %r, %a; | f16\nf32 | cvt.sat.f32.f16 %r, %a; | f16\nf32 | cvt.ftz.f32.f16 %r, %a; | f16"
    + "\n" + each("bf16 | cvt.<r>.bf16.f32 %r, %a; | f32", r=("rn", "rz", "rn.relu", "rz.relu"))
    + "\n" + each("f16 | cvt.<r>.f16.f32 %r, %a; | f32", r=("rn.relu", "rz.relu"))
    + "\n" + each("<d> | cvt.<r>.<d>.f32 %r, %a, %b; | f32 f32", d=("f16x2", "bf16x2"), r=("rn", "rz", "rn.relu"))
    + "\n" + each("b32 | cvt.<r>.tf32.f32 %r, %a; | f32", r=("rna", "rn", "rz", "rn.relu"))
    + "\n" + each("b16 | cvt.rn.satfinite<m>.<d>x2.f32 %r, %a, %b; | f32 f32", d=("e4m3", "e5m2"), m=("", ".relu"))
    + "\n" + each("b16 | cvt.rn.satfinite.<d>x2.f16x2 %r, %a; | f16x2", d=("e4m3", "e5m2"))
    + "\n" + each("f16x2 | cvt.rn<m>.f16x2.<s>x2 %r, %a; | b16", s=("e4m3", "e5m2"), m=("", ".relu"))
    + "\nf32 | cvt.sat.f32.f32 %r, %a; | f32\nf32 | cvt.ftz.f32.f32 %r, %a; | f32\nbf16 | cvt.rn.bf16.f16 %r, %a; | f16"
)  # fmt: skip

GROUPS["flush"] = rows(  # results about the smallest normal number, and NaNs with payloads
    each("f32 | mul.<r>.ftz.f32 %r, %a, %b; | near least", r=ROUNDINGS)
    + "\n" + each("f32 | fma.<r>.ftz.f32 %r, %a, %b, %c; | near least zero", r=ROUNDINGS)
    + "\nf32 | div.rn.ftz.f32 %r, %b, %a; | near least\nf32 | add.rn.ftz.f32 %r, %a, %b; | least least\nf32 | mul.rn.f32 %r, %a, %b; | near least"
    + "\nf16 | mul.ftz.f16 %r, %a, %b; | least16 near16\nf16 | fma.rn.ftz.f16 %r, %a, %b, %c; | least16 near16 zero16"
    + "\nf32 | cvt.ftz.f32.f32 %r, %a; | least\nf32 | cvt.rn.ftz.f32.f64 %r, %a; | least64"
    + "\n" + each("f32 | mul.<r>.ftz.f32 %r, %a, %b; | edge unit", r=ROUNDINGS)
    + "\n" + each("f32 | fma.<r>.ftz.f32 %r, %a, %b, %c; | edge unit zero", r=ROUNDINGS)
    + "\n" + each("f64 | <op>.rn.f64 %r, %a, %b; | nan64 nan64", op=("add", "mul"))
    + "\n" + each("f64 | <op>.f64 %r, %a, %b; | nan64 nan64", op=("min", "max"))
    + "\nf64 | fma.rn.f64 %r, %a, %b, %c; | nan64 nan64 nan64\nf64 | div.rn.f64 %r, %a, %b; | nan64 nan64\nf64 | sqrt.rn.f64 %r, %a; | nan64"
    + "\nf64 | neg.f64 %r, %a; | nan64\nf64 | abs.f64 %r, %a; | nan64\nf32 | cvt.rn.f32.f64 %r, %a; | nan64"
    + "\n" + each("f32 | <op><m>.f32 %r, %a, %b; | nan32 nan32", op=("min", "max"), m=("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"))
    + "\nf64 | cvt.f64.f32 %r, %a; | nan32\nf16 | cvt.rn.f16.f32 %r, %a; | nan32\nbf16 | cvt.rn.bf16.f32 %r, %a; | nan32"
)  # fmt: skip

# The ISA's bounds (relative to the result; absolute where the ISA states an absolute error).
GROUPS["approximate"] = [
    *rows("f32 | ex2.approx.ftz.f32 %r, %a; | moderate\nf32 | ex2.approx.f32 %r, %a; | moderate", (2**-22.0, 2**-126.0)),
    *rows("f32 | lg2.approx.f32 %r, %a; | positive", (2**-21.0, 2**-21.0)),
    *rows("f32 | sin.approx.f32 %r, %a; | angle\nf32 | cos.approx.f32 %r, %a; | angle", (0, 2**-20.5)),
    *rows("f32 | rcp.approx.f32 %r, %a; | f32\nf32 | rcp.approx.ftz.f32 %r, %a; | f32", (2**-22.5, 0)),
    *rows("f32 | rsqrt.approx.f32 %r, %a; | f32\nf32 | rsqrt.approx.ftz.f32 %r, %a; | f32", (2**-22.3, 0)),
    *rows("f32 | sqrt.approx.f32 %r, %a; | f32\nf32 | sqrt.approx.ftz.f32 %r, %a; | f32", (2**-22.3, 0)),
    *rows("f32 | div.approx.f32 %r, %a, %b; | moderate positive\nf32 | div.full.f32 %r, %a, %b; | moderate positive", (2**-21.0, 0)),
    *rows("f32 | tanh.approx.f32 %r, %a; | f32", (2**-10.9, 0)),
    *rows("f16 | tanh.approx.f16 %r, %a; | f16\nf16x2 | tanh.approx.f16x2 %r, %a; | f16x2", (0, 2**-10.0)),
    *rows("bf16 | tanh.approx.bf16 %r, %a; | bf16", (0, 2**-7.0)),
    *rows("f16 | ex2.approx.f16 %r, %a; | f16", (2**-9.0, 2**-24.0)),
    *rows("bf16 | ex2.approx.ftz.bf16 %r, %a; | bf16", (2**-7.0, 2**-133.0)),
    *rows("f64 | rcp.approx.ftz.f64 %r, %a; | f64\nf64 | rsqrt.approx.ftz.f64 %r, %a; | f64", (2**-19.0, 0)),
]  # fmt: skip
