"""The runtime's atomic operations, one lane after the other.

Source: PTX ISA, "atom", "red": f32 additions in global memory flush subnormal numbers, those in shared memory do not;
additions of 16-bit floats (``.noftz``) round to nearest even, as does one in f32 followed by a rounding to 16 bits
(f32 has more than twice their precision).
"""

from __future__ import annotations

import re

from ptxdsl.sim.layout import WARP, offset
from ptxdsl.sim.translate.emitter import WIDTH
from ptxdsl.sim.translate.ops_float_common import canonical, encode, flush, widen_half
from ptxdsl.sim.translate.ops_half import extreme_of_two
from ptxdsl.sim.translate.ops_value import Build, Lanes, definition
from ptxdsl.sim.translate.runtime_fields import count_writes, load, next_lane

V = f"<{WIDTH} x i64>"

# From %old and %b (and %c) to %new, integers of the access's width {t}.
_INTEGER = {
    "add": "%new = add {t} %old, %b",
    "and": "%new = and {t} %old, %b",
    "or": "%new = or {t} %old, %b",
    "xor": "%new = xor {t} %old, %b",
    "exch": "%new = add {t} %b, 0",
    "min_u": "%new = call {t} @llvm.umin.{t}({t} %old, {t} %b)",
    "max_u": "%new = call {t} @llvm.umax.{t}({t} %old, {t} %b)",
    "min_s": "%new = call {t} @llvm.smin.{t}({t} %old, {t} %b)",
    "max_s": "%new = call {t} @llvm.smax.{t}({t} %old, {t} %b)",
    "inc": "%top = icmp uge {t} %old, %b\n  %up = add {t} %old, 1\n  %new = select i1 %top, {t} 0, {t} %up",
    "dec": "%zero = icmp eq {t} %old, 0\n  %over = icmp ugt {t} %old, %b\n  %wrap = or i1 %zero, %over\n"
    "  %down = sub {t} %old, 1\n  %new = select i1 %wrap, {t} %b, {t} %down",
    "cas": "%same = icmp eq {t} %old, %b\n  %new = select i1 %same, {t} %c, {t} %old",
}


def _flushed_add(old: Lanes, b: Lanes) -> Lanes:
    return canonical(flush(flush(old.as_float()) + flush(b.as_float()))).as_bits()


def _add_f64(old: Lanes, b: Lanes) -> Lanes:
    total = old.as_float() + b.as_float()
    return total.is_nan().choose(total.as_bits().pattern(0x7FF8 << 48), total.as_bits())


def _half(operation: str, kind: str) -> Build:
    """On codes of 16-bit floats."""
    if operation == "add":
        return lambda old, b: encode(widen_half(old, kind) + widen_half(b, kind), kind).trunc("i16")
    return lambda old, b: extreme_of_two(old, b, kind, operation == "min", nan=False)


def _pair(operation: str, kind: str) -> Build:
    one = _half(operation, kind)

    def both(old: Lanes, b: Lanes) -> Lanes:
        low = one(old.trunc("i16"), b.trunc("i16")).zext("i32")
        return low | one(old.lshr(16).trunc("i16"), b.lshr(16).trunc("i16")).zext("i32").shl(16)

    return both


# On floats, from the old value and the operand, both as integers: by name, the bits and the new value.
_FLOATS: dict[str, tuple[int, Build]] = {
    "add_f32": (32, lambda old, b: canonical(old.as_float() + b.as_float()).as_bits()),
    "add_f32_flush": (32, _flushed_add),
    "add_f64": (64, _add_f64),
    **{f"{op}_{kind}": (16, _half(op, kind)) for op in ("add", "min", "max") for kind in ("f16", "bf16")},
    **{f"{op}_{kind}x2": (32, _pair(op, kind)) for op in ("add", "min", "max") for kind in ("f16", "bf16")},
}


