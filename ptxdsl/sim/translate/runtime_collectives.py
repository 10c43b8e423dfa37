"""The runtime's warp collectives, for lanes that stand at one instruction together.

Operands are pointers to 32 lanes. ``%exec``: the lanes that take part; results of other lanes are left alone.
Source: PTX ISA, "Parallel Synchronization and Communication Instructions": shfl, vote, match, redux, elect.
"""

from __future__ import annotations

import re

from ptxdsl.sim.translate.runtime_fields import load, next_lane, splat, store

_IOTA = "<" + ", ".join(f"i32 {i}" for i in range(32)) + ">"
V = "<32 x i32>"


def _blend(pointer: str, value: str, key: str, type: str = V) -> str:
    """Stores a vector in the lanes of %exec.v."""
    return (
        f"%{key}.old = load {type}, ptr {pointer}, align 4\n"
        f"  %{key}.new = select <32 x i1> %exec.v, {type} {value}, {type} %{key}.old\n"
        f"  store {type} %{key}.new, ptr {pointer}, align 4"
    )


# From what lane (%j) and whether it is in range (%ok), by mode.
_SHUFFLES = {
    "up": f"%j = sub {V} {_IOTA}, %bval\n  %ok = icmp sge {V} %j, %max",
    "down": f"%j = add {V} {_IOTA}, %bval\n  %ok = icmp sle {V} %j, %max",
    "bfly": f"%j = xor {V} {_IOTA}, %bval\n  %ok = icmp sle {V} %j, %max",
    "idx": f"%part = and {V} %bval, %not.mask\n  %j = or {V} %min, %part\n  %ok = icmp sle {V} %j, %max",
}


def _shuffle(mode: str) -> str:
    return f"""
define void @rt.shfl_{mode}(i32 %exec, ptr %d, ptr %p, ptr %a, ptr %b, ptr %c, ptr %warp, i32 %site) {{
entry:
  %index = alloca {V}
  %found = alloca {V}
  %exec.v = bitcast i32 %exec to <32 x i1>
  %b.all = load {V}, ptr %b, align 4
  %c.all = load {V}, ptr %c, align 4
  %bval = and {V} %b.all, splat (i32 31)
  %cval = and {V} %c.all, splat (i32 31)
  %c.high = lshr {V} %c.all, splat (i32 8)
  %mask = and {V} %c.high, splat (i32 31)
  %not.mask = xor {V} %mask, splat (i32 -1)
  %min = and {V} {_IOTA}, %mask
  %c.part = and {V} %cval, %not.mask
  %max = or {V} %min, %c.part
  {_SHUFFLES[mode]}
  %from = select <32 x i1> %ok, {V} %j, {V} {_IOTA}
  %from.in = and {V} %from, splat (i32 31)
  store {V} %from.in, ptr %index
  %whole = icmp eq i32 %exec, -1
  br i1 %whole, label %go, label %some
some:
  {splat("here", "%exec")}
  %here.from = lshr {V} %here, %from.in
  %here.bit = trunc {V} %here.from to <32 x i1>
  %here.bits = bitcast <32 x i1> %here.bit to i32
  %absent = xor i32 %here.bits, -1
  %strays = and i32 %absent, %exec
  {load("warp_stray_site")}
  %known = icmp ne i32 %warp_stray_site, 0
  %none = icmp eq i32 %strays, 0
  %quiet = or i1 %known, %none
  br i1 %quiet, label %go, label %note
note:
  %mark = add i32 %site, 1
  {store("warp_stray_site", "%mark")}
  {store("warp_stray_lanes", "%strays")}
  br label %go
go:
  br label %each
each:
  %i = phi i64 [ 0, %go ], [ %i.next, %each ]
  %at = getelementptr i32, ptr %index, i64 %i
  %source = load i32, ptr %at
  %source.at = getelementptr i32, ptr %a, i32 %source
  %value = load i32, ptr %source.at
  %to = getelementptr i32, ptr %found, i64 %i
  store i32 %value, ptr %to
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 32
  br i1 %more, label %each, label %done
done:
  %result = load {V}, ptr %found
  {_blend("%d", "%result", "r")}
  %ok.wide = sext <32 x i1> %ok to {V}
  {_blend("%p", "%ok.wide", "q")}
  ret void
}}"""


