"""The runtime's way from the addresses of a chunk's lanes to host pointers, with all checks.

``pointers_<space>`` takes the fast way when all active lanes lie in one region; else ``resolve`` looks at lane after
lane and records the first fault. Lanes that are not active, or that are at fault, get a pointer to a place in the
warp's record that nobody reads.
"""

from __future__ import annotations

from ptxdsl.sim.layout import (
    BAD_ADDRESS,
    GLOBAL_BASE,
    GRANULE_SHIFT,
    LOCAL_WINDOW,
    MISALIGNED,
    RANK_SHIFT,
    READ_ONLY,
    REGION,
    SHARED_START,
    SHARED_WINDOW,
    SPACES,
    WARP,
    WRONG_SPACE,
    offset,
)
from ptxdsl.sim.translate.emitter import WIDTH
from ptxdsl.sim.translate.runtime_fields import count_writes, load, next_lane, splat

# In `how`, above the bytes of one lane's access. An atomic operation counts as a write when it has changed something.
WRITE = 1 << 16
ATOMIC = 1 << 17
FENCE, JOIN = 1 << 18, 1 << 19  # in the access log alone

_LANES = ", ".join(f"i64 {i}" for i in range(WIDTH))
DUMMY = offset(WARP, "wide") + 768  # 256 bytes
V = f"<{WIDTH} x i64>"


_REGION_OF = f"""
  {load("launch_granules", "ptr")}
  {load("launch_granule_count", "i64")}
  {load("launch_regions", "ptr")}
  %from.base = sub i64 %a0, {GLOBAL_BASE}
  %granule = lshr i64 %from.base, {GRANULE_SHIFT}
  %granule.ok = icmp ult i64 %granule, %launch_granule_count
  br i1 %granule.ok, label %granule.in, label %NONE
granule.in:
  %number.at = getelementptr i16, ptr %launch_granules, i64 %granule
  %number = load i16, ptr %number.at
  %has.region = icmp ne i16 %number, 0
  br i1 %has.region, label %region.in, label %NONE
region.in:
  %number.wide = zext i16 %number to i64
  %region.byte = mul i64 %number.wide, {REGION.itemsize}
  %region = getelementptr i8, ptr %launch_regions, i64 %region.byte
  {load("region_start", "i64")}
  {load("region_end", "i64")}
  {load("region_host", "i64")}
  {load("region_writable", "i64")}"""


def _head(space: str) -> str:
    return f"""
define {V} @rt.pointers_{space}(ptr %warp, i64 %first, i8 %mask, {V} %a, i32 %how, i32 %site) {{
entry:
  %dummy = getelementptr i8, ptr %warp, i64 {DUMMY}
  %dummy.i = ptrtoint ptr %dummy to i64
  {splat("dummies", "%dummy.i", V)}
  %nobody = icmp eq i8 %mask, 0
  br i1 %nobody, label %idle, label %work
idle:
  ret {V} %dummies
work:
  {load("warp_cta", "ptr", "cta")}
  {load("cta_launch", "ptr", "launch")}
  %size = and i32 %how, 65535
  %bytes = zext i32 %size to i64
  %write = icmp uge i32 %how, {WRITE}
  %size.less = sub i64 %bytes, 1
  {splat("low", "%size.less", V)}
  %misaligned = and {V} %a, %low
  %aligned = icmp eq {V} %misaligned, zeroinitializer
  %lane0 = call i8 @llvm.cttz.i8(i8 %mask, i1 false)
  %a0 = extractelement {V} %a, i8 %lane0"""


