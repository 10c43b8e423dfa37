"""The runtime's atomic operations, one lane after the other.

Source: PTX ISA, "atom", "red": f32 additions in global memory flush subnormal numbers, those in shared memory do not;
additions of 16-bit floats (``.noftz``) round to nearest even, as does one in f32 followed by a rounding to 16 bits
(f32 has more than twice their precision).
"""

from __future__ import annotations

import re

from ptxdsl.sim.layout import WARP, offset
from ptxdsl.sim.translate.emitter import WIDTH
from ptxdsl.sim.translate.runtime_fields import load, store

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


def _float_add(type: str, bits: int) -> str:
    return (
        f"%old.f = bitcast i{bits} %old to {type}\n  %b.f = bitcast i{bits} %b to {type}\n"
        f"  %new.f = fadd {type} %old.f, %b.f\n  %new.raw = bitcast {type} %new.f to i{bits}\n"
        f"  %nan = fcmp uno {type} %new.f, %new.f\n"
        f"  %new = select i1 %nan, i{bits} {(1 << (bits - 1)) - 1 if bits == 32 else 0x7FF8 << 48}, i{bits} %new.raw"
    )


def _flushed_add() -> str:
    """f32, subnormal operands and results taken as zeros of their sign."""
    lines = []
    for v in ("old", "b"):
        lines += [f"%{v}.exp = and i32 %{v}, 2139095040", f"%{v}.sub = icmp eq i32 %{v}.exp, 0"]
        lines += [f"%{v}.sign = and i32 %{v}, -2147483648", f"%{v}.z = select i1 %{v}.sub, i32 %{v}.sign, i32 %{v}"]
    add = _float_add("float", 32).replace("i32 %old to", "i32 %old.z to").replace("i32 %b to", "i32 %b.z to")
    lines += [add.replace("%new =", "%sum ="), "%sum.exp = and i32 %sum, 2139095040"]
    lines += ["%sum.sub = icmp eq i32 %sum.exp, 0", "%sum.sign = and i32 %sum, -2147483648"]
    lines += ["%new = select i1 %sum.sub, i32 %sum.sign, i32 %sum"]
    return "\n  ".join(lines)


def _half_operation(op: str, kind: str) -> str:
    """On 16-bit floats by way of f32."""
    lines = [f"%old.f = call float @rt.from_{kind}(i16 %old)", f"%b.f = call float @rt.from_{kind}(i16 %b)"]
    if op == "add":
        lines += ["%new.f = fadd float %old.f, %b.f", f"%new = call i16 @rt.to_{kind}(float %new.f)"]
        return "\n  ".join(lines)
    # Equal numbers are equal bits, but for zeros: -0 is below +0.
    less = "olt" if op == "min" else "ogt"
    sign = "or" if op == "min" else "and"
    lines += [
        f"%pick = fcmp {less} float %b.f, %old.f",
        "%equal = fcmp oeq float %b.f, %old.f",
        "%old.nan = fcmp uno float %old.f, %old.f",
        "%b.nan = fcmp uno float %b.f, %b.f",
        f"%both = {sign} i16 %old, %b",
        "%one = select i1 %pick, i16 %b, i16 %old",
        "%two = select i1 %equal, i16 %both, i16 %one",
        "%three = select i1 %b.nan, i16 %old, i16 %two",
        "%four = select i1 %old.nan, i16 %b, i16 %three",
        "%nans = and i1 %old.nan, %b.nan",
        "%new = select i1 %nans, i16 32767, i16 %four",
    ]
    return "\n  ".join(lines)


def _pair_operation(op: str, kind: str) -> str:
    return (
        "%old.lo = trunc i32 %old to i16\n  %old.up = lshr i32 %old, 16\n  %old.hi = trunc i32 %old.up to i16\n"
        "  %b.lo = trunc i32 %b to i16\n  %b.up = lshr i32 %b, 16\n  %b.hi = trunc i32 %b.up to i16\n"
        f"  %lo = call i16 @rt.{op}_{kind}(i16 %old.lo, i16 %b.lo)\n"
        f"  %hi = call i16 @rt.{op}_{kind}(i16 %old.hi, i16 %b.hi)\n"
        "  %lo.w = zext i16 %lo to i32\n  %hi.w = zext i16 %hi to i32\n  %hi.up = shl i32 %hi.w, 16\n"
        "  %new = or i32 %lo.w, %hi.up"
    )


