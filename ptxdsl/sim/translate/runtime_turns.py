"""Turns of warps in host code: what ``machine.turns`` does, for the commonest of it.

``turns`` takes one warp after another from the queue, as the machine does. An instruction on an mbarrier or a named
barrier, or of a warpgroup, that all lanes execute alike, and that does nothing but what is expected of it, is executed
here (``runtime_mbarriers``, ``runtime_named``, ``runtime_warpgroups``); with all else the turn goes back to the
machine, before anything of it has been done. So the order of turns, and all that comes of them, is the same.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxdsl.sim.layout import (
    ACCESS,
    ALONE,
    APART,
    CHANGED,
    EVENT,
    HOST,
    INERT,
    NEXT,
    RAN,
    SITE,
    UNFINISHED,
)
from ptxdsl.sim.translate.runtime_fields import add, load, set_lanes, store, unless
from ptxdsl.sim.translate.runtime_mbarriers import CAME_AND_WAITS, LEFT, MAKES_READY, WAITS


def _event() -> str:
    """Tells whoever watches what has happened. See ``layout.EVENT``."""
    return f"""
define void @rt.event(ptr %turns, ptr %warp, i32 %kind, i32 %site, i32 %mask, ptr %bar, i64 %phase, i64 %count) {{
  {load("turns_events", "ptr")}
  %nobody = icmp eq ptr %turns_events, null
  {unless("%nobody", "done", "tell")}
  {load("turns_happened")}
  {load("turns_phases", "ptr")}
  {load("warp_slot")}
  %byte = mul i32 %turns_happened, {EVENT.itemsize}
  %event = getelementptr i8, ptr %turns_events, i32 %byte
  {store("event_kind", "%kind")}
  {store("event_slot", "%warp_slot")}
  {store("event_site", "%site")}
  {store("event_mask", "%mask")}
  {store("event_barrier", "%bar", "ptr")}
  {store("event_logged", "%count", "i64")}
  %phase.at = getelementptr i64, ptr %turns_phases, i32 %turns_happened
  store i64 %phase, ptr %phase.at
  %more = add i32 %turns_happened, 1
  {store("turns_happened", "%more")}
  br label %done
done:
  ret void
}}"""


def _logged() -> str:
    """Compiled code has come back: what it has logged stays, and the log of the next turn begins behind it."""
    return f"""
define void @rt.logged(ptr %turns, ptr %warp, ptr %log) {{
  {load("log_count", "i64")}
  {load("log_capacity", "i64")}
  {load("log_entries", "ptr")}
  %none = icmp eq i64 %log_count, 0
  {unless("%none", "done", "some")}
  %kept = call i64 @llvm.umin.i64(i64 %log_count, i64 %log_capacity)
  call void @rt.event(ptr %turns, ptr %warp, i32 {RAN}, i32 0, i32 0, ptr null, i64 0, i64 %kept)
  %over = sub i64 %log_count, %kept
  %lost = trunc i64 %over to i32
  {add("turns_lost", "%lost")}
  %kept.short = trunc i64 %kept to i32
  {add("turns_logged", "%kept.short")}
  %bytes = mul i64 %kept, {ACCESS.itemsize}
  %behind = getelementptr i8, ptr %log_entries, i64 %bytes
  {store("log_entries", "%behind", "ptr")}
  {store("log_count", "0", "i64")}
  br label %done
done:
  ret void
}}"""


def _push() -> str:
    return f"""