def _tail(frames: str = "") -> str:
    """From %start, %end (addresses of the bytes that may be accessed) and %host (of %start) to the lanes' pointers.

    frames: a vector to be added to them."""
    pointers = f"%p = add {V} %d, %host.v"
    if frames:
        pointers = f"%p.frame = add {V} %d, %host.v\n  %p = add {V} %p.frame, {frames}"
    return f"""
  {splat("start.v", "%start", V)}
  %d = sub {V} %a, %start.v
  %length = sub i64 %end, %start
  %room = sub i64 %length, %bytes
  %fits = icmp sge i64 %room, 0
  br i1 %fits, label %check, label %slow
check:
  {splat("room.v", "%room", V)}
  %inside = icmp ule {V} %d, %room.v
  %good = and <{WIDTH} x i1> %inside, %aligned
  %good.bits = bitcast <{WIDTH} x i1> %good to i8
  %not.good = xor i8 %good.bits, -1
  %bad = and i8 %not.good, %mask
  %all.good = icmp eq i8 %bad, 0
  br i1 %all.good, label %fast, label %slow
fast:
  {splat("host.v", "%host", V)}
  {pointers}
  %mask.v = bitcast i8 %mask to <{WIDTH} x i1>
  %result = select <{WIDTH} x i1> %mask.v, {V} %p, {V} %dummies"""


_COUNT_WRITE = f"""
  %kind = lshr i32 %how, 16
  %counted = icmp eq i32 %kind, 1
  %one.write = zext i1 %counted to i64
  {count_writes("%one.write")}"""


def _slow(space: str) -> str:
    return f"""
  ret {V} %result
slow:
  %slow.result = call {V} @rt.pointers_slow(ptr %warp, i64 %first, i8 %mask, {V} %a, i32 %how, i32 %site,
    i32 {SPACES[space]})
  ret {V} %slow.result
}}"""


def _shared_bounds(window: int) -> str:
    """%start, %end, %host of this CTA's shared memory, addressed from ``window``."""
    return f"""
  {load("cta_shared", "i64")}
  {load("cta_shared_end", "i32")}
  {load("cta_rank", "i32")}
  %rank.wide = zext i32 %cta_rank to i64
  %rank.base = shl i64 %rank.wide, {RANK_SHIFT}
  %own.start = add i64 %rank.base, {window + SHARED_START}
  %end.wide = zext i32 %cta_shared_end to i64
  %end.add = add i64 %end.wide, {window}
  %own.end = add i64 %rank.base, %end.add
  %own.host = add i64 %cta_shared, {SHARED_START}"""


def _pointers(space: str) -> str:
    head = _head(space)
    region = (
        _REGION_OF.replace("%NONE", "%slow")
        + """
  %is.writable = icmp ne i64 %region_writable, 0
  %read = xor i1 %write, true
  %allowed = or i1 %is.writable, %read"""
    )
    if space == "global":
        return f"""{head}{region}
  br i1 %allowed, label %bounds, label %slow
bounds:
  %start = add i64 %region_start, 0
  %end = add i64 %region_end, 0
  %host = add i64 %region_host, 0{_tail()}{_COUNT_WRITE}{_slow(space)}"""
    if space in ("shared", "cluster"):
        bounds = _shared_bounds(0)
        return f"""{head}{bounds}
  %start = add i64 %own.start, 0
  %end = add i64 %own.end, 0
  %host = add i64 %own.host, 0{_tail()}{_COUNT_WRITE}{_slow(space)}"""
    if space == "generic":
        bounds = _shared_bounds(SHARED_WINDOW)
        return f"""{head}
  %high = lshr i64 %a0, 32
  %is.shared = icmp eq i64 %high, {SHARED_WINDOW >> 32}
  br i1 %is.shared, label %in.shared, label %elsewhere
in.shared:{bounds}
  br label %bounds
elsewhere:{region}
  br i1 %allowed, label %bounds, label %slow
bounds:
  %start = phi i64 [ %own.start, %in.shared ], [ %region_start, %region.in ]
  %end = phi i64 [ %own.end, %in.shared ], [ %region_end, %region.in ]
  %host = phi i64 [ %own.host, %in.shared ], [ %region_host, %region.in ]{_tail()}{_COUNT_WRITE}{_slow(space)}"""
    assert space == "local"
    return f"""{head}
  {load("cta_local", "i64")}
  {load("cta_local_bytes", "i32")}
  {load("warp_index", "i32")}
  %length.wide = zext i32 %cta_local_bytes to i64
  %index.wide = zext i32 %warp_index to i64
  %warp.first = shl i64 %index.wide, 5
  %thread = add i64 %warp.first, %first
  {splat("thread.v", "%thread", V)}
  %threads = add {V} %thread.v, <{_LANES}>
  {splat("length.v", "%length.wide", V)}
  %frames = mul {V} %threads, %length.v
  %start = add i64 0, 0
  %end = add i64 %length.wide, 0
  %host = add i64 %cta_local, 0{_tail("%frames")}{_slow(space)}"""