def _loop(name: str, bits: int, body: str, operands: int) -> str:
    """Over the lanes of %mask: memory at %p, operands %b and %c; gives the old values."""
    t, vec = f"i{bits}", f"<{WIDTH} x i{bits}>"
    extra = f", {vec} %cs" if operands == 2 else ""
    third = ""
    keep = ""
    if operands == 2:
        keep = f"\n  %c.all = alloca {vec}\n  store {vec} %cs, ptr %c.all"
        third = f"\n  %c.at = getelementptr {t}, ptr %c.all, i64 %i\n  %c = load {t}, ptr %c.at"
    return f"""
define {vec} @rt.{name}(ptr %warp, {V} %ps, i8 %mask, {vec} %bs{extra}) {{
entry:
  %p.all = alloca {V}
  %b.all = alloca {vec}
  %old.all = alloca {vec}
  store {V} %ps, ptr %p.all
  store {vec} %bs, ptr %b.all
  store {vec} zeroinitializer, ptr %old.all{keep}
  {load("warp_cta", "ptr", "cta")}
  {load("cta_launch", "ptr", "launch")}
  %none = icmp eq i8 %mask, 0
  %mask.wide = zext i8 %mask to i64
  br i1 %none, label %done, label %each
each:
  %left = phi i64 [ %mask.wide, %entry ], [ %left.next, %each ]
  %changes = phi i64 [ 0, %entry ], [ %changes.next, %each ]
  %i = call i64 @llvm.cttz.i64(i64 %left, i1 false)
  %p.at = getelementptr i64, ptr %p.all, i64 %i
  %p.i = load i64, ptr %p.at
  %p = inttoptr i64 %p.i to ptr
  %b.at = getelementptr {t}, ptr %b.all, i64 %i
  %b = load {t}, ptr %b.at{third}
  %old = load {t}, ptr %p
  {body}
  store {t} %new, ptr %p
  %old.at = getelementptr {t}, ptr %old.all, i64 %i
  store {t} %old, ptr %old.at
  %changed = icmp ne {t} %old, %new
  %changed.wide = zext i1 %changed to i64
  %changes.next = add i64 %changes, %changed.wide
  {next_lane()}
done:
  %total = phi i64 [ 0, %entry ], [ %changes.next, %each ]
  {count_writes("%total")}
  %result = load {vec}, ptr %old.all
  ret {vec} %result
}}"""


def _wide(name: str) -> str:
    """``atom.cas.b128`` and ``atom.exch.b128``: halves in the rows of the warp's ``wide``, and the old ones there."""
    wide = offset(WARP, "wide")
    rows = {"b": 0, "c": 128}
    lines = []
    for row, byte in rows.items():
        for half, at in (("lo", 0), ("hi", 64)):
            lines.append(f"%{row}.{half}.row = getelementptr i8, ptr %warp, i64 {wide + byte + at}")
            lines.append(f"%{row}.{half}.at = getelementptr i64, ptr %{row}.{half}.row, i64 %i")
            lines.append(f"%{row}.{half} = load i64, ptr %{row}.{half}.at")
    if name == "cas_128":
        lines += ["%same.lo = icmp eq i64 %old.lo, %b.lo", "%same.hi = icmp eq i64 %old.hi, %b.hi"]
        lines += ["%same = and i1 %same.lo, %same.hi"]
        lines += [
            "%new.lo = select i1 %same, i64 %c.lo, i64 %old.lo",
            "%new.hi = select i1 %same, i64 %c.hi, i64 %old.hi",
        ]
    else:
        lines += ["%new.lo = add i64 %b.lo, 0", "%new.hi = add i64 %b.hi, 0"]
    step = "\n  ".join(lines)
    return f"""
define void @rt.{name}(ptr %warp, {V} %ps, i8 %mask) {{
entry:
  %p.all = alloca {V}
  store {V} %ps, ptr %p.all
  {load("warp_cta", "ptr", "cta")}
  {load("cta_launch", "ptr", "launch")}
  %none = icmp eq i8 %mask, 0
  %mask.wide = zext i8 %mask to i64
  br i1 %none, label %done, label %each
each:
  %left = phi i64 [ %mask.wide, %entry ], [ %left.next, %each ]
  %i = call i64 @llvm.cttz.i64(i64 %left, i1 false)
  %p.at = getelementptr i64, ptr %p.all, i64 %i
  %p.i = load i64, ptr %p.at
  %p = inttoptr i64 %p.i to ptr
  %p.hi = getelementptr i64, ptr %p, i64 1
  %old.lo = load i64, ptr %p
  %old.hi = load i64, ptr %p.hi
  {step}
  store i64 %new.lo, ptr %p
  store i64 %new.hi, ptr %p.hi
  store i64 %old.lo, ptr %b.lo.at
  store i64 %old.hi, ptr %b.hi.at
  %d.lo = xor i64 %old.lo, %new.lo
  %d.hi = xor i64 %old.hi, %new.hi
  %d = or i64 %d.lo, %d.hi
  %changed = icmp ne i64 %d, 0
  %changed.wide = zext i1 %changed to i64
  {count_writes("%changed.wide")}
  {next_lane()}
done:
  ret void
}}"""


_NAME = re.compile(r"atom_(add|and|or|xor|exch|cas|inc|dec|min_u|max_u|min_s|max_s)_(16|32|64)")


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    if name in ("cas_128", "exch_128"):
        return _wide(name)
    match = _NAME.fullmatch(name)
    if match is not None:
        bits = int(match[2])
        return _loop(name, bits, _INTEGER[match[1]].format(t=f"i{bits}"), 2 if match[1] == "cas" else 1)
    if name in _FLOATS:
        bits, build = _FLOATS[name]
        return definition(f"rt.{name}", build, [(f"i{bits}", 0)] * 2)[0]
    operation = name.removeprefix("atom_")
    if operation in _FLOATS:
        bits = _FLOATS[operation][0]
        return _loop(name, bits, f"%new = call i{bits} @rt.{operation}(i{bits} %old, i{bits} %b)", 1)
    return None