define void @rt.push(ptr %turns, ptr %warp) {{
  {store("warp_queued", "1")}
  {load("warp_slot")}
  {load("turns_queue", "ptr")}
  {load("turns_head")}
  {load("turns_count")}
  {load("turns_ring")}
  %end = add i32 %turns_head, %turns_count
  %place = and i32 %end, %turns_ring
  %at = getelementptr i32, ptr %turns_queue, i32 %place
  store i32 %warp_slot, ptr %at
  %more = add i32 %turns_count, 1
  {store("turns_count", "%more")}
  ret void
}}"""


# `Turns.turn`, of one warp after another.
_TURNS = f"""
define void @rt.turns(ptr %turns) {{
entry:
  {load("turns_launch", "ptr", "launch")}
  {load("turns_left")}
  br label %loop
loop:
  %left = phi i32 [ %turns_left, %entry ], [ %left.next, %over ]
  {load("turns_count")}
  {load("turns_head")}
  {load("turns_queue", "ptr")}
  {load("turns_ring")}
  %tired = icmp eq i32 %left, 0
  %nobody = icmp eq i32 %turns_count, 0
  %idle = or i1 %tired, %nobody
  {load("turns_logged")}
  {load("turns_log_room")}
  %full = icmp ugt i32 %turns_logged, %turns_log_room
  %enough = or i1 %idle, %full
  {unless("%enough", "out", "some")}
  %place = and i32 %turns_head, %turns_ring
  %slot.at = getelementptr i32, ptr %turns_queue, i32 %place
  %slot = load i32, ptr %slot.at
  {load("turns_warps", "ptr")}
  %warp.at = getelementptr ptr, ptr %turns_warps, i32 %slot
  %warp = load ptr, ptr %warp.at
  %warp.number = ptrtoint ptr %warp to i64
  %strange = icmp ule i64 %warp.number, {INERT}
  {unless("%strange", "out", "mine")}
  %resumed = call i32 @rt.resume(ptr %turns, ptr %warp)
  %refused = icmp slt i32 %resumed, 0
  {unless("%refused", "out", "take")}
  %head = add i32 %turns_head, 1
  %fewer = sub i32 %turns_count, 1
  {store("turns_head", "%head")}
  {store("turns_count", "%fewer")}
  {store("turns_slot", "%slot")}
  {store("warp_queued", "0")}
  %left.next = sub i32 %left, 1
  {store("turns_left", "%left.next")}
  {load("launch_writes", "i64", "before")}
  {load("turns_changes")}
  {load("warp_changes", "i64")}
  %resumed.long = zext i32 %resumed to i64
  %turns_changes.new = add i32 %turns_changes, %resumed
  {store("turns_changes", "%turns_changes.new")}
  %warp_changes.new = add i64 %warp_changes, %resumed.long
  {store("warp_changes", "%warp_changes.new", "i64")}
  {load("warp_live")}
  {load("warp_blocked")}
  %free = xor i32 %warp_blocked, -1
  %runnable = and i32 %warp_live, %free
  %none = icmp eq i32 %runnable, 0
  br i1 %none, label %end, label %run
run:
  {load("warp_clock", "i64")}
  {store("launch_clock", "%warp_clock", "i64")}
  {load("turns_fuel")}
  {store("warp_fuel", "%turns_fuel")}
  {load("turns_run", "ptr")}
  %code = call i32 %turns_run(ptr %warp)
  {load("warp_issued", "i64")}
  {load("warp_told_issued", "i64")}
  {load("warp_retired", "i64")}
  {load("warp_told_retired", "i64")}
  %issued = sub i64 %warp_issued, %warp_told_issued
  %retired = sub i64 %warp_retired, %warp_told_retired
  {store("warp_told_issued", "%warp_issued", "i64")}
  {store("warp_told_retired", "%warp_retired", "i64")}
  {add("turns_issued", "%issued", "i64")}
  {add("turns_retired", "%retired", "i64")}
  %clock = add i64 %warp_clock, %issued
  {store("warp_clock", "%clock", "i64")}
  {load("launch_trace", "ptr", "log")}
  %unseen = icmp eq ptr %log, null
  br i1 %unseen, label %came, label %logs
logs:
  call void @rt.logged(ptr %turns, ptr %warp, ptr %log)
  br label %came
came:
  %host = icmp eq i32 %code, {HOST}
  br i1 %host, label %stands, label %unfinished
stands:
  {load("warp_mask")}
  {load("warp_site")}
  {load("turns_sites", "ptr")}
  %site.byte = mul i32 %warp_site, {SITE.itemsize}
  %site = getelementptr i8, ptr %turns_sites, i32 %site.byte
  {load("site_kind")}
  %unknown = icmp eq i32 %site_kind, 0
  br i1 %unknown, label %unfinished, label %execute
execute:
  %how = call i32 @rt.host_instruction(ptr %turns, ptr %warp, ptr %site, i32 %warp_mask)
  %refuses = icmp eq i32 %how, {LEFT}
  br i1 %refuses, label %unfinished, label %executed
executed:
  {add("turns_hosts", "1")}
  {store("site_executed", "1")}
  switch i32 %how, label %advance [ i32 {WAITS}, label %end i32 {CAME_AND_WAITS}, label %came.waits ]
came.waits:
  {add("turns_changes", "1", key="came")}
  {add("warp_changes", "1", "i64", key="came")}
  br label %end
advance:
  {load("site_next")}
  {set_lanes("warp_pc", "%warp_mask", "%site_next", "p")}
  {add("turns_changes", "1", key="again")}
  {add("warp_changes", "1", "i64", key="again")}
  %changed = icmp eq i32 %how, {MAKES_READY}
  %not.mask = xor i32 %warp_mask, -1
  %others = and i32 %runnable, %not.mask
  %no.others = icmp eq i32 %others, 0
  {load("warp_turns_alone")}
  %alone.more = add i32 %warp_turns_alone, 1
  %alone.new = select i1 %no.others, i32 0, i32 %alone.more
  %whole = icmp eq i32 %warp_mask, %warp_live
  %alone = select i1 %whole, i32 %warp_turns_alone, i32 %alone.new
  {store("warp_turns_alone", "%alone")}
  %long = icmp uge i32 %alone, {ALONE}
  br i1 %long, label %apart, label %wakes
wakes:
  br i1 %changed, label %wake, label %end
wake:
  {load("warp_cluster", "ptr", "cluster")}
  {load("warp_clock", "i64", "clock.now")}
  %woken = call i1 @rt.wake(ptr %turns, ptr %cluster, i64 %clock.now)
  br i1 %woken, label %end, label %ask
end:
  {load("launch_writes", "i64", "after")}
  %written = icmp ne i64 %after, %before
  %written.long = zext i1 %written to i64
  {add("warp_changes", "%written.long", "i64", key="end")}
  {load("warp_blocked", "i32", "blocked.now")}
  %free.now = xor i32 %blocked.now, -1
  %runnable.now = and i32 %warp_live, %free.now
  %some.run = icmp ne i32 %runnable.now, 0
  %ready = call i1 @rt.ready(ptr %warp)
  %goes.on = or i1 %some.run, %ready
  br i1 %goes.on, label %push, label %block
push:
  call void @rt.push(ptr %turns, ptr %warp)
  br label %over
block:
  {load("warp_cluster", "ptr", "its.cluster")}
  call void @rt.block(ptr %its.cluster, i32 %slot)
  br label %over
over:
  br label %loop
out:
  br label %return
unfinished:
  br label %return
apart:
  %apart.code = zext i1 %changed to i32
  br label %return
ask:
  br label %return
return:
  %reason = phi i32 [ {NEXT}, %out ], [ {UNFINISHED}, %unfinished ], [ {APART}, %apart ], [ {CHANGED}, %ask ]
  %last.code = phi i32 [ 0, %out ], [ %code, %unfinished ], [ %apart.code, %apart ], [ 0, %ask ]
  %last.before = phi i64 [ 0, %out ], [ %before, %unfinished ], [ %before, %apart ], [ %before, %ask ]
  {store("turns_reason", "%reason")}
  {store("turns_code", "%last.code")}
  {store("turns_before", "%last.before", "i64")}
  ret void
}}"""


_FUNCTIONS: dict[str, Callable[[], str]] = {
    "turns": lambda: _TURNS,
    "event": _event,
    "logged": _logged,
    "push": _push,
}


def text(name: str) -> str | None:
    """The IR of a function of this file."""
    make = _FUNCTIONS.get(name)
    return None if make is None else make()