def _resolve() -> str:
    region = _REGION_OF.replace("%NONE", "%nowhere")
    return f"""
define i64 @rt.resolve(ptr %warp, i64 %lane, i64 %a0, i32 %how, i32 %site, i32 %space, i64 %dummy) {{
entry:
  {load("warp_cta", "ptr", "cta")}
  {load("cta_launch", "ptr", "launch")}
  %size = and i32 %how, 65535
  %bytes = zext i32 %size to i64
  %write = icmp uge i32 %how, {WRITE}
  %size.less = sub i64 %bytes, 1
  %mis = and i64 %a0, %size.less
  %is.aligned = icmp eq i64 %mis, 0
  %to.shared = sub i64 %a0, {SHARED_WINDOW}
  %to.local = sub i64 %a0, {LOCAL_WINDOW}
  %in.shared = icmp ult i64 %to.shared, {1 << 32}
  %in.local = icmp ult i64 %to.local, {1 << 32}
  switch i32 %space, label %in.global [ i32 {SPACES["generic"]}, label %generic
    i32 {SPACES["shared"]}, label %shared i32 {SPACES["cluster"]}, label %shared i32 {SPACES["local"]}, label %local ]
generic:
  br i1 %in.shared, label %shared, label %generic.2
generic.2:
  br i1 %in.local, label %local, label %region.look
in.global:
  %window = or i1 %in.shared, %in.local
  br i1 %window, label %strange, label %region.look
strange:
  br label %wrong
region.look:{region}
  %after.start = icmp uge i64 %a0, %region_start
  %end.of = add i64 %a0, %bytes
  %before.end = icmp ule i64 %end.of, %region_end
  %in.region = and i1 %after.start, %before.end
  br i1 %in.region, label %region.write, label %nowhere
region.write:
  %protected = icmp eq i64 %region_writable, 0
  %forbidden = and i1 %protected, %write
  br i1 %forbidden, label %wrong, label %region.done
region.done:
  %region.d = sub i64 %a0, %region_start
  %region.p = add i64 %region.d, %region_host
  br label %found
shared:
  %x = phi i64 [ %to.shared, %generic ], [ %a0, %entry ], [ %a0, %entry ]
  %rank = lshr i64 %x, {RANK_SHIFT}
  %off = and i64 %x, {(1 << RANK_SHIFT) - 1}
  {load("cta_rank")}
  %own.rank = zext i32 %cta_rank to i64
  %is.own = icmp eq i64 %rank, %own.rank
  br i1 %is.own, label %shared.own, label %shared.peer
shared.own:
  {load("cta_shared", "i64")}
  br label %shared.any
shared.peer:
  %cta.only = icmp eq i32 %space, {SPACES["shared"]}
  %rank.ok = icmp ult i64 %rank, 16
  %not.rank.ok = xor i1 %rank.ok, true
  br i1 %not.rank.ok, label %nowhere, label %shared.peer.2
shared.peer.2:
  {load("cta_peers", "ptr")}
  %peer.at = getelementptr i64, ptr %cta_peers, i64 %rank
  %peer = load i64, ptr %peer.at
  %no.peer = icmp eq i64 %peer, 0
  br i1 %no.peer, label %nowhere, label %shared.peer.3
shared.peer.3:
  br i1 %cta.only, label %wrong, label %shared.any
shared.any:
  %base = phi i64 [ %cta_shared, %shared.own ], [ %peer, %shared.peer.3 ]
  {load("cta_shared_end")}
  %shared.end = zext i32 %cta_shared_end to i64
  %off.end = add i64 %off, %bytes
  %off.low = icmp uge i64 %off, {SHARED_START}
  %off.high = icmp ule i64 %off.end, %shared.end
  %off.ok = and i1 %off.low, %off.high
  br i1 %off.ok, label %shared.done, label %nowhere
shared.done:
  %shared.p = add i64 %base, %off
  br label %found
local:
  %y = phi i64 [ %to.local, %generic.2 ], [ %a0, %entry ]
  {load("cta_local", "i64")}
  {load("cta_local_bytes")}
  {load("warp_index")}
  %frame = zext i32 %cta_local_bytes to i64
  %y.end = add i64 %y, %bytes
  %y.low = icmp ule i64 %y, %frame
  %y.high = icmp ule i64 %y.end, %frame
  %y.ok = and i1 %y.low, %y.high
  %w = zext i32 %warp_index to i64
  %w32 = shl i64 %w, 5
  %thread = add i64 %w32, %lane
  %frame.at = mul i64 %thread, %frame
  %frame.host = add i64 %cta_local, %frame.at
  %local.p = add i64 %frame.host, %y
  br i1 %y.ok, label %local.done, label %nowhere
local.done:
  br label %found
found:
  %p = phi i64 [ %region.p, %region.done ], [ %shared.p, %shared.done ], [ %local.p, %local.done ]
  br i1 %is.aligned, label %good, label %wrong
good:
  ret i64 %p
nowhere:
  br label %wrong
wrong:
  %kind = phi i32 [ {BAD_ADDRESS}, %nowhere ], [ {MISALIGNED}, %found ], [ {READ_ONLY}, %region.write ],
    [ {WRONG_SPACE}, %strange ], [ {WRONG_SPACE}, %shared.peer.3 ]
  %lane.i = trunc i64 %lane to i32
  call void @rt.fault(ptr %warp, i32 %kind, i32 %lane.i, i64 %a0, i32 %site)
  ret i64 %dummy
}}"""