# The result as 32 bits, from %yes (the lanes that said yes) and %exec.
_VOTES = {
    "all": "%is = icmp eq i32 %yes, %exec\n  %value = sext i1 %is to i32",
    "any": "%is = icmp ne i32 %yes, 0\n  %value = sext i1 %is to i32",
    "uni": "%full = icmp eq i32 %yes, %exec\n  %none = icmp eq i32 %yes, 0\n"
    "  %is = or i1 %full, %none\n  %value = sext i1 %is to i32",
    "ballot": "%value = add i32 %yes, 0",
}


def _vote(mode: str) -> str:
    return f"""
define void @rt.vote_{mode}(i32 %exec, ptr %d, ptr %a) {{
  %exec.v = bitcast i32 %exec to <32 x i1>
  %said = load {V}, ptr %a, align 4
  %said.v = icmp slt {V} %said, zeroinitializer
  %said.bits = bitcast <32 x i1> %said.v to i32
  %yes = and i32 %said.bits, %exec
  {_VOTES[mode]}
  {splat("result", "%value")}
  {_blend("%d", "%result", "r")}
  ret void
}}"""


def _match(mode: str, bits: int) -> str:
    type = f"<32 x i{bits}>"
    same = f"""%at = getelementptr i{bits}, ptr %a, i64 %i
  %value = load i{bits}, ptr %at
  {splat("value.v", "%value", type)}
  %equal.v = icmp eq {type} %all, %value.v
  %equal.bits = bitcast <32 x i1> %equal.v to i32
  %equal = and i32 %equal.bits, %exec"""
    if mode == "any":
        return f"""
define void @rt.match_any_{bits}(i32 %exec, ptr %d, ptr %p, ptr %a) {{
entry:
  %found = alloca {V}
  %exec.v = bitcast i32 %exec to <32 x i1>
  %all = load {type}, ptr %a, align 4
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %i.next, %each ]
  {same}
  %to = getelementptr i32, ptr %found, i64 %i
  store i32 %equal, ptr %to
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 32
  br i1 %more, label %each, label %done
done:
  %result = load {V}, ptr %found
  {_blend("%d", "%result", "r")}
  ret void
}}"""
    return f"""
define void @rt.match_all_{bits}(i32 %exec, ptr %d, ptr %p, ptr %a) {{
  %exec.v = bitcast i32 %exec to <32 x i1>
  %all = load {type}, ptr %a, align 4
  %first = call i32 @llvm.cttz.i32(i32 %exec, i1 false)
  %i = zext i32 %first to i64
  {same}
  %is = icmp eq i32 %equal, %exec
  %members = select i1 %is, i32 %exec, i32 0
  %truth = sext i1 %is to i32
  {splat("result", "%members")}
  {splat("said", "%truth")}
  {_blend("%d", "%result", "r")}
  {_blend("%p", "%said", "q")}
  ret void
}}"""


_REDUCTIONS = {
    "add": ("0", "%next = add i32 %sum, %x"),
    "and": ("-1", "%next = and i32 %sum, %x"),
    "or": ("0", "%next = or i32 %sum, %x"),
    "xor": ("0", "%next = xor i32 %sum, %x"),
    "min_u32": ("-1", "%next = call i32 @llvm.umin.i32(i32 %sum, i32 %x)"),
    "max_u32": ("0", "%next = call i32 @llvm.umax.i32(i32 %sum, i32 %x)"),
    "min_s32": (str((1 << 31) - 1), "%next = call i32 @llvm.smin.i32(i32 %sum, i32 %x)"),
    "max_s32": (str(-(1 << 31)), "%next = call i32 @llvm.smax.i32(i32 %sum, i32 %x)"),
}


