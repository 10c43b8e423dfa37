"""Named barriers in host code: what ``NamedBarrier`` and the handler of ``bar`` do, where nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.sim.layout import CAME, CTA_WARPS, LANES, MET, MOST_PARTIES, NAMED, SYNC, WENT, offset
from ptxdsl.sim.translate.runtime_fields import load, splat, store, unless
from ptxdsl.sim.translate.runtime_mbarriers import CAME_AND_WAITS, LEFT, MAKES_READY, QUIET

_BARRIERS = 16
_PARTIES = f"<{MOST_PARTIES} x i32>"


def _satisfied() -> str:
    return f"""
define i1 @rt.satisfied(ptr %named, ptr %cta) {{
  {load("named_first")}
  {load("named_count")}
  {load("named_arrived")}
  {load("cta_live")}
  %begun = icmp ne i32 %named_first, 0
  %all = icmp eq i32 %named_count, 0
  %enough = icmp uge i32 %named_arrived, %cta_live
  %exact = icmp eq i32 %named_arrived, %named_count
  %come = select i1 %all, i1 %enough, i1 %exact
  %satisfied = and i1 %begun, %come
  ret i1 %satisfied
}}"""


def _next_generation() -> str:
    return f"""
define void @rt.next_generation(ptr %named) {{
  {load("named_generation", "i64")}
  {load("named_latest", "i64")}
  %next = add i64 %named_generation, 1
  {store("named_generation", "%next", "i64")}
  {store("named_done_at", "%named_latest", "i64")}
  {store("named_arrived", "0")}
  {store("named_count", "0")}
  {store("named_first", "0")}
  {store("named_who", "0")}
  {store("named_lanes", "zeroinitializer", f"<{CTA_WARPS} x i32>")}
  ret void
}}"""


def _has_met() -> str:
    """Whether the generation that a warp waits for has ended, or can."""
    return f"""
define i1 @rt.has_met(ptr %warp, ptr %named) {{
  {load("warp_cta", "ptr", "cta")}
  {load("warp_wait_for")}
  {load("named_generation", "i64")}
  %generation = trunc i64 %named_generation to i32
  %ended = icmp ne i32 %generation, %warp_wait_for
  %satisfied = call i1 @rt.satisfied(ptr %named, ptr %cta)
  %met = or i1 %ended, %satisfied
  ret i1 %met
}}"""


def _go_on() -> str:
    """It has; lanes that have waited for it go on."""
    return f"""