def _conversions() -> dict[str, str]:
    return {
        "from_bf16": """
define float @rt.from_bf16(i16 %x) {
  %w = zext i16 %x to i32
  %s = shl i32 %w, 16
  %f = bitcast i32 %s to float
  ret float %f
}""",
        "to_bf16": """
define i16 @rt.to_bf16(float %f) {
  %x = bitcast float %f to i32
  %nan = fcmp uno float %f, %f
  %high = lshr i32 %x, 16
  %odd = and i32 %high, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %x, %half
  %up = lshr i32 %sum, 16
  %cut = trunc i32 %up to i16
  %r = select i1 %nan, i16 32767, i16 %cut
  ret i16 %r
}""",
        # The exponent is moved by a multiplication, which also makes subnormal numbers normal.
        "from_f16": f"""
define float @rt.from_f16(i16 %x) {{
  %w = zext i16 %x to i32
  %mag = and i32 %w, 32767
  %moved = shl i32 %mag, 13
  %m.f = bitcast i32 %moved to float
  %scale = bitcast i32 {(127 + 112) << 23} to float
  %n.f = fmul float %m.f, %scale
  %n = bitcast float %n.f to i32
  %big = icmp uge i32 %mag, 31744
  %inf = or i32 %moved, 2139095040
  %body = select i1 %big, i32 %inf, i32 %n
  %sign.low = and i32 %w, 32768
  %sign = shl i32 %sign.low, 16
  %all = or i32 %body, %sign
  %f = bitcast i32 %all to float
  ret float %f
}}""",
        "to_f16": f"""
define i16 @rt.to_f16(float %f) {{
  %x = bitcast float %f to i32
  %mag = and i32 %x, 2147483647
  %nan = icmp ugt i32 %mag, 2139095040
  %over = icmp uge i32 %mag, {(127 + 16) << 23}
  %small = icmp ult i32 %mag, {(127 - 14) << 23}
  %m.f = bitcast i32 %mag to float
  %magic = bitcast i32 {(127 - 14 - 10 + 23) << 23} to float
  %s.f = fadd float %m.f, %magic
  %s.bits = bitcast float %s.f to i32
  %s = sub i32 %s.bits, {(127 - 14 - 10 + 23) << 23}
  %odd.at = lshr i32 %mag, 13
  %odd = and i32 %odd.at, 1
  %rebased = sub i32 %mag, {112 << 23}
  %half = add i32 %odd, 4095
  %rounded = add i32 %rebased, %half
  %n = lshr i32 %rounded, 13
  %one = select i1 %small, i32 %s, i32 %n
  %two = select i1 %over, i32 31744, i32 %one
  %sign.at = lshr i32 %x, 16
  %sign = and i32 %sign.at, 32768
  %signed = or i32 %two, %sign
  %r = select i1 %nan, i32 32767, i32 %signed
  %cut = trunc i32 %r to i16
  ret i16 %cut
}}""",
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
  %less = sub i64 %left, 1
  %left.next = and i64 %left, %less
  %more = icmp ne i64 %left.next, 0
  br i1 %more, label %each, label %done
done:
  %total = phi i64 [ 0, %entry ], [ %changes.next, %each ]
  {load("launch_writes", "i64")}
  %writes.new = add i64 %launch_writes, %total
  {store("launch_writes", "%writes.new", "i64")}
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
  {load("launch_writes", "i64")}
  %writes.new = add i64 %launch_writes, %changed.wide
  {store("launch_writes", "%writes.new", "i64")}
  %less = sub i64 %left, 1
  %left.next = and i64 %left, %less
  %more = icmp ne i64 %left.next, 0
  br i1 %more, label %each, label %done
done:
  ret void
}}"""


_NAME = re.compile(r"atom_(add|and|or|xor|exch|cas|inc|dec|min_u|max_u|min_s|max_s)_(16|32|64)")
_FLOAT = re.compile(r"atom_(add|min|max)_(f32|f32_flush|f64|f16|bf16|f16x2|bf16x2)")
_HALF = re.compile(r"(add|min|max)_(f16|bf16)")


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    if name in ("cas_128", "exch_128"):
        return _wide(name)
    if name.startswith(("from_", "to_")):
        return _conversions().get(name)
    match = _NAME.fullmatch(name)
    if match is not None:
        bits = int(match[2])
        return _loop(name, bits, _INTEGER[match[1]].format(t=f"i{bits}"), 2 if match[1] == "cas" else 1)
    match = _HALF.fullmatch(name)
    if match is not None:
        body = _half_operation(match[1], match[2])
        return f"\ndefine i16 @rt.{name}(i16 %old, i16 %b) {{\n  {body}\n  ret i16 %new\n}}"
    match = _FLOAT.fullmatch(name)
    if match is None:
        return None
    op, type = match[1], match[2]
    if type in ("f16", "bf16"):
        return _loop(name, 16, f"%new = call i16 @rt.{op}_{type}(i16 %old, i16 %b)", 1)
    if type in ("f16x2", "bf16x2"):
        return _loop(name, 32, _pair_operation(op, type[:-2]), 1)
    if op != "add":
        return None
    if type == "f32_flush":
        return _loop(name, 32, _flushed_add(), 1)
    return (
        _loop(name, 32, _float_add("float", 32), 1) if type == "f32" else _loop(name, 64, _float_add("double", 64), 1)
    )