def _float_reduction(name: str) -> tuple[str, str]:
    """min/max of floats by their bits: -0 below +0; NaN loses, or with ``nan`` wins as 0x7fffffff."""
    least = name.startswith("min")
    absolute = "%x.bits = and i32 %x, 2147483647" if "abs" in name else "%x.bits = add i32 %x, 0"
    # As signed integers the bits of negative numbers run backwards.
    lines = [absolute, "%x.mag = and i32 %x.bits, 2147483647", "%x.nan = icmp ugt i32 %x.mag, 2139095040"]
    for v in ("x.bits", "sum"):
        lines += [f"%{v}.neg = ashr i32 %{v}, 31", f"%{v}.flip = lshr i32 %{v}.neg, 1"]
        lines += [f"%{v}.key = xor i32 %{v}, %{v}.flip"]
    lines += ["%sum.mag = and i32 %sum, 2147483647", "%sum.nan = icmp ugt i32 %sum.mag, 2139095040"]
    lines += [f"%better = icmp {'slt' if least else 'sgt'} i32 %x.bits.key, %sum.key"]
    lines += ["%picked = select i1 %better, i32 %x.bits, i32 %sum"]
    if "nan" in name:
        lines += ["%some.nan = or i1 %x.nan, %sum.nan", "%next = select i1 %some.nan, i32 2147483647, i32 %picked"]
        start = str(0x7F800000) if least else str(0xFF800000 - (1 << 32))
    else:
        lines += ["%keep = select i1 %sum.nan, i32 %x.bits, i32 %picked"]
        lines += ["%quiet = select i1 %x.nan, i32 %sum, i32 %keep", "%next = add i32 %quiet, 0"]
        start = str(0x7FFFFFFF)
    return start, "\n  ".join(lines)


def _reduction(name: str) -> str:
    start, step = _REDUCTIONS[name] if name in _REDUCTIONS else _float_reduction(name)
    return f"""
define void @rt.redux_{name}(i32 %exec, ptr %d, ptr %a) {{
entry:
  %exec.v = bitcast i32 %exec to <32 x i1>
  br label %each
each:
  %left = phi i32 [ %exec, %entry ], [ %left.next, %each ]
  %sum = phi i32 [ {start}, %entry ], [ %next, %each ]
  %i = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %at = getelementptr i32, ptr %a, i32 %i
  %x = load i32, ptr %at
  {step}
  {next_lane("i32")}
done:
  {splat("result", "%next")}
  {_blend("%d", "%result", "r")}
  ret void
}}"""


def _elect() -> str:
    return f"""
define void @rt.elect(i32 %exec, ptr %d, ptr %p) {{
  %exec.v = bitcast i32 %exec to <32 x i1>
  %leader = call i32 @llvm.cttz.i32(i32 %exec, i1 false)
  {splat("result", "%leader")}
  %is = icmp eq {V} %result, {_IOTA}
  %said = sext <32 x i1> %is to {V}
  {_blend("%d", "%result", "r")}
  {_blend("%p", "%said", "q")}
  ret void
}}"""


def _set() -> str:
    """One value in all lanes (``activemask``)."""
    return f"""
define void @rt.set(i32 %exec, ptr %d, i32 %value) {{
  %exec.v = bitcast i32 %exec to <32 x i1>
  {splat("result", "%value")}
  {_blend("%d", "%result", "r")}
  ret void
}}"""


_FLOAT_REDUCTION = re.compile(r"redux_((?:min|max)_f32(?:_abs)?(?:_nan)?)")


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    first, _, rest = name.partition("_")
    if first == "shfl" and rest in _SHUFFLES:
        return _shuffle(rest)
    if first == "vote" and rest in _VOTES:
        return _vote(rest)
    if name in ("match_any_32", "match_any_64", "match_all_32", "match_all_64"):
        return _match(rest[:3], int(rest[4:]))
    if first == "redux" and (rest in _REDUCTIONS or _FLOAT_REDUCTION.fullmatch(name)):
        return _reduction(rest)
    return {"elect": _elect, "set": _set}[name]() if name in ("elect", "set") else None
