"""Warps that wait, in host code: whether what they wait for is there, and how they go on."""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.sim.layout import BARRIER, GROUP_WAIT, INERT, RESUMED, RUNNABLE, SYNC, WARPGROUP, offset
from ptxdsl.sim.translate.runtime_fields import load, set_lanes, store


def _ready() -> str:
    """Whether what a warp waits for is there."""
    return f"""
define i1 @rt.ready(ptr %warp) {{
  {load("warp_wait", "ptr")}
  %none = icmp eq ptr %warp_wait, null
  br i1 %none, label %no, label %kind
kind:
  {load("warp_wait_at", "ptr", "site")}
  {load("site_kind")}
  switch i32 %site_kind, label %look [ i32 {SYNC}, label %ask i32 {GROUP_WAIT}, label %count ]
count:
  %done.at = getelementptr i8, ptr %warp_wait, i64 {offset(WARPGROUP, "carried_out")}
  %done = load i32, ptr %done.at
  {load("warp_wait_for", "i32", "product")}
  %reached = icmp uge i32 %done, %product
  ret i1 %reached
ask:
  %met = call i1 @rt.has_met(ptr %warp, ptr %warp_wait)
  ret i1 %met
look:
  %phase.at = getelementptr i8, ptr %warp_wait, i64 {offset(BARRIER, "phase")}
  %phase = load i64, ptr %phase.at
  {load("warp_wait_for")}
  %parity = zext i32 %warp_wait_for to i64
  %odd = and i64 %phase, 1
  %ready = icmp ne i64 %odd, %parity
  ret i1 %ready
no:
  ret i1 false
}}"""


def _wake() -> str:
    """Those of a cluster who are ready may move. False, and nothing done, where the machine must be asked of one."""
    return f"""
define i1 @rt.wake(ptr %turns, ptr %cluster, i64 %time) {{
entry:
  {load("cluster_count")}
  {load("cluster_blocked", "ptr")}
  {load("turns_warps", "ptr")}
  %nobody = icmp eq i32 %cluster_count, 0
  br i1 %nobody, label %done, label %look
look:
  %i = phi i32 [ 0, %entry ], [ %i.next, %known ]
  %at = getelementptr i32, ptr %cluster_blocked, i32 %i
  %slot = load i32, ptr %at
  %warp.at = getelementptr ptr, ptr %turns_warps, i32 %slot
  %there = load ptr, ptr %warp.at
  %strange = icmp eq ptr %there, null
  br i1 %strange, label %ask, label %known
known:
  %i.next = add i32 %i, 1
  %all = icmp eq i32 %i.next, %cluster_count
  br i1 %all, label %each, label %look
ask:
  ret i1 false
each:
  %k = phi i32 [ 0, %known ], [ %k.next, %next ]
  %kept = phi i32 [ 0, %known ], [ %kept.next, %next ]
  %k.at = getelementptr i32, ptr %cluster_blocked, i32 %k
  %k.slot = load i32, ptr %k.at
  %k.warp.at = getelementptr ptr, ptr %turns_warps, i32 %k.slot
  %warp = load ptr, ptr %k.warp.at
  %warp.number = ptrtoint ptr %warp to i64
  %inert = icmp eq i64 %warp.number, {INERT}
  br i1 %inert, label %stay, label %ask.it
ask.it:
  %ready = call i1 @rt.ready(ptr %warp)
  br i1 %ready, label %move, label %stay
move:
  {store("warp_woken_at", "%time", "i64")}
  call void @rt.push(ptr %turns, ptr %warp)
  br label %next
stay:
  %stay.at = getelementptr i32, ptr %cluster_blocked, i32 %kept
  store i32 %k.slot, ptr %stay.at
  %one.more = add i32 %kept, 1
  br label %next
next:
  %kept.next = phi i32 [ %kept, %move ], [ %one.more, %stay ]
  %k.next = add i32 %k, 1
  %over = icmp eq i32 %k.next, %cluster_count
  br i1 %over, label %cut, label %each
cut:
  {store("cluster_count", "%kept.next")}
  br label %done
done:
  ret i1 true
}}"""


def _resume() -> str:
    """Lanes that waited go on, if what they wait for is there: 1 if so, 0 if not, -1 where it is the machine's."""
    return f"""
define i32 @rt.resume(ptr %turns, ptr %warp) {{
  %ready = call i1 @rt.ready(ptr %warp)
  br i1 %ready, label %kind, label %no
kind:
  {load("warp_wait", "ptr", "bar")}
  {load("warp_wait_at", "ptr", "site")}
  {load("site_kind")}
  switch i32 %site_kind, label %look [ i32 {SYNC}, label %leave i32 {GROUP_WAIT}, label %over ]
over:
  call void @rt.wait_over(ptr %turns, ptr %warp, ptr %bar, ptr %site)
  br label %released
leave:
  call void @rt.go_on(ptr %turns, ptr %warp, ptr %bar, ptr %site)
  br label %released
released:
  call void @rt.release(ptr %warp, ptr %site)
  ret i32 1
look:
  {load("bar_cell", "ptr")}
  {load("bar_word", "i64")}
  %bytes = load i64, ptr %bar_cell
  %overwritten = icmp ne i64 %bytes, %bar_word
  br i1 %overwritten, label %left, label %sound
sound:
  {load("warp_wait_mask")}
  {load("warp_woken_at", "i64")}
  {load("warp_clock", "i64")}
  %late = icmp sgt i64 %warp_woken_at, %warp_clock
  %clock = select i1 %late, i64 %warp_woken_at, i64 %warp_clock
  {store("warp_clock", "%clock", "i64")}
  %seen = call i1 @rt.saw(ptr %bar, ptr %warp, i32 %warp_wait_mask, ptr %site)
  br i1 %seen, label %go, label %undo
undo:
  {store("warp_clock", "%warp_clock", "i64")}
  br label %left
left:
  ret i32 -1
go:
  call void @rt.release(ptr %warp, ptr %site)
  {load("site_number")}
  {load("bar_seen", "i64")}
  call void @rt.event(ptr %turns, ptr %warp, i32 {RESUMED}, i32 %site_number, i32 %warp_wait_mask, ptr %bar,
    i64 %bar_seen, i64 0)
  ret i32 1
no:
  ret i32 0
}}"""


def _release() -> str:
    """Lanes that have waited at a site run again, behind it."""
    return f"""
define void @rt.release(ptr %warp, ptr %site) {{
  {store("warp_wait", "null", "ptr")}
  {load("warp_wait_mask")}
  {load("warp_blocked")}
  %others = xor i32 %warp_wait_mask, -1
  %blocked = and i32 %warp_blocked, %others
  {store("warp_blocked", "%blocked")}
  {load("site_next")}
  {set_lanes("warp_status", "%warp_wait_mask", str(RUNNABLE), "s")}
  {set_lanes("warp_pc", "%warp_wait_mask", "%site_next", "p")}
  ret void
}}"""


def _block() -> str:
    """A warp waits, last of its cluster."""
    return f"""
define void @rt.block(ptr %cluster, i32 %slot) {{
  {load("cluster_count")}
  {load("cluster_blocked", "ptr")}
  %at = getelementptr i32, ptr %cluster_blocked, i32 %cluster_count
  store i32 %slot, ptr %at
  %more = add i32 %cluster_count, 1
  {store("cluster_count", "%more")}
  ret void
}}"""


_FUNCTIONS: dict[str, Callable[[], str]] = {
    "ready": _ready,
    "wake": _wake,
    "resume": _resume,
    "release": _release,
    "block": _block,
}


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    make = _FUNCTIONS.get(name)
    return None if make is None else make()
