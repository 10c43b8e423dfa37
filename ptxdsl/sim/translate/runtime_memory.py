"""The runtime's loads and stores through host pointers, one a lane, and the access log.

Pointers of neighbours are one access of the host.
"""

from __future__ import annotations

import re

from ptxdsl.sim.layout import ACCESS, ALIKE, ROW, WARP, offset
from ptxdsl.sim.translate.emitter import WIDTH
from ptxdsl.sim.translate.runtime_fields import load, splat, store
from ptxdsl.sim.translate.runtime_pointers import JOIN, V


def _trace_join() -> str:
    """Lanes %t meet at a warp collective."""
    return f"""
define void @rt.trace_join(ptr %warp, i32 %t, i32 %site) {{
  {load("group")}
  {store("group", "%t")}
  call void @rt.trace(ptr %warp, i64 0, i8 1, {V} zeroinitializer, i32 {JOIN}, i32 0, i32 %site)
  {store("group", "%group")}
  ret void
}}"""


def _trace() -> str:
    return f"""
define void @rt.trace(ptr %warp, i64 %first, i8 %mask, {V} %a, i32 %how, i32 %space, i32 %site) {{
  {load("warp_cta", "ptr", "cta")}
  {load("cta_launch", "ptr", "launch")}
  {load("launch_trace", "ptr", "log")}
  %off = icmp eq ptr %log, null
  %nobody = icmp eq i8 %mask, 0
  %skip = or i1 %off, %nobody
  br i1 %skip, label %done, label %on
on:
  {load("log_count", "i64")}
  {load("log_capacity", "i64")}
  {load("log_entries", "ptr")}
  %next = add i64 %log_count, 1
  {store("log_count", "%next", "i64")}
  %twice = shl i64 %next, 1
  %much = icmp ugt i64 %twice, %log_capacity
  br i1 %much, label %soon, label %room
soon:
  {store("slice", "0")}
  br label %room
room:
  %fits = icmp ult i64 %log_count, %log_capacity
  br i1 %fits, label %write, label %done
write:
  %byte = mul i64 %log_count, {ACCESS.itemsize}
  %access = getelementptr i8, ptr %log_entries, i64 %byte
  %bytes = trunc i32 %how to i16
  %kind.wide = lshr i32 %how, 16
  %kind = trunc i32 %kind.wide to i16
  %space.byte = trunc i32 %space to i8
  %first.byte = trunc i64 %first to i8
{_form()}
  %warp.i = ptrtoint ptr %warp to i64
  {store("access_warp", "%warp.i", "i64")}
  {store("access_site", "%site")}
  {store("access_bytes", "%bytes", "i16")}
  {store("access_kind", "%kind", "i16")}
  {store("access_space", "%space.byte", "i8")}
  {store("access_first", "%first.byte", "i8")}
  {store("access_mask", "%mask", "i8")}
  {store("access_form", "%form", "i8")}
  {load("group")}
  {store("access_group", "%group")}
  {store("access_addresses", "%kept", V)}
  br label %done
done:
  ret void
}}"""


def _form() -> str:
    """IR for the form of an access of ``%bytes`` by lanes ``%mask``, and for the addresses %a as they are kept."""
    steps = ", ".join(f"i64 {i}" for i in range(WIDTH))
    return f"""
  %lead.i = call i8 @llvm.cttz.i8(i8 %mask, i1 true)
  %lead = extractelement {V} %a, i8 %lead.i
  {splat("lead.v", "%lead", V)}
  %active = bitcast i8 %mask to <{WIDTH} x i1>
  %unlike = icmp ne {V} %a, %lead.v
  %unlike.active = and <{WIDTH} x i1> %unlike, %active
  %unlike.bits = bitcast <{WIDTH} x i1> %unlike.active to i8
  %alike = icmp eq i8 %unlike.bits, 0
  %bytes.wide = zext i16 %bytes to i64
  {splat("bytes.v", "%bytes.wide", V)}
  %steps = mul {V} %bytes.v, <{steps}>
  %wanted = add {V} %lead.v, %steps
  %apart = icmp ne {V} %a, %wanted
  %apart.bits = bitcast <{WIDTH} x i1> %apart to i8
  %lined = icmp eq i8 %apart.bits, 0
  %all = icmp eq i8 %mask, -1
  %row = and i1 %lined, %all
  %other = select i1 %row, i8 {ROW}, i8 0
  %form = select i1 %alike, i8 {ALIKE}, i8 %other
  %kept = select i1 %alike, {V} %lead.v, {V} %a"""


def _in_order(bytes: int) -> str:
    """Branches to %together if the pointers %p are of neighbours, each ``bytes`` wide, else to %apart."""
    steps = ", ".join(f"i64 {bytes * i}" for i in range(WIDTH))
    return f"""
  %p0 = extractelement {V} %p, i64 0
  {splat("p0.v", "%p0", V)}
  %wanted = add {V} %p0.v, <{steps}>
  %differ = icmp ne {V} %p, %wanted
  %differ.bits = bitcast <{WIDTH} x i1> %differ to i8
  %in.order = icmp eq i8 %differ.bits, 0
  %first = inttoptr i64 %p0 to ptr
  br i1 %in.order, label %together, label %apart"""


def _load(bits: int) -> str:
    type = f"<{WIDTH} x i{bits}>"
    lines = [f"define {type} @rt.load_{bits}({V} %p) {{\nentry:{_in_order(bits // 8)}\ntogether:"]
    lines.append(f"  %all = load {type}, ptr %first, align {bits // 8}\n  ret {type} %all\napart:")
    value = "poison"
    for i in range(WIDTH):
        lines.append(f"  %i{i} = extractelement {V} %p, i64 {i}\n  %a{i} = inttoptr i64 %i{i} to ptr")
        lines.append(f"  %x{i} = load i{bits}, ptr %a{i}, align {bits // 8}")
        lines.append(f"  %v{i} = insertelement {type} {value}, i{bits} %x{i}, i64 {i}")
        value = f"%v{i}"
    lines.append(f"  ret {type} {value}\n}}")
    return "\n".join(lines)