define void @rt.go_on(ptr %turns, ptr %warp, ptr %named, ptr %site) {{
  {load("warp_wait_for")}
  {load("named_generation", "i64", "before")}
  %short = trunc i64 %before to i32
  %ended = icmp ne i32 %short, %warp_wait_for
  br i1 %ended, label %go, label %end
end:
  call void @rt.next_generation(ptr %named)
  br label %go
go:
  {load("named_generation", "i64")}
  {load("named_done_at", "i64")}
  {load("warp_clock", "i64")}
  %clock = call i64 @llvm.smax.i64(i64 %warp_clock, i64 %named_done_at)
  {store("warp_clock", "%clock", "i64")}
  %now = trunc i64 %named_generation to i32
  %ago = sub i32 %now, %warp_wait_for
  %ago.long = zext i32 %ago to i64
  %generation = sub i64 %named_generation, %ago.long
  {load("warp_wait_mask")}
  {load("site_number")}
  call void @rt.event(ptr %turns, ptr %warp, i32 {WENT}, i32 %site_number, i32 %warp_wait_mask, ptr %named,
    i64 %generation, i64 0)
  ret void
}}"""


# What the handler of `bar` does.
_COME = f"""
define i32 @rt.come(ptr %turns, ptr %warp, ptr %site, i32 %mask) {{
entry:
  {load("warp_cta", "ptr", "cta")}
  {load("cta_named", "ptr")}
  {load("cta_warps")}
  {load("cta_live")}
  {load("warp_live")}
  {load("warp_index")}
  {load("warp_wait", "ptr")}
  {load("site_kind")}
  {load("site_number")}
  {load("site_address")}
  {load("site_plus", "i64")}
  {load("site_operand")}
  {load("site_constant")}
  {load("site_aligned")}
  %nobody = icmp eq ptr %cta_named, null
  %whole = icmp eq i32 %mask, %warp_live
  %aligned = icmp ne i32 %site_aligned, 0
  %in.part = xor i1 %whole, true
  %not.whole = and i1 %in.part, %aligned
  %never = or i1 %nobody, %not.whole
  {unless("%never", "left", "read")}
  %given = icmp slt i32 %site_address, 0
  br i1 %given, label %number, label %number.of
number.of:
  %number.read = call i64 @rt.alike(ptr %warp, i32 %mask, i32 %site_address, i1 false)
  br label %number
number:
  %id = phi i64 [ %site_plus, %read ], [ %number.read, %number.of ]
  %constant = icmp slt i32 %site_operand, 0
  %constant.long = zext i32 %site_constant to i64
  br i1 %constant, label %counted, label %count.of
count.of:
  %count.read = call i64 @rt.alike(ptr %warp, i32 %mask, i32 %site_operand, i1 false)
  %no.count = icmp eq i64 %count.read, 0
  {unless("%no.count", "left", "count.there")}
  br label %counted
counted:
  %count.long = phi i64 [ %constant.long, %number ], [ %count.read, %count.there ]
  %bad.number = icmp uge i64 %id, {_BARRIERS}
  %threads.of.cta = mul i32 %cta_warps, {LANES}
  %threads.long = zext i32 %threads.of.cta to i64
  %too.many = icmp ugt i64 %count.long, %threads.long
  %rest = and i64 %count.long, {LANES - 1}
  %odd = icmp ne i64 %rest, 0
  %bad.count = or i1 %too.many, %odd
  %bad = or i1 %bad.number, %bad.count
  {unless("%bad", "left", "find")}
  %count = trunc i64 %count.long to i32
  %byte = mul i64 %id, {NAMED.itemsize}
  %named = getelementptr i8, ptr %cta_named, i64 %byte
  {load("named_first")}
  {load("named_count")}
  {load("named_arrived")}
  {load("named_who")}
  {load("named_voted")}
  %touched = getelementptr i8, ptr %named, i64 {offset(NAMED, "touched")}
  %touched.at = getelementptr i32, ptr %touched, i32 %warp_index
  %before = load i32, ptr %touched.at
  %new = icmp eq i32 %before, 0
  %begun = icmp ne i32 %named_first, 0
  %differs = icmp ne i32 %named_count, %count
  %other = and i1 %begun, %differs
  %voted = icmp ne i32 %named_voted, 0
  %lanes = call i32 @llvm.ctpop.i32(i32 %mask)
  %has.count = icmp ne i32 %count, 0
  %as.warp = and i1 %whole, %has.count
  %threads = select i1 %as.warp, i32 {LANES}, i32 %lanes
  %arrived = add i32 %named_arrived, %threads
  %surplus = icmp ugt i32 %arrived, %count
  %over = and i1 %surplus, %has.count
  %exact = icmp eq i32 %arrived, %count
  %enough = icmp uge i32 %arrived, %cta_live
  %complete = select i1 %has.count, i1 %exact, i1 %enough
  %syncs = icmp eq i32 %site_kind, {SYNC}
  %lasts = xor i1 %complete, true
  %waits = and i1 %syncs, %lasts
  %waits.already = icmp ne ptr %warp_wait, null
  %cannot = and i1 %waits, %waits.already
  %a = or i1 %new, %other
  %b = or i1 %voted, %over
  %c = or i1 %a, %b
  %d = or i1 %c, %cannot
  {unless("%d", "left", "parties")}
  %bit = shl i32 1, %warp_index
  %who = or i32 %named_who, %bit
  %party = and i1 %complete, %has.count
  br i1 %party, label %look, label %do
look:
  {load("named_parties")}
  {load("named_party", _PARTIES)}
  {splat("who.v", "%who", _PARTIES)}
  %same.v = icmp eq {_PARTIES} %named_party, %who.v
  %same = bitcast <{MOST_PARTIES} x i1> %same.v to i{MOST_PARTIES}
  %unknown = icmp eq i{MOST_PARTIES} %same, 0
  %room = icmp ult i32 %named_parties, {MOST_PARTIES}
  %to.note = and i1 %unknown, %room
  br i1 %to.note, label %left, label %do
do:
  %mark = add i32 %site_number, 1
  store i32 %mark, ptr %touched.at
  %first = select i1 %begun, i32 %named_first, i32 %mark
  {store("named_first", "%first")}
  {store("named_count", "%count")}
  {store("named_arrived", "%arrived")}
  {store("named_who", "%who")}
  %lanes.all = getelementptr i8, ptr %named, i64 {offset(NAMED, "lanes")}
  %lanes.at = getelementptr i32, ptr %lanes.all, i32 %warp_index
  %lanes.before = load i32, ptr %lanes.at
  %lanes.now = or i32 %lanes.before, %mask
  store i32 %lanes.now, ptr %lanes.at
  {load("named_latest", "i64")}
  {load("named_generation", "i64")}
  {load("warp_clock", "i64")}
  %latest = call i64 @llvm.smax.i64(i64 %warp_clock, i64 %named_latest)
  {store("named_latest", "%latest", "i64")}
  %meets = and i1 %complete, %syncs
  %kind = select i1 %meets, i32 {MET}, i32 {CAME}
  call void @rt.event(ptr %turns, ptr %warp, i32 %kind, i32 %site_number, i32 %mask, ptr %named,
    i64 %named_generation, i64 0)
  br i1 %complete, label %next, label %same.generation
next:
  call void @rt.next_generation(ptr %named)
  br i1 %syncs, label %after, label %made
after:
  {store("warp_clock", "%latest", "i64")}
  br label %made
made:
  ret i32 {MAKES_READY}
same.generation:
  br i1 %syncs, label %wait, label %quiet
wait:
  %generation = trunc i64 %named_generation to i32
  call void @rt.wait(ptr %warp, ptr %site, i32 %mask, ptr %named, i32 %generation)
  ret i32 {CAME_AND_WAITS}
quiet:
  ret i32 {QUIET}
left:
  ret i32 {LEFT}
}}"""


_FUNCTIONS: dict[str, Callable[[], str]] = {
    "satisfied": _satisfied,
    "next_generation": _next_generation,
    "has_met": _has_met,
    "go_on": _go_on,
    "come": lambda: _COME,
}


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    make = _FUNCTIONS.get(name)
    return None if make is None else make()