def _pointers_slow() -> str:
    return f"""
define {V} @rt.pointers_slow(ptr %warp, i64 %first, i8 %mask, {V} %a, i32 %how, i32 %site, i32 %space) {{
entry:
  %addresses = alloca {V}
  %results = alloca {V}
  store {V} %a, ptr %addresses
  %dummy = getelementptr i8, ptr %warp, i64 {DUMMY}
  %dummy.i = ptrtoint ptr %dummy to i64
  {splat("dummies", "%dummy.i", V)}
  store {V} %dummies, ptr %results
  {load("warp_cta", "ptr", "cta")}
  {load("cta_launch", "ptr", "launch")}
  %write = icmp uge i32 %how, {WRITE}{_COUNT_WRITE}
  %mask.wide = zext i8 %mask to i64
  br label %each
each:
  %left = phi i64 [ %mask.wide, %entry ], [ %left.next, %each ]
  %i = call i64 @llvm.cttz.i64(i64 %left, i1 false)
  %at = getelementptr i64, ptr %addresses, i64 %i
  %address = load i64, ptr %at
  %lane = add i64 %first, %i
  %p = call i64 @rt.resolve(ptr %warp, i64 %lane, i64 %address, i32 %how, i32 %site, i32 %space, i64 %dummy.i)
  %to = getelementptr i64, ptr %results, i64 %i
  store i64 %p, ptr %to
  {next_lane()}
done:
  %result = load {V}, ptr %results
  ret {V} %result
}}"""


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    if name == "resolve":
        return _resolve()
    if name == "pointers_slow":
        return _pointers_slow()
    space = name.removeprefix("pointers_")
    return _pointers(space) if space != name and space in SPACES else None