def _store(bits: int) -> str:
    type = f"<{WIDTH} x i{bits}>"
    lines = [f"define void @rt.store_{bits}({V} %p, {type} %v) {{\nentry:{_in_order(bits // 8)}\ntogether:"]
    lines.append(f"  store {type} %v, ptr %first, align {bits // 8}\n  ret void\napart:")
    for i in range(WIDTH):
        lines.append(f"  %i{i} = extractelement {V} %p, i64 {i}\n  %a{i} = inttoptr i64 %i{i} to ptr")
        lines.append(
            f"  %x{i} = extractelement {type} %v, i64 {i}\n  store i{bits} %x{i}, ptr %a{i}, align {bits // 8}"
        )
    lines.append("  ret void\n}")
    return "\n".join(lines)


def _load_rows(count: int, bits: int) -> str:
    """Loads ``count`` elements a lane into the rows of the warp's ``wide``: row j has element j of all lanes."""
    row, every = f"<{WIDTH} x i{bits}>", f"<{WIDTH * count} x i{bits}>"
    wide = offset(WARP, "wide")
    lines = [
        f"define void @rt.load_{bits}x{count}(ptr %warp, {V} %p) {{\nentry:{_in_order(bits // 8 * count)}\ntogether:"
    ]
    lines.append(f"  %all = load {every}, ptr %first, align {bits // 8}")
    for j in range(count):
        picked = ", ".join(f"i32 {i * count + j}" for i in range(WIDTH))
        lines.append(f"  %row{j} = shufflevector {every} %all, {every} poison, <{WIDTH} x i32> <{picked}>")
        lines.append(f"  %to{j} = getelementptr i8, ptr %warp, i64 {wide + j * WIDTH * bits // 8}")
        lines.append(f"  store {row} %row{j}, ptr %to{j}, align 8")
    lines.append("  ret void\napart:")
    for i in range(WIDTH):
        lines.append(f"  %i{i} = extractelement {V} %p, i64 {i}\n  %a{i} = inttoptr i64 %i{i} to ptr")
        for j in range(count):
            lines.append(f"  %a{i}.{j} = getelementptr i{bits}, ptr %a{i}, i64 {j}")
            lines.append(f"  %x{i}.{j} = load i{bits}, ptr %a{i}.{j}, align {bits // 8}")
            lines.append(f"  %t{i}.{j} = getelementptr i8, ptr %warp, i64 {wide + (j * WIDTH + i) * bits // 8}")
            lines.append(f"  store i{bits} %x{i}.{j}, ptr %t{i}.{j}, align {bits // 8}")
    lines.append("  ret void\n}")
    return "\n".join(lines)


def _store_rows(count: int, bits: int) -> str:
    row = f"<{WIDTH} x i{bits}>"
    wide = offset(WARP, "wide")
    lines = [
        f"define void @rt.store_{bits}x{count}(ptr %warp, {V} %p) {{\nentry:{_in_order(bits // 8 * count)}\ntogether:"
    ]
    parts = []
    for j in range(count):
        lines.append(f"  %at{j} = getelementptr i8, ptr %warp, i64 {wide + j * WIDTH * bits // 8}")
        lines.append(f"  %row{j} = load {row}, ptr %at{j}, align 8")
        parts.append(f"%row{j}")
    length = WIDTH
    while len(parts) > 1:  # join the rows two by two
        joined = []
        for k in range(0, len(parts), 2):
            type = f"<{length} x i{bits}>"
            name = f"%j{length}.{k}"
            order = ", ".join(f"i32 {i}" for i in range(2 * length))
            lines.append(
                f"  {name} = shufflevector {type} {parts[k]}, {type} {parts[k + 1]}, <{2 * length} x i32> <{order}>"
            )
            joined.append(name)
        parts, length = joined, 2 * length
    every = f"<{length} x i{bits}>"
    order = ", ".join(f"i32 {j * WIDTH + i}" for i in range(WIDTH) for j in range(count))
    lines.append(f"  %all = shufflevector {every} {parts[0]}, {every} poison, <{length} x i32> <{order}>")
    lines.append(f"  store {every} %all, ptr %first, align {bits // 8}\n  ret void\napart:")
    for i in range(WIDTH):
        lines.append(f"  %i{i} = extractelement {V} %p, i64 {i}\n  %a{i} = inttoptr i64 %i{i} to ptr")
        for j in range(count):
            lines.append(f"  %t{i}.{j} = getelementptr i8, ptr %warp, i64 {wide + (j * WIDTH + i) * bits // 8}")
            lines.append(f"  %x{i}.{j} = load i{bits}, ptr %t{i}.{j}, align {bits // 8}")
            lines.append(f"  %a{i}.{j} = getelementptr i{bits}, ptr %a{i}, i64 {j}")
            lines.append(f"  store i{bits} %x{i}.{j}, ptr %a{i}.{j}, align {bits // 8}")
    lines.append("  ret void\n}")
    return "\n".join(lines)


_ACCESS = re.compile(r"(load|store)_(8|16|32|64)(?:x([248]))?")


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    if name == "trace":
        return _trace()
    if name == "trace_join":
        return _trace_join()
    match = _ACCESS.fullmatch(name)
    if match is None:
        return None
    bits, count = int(match[2]), int(match[3] or 1)
    if count == 1:
        return _load(bits) if match[1] == "load" else _store(bits)
    return _load_rows(count, bits) if match[1] == "load" else _store_rows(count, bits)
